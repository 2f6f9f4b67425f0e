//! The search of one chunk: a fast pass for needles, an exact look at the lines that hold one.
//!
//! In: a chunk of bytes that begins and ends at line ends. Out: its candidates. It leaves splitting the work to the
//! prefilter.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind, Span, packed};
use memchr::{memchr_iter, memchr2, memrchr2};

use super::Candidate;
use super::needles::{groups, needles};
use crate::read::lines::PIECE_LIMIT_BYTES;

/// Bytes that each fast searcher goes through before the next one follows, so that they find them in the cache.
const BLOCK_BYTES: usize = 64 << 10;

/// Chunks smaller than this are searched exactly: choosing needles would take longer.
const FAST_FROM_BYTES: usize = 128 << 10;

/// Bytes before a literal that a parser gets of a piece too long for it; the rest of its bound follows the literal.
const BEFORE_LITERAL_BYTES: usize = 8 << 10;

/// Candidates that one piece too long for a parser may give.
const WINDOWS_A_PIECE: usize = 64;

/// Searchers for one set of literals.
pub(super) struct Search {
    literals: Vec<String>,
    exact: Option<AhoCorasick>,
    fast: OnceLock<Vec<packed::Searcher>>,
    fast_from_bytes: usize,
}

impl Search {
    pub(super) fn new(literals: &[&str]) -> Self {
        let exact = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .match_kind(MatchKind::Standard)
            .build(literals)
            .ok();
        let literals = literals.iter().map(|&literal| literal.to_owned()).collect();
        Self { literals, exact, fast: OnceLock::new(), fast_from_bytes: FAST_FROM_BYTES }
    }

    /// A search that takes the fast pass on any chunk, to test it on short ones.
    #[cfg(test)]
    pub(super) fn always_fast(literals: &[&str]) -> Self {
        Self { fast_from_bytes: 0, ..Self::new(literals) }
    }

    fn fast(&self) -> &[packed::Searcher] {
        self.fast.get_or_init(|| {
            let literals: Vec<&str> = self.literals.iter().map(String::as_str).collect();
            let needles = needles(&literals);
            let searchers: Option<Vec<packed::Searcher>> = groups(needles)
                .iter()
                .map(|group| packed::Config::new().builder().extend(group).build())
                .collect();
            // None where this processor has no vector search; the exact search does the work then.
            searchers.unwrap_or_default()
        })
    }

    /// Candidates of `bytes[start..end]`, whose lines are numbered from 1, and its line ends.
    pub(super) fn chunk(&self, bytes: &[u8], start: usize, end: usize) -> (Vec<Candidate>, u64) {
        let chunk = bytes.get(start..end).unwrap_or_default();
        let mut pass = Pass { search: self, chunk, base: start, found: Vec::new(), counted_to: 0, lines: 0 };
        let fast = if chunk.len() < self.fast_from_bytes { &[] } else { self.fast() };
        match fast {
            [] => pass.exact(0),
            _ => pass.fast(fast),
        }
        pass.count_to(chunk.len());
        (pass.found, pass.lines)
    }
}

struct Pass<'a> {
    search: &'a Search,
    chunk: &'a [u8],
    base: usize,
    found: Vec<Candidate>,
    counted_to: usize,
    lines: u64,
}

impl Pass<'_> {
    fn fast(&mut self, searchers: &[packed::Searcher]) {
        let mut spots: Vec<usize> = Vec::new();
        let (mut at, mut in_vain) = (0, 0);
        while at < self.chunk.len() {
            let end = self.piece_end(at.saturating_add(BLOCK_BYTES));
            spots.clear();
            for searcher in searchers {
                let mut from = at;
                while let Some(hit) = searcher.find_in(self.chunk, Span { start: from, end }) {
                    spots.push(hit.start());
                    from = self.piece_end(hit.start()).clamp(hit.end(), end);
                }
            }
            spots.sort_unstable();
            in_vain += self.look_at(&spots, at);
            at = end;
            // Lines full of needles and without a literal: two searches cost more than one.
            if in_vain > BLOCK_BYTES && in_vain > at / 4 {
                return self.exact(at);
            }
        }
    }

    /// Searches the pieces at `spots`, none of which begins before `from`, and returns the bytes of those that hold no literal.
    fn look_at(&mut self, spots: &[usize], from: usize) -> usize {
        let (mut in_vain, mut done) = (0, from);
        for &spot in spots {
            if spot < done {
                continue;
            }
            let (start, end) = (self.piece_start(spot).max(done), self.piece_end(spot));
            done = end;
            match self.literal_in(start, end) {
                Some(literal) => self.push(start, end, literal),
                None => in_vain += end - start,
            }
        }
        in_vain
    }

    /// The plain way: one automaton that knows every literal.
    fn exact(&mut self, from: usize) {
        let mut at = from;
        while let Some(literal) = self.literal_in(at, self.chunk.len()) {
            let (start, end) = (self.piece_start(literal).max(at), self.piece_end(literal));
            self.push(start, end, literal);
            at = end;
        }
    }

    /// Offset of the first literal in a part of the chunk.
    fn literal_in(&self, start: usize, end: usize) -> Option<usize> {
        let input = Input::new(self.chunk).range(start..end.max(start)).earliest(true);
        self.search.exact.as_ref()?.find(input).map(|hit| hit.start())
    }

    /// Adds a piece, or, where it is too long for a parser, the surroundings of its literals.
    fn push(&mut self, start: usize, end: usize, first_literal: usize) {
        self.count_to(start);
        let line = self.lines + 1;
        let (base, mut from, mut literal) = (self.base, start, Some(first_literal));
        for _ in 0..WINDOWS_A_PIECE {
            let Some(at) = literal else { break };
            if end - start > PIECE_LIMIT_BYTES {
                from = at.saturating_sub(BEFORE_LITERAL_BYTES).max(from);
            }
            let to = from.saturating_add(PIECE_LIMIT_BYTES).min(end);
            self.found.push(Candidate { line, start: base + from, end: base + to });
            literal = self.literal_in(to, end);
            from = to;
        }
    }

    fn count_to(&mut self, at: usize) {
        let between = self.chunk.get(self.counted_to..at).unwrap_or_default();
        self.lines += memchr_iter(b'\n', between).count() as u64;
        self.counted_to = self.counted_to.max(at);
    }

    fn piece_start(&self, at: usize) -> usize {
        let head = self.chunk.get(..at).unwrap_or_default();
        memrchr2(b'\n', b'\r', head).map_or(0, |end| end + 1)
    }

    fn piece_end(&self, at: usize) -> usize {
        let rest = self.chunk.get(at..).unwrap_or_default();
        memchr2(b'\n', b'\r', rest).map_or(self.chunk.len(), |len| at + len)
    }
}
