//! Steps from line to line by byte offsets.
//!
//! In: bytes, an offset, and the filtered offsets where a filter is on. Out: offsets of line starts. It reads no more of the
//! log than the lines that it passes.

use memchr::{memchr, memrchr};

/// The lines of a log, or those of them that a filter lets through.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'a> {
    bytes: &'a [u8],
    only: Option<&'a [u64]>,
}

impl<'a> Lines<'a> {
    /// The lines of `bytes`; `only` names the starts of those that are shown, in order.
    pub fn new(bytes: &'a [u8], only: Option<&'a [u64]>) -> Self {
        Self { bytes, only }
    }

    /// The first line.
    pub fn first(&self) -> usize {
        match self.only {
            Some(only) => only.first().map_or(0, |&at| offset(at)),
            None => 0,
        }
    }

    /// The last line.
    pub fn last(&self) -> usize {
        if let Some(only) = self.only {
            return only.last().map_or(0, |&at| offset(at));
        }
        let end = self.bytes.len() - usize::from(self.bytes.last() == Some(&b'\n'));
        line_start(self.bytes, end)
    }

    /// The line after the one at `at`.
    pub fn next(&self, at: usize) -> Option<usize> {
        if let Some(only) = self.only {
            let index = only.partition_point(|&start| offset(start) <= at);
            return only.get(index).map(|&start| offset(start));
        }
        let end = memchr(b'\n', self.bytes.get(at..)?)? + at + 1;
        (end < self.bytes.len()).then_some(end)
    }

    /// The line before the one at `at`.
    pub fn previous(&self, at: usize) -> Option<usize> {
        if let Some(only) = self.only {
            let index = only.partition_point(|&start| offset(start) < at);
            return only.get(index.checked_sub(1)?).map(|&start| offset(start));
        }
        let end = at.min(self.bytes.len()).checked_sub(1)?;
        Some(line_start(self.bytes, end))
    }

    /// The shown line at `at`, or the nearest one before it, or the first.
    pub fn at_or_before(&self, at: usize) -> usize {
        match self.only {
            Some(only) => {
                let index = only.partition_point(|&start| offset(start) <= at);
                index.checked_sub(1).and_then(|i| only.get(i)).map_or(self.first(), |&start| offset(start))
            }
            None => line_start(self.bytes, at.min(self.bytes.len())),
        }
    }

    /// `count` lines further down or up from `at`, as far as there are lines.
    pub fn step(&self, at: usize, count: isize) -> usize {
        let mut here = at;
        for _ in 0..count.unsigned_abs() {
            let there = if count > 0 { self.next(here) } else { self.previous(here) };
            match there {
                Some(there) => here = there,
                None => break,
            }
        }
        here
    }

    /// The bytes of the line at `at`, without its end.
    pub fn text(&self, at: usize) -> &'a [u8] {
        line_at(self.bytes, at)
    }

    /// Whether a filter is on and lets nothing through.
    pub fn is_empty(&self) -> bool {
        self.only.is_some_and(<[u64]>::is_empty)
    }
}

fn offset(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// Start of the line that holds the byte at `at`.
pub fn line_start(bytes: &[u8], at: usize) -> usize {
    bytes.get(..at.min(bytes.len())).and_then(|head| memrchr(b'\n', head)).map_or(0, |end| end + 1)
}

/// The bytes of the line at `at`, without its end.
pub fn line_at(bytes: &[u8], at: usize) -> &[u8] {
    let rest = bytes.get(at..).unwrap_or_default();
    let line = memchr(b'\n', rest).and_then(|end| rest.get(..end)).unwrap_or(rest);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &[u8] = b"one\ntwo\r\n\nfour";

    #[test]
    fn every_line_is_passed_down_and_up() {
        let lines = Lines::new(LOG, None);
        let down: Vec<usize> = std::iter::successors(Some(lines.first()), |&at| lines.next(at)).collect();
        assert_eq!(down, [0, 4, 9, 10]);
        let up: Vec<usize> = std::iter::successors(Some(lines.last()), |&at| lines.previous(at)).collect();
        assert_eq!(up, [10, 9, 4, 0]);
        assert_eq!(lines.text(4), b"two");
        assert_eq!(lines.text(10), b"four");
        assert_eq!(lines.at_or_before(6), 4);
        assert_eq!(lines.step(0, 2), 9);
        assert_eq!(lines.step(9, -9), 0);
    }

    #[test]
    fn a_filter_leaves_its_lines() {
        let lines = Lines::new(LOG, Some(&[4, 10]));
        assert_eq!((lines.first(), lines.last()), (4, 10));
        assert_eq!((lines.next(4), lines.next(10)), (Some(10), None));
        assert_eq!((lines.previous(10), lines.previous(4)), (Some(4), None));
        assert_eq!((lines.at_or_before(9), lines.at_or_before(0)), (4, 4));
    }

    #[test]
    fn nothing_is_a_log_too() {
        let lines = Lines::new(b"", None);
        assert_eq!((lines.first(), lines.last(), lines.next(0), lines.previous(0)), (0, 0, None, None));
        let trailing = Lines::new(b"a\n", None);
        assert_eq!((trailing.last(), trailing.next(0)), (0, None));
        assert_eq!(Lines::new(b"a\n", Some(&[])).first(), 0);
    }
}
