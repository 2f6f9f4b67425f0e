//! What an analysis says: its answer, findings with a witness each, and what stayed open.
//!
//! In: nothing. Out: the types that [`super::analyze()`] fills and that reports print. It leaves how they come about alone.

use std::collections::BTreeMap;

use super::location::{Complaint, Location};
use super::model::Source;
use super::sweep::Sweep;

/// The answer about a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// No 32-bit index can wrap.
    Fits,
    /// Not shown either way.
    Unknown,
    /// Some 32-bit index wraps.
    Wraps,
}

/// What kind of finding it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// An index wraps before it reaches an address.
    Int32Overflow,
    /// An access without a mask passes the end.
    UnmaskedAccess,
    /// A row offset without its stride.
    MissingStride,
    /// A masked load without `other` feeds a reduction.
    MissingOther,
    /// Several programs store to one address.
    NonAtomicStore,
    /// A block size that is no power of two.
    BlockNotPowerOfTwo,
    /// A fixed `num_warps`.
    FixedNumWarps,
    /// Compiled for another architecture than the device's.
    ArchMismatch,
    /// More shared memory than the device has.
    SharedMemory,
}

/// How sure a finding is, in the words of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// Possible by what is known.
    Suspected,
    /// The compiled kernel says so at these values.
    Supported,
}

/// A point where a finding shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Witness {
    /// The program or block.
    pub program: [i128; 3],
    /// The lane of each tensor axis (TTIR) or the thread (PTX).
    pub lanes: Vec<(String, i128)>,
    /// Iterations of loops.
    pub iterations: Vec<i128>,
    /// The exact index that was meant.
    pub index: i128,
    /// What the 32-bit arithmetic makes of it.
    pub wrapped: i128,
}

/// One finding.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// How sure it is.
    pub certainty: Certainty,
    /// The expression, in the author's names.
    pub expression: String,
    /// `store to y_ptr`.
    pub reaches: String,
    /// Where the expression stands.
    pub location: Option<Location>,
    /// Where the access stands.
    pub access_location: Option<Location>,
    /// The extreme exact value, where it was computed.
    pub max_value: Option<i128>,
    /// The limit that it passes.
    pub limit: Option<i128>,
    /// A point where it happens.
    pub witness: Option<Witness>,
    /// Up to where it is safe.
    pub sweep: Option<Sweep>,
    /// A sentence for people.
    pub detail: String,
    /// What to write instead.
    pub remedy: Option<String>,
    /// Accesses that it concerns, as indices.
    pub accesses: Vec<usize>,
}

/// Something that stopped the analysis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// What.
    pub what: String,
    /// Where.
    pub location: Option<Location>,
    /// What would settle it, where that is known.
    pub settle: Option<String>,
}

/// What is known about a kernel under bindings.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The entry's name.
    pub entry: String,
    /// What was read.
    pub source: Source,
    /// `sm_90`.
    pub target: Option<String>,
    /// The answer about wraps.
    pub answer: Answer,
    /// The findings, wraps first.
    pub findings: Vec<Finding>,
    /// What could not be decided.
    pub unknown: Vec<Unknown>,
    /// Values used, by argument name.
    pub assumptions: BTreeMap<String, i128>,
    /// What was assumed beyond the given values, a sentence each.
    pub stated: Vec<String>,
    /// How many accesses there are.
    pub accesses: usize,
    /// How many of them could not be decided.
    pub undecided: usize,
    /// A sweep over the asked argument, where one was asked for.
    pub sweep: Option<Sweep>,
    /// What the reader could not make sense of.
    pub complaints: Vec<Complaint>,
    /// Remarks.
    pub notes: Vec<String>,
}
