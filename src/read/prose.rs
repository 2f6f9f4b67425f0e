//! Documents that speak of errors: a sentence of a README that quotes a message reports no failure.
//!
//! ```text
//! reads a recorded crash. The log says "illegal memory access" at a copy to the host; the report says that
//! ```
//!
//! A person's report of a failure may look the same, so that the class stands, only suspected.
//!
//! In: an input and its lines. Out: whether a line is such a sentence. It leaves fenced blocks alone, where people paste their
//! logs, and texts that are no Markdown.

use super::event::Severity;
use super::lines::Line;
use super::pattern::Pattern;

/// Bytes of a text that tell whether it is Markdown.
const HEAD_BYTES: usize = 16 * 1024;
/// Larger texts are logs, and counting their fences for each line would take long.
const MOST_BYTES: usize = 128 << 10;
/// Marks of Markdown that make a text a document.
const MARKS: usize = 3;

/// Headings with words, links, fences, tables, bold text.
static MARKS_OF_TEXT: [Pattern; 5] = [
    Pattern::new(r"(?m)^#{1,6} [A-Za-z][^\n]*$"),
    Pattern::new(r"\]\((?:https?://|\.{0,2}/|[a-z0-9_/-]+\.(?:md|png|svg|html))[^)\s]*\)"),
    Pattern::new(r"(?m)^```"),
    Pattern::new(r"(?m)^\|[ :-]+\|[ :|-]+\|?\s*$"),
    Pattern::new(r"\*\*[A-Za-z][^*\n]+\*\*"),
];
/// A line that begins as an exception, a call or a record does.
static RECORD: Pattern =
    Pattern::new(r"^\s*(?:[\w.]+(?:Error|Exception|Warning)\b|Traceback \(|\[|={3}|\d{2,4}[-/:]|[A-Z]+:)");

/// `- **Exception Message:** …`: a field of a report.
static LABEL: Pattern = Pattern::new(r"^\s*(?:[-*] )?\*\*[^*]+(?:\*\*:|:\*\*)");

/// What an input is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prose {
    document: bool,
}

impl Prose {
    /// Looks at the head of an input.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let head = String::from_utf8_lossy(bytes.get(..HEAD_BYTES).unwrap_or(bytes));
        let starts = head.trim_start().starts_with('#') || head.trim_start().starts_with("<");
        let marks = || MARKS_OF_TEXT.iter().filter(|mark| mark.is_match(&head)).count();
        Self { document: bytes.len() <= MOST_BYTES && starts && marks() >= MARKS }
    }

    /// Whether a line is a sentence of a document.
    pub(super) fn is_prose(self, line: &Line<'_>, bytes: &[u8]) -> bool {
        self.document
            && line.origin.rank.is_none()
            && line.origin.time.is_none()
            && line.origin.severity < Some(Severity::Error)
            && line.text.contains(['"', '`', '“', '|'])
            && !RECORD.is_match(&line.text)
            && !LABEL.is_match(&line.text)
            && line.text.split_whitespace().filter(|word| is_word(word)).count() >= 5
            && !is_fenced(usize::try_from(line.byte).unwrap_or(0), bytes)
    }
}

fn is_word(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphabetic());
    !bare.is_empty() && bare.chars().all(|c| c.is_lowercase())
}

/// Whether an odd number of fences stands before a place.
fn is_fenced(at: usize, bytes: &[u8]) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    let fences =
        before.split(|&byte| byte == b'\n').filter(|line| line.trim_ascii_start().starts_with(b"```"));
    fences.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use crate::read::event::InputId;
    use crate::read::read_text;

    const HEAD: &str =
        "# tool\n\n**Triage for crashes.** See [the manual](docs/manual.md).\n\n## What it reads\n\n";

    fn quoted(text: &str) -> Vec<bool> {
        read_text(InputId(0), text.as_bytes()).events.iter().map(|event| event.origin.quoted).collect()
    }

    #[test]
    fn sentences_of_a_document_are_told_from_logs_in_it() {
        let sentence =
            "reads a recorded crash. The log says \"illegal memory access\" at a copy to the host.\n";
        let error = "RuntimeError: CUDA error: an illegal memory access was encountered\n";
        let fence = format!("{HEAD}```\n{sentence}```\n");
        assert!(quoted(&format!("{HEAD}{sentence}")).iter().all(|quoted| *quoted));
        for log in [
            format!("{HEAD}{error}"),
            fence,
            sentence.to_owned(),
            format!(
                "{HEAD}- **Exception Message:** CUDA error: an illegal memory access was encountered, says \"it\"\n"
            ),
            format!("{HEAD}it ended here with the CUDA error: an illegal memory access was encountered\n"),
            format!("# comment\n{error}"),
        ] {
            let found = quoted(&log);
            assert!(!found.is_empty() && found.iter().all(|quoted| !quoted), "{log}");
        }
    }
}
