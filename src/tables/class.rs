//! What failed: the closed list of failure classes and the five families that a person asks for.
//!
//! In: nothing. Out: [`FailureClass`] and [`Family`], spelled as reports spell them. It leaves alone how evidence is
//! weighed.

use serde::{Deserialize, Serialize};

/// What failed. The spelling in reports is the variant in snake case.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// CUDA 700 (old 77), and 717 (old 75), invalid address space.
    IllegalAddress,
    /// CUDA 716 (old 74).
    MisalignedAddress,
    /// CUDA 715 (old 73), and 718 (old 76), invalid program counter.
    IllegalInstruction,
    /// CUDA 209 (old 48), 98 (old 8), 200, 222: no code for this GPU.
    NoKernelImage,
    /// CUDA 710 (old 59).
    DeviceAssert,
    /// CUDA 719 (old 4), and 702 (old 6), time-out.
    LaunchFailure,
    /// CUDA 9, 701, 720: a launch refused for its configuration or resources.
    LaunchConfig,
    /// NCCL, set-up errors of symmetric memory too.
    Nccl,
    /// SIGSEGV or SIGBUS of a host process.
    Segfault,
    /// An abort without a GPU cause: glibc's heap check, pure virtual call, uncaught C++ exception.
    Abort,
    /// CUDA 2: GPU memory.
    GpuOom,
    /// The kernel or a cgroup killed a process for host memory.
    HostOom,
    /// SIGKILL or SIGTERM from outside.
    Killed,
    /// ECC (214, 226, 721), off the bus, NVLink, PCIe, row remap failure.
    Hardware,
    /// CUDA 3, 35, 802–804; GSP, version mismatch, initialisation.
    Driver,
    /// A data race that a sanitizer found.
    Race,
    /// A read of uninitialised memory that a sanitizer found.
    UninitializedRead,
    /// A barrier error that a sanitizer found.
    BarrierError,
    /// Leaked memory that a sanitizer found.
    Leak,
    /// A wrong call of an API.
    ApiError,
    /// CUDA 900–909: stream capture and graphs.
    GraphCapture,
    /// A compiler or linker failed.
    CompileError,
    /// A Python exception without a GPU failure.
    PythonError,
    /// No failure.
    None,
    /// A failure that the input does not settle.
    Undecided,
}

impl FailureClass {
    /// Every class, in the order of the contract.
    pub const ALL: [Self; 25] = [
        Self::IllegalAddress,
        Self::MisalignedAddress,
        Self::IllegalInstruction,
        Self::NoKernelImage,
        Self::DeviceAssert,
        Self::LaunchFailure,
        Self::LaunchConfig,
        Self::Nccl,
        Self::Segfault,
        Self::Abort,
        Self::GpuOom,
        Self::HostOom,
        Self::Killed,
        Self::Hardware,
        Self::Driver,
        Self::Race,
        Self::UninitializedRead,
        Self::BarrierError,
        Self::Leak,
        Self::ApiError,
        Self::GraphCapture,
        Self::CompileError,
        Self::PythonError,
        Self::None,
        Self::Undecided,
    ];

    /// The spelling in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::IllegalAddress => "illegal_address",
            Self::MisalignedAddress => "misaligned_address",
            Self::IllegalInstruction => "illegal_instruction",
            Self::NoKernelImage => "no_kernel_image",
            Self::DeviceAssert => "device_assert",
            Self::LaunchFailure => "launch_failure",
            Self::LaunchConfig => "launch_config",
            Self::Nccl => "nccl",
            Self::Segfault => "segfault",
            Self::Abort => "abort",
            Self::GpuOom => "gpu_oom",
            Self::HostOom => "host_oom",
            Self::Killed => "killed",
            Self::Hardware => "hardware",
            Self::Driver => "driver",
            Self::Race => "race",
            Self::UninitializedRead => "uninitialized_read",
            Self::BarrierError => "barrier_error",
            Self::Leak => "leak",
            Self::ApiError => "api_error",
            Self::GraphCapture => "graph_capture",
            Self::CompileError => "compile_error",
            Self::PythonError => "python_error",
            Self::None => "none",
            Self::Undecided => "undecided",
        }
    }

    /// The class of that spelling.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether it is a fault of device code, which runs on after the host went its way: the error comes out later, at a
    /// call that waits.
    #[must_use]
    pub fn is_device_fault(self) -> bool {
        matches!(
            self,
            Self::IllegalAddress
                | Self::MisalignedAddress
                | Self::IllegalInstruction
                | Self::DeviceAssert
                | Self::LaunchFailure
        )
    }

    /// The user's question that the class answers.
    #[must_use]
    pub fn family(self) -> Family {
        match self {
            Self::IllegalAddress | Self::MisalignedAddress => Family::IllegalAddress,
            Self::IllegalInstruction | Self::NoKernelImage => Family::IllegalInstruction,
            Self::Nccl => Family::Nccl,
            Self::Segfault | Self::Abort => Family::Segfault,
            _ => Family::Other,
        }
    }
}

/// The user's question in five words.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Illegal and misaligned addresses, and invalid address spaces.
    IllegalAddress,
    /// Illegal instructions, invalid program counters and missing images.
    IllegalInstruction,
    /// NCCL.
    Nccl,
    /// Segmentation faults and aborts of the host.
    Segfault,
    /// Everything else.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_spelled_as_serde_spells_it() {
        for class in FailureClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
            assert_eq!(FailureClass::from_name(class.name()), Some(class));
        }
        assert_eq!(FailureClass::from_name("oom"), None);
    }

    #[test]
    fn families_follow_the_contract() {
        assert_eq!(FailureClass::MisalignedAddress.family(), Family::IllegalAddress);
        assert_eq!(FailureClass::NoKernelImage.family(), Family::IllegalInstruction);
        assert_eq!(FailureClass::Abort.family(), Family::Segfault);
        assert_eq!(FailureClass::GpuOom.family(), Family::Other);
    }
}
