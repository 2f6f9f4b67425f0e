//! A launch that was refused, against the sizes that the evidence prints of it.
//!
//! In: grids and blocks of launches. Out: `launch_limit`, *supported*, with the size and the limit that it passes. Limits are those
//! of every GPU since compute capability 3.0 (CUDA C++ Programming Guide, technical specifications per compute capability).

use crate::case::EvidenceId;
use crate::read::event::{Data, Dim3, ShapeForm};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::text::number::grouped;

use super::super::failure::Certainty;
use super::{Hypothesis, View};

/// Largest grid.
const GRID: Dim3 = [2_147_483_647, 65_535, 65_535];
/// Largest block along each axis.
const BLOCK: Dim3 = [1_024, 1_024, 64];
/// Most threads of a block.
const THREADS: u64 = 1_024;

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    // Triton's launcher says only that an argument was invalid.
    let refused = view.root.class == FailureClass::LaunchConfig
        || view.root.why.contains("Triton Error [CUDA]: invalid argument");
    if !refused {
        return Vec::new();
    }
    let found = printed(view).into_iter().find_map(|(id, is_grid, dims)| Some((id, passes(is_grid, dims)?)));
    let hypothesis = found.map(|(id, summary)| Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::LaunchLimit),
        certainty: Certainty::Supported,
        summary,
        supports: view.root.evidence.iter().take(2).copied().chain([id]).collect(),
        against: Vec::new(),
        would_settle: Vec::new(),
    });
    hypothesis.into_iter().collect()
}

/// Grids (true) and blocks that the evidence prints.
fn printed(view: &View<'_>) -> Vec<(EvidenceId, bool, Dim3)> {
    let both = |grid: Option<Dim3>, block: Option<Dim3>| vec![(true, grid), (false, block)];
    view.case
        .pick(|data| match data {
            Data::LaunchMention(launch) => Some(both(launch.grid, launch.block_dim)),
            Data::Shape(shape) if shape.form == ShapeForm::Launch => {
                let dims = <Dim3>::try_from(shape.dims.as_slice()).ok();
                Some(vec![(shape.label.as_deref() == Some("grid"), dims)])
            }
            _ => None,
        })
        .flat_map(|(id, _, found)| found.into_iter().filter_map(move |(grid, dims)| Some((id, grid, dims?))))
        .take(64)
        .collect()
}

/// What a grid or a block passes.
fn passes(is_grid: bool, dims: Dim3) -> Option<String> {
    let (what, limits) = if is_grid { ("grid", GRID) } else { ("block", BLOCK) };
    for ((axis, size), limit) in ["x", "y", "z"].into_iter().zip(dims).zip(limits) {
        if size == 0 {
            return Some(format!(
                "{what} {axis} of the launch is 0: there is nothing to launch, and CUDA refuses it"
            ));
        }
        if size > limit {
            let (size, limit) = (grouped(u128::from(size)), grouped(u128::from(limit)));
            return Some(format!(
                "{what} {axis} of the launch is {size}; {limit} is the most that a GPU takes"
            ));
        }
    }
    let threads = dims.iter().fold(1_u64, |product, size| product.saturating_mul(*size));
    (!is_grid && threads > THREADS).then(|| {
        format!(
            "a block of the launch has {} threads; 1,024 is the most that a GPU takes",
            grouped(u128::from(threads))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_past_a_limit_are_named() {
        let says = |is_grid, dims| passes(is_grid, dims).unwrap_or_default();
        assert_eq!(
            says(true, [16, 70_000, 1]),
            "grid y of the launch is 70,000; 65,535 is the most that a GPU takes"
        );
        assert!(says(true, [0, 1, 1]).contains("is 0"));
        assert!(says(false, [64, 32, 1]).contains("2,048 threads"));
        assert!(says(false, [16, 1, 128]).contains("block z"));
        assert_eq!(passes(true, [70_000, 65_535, 1]), None);
        assert_eq!(passes(false, [1_024, 1, 1]), None);
    }
}
