//! The distance test on every sanitizer record, with what the evidence knows around it.
//!
//! In: sanitizer records and measured shapes. Out: readings of `arith::distance` with their evidence.

use crate::arith::distance::read_access;
use crate::arith::{Access, Allocation, Context, DType, Reading};
use crate::case::EvidenceId;
use crate::read::event::{Data, SanitizerFinding, SanitizerRecord};

use super::View;

/// A reading with the record that it reads.
#[derive(Debug, Clone, PartialEq)]
pub struct DistanceReading {
    /// The record.
    pub evidence: EvidenceId,
    /// What the distance says.
    pub reading: Reading,
}

/// Records that are read: the first ones decide, and each stands for a folded run.
const RECORD_LIMIT: usize = 64;

/// Reads every record that has an address.
pub fn readings(view: &View<'_>) -> Vec<DistanceReading> {
    view.case
        .pick(|data| match data {
            Data::Sanitizer(record) if record.finding == SanitizerFinding::OutOfBounds => Some(&**record),
            _ => None,
        })
        .filter_map(|(evidence, _, record)| {
            let reading = read(view, record)?;
            Some(DistanceReading { evidence, reading })
        })
        .take(RECORD_LIMIT)
        .collect()
}

/// Rows of a block, where the engineer gives them; else the test tries powers of two and says so.
fn block_rows(view: &View<'_>) -> Option<u64> {
    view.case
        .answers()
        .filter_map(|(_, event)| match &event.data {
            Data::Value(value)
                if matches!(value.name.as_str(), "BLOCK_M" | "BLOCK_SIZE_M" | "block_m" | "block_rows") =>
            {
                value.size()
            }
            _ => None,
        })
        .last()
}

fn read(view: &View<'_>, record: &SanitizerRecord) -> Option<Reading> {
    // Shared and local memory have windows of their own: no allocation is near.
    if matches!(record.space.as_deref(), Some("shared" | "local")) {
        return None;
    }
    let access = Access {
        address: record.address?,
        bytes: record.size_bytes.unwrap_or(0),
        reported_misaligned: false,
    };
    let nearest = record.nearest.map(|near| Allocation { base: near.base, bytes: near.size_bytes });
    let context = Context {
        block: record.block,
        thread: record.thread,
        tensors: view.shapes.iter().map(super::super::shapes::ShapeRow::tensor).take(64).collect(),
        element_bytes: view.case.answered_dtype().map(DType::element_bytes).into_iter().collect(),
        block_rows: block_rows(view),
        ..Context::default()
    };
    Some(read_access(access, nearest, &context))
}
