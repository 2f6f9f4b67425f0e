//! How far a dated line lies outside a log.
//!
//! In: stamps. Out: seconds, also between a date with a year and one without. It leaves alone what a distance means.

use crate::read::event::{Clock, Stamp};
use crate::read::times::Times;

const SECOND: i128 = 1_000_000_000;
const DAY: i64 = 86_400;
/// Seconds of a year whose leap day always counts, as stamps without a year count them.
const YEAR: i64 = 366 * DAY;
/// Such a year.
const LEAP_YEAR: i16 = 2024;

/// Seconds from `from` to `to`; none where the two can't be compared. Without a year the nearer one is taken.
pub fn seconds(from: &Stamp, to: &Stamp) -> Option<i64> {
    if from.clock == Clock::Wall && to.clock == Clock::Wall {
        return i64::try_from((to.ns - from.ns).div_euclid(SECOND)).ok();
    }
    let apart = in_year(to)? - in_year(from)?;
    Some((apart + YEAR / 2).rem_euclid(YEAR) - YEAR / 2)
}

/// Where a line lies outside a log: seconds before its first date (negative) or after its last one; 0 within.
pub fn outside(line: &Stamp, log: &Times) -> Option<i64> {
    let (to_first, from_last) = (seconds(line, &log.first)?, seconds(&log.last, line)?);
    Some(match (to_first > 0, from_last > 0) {
        // Without a year, a line can be both; the nearer end counts.
        (true, true) if to_first <= from_last => -to_first,
        (true, true) => from_last,
        (true, false) => -to_first,
        (false, true) => from_last,
        (false, false) => 0,
    })
}

/// Whether a stamp names its zone.
pub fn has_zone(stamp: &Stamp) -> bool {
    let text = stamp.text.as_bytes();
    let signed = |back: usize| {
        text.len()
            .checked_sub(back)
            .and_then(|at| text.get(at))
            .is_some_and(|byte| matches!(byte, b'+' | b'-'))
    };
    stamp.clock == Clock::Wall && text.len() > 19 && (text.last() == Some(&b'Z') || signed(5) || signed(6))
}

/// Seconds since the start of the year.
fn in_year(stamp: &Stamp) -> Option<i64> {
    let seconds = i64::try_from(stamp.ns.div_euclid(SECOND)).ok()?;
    match stamp.clock {
        Clock::WallNoYear => Some(seconds),
        Clock::Wall => {
            let date = jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::from_second(seconds).ok()?).date();
            let date = jiff::civil::Date::new(LEAP_YEAR, date.month(), date.day()).ok()?;
            Some(i64::from(date.day_of_year() - 1) * DAY + seconds.rem_euclid(DAY))
        }
        Clock::Day | Clock::Boot => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(line: &str) -> Stamp {
        crate::read::prefix::strip(line).0.time.unwrap()
    }

    #[test]
    fn dates_with_and_without_a_year_compare() {
        let dated = stamp("2024-11-05 02:45:00 x");
        assert_eq!(seconds(&dated, &stamp("2024-11-05T02:46:00Z x")), Some(60));
        assert_eq!(seconds(&dated, &stamp("[E1105 02:44:00.0 a.cpp:1] x")), Some(-60));
        assert_eq!(seconds(&dated, &stamp("Nov  5 03:45:00 host kernel: x")), Some(3600));
        assert_eq!(seconds(&stamp("12-31 23:59:00 x"), &stamp("2025-01-01 00:01:00 x")), Some(120));
        assert_eq!(seconds(&stamp("2024-02-29 12:00:00 x"), &stamp("02-29 12:00:01 x")), Some(1));
        assert_eq!(seconds(&dated, &stamp("[   10.500000] x")), None);
    }

    #[test]
    fn a_line_is_before_within_or_after_a_log() {
        let log = Times {
            first: stamp("2024-11-05 02:00:00 x"),
            last: stamp("2024-11-05 03:00:00 x"),
            open: false,
        };
        assert_eq!(outside(&stamp("2024-11-05 01:59:00 x"), &log), Some(-60));
        assert_eq!(outside(&stamp("11-05 02:30:00 x"), &log), Some(0));
        assert_eq!(outside(&stamp("2024-11-05 03:00:05 x"), &log), Some(5));
        assert_eq!(outside(&stamp("[   10.500000] x"), &log), None);
    }

    #[test]
    fn zones_are_seen() {
        for (line, expected) in [
            ("2024-11-05T02:46:00Z x", true),
            ("2024-11-05T02:46:00.5+02:00 x", true),
            ("2024-11-05 02:46:00,201 x", false),
            ("[Tue Oct  1 09:00:00 2024] x", false),
        ] {
            assert_eq!(has_zone(&stamp(line)), expected, "{line}");
        }
    }
}
