//! What the distance between an access and its nearest allocation says, wraps aside.
//!
//! In: sanitizer records with an address. Out: a missing mask (one element past the end), an index far away, a null
//! pointer, a misaligned view. Whether a distance is a wrapped 32-bit index is `overflow`'s question.

use crate::case::EvidenceId;
use crate::read::event::{Data, NearestAllocation, SanitizerFinding, SanitizerRecord, Side};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::{Hypothesis, View};

/// Bytes past the end within which an access belongs to the tail of the buffer: a block of the widest usual access.
const TAIL_BYTES: u64 = 1 << 20;
/// Addresses below this are a null pointer with an offset.
const NULL_PAGE_BYTES: u64 = 1 << 16;

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    if !matches!(view.root.class, FailureClass::IllegalAddress) {
        return Vec::new();
    }
    let record = view
        .case
        .pick(|data| match data {
            Data::Sanitizer(record) if record.finding == SanitizerFinding::OutOfBounds => Some(&**record),
            _ => None,
        })
        .next();
    record.map(|(id, _, record)| read(id, record)).unwrap_or_default()
}

fn read(id: EvidenceId, record: &SanitizerRecord) -> Vec<Hypothesis> {
    if record.address.is_some_and(|address| address < NULL_PAGE_BYTES) {
        let text = "the access is at a null pointer plus a small offset";
        return vec![hypothesis(CauseKind::NullPointer, Certainty::Supported, text.to_owned(), id)];
    }
    if record.space.as_deref() == Some("shared") {
        let text = "the access is past the shared memory of the block";
        return vec![hypothesis(CauseKind::SharedMemory, Certainty::Supported, text.to_owned(), id)];
    }
    let Some(nearest) = record.nearest else { return Vec::new() };
    match nearest.side {
        Side::Inside => {
            let text = "the access is reported out of bounds and inside an allocation: a memory pool hides the true bounds";
            vec![hypothesis(CauseKind::SanitizerFalsePositive, Certainty::Suspected, text.to_owned(), id)]
        }
        Side::After if nearest.distance_bytes <= TAIL_BYTES => vec![tail(id, record, nearest)],
        Side::Before if nearest.distance_bytes <= TAIL_BYTES => {
            let text = format!(
                "the access is {} bytes before the allocation: a wrong base or stride",
                nearest.distance_bytes
            );
            vec![hypothesis(CauseKind::OutOfBounds, Certainty::Suspected, text, id)]
        }
        Side::After | Side::Before => {
            let text = format!(
                "the access is {} bytes away from the nearest allocation of {} bytes: a wild index or a stale pointer",
                nearest.distance_bytes, nearest.size_bytes
            );
            let cause = if reads_an_index(record) { CauseKind::BadIndex } else { CauseKind::OutOfBounds };
            vec![hypothesis(cause, Certainty::Suspected, text, id)]
        }
    }
}

/// One element past the end: the last block covers more than the buffer. The sanitizer counts from the byte after the
/// last one as 1.
fn tail(id: EvidenceId, record: &SanitizerRecord, nearest: NearestAllocation) -> Hypothesis {
    let first_past = nearest.distance_bytes == 1;
    let certainty = if first_past { Certainty::Supported } else { Certainty::Suspected };
    let (cause, what) = if nearest.distance_bytes <= 4096 {
        (CauseKind::MissingMask, "the tail of the last block is not masked or guarded")
    } else {
        (CauseKind::OutOfBounds, "an access past the end of the buffer")
    };
    let count = if record.count > 1 { format!(", {} such accesses", record.count) } else { String::new() };
    hypothesis(
        cause,
        certainty,
        format!(
            "the access begins {} byte{} after an allocation of {} bytes{count}: {what}; this is not an int32 overflow",
            nearest.distance_bytes,
            if nearest.distance_bytes == 1 { "" } else { "s" },
            nearest.size_bytes
        ),
        id,
    )
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
