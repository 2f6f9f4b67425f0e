//! What a playbook is: whom it serves, its steps, their outcomes, and a site's own error lines.
//!
//! In: nothing; plain types. Out: [`Playbook`] and its parts, each text with the line it stands on. Reading them from
//! TOML is `parse`'s business, doubting them `check`'s.

use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

/// The version of the file format that this build reads.
pub const SCHEMA: i64 = 1;

/// A text of a playbook file, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The text: an expression or a template.
    pub text: String,
    /// Line, counted from 1.
    pub line: u32,
}

/// A playbook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Playbook {
    /// The file it came from.
    pub file: String,
    /// Id: lower-case words joined by hyphens.
    pub id: String,
    /// Line of the id.
    pub line: u32,
    /// Title.
    pub title: String,
    /// What it is about, in a few sentences.
    pub about: Option<String>,
    /// Failure classes that it serves.
    pub classes: Vec<FailureClass>,
    /// Causes that it serves; a playbook that names the verdict's cause goes before one that doesn't.
    pub causes: Vec<CauseKind>,
    /// Served only where this holds.
    pub when: Option<Source>,
    /// Where to read more.
    pub references: Vec<String>,
    /// Steps, the first one first.
    pub steps: Vec<Step>,
    /// The site's own error lines.
    pub signatures: Vec<SignatureRule>,
}

impl Playbook {
    /// The step with this id, and its position.
    #[must_use]
    pub fn step(&self, id: &str) -> Option<(usize, &Step)> {
        self.steps.iter().enumerate().find(|(_, step)| step.id == id)
    }
}

/// Who answers a step, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepKind {
    /// The evidence.
    Look,
    /// Arithmetic over the evidence.
    Compute,
    /// The engineer.
    Ask,
    /// The engineer's own command, rerun.
    Run,
    /// The static check of a compiled kernel.
    Kernel,
    /// A rerun of the kernel on the GPU.
    Probe,
    /// A minimal repro.
    Repro,
    /// Something for the engineer to do.
    Apply,
}

impl StepKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Look,
        Self::Compute,
        Self::Ask,
        Self::Run,
        Self::Kernel,
        Self::Probe,
        Self::Repro,
        Self::Apply,
    ];

    /// As playbook files spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Compute => "compute",
            Self::Ask => "ask",
            Self::Run => "run",
            Self::Kernel => "kernel",
            Self::Probe => "probe",
            Self::Repro => "repro",
            Self::Apply => "apply",
        }
    }

    /// The kind with this spelling.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether the evidence alone picks the outcome.
    #[must_use]
    pub fn is_automatic(self) -> bool {
        matches!(self, Self::Look | Self::Compute | Self::Kernel)
    }

    /// Whether the engineer may pick among outcomes without a condition.
    #[must_use]
    pub fn is_picked(self) -> bool {
        matches!(self, Self::Apply | Self::Probe | Self::Repro)
    }
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Id: lower-case words joined by hyphens.
    pub id: String,
    /// Line of the id.
    pub line: u32,
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
    /// Taken only where this holds.
    pub when: Option<Source>,
    /// Where this holds, the evidence has answered the step already.
    pub answered: Option<Source>,
    /// The working to show: numbers, filled in.
    pub shows: Option<Source>,
    /// What it means that nothing tells, and what would.
    pub unknown: Option<Source>,
    /// What carries it out.
    pub action: Action,
    /// Outcomes, in the order in which they are tried.
    pub outcomes: Vec<Outcome>,
    /// Where to read more.
    pub references: Vec<String>,
}

impl Step {
    /// The step's name in expressions: hyphens would be minus signs there.
    #[must_use]
    pub fn name(&self) -> String {
        name_of(&self.id)
    }
}

/// An id as a name in expressions.
#[must_use]
pub fn name_of(id: &str) -> String {
    id.replace('-', "_")
}

/// An outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Id, unique in its step; its position, counted from 1, where the file gives none.
    pub id: String,
    /// Line of the outcome's first key.
    pub line: u32,
    /// Taken where this holds; the last outcome may leave it out and is then taken where no other is.
    pub when: Option<Source>,
    /// What it means.
    pub reading: Source,
    /// Where the walk goes on: a step, another playbook, or `end`; the next step where it is left out.
    pub goto: Option<Source>,
}

/// What carries a step out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing: look, compute, and the kinds that other rooms carry out.
    None,
    /// A question.
    Ask(Question),
    /// A command.
    Run(Box<Rerun>),
    /// Something for the engineer to do.
    Apply(Advice),
}

/// A question to the engineer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub text: Source,
    /// What kind of answer.
    pub answer: AnswerKind,
    /// The choices of a choice.
    pub choices: Vec<String>,
    /// An expression that gives the answer where the evidence has it.
    pub known: Option<Source>,
}

/// What kind of answer a question takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// One of the choices.
    Choice,
    /// A whole number.
    Number,
    /// A shape, such as `234624x9216`.
    Shape,
    /// Text.
    Text,
}

impl AnswerKind {
    /// The kind with this spelling.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "choice" => Self::Choice,
            "number" => Self::Number,
            "shape" => Self::Shape,
            "text" => Self::Text,
            _ => return None,
        })
    }
}

/// The engineer's own command, rerun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rerun {
    /// Variables to set, names as they stand, values as templates.
    pub environment: Vec<(String, Source)>,
    /// Words before the engineer's command, each a template.
    pub before: Vec<Source>,
    /// Whether those words go in front of one rank's program, where a launcher starts the ranks.
    pub in_rank: bool,
    /// A command of its own in place of the engineer's, each word a template; empty for the engineer's.
    pub command: Vec<Source>,
    /// Most seconds that it may take.
    pub deadline_s: u64,
}

/// Something for the engineer to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// What to do: a template.
    pub text: Source,
    /// What it is good for.
    pub scope: Scope,
}

/// What an advice is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Until it is fixed.
    StopGap,
    /// The fix.
    Fix,
    /// Showing that the fix holds.
    Verification,
    /// Next time.
    Prevention,
    /// One more check, by hand.
    Check,
}

impl Scope {
    /// As playbook files and reports spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StopGap => "stop-gap",
            Self::Fix => "fix",
            Self::Verification => "verification",
            Self::Prevention => "prevention",
            Self::Check => "check",
        }
    }

    /// The scope with this spelling.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::StopGap, Self::Fix, Self::Verification, Self::Prevention, Self::Check]
            .into_iter()
            .find(|scope| scope.name() == name)
    }
}

/// A site's own error line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureRule {
    /// Id.
    pub id: String,
    /// Line of the id.
    pub line: u32,
    /// Pattern; its named captures become fields.
    pub pattern: Source,
    /// Class that a match means.
    pub class: FailureClass,
    /// Lines that must match.
    pub matching: Vec<Source>,
    /// Lines that must not.
    pub not_matching: Vec<Source>,
}
