//! The one pass over raw bytes that decides which lines deserve a parser.
//!
//! In: bytes. Out: the pieces of lines that hold a literal of any producer, in order, in batches, and the number of lines. It
//! leaves reading the lines to the producers; a line without a literal costs only the search.

mod needles;
mod search;

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::{memchr, memchr_iter};
use rayon::prelude::*;

use super::producers::PRODUCERS;
use search::Search;

/// A piece of a line that holds a literal: what stands between line ends and carriage returns, or, of a piece too long for a
/// parser, the surroundings of the literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Number of the physical line, counted from 1.
    pub line: u64,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset of the byte after its last one.
    pub end: usize,
}

struct Literals {
    patterns: Vec<&'static str>,
    owners: Vec<u64>,
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
    let each = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&patterns).ok();
    Literals { patterns, owners, each }
});

static SEARCH: LazyLock<Search> = LazyLock::new(|| Search::new(&LITERALS.patterns));

/// Which producers want a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hits(u64);

impl Hits {
    /// Whether the line holds a literal of the producer at this index of [`PRODUCERS`].
    #[must_use]
    pub fn wants(self, index: usize) -> bool {
        u32::try_from(index).is_ok_and(|index| self.0.checked_shr(index).unwrap_or(0) & 1 == 1)
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

/// The literals that the prefilter looks for; a benchmark gives the same ones to its peer.
#[must_use]
pub fn literals() -> &'static [&'static str] {
    &LITERALS.patterns
}

/// All candidates of `bytes` in order, and the number of lines.
#[must_use]
pub fn candidates(bytes: &[u8]) -> (Vec<Candidate>, u64) {
    let mut scan = scan(bytes);
    let all = scan.by_ref().flatten().collect();
    (all, scan.lines())
}

/// Bytes that one search task covers: large enough that the seams cost nothing, small enough that two cores share a log.
const CHUNK_BYTES: usize = 2 << 20;

/// Search tasks a thread that make a batch.
const CHUNKS_A_THREAD: usize = 4;

/// Goes through `bytes` batch by batch, so that candidates never all stand in memory.
#[must_use]
pub fn scan(bytes: &[u8]) -> Scan<'_> {
    Scan { search: &SEARCH, bytes, at: 0, lines: 0, chunk_bytes: CHUNK_BYTES }
}

/// Iterator over batches of candidates, in order.
pub struct Scan<'a> {
    search: &'a Search,
    bytes: &'a [u8],
    at: usize,
    lines: u64,
    chunk_bytes: usize,
}

impl Scan<'_> {
    /// Lines of the bytes that were gone through; what stands after the last line end counts as one.
    #[must_use]
    pub fn lines(&self) -> u64 {
        let done = self.bytes.get(..self.at).unwrap_or_default();
        self.lines + u64::from(done.last().is_some_and(|&last| last != b'\n'))
    }

    /// Bytes that were gone through.
    #[must_use]
    pub fn bytes_done(&self) -> u64 {
        self.at as u64
    }

    /// Goes to the end without looking for candidates.
    pub fn skip_to_end(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.lines +=
            rest.par_chunks(CHUNK_BYTES).map(|chunk| memchr_iter(b'\n', chunk).count() as u64).sum::<u64>();
        self.at = self.bytes.len();
    }

    /// The next chunks, cut at line ends.
    fn chunks(&self) -> Vec<(usize, usize)> {
        let most = rayon::current_num_threads() * CHUNKS_A_THREAD;
        let mut cuts = Vec::new();
        let mut start = self.at;
        while start < self.bytes.len() && cuts.len() < most {
            let target = start.saturating_add(self.chunk_bytes).min(self.bytes.len());
            let rest = self.bytes.get(target..).unwrap_or_default();
            let end = memchr(b'\n', rest).map_or(self.bytes.len(), |at| target + at + 1);
            cuts.push((start, end));
            start = end;
        }
        cuts
    }
}

impl Iterator for Scan<'_> {
    type Item = Vec<Candidate>;

    fn next(&mut self) -> Option<Vec<Candidate>> {
        let chunks = self.chunks();
        self.at = chunks.last()?.1;
        let found: Vec<(Vec<Candidate>, u64)> =
            chunks.par_iter().map(|&(start, end)| self.search.chunk(self.bytes, start, end)).collect();
        let mut batch = Vec::new();
        for (part, lines) in found {
            batch.extend(
                part.into_iter()
                    .map(|candidate| Candidate { line: candidate.line + self.lines, ..candidate }),
            );
            self.lines += lines;
        }
        Some(batch)
    }
}

#[cfg(test)]
mod tests;
