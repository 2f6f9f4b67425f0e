//! The engine: inputs in, a verdict and a report out, and the effects that it wants carried out.
//!
//! In: [`Input`]s, one at a time. Out: the state after each, and [`Effect`]s for whoever can act. It does no I/O, asks no
//! clock and reads no environment; both front ends drive it, so both reach the same report (law 10).

mod handing_over;
mod kernels;
mod probing;
mod walking;

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::case::{Answer, Case, InputMeta, Provenance};
use crate::playbook::chain::{self, Chain};
use crate::playbook::record::Stamp;
use crate::playbook::{Library, Record, StepKind, Walk};
use crate::read::event::{Data, Event};
use crate::read::{self, Artifact, InputReading};
use crate::report::{self, Report};
use crate::source::{self, InputKind};
use crate::verdict::cause::kernel_answer::Compiled;
use crate::verdict::{self, Verdict};

pub use probing::PROGRAM;
use walking::Walking;
pub use walking::{Approved, Edited, Proposal, WalkInput};

/// What can happen to an incident.
#[derive(Debug)]
pub enum Input {
    /// Inputs were loaded.
    Loaded(source::Loaded),
    /// The engineer states shapes, sizes, settings or the model.
    Answered(Vec<Answer>),
    /// The engineer does something in the walk through a playbook.
    Walk(WalkInput),
}

/// What the engine wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Verdict and report changed: show them.
    Show,
    /// The incident changed: save it.
    Save,
    /// Show this command whole, with its cost, and ask for a yes or a no.
    Confirm(Box<Proposal>),
    /// Run this command: it got its yes.
    Run(Box<Approved>),
    /// End the running command and everything that it started.
    EndRun,
    /// Tell the person why nothing was done.
    Refuse(String),
}

/// An incident being worked on.
#[derive(Debug)]
pub struct Session {
    case: Case,
    inputs: Vec<source::Input>,
    verdict: Verdict,
    /// What the compiled kernels answer under this verdict, once it was asked: trying every assignment is slow.
    compiled: OnceLock<Option<Compiled>>,
    report: Report,
    walking: Walking,
    progress: read::Progress,
    /// Inputs whose token counts were read.
    token_scans: std::collections::BTreeSet<source::InputId>,
}

/// Inputs whose readings are held at the same time.
const INPUTS_AT_ONCE: usize = 64;
/// Sources whose lints are kept.
const SOURCE_LIMIT: usize = 64;

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// An empty incident, with the shipped playbooks.
    #[must_use]
    pub fn new() -> Self {
        Self::with_library(Library::shipped())
    }

    /// An empty incident with these playbooks.
    #[must_use]
    pub fn with_library(library: Arc<Library>) -> Self {
        let case = Case::default();
        let verdict = verdict::judge(&case);
        let report = report::build(&case, &verdict);
        Self {
            case,
            inputs: Vec::new(),
            verdict,
            compiled: OnceLock::new(),
            report,
            walking: Walking::new(library),
            progress: read::Progress::default(),
            token_scans: std::collections::BTreeSet::new(),
        }
    }

    /// Takes one input and says what to do.
    pub fn apply(&mut self, input: Input) -> Vec<Effect> {
        let tells_more = !matches!(
            &input,
            Input::Walk(walk) if !matches!(
                walk,
                WalkInput::Ended { .. } | WalkInput::Feed { .. } | WalkInput::Restore(_)
            )
        );
        let mut effects = match input {
            Input::Loaded(loaded) => {
                self.take_loaded(loaded);
                vec![Effect::Save]
            }
            Input::Answered(answers) => {
                self.case.take_answers(answers);
                vec![Effect::Save]
            }
            Input::Walk(input) => self.walk_input(input),
        };
        if tells_more {
            self.verdict = verdict::judge(&self.case);
            self.compiled = OnceLock::new();
            if self.case.has_model() {
                self.measure_model();
            }
            self.report = report::build(&self.case, &self.verdict);
        }
        self.rebuild_walk();
        self.report.next = report::next_steps(&self.verdict.next);
        let walk = &self.walking.walk;
        self.report.next.retain(|next| !walk.has_done(&next.id));
        // What was tried in vain or passed by comes after what wasn't.
        self.report.next.sort_by_key(|next| walk.was_tried(&next.id));
        self.report.history = report::history::rows(&self.walking.record, &self.walking.library);
        effects.insert(0, Effect::Show);
        effects
    }

    /// A model's tensors at the tokens that the engineer names, or else that the failing process printed near its failure.
    fn measure_model(&mut self) {
        let root = self.verdict.failures.first().and_then(|root| self.case.get(*root.evidence.first()?));
        if let Some(Provenance::Span(at)) = root.map(|evidence| evidence.provenance.clone())
            && self.token_scans.insert(at.input)
            && let Some(input) =
                self.inputs.iter().find(|input| input.id == at.input && input.kind.is_line_text())
        {
            for event in read::shapes::token_counts(at.input, &input.bytes, at) {
                self.case.add_event(event);
            }
        }
        let known = self.case.evidence().len();
        self.case.derive_model_shapes();
        if self.case.evidence().len() > known {
            self.verdict = verdict::judge(&self.case);
            self.compiled = OnceLock::new();
        }
    }

    /// Counts the bytes of inputs as they are read; it can be watched from another thread.
    #[must_use]
    pub fn progress(&self) -> read::Progress {
        self.progress.clone()
    }

    /// The walk through the playbook that serves the verdict best, or the one that was opened.
    #[must_use]
    pub fn walk(&self) -> &Walk {
        &self.walking.walk
    }

    /// What happened in the walk, for the store.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.walking.record
    }

    /// The playbooks.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.walking.library
    }

    /// Says when and by whom what comes next is done: the engine asks no clock.
    pub fn set_stamp(&mut self, stamp: Stamp) {
        self.walking.stamp = stamp;
    }

    /// Says which kinds of step this build can't carry out.
    pub fn set_unavailable(&mut self, kinds: &[StepKind]) {
        self.walking.unavailable = kinds.to_vec();
        self.rebuild_walk();
    }

    /// The stack of each run, side by side.
    #[must_use]
    pub fn chains(&self) -> Vec<Chain> {
        chain::chains(&self.case)
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
        // Reading is independent per input; only the case is not. In batches, so that a job's thousands of dumps are not all
        // in memory at once.
        let progress = self.progress.clone();
        let mut inputs = loaded.inputs.into_iter();
        loop {
            let batch: Vec<source::Input> = inputs.by_ref().take(INPUTS_AT_ONCE).collect();
            if batch.is_empty() {
                break;
            }
            let read: Vec<InputReading> = batch
                .par_iter()
                .map(|input| read::read_input(source::InputId(0), input.kind, &input.bytes, &progress))
                .collect();
            for (input, read) in batch.into_iter().zip(read) {
                self.take_input(input, read);
            }
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
            times: read.reading.times,
            went_on: read.reading.went_on,
            survived: read.reading.survived,
            ends_well: read.reading.ends_well,
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
        }
        if input.bytes.was_cut() {
            let why = "was cut by another program while it was read: what stood behind is missing";
            self.case.note("warning", format!("{}: {why}", input.path));
        }
        for message in read.reading.diagnostics {
            self.case.note("warning", format!("{}: {message}", input.path));
        }
        let mut first = None;
        let signatures = self.walking.library.signatures();
        let own = if input.kind.is_line_text() && !signatures.is_empty() {
            signatures.read(id, &input.bytes)
        } else {
            Vec::new()
        };
        for mut event in read.reading.events.into_iter().chain(own) {
            event.span.input = id;
            fill_from_path(&mut event, &input.hint);
            let evidence = self.case.add_event(event);
            first = first.or(Some(evidence));
        }
        let (kernels, notes) = kernels::read(&input, id);
        let source = kernels::linted(&input, id);
        let is_kernel = !kernels.is_empty() || source.is_some();
        if let Some(source) = source
            && self.case.sources().len() < SOURCE_LIMIT
        {
            self.case.attach_source(source);
        }
        for note in notes {
            self.case.note("warning", format!("{}: {note}", input.path));
        }
        for (event, kernel) in kernels {
            let evidence = self.case.add_event(event);
            self.case.attach_kernel(evidence, Arc::new(kernel));
        }
        let is_known = !matches!(input.kind, InputKind::UnknownBinary | InputKind::Report);
        if read.unread && !is_kernel && is_known {
            self.case.note("info", format!("{}: recognised, and not needed for a verdict", input.path));
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
                Artifact::Compiled(compilations) => {
                    for (mut event, kernel) in kernels::of_trace(id, &compilations) {
                        fill_from_path(&mut event, &input.hint);
                        let evidence = self.case.add_event(event);
                        self.case.attach_kernel(evidence, Arc::new(kernel));
                    }
                }
            }
        }
        if input.kind == InputKind::FlightRecorder {
            // Nobody looks into the pickle itself, and a job's dumps together would not fit.
            input.bytes = source::Bytes::default();
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

#[cfg(test)]
mod tests;
