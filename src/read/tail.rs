//! What only the end of an input tells: the word of a shell that speaks another language.
//!
//! ```text
//! 段错误 (核心已转储)
//! ```
//!
//! In: the bytes and what the producers read. Out: further events of the last lines. The words stand outside the prefilter: each
//! would slow the search through every log, and a shell tells of a command's end where its output ends.

use memchr::memrchr;

use super::event::InputId;
use super::lines::{Cx, segments};
use super::signal::shell;
use crate::tables::signals;

/// Bytes of the end that are looked at.
const TAIL_BYTES: usize = 8 << 10;

/// Reads the last lines; `lines` is the number of the very last one.
pub(super) fn read(input: InputId, bytes: &[u8], lines: u64, cx: &mut Cx<'_>) {
    let least = bytes.len().saturating_sub(TAIL_BYTES);
    let mut end = bytes.strip_suffix(b"\n").unwrap_or(bytes).len();
    let mut number = lines;
    while end > least && number > 0 {
        let start = memrchr(b'\n', bytes.get(..end).unwrap_or_default()).map_or(0, |at| at + 1);
        for segment in segments(bytes, number, start, end) {
            if cx.is_consumed(segment.byte) || cx.events().iter().any(|event| event.span.byte == segment.byte)
            {
                continue;
            }
            let line = segment.parse(input);
            if signals::TRANSLATED.iter().any(|(word, _)| line.body().contains(word)) {
                shell::read(&line, cx);
            }
        }
        end = start.saturating_sub(1);
        number -= 1;
    }
}
