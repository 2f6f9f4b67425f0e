//! A walk through a playbook, as any front end draws it.
//!
//! In: the library, what is known, the history, what runs showed. Out: [`Walk`]: steps with their states and readings,
//! which one is next, what one key would do there. Every text is escaped and ready to show; a command's words are not
//! text and stand as they are. It carries nothing out.

mod act;
mod judge;
pub mod need;
mod path;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::text::escape;

use super::known::Known;
use super::library::Library;
use super::record::{Record, StepRef};
use super::schema::StepKind;

pub use act::{Act, Asked, Prepared, command_text, shell_line};
pub use need::{Fill, Need};

/// State of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepState {
    /// The evidence answered it; nobody was asked.
    Answered,
    /// It waits for the engineer.
    Open,
    /// Its command runs.
    Running,
    /// The engineer answered it, or its command ran.
    Done,
    /// The engineer skipped it.
    Skipped,
    /// Nothing tells; `needs` says what is missing.
    Unknown,
    /// The walk has not come to it yet.
    Ahead,
    /// The walk doesn't come to it: its condition fails, or a branch went elsewhere.
    Aside,
}

impl StepState {
    /// In a word, for screens and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Open => "open",
            Self::Running => "running",
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Unknown => "unknown",
            Self::Ahead => "ahead",
            Self::Aside => "aside",
        }
    }
}

/// A walk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
    /// Id of the playbook that it began with; none where no playbook serves the verdict.
    pub playbook: Option<String>,
    /// Its title.
    pub title: String,
    /// What it is about.
    pub about: Option<String>,
    /// Steps in the order of the walk, then those of its last playbook that it has not come to.
    pub steps: Vec<WalkStep>,
    /// Position of the step that waits for the engineer; none where the walk came to its end.
    pub current: Option<usize>,
    /// Why the walk ended, where it did.
    pub end: Option<End>,
    /// Other playbooks that serve the verdict, the best first: id and title.
    pub others: Vec<(String, String)>,
}

/// Why a walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// An outcome led to `end`, or the last step was passed.
    Reached,
    /// An outcome led back to a step that was taken already; that step is current again.
    Repeats(StepRef),
    /// An outcome led to a playbook or step that isn't there.
    Lost(String),
}

/// A step of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkStep {
    /// Which step.
    pub at: StepRef,
    /// Kind.
    pub kind: StepKind,
    /// Title.
    pub title: String,
    /// Why it is worth taking.
    pub why: String,
    /// What it costs.
    pub cost: String,
    /// The wrong conclusion that it is often used for.
    pub misread: Option<String>,
    /// State.
    pub state: StepState,
    /// The working: numbers, filled in.
    pub shows: Option<String>,
    /// What the outcome means; for an unknown one, what would settle it.
    pub reading: Option<String>,
    /// Id of the outcome that was taken.
    pub outcome: Option<String>,
    /// Every outcome, so that a person sees what each result would mean.
    pub outcomes: Vec<OutcomeRow>,
    /// Names without a value that keep it unknown.
    pub needs: Vec<String>,
    /// What one key does here.
    pub act: Act,
    /// Where to read more.
    pub references: Vec<String>,
}

/// An outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeRow {
    /// Id.
    pub id: String,
    /// What it means.
    pub reading: String,
    /// Whether it was taken.
    pub taken: bool,
    /// Where the walk goes on; none for the next step.
    pub goto: Option<String>,
}

/// Steps of the shipped playbooks that are the next step of a report, where they have another name there.
const ALSO_CALLED: [(&str, &str); 5] = [
    ("compute-sanitizer", "memcheck"),
    ("faulthandler", "python-line"),
    ("flight-recorder", "next-time"),
    ("gpu-state", "counters"),
    ("boundary", "probe"),
];

/// The id that a step of a report has in the playbooks.
fn own_id(id: &str) -> &str {
    ALSO_CALLED.iter().find(|(other, _)| *other == id).map_or(id, |(_, own)| own)
}

impl Walk {
    /// Whether a step that a report calls `id` was carried out, with something to show for it.
    #[must_use]
    pub fn has_done(&self, id: &str) -> bool {
        self.steps.iter().any(|step| step.at.step == own_id(id) && step.state == StepState::Done)
    }

    /// Whether a step that a report calls `id` was skipped, or carried out with nothing to show for it.
    #[must_use]
    pub fn was_tried(&self, id: &str) -> bool {
        let tried = |step: &WalkStep| {
            step.state == StepState::Skipped || step.state == StepState::Unknown && step.outcome.is_some()
        };
        self.steps.iter().any(|step| step.at.step == own_id(id) && tried(step))
    }

    /// The step that a report calls `id`, among the steps of this walk.
    #[must_use]
    pub fn called(&self, id: &str) -> Option<&WalkStep> {
        self.steps.iter().find(|step| step.at.step == own_id(id))
    }

    /// The step that waits for the engineer.
    #[must_use]
    pub fn current(&self) -> Option<&WalkStep> {
        self.steps.get(self.current?)
    }

    /// The step with these ids.
    #[must_use]
    pub fn step(&self, at: &StepRef) -> Option<&WalkStep> {
        self.steps.iter().find(|step| step.at == *at)
    }
}

/// What a walk is computed from.
#[derive(Debug, Clone, Copy)]
pub struct Walker<'a> {
    /// Playbooks.
    pub library: &'a Library,
    /// What the evidence tells.
    pub evidence: &'a Known,
    /// What happened.
    pub record: &'a Record,
    /// What each run showed.
    pub runs: &'a BTreeMap<StepRef, Known>,
    /// The command of a probe step, made of the kernel and the numbers of the evidence.
    pub probe: Option<&'a Prepared>,
    /// The command of a repro step, made of the inputs.
    pub repro: Option<&'a Prepared>,
    /// Kinds that this build can't carry out.
    pub unavailable: &'a [StepKind],
}

impl Walker<'_> {
    /// The walk from the playbook `start`, among `serving` ones.
    #[must_use]
    pub fn walk(&self, start: Option<&str>, serving: &[&super::Playbook]) -> Walk {
        let mut known = self.evidence.clone();
        super::facts::answers(&mut known, self.record);
        let chosen = start.and_then(|id| self.library.get(id)).or_else(|| serving.first().copied());
        let Some(playbook) = chosen else { return Walk::default() };
        let path = path::follow(self, playbook, &mut known);
        Walk {
            playbook: Some(playbook.id.clone()),
            title: shown(&playbook.title),
            about: playbook.about.as_deref().map(shown),
            steps: path.steps,
            current: path.current,
            end: path.end,
            others: serving
                .iter()
                .filter(|other| other.id != playbook.id)
                .map(|other| (other.id.clone(), shown(&other.title)))
                .collect(),
        }
    }
}

/// Text from outside, made safe to show. Line ends of a playbook's own texts become blanks.
fn shown(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escape(&flat).to_string()
}

/// A template, filled in and made safe to show.
fn sentence(template: &str, known: &Arc<Known>) -> (String, Vec<String>) {
    match super::template::render(template, known) {
        Ok(rendered) => (shown(&rendered.text), rendered.needs),
        Err(why) => (format!("(this text can't be filled in: {})", shown(&why)), Vec::new()),
    }
}
