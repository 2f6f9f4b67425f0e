//! Lints of Triton sources: what goes wrong in kernels again and again.
//!
//! In: the text of a Python file. Out: for each `@triton.jit` function its findings, with a location, what it looks like
//! now and what it should. `# warpfault: ignore` (or `ignore[unmasked_access]`) on the line, or alone on the line above,
//! silences. A lint sees one function and never proves anything: every finding is `suspected`.

mod rules;
mod scope;
mod source;

use super::finding::{Certainty, Finding, FindingKind};
use super::location::Location;
use super::model::Param;
use source::Source;

/// Largest source that is read, in bytes: what is no Python at all costs seconds and a hundred times its size.
pub const MAX_SOURCE: usize = 2 << 20;
/// Most issues of one kernel.
const MAX_ISSUES: usize = 1_000;
/// Most bytes of kernels that are looked at, each as often as it is inside another.
const MAX_LINTED: usize = 16 << 20;

/// The findings of one kernel of a source file.
#[derive(Debug, Clone)]
pub struct Linted {
    /// The function's name.
    pub entry: String,
    /// Its parameters; the type is the annotation.
    pub params: Vec<Param>,
    /// Findings, in the order of their lines.
    pub findings: Vec<Finding>,
}

/// Lints every `@triton.jit` function of a source; `path` is named in the locations.
#[must_use]
pub fn lint(path: &str, text: &str) -> Vec<Linted> {
    let mut end = text.len().min(MAX_SOURCE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let Some(source) = Source::parse(text.get(..end).unwrap_or("")) else { return Vec::new() };
    let launches = source.launches();
    let mut out = Vec::new();
    let mut left = MAX_LINTED;
    for kernel in source.kernels() {
        let size = kernel.body.end_byte() - kernel.body.start_byte();
        // Kernels inside kernels would be read again at each level.
        if size > left {
            break;
        }
        left -= size;
        let calls = launches.get(&kernel.name).map_or(&[][..], Vec::as_slice);
        let mut issues = rules::all(&source, &kernel, calls);
        issues.retain(|issue| !source.silences(issue.line..=issue.last_line, key(issue.kind)));
        issues.sort_by_key(|issue| (issue.line, issue.column));
        issues.truncate(MAX_ISSUES);
        let findings = grouped(issues).into_iter().map(|issue| issue.finding(path)).collect();
        let params = kernel.params.iter().map(|param| Param {
            name: param.name.clone(),
            ty: param.annotation.clone(),
            int_width: None,
            pointee_bytes: None,
            divisibility: 1,
            used: true,
        });
        out.push(Linted { entry: kernel.name.clone(), params: params.collect(), findings });
    }
    out
}

/// One issue a place, and one a group: what a single change mends is told once, with the other lines.
fn grouped(issues: Vec<Issue>) -> Vec<Issue> {
    let mut out: Vec<Issue> = Vec::new();
    let mut more: Vec<Vec<u32>> = Vec::new();
    for issue in issues {
        let same = |known: &Issue| {
            known.kind == issue.kind
                && ((known.line, known.column) == (issue.line, issue.column)
                    || (!issue.group.is_empty() && known.group == issue.group))
        };
        match out.iter().position(same) {
            Some(at) => {
                if let (Some(lines), Some(first)) = (more.get_mut(at), out.get(at))
                    && issue.line != first.line
                    && !lines.contains(&issue.line)
                {
                    lines.push(issue.line);
                }
            }
            None => {
                out.push(issue);
                more.push(Vec::new());
            }
        }
    }
    for (issue, lines) in out.iter_mut().zip(more).filter(|(_, lines)| !lines.is_empty()) {
        let shown: Vec<String> = lines.iter().take(8).map(u32::to_string).collect();
        let rest = lines.len().saturating_sub(8);
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        issue.detail.push_str(&format!("; so too on line {}{rest}", shown.join(", ")));
    }
    out
}

/// What a rule found.
#[derive(Debug, Clone)]
struct Issue {
    kind: FindingKind,
    line: u32,
    column: u32,
    /// The last line of the access: a comment on any of them silences.
    last_line: u32,
    expression: String,
    reaches: String,
    detail: String,
    before: String,
    after: String,
    /// Issues of one group are mended together; empty for one that stands alone.
    group: String,
}

impl Issue {
    fn finding(self, path: &str) -> Finding {
        let location = Location { file: path.to_owned(), line: self.line, column: self.column };
        Finding {
            kind: self.kind,
            certainty: Certainty::Suspected,
            expression: self.expression,
            reaches: self.reaches,
            access_location: Some(location.clone()),
            location: Some(location),
            max_value: None,
            limit: None,
            witness: None,
            sweep: None,
            detail: self.detail,
            remedy: Some(format!("before: {}\nafter:  {}", self.before, self.after)),
            accesses: Vec::new(),
        }
    }
}

/// A finding's name in a comment that silences it.
#[must_use]
pub fn key(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Int32Overflow => "int32_overflow",
        FindingKind::UnmaskedAccess => "unmasked_access",
        FindingKind::MissingStride => "missing_stride",
        FindingKind::MissingOther => "missing_other",
        FindingKind::NonAtomicStore => "non_atomic_store",
        FindingKind::BlockNotPowerOfTwo => "block_not_power_of_two",
        FindingKind::FixedNumWarps => "fixed_num_warps",
        FindingKind::ArchMismatch => "arch_mismatch",
        FindingKind::SharedMemory => "shared_memory",
    }
}

#[cfg(test)]
mod tests;
