//! Which lines of a log are shown.
//!
//! In: a rank, a kind of evidence, a pattern, and bytes a piece at a time. Out: [`Filtered`], the starts of the lines that
//! stay. A line without a rank of its own belongs to the rank of the line before it, where that was the same
//! block of text. It leaves running on a thread to `work`.

use crate::read::prefix;
use crate::report::model::EvidenceKind;
use crate::text::LogText;

use super::lines::line_at;
use super::search::{Pattern, STEP_BYTES, piece_end};

/// Most lines that a filter keeps.
pub const KEPT: usize = 4 << 20;

/// Longest head of a line in which a prefix is looked for.
const PREFIX_BYTES: usize = 512;

/// Which lines are shown.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only lines of this rank.
    pub rank: Option<u32>,
    /// Only lines of evidence of this kind.
    pub kind: Option<EvidenceKind>,
    /// Only lines in which this is found.
    pub pattern: Option<Pattern>,
    /// Turns the pattern round: lines in which it isn't found.
    pub invert: bool,
}

impl Filter {
    /// Whether every line passes.
    pub fn is_off(&self) -> bool {
        self.rank.is_none() && self.kind.is_none() && self.pattern.is_none()
    }

    /// The filter in words, for the pane's title.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        if let Some(rank) = self.rank {
            words.push(format!("rank {rank}"));
        }
        if let Some(kind) = self.kind {
            words.push(crate::tui::claims::kind_name(kind));
        }
        if let Some(pattern) = &self.pattern {
            let not = if self.invert { "!" } else { "" };
            words.push(format!("{not}/{}/", LogText::new(pattern.text.as_str())));
        }
        words.join(", ")
    }
}

/// A filter at work on one input.
#[derive(Debug, Clone)]
pub struct FilterRun {
    filter: Filter,
    /// Rank of the whole input, where its path names one.
    whole: Option<u32>,
    /// First and last byte of the evidence of the wanted kind, in order.
    kind_spans: Vec<(u64, u64)>,
    rank: Option<u32>,
}

impl FilterRun {
    /// A filter that begins at the top of an input.
    pub fn new(filter: Filter, whole: Option<u32>, kind_spans: Vec<(u64, u64)>) -> Self {
        Self { filter, whole, kind_spans, rank: whole }
    }

    /// The lines of the next piece that pass, and where the piece ends.
    pub fn step(&mut self, bytes: &[u8], from: usize) -> (Vec<u64>, usize) {
        let to = piece_end(bytes, from, STEP_BYTES);
        let mut passed = Vec::new();
        let mut at = from;
        while at < to {
            let line = line_at(bytes, at);
            if self.passes(line, at as u64) {
                passed.push(at as u64);
            }
            let rest = bytes.get(at..to).unwrap_or_default();
            match memchr::memchr(b'\n', rest) {
                Some(end) => at += end + 1,
                None => break,
            }
        }
        (passed, to)
    }

    fn passes(&mut self, line: &[u8], at: u64) -> bool {
        self.passes_rank(line)
            && (self.filter.kind.is_none() || self.is_inside(at))
            && self.filter.pattern.as_ref().is_none_or(|pattern| pattern.is_match(line) != self.filter.invert)
    }

    fn passes_rank(&mut self, line: &[u8]) -> bool {
        let Some(wanted) = self.filter.rank else { return true };
        match rank_of(line) {
            Some(rank) => self.rank = Some(rank),
            None if line.is_empty() => self.rank = self.whole,
            None => {}
        }
        self.rank == Some(wanted)
    }

    fn is_inside(&self, at: u64) -> bool {
        let index = self.kind_spans.partition_point(|&(_, end)| end < at);
        self.kind_spans.get(index).is_some_and(|&(start, end)| start <= at && at <= end)
    }
}

/// The rank that a line's prefix names.
fn rank_of(line: &[u8]) -> Option<u32> {
    let head = line.get(..PREFIX_BYTES).unwrap_or(line);
    // Most lines of a log have no prefix with a rank, and this is cheaper than reading one.
    if !head.iter().any(|byte| matches!(byte, b'[' | b'(' | b':' | b'|')) {
        return None;
    }
    let text = String::from_utf8_lossy(head);
    let (mut origin, body) = prefix::strip(&text);
    prefix::group_tag(text.get(body..).unwrap_or(""), &mut origin);
    origin.rank.or(origin.local_rank)
}

/// The lines that a filter lets through, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct Filtered {
    /// Number of the run: answers to older ones are dropped.
    pub id: u64,
    /// Starts of the lines, in order; at most [`KEPT`].
    pub lines: Vec<u64>,
    /// Whether all lines were looked at.
    pub done: bool,
}

impl Filtered {
    /// Takes in what a step found.
    pub fn take(&mut self, lines: &[u64], done: bool) {
        let room = KEPT.saturating_sub(self.lines.len());
        self.lines.extend_from_slice(lines.get(..room.min(lines.len())).unwrap_or_default());
        self.done = done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "start\n[rank0] ready\n[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\"\n\nafter\n[rank0] bye\n";

    fn shown(filter: Filter, spans: Vec<(u64, u64)>) -> Vec<&'static str> {
        let (lines, end) = FilterRun::new(filter, None, spans).step(LOG.as_bytes(), 0);
        assert_eq!(end, LOG.len());
        lines.iter().map(|&at| LOG[usize::try_from(at).unwrap()..].lines().next().unwrap()).collect()
    }

    #[test]
    fn a_rank_keeps_its_lines() {
        let filter = Filter { rank: Some(1), ..Filter::default() };
        assert_eq!(
            shown(filter, Vec::new()),
            ["[rank1]: Traceback (most recent call last):", "[rank1]:   File \"a.py\""]
        );
        let filter = Filter { rank: Some(0), ..Filter::default() };
        assert_eq!(shown(filter, Vec::new()), ["[rank0] ready", "[rank0] bye"]);
    }

    #[test]
    fn a_pattern_can_be_turned_round() {
        let pattern = Some(Pattern::new("rank").unwrap());
        let filter = Filter { pattern, invert: true, ..Filter::default() };
        assert_eq!(shown(filter, Vec::new()), ["start", "", "after"]);
    }

    #[test]
    fn a_kind_keeps_its_spans() {
        let filter = Filter { kind: Some(EvidenceKind::Traceback), ..Filter::default() };
        assert_eq!(shown(filter, vec![(20, 86)]).len(), 2);
    }
}
