//! The engine: inputs in, a verdict and a report out, and the effects that it wants carried out.
//!
//! In: [`Input`]s, one at a time. Out: the state after each, and [`Effect`]s for whoever can act. It does no I/O, asks no
//! clock and reads no environment; both front ends drive it, so both reach the same report (law 10).

use crate::case::{Case, InputMeta};
use rayon::prelude::*;

use crate::read::event::{Data, Event};
use crate::read::{self, Artifact, InputReading};
use crate::report::{self, Report};
use crate::source::{self, InputKind};
use crate::verdict::{self, Verdict};

/// What can happen to an incident.
#[derive(Debug)]
pub enum Input {
    /// Inputs were loaded.
    Loaded(source::Loaded),
}

/// What the engine wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Verdict and report changed: show them.
    Show,
}

/// An incident being worked on.
#[derive(Debug)]
pub struct Session {
    case: Case,
    inputs: Vec<source::Input>,
    verdict: Verdict,
    report: Report,
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// An empty incident.
    #[must_use]
    pub fn new() -> Self {
        let case = Case::default();
        let verdict = verdict::judge(&case);
        let report = report::build(&case, &verdict);
        Self { case, inputs: Vec::new(), verdict, report }
    }

    /// Takes one input and says what to do.
    pub fn apply(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Loaded(loaded) => self.take_loaded(loaded),
        }
        self.verdict = verdict::judge(&self.case);
        self.report = report::build(&self.case, &self.verdict);
        vec![Effect::Show]
    }

    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The report.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The evidence.
    #[must_use]
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// The inputs, with their bytes, in the order of their ids.
    #[must_use]
    pub fn inputs(&self) -> &[source::Input] {
        &self.inputs
    }

    fn take_loaded(&mut self, loaded: source::Loaded) {
        for left_out in loaded.left_out {
            self.case.note("warning", format!("{}: {}", left_out.path, left_out.why));
        }
        for note in loaded.notes {
            self.case.note("warning", note);
        }
        // Reading is independent per input; only the case is not.
        let read: Vec<InputReading> = loaded
            .inputs
            .par_iter()
            .map(|input| read::read_input(source::InputId(0), input.kind, &input.bytes))
            .collect();
        for (input, read) in loaded.inputs.into_iter().zip(read) {
            self.take_input(input, read);
        }
        self.case.match_collectives();
    }

    fn take_input(&mut self, mut input: source::Input, read: InputReading) {
        let id = self.case.add_input(InputMeta {
            path: input.path.unescaped().to_owned(),
            kind: input.kind,
            bytes: input.size_bytes,
            lines: read.reading.lines,
            truncated: input.truncated,
        });
        input.id = id;
        input.lines = Some(read.reading.lines);
        if input.kind == InputKind::Empty {
            self.case.note("warning", format!("{}: is empty", input.path));
        } else if input.kind == InputKind::UnknownBinary {
            self.case
                .note("warning", format!("{}: is no text and no known format; it was not read", input.path));
        } else if input.kind == InputKind::Report {
            self.case.note("info", format!("{}: is a saved report of this tool and no evidence", input.path));
        } else if read.unread {
            self.case.note("info", format!("{}: recognised, and not needed for a verdict", input.path));
        }
        for message in read.reading.diagnostics {
            self.case.note("warning", format!("{}: {message}", input.path));
        }
        let mut first = None;
        for mut event in read.reading.events {
            event.span.input = id;
            fill_from_path(&mut event, &input.hint);
            let evidence = self.case.add_event(event);
            first = first.or(Some(evidence));
        }
        for artifact in read.artifacts {
            match artifact {
                Artifact::Dump(dump) => {
                    if let Some(evidence) = first {
                        self.case.attach_dump(evidence, dump);
                    }
                }
                Artifact::Flight(dump) => match input.hint.rank.or(dump.rank) {
                    Some(rank) => self.case.compare_dump(rank, &dump),
                    None => self.case.note(
                        "warning",
                        format!("{}: neither name nor content tells the rank; put the rank at the end of the file name", input.path),
                    ),
                },
                Artifact::Ras(answer) => self.case.compare_ras(&answer),
            }
        }
        self.inputs.push(input);
    }
}

/// A log folder's path names the rank where the lines don't.
fn fill_from_path(event: &mut Event, hint: &source::PathHint) {
    let launcher = matches!(event.data, Data::Exit(_) | Data::Cleanup(_) | Data::Xid(_));
    if event.origin.rank.is_none() && !launcher {
        event.origin.rank = hint.rank.or(hint.local_rank);
    }
    event.origin.local_rank = event.origin.local_rank.or(hint.local_rank);
    if event.origin.host.is_none() {
        event.origin.host.clone_from(&hint.host);
    }
}
