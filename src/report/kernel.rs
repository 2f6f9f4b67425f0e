//! The static check of a kernel as programs read it: `warpfault kernel --format json`.
//!
//! In: analyses and lints. Out: serialisable views whose keys the contract fixes; more keys than it names stand beside
//! them. The text for people is `kernel_text`'s. Numbers are exact.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::finding::{Analysis, Answer, Certainty, Finding, FindingKind, Unknown};
use crate::kernel::lint::Linted;
use crate::kernel::location::Location;
use crate::kernel::model::{Param, Source};
use crate::kernel::sweep::Sweep;

/// What `warpfault kernel --format json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KernelsView {
    /// `warpfault/kernel/1`.
    pub schema: &'static str,
    /// One entry a kernel, in the order of the files.
    pub kernels: Vec<KernelView>,
    /// What could not be read.
    pub diagnostics: Vec<String>,
}

impl KernelsView {
    /// The schema's name and version.
    pub const SCHEMA: &'static str = "warpfault/kernel/1";

    /// The JSON Schema of this view.
    #[must_use]
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Self)
    }
}

/// One kernel.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KernelView {
    /// Its name, made readable.
    pub entry: String,
    /// Its symbol in the compiled text.
    pub symbol: String,
    /// What was read.
    pub source: SourceView,
    /// The file that was read.
    pub path: String,
    /// The architecture, `sm_90`.
    pub target: Option<String>,
    /// Its parameters.
    pub params: Vec<ParamView>,
    /// Values used, by argument.
    pub assumptions: BTreeMap<String, i128>,
    /// What was assumed beyond the given values.
    pub stated: Vec<String>,
    /// The answer about wraps.
    pub answer: AnswerView,
    /// Findings.
    pub findings: Vec<FindingView>,
    /// What stopped the analysis, with its place.
    pub unknown: Vec<UnknownView>,
    /// How many memory accesses it has.
    pub accesses: usize,
    /// How many of them could not be decided.
    pub undecided: usize,
    /// The sweep that was asked for, over all decided accesses.
    pub sweep: Option<SweepView>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// What a kernel was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceView {
    /// Triton's TTIR.
    Ttir,
    /// PTX.
    Ptx,
    /// Python source, linted.
    Python,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnswerView {
    /// A 32-bit index wraps.
    Wraps,
    /// None can.
    Fits,
    /// Not shown either way.
    Unknown,
}

/// A parameter.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ParamView {
    /// Its name.
    pub name: String,
    /// Its type as the compiler writes it.
    #[serde(rename = "type")]
    pub ty: String,
    /// What its value is promised to be a multiple of.
    pub divisibility: u64,
}

/// Kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindView {
    /// An index wraps before it reaches an address.
    Int32Overflow,
    /// An access without a mask passes the end.
    UnmaskedAccess,
    /// A masked load without `other` feeds a reduction.
    MissingOther,
    /// A row offset without its stride.
    MissingStride,
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

/// Certainty of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CertaintyView {
    /// The compiled kernel says so at these values.
    Supported,
    /// Possible by what is known.
    Suspected,
}

/// A place in a source file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LocationView {
    /// The file as the compiler recorded it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A finding.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FindingView {
    /// Its kind.
    pub kind: KindView,
    /// How sure it is.
    pub certainty: CertaintyView,
    /// The expression in the author's names.
    pub expression: String,
    /// Where it goes: `store to y_ptr`.
    pub reaches: String,
    /// Where the expression stands.
    pub location: Option<LocationView>,
    /// Where the access stands.
    pub access_location: Option<LocationView>,
    /// The extreme exact value.
    pub max_value: Option<i128>,
    /// The limit that it passes.
    pub limit: Option<i128>,
    /// Up to where it is safe.
    pub sweep: Option<SweepView>,
    /// A point where it happens.
    pub witness: Option<WitnessView>,
    /// A sentence.
    pub detail: String,
    /// What to write instead, where a lint knows.
    pub remedy: Option<String>,
}

/// A point where a finding shows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WitnessView {
    /// The program or block: x, y, z.
    pub program: [i128; 3],
    /// Lanes of tensor axes or threads, by name.
    pub lanes: BTreeMap<String, i128>,
    /// Iterations of the loops around it.
    pub iterations: Vec<i128>,
    /// The index that was meant.
    pub index: i128,
    /// What the 32-bit arithmetic makes of it.
    pub wrapped: i128,
}

/// Up to where an argument is safe.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SweepView {
    /// The argument.
    pub name: String,
    /// The largest value up to which every value is safe.
    pub safe: i128,
    /// The first value that is not.
    pub first_unsafe: Option<i128>,
    /// What the argument is a multiple of.
    pub lattice: u64,
    /// The largest safe multiple of it.
    pub safe_on_lattice: i128,
    /// The largest value that was considered.
    pub up_to: i128,
}

/// Something that stopped the analysis.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnknownView {
    /// What.
    pub what: String,
    /// Where.
    pub location: Option<LocationView>,
    /// What would settle it.
    pub settle: Option<String>,
}

impl From<&Location> for LocationView {
    fn from(location: &Location) -> Self {
        Self { file: location.file.clone(), line: location.line, column: location.column }
    }
}

impl From<&Param> for ParamView {
    fn from(param: &Param) -> Self {
        Self { name: param.name.clone(), ty: param.ty.clone(), divisibility: param.divisibility }
    }
}

impl From<&Sweep> for SweepView {
    fn from(sweep: &Sweep) -> Self {
        Self {
            name: sweep.name.clone(),
            safe: sweep.safe,
            first_unsafe: sweep.first_unsafe,
            lattice: sweep.lattice,
            safe_on_lattice: sweep.safe_on_lattice,
            up_to: sweep.up_to,
        }
    }
}

impl From<&Unknown> for UnknownView {
    fn from(unknown: &Unknown) -> Self {
        Self {
            what: unknown.what.clone(),
            location: unknown.location.as_ref().map(Into::into),
            settle: unknown.settle.clone(),
        }
    }
}

impl From<FindingKind> for KindView {
    fn from(kind: FindingKind) -> Self {
        match kind {
            FindingKind::Int32Overflow => Self::Int32Overflow,
            FindingKind::UnmaskedAccess => Self::UnmaskedAccess,
            FindingKind::MissingOther => Self::MissingOther,
            FindingKind::MissingStride => Self::MissingStride,
            FindingKind::NonAtomicStore => Self::NonAtomicStore,
            FindingKind::BlockNotPowerOfTwo => Self::BlockNotPowerOfTwo,
            FindingKind::FixedNumWarps => Self::FixedNumWarps,
            FindingKind::ArchMismatch => Self::ArchMismatch,
            FindingKind::SharedMemory => Self::SharedMemory,
        }
    }
}

impl From<&Finding> for FindingView {
    fn from(finding: &Finding) -> Self {
        Self {
            kind: finding.kind.into(),
            certainty: match finding.certainty {
                Certainty::Supported => CertaintyView::Supported,
                Certainty::Suspected => CertaintyView::Suspected,
            },
            expression: finding.expression.clone(),
            reaches: finding.reaches.clone(),
            location: finding.location.as_ref().map(Into::into),
            access_location: finding.access_location.as_ref().map(Into::into),
            max_value: finding.max_value,
            limit: finding.limit,
            sweep: finding.sweep.as_ref().map(Into::into),
            witness: finding.witness.as_ref().map(|witness| WitnessView {
                program: witness.program,
                lanes: witness.lanes.iter().cloned().collect(),
                iterations: witness.iterations.clone(),
                index: witness.index,
                wrapped: witness.wrapped,
            }),
            detail: finding.detail.clone(),
            remedy: finding.remedy.clone(),
        }
    }
}

impl KernelView {
    /// The view of the lints of a function in the source file `path`.
    #[must_use]
    pub fn of_source(path: &str, linted: &Linted) -> Self {
        Self {
            entry: linted.entry.clone(),
            symbol: linted.entry.clone(),
            source: SourceView::Python,
            path: path.to_owned(),
            target: None,
            params: linted.params.iter().map(Into::into).collect(),
            assumptions: BTreeMap::new(),
            stated: Vec::new(),
            answer: AnswerView::Unknown,
            findings: linted.findings.iter().map(Into::into).collect(),
            unknown: Vec::new(),
            accesses: 0,
            undecided: 0,
            sweep: None,
            notes: Vec::new(),
        }
    }

    /// The view of an analysis of the kernel in `path`.
    #[must_use]
    pub fn new(path: &str, params: &[Param], analysis: &Analysis) -> Self {
        let notes = analysis.notes.iter().cloned();
        let complaints = analysis.complaints.iter().map(|complaint| match complaint.line {
            0 => complaint.message.clone(),
            line => format!("line {line}: {}", complaint.message),
        });
        Self {
            entry: crate::image::symbol::name(&analysis.entry),
            symbol: analysis.entry.clone(),
            source: match analysis.source {
                Source::Ttir => SourceView::Ttir,
                Source::Ptx => SourceView::Ptx,
            },
            path: path.to_owned(),
            target: analysis.target.clone(),
            params: params.iter().map(Into::into).collect(),
            assumptions: analysis.assumptions.clone(),
            stated: analysis.stated.clone(),
            answer: match analysis.answer {
                Answer::Wraps => AnswerView::Wraps,
                Answer::Fits => AnswerView::Fits,
                Answer::Unknown => AnswerView::Unknown,
            },
            findings: analysis.findings.iter().map(Into::into).collect(),
            unknown: analysis.unknown.iter().map(Into::into).collect(),
            accesses: analysis.accesses,
            undecided: analysis.undecided,
            sweep: analysis.sweep.as_ref().map(Into::into),
            notes: notes.chain(complaints).collect(),
        }
    }
}
