//! The distance test on every sanitizer record, and on the page that the driver logged where a trace gives the addresses of
//! the arguments.
//!
//! In: sanitizer records, Xid 31, and measured shapes. Out: readings of `arith::distance` with their evidence.

use crate::arith::distance::{read_access, read_page};
use crate::arith::{Access, Allocation, Context, DType, Reading};
use crate::case::{EvidenceId, Fact};
use crate::read::event::{Data, SanitizerFinding, SanitizerRecord, ShapeForm};

use super::super::shapes::{Likelihood, ShapeRow};
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
        .chain(logged_page(view))
        .collect()
}

/// Bytes of the page that Xid 31 names.
const PAGE_BYTES: u64 = 4_096;

/// The page of an Xid 31 against the arguments of the last traced launch of the same process. Only a wrap is reported: the
/// trace names a launch, not the one that failed, and any other distance may be another launch's.
fn logged_page(view: &View<'_>) -> Option<DistanceReading> {
    let (evidence, event, xid) = view
        .case
        .pick(|data| match data {
            Data::Xid(xid) if xid.xid == 31 && xid.address.is_some() => Some(xid),
            _ => None,
        })
        .find(|(id, _, _)| !view.apart.holds(*id))?;
    let pid = xid.pid.or(event.origin.pid);
    let tensors: Vec<&ShapeRow> = view
        .shapes
        .iter()
        .filter(|row| row.mention.form == ShapeForm::Argument && row.likelihood >= Likelihood::Near)
        .filter(|row| {
            let traced = view.case.get(row.evidence).and_then(|evidence| match &evidence.fact {
                Fact::Event(event) => event.origin.pid,
                Fact::Derived(_) => None,
            });
            pid.is_none() || traced.is_none() || pid == traced
        })
        .take(64)
        .collect();
    let allocations: Vec<Allocation> = tensors
        .iter()
        .filter_map(|row| {
            let bytes = u64::try_from(row.extent.bytes?).ok()?;
            Some(Allocation { base: row.mention.address?, bytes })
        })
        .collect();
    let context = Context {
        tensors: tensors.iter().map(|row| row.tensor()).collect(),
        element_bytes: tensors.iter().filter_map(|row| row.dtype.map(DType::element_bytes)).collect(),
        ..Context::default()
    };
    let (reading, _) = read_page(xid.address?, PAGE_BYTES, &allocations, &context);
    matches!(reading, Reading::Wrapped(_)).then_some(DistanceReading { evidence, reading })
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
