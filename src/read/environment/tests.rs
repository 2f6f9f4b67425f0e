//! Lines of settings and versions against their facts.

use super::super::event::Data;
use super::super::event::InputId;
use super::super::read_text;

fn facts(text: &str) -> Vec<(String, String)> {
    read_text(InputId(0), text.as_bytes())
        .events
        .into_iter()
        .filter_map(|event| {
            if let Data::Environment(fact) = event.data { Some((fact.name, fact.value)) } else { None }
        })
        .collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn switches_that_were_set() {
    assert_eq!(facts("$ CUDA_LAUNCH_BLOCKING=1 python3 train.py\n"), pairs(&[("CUDA_LAUNCH_BLOCKING", "1")]));
    assert_eq!(
        facts("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"),
        pairs(&[("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")])
    );
    assert_eq!(
        facts("vm:913:913 [1] NCCL INFO NCCL_NVLS_ENABLE set by environment to 0.\n"),
        pairs(&[("NCCL_NVLS_ENABLE", "0")])
    );
    assert_eq!(
        facts("os.environ[\"CUDA_VISIBLE_DEVICES\"] = \"0,1\"\n"),
        pairs(&[("CUDA_VISIBLE_DEVICES", "0,1")])
    );
    assert_eq!(
        facts("env: {'NCCL_DEBUG': 'INFO', 'HOME': '/root', 'TORCH_USE_CUDA_DSA': '1'}\n"),
        pairs(&[("NCCL_DEBUG", "INFO"), ("TORCH_USE_CUDA_DSA", "1")])
    );
    assert_eq!(facts("TRITON_DEBUG=1\n"), pairs(&[("TRITON_DEBUG", "1")]));
}

#[test]
fn advice_is_no_fact() {
    for text in [
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n",
        "[rank1]: For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n",
        "Please set NCCL_DEBUG=INFO and rerun\n",
        "You can try CUDA_LAUNCH_BLOCKING=1 python x\n",
        "# export CUDA_LAUNCH_BLOCKING=1\n",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)\n",
        "[W1129 19:42:18.656 Utils.hpp:137] Warning: Environment variable TORCH_NCCL_TRACE_BUFFER_SIZE is deprecated; use TORCH_FR_BUFFER_SIZE instead\n",
    ] {
        assert!(facts(text).is_empty(), "{text}");
    }
}

#[test]
fn versions_and_cards() {
    let text = "PyTorch version: 2.11.0+cu130\nCUDA used to build PyTorch: 13.0\nROCM used to build PyTorch: N/A\nGPU models and configuration: GPU 0: NVIDIA H200\nNvidia driver version: 580.159.04\n[pip3] nvidia-nccl-cu13==2.28.9\n[pip3] botorch==0.18.1\n";
    assert_eq!(
        facts(text),
        pairs(&[
            ("torch", "2.11.0+cu130"),
            ("torch_cuda", "13.0"),
            ("gpu", "NVIDIA H200"),
            ("driver", "580.159.04"),
            ("nccl", "2.28.9"),
        ])
    );
    assert_eq!(facts("NCCL version 2.28.9+cuda13.0\n"), pairs(&[("nccl", "2.28.9+cuda13.0")]));
    assert_eq!(
        facts("| NVIDIA-SMI 580.1   Driver Version: 580.159.04   CUDA Version: 13.0     |\n"),
        pairs(&[("driver", "580.159.04"), ("driver_cuda", "13.0")])
    );
    assert_eq!(
        facts("  Device 0: NVIDIA H100, compute capability 9.0, VMM: yes\n"),
        pairs(&[("gpu", "NVIDIA H100"), ("compute_capability", "9.0")])
    );
}

#[test]
fn engines_print_their_configuration() {
    let text = "(EngineCore pid=7) INFO 06-15 16:27:50 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='org/m', speculative_config=None, dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=4, enforce_eager=False, kv_cache_dtype=auto\n";
    assert_eq!(
        facts(text),
        pairs(&[
            ("vllm", "0.11.0"),
            ("model", "org/m"),
            ("dtype", "torch.bfloat16"),
            ("max_seq_len", "4096"),
            ("tensor_parallel_size", "4"),
            ("enforce_eager", "False"),
            ("kv_cache_dtype", "auto"),
        ])
    );
}

#[test]
fn server_arguments_are_facts() {
    let text = "[2025-09-01 10:00:00] server_args=ServerArgs(model_path='org/m', dtype='auto', context_length=32768, tp_size=8, chunked_prefill_size=8192, max_prefill_tokens=16384, attention_backend='fa3', max_total_tokens=None)\n";
    assert_eq!(
        facts(text),
        pairs(&[
            ("model", "org/m"),
            ("dtype", "auto"),
            ("tensor_parallel_size", "8"),
            ("attention_backend", "fa3"),
            ("max_seq_len", "32768"),
            ("chunked_prefill_size", "8192"),
            ("max_prefill_tokens", "16384"),
        ])
    );
}
