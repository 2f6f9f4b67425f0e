//! Who printed a CUDA status, by the words around it.
//!
//! In: a message. Out: the producer's name. It leaves the status alone.

/// Words of a message and the producer that prints them, most telling first.
const MARKS: &[(&str, &str)] = &[
    ("Triton Error [", "triton"),
    ("[TM][", "lmdeploy"),
    ("[FT][", "fastertransformer"),
    ("pycuda", "pycuda"),
    ("PyCUDA", "pycuda"),
    ("Warp CUDA error", "warp"),
    ("taichi", "taichi"),
    ("Dr.Jit", "drjit"),
    ("OpenCV", "opencv"),
    ("Gpu API call", "opencv"),
    ("Kokkos", "kokkos"),
    ("mshadow", "mxnet"),
    ("MXNet", "mxnet"),
    ("TVM", "tvm"),
    ("/dgl/", "dgl"),
    ("/k2/", "k2"),
    ("spconv", "spconv"),
    ("cu-device", "kaldi"),
    ("darknet", "darknet"),
    ("ollama", "ollama"),
    ("cuda driver library", "ollama"),
    ("NCCL WARN", "nccl"),
    ("Test CUDA failure", "nccl-tests"),
    ("Test NCCL failure", "nccl-tests"),
    ("ProcessGroupNCCL", "pytorch"),
    ("watchdog", "pytorch"),
    ("ggml", "llama.cpp"),
    ("GGML", "llama.cpp"),
    ("custom_all_reduce", "custom_all_reduce"),
    ("deep_ep", "deepep"),
    ("DeepEP", "deepep"),
    ("internode", "deepep"),
    ("intranode", "deepep"),
    ("nvshmem", "nvshmem"),
    ("cuda failed with", "nvshmem"),
    ("flash_fwd", "flash-attention"),
    ("flash_bwd", "flash-attention"),
    ("flash_attn", "flash-attention"),
    ("flashinfer", "flashinfer"),
    ("failed with error code", "flashinfer"),
    ("bitsandbytes", "bitsandbytes"),
    ("csrc/ops.cu", "bitsandbytes"),
    ("nunchaku", "nunchaku"),
    ("gemm_w4a4", "nunchaku"),
    ("TensorRT-LLM", "tensorrt-llm"),
    ("tensorrt_llm", "tensorrt-llm"),
    ("[TRT]", "tensorrt"),
    ("Error Code ", "tensorrt"),
    ("cudaResources.cpp", "tensorrt"),
    ("cupy", "cupy"),
    ("numba", "numba"),
    ("] Call to cu", "numba"),
    ("cuDNN Error", "cudnn"),
    ("CUDNN_STATUS", "cudnn"),
    ("CUBLAS_STATUS", "cublas"),
    ("transformer_engine", "transformer-engine"),
    ("TransformerEngine", "transformer-engine"),
    ("multi_tensor_apply", "transformer-engine"),
    ("onnxruntime", "onnxruntime"),
    ("; GPU=", "onnxruntime"),
    ("aiss", "faiss"),
    ("== cudaSuccess", "caffe"),
    ("vs 0. Error at", "caffe2"),
    ("(External) CUDA", "paddle"),
    ("paddle", "paddle"),
    ("xgboost", "xgboost"),
    ("rmm::", "rapids"),
    ("cudf", "rapids"),
    ("raft::", "rapids"),
    ("thrust", "thrust"),
    ("failed to synchronize", "thrust"),
    ("parallel_for failed", "thrust"),
    ("device free failed", "thrust"),
    ("after reduction step", "thrust"),
    ("CuError(", "cuda.jl"),
    (", ERROR_", "cuda.jl"),
    ("DriverError(", "cudarc"),
    ("CU: cu", "legion"),
    ("blender", "blender"),
    ("cycles", "blender"),
    ("rasterizer_impl", "gsplat"),
    ("gsplat", "gsplat"),
    ("physx", "physx"),
    ("PhysX", "physx"),
    ("nvfuser", "nvfuser"),
    ("_result == CUDA_SUCCESS", "nvfuser"),
    ("tiny-cuda-nn", "tiny-cuda-nn"),
    ("tinycudann", "tiny-cuda-nn"),
    (") failed with error ", "tiny-cuda-nn"),
    ("cutlass", "cutlass"),
    ("Error polling for event status", "tensorflow"),
    ("tensorflow", "tensorflow"),
    ("Could not synchronize CUDA stream", "xla"),
    ("in-memory CUBIN", "xla"),
    ("Failed to launch CUDA kernel", "xla"),
    ("failed to free device memory", "xla"),
    ("failed to unload module", "xla"),
    ("XlaRuntimeError", "xla"),
    ("JaxRuntimeError", "xla"),
    ("stream_executor", "xla"),
    ("xla", "xla"),
    ("[MCR]", "metax"),
    ("HIP error", "rocm"),
    ("hipError", "rocm"),
    ("code=", "helper_cuda"),
    ("torch.", "pytorch"),
    ("/c10/", "pytorch"),
    ("c10::", "pytorch"),
    ("AcceleratorError", "pytorch"),
    ("THCudaCheck", "pytorch"),
    ("cuda runtime error (", "pytorch"),
    ("CUDAGuardImpl", "pytorch"),
    ("CUDA warning: ", "pytorch"),
    ("RuntimeError: CUDA error: ", "pytorch"),
];

/// The printer of a message; none where no word tells.
#[must_use]
pub fn printer_of(text: &str) -> Option<&'static str> {
    MARKS.iter().find(|(mark, _)| text.contains(mark)).map(|(_, printer)| *printer)
}

/// Whether a printer's numbers are those from before CUDA 10.1.
#[must_use]
pub fn prints_old_numbers(text: &str) -> bool {
    ["THCudaCheck", "cuda runtime error (", "vs. 0)", "vs 0. Error at", "cutorch", "THC/"]
        .iter()
        .any(|mark| text.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_telling_word_wins() {
        assert_eq!(printer_of("RuntimeError: Triton Error [CUDA]: misaligned address"), Some("triton"));
        assert_eq!(printer_of("RuntimeError: CUDA error: misaligned address"), Some("pytorch"));
        assert_eq!(printer_of("Faiss assertion 'err__ == cudaSuccess' failed"), Some("faiss"));
        assert_eq!(printer_of("misaligned address"), None);
    }
}
