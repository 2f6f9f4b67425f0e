//! Which size of one dimension is the last that fits, and which shapes show it on a GPU.
//!
//! In: a layout, the dimension that is swept, a limit, optionally the multiple that sizes come in. Out: safe values
//! by last index and by count, the granularity of the reported size, and boundary shapes with what each must do.
//! The sentences that explain them belong to `report`; running them belongs to `probe`.

use super::layout::TensorLayout;
use super::limits::IndexLimit;
use crate::error::{Error, ErrorKind, Result};

/// The largest block that a size is taken to be a multiple of; tile heights of real kernels stop here.
const LARGEST_GRANULARITY: u64 = 256;

/// A size shows a granularity only if it is at least this many blocks long.
const FEWEST_BLOCKS: u64 = 4;

/// What a boundary shape must do on a kernel that forms its index within the limit's range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expect {
    /// Every index fits.
    Pass,
    /// The last index wraps.
    Wrap,
}

/// Why a shape stands in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The largest multiple of the granularity that fits.
    LastSafeMultiple,
    /// The largest value whose element count fits as well, where that is below the last safe one.
    LastSafeByCount,
    /// The largest value whose last index fits.
    LastSafe,
    /// One more than the last safe value.
    FirstUnsafe,
    /// The first multiple of the granularity that does not fit.
    FirstUnsafeMultiple,
    /// The size that was reported.
    Reported,
    /// Far enough past the limit that nothing near the edge (masked lanes, padding) can hide the wrap.
    WellPast,
}

/// A shape to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundaryShape {
    /// Size of the swept dimension.
    pub value: u64,
    /// All sizes.
    pub dims: Vec<u64>,
    /// Number of elements.
    pub numel: u128,
    /// Largest flat index; `None` when there is no element.
    pub max_index: Option<i128>,
    /// What must happen.
    pub expect: Expect,
    /// Why it stands here; at least one, in the order of [`Role`].
    pub roles: Vec<Role>,
}

/// The boundary of one dimension, the others as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// The swept dimension, from 0.
    pub sweep: usize,
    /// Largest value whose last index fits; `None` when every value fits, 0 when none does.
    pub safe: Option<u128>,
    /// Largest value whose element count fits; `None` when every value fits.
    pub safe_by_count: Option<u128>,
    /// The multiple that the reported size comes in (or the one asked for); at least 1.
    pub granularity: u64,
    /// Largest multiple of the granularity that fits by last index; `None` when every value fits.
    pub safe_multiple: Option<u128>,
    /// Shapes to run, by rising value; empty when no value wraps.
    pub shapes: Vec<BoundaryShape>,
}

/// Finds the boundary of dimension `sweep` under `limit`. `multiple` overrides the granularity of the reported size.
///
/// # Errors
/// `Usage` for a dimension that doesn't exist or a multiple of 0, `Limit` where a number leaves 127 bits.
pub fn boundary(
    layout: &TensorLayout,
    sweep: usize,
    limit: IndexLimit,
    multiple: Option<u64>,
) -> Result<Boundary> {
    let Some(&reported) = layout.shape().dims().get(sweep) else {
        let rank = layout.shape().dims().len();
        return Err(Error::new(ErrorKind::Usage, format!("no dimension {sweep} in a shape of {rank}")));
    };
    if multiple == Some(0) {
        return Err(Error::new(ErrorKind::Usage, "a multiple of 0; expected 1 or more"));
    }
    let safe = safe_by_index(layout, sweep, limit)?;
    let safe_by_count = safe_by_count(layout, sweep, limit)?;
    let granularity = multiple.unwrap_or_else(|| granularity(reported));
    let step = u128::from(granularity);
    let safe_multiple = safe.map(|safe| safe - safe % step);
    let mut found = Boundary { sweep, safe, safe_by_count, granularity, safe_multiple, shapes: Vec::new() };
    found.shapes = boundary_shapes(layout, limit, &found, reported)?;
    Ok(found)
}

/// Largest size of dimension `sweep` whose first and last index fit; `None` when every size does, 0 when none does.
///
/// # Errors
/// `Limit` where a number leaves 127 bits.
pub fn safe_by_index(layout: &TensorLayout, sweep: usize, limit: IndexLimit) -> Result<Option<u128>> {
    let others = layout.shape().numel_without(sweep)?;
    if others == 0 {
        return Ok(None);
    }
    if !layout.strides_given() {
        // Row-major strides follow the swept size, so the last index is offset + count − 1 whichever dimension moves.
        let room = limit.max.saturating_sub(layout.storage_offset).saturating_add(1);
        let fits = layout.storage_offset >= limit.min;
        return Ok(Some(if fits { positive(room) / others } else { 0 }));
    }
    let (min, max) = layout.index_range(Some(sweep))?;
    if min < limit.min || max > limit.max {
        return Ok(Some(0));
    }
    let stride = layout.strides().0.get(sweep).copied().unwrap_or(0);
    let room = if stride < 0 { min.abs_diff(limit.min) } else { limit.max.abs_diff(max) };
    Ok(room.checked_div(stride.unsigned_abs()).map(|steps| steps.saturating_add(1)))
}

/// Largest size of dimension `sweep` with which the element count fits; `None` when every size does.
///
/// # Errors
/// `Limit` where a number leaves 128 bits.
pub fn safe_by_count(layout: &TensorLayout, sweep: usize, limit: IndexLimit) -> Result<Option<u128>> {
    let others = layout.shape().numel_without(sweep)?;
    Ok(positive(limit.max).checked_div(others))
}

/// The block that a reported size comes in: the largest power of two up to 256 that divides it into at least four
/// blocks. 234,624 gives 128, an odd size gives 1.
#[must_use]
pub fn granularity(size: u64) -> u64 {
    let mut block = LARGEST_GRANULARITY;
    while block > 1 && (!size.is_multiple_of(block) || size / block < FEWEST_BLOCKS) {
        block /= 2;
    }
    block
}

fn positive(value: i128) -> u128 {
    u128::try_from(value).unwrap_or(0)
}

fn boundary_shapes(
    layout: &TensorLayout,
    limit: IndexLimit,
    found: &Boundary,
    reported: u64,
) -> Result<Vec<BoundaryShape>> {
    let mut shapes: Vec<BoundaryShape> = Vec::new();
    for (role, value) in candidates(found, reported) {
        if let Some(known) = shapes.iter_mut().find(|shape| shape.value == value) {
            known.roles.push(role);
            continue;
        }
        let at_value = layout.with_dim(found.sweep, value)?;
        let extent = at_value.extent()?;
        let fits = limit.check(&extent).fits_by_index();
        shapes.push(BoundaryShape {
            value,
            dims: at_value.shape().dims().to_vec(),
            numel: extent.numel,
            max_index: extent.max_index,
            expect: if fits { Expect::Pass } else { Expect::Wrap },
            roles: vec![role],
        });
    }
    shapes.sort_by_key(|shape| shape.value);
    Ok(shapes)
}

/// Values worth running, each with its role; a value may come twice. Empty when no value wraps.
fn candidates(found: &Boundary, reported: u64) -> Vec<(Role, u64)> {
    let (Some(safe), Some(safe_multiple)) = (found.safe, found.safe_multiple) else {
        return Vec::new();
    };
    let step = u128::from(found.granularity);
    let by_count = found.safe_by_count.filter(|&count| count < safe).unwrap_or(0);
    // 43 % more is well past any tile or padding and near no power of two or half of one, where a buffer might be
    // rounded up to; a reported size that is there already serves.
    let well_past = pad_up((safe.saturating_mul(143) / 100).max(2), step);
    let well_past = if u128::from(reported) >= well_past { u128::from(reported) } else { well_past };
    let wanted = [
        (Role::LastSafeMultiple, safe_multiple),
        (Role::LastSafeByCount, by_count),
        (Role::LastSafe, safe),
        (Role::FirstUnsafe, safe.saturating_add(1)),
        (Role::FirstUnsafeMultiple, safe_multiple.saturating_add(step)),
        (Role::Reported, u128::from(reported)),
        (Role::WellPast, well_past),
    ];
    // Every size is a multiple of 1: the multiples would only repeat their neighbours.
    let repeats =
        |role| found.granularity == 1 && matches!(role, Role::LastSafeMultiple | Role::FirstUnsafeMultiple);
    let usable = wanted.into_iter().filter(|&(role, value)| value > 0 && !repeats(role));
    usable.filter_map(|(role, value)| Some((role, u64::try_from(value).ok()?))).collect()
}

fn pad_up(value: u128, step: u128) -> u128 {
    super::limits::pad_to(value, step).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::{Shape, Strides};
    use proptest::prelude::*;

    fn layout(dims: &[u64]) -> TensorLayout {
        TensorLayout::contiguous(Shape::new(dims.to_vec()).unwrap(), None).unwrap()
    }

    fn int32(dims: &[u64]) -> Boundary {
        boundary(&layout(dims), 0, IndexLimit::INT32, None).unwrap()
    }

    #[test]
    fn the_case_of_234624_rows() {
        let found = int32(&[234_624, 9_216]);
        assert_eq!((found.safe, found.safe_by_count), (Some(233_016), Some(233_016)));
        assert_eq!((found.granularity, found.safe_multiple), (128, Some(232_960)));
        let rows: Vec<(u64, Expect)> = found.shapes.iter().map(|shape| (shape.value, shape.expect)).collect();
        let (pass, wrap) = (Expect::Pass, Expect::Wrap);
        let want = [
            (232_960, pass),
            (233_016, pass),
            (233_017, wrap),
            (233_088, wrap),
            (234_624, wrap),
            (333_312, wrap),
        ];
        assert_eq!(rows, want);
        let reported = found.shapes.iter().find(|shape| shape.value == 234_624).unwrap();
        assert_eq!((reported.numel, reported.roles.as_slice()), (2_162_294_784, &[Role::Reported][..]));
    }

    #[test]
    fn the_two_boundaries_of_32768_columns() {
        let found = int32(&[70_000, 32_768]);
        assert_eq!((found.safe, found.safe_by_count), (Some(65_536), Some(65_535)));
        let at = |value| found.shapes.iter().find(|shape| shape.value == value).unwrap();
        assert_eq!(
            (at(65_535).expect, at(65_536).expect, at(65_537).expect),
            (Expect::Pass, Expect::Pass, Expect::Wrap)
        );
        assert_eq!(at(65_536).numel, 1 << 31);
    }

    #[test]
    fn the_measured_table_of_safe_rows() {
        for rows in [232_960, 234_624, 333_312] {
            assert_eq!(int32(&[rows, 9_216]).safe, Some(233_016));
        }
        assert_eq!(int32(&[20_000, 151_936]).safe, Some(14_134));
    }

    #[test]
    fn a_reported_size_far_past_the_limit_is_the_far_one() {
        let found = int32(&[500_000, 9_216]);
        let last = found.shapes.last().unwrap();
        assert_eq!((last.value, last.roles.as_slice()), (500_000, &[Role::Reported, Role::WellPast][..]));
    }

    #[test]
    fn any_dimension_can_be_swept() {
        let shape = layout(&[1_600, 16, 729, 72]);
        let rest = 1_600_u128 * 729 * 72;
        assert_eq!(safe_by_index(&shape, 1, IndexLimit::INT32).unwrap(), Some((1 << 31) / rest));
        assert_eq!(boundary(&shape, 4, IndexLimit::INT32, None).unwrap_err().kind(), ErrorKind::Usage);
    }

    #[test]
    fn a_view_is_bounded_by_its_parents_stride() {
        let view = |stride| {
            let shape = Shape::new(vec![300_000, 4_096]).unwrap();
            TensorLayout::strided(shape, Strides(vec![stride, 1]), None).unwrap()
        };
        // (rows − 1)·8,192 + 4,095 ≤ 2³¹−1 holds up to 262,144 rows; by count twice as many fit.
        let found = boundary(&view(8_192), 0, IndexLimit::INT32, None).unwrap();
        assert_eq!((found.safe, found.safe_by_count), (Some(262_144), Some(524_287)));
        assert_eq!(boundary(&view(0), 0, IndexLimit::INT32, None).unwrap().safe, None);
        // Backwards from 0: row 262,145 would be 262,144 · 8,192 = 2³¹ elements down, the lowest int32.
        assert_eq!(boundary(&view(-8_192), 0, IndexLimit::INT32, None).unwrap().safe, Some(262_145));
    }

    #[test]
    fn an_offset_eats_into_the_room_and_may_leave_none() {
        let shifted = layout(&[10, 1_000]).with_offset(i128::from(i32::MAX) - 4_999);
        assert_eq!(boundary(&shifted, 0, IndexLimit::INT32, None).unwrap().safe, Some(5));
        let outside = layout(&[10, 1_000]).with_offset(1 << 40);
        let found = boundary(&outside, 0, IndexLimit::INT32, None).unwrap();
        assert_eq!((found.safe, found.safe_multiple), (Some(0), Some(0)));
        assert!(found.shapes.iter().all(|shape| shape.expect == Expect::Wrap));
    }

    #[test]
    fn an_empty_rest_never_wraps() {
        let found = boundary(&layout(&[7, 0]), 0, IndexLimit::INT32, None).unwrap();
        assert_eq!((found.safe, found.safe_by_count), (None, None));
        assert!(found.shapes.is_empty());
    }

    #[test]
    fn a_row_wider_than_the_limit_leaves_no_safe_row() {
        let found = boundary(&layout(&[3, 1 << 40]), 0, IndexLimit::INT32, None).unwrap();
        assert_eq!(found.safe, Some(0));
        let first = found.shapes.first().unwrap();
        assert_eq!((first.value, first.roles.as_slice()), (1, &[Role::FirstUnsafe][..]));
    }

    #[test]
    fn granularity_is_the_block_that_a_size_shows() {
        let cases = [
            (234_624, 128),
            (232_960, 256),
            (70_000, 16),
            (729, 1),
            (0, 1),
            (1, 1),
            (64, 16),
            (1_600, 64),
            (u64::MAX, 1),
        ];
        for (size, block) in cases {
            assert_eq!(granularity(size), block, "{size}");
        }
        let found = boundary(&layout(&[234_624, 9_216]), 0, IndexLimit::INT32, Some(1_000)).unwrap();
        assert_eq!(found.safe_multiple, Some(233_000));
        assert!(boundary(&layout(&[4]), 0, IndexLimit::INT32, Some(0)).is_err());
    }

    /// A limit small enough to try every size.
    const SMALL: IndexLimit = IndexLimit { key: "small", min: -60, max: 59 };

    proptest! {
        /// Against trying every size up to past the answer.
        #[test]
        fn safe_sizes_equal_trying_each_one(
            dims in proptest::collection::vec(0_u64..7, 1..4),
            strides in proptest::option::of(proptest::collection::vec(-20_i128..20, 3)),
            offset in -70_i128..70,
            sweep in 0_usize..3,
        ) {
            let sweep = sweep % dims.len();
            let shape = Shape::new(dims.clone()).unwrap();
            let tensor = match strides {
                None => TensorLayout::contiguous(shape, None).unwrap(),
                Some(strides) => {
                    let strides = strides.into_iter().take(dims.len()).collect();
                    TensorLayout::strided(shape, Strides(strides), None).unwrap()
                }
            }.with_offset(offset);
            let fits = |size: u64, by_count: bool| {
                let check = SMALL.check(&tensor.with_dim(sweep, size).unwrap().extent().unwrap());
                if by_count { check.fits_by_count() } else { check.fits_by_index() }
            };
            // 0 counts as the answer "none"; 200 is past every answer that this limit allows.
            let slow = |by_count| {
                let first_bad = (1..=200).find(|&size| !fits(size, by_count));
                first_bad.map(|bad| u128::from(bad - 1))
            };
            prop_assert_eq!(safe_by_index(&tensor, sweep, SMALL).unwrap(), slow(false));
            prop_assert_eq!(safe_by_count(&tensor, sweep, SMALL).unwrap(), slow(true));
        }

        /// At any scale: the safe size fits, one more does not, and every offered shape does what it says.
        #[test]
        fn the_edge_is_exact(rows in 1_u64..1 << 40, columns in 1_u64..1 << 33, multiple in 1_u64..5_000) {
            let tensor = layout(&[rows, columns]);
            let found = boundary(&tensor, 0, IndexLimit::INT32, Some(multiple)).unwrap();
            let safe = found.safe.unwrap();
            let last_index = |size: u128| size * u128::from(columns) - 1;
            prop_assert!(safe == 0 || last_index(safe) <= 2_147_483_647);
            prop_assert!(last_index(safe + 1) > 2_147_483_647);
            prop_assert_eq!(found.safe_multiple.unwrap() % u128::from(multiple), 0);
            for shape in &found.shapes {
                let wraps = last_index(u128::from(shape.value)) > 2_147_483_647;
                prop_assert_eq!(shape.expect == Expect::Wrap, wraps);
                prop_assert_eq!(shape.numel, u128::from(shape.value) * u128::from(columns));
            }
            prop_assert!(found.shapes.iter().any(|shape| shape.value == rows));
            prop_assert!(found.shapes.windows(2).all(|pair| pair[0].value < pair[1].value));
        }
    }
}
