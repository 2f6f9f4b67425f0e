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
use super::super::shapes::thousands;
use super::distance::{DistanceReading, readings};
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
    let id = reading.evidence;
    let size = record.and_then(|record| record.nearest).map(|near| u128::from(near.size_bytes));
    let of_size = size.map(|size| format!(" of {} bytes", thousands(size))).unwrap_or_default();
    let count = record.map_or(1, |record| record.count);
    let times =
        if count > 1 { format!(" ({} such accesses)", thousands(u128::from(count))) } else { String::new() };
    Some(match &reading.reading {
        Reading::TailUnguarded { past_end_bytes } => hypothesis(
            CauseKind::MissingMask,
            Certainty::Supported,
            format!(
                "the access runs {} bytes past the end of an allocation{of_size}{times}: the last block is not masked or guarded; this is no int32 overflow",
                thousands(u128::from(*past_end_bytes))
            ),
            id,
        ),
        Reading::JustBefore { before_bytes } => hypothesis(
            CauseKind::OutOfBounds,
            Certainty::Suspected,
            format!(
                "the access begins {} bytes before an allocation{of_size}{times}: a wrong base or stride; this is no int32 overflow",
                thousands(u128::from(*before_bytes))
            ),
            id,
        ),
        Reading::NearNull { offset_bytes } => hypothesis(
            CauseKind::NullPointer,
            Certainty::Supported,
            format!("the access is at a null pointer plus {} bytes", thousands(u128::from(*offset_bytes))),
            id,
        ),
        Reading::InsidePoolArtefact { .. } => hypothesis(
            CauseKind::SanitizerFalsePositive,
            Certainty::Suspected,
            format!(
                "the access is reported out of bounds and lies inside an allocation{of_size}: a memory pool hides the true bounds"
            ),
            id,
        ),
        Reading::WildOrStale { .. } => {
            let cause =
                if record.is_some_and(reads_an_index) { CauseKind::BadIndex } else { CauseKind::OutOfBounds };
            let text = format!(
                "the access is far from the nearest allocation{of_size}, at no distance that a wrapped 32-bit index gives: a wild index or a stale pointer"
            );
            hypothesis(cause, Certainty::Suspected, text, id)
        }
        Reading::Wrapped(_) | Reading::Misaligned { .. } | Reading::TooLargeToTell { .. } => return None,
    })
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
