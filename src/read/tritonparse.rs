//! A tritonparse trace: the last launches before its end, with their arguments, and the compilations that belong to them.
//!
//! In: lines of JSON, one record a line (`.ndjson`, unpacked). Out: [`Trace`]. A launch that stands last in a trace was
//! launched last: nothing says that it failed, and an earlier one may have. It leaves that question to the verdict.
//!
//! ```text
//! {"event_type":"launch","pid":435,"name":"fused","stream":0,"grid":[1833,72],"compilation_metadata":{"hash":"3e10…"},
//!  "extracted_args":{"y_ptr":{"type":"tensor","shape":[234624,9216],"stride":[9216,1],…},"M":{"type":"int","value":234624}}}
//! ```
//!
//! Records are flushed one by one, so that a process that dies leaves the last launch, or the beginning of it: a cut last
//! line is kept apart and used for nothing.

mod compilation;
mod events;
mod launch;
#[cfg(test)]
mod tests;

use memchr::memmem;

use crate::read::loose_json::{self, Json};

pub use compilation::Compilation;
pub use events::events;
pub use launch::{Argument, Launch, Tensor};

/// Longest line that is parsed: a compilation carries five texts of the compiler.
const LINE_LIMIT_BYTES: usize = 32 << 20;
/// Most bytes that are parsed of one trace.
const PARSED_LIMIT_BYTES: usize = 512 << 20;
/// Launches that are kept: different ones, the newest.
pub const LAUNCH_LIMIT: usize = 8;
/// Launch records that are parsed to find them: a loop launches one kernel with the same arguments over and over.
const PARSED_LAUNCHES: usize = 2_000;
/// Compilations that are kept: those of the launches first, then the newest.
const COMPILATION_LIMIT: usize = 32;
/// Bytes of a line in which its kind stands: the writer puts it first.
const HEAD_BYTES: usize = 200;

/// What a trace holds.
#[derive(Debug, Default)]
pub struct Trace {
    /// Different launches, the newest first.
    pub launches: Vec<Launch>,
    /// Compilations, those of the launches first.
    pub compilations: Vec<Compilation>,
    /// Lines.
    pub lines: u64,
    /// Launch records in the whole trace, parsed or not.
    pub launch_records: u64,
    /// Sentences about what was left out.
    pub diagnostics: Vec<String>,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// Line, counted from 1.
    pub line: u64,
    /// Offset of its first byte.
    pub byte: usize,
}

/// What a line is, as its first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Launch,
    Compilation,
    Other,
}

struct Record<'a> {
    at: At,
    kind: Kind,
    bytes: &'a [u8],
}

/// Reads a trace.
#[must_use]
pub fn read(bytes: &[u8]) -> Trace {
    let mut trace = Trace::default();
    let records = records(bytes, &mut trace);
    let mut budget = PARSED_LIMIT_BYTES;
    launches(&records, &mut trace, &mut budget);
    compilations(&records, &mut trace, &mut budget);
    if budget == 0 {
        trace
            .diagnostics
            .push(format!("more than {} MiB of records; the rest was not read", PARSED_LIMIT_BYTES >> 20));
    }
    if trace.launch_records == 0 && trace.lines > 0 {
        trace.diagnostics.push(
            "no launch in the trace; with enable_trace_launch=True (or TRITON_TRACE_LAUNCH=1) the next one has them".to_owned(),
        );
    }
    trace
}

/// Splits the lines and tells launches from compilations, without parsing.
fn records<'a>(bytes: &'a [u8], trace: &mut Trace) -> Vec<Record<'a>> {
    let mut records = Vec::new();
    let mut too_long = 0_u64;
    let mut start = 0;
    while start < bytes.len() {
        let rest = bytes.get(start..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest);
        let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        trace.lines += 1;
        let at = At { line: trace.lines, byte: start };
        let whole = end.is_some() || line.trim_ascii_end().ends_with(b"}");
        match kind(line) {
            Kind::Other => {}
            kind if !whole => trace.diagnostics.push(cut(kind, at, line)),
            kind => {
                trace.launch_records += u64::from(kind == Kind::Launch);
                match line.len() <= LINE_LIMIT_BYTES {
                    true => records.push(Record { at, kind, bytes: line }),
                    false => too_long += 1,
                }
            }
        }
        start += line.len() + 1;
    }
    if too_long > 0 {
        trace
            .diagnostics
            .push(format!("{too_long} records of more than {} MiB were not read", LINE_LIMIT_BYTES >> 20));
    }
    records
}

fn kind(line: &[u8]) -> Kind {
    let head = line.get(..HEAD_BYTES).unwrap_or(line);
    // Another program may have sorted the keys. Within a text of the line the quotes are escaped, so that this is no text's.
    let value = value_of_kind(head).or_else(|| value_of_kind(line)).unwrap_or_default();
    if value.starts_with(b"launch\"") {
        Kind::Launch
    } else if value.starts_with(b"compilation\"") {
        Kind::Compilation
    } else {
        Kind::Other
    }
}

/// What follows the opening quote of the event's kind.
fn value_of_kind(line: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"\"event_type\"";
    let rest = line.get(memmem::find(line, KEY)? + KEY.len()..)?.trim_ascii_start();
    rest.strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")
}

/// The sentence about a record that the process did not finish writing.
fn cut(kind: Kind, at: At, line: &[u8]) -> String {
    let what = match kind {
        Kind::Launch => "launch",
        _ => "compilation",
    };
    let name = loose_json::decode(line, 0)
        .ok()
        .and_then(|json| json.plain.text(json.plain.get(json.root, "name")?).map(str::to_owned))
        .map(|name| format!(" of {}", launch::shortened(&name)))
        .unwrap_or_default();
    format!(
        "its last line ({}) is cut after {} bytes: the record of a {what}{name} that was being written; it is not used",
        at.line,
        line.len()
    )
}

fn parse<'a>(record: &Record<'a>, trace: &mut Trace, budget: &mut usize) -> Option<Json<'a>> {
    if record.bytes.len() > *budget {
        *budget = 0;
        return None;
    }
    *budget -= record.bytes.len();
    let json = loose_json::decode(record.bytes, 0);
    match json {
        Ok(json) if json.stopped.is_none() => Some(json),
        Ok(json) => {
            complain(trace, record.at, json.stopped.as_deref().unwrap_or("it ends early"));
            None
        }
        Err(error) => {
            complain(trace, record.at, &error.to_string());
            None
        }
    }
}

fn complain(trace: &mut Trace, at: At, why: &str) {
    const COMPLAINTS: usize = 8;
    if trace.diagnostics.len() < COMPLAINTS {
        trace.diagnostics.push(format!("line {}: {why}", at.line));
    }
}

/// The newest launches, from the end backwards.
fn launches(records: &[Record<'_>], trace: &mut Trace, budget: &mut usize) {
    let found = records.iter().rev().filter(|record| record.kind == Kind::Launch);
    for record in found.take(PARSED_LAUNCHES) {
        if trace.launches.len() >= LAUNCH_LIMIT || *budget == 0 {
            return;
        }
        let Some(json) = parse(record, trace, budget) else { continue };
        let Some(launch) = launch::read(&json, record.at) else { continue };
        if !trace.launches.iter().any(|known| known.is_same(&launch)) {
            trace.launches.push(launch);
        }
    }
}

/// The compilations of the launches, by hash; then the newest of other kernels.
fn compilations(records: &[Record<'_>], trace: &mut Trace, budget: &mut usize) {
    let hashes: Vec<String> = trace.launches.iter().filter_map(|launch| launch.hash.clone()).collect();
    let all = || records.iter().rev().filter(|record| record.kind == Kind::Compilation);
    let wanted =
        |record: &Record<'_>| hashes.iter().any(|hash| memmem::find(record.bytes, hash.as_bytes()).is_some());
    let (own, other): (Vec<_>, Vec<_>) = all().partition(|record| wanted(record));
    for record in own.into_iter().chain(other) {
        if trace.compilations.len() >= COMPILATION_LIMIT || *budget == 0 {
            return;
        }
        let Some(json) = parse(record, trace, budget) else { continue };
        let Some(compilation) = compilation::read(&json, record.at) else { continue };
        if !trace.compilations.iter().any(|known| known.is_same(&compilation)) {
            trace.compilations.push(compilation);
        }
    }
}
