//! Driver and bus lines without an Xid, and what `nvidia-smi` and frameworks say when there is no usable driver.
//!
//! In: a line. Out: [`Data::DriverFault`]. Corrected bus errors are left out: healthy machines print them.

use super::super::event::{Data, DriverFault, DriverFaultKind};
use super::super::lines::{Cx, Line};
use super::super::scan::{after, clip, has_any_case};

/// Longest text that an event keeps.
const DETAIL_LIMIT_BYTES: usize = 400;

/// Reads such a line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let Some(kind) = kind(body) else { return false };
    let pci = bus_id(body).or_else(|| {
        cx.before(line, 2).iter().find_map(|line| bus_id(line.body()).filter(|_| is_driver(line.body())))
    });
    cx.push(
        line,
        Data::DriverFault(DriverFault {
            kind,
            pci,
            detail: clip(body.trim(), DETAIL_LIMIT_BYTES).to_owned(),
            // A field of `nvidia-smi -q`.
            state: has_any_case(body, "remapping failure occurred"),
        }),
    );
    true
}

fn is_driver(body: &str) -> bool {
    body.contains("NVRM") || body.contains("nvidia")
}

fn kind(body: &str) -> Option<DriverFaultKind> {
    let any = |words: &[&str]| words.iter().any(|word| has_any_case(body, word));
    if any(&["fallen off the bus", "unable to determine the device handle", "gpu is lost", "gpuislost"]) {
        return Some(DriverFaultKind::GpuLost);
    }
    if any(&["api mismatch", "driver/library version mismatch", "nvidia driver on your system is too old"]) {
        return Some(DriverFaultKind::VersionMismatch);
    }
    if any(&[
        "no cuda-capable device",
        "no cuda-capable gpu",
        "found no nvidia driver",
        "couldn't communicate with the nvidia driver",
        "could not find any nvidia driver",
    ]) || body.trim() == "No devices were found"
    {
        return Some(DriverFaultKind::NoDevice);
    }
    if body.contains("SXid")
        || any(&["fabric manager", "fabricmanager"]) && any(&["fail", "error", "not running", "abort"])
    {
        return Some(DriverFaultKind::Nvlink);
    }
    if body.contains("AER:") {
        let fatal = any(&["uncorrect", "fatal"]) && !any(&["severity=corrected", "non-fatal"]);
        return fatal.then_some(DriverFaultKind::Pcie);
    }
    if any(&["failed to initialize nvml"]) {
        return Some(DriverFaultKind::Init);
    }
    if any(&["remapping failure occurred"]) {
        return after(body, ":").is_some_and(|value| value.trim() == "Yes").then_some(DriverFaultKind::Ecc);
    }
    if !body.contains("NVRM") {
        return None;
    }
    if any(&[
        "rminitadapter failed",
        "rm_init_adapter failed",
        "reset_required",
        "rminitnvdevice",
        "failed to initialize",
    ]) {
        return Some(DriverFaultKind::Init);
    }
    // The history of calls to the firmware is printed when one of them failed.
    if body.contains("RPC history (") || body.contains("RPC event history (") {
        return Some(DriverFaultKind::Gsp);
    }
    if body.contains("GSP") && any(&["timed out", "timeout", "heartbeat", "fail", "crash", "exception"]) {
        return Some(DriverFaultKind::Gsp);
    }
    if any(&["nvlink"]) && any(&["fatal", "fail", "error"]) {
        return Some(DriverFaultKind::Nvlink);
    }
    if any(&["uncorrectable", "double bit", "double-bit", "dbe", "row remap"])
        && any(&["ecc", "remap", "retire"])
    {
        return Some(DriverFaultKind::Ecc);
    }
    None
}

/// `0000:b3:00.0` or `00000000:B3:00` in a line.
fn bus_id(body: &str) -> Option<String> {
    body.split([' ', '(', ')', ',', '\'', '[', ']'])
        .map(|word| word.trim_start_matches("PCI:").trim_start_matches("GPU-").trim_start_matches("GPU"))
        .find_map(|word| {
            let word = word.trim_end_matches([':', '.']);
            let parts: Vec<&str> = word.split(':').collect();
            let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            let [domain, bus, device] = parts.as_slice() else { return None };
            let device_number = device.split('.').next().unwrap_or("");
            let fits = matches!(domain.len(), 4 | 8) && bus.len() == 2 && device_number.len() == 2;
            (fits && is_hex(domain) && is_hex(bus) && is_hex(device_number)).then(|| word.to_owned())
        })
}
