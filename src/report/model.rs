//! The report as other programs read it: `warpfault/report/1`.
//!
//! In: nothing; plain types with serde and schema. Out: [`Report`], from which every format is printed. Keys with no value
//! are `null`, never left out; addresses, hashes and offsets are hex strings. It leaves wording to the builders.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::source::InputKind;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

pub use crate::tables::class::Family;
pub use crate::verdict::{Certainty, CheckStatus, RankState, RestartAdvice, Role};

/// Name of this schema.
pub const SCHEMA: &str = "warpfault/report/1";

/// Everything that is known about an incident.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// Schema name and version.
    pub schema: &'static str,
    /// The tool that wrote it.
    pub tool: Tool,
    /// What was read.
    pub inputs: Vec<Input>,
    /// The answer.
    pub verdict: Verdict,
    /// Every failure with its role, the root first.
    pub failures: Vec<Failure>,
    /// Explanations, the likeliest first.
    pub hypotheses: Vec<Hypothesis>,
    /// The evidence that the rest refers to.
    pub evidence: Vec<Evidence>,
    /// Shapes with their limits.
    pub shapes: Vec<Value>,
    /// Ranks, the odd one out first.
    pub ranks: Vec<Rank>,
    /// Checks with their outcome.
    pub checks: Vec<Check>,
    /// What would settle the open questions, cheapest first.
    pub next: Vec<Next>,
    /// Stop-gaps and fixes.
    pub mitigations: Vec<Mitigation>,
    /// What was done in the walk through a playbook, the first thing first; empty where nothing was.
    pub history: Vec<HistoryEntry>,
    /// What could not be used.
    pub diagnostics: Vec<Diagnostic>,
}

/// Something that was done in the walk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryEntry {
    /// When, ISO 8601.
    pub at: Option<String>,
    /// Who: the user name on the machine.
    pub by: Option<String>,
    /// Playbook's id.
    pub playbook: String,
    /// Step's id.
    pub step: String,
    /// Step's title.
    pub title: String,
    /// What was done or came out, in words.
    pub did: String,
    /// The command that ran, word by word.
    pub command: Option<Vec<String>>,
    /// Its exit status.
    pub exit_code: Option<i32>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
}

/// The tool that wrote a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// An input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Input {
    /// Name as given.
    pub path: String,
    /// What it is.
    pub kind: InputKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Lines; 0 where there are none.
    pub lines: u64,
    /// True where only a part was read.
    pub truncated: bool,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// Class of the first failure.
    pub class: FailureClass,
    /// Its family.
    pub family: Family,
    /// How sure the class is.
    pub certainty: Certainty,
    /// One sentence.
    pub summary: String,
    /// The cause, where the evidence names one.
    pub cause: Option<Cause>,
    /// The status.
    pub code: Option<Code>,
    /// Which component's message hides the failure.
    pub masked_by: Option<MaskedBy>,
    /// Whether it was reported later than it happened; null where nothing tells.
    pub reported_asynchronously: Option<bool>,
    /// Where it was noticed.
    pub observed_at: Option<ObservedAt>,
    /// Where it happened.
    pub fault_at: Option<FaultAt>,
    /// Rank that failed first.
    pub root_rank: Option<u32>,
    /// The collective that never finished.
    pub collective: Option<Collective>,
    /// Whether a restart is worth trying.
    pub restart: Restart,
}

/// A cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cause {
    /// Which.
    pub kind: CauseKind,
    /// How sure.
    pub certainty: Certainty,
    /// One sentence.
    pub summary: String,
}

/// A status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Code {
    /// `cuda`, `nccl`, `signal`, `xid`, `cublas`, `cudnn`, `exit`.
    pub domain: String,
    /// Number.
    pub number: Option<i64>,
    /// Name.
    pub name: Option<String>,
}

/// Who hides a failure behind a message of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaskedBy {
    /// cuBLAS.
    Cublas,
    /// cuDNN.
    Cudnn,
    /// The NCCL watchdog.
    NcclWatchdog,
    /// The allocator.
    Allocator,
    /// A destructor.
    Destructor,
    /// A launcher.
    Launcher,
}

/// Where a failure was noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ObservedAt {
    /// Global rank.
    pub rank: Option<u32>,
    /// File.
    pub file: Option<String>,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Function.
    pub function: Option<String>,
    /// The call that noticed it.
    pub call: Option<String>,
    /// The call with its arguments.
    pub call_text: Option<String>,
    /// Line of the log on which the frame stands, counted from 1.
    pub log_line: Option<u64>,
    /// Whether that call waits for the GPU; null where unknown.
    pub is_sync_point: Option<bool>,
    /// Evidence.
    pub evidence: Vec<String>,
}

/// Where a failure happened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct FaultAt {
    /// Global rank.
    pub rank: Option<u32>,
    /// Kernel.
    pub kernel: Option<String>,
    /// File.
    pub file: Option<String>,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Grid.
    pub grid: Option<[u64; 3]>,
    /// Block.
    pub block: Option<[u64; 3]>,
    /// Thread.
    pub thread: Option<[u64; 3]>,
    /// Program counter, hex.
    pub pc: Option<String>,
    /// Address, hex.
    pub address: Option<String>,
    /// Access and its size in bytes (`write 16`).
    pub access: Option<String>,
    /// Function of the host that crashed.
    pub function: Option<String>,
    /// Library.
    pub library: Option<String>,
    /// Offset in kernel or library, hex.
    pub offset: Option<String>,
    /// Evidence.
    pub evidence: Vec<String>,
}

/// A collective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Collective {
    /// Operation (`ALLREDUCE`).
    pub op: Option<String>,
    /// Sequence number inside its group.
    pub seq: Option<u64>,
    /// Process group.
    pub group: Option<String>,
    /// Elements in.
    pub numel_in: Option<u64>,
    /// Elements out.
    pub numel_out: Option<u64>,
}

/// Whether a restart is worth trying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Restart {
    /// The advice.
    pub advice: RestartAdvice,
    /// Why.
    pub summary: String,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// Class.
    pub class: FailureClass,
    /// Role.
    pub role: Role,
    /// The role's word for readers, where another one tells more: `earlier` of what lies before the root.
    #[serde(skip)]
    pub shown: Option<&'static str>,
    /// Global rank.
    pub rank: Option<u32>,
    /// Why it has this role.
    pub why: Option<String>,
    /// Evidence.
    pub evidence: Vec<String>,
}

/// An explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hypothesis {
    /// Class.
    pub class: FailureClass,
    /// Cause.
    pub cause: Option<CauseKind>,
    /// How sure.
    pub certainty: Certainty,
    /// One sentence.
    pub summary: String,
    /// Evidence for it.
    #[serde(rename = "for")]
    pub supports: Vec<String>,
    /// Evidence against it.
    pub against: Vec<String>,
    /// What would settle it.
    pub would_settle: Vec<String>,
}

/// Where evidence comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum From {
    /// A span of an input.
    Span {
        /// Position of the input.
        input: u32,
        /// Line, counted from 1.
        line: u64,
        /// Offset of the first byte.
        byte: u64,
        /// Lines covered.
        lines: u32,
    },
    /// Other evidence.
    Derived {
        /// Its ids.
        from: Vec<String>,
    },
    /// The probe.
    Probe,
    /// The user.
    Answer,
}

/// A piece of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// Id (`e4`).
    pub id: String,
    /// Kind.
    pub kind: EvidenceKind,
    /// Global rank.
    pub rank: Option<u32>,
    /// Time as printed.
    pub time: Option<String>,
    /// Provenance.
    pub from: From,
    /// The line, escapes made visible.
    pub text: String,
    /// What was read from it.
    pub fields: Map<String, Value>,
}

/// Kinds of evidence: a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the events, which are documented")]
pub enum EvidenceKind {
    CudaError,
    LibraryStatus,
    GpuOutOfMemory,
    DeviceAssert,
    Traceback,
    Exception,
    NativeFrames,
    Signal,
    Abort,
    Sanitizer,
    SanitizerSummary,
    Xid,
    DriverFault,
    KernelSegfault,
    OomKill,
    Nccl,
    NcclResult,
    CollectiveTimeout,
    WorkStatus,
    CollectiveMismatch,
    PeerLost,
    Exit,
    Cleanup,
    Advice,
    /// The stack of a running process.
    StackDump,
    Command,
    Environment,
    Shape,
    Value,
    Model,
    FaultingLaunch,
    LaunchMention,
    Graph,
    Compile,
    LaunchRefused,
    Unknown,
    Signature,
    FlightDump,
    Ras,
    CompiledKernel,
    Probe,
    Derived,
}

/// A rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rank {
    /// Global rank.
    pub rank: u32,
    /// Host.
    pub host: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// PCI bus id of its GPU.
    pub pci: Option<String>,
    /// State.
    pub state: RankState,
    /// Signal that ended it.
    pub signal: Option<u32>,
    /// Exit code.
    pub exit_code: Option<i64>,
    /// Last enqueued collective.
    pub last_enqueued: Option<i64>,
    /// Last completed collective.
    pub last_completed: Option<i64>,
    /// Evidence.
    pub evidence: Vec<String>,
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// Id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Outcome.
    pub status: CheckStatus,
    /// What the outcome means.
    pub reading: String,
    /// Evidence.
    pub evidence: Vec<String>,
}

/// A next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Next {
    /// Id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Command, word by word; null where a person acts.
    pub command: Option<Vec<String>>,
    /// Cost.
    pub cost: String,
    /// Why.
    pub why: String,
}

/// A stop-gap or fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Mitigation {
    /// What to do.
    pub summary: String,
    /// `stop-gap`, `fix` or `verification`.
    pub scope: String,
}

/// A sentence about the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// `warning` or `info`.
    pub severity: String,
    /// The sentence.
    pub message: String,
}
