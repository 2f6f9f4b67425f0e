//! The verdict as a list of claims, each with the evidence behind it.
//!
//! In: a report. Out: [`Claim`]s in the order in which a tired person asks: what, where noticed, where it happened, why,
//! what next, restart, who else. It words nothing that the report didn't decide.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;

use crate::report::model::{Certainty, Evidence, Failure, From, ObservedAt, RestartAdvice, Role};
use crate::report::{Report, wording};
use crate::tables::class::FailureClass;

/// What a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The sentence.
    Summary,
    /// Where it was noticed.
    Noticed,
    /// Where it happened.
    Happened,
    /// The cause.
    Cause,
    /// A collective that never finished.
    Collective,
    /// Another failure and its role.
    Failure,
    /// Whether to restart.
    Restart,
    /// The next step.
    Next,
    /// A stop-gap or fix.
    Mitigation,
    /// Something that could not be used.
    Diagnostic,
}

/// Columns of a file's name in a reference; the end of a longer one tells more than its beginning.
const NAME: usize = 24;

/// A statement of the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// What it is about.
    pub subject: Subject,
    /// Its name on the screen.
    pub label: &'static str,
    /// What it says.
    pub text: String,
    /// A command that goes with it, quoted for a shell.
    pub command: Option<String>,
    /// How sure it is.
    pub certainty: Option<Certainty>,
    /// Ids of the evidence behind it.
    pub evidence: Vec<String>,
    /// A source line that it names.
    pub place: Option<(String, u32)>,
    /// The line of the log that says it, where that isn't the first line of its evidence; counted from 1.
    pub log_line: Option<u64>,
}

impl Claim {
    fn new(subject: Subject, label: &'static str, text: impl Into<String>) -> Self {
        Self {
            subject,
            label,
            text: text.into(),
            command: None,
            certainty: None,
            evidence: Vec::new(),
            place: None,
            log_line: None,
        }
    }

    fn with_evidence(mut self, evidence: &[String]) -> Self {
        self.evidence = evidence.to_vec();
        self
    }

    /// What copying it gives.
    pub fn copied(&self) -> &str {
        self.command.as_deref().unwrap_or(&self.text)
    }
}

/// The claims of a report.
pub fn claims(report: &Report) -> Vec<Claim> {
    let mut claims = vec![summary(report)];
    let runs_on = report.verdict.class.is_device_fault();
    claims.extend(report.verdict.observed_at.as_ref().map(|at| noticed(at, runs_on)));
    claims.extend(happened(report));
    claims.extend(cause(report));
    claims.extend(collective(report));
    // Before what not to do: on a small screen it has to stand above the fold.
    claims.extend(report.next.first().map(|next| {
        let mut claim = Claim::new(Subject::Next, "next", next.title.clone());
        claim.command = next.command.as_deref().map(shell);
        claim
    }));
    if !report.failures.is_empty() {
        claims.push(restart(report));
    }
    claims.extend(report.mitigations.iter().take(4).map(|mitigation| {
        let label = match mitigation.scope.as_str() {
            "fix" => "fix",
            "verification" => "verify",
            _ => "stop-gap",
        };
        Claim::new(Subject::Mitigation, label, mitigation.summary.clone())
    }));
    claims.extend(others(report));
    claims.extend(
        report
            .diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity != "info")
            .take(20)
            .map(|diagnostic| Claim::new(Subject::Diagnostic, "note", diagnostic.message.clone())),
    );
    claims
}

fn summary(report: &Report) -> Claim {
    let verdict = &report.verdict;
    let evidence = report.failures.first().map(|failure| failure.evidence.as_slice()).unwrap_or_default();
    let mut claim =
        Claim::new(Subject::Summary, "", verdict.summary.replace('\n', " ")).with_evidence(evidence);
    claim.certainty = Some(verdict.certainty);
    claim
}

/// `runs_on`: device code failed while the host went its way, so that the place tells little about the fault.
fn noticed(at: &ObservedAt, runs_on: bool) -> Claim {
    let mut text = place(at.file.as_deref(), at.line);
    let joint = if text.is_empty() { "at " } else { ", at " };
    if let Some(function) = &at.function {
        text.push_str(&format!(" in {function}"));
    }
    match (&at.call_text, &at.call) {
        (Some(call), _) => text.push_str(&format!("{joint}{call}")),
        (None, Some(call)) => text.push_str(&format!("{joint}{call}(…)")),
        (None, None) => {}
    }
    if runs_on {
        // The sentence above says what that means.
        let is_sync = at.is_sync_point == Some(true);
        let rest = || wording::runs_on(at.is_sync_point, at.call.is_some());
        text.push_str(if is_sync { ": a sync point" } else { rest() });
    }
    let mut claim =
        Claim::new(Subject::Noticed, "noticed", in_rank(at.rank, &text)).with_evidence(&at.evidence);
    claim.place = at.file.clone().zip(at.line);
    claim.log_line = at.log_line;
    claim
}

fn happened(report: &Report) -> Option<Claim> {
    let Some(fault) = &report.verdict.fault_at else {
        let hidden = report.verdict.reported_asynchronously == Some(true);
        return hidden.then(|| {
            Claim::new(
                Subject::Happened,
                "happened",
                "not in this input: in an earlier launch. The steps of the playbook would name it.",
            )
        });
    };
    let mut claim =
        Claim::new(Subject::Happened, "happened", in_rank(fault.rank, &wording::fault_text(fault)))
            .with_evidence(&fault.evidence);
    claim.place = fault.file.clone().zip(fault.line);
    Some(claim)
}

fn cause(report: &Report) -> Option<Claim> {
    if report.failures.is_empty() {
        return None;
    }
    let Some(cause) = &report.verdict.cause else {
        let behind = wording::in_place_of_a_cause(report);
        let supports = behind.map(|hypothesis| hypothesis.supports.as_slice()).unwrap_or_default();
        return Some(Claim::new(Subject::Cause, "cause", wording::no_cause(report)).with_evidence(supports));
    };
    let supports = report
        .hypotheses
        .iter()
        .find(|hypothesis| hypothesis.cause == Some(cause.kind))
        .map(|hypothesis| hypothesis.supports.as_slice())
        .unwrap_or_default();
    let text = format!("{}: {}", words(cause.kind.name()), cause.summary);
    let mut claim = Claim::new(Subject::Cause, "cause", text).with_evidence(supports);
    claim.certainty = Some(cause.certainty);
    Some(claim)
}

fn collective(report: &Report) -> Option<Claim> {
    let collective = report.verdict.collective.as_ref()?;
    let mut text = collective.op.clone().unwrap_or_else(|| "a collective".to_owned());
    if let Some(seq) = collective.seq {
        text.push_str(&format!(" number {seq}"));
    }
    if let Some(group) = &collective.group {
        text.push_str(&format!(" in group {group}"));
    }
    if let Some(numel) = collective.numel_in {
        text.push_str(&format!(", {} elements", crate::tui::view::units::grouped(i128::from(numel))));
    }
    text.push_str(if collective.numel_in.is_some() { ", never finished" } else { " never finished" });
    Some(Claim::new(Subject::Collective, "waited", text))
}

/// Failures after the first: messengers and cascades must be seen to be set aside. Equal ones are one claim.
fn others(report: &Report) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for failure in report.failures.iter().skip(1) {
        let word = failure.shown.unwrap_or_else(|| role(failure.role));
        let claim = Claim::new(Subject::Failure, word, failure_text(failure));
        match claims.iter_mut().find(|other| (other.label, &other.text) == (claim.label, &claim.text)) {
            Some(same) => same.evidence.extend(failure.evidence.iter().cloned()),
            None => claims.push(claim.with_evidence(&failure.evidence)),
        }
    }
    // A thousand ranks can fail in a thousand ways; the rank board has them all.
    claims.truncate(12);
    claims
}

fn failure_text(failure: &Failure) -> String {
    let name = words(failure.class.name());
    match &failure.why {
        // What is of no class is told by its role alone.
        Some(why) if failure.class == FailureClass::Undecided => in_rank(failure.rank, why),
        Some(why) => in_rank(failure.rank, &format!("{name}: {why}")),
        None => in_rank(failure.rank, &name),
    }
}

fn restart(report: &Report) -> Claim {
    let restart = &report.verdict.restart;
    let advice = match restart.advice {
        RestartAdvice::Pointless => "pointless",
        RestartAdvice::WorthTrying => "worth trying",
        RestartAdvice::AfterDrain => "after draining",
        RestartAdvice::Unknown => "unknown",
    };
    Claim::new(Subject::Restart, "restart", format!("{advice}: {}", restart.summary))
}

/// A command as it can be pasted into a shell.
pub fn shell(words: &[String]) -> String {
    let quoted: Vec<Cow<'_, str>> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

/// shlex quotes `A=1` too, which reads badly in front of a command. A word that can't be quoted (it holds a NUL, which
/// reports show escaped) stays as it is.
fn quote(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    shlex::try_quote(word).unwrap_or(Cow::Borrowed(word))
}

/// Ids of the evidence that the verdict rests on: its places, its first failure, its cause.
pub fn deciding(report: &Report) -> BTreeSet<String> {
    let verdict = &report.verdict;
    let places = [
        verdict.observed_at.as_ref().map(|place| &place.evidence),
        verdict.fault_at.as_ref().map(|place| &place.evidence),
        verdict.cause.as_ref().and_then(|cause| {
            let behind = report.hypotheses.iter().find(|hypothesis| hypothesis.cause == Some(cause.kind));
            behind.map(|hypothesis| &hypothesis.supports)
        }),
    ];
    // The first failure of a large job may be printed a thousand times; the first lines say it.
    let first = report.failures.iter().take(1).flat_map(|failure| failure.evidence.iter().take(4));
    places.into_iter().flatten().flatten().chain(first).cloned().collect()
}

/// The role of a failure, as a label.
pub fn role(role: Role) -> &'static str {
    match role {
        Role::Root => "first",
        Role::Cascade => "then",
        Role::Messenger => "messenger",
        Role::Cleanup => "clean-up",
    }
}

/// A certainty in a word.
pub fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Proven => "proven",
        Certainty::Supported => "supported",
        Certainty::Suspected => "suspected",
        Certainty::Undecided => "undecided",
    }
}

/// `illegal_address` as words.
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// The name of one of a report's closed lists, as words.
pub fn kind_name(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => words(&name),
        _ => String::new(),
    }
}

fn place(file: Option<&str>, line: Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{}:{line}", short(file)),
        (Some(file), None) => short(file).to_owned(),
        _ => String::new(),
    }
}

/// The last part of a path; the evidence line shows all of it.
fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn in_rank(rank: Option<u32>, text: &str) -> String {
    match rank {
        Some(rank) => format!("rank {rank}: {text}"),
        None => text.to_owned(),
    }
}

/// `e4 run.log:16` of a piece of evidence; `log_line` takes the place of its first line.
pub fn reference(report: &Report, id: &str, log_line: Option<u64>) -> Option<String> {
    let evidence = report.evidence.iter().find(|evidence| evidence.id == id)?;
    let mut position = position(report, evidence);
    if let (From::Span { .. }, Some(line), Some(colon)) = (&evidence.from, log_line, position.rfind(':')) {
        position.truncate(colon);
        position.push_str(&format!(":{line}"));
    }
    Some(format!("{id} {position}"))
}

/// `run.log:16` of a piece of evidence.
pub fn position(report: &Report, evidence: &Evidence) -> String {
    match &evidence.from {
        From::Span { input, line, .. } => {
            let index = usize::try_from(*input).unwrap_or(usize::MAX);
            let path = report.inputs.get(index).map_or("?", |input| input.path.as_str());
            let name = crate::text::fit_end(short(path), NAME);
            match line {
                0 => name,
                line => format!("{name}:{line}"),
            }
        }
        From::Derived { from } => format!("from {}", from.join(" ")),
        From::Probe => "probe".to_owned(),
        From::Answer => "your answer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_where_they_must_be() {
        let words = ["env", "A=1,b", "python3", "a b.py", "$(rm x)", ""].map(str::to_owned);
        assert_eq!(shell(&words), "env A=1,b python3 'a b.py' '$(rm x)' ''");
    }
}
