//! Shapes by name, with the numbers that a cap, a fix and a verification need.

use crate::arith::{Boundary, DType, Expect, Extent, IndexLimit, Role, TensorLayout};
use crate::tables::cause::CauseKind;
use crate::verdict::Verdict;
use crate::verdict::failure::Certainty;
use crate::verdict::shapes::{Likelihood, ShapeRow};

use super::super::known::Known;

pub(super) fn put(known: &mut Known, verdict: &Verdict) {
    known.put("shapes.count", verdict.shapes.len());
    known.put("shapes.overflowing", verdict.shapes.iter().filter(|row| row.overflows()).count());
    if let Some(row) = verdict.shapes.first() {
        let mut tree = measured(&Measured {
            words: row.words(),
            layout: &row.layout,
            extent: &row.extent,
            dtype: row.dtype,
            boundary: &row.boundary,
        });
        tree.put("from", "log");
        tree.put("near", row.likelihood >= Likelihood::Near);
        let against = verdict.hypotheses.iter().find(|hypothesis| {
            hypothesis.cause == Some(CauseKind::Int32Overflow)
                && hypothesis.certainty == Certainty::Undecided
                && hypothesis.supports.contains(&row.evidence)
        });
        tree.put_some("against", against.map(|hypothesis| hypothesis.summary.as_str()));
        tree.put_some("label", row.mention.label.clone());
        tree.put_some("sweep", sweep_name(row));
        known.put("shapes.first", tree);
    }
    let all: Vec<String> = verdict.shapes.iter().take(20).map(ShapeRow::words).collect();
    known.put("shapes.all", all);
}

fn sweep_name(row: &ShapeRow) -> Option<String> {
    row.mention.names.get(row.sweep).cloned()
}

/// What is measured of a shape.
pub(super) struct Measured<'a> {
    pub words: String,
    pub layout: &'a TensorLayout,
    pub extent: &'a Extent,
    pub dtype: Option<DType>,
    pub boundary: &'a Boundary,
}

/// The numbers of one shape.
pub(super) fn measured(shape: &Measured<'_>) -> Known {
    let mut tree = Known::default();
    let dims = shape.layout.shape().dims();
    let check = IndexLimit::INT32.check(shape.extent);
    tree.put("text", shape.words.as_str());
    tree.put("dims", dims.to_vec());
    let reported = dims.get(shape.boundary.sweep).copied();
    tree.put_some("reported", reported);
    // Elements of one step of the swept dimension: the row length that the cap depends on.
    tree.put_some("columns", shape.layout.shape().numel_without(shape.boundary.sweep).ok());
    tree.put("numel", shape.extent.numel);
    tree.put_some("max_index", shape.extent.max_index);
    tree.put_some("dtype", shape.dtype.map(DType::name));
    tree.put("overflows", !check.fits_by_index());
    tree.put("excess", check.excess_by_count);
    tree.put("percent", (check.over_percent() * 100.0).round() / 100.0);
    tree.put("margin", check.margin_by_index);
    tree.put_some("safe", shape.boundary.safe);
    tree.put_some("safe_by_count", shape.boundary.safe_by_count);
    tree.put("granularity", shape.boundary.granularity);
    tree.put_some("safe_multiple", shape.boundary.safe_multiple);
    for found in &shape.boundary.shapes {
        for role in &found.roles {
            let name = match role {
                Role::FirstUnsafe => "first_unsafe",
                Role::FirstUnsafeMultiple => "first_unsafe_multiple",
                Role::WellPast => "well_past",
                _ => continue,
            };
            tree.put(name, found.value);
        }
    }
    let verify: Vec<Known> = shape
        .boundary
        .shapes
        .iter()
        .filter(|found| {
            found.roles.iter().any(|role| {
                matches!(role, Role::LastSafeMultiple | Role::Reported | Role::WellPast)
                    || (*role == Role::LastSafe && shape.boundary.granularity == 1)
            })
        })
        .map(|found| {
            let mut row = Known::default();
            row.put("value", found.value);
            row.put("numel", found.numel);
            row.put("wraps", found.expect == Expect::Wrap);
            row
        })
        .collect();
    tree.put("verify", Known::List(verify));
    tree
}
