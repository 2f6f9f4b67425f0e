//! What GPU software says: statuses, assertions, launches, graphs, compilers.
//!
//! In: nothing; plain types. Out: the types that readers fill. Each says what was printed, never why.

use super::{Dim3, Place};
use serde::Serialize;

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
    /// True where the input ends inside the message, and `code` is the only status whose text begins so.
    pub cut: bool,
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
    /// Bytes that the allocator reserved and nothing uses.
    pub reserved_unallocated_bytes: Option<u128>,
    /// Other processes on the GPU with the bytes that they hold.
    pub others: Vec<(u32, u128)>,
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

/// A launch mentioned by a program or a trace: nothing says that it failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchMention {
    /// Kernel or operation.
    pub kernel: String,
    /// Grid.
    pub grid: Option<Dim3>,
    /// Block dimensions.
    pub block_dim: Option<Dim3>,
    /// Where the kernel's source stands.
    pub place: Option<Place>,
    /// The line of the program that launched it.
    pub launched_from: Option<Place>,
    /// Arguments, name and value as text.
    pub arguments: Vec<(String, String)>,
    /// Hash of the compilation that ran.
    pub compilation: Option<String>,
    /// Whether it is the last one of a trace.
    pub last_of_trace: bool,
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

/// A compiled kernel in short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompiledKernel {
    /// Entry name.
    pub entry: String,
    /// Source files that its operations name.
    pub files: Vec<String>,
    /// `ttir` or `ptx`.
    pub form: &'static str,
    /// Folder of its entry below the cache; empty for loose files.
    pub folder: String,
    /// Whether it is a debug build, which checks its own arithmetic.
    pub debug: bool,
    /// Threads of a block, where the entry says.
    pub threads: Option<u32>,
    /// Hash of the compilation, where a trace or the entry's JSON gives it.
    pub compilation: Option<String>,
}
