//! Lines of a log: physical lines, the pieces between carriage returns, their prefixes, and what follows a line.
//!
//! In: bytes and an offset. Out: [`Line`] (prefix stripped, escapes removed) and [`Cx`], through which a producer looks
//! ahead in its own stream, claims lines and pushes events. It leaves the meaning of lines to the producers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use memchr::{memchr, memchr2};

use super::event::{Data, Event, InputId, Origin, Span};
use super::prefix;
use ahead::Ahead;

mod ahead;

/// Longest piece of a line that a parser sees. Longer lines (100 MB of binary, a repr of a tensor) are cut around the
/// literal that made them interesting.
pub const PIECE_LIMIT_BYTES: usize = 64 * 1024;

/// What a producer did with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Nothing in it for this producer.
    No,
    /// An event was pushed; other producers may still want the line.
    Part,
    /// The line is spent.
    Whole,
}

/// Which printing process a line belongs to, as far as its prefixes tell. Lines without a prefix share one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stream(u64);

impl Stream {
    /// The stream of lines without a prefix.
    pub const BARE: Self = Self(0);

    fn of(origin: &Origin) -> Self {
        let key = (origin.rank, origin.local_rank, &origin.process, &origin.host, origin.pid);
        if key == (None, None, &None, &None, None) {
            return Self::BARE;
        }
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Self(hasher.finish() | 1)
    }
}

/// A logical line: what stands between line ends or carriage returns.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// The input.
    pub input: InputId,
    /// Number of the physical line, counted from 1.
    pub number: u64,
    /// Offset of the first byte.
    pub byte: u64,
    /// Offset of the byte after the last one; the line's end is not included.
    pub end: u64,
    /// The text with terminal escapes removed and bytes that are no UTF-8 replaced.
    pub text: Cow<'a, str>,
    /// Fields of the prefixes.
    pub origin: Origin,
    body_at: usize,
}

impl Line<'_> {
    /// The text after the prefixes.
    #[must_use]
    pub fn body(&self) -> &str {
        self.text.get(self.body_at..).unwrap_or("")
    }

    /// The printing process.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream::of(&self.origin)
    }
}

/// A piece of a physical line, not yet decoded.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// Physical line, counted from 1.
    pub number: u64,
    /// Offset of the first byte.
    pub byte: u64,
    bytes: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Decodes the piece and reads its prefixes.
    pub fn parse(self, input: InputId) -> Line<'a> {
        let bytes = self.bytes.get(..PIECE_LIMIT_BYTES).unwrap_or(self.bytes);
        let text = decode(bytes);
        let (origin, body_at) = prefix::strip(&text);
        let end = self.byte + self.bytes.len() as u64;
        Line { input, number: self.number, byte: self.byte, end, text, origin, body_at }
    }
}

/// Text of raw bytes: escapes out, NUL bytes out, wrong UTF-8 replaced.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let noisy = bytes.iter().any(|&byte| byte == 0x1b || byte == 0 || byte == 0x08);
    if !noisy {
        return String::from_utf8_lossy(bytes);
    }
    let without_nul: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != 0 && byte != 0x08).collect();
    let stripped: Vec<u8> = anstream::adapter::strip_bytes(&without_nul).into_vec();
    Cow::Owned(String::from_utf8_lossy(&stripped).into_owned())
}

/// The pieces of the physical line `start..end`: progress bars write over themselves with carriage returns, and what was
/// printed after the last one is a line of its own.
pub fn segments(bytes: &[u8], number: u64, start: usize, end: usize) -> Vec<Segment<'_>> {
    let line = bytes.get(start..end).unwrap_or_default();
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let rest = line.get(at..).unwrap_or_default();
        let len = memchr(b'\r', rest).unwrap_or(rest.len());
        if len > 0 {
            let piece = rest.get(..len).unwrap_or_default();
            let cut = report_inside(piece, bytes.get(end..).unwrap_or_default()).unwrap_or(0);
            for (from, bytes) in [(0, piece.get(..cut)), (cut, piece.get(cut..))] {
                if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
                    pieces.push(Segment { number, byte: (start + at + from) as u64, bytes });
                }
            }
        }
        at += len + 1;
    }
    pieces
}

/// Where a sanitizer's record begins behind output that the program had not ended: `test_a ... ========= Invalid __global__
/// read`. A record whose next line begins behind the same words has them as its prefix.
fn report_inside(piece: &[u8], rest: &[u8]) -> Option<usize> {
    const MARKER: &[u8] = b"========= ";
    const HEADS: [&[u8]; 7] = [
        b"Invalid __",
        b"Uninitialized __",
        b"Program hit ",
        b"Barrier error",
        b"Malloc/Free ",
        b"Error: ",
        b"ERROR: ",
    ];
    let at = memchr::memmem::find(piece, MARKER).filter(|&at| at > 0)?;
    let after = piece.get(at + MARKER.len()..)?;
    let alone = rest.trim_ascii_start().starts_with(MARKER.trim_ascii_end());
    (alone && HEADS.iter().any(|head| after.starts_with(head))).then_some(at)
}

/// A producer's view of the log around a line, and where it puts what it read.
#[derive(Debug)]
pub struct Cx<'a> {
    input: InputId,
    bytes: &'a [u8],
    events: Vec<Event>,
    consumed: HashSet<u64>,
    claimed: HashSet<u64>,
    spent: Vec<(&'static str, usize)>,
    ahead: Arc<Mutex<Ahead<'a>>>,
}

impl<'a> Cx<'a> {
    /// A view on the start of an input.
    #[must_use]
    pub fn new(input: InputId, bytes: &'a [u8]) -> Self {
        Self {
            input,
            bytes,
            events: Vec::new(),
            consumed: HashSet::new(),
            claimed: HashSet::new(),
            spent: Vec::new(),
            ahead: Arc::default(),
        }
    }

    /// Events so far.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The event pushed last, to fold a repetition into it.
    pub fn last_event(&mut self) -> Option<&mut Event> {
        self.events.last_mut()
    }

    /// The last `count` events, to fold a repetition into one of them.
    pub fn recent_events_mut(&mut self, count: usize) -> &mut [Event] {
        let from = self.events.len().saturating_sub(count);
        self.events.get_mut(from..).unwrap_or_default()
    }

    /// All bytes of the input, for readers of long blocks that can't afford a [`Line`] a line.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Takes the piece at this offset away from every later producer.
    pub fn consume_at(&mut self, byte: u64) {
        self.consumed.insert(byte);
    }

    /// Gives the events away.
    #[must_use]
    pub fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// Adds an event that stands on `line` alone.
    pub fn push(&mut self, line: &Line<'_>, data: Data) {
        self.push_block(line, 1, data);
    }

    /// Adds an event that begins on `line` and covers `lines` lines.
    pub fn push_block(&mut self, line: &Line<'_>, lines: u32, data: Data) {
        let span = Span { input: self.input, line: line.number, byte: line.byte, lines };
        self.events.push(Event { span, origin: line.origin.clone(), data, text: clip(&line.text) });
    }

    /// Adds an event that was read elsewhere.
    pub(super) fn push_event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Takes a line away from every later producer.
    pub fn consume(&mut self, line: &Line<'_>) {
        self.consumed.insert(line.byte);
    }

    /// Takes one of the `limit` events of a kind that one input keeps; false once they are gone.
    pub fn spend(&mut self, kind: &'static str, limit: usize) -> bool {
        if !self.spent.iter().any(|(known, _)| *known == kind) {
            self.spent.push((kind, 0));
        }
        let Some((_, spent)) = self.spent.iter_mut().find(|(known, _)| *known == kind) else { return false };
        *spent += 1;
        *spent <= limit
    }

    /// Marks the exception line of a block that holds it already: its status is still read, its exception is not.
    pub fn claim(&mut self, line: &Line<'_>) {
        self.claimed.insert(line.byte);
    }

    /// Whether a block holds the exception of this line already.
    #[must_use]
    pub fn is_claimed(&self, line: &Line<'_>) -> bool {
        self.claimed.contains(&line.byte)
    }

    /// Whether the piece at this offset is spent.
    #[must_use]
    pub fn is_consumed(&self, byte: u64) -> bool {
        self.consumed.contains(&byte)
    }

    /// Logical lines after `line`, of every stream, in order. Callers bound it with `take`.
    pub fn after(&self, line: &Line<'_>) -> impl Iterator<Item = Line<'a>> + use<'a> {
        let input = self.input;
        Following::new(self.bytes, line).map(move |segment| segment.parse(input))
    }

    /// The lines after `line` that the same process printed: those of its stream, looking at `window` lines at most.
    pub fn after_in_stream(
        &self,
        line: &Line<'_>,
        window: usize,
    ) -> impl Iterator<Item = Line<'a>> + use<'a> {
        let (input, stream) = (self.input, line.stream());
        let ahead = Arc::clone(&self.ahead);
        let mut at = ahead.lock().unwrap_or_else(PoisonError::into_inner).seek(self.bytes, line);
        let mut left = window;
        std::iter::from_fn(move || {
            let mut ahead = ahead.lock().unwrap_or_else(PoisonError::into_inner);
            while left > 0 {
                left -= 1;
                let (of, segment) = ahead.get(input, at)?;
                at += 1;
                if of == stream {
                    return Some(segment.parse(input));
                }
            }
            None
        })
    }

    /// The physical lines before `line`, nearest first, at most `window`; for the few readers that must look back.
    #[must_use]
    pub fn before(&self, line: &Line<'_>, window: usize) -> Vec<Line<'a>> {
        let mut end = usize::try_from(line.byte).unwrap_or(0).min(self.bytes.len());
        let mut number = line.number;
        let mut found = Vec::new();
        while found.len() < window && end > 0 {
            let head = self.bytes.get(..end - 1).unwrap_or_default();
            let start = memchr::memrchr(b'\n', head).map_or(0, |at| at + 1);
            number = number.saturating_sub(1);
            let segment =
                Segment { number, byte: start as u64, bytes: head.get(start..).unwrap_or_default() };
            found.push(segment.parse(self.input));
            end = start;
        }
        found
    }
}

/// The pieces of the lines after a line.
#[derive(Debug)]
struct Following<'a> {
    bytes: &'a [u8],
    at: usize,
    number: u64,
}

impl<'a> Following<'a> {
    fn new(bytes: &'a [u8], line: &Line<'_>) -> Self {
        let at = usize::try_from(line.end).unwrap_or(usize::MAX).min(bytes.len());
        Self { bytes, at, number: line.number }
    }
}

impl<'a> Iterator for Following<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        loop {
            match self.bytes.get(self.at)? {
                b'\n' => {
                    self.at += 1;
                    self.number += 1;
                    if self.bytes.get(self.at) == Some(&b'\n') {
                        return Some(Segment { number: self.number, byte: self.at as u64, bytes: b"" });
                    }
                    if self.at >= self.bytes.len() {
                        return None;
                    }
                }
                b'\r' => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            // A progress bar's line has thousands of pieces, and each may be asked for what comes next: one piece at a time.
            let rest = self.bytes.get(self.at..)?;
            let len = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
            let piece = rest.get(..len).unwrap_or_default();
            let segment = Segment { number: self.number, byte: self.at as u64, bytes: piece };
            self.at += len;
            return Some(segment);
        }
    }
}

fn clip(text: &str) -> String {
    let mut end = text.len().min(Event::TEXT_LIMIT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_at<'a>(bytes: &'a [u8], number: u64, start: usize, end: usize) -> Line<'a> {
        segments(bytes, number, start, end)[0].parse(InputId(0))
    }

    #[test]
    fn following_counts_lines_and_keeps_empty_ones() {
        let bytes = b"one\r\n\ntwo\rthree\n";
        let first = line_at(bytes, 1, 0, 4);
        let cx = Cx::new(InputId(0), bytes);
        let rest: Vec<(u64, String)> =
            cx.after(&first).map(|line| (line.number, line.body().to_owned())).collect();
        assert_eq!(rest, [(2, String::new()), (3, "two".to_owned()), (3, "three".to_owned())]);
    }

    #[test]
    fn looking_back_goes_nearest_first() {
        let bytes = b"one\ntwo\nthree";
        let last = line_at(bytes, 3, 8, 13);
        let cx = Cx::new(InputId(0), bytes);
        let back: Vec<(u64, String)> =
            cx.before(&last, 9).iter().map(|line| (line.number, line.body().to_owned())).collect();
        assert_eq!(back, [(2, "two".to_owned()), (1, "one".to_owned())]);
    }

    #[test]
    fn escapes_and_nul_bytes_go() {
        assert_eq!(decode(b"\x1b[31mred\x1b[0m\0 end"), "red end");
    }
}
