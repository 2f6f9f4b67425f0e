//! What compute-sanitizer and cuda-memcheck say.
//!
//! In: nothing; plain types. Out: the types that readers fill. Each says what was printed, never why.

use super::{Dim3, NativeFrame, Place};
use serde::Serialize;

/// What a sanitizer record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SanitizerFinding {
    /// Access outside every allocation.
    OutOfBounds,
    /// Misaligned access.
    Misaligned,
    /// Access to freed or not-yet-usable memory (stream-ordered, pools), where the tool says so.
    FreedMemory,
    /// Another invalid access or instruction (null, stack overflow, invalid PC, tcgen05).
    InvalidAccess,
    /// An API call returned an error: an echo, it locates nothing.
    ApiError,
    /// `malloc`/`free` error (double free, invalid pointer) on device or host API.
    AllocatorError,
    /// Leaked memory.
    Leak,
    /// racecheck: a hazard.
    Race,
    /// initcheck: read of uninitialised memory.
    UninitializedRead,
    /// initcheck: memory never used.
    UnusedMemory,
    /// synccheck: barrier error.
    Barrier,
    /// Stack overflow, illegal instruction and others that the tool reports by name.
    Other,
}

/// A record of compute-sanitizer or cuda-memcheck: text of all generations, or XML. Records that say the same of
/// neighbouring threads are folded into one event with a `count`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SanitizerRecord {
    /// What it found.
    pub finding: SanitizerFinding,
    /// The head line without its prefix.
    pub head: String,
    /// Memory space (`global`, `shared`, `local`).
    pub space: Option<String>,
    /// `read`, `write` or `atomic`.
    pub access: Option<String>,
    /// Size of the access in bytes.
    pub size_bytes: Option<u64>,
    /// Kernel, as printed, with its parameter list (`fill_rows(float *, int, int, int)`).
    pub kernel: Option<String>,
    /// Offset in the kernel (`+0xf0`).
    pub offset: Option<u64>,
    /// Source place: where it happened.
    pub place: Option<Place>,
    /// First thread.
    pub thread: Option<Dim3>,
    /// First block.
    pub block: Option<Dim3>,
    /// Last block and thread of a folded run.
    pub last: Option<(Dim3, Dim3)>,
    /// Address of the access.
    pub address: Option<u64>,
    /// The nearest allocation, where printed.
    pub nearest: Option<NearestAllocation>,
    /// API call of an API error and its CUDA code.
    pub api: Option<String>,
    /// CUDA status number of an API error.
    pub code: Option<u32>,
    /// Second access of a race, or the reason of a barrier error.
    pub detail: Option<String>,
    /// Second place of a race.
    pub other_place: Option<Place>,
    /// Host frames, innermost first.
    pub host: Vec<NativeFrame>,
    /// Python or device frames under the record.
    pub device_frames: Vec<NativeFrame>,
    /// Bytes leaked.
    pub leaked_bytes: Option<u64>,
    /// Records folded into this one, this one included.
    pub count: u64,
}

/// `and is 4,279,427,072 bytes before the nearest allocation at 0x7f75f8000000 of size 4,326,424,576 bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NearestAllocation {
    /// Distance in bytes, as printed.
    pub distance_bytes: u64,
    /// Which side.
    pub side: Side,
    /// First address of the allocation.
    pub base: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// Where an access lies relative to an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Below its first byte.
    Before,
    /// Past its last byte.
    After,
    /// Inside it.
    Inside,
}

/// `ERROR SUMMARY: 2 errors`, `RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SanitizerSummary {
    /// Tool, where the line names it (`racecheck`, `leak`).
    pub tool: Option<String>,
    /// Errors.
    pub errors: Option<u64>,
    /// Warnings.
    pub warnings: Option<u64>,
}
