//! Errors that the program went on after: a Python exception or a lack of memory can be handled, a fault of the device can't.
//!
//! In: the case and its failures. Out: the failures without those that were handled, a note on each, and the doubt where the sign
//! is weak. Signals, aborts, sanitizer findings, communication errors and faults that lose the context stay whatever follows.

use crate::case::{Case, Fact, InputMeta, Note};
use crate::read::event::{Data, InputId};
use crate::read::went_on::{Ending, WentOn};
use crate::tables::class::FailureClass;

use super::failure::{Failure, Weight};

/// Survived errors that are noted one by one.
const SURVIVED_NOTES: usize = 4;

/// Takes handled errors out of `failures`; returns a note an input.
pub fn set_aside(case: &Case, failures: &mut Vec<Failure>) -> Vec<Note> {
    let mut notes = survived(case, failures);
    for (input, meta, went_on) in inputs(case) {
        let Some((line, ending)) = went_on.ended.filter(|_| went_on.progress > 0) else { continue };
        if !all_can_be(case, failures, input) {
            continue;
        }
        let first =
            failures.iter().filter(|failure| failure.at.input == input).map(|failure| failure.at.line).min();
        let Some(first) = first else { continue };
        failures.retain(|failure| failure.at.input != input);
        notes.push(Note {
            severity: "info",
            message: format!(
                "{}: the error on line {first} was handled: the program went on after line {}, and line {line} {}",
                meta.path,
                went_on.error_line,
                says(ending)
            ),
        });
    }
    notes
}

/// Takes out the errors that the program worked on after, where something of another kind failed later: a lack of memory that a smaller
/// batch mended is not what a fault an hour later followed from. Peers that time out and processes that are ended may be
/// what an error leads to while others still print, so that they don't count as something else.
fn survived(case: &Case, failures: &mut Vec<Failure>) -> Vec<Note> {
    let is_survived = |failure: &Failure| {
        let meta = case.inputs().get(failure.at.input.0 as usize)?;
        let one = meta.survived.iter().find(|one| one.line == failure.at.line)?;
        can_be(case, failure).then_some((meta, one.progress))
    };
    let fails_anew = |failure: &Failure| {
        failure.weight == Weight::Direct
            && is_survived(failure).is_none()
            && (failure.class.is_device_fault()
                || matches!(
                    failure.class,
                    FailureClass::HostOom | FailureClass::Segfault | FailureClass::GpuOom
                ))
    };
    if !failures.iter().any(fails_anew) {
        return Vec::new();
    }
    let mut notes = Vec::new();
    for (failure, (meta, progress)) in
        failures.iter().filter_map(|failure| Some((failure, is_survived(failure)?)))
    {
        let lines = if progress == 1 { "a line" } else { "lines" };
        let line = failure.at.line;
        let note = Note {
            severity: "info",
            message: format!(
                "{}: the error on line {line} was survived: {lines} of progress follow before the next failure",
                meta.path
            ),
        };
        if notes.len() < SURVIVED_NOTES {
            notes.push(note);
        }
    }
    failures.retain(|failure| is_survived(failure).is_none());
    notes
}

/// Why the root may have been handled, where the sign is weak.
pub fn doubt(case: &Case, failures: &[Failure]) -> Option<String> {
    let root = failures.first()?;
    let (_, _, went_on) = inputs(case).find(|(input, _, _)| *input == root.at.input)?;
    if !all_can_be(case, failures, root.at.input) {
        return None;
    }
    match (went_on.ended, went_on.progress) {
        (Some((line, ending)), _) => Some(format!(
            "it may have been handled: line {line} {}, and nothing shows the program at work in between",
            says(ending)
        )),
        (None, 2..) => Some("it may have been handled: the log goes on with progress after it".to_owned()),
        _ => None,
    }
}

fn says(ending: Ending) -> &'static str {
    match ending {
        Ending::Status => "says exit status 0",
        Ending::Words => "says that it ended well",
    }
}

fn inputs(case: &Case) -> impl Iterator<Item = (InputId, &InputMeta, WentOn)> {
    case.inputs()
        .iter()
        .enumerate()
        .filter_map(|(at, meta)| Some((InputId(u32::try_from(at).unwrap_or(u32::MAX)), meta, meta.went_on?)))
}

/// Whether everything that failed in an input can be handled.
fn all_can_be(case: &Case, failures: &[Failure], input: InputId) -> bool {
    failures.iter().filter(|failure| failure.at.input == input).all(|failure| can_be(case, failure))
}

fn can_be(case: &Case, failure: &Failure) -> bool {
    let kind = match failure.class {
        FailureClass::PythonError => failure.relayed_by.is_none() && failure.code.is_none(),
        FailureClass::GpuOom => true,
        FailureClass::Undecided => {
            failure.weight == Weight::Hint && failure.relayed_by.is_none() && failure.code.is_none()
        }
        _ => false,
    };
    kind && failure.evidence.iter().all(|id| match case.get(*id).map(|evidence| &evidence.fact) {
        // A rank's own last word: the handler of uncaught exceptions prints it.
        Some(Fact::Event(event)) => match &event.data {
            Data::Traceback(_) | Data::Exception(_) | Data::GpuOutOfMemory(_) | Data::Status(_) => {
                !event.origin.uncaught
            }
            _ => true,
        },
        _ => false,
    })
}
