//! Whether a block and a thread that ran past the end of a buffer may be the launch's last ones: only there a missing mask shows.
//!
//! In: a sanitizer record with its nearest allocation, and the launch's grid where one is known. Out: [`Tail`]. A block in the
//! middle of a launch passes the end by an index of its own: a length, a stride or a value that came from memory.

use crate::case::Case;
use crate::read::event::{Data, Dim3, SanitizerRecord};

use super::super::summary::base_name;

/// What block and thread say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// The element is the one that this thread has in a launch of one thread an element: the tail, counted out.
    Exact,
    /// The block is the last one of its grid along an axis.
    Last,
    /// Nothing speaks against it.
    Possible,
    /// It cannot be the tail.
    No,
}

/// Largest number of elements that a block covers.
const BLOCK_MOST: u64 = 1 << 16;
/// Largest number that it covers in rows: a tile of a wide matrix.
const TILE_MOST: u64 = 1 << 22;
/// Elements that a block covers are whole warps.
const WARP: u64 = 32;

/// Whether block and thread may be the tail.
#[must_use]
pub fn tail(case: &Case, record: &SanitizerRecord) -> Tail {
    let (Some(block), Some(thread), Some(nearest), Some(address)) =
        (record.block, record.thread, record.nearest, record.address)
    else {
        return Tail::Possible;
    };
    let size = record.size_bytes.unwrap_or(1).max(1);
    let element = address.saturating_sub(nearest.base) / size;
    let count = nearest.size_bytes.div_ceil(size);
    let place = Place { block, thread, element, count };
    // An atomic adds to a bin or a counter, and which one its operand says.
    let by_value = record.access.as_deref() == Some("atomic");
    judge(place, by_value, grid(case, record))
}

fn judge(place: Place, by_value: bool, grid: Option<Dim3>) -> Tail {
    if grid.is_some_and(|grid| !is_last(place.block, grid)) {
        return Tail::No;
    }
    if place.is_exact() {
        return if grid.is_none() && place.block == [0; 3] { Tail::Possible } else { Tail::Exact };
    }
    let first = place.block == [0; 3] && place.thread == [0; 3];
    let begins_outside = place.is_linear() && !place.begins_inside();
    match grid {
        _ if by_value => Tail::No,
        Some(_) => Tail::Last,
        None if first || begins_outside => Tail::No,
        None => Tail::Possible,
    }
}

/// An access in a launch.
#[derive(Debug, Clone, Copy)]
struct Place {
    block: Dim3,
    thread: Dim3,
    /// Element of the access's own size, counted from the start of the allocation.
    element: u64,
    /// Elements of the allocation.
    count: u64,
}

impl Place {
    /// Whether only the x axis is in use, as far as block and thread show.
    fn is_linear(&self) -> bool {
        let [_, block_y, block_z] = self.block;
        let [_, thread_y, thread_z] = self.thread;
        [block_y, block_z, thread_y, thread_z] == [0; 4]
    }

    /// Whether `block × width + thread` is the element, for a width of whole warps, and the block begins in the buffer.
    fn is_exact(&self) -> bool {
        let ([block, ..], [thread, ..]) = (self.block, self.thread);
        if !self.is_linear() || self.element < self.count {
            return false;
        }
        if block == 0 {
            return thread > 0 && thread == self.element;
        }
        let Some(before) = self.element.checked_sub(thread) else { return false };
        let width = before / block;
        before % block == 0
            && width % WARP == 0
            && (WARP..=BLOCK_MOST).contains(&width)
            && thread < width
            && before <= self.count
    }

    /// Whether a block that covers this element can begin in the buffer at all: blocks before it cover as many elements each,
    /// and none covers more than a kernel's blocks do.
    fn begins_inside(&self) -> bool {
        let [block, ..] = self.block;
        let smallest = (self.element / block.saturating_add(1)).saturating_add(1).max(WARP);
        smallest <= TILE_MOST && block.checked_mul(smallest).is_some_and(|begin| begin <= self.count)
    }
}

/// Whether a block is the last of its grid along an axis on which there are several; the only block is the last one too.
fn is_last(block: Dim3, grid: Dim3) -> bool {
    let mut axes = block.iter().zip(grid).filter(|(_, size)| *size > 1).peekable();
    axes.peek().is_none() || axes.any(|(at, size)| at.saturating_add(1) >= size)
}

/// The grid of that kernel's launch, where the evidence names one.
fn grid(case: &Case, record: &SanitizerRecord) -> Option<Dim3> {
    let kernel = record.kernel.as_deref()?;
    let bare = |name: &str| name.split(['(', '<']).next().unwrap_or(name).trim().to_owned();
    let same = |name: &str| base_name(&bare(name)) == base_name(&bare(kernel));
    let grids = case.pick(|data| match data {
        Data::FaultingLaunch(launch) if launch.kernel.as_deref().is_some_and(same) => launch.grid,
        Data::LaunchMention(launch) if same(&launch.kernel) => launch.grid,
        _ => None,
    });
    grids.map(|(_, _, grid)| grid).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(count: u64, element: u64, block: Dim3, thread: Dim3) -> Tail {
        judge(Place { block, thread, element, count }, false, None)
    }

    #[test]
    fn the_last_block_of_a_launch_is_told_from_one_in_its_middle() {
        // 1,000 elements in blocks of 256.
        assert_eq!(read(1_000, 1_000, [3, 0, 0], [232, 0, 0]), Tail::Exact);
        // Vectors of four: a block of 64 threads.
        assert_eq!(read(250, 250, [3, 0, 0], [58, 0, 0]), Tail::Exact);
        assert_eq!(read(100, 100, [0, 0, 0], [100, 0, 0]), Tail::Possible);
        // The block begins far past the end of a buffer of one element.
        assert_eq!(read(1, 22, [278, 0, 0], [0, 0, 0]), Tail::No);
        assert_eq!(read(10, 10, [0, 0, 0], [0, 0, 0]), Tail::No);
        // Bin 233 of 232.
        let place = Place { block: [8, 0, 0], thread: [17, 0, 0], element: 233, count: 232 };
        assert_eq!(judge(place, true, None), Tail::No);
        // A block would have to cover millions of elements.
        assert_eq!(read(9_112_082_944, 9_112_108_294, [779, 0, 0], [8, 0, 0]), Tail::No);
        // Rows in y: nothing tells.
        assert_eq!(read(10_000, 10_050, [1, 6, 0], [18, 4, 0]), Tail::Possible);
    }

    #[test]
    fn of_a_known_grid_only_the_last_block_counts() {
        assert!(is_last([3, 0, 0], [4, 1, 1]) && !is_last([2, 0, 0], [4, 1, 1]));
        assert!(is_last([0, 0, 0], [1, 1, 1]));
        assert!(is_last([1, 7, 0], [16, 8, 1]) && !is_last([1, 6, 0], [16, 8, 1]));
        let place = Place { block: [3, 0, 0], thread: [232, 0, 0], element: 1_000, count: 1_000 };
        assert_eq!(judge(place, false, Some([4, 1, 1])), Tail::Exact);
        assert_eq!(judge(place, false, Some([8, 1, 1])), Tail::No);
    }
}
