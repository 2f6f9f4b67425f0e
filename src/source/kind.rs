//! What an input can be.
//!
//! In: nothing. Out: [`InputKind`], the closed list that reports publish. It leaves telling them apart to `sniff`.

use serde::Serialize;

/// What an input is, told by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// What programs printed: one process, many ranks, or a paste.
    Log,
    /// `dmesg`, `journalctl -k` or `/dev/kmsg`.
    KernelLog,
    /// A compute-sanitizer or cuda-memcheck report as text.
    SanitizerText,
    /// A compute-sanitizer report as XML.
    SanitizerXml,
    /// A cuda-gdb transcript.
    CudaGdb,
    /// A CUDA core dump.
    CoreDump,
    /// A PyTorch flight-recorder dump, pickle or JSON.
    FlightRecorder,
    /// An answer of NCCL's RAS subsystem, text or JSON.
    NcclRas,
    /// A Triton cache: a folder of entries.
    TritonCache,
    /// Triton IR.
    Ttir,
    /// Triton GPU IR.
    Ttgir,
    /// LLVM IR.
    Llir,
    /// PTX.
    Ptx,
    /// A cubin.
    Cubin,
    /// A Triton cache entry's JSON.
    TritonMetadata,
    /// A tritonparse trace.
    Tritonparse,
    /// `python -m torch.utils.collect_env`.
    CollectEnv,
    /// `nvidia-smi`, `nvidia-smi -q`, with or without `-x`.
    NvidiaSmi,
    /// `dcgmi diag -j`.
    Dcgm,
    /// A model's `config.json`.
    ModelConfig,
    /// What `warpfault probe --format json` printed.
    ProbeReport,
    /// A report of this tool, saved beside the logs that it is about.
    Report,
    /// A program's source.
    SourceCode,
    /// Bytes that are no text and no format that is read here.
    UnknownBinary,
    /// Nothing, or nothing but blanks.
    Empty,
}

impl InputKind {
    /// Whether the line readers (`read::read_text`) read it. JSON, XML, compiler output, sources and binaries have readers
    /// of their own or none.
    #[must_use]
    pub fn is_line_text(self) -> bool {
        matches!(
            self,
            Self::Log
                | Self::KernelLog
                | Self::SanitizerText
                | Self::CudaGdb
                | Self::CollectEnv
                | Self::NvidiaSmi
        )
    }

    /// Whether a Triton cache holds such files.
    #[must_use]
    pub fn is_cache_file(self) -> bool {
        matches!(self, Self::Ttir | Self::Ttgir | Self::Llir | Self::Ptx | Self::Cubin | Self::TritonMetadata)
    }
}
