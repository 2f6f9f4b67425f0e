//! What host processes and their launchers say: Python and native stacks, signals, aborts, exits.
//!
//! In: nothing; plain types. Out: the types that readers fill. Each says what was printed, never why.

use super::Place;
use serde::Serialize;

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
    /// True where the block has its head, and nothing under it reads as its exception.
    pub cut: bool,
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

/// The main thread of a running process, as a profiler printed it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StackDump {
    /// Process.
    pub pid: Option<u32>,
    /// Whether it ran on a CPU.
    pub active: bool,
    /// Frames, innermost first.
    pub frames: Vec<PyFrame>,
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
    /// Why a scheduler or a signal ended the job; none where neither is named.
    pub stop: Option<Stop>,
}

/// Why a job was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The job reached its time limit.
    TimeLimit,
    /// Another job took its place.
    Preemption,
    /// A node of the job was lost.
    NodeFailure,
    /// Cancelled; by whom or why is not said.
    Cancelled,
    /// The launcher got a signal from outside; whose is not said.
    Signal,
}
