//! Text that came from a log, a file name or a dump, made safe to show.
//!
//! In: strings that somebody else wrote. Out: [`LogText`], whose only `Display` and `Serialize` make control characters
//! visible; text cut to a number of terminal columns; text with names and keys replaced ([`Redactor`]). It leaves
//! reading the text to `read`, and it never decides where a string goes.

mod columns;
mod command;
mod escape;
pub mod number;
mod redact;
pub mod signs;

pub use columns::{columns, fit, fit_end, pad};
pub use command::command_line;
pub use escape::{Escaped, escape};
pub use redact::{Redactor, Replaced, SecretKind};

use std::fmt;

use serde::{Serialize, Serializer};

/// A piece of text that a log, a file or another program wrote.
///
/// It has no way to a terminal or a report but through [`fn@escape`]: `Display` and `Serialize` both show control
/// characters, escape sequences and direction marks as visible text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct LogText(String);

impl LogText {
    /// Takes text as it was written.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Takes bytes as they were written; bytes that are no UTF-8 become U+FFFD.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The text as it was written, for searching and comparing. Never print it.
    #[must_use]
    pub fn unescaped(&self) -> &str {
        &self.0
    }

    /// The text cut to `width` terminal columns, escaped; see [`fit`].
    #[must_use]
    pub fn fit(&self, width: usize) -> String {
        fit(&self.0, width)
    }

    /// True where nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for LogText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for LogText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for LogText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&escape(&self.0), f)
    }
}

impl fmt::Debug for LogText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogText({})", escape(&self.0))
    }
}

impl Serialize for LogText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&escape(&self.0))
    }
}

impl schemars::JsonSchema for LogText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LogText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_format_shows_an_escape_character() {
        let text = LogText::new("a\x1b[2Jb\u{202e}c");
        assert_eq!(text.to_string(), "a\\x1b[2Jb\\u{202e}c");
        assert_eq!(format!("{text:?}"), "LogText(a\\x1b[2Jb\\u{202e}c)");
        assert_eq!(serde_json::to_string(&text).unwrap(), r#""a\\x1b[2Jb\\u{202e}c""#);
        assert_eq!(text.unescaped(), "a\x1b[2Jb\u{202e}c");
    }

    #[test]
    fn format_widths_apply_to_the_escaped_text() {
        assert_eq!(format!("{:>7}|", LogText::new("\x07ab")), " \\x07ab|");
    }
}
