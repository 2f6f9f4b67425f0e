//! Where a tensor's elements lie: strides, storage offset, smallest and largest flat index, bytes.
//!
//! In: a shape, optionally strides (in elements, of either sign), a storage offset and an element type. Out: an
//! [`Extent`] of exact numbers. It knows no limit; `limits` does.

use super::dtype::DType;
use super::shape::Shape;
use crate::error::{Error, ErrorKind, Result};

/// Steps in elements from one entry of a dimension to the next, outermost first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Strides(pub Vec<i128>);

impl Strides {
    /// The strides of a row-major tensor without gaps. A size of 0 counts as 1, as in PyTorch.
    ///
    /// # Errors
    /// `Limit` when a stride leaves 127 bits.
    pub fn contiguous(shape: &Shape) -> Result<Self> {
        let mut strides = Vec::with_capacity(shape.dims().len());
        let mut step = Some(1_i128);
        for &size in shape.dims().iter().rev() {
            strides.push(step.ok_or_else(too_large)?);
            step = step.and_then(|step| step.checked_mul(i128::from(size.max(1))));
        }
        strides.reverse();
        Ok(Self(strides))
    }
}

/// A tensor's shape laid over its storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorLayout {
    shape: Shape,
    strides: Strides,
    strides_given: bool,
    /// Elements before the first one (`storage_offset()` in PyTorch).
    pub storage_offset: i128,
    /// Element type, where it is known.
    pub dtype: Option<DType>,
}

/// What a tensor spans. Indices count elements from the storage's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Number of elements.
    pub numel: u128,
    /// Smallest flat index; `None` when there is no element.
    pub min_index: Option<i128>,
    /// Largest flat index; `None` when there is no element.
    pub max_index: Option<i128>,
    /// Bytes from the first to the end of the last element, gaps included; `None` without an element type.
    pub bytes: Option<u128>,
}

impl TensorLayout {
    /// A row-major tensor without gaps.
    ///
    /// # Errors
    /// `Limit` when a stride leaves 127 bits.
    pub fn contiguous(shape: Shape, dtype: Option<DType>) -> Result<Self> {
        let strides = Strides::contiguous(&shape)?;
        Ok(Self { shape, strides, strides_given: false, storage_offset: 0, dtype })
    }

    /// A tensor with strides of its own, such as a view into a wider parent.
    ///
    /// # Errors
    /// `Usage` when there isn't one stride a dimension.
    pub fn strided(shape: Shape, strides: Strides, dtype: Option<DType>) -> Result<Self> {
        let (have, want) = (strides.0.len(), shape.dims().len());
        if have != want {
            let message = format!("{have} strides for {want} dimensions; expected one stride a dimension");
            return Err(Error::new(ErrorKind::Usage, message));
        }
        Ok(Self { shape, strides, strides_given: true, storage_offset: 0, dtype })
    }

    /// Sets the elements before the first one.
    #[must_use]
    pub fn with_offset(mut self, storage_offset: i128) -> Self {
        self.storage_offset = storage_offset;
        self
    }

    /// The sizes.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The strides, given or row-major.
    #[must_use]
    pub fn strides(&self) -> &Strides {
        &self.strides
    }

    /// True when the strides were given, and so stay fixed while a dimension is swept.
    #[must_use]
    pub fn strides_given(&self) -> bool {
        self.strides_given
    }

    /// The same tensor with dimension `dim` set to `size`: row-major strides follow, given strides stay.
    ///
    /// # Errors
    /// `Limit` when a stride leaves 127 bits.
    pub fn with_dim(&self, dim: usize, size: u64) -> Result<Self> {
        let shape = self.shape.with_dim(dim, size);
        let strides = if self.strides_given { self.strides.clone() } else { Strides::contiguous(&shape)? };
        Ok(Self { shape, strides, ..self.clone() })
    }

    /// Count, index range and bytes.
    ///
    /// # Errors
    /// `Limit` when the count leaves 128 bits or an index leaves 127.
    pub fn extent(&self) -> Result<Extent> {
        let numel = self.shape.numel()?;
        if numel == 0 {
            let bytes = self.dtype.map(|_| 0);
            return Ok(Extent { numel, min_index: None, max_index: None, bytes });
        }
        let (min, max) = self.index_range(None)?;
        let bytes = match self.dtype {
            None => None,
            Some(dtype) => Some(span_bytes(min, max, dtype.element_bytes())?),
        };
        Ok(Extent { numel, min_index: Some(min), max_index: Some(max), bytes })
    }

    /// Smallest and largest index over all dimensions but `without`; meaningless for an empty tensor.
    pub(super) fn index_range(&self, without: Option<usize>) -> Result<(i128, i128)> {
        let (mut min, mut max) = (self.storage_offset, self.storage_offset);
        for (dim, (&size, &stride)) in self.shape.dims().iter().zip(&self.strides.0).enumerate() {
            if Some(dim) == without {
                continue;
            }
            let last = i128::from(size.saturating_sub(1));
            let reach = last.checked_mul(stride).ok_or_else(too_large)?;
            let side = if reach < 0 { &mut min } else { &mut max };
            *side = side.checked_add(reach).ok_or_else(too_large)?;
        }
        Ok((min, max))
    }
}

fn span_bytes(min: i128, max: i128, element_bytes: u64) -> Result<u128> {
    let span = max.abs_diff(min).checked_add(1);
    span.and_then(|span| span.checked_mul(u128::from(element_bytes))).ok_or_else(too_large)
}

fn too_large() -> Error {
    Error::new(ErrorKind::Limit, "an index or a byte count reaches 2^127, more than this arithmetic holds")
        .hint("check the sizes and strides: no GPU address has more than 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(dims: &[u64]) -> Shape {
        Shape::new(dims.to_vec()).unwrap()
    }

    #[test]
    fn a_row_major_tensor_ends_one_before_its_count() {
        let layout = TensorLayout::contiguous(shape(&[234_624, 9_216]), Some(DType::BFloat16)).unwrap();
        assert_eq!(layout.strides().0, [9_216, 1]);
        let extent = layout.extent().unwrap();
        assert_eq!(extent.max_index, Some(2_162_294_783));
        assert_eq!(extent.bytes, Some(4_324_589_568));
    }

    #[test]
    fn a_view_into_a_wider_parent_reaches_further_than_its_count() {
        // Interleaved K and V: each row of 4,096 values stands 8,192 apart.
        let view = TensorLayout::strided(shape(&[300_000, 4_096]), Strides(vec![8_192, 1]), None).unwrap();
        let extent = view.with_offset(4_096).extent().unwrap();
        assert_eq!(extent.numel, 1_228_800_000);
        assert_eq!(extent.max_index, Some(299_999 * 8_192 + 4_095 + 4_096));
    }

    #[test]
    fn negative_strides_move_the_smallest_index() {
        let flipped =
            TensorLayout::strided(shape(&[10, 4]), Strides(vec![-4, 1]), Some(DType::Float32)).unwrap();
        let extent = flipped.with_offset(36).extent().unwrap();
        assert_eq!((extent.min_index, extent.max_index, extent.bytes), (Some(0), Some(39), Some(160)));
    }

    #[test]
    fn an_empty_tensor_has_no_index_and_no_bytes() {
        let empty =
            TensorLayout::contiguous(shape(&[0, 9_216]), Some(DType::Int8)).unwrap().extent().unwrap();
        assert_eq!((empty.numel, empty.max_index, empty.bytes), (0, None, Some(0)));
    }

    #[test]
    fn strides_must_match_and_must_not_leave_the_arithmetic() {
        let error = TensorLayout::strided(shape(&[2, 2]), Strides(vec![1]), None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let wild = TensorLayout::strided(shape(&[u64::MAX]), Strides(vec![i128::MAX]), None).unwrap();
        assert_eq!(wild.extent().unwrap_err().kind(), ErrorKind::Limit);
        let error = TensorLayout::contiguous(shape(&[2, u64::MAX, u64::MAX, 2]), None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }

    proptest! {
        /// Against a walk over every element of a small tensor.
        #[test]
        fn range_equals_a_walk_over_all_elements(
            dims in proptest::collection::vec(1_u64..5, 1..4),
            strides in proptest::collection::vec(-50_i128..50, 3),
            offset in -100_i128..100,
        ) {
            let mut indices = vec![offset];
            for (&size, &stride) in dims.iter().zip(&strides) {
                indices = indices.iter().flat_map(|&at| (0..i128::from(size)).map(move |i| at + i * stride)).collect();
            }
            let strides = Strides(strides.iter().copied().take(dims.len()).collect());
            let layout = TensorLayout::strided(shape(&dims), strides, Some(DType::Int16)).unwrap();
            let extent = layout.with_offset(offset).extent().unwrap();
            let (min, max) = (*indices.iter().min().unwrap(), *indices.iter().max().unwrap());
            prop_assert_eq!((extent.min_index, extent.max_index), (Some(min), Some(max)));
            prop_assert_eq!(extent.numel, indices.len() as u128);
            prop_assert_eq!(extent.bytes, Some((max - min + 1) as u128 * 2));
        }

        /// A row-major tensor's last index is its count less one, for sizes of any magnitude.
        #[test]
        fn row_major_last_index_is_count_less_one(dims in proptest::collection::vec(1_u64..1 << 31, 1..5)) {
            let extent = TensorLayout::contiguous(shape(&dims), None).unwrap().extent().unwrap();
            prop_assert_eq!(extent.max_index.unwrap() as u128, extent.numel - 1);
        }
    }
}
