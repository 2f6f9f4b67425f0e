//! Shapes, sizes and counts that a log prints near a failure.
//!
//! ```text
//! packed tokens M=234624 intermediate_size=9216 hidden=(234624, 32) dtype=torch.bfloat16
//! fill_rows rows=70000 cols=32768 stride=32768 elements=2293760000
//! feat=torch.Size([349459, 64]), w=torch.Size([64, 3, 3, 3, 64])
//! ```
//!
//! In: the text and where failures stand in it. Out: [`Data::Shape`] events. Shapes are everywhere in ordinary logs, so
//! only the neighbourhood of failures and the head of the log are searched, never the whole. It leaves alone which shape
//! belongs to the failing launch.

mod forms;
mod named;
mod passed;
mod stored;
mod wide;

pub use passed::mark as mark_passed;
pub use wide::mark as mark_wide;

use super::event::{Data, Event, InputId, ShapeMention, Span};
use super::lines::{Line, segments};

/// Logs up to this size are searched whole.
const WHOLE_BYTES: usize = 1 << 20;
/// Bytes searched at the head of a larger log: programs print their configuration there.
const HEAD_BYTES: usize = 64 << 10;
/// Bytes searched before a failure.
const BEFORE_BYTES: usize = 48 << 10;
/// Bytes searched after it.
const AFTER_BYTES: usize = 16 << 10;
/// Failures whose neighbourhood is searched.
const FOCUS_LIMIT: usize = 8;
/// Lines before a failure in which a token count counts as near it.
const TOKEN_LINES: u64 = 200;
/// Lines after it: engines print what they were working on behind the error.
const TOKEN_LINES_AFTER: u64 = 40;
/// Token counts that are kept.
const TOKEN_LIMIT: usize = 4;
/// Shapes that one input may yield.
const SHAPE_LIMIT: usize = 400;

/// Reads the shapes near `focus` (events that tell of failures, in order) and at the head of the log.
#[must_use]
pub fn read_near(input: InputId, bytes: &[u8], focus: &[Span]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    each_line(input, bytes, focus, |line| {
        if worth_reading(line.body()) {
            read_line(line, &mut events);
        }
        events.len() < SHAPE_LIMIT
    });
    events
}

/// Named sizes that together make a shape (`M=234624 N=9216`), as a line of a log would.
#[must_use]
pub fn of_named_sizes(text: &str) -> Vec<ShapeMention> {
    named::shapes(text)
}

/// True for a name that counts tokens (`tokens`, `num_tokens`).
#[must_use]
pub fn counts_tokens(name: &str) -> bool {
    named::counts_tokens(name)
}

/// Token counts that stand near a failure, the nearest last; at most four different ones.
#[must_use]
pub fn token_counts(input: InputId, bytes: &[u8], failure: Span) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let near = failure.line.saturating_sub(TOKEN_LINES)..=failure.line.saturating_add(TOKEN_LINES_AFTER);
    each_line(input, bytes, &[failure], |line| {
        if near.contains(&line.number) && worth_reading(line.body()) {
            for value in named::tokens(line.body()) {
                let data = Data::Value(value);
                events.retain(|event| event.data != data);
                let span = Span { input, line: line.number, byte: line.byte, lines: 1 };
                let text = line.text.chars().take(400).collect();
                events.push(Event { span, origin: line.origin.clone(), data, text });
            }
        }
        line.number <= *near.end()
    });
    events.drain(..events.len().saturating_sub(TOKEN_LIMIT));
    events
}

/// Calls `take` for the lines near `focus` and at the head of the log, until it says that it has enough.
fn each_line(input: InputId, bytes: &[u8], focus: &[Span], mut take: impl FnMut(&Line<'_>) -> bool) {
    let mut more = true;
    for (start, end) in windows(bytes, focus) {
        let mut number =
            1 + memchr::memchr_iter(b'\n', bytes.get(..start).unwrap_or_default()).count() as u64;
        let mut at = start;
        let mut under_frame = false;
        while at < end && more {
            let rest = bytes.get(at..end).unwrap_or_default();
            let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            for segment in segments(bytes, number, at, at + len) {
                let line = segment.parse(input);
                let body = line.body();
                let is_frame = body.trim_start().starts_with("File \"");
                // A source line under a frame is the program's text, nothing that it printed.
                if !is_frame && !under_frame {
                    more &= take(&line);
                }
                under_frame = is_frame;
            }
            at += len + 1;
            number += 1;
        }
    }
}

/// The parts of the log to search, in order, without overlap.
fn windows(bytes: &[u8], focus: &[Span]) -> Vec<(usize, usize)> {
    if bytes.len() <= WHOLE_BYTES {
        return vec![(0, bytes.len())];
    }
    let mut found = vec![(0, line_end(bytes, HEAD_BYTES))];
    for span in focus.iter().take(FOCUS_LIMIT) {
        let at = usize::try_from(span.byte).unwrap_or(0).min(bytes.len());
        let start = line_start(bytes, at.saturating_sub(BEFORE_BYTES));
        found.push((start, line_end(bytes, at.saturating_add(AFTER_BYTES))));
    }
    found.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (start, end) in found {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

fn line_start(bytes: &[u8], at: usize) -> usize {
    bytes.get(..at).and_then(|head| memchr::memrchr(b'\n', head)).map_or(0, |end| end + 1)
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).and_then(|rest| memchr::memchr(b'\n', rest)).map_or(bytes.len(), |len| at + len)
}

/// Two digits in a row, and a sign of a shape or a named value.
fn worth_reading(body: &str) -> bool {
    let bytes = body.as_bytes();
    let digits = bytes.windows(2).any(|pair| pair.iter().all(u8::is_ascii_digit));
    digits && bytes.iter().any(|byte| matches!(byte, b'=' | b':' | b'[' | b'<'))
}

fn read_line(line: &Line<'_>, events: &mut Vec<Event>) {
    let body = line.body();
    let dtype = forms::dtype(body);
    let mentions = forms::shapes(body).into_iter().chain(named::shapes(body));
    for mut mention in mentions {
        mention.dtype = mention.dtype.or_else(|| dtype.clone());
        mention.stored = stored::is_stored(body, &mention);
        push(line, mention, events);
    }
}

fn push(line: &Line<'_>, mention: ShapeMention, events: &mut Vec<Event>) {
    let known = events.iter().rev().take(64).any(|event| match &event.data {
        Data::Shape(shape) => {
            shape.dims == mention.dims && shape.label == mention.label && shape.names == mention.names
        }
        _ => false,
    });
    if known || events.len() >= SHAPE_LIMIT {
        return;
    }
    let span = Span { input: line.input, line: line.number, byte: line.byte, lines: 1 };
    let text = line.text.chars().take(400).collect();
    events.push(Event { span, origin: line.origin.clone(), data: Data::Shape(mention), text });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(text: &str) -> Vec<(Vec<u64>, Vec<String>, Option<String>)> {
        read_near(InputId(0), text.as_bytes(), &[])
            .into_iter()
            .filter_map(|event| match event.data {
                Data::Shape(shape) => Some((shape.dims, shape.names, shape.dtype)),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn named_values_and_tuples_of_one_line() {
        let found =
            dims("packed tokens M=234624 intermediate_size=9216 hidden=(234624, 32) dtype=torch.bfloat16\n");
        assert!(found.contains(&(vec![234_624, 32], vec![], Some("bfloat16".into()))), "{found:?}");
        assert!(
            found.contains(&(
                vec![234_624, 9216],
                vec!["M".into(), "intermediate_size".into()],
                Some("bfloat16".into())
            )),
            "{found:?}"
        );
    }

    #[test]
    fn rows_columns_and_stride() {
        let found = dims("fill_rows rows=70000 cols=32768 stride=32768 elements=2293760000\n");
        assert!(found.iter().any(|(dims, _, _)| dims == &[70_000, 32_768]), "{found:?}");
    }

    #[test]
    fn token_counts_near_a_failure() {
        let log =
            "num_tokens=512\nstep tokens=16384 x\n#new-token: 8192, #queue: 1\nRuntimeError: CUDA error\n";
        let failure = Span { input: InputId(0), line: 4, byte: 0, lines: 1 };
        let found: Vec<(u64, String)> = token_counts(InputId(0), log.as_bytes(), failure)
            .into_iter()
            .filter_map(|event| match event.data {
                Data::Value(value) => Some((event.span.line, format!("{}={}", value.name, value.value))),
                _ => None,
            })
            .collect();
        let want = [(1, "num_tokens=512"), (2, "tokens=16384"), (3, "new-token=8192")];
        assert_eq!(found, want.map(|(line, text)| (line, text.to_owned())));
        let far = format!("tokens=7\n{}x\n", "\n".repeat(300));
        let failure = Span { line: 301, ..failure };
        assert!(token_counts(InputId(0), far.as_bytes(), failure).is_empty());
    }

    #[test]
    fn the_scheduler_output_that_an_engine_dumps_has_the_token_count() {
        let log = "ERROR 09-01 [dump_input.py:78] Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[NewRequestData(req_id=cmpl-1,prompt_token_ids_len=9000,block_ids=([1, 2],))], num_scheduled_tokens={cmpl-1: 8192}, total_num_scheduled_tokens=8192, num_common_prefix_blocks=[0])\nRuntimeError: CUDA error\n";
        let failure = Span { input: InputId(0), line: 2, byte: 0, lines: 1 };
        let found: Vec<Data> =
            token_counts(InputId(0), log.as_bytes(), failure).into_iter().map(|event| event.data).collect();
        let value = super::super::event::NamedValue {
            name: "total_num_scheduled_tokens".to_owned(),
            value: "8192".to_owned(),
        };
        assert_eq!(found, [Data::Value(value)]);
    }

    #[test]
    fn progress_lines_yield_nothing() {
        assert!(dims("[rank0] step=100 loss=2.31 lr=0.0001 tokens_per_s=51234 mem=71.2\n").is_empty());
        assert!(dims("2024-05-06 10:11:12 INFO epoch: 12 batch: 4400/9000\n").is_empty());
    }

    #[test]
    fn source_lines_under_frames_are_not_read() {
        assert!(
            dims("  File \"a.py\", line 3, in f\n    x = torch.zeros(shape=(70000, 70000))\n").is_empty()
        );
    }
}
