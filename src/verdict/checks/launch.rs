//! Does a launch whose arguments are known wrap with them: the one that a tool read off the device, the last one of a trace?
//!
//! In: the case and the verdict. Out: a check for each such launch: it holds, it fails, or it is unknown and the reading says
//! what is lacking. The last launch of a trace is the last one that was begun, not the one that failed.

use crate::case::{Case, EvidenceId};
use crate::kernel::assign;
use crate::read::event::{Data, LaunchMention, Place};
use crate::tables::class::FailureClass;

use super::super::Verdict;
use super::super::cause::traced::arguments;
use super::super::launches::{same_rank, traced};
use super::super::summary::base_name;
use super::super::told;
use super::{Check, CheckStatus};

/// The check, where a trace mentions a launch of the process that failed.
pub(super) fn last(case: &Case, verdict: &Verdict) -> Option<Check> {
    let root = verdict.failures.first()?;
    if !verdict.class.is_device_fault() {
        return None;
    }
    let (id, launch) = mentioned(case, root)?;
    let all = traced(case, root);
    let found = all.iter().find(|traced| traced.evidence == id);
    let name = &launch.kernel;
    let from =
        launch.launched_from.as_ref().map(|place| format!(", from {}", words(place))).unwrap_or_default();
    let (status, reading, mut evidence) = match found {
        Some(traced) if traced.wraps() => (
            CheckStatus::Holds,
            format!("{name}{from}: an index in 32 bits wraps with {}", arguments(traced)),
            vec![traced.kernel_evidence],
        ),
        Some(traced) if traced.fits() => (
            CheckStatus::Fails,
            format!(
                "no: {name}{from} was the last launch traced, and with {} every 32-bit index fits; another launch or another cause failed",
                arguments(traced)
            ),
            vec![traced.kernel_evidence],
        ),
        Some(traced) => (
            CheckStatus::Unknown,
            format!(
                "{name}{from}: its indices can't be followed to the end with {}; warpfault kernel on its TTIR says where",
                arguments(traced)
            ),
            vec![traced.kernel_evidence],
        ),
        None => (
            CheckStatus::Unknown,
            format!(
                "{name}{from} was the last launch traced; the trace lacks its compilation: add the Triton cache entry, or trace from the first compilation on"
            ),
            Vec::new(),
        ),
    };
    evidence.insert(0, id);
    let title = match verdict.class {
        FailureClass::IllegalAddress => {
            "Does the last traced launch wrap a 32-bit index with its own arguments?"
        }
        _ => "Does the last launch that the trace holds wrap a 32-bit index?",
    };
    Some(Check { id: "last-launch", title, status, reading, evidence })
}

/// The check of the launch that a tool read off the device with its arguments.
pub(super) fn faulting(case: &Case, verdict: &Verdict) -> Option<Check> {
    let root = verdict.failures.first()?;
    if verdict.class != FailureClass::IllegalAddress {
        return None;
    }
    let (id, _, launch) = case
        .pick(|data| match data {
            Data::FaultingLaunch(launch) if !launch.arguments.is_empty() => Some(launch),
            _ => None,
        })
        .next()?;
    let name = launch.kernel.as_deref()?;
    let arguments = told::named(case, launch).unwrap_or_else(|| launch.arguments.clone());
    let words: Vec<String> = arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let call = format!("{name}({})", words.join(", "));
    let kernels = case.kernels().filter(|(_, kernel)| told::is_named(&kernel.model.entry, name));
    let answered = kernels.into_iter().find_map(|(evidence, kernel)| match told::told(case, root, kernel) {
        Some(told @ told::Told::Device(_)) => Some((evidence, assign(kernel, &told.bindings(kernel), &[]))),
        _ => None,
    });
    let (status, reading) = match &answered {
        Some((_, assigned)) if assigned.tried == 1 && assigned.always_wraps() => {
            (CheckStatus::Holds, format!("{call}: an index in 32 bits wraps with these arguments"))
        }
        Some((_, assigned)) if assigned.tried == 1 && assigned.counterexample.is_some() => {
            (CheckStatus::Fails, format!("no: in {call} every 32-bit index fits; another cause failed"))
        }
        Some((_, assigned)) => {
            let why = assigned.doubt.as_deref().unwrap_or("its indices can't be followed to the end");
            (CheckStatus::Unknown, format!("{call}: {why}"))
        }
        None => (
            CheckStatus::Unknown,
            format!(
                "{call}: its compiled form (Triton cache entry, TTIR or PTX) among the inputs would tell"
            ),
        ),
    };
    let evidence = std::iter::once(id).chain(answered.map(|(evidence, _)| evidence)).collect();
    let title = "Does the launch at fault wrap a 32-bit index with its own arguments?";
    Some(Check { id: "faulting-launch", title, status, reading, evidence })
}

fn mentioned<'a>(
    case: &'a Case,
    root: &super::super::failure::Failure,
) -> Option<(EvidenceId, &'a LaunchMention)> {
    case.pick(|data| match data {
        Data::LaunchMention(launch) if launch.last_of_trace => Some(launch),
        _ => None,
    })
    .find(|(_, event, _)| same_rank(event, root))
    .map(|(id, _, launch)| (id, launch))
}

fn words(place: &Place) -> String {
    let line = place.line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}{line}", base_name(&place.file))
}
