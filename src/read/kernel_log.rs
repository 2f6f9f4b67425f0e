//! The kernel log, and programs that reprint it: Xids, driver faults, segmentation faults, OOM kills.
//!
//! In: a line of dmesg, a journal, `nvidia-smi` or a cluster's health agent. Out: `Data::Xid`, `Data::DriverFault`,
//! `Data::KernelSegfault`, `Data::OomKill`. It leaves joining lines to a process of the job to `case`; a network
//! card's `XID 641` is no Xid.

mod driver;
mod memory;
mod segfault;
mod xid;

use super::lines::{Cx, Line, Taken};

/// Strings of which one stands in every line that this reader wants.
pub const LITERALS: &[&str] = &[
    "Xid",
    "XID",
    "NVRM",
    "egfault",
    "traps:",
    "ANOM_ABEND",
    "oom-kill",
    "oom_kill",
    "ut of memory: Kill",
    "out-of-memory handler",
    "ut Of Memory",
    "OOMKilled",
    "low on memory",
    "memory usage threshold",
    "to memory pressure",
    "memory limit",
    "AER:",
    "fallen off the bus",
    "device handle",
    "GPU is lost",
    "[MMU FAULT]",
    "ersion",
    "CUDA-capable",
    "NVIDIA driver",
    "NVML",
    "No devices were found",
    "abric manager",
    "Remapping Failure",
];

/// Reads a kernel line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    if segfault::read(line, cx) || xid::read(line, cx) || memory::read(line, cx) {
        return Taken::Whole;
    }
    if body.trim_start().starts_with("File \"") {
        return Taken::No;
    }
    if driver::read(line, cx) { Taken::Part } else { Taken::No }
}

#[cfg(test)]
mod tests;
