//! The report as text for a terminal or a file: verdict first, then the two places, the proof, and what to do.
//!
//! In: a report (already escaped). Out: lines. Labels become styles only through [`Paint`], so that the same text serves
//! pipes and terminals. It fits 80 columns where words allow.

mod paint;
mod wrap;

pub use paint::{Label, Paint};

use crate::text::command_line;

use super::model::{Certainty, CheckStatus, Evidence, From, Report, Role};
use wrap::wrapped;

/// Columns of the text.
const WIDTH: usize = 96;
/// Evidence lines shown under the verdict.
const EVIDENCE_SHOWN: usize = 8;

/// The report as text.
#[must_use]
pub fn render(report: &Report, paint: Paint) -> String {
    let mut out = String::new();
    head(&mut out, report, paint);
    places(&mut out, report, paint);
    cause(&mut out, report, paint);
    restart(&mut out, report, paint);
    failures(&mut out, report, paint);
    ranks(&mut out, report, paint);
    evidence(&mut out, report, paint);
    checks(&mut out, report, paint);
    next(&mut out, report, paint);
    mitigations(&mut out, report, paint);
    inputs(&mut out, report, paint);
    // The mark by which a saved report is told from a log when its folder is read again.
    out.push_str(&format!("\nreport by {} {} ({})\n", report.tool.name, report.tool.version, report.schema));
    out
}

fn head(out: &mut String, report: &Report, paint: Paint) {
    let verdict = &report.verdict;
    let code = verdict.code.as_ref().map(|code| {
        let name = code.name.as_deref().unwrap_or("");
        let number = code.number.map(|number| number.to_string()).unwrap_or_default();
        format!("  {} {number} {name}", code.domain).trim_end().to_owned()
    });
    out.push_str(&paint.label(Label::Class, &verdict.class.name().to_uppercase().replace('_', " ")));
    out.push_str(&code.unwrap_or_default());
    out.push_str(&format!("  [{}]\n", paint.label(Label::Certainty, certainty(verdict.certainty))));
    out.push_str(&wrapped(&verdict.summary, WIDTH, ""));
    out.push('\n');
}

fn places(out: &mut String, report: &Report, paint: Paint) {
    let verdict = &report.verdict;
    if let Some(notice) = &verdict.observed_at {
        let mut text = place(notice.file.as_deref(), notice.line);
        if let Some(function) = &notice.function {
            text.push_str(&format!(" in {function}"));
        }
        if let Some(call) = notice.call_text.as_ref().or(notice.call.as_ref()) {
            let call = crate::text::fit(call, 60);
            text.push_str(&format!(", at {call}{}", if call.contains('(') { "" } else { "(…)" }));
        }
        text.push_str(match notice.is_sync_point {
            Some(true) => ": a sync point, where the error came out",
            Some(false) => ": no sync point by itself",
            None => "",
        });
        row(out, paint, "noticed", &format!("{text} {}", notice_ref(report, notice)));
    }
    match &verdict.fault_at {
        Some(fault) => {
            row(out, paint, "happened", &format!("{} {}", fault_text(fault), refs(report, &fault.evidence)))
        }
        None if verdict.reported_asynchronously == Some(true) => {
            row(
                out,
                paint,
                "happened",
                "not in this input: an earlier launch. The steps under \"next\" would name it.",
            );
        }
        None => {}
    }
}

/// Kernel, place, coordinates, access; or the little that an Xid tells.
fn fault_text(fault: &super::model::FaultAt) -> String {
    let mut parts: Vec<String> = Vec::new();
    let at = place(fault.file.as_deref(), fault.line);
    match (&fault.kernel, at.is_empty()) {
        (Some(kernel), false) => parts.push(format!("{kernel} at {at}")),
        (Some(kernel), true) => parts.push(kernel.clone()),
        (None, false) => parts.push(at),
        (None, true) => {}
    }
    for (name, value) in [("block", fault.block), ("thread", fault.thread), ("grid", fault.grid)] {
        if let Some([x, y, z]) = value {
            parts.push(format!("{name} ({x},{y},{z})"));
        }
    }
    let known = !parts.is_empty();
    match (&fault.access, &fault.address) {
        (Some(access), Some(address)) => {
            let unit = if access.ends_with(|c: char| c.is_ascii_digit()) { " bytes" } else { "" };
            parts.push(format!("{access}{unit} at {address}"));
        }
        (None, Some(address)) => parts.push(format!("address {address}")),
        _ => {}
    }
    if let Some(library) = &fault.library {
        let offset = fault.offset.as_ref().map(|offset| format!(" + {offset}")).unwrap_or_default();
        parts.push(format!("in {library}{offset}"));
        return parts.join(", ");
    }
    let text = parts.join(", ");
    if known { text } else { format!("{text}; which launch it was is not in this input") }
}

fn cause(out: &mut String, report: &Report, paint: Paint) {
    match &report.verdict.cause {
        Some(cause) => {
            let kind = serde_json::to_value(cause.kind)
                .ok()
                .and_then(|v| v.as_str().map(str::to_owned))
                .unwrap_or_default();
            let supports = report
                .hypotheses
                .iter()
                .find(|hypothesis| hypothesis.cause == Some(cause.kind))
                .map(|hypothesis| refs(report, &hypothesis.supports))
                .unwrap_or_default();
            row(
                out,
                paint,
                "cause",
                &format!("{kind} [{}]: {} {supports}", certainty(cause.certainty), cause.summary),
            );
        }
        None if report.failures.is_empty() => {}
        None => row(out, paint, "cause", "the input does not name one"),
    }
}

fn restart(out: &mut String, report: &Report, paint: Paint) {
    if report.failures.is_empty() {
        return;
    }
    let advice = match report.verdict.restart.advice {
        super::model::RestartAdvice::Pointless => "pointless",
        super::model::RestartAdvice::WorthTrying => "worth trying",
        super::model::RestartAdvice::AfterDrain => "after draining",
        super::model::RestartAdvice::Unknown => "unknown",
    };
    row(out, paint, "restart", &format!("{advice}: {}", report.verdict.restart.summary));
}

fn failures(out: &mut String, report: &Report, paint: Paint) {
    if report.failures.len() < 2 {
        return;
    }
    title(out, paint, "failures, the first one on top");
    for failure in report.failures.iter().take(12) {
        let role = match failure.role {
            Role::Root => "root",
            Role::Cascade => "cascade",
            Role::Messenger => "messenger",
            Role::Cleanup => "cleanup",
        };
        let rank = failure.rank.map(|rank| format!(" rank {rank}")).unwrap_or_default();
        let why = failure.why.as_deref().unwrap_or("");
        let line = format!(
            "{role:<9} {}{rank}: {why} {}",
            failure.class.name(),
            refs(report, failure.evidence.get(..1).unwrap_or_default())
        );
        out.push_str(&wrapped(&line, WIDTH, "  "));
    }
    let more = report.failures.len().saturating_sub(12);
    if more > 0 {
        out.push_str(&format!("  … and {more} more\n"));
    }
}

fn ranks(out: &mut String, report: &Report, paint: Paint) {
    if report.ranks.len() < 2 {
        return;
    }
    title(out, paint, "ranks, the odd one out on top");
    for rank in report.ranks.iter().take(8) {
        let state = serde_json::to_value(rank.state)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default();
        let mut line = format!("rank {:<4} {state:<10}", rank.rank);
        if let (Some(enqueued), Some(completed)) = (rank.last_enqueued, rank.last_completed) {
            line.push_str(&format!(" enqueued {enqueued}, completed {completed}"));
        }
        if let Some(signal) = rank.signal {
            line.push_str(&format!(" signal {signal}"));
        } else if let Some(code) = rank.exit_code {
            line.push_str(&format!(" exit {code}"));
        }
        out.push_str(&format!("  {}\n", line.trim_end()));
    }
    let more = report.ranks.len().saturating_sub(8);
    if more > 0 {
        out.push_str(&format!("  … and {more} more\n"));
    }
}

fn evidence(out: &mut String, report: &Report, paint: Paint) {
    let mut wanted: Vec<&str> = Vec::new();
    let verdict = &report.verdict;
    let root = report.failures.first().map(|failure| failure.evidence.as_slice()).unwrap_or_default();
    let groups = [
        verdict.fault_at.as_ref().map(|fault| fault.evidence.as_slice()).unwrap_or_default(),
        verdict.observed_at.as_ref().map(|notice| notice.evidence.as_slice()).unwrap_or_default(),
        root,
    ];
    for id in groups.into_iter().flatten().chain(report.hypotheses.iter().flat_map(|h| &h.supports)) {
        if !wanted.contains(&id.as_str()) && wanted.len() < EVIDENCE_SHOWN {
            wanted.push(id);
        }
    }
    if wanted.is_empty() {
        return;
    }
    title(out, paint, "evidence");
    for id in wanted {
        if let Some(evidence) = report.evidence.iter().find(|evidence| evidence.id == id) {
            out.push_str(&format!("  {:<4} {:<18} ", evidence.id, position(report, evidence)));
            out.push_str(&crate::text::fit(evidence.text.trim(), WIDTH.saturating_sub(26)));
            out.push('\n');
        }
    }
}

fn checks(out: &mut String, report: &Report, paint: Paint) {
    if report.checks.is_empty() {
        return;
    }
    title(out, paint, "checks");
    for check in &report.checks {
        let status = match check.status {
            CheckStatus::Holds => "holds",
            CheckStatus::Fails => "fails",
            CheckStatus::Unknown => "unknown",
            CheckStatus::Skipped => "skipped",
        };
        out.push_str(&wrapped(&format!("{status:<8} {} {}", check.title, check.reading), WIDTH, "  "));
    }
}

fn next(out: &mut String, report: &Report, paint: Paint) {
    if report.next.is_empty() {
        return;
    }
    title(out, paint, "next");
    for (number, step) in report.next.iter().enumerate() {
        out.push_str(&wrapped(
            &format!("{}. {}: {} (cost: {})", number + 1, step.title, step.why, step.cost),
            WIDTH,
            "  ",
        ));
        if let Some(words) = &step.command {
            let line = command_line(words);
            out.push_str(&format!("     {}\n", paint.label(Label::Command, &line)));
        }
    }
}

fn mitigations(out: &mut String, report: &Report, paint: Paint) {
    if report.mitigations.is_empty() {
        return;
    }
    title(out, paint, "meanwhile and for good");
    for mitigation in &report.mitigations {
        out.push_str(&wrapped(&format!("{:<12} {}", mitigation.scope, mitigation.summary), WIDTH, "  "));
    }
}

fn inputs(out: &mut String, report: &Report, paint: Paint) {
    title(out, paint, "read");
    for input in report.inputs.iter().take(12) {
        let kind = serde_json::to_value(input.kind)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default();
        let cut = if input.truncated { ", cut" } else { "" };
        out.push_str(&format!(
            "  {} ({kind}, {} bytes, {} lines{cut})\n",
            input.path, input.bytes, input.lines
        ));
    }
    let more = report.inputs.len().saturating_sub(12);
    if more > 0 {
        out.push_str(&format!("  … and {more} more\n"));
    }
    for diagnostic in &report.diagnostics {
        out.push_str(&wrapped(&format!("{}: {}", diagnostic.severity, diagnostic.message), WIDTH, "  "));
    }
}

fn title(out: &mut String, paint: Paint, title: &str) {
    out.push('\n');
    out.push_str(&paint.label(Label::Title, title));
    out.push('\n');
}

fn row(out: &mut String, paint: Paint, name: &str, text: &str) {
    let body = wrapped(text.trim_end(), WIDTH - 10, "          ");
    out.push_str(&paint.label(Label::Title, &format!("{name:<9}")));
    out.push(' ');
    out.push_str(body.trim_start());
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Proven => "proven",
        Certainty::Supported => "supported",
        Certainty::Suspected => "suspected",
        Certainty::Undecided => "undecided",
    }
}

fn place(file: Option<&str>, line: Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.to_owned(),
        _ => String::new(),
    }
}

/// `run.log:16` of a piece of evidence.
fn position(report: &Report, evidence: &Evidence) -> String {
    match &evidence.from {
        From::Span { input, line: 0, .. } => input_name(report, *input).to_owned(),
        From::Span { input, line, .. } => format!("{}:{line}", input_name(report, *input)),
        From::Derived { from } => format!("from {}", from.join(" ")),
        From::Probe => "probe".to_owned(),
        From::Answer => "answer".to_owned(),
    }
}

/// `[e3 run.log:13]`: the line of the frame rather than of the traceback's head.
fn notice_ref(report: &Report, notice: &super::model::ObservedAt) -> String {
    let whole = refs(report, &notice.evidence);
    let first =
        notice.evidence.first().and_then(|id| report.evidence.iter().find(|evidence| &evidence.id == id));
    match (first.map(|evidence| (evidence, &evidence.from)), notice.log_line) {
        (Some((evidence, From::Span { input, .. })), Some(line)) => {
            format!("[{} {}:{line}]", evidence.id, input_name(report, *input))
        }
        _ => whole,
    }
}

fn input_name(report: &Report, input: u32) -> &str {
    let path = report.inputs.get(input as usize).map_or("?", |input| input.path.as_str());
    path.rsplit('/').next().unwrap_or(path)
}

/// `[e4 run.log:16]`
fn refs(report: &Report, ids: &[String]) -> String {
    let parts: Vec<String> = ids
        .iter()
        .take(3)
        .filter_map(|id| report.evidence.iter().find(|evidence| &evidence.id == id))
        .map(|evidence| format!("{} {}", evidence.id, position(report, evidence)))
        .collect();
    if parts.is_empty() { String::new() } else { format!("[{}]", parts.join(", ")) }
}
