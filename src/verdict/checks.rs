//! Checks of the evidence with their three outcomes: holds, fails, or unknown and what would settle it.
//!
//! In: the case and the verdict so far. Out: checks with readings. Unknown is shown, never rounded (law 3).

mod launch;
mod model;
mod versions;

use schemars::JsonSchema;
use serde::Serialize;

use crate::case::{Case, EvidenceId};
use crate::read::event::Data;
use crate::source::InputKind;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use crate::arith::distance::WildReason;
use crate::arith::{IndexLimit, Reading};
use crate::text::number::grouped;

use super::Verdict;
use super::cause::distance::readings;
use super::cause::overflow::{passed_words, shape_words};
use super::cause::probe::{self, Standing};
use super::cause::sentence;
use super::failure::{Certainty, Role};
use super::places;
use super::shapes::{Likelihood, ShapeRow};

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// It holds.
    Holds,
    /// It fails.
    Fails,
    /// Nothing tells.
    Unknown,
    /// It doesn't apply.
    Skipped,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Id.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
    /// Outcome.
    pub status: CheckStatus,
    /// What the outcome means, or what would settle it.
    pub reading: String,
    /// Evidence.
    pub evidence: Vec<EvidenceId>,
}

/// Runs every check that fits the class.
#[must_use]
pub fn run(case: &Case, verdict: &Verdict) -> Vec<Check> {
    if verdict.class == FailureClass::None {
        return Vec::new();
    }
    let mut checks = Vec::new();
    checks.extend(sync_point(case, verdict));
    checks.extend(messenger(verdict));
    checks.extend(driver_agrees(case, verdict));
    checks.extend(overflow_arithmetic(verdict));
    checks.extend(first_time(verdict));
    checks.extend(address_distance(case, verdict));
    checks.extend(launch::faulting(case, verdict));
    checks.extend(launch::last(case, verdict));
    checks.extend(model::extents(case));
    checks.extend(reruns(case, verdict));
    checks.extend(versions::run(case, verdict));
    checks
}

fn sync_point(case: &Case, verdict: &Verdict) -> Option<Check> {
    if !verdict.class.is_device_fault() {
        return None;
    }
    let blocking = verdict.failures.first().is_some_and(|root| places::blocking_is_on(case, root));
    let notice = verdict.places.notice.as_ref();
    let call = notice.and_then(|notice| notice.call.as_deref()).unwrap_or("the reporting call");
    let why = notice.and_then(|notice| notice.sync_why);
    let (status, reading) = match notice.and_then(|notice| notice.is_sync_point) {
        _ if blocking => (
            CheckStatus::Fails,
            format!(
                "launch blocking was on, so each launch waited: the launch that failed stands under {call}, unless a captured graph holds it"
            ),
        ),
        Some(true) => {
            let why = why.unwrap_or("waits for the GPU");
            let who = notice.and_then(|notice| notice.waits_inside.as_deref());
            let who = who.map_or_else(|| call.to_owned(), |inside| format!("{call} reaches {inside}, which"));
            (
                CheckStatus::Holds,
                format!("{who} {why}: the error was noticed there and happened in an earlier launch"),
            )
        }
        Some(false) if why.is_some() => (
            CheckStatus::Holds,
            format!("{call} {}: the error happened in an earlier launch", why.unwrap_or_default()),
        ),
        Some(false) => (
            CheckStatus::Fails,
            format!(
                "{call} does not wait for the GPU by itself: the fault may be near, unless another launch failed before it"
            ),
        ),
        None if notice.is_some_and(|notice| notice.call.is_some()) => (
            CheckStatus::Unknown,
            format!(
                "it is not known whether {call} waits for the GPU inside: if it does, the error was noticed there and happened earlier; a rerun with CUDA_LAUNCH_BLOCKING=1 would tell"
            ),
        ),
        None => (
            CheckStatus::Unknown,
            "the input names no reporting call; a traceback, or a rerun with CUDA_LAUNCH_BLOCKING=1, would"
                .to_owned(),
        ),
    };
    Some(Check {
        id: "sync-point",
        title: "Is the reported place only where it was noticed?",
        status,
        reading,
        evidence: notice.map(|notice| notice.evidence.clone()).unwrap_or_default(),
    })
}

fn messenger(verdict: &Verdict) -> Option<Check> {
    let messengers: Vec<_> =
        verdict.failures.iter().filter(|failure| failure.role == Role::Messenger).collect();
    let first = messengers.first()?;
    Some(Check {
        id: "messenger",
        title: "Do other lines only repeat the first failure?",
        status: CheckStatus::Holds,
        reading: first.why.clone(),
        evidence: messengers.iter().filter_map(|failure| failure.evidence.first().copied()).take(8).collect(),
    })
}

/// Whether the kernel driver saw a fault of the same process.
fn driver_agrees(case: &Case, verdict: &Verdict) -> Option<Check> {
    if !verdict.class.is_device_fault() {
        return None;
    }
    let ours: Vec<EvidenceId> = case
        .pick(|data| match data {
            Data::Xid(xid) if matches!(xid.xid, 13 | 31) => Some(()),
            _ => None,
        })
        .map(|(id, _, ())| id)
        .filter(|id| !verdict.apart.holds(*id))
        .collect();
    let has_log = case.inputs().iter().any(|input| input.kind == InputKind::KernelLog);
    let (status, reading) = if ours.is_empty() && has_log {
        (
            CheckStatus::Unknown,
            "the kernel log among the inputs holds no Xid 13 or 31: it may be of another time, or the driver said nothing",
        )
    } else if ours.is_empty() {
        (
            CheckStatus::Unknown,
            "no kernel log in the input: add dmesg (or journalctl -k) of the same time to see an Xid",
        )
    } else {
        (CheckStatus::Holds, "the kernel driver logged a fault of device code")
    };
    Some(Check {
        id: "driver-log",
        title: "Does the kernel driver agree?",
        status,
        reading: reading.to_owned(),
        evidence: ours.into_iter().take(8).collect(),
    })
}

/// Every large shape against 2^31-1: that it fits is said as plainly as that it does not.
fn overflow_arithmetic(verdict: &Verdict) -> Option<Check> {
    if !verdict.class.is_device_fault() {
        return None;
    }
    let check = |status, reading, evidence| Check {
        id: "overflow-arithmetic",
        title: "Does a 32-bit index overflow on a shape of the input?",
        status,
        reading,
        evidence,
    };
    let Some(shape) = verdict.shapes.first() else {
        let reading =
            "the input prints no shape; sizes of the operands of the failing call would settle it".to_owned();
        return Some(check(CheckStatus::Unknown, reading, Vec::new()));
    };
    // An address that is no multiple of the access has another story.
    if verdict.class == FailureClass::MisalignedAddress && !shape.overflows() {
        return None;
    }
    // Where something speaks against the shape, the hypothesis says what.
    let open = verdict.hypotheses.iter().find(|hypothesis| {
        hypothesis.cause == Some(CauseKind::Int32Overflow) && hypothesis.certainty == Certainty::Undecided
    });
    // What the fault address shows agrees with it: that ties it to the launch.
    let explains = |shape: &ShapeRow| {
        verdict.hypotheses.iter().any(|hypothesis| {
            hypothesis.cause == Some(CauseKind::Int32Overflow)
                && hypothesis.supports.contains(&shape.evidence)
        })
    };
    let (status, reading) = match (shape.overflows(), open) {
        (true, Some(open)) => (CheckStatus::Unknown, open.summary.clone()),
        (true, None) if shape.likelihood == Likelihood::Mentioned && !explains(shape) => {
            (CheckStatus::Unknown, untied_words(shape))
        }
        (true, None) => (CheckStatus::Holds, shape_words(shape)),
        (false, _) => {
            let limit = IndexLimit::INT32.check(&shape.extent);
            let reading = format!(
                "no: the largest shape is {} = {} elements, {} below the limit of 2,147,483,647",
                shape.words(),
                grouped(shape.extent.numel),
                grouped(limit.margin_by_count)
            );
            (CheckStatus::Fails, reading)
        }
    };
    Some(check(status, reading, vec![shape.evidence]))
}

/// A shape past the limit that no line ties to the failing launch.
fn untied_words(shape: &ShapeRow) -> String {
    let what = if shape.mention.stored {
        "it is a weight, a cache or a file, and nothing ties it to the launch that failed"
    } else {
        "nothing ties it to the launch that failed"
    };
    format!("{} = {} elements is past 2,147,483,647, but {what}", shape.words(), grouped(shape.extent.numel))
}

/// Whether the failing step was the first one with a shape past the limit.
fn first_time(verdict: &Verdict) -> Option<Check> {
    if verdict.class != FailureClass::IllegalAddress {
        return None;
    }
    let (shape, passed) = verdict
        .shapes
        .iter()
        .filter(|shape| shape.overflows())
        .find_map(|shape| Some((shape, shape.passed()?)))?;
    Some(Check {
        id: "shape-passed",
        title: "Did it fail the first time that it met this shape?",
        status: CheckStatus::Fails,
        reading: format!(
            "no: {}: {}; that speaks against a wrapped index on it",
            shape.words(),
            passed_words(passed)
        ),
        evidence: vec![shape.evidence],
    })
}

/// What the fault address says.
fn address_distance(case: &Case, verdict: &Verdict) -> Option<Check> {
    let view = verdict.view(case)?;
    let reading = readings(&view).into_iter().next()?;
    let status = match &reading.reading {
        Reading::Wrapped(_) => CheckStatus::Holds,
        // Without an allocation the test did not run.
        Reading::TooLargeToTell { .. } | Reading::WildOrStale { reason: WildReason::NoAllocation, .. } => {
            CheckStatus::Unknown
        }
        _ => CheckStatus::Fails,
    };
    Some(Check {
        id: "address-distance",
        title: "Does the fault address lie where a wrapped 32-bit index lands?",
        status,
        reading: sentence(&reading.reading),
        evidence: vec![reading.evidence],
    })
}

/// What each rerun at the boundary says about this incident.
fn reruns(case: &Case, verdict: &Verdict) -> Vec<Check> {
    let Some(view) = verdict.view(case) else { return Vec::new() };
    let check = |reading: probe::Reading<'_>| Check {
        id: "probe",
        title: "Does a rerun of the kernel at its boundary show it?",
        status: match reading.standing {
            Standing::Proves => CheckStatus::Holds,
            Standing::Contradicts => CheckStatus::Fails,
            Standing::Open => CheckStatus::Unknown,
        },
        reading: reading.why,
        evidence: vec![reading.evidence],
    };
    probe::readings(&view).into_iter().map(check).collect()
}
