//! The verdict in one sentence that a tired person understands.
//!
//! In: the verdict. Out: a sentence: what failed, who failed first, where it was noticed and whether that is the place.
//! Names from logs stand in it as they are; whoever prints it escapes them.

use std::fmt::Write;

use crate::case::{Case, Fact};
use crate::read::event::{Data, Messenger};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::failure::{Certainty, Failure, Role, Weight};
use super::places::{Fault, Notice};
use super::roles::messenger_name;
use super::{Gap, Verdict};

/// What a class is called in a sentence.
#[must_use]
pub fn class_phrase(class: FailureClass) -> &'static str {
    match class {
        FailureClass::IllegalAddress => "illegal address on the GPU",
        FailureClass::MisalignedAddress => "misaligned address on the GPU",
        FailureClass::IllegalInstruction => "illegal instruction on the GPU",
        FailureClass::NoKernelImage => "no code for this GPU in the binary",
        FailureClass::DeviceAssert => "assertion failed in device code",
        FailureClass::LaunchFailure => "kernel launch failed without a stated reason",
        FailureClass::LaunchConfig => "launch refused: it asks for more than the GPU allows",
        FailureClass::Nccl => "collective communication failed",
        FailureClass::Segfault => "segmentation fault in a host process",
        FailureClass::Abort => "a host process aborted",
        FailureClass::GpuOom => "GPU out of memory",
        FailureClass::HostOom => "host out of memory: a process was killed for it",
        FailureClass::Killed => "a process was killed from outside",
        FailureClass::Hardware => "GPU hardware or link failure",
        FailureClass::Driver => "GPU driver failure",
        FailureClass::Race => "data race in device code",
        FailureClass::UninitializedRead => "device code reads memory that nothing wrote",
        FailureClass::BarrierError => "barrier error in device code",
        FailureClass::Leak => "device memory was never freed",
        FailureClass::ApiError => "a CUDA call was refused",
        FailureClass::GraphCapture => "CUDA graph capture failed",
        FailureClass::CompileError => "a kernel did not compile",
        FailureClass::PythonError => "a Python exception ended the program",
        FailureClass::None => "no failure in the input",
        FailureClass::Undecided => "something failed, and the input does not say what",
    }
}

/// What the root is called in a sentence: its status may say more than its class.
fn root_phrase(class: FailureClass, root: Option<&Failure>) -> &'static str {
    let code = root.and_then(|root| root.code.as_ref());
    match (class, code.map(|code| code.domain), code.and_then(|code| code.number)) {
        (FailureClass::LaunchFailure, Some("cuda"), Some(702))
        | (FailureClass::LaunchFailure, Some("xid"), Some(8)) => {
            "a kernel ran past the watchdog's time limit and was stopped"
        }
        (FailureClass::Segfault, Some("signal"), Some(7)) => "bus error in a host process",
        (FailureClass::Abort, Some("signal"), Some(4)) => "illegal instruction in a host process",
        (FailureClass::Abort, Some("signal"), Some(8)) => "arithmetic exception in a host process",
        (FailureClass::LaunchConfig, Some("cuda"), Some(9)) => "launch refused: its configuration is invalid",
        (FailureClass::LaunchConfig, Some("cuda"), Some(1)) => "launch refused: an argument of it is invalid",
        _ => class_phrase(class),
    }
}

/// The sentence.
#[must_use]
pub fn sentence(verdict: &Verdict) -> String {
    if verdict.class == FailureClass::None && verdict.certainty == Certainty::Undecided {
        return "No failure in what could be read.".to_owned();
    }
    if verdict.class == FailureClass::None && !verdict.notes.is_empty() {
        return "No failure in the input: the program handled an error and went on.".to_owned();
    }
    if let Some(Gap::NoFailure(shown)) = &verdict.gap {
        return shown.clone();
    }
    let mut text = String::new();
    if let Some(rank) = verdict.root_rank
        && verdict.ranks.len() > 1
        && finding(verdict).is_none()
    {
        let root = verdict.failures.first();
        let earlier = |failure: &Failure| {
            failure.weight >= Weight::Program
                && root.is_some_and(|root| failure.beside(root) == Some("earlier"))
        };
        let first = if verdict.failures.iter().any(earlier) { "failed" } else { "failed first" };
        let _ = write!(text, "Rank {rank} {first}: ");
    }
    push_capital(&mut text, root_phrase(verdict.class, verdict.failures.first()));
    if let Some(Gap::Missing(what)) = &verdict.gap {
        let _ = write!(text, ": {what}");
    }
    if let Some(root) = verdict.failures.first().filter(|root| root.class == FailureClass::PythonError)
        && !root.why.starts_with(class_phrase(FailureClass::PythonError))
        && root.why.contains(':')
    {
        let _ = write!(text, ", {}", root.why.trim_end_matches('.'));
    }
    if let Some(root) = verdict.failures.first().filter(|root| root.stop.is_some()) {
        let _ = write!(text, ": {}", root.why);
    }
    if verdict.class == FailureClass::Hardware
        && let Some(pci) = verdict.failures.first().and_then(|root| root.pci.as_deref())
    {
        let _ = write!(text, ": GPU at PCI {pci}");
    }
    if let Some(process) = verdict.failures.first().and_then(process_phrase) {
        let _ = write!(text, " ({process})");
    }
    if let Some(fault) = verdict.places.fault.as_ref().and_then(fault_phrase) {
        let _ = write!(text, " in {fault}");
    }
    if let Some(notice) = &verdict.places.notice
        && let Some(at) = notice_phrase(notice)
    {
        let _ = write!(text, "; noticed at {at}");
        let runs_on = verdict.class.is_device_fault() && verdict.asynchronous != Some(false);
        if notice.is_sync_point == Some(true) && runs_on {
            text.push_str(", a sync point and not the fault");
        } else if notice.is_sync_point == Some(false) && notice.sync_why.is_some() && runs_on {
            text.push_str(", which only returns the error of earlier work");
        }
    }
    text.push('.');
    if let Some(finding) = finding(verdict) {
        text.push(' ');
        // What is known; the readings of it stand with the cause.
        push_sentence(&mut text, finding.split(". ").next().unwrap_or(finding));
    }
    if let Some(doubt) = &verdict.doubt {
        let _ = write!(text, " Only suspected: {doubt}.");
    }
    let messenger = verdict
        .failures
        .iter()
        .filter(|failure| failure.role == Role::Messenger)
        .filter_map(|failure| failure.relayed_by)
        .find(|messenger| matches!(messenger, Messenger::NcclWatchdog | Messenger::Nccl));
    if let Some(messenger) = messenger {
        let mut name = String::new();
        push_capital(&mut name, messenger_name(messenger));
        let _ = write!(text, " {name} is only the messenger.");
    }
    if let Some(masked) = verdict.masked_by {
        let _ = write!(text, " The message comes from {}, which hides it.", messenger_name(masked));
    }
    text
}

/// Longest part of an exception's message in a sentence, in characters.
const MESSAGE: usize = 160;

/// `ValueError: bad batch`, the first line of it.
pub(super) fn exception(case: &Case, root: &Failure) -> Option<String> {
    let evidence = root.evidence.iter().find_map(|id| match &case.get(*id)?.fact {
        Fact::Event(event) => match &event.data {
            Data::Traceback(traceback) => traceback.exception.clone(),
            Data::Exception(exception) => Some(exception.clone()),
            _ => None,
        },
        Fact::Derived(_) => None,
    })?;
    let kind = evidence.kind.rsplit('.').next().unwrap_or("");
    let line = evidence.message.lines().next().unwrap_or("").trim();
    if line.is_empty() {
        return None;
    }
    let short: String = line.chars().take(MESSAGE).collect();
    let cut = if short.len() < line.len() { "…" } else { "" };
    Some(format!("{kind}: {short}{cut}"))
}

/// What the comparison of ranks found, where that is the cause.
fn finding(verdict: &Verdict) -> Option<&str> {
    let hypothesis = verdict.cause().or_else(|| verdict.hypotheses.first())?;
    matches!(hypothesis.cause, Some(CauseKind::MissingCollective | CauseKind::CollectiveMismatch))
        .then_some(hypothesis.summary.as_str())
}

fn push_sentence(text: &mut String, phrase: &str) {
    let mut capital = String::new();
    push_capital(&mut capital, phrase.trim_end_matches('.'));
    text.push_str(&capital);
    text.push('.');
}

fn push_capital(text: &mut String, phrase: &str) {
    let mut chars = phrase.chars();
    match chars.next() {
        Some(first) if text.is_empty() => {
            text.extend(first.to_uppercase());
            text.push_str(chars.as_str());
        }
        _ => text.push_str(phrase),
    }
}

/// The process that died, where its host is known: with many nodes the number alone says little.
fn process_phrase(root: &Failure) -> Option<String> {
    if !matches!(root.class, FailureClass::Segfault | FailureClass::Abort) {
        return None;
    }
    Some(format!("pid {} on {}", root.pid?, root.host.as_deref()?))
}

fn fault_phrase(fault: &Fault) -> Option<String> {
    let place = match (&fault.file, fault.line) {
        (Some(file), Some(line)) => Some(format!("{}:{line}", base_name(file))),
        (Some(file), None) => Some(base_name(file).to_owned()),
        _ => fault.library.as_deref().map(|library| base_name(library).to_owned()),
    };
    match (fault.kernel.as_ref().or(fault.function.as_ref()), place) {
        (Some(kernel), Some(place)) => Some(format!("{kernel} at {place}")),
        (Some(kernel), None) => Some(kernel.clone()),
        (None, place) => place,
    }
}

fn notice_phrase(notice: &Notice) -> Option<String> {
    let call = call_phrase(notice);
    let place = match (&notice.file, notice.line) {
        (Some(file), Some(line)) => Some(format!("{}:{line}", base_name(file))),
        (Some(file), None) => Some(base_name(file).to_owned()),
        _ => None,
    };
    match (call, place) {
        (Some(call), Some(place)) => Some(format!("{call} in {place}")),
        (call, place) => call.or(place),
    }
}

/// `.to(device="cpu", …)`: the call as written where it is short, else its name.
fn call_phrase(notice: &Notice) -> Option<String> {
    let name = notice.call.as_deref()?;
    let written = notice.call_text.as_deref().filter(|text| text.chars().count() <= 48);
    let is_method =
        notice.call_text.as_deref().is_some_and(|text| text.starts_with(name)) && !name.contains('.');
    let dot = if is_method { "." } else { "" };
    Some(match written {
        Some(text) if text.starts_with(name) => format!("{dot}{text}"),
        _ => format!("{dot}{name}(…)"),
    })
}

/// Last component of a path.
#[must_use]
pub fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}
