//! What the kernel log says: Xids, driver faults, segmentation faults, kills for memory.
//!
//! In: nothing; plain types. Out: the types that readers fill. Each says what was printed, never why.

use serde::Serialize;

/// An Xid line of the NVIDIA kernel driver (formats.md 2.6, 3.10).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Xid {
    /// The number.
    pub xid: u32,
    /// PCI bus id as printed (`0000:00:06`).
    pub pci: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Process name.
    pub process: Option<String>,
    /// Text after the number, pid and name.
    pub detail: String,
    /// 31: fault address. None inside virtual machines that print an unusable one.
    pub address: Option<u64>,
    /// 31: `FAULT_PDE`, `FAULT_PTE`, …
    pub fault_type: Option<String>,
    /// 31: `read`, `write`, `atomic`.
    pub access: Option<String>,
    /// 31: engine (`GRAPHICS`, `CE0`).
    pub engine: Option<String>,
    /// 13: the SM's reason (`Misaligned Address`).
    pub sm_reason: Option<String>,
    /// 13: low byte of the ESR register.
    pub esr: Option<u8>,
    /// 13 and 31: unit (`GPC 1, TPC 7, SM 0`, `GPC5 GPCCLIENT_T1_6`).
    pub unit: Option<String>,
    /// `caused by previous Xid N`.
    pub caused_by: Option<u32>,
    /// Lines folded into this event.
    pub count: u64,
}

/// What a driver line without an Xid tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverFaultKind {
    /// `GPU has fallen off the bus`, device handle lost.
    GpuLost,
    /// GSP firmware time-out or heartbeat.
    Gsp,
    /// `RmInitAdapter failed`, initialisation failure.
    Init,
    /// Kernel module and user library differ (`API mismatch`, `Driver/library version mismatch`).
    VersionMismatch,
    /// ECC, row remap, retired pages.
    Ecc,
    /// PCIe AER.
    Pcie,
    /// NVLink, NVSwitch, fabric manager.
    Nvlink,
    /// The driver asks for a reset, a drain or a reboot (`GPU Recovery Action`).
    NeedsReset,
    /// A test of a node diagnostic failed.
    Diagnostic,
    /// No driver, no device (`Found no NVIDIA driver`, `no CUDA-capable device is detected`).
    NoDevice,
}

/// A driver or bus line without an Xid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverFault {
    /// What it tells.
    pub kind: DriverFaultKind,
    /// PCI bus id.
    pub pci: Option<String>,
    /// The text.
    pub detail: String,
    /// True where it is the machine's state when somebody asked (`nvidia-smi`, DCGM), and no event of the driver: it may
    /// be old, and nothing ties it to a failure.
    pub state: bool,
}

/// `python3[2431]: segfault at 0 ip … sp … error 4 in libc.so.6[19bc5c,7f6bbaa28000+189000]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelSegfault {
    /// Thread name (`comm`): not always the process name.
    pub comm: String,
    /// Process (thread) id.
    pub pid: Option<u32>,
    /// Faulting address.
    pub address: Option<u64>,
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Page-fault error bits.
    pub error: Option<u32>,
    /// Object that holds the instruction.
    pub library: Option<String>,
    /// Offset of the instruction in the object.
    pub offset: Option<u64>,
    /// CPU that it was likely on.
    pub cpu: Option<u32>,
    /// True for `traps: … general protection`.
    pub general_protection: bool,
}

/// A process killed for host memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OomKill {
    /// Killed process.
    pub pid: Option<u32>,
    /// Its name.
    pub process: Option<String>,
    /// Resident anonymous memory in bytes.
    pub anon_rss_bytes: Option<u64>,
    /// True where a cgroup's limit did it.
    pub cgroup: bool,
}
