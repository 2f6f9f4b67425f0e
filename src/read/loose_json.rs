//! JSON as machines under stress write it: cut short, or with a comma left out.
//!
//! In: bytes and where a value begins. Out: [`Json`]: its values ([`Plain`]), where it ended, what had to be repaired and
//! where it stopped. It leaves alone what the values mean.
//!
//! NCCL 2.28.9 leaves out the comma between two entries of a communicator's missing ranks, so a strict reader refuses the
//! answer that matters most. Nesting and values are capped as for pickles (see [`crate::read::plain`]).

use std::borrow::Cow;
use std::collections::HashMap;

use crate::error::{Error, ErrorKind, Result};
use crate::read::plain::{DEPTH_LIMIT, Plain, Value};

/// A decoded JSON value.
#[derive(Debug)]
pub struct Json<'a> {
    /// The values.
    pub plain: Plain<'a>,
    /// The outermost value.
    pub root: Value,
    /// Offset of the byte after it.
    pub end: usize,
    /// Commas that were missing.
    pub missing_commas: u32,
    /// Why decoding ended before the value did; containers still open then are marked unfinished.
    pub stopped: Option<String>,
}

/// Decodes the first JSON value at or after `from`.
///
/// # Errors
/// [`ErrorKind::Format`] where no value begins, [`ErrorKind::Limit`] past a bound.
pub fn decode(bytes: &[u8], from: usize) -> Result<Json<'_>> {
    let mut reader = Reader {
        bytes,
        at: from,
        plain: Plain::default(),
        values: Vec::new(),
        open: Vec::new(),
        known: HashMap::new(),
        comma: true,
        missing_commas: 0,
    };
    let stopped = loop {
        match reader.step() {
            Ok(true) => break None,
            Ok(false) => {}
            Err(End::Failed(error)) => return Err(error),
            Err(End::Cut(why)) => break Some(format!("{why} at byte {} of {}", reader.at, bytes.len())),
        }
    };
    while let Some(open) = reader.open.last() {
        reader.plain.mark_unfinished(open.container);
        reader.close()?;
    }
    let Some(&root) = reader.values.first() else {
        let why = stopped.unwrap_or_default();
        return Err(Error::new(ErrorKind::Format, format!("no JSON value: {why}")));
    };
    Ok(Json { plain: reader.plain, root, end: reader.at, missing_commas: reader.missing_commas, stopped })
}

enum End {
    Cut(&'static str),
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

struct Open {
    container: Value,
    /// Where its values begin in `Reader::values`.
    from: usize,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    plain: Plain<'a>,
    values: Vec<Value>,
    open: Vec<Open>,
    /// Short texts seen so far: keys repeat thousands of times.
    known: HashMap<&'a [u8], Value>,
    /// A comma, or a place that needs none, stands before the next value.
    comma: bool,
    missing_commas: u32,
}

/// Longest text that is looked up among those already seen, and most of them.
const KNOWN_LIMIT: (usize, usize) = (64, 100_000);

impl<'a> Reader<'a> {
    /// Reads one token. True once the outermost value is whole.
    fn step(&mut self) -> std::result::Result<bool, End> {
        let Some(byte) = self.bytes.get(self.at).copied() else { return Err(End::Cut("the bytes end")) };
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
            b',' => {
                self.comma = true;
                self.at += 1;
            }
            b'}' | b']' => {
                let Some(open) = self.open.last() else {
                    return Err(End::Cut("a closing bracket without its opening"));
                };
                if matches!(open.container, Value::Dict(_)) != (byte == b'}') {
                    return Err(End::Cut("a closing bracket of the other kind"));
                }
                self.at += 1;
                self.close()?;
                self.comma = false;
                return Ok(self.open.is_empty());
            }
            _ => {
                let is_key = self.open.last().is_some_and(|open| {
                    matches!(open.container, Value::Dict(_))
                        && (self.values.len() - open.from).is_multiple_of(2)
                });
                if is_key && byte != b'"' {
                    return Err(End::Cut("a key that is no text"));
                }
                let commas = self.missing_commas + u32::from(!self.comma);
                self.begin(byte)?;
                self.missing_commas = commas;
                if is_key {
                    self.colon()?;
                }
                return Ok(self.open.is_empty());
            }
        }
        Ok(false)
    }

    /// Reads a value, or the opening bracket of one.
    fn begin(&mut self, byte: u8) -> std::result::Result<(), End> {
        let value = match byte {
            b'{' | b'[' => {
                if self.open.len() >= DEPTH_LIMIT as usize {
                    let message = format!("the JSON nests deeper than {DEPTH_LIMIT} levels; it was not used");
                    return Err(Error::new(ErrorKind::Limit, message).into());
                }
                let container = if byte == b'{' { self.plain.add_dict()? } else { self.plain.add_list()? };
                self.open.push(Open { container, from: self.values.len() });
                self.at += 1;
                self.comma = true;
                return Ok(());
            }
            b'"' => self.text()?,
            _ => self.word()?,
        };
        self.values.push(value);
        self.comma = false;
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let mut items = self.values.get(open.from..).unwrap_or(&[]);
        if matches!(open.container, Value::Dict(_)) && items.len() % 2 == 1 {
            items = items.split_last().map_or(items, |(_, whole)| whole);
        }
        self.plain.extend(open.container, items.iter().copied())?;
        self.values.truncate(open.from);
        self.values.push(open.container);
        Ok(())
    }

    fn colon(&mut self) -> std::result::Result<(), End> {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b':' => {
                    self.at += 1;
                    self.comma = true;
                    return Ok(());
                }
                _ => return Err(End::Cut("a key without its value")),
            }
        }
        Err(End::Cut("the bytes end"))
    }

    fn word(&mut self) -> std::result::Result<Value, End> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        let len = rest
            .iter()
            .take(400)
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')))
            .unwrap_or(rest.len().min(400));
        if len == rest.len() && !self.open.is_empty() {
            // The number's digits may go on beyond the cut.
            return Err(End::Cut("the bytes end"));
        }
        let word = rest.get(..len).and_then(|word| std::str::from_utf8(word).ok()).unwrap_or("");
        let value = match word {
            "null" | "None" => Value::Null,
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            _ => match (word.parse(), word.parse()) {
                (Ok(number), _) => Value::Int(number),
                (_, Ok(number)) => Value::Float(number),
                _ => return Err(End::Cut("a byte that begins no JSON value")),
            },
        };
        self.at += len;
        Ok(value)
    }

    fn text(&mut self) -> std::result::Result<Value, End> {
        let start = self.at + 1;
        let mut end = start;
        let mut plain = true;
        loop {
            let rest = self.bytes.get(end..).unwrap_or(&[]);
            let Some(next) = memchr::memchr2(b'"', b'\\', rest) else {
                return Err(End::Cut("the bytes end"));
            };
            end += next;
            if self.bytes.get(end) == Some(&b'"') {
                break;
            }
            plain = false;
            end += 2;
        }
        let raw = self.bytes.get(start..end).unwrap_or(&[]);
        self.at = end + 1;
        if let Some(value) = self.known.get(raw) {
            return Ok(*value);
        }
        let text = String::from_utf8_lossy(raw);
        let value = self.plain.add_text(if plain { text } else { Cow::Owned(unescape(&text)) })?;
        if raw.len() <= KNOWN_LIMIT.0 && self.known.len() < KNOWN_LIMIT.1 {
            self.known.insert(raw, value);
        }
        Ok(value)
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match rest.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                out.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(json: &Json<'_>, list: Value) -> Vec<i64> {
        json.plain.items(list).iter().filter_map(|item| json.plain.integer(*item)).collect()
    }

    #[test]
    fn reads_json() {
        let json =
            decode(br#"OK {"a": [1, -2, 3.5, true, null], "b": {"c\n\u00e9": "x\"y"}} tail"#, 3).unwrap();
        assert_eq!((json.stopped.as_deref(), json.missing_commas, json.end), (None, 0, 62));
        let list = json.plain.get(json.root, "a").unwrap();
        assert_eq!(
            json.plain.items(list),
            [Value::Int(1), Value::Int(-2), Value::Float(3.5), Value::Bool(true), Value::Null]
        );
        let inner = json.plain.get(json.root, "b").unwrap();
        assert_eq!(json.plain.text(json.plain.get(inner, "c\n\u{e9}").unwrap()), Some("x\"y"));
    }

    #[test]
    fn repairs_missing_commas_and_counts_them() {
        let json = decode(b"[{\"rank\": 1}\n{\"rank\": 2}\n{\"rank\": 3}, 4 5]", 0).unwrap();
        assert_eq!(json.missing_commas, 3);
        assert_eq!(json.plain.items(json.root).len(), 5);
    }

    #[test]
    fn a_cut_text_gives_what_was_whole() {
        let json = decode(br#"{"entries": [{"seq": 1}, {"seq": 2, "name": "al"#, 0).unwrap();
        assert_eq!(json.stopped.as_deref(), Some("the bytes end at byte 44 of 47"));
        let entries = json.plain.get(json.root, "entries").unwrap();
        let [first, second] = json.plain.items(entries) else { panic!("two entries") };
        assert!(!json.plain.is_unfinished(*first) && json.plain.is_unfinished(*second));
        assert_eq!(json.plain.get(*second, "seq"), Some(Value::Int(2)));
        let cut_number = decode(b"[10, 20", 0).unwrap();
        assert_eq!(numbers(&cut_number, cut_number.root), [10], "20 may have been 200");
    }

    #[test]
    fn refuses_what_is_no_json_or_too_deep() {
        assert_eq!(decode(b"", 0).unwrap_err().kind(), ErrorKind::Format);
        assert_eq!(decode(b"rank 3", 0).unwrap_err().kind(), ErrorKind::Format);
        assert_eq!(decode(&[b'['; 100_000], 0).unwrap_err().kind(), ErrorKind::Limit);
        assert!(decode(b"[1}", 0).unwrap().stopped.unwrap().contains("other kind"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in "[\\[\\]{}\",:\\\\u0-9a-z \\n-]{0,200}", from in 0usize..10) {
            let _ = decode(text.as_bytes(), from);
        }

        #[test]
        fn agrees_with_a_strict_reader(text in "[\\[\\]{}\",:0-2a]{0,24}") {
            if let Ok(strict) = serde_json::from_str::<serde_json::Value>(&text)
                && (strict.is_object() || strict.is_array()) {
                let loose = decode(text.as_bytes(), 0).unwrap();
                prop_assert_eq!(loose.stopped, None);
                prop_assert_eq!(loose.missing_commas, 0);
                prop_assert_eq!(loose.end, text.len());
            }
        }
    }
}
