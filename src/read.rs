//! Bytes to events, one file a producer; knows nothing of verdicts.
//!
//! In: the decoded bytes of one text input. Out: [`Reading`]: events in the order in which they stand, and what could
//! not be understood. A prefilter (one multi-pattern pass) picks the lines that deserve a parser; those lines lose their
//! prefixes and go to the producers whose literals they hold. It leaves alone what an event means for the incident.

pub mod advice;
pub mod capability;
pub mod compile;
pub mod coredump;
pub mod cuda_gdb;
pub mod cuda_status;
pub mod dcgm;
pub mod device_assert;
pub mod environment;
pub mod event;
pub mod exception;
pub mod flight_recorder;
pub mod gpu_memory;
pub mod input;
pub mod kernel_log;
mod launch_line;
pub mod launcher;
pub mod library;
pub mod lines;
pub mod loose_json;
mod mention;
pub mod model_config;
#[cfg(test)]
mod mutations;
pub mod nccl;
pub mod nccl_ras;
pub mod nested;
pub mod nvidia_smi;
pub mod pattern;
pub mod pickle;
pub mod place;
pub mod plain;
pub mod prefilter;
pub mod prefix;
pub mod probe_report;
pub mod process_group;
pub mod producers;
pub mod progress;
mod prose;
pub mod rocm;
pub mod sanitizer;
pub mod sanitizer_xml;
pub mod scan;
pub mod shapes;
pub mod signal;
pub mod stack_dump;
mod steps;
mod tail;
pub mod times;
pub mod traceback;
pub mod tritonparse;
pub mod unknown;
mod usage;
pub mod went_on;

pub use input::{Artifact, InputReading, read_input};
pub use lines::{Cx, Line, Stream, Taken};
pub use prefilter::{Candidate, candidates, literals};
pub use progress::Progress;

use crate::read::event::{Event, InputId};
use lines::segments;
use producers::PRODUCERS;

/// What the readers made of one text input.
#[derive(Debug, Default)]
pub struct Reading {
    /// Events, in the order of their first line.
    pub events: Vec<Event>,
    /// Lines of the input.
    pub lines: u64,
    /// Lines that reached a parser.
    pub candidate_lines: u64,
    /// Sentences about what was left out.
    pub diagnostics: Vec<String>,
    /// When its lines were printed, where they carry dates.
    pub times: Option<times::Times>,
    /// What follows its last error, where anything does.
    pub went_on: Option<went_on::WentOn>,
    /// Errors that the program survived.
    pub survived: Vec<went_on::Survived>,
    /// Whether its last lines say that all went well.
    pub ends_well: bool,
}

/// Most events that one input may yield. A log that repeats an error a million times says nothing new after this many.
pub const EVENT_LIMIT: usize = 200_000;

/// Reads one text input.
#[must_use]
pub fn read_text(input: InputId, bytes: &[u8]) -> Reading {
    read_text_watched(input, bytes, &Progress::default())
}

/// As [`read_text`], and counts the bytes as it goes through them.
#[must_use]
pub fn read_text_watched(input: InputId, bytes: &[u8], progress: &Progress) -> Reading {
    let mut scan = prefilter::scan(bytes);
    let mut reader = Reader::new(input, bytes);
    let mut batch = scan.next();
    let mut counted = 0;
    // The next lines are searched for while these are parsed: parsing must go in order, searching need not.
    while let Some(candidates) = batch {
        let full = reader.is_full();
        let (next, ()) = rayon::join(
            || if full { None } else { scan.next() },
            || candidates.iter().for_each(|candidate| reader.read(candidate)),
        );
        batch = next;
        progress.add(scan.bytes_done() - counted);
        counted = scan.bytes_done();
    }
    scan.skip_to_end();
    progress.add(scan.bytes_done() - counted);
    tail::read(input, bytes, scan.lines(), &mut reader.cx);
    reader.finish(scan.lines())
}

/// Reads candidates in order.
struct Reader<'a> {
    input: InputId,
    bytes: &'a [u8],
    cx: Cx<'a>,
    candidate_lines: u64,
    last_line: u64,
    diagnostics: Vec<String>,
    prose: prose::Prose,
}

impl<'a> Reader<'a> {
    fn new(input: InputId, bytes: &'a [u8]) -> Self {
        let cx = Cx::new(input, bytes);
        Self {
            input,
            bytes,
            cx,
            candidate_lines: 0,
            last_line: 0,
            diagnostics: Vec::new(),
            prose: prose::Prose::of(bytes),
        }
    }

    fn is_full(&self) -> bool {
        self.cx.events().len() >= EVENT_LIMIT
    }

    fn read(&mut self, candidate: &Candidate) {
        if self.is_full() {
            if self.diagnostics.is_empty() {
                let line = candidate.line;
                self.diagnostics.push(format!(
                    "more than {EVENT_LIMIT} events: lines from {line} on were not read; cut the log to the part before that line"
                ));
            }
            return;
        }
        self.candidate_lines += u64::from(candidate.line > self.last_line);
        self.last_line = candidate.line;
        if self.read_nested(candidate) {
            return;
        }
        for segment in segments(self.bytes, candidate.line, candidate.start, candidate.end) {
            if !self.cx.is_consumed(segment.byte) {
                let mut line = segment.parse(self.input);
                line.origin.uncaught = usage::is_last_word(&line.text);
                line.origin.quoted = self.prose.is_prose(&line, self.bytes);
                self.offer(&line);
            }
        }
    }

    /// Reads the text that one line carries with escaped line ends. One level only: a text inside a text inside a line has
    /// no end.
    fn read_nested(&mut self, candidate: &Candidate) -> bool {
        let raw = self.bytes.get(candidate.start..candidate.end).unwrap_or_default();
        let Some(inner) = nested::unfold(raw) else { return false };
        let Some(outer) =
            segments(self.bytes, candidate.line, candidate.start, candidate.end).into_iter().next()
        else {
            return false;
        };
        if self.cx.is_consumed(outer.byte) {
            return true;
        }
        let mut reader = Reader::new(self.input, &inner);
        for candidates in prefilter::scan(&inner) {
            for candidate in &candidates {
                for segment in segments(&inner, candidate.line, candidate.start, candidate.end) {
                    if !reader.cx.is_consumed(segment.byte) {
                        reader.offer(&segment.parse(self.input));
                    }
                }
            }
        }
        let outer = outer.parse(self.input);
        let events = reader.finish(0).events;
        let found = !events.is_empty();
        for mut event in events {
            nested::place(&mut event, &outer);
            self.cx.push_event(event);
        }
        found
    }

    /// Offers a line to the producers whose literals it holds, until one has spent it.
    fn offer(&mut self, line: &Line<'_>) {
        if usage::describes_option(line, self.bytes) || mention::is_setting(line) {
            return;
        }
        let hits = prefilter::hits(&line.text);
        for (_, producer) in PRODUCERS.iter().enumerate().filter(|&(index, _)| hits.wants(index)) {
            if (producer.read)(line, &mut self.cx) == Taken::Whole {
                break;
            }
        }
    }

    fn finish(self, lines: u64) -> Reading {
        let Self { cx, candidate_lines, diagnostics, .. } = self;
        let mut events = cx.into_events();
        events.sort_by_key(|event| (event.span.line, event.span.byte));
        Reading {
            events,
            lines,
            candidate_lines,
            diagnostics,
            times: None,
            went_on: None,
            survived: Vec::new(),
            ends_well: false,
        }
    }
}
