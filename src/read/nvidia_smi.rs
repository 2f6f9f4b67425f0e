//! `nvidia-smi -q`, as text or XML (`-x`), and the table that plain `nvidia-smi` prints.
//!
//! ```text
//! GPU 00000000:00:06.0
//!     ECC Errors
//!         Volatile
//!             SRAM Uncorrectable Parity                  : 2
//! ```
//!
//! In: the bytes. Out: facts about driver and cards, and [`Data::DriverFault`] for what is unhealthy: a *state* of the
//! machine at the time of the query, which may be older than the failure or have nothing to do with it. A healthy page
//! yields facts alone.

mod fields;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use super::Reading;
use super::event::{Data, DriverFault, DriverFaultKind, EnvironmentFact, Event, InputId, Origin, Span};
use super::scan::clip;

use fields::Field;

/// Unhealthy fields that are kept: a broken GPU shows a page of them.
const FAULT_LIMIT: usize = 64;
/// Different facts that are kept: sixteen GPUs of one machine share nearly all of theirs.
const FACT_LIMIT: usize = 256;
/// Longest value that is kept.
const VALUE_LIMIT_BYTES: usize = 200;

/// Whether the page is XML.
#[must_use]
pub fn is_xml(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"<")
}

/// Reads an XML page.
#[must_use]
pub fn read_xml(input: InputId, bytes: &[u8]) -> Reading {
    let (fields, diagnostics) = fields::of_xml(bytes);
    let lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
    Reading { events: events(input, &fields), lines, diagnostics, ..Reading::default() }
}

/// Adds what a text page holds to what the line readers made of it. A job's script often prints the table first and its own
/// lines after it, so that those stay.
#[must_use]
pub fn add_text(mut reading: Reading, input: InputId, bytes: &[u8]) -> Reading {
    reading.events.iter_mut().for_each(as_state);
    let known: Vec<Data> = reading.events.iter().map(|event| event.data.clone()).collect();
    let own = events(input, &fields::of_text(bytes));
    let is_fault = |event: &Event| matches!(event.data, Data::DriverFault(_));
    let lines: Vec<u64> = own.iter().filter(|event| is_fault(event)).map(|event| event.span.line).collect();
    // A field knows its GPU; the line alone does not.
    reading.events.retain(|event| !is_fault(event) || !lines.contains(&event.span.line));
    reading.events.extend(own.into_iter().filter(|event| is_fault(event) || !known.contains(&event.data)));
    reading.events.sort_by_key(|event| (event.span.line, event.span.byte));
    reading
}

/// Sections that people quote without the page's head.
const QUOTED_SECTIONS: [&str; 3] = ["Remapped Rows", "ECC Errors", "Retired Pages"];
/// Larger texts are logs of jobs, in which nobody quotes a page; looking for the names costs a pass through the text each.
const EXCERPT_BYTES: usize = 16 << 20;
/// Quoted sections that are read.
const SECTION_LIMIT: usize = 32;

/// What sections of a page say that stand in another text, by themselves.
#[must_use]
pub fn excerpts(input: InputId, bytes: &[u8]) -> Vec<Event> {
    let mut found = Vec::new();
    if bytes.len() > EXCERPT_BYTES {
        return found;
    }
    let starts = QUOTED_SECTIONS.iter().flat_map(|name| memchr::memmem::find_iter(bytes, name.as_bytes()));
    for at in starts.take(SECTION_LIMIT) {
        let start = memchr::memrchr(b'\n', bytes.get(..at).unwrap_or_default()).map_or(0, |end| end + 1);
        let rest = bytes.get(start..).unwrap_or_default();
        let mut lines = rest.split_inclusive(|&byte| byte == b'\n');
        let head = lines.next().unwrap_or_default();
        let title = head.trim_ascii();
        if head.len() - head.trim_ascii_start().len() == 0
            || !QUOTED_SECTIONS.iter().any(|name| name.as_bytes() == title)
        {
            continue;
        }
        let indent = |line: &[u8]| line.len() - line.trim_ascii_start().len();
        let below = lines.take_while(|line| !line.trim_ascii().is_empty() && indent(line) > indent(head));
        let len = head.len() + below.map(<[u8]>::len).sum::<usize>();
        let line = memchr::memchr_iter(b'\n', bytes.get(..start).unwrap_or_default()).count() as u64;
        let mut fields = fields::of_text(rest.get(..len).unwrap_or_default());
        for field in &mut fields {
            field.line += line;
            field.byte += start;
        }
        found.extend(
            events(input, &fields).into_iter().filter(|event| matches!(event.data, Data::DriverFault(_))),
        );
    }
    found
}

/// What the tool says of a GPU in its own page is a state, also where it says it on a line of its own.
fn as_state(event: &mut Event) {
    if let Data::DriverFault(fault) = &mut event.data {
        fault.state |= matches!(fault.kind, DriverFaultKind::GpuLost | DriverFaultKind::Ecc);
    }
}

fn events(input: InputId, fields: &[Field]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let (mut facts, mut faults) = (HashSet::new(), 0);
    for field in fields {
        if let Some((name, value)) = fact(field)
            && facts.len() < FACT_LIMIT
            && facts.insert((name, value))
        {
            let fact = EnvironmentFact { name: name.to_owned(), value: value.to_owned() };
            events.push(event(input, field, Data::Environment(fact)));
        }
        if let Some((kind, detail)) = fault(field) {
            let fault = DriverFault { kind, pci: field.gpu.clone(), detail, state: true };
            let known = events.iter().any(|event| {
                // A lost GPU answers every field so.
                matches!(&event.data, Data::DriverFault(other)
                    if kind == DriverFaultKind::GpuLost && other.kind == kind && other.pci == fault.pci)
            });
            if !known && faults < FAULT_LIMIT {
                faults += 1;
                events.push(event(input, field, Data::DriverFault(fault)));
            }
        }
    }
    events
}

fn event(input: InputId, field: &Field, data: Data) -> Event {
    let span = Span { input, line: field.line, byte: field.byte as u64, lines: 1 };
    let gpu = field.gpu.as_deref().map(|gpu| format!("GPU {gpu}: ")).unwrap_or_default();
    let text = format!("{gpu}{}: {}", field.path.replace('/', ", ").replace('_', " "), value(field));
    Event { span, origin: Origin::default(), data, text: clip(&text, Event::TEXT_LIMIT_BYTES / 4).to_owned() }
}

fn value(field: &Field) -> &str {
    clip(&field.value, VALUE_LIMIT_BYTES)
}

fn fact(field: &Field) -> Option<(&'static str, &str)> {
    let name = match field.path.as_str() {
        "driver_version" => "driver",
        "cuda_version" => "driver_cuda",
        "product_name" => "gpu",
        "compute_capability" | "compute_cap" | "cuda_compute_capability" => "compute_capability",
        _ => return None,
    };
    let value = value(field);
    let absent = value.is_empty() || matches!(value, "N/A" | "Not Found" | "[N/A]" | "ERR!");
    (!absent).then_some((name, value))
}

/// What a field says that is unhealthy.
fn fault(field: &Field) -> Option<(DriverFaultKind, String)> {
    let text = value(field);
    let (parents, last) = field.path.rsplit_once('/').unwrap_or(("", field.path.as_str()));
    let yes = text.eq_ignore_ascii_case("yes");
    let count = || text.parse::<u64>().is_ok_and(|count| count > 0);
    let detail = |what: String| clip(&what, VALUE_LIMIT_BYTES).to_owned();
    if text == "ERR!" || text.contains("GPU is lost") || text.eq_ignore_ascii_case("unknown error") {
        return Some((DriverFaultKind::GpuLost, detail(format!("{last} can't be read: {text}"))));
    }
    if parents.contains("ecc_errors/volatile") {
        // Older drivers count by the number of bits, per memory and in total.
        let uncorrectable =
            last.contains("uncorrectable") || parents.ends_with("double_bit") && last == "total";
        return (uncorrectable && count())
            .then(|| (DriverFaultKind::Ecc, detail(format!("{last} since the driver was loaded: {text}"))));
    }
    let says = match last {
        _ if parents.contains("remapped_rows") && last.ends_with("pending") => {
            "a row remap waits for a reset"
        }
        "remapping_failure_occurred" | "remapped_row_failure" => "a row remap failed",
        _ if parents.contains("retired_pages") && last.starts_with("pending") => "pages wait to be retired",
        "unrepairable_memory" => "memory can't be repaired",
        "channel_repair_pending" | "tpc_repair_pending" => "a repair waits for a reset",
        "sram_threshold_exceeded" => "more SRAM errors than the card allows",
        "gpu_recovery_action" => {
            let nothing =
                text.is_empty() || ["none", "n/a"].iter().any(|word| text.eq_ignore_ascii_case(word));
            return (!nothing)
                .then(|| (DriverFaultKind::NeedsReset, detail(format!("the driver asks for: {text}"))));
        }
        _ => return None,
    };
    yes.then(|| (DriverFaultKind::Ecc, says.to_owned()))
}
