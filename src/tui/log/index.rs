//! Line numbers of a log that is too large to count on the way.
//!
//! In: bytes, a piece at a time. Out: [`LineIndex`]: the offset of every 256th line start, from which any number or offset
//! is one short count away. Ten million lines take 320 kB.

use memchr::memchr_iter;

/// Lines between two marks.
const STRIDE: u64 = 256;

/// Bytes that one step counts; between steps the counting can be stopped.
pub const STEP_BYTES: usize = 32 << 20;

/// Offsets of line starts, one in 256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIndex {
    /// `marks[i]` is the start of line 256·i, counted from 0.
    marks: Vec<u64>,
    /// Line ends counted so far.
    ends: u64,
    /// Bytes counted so far.
    counted: usize,
    /// Whether all is counted.
    done: bool,
}

impl Default for LineIndex {
    fn default() -> Self {
        Self { marks: vec![0], ends: 0, counted: 0, done: false }
    }
}

impl LineIndex {
    /// Counts the next piece; true when all is counted.
    pub fn step(&mut self, bytes: &[u8]) -> bool {
        let from = self.counted.min(bytes.len());
        let to = bytes.len().min(from.saturating_add(STEP_BYTES));
        for end in memchr_iter(b'\n', bytes.get(from..to).unwrap_or_default()) {
            self.ends += 1;
            if self.ends.is_multiple_of(STRIDE) {
                self.marks.push((from + end + 1) as u64);
            }
        }
        self.counted = to;
        self.done = to == bytes.len();
        self.done
    }

    /// Goes on where the bytes have grown; a shorter log is counted afresh.
    pub fn grow(&mut self, len: usize) {
        if len < self.counted {
            *self = Self::default();
        }
        self.done = self.counted == len;
    }

    /// Whether all is counted.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Number of the line that starts at `at`, counted from 1; none where the count hasn't come so far.
    pub fn number(&self, bytes: &[u8], at: usize) -> Option<u64> {
        if at > self.counted {
            return None;
        }
        let index = self.marks.partition_point(|&mark| mark <= at as u64).checked_sub(1)?;
        let mark = usize::try_from(*self.marks.get(index)?).ok()?;
        let more = memchr_iter(b'\n', bytes.get(mark..at)?).count() as u64;
        Some(index as u64 * STRIDE + more + 1)
    }

    /// Start of line `number`, counted from 1; the last line for numbers past it. None where the count hasn't come so far.
    pub fn offset(&self, bytes: &[u8], number: u64) -> Option<usize> {
        let line = number.saturating_sub(1);
        if line > self.ends && !self.done {
            return None;
        }
        let line = line.min(self.ends);
        let mark = usize::try_from(*self.marks.get(usize::try_from(line / STRIDE).ok()?)?).ok()?;
        let wanted = line % STRIDE;
        if wanted == 0 {
            return Some(mark);
        }
        let ends = memchr_iter(b'\n', bytes.get(mark..)?);
        ends.take(usize::try_from(wanted).ok()?).last().map(|end| mark + end + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_offsets_go_round() {
        let text: String = (1..=2000).map(|n| format!("line {n}\n")).collect();
        let bytes = text.as_bytes();
        let mut index = LineIndex::default();
        assert!(index.step(bytes));
        for number in [1, 2, 255, 256, 257, 512, 1999, 2000] {
            let at = index.offset(bytes, number).unwrap();
            assert!(text[at..].starts_with(&format!("line {number}\n")), "{number}");
            assert_eq!(index.number(bytes, at), Some(number));
        }
        assert_eq!(index.offset(bytes, 9_999_999), Some(text.len()));
    }

    #[test]
    fn a_count_that_is_under_way_says_so() {
        let bytes = vec![b'\n'; STEP_BYTES + 10];
        let mut index = LineIndex::default();
        assert!(!index.step(&bytes));
        assert_eq!(index.number(&bytes, STEP_BYTES + 5), None);
        assert_eq!(index.offset(&bytes, STEP_BYTES as u64 + 5), None);
        assert!(index.step(&bytes));
        assert_eq!(index.number(&bytes, STEP_BYTES + 5), Some(STEP_BYTES as u64 + 6));
    }

    #[test]
    fn a_log_that_grows_is_counted_on() {
        let mut index = LineIndex::default();
        index.step(b"a\nb");
        index.grow(8);
        assert!(!index.is_done());
        index.step(b"a\nb\nc\nd\n");
        assert_eq!(index.number(b"a\nb\nc\nd\n", 6), Some(4));
        index.grow(2);
        assert_eq!(index, LineIndex::default());
    }
}
