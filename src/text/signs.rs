//! Our own signs, for terminals whose locale has none but ASCII.
//!
//! In: text of reports. Out: the same with `×`, `…`, `2³¹` and their like in ASCII. Letters of other languages stay: they
//! come from logs, and dropping them would lose names.

use std::borrow::Cow;

/// The locale's variables; the first that is set and not empty decides.
const VARIABLES: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// `text` with ASCII in place of our signs.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut raised = false;
    for c in text.chars() {
        let power = "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|digit| digit == c);
        match (power, c) {
            (Some(digit), _) => {
                if !raised {
                    out.push('^');
                }
                out.push(char::from_digit(u32::try_from(digit).unwrap_or(0), 10).unwrap_or('?'));
            }
            (None, '×') => out.push('x'),
            (None, '−' | '–' | '—') => out.push('-'),
            (None, '→') => out.push_str("->"),
            (None, '…') => out.push_str("..."),
            (None, '≤') => out.push_str("<="),
            (None, '≥') => out.push_str(">="),
            (None, '≠') => out.push_str("!="),
            (None, '·') => out.push('*'),
            (None, c) => out.push(c),
        }
        raised = power.is_some();
    }
    Cow::Owned(out)
}

/// The locale's name, of the variables that `variable` reads.
#[must_use]
pub fn locale(variable: impl Fn(&str) -> Option<String>) -> String {
    VARIABLES.iter().find_map(|name| variable(name).filter(|value| !value.is_empty())).unwrap_or_default()
}

/// Whether a locale writes UTF-8.
#[must_use]
pub fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_become_ascii_and_letters_stay() {
        assert_eq!(plain("2³¹−1 × 2¹⁰ … ≤ é"), "2^31-1 x 2^10 ... <= é");
        assert!(matches!(plain("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let of = |pairs: &'static [(&str, &str)]| {
            locale(|name| {
                pairs.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(is_utf8(&of(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "")])));
        assert!(!is_utf8(&of(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")])));
        assert!(!is_utf8(&of(&[])));
    }
}
