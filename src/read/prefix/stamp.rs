//! Time stamps at the head of a line or bracket.
//!
//! In: text. Out: a [`Stamp`] with its clock and nanoseconds, and its length. It leaves time zones alone where none is
//! printed: such a stamp counts as if it were UTC, and stamps of different clocks are never compared.

use super::super::event::{Clock, Stamp};
use super::super::scan::{digits, small};

const SECOND: i128 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;
const MONTH_STARTS_LEAP: [i64; 12] = [0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335];

/// Month names of the locales seen in journals, first letters only; the index is the month.
const MONTHS: [&[&str]; 12] = [
    &["jan", "ene", "gen", "янв", "led", "sty", "oca"],
    &["feb", "fev", "fév", "фев", "lut", "úno", "şub"],
    &["mar", "mär", "mrt", "мар", "maa"],
    &["apr", "avr", "abr", "апр", "kwi"],
    &["may", "mai", "mag", "maj", "мая", "май", "mei"],
    &["jun", "giu", "июн", "cze", "juin"],
    &["jul", "lug", "июл", "juil"],
    &["aug", "aoû", "ago", "авг", "sie"],
    &["sep", "set", "сен", "wrz"],
    &["oct", "okt", "ott", "out", "окт", "ekim"],
    &["nov", "ноя", "lis"],
    &["dec", "dez", "dic", "déc", "дек", "gru"],
];

/// A stamp at the head of `text` and its length in bytes: `2025-09-30 09:51:59.029`, RFC 3339, `06/15/2023 12:00:00`,
/// `09-27 06:46:46`, `16:45:05.123`.
pub fn leading(text: &str) -> Option<(Stamp, usize)> {
    let bytes = text.as_bytes();
    match (bytes.get(2)?, bytes.get(4)?) {
        (_, b'-' | b'/') => year_first(text),
        (b'/', _) => year_last(text),
        (b'-', _) => month_day(text),
        (b':', _) => {
            let (nanos, len) = clock_time(text)?;
            Some((stamp(text, len, nanos, Clock::Day)?, len))
        }
        _ => None,
    }
}

fn stamp(text: &str, len: usize, ns: i128, clock: Clock) -> Option<Stamp> {
    Some(Stamp { text: text.get(..len)?.to_owned(), ns, clock })
}

fn year_first(text: &str) -> Option<(Stamp, usize)> {
    let (year, rest) = exact(text, 4)?;
    let separator = rest.chars().next()?;
    let (month, rest) = exact(rest.get(1..)?, 2)?;
    let (day, rest) = exact(rest.strip_prefix(separator)?, 2)?;
    let rest = rest.strip_prefix([' ', 'T', '_', '-'])?;
    let (nanos, len) = clock_time(rest)?;
    let mut end = 11 + len;
    let mut ns = i128::from(days_from_civil(year, month, day)?) * i128::from(DAY_SECONDS) * SECOND + nanos;
    if let Some((offset_seconds, len)) = zone(text.get(end..)?) {
        ns -= i128::from(offset_seconds) * SECOND;
        end += len;
    }
    Some((stamp(text, end, ns, Clock::Wall)?, end))
}

fn year_last(text: &str) -> Option<(Stamp, usize)> {
    let (month, rest) = exact(text, 2)?;
    let (day, rest) = exact(rest.strip_prefix('/')?, 2)?;
    let (year, rest) = exact(rest.strip_prefix('/')?, 4)?;
    let (nanos, len) = clock_time(rest.strip_prefix([' ', '-', 'T'])?)?;
    let ns = i128::from(days_from_civil(year, month, day)?) * i128::from(DAY_SECONDS) * SECOND + nanos;
    Some((stamp(text, 11 + len, ns, Clock::Wall)?, 11 + len))
}

fn month_day(text: &str) -> Option<(Stamp, usize)> {
    let (month, rest) = exact(text, 2)?;
    let (day, rest) = exact(rest.strip_prefix('-')?, 2)?;
    let (nanos, len) = clock_time(rest.strip_prefix([' ', 'T'])?)?;
    let ns = no_year(month, day)? + nanos;
    Some((stamp(text, 6 + len, ns, Clock::WallNoYear)?, 6 + len))
}

/// `hh:mm:ss` with a fraction after `.` or `,`: nanoseconds of the day and the length.
pub fn clock_time(text: &str) -> Option<(i128, usize)> {
    let (hour, rest) = exact(text, 2)?;
    let (minute, rest) = exact(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = exact(rest.strip_prefix(':')?, 2)?;
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = i128::from(hour) * 3600 + i128::from(minute) * 60 + i128::from(second);
    let (fraction, len) = fraction(rest);
    Some((seconds * SECOND + fraction, 8 + len))
}

/// `.123` or `,123456`: nanoseconds and the length; zeros where there is none.
fn fraction(text: &str) -> (i128, usize) {
    let Some(rest) = text.strip_prefix(['.', ',']) else { return (0, 0) };
    let len = rest.bytes().take_while(u8::is_ascii_digit).count();
    if len == 0 {
        return (0, 0);
    }
    let mut nanos: i128 = 0;
    for at in 0..9 {
        let digit = if at < len { rest.as_bytes().get(at).map_or(0, |byte| byte - b'0') } else { 0 };
        nanos = nanos * 10 + i128::from(digit);
    }
    (nanos, len + 1)
}

fn zone(text: &str) -> Option<(i64, usize)> {
    if text.starts_with('Z') {
        return Some((0, 1));
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = exact(text.get(1..)?, 2)?;
    let colon = usize::from(rest.starts_with(':'));
    let (minutes, _) = exact(rest.get(colon..)?, 2)?;
    Some((sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60), 5 + colon))
}

fn exact(text: &str, len: usize) -> Option<(u32, &str)> {
    let head = text.get(..len)?;
    if !head.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((head.parse().ok()?, text.get(len..)?))
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar.
fn days_from_civil(year: u32, month: u32, day: u32) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || year == 0 {
        return None;
    }
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let shifted_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

fn no_year(month: u32, day: u32) -> Option<i128> {
    let start = MONTH_STARTS_LEAP.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
    if !(1..=31).contains(&day) {
        return None;
    }
    Some((i128::from(*start) + i128::from(day) - 1) * i128::from(DAY_SECONDS) * SECOND)
}

/// glog's `1129 19:41:59.757231482` or `321 12:14:43.351` (month without its zero), and absl's
/// `0000 00:00:1700000000.123456` (seconds since 1970).
pub fn glog(text: &str) -> Option<(Stamp, usize)> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(3..=4).contains(&len) {
        return None;
    }
    let (month, day) = (small(text.get(..len - 2)?)?.0, small(text.get(len - 2..len)?)?.0);
    let rest = text.get(len..)?.strip_prefix(' ')?;
    if let Some(epoch) = rest.strip_prefix("00:00:")
        && month == 0
    {
        let (seconds, tail) = digits(epoch)?;
        let (nanos, fraction_len) = fraction(tail);
        let end = text.len() - tail.len() + fraction_len;
        return Some((stamp(text, end, i128::from(seconds) * SECOND + nanos, Clock::Wall)?, end));
    }
    let (nanos, time_len) = clock_time(rest)?;
    let end = len + 1 + time_len;
    Some((stamp(text, end, no_year(month, day)? + nanos, Clock::WallNoYear)?, end))
}

/// Seconds with a fraction: since boot, or since 1970 where they are that many.
pub fn seconds(text: &str) -> Option<(Stamp, usize)> {
    let (whole, rest) = digits(text)?;
    let (nanos, len) = fraction(rest);
    if len == 0 || !rest.starts_with('.') {
        return None;
    }
    let end = text.len() - rest.len() + len;
    let clock = if whole >= 1_000_000_000 { Clock::Wall } else { Clock::Boot };
    Some((stamp(text, end, i128::from(whole) * SECOND + nanos, clock)?, end))
}

/// `Jan  2 15:04:05`, `6月 10 16:45:05`, `10. Jun 16:45:05`, with the weekday before and the year after where printed
/// (`Mon Jan  2 15:04:05 2023`).
pub fn month_name(text: &str) -> Option<(Stamp, usize)> {
    let mut words = Words { text, at: 0 };
    let first = words.next()?;
    let second = words.next()?;
    let (month, day) = match (month_of(first), month_of(second)) {
        (Some(month), None) => (month, day_of(second)?),
        (None, Some(month)) => match day_of(first) {
            Some(day) => (month, day),
            None if first.chars().count() <= 4 => (month, day_of(words.next()?)?),
            None => return None,
        },
        _ => return None,
    };
    let time = words.next()?;
    let (nanos, len) = clock_time(time)?;
    if len < time.len() {
        return None;
    }
    let mut end = words.at;
    let year = words
        .next()
        .and_then(|word| exact(word, 4))
        .filter(|(year, tail)| tail.is_empty() && (1970..2200).contains(year));
    if let Some((year, _)) = year {
        end = words.at;
        let ns = i128::from(days_from_civil(year, month, day)?) * i128::from(DAY_SECONDS) * SECOND + nanos;
        return Some((stamp(text, end, ns, Clock::Wall)?, end));
    }
    Some((stamp(text, end, no_year(month, day)? + nanos, Clock::WallNoYear)?, end))
}

fn month_of(word: &str) -> Option<u32> {
    if let Some((number, rest)) = small(word) {
        return (rest == "月" && (1..=12).contains(&number)).then_some(number);
    }
    if word.len() > 24 || word.bytes().any(|byte| byte.is_ascii_digit() || byte == b':') {
        return None;
    }
    let lower = word.to_lowercase();
    let index = MONTHS.iter().position(|names| names.iter().any(|name| lower.starts_with(name)))?;
    u32::try_from(index + 1).ok()
}

fn day_of(word: &str) -> Option<u32> {
    let (day, rest) = small(word)?;
    (matches!(rest, "" | "." | "日") && (1..=31).contains(&day)).then_some(day)
}

/// Words of the head of a line, with the offset after each.
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let rest = self.text.get(self.at..)?;
        let start = rest.len() - rest.trim_start_matches(' ').len();
        let word = rest.get(start..)?.split([' ', '\t', '[']).next().filter(|word| !word.is_empty())?;
        self.at += start + word.len();
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(text: &str) -> (i128, Clock, usize) {
        let (stamp, len) = leading(text).or_else(|| month_name(text)).unwrap();
        (stamp.ns, stamp.clock, len)
    }

    #[test]
    fn stamps_count_on_their_own_clock() {
        assert_eq!(ns("1970-01-02 00:00:01.5 x"), (86_401_500_000_000, Clock::Wall, 21));
        assert_eq!(ns("1970-01-01T02:00:00,25+02:00 x"), (250_000_000, Clock::Wall, 28));
        assert_eq!(ns("2000-03-01T00:00:00Z").0, 951_868_800 * SECOND);
        assert_eq!(ns("09-27 06:46:46 x"), ((270 * 86_400 + 24_406) * SECOND, Clock::WallNoYear, 14));
        assert_eq!(ns("12:00:00 x"), (43_200 * SECOND, Clock::Day, 8));
        assert_eq!(ns("01/02/1970-00:00:00"), (86_400 * SECOND, Clock::Wall, 19));
        assert_eq!(ns("6月 10 16:45:05 host"), ((161 * 86_400 + 60_305) * SECOND, Clock::WallNoYear, 16));
        assert_eq!(ns("Mon Jan  5 00:00:01 1970 x"), ((4 * 86_400 + 1) * SECOND, Clock::Wall, 24));
    }

    #[test]
    fn glog_months_lose_their_zero() {
        let (stamp, len) = glog("321 12:14:43.351 Process").unwrap();
        assert_eq!((stamp.text.as_str(), len), ("321 12:14:43.351", 16));
        assert_eq!(stamp.ns, (80 * 86_400 + 44_083) * SECOND + 351_000_000);
        let (stamp, _) = glog("0000 00:00:1700000000.5 12 cuda_dnn.cc").unwrap();
        assert_eq!((stamp.ns, stamp.clock), (1_700_000_000_500_000_000, Clock::Wall));
    }
}
