//! Which process printed each of the lines that come next.
//!
//! Where thousands of ranks print their tracebacks at once, each head looks for its own lines among those of all others. The
//! prefixes of a line are read once for all of them.
//!
//! In: the place of a line. Out: the pieces after it, each with its stream. It leaves their meaning to who asks.

use std::collections::VecDeque;

use super::{Following, Line, Segment, Stream};
use crate::read::event::InputId;

/// Pieces that are kept before the line that was asked for last: no reader's window is longer, and windows nest once.
const KEPT: usize = 16 * 1024;

/// Pieces of lines without gaps, in the order of their bytes.
#[derive(Debug, Default)]
pub(super) struct Ahead<'a> {
    pieces: VecDeque<(Stream, Segment<'a>)>,
    /// Number of the front piece among all that were ever held.
    first: u64,
    rest: Option<Following<'a>>,
    /// Offset from which on every piece is held or still to come.
    from: u64,
}

impl<'a> Ahead<'a> {
    /// The number of the first piece after a line.
    pub(super) fn seek(&mut self, bytes: &'a [u8], line: &Line<'_>) -> u64 {
        let covered = self.pieces.back().map_or(self.from, |(_, last)| last.byte + 1);
        if self.rest.is_none() || line.end < self.from || line.end > covered {
            self.first += self.pieces.len() as u64;
            self.pieces.clear();
            self.rest = Some(Following::new(bytes, line));
            self.from = line.end;
            return self.first;
        }
        let at = self.pieces.partition_point(|(_, piece)| piece.byte <= line.byte);
        let number = self.first + at as u64;
        if at > 2 * KEPT {
            let spare = at - KEPT;
            self.from = self.pieces.get(spare).map_or(self.from, |(_, piece)| piece.byte);
            self.pieces.drain(..spare);
            self.first += spare as u64;
        }
        number
    }

    /// The piece of this number; none after the last.
    pub(super) fn get(&mut self, input: InputId, number: u64) -> Option<(Stream, Segment<'a>)> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        while self.pieces.len() <= at {
            let next = self.rest.as_mut()?.next()?;
            self.pieces.push_back((next.parse(input).stream(), next));
        }
        self.pieces.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Cx, Line, segments};
    use crate::read::event::InputId;

    fn lines(text: &str) -> Vec<Line<'_>> {
        let mut at = 0;
        let mut found = Vec::new();
        for (number, line) in text.split('\n').enumerate() {
            let pieces = segments(text.as_bytes(), number as u64 + 1, at, at + line.len());
            found.extend(pieces.into_iter().map(|piece| piece.parse(InputId(0))));
            at += line.len() + 1;
        }
        found
    }

    proptest! {
        /// Whoever asks, in whatever order: the lines are those that a search of their own would find.
        #[test]
        fn a_stream_is_what_a_search_line_by_line_finds(
            ranks in proptest::collection::vec((0_u8..4, 0_u8..3), 0..60),
            asked in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..50), 1..12),
        ) {
            let text: Vec<String> = ranks
                .iter()
                .map(|(rank, form)| match form {
                    0 => format!("[rank{rank}]: x"),
                    1 => format!("[rank{rank}]: a\\r[rank{}]: b", rank + 1),
                    _ => String::new(),
                })
                .collect();
            let text = text.join("\n").replace("\\r", "\r");
            let lines = lines(&text);
            prop_assume!(!lines.is_empty());
            let cx = Cx::new(InputId(0), text.as_bytes());
            for (index, window) in asked {
                let line = index.get(&lines);
                let place = |line: Line<'_>| (line.byte, line.number, line.text.into_owned());
                let found: Vec<_> = cx.after_in_stream(line, window).map(place).collect();
                let stream = line.stream();
                let want: Vec<_> =
                    cx.after(line).take(window).filter(|next| next.stream() == stream).map(place).collect();
                prop_assert_eq!(found, want);
            }
        }
    }
}
