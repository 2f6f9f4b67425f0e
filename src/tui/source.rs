//! What the workers hand to the screen: inputs with their bytes, the report, and where its evidence stands.
//!
//! In: the engine's session. Out: [`Source`]s and an [`Analysis`], cheap to send (bytes are shared, never copied). It
//! decides nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::case::{Case, Fact, Provenance};
use crate::playbook::Walk;
use crate::playbook::chain::Chain;
use crate::report::Report;
use crate::report::model::EvidenceKind;
use crate::session::Session;
use crate::source::{Bytes, Input, InputKind};

use super::claims;
use super::log::lines::line_start;

/// An input as the log pane shows it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name, escaped.
    pub name: String,
    /// The file it came from, for the editor.
    pub file: Option<PathBuf>,
    /// What it is.
    pub kind: InputKind,
    /// Its decoded bytes.
    pub bytes: Bytes,
    /// Rank that its path names.
    pub rank: Option<u32>,
}

impl Source {
    /// An input of the engine.
    pub fn of(input: &Input) -> Self {
        Self {
            name: input.path.to_string(),
            file: input.file.clone(),
            kind: input.kind,
            bytes: input.bytes.clone(),
            rank: input.hint.rank.or(input.hint.local_rank),
        }
    }

    /// Whether its bytes can be read on a screen.
    pub fn is_text(&self) -> bool {
        use InputKind::{CoreDump, Cubin, TritonCache, UnknownBinary};
        self.kind.is_line_text() || !matches!(self.kind, CoreDump | Cubin | UnknownBinary | TritonCache)
    }

    /// The last part of its name.
    pub fn short_name(&self) -> &str {
        self.name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&self.name)
    }
}

/// A piece of evidence in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Start of its first line.
    pub at: usize,
    /// Number of that line, counted from 1.
    pub line: u64,
    /// Lines that it covers.
    pub lines: u32,
    /// Byte after its last line.
    pub end: usize,
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: EvidenceKind,
    /// Its rank.
    pub rank: Option<u32>,
    /// Whether the verdict rests on it.
    pub deciding: bool,
    /// Whether it is a failure of any role.
    pub failure: bool,
}

/// What the engine made of an incident.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The report.
    pub report: Arc<Report>,
    /// Marks of each input, in the order of their lines.
    pub marks: Arc<Vec<Vec<Mark>>>,
    /// The walk through the playbook.
    pub walk: Arc<Walk>,
    /// The stack of each run.
    pub chains: Arc<Vec<Chain>>,
    /// The report as Markdown, for the clipboard.
    pub markdown: Arc<String>,
}

/// The inputs of a session.
pub fn sources(session: &Session) -> Vec<Source> {
    session.inputs().iter().map(Source::of).collect()
}

/// What a session found.
pub fn analysis(session: &Session) -> Analysis {
    let report = session.report().clone();
    let markdown = crate::report::markdown::render(&report);
    let failures = failures(&report);
    let marks = marks(session.case(), session.inputs(), &claims::deciding(&report), &failures);
    let walk = Arc::new(session.walk().clone());
    Analysis {
        report: Arc::new(report),
        marks: Arc::new(marks),
        walk,
        chains: Arc::new(session.chains()),
        markdown: Arc::new(markdown),
    }
}

/// Ids of the evidence of every failure.
fn failures(report: &Report) -> BTreeSet<String> {
    report.failures.iter().flat_map(|failure| failure.evidence.iter().cloned()).collect()
}

fn marks(
    case: &Case,
    inputs: &[Input],
    deciding: &BTreeSet<String>,
    failures: &BTreeSet<String>,
) -> Vec<Vec<Mark>> {
    let mut marks: Vec<Vec<Mark>> = inputs.iter().map(|_| Vec::new()).collect();
    for evidence in case.evidence() {
        let (Provenance::Span(span), Fact::Event(event)) = (&evidence.provenance, &evidence.fact) else {
            continue;
        };
        let Ok(source) = usize::try_from(span.input.0) else { continue };
        let (Some(input), Some(list)) = (inputs.get(source), marks.get_mut(source)) else { continue };
        let Ok(byte) = usize::try_from(span.byte) else { continue };
        let at = line_start(&input.bytes, byte);
        let id = evidence.id.to_string();
        list.push(Mark {
            at,
            line: span.line,
            lines: span.lines.max(1),
            end: end_of(&input.bytes, at, span.lines),
            kind: crate::report::evidence_kind(&event.data),
            rank: event.origin.rank,
            deciding: deciding.contains(&id),
            failure: failures.contains(&id),
            id,
        });
    }
    for list in &mut marks {
        list.sort_by_key(|mark| mark.at);
    }
    marks
}

/// Byte after the last of `lines` lines from `at` on.
fn end_of(bytes: &[u8], at: usize, lines: u32) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let count = usize::try_from(lines.max(1)).unwrap_or(1).min(10_000);
    memchr::memchr_iter(b'\n', rest).nth(count - 1).map_or(bytes.len(), |end| at + end)
}
