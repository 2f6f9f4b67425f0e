//! What a pointer can be set to.
//!
//! In: text. Out: a [`PointerValue`]. It knows no kernel.
//!
//! ```text
//! null | 0x10 | host | host(BYTES) | freed(BYTES) | reused(BYTES) | COUNT | COUNT:RULE | :RULE
//! RULE = zero | iota | value(N) | random(LOW,HIGH) | file(PATH)
//! ```

use crate::error::{Error, ErrorKind, Result};
use crate::probe::protocol::Fill;

/// What a pointer was set to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PointerValue {
    /// An address as it stands.
    Address(u64),
    /// Ordinary memory of the process, so many bytes.
    Host(u64),
    /// Device memory that was given back, so many bytes; and whether it was handed out anew.
    Freed(u64, bool),
    /// A buffer of so many elements, an expression of arguments, and what it holds.
    Elements(String, Option<Fill>),
    /// A buffer of the size that the code tells, and what it holds.
    Contents(Fill),
}

/// Reads it.
///
/// # Errors
/// `Usage`.
pub fn parse(text: &str, element_bytes: u32) -> Result<PointerValue> {
    let text = text.trim();
    let wrong = || {
        Error::new(ErrorKind::Usage, format!("`{text}` is nothing that a pointer can be set to"))
            .hint("write a number of elements (M*N), with what it holds (1024:iota, :file(PATH)), null, host or freed(BYTES)")
    };
    if text == "null" {
        return Ok(PointerValue::Address(0));
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).map(PointerValue::Address).map_err(|_| wrong());
    }
    if text == "host" {
        return Ok(PointerValue::Host(4_096));
    }
    let bytes = |inner: &str| inner.trim().parse::<u64>().map_err(|_| wrong());
    if let Some(inner) = inside(text, "host") {
        return bytes(inner).map(PointerValue::Host);
    }
    if let Some(inner) = inside(text, "freed") {
        return bytes(inner).map(|bytes| PointerValue::Freed(bytes, false));
    }
    if let Some(inner) = inside(text, "reused") {
        return bytes(inner).map(|bytes| PointerValue::Freed(bytes, true));
    }
    match text.split_once(':') {
        None => Ok(PointerValue::Elements(text.to_owned(), None)),
        Some((count, rule)) => {
            let fill = rule_of(rule.trim(), element_bytes).ok_or_else(wrong)?;
            let count = count.trim();
            Ok(if count.is_empty() {
                PointerValue::Contents(fill)
            } else {
                PointerValue::Elements(count.to_owned(), Some(fill))
            })
        }
    }
}

fn rule_of(text: &str, element_bytes: u32) -> Option<Fill> {
    if let Some(path) = inside(text, "file") {
        return Some(Fill::File { path: path.to_owned() });
    }
    let sized = matches!(element_bytes, 1 | 2 | 4 | 8);
    match text {
        "zero" => return Some(Fill::Zero),
        "iota" if sized => return Some(Fill::Iota { element_bytes }),
        _ => {}
    }
    if let Some(inner) = inside(text, "value").filter(|_| sized) {
        return inner.trim().parse().ok().map(|value| Fill::Value { element_bytes, value });
    }
    let (low, high) = inside(text, "random").filter(|_| sized)?.split_once(',')?;
    let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
    (low < high).then_some(Fill::Random { element_bytes, low, high })
}

fn inside<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.strip_prefix(word)?.strip_prefix('(')?.strip_suffix(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form() {
        let elements = |count: &str, fill| PointerValue::Elements(count.to_owned(), fill);
        let table = [
            ("null", PointerValue::Address(0)),
            ("0x7f00", PointerValue::Address(0x7f00)),
            ("host", PointerValue::Host(4_096)),
            ("freed(64)", PointerValue::Freed(64, false)),
            ("reused(64)", PointerValue::Freed(64, true)),
            ("M*N", elements("M*N", None)),
            ("cdiv(n, 4)", elements("cdiv(n, 4)", None)),
            ("1024:iota", elements("1024", Some(Fill::Iota { element_bytes: 4 }))),
            ("n:random(0,9)", elements("n", Some(Fill::Random { element_bytes: 4, low: 0, high: 9 }))),
            (":value(-1)", PointerValue::Contents(Fill::Value { element_bytes: 4, value: -1 })),
            ("8:file(/tmp/a b)", elements("8", Some(Fill::File { path: "/tmp/a b".into() }))),
        ];
        for (text, wanted) in table {
            assert_eq!(parse(text, 4).unwrap(), wanted, "{text}");
        }
        for text in ["0xzz", "8:sing", "8:random(9,0)", "freed(x)"] {
            assert!(parse(text, 4).is_err(), "{text}");
        }
    }
}
