//! Whether a program went on after its last error, and how its log ends.
//!
//! In: bytes and the events of a text. Out: [`WentOn`]: progress after the last error that a program can handle, and the line that
//! says that all went well. It leaves alone whether the error was handled: a device's memory fault never is.

use memchr::{memchr, memrchr};

use super::event::{Data, Event, InputId};
use super::lines::segments;
use super::pattern::Pattern;
use super::scan::has_any_case;
use super::steps::step;

/// Lines after the error in which progress is looked for.
const PROGRESS_LINES: usize = 5_000;
/// Lines before the end in which its last words are looked for.
const LAST_LINES: usize = 30;
/// An exit status counts where it is among the very last lines.
const STATUS_LINES: usize = 3;
/// Errors of one text that are followed.
const ERRORS: usize = 512;
/// Longest line that is looked at.
const LINE_BYTES: usize = 2_000;

/// How a log ends well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A status of 0.
    Status,
    /// Words such as "training finished".
    Words,
}

/// What a log says after its last error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WentOn {
    /// Line of the last error, counted from 1.
    pub error_line: u64,
    /// Lines of progress of the same process after it.
    pub progress: usize,
    /// The line with which it ends well.
    pub ended: Option<(u64, Ending)>,
}

/// Progress that counts no steps.
static EPOCH_OR_LOSS: Pattern = Pattern::new(r"(?i)\bepoch\b[ :=/#\[(]{0,3}\d|\bloss\b[ :=]{1,3}-?\d");
static STATUS: Pattern = Pattern::new(
    r"(?i)\bexit(?:ed)?(?: with)?(?: (?:status|code)|code|status)?(?: of)?[ :=]{1,3}0(?:$|[\s,;.)\]]\D|[\s,;.)\]]$)",
);
static WORDS: Pattern = Pattern::new(
    r"(?i)\b(?:training|pretraining|fine-?tuning|run|job|evaluation|inference|benchmark|tests?|script|program|experiment|task)\b[^.!?]{0,40}\b(?:finished|completed?|done|succeeded)\b|\b(?:finished|completed|exited|ended|done) (?:successfully|cleanly|normally)\b|\bsuccessfully (?:finished|completed|trained)\b",
);
/// An error's own line tells what was done about it.
static SAYS_HANDLED: Pattern = Pattern::new(
    r"(?i)\b(?:caught|retry(?:ing)?|re-?trying|will retry|decreas(?:ed|ing)|reduc(?:ed|ing)|halv(?:ed|ing)|falling back|fall(?:s|ing)? back|skipp(?:ed|ing)|recover(?:ed|ing)|ignor(?:ed|ing))\b",
);
static NOT_WELL: Pattern = Pattern::new(
    r"(?i)\b(?:not|never|no|fail\w*|errors?|\w*exception|abort\w*|crash\w*|kill\w*|before|unless|if|until|when|once|unsuccessful\w*|partial\w*|epoch|step|cannot|could)\b",
);

/// What the text says after its last error; none where it says of no error, or nothing after it.
#[must_use]
pub fn went_on(bytes: &[u8], events: &[Event]) -> Option<WentOn> {
    let error = events.iter().filter(|event| is_error(&event.data)).max_by_key(|event| event.span.byte)?;
    let from = after(bytes, usize::try_from(error.span.byte).ok()?, error.span.lines);
    let rest = bytes.get(from..).unwrap_or_default();
    let progress =
        lines(rest).take(PROGRESS_LINES).filter(|line| is_progress(line, error.origin.rank)).count();
    let ended = ending(rest).map(|(back, ending)| {
        let all = memchr::memchr_iter(b'\n', bytes).count() + usize::from(bytes.last() != Some(&b'\n'));
        ((all.saturating_sub(back)) as u64, ending)
    });
    (progress > 0 || ended.is_some()).then_some(WentOn { error_line: error.span.line, progress, ended })
}

/// An error after which the same process was at work again, before anything else failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survived {
    /// Line of the error, counted from 1.
    pub line: u64,
    /// Lines of progress between it and the next error.
    pub progress: usize,
}

/// The errors that the program survived, in order. Where the line itself says that it was handled, one line of progress tells; else
/// it takes two, for what another process prints may stand between.
#[must_use]
pub fn survived(bytes: &[u8], events: &[Event]) -> Vec<Survived> {
    let mut errors: Vec<&Event> = events.iter().filter(|event| is_error(&event.data)).collect();
    errors.sort_by_key(|event| event.span.byte);
    let mut left = PROGRESS_LINES;
    let mut found = Vec::new();
    for (at, error) in errors.iter().enumerate().take(ERRORS) {
        let Ok(start) = usize::try_from(error.span.byte) else { continue };
        let from = after(bytes, start, error.span.lines);
        let next = errors.get(at + 1..).unwrap_or_default().iter().map(|next| next.span.byte);
        let to =
            next.filter_map(|byte| usize::try_from(byte).ok()).find(|to| *to > start).unwrap_or(bytes.len());
        let mut progress = 0;
        for line in lines(bytes.get(from..to).unwrap_or_default()) {
            if left == 0 {
                return found;
            }
            left -= 1;
            progress += usize::from(is_progress(line, error.origin.rank));
        }
        if progress >= if SAYS_HANDLED.is_match(&error.text) { 1 } else { 2 } {
            found.push(Survived { line: error.span.line, progress });
        }
    }
    found
}

/// Whether the text's last lines say that all went well.
#[must_use]
pub fn ends_well(bytes: &[u8]) -> bool {
    ending(bytes).is_some()
}

fn is_error(data: &Data) -> bool {
    matches!(
        data,
        Data::Traceback(_)
            | Data::Exception(_)
            | Data::GpuOutOfMemory(_)
            | Data::Status(_)
            | Data::Unknown(_)
    )
}

/// Offset after a block of lines.
fn after(bytes: &[u8], from: usize, lines: u32) -> usize {
    let mut at = from;
    for _ in 0..lines.max(1) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
    }
    at
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').map(|line| line.get(..LINE_BYTES).unwrap_or(line))
}

/// Whether a line counts steps, of the process that had the error as far as prefixes tell.
fn is_progress(line: &[u8], rank: Option<u32>) -> bool {
    segments(line, 1, 0, line.len()).into_iter().any(|segment| {
        let line = segment.parse(InputId(0));
        let body = line.body();
        (step(body).is_some() || EPOCH_OR_LOSS.is_match(body))
            && !["error", "exception", "fail", "file \""].iter().any(|word| has_any_case(body, word))
            && (line.origin.rank.is_none() || line.origin.rank == rank)
    })
}

/// The line with which a text ends well, counted from the end, 0 the last one.
fn ending(text: &[u8]) -> Option<(usize, Ending)> {
    let mut rest = text.strip_suffix(b"\n").unwrap_or(text);
    let (mut back, mut seen) = (0, 0);
    while !rest.is_empty() && seen < LAST_LINES {
        let start = memrchr(b'\n', rest).map_or(0, |at| at + 1);
        let line = rest.get(start..).unwrap_or_default();
        let line = String::from_utf8_lossy(line.get(..LINE_BYTES).unwrap_or(line));
        if !line.trim().is_empty() {
            seen += 1;
            if WORDS.is_match(&line) && !NOT_WELL.is_match(&line) {
                return Some((back, Ending::Words));
            }
            if seen <= STATUS_LINES && STATUS.is_match(line.trim_end()) {
                return Some((back, Ending::Status));
            }
        }
        back += 1;
        rest = rest.get(..start.saturating_sub(1)).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_text;

    fn of(log: &str) -> Option<WentOn> {
        went_on(log.as_bytes(), &read_text(InputId(0), log.as_bytes()).events)
    }

    const ERROR: &str = "step 1\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\n    x()\nValueError: bad sample\n";

    #[test]
    fn progress_and_last_words_count_after_the_error() {
        let well = of(&format!("{ERROR}step 2\nstep 3\nTraining finished successfully\n")).unwrap();
        assert_eq!((well.progress, well.ended), (2, Some((8, Ending::Words))));
        let status = of(&format!("{ERROR}step 2\nexit status 0\n\n")).unwrap();
        assert_eq!((status.progress, status.ended), (1, Some((7, Ending::Status))));
        assert_eq!(of("step 1\nTraining finished\n"), None);
        assert_eq!(of(ERROR), None);
    }

    fn lives(log: &str) -> Vec<(u64, usize)> {
        let events = read_text(InputId(0), log.as_bytes()).events;
        survived(log.as_bytes(), &events).iter().map(|one| (one.line, one.progress)).collect()
    }

    #[test]
    fn an_error_is_survived_where_its_process_works_on_before_the_next() {
        let caught =
            "WARNING: Decreasing batch size to: 16 after CUDA out of memory. Tried to allocate 1.50 GiB\n";
        let bare = "CUDA out of memory. Tried to allocate 1.50 GiB\n";
        let fatal = "RuntimeError: CUDA error: an illegal memory access was encountered\n";
        assert_eq!(lives(&format!("{caught}step 1 loss 2.0\n{fatal}")), [(1, 1)]);
        assert_eq!(lives(&format!("{bare}step 1 loss 2.0\n{fatal}")), []);
        assert_eq!(lives(&format!("{bare}step 1 loss 2.0\nstep 2 loss 1.9\n{fatal}")), [(1, 2)]);
        assert_eq!(lives(&format!("{caught}{fatal}step 1 loss 2.0\n")), []);
        assert_eq!(lives(&format!("[rank1] {caught}[rank0] step 1\n[rank0] step 2\n{fatal}")), []);
    }

    #[test]
    fn words_that_do_not_end_a_run_well_are_no_ending() {
        for line in [
            "training failed, run not completed",
            "job completed with errors",
            "epoch 3 finished, training goes on",
            "exit status 01x",
            "exit code 0.5",
            "exit status 1",
            "the run will be finished when the data ends",
            "  File \"train.py\", line 3, in step 4",
        ] {
            let found = of(&format!("{ERROR}{line}\n"));
            assert_eq!(found.and_then(|found| found.ended), None, "{line}");
        }
        for line in ["exit code: 0", "process exited with code 0.", "exit 0", "Job 12 completed"] {
            assert!(of(&format!("{ERROR}{line}\n")).is_some_and(|found| found.ended.is_some()), "{line}");
        }
    }

    #[test]
    fn another_ranks_progress_is_not_the_failed_ones() {
        let log = "[rank1] CUDA out of memory. Tried to allocate 2.00 GiB\n[rank0] step 2\n[rank0] step 3\n";
        assert_eq!(of(log), None);
    }
}
