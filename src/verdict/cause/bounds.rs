//! What the distance between an access and its nearest allocation says, wraps aside.
//!
//! In: distance readings. Out: a missing mask (just past the end), a wrong base (just before it), a null pointer, an index
//! far away, an artefact of a memory pool. Whether a distance is a wrapped 32-bit index is `overflow`'s question.

use crate::arith::Reading;
use crate::case::EvidenceId;
use crate::read::event::{Data, SanitizerFinding, SanitizerRecord};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::distance::{DistanceReading, readings};
use super::distance_words::sentence;
use super::{Hypothesis, View};

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    if view.root.class != FailureClass::IllegalAddress {
        return Vec::new();
    }
    if let Some((id, record)) = first_record(view)
        && record.space.as_deref() == Some("shared")
    {
        let text = "the access is past the shared memory of the block".to_owned();
        return vec![hypothesis(CauseKind::SharedMemory, Certainty::Supported, text, id)];
    }
    let readings = readings(view);
    let Some(first) = readings.first() else { return Vec::new() };
    let record = record_of(view, first.evidence);
    explain(first, record).into_iter().collect()
}

fn first_record<'a>(view: &View<'a>) -> Option<(EvidenceId, &'a SanitizerRecord)> {
    view.case
        .pick(|data| match data {
            Data::Sanitizer(record) if record.finding == SanitizerFinding::OutOfBounds => Some(&**record),
            _ => None,
        })
        .map(|(id, _, record)| (id, record))
        .next()
}

fn record_of<'a>(view: &View<'a>, id: EvidenceId) -> Option<&'a SanitizerRecord> {
    view.case.get(id).and_then(|evidence| match &evidence.fact {
        crate::case::Fact::Event(event) => match &event.data {
            Data::Sanitizer(record) => Some(&**record),
            _ => None,
        },
        crate::case::Fact::Derived(_) => None,
    })
}

fn explain(reading: &DistanceReading, record: Option<&SanitizerRecord>) -> Option<Hypothesis> {
    let (cause, certainty) = match &reading.reading {
        Reading::TailUnguarded { .. } => (CauseKind::MissingMask, Certainty::Supported),
        Reading::JustBefore { .. } => (CauseKind::OutOfBounds, Certainty::Suspected),
        Reading::NearNull { .. } => (CauseKind::NullPointer, Certainty::Supported),
        Reading::InsidePoolArtefact { .. } => (CauseKind::SanitizerFalsePositive, Certainty::Suspected),
        Reading::WildOrStale { .. } if record.is_some_and(reads_an_index) => {
            (CauseKind::BadIndex, Certainty::Suspected)
        }
        Reading::WildOrStale { .. } => (CauseKind::OutOfBounds, Certainty::Suspected),
        Reading::Wrapped(_) | Reading::Misaligned { .. } | Reading::TooLargeToTell { .. } => return None,
    };
    Some(hypothesis(cause, certainty, sentence(&reading.reading), reading.evidence))
}

/// Whether the kernel takes an array of integers, so that an index may come from memory.
fn reads_an_index(record: &SanitizerRecord) -> bool {
    let kernel = record.kernel.as_deref().unwrap_or("");
    let lower = kernel.to_ascii_lowercase();
    ["gather", "scatter", "index", "embedding", "lookup"].iter().any(|word| lower.contains(word))
        || ["const int *", "const long *", "const int*", "const long*", "int64_t const*"]
            .iter()
            .any(|kind| kernel.contains(kind))
}

fn hypothesis(cause: CauseKind, certainty: Certainty, summary: String, id: EvidenceId) -> Hypothesis {
    Hypothesis {
        class: FailureClass::IllegalAddress,
        cause: Some(cause),
        certainty,
        summary,
        supports: vec![id],
        against: Vec::new(),
        would_settle: settle(cause),
    }
}

fn settle(cause: CauseKind) -> Vec<String> {
    let text = match cause {
        CauseKind::MissingMask => "run with a size that is a multiple of the block: it must pass",
        CauseKind::BadIndex => "check max(index) < size and min(index) >= 0 before the launch",
        CauseKind::SanitizerFalsePositive => "run again with expandable segments and pools off",
        CauseKind::OutOfBounds => {
            "print the kernel's sizes and strides at the launch and compare them with the tensor"
        }
        _ => return Vec::new(),
    };
    vec![text.to_owned()]
}
