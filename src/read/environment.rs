//! Facts about versions, hardware and switches that stand in a log.
//!
//! In: `NAME=VALUE` settings, `collect_env` and `nvidia-smi` lines, NCCL's version, an engine's configuration line. Out:
//! [`Data::Environment`]. Advice that quotes a switch (`consider passing CUDA_LAUNCH_BLOCKING=1`) is no fact.

use super::event::{Data, EnvironmentFact};
use super::launcher::command;
use super::lines::{Cx, Line, Taken};
use super::scan::{after, before, between, clip, digits};

/// Strings of which one stands in every line that this reader wants.
pub const LITERALS: &[&str] = &[
    "CUDA_",
    "NCCL_",
    "TORCH_",
    "TRITON_",
    "VLLM_",
    "PYTHONFAULTHANDLER",
    "ersion",
    "GPU 0: ",
    "GPU 1: ",
    "[pip3] ",
    "[conda] ",
    "LLM engine",
    "ompute capability",
    "server_args=",
    "CUDA used to build",
];

/// Longest value that a fact keeps.
const VALUE_LIMIT_BYTES: usize = 300;
/// Names of switches that matter begin so.
const SWITCHES: [&str; 17] = [
    "CUDA_",
    "NCCL_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "TORCHDYNAMO_",
    "TRITON_",
    "PYTORCH_",
    "VLLM_",
    "SGLANG_",
    "GLOO_",
    "UCX_",
    "FI_",
    "NVSHMEM_",
    "PYTHONFAULTHANDLER",
    "CUBLAS_",
    "FLASHINFER_",
    "JAX_",
];
/// `key: value` lines of `collect_env`, `nvidia-smi` and engines, and the fact's name.
const KEYS: [(&str, &str); 19] = [
    ("PyTorch version", "torch"),
    ("CUDA used to build PyTorch", "torch_cuda"),
    ("ROCM used to build PyTorch", "torch_rocm"),
    ("CUDA runtime version", "cuda"),
    ("Nvidia driver version", "driver"),
    ("NVIDIA driver version", "driver"),
    ("Python version", "python"),
    ("GCC version", "gcc"),
    ("Caching allocator config", "allocator_config"),
    ("CUDA_MODULE_LOADING set to", "CUDA_MODULE_LOADING"),
    ("vLLM API server version", "vllm"),
    ("vLLM Version", "vllm"),
    ("vLLM version", "vllm"),
    ("transformers version", "transformers"),
    ("`transformers` version", "transformers"),
    ("Transformers version", "transformers"),
    ("Triton version", "triton"),
    ("DeepSpeed version", "deepspeed"),
    ("XLA version", "xla"),
];
/// Packages whose version bears on a crash.
const PACKAGES: [(&str, &str); 16] = [
    ("torch", "torch"),
    ("triton", "triton"),
    ("pytorch-triton", "triton"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("flash-attn", "flash_attn"),
    ("flash_attn", "flash_attn"),
    ("flashinfer-python", "flashinfer"),
    ("bitsandbytes", "bitsandbytes"),
    ("xformers", "xformers"),
    ("deepspeed", "deepspeed"),
    ("transformer-engine", "transformer_engine"),
    ("transformers", "transformers"),
    ("nvidia-nccl-cu12", "nccl"),
    ("nvidia-nccl-cu13", "nccl"),
    ("numpy", "numpy"),
];
/// Settings in an engine's configuration line, and the fact's name.
const ENGINE: [(&str, &str); 22] = [
    ("model=", "model"),
    ("model_path=", "model"),
    ("dtype=", "dtype"),
    ("max_seq_len=", "max_seq_len"),
    ("tensor_parallel_size=", "tensor_parallel_size"),
    ("tp_size=", "tensor_parallel_size"),
    ("pipeline_parallel_size=", "pipeline_parallel_size"),
    ("data_parallel_size=", "data_parallel_size"),
    ("quantization=", "quantization"),
    ("enforce_eager=", "enforce_eager"),
    ("attention_backend=", "attention_backend"),
    ("kv_cache_dtype=", "kv_cache_dtype"),
    ("max_model_len=", "max_seq_len"),
    ("context_length=", "max_seq_len"),
    ("max_num_batched_tokens=", "max_num_batched_tokens"),
    ("max_num_seqs=", "max_num_seqs"),
    ("chunked_prefill_size=", "chunked_prefill_size"),
    ("max_prefill_tokens=", "max_prefill_tokens"),
    ("max_total_tokens=", "max_total_tokens"),
    ("max_running_requests=", "max_num_seqs"),
    ("pp_size=", "pipeline_parallel_size"),
    ("dp_size=", "data_parallel_size"),
];

/// True for the name of a switch or of a fact about the machine (`CUDA_LAUNCH_BLOCKING`, `torch`), as [`EnvironmentFact`]
/// names them.
#[must_use]
pub fn is_fact(name: &str) -> bool {
    let named = KEYS.iter().chain(&PACKAGES).any(|(_, fact)| *fact == name);
    named
        || matches!(name, "gpu" | "compute_capability" | "nccl" | "driver_cuda")
        || SWITCHES.iter().any(|start| name.starts_with(start))
}

/// Reads the facts of a line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    let mut facts = settings(body);
    facts.extend(key_value(body));
    facts.extend(package(body));
    facts.extend(nccl(body));
    facts.extend(gpu(body));
    facts.extend(engine(body));
    if facts.is_empty() {
        return Taken::No;
    }
    for (name, value) in facts {
        let value = clip(value.trim(), VALUE_LIMIT_BYTES).to_owned();
        cx.push(line, Data::Environment(EnvironmentFact { name, value }));
    }
    Taken::Part
}

type Fact = (String, String);

fn fact(name: &str, value: &str) -> Option<Fact> {
    let value = value.trim().trim_matches(['\'', '"', '`']);
    let absent = value.is_empty() || matches!(value, "N/A" | "None" | "Could not collect");
    (!absent).then(|| (name.to_owned(), value.to_owned()))
}

fn is_switch(name: &str) -> bool {
    SWITCHES.iter().any(|head| name.starts_with(head))
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// `NAME=VALUE` before a command or as a whole line, `os.environ["NAME"] = "VALUE"`, `'NAME': 'VALUE'`, and NCCL's
/// `NAME set by environment to VALUE.`
fn settings(body: &str) -> Vec<Fact> {
    if let Some(command) = command::command(body) {
        return command.environment.into_iter().filter(|(name, _)| is_switch(name)).collect();
    }
    let text = body.trim();
    if let Some((head, value)) = text.split_once(" set by environment to ") {
        let name = head.rsplit(' ').next().unwrap_or("");
        return is_switch(name)
            .then(|| fact(name, value.trim_end_matches('.')))
            .flatten()
            .into_iter()
            .collect();
    }
    if text.starts_with('#') || text.starts_with("//") {
        return Vec::new();
    }
    whole_line(text).or_else(|| python(text)).into_iter().chain(dictionary(text)).collect()
}

fn whole_line(text: &str) -> Option<Fact> {
    let text = ["export ", "set ", "ENV ", "- ", "-e ", "* "]
        .iter()
        .find_map(|head| text.strip_prefix(head))
        .unwrap_or(text);
    let text = text.trim().trim_matches('`').trim_end_matches(['\\', ';', ' ']);
    let (name, value) = text.split_once('=')?;
    let quoted = value.starts_with(['"', '\'']);
    (is_switch(name) && (quoted || !value.trim().contains(' '))).then(|| fact(name, value)).flatten()
}

fn python(text: &str) -> Option<Fact> {
    let rest = after(text, "os.environ[").or_else(|| after(text, "os.environ.setdefault("))?;
    let rest = rest.trim_start_matches(['\'', '"']);
    let name = rest.split(['\'', '"']).next()?;
    let value = after(rest.get(name.len()..)?, "=").or_else(|| after(rest, ","))?;
    let value = value.trim().trim_end_matches(')').split(" #").next()?;
    is_switch(name).then(|| fact(name, value)).flatten()
}

/// Printed dictionaries: `{'NCCL_DEBUG': 'INFO', …}`.
fn dictionary(text: &str) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("': '").or_else(|| rest.find("\": \"")) {
        let (head, tail) = (rest.get(..at).unwrap_or(""), rest.get(at + 4..).unwrap_or(""));
        let name = head.rsplit(['\'', '"']).next().unwrap_or("");
        let value = tail.split(['\'', '"']).next().unwrap_or("");
        if is_switch(name) && facts.len() < 64 {
            facts.extend(fact(name, value));
        }
        rest = tail;
    }
    facts
}

fn key_value(body: &str) -> Vec<Fact> {
    let text = body.trim().trim_start_matches(['-', '*', ' ', '|']);
    if let Some(rest) = after(text, "Driver Version:") {
        let driver = rest.trim_start().split([' ', '\t']).next().unwrap_or("");
        let cuda = after(text, "CUDA Version:")
            .map(|rest| rest.trim_start().split([' ', '\t', '|']).next().unwrap_or(""));
        return fact("driver", driver)
            .into_iter()
            .chain(cuda.and_then(|cuda| fact("driver_cuda", cuda)))
            .collect();
    }
    if let Some(value) = table_value(text, "Driver Version") {
        return fact("driver", value).into_iter().collect();
    }
    KEYS.iter()
        .find_map(|(key, name)| table_value(text, key).and_then(|value| fact(name, value)))
        .into_iter()
        .collect()
}

/// The value of `key : value` where the line begins with the key.
fn table_value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(key)?.trim_start_matches(['*', '`']).trim_start();
    match rest.strip_prefix(':') {
        Some(value) => Some(value.trim_start_matches(['*', ' '])),
        None => digits(rest).map(|_| before(rest, " ")),
    }
}

/// `[pip3] torch==2.11.0`, `[conda] torch 2.1.0 pypi_0 pypi`.
fn package(body: &str) -> Option<Fact> {
    let text = body.trim();
    let rest = text.strip_prefix("[pip3] ").or_else(|| text.strip_prefix("[conda] "))?;
    let (name, version) = rest.split_once("==").or_else(|| rest.split_once([' ', '\t']))?;
    let (_, known) = PACKAGES.iter().find(|(package, _)| *package == name)?;
    fact(known, version.split_whitespace().next()?)
}

/// `NCCL version 2.28.9+cuda13.0`, also at the end of an error.
fn nccl(body: &str) -> Option<Fact> {
    let rest = after(body, "NCCL version ").or_else(|| after(body, "NCCL version: "))?;
    let word = rest.split([' ', ',', ')', '\'', '"']).next()?.trim_end_matches('.');
    digits(word).and_then(|_| fact("nccl", word))
}

/// `GPU 0: NVIDIA H200`, `Device 0: NVIDIA H100, compute capability 9.0`; PyTorch's
/// word on an unsupported card is the capability reader's.
fn gpu(body: &str) -> Vec<Fact> {
    let mut facts = Vec::new();
    let text = body.trim();
    let named = text.strip_prefix("GPU models and configuration: ").unwrap_or(text);
    if let Some(rest) = named.strip_prefix("GPU ").or_else(|| named.strip_prefix("Device "))
        && let Some((_, rest)) = digits(rest)
        && let Some(name) = rest.strip_prefix(": ")
    {
        let card = before(before(name, " (UUID"), ", compute");
        if card.len() <= 80
            && ["NVIDIA", "Tesla", "GeForce", "RTX", "Quadro", "AMD", "GH200", "GB200"]
                .iter()
                .any(|maker| card.contains(maker))
        {
            facts.extend(fact("gpu", card));
        }
    }
    if let Some(rest) = after(text, "ompute capability ").or_else(|| after(text, "ompute capability: ")) {
        let word = rest
            .trim_start_matches('(')
            .split([' ', ',', ')', ';'])
            .next()
            .unwrap_or("")
            .trim_end_matches('.');
        if digits(word).is_some() {
            facts.extend(fact("compute_capability", word));
        }
    }
    facts
}

/// `Initializing a V1 LLM engine (v0.11.0) with config: model='…', dtype=torch.bfloat16, …`, SGLang's `server_args=…`.
fn engine(body: &str) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(rest) = after(body, "LLM engine (") {
        facts.extend(fact("vllm", before(rest, ")").trim_start_matches("version ").trim_start_matches('v')));
    } else if !body.contains("server_args=") {
        return facts;
    }
    for (key, name) in ENGINE {
        let Some(at) = body.match_indices(key).map(|(at, _)| at).find(|&at| {
            at == 0 || body.as_bytes().get(at - 1).is_some_and(|byte| matches!(byte, b' ' | b',' | b'('))
        }) else {
            continue;
        };
        let value = body.get(at + key.len()..).unwrap_or("");
        let value = match value.strip_prefix('\'') {
            Some(quoted) => before(quoted, "'"),
            None => value.split([',', ')', ' ']).next().unwrap_or(""),
        };
        facts.extend(fact(name, value));
    }
    if let Some(version) = between(body, "vllm_version=", ",") {
        facts.extend(fact("vllm", version));
    }
    facts
}

#[cfg(test)]
mod tests;
