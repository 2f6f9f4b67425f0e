//! What bytes are, told by their content.
//!
//! In: decoded bytes, and the path where there is one. Out: one [`InputKind`]. It looks at the first kilobytes and decides by
//! a table; names decide nothing but what is a program's source. It leaves reading the content to its reader.

mod binary;
mod kernel_log;

use std::path::Path;

use super::decode;
use super::kind::InputKind;

/// Bytes from the first one that is not NUL that a rule sees.
const HEAD_BYTES: usize = 16 << 10;

/// Bytes before the end that a rule sees: a report ends with its mark.
const TAIL_BYTES: usize = 512;

/// What `bytes` are; `path` only tells source files from the logs that quote them.
#[must_use]
pub fn sniff(bytes: &[u8], path: Option<&Path>) -> InputKind {
    let start = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
    let rest = bytes.get(start..).unwrap_or_default();
    let blank = |rest: &[u8]| rest.iter().all(u8::is_ascii_whitespace);
    if rest.len() < HEAD_BYTES && blank(rest) {
        return InputKind::Empty;
    }
    if let Some(kind) = binary::kind(bytes, path) {
        return kind;
    }
    if decode::is_binary(bytes) {
        return InputKind::UnknownBinary;
    }
    let head = String::from_utf8_lossy(rest.get(..HEAD_BYTES).unwrap_or(rest));
    let tail = String::from_utf8_lossy(rest.get(rest.len().saturating_sub(TAIL_BYTES)..).unwrap_or(rest));
    let probe = Probe { head: head.trim_start(), tail: &tail, path };
    RULES.iter().find(|rule| (rule.holds)(&probe)).map_or(InputKind::Log, |rule| rule.kind)
}

/// What a rule sees of a text.
struct Probe<'a> {
    head: &'a str,
    tail: &'a str,
    path: Option<&'a Path>,
}

impl Probe<'_> {
    fn has(&self, needle: &str) -> bool {
        self.head.contains(needle)
    }

    fn is_json(&self) -> bool {
        self.head.starts_with(['{', '['])
    }

    /// How many of these keys an object of JSON holds.
    fn keys(&self, keys: &[&str]) -> usize {
        let is_key = |key: &&&str| {
            let quoted = format!("\"{key}\"");
            self.head.match_indices(&quoted).any(|(at, _)| {
                self.head.get(at + quoted.len()..).is_some_and(|rest| rest.trim_start().starts_with(':'))
            })
        };
        keys.iter().filter(is_key).count()
    }

    fn line_starts(&self, start: &str) -> bool {
        self.head.lines().any(|line| line.starts_with(start))
    }

    /// Whether one of the first lines starts so: a prompt, a banner or a warning may stand before it.
    fn soon(&self, start: &str) -> bool {
        self.head.lines().take(12).any(|line| line.trim_start().starts_with(start))
    }
}

struct Rule {
    kind: InputKind,
    holds: fn(&Probe<'_>) -> bool,
}

/// The first rule that holds decides. Forms that other forms may quote stand last.
const RULES: &[Rule] = &[
    Rule { kind: InputKind::ProbeReport, holds: is_probe_report },
    Rule { kind: InputKind::Report, holds: is_report },
    Rule {
        kind: InputKind::SanitizerXml,
        holds: |p| p.head.starts_with('<') && p.has("<ComputeSanitizerOutput"),
    },
    Rule { kind: InputKind::NvidiaSmi, holds: |p| p.head.starts_with('<') && p.has("<nvidia_smi_log") },
    Rule { kind: InputKind::Dcgm, holds: |p| p.keys(&["DCGM Diagnostic", "DCGM GPU Diagnostic"]) > 0 },
    Rule { kind: InputKind::NcclRas, holds: is_ras },
    Rule {
        kind: InputKind::Tritonparse,
        holds: |p| {
            p.is_json()
                && p.keys(&["event_type"]) > 0
                && p.keys(&["pid", "payload", "stack", "compilation_metadata", "occurrence_id"]) > 0
        },
    },
    Rule {
        kind: InputKind::FlightRecorder,
        holds: |p| {
            p.is_json()
                && p.keys(&[
                    "pg_config",
                    "pg_status",
                    "nccl_comm_state",
                    "collective_seq_id",
                    "profiling_name",
                ]) > 0
        },
    },
    Rule {
        kind: InputKind::TritonMetadata,
        holds: |p| {
            p.head.starts_with('{')
                && (p.keys(&["child_paths"]) == 1 || p.keys(&["hash", "target", "num_warps"]) == 3)
        },
    },
    Rule { kind: InputKind::ModelConfig, holds: |p| p.head.starts_with('{') && p.keys(MODEL_KEYS) >= 3 },
    Rule {
        kind: InputKind::Ttgir,
        holds: |p| {
            is_mlir(p)
                && (p.has("ttg.num-warps")
                    || p.has("triton_gpu.num-warps")
                    || p.has("#ttg.")
                    || p.has("#triton_gpu."))
        },
    },
    Rule { kind: InputKind::Ttir, holds: is_mlir },
    Rule {
        kind: InputKind::Llir,
        holds: |p| {
            (p.head.starts_with("; ModuleID") || p.head.starts_with("source_filename"))
                && p.line_starts("target ")
        },
    },
    Rule {
        kind: InputKind::Ptx,
        holds: |p| p.line_starts(".version ") && p.line_starts(".target ") && p.line_starts(".address_size"),
    },
    Rule { kind: InputKind::CudaGdb, holds: is_cuda_gdb },
    Rule { kind: InputKind::SourceCode, holds: is_source },
    Rule {
        kind: InputKind::CollectEnv,
        holds: |p| {
            p.soon("Collecting environment information...")
                || (p.soon("PyTorch version: ") && p.line_starts("Is debug build: "))
        },
    },
    Rule {
        kind: InputKind::NvidiaSmi,
        holds: |p| {
            p.soon("==============NVSMI LOG==============")
                || (p.soon("| NVIDIA-SMI ") && !p.has("Traceback"))
        },
    },
    Rule { kind: InputKind::KernelLog, holds: |p| kernel_log::is_kernel_log(p.head) },
    Rule { kind: InputKind::SanitizerText, holds: |p| p.line_starts("========= ") },
];

/// What the probe printed is evidence, unlike a saved report.
fn is_probe_report(probe: &Probe<'_>) -> bool {
    probe.head.starts_with('{') && probe.has("\"warpfault/probe/") && probe.keys(&["schema"]) == 1
}

/// A saved report by its beginning and its mark. A job's log whose last command was this tool has the mark, but begins as a
/// log, and stays evidence.
fn is_report(probe: &Probe<'_>) -> bool {
    if probe.is_json() {
        return probe.has("\"warpfault/") && probe.keys(&["schema"]) == 1;
    }
    if probe.head.starts_with('<') {
        return probe.has("<meta name=\"generator\" content=\"warpfault ");
    }
    let begins = probe.head.lines().take(12).any(|line| {
        let line = anstream::adapter::strip_str(line).to_string();
        let line = line.trim_end();
        let text =
            ["[proven]", "[supported]", "[suspected]", "[undecided]"].iter().any(|end| line.ends_with(end))
                && line
                    .split("  ")
                    .next()
                    .is_some_and(|class| class.chars().all(|c| c.is_ascii_uppercase() || c == ' '));
        text || line.starts_with("## ")
    });
    begins && (probe.tail.contains("\nreport by warpfault ") || probe.has("\nreport by warpfault "))
}

const MODEL_KEYS: &[&str] = &[
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "vocab_size",
    "model_type",
    "architectures",
    "max_position_embeddings",
    "n_embd",
    "n_head",
    "n_layer",
    "d_model",
    "num_layers",
    "num_heads",
    "head_dim",
    "torch_dtype",
    "transformers_version",
    "rope_theta",
    "text_config",
];

fn is_ras(probe: &Probe<'_>) -> bool {
    let json =
        probe.keys(&["communicators_count"]) == 1 && probe.keys(&["nccl_version", "communicators"]) > 0;
    let text = probe.soon("NCCL version ") && probe.line_starts("Job summary");
    json || text || probe.head.starts_with("SERVER PROTOCOL ")
}

fn is_mlir(probe: &Probe<'_>) -> bool {
    let begins =
        ["module {", "module attributes", "#loc", "#blocked", "#mma", "#shared", "// -----// IR Dump"];
    begins.iter().any(|begin| probe.head.starts_with(begin)) && (probe.has("tt.func") || probe.has("!tt.ptr"))
}

fn is_cuda_gdb(probe: &Probe<'_>) -> bool {
    let banner = probe.soon("NVIDIA (R) CUDA Debugger") || probe.soon("NVIDIA (R) cuda-gdb");
    let prompt = probe.soon("(cuda-gdb)") || probe.soon("$ cuda-gdb") || probe.soon("Opening GPU coredump:");
    let focus = probe.soon("[Current focus set to CUDA kernel") || probe.soon("CUDA Exception:");
    banner || prompt || focus
}

/// A source by its name, and not a log that somebody named like one.
fn is_source(probe: &Probe<'_>) -> bool {
    const NAMES: &[&str] =
        &["py", "pyx", "cu", "cuh", "cpp", "cc", "cxx", "c", "h", "hpp", "rs", "jl", "toml"];
    let named = probe
        .path
        .and_then(Path::extension)
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| NAMES.contains(&extension));
    named && !probe.line_starts("Traceback (most recent call last)")
}

#[cfg(test)]
mod tests;
