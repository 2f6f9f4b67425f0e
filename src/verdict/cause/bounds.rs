//! What the distance between an access and its nearest allocation says, wraps aside.
//!
//! In: distance readings. Out: a missing mask (just past the end, in a block that may be the last), a wrong base (just before
//! it), a null pointer, an index far away, an artefact of a memory pool. Whether a distance is a wrapped 32-bit index is `overflow`'s question.

use crate::arith::Reading;
use crate::case::EvidenceId;
use crate::read::event::{Data, SanitizerFinding, SanitizerRecord};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::distance::{DistanceReading, readings};
use super::distance_words::{past_the_end, sentence};
use super::tail::{Tail, tail};
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
    explain(view, first, record).into_iter().collect()
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

fn explain(
    view: &View<'_>,
    reading: &DistanceReading,
    record: Option<&SanitizerRecord>,
) -> Option<Hypothesis> {
    let (cause, certainty) = match &reading.reading {
        Reading::TailUnguarded { past_end_bytes } => {
            return Some(past_end(view, reading, record, *past_end_bytes));
        }
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

/// Sizes of the pieces in which PyTorch's expandable segments map memory, for small and for large requests: each is a mapping
/// of its own, so that an access across two of them looks like one past the end of the first.
const SEGMENT_PIECES: [u64; 2] = [2 << 20, 20 << 20];

/// An access a little past the end: the tail of a launch only where block and thread may be its last ones.
fn past_end(
    view: &View<'_>,
    reading: &DistanceReading,
    record: Option<&SanitizerRecord>,
    past_end_bytes: u64,
) -> Hypothesis {
    let crosses = record.is_some_and(crosses_the_end);
    let is_piece = record
        .and_then(|record| record.nearest)
        .is_some_and(|nearest| SEGMENT_PIECES.contains(&nearest.size_bytes));
    let found = record.map_or(Tail::Possible, |record| tail(view.case, record));
    let is_atomic = record.is_some_and(|record| record.access.as_deref() == Some("atomic"));
    let (cause, certainty, meaning) = match found {
        _ if crosses && is_piece => (
            CauseKind::SanitizerFalsePositive,
            Certainty::Suspected,
            "The access begins inside, and the allocation is as large as a piece of PyTorch's expandable segments: the next \
             piece may follow it, mapped apart. Rerun without expandable segments before believing it.",
        ),
        Tail::Exact => (
            CauseKind::MissingMask,
            Certainty::Supported,
            "Block and thread count to just that element: a tail block without a mask, or a length that is too large.",
        ),
        Tail::Last => (
            CauseKind::MissingMask,
            Certainty::Supported,
            "The block is the last one of its grid: a tail block without a mask, or a length that is too large.",
        ),
        Tail::Possible => (
            CauseKind::MissingMask,
            Certainty::Suspected,
            "A tail block without a mask would do that; so would a length that is too large.",
        ),
        Tail::No if is_atomic => (
            CauseKind::OutOfBounds,
            Certainty::Suspected,
            "It is no tail block: an atomic's index comes from the data, so a bin or a counter is as large as its table or \
             larger.",
        ),
        Tail::No => (
            CauseKind::OutOfBounds,
            Certainty::Suspected,
            "Nothing shows a tail block: an index, a length or a stride is too large for this buffer, and it may come from the \
             data.",
        ),
    };
    let text = format!("{} {meaning}", past_the_end(past_end_bytes));
    let mut found = hypothesis(cause, certainty, text, reading.evidence);
    if is_atomic && cause == CauseKind::OutOfBounds {
        found.would_settle = vec!["check max(index) < size of the table before the launch".to_owned()];
    }
    found
}

/// Whether the access begins inside its allocation and ends outside.
fn crosses_the_end(record: &SanitizerRecord) -> bool {
    record.nearest.zip(record.address).is_some_and(|(nearest, address)| {
        address.checked_sub(nearest.base).is_some_and(|offset| offset < nearest.size_bytes)
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
