//! The one pass over raw bytes that decides which lines deserve a parser.
//!
//! In: bytes. Out: the physical lines that hold a literal of any producer, and the number of lines. It leaves reading
//! the lines to the producers; a line without a literal costs only the search.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::{memchr, memchr_iter, memrchr};
use rayon::prelude::*;

use super::producers::{PRODUCERS, Producer};

/// A physical line that holds a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Line number, counted from 1.
    pub line: u64,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset of its line end.
    pub end: usize,
}

struct Literals {
    patterns: Vec<&'static str>,
    owners: Vec<u64>,
    search: Option<AhoCorasick>,
    each: Option<AhoCorasick>,
}

static LITERALS: LazyLock<Literals> = LazyLock::new(|| {
    let mut patterns: Vec<&'static str> = Vec::new();
    let mut owners: Vec<u64> = Vec::new();
    for (index, producer) in PRODUCERS.iter().enumerate() {
        for literal in producer.literals {
            let bit = 1_u64 << index;
            match patterns.iter().position(|known| known == literal) {
                Some(at) => {
                    if let Some(owner) = owners.get_mut(at) {
                        *owner |= bit;
                    }
                }
                None => {
                    patterns.push(literal);
                    owners.push(bit);
                }
            }
        }
    }
    let search = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(&patterns).ok();
    let each = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&patterns).ok();
    Literals { patterns, owners, search, each }
});

/// Which producers want a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hits(u64);

impl Hits {
    /// Whether the line holds a literal of this producer.
    #[must_use]
    pub fn wants(self, producer: &Producer) -> bool {
        PRODUCERS
            .iter()
            .position(|known| std::ptr::eq(known, producer))
            .is_some_and(|index| self.0 & (1 << index) != 0)
    }
}

/// The producers whose literals stand in `text`.
#[must_use]
pub fn hits(text: &str) -> Hits {
    let Some(each) = &LITERALS.each else { return Hits(u64::MAX) };
    let found = each
        .find_overlapping_iter(text)
        .fold(0, |mask, hit| mask | LITERALS.owners.get(hit.pattern().as_usize()).copied().unwrap_or(0));
    Hits(found)
}

/// Bytes that one search task covers: large enough that the seams cost nothing, small enough that two cores share a log.
const CHUNK_BYTES: usize = 8 << 20;

/// The candidate lines of `bytes` in order, and the number of lines.
#[must_use]
pub fn candidates(bytes: &[u8]) -> (Vec<Candidate>, u64) {
    let chunks = chunks(bytes);
    let found: Vec<(Vec<Candidate>, u64)> =
        chunks.par_iter().map(|&(start, end)| search(bytes, start, end)).collect();
    let mut all = Vec::new();
    let mut lines = 0;
    for (part, count) in found {
        all.extend(part.into_iter().map(|candidate| Candidate { line: candidate.line + lines, ..candidate }));
        lines += count;
    }
    if bytes.last().is_some_and(|&last| last != b'\n') {
        lines += 1;
    }
    (all, lines)
}

/// Cuts `bytes` at line ends.
fn chunks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut cuts = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let target = start.saturating_add(CHUNK_BYTES).min(bytes.len());
        let end = bytes
            .get(target..)
            .and_then(|rest| memchr(b'\n', rest))
            .map_or(bytes.len(), |at| target + at + 1);
        cuts.push((start, end));
        start = end;
    }
    cuts
}

/// Candidate lines of one chunk, numbered from 1 at its start, and its line ends.
fn search(bytes: &[u8], start: usize, end: usize) -> (Vec<Candidate>, u64) {
    let chunk = bytes.get(start..end).unwrap_or_default();
    let mut found = Vec::new();
    let (mut at, mut counted_to, mut line) = (0, 0, 1);
    while let Some(hit) =
        LITERALS.search.as_ref().and_then(|search| search.find(chunk.get(at..).unwrap_or_default()))
    {
        let hit_at = at + hit.start();
        let line_start = chunk.get(..hit_at).and_then(|head| memrchr(b'\n', head)).map_or(0, |end| end + 1);
        let line_end =
            chunk.get(hit_at..).and_then(|rest| memchr(b'\n', rest)).map_or(chunk.len(), |end| hit_at + end);
        line += memchr_iter(b'\n', chunk.get(counted_to..line_start).unwrap_or_default()).count() as u64;
        counted_to = line_start;
        found.push(Candidate { line, start: start + line_start, end: start + line_end });
        at = (line_end + 1).min(chunk.len());
    }
    let rest = memchr_iter(b'\n', chunk.get(counted_to..).unwrap_or_default()).count() as u64;
    (found, line - 1 + rest)
}

/// The literals that the prefilter looks for; a benchmark gives the same ones to its peer.
#[must_use]
pub fn literals() -> &'static [&'static str] {
    &LITERALS.patterns
}
