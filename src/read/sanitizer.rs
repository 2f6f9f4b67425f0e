//! Text reports of compute-sanitizer and cuda-memcheck, all generations and tools (formats.md 3.2).
//!
//! ```text
//! ========= Invalid __global__ read of size 4 bytes
//! =========     at gather(const float *, const int *, float *, int)+0xf0 in crash.cu:20
//! =========     by thread (9,0,0) in block (3,0,0)
//! =========     Access to 0x7f99e2800000 is out of bounds
//! ```
//!
//! In: a head line, and the run of report lines below it. Out: [`Data::Sanitizer`], one for all records with the same
//! finding, kernel and place, and [`Data::SanitizerSummary`]. It leaves what the program itself prints in between to others.

mod detail;
mod head;
mod run;

use std::collections::HashMap;

use super::event::{Data, Event, SanitizerFinding, SanitizerRecord, SanitizerSummary};
use super::lines::{Cx, Line, Taken, segments};
use super::pattern::Pattern;
use run::{FOREIGN_LIMIT, Run, Step};

pub(super) use detail::hex;
pub(super) use head::empty;

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &[
    "Invalid __",
    "Uninitialized ",
    "Unused memory in",
    "Barrier error detected",
    "Race reported between",
    "hazard detected at",
    "Leaked ",
    "Program hit ",
    "Malloc/Free ",
    "= COMPUTE-SANITIZER",
    "= CUDA-MEMCHECK",
    "= Stack overflow",
    "ERROR SUMMARY: ",
    "RACECHECK SUMMARY: ",
    "LEAK SUMMARY: ",
];

static SUMMARY: Pattern = Pattern::new(r"(ERROR|LEAK|RACECHECK) SUMMARY: (\d+)");
static RACES: Pattern = Pattern::new(r"\((\d+) errors?, (\d+) warnings?");
static LEAKS: Pattern = Pattern::new(r"leaked in (\d+) allocation");

/// Lines of other processes that all reports of an input may be looked for behind: hundreds of processes whose reports begin
/// line by line would each be read past all others.
const PASSED_LIMIT: usize = 200_000;
const PASSED: &str = "lines of other processes inside sanitizer reports";

/// Events looked back at for a record of the same place: one program has few of them.
const RECENT: usize = 64;

/// Reads a report that begins on `line`, or its summary.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    if body.contains(" SUMMARY: ") {
        return summary(line, cx);
    }
    let Some(marker) = marker_of(body).filter(|marker| is_report(body, marker)) else { return Taken::No };
    let mut reader = Reader::default();
    let foreign = if cx.spend(PASSED, PASSED_LIMIT) { FOREIGN_LIMIT } else { 0 };
    let mut run = Run::new(line, marker, cx.bytes(), foreign);
    while let Some(step) = run.next(line.input) {
        reader.step(&step, line, cx);
    }
    reader.close(run.number(), line, cx);
    for _ in 0..run.passed() {
        cx.spend(PASSED, PASSED_LIMIT);
    }
    Taken::Whole
}

/// The report's line prefix, `=========` or a custom one; none where the words stand in a sentence.
fn marker_of(body: &str) -> Option<&str> {
    let known = LITERALS.iter().filter_map(|literal| body.find(literal.trim_start_matches("= "))).min()?;
    let head = body.get(..known)?;
    let head = ["Error: ", "Warning: ", "ERROR: ", "WARN: ", "INFO: ", "Potential "]
        .iter()
        .find_map(|word| head.find(word))
        .and_then(|at| head.get(..at))
        .unwrap_or(head);
    let head = head.split("(Warp").next().unwrap_or(head).trim_end();
    let severity = ["Error:", "Warning:", "ERROR:", "WARN:", "INFO:"];
    let head = severity.iter().find_map(|word| head.strip_suffix(word)).unwrap_or(head).trim_end();
    let head = match head.find(" Potential") {
        Some(at) => head.get(..at)?,
        None => head,
    };
    let is_marker = head.ends_with("=========") || !head.chars().any(char::is_alphanumeric);
    let is_bare = !head.is_empty() || body.starts_with("Invalid __") || body.starts_with("Uninitialized __");
    (is_marker && is_bare && head.len() < 64).then_some(head)
}

/// Whether a line is a report's: behind a custom prefix, the head must be one that no other program prints.
fn is_report(body: &str, marker: &str) -> bool {
    const HEADS: [(&str, &str); 6] = [
        ("__", " of size "),
        ("Race reported between", " access at "),
        ("Barrier error detected", "."),
        ("hazard detected at __", " in block"),
        ("Leaked ", " bytes at 0x"),
        ("Program hit ", "API call to"),
    ];
    marker.ends_with("=========")
        || HEADS.iter().any(|(head, more)| body.contains(head) && body.contains(more))
}

/// `ERROR SUMMARY: 2 errors`; the second line about errors that were not printed says nothing new.
fn summary(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    let Some(found) = SUMMARY.captures(body).filter(|_| !body.contains(" contexts")) else {
        return Taken::No;
    };
    if body.contains("were not printed") {
        return Taken::Whole;
    }
    let part = |index| found.get(index).map_or("", |part| part.as_str());
    let mut summary = SanitizerSummary { errors: part(2).parse().ok(), ..SanitizerSummary::default() };
    match part(1) {
        "RACECHECK" => {
            summary.tool = Some("racecheck".to_owned());
            if let Some(counts) = RACES.captures(body) {
                let count = |index| counts.get(index).and_then(|part| part.as_str().parse().ok());
                (summary.errors, summary.warnings) = (count(1), count(2));
            }
        }
        "LEAK" => {
            summary.tool = Some("leak".to_owned());
            summary.errors = LEAKS.number(body).or(summary.errors);
        }
        _ => {}
    }
    cx.push(line, Data::SanitizerSummary(summary));
    Taken::Whole
}

/// A record whose lines are still coming.
#[derive(Debug)]
struct Open {
    record: SanitizerRecord,
    /// The finding as the head alone tells it.
    finding: SanitizerFinding,
    byte: usize,
    end: usize,
    number: u64,
    /// The event that holds a record of the same place already.
    known: Option<usize>,
    /// The text of its `at` line.
    at: String,
}

/// Builds records and folds them.
#[derive(Debug, Default)]
struct Reader {
    open: Option<Open>,
    /// Finding and `at` text of the records of this run, and the event that holds them.
    seen: HashMap<(SanitizerFinding, String), usize>,
}

impl Reader {
    fn step(&mut self, step: &Step<'_>, first: &Line<'_>, cx: &mut Cx<'_>) {
        let text = step.text.as_ref();
        let is_head = !text.starts_with("  ") && !text.trim().is_empty();
        if is_head {
            self.close(step.number, first, cx);
            if let Some(record) = head::record(text) {
                cx.consume_at(step.byte as u64);
                let (byte, end, number) = (step.byte, step.end, step.number);
                let finding = record.finding;
                self.open = Some(Open { record, finding, byte, end, number, known: None, at: String::new() });
            }
            return;
        }
        if text.trim().is_empty() {
            self.close(step.number, first, cx);
            return;
        }
        if text.contains("backtrace") {
            cx.consume_at(step.byte as u64); // Readers of native stacks would look for one here.
        }
        let Some(open) = &mut self.open else { return };
        let text = text.trim_start();
        if let Some(at) = text.strip_prefix("at ") {
            let key = (open.finding, at.to_owned());
            open.known = self.seen.get(&key).copied();
            open.at = key.1;
        }
        // A folded record needs only its thread: parsing its frames would cost most of the time of a long report.
        if open.known.is_some() && !text.starts_with("by thread") {
            return;
        }
        detail::add(text, &mut open.record);
    }

    /// Ends the open record: a new event, or one more in the event of the same place.
    fn close(&mut self, number: u64, first: &Line<'_>, cx: &mut Cx<'_>) {
        let Some(open) = self.open.take() else { return };
        let index = open.known.or_else(|| same_place(&open.record, first, cx));
        let at = match index {
            Some(index) => {
                if let Some(event) = event_at(index, cx) {
                    fold(&open.record, event);
                }
                index
            }
            None => {
                let index = cx.events().len();
                let lines = u32::try_from(number.saturating_sub(open.number)).unwrap_or(u32::MAX).max(1);
                let pieces = segments(cx.bytes(), open.number, open.byte, open.end);
                let line =
                    pieces.into_iter().next().map_or_else(|| first.clone(), |piece| piece.parse(first.input));
                cx.push_block(&line, lines, Data::Sanitizer(Box::new(open.record)));
                index
            }
        };
        if open.known.is_none() && !open.at.is_empty() {
            self.seen.insert((open.finding, open.at), at);
        }
    }
}

fn event_at<'c>(index: usize, cx: &'c mut Cx<'_>) -> Option<&'c mut Event> {
    let back = cx.events().len().checked_sub(index)?;
    cx.recent_events_mut(back).first_mut()
}

/// The recent event of the same process that holds a record of the same finding, kernel and place.
fn same_place(record: &SanitizerRecord, first: &Line<'_>, cx: &Cx<'_>) -> Option<usize> {
    let events = cx.events();
    let from = events.len().saturating_sub(RECENT);
    let found = events.iter().enumerate().skip(from).rev().find(|(_, event)| match &event.data {
        Data::Sanitizer(known) => {
            let same_process = (event.origin.rank, event.origin.pid, &event.origin.process)
                == (first.origin.rank, first.origin.pid, &first.origin.process);
            same_process && key(known) == key(record)
        }
        _ => false,
    });
    found.map(|(index, _)| index)
}

/// What two records must share to be told as one.
fn key(record: &SanitizerRecord) -> impl PartialEq + '_ {
    let caller = match record.finding {
        SanitizerFinding::Leak | SanitizerFinding::UnusedMemory | SanitizerFinding::AllocatorError => record
            .host
            .iter()
            .filter_map(|frame| frame.function.as_deref())
            .find(|function| !function.contains("cudaMalloc") && !function.contains("cuMem")),
        _ => None,
    };
    let other = (record.finding == SanitizerFinding::Race).then_some(&record.other_place);
    (record.finding, &record.kernel, &record.place, &record.api, record.code, caller, other)
}

/// Counts `record` in the event that holds its like.
fn fold(record: &SanitizerRecord, event: &mut Event) {
    let Data::Sanitizer(known) = &mut event.data else { return };
    known.count = known.count.saturating_add(record.count);
    if let (Some(block), Some(thread)) = (record.block, record.thread) {
        known.last = Some((block, thread));
    }
    if let (Some(sum), Some(bytes)) = (&mut known.leaked_bytes, record.leaked_bytes) {
        *sum = sum.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests;
