//! An incident with something in every part of the report.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::report::model::{
    Cause, Certainty, Check, CheckStatus, Code, Diagnostic, Evidence, EvidenceKind, Failure, Family, FaultAt,
    From, Hypothesis, Input, Mitigation, Next, ObservedAt, Rank, RankState, Report, Restart, RestartAdvice,
    Role, SCHEMA, Tool, Verdict,
};
use crate::session::{self, Session};
use crate::source::{self, Bytes, InputKind, InputSpec, Limits};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::tui::log::lines::line_start;
use crate::tui::source::{Analysis, Mark, Source};

/// A log of two ranks with wide characters, an escape sequence and a long line.
pub const LOG: &str = concat!(
    "$ torchrun --nproc-per-node 2 train.py --rows 234624\n",
    "[rank0] packed tokens M=234624 intermediate_size=9216\n",
    "[rank1] 数据 加载 完成 🚀 loading done\n",
    "[rank1]: Traceback (most recent call last):\n",
    "[rank1]:   File \"/home/user/train.py\", line 60, in forward\n",
    "[rank1]:     return h, cu_seq_lens.detach().to(device=\"cpu\", dtype=torch.int64).tolist()\n",
    "[rank1]:            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n",
    "[rank1]: torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n",
    "\n",
    "\x1b[31m[rank0]: progress\x1b[0m \x1b]0;owned\x07 step 41\n",
    "[rank1]:[E1129 19:41:59 ProcessGroupNCCL.cpp:2119] [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered\n",
    "Exception raised from query at CUDAEvent.h:111 (most recent call first):\n",
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7f3d4657305d in libc10.so)\n",
    "frame #1: c10d::ProcessGroupNCCL::Watchdog::runLoop() + 0x9c3 (0x7f3c91b071d3 in libtorch_cuda.so)\n",
    "W1129 19:41:59 api.py:1012] Sending process 590 closing signal SIGTERM\n",
);

/// The input.
pub fn source() -> Source {
    let mut text = LOG.to_owned();
    for step in 0..60 {
        text.push_str(&format!("[rank0] step {step} loss 2.{step:02}\n"));
    }
    Source {
        name: "logs/run.log".to_owned(),
        file: Some("/nowhere/logs/run.log".into()),
        kind: InputKind::Log,
        bytes: Bytes::from(text.into_bytes()),
        rank: None,
    }
}

/// A second input.
pub fn kernel_log() -> Source {
    Source {
        name: "logs/dmesg.log".to_owned(),
        file: None,
        kind: InputKind::KernelLog,
        bytes: Bytes::from(b"[  103.2] NVRM: Xid (PCI:0000:00:06): 31, pid=591, name=python3\n".to_vec()),
        rank: None,
    }
}

fn evidence(
    id: &str,
    kind: EvidenceKind,
    rank: Option<u32>,
    line: u64,
    lines: u32,
    fields: Value,
) -> Evidence {
    let (input, text) = if id == "e6" {
        (1, "[  103.2] NVRM: Xid (PCI:0000:00:06): 31, pid=591, name=python3")
    } else {
        (0, LOG.lines().nth(usize::try_from(line - 1).unwrap()).unwrap())
    };
    let byte = if input == 1 { 0 } else { u64::try_from(LOG.find(text).unwrap()).unwrap() };
    Evidence {
        id: id.to_owned(),
        kind,
        rank,
        time: None,
        from: From::Span { input, line, byte, lines },
        text: crate::text::escape(text).to_string(),
        fields: fields.as_object().cloned().unwrap_or_else(Map::new),
    }
}

fn all_evidence() -> Vec<Evidence> {
    use EvidenceKind as Kind;
    let mut all = vec![
        evidence("e1", Kind::Command, None, 1, 1, json!({"words": ["torchrun"]})),
        evidence("e2", Kind::Shape, Some(0), 2, 1, json!({"dims": [234_624, 9216], "names": ["M", "N"]})),
        evidence(
            "e3",
            Kind::Traceback,
            Some(1),
            4,
            5,
            json!({"frames": 1, "exception": "torch.AcceleratorError"}),
        ),
        evidence("e4", Kind::CudaError, Some(1), 8, 1, json!({"number": 700})),
        evidence("e5", Kind::CudaError, Some(1), 11, 1, json!({"number": 700, "messenger": "nccl_watchdog"})),
        evidence("e6", Kind::Xid, None, 1, 1, json!({"xid": 31, "pid": 591})),
        evidence("e7", Kind::Cleanup, None, 15, 1, json!({"pid": 590, "signal": 15})),
    ];
    all.push(Evidence {
        id: "e8".to_owned(),
        kind: Kind::Sanitizer,
        rank: None,
        time: None,
        from: From::Derived { from: vec!["e2".to_owned()] },
        text: "the access lands inside the allocation once 2^32 elements are added back".to_owned(),
        fields: json!({
            "address": "0x7fa246c80080", "size_bytes": 4, "access": "write", "block": [65892, 0, 0], "thread": [32, 0, 0],
            "nearest": {"distance_bytes": 8_543_272_832_u64, "side": "before", "base": "0x7fa444000000", "size_bytes": 9_175_040_000_u64},
        })
        .as_object()
        .cloned()
        .unwrap(),
    });
    all
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn verdict() -> Verdict {
    Verdict {
        class: FailureClass::IllegalAddress,
        family: Family::IllegalAddress,
        certainty: Certainty::Supported,
        summary: "Rank 1 failed first: it read or wrote an illegal address on the GPU; noticed at .to(…) in train.py:60. \
                  The NCCL watchdog is only the messenger."
            .to_owned(),
        cause: Some(Cause {
            kind: CauseKind::Int32Overflow,
            certainty: Certainty::Supported,
            summary: "234,624 x 9,216 elements pass 2^31-1, and the fault lies where a wrapped index would land".to_owned(),
        }),
        code: Some(Code {
            domain: "cuda".to_owned(),
            number: Some(700),
            name: Some("cudaErrorIllegalAddress".to_owned()),
        }),
        masked_by: None,
        reported_asynchronously: Some(true),
        observed_at: Some(ObservedAt {
            rank: Some(1),
            file: Some("/home/user/train.py".to_owned()),
            line: Some(60),
            function: Some("forward".to_owned()),
            call: Some("to".to_owned()),
            call_text: Some(".to(device=\"cpu\")".to_owned()),
            log_line: Some(5),
            is_sync_point: Some(true),
            evidence: ids(&["e3"]),
        }),
        fault_at: Some(FaultAt {
            kernel: Some("fused_lora_xw_kernel".to_owned()),
            file: Some("train.py".to_owned()),
            line: Some(18),
            block: Some([1827, 0, 0]),
            thread: Some([64, 0, 0]),
            address: Some("0x7f74f8ed2000".to_owned()),
            access: Some("write 16".to_owned()),
            evidence: ids(&["e8"]),
            ..FaultAt::default()
        }),
        root_rank: Some(1),
        collective: None,
        restart: Restart {
            advice: RestartAdvice::Pointless,
            summary: "the same input fails every time; lower the rows per rank first".to_owned(),
        },
    }
}

fn rank(rank: u32, state: RankState, signal: u32, completed: i64) -> Rank {
    Rank {
        rank,
        host: Some("node7".to_owned()),
        pid: Some(590 + rank),
        pci: None,
        state,
        signal: Some(signal),
        exit_code: None,
        last_enqueued: Some(7),
        last_completed: Some(completed),
        evidence: ids(&["e5"]),
    }
}

/// The report.
pub fn report() -> Report {
    let failure = |class, role, rank, why: &str, evidence: &[&str]| Failure {
        class,
        role,
        shown: None,
        rank,
        why: Some(why.to_owned()),
        evidence: ids(evidence),
    };
    let input =
        |path: &str, kind| Input { path: path.to_owned(), kind, bytes: 1475, lines: 75, truncated: false };
    Report {
        schema: SCHEMA,
        tool: Tool { name: "warpfault", version: "0.1.0" },
        inputs: vec![input("logs/run.log", InputKind::Log), input("logs/dmesg.log", InputKind::KernelLog)],
        verdict: verdict(),
        failures: vec![
            failure(FailureClass::IllegalAddress, Role::Root, Some(1), "it comes first", &["e4"]),
            failure(
                FailureClass::IllegalAddress,
                Role::Messenger,
                Some(1),
                "the NCCL watchdog reports what happened elsewhere",
                &["e5"],
            ),
            failure(
                FailureClass::Killed,
                Role::Cleanup,
                Some(0),
                "the launcher ends the other ranks",
                &["e7"],
            ),
        ],
        hypotheses: vec![Hypothesis {
            class: FailureClass::IllegalAddress,
            cause: Some(CauseKind::Int32Overflow),
            certainty: Certainty::Supported,
            summary: String::new(),
            supports: ids(&["e2", "e8"]),
            against: Vec::new(),
            would_settle: Vec::new(),
        }],
        evidence: all_evidence(),
        shapes: vec![json!({
            "dims": [234_624, 9216], "names": ["M", "N"], "numel": 2_162_294_784_u64, "max_index": 2_162_294_783_u64,
            "sweep": "M", "safe": 233_016, "evidence": ["e2"],
        })],
        ranks: vec![rank(1, RankState::Failed, 6, 6), rank(0, RankState::Terminated, 15, 7)],
        checks: vec![
            Check {
                id: "sync-point".to_owned(),
                title: "Is the reported place only where it was noticed?".to_owned(),
                status: CheckStatus::Holds,
                reading: ".to waits for earlier work of the GPU".to_owned(),
                evidence: ids(&["e3"]),
            },
            Check {
                id: "driver".to_owned(),
                title: "Does the kernel driver agree?".to_owned(),
                status: CheckStatus::Unknown,
                reading: "add dmesg of the same time".to_owned(),
                evidence: Vec::new(),
            },
        ],
        next: vec![Next {
            id: "launch-blocking".to_owned(),
            title: "Rerun with launch blocking".to_owned(),
            command: Some(ids(&[
                "env",
                "CUDA_LAUNCH_BLOCKING=1",
                "torchrun",
                "train.py",
                "--rows",
                "234624",
            ])),
            cost: "slower; hides races".to_owned(),
            why: "each launch then waits, so the error comes out at the launch that failed".to_owned(),
        }],
        mitigations: vec![Mitigation {
            summary: "cap the rows per rank at 233016".to_owned(),
            scope: "stop-gap".to_owned(),
        }],
        history: Vec::new(),
        diagnostics: vec![Diagnostic {
            severity: "warning".to_owned(),
            message: "logs/old.log.xz: is an xz archive; run xz -dc logs/old.log.xz | warpfault -".to_owned(),
        }],
    }
}

/// The engine over the first input: its walk is the fixture's.
fn session() -> Session {
    let mut session = Session::new();
    let spec = InputSpec::Text { name: "logs/run.log".to_owned(), bytes: LOG.as_bytes().to_vec() };
    session.apply(session::Input::Loaded(source::load(&[spec], Limits::default())));
    session
}

/// The report with its marks.
pub fn analysis() -> Analysis {
    let report = report();
    let sources = [source(), kernel_log()];
    let deciding = ["e2", "e3", "e4", "e6", "e8"];
    let failures = ["e4", "e5", "e7"];
    let mut marks: Vec<Vec<Mark>> = vec![Vec::new(), Vec::new()];
    for evidence in &report.evidence {
        let From::Span { input, line, byte, lines } = evidence.from else { continue };
        let input = usize::try_from(input).unwrap();
        let bytes = &sources[input].bytes;
        let at = line_start(bytes, usize::try_from(byte).unwrap());
        let ends = memchr::memchr_iter(b'\n', &bytes[at..]);
        let end = ends.take(usize::try_from(lines).unwrap()).last().map_or(bytes.len(), |end| at + end);
        marks[input].push(Mark {
            at,
            line,
            lines,
            end,
            id: evidence.id.clone(),
            kind: evidence.kind,
            rank: evidence.rank,
            deciding: deciding.contains(&evidence.id.as_str()),
            failure: failures.contains(&evidence.id.as_str()),
        });
    }
    let markdown = crate::report::markdown::render(&report);
    let session = session();
    Analysis {
        report: Arc::new(report),
        marks: Arc::new(marks),
        walk: Arc::new(session.walk().clone()),
        chains: Arc::new(session.chains()),
        markdown: Arc::new(markdown),
    }
}
