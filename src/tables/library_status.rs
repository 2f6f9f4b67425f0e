//! Status codes of the libraries above CUDA: cuBLAS, cuDNN, cuFFT, cuSOLVER, cuSPARSE, NVRTC, cuRAND, NVSHMEM.
//!
//! In: a name, or a library and a number. Out: the row. Sources: the libraries' public headers. It leaves alone whether
//! the status hides a fault of an earlier kernel, which the case decides.

use super::class::FailureClass;

/// One status of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryCode {
    /// Library (`cublas`, `cudnn`, …).
    pub library: &'static str,
    /// Name (`CUBLAS_STATUS_EXECUTION_FAILED`).
    pub name: &'static str,
    /// Number.
    pub number: u32,
    /// The class that the status means by itself, before anything is known about an earlier fault.
    pub class: FailureClass,
    /// True for statuses that a library also returns because an earlier kernel broke the context.
    pub may_mask: bool,
}

const fn row(
    library: &'static str,
    name: &'static str,
    number: u32,
    class: FailureClass,
    may_mask: bool,
) -> LibraryCode {
    LibraryCode { library, name, number, class, may_mask }
}

/// Name prefixes that mark a library's status, and the library.
pub const PREFIXES: &[(&str, &str)] = &[
    ("CUBLAS_STATUS_", "cublas"),
    ("CUDNN_STATUS_", "cudnn"),
    ("CUFFT_", "cufft"),
    ("CUSOLVER_STATUS_", "cusolver"),
    ("CUSPARSE_STATUS_", "cusparse"),
    ("CURAND_STATUS_", "curand"),
    ("NVRTC_ERROR_", "nvrtc"),
    ("NVJITLINK_ERROR_", "nvjitlink"),
    ("NVSHMEMX_ERROR_", "nvshmem"),
    ("CUTENSOR_STATUS_", "cutensor"),
    ("CUSTATEVEC_STATUS_", "custatevec"),
    ("NVJPEG_STATUS_", "nvjpeg"),
    ("HIPBLAS_STATUS_", "hipblas"),
    ("HIPSPARSE_STATUS_", "hipsparse"),
    ("HIPFFT_STATUS_", "hipfft"),
    ("rocblas_status_", "rocblas"),
    ("miopenStatus", "miopen"),
];

/// Every status that reports name.
pub static LIBRARY_CODES: &[LibraryCode] = &[
    row("cublas", "CUBLAS_STATUS_NOT_INITIALIZED", 1, FailureClass::Undecided, true),
    row("cublas", "CUBLAS_STATUS_ALLOC_FAILED", 3, FailureClass::GpuOom, true),
    row("cublas", "CUBLAS_STATUS_INVALID_VALUE", 7, FailureClass::ApiError, false),
    row("cublas", "CUBLAS_STATUS_ARCH_MISMATCH", 8, FailureClass::NoKernelImage, false),
    row("cublas", "CUBLAS_STATUS_MAPPING_ERROR", 11, FailureClass::Undecided, true),
    row("cublas", "CUBLAS_STATUS_EXECUTION_FAILED", 13, FailureClass::LaunchFailure, true),
    row("cublas", "CUBLAS_STATUS_INTERNAL_ERROR", 14, FailureClass::Undecided, true),
    row("cublas", "CUBLAS_STATUS_NOT_SUPPORTED", 15, FailureClass::ApiError, false),
    row("cublas", "CUBLAS_STATUS_LICENSE_ERROR", 16, FailureClass::ApiError, false),
    row("cudnn", "CUDNN_STATUS_NOT_INITIALIZED", 1, FailureClass::Undecided, true),
    row("cudnn", "CUDNN_STATUS_ALLOC_FAILED", 2, FailureClass::GpuOom, true),
    row("cudnn", "CUDNN_STATUS_BAD_PARAM", 3, FailureClass::ApiError, false),
    row("cudnn", "CUDNN_STATUS_INTERNAL_ERROR", 4, FailureClass::Undecided, true),
    row("cudnn", "CUDNN_STATUS_INVALID_VALUE", 5, FailureClass::ApiError, false),
    row("cudnn", "CUDNN_STATUS_ARCH_MISMATCH", 6, FailureClass::NoKernelImage, false),
    row("cudnn", "CUDNN_STATUS_MAPPING_ERROR", 7, FailureClass::Undecided, true),
    row("cudnn", "CUDNN_STATUS_EXECUTION_FAILED", 8, FailureClass::LaunchFailure, true),
    row("cudnn", "CUDNN_STATUS_NOT_SUPPORTED", 9, FailureClass::ApiError, false),
    row("cudnn", "CUDNN_STATUS_LICENSE_ERROR", 10, FailureClass::ApiError, false),
    row("cudnn", "CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING", 11, FailureClass::Driver, false),
    row("cudnn", "CUDNN_STATUS_RUNTIME_IN_PROGRESS", 12, FailureClass::Undecided, true),
    row("cudnn", "CUDNN_STATUS_RUNTIME_FP_OVERFLOW", 13, FailureClass::Undecided, false),
    row("cudnn", "CUDNN_STATUS_VERSION_MISMATCH", 14, FailureClass::Driver, false),
    row("cudnn", "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", 1003, FailureClass::Driver, false),
    row("cudnn", "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED", 1005, FailureClass::Driver, false),
    row("cudnn", "CUDNN_STATUS_BAD_PARAM_NULL_POINTER", 2002, FailureClass::ApiError, false),
    row("cudnn", "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER", 2003, FailureClass::ApiError, false),
    row("cudnn", "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED", 4001, FailureClass::CompileError, false),
    row("cudnn", "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", 4004, FailureClass::GpuOom, true),
    row("cudnn", "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER", 5001, FailureClass::LaunchFailure, true),
    row("cudnn", "CUDNN_STATUS_EXECUTION_FAILED_CUBLAS", 5002, FailureClass::LaunchFailure, true),
    row("cudnn", "CUDNN_STATUS_EXECUTION_FAILED_CUDART", 5003, FailureClass::LaunchFailure, true),
    row("cufft", "CUFFT_INVALID_PLAN", 1, FailureClass::ApiError, true),
    row("cufft", "CUFFT_ALLOC_FAILED", 2, FailureClass::GpuOom, true),
    row("cufft", "CUFFT_INVALID_VALUE", 4, FailureClass::ApiError, false),
    row("cufft", "CUFFT_INTERNAL_ERROR", 5, FailureClass::Undecided, true),
    row("cufft", "CUFFT_EXEC_FAILED", 6, FailureClass::LaunchFailure, true),
    row("cufft", "CUFFT_SETUP_FAILED", 7, FailureClass::Undecided, true),
    row("cufft", "CUFFT_INVALID_SIZE", 8, FailureClass::ApiError, false),
    row("cufft", "CUFFT_INVALID_DEVICE", 11, FailureClass::ApiError, false),
    row("cufft", "CUFFT_NOT_SUPPORTED", 16, FailureClass::ApiError, false),
    row("cusolver", "CUSOLVER_STATUS_NOT_INITIALIZED", 1, FailureClass::Undecided, true),
    row("cusolver", "CUSOLVER_STATUS_ALLOC_FAILED", 2, FailureClass::GpuOom, true),
    row("cusolver", "CUSOLVER_STATUS_INVALID_VALUE", 3, FailureClass::ApiError, false),
    row("cusolver", "CUSOLVER_STATUS_ARCH_MISMATCH", 4, FailureClass::NoKernelImage, false),
    row("cusolver", "CUSOLVER_STATUS_EXECUTION_FAILED", 6, FailureClass::LaunchFailure, true),
    row("cusolver", "CUSOLVER_STATUS_INTERNAL_ERROR", 7, FailureClass::Undecided, true),
    row("cusparse", "CUSPARSE_STATUS_NOT_INITIALIZED", 1, FailureClass::Undecided, true),
    row("cusparse", "CUSPARSE_STATUS_ALLOC_FAILED", 2, FailureClass::GpuOom, true),
    row("cusparse", "CUSPARSE_STATUS_INVALID_VALUE", 3, FailureClass::ApiError, false),
    row("cusparse", "CUSPARSE_STATUS_ARCH_MISMATCH", 4, FailureClass::NoKernelImage, false),
    row("cusparse", "CUSPARSE_STATUS_EXECUTION_FAILED", 6, FailureClass::LaunchFailure, true),
    row("cusparse", "CUSPARSE_STATUS_INTERNAL_ERROR", 7, FailureClass::Undecided, true),
    row("cusparse", "CUSPARSE_STATUS_NOT_SUPPORTED", 10, FailureClass::ApiError, false),
    row("cusparse", "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", 11, FailureClass::GpuOom, false),
    row("curand", "CURAND_STATUS_ALLOCATION_FAILED", 102, FailureClass::GpuOom, true),
    row("curand", "CURAND_STATUS_LAUNCH_FAILURE", 201, FailureClass::LaunchFailure, true),
    row("curand", "CURAND_STATUS_PREEXISTING_FAILURE", 202, FailureClass::LaunchFailure, true),
    row("curand", "CURAND_STATUS_INITIALIZATION_FAILED", 203, FailureClass::Undecided, true),
    row("curand", "CURAND_STATUS_ARCH_MISMATCH", 204, FailureClass::NoKernelImage, false),
    row("curand", "CURAND_STATUS_INTERNAL_ERROR", 999, FailureClass::Undecided, true),
    row("tensorrt", "OutOfMemory", 2, FailureClass::GpuOom, false),
    row("tensorrt", "API Usage", 3, FailureClass::ApiError, false),
    row("tensorrt", "API Usage Error", 4, FailureClass::ApiError, false),
    row("nvrtc", "NVRTC_ERROR_OUT_OF_MEMORY", 1, FailureClass::CompileError, false),
    row("nvrtc", "NVRTC_ERROR_INVALID_OPTION", 5, FailureClass::CompileError, false),
    row("nvrtc", "NVRTC_ERROR_COMPILATION", 6, FailureClass::CompileError, false),
    row("nvrtc", "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE", 7, FailureClass::CompileError, false),
    row("nvrtc", "NVRTC_ERROR_INTERNAL_ERROR", 11, FailureClass::CompileError, false),
];

/// The status of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static LibraryCode> {
    LIBRARY_CODES.iter().find(|code| code.name == name)
}

/// The status of that number of a library.
#[must_use]
pub fn by_number(library: &str, number: u32) -> Option<&'static LibraryCode> {
    LIBRARY_CODES.iter().find(|code| code.library == library && code.number == number)
}

/// The class that a status means by itself: [`FailureClass::Undecided`] where it may hide an earlier fault, or is unknown.
#[must_use]
pub fn class_of(library: &str, name: &str) -> FailureClass {
    let row = LIBRARY_CODES.iter().find(|code| code.library == library && code.name == name);
    row.filter(|code| !code.may_mask).map_or(FailureClass::Undecided, |code| code.class)
}

/// The library whose status a name is, known or not (`CUBLAS_STATUS_SOMETHING_NEW` → `cublas`).
#[must_use]
pub fn library_of(name: &str) -> Option<&'static str> {
    PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, library)| *library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_blas_messages_have_names() {
        assert_eq!(by_number("cublas", 13).unwrap().name, "CUBLAS_STATUS_EXECUTION_FAILED");
        assert_eq!(by_number("cublas", 14).unwrap().name, "CUBLAS_STATUS_INTERNAL_ERROR");
        assert_eq!(by_number("cublas", 2), None);
        assert_eq!(class_of("cublas", "CUBLAS_STATUS_NOT_SUPPORTED"), FailureClass::ApiError);
        assert_eq!(class_of("cublas", "CUBLAS_STATUS_EXECUTION_FAILED"), FailureClass::Undecided);
    }

    #[test]
    fn every_row_belongs_to_its_prefix() {
        for code in LIBRARY_CODES {
            if code.library != "tensorrt" {
                assert_eq!(library_of(code.name), Some(code.library), "{}", code.name);
            }
            assert_eq!(by_name(code.name), Some(code));
        }
        assert_eq!(library_of("CUBLAS_STATUS_SOMETHING_NEW"), Some("cublas"));
    }
}
