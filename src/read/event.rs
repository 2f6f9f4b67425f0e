//! What a producer printed, and where: the closed list of events.
//!
//! In: nothing; these are plain types. Out: the one vocabulary that every reader fills and that `case` takes in.
//! An event never claims a cause (law 1): a place that a producer *reported from* and a place that *faulted* are
//! different fields in different types.

use serde::Serialize;

use crate::arith::model::ModelConfig;

pub use crate::source::InputId;

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
}

/// Who relays a status that it didn't cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Messenger {
    /// The ProcessGroupNCCL watchdog.
    NcclWatchdog,
    /// NCCL itself (`Cuda failure 700`).
    Nccl,
    /// cuBLAS.
    Cublas,
    /// cuDNN.
    Cudnn,
    /// A destructor, `__dealloc__`, event destroy or module unload.
    Destructor,
    /// The caching allocator or a free.
    Allocator,
    /// A launcher or supervisor.
    Launcher,
    /// The sanitizer's echo of an API error.
    SanitizerEcho,
}

/// A CUDA status line (formats.md 1.1, 1.2): `CUDA error: an illegal memory access was encountered`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The number as it stands in today's tables (700 for an old 77); none where only a text was printed and it is not unique.
    pub code: Option<u32>,
    /// The number as printed, where one was.
    pub printed_number: Option<u32>,
    /// The name as printed (`cudaErrorIllegalAddress`, `CUDA_ERROR_ILLEGAL_ADDRESS`).
    pub printed_name: Option<String>,
    /// Who prints: `pytorch`, `triton`, `xla`, `llama.cpp`, …; `cuda` where nothing tells.
    pub producer: &'static str,
    /// Set where the line itself shows that the printer relays the status.
    pub messenger: Option<Messenger>,
    /// The API call or operation that reported it (`cudaDeviceSynchronize()`).
    pub api: Option<String>,
    /// The source place that reported it. Where it was noticed, not where it happened.
    pub reported_from: Option<Place>,
    /// Device ordinal in the message (`current device: 7`).
    pub device: Option<u32>,
}

/// A status of a library above CUDA.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LibraryStatus {
    /// `cublas`, `cudnn`, `cufft`, `cusolver`, `cusparse`, `nvrtc`, `nvshmem`, `hip`, `cutlass`, `tensorrt`, …
    pub library: &'static str,
    /// Name as printed (`CUBLAS_STATUS_EXECUTION_FAILED`).
    pub name: String,
    /// Number, where printed.
    pub number: Option<u32>,
    /// The call that returned it.
    pub api: Option<String>,
}

/// `CUDA out of memory. Tried to allocate 4096.00 GiB …`; sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GpuOutOfMemory {
    /// Bytes asked for.
    pub requested_bytes: Option<u128>,
    /// Bytes free at that moment.
    pub free_bytes: Option<u128>,
    /// Capacity in bytes.
    pub total_bytes: Option<u128>,
    /// Device ordinal.
    pub device: Option<u32>,
    /// Who prints.
    pub producer: &'static str,
}

/// `IndexKernelUtils.cu:16: vectorized_gather_kernel: block: [273,0,0], thread: [0,0,0] Assertion … failed.`
/// A run of such lines of one kernel and expression is one event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceAssert {
    /// File, line and function of the assertion: where it happened.
    pub place: Place,
    /// First block printed.
    pub block: Option<Dim3>,
    /// First thread printed.
    pub thread: Option<Dim3>,
    /// The condition that failed, as printed.
    pub expression: String,
    /// Lines of this assertion.
    pub count: u64,
    /// True where Triton's sanitizer names an integer overflow (`int32 overflow detected for operation mul`).
    pub int32_overflow: bool,
}

/// One frame of a Python stack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PyFrame {
    /// File as printed.
    pub file: String,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Function.
    pub function: Option<String>,
    /// The source line, where printed.
    pub source: Option<String>,
    /// The part of the source line above the carets (`^^^^`), where carets were printed.
    pub marked: Option<String>,
    /// The span's line of this frame, counted from 1.
    pub log_line: u64,
}

/// A Python traceback: frames outermost first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traceback {
    /// Frames, outermost first.
    pub frames: Vec<PyFrame>,
    /// The exception that ends it; none where the paste was cut.
    pub exception: Option<Exception>,
    /// How it hangs on the block before it.
    pub chain: Option<Chain>,
    /// True where the block says that the exception was ignored (`Exception ignored in: …`).
    pub ignored: bool,
}

/// How a traceback hangs on the one printed before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    /// `The above exception was the direct cause of the following exception:`
    CausedByPrevious,
    /// `During handling of the above exception, another exception occurred:`
    DuringPrevious,
}

/// An exception line: `torch.AcceleratorError: CUDA error: …`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exception {
    /// Type as printed, dotted.
    pub kind: String,
    /// Message: the rest of the line and its continuation lines.
    pub message: String,
    /// The line of the exception itself, counted from 1.
    pub log_line: u64,
}

/// One native frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NativeFrame {
    /// Function as printed.
    pub function: Option<String>,
    /// Library or object.
    pub library: Option<String>,
    /// Program counter or offset as printed.
    pub address: Option<String>,
    /// File and line, where printed.
    pub place: Option<Place>,
}

/// A block of native frames, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NativeFrames {
    /// Frames, innermost first.
    pub frames: Vec<NativeFrame>,
    /// `Exception raised from query at …/CUDAEvent.h:111`, where it heads the block.
    pub raised_from: Option<Place>,
}

/// Who reports a fatal signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalReporter {
    /// Python's faulthandler.
    Faulthandler,
    /// absl's handler (Ray, JAX, TensorFlow).
    Absl,
    /// UCX.
    Ucx,
    /// gdb or lldb.
    Debugger,
    /// The shell.
    Shell,
    /// PyTorch's DataLoader.
    DataLoader,
    /// Another handler (tvm-ffi, Julia, Java, Go, MPI).
    Other,
}

/// A fatal signal of a host process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FatalSignal {
    /// Signal number: 11 SIGSEGV, 7 SIGBUS, 6 SIGABRT, 4 SIGILL, 8 SIGFPE, 9 SIGKILL, 15 SIGTERM.
    pub signal: u32,
    /// Who reports.
    pub reporter: Option<SignalReporter>,
    /// Address that was touched, where printed.
    pub address: Option<u64>,
    /// Process that got it, where the reporter is another one.
    pub pid: Option<u32>,
    /// Python frames of the crashing thread, **innermost first** as faulthandler prints them.
    pub python: Vec<PyFrame>,
    /// Native frames, innermost first.
    pub native: Vec<NativeFrame>,
}

/// Why a process aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortReason {
    /// glibc's heap check (`double free or corruption`, `free(): invalid pointer`, `malloc(): …`).
    Heap,
    /// `pure virtual method called`.
    PureVirtual,
    /// `terminate called after throwing` or `without an active exception`.
    Terminate,
    /// `*** stack smashing detected ***` or a stack overflow.
    Stack,
    /// A failed host assertion or check (`GGML_ASSERT`, `Check failed:`, `Assertion … failed.` of a host file).
    HostAssert,
    /// Python's `Fatal Python error: Aborted`, or `Abort trap: 6` alone.
    Bare,
}

/// An abort of a host process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The reason.
    pub reason: AbortReason,
    /// The exception type of `terminate called after throwing an instance of '…'`.
    pub exception: Option<String>,
    /// The `what():` text or the failed condition.
    pub what: Option<String>,
    /// Where a host assertion stands.
    pub place: Option<Place>,
}

/// What a sanitizer record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SanitizerFinding {
    /// Access outside every allocation.
    OutOfBounds,
    /// Misaligned access.
    Misaligned,
    /// Access to freed or not-yet-usable memory (stream-ordered, pools), where the tool says so.
    FreedMemory,
    /// Another invalid access or instruction (null, stack overflow, invalid PC, tcgen05).
    InvalidAccess,
    /// An API call returned an error: an echo, it locates nothing.
    ApiError,
    /// `malloc`/`free` error (double free, invalid pointer) on device or host API.
    AllocatorError,
    /// Leaked memory.
    Leak,
    /// racecheck: a hazard.
    Race,
    /// initcheck: read of uninitialised memory.
    UninitializedRead,
    /// initcheck: memory never used.
    UnusedMemory,
    /// synccheck: barrier error.
    Barrier,
    /// Stack overflow, illegal instruction and others that the tool reports by name.
    Other,
}

/// A record of compute-sanitizer or cuda-memcheck: text of all generations, or XML. Records that say the same of
/// neighbouring threads are folded into one event with a `count`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SanitizerRecord {
    /// What it found.
    pub finding: SanitizerFinding,
    /// The head line without its prefix.
    pub head: String,
    /// Memory space (`global`, `shared`, `local`).
    pub space: Option<String>,
    /// `read`, `write` or `atomic`.
    pub access: Option<String>,
    /// Size of the access in bytes.
    pub size_bytes: Option<u64>,
    /// Kernel, as printed, with its parameter list (`fill_rows(float *, int, int, int)`).
    pub kernel: Option<String>,
    /// Offset in the kernel (`+0xf0`).
    pub offset: Option<u64>,
    /// Source place: where it happened.
    pub place: Option<Place>,
    /// First thread.
    pub thread: Option<Dim3>,
    /// First block.
    pub block: Option<Dim3>,
    /// Last block and thread of a folded run.
    pub last: Option<(Dim3, Dim3)>,
    /// Address of the access.
    pub address: Option<u64>,
    /// The nearest allocation, where printed.
    pub nearest: Option<NearestAllocation>,
    /// API call of an API error and its CUDA code.
    pub api: Option<String>,
    /// CUDA status number of an API error.
    pub code: Option<u32>,
    /// Second access of a race, or the reason of a barrier error.
    pub detail: Option<String>,
    /// Second place of a race.
    pub other_place: Option<Place>,
    /// Host frames, innermost first.
    pub host: Vec<NativeFrame>,
    /// Python or device frames under the record.
    pub device_frames: Vec<NativeFrame>,
    /// Bytes leaked.
    pub leaked_bytes: Option<u64>,
    /// Records folded into this one, this one included.
    pub count: u64,
}

/// `and is 4,279,427,072 bytes before the nearest allocation at 0x7f75f8000000 of size 4,326,424,576 bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NearestAllocation {
    /// Distance in bytes, as printed.
    pub distance_bytes: u64,
    /// Which side.
    pub side: Side,
    /// First address of the allocation.
    pub base: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// Where an access lies relative to an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Below its first byte.
    Before,
    /// Past its last byte.
    After,
    /// Inside it.
    Inside,
}

/// `ERROR SUMMARY: 2 errors`, `RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SanitizerSummary {
    /// Tool, where the line names it (`racecheck`, `leak`).
    pub tool: Option<String>,
    /// Errors.
    pub errors: Option<u64>,
    /// Warnings.
    pub warnings: Option<u64>,
}

/// An Xid line of the NVIDIA kernel driver (formats.md 2.6, 3.10).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Xid {
    /// The number.
    pub xid: u32,
    /// PCI bus id as printed (`0000:00:06`).
    pub pci: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Process name.
    pub process: Option<String>,
    /// Text after the number, pid and name.
    pub detail: String,
    /// 31: fault address. None inside virtual machines that print an unusable one.
    pub address: Option<u64>,
    /// 31: `FAULT_PDE`, `FAULT_PTE`, …
    pub fault_type: Option<String>,
    /// 31: `read`, `write`, `atomic`.
    pub access: Option<String>,
    /// 31: engine (`GRAPHICS`, `CE0`).
    pub engine: Option<String>,
    /// 13: the SM's reason (`Misaligned Address`).
    pub sm_reason: Option<String>,
    /// 13: low byte of the ESR register.
    pub esr: Option<u8>,
    /// 13 and 31: unit (`GPC 1, TPC 7, SM 0`, `GPC5 GPCCLIENT_T1_6`).
    pub unit: Option<String>,
    /// `caused by previous Xid N`.
    pub caused_by: Option<u32>,
    /// Lines folded into this event.
    pub count: u64,
}

/// What a driver line without an Xid tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverFaultKind {
    /// `GPU has fallen off the bus`, device handle lost.
    GpuLost,
    /// GSP firmware time-out or heartbeat.
    Gsp,
    /// `RmInitAdapter failed`, initialisation failure.
    Init,
    /// Kernel module and user library differ (`API mismatch`, `Driver/library version mismatch`).
    VersionMismatch,
    /// ECC, row remap, retired pages.
    Ecc,
    /// PCIe AER.
    Pcie,
    /// NVLink, NVSwitch, fabric manager.
    Nvlink,
    /// No driver, no device (`Found no NVIDIA driver`, `no CUDA-capable device is detected`).
    NoDevice,
}

/// A driver or bus line without an Xid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverFault {
    /// What it tells.
    pub kind: DriverFaultKind,
    /// PCI bus id.
    pub pci: Option<String>,
    /// The text.
    pub detail: String,
}

/// `python3[2431]: segfault at 0 ip … sp … error 4 in libc.so.6[19bc5c,7f6bbaa28000+189000]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelSegfault {
    /// Thread name (`comm`): not always the process name.
    pub comm: String,
    /// Process (thread) id.
    pub pid: Option<u32>,
    /// Faulting address.
    pub address: Option<u64>,
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Page-fault error bits.
    pub error: Option<u32>,
    /// Object that holds the instruction.
    pub library: Option<String>,
    /// Offset of the instruction in the object.
    pub offset: Option<u64>,
    /// CPU that it was likely on.
    pub cpu: Option<u32>,
    /// True for `traps: … general protection`.
    pub general_protection: bool,
}

/// A process killed for host memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OomKill {
    /// Killed process.
    pub pid: Option<u32>,
    /// Its name.
    pub process: Option<String>,
    /// Resident anonymous memory in bytes.
    pub anon_rss_bytes: Option<u64>,
    /// True where a cgroup's limit did it.
    pub cgroup: bool,
}

/// An NCCL line: `host:pid:tid [6] include/alloc.h:124 NCCL WARN Cuda failure 700 '…'` (formats.md 2.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NcclLine {
    /// `WARN`, `ERROR`, `INFO` (return chain).
    pub level: String,
    /// Message without its head.
    pub message: String,
    /// Source place inside NCCL or the plug-in.
    pub place: Option<Place>,
    /// What it is about.
    pub topic: NcclTopic,
    /// Result code of a return chain (`-> 6`).
    pub result: Option<u32>,
    /// CUDA code of `Cuda failure N '…'`.
    pub cuda_code: Option<u32>,
    /// Peer address, local rank or host that it names.
    pub peer: Option<String>,
}

/// What an NCCL line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NcclTopic {
    /// Nothing below.
    #[default]
    Other,
    /// A CUDA call inside NCCL failed.
    Cuda,
    /// InfiniBand completion or verbs error.
    Ib,
    /// IB status 5: flushed, follows another failure.
    IbFlushed,
    /// Sockets, bootstrap, interface choice.
    Socket,
    /// Connection closed by the peer: the peer is gone.
    PeerClosed,
    /// OFI, EFA, libfabric.
    Ofi,
    /// Shared memory segment.
    Shm,
    /// NVLink SHARP / multicast.
    Nvls,
    /// Mismatch between ranks that NCCL saw itself.
    Mismatch,
    /// Two ranks on one GPU.
    DuplicateGpu,
    /// Memory registration, memlock.
    Registration,
    /// Out of GPU memory while setting up.
    OutOfMemory,
    /// Library versions differ.
    Version,
    /// The proxy or service thread echoes an error.
    Echo,
    /// A return-chain line.
    Chain,
}

/// An NCCL result reported by a caller: `ncclSystemError: System call (e.g. socket, malloc) … failed`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NcclResult {
    /// Name or fixed text (`ncclSystemError`, `unhandled cuda error`).
    pub name: String,
    /// 1 unhandled CUDA, 2 unhandled system, 3 internal, 4 invalid argument, 5 invalid usage, 6 remote error, 7 in progress.
    pub code: Option<u32>,
    /// `Last error:` sentence.
    pub last_error: Option<String>,
    /// What that sentence is about.
    pub topic: NcclTopic,
    /// NCCL version printed with it.
    pub version: Option<String>,
}

/// A collective, as a watchdog line, a dump or RAS names it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CollectiveName {
    /// Operation, upper case, as PyTorch names it (`ALLREDUCE`, `_ALLGATHER_BASE`).
    pub op: String,
    /// Sequence number inside its group.
    pub seq: Option<u64>,
    /// Process group, as printed.
    pub group: Option<String>,
    /// Elements in.
    pub numel_in: Option<u64>,
    /// Elements out.
    pub numel_out: Option<u64>,
}

/// `Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, …) ran for 15045 milliseconds`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectiveTimeout {
    /// The collective that was waited for.
    pub collective: CollectiveName,
    /// Time limit in milliseconds.
    pub limit_ms: Option<u64>,
    /// Time that it ran, in milliseconds.
    pub elapsed_ms: Option<u64>,
}

/// `last enqueued work: 7, last completed work: 6`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkStatus {
    /// Sequence number at which the watchdog noticed the failure.
    pub failed_at: Option<u64>,
    /// Last enqueued sequence number.
    pub last_enqueued: Option<i64>,
    /// Last started.
    pub last_started: Option<i64>,
    /// Last completed; -1 before the first.
    pub last_completed: Option<i64>,
    /// Rank that sent the dump signal (`due to a collective timeout from rank 0`).
    pub signalled_by: Option<u32>,
}

/// Ranks disagree about a collective.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectiveMismatch {
    /// What differs: `op`, `size`, `dtype`, `sequence`, `missing`, `buffer_size`.
    pub differs: String,
    /// The ranks' views, where named.
    pub views: Vec<(u32, CollectiveName)>,
    /// Ranks that did not join, where named.
    pub missing: Vec<u32>,
    /// Text.
    pub detail: String,
}

/// How a peer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerLostKind {
    /// The heartbeat monitor found the watchdog stuck.
    Heartbeat,
    /// The key-value store closed or timed out.
    Store,
    /// gloo, MPI, Ray or a coordination service lost a peer.
    Peer,
    /// A rendezvous did not complete.
    Rendezvous,
}

/// A peer, store or monitor gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerLost {
    /// How.
    pub kind: PeerLostKind,
    /// Peer or rank that it names.
    pub peer: Option<String>,
    /// Text.
    pub detail: String,
}

/// Who reports that a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReporter {
    /// torchrun's `failed (exitcode: …)` line.
    Elastic,
    /// torchrun's failure report, a non-root entry.
    ElasticReport,
    /// torchrun's `Root Cause (first observed failure)`.
    ElasticRootCause,
    /// DeepSpeed's launcher.
    DeepSpeed,
    /// MPI.
    Mpi,
    /// Slurm.
    Slurm,
    /// Ray.
    Ray,
    /// The shell, docker, kubectl or a recorded `exit status N`.
    Shell,
    /// Python's multiprocessing, `subprocess.CalledProcessError`, accelerate.
    Python,
}

/// A process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessExit {
    /// Who reports.
    pub reporter: ExitReporter,
    /// Global rank, where printed.
    pub rank: Option<u32>,
    /// Local rank, where printed.
    pub local_rank: Option<u32>,
    /// Process id, where printed.
    pub pid: Option<u32>,
    /// Host, where printed.
    pub host: Option<String>,
    /// Exit code as printed by the reporter, negative for a signal in Python's manner.
    pub code: Option<i64>,
    /// Signal, where the code or text tells one (139 in a shell is 11).
    pub signal: Option<u32>,
    /// Time of the report.
    pub time: Option<String>,
}

/// A launcher ends a process: `Sending process 590 closing signal SIGTERM`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cleanup {
    /// Process.
    pub pid: Option<u32>,
    /// Signal number.
    pub signal: Option<u32>,
    /// True where the launcher itself was told to stop (`Received 15 death signal`).
    pub told_to_stop: bool,
}

/// Advice under an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// `CUDA kernel errors might be asynchronously reported at some other API call`.
    MayBeAsynchronous,
    /// `For debugging consider passing CUDA_LAUNCH_BLOCKING=1`.
    LaunchBlocking,
    /// `Compile with TORCH_USE_CUDA_DSA`.
    DeviceAssertions,
    /// `Search for cudaErrorX in https://docs…`.
    Search,
}

/// A command line at the head of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// Words, as the shell would split them.
    pub words: Vec<String>,
    /// `NAME=VALUE` settings before the program.
    pub environment: Vec<(String, String)>,
}

/// A fact about the machine or the job: `("CUDA_LAUNCH_BLOCKING", "1")`, `("torch", "2.11.0")`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentFact {
    /// Name: an environment variable in upper case, else a lower-case key (`torch`, `driver`, `cuda`, `gpu`, `compute_capability`, `nccl`).
    pub name: String,
    /// Value as printed.
    pub value: String,
}

/// A value with its name: a token count near a failure, or what the engineer sets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamedValue {
    /// Name as printed or given.
    pub name: String,
    /// Value as printed or given.
    pub value: String,
}

impl NamedValue {
    /// The value as a size.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.value.trim().replace(['_', ','], "").parse().ok().filter(|size| *size > 0)
    }
}

/// What a model's `config.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelFacts {
    /// `model_type`.
    pub model_type: Option<String>,
    /// The sizes.
    pub config: ModelConfig,
    /// Element type as PyTorch names it.
    pub dtype: Option<String>,
}

/// A shape, size or count in the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShapeMention {
    /// Dimensions in elements, outermost first.
    pub dims: Vec<u64>,
    /// Names, where the log gives them; as long as `dims` or empty.
    pub names: Vec<String>,
    /// Strides in elements, where given.
    pub strides: Vec<i64>,
    /// Element type as printed (`torch.bfloat16` → `bfloat16`).
    pub dtype: Option<String>,
    /// What the log calls it (`hidden`, `feat`, `input`).
    pub label: Option<String>,
    /// How it was printed.
    pub form: ShapeForm,
}

/// How a shape was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShapeForm {
    /// `torch.Size([4, 128])`, `shape=(4, 128)`.
    #[default]
    Shape,
    /// `M=234624 N=9216` or other named single values: each dimension one name.
    Named,
    /// NumelIn/NumelOut, `elements=…`.
    Numel,
    /// A launch's grid or block.
    Launch,
    /// A tensor of a model at a number of tokens: computed, printed by nobody.
    Model,
}

/// The launch that a tool names as the faulting one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FaultingLaunch {
    /// Kernel.
    pub kernel: Option<String>,
    /// Exception text (`Warp Illegal Address`), and its number where printed.
    pub exception: Option<String>,
    /// CUDBG exception number.
    pub exception_number: Option<u32>,
    /// Grid.
    pub grid: Option<Dim3>,
    /// Block dimensions.
    pub block_dim: Option<Dim3>,
    /// Faulting block.
    pub block: Option<Dim3>,
    /// Faulting thread.
    pub thread: Option<Dim3>,
    /// Program counter.
    pub pc: Option<u64>,
    /// Source place: where it happened.
    pub place: Option<Place>,
    /// Arguments, name and value as text.
    pub arguments: Vec<(String, String)>,
    /// Path of the dump that was written, where a progress line names it.
    pub dump: Option<String>,
}

/// A launch mentioned by a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchMention {
    /// Kernel or operation.
    pub kernel: String,
    /// Grid.
    pub grid: Option<Dim3>,
    /// Block dimensions.
    pub block_dim: Option<Dim3>,
}

/// A CUDA graph in the stack or text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphMention {
    /// Capture is going on.
    Capture,
    /// A captured graph is replayed.
    Replay,
}

/// A compiler failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompileFailure {
    /// `nvcc`, `ptxas`, `triton`, `nvrtc`, `inductor`, `gcc`, `ninja`, `linker`.
    pub compiler: &'static str,
    /// Message.
    pub message: String,
    /// Where.
    pub place: Option<Place>,
}

/// A launch refused for resources: `out of resource: shared memory, Required: 2097152, Hardware limit: 232448`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchRefused {
    /// `shared memory`, `threads`, `registers`, `grid`, `tensor memory`.
    pub resource: String,
    /// Asked for.
    pub required: Option<u64>,
    /// Allowed.
    pub limit: Option<u64>,
}

/// What a rank's flight-recorder dump says in short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlightDumpSummary {
    /// Rank that wrote it.
    pub rank: Option<u32>,
    /// Entries in it.
    pub entries: u64,
    /// Process groups in it.
    pub groups: u64,
    /// Format version.
    pub version: Option<String>,
}

/// What a RAS answer says in short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RasSummary {
    /// NCCL version.
    pub nccl_version: Option<String>,
    /// Communicators.
    pub communicators: u64,
    /// Verdict words of the answer (`MISMATCH`, `INCOMPLETE`).
    pub verdicts: Vec<String>,
}

/// A compiled kernel in short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompiledKernel {
    /// Entry name.
    pub entry: String,
    /// Source files that its operations name.
    pub files: Vec<String>,
    /// `ttir` or `ptx`.
    pub form: &'static str,
}

/// A line that says that something failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnknownFailure {
    /// The text.
    pub message: String,
}

/// A site's own signature (playbooks) matched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignatureMatch {
    /// Signature id.
    pub id: String,
    /// Class that the signature names.
    pub class: String,
    /// Named captures.
    pub fields: Vec<(String, String)>,
}
