//! The static check of kernels as text for people.
//!
//! In: [`KernelsView`] and the source lines that it speaks of. Out: a page. Names and paths in it came from outside and are
//! escaped.

use std::fmt::Write as _;

use super::kernel::{
    AnswerView, FindingView, KernelView, KernelsView, KindView, LocationView, SourceView, SweepView,
};
use crate::text::escape;
use crate::text::number::grouped_signed;

/// Gives the text of a source line, where the file can be read.
pub type SourceLine<'s> = dyn Fn(&LocationView) -> Option<String> + 's;

/// The page.
#[must_use]
pub fn page(view: &KernelsView, line: &SourceLine<'_>) -> String {
    let mut pages: Vec<String> = view.kernels.iter().map(|kernel| one(kernel, line)).collect();
    if !view.diagnostics.is_empty() {
        let list: Vec<String> = view.diagnostics.iter().map(|d| format!("  {}\n", escape(d))).collect();
        pages.push(format!("not read\n{}", list.concat()));
    }
    pages.join("\n")
}

fn one(kernel: &KernelView, line: &SourceLine<'_>) -> String {
    let mut out = String::new();
    let target = kernel.target.as_deref().map(|t| format!(", {t}")).unwrap_or_default();
    let source = match kernel.source {
        SourceView::Ttir => "TTIR",
        SourceView::Ptx => "PTX",
        SourceView::Python => "Python",
    };
    let _ = writeln!(out, "{}  ({source}{})", escape(&kernel.entry), escape(&target));
    let _ = writeln!(out, "  {}", escape(&kernel.path));
    if kernel.source != SourceView::Python {
        let _ = writeln!(out, "  {}", sentence(kernel));
    } else if kernel.findings.is_empty() {
        let _ = writeln!(out, "  no lint has anything to say");
    }
    if !kernel.assumptions.is_empty() {
        let values: Vec<String> = kernel
            .assumptions
            .iter()
            .map(|(name, value)| format!("{name} = {}", grouped_signed(*value)))
            .collect();
        let _ = writeln!(out, "  with {}", escape(&values.join(", ")));
    }
    for text in &kernel.stated {
        let _ = writeln!(out, "  assumed: {}", escape(text));
    }
    for finding in &kernel.findings {
        out.push('\n');
        out.push_str(&self::finding(finding, line));
    }
    if !kernel.unknown.is_empty() {
        let _ = writeln!(out, "\n  not decided");
    }
    for unknown in &kernel.unknown {
        let place = unknown.location.as_ref().map(|l| format!("  ({})", short(l))).unwrap_or_default();
        let _ = writeln!(out, "    {}{}", escape(&unknown.what), escape(&place));
        if let Some(settle) = &unknown.settle {
            let _ = writeln!(out, "      would settle it: {}", escape(settle));
        }
    }
    if let Some(sweep) = &kernel.sweep {
        let _ = writeln!(out, "\n  {}", boundary(sweep, kernel.undecided));
    }
    for note in &kernel.notes {
        let _ = writeln!(out, "  note: {}", escape(note));
    }
    out
}

fn sentence(kernel: &KernelView) -> String {
    let decided = kernel.accesses.saturating_sub(kernel.undecided);
    match kernel.answer {
        AnswerView::Wraps => "WRAPS: a 32-bit index leaves its range before it reaches an address".into(),
        AnswerView::Fits => format!("fits: no 32-bit index can wrap in any of {} accesses", kernel.accesses),
        AnswerView::Unknown => format!("unknown: {decided} of {} accesses are shown to fit", kernel.accesses),
    }
}

fn short(location: &LocationView) -> String {
    let name = location.file.rsplit(['/', '\\']).next().unwrap_or(&location.file);
    format!("{name}:{}", location.line)
}

fn title(kind: KindView) -> &'static str {
    match kind {
        KindView::Int32Overflow => "32-bit index wraps",
        KindView::UnmaskedAccess => "access without a mask",
        KindView::MissingOther => "masked load without `other`",
        KindView::MissingStride => "row offset without its stride",
        KindView::NonAtomicStore => "several programs store to one address",
        KindView::BlockNotPowerOfTwo => "block size is no power of two",
        KindView::FixedNumWarps => "fixed num_warps",
        KindView::ArchMismatch => "compiled for another architecture",
        KindView::SharedMemory => "too much shared memory",
    }
}

fn finding(finding: &FindingView, line: &SourceLine<'_>) -> String {
    let mut out = String::new();
    let place = finding.location.as_ref().map(|l| format!("  {}", short(l))).unwrap_or_default();
    let computed = finding.max_value.is_some();
    let title = match finding.kind {
        KindView::Int32Overflow if !computed => "32-bit index may wrap",
        kind => title(kind),
    };
    let _ = writeln!(out, "  {title}{}", escape(&place));
    if let Some(text) = finding.location.as_ref().and_then(line) {
        let _ = writeln!(out, "    | {}", escape(text.trim()));
    }
    if !finding.expression.is_empty() && finding.kind != KindView::UnmaskedAccess {
        let goes =
            if finding.reaches.is_empty() { String::new() } else { format!("  →  {}", finding.reaches) };
        let _ = writeln!(out, "    {}{}", escape(&finding.expression), escape(&goes));
    }
    if finding.kind == KindView::Int32Overflow && computed {
        if let (Some(value), Some(limit)) = (finding.max_value, finding.limit) {
            let over = grouped_signed((value - limit).abs());
            let _ = writeln!(out, "    {} is {over} past {}", grouped_signed(value), grouped_signed(limit));
        }
        if let Some(witness) = &finding.witness {
            let [x, y, z] = witness.program;
            let lanes: Vec<String> =
                witness.lanes.iter().map(|(name, value)| format!("{name} {value}")).collect();
            let _ = writeln!(
                out,
                "    for example program ({x}, {y}, {z}) {}: index {} becomes {}",
                escape(&lanes.join(", ")),
                grouped_signed(witness.index),
                grouped_signed(witness.wrapped)
            );
        }
    } else {
        let _ = writeln!(out, "    {}", escape(&finding.detail));
    }
    if let Some(sweep) = &finding.sweep {
        let _ = writeln!(out, "    {}", boundary(sweep, 0));
    }
    if let Some(remedy) = &finding.remedy {
        for line in remedy.lines() {
            let _ = writeln!(out, "    {}", escape(line));
        }
    }
    out
}

/// `undecided`: accesses about which nothing is known. Then no size is safe, though none is shown to wrap.
fn boundary(sweep: &SweepView, undecided: usize) -> String {
    let name = escape(&sweep.name).to_string();
    let lattice = if sweep.lattice > 1 && sweep.safe_on_lattice != sweep.safe {
        format!(" ({} as a multiple of {})", grouped_signed(sweep.safe_on_lattice), sweep.lattice)
    } else {
        String::new()
    };
    match sweep.first_unsafe {
        Some(first) => format!(
            "safe up to {name} = {}{lattice}; {name} = {} wraps",
            grouped_signed(sweep.safe),
            grouped_signed(first)
        ),
        None if undecided > 0 => {
            let noun = if undecided == 1 { "access is" } else { "accesses are" };
            format!("no size of {name} is shown to be safe: {undecided} {noun} undecided")
        }
        None => format!("safe up to {name} = {}, the largest considered", grouped_signed(sweep.safe)),
    }
}
