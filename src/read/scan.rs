//! Small steps through a line of text: numbers and words at its head or after a key.
//!
//! In: text. Out: values and the text after them. It leaves the meaning of what it finds to the readers.

/// A decimal number at the head of `text`, and what follows. At most 19 digits.
#[must_use]
pub fn digits(text: &str) -> Option<(u64, &str)> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    if len == 0 || len > 19 {
        return None;
    }
    Some((text.get(..len)?.parse().ok()?, text.get(len..)?))
}

/// A decimal number with an optional minus sign at the head of `text`, and what follows.
#[must_use]
pub fn signed(text: &str) -> Option<(i64, &str)> {
    match text.strip_prefix('-') {
        Some(rest) => {
            let (value, rest) = digits(rest)?;
            Some((-i64::try_from(value).ok()?, rest))
        }
        None => {
            let (value, rest) = digits(text)?;
            Some((i64::try_from(value).ok()?, rest))
        }
    }
}

/// A number that fits 32 bits at the head of `text`, and what follows.
#[must_use]
pub fn small(text: &str) -> Option<(u32, &str)> {
    let (value, rest) = digits(text)?;
    Some((u32::try_from(value).ok()?, rest))
}

/// A hexadecimal number with or without `0x` at the head of `text`, and what follows. At most 16 digits.
#[must_use]
pub fn hex(text: &str) -> Option<(u64, &str)> {
    let body = text.strip_prefix("0x").unwrap_or(text);
    let len = body.bytes().take_while(u8::is_ascii_hexdigit).count();
    if len == 0 || len > 16 {
        return None;
    }
    Some((u64::from_str_radix(body.get(..len)?, 16).ok()?, body.get(len..)?))
}

/// The text after the first `key`.
#[must_use]
pub fn after<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.find(key).and_then(|at| text.get(at + key.len()..))
}

/// The text before the first `stop`; all of it where there is none.
#[must_use]
pub fn before<'t>(text: &'t str, stop: &str) -> &'t str {
    text.find(stop).and_then(|at| text.get(..at)).unwrap_or(text)
}

/// The text between the first `open` and the `close` after it.
#[must_use]
pub fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let rest = after(text, open)?;
    rest.find(close).and_then(|at| rest.get(..at))
}

/// The number after the first `key`, over blanks, `:` and `=`.
#[must_use]
pub fn number_after(text: &str, key: &str) -> Option<u64> {
    let rest = after(text, key)?.trim_start_matches([' ', ':', '=', '\t']);
    digits(rest).map(|(value, _)| value)
}

/// The 32-bit number after the first `key`, over blanks, `:` and `=`.
#[must_use]
pub fn small_after(text: &str, key: &str) -> Option<u32> {
    number_after(text, key).and_then(|value| u32::try_from(value).ok())
}

/// The number with optional sign after the first `key`, over blanks, `:` and `=`.
#[must_use]
pub fn signed_after(text: &str, key: &str) -> Option<i64> {
    let rest = after(text, key)?.trim_start_matches([' ', ':', '=', '\t']);
    signed(rest).map(|(value, _)| value)
}

/// The hexadecimal number after the first `key`, over blanks.
#[must_use]
pub fn hex_after(text: &str, key: &str) -> Option<u64> {
    hex(after(text, key)?.trim_start()).map(|(value, _)| value)
}

/// Offset of `needle`, which must be lower-case ASCII, in `text` of any case.
#[must_use]
pub fn find_any_case(text: &str, needle: &str) -> Option<usize> {
    let first = needle.bytes().next()?;
    let (text, needle) = (text.as_bytes(), needle.as_bytes());
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), text)
        .find(|&at| text.get(at..at + needle.len()).is_some_and(|part| part.eq_ignore_ascii_case(needle)))
}

/// Whether `needle`, lower-case ASCII, stands in `text` in any case.
#[must_use]
pub fn has_any_case(text: &str, needle: &str) -> bool {
    find_any_case(text, needle).is_some()
}

/// At most `limit` bytes of `text`, cut at a character.
#[must_use]
pub fn clip(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while end > 0 && !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bounded() {
        assert_eq!(digits("42 x"), Some((42, " x")));
        assert_eq!(digits("99999999999999999999"), None);
        assert_eq!(signed("-11)"), Some((-11, ")")));
        assert_eq!(hex("0x7f)"), Some((0x7f, ")")));
        assert_eq!(hex("11112222333344445"), None);
        assert_eq!(number_after("exitcode  : 7", "exitcode"), Some(7));
        assert_eq!(signed_after("exitcode: -6)", "exitcode"), Some(-6));
    }

    #[test]
    fn any_case_finds_the_offset() {
        assert_eq!(find_any_case("a SegFault b", "segfault"), Some(2));
        assert_eq!(find_any_case("segfaul", "segfault"), None);
        assert_eq!(clip("aé", 2), "a");
    }
}
