//! Calls at which an asynchronous GPU error is noticed: they wait for the GPU, or they ask it how it fares.
//!
//! In: a call as a log, a traceback or an API message names it. Out: the row of the table. It leaves alone where the
//! fault happened. Sources: CUDA's API synchronisation notes; PyTorch, JAX and CuPy documentation.

/// A call that notices earlier errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncPoint {
    /// Name, without arguments (`.item`, `torch.cuda.synchronize`, `cudaMemcpy`).
    pub name: &'static str,
    /// Why an earlier error surfaces there; continues the sentence "the call …".
    pub why: &'static str,
    /// Whether it waits for the GPU or asks it; else it only starts work, and returns the error of earlier work.
    pub waits: bool,
}

const COPIES: &str = "copies from the GPU to the host and waits for all earlier work on the stream";
const TRANSFERS: &str = "copies between host and GPU and waits for earlier work on the stream";
const SIZES: &str = "needs a size that only the GPU knows, so it waits for earlier work";
const TRUTH: &str = "needs one value of a tensor on the host, so it copies it there and waits";
const PRINTS: &str = "prints a tensor, so it copies its values to the host and waits";
const WAITS: &str = "waits for earlier work of the GPU";
const ASKS: &str = "asks for the state of earlier work and returns its error";
const ALLOCATES: &str = "allocates or frees memory, which returns the error of earlier work";
const LOADS: &str = "loads or unloads code, which returns the error of earlier work";
const CREATES: &str = "sets up a library or a handle, which returns the error of earlier work";
const STARTS: &str = "only starts a copy or a fill, and returns the error of earlier work";
const JOINS: &str = "waits for a collective, whose stream holds earlier work";

const fn p(name: &'static str, why: &'static str) -> SyncPoint {
    SyncPoint { name, why, waits: true }
}

/// A call that only starts work.
const fn starts(name: &'static str) -> SyncPoint {
    SyncPoint { name, why: STARTS, waits: false }
}

/// Python calls by their last component; `.to` counts only where its arguments name a device.
pub(super) static PYTHON: &[SyncPoint] = &[
    p("item", TRUTH),
    p("tolist", COPIES),
    p("cpu", COPIES),
    p("numpy", COPIES),
    p("to", TRANSFERS),
    p("cuda", TRANSFERS),
    p("copy_", TRANSFERS),
    p("asnumpy", COPIES),
    p("device_get", COPIES),
    p("block_until_ready", WAITS),
    p("effects_barrier", WAITS),
    p("copy_to_host", COPIES),
    p("asarray", COPIES),
    p("array", COPIES),
    p("nonzero", SIZES),
    p("argwhere", SIZES),
    p("masked_select", SIZES),
    p("unique", SIZES),
    p("unique_consecutive", SIZES),
    p("bincount", SIZES),
    p("repeat_interleave", SIZES),
    p("_local_scalar_dense", TRUTH),
    p("is_nonzero", TRUTH),
    p("equal", TRUTH),
    p("allclose", TRUTH),
    p("array_equal", TRUTH),
    p("__bool__", TRUTH),
    p("__len__", TRUTH),
    p("__int__", TRUTH),
    p("__float__", TRUTH),
    p("__index__", TRUTH),
    p("__format__", PRINTS),
    p("__repr__", PRINTS),
    p("__str__", PRINTS),
    p("__array__", COPIES),
    p("_tensor_str", PRINTS),
    p("_str_intern", PRINTS),
    p("_str", PRINTS),
    p("synchronize", WAITS),
    p("_cuda_synchronize", WAITS),
    p("wait_stream", WAITS),
    p("elapsed_time", ASKS),
    p("query", ASKS),
    p("empty_cache", ALLOCATES),
    p("_cuda_emptyCache", ALLOCATES),
    p("mem_get_info", ASKS),
    p("memory_stats", ASKS),
    p("pin_memory", ALLOCATES),
    p("barrier", JOINS),
    p("record_event", ASKS),
    p("load_binary", LOADS),
    p("_init_handles", LOADS),
    p("load_module", LOADS),
    p("deviceSynchronize", WAITS),
    p("get_current_blas_handle", CREATES),
    p("current_blas_handle", CREATES),
];

/// Operations on tensors, and calls that start a kernel: they only enqueue work and return at once. A launch of Triton's or
/// CuPy's own kernels is told by its form, not its name.
pub(super) static ENQUEUES: &[&str] = &[
    "abs",
    "add_",
    "addmm",
    "baddbmm",
    "bmm",
    "cat",
    "clamp",
    "clone",
    "contiguous",
    "conv1d",
    "conv2d",
    "conv3d",
    "cos",
    "cross_entropy",
    "cumsum",
    "div_",
    "dropout",
    "einsum",
    "embedding",
    "empty_like",
    "exp",
    "fill_",
    "gelu",
    "group_norm",
    "index_add_",
    "index_copy_",
    "index_select",
    "layer_norm",
    "linear",
    "log_softmax",
    "masked_fill",
    "masked_fill_",
    "matmul",
    "mean",
    "mm",
    "mul_",
    "neg",
    "ones_like",
    "pow",
    "relu",
    "rms_norm",
    "rsqrt",
    "scaled_dot_product_attention",
    "scatter_",
    "scatter_add_",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "sqrt",
    "stack",
    "sub_",
    "sum",
    "tanh",
    "topk",
    "where",
    "zero_",
    "zeros_like",
];

/// Built-in functions and statements that turn a tensor into a host value.
pub(super) static BUILTINS: &[SyncPoint] = &[
    p("bool", TRUTH),
    p("int", TRUTH),
    p("float", TRUTH),
    p("print", PRINTS),
    p("str", PRINTS),
    p("repr", PRINTS),
    p("format", PRINTS),
];

/// Calls that return before their work is done where their name says so (`cudaMemcpy2DAsync`, `cuMemcpyDtoHAsync_v2`). A copy
/// from or to pageable memory may wait all the same, which no log shows.
static ASYNC: &[SyncPoint] = &[
    starts("cudaMemcpy"),
    starts("cudaMemset"),
    starts("cuMemcpy"),
    starts("cuMemset"),
    starts("hipMemcpy"),
    starts("hipMemset"),
];

/// Calls of the CUDA runtime and driver, by prefix, longest first where one begins another.
static NATIVE: &[SyncPoint] = &[
    p("cudaDeviceSynchronize", WAITS),
    p("cudaStreamSynchronize", WAITS),
    p("cudaEventSynchronize", WAITS),
    p("cudaThreadSynchronize", WAITS),
    p("cudaStreamWaitEvent", ASKS),
    p("cudaStreamQuery", ASKS),
    p("cudaEventQuery", ASKS),
    p("cudaEventElapsedTime", ASKS),
    p("cudaEventRecord", ASKS),
    p("cudaEventDestroy", ASKS),
    p("cudaEventCreate", ASKS),
    p("cudaStreamCreate", ASKS),
    p("cudaStreamDestroy", ASKS),
    p("cudaStreamEndCapture", ASKS),
    p("cudaMemcpy", TRANSFERS),
    starts("cudaMemset"),
    p("cudaMallocAsync", ALLOCATES),
    p("cudaMallocHost", ALLOCATES),
    p("cudaMalloc", ALLOCATES),
    p("cudaFree", ALLOCATES),
    p("cudaHostAlloc", ALLOCATES),
    p("cudaHostRegister", ALLOCATES),
    p("cudaHostUnregister", ALLOCATES),
    p("cudaMemGetInfo", ASKS),
    p("cudaPeekAtLastError", ASKS),
    p("cudaGetLastError", ASKS),
    p("cudaSetDevice", ASKS),
    p("cudaGetDevice", ASKS),
    p("cudaDeviceReset", ALLOCATES),
    p("cudaGraphLaunch", ASKS),
    p("cudaGraphDestroy", ASKS),
    p("cudaGraphExecDestroy", ASKS),
    p("cudaIpc", ASKS),
    p("cudaFuncGetAttributes", LOADS),
    p("cudaFuncSetAttribute", LOADS),
    p("cudaModuleUnload", LOADS),
    p("cudaLibraryUnload", LOADS),
    p("cuCtxSynchronize", WAITS),
    p("cuStreamSynchronize", WAITS),
    p("cuEventSynchronize", WAITS),
    p("cuStreamQuery", ASKS),
    p("cuEventQuery", ASKS),
    p("cuEventRecord", ASKS),
    p("cuEventElapsedTime", ASKS),
    p("cuEventDestroy", ASKS),
    p("cuStreamDestroy", ASKS),
    p("cuStreamWaitEvent", ASKS),
    p("cuMemcpy", TRANSFERS),
    starts("cuMemset"),
    p("cuMemAlloc", ALLOCATES),
    p("cuMemFree", ALLOCATES),
    p("cuMemHostAlloc", ALLOCATES),
    p("cuMemGetInfo", ASKS),
    p("cuModuleLoad", LOADS),
    p("cuModuleUnload", LOADS),
    p("cuLibraryLoad", LOADS),
    p("cuLibraryUnload", LOADS),
    p("cuCtxDestroy", ALLOCATES),
    p("cuCtxGetDevice", ASKS),
    p("cuGraphLaunch", ASKS),
    p("hipDeviceSynchronize", WAITS),
    p("hipStreamSynchronize", WAITS),
    p("hipEventSynchronize", WAITS),
    p("hipEventQuery", ASKS),
    p("hipMemcpy", TRANSFERS),
    p("hipMalloc", ALLOCATES),
    p("hipFree", ALLOCATES),
    p("cublasCreate", CREATES),
    p("cudnnCreate", CREATES),
    p("cusolverDnCreate", CREATES),
    p("cusparseCreate", CREATES),
    p("cufftPlan", CREATES),
    p("ncclCommInitRank", CREATES),
];

/// The sync point that a call is, if it is one. The call may carry arguments, a dotted owner or a namespace:
/// `torch.cuda.synchronize`, `.item()`, `cudaMemcpyAsync(dst, src, …)`, `::cudaEventSynchronize(get())`.
///
/// `to` counts only where the arguments that stand behind it name a device; without arguments it counts.
#[must_use]
pub fn sync_point(call: &str) -> Option<&'static SyncPoint> {
    let call = call.trim().trim_start_matches(':');
    let head = call.get(..arguments_start(call)).unwrap_or(call).trim_end();
    let name = head.rsplit(['.', ':', ' ', '=']).next().unwrap_or(head);
    if name.contains("Async")
        && let Some(point) = ASYNC.iter().find(|point| name.starts_with(point.name))
    {
        return Some(point);
    }
    if let Some(point) = NATIVE.iter().find(|point| name.starts_with(point.name)) {
        return Some(point);
    }
    let arguments = call.get(head.len()..).unwrap_or("");
    python_point(name, head.len() > name.len(), arguments)
}

/// Where the arguments of the call that ends `call` begin; at its end where it has none.
fn arguments_start(call: &str) -> usize {
    if !call.ends_with(')') {
        // `a.b().c` has no arguments; `cudaMemcpy(dst, sr` lost the end of them.
        return match (call.rfind(')'), call.find('(')) {
            (None, Some(open)) => open,
            _ => call.len(),
        };
    }
    let mut depth = 0_u32;
    for (at, byte) in call.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth <= 1 => return at,
            b'(' => depth -= 1,
            _ => {}
        }
    }
    call.len()
}

/// The row of a Python call: `name`, whether an owner stands before it, and its arguments with their parenthesis (empty
/// where unknown).
pub(super) fn python_point(name: &str, has_owner: bool, arguments: &str) -> Option<&'static SyncPoint> {
    if !has_owner && let Some(point) = BUILTINS.iter().find(|point| point.name == name) {
        return Some(point);
    }
    let point = PYTHON.iter().find(|point| point.name == name)?;
    let moves = match name {
        "to" => arguments.is_empty() || names_a_device(arguments),
        "asarray" | "array" => has_owner && !arguments.trim_start_matches('(').trim_start().starts_with('['),
        _ => true,
    };
    moves.then_some(point)
}

/// Whether the arguments of `.to(…)` name a device rather than only a type.
fn names_a_device(arguments: &str) -> bool {
    ["cpu", "cuda", "device", "hip", "xla", "rank"].iter().any(|word| arguments.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_with_owner_arguments_and_namespace() {
        let name = |call| sync_point(call).map(|point| point.name);
        assert_eq!(name("torch.cuda.synchronize"), Some("synchronize"));
        assert_eq!(name("torch.cuda.current_stream().synchronize"), Some("synchronize"));
        assert_eq!(name(".item()"), Some("item"));
        assert_eq!(name("cudaMemcpyAsync(dst, src, n, kind, stream)"), Some("cudaMemcpy"));
        assert_eq!(name("::cudaEventSynchronize(get())"), Some("cudaEventSynchronize"));
        assert_eq!(name("cuMemcpyDtoHAsync_v2"), Some("cuMemcpy"));
        assert_eq!(name("cublasCreate(handle)"), Some("cublasCreate"));
        assert_eq!(name("forward"), None);
        assert_eq!(name("cublasGemmEx(handle)"), None);
    }

    #[test]
    fn an_asynchronous_copy_or_fill_does_not_wait() {
        let waits = |call| sync_point(call).map(|point| point.waits);
        for call in ["cudaMemcpyAsync", "cudaMemcpy2DAsync(a, b)", "cudaMemsetAsync", "cuMemcpyDtoHAsync_v2"]
        {
            assert_eq!(waits(call), Some(false), "{call}");
        }
        assert_eq!(waits("cudaMemcpy(dst, src, n, kind)"), Some(true));
        assert_eq!(waits("cuMemcpyDtoH_v2"), Some(true));
        assert_eq!(waits("cudaMallocAsync"), Some(true));
    }

    #[test]
    fn a_change_of_type_is_no_copy() {
        assert!(sync_point("x.to(torch.bfloat16)").is_none());
        assert!(sync_point("x.to(device=\"cpu\", dtype=torch.int64)").is_some());
        assert!(sync_point("x.to").is_some());
    }
}
