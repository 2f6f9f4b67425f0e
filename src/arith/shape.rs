//! Sizes of a tensor's dimensions, with the names that a log or the user gave them.
//!
//! In: sizes and names. Out: a [`Shape`], its exact element count, and a dimension found by name or number.
//! Strides and element sizes are `layout`'s business.

use crate::error::{Error, ErrorKind, Result};

/// Sizes in order, outermost first. A size may be 0 (an empty tensor).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: Vec<u64>,
    names: Vec<Option<String>>,
}

impl Shape {
    /// Most dimensions that a shape may have; PyTorch and NumPy stop at 64 as well.
    pub const MAX_DIMS: usize = 64;

    /// A shape without names.
    ///
    /// # Errors
    /// `Usage` for no dimension at all, `Limit` for more than [`Shape::MAX_DIMS`].
    pub fn new(dims: Vec<u64>) -> Result<Self> {
        let names = vec![None; dims.len()];
        Self::named(dims, names)
    }

    /// A shape whose dimensions may have names; missing names count as none.
    ///
    /// # Errors
    /// As for [`Shape::new`].
    pub fn named(dims: Vec<u64>, mut names: Vec<Option<String>>) -> Result<Self> {
        if dims.is_empty() {
            return Err(Error::new(ErrorKind::Usage, "a shape needs at least one dimension"));
        }
        if dims.len() > Self::MAX_DIMS {
            let message = format!("{} dimensions; a tensor has at most {}", dims.len(), Self::MAX_DIMS);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        names.resize(dims.len(), None);
        Ok(Self { dims, names })
    }

    /// The sizes, outermost first.
    #[must_use]
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// One name a dimension, `None` where it has none.
    #[must_use]
    pub fn names(&self) -> &[Option<String>] {
        &self.names
    }

    /// The name of dimension `dim`.
    #[must_use]
    pub fn name(&self, dim: usize) -> Option<&str> {
        self.names.get(dim)?.as_deref()
    }

    /// The number of elements.
    ///
    /// # Errors
    /// `Limit` when the product reaches 2¹²⁸.
    pub fn numel(&self) -> Result<u128> {
        product(self.dims.iter().copied())
    }

    /// The product of all sizes but that of `dim`.
    ///
    /// # Errors
    /// `Limit` when the product reaches 2¹²⁸.
    pub fn numel_without(&self, dim: usize) -> Result<u128> {
        product(self.dims.iter().enumerate().filter(|&(at, _)| at != dim).map(|(_, &size)| size))
    }

    /// The same shape with dimension `dim` set to `size`.
    #[must_use]
    pub fn with_dim(&self, dim: usize, size: u64) -> Self {
        let mut shape = self.clone();
        if let Some(slot) = shape.dims.get_mut(dim) {
            *slot = size;
        }
        shape
    }

    /// Finds a dimension by its name, or by its number from 0 (negative numbers count from the end).
    ///
    /// # Errors
    /// `Usage` when there is no such dimension.
    pub fn find_dim(&self, wanted: &str) -> Result<usize> {
        if let Some(at) = self.names.iter().position(|name| name.as_deref() == Some(wanted)) {
            return Ok(at);
        }
        let rank = self.dims.len();
        let number = wanted.parse::<i64>().ok().and_then(|number| {
            let from_end = if number < 0 { number.checked_add(i64::try_from(rank).ok()?)? } else { number };
            usize::try_from(from_end).ok().filter(|&at| at < rank)
        });
        number.ok_or_else(|| {
            let named: Vec<&str> = self.names.iter().flatten().map(String::as_str).collect();
            let names =
                if named.is_empty() { String::new() } else { format!(" or one of {}", named.join(", ")) };
            let last = rank.saturating_sub(1);
            Error::new(
                ErrorKind::Usage,
                format!("no dimension {wanted:?}: expected a number from 0 to {last}{names}"),
            )
        })
    }

    /// The dimension that grows with the load when nobody says which: the first one larger than 1.
    #[must_use]
    pub fn default_sweep(&self) -> usize {
        self.dims.iter().position(|&size| size > 1).unwrap_or(0)
    }
}

/// The exact product; 0 as soon as any factor is 0, whatever the others are.
fn product(sizes: impl Iterator<Item = u64> + Clone) -> Result<u128> {
    if sizes.clone().any(|size| size == 0) {
        return Ok(0);
    }
    sizes.into_iter().try_fold(1_u128, |total, size| total.checked_mul(u128::from(size))).ok_or_else(|| {
        Error::new(ErrorKind::Limit, "the number of elements reaches 2^128, more than this arithmetic holds")
            .hint("check the sizes: no GPU holds more than 2^40 elements")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u64]) -> Shape {
        Shape::new(dims.to_vec()).unwrap()
    }

    #[test]
    fn counts_exactly_up_to_128_bits_and_refuses_past_them() {
        assert_eq!(shape(&[234_624, 9_216]).numel().unwrap(), 2_162_294_784);
        let large = u64::MAX;
        assert_eq!(shape(&[large, large]).numel().unwrap(), u128::from(large) * u128::from(large));
        // 2^64 · 2^64 = 2^128 is the first product that does not fit; 2^127 is the largest power that does.
        assert_eq!(shape(&[1 << 63, 1 << 63, 2]).numel().unwrap(), 1 << 127);
        assert_eq!(shape(&[1 << 63, 1 << 63, 4]).numel().unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn a_zero_makes_the_tensor_empty_even_beside_sizes_that_overflow() {
        assert_eq!(shape(&[u64::MAX, u64::MAX, u64::MAX, 0]).numel().unwrap(), 0);
        assert_eq!(shape(&[0, 7]).numel_without(0).unwrap(), 7);
    }

    #[test]
    fn finds_dimensions_by_name_number_and_from_the_end() {
        let named = Shape::named(vec![234_624, 9_216], vec![Some("M".into()), Some("N".into())]).unwrap();
        assert_eq!(named.find_dim("N").unwrap(), 1);
        assert_eq!(named.find_dim("0").unwrap(), 0);
        assert_eq!(named.find_dim("-1").unwrap(), 1);
        for wrong in ["2", "-3", "K", "", "-9223372036854775808"] {
            let error = named.find_dim(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains("0 to 1 or one of M, N"), "{error}");
        }
    }

    #[test]
    fn sweeps_past_leading_ones() {
        assert_eq!(shape(&[1, 234_624, 9_216]).default_sweep(), 1);
        assert_eq!(shape(&[1, 1]).default_sweep(), 0);
    }

    #[test]
    fn refuses_no_dimensions_and_too_many() {
        assert_eq!(Shape::new(vec![]).unwrap_err().kind(), ErrorKind::Usage);
        assert!(Shape::new(vec![1; 64]).is_ok());
        assert_eq!(Shape::new(vec![1; 65]).unwrap_err().kind(), ErrorKind::Limit);
    }
}
