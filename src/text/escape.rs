//! Control characters made visible.
//!
//! In: any string. Out: the same text on one line, in which nothing moves a cursor, changes a direction or hides. It
//! leaves every visible character as it is, backslashes included.

use std::borrow::Cow;
use std::fmt::{self, Write};

use unicode_width::UnicodeWidthChar;

/// A string as it may be shown; see [`escape`].
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'a>(&'a str);

/// Shows `text` with its control characters made visible.
///
/// C0 controls and DEL appear as `\x1b`, line ends as `\n` and `\r`, a tab as four blanks; C1 controls, direction
/// marks and overrides, zero-width characters, line and paragraph separators, tags and other invisible format characters
/// appear as `\u{202e}`.
#[must_use]
pub fn escape(text: &str) -> Escaped<'_> {
    Escaped(text)
}

impl<'a> Escaped<'a> {
    /// The escaped text, borrowed where there was nothing to escape.
    #[must_use]
    pub fn to_cow(self) -> Cow<'a, str> {
        if hidden(self.0).next().is_none() {
            return Cow::Borrowed(self.0);
        }
        let mut out = String::with_capacity(self.0.len() + 16);
        // Writing to a string can't fail.
        let _ = write_escaped(self.0, &mut out);
        Cow::Owned(out)
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_some() || f.precision().is_some() {
            return f.pad(&self.to_cow());
        }
        write_escaped(self.0, f)
    }
}

fn write_escaped(text: &str, out: &mut impl Write) -> fmt::Result {
    let mut plain_from = 0;
    for (at, c) in hidden(text) {
        out.write_str(text.get(plain_from..at).unwrap_or(""))?;
        plain_from = at + c.len_utf8();
        match c {
            '\t' => out.write_str("    ")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\0'..='\x1f' | '\x7f' => write!(out, "\\x{:02x}", u32::from(c))?,
            _ => write!(out, "\\u{{{:x}}}", u32::from(c))?,
        }
    }
    out.write_str(text.get(plain_from..).unwrap_or(""))
}

/// Marks that may stand on one character. Scripts need two or three; a hundred run over the lines around them.
const MARKS: usize = 8;

/// The characters to make visible: those that hide, and marks that pile up.
fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut marks = 0;
    text.char_indices().filter(move |&(_, c)| {
        let is_mark = !c.is_ascii() && c.width() == Some(0);
        marks = if is_mark { marks + 1 } else { 0 };
        hides(c) || marks > MARKS
    })
}

/// Whether a terminal would obey, hide or reorder by this character instead of showing it.
fn hides(c: char) -> bool {
    match c {
        ' '..='~' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_of_hidden_character_is_shown() {
        let shown = |text| escape(text).to_string();
        assert_eq!(shown("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
        assert_eq!(shown("\u{9b}31m"), "\\u{9b}31m");
        assert_eq!(shown("a\u{2066}b\u{2069}"), "a\\u{2066}b\\u{2069}");
        assert_eq!(shown("in\u{200b}visible\u{feff}"), "in\\u{200b}visible\\u{feff}");
        assert_eq!(shown("one\r\ntwo\tthree\x7f"), "one\\r\\ntwo    three\\x7f");
        assert_eq!(shown("tag\u{e0041}"), "tag\\u{e0041}");
    }

    #[test]
    fn visible_text_stays_and_is_not_copied() {
        let text = r"C:\temp „Grüße“ 日本 🚀";
        assert!(matches!(escape(text).to_cow(), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn marks_that_pile_up_are_shown() {
        let storm = format!("e{}!", "\u{301}".repeat(500));
        let shown = escape(&storm).to_string();
        assert!(
            shown.starts_with(&format!("e{}\\u{{301}}", "\u{301}".repeat(8))) && shown.ends_with("\\u{301}!")
        );
        assert_eq!(shown.matches("\\u{301}").count(), 492);
        assert_eq!(escape("e\u{301}a\u{308}\u{304}").to_cow(), "e\u{301}a\u{308}\u{304}");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in any::<String>()) {
            let shown = escape(&text).to_string();
            prop_assert!(hidden(&shown).next().is_none());
            prop_assert_eq!(escape(&shown).to_cow(), shown.as_str());
            prop_assert_eq!(escape(&text).to_cow(), shown.as_str());
        }
    }
}
