//! Bytes to events, one file a producer; knows nothing of verdicts.
//!
//! In: the decoded bytes of one text input. Out: [`Reading`]: events in the order in which they stand, and what could
//! not be understood. A prefilter (one multi-pattern pass) picks the lines that deserve a parser; those lines lose their
//! prefixes and go to the producers whose literals they hold. It leaves alone what an event means for the incident.

pub mod environment;
pub mod event;
pub mod exception;
pub mod kernel_log;
pub mod launcher;
pub mod lines;
pub mod nccl;
pub mod prefilter;
pub mod prefix;
pub mod process_group;
pub mod producers;
pub mod scan;
pub mod signal;
pub mod traceback;

pub use lines::{Cx, Line, Stream, Taken};
pub use prefilter::{Candidate, candidates, literals};

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
}

/// Most events that one input may yield. A log that repeats an error a million times says nothing new after this many.
pub const EVENT_LIMIT: usize = 200_000;

/// Reads one text input.
#[must_use]
pub fn read_text(input: InputId, bytes: &[u8]) -> Reading {
    let (candidates, lines) = candidates(bytes);
    let mut cx = Cx::new(input, bytes);
    let mut diagnostics = Vec::new();
    let candidate_lines = candidates.len() as u64;
    for candidate in &candidates {
        if cx.events().len() >= EVENT_LIMIT {
            diagnostics.push(format!(
                "more than {EVENT_LIMIT} events: lines from {} on were not read; cut the log to the part before that line",
                candidate.line
            ));
            break;
        }
        for segment in segments(bytes, candidate.line, candidate.start, candidate.end) {
            if cx.is_consumed(segment.byte) {
                continue;
            }
            let line = segment.parse(input);
            let hits = prefilter::hits(&line.text);
            for producer in PRODUCERS.iter().filter(|producer| hits.wants(producer)) {
                if (producer.read)(&line, &mut cx) == Taken::Whole {
                    break;
                }
            }
        }
    }
    let mut events = cx.into_events();
    events.sort_by_key(|event| (event.span.line, event.span.byte));
    Reading { events, lines, candidate_lines, diagnostics }
}
