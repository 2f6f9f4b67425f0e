//! What a run showed, for the outcomes of its step: `this.failed`, `this.same_class`, `this.moved`.

use crate::case::Case;
use crate::read::event::Data;
use crate::source::{InputId, InputKind};
use crate::tables::class::FailureClass;
use crate::verdict::{self, Verdict};

use super::super::chain;
use super::super::known::Known;
use super::super::record::{Ended, Ran};

/// What a run showed beside the incident's own verdict.
#[must_use]
pub fn run(case: &Case, incident: &Verdict, ran: &Ran) -> Known {
    let mut known = Known::default();
    known.put("ran", true);
    known.put("timed_out", ran.ended == Ended::Deadline);
    known.put("stopped", ran.ended == Ended::Stopped);
    known.put("seconds", ran.duration_ms / 1_000);
    match &ran.ended {
        Ended::Exit(code) => known.put("exit_code", *code),
        Ended::Signal(signal) => known.put("signal", *signal),
        Ended::NotStarted(why) => {
            known.put("why", format!("the command could not be started, {why}").as_str());
        }
        Ended::Deadline | Ended::Stopped | Ended::Elsewhere => {}
    }
    let own = ran.input.map(|input| verdict::judge(&case.only(InputId(input))));
    let class = own.as_ref().map_or(FailureClass::None, |own| own.class);
    known.put("class", class.name());
    let printed_a_failure = class != FailureClass::None;
    let place = own
        .as_ref()
        .and_then(|own| own.places.notice.as_ref())
        .and_then(|notice| chain::place(notice.file.as_deref(), notice.line));
    let nothing = match ran.ended {
        Ended::Elsewhere if !printed_a_failure => (is_log(case, ran) && !ended_well(case, ran)).then(|| {
            "the log holds no failure and does not say how the run ended (a last line would: exit status 0)".to_owned()
        }),
        _ => shows_nothing(incident.class, class, place.as_deref(), ran),
    };
    known.put_some("why", nothing.clone());
    known.put("started", nothing.is_none() && !matches!(ran.ended, Ended::NotStarted(_)));
    let failed = match ran.ended {
        Ended::Exit(code) => Some(code != 0 || printed_a_failure),
        Ended::Signal(_) => Some(true),
        // Of a log made elsewhere only its own words tell how the run ended.
        Ended::Elsewhere if printed_a_failure => Some(true),
        Ended::Elsewhere => ended_well(case, ran).then_some(false),
        // Ended by warpfault: nothing tells how it would have gone on.
        Ended::Deadline | Ended::Stopped | Ended::NotStarted(_) => printed_a_failure.then_some(true),
    };
    known.put_some("failed", failed);
    known.put("same_class", class == incident.class);
    known.put("classed", !matches!(class, FailureClass::None | FailureClass::Undecided));
    known.put_some("place", place.clone());
    let first =
        incident.places.notice.as_ref().and_then(|notice| chain::place(notice.file.as_deref(), notice.line));
    if let (Some(first), Some(place)) = (first, place) {
        known.put("moved", first != place);
    }
    if let Some(fault) = own.as_ref().and_then(|own| own.places.fault.as_ref()) {
        known.put_some("kernel", fault.kernel.clone());
        known.put_some("fault_place", chain::place(fault.file.as_deref(), fault.line));
    }
    let conclusion = case.pick(|data| match data {
        Data::Probe(report) => report.conclusion,
        _ => None,
    });
    let of_this_run = conclusion.filter(|(_, event, _)| ran.input == Some(event.span.input.0));
    known.put_some("conclusion", of_this_run.last().map(|(_, _, conclusion)| conclusion.name()));
    known
}

/// Whether what a run left is a log: a report or a dump says its own.
fn is_log(case: &Case, ran: &Ran) -> bool {
    use InputKind::{Empty, KernelLog, Log, UnknownBinary};
    let input = ran.input.and_then(|input| case.inputs().get(usize::try_from(input).ok()?));
    input.is_none_or(|input| matches!(input.kind, Log | KernelLog | Empty | UnknownBinary))
}

/// Whether the log of a run says that it ended without an error.
fn ended_well(case: &Case, ran: &Ran) -> bool {
    ran.input
        .and_then(|input| case.inputs().get(usize::try_from(input).ok()?))
        .is_some_and(|input| input.ends_well)
}

/// Why a run that failed says nothing about the incident: it never came as far. None where it does say something.
fn shows_nothing(
    incident: FailureClass,
    class: FailureClass,
    place: Option<&str>,
    ran: &Ran,
) -> Option<String> {
    use FailureClass as Class;
    let is_own = ran.command.first().is_some_and(|word| word == env!("CARGO_PKG_NAME"));
    let unclassed = matches!(class, Class::None | Class::Undecided);
    // A shell's and an interpreter's word for a program that isn't there or takes no such arguments: nothing was rerun.
    if let Ended::Exit(code @ (2 | 126 | 127)) = ran.ended
        && unclassed
        && !is_own
    {
        return Some(format!("it ended with status {code} before it did anything"));
    }
    let failed = matches!(ran.ended, Ended::Exit(1..) | Ended::Signal(_) | Ended::Elsewhere);
    // On the CPU a kernel raises in Python: there another class is the very answer.
    let interpreted = ran.environment.iter().any(|(name, _)| name == "TRITON_INTERPRET")
        || ran.command.iter().any(|word| word.starts_with("TRITON_INTERPRET="));
    let another = unclassed
        || matches!(
            class,
            Class::PythonError
                | Class::CompileError
                | Class::Segfault
                | Class::Abort
                | Class::Killed
                | Class::HostOom
                | Class::GpuOom
        );
    if !failed || is_own || interpreted || !incident.is_device_fault() || !another {
        return None;
    }
    let how = match (unclassed, place) {
        (true, _) => "without a failure that is known".to_owned(),
        (false, Some(place)) => format!("in another way, {} at {place}", class.name().replace('_', " ")),
        (false, None) => format!("in another way, {}", class.name().replace('_', " ")),
    };
    Some(format!("it ended {how}, and did not come as far as the incident's failure"))
}
