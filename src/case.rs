//! The incident: append-only evidence with provenance.
//!
//! In: events, and what was derived from them. Out: [`Case`], which the verdict reads. No provenance, no evidence
//! (law 2). It leaves conclusions to the verdict.

mod answers;
pub mod collectives;
pub mod evidence;
mod model_sizes;

pub use answers::Answer;
pub use evidence::{Derived, Evidence, EvidenceId, Fact, Provenance};
pub use model_sizes::ModelAtTokens;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::kernel::Kernel;
use crate::kernel::lint::Linted;
use crate::read::coredump::DumpSummary;
pub use crate::read::event::InputId;
use crate::read::event::{Data, Event};
use crate::read::flight_recorder::FlightDump;
use crate::read::nccl_ras::RasAnswer;
use crate::read::times::Times;
use crate::read::went_on::{Survived, WentOn};
use crate::source::InputKind;

use collectives::{Matched, Matcher};

/// What is known about an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputMeta {
    /// Name to show.
    pub path: String,
    /// What it is.
    pub kind: InputKind,
    /// Size in bytes, as stored.
    pub bytes: u64,
    /// Lines, 0 in inputs that have none.
    pub lines: u64,
    /// True where only a part was read.
    pub truncated: bool,
    /// When its lines were printed, where they carry dates.
    pub times: Option<Times>,
    /// What follows its last error, where anything does.
    pub went_on: Option<WentOn>,
    /// Errors that the program survived.
    pub survived: Vec<Survived>,
    /// Whether its last lines say that all went well.
    pub ends_well: bool,
}

/// A source among the inputs, and what the lints say about its kernels.
#[derive(Debug, Clone)]
pub struct LintedSource {
    /// The input.
    pub input: InputId,
    /// Its kernels; none without one.
    pub kernels: Vec<Linted>,
}

/// An incident.
#[derive(Debug, Clone, Default)]
pub struct Case {
    inputs: Vec<InputMeta>,
    evidence: Vec<Evidence>,
    notes: Vec<Note>,
    dumps: Vec<(EvidenceId, Box<DumpSummary>)>,
    kernels: Vec<(EvidenceId, Arc<Kernel>)>,
    sources: Vec<LintedSource>,
    matcher: Matcher,
    matched: Matched,
    reruns: BTreeSet<InputId>,
}

/// A sentence about what the tool could not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// `warning` or `info`.
    pub severity: &'static str,
    /// The sentence.
    pub message: String,
}

impl Case {
    /// Adds an input; its id is its position.
    pub fn add_input(&mut self, input: InputMeta) -> InputId {
        let id = InputId(u32::try_from(self.inputs.len()).unwrap_or(u32::MAX));
        self.inputs.push(input);
        id
    }

    /// Adds an event as evidence of its own span.
    pub fn add_event(&mut self, event: Event) -> EvidenceId {
        self.matcher.add_event(&event);
        let provenance = match event.data {
            Data::Probe(_) => Provenance::Probe,
            _ => Provenance::Span(event.span),
        };
        self.push(provenance, Fact::Event(Box::new(event)))
    }

    /// Takes a rank's dump into the comparison; the dump itself may be dropped.
    pub fn compare_dump(&mut self, rank: u32, dump: &FlightDump) {
        self.matcher.add_dump(rank, dump);
    }

    /// Takes a RAS answer into the comparison.
    pub fn compare_ras(&mut self, answer: &RasAnswer) {
        self.matcher.add_ras(answer);
    }

    /// Compares collectives across ranks, after the last evidence of a batch.
    pub fn match_collectives(&mut self) {
        self.matched = self.matcher.finish();
    }

    /// What the comparison found.
    #[must_use]
    pub fn matched(&self) -> &Matched {
        &self.matched
    }

    /// Adds what follows from other evidence.
    pub fn derive(&mut self, from: Vec<EvidenceId>, derived: Derived) -> EvidenceId {
        self.push(Provenance::Derived(from), Fact::Derived(Box::new(derived)))
    }

    /// Keeps a core dump's content beside the evidence that stands for it.
    pub fn attach_dump(&mut self, evidence: EvidenceId, dump: Box<DumpSummary>) {
        self.dumps.push((evidence, dump));
    }

    /// Core dumps.
    pub fn dumps(&self) -> impl Iterator<Item = (EvidenceId, &DumpSummary)> {
        self.dumps.iter().map(|(id, dump)| (*id, &**dump))
    }

    /// Marks an input as the output of a rerun: it tells more about the incident, and is no second incident.
    pub fn mark_rerun(&mut self, input: InputId) {
        self.reruns.insert(input);
    }

    /// Whether an input is the output of a rerun.
    #[must_use]
    pub fn is_rerun(&self, input: InputId) -> bool {
        self.reruns.contains(&input)
    }

    /// The inputs that were printed by runs with launch blocking: their command or their settings say so.
    #[must_use]
    pub fn blocking_inputs(&self) -> BTreeSet<InputId> {
        let says = |data: &Data| match data {
            Data::Command(command) => command.environment.iter().any(|(name, value)| blocks(name, value)),
            Data::Environment(fact) => blocks(&fact.name, &fact.value),
            _ => false,
        };
        self.events().filter(|(_, event)| says(&event.data)).map(|(_, event)| event.span.input).collect()
    }

    /// The evidence of one input alone, as if it were an incident of its own; ids differ from this case's.
    #[must_use]
    pub fn only(&self, input: InputId) -> Self {
        let mut alone = Self { inputs: self.inputs.clone(), ..Self::default() };
        for (_, event) in self.events().filter(|(_, event)| event.span.input == input) {
            alone.add_event(event.clone());
        }
        alone
    }

    /// Adds what the user says about an input, as evidence of the user's word.
    pub fn add_answer(&mut self, event: Event) -> EvidenceId {
        self.push(Provenance::Answer, Fact::Event(Box::new(event)))
    }

    /// Keeps a compiled kernel beside the evidence that stands for it.
    pub fn attach_kernel(&mut self, evidence: EvidenceId, kernel: Arc<Kernel>) {
        self.kernels.push((evidence, kernel));
    }

    /// Compiled kernels.
    pub fn kernels(&self) -> impl Iterator<Item = (EvidenceId, &Kernel)> {
        self.kernels.iter().map(|(id, kernel)| (*id, &**kernel))
    }

    /// The compiled kernel that a piece of evidence stands for.
    #[must_use]
    pub fn kernel(&self, evidence: EvidenceId) -> Option<Arc<Kernel>> {
        self.kernels.iter().find(|(id, _)| *id == evidence).map(|(_, kernel)| Arc::clone(kernel))
    }

    /// Keeps what the lints say about a source among the inputs.
    pub fn attach_source(&mut self, source: LintedSource) {
        self.sources.push(source);
    }

    /// Sources with kernels in them.
    #[must_use]
    pub fn sources(&self) -> &[LintedSource] {
        &self.sources
    }

    /// Adds a note about what could not be used.
    pub fn note(&mut self, severity: &'static str, message: impl Into<String>) {
        self.notes.push(Note { severity, message: message.into() });
    }

    fn push(&mut self, provenance: Provenance, fact: Fact) -> EvidenceId {
        let id = EvidenceId(u32::try_from(self.evidence.len() + 1).unwrap_or(u32::MAX));
        self.evidence.push(Evidence { id, provenance, fact });
        id
    }

    /// Inputs in order.
    #[must_use]
    pub fn inputs(&self) -> &[InputMeta] {
        &self.inputs
    }

    /// Evidence in order.
    #[must_use]
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Notes in order.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The evidence with this id.
    #[must_use]
    pub fn get(&self, id: EvidenceId) -> Option<&Evidence> {
        self.evidence.get((id.0 as usize).checked_sub(1)?)
    }

    /// The events with their ids, in order.
    pub fn events(&self) -> impl Iterator<Item = (EvidenceId, &Event)> {
        self.evidence.iter().filter_map(|evidence| match &evidence.fact {
            Fact::Event(event) => Some((evidence.id, &**event)),
            Fact::Derived(_) => None,
        })
    }

    /// The events of which `pick` makes something.
    pub fn pick<'a, T: 'a>(
        &'a self,
        pick: impl Fn(&'a Data) -> Option<T> + 'a,
    ) -> impl Iterator<Item = (EvidenceId, &'a Event, T)> + 'a {
        self.events().filter_map(move |(id, event)| pick(&event.data).map(|found| (id, event, found)))
    }
}

/// Whether a setting makes every launch wait.
fn blocks(name: &str, value: &str) -> bool {
    name == "CUDA_LAUNCH_BLOCKING" && !matches!(value.trim(), "" | "0")
}
