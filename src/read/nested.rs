//! Text inside one line: a JSON logger's message, a repr with `\n` in it, a paste that lost its line ends to escapes.
//!
//! ```text
//! {"lvl":"error","msg":"Traceback (most recent call last):\n  File \"/app/handler.py\", line 88, in predict\n …"}
//! ```
//!
//! In: a physical line. Out: the text that it carries, with real line ends; the caller reads it like any text and gives its
//! events the place of the line. It leaves lines without escaped line ends alone.

use memchr::memmem;

use super::event::{Data, Event};

/// Longest line that is unfolded.
const LIMIT_BYTES: usize = 4 << 20;
/// Escaped line ends from which a line counts as text inside a line.
const FEWEST_ENDS: usize = 2;

/// The text inside `line`; none where there is none.
#[must_use]
pub fn unfold(line: &[u8]) -> Option<Vec<u8>> {
    if line.len() > LIMIT_BYTES || memmem::find_iter(line, b"\\n").take(FEWEST_ENDS).count() < FEWEST_ENDS {
        return None;
    }
    json(line).or_else(|| Some(unescape(line)))
}

/// The longest string of a JSON object that has line ends.
fn json(line: &[u8]) -> Option<Vec<u8>> {
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if line.get(start) != Some(&b'{') {
        return None;
    }
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let strings = value.as_object()?.values().filter_map(|value| value.as_str());
    let longest = strings.filter(|text| text.contains('\n')).max_by_key(|text| text.len())?;
    Some(longest.as_bytes().to_vec())
}

/// `\n`, `\t`, `\"`, `\'` and `\\` replaced, once.
fn unescape(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n' | b'r') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(quote @ (b'"' | b'\'' | b'\\')) => out.push(quote),
            Some(other) => out.extend([b'\\', other]),
            None => out.push(b'\\'),
        }
    }
    out
}

/// Gives an event of the inner text the place of the line that carries it.
pub fn place(event: &mut Event, outer: &super::Line<'_>) {
    event.span.line = outer.number;
    event.span.byte = outer.byte;
    event.span.lines = 1;
    let (inner, outer_origin) = (&mut event.origin, &outer.origin);
    inner.rank = inner.rank.or(outer_origin.rank);
    inner.pid = inner.pid.or(outer_origin.pid);
    inner.host = inner.host.take().or_else(|| outer_origin.host.clone());
    inner.process = inner.process.take().or_else(|| outer_origin.process.clone());
    inner.time = inner.time.take().or_else(|| outer_origin.time.clone());
    match &mut event.data {
        Data::Traceback(traceback) => {
            for frame in &mut traceback.frames {
                frame.log_line = outer.number;
            }
            if let Some(exception) = &mut traceback.exception {
                exception.log_line = outer.number;
            }
        }
        Data::Exception(exception) => exception.log_line = outer.number,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{Data, InputId};
    use super::*;

    #[test]
    fn a_json_logger_s_message_is_read_as_text() {
        let line = concat!(
            r#"{"ts":"2025-02-11T10:00:01Z","lvl":"error","msg":"Traceback (most recent call last):\n  File \"/app/handler.py\", "#,
            r#"line 88, in predict\n    scores = out.cpu()\nRuntimeError: CUDA error: an illegal memory access was encountered\n"}"#,
        );
        let text = format!("ready\n{line}\n");
        let events = super::super::read_text(InputId(0), text.as_bytes()).events;
        let traceback = events.iter().find_map(|event| match &event.data {
            Data::Traceback(traceback) => Some((event.span.line, traceback)),
            _ => None,
        });
        let (at, traceback) = traceback.unwrap();
        assert_eq!((at, traceback.frames[0].line), (2, Some(88)));
        assert!(
            events
                .iter()
                .any(|event| matches!(&event.data, Data::Status(status) if status.code == Some(700)))
        );
    }

    #[test]
    fn a_repr_is_unescaped_and_plain_lines_are_left_alone() {
        assert_eq!(unfold(br"b'one\ntwo\nthree'").unwrap(), b"b'one\ntwo\nthree'");
        assert!(unfold(br"C:\new\folder").is_none() || unfold(br"C:\new").is_none());
        assert!(unfold(b"plain").is_none());
    }
}
