//! Xid lines of the NVIDIA kernel driver and their reprints.
//!
//! In: a line such as `NVRM: Xid (PCI:0000:00:06): 31, pid=1714, name=python3, …`, old ones without `PCI:`, ones without
//! pid, a device plug-in's `Xid=69 on Device=GPU-…`. Out: [`Data::Xid`], equal lines in a row folded.

use super::super::event::{Data, Event, Stamp, Xid};
use super::super::lines::{Cx, Line};
use super::super::scan::{after, before, between, clip, hex, small, small_after};

/// Longest text that an event keeps.
const DETAIL_LIMIT_BYTES: usize = 400;
/// No Xid is larger; a network card's `XID 641` is.
const XID_LIMIT: u32 = 400;

/// Reads an Xid.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let Some(xid) = driver_line(body).or_else(|| reprint(body)).or_else(|| tegra(body)) else { return false };
    if let Some(Event { data: Data::Xid(known), span, origin, .. }) = cx.last_event()
        && near(origin.time.as_ref(), line.origin.time.as_ref())
    {
        let count = known.count;
        known.count = 1;
        let equal = *known == xid;
        known.count = count;
        if equal {
            known.count += 1;
            let lines = line.number.saturating_sub(span.line) + 1;
            span.lines = u32::try_from(lines).unwrap_or(u32::MAX);
            return true;
        }
    }
    cx.push(line, Data::Xid(xid));
    true
}

/// Longest time between equal lines that tell of one failure, in nanoseconds.
const FOLD_NS: i128 = 600 * 1_000_000_000;

/// Whether two lines can be of one failure: a month later, the same words tell of another one.
fn near(known: Option<&Stamp>, next: Option<&Stamp>) -> bool {
    match (known, next) {
        (Some(known), Some(next)) if known.clock == next.clock => (next.ns - known.ns).abs() <= FOLD_NS,
        _ => true,
    }
}

/// `Xid (PCI:0000:00:06): 31, …`; `SXid` is the switch's.
fn driver_line(body: &str) -> Option<Xid> {
    let at = body.find("Xid (")?;
    if at > 0 && body.as_bytes().get(at - 1) == Some(&b'S') {
        return None;
    }
    let rest = body.get(at + 5..)?;
    let (pci, rest) = rest.split_once(')')?;
    let (number, mut rest) = small(rest.trim_start_matches([':', ' ']))?;
    let mut xid = Xid {
        xid: number,
        pci: Some(pci.trim_start_matches("PCI:").to_owned()).filter(|pci| !pci.trim_matches('.').is_empty()),
        count: 1,
        ..Xid::default()
    };
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(tail) = rest.strip_prefix("pid=") {
            xid.pid = small(tail.trim_start_matches(['\'', '"'])).map(|(pid, _)| pid);
            rest = field_end(tail);
        } else if let Some(tail) = rest.strip_prefix("name=") {
            let name = before(tail, ",").trim().trim_matches(['\'', '"']);
            xid.process = Some(name.to_owned()).filter(|name| name != "<unknown>" && !name.is_empty());
            rest = field_end(tail);
        } else {
            break;
        }
    }
    xid.detail = clip(rest.trim(), DETAIL_LIMIT_BYTES).to_owned();
    xid.pid = xid.pid.or_else(|| small_after(rest, "pid="));
    xid.caused_by = small_after(rest, "previous Xid");
    match number {
        13 => exception(rest, &mut xid),
        31 => page_fault(rest, &mut xid),
        _ => {}
    }
    Some(xid)
}

fn field_end(text: &str) -> &str {
    text.find(',').and_then(|at| text.get(at..)).unwrap_or("")
}

/// `Graphics SM Warp Exception on (GPC 1, TPC 7, SM 0): MMU Fault`, `Graphics Exception: ESR 0x51c730=0x8000017 …`.
fn exception(detail: &str, xid: &mut Xid) {
    if let Some(unit) = between(detail, "Exception on (", ")") {
        xid.unit = Some(unit.to_owned());
        let reason = after(detail, "): ").unwrap_or("").trim();
        xid.sm_reason = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
    }
    if let Some(registers) = after(detail, "ESR ") {
        let value = after(before(registers.trim_start(), " "), "=").and_then(hex);
        xid.esr = value.and_then(|(value, _)| u8::try_from(value & 0xff).ok());
    }
}

/// `MMU Fault: ENGINE GRAPHICS GPC5 GPCCLIENT_T1_6 faulted @ 0x7fe0_b8009000. Fault is of type FAULT_PDE
/// ACCESS_TYPE_VIRT_WRITE`. Inside a virtual machine client, type and address may be unusable.
fn page_fault(detail: &str, xid: &mut Xid) {
    if let Some(rest) = after(detail, "ENGINE ") {
        let words = before(rest, " faulted");
        let (engine, unit) = words.split_once(' ').unwrap_or((words, ""));
        xid.engine = Some(engine.to_owned());
        xid.unit = Some(unit.trim().to_owned()).filter(|unit| !unit.is_empty());
    }
    let kind = after(detail, "of type ").map(|rest| rest.split([' ', ',', '.']).next().unwrap_or(""));
    xid.fault_type = kind.map(str::to_owned);
    let access = after(detail, "ACCESS_TYPE_").unwrap_or("");
    let access = before(before(access, " "), ".");
    xid.access = [("READ", "read"), ("WRITE", "write"), ("ATOMIC", "atomic")]
        .iter()
        .find(|(word, _)| access.contains(word))
        .map(|(_, name)| (*name).to_owned());
    if !detail.contains("UNRECOGNIZED") {
        xid.address = after(detail, "faulted @ ").and_then(split_address);
    }
}

/// `0x7fe0_b8009000`: the halves of a 64-bit address.
fn split_address(text: &str) -> Option<u64> {
    let (high, rest) = hex(text.trim_start())?;
    match rest.strip_prefix('_') {
        Some(low) => {
            let (low, _) = hex(low)?;
            (high <= u64::from(u32::MAX) && low <= u64::from(u32::MAX)).then_some((high << 32) | low)
        }
        None => Some(high),
    }
}

/// `XidCriticalError: Xid=69 on Device=GPU-…, the device will go unhealthy.`, `GPU 3: XID 79`.
fn reprint(body: &str) -> Option<Xid> {
    let speaks = ["Device=", "GPU", "NVRM", "health", "gpu"].iter().any(|word| body.contains(word));
    if !speaks || body.contains("IRQ") || body.contains("SXid") || body.contains("r8169") {
        return None;
    }
    let at = body.find("Xid=").or_else(|| body.find("xid=")).or_else(|| body.find("XID=")).map(|at| at + 4);
    let spaced = || {
        ["XID ", "Xid ", "XID: ", "Xid: ", "XID error ", "Xid error "]
            .iter()
            .find_map(|key| body.find(key).map(|at| at + key.len()))
    };
    let (number, rest) = small(body.get(at.or_else(spaced)?..)?)?;
    let ends = !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '.');
    (number > 0 && number < XID_LIMIT && ends).then(|| Xid {
        xid: number,
        pci: between(body, "PCI:", ")").map(str::to_owned),
        pid: small_after(body, "pid="),
        detail: clip(body.trim(), DETAIL_LIMIT_BYTES).to_owned(),
        count: 1,
        ..Xid::default()
    })
}

/// Tegra's driver numbers its faults as the others do (`error notifier set to 31`) and prints other lines: `nvgpu: 17000000.gpu
/// gv11b_fb_mmu_fault_info_dump:294  [ERR]  [MMU FAULT] mmu engine id:  18, ch id:  479, fault addr: 0x0, …, fault type:
/// invalid pde, access type: virt read,`.
fn tegra(body: &str) -> Option<Xid> {
    let rest = after(body, "[MMU FAULT]").filter(|rest| rest.contains("fault addr:"))?;
    let field = |key: &str| after(rest, key).map(|rest| before(rest, ",").trim().to_owned());
    let access = field("access type:").unwrap_or_default();
    Some(Xid {
        xid: 31,
        address: field("fault addr:").as_deref().and_then(hex).map(|(value, _)| value),
        fault_type: field("fault type:"),
        access: ["read", "write", "atomic"]
            .iter()
            .find(|word| access.contains(**word))
            .map(|&word| word.to_owned()),
        detail: clip(body.trim(), DETAIL_LIMIT_BYTES).to_owned(),
        count: 1,
        ..Xid::default()
    })
}
