//! The shapes of the evidence, measured: extent, limits, safe sizes, and how likely each belongs to the failing launch.
//!
//! In: the case and the root failure. Out: rows, the likeliest first. A shape near the failure is a candidate, never the
//! launch's own: only a dump, a trace or a cache entry tells that.

use crate::arith::{
    Boundary, Extent, IndexLimit, KnownTensor, Shape, Strides, TensorLayout, boundary, dtype::DType,
};
use crate::case::{Case, Evidence, EvidenceId, Fact, Provenance};
use crate::read::event::{Data, Event, Passed, ShapeForm, ShapeMention};
use crate::text::number::grouped;

use super::failure::Failure;
use super::launches::same_rank;

/// How likely a shape belongs to the failing launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likelihood {
    /// Printed somewhere in the input.
    Mentioned,
    /// Printed by the failing process near its failure.
    Near,
    /// Named as the operands of the failing call or launch.
    Operand,
}

/// A shape with its arithmetic.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeRow {
    /// As printed.
    pub mention: ShapeMention,
    /// Evidence.
    pub evidence: EvidenceId,
    /// The layout.
    pub layout: TensorLayout,
    /// Element type, where the log names one.
    pub dtype: Option<DType>,
    /// Its extent.
    pub extent: Extent,
    /// The dimension that sizes vary in: the largest.
    pub sweep: usize,
    /// The boundary of that dimension under int32.
    pub boundary: Boundary,
    /// How likely it belongs to the launch.
    pub likelihood: Likelihood,
}

impl ShapeRow {
    /// Whether the largest index passes 2³¹−1.
    #[must_use]
    pub fn overflows(&self) -> bool {
        !IndexLimit::INT32.check(&self.extent).fits_by_index()
    }

    /// How far the program came with it before it failed, where that is far enough to speak against it. One step may be
    /// the one before: some programs print the next batch's shape before this batch's result.
    #[must_use]
    pub fn passed(&self) -> Option<Passed> {
        self.mention.passed.filter(|passed| passed.steps >= PASSED_STEPS)
    }

    /// As the distance test takes it.
    #[must_use]
    pub fn tensor(&self) -> KnownTensor {
        let columns = match (self.mention.strides.first(), self.mention.dims.as_slice()) {
            (Some(stride), _) => u64::try_from(*stride).unwrap_or(0),
            (None, [_, rest @ ..]) => {
                rest.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim)).unwrap_or(0)
            }
            _ => 0,
        };
        KnownTensor { numel: self.extent.numel, columns, element_bytes: self.dtype.map(DType::element_bytes) }
    }

    /// `234,624 × 9,216`, with names where the log gives them.
    #[must_use]
    pub fn words(&self) -> String {
        let parts: Vec<String> = self
            .mention
            .dims
            .iter()
            .enumerate()
            .map(|(at, dim)| match self.mention.names.get(at) {
                Some(name) => format!("{name} {}", grouped(u128::from(*dim))),
                None => grouped(u128::from(*dim)),
            })
            .collect();
        match &self.mention.label {
            Some(label) if matches!(self.mention.form, ShapeForm::Model | ShapeForm::Argument) => {
                format!("{label}: {}", parts.join(" × "))
            }
            _ => parts.join(" × "),
        }
    }
}

/// Lines before a failure within which a shape counts as near it.
const NEAR_LINES: u64 = 200;

/// Steps that a shape has to pass before that speaks against it.
const PASSED_STEPS: u64 = 2;

/// Every shape of the case, the likeliest and largest first.
#[must_use]
pub fn rows(case: &Case, root: Option<&Failure>) -> Vec<ShapeRow> {
    let mut rows: Vec<ShapeRow> = case
        .evidence()
        .iter()
        .filter_map(|evidence| {
            let Fact::Event(event) = &evidence.fact else { return None };
            match &event.data {
                Data::Shape(mention) if mention.form != ShapeForm::Launch => {
                    row(evidence.id, mention, likelihood(case, evidence, event, mention, root))
                }
                _ => None,
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let rank = |row: &ShapeRow| {
            (
                row.overflows() && row.passed().is_none() && !row.mention.stored,
                row.overflows(),
                row.likelihood,
                row.mention.form != ShapeForm::Model,
                row.extent.numel,
            )
        };
        rank(b).cmp(&rank(a))
    });
    rows
}

fn row(id: EvidenceId, mention: &ShapeMention, likelihood: Likelihood) -> Option<ShapeRow> {
    let names = mention.names.iter().map(|name| Some(name.clone())).collect();
    let shape = Shape::named(mention.dims.clone(), names).ok()?;
    let dtype = mention.dtype.as_deref().and_then(DType::find);
    let layout = if mention.strides.len() == mention.dims.len() && !mention.strides.is_empty() {
        let strides = Strides(mention.strides.iter().map(|stride| i128::from(*stride)).collect());
        TensorLayout::strided(shape, strides, dtype).ok()?
    } else {
        TensorLayout::contiguous(shape, dtype).ok()?
    };
    let extent = layout.extent().ok()?;
    let largest = mention.dims.iter().enumerate().max_by_key(|(at, dim)| (**dim, usize::MAX - at));
    // A model's widths are fixed; its tokens are what can be capped.
    let tokens = mention.names.iter().position(|name| mention.form == ShapeForm::Model && name == "tokens");
    let sweep = tokens.or(largest.map(|(at, _)| at))?;
    let boundary = boundary::boundary(&layout, sweep, IndexLimit::INT32, None).ok()?;
    Some(ShapeRow {
        mention: mention.clone(),
        evidence: id,
        layout,
        dtype,
        extent,
        sweep,
        boundary,
        likelihood,
    })
}

/// The engineer's own shape is the operand. A model's tensor is near the failure only where the engineer says how many tokens
/// were in it, and a cache of all layers never: no kernel indexes the layers' caches as one.
fn likelihood(
    case: &Case,
    evidence: &Evidence,
    event: &Event,
    mention: &ShapeMention,
    root: Option<&Failure>,
) -> Likelihood {
    let answered = |id: &EvidenceId| case.get(*id).is_some_and(|one| one.provenance == Provenance::Answer);
    match &evidence.provenance {
        Provenance::Answer => Likelihood::Operand,
        Provenance::Derived(from) if mention.form == ShapeForm::Model => {
            let whole_cache = mention.names.iter().any(|name| name == "layers");
            let stated = from.last().is_some_and(answered);
            if stated && !whole_cache { Likelihood::Near } else { Likelihood::Mentioned }
        }
        Provenance::Derived(from) if from.iter().all(answered) => Likelihood::Operand,
        // The size of a weight or a cache is printed whatever fails later.
        _ if mention.stored => Likelihood::Mentioned,
        _ if mention.form == ShapeForm::Argument => traced(event, root),
        _ => printed(event, root),
    }
}

/// A trace's last launch is the last that the process began: near its failure, and no operand of the failing one.
fn traced(event: &Event, root: Option<&Failure>) -> Likelihood {
    match root {
        Some(root) if same_rank(event, root) => Likelihood::Near,
        _ => Likelihood::Mentioned,
    }
}

fn printed(event: &Event, root: Option<&Failure>) -> Likelihood {
    let Some(root) = root else { return Likelihood::Mentioned };
    let same_process = root.rank.is_none() || event.origin.rank.is_none() || root.rank == event.origin.rank;
    let same_input = root.at.input == event.span.input;
    let near = root.at.line.abs_diff(event.span.line) <= NEAR_LINES;
    if same_process && same_input && near { Likelihood::Near } else { Likelihood::Mentioned }
}
