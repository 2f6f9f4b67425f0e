//! A failure: what one or more events say that went wrong, on which rank, when, and in which role.
//!
//! In: nothing; plain types. Out: [`Failure`] and its parts. It leaves the choice of roles to `roles`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::case::EvidenceId;
use crate::read::event::{InputId, Messenger, Stamp, Stop};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

/// How sure a statement is (design law 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Nothing in the evidence decides.
    #[default]
    Undecided,
    /// Fits the evidence, nothing independent agrees.
    Suspected,
    /// Independent evidence agrees.
    Supported,
    /// Shown by a rerun or stated by the failing component itself.
    Proven,
}

/// The part that a failure plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The first failure.
    Root,
    /// A later failure of its own.
    Cascade,
    /// Reports another one's failure.
    Messenger,
    /// What a launcher did to the rest.
    Cleanup,
}

/// How much an event says by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Nothing ties it to the failure: of another time, another process or another GPU, or quoted by a document.
    Apart,
    /// A state of the machine when somebody asked: nothing ties it to a failure.
    State,
    /// A line that says only that something failed.
    Hint,
    /// An exit code or signal reported by somebody else.
    Exit,
    /// A rank that waited, a peer that was lost.
    Waiting,
    /// A Python exception without a GPU meaning.
    Program,
    /// The failing component speaks.
    Direct,
}

/// When something was printed. Stamps compare only on one clock; else the order in one input counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// Input.
    pub input: InputId,
    /// Line, counted from 1.
    pub line: u64,
    /// Stamp of the line.
    pub stamp: Option<Stamp>,
}

impl Moment {
    /// Whether `self` was printed before `other`, as far as anything tells.
    #[must_use]
    pub fn before(&self, other: &Self) -> bool {
        if let (Some(mine), Some(theirs)) = (&self.stamp, &other.stamp)
            && mine.clock == theirs.clock
            && mine.ns != theirs.ns
        {
            return mine.ns < theirs.ns;
        }
        (self.input, self.line) < (other.input, other.line)
    }
}

/// A status with its number and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// `cuda`, `nccl`, `signal`, `xid`, `cublas`, `cudnn`, `exit`.
    pub domain: &'static str,
    /// Number in today's tables.
    pub number: Option<i64>,
    /// Name.
    pub name: Option<String>,
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its class.
    pub class: FailureClass,
    /// Its role.
    pub role: Role,
    /// How much it says.
    pub weight: Weight,
    /// Global rank.
    pub rank: Option<u32>,
    /// Process id.
    pub pid: Option<u32>,
    /// Process name.
    pub process: Option<String>,
    /// Host, where the line tells it.
    pub host: Option<String>,
    /// First moment.
    pub at: Moment,
    /// Deciding evidence first.
    pub evidence: Vec<EvidenceId>,
    /// Status.
    pub code: Option<Code>,
    /// Who relays it, where a line shows that.
    pub relayed_by: Option<Messenger>,
    /// A cause that the failing component names itself.
    pub names_cause: Option<CauseKind>,
    /// The device that a driver line names.
    pub pci: Option<String>,
    /// Why a scheduler ended the job, where one did.
    pub stop: Option<Stop>,
    /// Why it has its role, in a few words.
    pub why: String,
}

impl Failure {
    /// Whether the kernel driver said it, by Xid.
    #[must_use]
    pub fn is_xid(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.domain == "xid")
    }

    /// The word for a failure that did not follow from `root`: `earlier` where it was printed before it, and both can be
    /// compared; `apart` where nothing ties it to the root.
    #[must_use]
    pub fn beside(&self, root: &Self) -> Option<&'static str> {
        if self.role != Role::Cascade {
            return None;
        }
        let comparable = match (&self.at.stamp, &root.at.stamp) {
            (Some(mine), Some(roots)) if mine.clock == roots.clock => true,
            _ => self.at.input == root.at.input,
        };
        if comparable && self.at.before(&root.at) {
            return Some("earlier");
        }
        (self.weight == Weight::Apart).then_some("apart")
    }

    /// Whether it is a status of a library that hides its reason.
    #[must_use]
    pub fn is_library_status(&self) -> bool {
        self.code.as_ref().is_some_and(|code| matches!(code.domain, "cublas" | "cudnn"))
    }
}
