//! What a producer printed, and where: the closed list of events.
//!
//! In: nothing; these are plain types. Out: the one vocabulary that every reader fills and that `case` takes in.
//! An event never claims a cause (law 1): a place that a producer *reported from* and a place that *faulted* are
//! different fields in different types.

mod context;
mod driver;
mod gpu;
mod host;
mod probe;
mod ranks;
mod sanitizer;

use serde::Serialize;

pub use crate::source::InputId;
pub use context::{
    Advice, Command, EnvironmentFact, ModelFacts, NamedValue, Passed, ShapeForm, ShapeMention,
    SignatureMatch, UnknownFailure,
};
pub use driver::{DriverFault, DriverFaultKind, KernelSegfault, OomKill, Xid};
pub use gpu::{
    CompileFailure, CompiledKernel, DeviceAssert, FaultingLaunch, GpuOutOfMemory, GraphMention,
    LaunchMention, LaunchRefused, LibraryStatus, Messenger, Status,
};
pub use host::{
    Abort, AbortReason, Chain, Cleanup, Exception, ExitReporter, FatalSignal, NativeFrame, NativeFrames,
    ProcessExit, PyFrame, SignalReporter, StackDump, Stop, Traceback,
};
pub use probe::{
    ProbeBinding, ProbeBoundary, ProbeControl, ProbeDevice, ProbeFault, ProbeFinding, ProbeKernel,
    ProbeLaunch, ProbePlace, ProbeReport, ProbeTrial,
};
pub use ranks::{
    CollectiveMismatch, CollectiveName, CollectiveTimeout, FlightDumpSummary, NcclLine, NcclResult,
    NcclTopic, PeerLost, PeerLostKind, RasSummary, WorkStatus,
};
pub use sanitizer::{NearestAllocation, SanitizerFinding, SanitizerRecord, SanitizerSummary, Side};

/// Where an event's bytes stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Span {
    /// The input.
    pub input: InputId,
    /// First line, counted from 1; 0 in inputs that have no lines.
    pub line: u64,
    /// Offset of the first byte, in the decoded text.
    pub byte: u64,
    /// Lines that the event covers; at least 1 in text inputs.
    pub lines: u32,
}

/// Something a producer printed.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Where it stands.
    pub span: Span,
    /// Who printed it, as far as the line's prefixes say.
    pub origin: Origin,
    /// What it says.
    pub data: Data,
    /// The deciding line as printed, prefixes included, at most [`Event::TEXT_LIMIT_BYTES`]; not yet escaped.
    pub text: String,
}

impl Event {
    /// Longest text that an event keeps of its line.
    pub const TEXT_LIMIT_BYTES: usize = 2_000;
}

/// The printing process, read off the prefixes of a line (formats.md 1.3, 3.1). Every field is optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// Global rank (`[rank3]:`).
    pub rank: Option<u32>,
    /// Rank on its node (`local_rank: 1`, `[default1]:`).
    pub local_rank: Option<u32>,
    /// Process group and the rank inside it (`[PG ID 2 PG GUID 3 Rank 0]`).
    pub group: Option<GroupRank>,
    /// Host, pod or node name.
    pub host: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Thread id.
    pub tid: Option<u32>,
    /// CUDA device ordinal (NCCL's `[d]`): no rank.
    pub device: Option<u32>,
    /// Name of the worker, actor or process (`VllmWorker TP1`, `EngineCore`).
    pub process: Option<String>,
    /// Time stamp.
    pub time: Option<Stamp>,
    /// Severity letter or word of the logger.
    pub severity: Option<Severity>,
    /// Source place that the logger printed (`ProcessGroupNCCL.cpp:1595`).
    pub logger: Option<Place>,
    /// `[rank1]: ` of PyTorch's handler of uncaught exceptions: the process ends with it.
    pub uncaught: bool,
    /// A sentence of a document that speaks of an error, and reports none.
    pub quoted: bool,
}

/// A rank inside a process group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct GroupRank {
    /// Group name or id as printed (`default_pg`, `3`).
    pub group: String,
    /// Rank inside the group.
    pub rank: Option<u32>,
}

/// A printed time. Stamps of different clocks are never compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// As printed.
    pub text: String,
    /// Nanoseconds on `clock`.
    pub ns: i128,
    /// Which clock.
    pub clock: Clock,
}

/// What a stamp counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Full date: nanoseconds since 1970.
    Wall,
    /// Month and day, no year: nanoseconds since the year's start, leap day always counted.
    WallNoYear,
    /// Time of day only.
    Day,
    /// Seconds since boot (kernel log).
    Boot,
}

/// A logger's severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Trace or debug.
    Debug,
    /// Information.
    Info,
    /// Warning.
    Warning,
    /// Error.
    Error,
    /// Fatal.
    Fatal,
}

/// A place in source code, as printed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct Place {
    /// File as printed.
    pub file: String,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Function as printed.
    pub function: Option<String>,
}

/// Grid, block or index of three dimensions.
pub type Dim3 = [u64; 3];

/// What an event says. One variant a kind of statement; the producer stands inside.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// A CUDA status: by number, name or text, whoever prints it.
    Status(Status),
    /// A status of a library above CUDA: cuBLAS, cuDNN, cuFFT, cuSOLVER, cuSPARSE, NVRTC, NVSHMEM, HIP.
    Library(LibraryStatus),
    /// A message that the framework's allocator or a library ran out of GPU memory.
    GpuOutOfMemory(GpuOutOfMemory),
    /// A device-side assertion line.
    DeviceAssert(DeviceAssert),
    /// A Python traceback, with the exception that ends it.
    Traceback(Traceback),
    /// An exception line without its traceback.
    Exception(Exception),
    /// A block of native frames.
    NativeFrames(NativeFrames),
    /// A fatal signal caught or reported: faulthandler, absl, UCX, gdb, the shell, DataLoader.
    Signal(FatalSignal),
    /// An abort with its reason: glibc's heap check, pure virtual, `terminate called`.
    Abort(Abort),
    /// A record of compute-sanitizer or cuda-memcheck.
    Sanitizer(Box<SanitizerRecord>),
    /// The tail of a sanitizer report.
    SanitizerSummary(SanitizerSummary),
    /// An NVIDIA driver line with an Xid.
    Xid(Xid),
    /// A driver or bus line without an Xid that tells of a broken GPU or driver.
    DriverFault(DriverFault),
    /// The kernel's `segfault at` or `traps:` line.
    KernelSegfault(KernelSegfault),
    /// The kernel or a cgroup killed a process for memory.
    OomKill(OomKill),
    /// An NCCL WARN, ERROR or return-chain line, or a network plug-in's.
    Nccl(NcclLine),
    /// An NCCL result that a caller reports (`ncclSystemError: …`, `Last error:`).
    NcclResult(NcclResult),
    /// The watchdog says that a collective timed out.
    CollectiveTimeout(CollectiveTimeout),
    /// Last enqueued and last completed work of a rank in a group.
    WorkStatus(WorkStatus),
    /// Ranks disagree about a collective (desync, fingerprint, NCCL's own mismatch texts, flight recorder, RAS).
    CollectiveMismatch(CollectiveMismatch),
    /// The heartbeat monitor or the store gave up, or a peer's connection closed.
    PeerLost(PeerLost),
    /// The stack of a running process: where it stood when somebody asked, and no failure.
    StackDump(StackDump),
    /// A process ended: exit code or signal, as a launcher, shell or scheduler reports it.
    Exit(ProcessExit),
    /// A launcher ends a process as clean-up.
    Cleanup(Cleanup),
    /// Lines that frameworks add to an error: advice, no failure.
    Advice(Advice),
    /// A command line that started the job (`$ python3 …`).
    Command(Command),
    /// A fact about versions, architecture, switches or settings.
    Environment(EnvironmentFact),
    /// A shape, size or count that the log prints.
    Shape(ShapeMention),
    /// A size or setting by its name that is no fact about the machine (`tokens=16384`).
    Value(NamedValue),
    /// The sizes of a model, from its configuration.
    Model(Box<ModelFacts>),
    /// A launch that a tool reports as the faulting one (cuda-gdb, a core dump, DSA report).
    FaultingLaunch(FaultingLaunch),
    /// A launch mentioned by a program, not known to be at fault (`kernel.run(…, grid=…)`).
    LaunchMention(LaunchMention),
    /// A CUDA graph is captured or replayed here.
    Graph(GraphMention),
    /// A compiler or linker failed (nvcc, ptxas, Triton, NVRTC, inductor).
    Compile(CompileFailure),
    /// A launch was refused for its configuration or resources.
    Launch(LaunchRefused),
    /// A line that says that something failed and that no reader knows better.
    Unknown(UnknownFailure),
    /// A site's own signature matched.
    Signature(SignatureMatch),
    /// A rank's flight-recorder dump.
    FlightDump(FlightDumpSummary),
    /// An answer of NCCL's RAS subsystem.
    Ras(RasSummary),
    /// A compiled kernel: an entry of a Triton cache, TTIR or PTX.
    CompiledKernel(CompiledKernel),
    /// A kernel was rerun at boundary sizes: the report of `warpfault probe`.
    Probe(Box<ProbeReport>),
}
