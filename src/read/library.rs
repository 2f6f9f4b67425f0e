//! Statuses of the libraries above CUDA: cuBLAS, cuDNN, cuFFT, cuSOLVER, cuSPARSE, cuRAND, NVRTC, NVSHMEM, CUTLASS, TensorRT.
//!
//! ```text
//! RuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate(handle)`
//! ```
//!
//! In: a line. Out: [`Data::Library`] with the name as printed, its number and the call. Such a status often hides the
//! fault of an earlier kernel; the case weighs that. It leaves CUDA statuses inside the same line to their reader.

use super::event::{Data, LibraryStatus};
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;
use crate::tables::{cuda_status, library_status};

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &[
    "_STATUS_",
    "CUFFT_",
    "NVRTC_ERROR",
    "NVSHMEMX_ERROR",
    "cublas runtime error",
    "kernel execution error. (m:",
    "Error Internal",
    "utlass error",
    "UTLASS error",
    "cuBLAS error",
    "cuBLAS Error",
    "cuBLAS API failed",
    "cuDNN error",
    "cudnnSuccess",
    "Error Code ",
    "non-zero status: ",
    "an engine to execute this computation",
    "a valid cuDNN algorithm",
    "valid execution plans",
    "launch failed : a.shape",
    "DEVICE_LOST",
    "DeviceLost",
    "PI_ERROR_OUT_OF",
    "operation gpu",
];

static NAME: Pattern = Pattern::new(
    r"\b(?:(?:CU|NV|HIP|ROC)[A-Z]+_STATUS_|CUFFT_|NVRTC_ERROR_|NVJITLINK_ERROR_|NVSHMEMX_ERROR_|rocblas_status_|miopenStatus)[A-Za-z_]+",
);
static CALL: Pattern = Pattern::new(
    r"when calling [`'\x22](.*?)[`'\x22](?:\s|$|\\)|\b((?:cublas|cudnn|cufft|cusolver|cusparse|curand|nvrtc|hipblas|rocblas|miopen|nvshmem)[A-Z]\w*(?:\([^()]*\))?)",
);
static SUCCESS_TEST: Pattern =
    Pattern::new(r"(CUBLAS|CUDNN|CUFFT|CUSOLVER|CUSPARSE|CURAND)\w*SUCCESS \((\d+) vs\.? 0\)");
static BLAS_KERNEL: Pattern = Pattern::new(r"kernel execution error\. \(m: .*\berror: (\d+)\)");
static BLAS_NUMBER: Pattern = Pattern::new(r"(?i)cublas (?:error|API failed with status)\W*(\d{1,2})\b");
static OLD_BLAS: Pattern = Pattern::new(
    r"cublas runtime error\s*: (library not initialized|resource allocation failed|an invalid numeric value was used as an argument|an absent device architectural feature is required|an access to GPU memory space failed|the GPU program failed to execute|an internal operation failed|unknown error)",
);
static CUTLASS: Pattern =
    Pattern::new(r"(?i)cutlass.*?error:? *(Error \w+|\w+)|(?:RuntimeError: |^)(Error Internal)\b");
static TENSORRT: Pattern = Pattern::new(r"Error Code (\d{1,2}): (\w+(?: \w+)?)");
static NVSHMEM: Pattern = Pattern::new(r"nvshmem.*non-zero status: (\d+)|non-zero status: (\d+).*nvshmem");
static JAX: Pattern =
    Pattern::new(r"operation (gpu\w+\(.*?\)) failed: (?i)(cusolver|cublas|cusparse|cufft|cudnn) (.*)$");
static NUMBER_AFTER: Pattern = Pattern::new(r"^\W{0,3}\(?(\d{1,4})\b");
static SPEAKS_OF: Pattern =
    Pattern::new(r"(?i)^\s*(?://|#define|case |if ?\(|return )|\b(?:may|might|could) (?:be|return|fail)");

/// Sentences that say that a library gave up, and the library.
const PHRASES: &[(&str, &str)] = &[
    ("unable to find an engine to execute this computation", "cudnn"),
    ("Unable to find a valid cuDNN algorithm", "cudnn"),
    ("No valid execution plans", "cudnn"),
    ("Blas GEMM launch failed", "cublas"),
    ("Blas SGEMM launch failed", "cublas"),
    ("Blas xGEMM launch failed", "cublas"),
    ("Blas xGEMMBatched launch failed", "cublas"),
    ("VK_ERROR_DEVICE_LOST", "vulkan"),
    ("ErrorDeviceLost", "vulkan"),
    ("RESULT_ERROR_DEVICE_LOST", "level_zero"),
    ("PI_ERROR_OUT_OF_RESOURCES", "level_zero"),
];

/// Names of old PyTorch's texts for cuBLAS.
const OLD_BLAS_NAMES: &[(&str, &str)] = &[
    ("library not initialized", "CUBLAS_STATUS_NOT_INITIALIZED"),
    ("resource allocation failed", "CUBLAS_STATUS_ALLOC_FAILED"),
    ("an invalid numeric value was used as an argument", "CUBLAS_STATUS_INVALID_VALUE"),
    ("an absent device architectural feature is required", "CUBLAS_STATUS_ARCH_MISMATCH"),
    ("an access to GPU memory space failed", "CUBLAS_STATUS_MAPPING_ERROR"),
    ("the GPU program failed to execute", "CUBLAS_STATUS_EXECUTION_FAILED"),
    ("an internal operation failed", "CUBLAS_STATUS_INTERNAL_ERROR"),
    ("unknown error", "CUBLAS_STATUS_INTERNAL_ERROR"),
];

/// Reads the status of a library.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    let Some(status) = parse(body) else { return Taken::No };
    cx.push(line, Data::Library(status));
    Taken::Part
}

fn parse(body: &str) -> Option<LibraryStatus> {
    if SPEAKS_OF.is_match(body) || body.contains("Program hit ") {
        return None;
    }
    named(body).or_else(|| numbered(body)).or_else(|| other_libraries(body))
}

/// A status by its name, any name that isn't success.
fn named(body: &str) -> Option<LibraryStatus> {
    let mut from = 0;
    while let Some(found) = body.get(from..).and_then(|rest| NAME.find(rest)) {
        let name = found.as_str();
        let end = from + found.end();
        if !name.ends_with("SUCCESS") && !name.ends_with("success") {
            let known = library_status::by_name(name);
            let printed = body.get(end..).and_then(|rest| NUMBER_AFTER.number(rest));
            return Some(LibraryStatus {
                library: library_status::library_of(name)?,
                name: name.to_owned(),
                number: printed.or(known.map(|code| code.number)),
                api: call_in(body),
            });
        }
        from = end;
    }
    None
}

/// A status by its number: Caffe's `CUBLAS_STATUS_SUCCESS (13 vs. 0)`, BLAS's `error: 13`.
fn numbered(body: &str) -> Option<LibraryStatus> {
    let (library, number) = if let Some(found) = SUCCESS_TEST.captures(body) {
        let library = match found.get(1)?.as_str() {
            "CUBLAS" => "cublas",
            "CUDNN" => "cudnn",
            "CUFFT" => "cufft",
            "CUSOLVER" => "cusolver",
            "CUSPARSE" => "cusparse",
            _ => "curand",
        };
        (library, found.get(2)?.as_str().parse().ok()?)
    } else {
        ("cublas", BLAS_KERNEL.number(body).or_else(|| BLAS_NUMBER.number(body))?)
    };
    if number == 0 {
        return None;
    }
    let name = library_status::by_number(library, number)
        .map_or_else(|| format!("{} status {number}", library.to_uppercase()), |code| code.name.to_owned());
    Some(LibraryStatus { library, name, number: Some(number), api: call_in(body) })
}

/// Libraries that print words of their own.
fn other_libraries(body: &str) -> Option<LibraryStatus> {
    if let Some(text) = OLD_BLAS.group(body, 1) {
        let name = OLD_BLAS_NAMES.iter().find(|(known, _)| *known == text)?.1;
        let number = library_status::by_name(name).map(|code| code.number);
        return Some(LibraryStatus { library: "cublas", name: name.to_owned(), number, api: call_in(body) });
    }
    if let Some(found) = TENSORRT.captures(body).filter(|_| cuda_status::text_in(body).is_none()) {
        let number = found.get(1)?.as_str().parse().ok();
        let name = found.get(2)?.as_str().to_owned();
        return Some(LibraryStatus { library: "tensorrt", name, number, api: None });
    }
    if let Some(found) = CUTLASS.captures(body) {
        let name = found.get(1).or_else(|| found.get(2))?.as_str().to_owned();
        return Some(LibraryStatus { library: "cutlass", name, number: None, api: None });
    }
    if let Some((phrase, library)) = PHRASES.iter().find(|(phrase, _)| body.contains(phrase)) {
        return Some(LibraryStatus { library, name: (*phrase).to_owned(), number: None, api: call_in(body) });
    }
    if let Some(found) = JAX.captures(body) {
        let part = |index| found.get(index).map_or("", |part| part.as_str());
        let library = match part(2).to_ascii_lowercase().as_str() {
            "cusolver" => "cusolver",
            "cublas" => "cublas",
            "cusparse" => "cusparse",
            "cufft" => "cufft",
            _ => "cudnn",
        };
        let (name, api) = (part(3).trim().to_owned(), Some(part(1).to_owned()));
        return Some(LibraryStatus { library, name, number: None, api });
    }
    let found = NVSHMEM.captures(body)?;
    let number = found.get(1).or_else(|| found.get(2))?.as_str().parse().ok();
    Some(LibraryStatus { library: "nvshmem", name: "non-zero status".to_owned(), number, api: None })
}

fn call_in(body: &str) -> Option<String> {
    let found = CALL.captures(body)?;
    let call = found.get(1).or_else(|| found.get(2))?.as_str();
    (!call.ends_with("Success")).then(|| call.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(library: &'static str, name: &str, number: Option<u32>, api: Option<&str>) -> LibraryStatus {
        LibraryStatus { library, name: name.to_owned(), number, api: api.map(str::to_owned) }
    }

    #[test]
    fn names_come_with_number_and_call() {
        let table = [
            (
                "RuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate(handle)`",
                status("cublas", "CUBLAS_STATUS_INTERNAL_ERROR", Some(14), Some("cublasCreate(handle)")),
            ),
            (
                "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa, (m), n)`",
                status(
                    "cublas",
                    "CUBLAS_STATUS_EXECUTION_FAILED",
                    Some(13),
                    Some("cublasGemmEx( handle, opa, (m), n)"),
                ),
            ),
            (
                "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
                status("cudnn", "CUDNN_STATUS_NOT_INITIALIZED", Some(1), None),
            ),
            (
                "cuDNN Error: execute(handle) failed with message: err 700 != CUDA_SUCCESS, and code: CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER",
                status("cudnn", "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER", Some(5001), None),
            ),
            (
                "E0000 cuda_blas.cc:191] failed to run cuBLAS routine: CUBLAS_STATUS_EXECUTION_FAILED",
                status("cublas", "CUBLAS_STATUS_EXECUTION_FAILED", Some(13), None),
            ),
            (
                "F0101 cudnn.hpp:122] Check failed: status == CUDNN_STATUS_SUCCESS (4 vs. 0)  CUDNN_STATUS_INTERNAL_ERROR",
                status("cudnn", "CUDNN_STATUS_INTERNAL_ERROR", Some(4), None),
            ),
            (
                "RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR",
                status("cufft", "CUFFT_INTERNAL_ERROR", Some(5), None),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn numbers_and_old_texts_have_names() {
        let execution_failed = status("cublas", "CUBLAS_STATUS_EXECUTION_FAILED", Some(13), None);
        for text in [
            "!!!! kernel execution error. (m: 1280, n: 3075, k: 5120, error: 13) ",
            "Check failed: status == CUBLAS_STATUS_SUCCESS (13 vs. 0)",
            "RuntimeError: cublas runtime error : the GPU program failed to execute at /p/THCBlas.cu:259",
            "cuBLAS error 13 at gemm.cu:4",
        ] {
            assert_eq!(parse(text), Some(execution_failed.clone()), "{text}");
        }
    }

    #[test]
    fn libraries_with_words_of_their_own_are_read() {
        let table = [
            ("RuntimeError: Error Internal", status("cutlass", "Error Internal", None, None)),
            ("Got cutlass error: Error Internal at: 431", status("cutlass", "Error Internal", None, None)),
            (
                "InternalError: Blas GEMM launch failed : a.shape=(1,2), b.shape=(2,3)",
                status("cublas", "Blas GEMM launch failed", None, None),
            ),
            (
                "jaxlib/gpu/solver_kernels.cc:45: operation gpusolverDnCreate(&handle) failed: cuSolver internal error",
                status("cusolver", "internal error", None, Some("gpusolverDnCreate(&handle)")),
            ),
            (
                "[TRT] [E] IExecutionContext::enqueueV3: Error Code 1: Myelin ([cask_fusion.cpp:exec:417] Platform (Cuda) error)",
                status("tensorrt", "Myelin", Some(1), None),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn success_and_source_code_are_no_statuses() {
        for text in [
            "CUBLAS_STATUS_SUCCESS",
            "case CUBLAS_STATUS_NOT_INITIALIZED:",
            "if (status != CUBLAS_STATUS_SUCCESS) {",
            "#define CUFFT_FORWARD -1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
