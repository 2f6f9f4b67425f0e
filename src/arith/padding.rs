//! Kernels round sizes up: rows to the block, a head dimension to 32 or 128. A tensor that fits may cross once padded.
//!
//! In: a row-major layout and the swept dimension. Out: the paddings that push a fitting tensor over the limit.
//! Tensors that cross as they stand are `boundary`'s business.

use super::layout::TensorLayout;
use super::limits::{IndexLimit, pad_to};
use crate::error::Result;

/// Blocks that rows are rounded up to.
const ROW_BLOCKS: [u64; 2] = [128, 256];
/// Blocks that the innermost dimension is rounded up to.
const INNER_BLOCKS: [u64; 3] = [32, 64, 128];

/// A padding that makes a fitting tensor cross.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Padded {
    /// The padded dimension, from 0.
    pub dim: usize,
    /// What its size is rounded up to a multiple of.
    pub block: u64,
    /// Its size after rounding.
    pub size: u64,
    /// Number of elements after rounding.
    pub numel: u128,
}

/// Paddings of the swept or the innermost dimension that make a tensor cross `limit`, smallest block first; one a
/// dimension. Empty when the tensor crosses already, has strides of its own, or stays inside.
///
/// # Errors
/// `Limit` where a number leaves 128 bits.
pub fn crossings(layout: &TensorLayout, sweep: usize, limit: IndexLimit) -> Result<Vec<Padded>> {
    let mut found = Vec::new();
    if layout.strides_given() || !limit.check(&layout.extent()?).fits_by_index() {
        return Ok(found);
    }
    let inner = layout.shape().dims().len().saturating_sub(1);
    let rows = ROW_BLOCKS.iter().filter(|_| sweep != inner).map(|&block| (sweep, block));
    let columns = INNER_BLOCKS.iter().map(|&block| (inner, block));
    for (dim, block) in rows.chain(columns) {
        let size = layout.shape().dims().get(dim).copied().unwrap_or(0);
        let padded = pad_to(u128::from(size), u128::from(block)).and_then(|size| u64::try_from(size).ok());
        let Some(padded) = padded.filter(|&padded| padded > size) else { continue };
        let extent = layout.with_dim(dim, padded)?.extent()?;
        let seen = found.iter().any(|known: &Padded| known.dim == dim);
        if !seen && !limit.check(&extent).fits_by_index() {
            found.push(Padded { dim, block, size: padded, numel: extent.numel });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::{Shape, Strides};

    fn crossing(dims: &[u64]) -> Vec<Padded> {
        let layout = TensorLayout::contiguous(Shape::new(dims.to_vec()).unwrap(), None).unwrap();
        crossings(&layout, 0, IndexLimit::INT32).unwrap()
    }

    #[test]
    fn a_head_dimension_of_72_crosses_once_rounded_to_128() {
        // 1,600·16·729·72 = 1,343,692,800 fits; with 96 it fits as well, with 128 it is 2,388,787,200.
        let want = Padded { dim: 3, block: 64, size: 128, numel: 2_388_787_200 };
        assert_eq!(crossing(&[1_600, 16, 729, 72]), [want]);
    }

    #[test]
    fn rows_at_the_edge_cross_in_the_last_block() {
        let want = Padded { dim: 0, block: 128, size: 233_088, numel: 233_088 * 9_216 };
        assert_eq!(crossing(&[233_016, 9_216]), [want]);
    }

    #[test]
    fn what_crosses_already_or_stays_far_below_is_left_alone() {
        assert!(crossing(&[234_624, 9_216]).is_empty());
        assert!(crossing(&[128, 100]).is_empty());
        let shape = Shape::new(vec![233_016, 9_216]).unwrap();
        let view = TensorLayout::strided(shape, Strides(vec![9_216, 1]), None).unwrap();
        assert!(crossings(&view, 0, IndexLimit::INT32).unwrap().is_empty());
    }
}
