//! When a text was printed: its first and last dated line.
//!
//! In: bytes. Out: [`Times`], where any line near the ends begins with a date. It leaves comparing clocks to the verdict, and
//! reads only the ends of a text: a log of gigabytes is dated as fast as a short one.

use memchr::{memchr, memrchr};

use super::event::{Clock, InputId, Stamp};
use super::lines::segments;

/// Lines at either end that are searched for a date.
const LINES: usize = 400;
/// Bytes at either end that are searched for a date.
const BYTES: usize = 256 * 1024;

/// First and last dated line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// Earliest date near the start.
    pub first: Stamp,
    /// Last date near the end.
    pub last: Stamp,
    /// Whether lines without a date follow the last one: the text goes on for an unknown time.
    pub open: bool,
}

/// Dates of a text; none where its lines carry none.
#[must_use]
pub fn times(bytes: &[u8]) -> Option<Times> {
    let first = head(bytes).into_iter().find_map(dated)?;
    let mut open = false;
    for line in tail(bytes) {
        if let Some(last) = dated(line) {
            return Some(Times { first, last, open });
        }
        open |= !line.trim_ascii().is_empty();
    }
    Some(Times { last: first.clone(), first, open: true })
}

fn dated(line: &[u8]) -> Option<Stamp> {
    let stamp = segments(line, 1, 0, line.len()).first()?.parse(InputId(0)).origin.time?;
    matches!(stamp.clock, Clock::Wall | Clock::WallNoYear).then_some(stamp)
}

/// The first lines, in order.
fn head(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes.get(..BYTES).unwrap_or(bytes);
    let mut lines = Vec::new();
    while !rest.is_empty() && lines.len() < LINES {
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        lines.push(rest.get(..end).unwrap_or_default());
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    lines
}

/// The last lines, the last one first.
fn tail(bytes: &[u8]) -> Vec<&[u8]> {
    let mut rest = bytes.get(bytes.len().saturating_sub(BYTES)..).unwrap_or_default();
    let mut lines = Vec::new();
    while !rest.is_empty() && lines.len() < LINES {
        let start = memrchr(b'\n', rest).map_or(0, |at| at + 1);
        lines.push(rest.get(start..).unwrap_or_default());
        rest = rest.get(..start.saturating_sub(1)).unwrap_or_default();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(log: &str) -> Option<(String, String, bool)> {
        times(log.as_bytes()).map(|found| (found.first.text, found.last.text, found.open))
    }

    #[test]
    fn the_first_and_the_last_date_count() {
        let log = "starting\n2024-11-05 02:14:51,201 INFO a\nstep\n2024-11-05 02:44:51,201 INFO b\n";
        let (first, last, open) = texts(log).unwrap();
        assert!(first.starts_with("2024-11-05 02:14:51"), "{first}");
        assert!(last.starts_with("2024-11-05 02:44:51"), "{last}");
        assert!(!open);
        assert!(texts(&format!("{log}Traceback (most recent call last):\n")).unwrap().2);
    }

    #[test]
    fn seconds_since_boot_and_times_of_day_are_no_dates() {
        assert_eq!(texts("[   10.500000] NVRM: loading\n02:14:51 step 1\nplain\n"), None);
        assert_eq!(texts(""), None);
        assert_eq!(texts("\n\n"), None);
    }
}
