//! The lines of a report that stand together, without their prefixes.
//!
//! In: the head line, the report's prefix and the bytes. Out: the text behind the prefix, line by line, until the same
//! process prints something else. A report of a hundred thousand records goes through here, so a line that begins with the
//! very bytes of the head's prefix is cut without the general prefix reader.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use crate::read::event::InputId;
use crate::read::lines::{Line, Stream, segments};

/// Lines of other processes in a row that may stand inside a run.
pub const FOREIGN_LIMIT: usize = 512;
/// Bytes of a report line that are looked at.
const LINE_LIMIT_BYTES: usize = 4_096;

/// A line of a report.
#[derive(Debug)]
pub struct Step<'a> {
    /// Text behind the prefix, one blank removed.
    pub text: Cow<'a, str>,
    /// Where the line begins.
    pub byte: usize,
    /// Where it ends, its line end excluded.
    pub end: usize,
    /// Its number, counted from 1.
    pub number: u64,
}

/// Walks over a report.
#[derive(Debug)]
pub struct Run<'a> {
    bytes: &'a [u8],
    marker: String,
    raw_prefix: &'a [u8],
    stream: Stream,
    at: usize,
    number: u64,
    started: bool,
    /// Lines of other processes in a row that are passed over.
    foreign_limit: usize,
    /// How many were.
    passed: usize,
}

impl<'a> Run<'a> {
    /// A walk that begins with `first`, whose body begins with `marker`.
    pub fn new(first: &Line<'_>, marker: &str, bytes: &'a [u8], foreign_limit: usize) -> Self {
        let start = usize::try_from(first.byte).unwrap_or(usize::MAX).min(bytes.len());
        let end = usize::try_from(first.end).unwrap_or(usize::MAX).min(bytes.len());
        let raw = bytes.get(start..end).unwrap_or_default();
        let found = (!marker.is_empty()).then(|| memmem::find(raw, marker.as_bytes())).flatten();
        let raw_prefix = found.and_then(|at| raw.get(..at + marker.len())).unwrap_or_default();
        Self {
            bytes,
            marker: marker.to_owned(),
            raw_prefix,
            stream: first.stream(),
            at: start,
            number: first.number,
            started: false,
            foreign_limit,
            passed: 0,
        }
    }

    /// Lines of other processes that were passed over.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// Number of the line after the last one given.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line of the report.
    pub fn next(&mut self, input: InputId) -> Option<Step<'a>> {
        for _ in 0..=self.foreign_limit {
            let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
            let len = memchr(b'\n', rest).unwrap_or(rest.len());
            let (byte, number) = (self.at, self.number);
            let raw = rest.get(..len).unwrap_or_default();
            let advance = |run: &mut Self| {
                run.at += len + 1;
                run.number += 1;
                run.started = true;
            };
            if let Some(text) = self.fast(raw) {
                advance(self);
                return Some(Step { text, byte, end: byte + len, number });
            }
            let Some(piece) = segments(self.bytes, number, byte, byte + len).into_iter().next_back() else {
                // An empty line belongs to nobody: a console log may put one after each line.
                if self.marker.is_empty() {
                    return None;
                }
                advance(self);
                continue;
            };
            let start = usize::try_from(piece.byte).unwrap_or(byte);
            let line = piece.parse(input);
            let same = line.stream() == self.stream;
            if same && let Some(text) = self.cut(line.body()) {
                let text = Cow::Owned(text.to_owned());
                advance(self);
                return Some(Step { text, byte: start, end: byte + len, number });
            }
            if same {
                return None;
            }
            self.passed += 1;
            advance(self);
        }
        None
    }

    /// The text of a line that begins with the bytes of the head's prefix.
    fn fast(&self, raw: &'a [u8]) -> Option<Cow<'a, str>> {
        if self.raw_prefix.is_empty() {
            return None;
        }
        let text = raw.strip_prefix(self.raw_prefix)?;
        let text = text.get(..LINE_LIMIT_BYTES).unwrap_or(text);
        if memchr(0x1b, text).is_some() {
            return None;
        }
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if memchr(b'\r', text).is_some() {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        Some(Cow::Borrowed(text.strip_prefix(' ').unwrap_or(text)))
    }

    /// The text of a body behind the marker; without a marker, indented lines and the head only.
    fn cut<'t>(&self, body: &'t str) -> Option<&'t str> {
        if self.marker.is_empty() {
            let is_head = body.starts_with("Invalid __") || body.starts_with("Uninitialized __");
            return (is_head || (self.started && body.starts_with("  "))).then_some(body);
        }
        let text = body.trim_start().strip_prefix(self.marker.trim_start())?;
        Some(text.strip_prefix(' ').unwrap_or(text))
    }
}
