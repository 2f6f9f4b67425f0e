//! A site's own error lines: patterns with named captures, taught by a playbook file.
//!
//! In: the rules of the library, the bytes of a log. Out: [`Data::Signature`] events. A pattern sees one line at a time,
//! with and without its prefixes; its size, and the number of its matches, are bounded. What a class weighs is the
//! verdict's business.

use regex::bytes::{Regex, RegexBuilder};

use crate::read::event::{Data, Event, InputId, SignatureMatch};
use crate::read::lines::segments;
use crate::read::scan::clip;

use super::schema::SignatureRule;

/// Largest compiled pattern in bytes.
const SIZE_LIMIT: usize = 1 << 20;

/// Events that one signature may yield in one input.
const MATCH_LIMIT: usize = 1_000;

/// Bytes of a line that a pattern sees.
const LINE_LIMIT: usize = 64 * 1024;

/// Bytes of a captured field.
const FIELD_LIMIT: usize = 1_000;

/// Compiled signatures.
#[derive(Debug, Clone, Default)]
pub struct Signatures {
    rules: Vec<Compiled>,
}

#[derive(Debug, Clone)]
struct Compiled {
    rule: SignatureRule,
    /// Finds lines: the pattern without an anchor at its head, which prefixes would hide from it.
    search: Regex,
    /// Decides on a line without its prefixes.
    pattern: Regex,
}

/// Compiles a pattern.
///
/// # Errors
/// What is wrong with it.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .multi_line(true)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => format!("is larger than {limit} bytes when compiled"),
            other => other.to_string().lines().last().unwrap_or("is no pattern").trim().to_owned(),
        })
}

impl Signatures {
    /// Compiles rules; one that can't be compiled is left out, which `check` names.
    #[must_use]
    pub fn new<'a>(rules: impl Iterator<Item = &'a SignatureRule>) -> Self {
        let rules = rules
            .filter_map(|rule| {
                let text = &rule.pattern.text;
                let search = compile(text.trim_start_matches('^')).ok()?;
                Some(Compiled { rule: rule.clone(), search, pattern: compile(text).ok()? })
            })
            .collect();
        Self { rules }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The events of one text input, in the order of their lines.
    #[must_use]
    pub fn read(&self, input: InputId, bytes: &[u8]) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        for rule in &self.rules {
            rule.read(input, bytes, &mut events);
        }
        events.sort_by_key(|event| event.span.byte);
        events
    }
}

impl Compiled {
    fn read(&self, input: InputId, bytes: &[u8], events: &mut Vec<Event>) {
        let mut at = 0;
        let mut found = 0;
        // Lines are counted as the search moves on, so that a gigabyte is counted once.
        let (mut line, mut counted) = (1_u64, 0_usize);
        while found < MATCH_LIMIT {
            let Some(hit) = self.search.find_at(bytes, at) else { break };
            let start = bytes
                .get(..hit.start())
                .and_then(|before| memchr::memrchr(b'\n', before))
                .map_or(0, |end| end + 1);
            let end = bytes
                .get(hit.start()..)
                .and_then(|rest| memchr::memchr(b'\n', rest))
                .map_or(bytes.len(), |length| hit.start() + length);
            line += memchr::memchr_iter(b'\n', bytes.get(counted..start).unwrap_or(&[])).count() as u64;
            counted = start;
            if let Some(event) = self.event(input, bytes, line, start, end) {
                events.push(event);
                found += 1;
            }
            at = end + 1;
            if at > bytes.len() {
                break;
            }
        }
    }

    /// The event of a line, if the pattern still matches when it sees that line alone.
    fn event(&self, input: InputId, bytes: &[u8], number: u64, start: usize, end: usize) -> Option<Event> {
        let end = end.min(start + LINE_LIMIT);
        let mut pieces = segments(bytes, number, start, end).into_iter().map(|segment| segment.parse(input));
        let (line, fields) = pieces.find_map(|line| {
            let fields = self.fields(line.body()).or_else(|| self.fields(&line.text))?;
            Some((line, fields))
        })?;
        Some(Event {
            span: crate::read::event::Span { input, line: line.number, byte: line.byte, lines: 1 },
            origin: line.origin.clone(),
            text: clip(&line.text, Event::TEXT_LIMIT_BYTES).to_owned(),
            data: Data::Signature(SignatureMatch {
                id: self.rule.id.clone(),
                class: self.rule.class.name().to_owned(),
                fields,
            }),
        })
    }

    fn fields(&self, text: &str) -> Option<Vec<(String, String)>> {
        let captures = self.pattern.captures(text.as_bytes())?;
        let named = self.pattern.capture_names().flatten().filter_map(|name| {
            let value = String::from_utf8_lossy(captures.name(name)?.as_bytes()).into_owned();
            Some((name.to_owned(), clip(&value, FIELD_LIMIT).to_owned()))
        });
        Some(named.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::schema::Source;
    use crate::tables::class::FailureClass;

    fn signatures(pattern: &str) -> Signatures {
        let source = |text: &str| Source { text: text.to_owned(), line: 1 };
        let rule = SignatureRule {
            id: "site".to_owned(),
            line: 1,
            pattern: source(pattern),
            class: FailureClass::IllegalAddress,
            matching: Vec::new(),
            not_matching: Vec::new(),
        };
        Signatures::new([rule].iter())
    }

    fn fields(event: &Event) -> Vec<(String, String)> {
        match &event.data {
            Data::Signature(found) => found.fields.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn captures_become_fields_and_prefixes_ranks() {
        let log = b"start\n[rank3]: ACME-GPU fault in kernel qkv at 0x10\nend\n";
        let events = signatures(r"^ACME-GPU fault in kernel (?<kernel>\w+) at (?<address>0x[0-9a-f]+)$")
            .read(InputId(0), log);
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].span.line, events[0].origin.rank), (2, Some(3)));
        assert_eq!(
            fields(&events[0]),
            [("kernel".to_owned(), "qkv".to_owned()), ("address".to_owned(), "0x10".to_owned())]
        );
    }

    #[test]
    fn a_pattern_sees_one_line_only() {
        assert!(signatures(r"one\s+two").read(InputId(0), b"one\ntwo\n").is_empty());
        assert_eq!(signatures(r"one\s+two").read(InputId(0), b"one two\none two").len(), 2);
    }

    #[test]
    fn a_flood_is_bounded() {
        let log = b"boom\n".repeat(5_000);
        assert_eq!(signatures("boom").read(InputId(0), &log).len(), MATCH_LIMIT);
    }

    #[test]
    fn bad_patterns_are_refused() {
        assert!(compile("(").is_err());
        assert!(compile(r"(\w{1000}){1000}").unwrap_err().contains("larger"));
    }
}
