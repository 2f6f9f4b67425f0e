//! The sentences that text, Markdown, HTML and the terminal UI share, so that no fact is worded twice.
//!
//! In: parts of a report (already escaped). Out: plain words and one-line sentences, without markup, styles or line ends.
//! It leaves wrapping, escaping and layout to the formats.

use serde::Serialize;

use crate::tables::class::FailureClass;
use crate::text::fit;

use super::Report;
use super::model::{
    Cause, Certainty, CheckStatus, Code, Evidence, FaultAt, From, Hypothesis, ObservedAt, Rank, RankState,
    Restart, RestartAdvice, Role,
};

/// What stands in place of the fault's own place where the error came out later and nothing tells which launch it was.
pub const FAULT_NOT_HERE: &str =
    "not in this input: an earlier launch. The steps under \"next\" would name it.";

/// What stands in place of a cause where the evidence names none.
pub const NO_CAUSE: &str = "the input does not name one";

/// Columns of a call with its arguments.
const CALL_COLUMNS: usize = 60;

/// The last line of every saved report: by it a report is told from a log when its folder is read again.
#[must_use]
pub fn mark(report: &Report) -> String {
    format!("report by {} {} ({})", report.tool.name, report.tool.version, report.schema)
}

/// `ILLEGAL ADDRESS`
#[must_use]
pub fn class_heading(report: &Report) -> String {
    report.verdict.class.name().to_uppercase().replace('_', " ")
}

/// `cuda 700 cudaErrorIllegalAddress`
#[must_use]
pub fn code(code: &Code) -> String {
    let name = code.name.as_deref().unwrap_or("");
    let number = code.number.map(|number| number.to_string()).unwrap_or_default();
    [code.domain.as_str(), &number, name]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A certainty in its own word.
#[must_use]
pub fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Proven => "proven",
        Certainty::Supported => "supported",
        Certainty::Suspected => "suspected",
        Certainty::Undecided => "undecided",
    }
}

/// What a certainty means, in half a sentence.
#[must_use]
pub fn certainty_meaning(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Proven => "a rerun or the failing component itself shows it",
        Certainty::Supported => "independent evidence agrees",
        Certainty::Suspected => "it fits, and nothing else agrees yet",
        Certainty::Undecided => "nothing in the input decides",
    }
}

/// The role of a failure in its own word.
#[must_use]
pub fn role(role: Role) -> &'static str {
    match role {
        Role::Root => "root",
        Role::Cascade => "cascade",
        Role::Messenger => "messenger",
        Role::Cleanup => "cleanup",
    }
}

/// The outcome of a check in its own word.
#[must_use]
pub fn check_status(status: CheckStatus) -> &'static str {
    match status {
        CheckStatus::Holds => "holds",
        CheckStatus::Fails => "fails",
        CheckStatus::Unknown => "unknown",
        CheckStatus::Skipped => "skipped",
    }
}

/// The state of a rank in its own word.
#[must_use]
pub fn rank_state(state: RankState) -> &'static str {
    match state {
        RankState::Failed => "failed",
        RankState::Silent => "silent",
        RankState::Waiting => "waiting",
        RankState::Terminated => "terminated",
        RankState::Finished => "finished",
        RankState::Unknown => "unknown",
    }
}

/// `file:line`, as much of it as is known.
#[must_use]
pub fn place(file: Option<&str>, line: Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.to_owned(),
        _ => String::new(),
    }
}

/// `triton_cases.py:60 in forward, at to(device="cpu"): a sync point, where the error came out`
#[must_use]
pub fn notice_text(class: FailureClass, notice: &ObservedAt) -> String {
    let mut text = place(notice.file.as_deref(), notice.line);
    let joint = if text.is_empty() { "at " } else { ", at " };
    if let Some(function) = &notice.function {
        text.push_str(&format!(" in {function}"));
    }
    if let Some(call) = notice.call_text.as_ref().or(notice.call.as_ref()) {
        let call = fit(call, CALL_COLUMNS);
        text.push_str(&format!("{joint}{call}{}", if call.contains('(') { "" } else { "(…)" }));
    }
    // Where no device code failed, the call itself did.
    if class.is_device_fault() {
        text.push_str(match notice.is_sync_point {
            Some(true) => ": a sync point, where the error came out",
            other => runs_on(other, notice.call.is_some()),
        });
    }
    text
}

/// Kernel, place, coordinates, access; or the little that an Xid tells.
#[must_use]
pub fn fault_text(fault: &FaultAt) -> String {
    let mut parts: Vec<String> = Vec::new();
    let at = place(fault.file.as_deref(), fault.line);
    match (fault.kernel.as_ref().or(fault.function.as_ref()), at.is_empty()) {
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

/// Where it happened, or that the input doesn't say; nothing where there is nothing to say.
#[must_use]
pub fn happened_text(report: &Report) -> Option<String> {
    match &report.verdict.fault_at {
        Some(fault) => Some(fault_text(fault)),
        None if report.verdict.reported_asynchronously == Some(true) => Some(FAULT_NOT_HERE.to_owned()),
        None => None,
    }
}

/// `int32_overflow [supported]: …`
#[must_use]
pub fn cause_text(cause: &Cause) -> String {
    format!("{} [{}]: {}", spelled(&cause.kind), certainty(cause.certainty), cause.summary)
}

/// What stands in place of a cause: what the failure says by itself, what is known where the cause stays undecided, or that
/// none is named.
#[must_use]
pub fn no_cause(report: &Report) -> String {
    match in_place_of_a_cause(report) {
        None => NO_CAUSE.to_owned(),
        Some(stated) if stated.cause.is_none() => stated.summary.clone(),
        Some(undecided) => format!("undecided: {}", undecided.summary),
    }
}

/// The hypothesis that says it: what the failure states itself before what stays undecided.
#[must_use]
pub fn in_place_of_a_cause(report: &Report) -> Option<&Hypothesis> {
    let all = || report.hypotheses.iter();
    all()
        .find(|hypothesis| hypothesis.cause.is_none())
        .or_else(|| all().find(|hypothesis| hypothesis.certainty == Certainty::Undecided))
}

/// What is known of a reporting call that is no sync point, or of which nobody knows whether it waits.
#[must_use]
pub fn runs_on(is_sync_point: Option<bool>, has_call: bool) -> &'static str {
    match is_sync_point {
        Some(false) => ": no sync point by itself",
        None if has_call => ": not known whether it waits for the GPU",
        _ => "",
    }
}

/// The evidence for the verdict's cause.
#[must_use]
pub fn cause_evidence(report: &Report) -> &[String] {
    let kind = report.verdict.cause.as_ref().map(|cause| cause.kind);
    let found = report.hypotheses.iter().find(|hypothesis| kind.is_some() && hypothesis.cause == kind);
    found.map(|hypothesis| hypothesis.supports.as_slice()).unwrap_or_default()
}

/// `pointless: the same input fails every time`
#[must_use]
pub fn restart_text(restart: &Restart) -> String {
    let advice = match restart.advice {
        RestartAdvice::Pointless => "pointless",
        RestartAdvice::WorthTrying => "worth trying",
        RestartAdvice::AfterDrain => "after draining",
        RestartAdvice::Unknown => "unknown",
    };
    format!("{advice}: {}", restart.summary)
}

/// How a rank ended: `signal 6 (SIGABRT)`, `exit 1`; empty where nothing tells.
#[must_use]
pub fn ending(rank: &Rank) -> String {
    let name = |number: u32| match number {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    };
    match (rank.signal, rank.exit_code) {
        (Some(number), _) => format!("signal {number}{}", name(number)),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => String::new(),
    }
}

/// Last part of an input's path, by which evidence is referred to.
#[must_use]
pub fn input_name(report: &Report, input: u32) -> &str {
    let path = report.inputs.get(input as usize).map_or("?", |input| input.path.as_str());
    path.rsplit('/').next().unwrap_or(path)
}

/// `run.log:16` of a piece of evidence.
#[must_use]
pub fn position(report: &Report, evidence: &Evidence) -> String {
    match &evidence.from {
        From::Span { input, line: 0, .. } => input_name(report, *input).to_owned(),
        From::Span { input, line, .. } => format!("{}:{line}", input_name(report, *input)),
        From::Derived { from } => format!("from {}", from.join(" ")),
        From::Probe => "probe".to_owned(),
        From::Answer => "answer".to_owned(),
    }
}

/// The evidence with this id.
#[must_use]
pub fn find<'a>(report: &'a Report, id: &str) -> Option<&'a Evidence> {
    report.evidence.iter().find(|evidence| evidence.id == id)
}

/// `[e4 run.log:16]`, at most three of them; empty where there is none.
#[must_use]
pub fn refs(report: &Report, ids: &[String]) -> String {
    let parts: Vec<String> = ids
        .iter()
        .take(3)
        .filter_map(|id| find(report, id))
        .map(|evidence| format!("{} {}", evidence.id, position(report, evidence)))
        .collect();
    if parts.is_empty() { String::new() } else { format!("[{}]", parts.join(", ")) }
}

/// `[e3 run.log:13]`: the line of the frame rather than of the traceback's head.
#[must_use]
pub fn notice_ref(report: &Report, notice: &ObservedAt) -> String {
    let first = notice.evidence.first().and_then(|id| find(report, id));
    match (first.map(|evidence| (evidence, &evidence.from)), notice.log_line) {
        (Some((evidence, From::Span { input, .. })), Some(line)) => {
            format!("[{} {}:{line}]", evidence.id, input_name(report, *input))
        }
        _ => refs(report, &notice.evidence),
    }
}

/// The evidence under the verdict, the most telling first: the fault, the notice, the root failure, the hypotheses.
#[must_use]
pub fn key_evidence(report: &Report, limit: usize) -> Vec<&Evidence> {
    let verdict = &report.verdict;
    let root = report.failures.first().map(|failure| failure.evidence.as_slice()).unwrap_or_default();
    let groups = [
        verdict.fault_at.as_ref().map(|fault| fault.evidence.as_slice()).unwrap_or_default(),
        verdict.observed_at.as_ref().map(|notice| notice.evidence.as_slice()).unwrap_or_default(),
        root,
    ];
    let mut wanted: Vec<&str> = Vec::new();
    for id in groups.into_iter().flatten().chain(report.hypotheses.iter().flat_map(|h| &h.supports)) {
        if !wanted.contains(&id.as_str()) && wanted.len() < limit {
            wanted.push(id);
        }
    }
    wanted.into_iter().filter_map(|id| find(report, id)).collect()
}

/// The spelling of an enum in JSON, which is its name everywhere.
#[must_use]
pub fn spelled<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_names_place_call_and_what_the_call_is() {
        let notice = ObservedAt {
            rank: None,
            file: Some("a.py".to_owned()),
            line: Some(60),
            function: Some("forward".to_owned()),
            call: Some("to".to_owned()),
            call_text: None,
            log_line: None,
            is_sync_point: Some(true),
            evidence: Vec::new(),
        };
        let want = "a.py:60 in forward, at to(…): a sync point, where the error came out";
        assert_eq!(notice_text(FailureClass::IllegalAddress, &notice), want);
        let given = ObservedAt { call_text: Some("to(\"cpu\")".to_owned()), is_sync_point: None, ..notice };
        let unknown = "a.py:60 in forward, at to(\"cpu\"): not known whether it waits for the GPU";
        assert_eq!(notice_text(FailureClass::IllegalAddress, &given), unknown);
        // Where no device code failed, the call itself did.
        assert_eq!(notice_text(FailureClass::GpuOom, &given), "a.py:60 in forward, at to(\"cpu\")");
    }

    #[test]
    fn a_fault_without_a_launch_says_so() {
        let mut fault = FaultAt {
            address: Some("0x7f".to_owned()),
            access: Some("write".to_owned()),
            ..FaultAt::default()
        };
        assert_eq!(fault_text(&fault), "write at 0x7f; which launch it was is not in this input");
        fault.kernel = Some("k".to_owned());
        fault.access = Some("write 16".to_owned());
        fault.block = Some([1, 2, 3]);
        assert_eq!(fault_text(&fault), "k, block (1,2,3), write 16 bytes at 0x7f");
        fault.library = Some("libc.so.6".to_owned());
        fault.offset = Some("0x10".to_owned());
        assert!(fault_text(&fault).ends_with("at 0x7f, in libc.so.6 + 0x10"));
    }

    #[test]
    fn a_code_has_no_gap_where_a_part_is_missing() {
        let code_of = |number, name: Option<&str>| {
            code(&Code { domain: "cuda".to_owned(), number, name: name.map(str::to_owned) })
        };
        assert_eq!(code_of(Some(700), Some("x")), "cuda 700 x");
        assert_eq!(code_of(None, Some("x")), "cuda x");
        assert_eq!(code_of(None, None), "cuda");
    }
}
