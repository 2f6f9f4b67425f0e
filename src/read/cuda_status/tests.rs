//! Tests of the CUDA status reader, on lines in the forms of formats.md 1.1 and 1.2.

use super::*;
use crate::read::event::{Event, InputId, Place};
use crate::read::lines::segments;

/// Offers every line of `log` to the reader.
fn events(log: &str) -> Vec<Event> {
    let bytes = log.as_bytes();
    let mut cx = Cx::new(InputId(0), bytes);
    let mut start = 0;
    for (index, text) in log.split('\n').enumerate() {
        for segment in segments(bytes, index as u64 + 1, start, start + text.len()) {
            if !LITERALS.iter().any(|literal| text.contains(literal)) {
                continue;
            }
            read(&segment.parse(InputId(0)), &mut cx);
        }
        start += text.len() + 1;
    }
    cx.into_events()
}

fn statuses(log: &str) -> Vec<Status> {
    events(log)
        .into_iter()
        .filter_map(|event| match event.data {
            Data::Status(status) => Some(status),
            _ => None,
        })
        .collect()
}

fn one(log: &str) -> Status {
    let mut found = statuses(log);
    assert_eq!(found.len(), 1, "{log}: {found:?}");
    found.remove(0)
}

#[test]
fn every_form_of_700_is_an_illegal_address() {
    let ima = "an illegal memory access was encountered";
    let table = [
        (format!("RuntimeError: CUDA error: {ima}"), "pytorch"),
        (format!("torch.AcceleratorError: CUDA error: {ima}"), "pytorch"),
        (format!("  what():  CUDA error: {ima}\nException raised from query at /p/c10/cuda/CUDAEvent.h:95 (most"), "pytorch"),
        (format!("THCudaCheck FAIL file=/p/THC/THCGeneral.cpp line=70 error=77 : {ima}"), "pytorch"),
        (format!("RuntimeError: cuda runtime error (77) : {ima} at /p/x.cu:70"), "pytorch"),
        (format!("RuntimeError: Triton Error [CUDA]: {ima}"), "triton"),
        (format!("include/alloc.h:124 NCCL WARN Cuda failure 700 '{ima}'"), "nccl"),
        (format!("Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:330 '{ima}'"), "custom_all_reduce"),
        (format!("RuntimeError: Failed: CUDA error /x/internode_ll.cu:341 '{ima}'"), "deepep"),
        ("[/nvshmem/barrier.cpp:21] cuda failed with an illegal memory access was encountered".to_owned(), "nvshmem"),
        (format!("CUDA error (/x/flash_fwd_launch_template.h:198): {ima}"), "flash-attention"),
        (format!("BatchPrefillWithPagedKVCache failed with error code {ima}"), "flashinfer"),
        (format!("Error {ima} at line 57 in file /src/csrc/ops.cu"), "bitsandbytes"),
        (format!("CUDA error: {ima} (at C:\\a\\gemm_w4a4_launch_impl.cuh:120)"), "nunchaku"),
        (format!("/g/ggml-cuda.cu:75: CUDA error\nCUDA error: {ima}\n  current device: 7, in function ggml_backend_cuda_synchronize at /g/ggml-cuda.cu:2461\n  cudaStreamSynchronize(cuda_ctx->stream())"), "llama.cpp"),
        (format!("CUDA error 700 at /o/ggml-cuda.cu:8111: {ima}"), "llama.cpp"),
        (format!("Could not synchronize CUDA stream: CUDA_ERROR_ILLEGAL_ADDRESS: {ima}"), "xla"),
        ("Error polling for event status: failed to query event: CUDA_ERROR_ILLEGAL_ADDRESS".to_owned(), "tensorflow"),
        (format!("cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorIllegalAddress: {ima}"), "cupy"),
        (format!("1: [cudaResources.cpp::~ScopedCudaEvent::24] Error Code 1: Cuda Runtime ({ima})"), "tensorrt"),
        (format!("[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaEventSynchronize(get()): {ima} (/t/cudaEvent.h:66)"), "tensorrt-llm"),
        ("cuDNN Error: execute(handle) failed with message: err 700 != CUDA_SUCCESS :: shimCuLaunchKernelEx(a), and code: CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER".to_owned(), "cudnn"),
        (format!("/t/multi_tensor_apply.cuh:92 in function multi_tensor_apply: CUDA Error: {ima}"), "transformer-engine"),
        (format!("CUDA failure 700: {ima} ; GPU=0 ; hostname=h ; file=/o/cuda.cc ; line=73 ; expr=cudaMemcpyAsync(a, b)"), "onnxruntime"),
        ("Faiss assertion 'err__ == cudaSuccess' failed in f(int) [with IndexT = int] at d.cu:90; details: CUDA error 77 x".to_owned(), "faiss"),
        ("F0101 syncedmem.cpp:56] Check failed: error == cudaSuccess (77 vs. 0)  x".to_owned(), "caffe"),
        ("OSError: (External) CUDA error(700), an illegal memory access was encountered.".to_owned(), "paddle"),
        (format!("  what():  for_each: failed to synchronize: cudaErrorIllegalAddress: {ima}"), "thrust"),
        (format!("ERROR: CUDA error: {ima} (code 700, ERROR_ILLEGAL_ADDRESS)"), "cuda.jl"),
        ("CUDA.CuError(code=CUDA.cudaError_enum(0x000002bc), meta=nothing)".to_owned(), "cuda.jl"),
        (format!("DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"{ima}\")"), "cudarc"),
        ("CUDA error at ./k.cu:596 code=700(cudaErrorIllegalAddress) \"cudaDeviceSynchronize()\"".to_owned(), "helper_cuda"),
        (format!("CU: cuEventSynchronize(e) = 700 (CUDA_ERROR_ILLEGAL_ADDRESS): {ima}"), "legion"),
        ("CUDA error: Illegal address in mem_alloc_result, line 815".to_owned(), "cuda"),
        (format!("[CUDA ERROR] in /s/rasterizer_impl.cu\nLine 298: {ima}"), "gsplat"),
        (format!("[omni.physx.tensors.plugin] CUDA error: {ima}: /b/GpuSoftBodyView.cpp: 489"), "physx"),
        (format!("_result == CUDA_SUCCESS INTERNAL ASSERT FAILED at \"e.cpp\":5. CUDA_ERROR_ILLEGAL_ADDRESS failed with error {ima}"), "nvfuser"),
        (format!("/t/gpu_memory.h:447 cudaMemcpy(a, b) failed with error {ima}"), "tiny-cuda-nn"),
        ("engine: CUDA_ERROR_UNKNOWN (code: 700)".to_owned(), "cuda"),
        (ima.to_owned(), "cuda"),
        ("some tool nobody listed: Illegal Memory access was encountered, giving up".replace("Illegal", "illegal").replace("Memory", "memory"), "cuda"),
        ("HIP error: an illegal memory access was encountered".to_owned(), "rocm"),
        ("numba.cuda.cudadrv.driver.CudaAPIError: [700] Call to cuMemcpyDtoH results in UNKNOWN_CUDA_ERROR".to_owned(), "numba"),
        (format!("GPUassert: {ima} main.cu 42"), "cuda"),
    ];
    for (log, producer) in table {
        let status = one(&log);
        assert_eq!((status.code, status.producer), (Some(700), producer), "{log}");
    }
}

#[test]
fn other_codes_are_told_apart() {
    let table = [
        ("RuntimeError: CUDA error: an illegal instruction was encountered", 715),
        ("CUDA_ERROR_ILLEGAL_INSTRUCTION", 715),
        ("Error invalid program counter at line 74 in file /src/csrc/ops.cu", 718),
        ("CUDA Error: an illegal instruction was encountered: Resource temporarily unavailable", 715),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", 209),
        (
            "RuntimeError: cuda runtime error (48) : no kernel image is available for execution on the device at /p/x.cu:3",
            209,
        ),
        ("THCudaCheck FAIL file=/p/x.cu line=3 error=8 : invalid device function", 98),
        ("RuntimeError: Triton Error [CUDA]: device kernel image is invalid", 200),
        ("the provided PTX was compiled with an unsupported toolchain.", 222),
        ("CUDA error 716 [/x/util_device.cuh, 351]: misaligned address", 716),
        ("CUDA Error: misaligned address (716) in x.cu: line 1918 at function f", 716),
        ("cuda.core._utils.cuda_utils.CUDAError: cudaErrorMisalignedAddress: misaligned address", 716),
        ("RuntimeError: cuda runtime error (59) : device-side assert triggered at /p/x.cu:3", 710),
        (
            "numba.cuda.cudadrv.driver.CudaAPIError: [719] Call to cuMemcpyDtoH results in CUDA_ERROR_LAUNCH_FAILED",
            719,
        ),
        ("OSError: (External) CUDA error(719), unspecified launch failure.", 719),
        ("cudaDeviceSynchronize returned error code 719 after launching addKernel!", 719),
        ("RuntimeError: cuda runtime error (4) : unspecified launch failure at /p/x.c:3", 719),
        ("CUDA error: operation not supported on global/shared address space", 717),
        ("torch.AcceleratorError: CUDA error: invalid configuration argument", 9),
        ("RuntimeError: CUDA error: too many resources requested for launch", 701),
        ("RuntimeError: CUDA error: operation not permitted when stream is capturing", 900),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", 214),
        (
            "CUDA error at crash.cu:78 code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&x, 1ull << 40)\" : out of memory",
            2,
        ),
        ("RuntimeError: CUDA error: out of memory", 2),
        ("RuntimeError: CUDA error: initialization error", 3),
        ("cuMemCreate failed with status: 2", 2),
        ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment", 999),
    ];
    for (log, code) in table {
        assert_eq!(one(log).code, Some(code), "{log}");
    }
}

#[test]
fn producers_of_all_fields_are_read() {
    let ima = "an illegal memory access was encountered";
    let table = [
        (format!("Error: llama runner process has terminated: CUDA error: {ima}"), 700),
        (format!("CUDA Error Prev: {ima}"), 700),
        (format!("OpenCV(4.5.1) /o/gpu_mat.cu:116: error: (-217:Gpu API call) {ima} in function 'upload'"), 700),
        (format!("stream_gpu-inl.h:182: Check failed: e == cudaSuccess: CUDA: {ima}"), 700),
        (format!("cuda_device_api.cc:117: Check failed: e == cudaSuccess || e == cudaErrorCudartUnloading: CUDA: {ima}"), 700),
        ("CUDAError: Check failed: ret == 0 (-1 vs. 0) : cuModuleUnload failed with error: CUDA_ERROR_ILLEGAL_ADDRESS".to_owned(), 700),
        (format!("[E cuda_driver.h:operator()@92] CUDA Error CUDA_ERROR_ILLEGAL_ADDRESS: {ima} while calling stream_synchronize (cuStreamSynchronize)"), 700),
        (format!("Warp CUDA error 700: {ima} (in function wp_memcpy_d2h, /w/warp.cu:1234)"), 700),
        (format!("pycuda._driver.LogicError: cuMemcpyDtoH failed: {ima}"), 700),
        (format!("Freeing of the device buffer failed. CUDA error #700 (cudaErrorIllegalAddress): {ima}."), 700),
        (format!("cudaStreamSynchronize(m_stream) error( cudaErrorIllegalAddress): {ima} /k/Kokkos_Cuda_Instance.cpp:153"), 700),
        (format!("FATAL ERROR: CUDA error cudaStreamSynchronize(stream) in file src/CudaUtils.C, function f, line 123 on Pe 0: {ima}"), 700),
        (format!("Exception: Error downloading array posq: {ima} (700)"), 700),
        (format!("cudaMemcpy GpuBuffer::Download failed {ima}"), 700),
        (format!("ERROR: CUDA Error: {ima} in /r/acc_ml_optimiser_impl.h at line 1234 (error-code 700)"), 700),
        ("CUDA error: ILLEGAL_ADDRESS in cuCtxSynchronize()".to_owned(), 700),
        (" ILLEGAL_ADDRESS in cuMemAlloc(&device_pointer, size)".to_owned(), 700),
        ("* Device #1: cuStreamSynchronize(): 700".to_owned(), 700),
        (format!("cu->cuMemcpyDtoHAsync(p, q, n, s) failed -> CUDA_ERROR_ILLEGAL_ADDRESS: {ima}"), 700),
        ("CUDA runtime API error cudaErrorIllegalAddress (700):".to_owned(), 700),
        (format!("RuntimeError: [TM][ERROR] CUDA runtime error: {ima} /l/allocator.h:231"), 700),
        (format!("ERROR (nnet3:Synchronize():cu-device.cc:123) cudaError_t 700 : \"{ima}\" returned from 'cudaStreamSynchronize(s)'"), 700),
        (format!("/d/init.cpp:454: cuda_check(): API error 0700 (CUDA_ERROR_ILLEGAL_ADDRESS): \"{ima}\""), 700),
        ("thread 'main' panicked: called `Result::unwrap()` on an `Err` value: CudaError(IllegalAddress)".to_owned(), 700),
        ("RuntimeError: cudart error: cudaError_t.cudaErrorIllegalAddress".to_owned(), 700),
        ("RuntimeError: cuda execution failed with error 700 at /s/spconv.cu:12 cudaSuccess".to_owned(), 700),
        ("CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW".to_owned(), 804),
        ("CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized".to_owned(), 802),
        ("pycuda._driver.LogicError: cuLaunchKernel failed: invalid argument".to_owned(), 1),
        ("unknown error initializing cuda driver library /u/libcuda.so: cuda driver library init failure: 999. see docs".to_owned(), 999),
        ("RuntimeError: Cannot call CUDAGeneratorImpl::current_seed during CUDA graph capture.".to_owned(), 900),
        ("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable".to_owned(), 46),
        ("RuntimeError: CUDA driver error (/d/jit.hpp:48): 1 (CUDA_ERROR_INVALID_VALUE)".to_owned(), 1),
        ("error: CUDA driver version is insufficient for CUDA runtime version".to_owned(), 35),
    ];
    for (log, code) in table {
        assert_eq!(one(&log).code, Some(code), "{log}");
    }
}

#[test]
fn places_calls_and_devices_come_along() {
    let status = one(
        "CUDA error at crash.cu:61 code=717(cudaErrorInvalidAddressSpace) \"cudaMemcpy(out, y, 16, cudaMemcpyDeviceToHost)\" : operation not supported on global/shared address space",
    );
    let expected = Status {
        code: Some(717),
        printed_number: Some(717),
        printed_name: Some("cudaErrorInvalidAddressSpace".to_owned()),
        producer: "helper_cuda",
        messenger: None,
        api: Some("cudaMemcpy(out, y, 16, cudaMemcpyDeviceToHost)".to_owned()),
        reported_from: Some(Place { file: "crash.cu".to_owned(), line: Some(61), function: None }),
        device: None,
        cut: false,
    };
    assert_eq!(status, expected);
    let status = one(
        "CUDA error: an illegal memory access was encountered\n  current device: 7, in function ggml_backend_cuda_synchronize at /g/ggml-cuda.cu:2461\n  cudaStreamSynchronize(cuda_ctx->stream())\n",
    );
    assert_eq!(status.device, Some(7));
    assert_eq!(status.api.as_deref(), Some("cudaStreamSynchronize(cuda_ctx->stream())"));
    let place = status.reported_from.unwrap();
    assert_eq!((place.line, place.function.as_deref()), (Some(2461), Some("ggml_backend_cuda_synchronize")));
    let status =
        one("[CUDA ERROR] in /s/rasterizer_impl.cu\nLine 298: an illegal memory access was encountered");
    let place = status.reported_from.unwrap();
    assert_eq!((place.file.as_str(), place.line), ("/s/rasterizer_impl.cu", Some(298)));
    let status = one(
        "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaEventSynchronize(get()): an illegal memory access was encountered (/t/cudaEvent.h:66)",
    );
    assert_eq!(status.api.as_deref(), Some("::cudaEventSynchronize(get())"));
}

#[test]
fn relays_are_marked() {
    let ima = "an illegal memory access was encountered";
    let table = [
        (
            format!(
                "[PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: CUDA error: {ima}"
            ),
            Some(Messenger::NcclWatchdog),
        ),
        (format!("Warning: CUDA warning: {ima} (function destroyEvent)"), Some(Messenger::Destructor)),
        (
            format!(
                "Exception ignored in: 'cupy.cuda.function.Module.__dealloc__'\nTraceback (most recent call last):\n  File \"cupy_backends/cuda/api/driver.pyx\", line 217, in x\ncupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_ILLEGAL_ADDRESS: {ima}"
            ),
            Some(Messenger::Destructor),
        ),
        (
            format!("failed to unload module 0x7f; leaking: CUDA_ERROR_ILLEGAL_ADDRESS: {ima}"),
            Some(Messenger::Destructor),
        ),
        (format!("Failed to cudaFree pointer 0x7f (error 700 {ima})"), Some(Messenger::Allocator)),
        (format!("RuntimeError: CUDA error: {ima}"), None),
    ];
    for (log, messenger) in table {
        assert_eq!(one(&log).messenger, messenger, "{log}");
    }
}

#[test]
fn lines_that_only_speak_of_a_status_are_left_alone() {
    for log in [
        "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.",
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        "  [Hint: 'cudaErrorIllegalAddress'. The device encountered a load or store instruction on an invalid memory address.]",
        "    if (err != cudaSuccess) { fprintf(stderr, \"CUDA error: %s\\n\", cudaGetErrorString(err)); }",
        "case cudaErrorIllegalAddress: return 700;",
        "WARNING: a too large chunk may cause an illegal memory access",
        "see cudaErrorIllegalAddress in the programming guide",
        "torch._C._cuda_getCurrentRawStream",
        "NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception: Misaligned Address",
        "CUDA Exception: Warp Illegal Address",
        "is_culib_present: True",
        "foo.c:3:5: runtime error: load of misaligned address 0x7ffe for type 'int'",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "Out of memory: Killed process 12 (python3)",
        "CUDA driver version 535.54 found, 8 GPUs",
        "code=0(cudaSuccess) \"cudaDeviceSynchronize()\"",
        "Error opening file: operation not permitted",
    ] {
        assert_eq!(statuses(log), [], "{log}");
    }
}

#[test]
fn a_launch_that_xla_names_is_an_event_of_its_own() {
    let log = "INTERNAL: Failed to launch CUDA kernel: loop_add with block dimensions: 1024x1x1 and grid dimensions: 65535x2x1: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered";
    let found = events(log);
    assert_eq!(found.len(), 2);
    let Data::LaunchMention(launch) = &found[1].data else { panic!("{:?}", found[1].data) };
    assert_eq!(
        (launch.kernel.as_str(), launch.grid, launch.block_dim),
        ("loop_add", Some([65535, 2, 1]), Some([1024, 1, 1]))
    );
}

#[test]
fn escaped_newlines_do_not_hide_the_status() {
    let log = "RuntimeError('CUDA error: an illegal memory access was encountered\\nCUDA kernel errors might be asynchronously reported at some other API call')";
    assert_eq!(one(log).code, Some(700));
}

#[test]
fn unknown_texts_after_cuda_error_keep_their_place_without_a_code() {
    let status = one("RuntimeError: CUDA error: something that no table lists");
    assert_eq!((status.code, status.producer), (None, "pytorch"));
}

#[test]
fn a_list_of_statuses_reports_none() {
    let table = "900\ncudaErrorStreamCaptureUnsupported\noperation not permitted when stream is capturing\nThe operation is not permitted when the stream is capturing.\n\n901\ncudaErrorStreamCaptureInvalidated\noperation failed due to a previous error during capture\n\n902\ncudaErrorStreamCaptureMerge\n";
    let list = "CUDA_ERROR_ILLEGAL_ADDRESS = 700\nCUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701\nCUDA_ERROR_LAUNCH_TIMEOUT = 702\n";
    for text in [table, list] {
        assert_eq!(statuses(text), [], "{text}");
    }
    assert_eq!(statuses("step 3\nCUDA_ERROR_ILLEGAL_ADDRESS\nCUDA_ERROR_ILLEGAL_ADDRESS\n").len(), 2);
}
