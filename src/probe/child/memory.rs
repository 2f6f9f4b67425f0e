//! Buffers whose every address outside faults.
//!
//! In: a device's memory calls behind [`DeviceMemory`], and a [`Buffer`]. Out: where it lies ([`Laid`]). It launches
//! nothing. The layout of one buffer, all of it reserved for it alone:
//!
//! ```text
//! | 32 GiB unmapped | one piece, mapped again and again | 32 GiB unmapped |
//!                             | buffer, end-aligned       |
//!                   | buffer, start-aligned     |
//! ```
//!
//! A 32-bit index that wraps lands 2³² elements away: 32 GiB at most for elements of 8 bytes. So it meets unmapped
//! addresses and never a neighbour. The piece grows with the buffer, so that a shape larger than the card needs no more
//! than [`MAPPINGS`] mappings.

use crate::probe::protocol::{Backing, Buffer, Placed, Placement};

/// Unmapped bytes on each side.
pub const GUARD_BYTES: u64 = 32 << 30;

/// Smallest guard that is still of use: 2³² elements of one byte.
const LEAST_GUARD_BYTES: u64 = 4 << 30;

/// Most mappings of one buffer. A mapping takes some 25 µs.
pub const MAPPINGS: u64 = 1_024;

/// Largest buffer: half of what an address of 47 bits reaches.
const LARGEST_BYTES: u64 = 1 << 46;

/// A call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallFailed {
    /// The call.
    pub call: &'static str,
    /// The driver's status.
    pub code: i32,
}

/// What a call returns.
pub type Answer<T> = Result<T, CallFailed>;

/// The memory calls of a driver. Sizes are in bytes, addresses are the device's.
pub trait DeviceMemory {
    /// What sizes and places of mappings must be multiples of.
    fn granularity(&mut self) -> Answer<u64>;
    /// Sets addresses aside without memory.
    fn reserve(&mut self, bytes: u64) -> Answer<u64>;
    /// Makes a piece of physical memory and returns its handle.
    fn create(&mut self, bytes: u64) -> Answer<u64>;
    /// Puts a whole piece under reserved addresses.
    fn map(&mut self, address: u64, bytes: u64, handle: u64) -> Answer<()>;
    /// Lets kernels read and write mapped addresses.
    fn allow(&mut self, address: u64, bytes: u64) -> Answer<()>;
    /// An ordinary allocation.
    fn allocate(&mut self, bytes: u64) -> Answer<u64>;
    /// Gives an ordinary allocation back.
    fn free(&mut self, address: u64) -> Answer<()>;
    /// Sets bytes.
    fn set(&mut self, address: u64, byte: u8, bytes: u64) -> Answer<()>;
    /// Copies bytes to the device.
    fn copy(&mut self, address: u64, bytes: &[u8]) -> Answer<()>;
}

/// A buffer that was laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Laid {
    /// What the parent is told.
    pub placed: Placed,
    /// First mapped address.
    pub mapped: u64,
    /// Mapped bytes.
    pub mapped_bytes: u64,
    /// Physical bytes.
    pub physical_bytes: u64,
    /// Bytes of one piece: contents repeat at this distance.
    pub piece_bytes: u64,
    /// Unmapped bytes on each side.
    pub guard_bytes: u64,
    /// What is not as asked for.
    pub note: Option<String>,
}

/// Why a buffer could not be laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayFailed {
    /// The driver said no.
    Call(CallFailed),
    /// It would take more physical memory than is allowed.
    Limit {
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// Its size or alignment makes no sense.
    Size,
}

impl From<CallFailed> for LayFailed {
    fn from(failed: CallFailed) -> Self {
        Self::Call(failed)
    }
}

/// How mapped memory is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    mapped_bytes: u64,
    piece_bytes: u64,
    pieces: u64,
    physical_bytes: u64,
}

fn round_up(value: u64, step: u64) -> Option<u64> {
    value.checked_add(step.checked_sub(1)?).map(|sum| sum / step * step)
}

fn cut(bytes: u64, granularity: u64, backing: Backing) -> Option<Cut> {
    if granularity == 0 || !granularity.is_power_of_two() || bytes > LARGEST_BYTES {
        return None;
    }
    if bytes == 0 {
        return Some(Cut { mapped_bytes: 0, piece_bytes: 0, pieces: 0, physical_bytes: 0 });
    }
    if backing == Backing::Whole {
        let mapped_bytes = round_up(bytes, granularity)?;
        return Some(Cut {
            mapped_bytes,
            piece_bytes: mapped_bytes,
            pieces: 1,
            physical_bytes: mapped_bytes,
        });
    }
    let mut piece_bytes = granularity;
    while round_up(bytes, piece_bytes)? / piece_bytes > MAPPINGS {
        piece_bytes = piece_bytes.checked_mul(2)?;
    }
    let mapped_bytes = round_up(bytes, piece_bytes)?;
    Some(Cut { mapped_bytes, piece_bytes, pieces: mapped_bytes / piece_bytes, physical_bytes: piece_bytes })
}

/// Where the buffer starts inside its mapped range, and how far its guarded end is from the first address that faults.
fn place(buffer: &Buffer, mapped: u64, mapped_bytes: u64) -> (u64, u64) {
    match buffer.placement {
        Placement::Start => (mapped, 0),
        Placement::End => {
            let exact = mapped + mapped_bytes.saturating_sub(buffer.bytes);
            let start = exact & !(buffer.align.max(1) - 1);
            (start, exact - start)
        }
    }
}

/// Makes a buffer. `left` is how much physical memory it may take.
///
/// # Errors
/// [`LayFailed`]; what was mapped before stays mapped, the process ends soon after.
pub fn lay_out(memory: &mut dyn DeviceMemory, buffer: &Buffer, left: u64) -> Result<Laid, LayFailed> {
    if !buffer.align.max(1).is_power_of_two() || buffer.bytes > LARGEST_BYTES {
        return Err(LayFailed::Size);
    }
    if buffer.backing == Backing::Plain {
        return plain(memory, buffer, left, None);
    }
    let granularity = match memory.granularity() {
        Ok(granularity) => granularity,
        Err(failed) => {
            let why = format!("{} returned {}", failed.call, failed.code);
            return plain(memory, buffer, left, Some(&why));
        }
    };
    let cut = cut(buffer.bytes, granularity, buffer.backing).ok_or(LayFailed::Size)?;
    if cut.physical_bytes > left {
        return Err(LayFailed::Limit { needed: cut.physical_bytes, left });
    }
    let (reserved, guard_bytes) = reserve(memory, cut.mapped_bytes)?;
    let mapped = reserved + guard_bytes;
    map(memory, mapped, cut)?;
    let (address, slack_bytes) = place(buffer, mapped, cut.mapped_bytes);
    let note = (guard_bytes < GUARD_BYTES).then(|| {
        format!(
            "{}: only {} GiB unmapped on each side; an index that wraps further away may go unseen",
            buffer.name,
            guard_bytes >> 30
        )
    });
    Ok(Laid {
        placed: Placed {
            name: buffer.name.clone(),
            address,
            bytes: buffer.bytes,
            slack_bytes,
            mappings: cut.pieces,
        },
        mapped,
        mapped_bytes: cut.mapped_bytes,
        physical_bytes: cut.physical_bytes,
        piece_bytes: cut.piece_bytes,
        guard_bytes,
        note,
    })
}

/// Reserves the range with the largest guards that there are addresses for.
fn reserve(memory: &mut dyn DeviceMemory, mapped_bytes: u64) -> Answer<(u64, u64)> {
    let mut guard = GUARD_BYTES;
    loop {
        match memory.reserve(mapped_bytes + 2 * guard) {
            Ok(address) => return Ok((address, guard)),
            Err(failed) if guard / 2 < LEAST_GUARD_BYTES => return Err(failed),
            Err(_) => guard /= 2,
        }
    }
}

fn map(memory: &mut dyn DeviceMemory, mapped: u64, cut: Cut) -> Answer<()> {
    if cut.pieces == 0 {
        return Ok(());
    }
    let handle = memory.create(cut.piece_bytes)?;
    for piece in 0..cut.pieces {
        memory.map(mapped + piece * cut.piece_bytes, cut.piece_bytes, handle)?;
    }
    memory.allow(mapped, cut.mapped_bytes)
}

fn plain(
    memory: &mut dyn DeviceMemory,
    buffer: &Buffer,
    left: u64,
    fallback: Option<&str>,
) -> Result<Laid, LayFailed> {
    if buffer.bytes > left {
        return Err(LayFailed::Limit { needed: buffer.bytes, left });
    }
    let address = memory.allocate(buffer.bytes.max(1))?;
    let note = fallback.map(|why| {
        format!(
            "{}: an ordinary allocation, because this driver maps no addresses by hand ({why}); an access that leaves \
             the buffer faults only where nothing else lies",
            buffer.name
        )
    });
    Ok(Laid {
        placed: Placed {
            name: buffer.name.clone(),
            address,
            bytes: buffer.bytes,
            slack_bytes: 0,
            mappings: 0,
        },
        mapped: address,
        mapped_bytes: buffer.bytes,
        physical_bytes: buffer.bytes,
        piece_bytes: buffer.bytes,
        guard_bytes: 0,
        note,
    })
}

#[cfg(test)]
mod tests;
