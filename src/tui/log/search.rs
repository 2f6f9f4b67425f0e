//! Searching a log: a pattern, and the lines in which it was found.
//!
//! In: what the user typed, and bytes a piece at a time. Out: [`Pattern`], and [`Search`] with its count. It leaves running
//! on a thread to `work`.

use regex::bytes::{Regex, RegexBuilder};

use super::lines::line_start;

/// Most matching lines whose places are kept; further ones are counted.
pub const KEPT: usize = 1 << 20;

/// Bytes searched between two looks at whether the search is still wanted.
pub const STEP_BYTES: usize = 4 << 20;

/// What is searched for.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// As typed.
    pub text: String,
    regex: Regex,
}

impl Pattern {
    /// Reads a pattern. Lower case matches both cases, as `less -i` and ripgrep's smart case do.
    ///
    /// # Errors
    /// The reason in one line, where it is no regular expression.
    pub fn new(text: &str) -> Result<Self, String> {
        RegexBuilder::new(text)
            .multi_line(true)
            .crlf(true)
            .case_insensitive(!text.chars().any(char::is_uppercase))
            .size_limit(4 << 20)
            .build()
            .map(|regex| Self { text: text.to_owned(), regex })
            .map_err(|error| reason(&error))
    }

    /// Whether it is found in `line`.
    pub fn is_match(&self, line: &[u8]) -> bool {
        self.regex.is_match(line)
    }

    /// The places where it is found in `line`; empty ones are left out.
    pub fn places(&self, line: &[u8]) -> Vec<std::ops::Range<usize>> {
        self.regex
            .find_iter(line)
            .map(|found| found.range())
            .filter(|range| !range.is_empty())
            .take(200)
            .collect()
    }
}

/// The last line of a regex error is the one that says what is wrong.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or("no regular expression").trim().trim_start_matches("error: ").to_owned()
}

/// Starts of the lines in one piece in which the pattern is found; and how many there are.
///
/// The piece runs from `from` to the end of the line that holds the byte at `from + STEP_BYTES`.
pub fn step(pattern: &Pattern, bytes: &[u8], from: usize) -> (Vec<u64>, usize) {
    let to = piece_end(bytes, from, STEP_BYTES);
    let piece = bytes.get(from..to).unwrap_or_default();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(hit) = pattern.regex.find_at(piece, at) {
        if hit.start() >= piece.len() && piece.ends_with(b"\n") {
            break;
        }
        let start = line_start(piece, hit.start());
        found.push((from + start) as u64);
        match memchr::memchr(b'\n', piece.get(hit.start()..).unwrap_or_default()) {
            Some(end) => at = hit.start() + end + 1,
            None => break,
        }
        if at >= piece.len() {
            break;
        }
    }
    (found, to)
}

/// End of the piece that starts at `from`: a line's end.
pub fn piece_end(bytes: &[u8], from: usize, step: usize) -> usize {
    let to = from.saturating_add(step);
    match bytes.get(to..).and_then(|rest| memchr::memchr(b'\n', rest)) {
        Some(end) => to + end + 1,
        None => bytes.len(),
    }
}

/// Which way a jump goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Towards the end.
    Down,
    /// Towards the beginning.
    Up,
}

/// A search and what it found so far.
#[derive(Debug, Clone)]
pub struct Search {
    /// Number of the search: answers to older ones are dropped.
    pub id: u64,
    /// The input that is searched.
    pub source: usize,
    /// What is searched for.
    pub pattern: Pattern,
    /// Starts of matching lines, in order; at most [`KEPT`].
    pub lines: Vec<u64>,
    /// Matching lines.
    pub count: u64,
    /// Bytes searched.
    pub searched: usize,
    /// Whether all is searched.
    pub done: bool,
    /// A jump that waits for a match: from where, and which way.
    pub wanted: Option<(usize, Direction)>,
    /// Whether the line from which that jump goes counts, too.
    pub from_here: bool,
}

impl Search {
    /// A search that begins.
    pub fn new(id: u64, source: usize, pattern: Pattern) -> Self {
        Self {
            id,
            source,
            pattern,
            lines: Vec::new(),
            count: 0,
            searched: 0,
            done: false,
            wanted: None,
            from_here: false,
        }
    }

    /// Takes in what a step found.
    pub fn take(&mut self, lines: &[u64], searched: usize, done: bool) {
        self.count += lines.len() as u64;
        let room = KEPT.saturating_sub(self.lines.len());
        self.lines.extend_from_slice(lines.get(..room.min(lines.len())).unwrap_or_default());
        self.searched = searched;
        self.done = done;
    }

    /// The matching line after or before `at`, going round at the ends; none where it isn't known yet or there is none.
    pub fn neighbour(&self, at: usize, direction: Direction) -> Option<usize> {
        let at = at as u64;
        let found = match direction {
            Direction::Down => {
                let index = self.lines.partition_point(|&line| line <= at);
                let round = self.done.then(|| self.lines.first()).flatten();
                self.lines.get(index).or(round)
            }
            Direction::Up => {
                let index = self.lines.partition_point(|&line| line < at);
                let round = self.done.then(|| self.lines.last()).flatten();
                index.checked_sub(1).and_then(|i| self.lines.get(i)).or(round)
            }
        };
        found.and_then(|&line| usize::try_from(line).ok())
    }

    /// `3 of 17`, or `17`, with `+` while it goes on.
    pub fn tally(&self, at: usize) -> String {
        let more = if self.done { "" } else { "+" };
        match self.lines.binary_search(&(at as u64)) {
            Ok(index) => format!("{} of {}{more}", index + 1, self.count),
            Err(_) => format!("{}{more}", self.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(text: &[u8], pattern: &str) -> Search {
        let mut search = Search::new(1, 0, Pattern::new(pattern).unwrap());
        let mut from = 0;
        loop {
            let (lines, to) = step(&search.pattern, text, from);
            search.take(&lines, to, to >= text.len());
            from = to;
            if search.done {
                return search;
            }
        }
    }

    #[test]
    fn lines_are_counted_once_each() {
        let found = search(b"NCCL a nccl\nnothing\nnccl b\n", "nccl");
        assert_eq!(found.lines, [0, 20]);
        assert_eq!(found.neighbour(0, Direction::Down), Some(20));
        assert_eq!(found.neighbour(20, Direction::Down), Some(0), "round");
        assert_eq!(found.neighbour(0, Direction::Up), Some(20), "round");
        assert_eq!(found.tally(20), "2 of 2");
    }

    #[test]
    fn upper_case_is_meant() {
        assert_eq!(search(b"NCCL\nnccl\n", "NCCL").lines, [0]);
    }

    #[test]
    fn line_ends_anchor_and_empty_matches_end() {
        assert_eq!(search(b"ab\r\nb\n", "b$").lines, [0, 4]);
        assert_eq!(search(b"a\n\nb\n", "^$").lines, [2]);
        assert_eq!(search(b"", "a*").count, 1);
        assert_eq!(search(b"x\ny\n", "z*").lines, [0, 2]);
    }

    #[test]
    fn pieces_meet_at_line_ends() {
        let mut text = vec![b'x'; STEP_BYTES - 2];
        text.extend_from_slice(b"needle\nneedle\n");
        assert_eq!(search(&text, "needle").lines, [0, text.len() as u64 - 7]);
    }

    #[test]
    fn a_bad_pattern_says_why() {
        assert!(Pattern::new("a(").unwrap_err().contains("unclosed group"));
    }
}
