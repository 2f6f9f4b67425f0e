//! The limits that real kernels crossed, and by how much a tensor crosses each.
//!
//! In: an [`Extent`], or grid dimensions. Out: fits or not, by last index (what an address needs) and by count
//! (what a `numel` held in that type needs), with excess and margin. Which size would fit is `boundary`'s business.

use super::layout::Extent;

/// A range of integers that an index, or a count, must stay inside; both ends included, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexLimit {
    /// Key in reports: `int32`, `uint32`, `int32_bytes`, `elements_2_30`.
    pub key: &'static str,
    /// Smallest value that fits.
    pub min: i128,
    /// Largest value that fits.
    pub max: i128,
}

impl IndexLimit {
    /// A signed 32-bit index: up to 2³¹−1.
    pub const INT32: Self = Self { key: "int32", min: -(1 << 31), max: (1 << 31) - 1 };
    /// An unsigned 32-bit index: up to 2³²−1.
    pub const UINT32: Self = Self { key: "uint32", min: 0, max: (1 << 32) - 1 };
    /// An index that is doubled in 32 bits (interleaved K/V, half-warp swizzles): stays below 2³⁰.
    pub const ELEMENTS_2_30: Self = Self { key: "elements_2_30", min: -(1 << 30), max: (1 << 30) - 1 };

    /// A signed 32-bit byte offset, as a limit in elements of `element_bytes` each (0 counts as 1).
    #[must_use]
    pub fn int32_bytes(element_bytes: u64) -> Self {
        let bytes = i128::from(element_bytes.max(1));
        Self { key: "int32_bytes", min: -(Self::INT32.max + 1) / bytes, max: Self::INT32.max / bytes }
    }

    /// Compares a tensor with this limit.
    #[must_use]
    pub fn check(&self, extent: &Extent) -> LimitCheck {
        let limit = self.max.unsigned_abs();
        let above = extent.max_index.map_or(0, |max| distance_above(max, self.max));
        let below = extent.min_index.map_or(0, |min| distance_above(self.min, min));
        LimitCheck {
            limit: *self,
            excess_by_index: above.max(below),
            excess_by_count: extent.numel.saturating_sub(limit),
            margin_by_index: extent.max_index.map_or(limit, |max| distance_above(self.max, max)),
            margin_by_count: limit.saturating_sub(extent.numel),
        }
    }
}

/// `a − b` where `a` is larger, else 0.
fn distance_above(a: i128, b: i128) -> u128 {
    if a > b { a.abs_diff(b) } else { 0 }
}

/// How a tensor stands to one limit; excess and margin in elements, one of each pair is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitCheck {
    /// The limit.
    pub limit: IndexLimit,
    /// Elements by which the last index passes the limit (or the first one falls below it).
    pub excess_by_index: u128,
    /// Elements by which the count passes the limit.
    pub excess_by_count: u128,
    /// Elements by which the last index could still grow.
    pub margin_by_index: u128,
    /// Elements by which the count could still grow.
    pub margin_by_count: u128,
}

impl LimitCheck {
    /// Every index fits.
    #[must_use]
    pub fn fits_by_index(&self) -> bool {
        self.excess_by_index == 0
    }

    /// The element count fits.
    #[must_use]
    pub fn fits_by_count(&self) -> bool {
        self.excess_by_count == 0
    }

    /// Excess by count in per cent of the limit, 0 where the count fits.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a per cent figure for people; 52 bits are plenty")]
    pub fn over_percent(&self) -> f64 {
        self.excess_by_count as f64 * 100.0 / (self.limit.max.max(1) as f64)
    }
}

/// What a 32-bit register holds when `value` is stored in it.
#[must_use]
pub fn wrap_to_int32(value: i128) -> i32 {
    let low = value.rem_euclid(1 << 32);
    let signed = if low > IndexLimit::INT32.max { low - (1 << 32) } else { low };
    i32::try_from(signed).unwrap_or(0)
}

/// `value` rounded up to a multiple of `block`; `None` for block 0 or a result past 128 bits.
#[must_use]
pub fn pad_to(value: u128, block: u128) -> Option<u128> {
    value.checked_next_multiple_of(block)
}

/// An axis of a launch grid that CUDA refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridExcess {
    /// Axis: 0 is x, 1 is y, 2 is z.
    pub axis: usize,
    /// Blocks asked for.
    pub blocks: u128,
    /// Most blocks that the axis takes.
    pub limit: u128,
}

/// Most blocks of a grid along x, y, z (compute capability 3.0 and later; CUDA C Programming Guide, table
/// "Technical Specifications per Compute Capability").
pub const GRID_LIMITS: [u128; 3] = [(1 << 31) - 1, 65_535, 65_535];

/// The axes of a grid that are past their limit, or 0 (which CUDA refuses as well, with `limit` telling the most).
#[must_use]
pub fn grid_excess(grid: [u128; 3]) -> Vec<GridExcess> {
    let axes = grid.into_iter().zip(GRID_LIMITS).enumerate();
    let refused = axes.filter(|&(_, (blocks, limit))| blocks == 0 || blocks > limit);
    refused.map(|(axis, (blocks, limit))| GridExcess { axis, blocks, limit }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::{DType, Shape, TensorLayout};
    use proptest::prelude::*;

    fn int32(dims: &[u64]) -> LimitCheck {
        let layout = TensorLayout::contiguous(Shape::new(dims.to_vec()).unwrap(), None).unwrap();
        IndexLimit::INT32.check(&layout.extent().unwrap())
    }

    #[test]
    fn the_measured_table() {
        assert!(int32(&[232_960, 9_216]).fits_by_index());
        let over = int32(&[234_624, 9_216]);
        assert_eq!((over.excess_by_count, over.excess_by_index), (14_811_137, 14_811_136));
        assert_eq!(format!("{:.2}", over.over_percent()), "0.69");
        assert!(!int32(&[333_312, 9_216]).fits_by_index());
        assert!(!int32(&[70_000, 32_768]).fits_by_count());
    }

    #[test]
    fn the_two_boundaries_differ_by_one_element() {
        let at = int32(&[65_536, 32_768]);
        assert_eq!((at.fits_by_index(), at.fits_by_count(), at.excess_by_count), (true, false, 1));
        let below = int32(&[65_535, 32_768]);
        assert_eq!((below.fits_by_count(), below.margin_by_count), (true, 32_767));
    }

    #[test]
    fn byte_offsets_shrink_the_limit_by_the_element_size() {
        for (dtype, limit) in [
            (DType::BFloat16, 1_073_741_823),
            (DType::Float32, 536_870_911),
            (DType::Int8, i128::from(i32::MAX)),
        ] {
            assert_eq!(IndexLimit::int32_bytes(dtype.element_bytes()).max, limit);
        }
        let layout = TensorLayout::contiguous(Shape::new(vec![1 << 30]).unwrap(), None).unwrap();
        let check = IndexLimit::int32_bytes(2).check(&layout.extent().unwrap());
        assert_eq!((check.fits_by_index(), check.excess_by_count), (true, 1));
    }

    #[test]
    fn an_index_below_zero_does_not_fit_unsigned() {
        let extent = Extent { numel: 4, min_index: Some(-3), max_index: Some(0), bytes: None };
        assert_eq!(IndexLimit::UINT32.check(&extent).excess_by_index, 3);
        assert!(IndexLimit::INT32.check(&extent).fits_by_index());
    }

    #[test]
    fn an_empty_tensor_fits_everything() {
        let check = int32(&[0, 9_216]);
        assert!(check.fits_by_index() && check.fits_by_count());
        assert_eq!(check.margin_by_count, 2_147_483_647);
    }

    #[test]
    fn wrapping_matches_the_hardware() {
        assert_eq!(wrap_to_int32(2_147_483_647), i32::MAX);
        assert_eq!(wrap_to_int32(2_147_483_648), i32::MIN);
        assert_eq!(wrap_to_int32(2_162_294_783), -2_132_672_513);
        assert_eq!(wrap_to_int32(1 << 32), 0);
    }

    #[test]
    fn grids_have_a_wide_x_and_narrow_y_and_z() {
        assert!(grid_excess([2_147_483_647, 65_535, 65_535]).is_empty());
        let refused = grid_excess([1 << 31, 65_536, 0]);
        assert_eq!(refused.iter().map(|excess| excess.axis).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(refused.get(1).map(|excess| excess.limit), Some(65_535));
    }

    #[test]
    fn padding_rounds_up_and_refuses_what_has_no_answer() {
        assert_eq!(pad_to(233_016, 128), Some(233_088));
        assert_eq!(pad_to(233_088, 128), Some(233_088));
        assert_eq!(pad_to(1, 0), None);
        assert_eq!(pad_to(u128::MAX, 128), None);
    }

    proptest! {
        #[test]
        fn wrapping_equals_a_cast(value in any::<i128>()) {
            prop_assert_eq!(wrap_to_int32(value), value as i32);
        }

        /// Excess and margin are two sides of one comparison, at every distance from the edge.
        #[test]
        fn excess_and_margin_agree(offset in -5_i128..5) {
            for limit in [IndexLimit::INT32, IndexLimit::UINT32, IndexLimit::ELEMENTS_2_30, IndexLimit::int32_bytes(8)] {
                let last = limit.max + offset;
                let extent = Extent { numel: last.unsigned_abs() + 1, min_index: Some(0), max_index: Some(last), bytes: None };
                let check = limit.check(&extent);
                prop_assert_eq!(check.fits_by_index(), last <= limit.max);
                prop_assert_eq!(check.fits_by_count(), last < limit.max);
                prop_assert_eq!(check.excess_by_index as i128 - check.margin_by_index as i128, offset);
            }
        }
    }
}
