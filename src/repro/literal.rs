//! Text from outside as a literal of a language: the only ways into a generated file.
//!
//! In: any text. Out: a literal that the language reads as exactly that text (shell and Markdown: as it may be shown). No
//! literal ends early, whatever the text holds.

use crate::text::escape;

/// A Python string literal, ASCII alone.
#[must_use]
pub fn python(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            ' '..='~' => out.push(c),
            _ if u32::from(c) < 0x100 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ if u32::from(c) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// A C++ string literal of the text's UTF-8 bytes. Octal escapes end after three digits; hexadecimal ones would go on.
#[must_use]
pub fn cpp(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            // A question mark could be part of a trigraph.
            b'"' | b'\\' | b'?' => out.extend(['\\', char::from(byte)]),
            b'\n' => out.push_str("\\n"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}

/// A word of bash, always quoted. A NUL can be in no word and becomes U+FFFD.
#[must_use]
pub fn shell(text: &str) -> String {
    let text = text.replace('\0', "\u{fffd}");
    if !text.chars().any(char::is_control) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    // Control characters stay visible in the script: bash alone reads $'…'.
    let mut out = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            _ if c.is_control() => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!("\\x{byte:02x}"));
                }
            }
            _ => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A Markdown code span on one line, control characters visible; a bar is escaped, so that it may stand in a table.
#[must_use]
pub fn code(text: &str) -> String {
    let text = with_bars(&escape(text).to_string());
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    // Beside a backtick a fence needs a blank, which Markdown takes off again.
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// Bars escaped for a table. An odd backslash before one would escape the escape: it is doubled, and shown twice.
#[must_use]
pub fn with_bars(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut backslashes = 0_usize;
    for c in text.chars() {
        if c == '|' {
            out.push_str(if backslashes % 2 == 1 { "\\\\" } else { "\\" });
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
        out.push(c);
    }
    out
}

/// Text in a Markdown sentence or table cell: on one line, no markup, no HTML.
#[must_use]
pub fn prose(text: &str) -> String {
    let mut out = String::new();
    for c in escape(text).to_string().chars() {
        match c {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '~' => {
                out.extend(['\\', c])
            }
            '&' => out.push_str("&amp;"),
            _ => out.push(c),
        }
    }
    out
}

/// A name that C++ takes for an identifier of its own, else `fallback`.
#[must_use]
pub fn identifier<'a>(text: &'a str, fallback: &'a str) -> &'a str {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let made = text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // Two underscores are the compiler's own; a name in capitals may be a macro.
    let reserved = text.contains("__")
        || RESERVED.contains(&text)
        || !text.bytes().any(|byte| byte.is_ascii_lowercase());
    if starts && made && !reserved { text } else { fallback }
}

/// The name of an environment variable; every other letter becomes an underscore.
#[must_use]
pub fn variable(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = text.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() { format!("_{name}") } else { name }
}

/// Words of C++ and macros of the headers that generated programs include.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "alignas", "alignof", "and", "and_eq", "asm", "assert", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
    "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept", "const", "consteval", "constexpr", "constinit",
    "const_cast", "continue", "co_await", "co_return", "co_yield", "decltype", "default", "delete", "do", "double",
    "dynamic_cast", "else", "enum", "errno", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "inline", "int", "long", "main", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "repro", "requires", "return", "short",
    "signed", "sizeof", "static", "static_assert", "static_cast", "stderr", "stdin", "stdout", "struct", "switch",
    "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned",
    "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "linux", "unix",
];

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\"b'c\\d\n*/e`f`{{g}}$(h)??/\u{1b}[2J\u{202e}é😀|<i>";

    #[test]
    fn each_language_reads_the_same_text() {
        assert_eq!(python("a\"\\\n\x1bé😀"), r#""a\"\\\n\x1b\xe9\U0001f600""#);
        assert_eq!(cpp("a\"??/\n\x1b1é"), r#""a\"\?\?/\n\0331\303\251""#);
        assert_eq!(shell("it's $(x) `y`"), r"'it'\''s $(x) `y`'");
        assert_eq!(shell("a\nb'\\\x1b"), r"$'a\nb\'\\\x1b'");
        assert_eq!(shell(""), "''");
    }

    #[test]
    fn markdown_stays_on_its_line_and_in_its_span() {
        assert_eq!(code("a`b``c"), "```a`b``c```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a\\|b"), "`a\\\\\\|b`");
        assert_eq!(code("a|b\nc"), "`a\\|b\\nc`");
        assert_eq!(prose("*a* <b> _c_ [d](e)"), r"\*a\* \<b\> \_c\_ \[d\](e)");
        assert!(!prose(HOSTILE).contains(['\n', '\u{1b}', '\u{202e}']));
        assert!(!code(HOSTILE).contains(['\n', '\u{1b}', '\u{202e}']));
    }

    #[test]
    fn only_a_plain_name_is_an_identifier() {
        assert_eq!(identifier("fill_rows", "kernel"), "fill_rows");
        for bad in ["", "9a", "a b", "a*/", "int", "__x", "a::b", "CHECK", "é", HOSTILE] {
            assert_eq!(identifier(bad, "kernel"), "kernel", "{bad}");
        }
    }
}
