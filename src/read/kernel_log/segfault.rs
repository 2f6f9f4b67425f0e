//! The kernel's word on a process that touched a wrong address or ran a wrong instruction.
//!
//! In: `comm[pid]: segfault at …`, `traps: comm[pid] general protection …`, audit's `ANOM_ABEND`. Out:
//! [`Data::KernelSegfault`], and [`Data::Signal`] for the others.

use super::super::event::{Data, FatalSignal, KernelSegfault, SignalReporter};
use super::super::lines::{Cx, Line};
use super::super::scan::{after, before, between, hex, hex_after, small, small_after};

/// Reads such a line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let data = if let Some(at) = body.find("segfault at ") {
        segfault(body, at)
    } else if body.contains("traps: ") {
        trap(body)
    } else if body.contains("ANOM_ABEND") {
        abend(body)
    } else {
        None
    };
    let Some(data) = data else { return false };
    cx.push(line, data);
    true
}

/// `python3[2431]: segfault at 0 ip 00007f6b… sp … error 4 in libc.so.6[19bc5c,7f6bbaa28000+189000] likely on CPU 15`.
fn segfault(body: &str, at: usize) -> Option<Data> {
    let (comm, pid) = process(body.get(..at)?)?;
    let rest = body.get(at + "segfault at ".len()..)?;
    let mut fault =
        KernelSegfault { comm, pid, address: hex(rest).map(|(value, _)| value), ..KernelSegfault::default() };
    fault.ip = hex_after(rest, " ip ").or_else(|| hex_after(rest, "rip "));
    registers(rest, &mut fault);
    Some(Data::KernelSegfault(fault))
}

/// `traps: python3[12] general protection fault ip:7f.. sp:7f.. error:0 in libc.so[7f..+189000]`; `trap invalid opcode`
/// is a CPU instruction, not a GPU's.
fn trap(body: &str) -> Option<Data> {
    let rest = after(body, "traps: ")?;
    let (comm, pid) = process(rest.split_once(']').map(|(head, _)| head)?)?;
    let signal = if rest.contains("invalid opcode") {
        4
    } else if rest.contains("divide error") {
        8
    } else if rest.contains("general protection") {
        let mut fault = KernelSegfault { comm, pid, general_protection: true, ..KernelSegfault::default() };
        fault.ip = hex_after(rest, "ip:").or_else(|| hex_after(rest, " ip "));
        registers(rest, &mut fault);
        return Some(Data::KernelSegfault(fault));
    } else {
        return None;
    };
    Some(Data::Signal(FatalSignal {
        signal,
        reporter: Some(SignalReporter::Other),
        pid,
        ..FatalSignal::default()
    }))
}

/// Error bits, object and CPU. The kernel prints the bits in hexadecimal.
fn registers(rest: &str, fault: &mut KernelSegfault) {
    fault.error = hex_after(rest, "error ")
        .or_else(|| hex_after(rest, "error:"))
        .and_then(|bits| u32::try_from(bits).ok());
    fault.cpu = small_after(rest, "likely on CPU ");
    let Some(object) = after(rest, " in ") else { return };
    let name = before(object, "[");
    if name.len() == object.len() || name.contains(' ') {
        return;
    }
    fault.library = Some(name.to_owned());
    let Some(range) = between(object, "[", "]") else { return };
    fault.offset = match range.split_once(',') {
        Some((offset, _)) => hex(offset).map(|(value, _)| value),
        None => hex(range).zip(fault.ip).and_then(|((base, _), ip)| ip.checked_sub(base)),
    };
}

/// `comm[pid` or `comm[pid]: ` at the end of `head`.
fn process(head: &str) -> Option<(String, Option<u32>)> {
    let head = head.trim_end_matches([':', ' ', ']']);
    let (comm, pid) = head.rsplit_once('[')?;
    let (pid, rest) = small(pid)?;
    rest.is_empty().then(|| (comm.trim().to_owned(), Some(pid)))
}

/// `type=ANOM_ABEND … pid=12 comm="python3" exe="…" sig=11 res=1`.
fn abend(body: &str) -> Option<Data> {
    Some(Data::Signal(FatalSignal {
        signal: small_after(body, " sig=")?,
        reporter: Some(SignalReporter::Other),
        pid: small_after(body, " pid="),
        ..FatalSignal::default()
    }))
}
