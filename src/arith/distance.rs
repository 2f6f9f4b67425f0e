//! What the distance between a bad access and an allocation proves.
//!
//! In: the address of an access, its size, the nearest allocation, and what else is known (block, thread, columns,
//! element sizes, tensors). Out: one [`Reading`]. A wrapped signed 32-bit index lands 2³²·(element size) bytes away
//! from where it should have been; every other distance reads as something else, and an allocation so large that it
//! would explain any address is refused. Pages of Xid 31 are `page`'s business, words `report`'s.

mod agreement;
mod page;
#[cfg(test)]
mod tests;
mod wrap;

pub use agreement::{Agreement, Conflict};
pub use page::read_page;

use wrap::{Span, wrap_reading};

/// Past this distance an access is no unguarded tail: 1,024 threads of 16 bytes, unrolled four times.
const NEAR_BYTES: u64 = 64 * 1024;

/// Addresses below this belong to a null pointer plus an offset.
const NULL_PAGE_BYTES: u64 = 64 * 1024;

/// One bad access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Its address.
    pub address: u64,
    /// Bytes that it touched; 0 when unknown.
    pub bytes: u64,
    /// The report calls it misaligned.
    pub reported_misaligned: bool,
}

/// A range of device memory that was handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Allocation {
    /// First address.
    pub base: u64,
    /// Length.
    pub bytes: u64,
}

/// A tensor that may lie in the allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownTensor {
    /// Number of elements.
    pub numel: u128,
    /// Elements of one row, which is the stride between rows; 0 when unknown.
    pub columns: u64,
    /// Bytes of an element, where known.
    pub element_bytes: Option<u64>,
}

/// What is known besides the address. Empty lists and `None` are fine: they can't agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// Index of the faulting block.
    pub block: Option<[u64; 3]>,
    /// Index of the faulting thread in its block.
    pub thread: Option<[u64; 3]>,
    /// Threads of a block along each axis.
    pub block_dim: Option<[u64; 3]>,
    /// Rows that one block covers (`BLOCK_M`).
    pub block_rows: Option<u64>,
    /// Elements of a row, from a source other than a tensor (an argument, the user).
    pub columns: Vec<u64>,
    /// Element sizes of the kernel's pointers or of the tensors in question.
    pub element_bytes: Vec<u64>,
    /// Tensors from the evidence.
    pub tensors: Vec<KnownTensor>,
}

/// How far the reading of a wrapped index is proven (a rerun alone makes it `proven`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strength {
    /// The distance fits, and nothing else was there to agree.
    Suspected,
    /// The distance fits and an independent fact agrees.
    Supported,
}

/// An index that wrapped at 2³¹.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapped {
    /// Bytes of the indexed element.
    pub element_bytes: u64,
    /// Multiple of 2³² that was lost; 1 unless the index passes 3·2³¹ or several wrapped terms were added in 64 bits.
    pub k: u64,
    /// The index as it should have been, in elements from the allocation's base.
    pub recovered_index: u64,
    /// Elements that the address leaves open from `recovered_index` on: 1 for an exact address, a page's worth else.
    pub index_span: u64,
    /// Elements of a row, given or inferred.
    pub columns: Option<u64>,
    /// Row and column of the index, where the columns are known.
    pub row_col: Option<(u64, u64)>,
    /// Independent facts that agree.
    pub agreements: Vec<Agreement>,
    /// Facts that speak against it.
    pub conflicts: Vec<Conflict>,
    /// Other element sizes that fit the distance as well.
    pub other_element_bytes: Vec<u64>,
    /// Share of stray addresses beside this allocation that would fit by chance, in 1/10,000.
    pub chance_per_10_000: u64,
    /// What the facts make of it.
    pub strength: Strength,
}

/// Why nothing better than "wild or stale" can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WildReason {
    /// No allocation is known, so there is no distance.
    NoAllocation,
    /// The allocation is too small to hold an index of 2³¹: a wrap would need at least these bytes.
    TooSmallToWrap {
        /// Smallest allocation in which an index of the smallest fitting element size could have wrapped.
        needed_bytes: u64,
    },
    /// No element size puts the recovered index inside the allocation.
    NoIndexFits,
    /// Several allocations explain the address equally well, so none of them does.
    SeveralFit,
    /// The page lies inside an allocation that was known at another time.
    InsideKnownAllocation,
}

/// Where an address lies against an allocation, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distance {
    /// Before the base.
    Before(u64),
    /// Past the end; 0 is the first byte behind it (memcheck prints that as 1).
    After(u64),
    /// Inside, counted from the base.
    Inside(u64),
}

/// What an address says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// A 32-bit index wrapped.
    Wrapped(Wrapped),
    /// The access runs past the end by a little: a tail block without a mask. Not an overflow.
    TailUnguarded {
        /// Bytes from the allocation's end to the access's end.
        past_end_bytes: u64,
    },
    /// The access starts a little before the base: a wrong base or stride. Not an overflow.
    JustBefore {
        /// Bytes from the access to the base.
        before_bytes: u64,
    },
    /// The address is no multiple of the access size.
    Misaligned {
        /// Bytes past the last multiple of the access size; 0 when the size is unknown.
        off_by_bytes: u64,
        /// Whether the access lies inside the allocation.
        inside: bool,
    },
    /// Called out of bounds, yet aligned and inside: an artefact of a memory pool (expandable segments).
    InsidePoolArtefact {
        /// Bytes from the base.
        offset_bytes: u64,
    },
    /// A null pointer plus an offset.
    NearNull {
        /// The address.
        offset_bytes: u64,
    },
    /// Neither a wrap nor a near miss: a wild index or a stale pointer.
    WildOrStale {
        /// Where it lies, when an allocation is known.
        distance: Option<Distance>,
        /// Why no more can be said.
        reason: WildReason,
    },
    /// The distance would fit a wrap, but this allocation would explain almost any address: no finding.
    TooLargeToTell {
        /// Bytes of an element with which everything fits.
        element_bytes: u64,
        /// From this size on an allocation explains everything: 2³²·element size.
        explains_all_from_bytes: u64,
    },
}

impl Allocation {
    /// Where `address` lies.
    #[must_use]
    pub fn distance(&self, address: u64) -> Distance {
        match address.checked_sub(self.base) {
            None => Distance::Before(self.base.abs_diff(address)),
            Some(offset) if offset < self.bytes => Distance::Inside(offset),
            Some(offset) => Distance::After(offset.saturating_sub(self.bytes)),
        }
    }
}

/// Reads one access beside the allocation that the report calls nearest.
#[must_use]
pub fn read_access(access: Access, nearest: Option<Allocation>, context: &Context) -> Reading {
    if access.reported_misaligned || off_by(access) > 0 {
        let inside = nearest.is_some_and(|near| matches!(near.distance(access.address), Distance::Inside(_)));
        return Reading::Misaligned { off_by_bytes: off_by(access), inside };
    }
    if access.address < NULL_PAGE_BYTES {
        return Reading::NearNull { offset_bytes: access.address };
    }
    let Some(nearest) = nearest else {
        return Reading::WildOrStale { distance: None, reason: WildReason::NoAllocation };
    };
    match nearest.distance(access.address) {
        Distance::Inside(offset) => inside(access, nearest, offset),
        Distance::After(gap) if gap < NEAR_BYTES.max(tile_bytes(context)) => {
            Reading::TailUnguarded { past_end_bytes: gap.saturating_add(access.bytes.max(1)) }
        }
        // An index that wraps lands before its base: past the end the recovered index is never inside.
        Distance::After(gap) => wild(Distance::After(gap), nearest),
        Distance::Before(gap) => before(access, nearest, gap, context),
    }
}

fn inside(access: Access, nearest: Allocation, offset: u64) -> Reading {
    let end = offset.saturating_add(access.bytes);
    if end > nearest.bytes {
        return Reading::TailUnguarded { past_end_bytes: end - nearest.bytes };
    }
    Reading::InsidePoolArtefact { offset_bytes: offset }
}

fn before(access: Access, nearest: Allocation, gap: u64, context: &Context) -> Reading {
    let span = Span { first: access.address, bytes: 1, access_bytes: access.bytes };
    let wrapped = wrap_reading(span, nearest, context);
    if gap <= NEAR_BYTES && !matches!(&wrapped, Some(Reading::Wrapped(found)) if found.has_place()) {
        return Reading::JustBefore { before_bytes: gap };
    }
    wrapped.unwrap_or_else(|| wild(Distance::Before(gap), nearest))
}

fn wild(distance: Distance, nearest: Allocation) -> Reading {
    let needed_bytes = 1_u64 << 31;
    let reason = if nearest.bytes <= needed_bytes {
        WildReason::TooSmallToWrap { needed_bytes }
    } else {
        WildReason::NoIndexFits
    };
    Reading::WildOrStale { distance: Some(distance), reason }
}

/// Bytes past the last multiple of the access size. CUDA wants sizes up to 16 aligned to themselves.
fn off_by(access: Access) -> u64 {
    let natural = matches!(access.bytes, 2 | 4 | 8 | 16);
    if natural { access.address % access.bytes } else { 0 }
}

/// Bytes that one block of rows spans: a tail block without a mask reaches that far past the end.
fn tile_bytes(context: &Context) -> u64 {
    let rows = context.block_rows.unwrap_or(0);
    let columns = context.all_columns().max().unwrap_or(0);
    let element = context.all_element_bytes().max().unwrap_or(1);
    rows.saturating_mul(columns).saturating_mul(element)
}
