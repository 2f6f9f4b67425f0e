//! A command of the walk that runs: what it printed last, and since when.
//!
//! In: chunks as printed. Out: [`Run`], whose lines are escaped. It keeps a screenful, whatever the command prints.

use std::collections::VecDeque;
use std::time::Duration;

use crate::playbook::StepRef;

/// Lines that are kept.
const LINES: usize = 200;
/// Bytes of a line that are kept, and of a chunk that are looked at.
const LINE_BYTES: usize = 2_000;
const CHUNK_BYTES: usize = 64 << 10;

/// A command that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Whose step it is.
    pub step: StepRef,
    /// Since when.
    pub since: Duration,
    /// How long it may take.
    pub deadline: Duration,
    /// Bytes that it printed.
    pub bytes: u64,
    /// Whether its end was asked for.
    pub ending: bool,
    lines: VecDeque<String>,
    partial: Vec<u8>,
}

impl Run {
    /// A command that was just started.
    pub fn new(step: StepRef, since: Duration, deadline: Duration) -> Self {
        Self { step, since, deadline, bytes: 0, ending: false, lines: VecDeque::new(), partial: Vec::new() }
    }

    /// Takes what was printed. A carriage return begins the line anew, as on a terminal: progress bars stay one line.
    pub fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        let from = chunk.len().saturating_sub(CHUNK_BYTES);
        for byte in chunk.get(from..).unwrap_or_default() {
            match byte {
                b'\n' => self.end_line(),
                b'\r' => {
                    // A line that ends in both is kept; the next printed byte decides.
                    if self.partial.last() != Some(&b'\r') {
                        self.partial.push(b'\r');
                    }
                }
                byte => {
                    if self.partial.last() == Some(&b'\r') {
                        self.partial.clear();
                    }
                    if self.partial.len() < LINE_BYTES {
                        self.partial.push(*byte);
                    }
                }
            }
        }
    }

    fn end_line(&mut self) {
        let line = shown(&self.partial);
        self.partial.clear();
        self.lines.push_back(line);
        if self.lines.len() > LINES {
            self.lines.pop_front();
        }
    }

    /// The last `count` lines, the one being printed among them.
    pub fn last(&self, count: usize) -> Vec<String> {
        let partial = shown(&self.partial);
        let open = (!partial.is_empty()).then_some(partial);
        let whole = count.saturating_sub(usize::from(open.is_some()));
        let skip = self.lines.len().saturating_sub(whole);
        self.lines.iter().skip(skip).cloned().chain(open).collect()
    }
}

fn shown(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    crate::text::LogText::from_bytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run::new(StepRef::new("a", "b"), Duration::ZERO, Duration::from_secs(60))
    }

    #[test]
    fn lines_are_kept_and_progress_stays_one_line() {
        let mut run = run();
        run.push(b"one\r\n10 %\r20");
        run.push(b" %\r30 %");
        assert_eq!(run.last(5), ["one", "30 %"]);
        run.push(b"\n\x1b]0;owned\x07 three\n");
        assert_eq!(run.last(2), ["30 %", "\\x1b]0;owned\\x07 three"]);
        assert_eq!(run.last(1), ["\\x1b]0;owned\\x07 three"]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut run = run();
        for _ in 0..100 {
            run.push(&vec![b'x'; 1 << 20]);
            run.push(b"\n");
        }
        assert_eq!(run.bytes, 100 * ((1 << 20) + 1));
        assert!(run.last(usize::MAX).iter().map(String::len).sum::<usize>() <= LINES * LINE_BYTES);
    }
}
