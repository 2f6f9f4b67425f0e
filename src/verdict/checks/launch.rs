//! Does the last traced launch wrap with its own arguments?
//!
//! In: the case and the verdict. Out: one check where a trace is at hand: it holds, it fails, or it is unknown and the reading
//! says what the trace lacks. The launch is the last one that was begun, not the one that failed.

use crate::case::{Case, EvidenceId};
use crate::read::event::{Data, LaunchMention, Place};
use crate::tables::class::FailureClass;

use super::super::Verdict;
use super::super::cause::traced::arguments;
use super::super::launches::{same_rank, traced};
use super::super::summary::base_name;
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
