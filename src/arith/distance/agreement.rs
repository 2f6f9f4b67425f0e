//! Facts that agree with a recovered index, or speak against it.
//!
//! In: an index that the distance alone gave, and the context. Out: its row and column, the agreements and the
//! conflicts. An agreement must be independent of the distance and unlikely by chance: small block numbers, where
//! many indices would match, count for nothing.

use super::{Allocation, Context, KnownTensor, Wrapped};

/// A block index below this matches too many rows to mean anything when the rows of a block are only guessed.
const TELLING_BLOCK: u64 = 64;

/// A block index below this gives whole columns too often by chance (once in as many).
const TELLING_DIVISOR: u64 = 1_024;

/// A matching column tells something only among at least so many.
const TELLING_COLUMNS: u64 = 256;

/// Torch's allocator rounds blocks above 10 MiB up to this; `cudaMalloc` maps in the same step.
const ROUNDING_BYTES: u128 = 2 << 20;

/// Most threads of a block: a stride up to this may be the block's size as well as a row's length.
const MOST_THREADS: u64 = 1_024;

/// Tallest tile that is tried when nobody says how many rows a block covers.
const TALLEST_TILE_ROWS: u64 = 1_024;

/// An element size is soon right by chance, so it supports a reading only where few stray addresses would fit.
const TELLING_CHANCE_PER_10_000: u64 = 1_000;

/// An independent fact that agrees with the recovered index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Agreement {
    /// The row lies in the reported block.
    RowInBlock {
        /// The block's index along the axis that fits.
        block: u64,
        /// Rows that a block covers.
        block_rows: u64,
        /// True when nobody gave the rows of a block and a power of two was tried.
        guessed: bool,
    },
    /// The column is the reported thread's.
    ColumnOfThread {
        /// The thread's index along x.
        thread: u64,
        /// Elements that one thread takes.
        elements_per_thread: u64,
    },
    /// Nobody gave the columns, but the index is block·n + thread for a whole n: the columns, or the block's size.
    WholeStride {
        /// Index of the block along x.
        block: u64,
        /// Index of the thread along x.
        thread: u64,
        /// Elements from one block to the next.
        stride: u64,
    },
    /// The element size is the tensor's or the pointer's.
    ElementSize,
    /// The allocation is as large as a tensor from the evidence, rounded up.
    AllocationSize {
        /// Bytes of that tensor.
        tensor_bytes: u64,
    },
}

/// A fact that speaks against the recovered index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conflict {
    /// Every known element size is another one.
    ElementSize,
    /// The index lies past the end of every known tensor that has the right size.
    PastTensor,
}

impl Wrapped {
    /// True when the block or the thread agrees.
    #[must_use]
    pub fn has_place(&self) -> bool {
        let place = |one: &Agreement| {
            matches!(
                one,
                Agreement::RowInBlock { .. }
                    | Agreement::ColumnOfThread { .. }
                    | Agreement::WholeStride { .. }
            )
        };
        self.agreements.iter().any(place)
    }

    /// True when an agreement carries the reading against chance and nothing but a place outweighs a conflict.
    pub(super) fn is_supported(&self) -> bool {
        let by_chance = self.chance_per_10_000 > TELLING_CHANCE_PER_10_000;
        let carries = |one: &Agreement| !(by_chance && matches!(one, Agreement::ElementSize));
        self.has_place() || (self.conflicts.is_empty() && self.agreements.iter().any(carries))
    }

    /// True when the row agrees with the block, the columns were given and the height of a block wasn't guessed: enough
    /// beside an allocation that explains everything.
    pub(super) fn has_given_place(&self) -> bool {
        self.agreements.iter().any(|one| matches!(one, Agreement::RowInBlock { guessed: false, .. }))
    }
}

impl Wrapped {
    fn set_columns(&mut self, columns: u64) {
        let index = self.recovered_index;
        self.columns = Some(columns);
        self.row_col = index.checked_div(columns).zip(index.checked_rem(columns));
    }
}

impl Context {
    /// Columns from every source.
    pub(super) fn all_columns(&self) -> impl Iterator<Item = u64> + '_ {
        let given = self.columns.iter().copied();
        given.chain(self.tensors.iter().map(|tensor| tensor.columns)).filter(|&columns| columns > 0)
    }

    /// Element sizes from every source.
    pub(super) fn all_element_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        self.element_bytes
            .iter()
            .copied()
            .chain(self.tensors.iter().filter_map(|tensor| tensor.element_bytes))
    }
}

/// Fills in row, column, agreements and conflicts.
pub(super) fn collect(wrapped: &mut Wrapped, access_bytes: u64, allocation: Allocation, context: &Context) {
    place(wrapped, access_bytes, allocation, context);
    if context.all_element_bytes().any(|bytes| bytes == wrapped.element_bytes) {
        wrapped.agreements.push(Agreement::ElementSize);
    } else if context.all_element_bytes().next().is_some() {
        wrapped.conflicts.push(Conflict::ElementSize);
    }
    size(wrapped, allocation, context);
}

/// Tries every known row length; failing that, infers one from block and thread; failing that, takes the length that
/// is the only one, or that of the tensor which fills the allocation.
fn place(wrapped: &mut Wrapped, access_bytes: u64, allocation: Allocation, context: &Context) {
    let agreeing = |columns: u64| {
        let row = row_in_block(wrapped, columns, context);
        let column = column_of_thread(wrapped, columns, access_bytes, context);
        row.into_iter().chain(column).collect::<Vec<_>>()
    };
    let tried = context.all_columns().map(|columns| (columns, agreeing(columns)));
    let best = tried.filter(|(_, found)| !found.is_empty()).max_by_key(|(_, found)| found.len());
    if let Some((columns, found)) = best {
        wrapped.set_columns(columns);
        wrapped.agreements.extend(found);
    } else if let Some(whole) = whole_stride(wrapped, access_bytes, context) {
        if let Agreement::WholeStride { stride, .. } = whole
            && stride > MOST_THREADS
        {
            wrapped.set_columns(stride);
        }
        wrapped.agreements.push(whole);
    } else if let Some(columns) = plausible_columns(wrapped, allocation, context) {
        wrapped.set_columns(columns);
    }
}

fn plausible_columns(wrapped: &Wrapped, allocation: Allocation, context: &Context) -> Option<u64> {
    let fills = |tensor: &&KnownTensor| fills(tensor, wrapped.element_bytes, allocation).is_some();
    let filling =
        context.tensors.iter().find(fills).map(|tensor| tensor.columns).filter(|&columns| columns > 0);
    let mut all = context.all_columns();
    let first = all.next();
    filling.or(first.filter(|&first| all.all(|other| other == first)))
}

/// row = index / columns; block = row / (rows of a block), for the given height or a power of two.
fn row_in_block(wrapped: &Wrapped, columns: u64, context: &Context) -> Option<Agreement> {
    let first = wrapped.recovered_index.checked_div(columns)?;
    let last =
        wrapped.recovered_index.saturating_add(wrapped.index_span.saturating_sub(1)).checked_div(columns)?;
    let blocks = context.block?;
    let matches = |block: u64, rows: u64| {
        let range = first.checked_div(rows).zip(last.checked_div(rows));
        range.is_some_and(|(low, high)| (low..=high).contains(&block))
    };
    if let Some(rows) = context.block_rows {
        let block = blocks.into_iter().find(|&block| block > 0 && matches(block, rows))?;
        return Some(Agreement::RowInBlock { block, block_rows: rows, guessed: false });
    }
    let mut rows = 1;
    while rows <= TALLEST_TILE_ROWS {
        let telling = blocks.into_iter().find(|&block| block >= TELLING_BLOCK && matches(block, rows));
        if let Some(block) = telling {
            return Some(Agreement::RowInBlock { block, block_rows: rows, guessed: rows > 1 });
        }
        rows *= 2;
    }
    None
}

fn column_of_thread(
    wrapped: &Wrapped,
    columns: u64,
    access_bytes: u64,
    context: &Context,
) -> Option<Agreement> {
    let column = wrapped.recovered_index.checked_rem(columns)?;
    let thread = context.thread?.first().copied().filter(|&thread| thread > 0)?;
    if columns < TELLING_COLUMNS || wrapped.index_span > 1 {
        return None;
    }
    elements_per_thread(wrapped, access_bytes)
        .find(|&elements| thread.checked_mul(elements) == Some(column))
        .map(|elements_per_thread| Agreement::ColumnOfThread { thread, elements_per_thread })
}

/// index = (block·n + thread)·v, where a thread takes v elements. Chance makes n whole once in `block` tries.
fn whole_stride(wrapped: &Wrapped, access_bytes: u64, context: &Context) -> Option<Agreement> {
    let block = context.block?.first().copied().filter(|&block| block >= TELLING_DIVISOR)?;
    let thread = context.thread?.first().copied()?;
    if wrapped.index_span > 1 {
        return None;
    }
    let stride_with = |elements: u64| {
        let start = wrapped.recovered_index.checked_sub(thread.checked_mul(elements)?)?;
        let per_block = block.checked_mul(elements)?;
        (start % per_block == 0).then_some(start / block)
    };
    let stride = elements_per_thread(wrapped, access_bytes).find_map(stride_with)?;
    (stride > thread).then_some(Agreement::WholeStride { block, thread, stride })
}

/// One element a thread, or as many as the access holds.
fn elements_per_thread(wrapped: &Wrapped, access_bytes: u64) -> impl Iterator<Item = u64> {
    let vector = access_bytes.checked_div(wrapped.element_bytes).filter(|&elements| elements > 1);
    [1].into_iter().chain(vector)
}

/// The allocation holds a known tensor, and the index lies in it.
fn size(wrapped: &mut Wrapped, allocation: Allocation, context: &Context) {
    let mut past_all = false;
    for tensor in &context.tensors {
        let Some(tensor_bytes) = fills(tensor, wrapped.element_bytes, allocation) else { continue };
        if u128::from(wrapped.recovered_index) < tensor.numel {
            wrapped.agreements.push(Agreement::AllocationSize { tensor_bytes });
            return;
        }
        past_all = true;
    }
    if past_all {
        wrapped.conflicts.push(Conflict::PastTensor);
    }
}

/// Bytes of `tensor` when it fills the allocation with at most the allocator's rounding to spare.
fn fills(tensor: &KnownTensor, element_bytes: u64, allocation: Allocation) -> Option<u64> {
    if tensor.element_bytes.is_some_and(|known| known != element_bytes) {
        return None;
    }
    let want = tensor.numel.checked_mul(u128::from(element_bytes)).filter(|&want| want > 0)?;
    let spare = u128::from(allocation.bytes).checked_sub(want)?;
    if spare < ROUNDING_BYTES { u64::try_from(want).ok() } else { None }
}
