//! cuda-gdb's words about a fault, and the driver's progress lines while it writes a core dump.
//!
//! In: lines of one stream, prefixes stripped, from the first that belongs to a report. Out: one [`FaultingLaunch`] and
//! how many lines it took. It leaves alone registers, disassembly and source text that a debugger prints between.
//!
//! Every field is optional and no line is required: versions differ, transcripts are pasted in parts.
//!
//! ```text
//! [Current focus set to CUDA kernel 0, grid 1, block (3,0,0), thread (0,0,0), device 0, sm 126, warp 0, lane 0]
//! CUDA Exception: Warp Illegal Address
//! The exception was triggered at PC 0x7fd1077a00f0  gather(float const*, int const*, float*, int)  (crash.cu:20)
//! #0  0x00007fd1077a0110 in gather<<<(4,1,1),(256,1,1)>>> () at /src/crash.cu:20
//! [19:36:57.711837] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)
//! [19:36:57.716849] coredump: Writing ELF file to ./core.nvcudmp
//! ```

use super::event::FaultingLaunch;

mod debugger;
mod progress;

/// A line that holds one of these may start a report.
pub const LITERALS: &[&str] = &[
    "coredump: ",
    "Opening GPU coredump:",
    "CUDA Exception:",
    "CUDA_EXCEPTION_",
    "The exception was triggered at PC",
    "focus set to CUDA kernel",
    "Switching focus to CUDA kernel",
    ">>> (",
    "GridDim  BlockDim",
];

/// Lines that are read for one report at most.
const LINE_LIMIT: usize = 4_096;

/// Reads the report that starts at the first line, and says how many lines it took. `None` where these lines tell of no
/// fault: progress without an exception, a debugger that only loads symbols.
#[must_use]
pub fn read_lines(lines: &[&str]) -> Option<(FaultingLaunch, usize)> {
    let lines = lines.get(..LINE_LIMIT).unwrap_or(lines);
    let first = lines.first()?;
    if progress::text(first).is_some() { progress::read(lines) } else { debugger::read(lines) }
}
