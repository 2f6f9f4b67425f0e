//! Every sample, read as its user reads it: the folder in, the report out.
//!
//! In: `samples/`. Out: each report equals the sample's `expected.txt`, and says what really happened (known from the
//! programs that crashed). `WARPFAULT_BLESS=1 cargo test samples` writes new expectations; read them before committing.

use std::path::{Path, PathBuf};

use warpfault::report::{Report, text};
use warpfault::session::{Input, Session};
use warpfault::source::{self, InputSpec, Limits};

/// The report of what `paths` hold.
pub fn report(paths: &[&str]) -> Report {
    let specs: Vec<InputSpec> = paths.iter().map(|path| InputSpec::Path(PathBuf::from(path))).collect();
    let mut session = Session::new();
    session.apply(Input::Loaded(source::load(&specs, Limits::default())));
    session.report().clone()
}

/// Folders of `samples/` that hold an incident.
pub fn incidents() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir("samples")
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("README.md").is_file() && entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| !matches!(name.as_str(), "ptx" | "triton-cache"))
        .collect();
    names.sort();
    names
}

#[test]
fn every_report_is_the_expected_one() {
    let bless = std::env::var_os("WARPFAULT_BLESS").is_some();
    let mut wrong = Vec::new();
    let names = incidents();
    assert!(names.len() >= 40, "{} samples found", names.len());
    for name in names {
        let folder = format!("samples/{name}");
        let shown = without_own_size(&text::render(&report(&[&folder]), text::Paint::Plain));
        let path = Path::new(&folder).join("expected.txt");
        if bless {
            std::fs::write(&path, &shown).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != shown {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "reports differ from expected.txt: {wrong:?}; WARPFAULT_BLESS=1 shows how");
}

/// The report lists the expectation beside the logs, with its size: a number that would change whenever it is written.
fn without_own_size(shown: &str) -> String {
    let is_own = |line: &&str| line.contains("/expected.txt (report, ");
    shown.lines().filter(|line| !is_own(line)).flat_map(|line| [line, "\n"]).collect()
}

/// What really happened, from the programs that crashed: sample, class, cause and its certainty, root rank, where it was
/// noticed, where it happened. An empty text means none; `*` means not checked.
const TRUTH: &[(&str, &str, &str, &str, &str, &str, &str)] = &[
    ("triton-int32-wrap", "illegal_address", "int32_overflow", "suspected", "", "triton_cases.py:60", "*"),
    (
        "triton-int32-wrap-blocking",
        "illegal_address",
        "int32_overflow",
        "suspected",
        "",
        "triton_cases.py:49",
        "*",
    ),
    (
        "triton-int32-wrap-memcheck",
        "illegal_address",
        "int32_overflow",
        "supported",
        "",
        "triton_cases.py:60",
        "triton_cases.py:18",
    ),
    (
        "triton-int32-wrap-triton-debug",
        "device_assert",
        "int32_overflow",
        "supported",
        "",
        "*",
        "triton_cases.py:18",
    ),
    ("triton-int32-wrap-probe", "illegal_address", "int32_overflow", "proven", "", "triton_cases.py:60", "*"),
    ("triton-int32-below-boundary", "none", "", "", "", "", ""),
    ("triton-int32-fixed", "none", "", "", "", "", ""),
    (
        "tritonparse-int32-wrap",
        "illegal_address",
        "int32_overflow",
        "supported",
        "",
        "triton_cases.py:60",
        "*",
    ),
    ("tritonparse-scatter", "illegal_address", "int32_overflow", "supported", "", "more_cases.py:33", ""),
    ("tritonparse-int32-fixed", "none", "", "", "", "", ""),
    ("tritonparse-missing-mask", "illegal_address", "", "", "", "triton_cases.py:73", ""),
    ("nvidia-smi-healthy", "none", "", "", "", "", ""),
    ("nvidia-smi-old-ecc", "python_error", "", "", "", "train.py:33", ""),
    ("nvidia-smi-ecc-agrees", "hardware", "ecc", "supported", "", "train.py:88", ""),
    ("dcgm-memory", "hardware", "ecc", "suspected", "", "", ""),
    ("vllm-death", "illegal_address", "", "", "", "gpu_model_runner.py:2300", ""),
    ("no-kernel-image", "no_kernel_image", "wrong_arch", "supported", "", "infer.py:12", ""),
    ("triton-coredump", "illegal_address", "int32_overflow", "supported", "", "*", "more_cases.py:30"),
    ("coredump-gather", "illegal_address", "bad_index", "suspected", "", "*", "crash.cu:20"),
    ("cuda-int32-wrap", "illegal_address", "int32_overflow", "suspected", "", "crash.cu:50", "*"),
    ("cuda-int32-wrap-memcheck", "illegal_address", "int32_overflow", "supported", "", "*", "crash.cu:12"),
    ("cuda-gather", "illegal_address", "", "", "", "crash.cu:61", "*"),
    ("cuda-gather-memcheck", "illegal_address", "bad_index", "suspected", "", "*", "crash.cu:20"),
    ("cuda-unguarded-memcheck", "illegal_address", "missing_mask", "supported", "", "*", "crash.cu:16"),
    ("cuda-misaligned", "misaligned_address", "", "", "", "*", "*"),
    ("cuda-misaligned-memcheck", "misaligned_address", "", "", "", "*", "crash.cu:22"),
    ("cuda-assert", "device_assert", "bad_index", "supported", "", "*", "crash.cu:23"),
    ("cuda-shared-oob", "illegal_instruction", "", "", "", "*", "*"),
    ("cuda-trap", "launch_failure", "", "", "", "*", "*"),
    ("cuda-oom", "gpu_oom", "gpu_memory", "supported", "", "*", ""),
    ("cuda-double-free-memcheck", "api_error", "", "", "", "*", ""),
    ("cuda-leak-memcheck", "leak", "", "", "", "", ""),
    ("racecheck", "race", "", "", "", "", "crash.cu:31"),
    ("synccheck", "barrier_error", "", "", "", "*", "crash.cu:35"),
    ("initcheck", "uninitialized_read", "", "", "", "*", "crash.cu:34"),
    (
        "torch-embedding",
        "device_assert",
        "bad_index",
        "supported",
        "",
        "triton_cases.py:79",
        "IndexKernelUtils.cu:16",
    ),
    (
        "torch-graph-replay-freed",
        "illegal_address",
        "graph_replay",
        "suspected",
        "",
        "triton_cases.py:99",
        "*",
    ),
    ("torch-cublas-after-ima", "illegal_address", "", "", "", "triton_cases.py:89", "*"),
    ("torch-oom", "gpu_oom", "gpu_memory", "supported", "", "triton_cases.py:85", ""),
    (
        "torch-shared-out-of-resource",
        "launch_config",
        "launch_limit",
        "supported",
        "",
        "triton_cases.py:107",
        "",
    ),
    ("torch-segv-dmesg", "segfault", "", "", "", "", "*"),
    ("torch-segv-faulthandler", "segfault", "", "", "", "triton_cases.py:104", "ctypes/__init__.py:525"),
    ("pair-rank1-memory-fault", "illegal_address", "", "", "1", "nccl_cases.py:25", "*"),
    ("pair-rank1-exception", "python_error", "", "", "1", "nccl_cases.py:30", ""),
    ("pair-rank1-segv", "segfault", "", "", "1", "nccl_cases.py:27", "ctypes/__init__.py:525"),
    ("pair-missing-rank", "nccl", "missing_collective", "supported", "1", "*", ""),
    ("pair-missing-rank-ras", "nccl", "missing_collective", "supported", "1", "*", ""),
    ("pair-skipped-collective", "nccl", "missing_collective", "supported", "1", "*", ""),
    ("pair-size-mismatch", "nccl", "collective_mismatch", "supported", "", "*", ""),
    ("pair-symmetric-size-mismatch", "nccl", "symm_window", "supported", "*", "nccl_cases.py:41", ""),
    ("pair-symmetric-ok", "none", "", "", "", "", ""),
    ("ddp-log-folder", "illegal_address", "", "", "1", "*", "*"),
    ("sanitizer-xml-initcheck-uninit", "uninitialized_read", "", "", "", "*", "*"),
    ("sanitizer-xml-leak", "leak", "", "", "", "*", "*"),
    ("sanitizer-xml-memcheck-misaligned", "misaligned_address", "", "", "", "*", "*"),
    // XML prints no nearest allocation, so no distance: a missing mask cannot be told from another access out of bounds.
    ("sanitizer-xml-memcheck-unguarded-small", "illegal_address", "out_of_bounds", "suspected", "", "*", "*"),
    ("sanitizer-xml-racecheck-race", "race", "", "", "", "*", "*"),
    ("sanitizer-xml-synccheck-divergent-sync", "barrier_error", "", "", "", "*", "*"),
];

fn spelled<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap_or_default().to_owned()
}

fn place(file: Option<&str>, line: Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => String::new(),
    }
}

#[test]
fn every_verdict_is_what_really_happened() {
    let mut wrong = Vec::new();
    for &(name, class, cause, certainty, rank, noticed, happened) in TRUTH {
        let report = report(&[&format!("samples/{name}")]);
        let verdict = &report.verdict;
        let mut check = |what: &str, got: String, wanted: &str| {
            let fits =
                wanted == "*" || if wanted.contains(':') { got.ends_with(wanted) } else { got == wanted };
            if !fits {
                wrong.push(format!("{name}: {what} is {got:?}, should be {wanted:?}"));
            }
        };
        check("class", spelled(&verdict.class), class);
        check("cause", verdict.cause.as_ref().map(|cause| spelled(&cause.kind)).unwrap_or_default(), cause);
        check(
            "certainty",
            verdict.cause.as_ref().map(|cause| spelled(&cause.certainty)).unwrap_or_default(),
            certainty,
        );
        check("root rank", verdict.root_rank.map(|rank| rank.to_string()).unwrap_or_default(), rank);
        let notice = verdict.observed_at.as_ref();
        check("notice", place(notice.and_then(|n| n.file.as_deref()), notice.and_then(|n| n.line)), noticed);
        let fault = verdict.fault_at.as_ref();
        check("fault", place(fault.and_then(|f| f.file.as_deref()), fault.and_then(|f| f.line)), happened);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn ranks_and_collectives_from_each_kind_of_file_alone() {
    let folder = "samples/pair-skipped-collective";
    for paths in [
        vec![format!("{folder}/run.log")],
        vec![format!("{folder}/nccl_trace_rank_0"), format!("{folder}/nccl_trace_rank_1")],
    ] {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let verdict = report(&paths).verdict;
        let collective = verdict.collective.unwrap();
        assert_eq!(
            (verdict.root_rank, collective.op.as_deref(), collective.seq),
            (Some(1), Some("ALLREDUCE"), Some(7)),
            "{paths:?}"
        );
        assert_eq!(collective.numel_in, Some(1_048_576), "{paths:?}");
    }
    for file in ["ras.txt", "ras.json"] {
        let verdict = report(&[&format!("samples/pair-missing-rank-ras/{file}")]).verdict;
        assert_eq!((spelled(&verdict.class).as_str(), verdict.root_rank), ("nccl", Some(1)), "{file}");
    }
    let log = report(&["samples/pair-size-mismatch/run.log"]).verdict;
    // Another call or a broken network: the log alone fits both.
    assert_eq!((log.cause, spelled(&log.restart.advice).as_str()), (None, "unknown"));
    let dumps = report(&[
        "samples/pair-size-mismatch/nccl_trace_rank_0",
        "samples/pair-size-mismatch/nccl_trace_rank_1",
    ]);
    let cause = dumps.verdict.cause.unwrap();
    assert_eq!(spelled(&cause.certainty), "supported");
    assert!(cause.summary.contains("1,024") && cause.summary.contains("2,048"), "{}", cause.summary);
}

#[test]
fn overflow_is_never_a_cause_where_it_is_none() {
    for name in [
        "torch-graph-replay-freed",
        "cuda-gather-memcheck",
        "torch-embedding",
        "cuda-unguarded-memcheck",
        "coredump-gather",
        "tritonparse-missing-mask",
    ] {
        let report = report(&[&format!("samples/{name}")]);
        let claimed = report
            .hypotheses
            .iter()
            .any(|hypothesis| hypothesis.cause.is_some_and(|cause| spelled(&cause) == "int32_overflow"));
        assert!(!claimed, "{name}");
    }
}

/// Certainty of the overflow hypothesis of what `paths` hold; none where there is no such hypothesis.
fn overflow(paths: &[&str]) -> Option<String> {
    let is_overflow = |cause| spelled(&cause) == "int32_overflow";
    report(paths)
        .hypotheses
        .iter()
        .find(|hypothesis| hypothesis.cause.is_some_and(is_overflow))
        .map(|hypothesis| spelled(&hypothesis.certainty))
}

const WRAP_TRACE: &str =
    "samples/tritonparse-int32-wrap/dedicated_log_triton_trace_user_rank_none_pid_435_.ndjson.gz";
const WRAP_LOG: &str = "samples/tritonparse-int32-wrap/run.log";

#[test]
fn a_trace_counts_for_the_process_and_the_kernel_that_it_fits() {
    assert_eq!(overflow(&[WRAP_LOG]).as_deref(), Some("suspected"), "the log prints the shape alone");
    assert_eq!(overflow(&[WRAP_LOG, WRAP_TRACE]).as_deref(), Some("supported"));
    // A log that names neither the kernel nor its file: the trace's end points to the launch, and nothing else does.
    let elsewhere = "samples/cuda-gather/run.log";
    assert_eq!(overflow(&[elsewhere]), None);
    assert_eq!(overflow(&[elsewhere, WRAP_TRACE]).as_deref(), Some("suspected"));
    // A kernel that fits speaks against a shape of the log.
    let fixed =
        "samples/tritonparse-int32-fixed/dedicated_log_triton_trace_user_rank_none_pid_511_.ndjson.gz";
    assert_eq!(overflow(&[WRAP_LOG, fixed]).as_deref(), Some("undecided"));
    assert_eq!(overflow(&[elsewhere, fixed]), None);
    // An error of another class is never a wrapped index.
    assert_eq!(overflow(&["samples/cuda-trap/run.log", WRAP_TRACE]), None);
}

#[test]
fn a_trace_of_another_rank_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        let to = folder.path().join(to);
        std::fs::copy(from, &to).unwrap();
        to.to_string_lossy().into_owned()
    };
    let log = copy(WRAP_LOG, "rank_1.log");
    let other = copy(WRAP_TRACE, "dedicated_log_triton_trace_user_rank_3_pid_435_.ndjson.gz");
    let same = copy(WRAP_TRACE, "dedicated_log_triton_trace_user_rank_1_pid_435_.ndjson.gz");
    let last_launch = |paths: &[&str]| {
        report(paths)
            .checks
            .iter()
            .find(|check| check.id == "last-launch")
            .map(|check| spelled(&check.status))
    };
    assert_eq!(last_launch(&[&log, &other]), None);
    assert_eq!(last_launch(&[&log, &same]).as_deref(), Some("holds"));
}
