//! Why it failed: the closed list of causes.
//!
//! In: nothing. Out: [`CauseKind`], spelled as reports spell it. It leaves alone how certain a cause is.

use serde::{Deserialize, Serialize};

/// A cause that evidence can name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// A 32-bit index or offset wrapped.
    #[serde(rename = "int32_overflow")]
    Int32Overflow,
    /// An access past the end or before the start of its buffer.
    OutOfBounds,
    /// A load or store without the mask that its last block needs.
    MissingMask,
    /// An index or label outside its table.
    BadIndex,
    /// A stride or layout that isn't the buffer's.
    StrideMismatch,
    /// A view whose address isn't aligned for the access.
    MisalignedView,
    /// Memory that was freed while still in use.
    FreedMemory,
    /// A replayed CUDA graph that touches memory which moved or went.
    GraphReplay,
    /// A host pointer given to a kernel.
    HostPointer,
    /// A null pointer.
    NullPointer,
    /// A tensor or launch on another device.
    WrongDevice,
    /// An index past the shared memory of the block.
    SharedMemory,
    /// Padding or group boundary of a quantised kernel.
    QuantBoundary,
    /// A wrong symmetric-memory window.
    SymmWindow,
    /// NaN or Inf in the input.
    NanInput,
    /// Code built for another GPU architecture.
    WrongArch,
    /// A launch past a limit of the GPU.
    LaunchLimit,
    /// Ranks called different collectives, sizes or types.
    CollectiveMismatch,
    /// A rank did not join a collective.
    MissingCollective,
    /// Another rank died first.
    PeerDied,
    /// Network, InfiniBand or sockets.
    Network,
    /// NVLink or NVSwitch.
    Nvlink,
    /// Shared memory of the host (`/dev/shm`) is used up.
    ShmExhausted,
    /// Two ranks on one GPU.
    DuplicateGpu,
    /// Versions of driver, runtime or libraries do not fit together.
    VersionMismatch,
    /// An extension built against another binary interface.
    AbiMismatch,
    /// A stack overflow.
    StackOverflow,
    /// The host's heap is damaged.
    HeapCorruption,
    /// Host memory is used up.
    HostMemory,
    /// GPU memory is used up.
    GpuMemory,
    /// An uncorrectable memory error.
    Ecc,
    /// The GPU fell off the bus or no longer answers.
    GpuLost,
    /// The GPU's system processor timed out.
    GspFirmware,
    /// The sanitizer reports what is no fault.
    SanitizerFalsePositive,
}

impl CauseKind {
    /// Every cause, in the order of the contract.
    pub const ALL: [Self; 34] = [
        Self::Int32Overflow,
        Self::OutOfBounds,
        Self::MissingMask,
        Self::BadIndex,
        Self::StrideMismatch,
        Self::MisalignedView,
        Self::FreedMemory,
        Self::GraphReplay,
        Self::HostPointer,
        Self::NullPointer,
        Self::WrongDevice,
        Self::SharedMemory,
        Self::QuantBoundary,
        Self::SymmWindow,
        Self::NanInput,
        Self::WrongArch,
        Self::LaunchLimit,
        Self::CollectiveMismatch,
        Self::MissingCollective,
        Self::PeerDied,
        Self::Network,
        Self::Nvlink,
        Self::ShmExhausted,
        Self::DuplicateGpu,
        Self::VersionMismatch,
        Self::AbiMismatch,
        Self::StackOverflow,
        Self::HeapCorruption,
        Self::HostMemory,
        Self::GpuMemory,
        Self::Ecc,
        Self::GpuLost,
        Self::GspFirmware,
        Self::SanitizerFalsePositive,
    ];

    /// The spelling in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Int32Overflow => "int32_overflow",
            Self::OutOfBounds => "out_of_bounds",
            Self::MissingMask => "missing_mask",
            Self::BadIndex => "bad_index",
            Self::StrideMismatch => "stride_mismatch",
            Self::MisalignedView => "misaligned_view",
            Self::FreedMemory => "freed_memory",
            Self::GraphReplay => "graph_replay",
            Self::HostPointer => "host_pointer",
            Self::NullPointer => "null_pointer",
            Self::WrongDevice => "wrong_device",
            Self::SharedMemory => "shared_memory",
            Self::QuantBoundary => "quant_boundary",
            Self::SymmWindow => "symm_window",
            Self::NanInput => "nan_input",
            Self::WrongArch => "wrong_arch",
            Self::LaunchLimit => "launch_limit",
            Self::CollectiveMismatch => "collective_mismatch",
            Self::MissingCollective => "missing_collective",
            Self::PeerDied => "peer_died",
            Self::Network => "network",
            Self::Nvlink => "nvlink",
            Self::ShmExhausted => "shm_exhausted",
            Self::DuplicateGpu => "duplicate_gpu",
            Self::VersionMismatch => "version_mismatch",
            Self::AbiMismatch => "abi_mismatch",
            Self::StackOverflow => "stack_overflow",
            Self::HeapCorruption => "heap_corruption",
            Self::HostMemory => "host_memory",
            Self::GpuMemory => "gpu_memory",
            Self::Ecc => "ecc",
            Self::GpuLost => "gpu_lost",
            Self::GspFirmware => "gsp_firmware",
            Self::SanitizerFalsePositive => "sanitizer_false_positive",
        }
    }

    /// The cause of that spelling.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_spelled_as_serde_spells_it() {
        for cause in CauseKind::ALL {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
            assert_eq!(CauseKind::from_name(cause.name()), Some(cause));
        }
        assert_eq!(CauseKind::from_name("rank_died_first"), None);
    }
}
