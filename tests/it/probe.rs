//! `warpfault probe` and `doctor` without a GPU, and against a driver that isn't one.
//!
//! In: the built program, a C file that is compiled to `libcuda.so.1`. Out: the contract's exit statuses and sentences.
//! The real driver's turn is `tests/gpu/run.sh`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

struct Fakes {
    _folder: tempfile::TempDir,
    whole: PathBuf,
    old: PathBuf,
    partial: PathBuf,
    none: PathBuf,
}

/// Folders that each hold a `libcuda.so.1`: a whole one, one without mapping, one that lacks nearly everything, and none.
fn fakes() -> &'static Fakes {
    static FAKES: OnceLock<Fakes> = OnceLock::new();
    FAKES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let build = |name: &str, flags: &[&str], source: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            let status = Command::new("cc")
                .args(["-shared", "-fPIC", "-O1", "-w", "-o"])
                .arg(path.join("libcuda.so.1"))
                .args(flags)
                .arg(source)
                .status()
                .unwrap();
            assert!(status.success());
            path
        };
        let source = "tests/it/probe/fake_cuda.c";
        let stump = folder.path().join("stump.c");
        std::fs::write(&stump, "int cuInit(unsigned f) { return 0; }\n").unwrap();
        let whole = build("whole", &[], source);
        let old = build("old", &["-DOLD"], source);
        let partial = build("partial", &[], stump.to_str().unwrap());
        let none = folder.path().join("none");
        std::fs::create_dir(&none).unwrap();
        Fakes { _folder: folder, whole, old, partial, none }
    })
}

fn warpfault(library: &Path, mode: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpfault"))
        .args(arguments)
        .env("LD_LIBRARY_PATH", library)
        .env("FAKE_CUDA", mode)
        .env_remove("CUDA_HOME")
        .output()
        .unwrap()
}

const FILL_ROWS: [&str; 14] = [
    "probe",
    "samples/ptx/crash.ptx",
    "--entry",
    "fill_rows",
    "--set",
    "arg2=32768",
    "--set",
    "arg3=arg2",
    "--sweep",
    "arg1",
    "--grid",
    "arg1",
    "--block",
    "256",
];

fn probe(library: &Path, mode: &str, more: &[&str]) -> (i32, Value, String) {
    let arguments: Vec<&str> = FILL_ROWS.into_iter().chain(["--json"]).chain(more.iter().copied()).collect();
    let output = warpfault(library, mode, &arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap(), value, stderr)
}

fn outcomes(view: &Value) -> Vec<(i64, String)> {
    let trials = view["trials"].as_array().unwrap();
    trials
        .iter()
        .map(|trial| {
            (trial["values"]["arg1"].as_i64().unwrap(), trial["outcome"].as_str().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn without_a_driver_it_says_what_is_missing() {
    let (status, _, stderr) = probe(&fakes().none, "", &[]);
    if stderr.is_empty() {
        // This machine has a driver: the whole program ran.
        return;
    }
    assert_eq!(status, 2);
    let said = stderr.contains("no NVIDIA driver here: libcuda.so.1 can't be opened")
        || stderr.contains("shows no GPU")
        || stderr.contains("boundary");
    assert!(said, "{stderr}");
}

#[test]
fn a_driver_that_cannot_start_is_told_apart() {
    for (mode, words) in [
        ("no-device", "shows no GPU (cuInit returned 100)"),
        ("stub", "the toolkit's stub and no driver"),
        ("newer", "cuInit returned 9999: a status that this program doesn't know"),
        ("abort", "the process died of signal 6 while starting the driver"),
        ("segv", "the process died of signal 11 while starting the driver"),
        ("exit", "the process ended with status 7 and no reply that can be read"),
    ] {
        let (status, _, stderr) = probe(&fakes().whole, mode, &[]);
        assert_eq!(status, 2, "{mode}: {stderr}");
        assert!(stderr.contains(words), "{mode}: {stderr}");
    }
    let (status, _, stderr) = probe(&fakes().partial, "", &[]);
    assert_eq!(status, 2);
    assert!(stderr.contains("libcuda.so.1 has no cuDriverGetVersion"), "{stderr}");
    let (status, _, stderr) = probe(&fakes().whole, "", &["--device", "3"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("there is no GPU 3: the driver shows 1"), "{stderr}");
}

#[test]
fn a_boundary_that_is_where_it_was_predicted_is_confirmed() {
    let (status, view, stderr) = probe(&fakes().whole, "", &[]);
    assert_eq!((status, view["conclusion"].as_str()), (0, Some("confirmed")), "{stderr}");
    assert_eq!(view["schema"], "warpfault/probe/1");
    assert_eq!(view["predicted"], serde_json::json!({"last_pass": 65_536, "first_fail": 65_537}));
    assert_eq!(view["boundary"], view["predicted"]);
    let seen: Vec<(i64, String)> = outcomes(&view).into_iter().take(2).collect();
    assert_eq!(seen, [(65_536, "pass".to_owned()), (65_537, "illegal_address".to_owned())]);
    let first = &view["trials"][0];
    assert_eq!(first["code"], 0);
    assert_eq!(first["logical_bytes"], 65_536_u64 * 32_768 * 4);
    assert_eq!(first["physical_bytes"], 8 << 20);
    assert!(first["printed"].as_str().unwrap().contains("printf of the kernel"));
    assert_eq!(view["device"]["name"], "Fake \\x1b[31mGPU");
    assert_eq!(view["device"]["compute_capability"], "9.0");
    for key in ["kernel", "sweep", "lattice", "control", "why", "bindings", "launch"] {
        assert!(view.get(key).is_some(), "{key}");
    }
}

#[test]
fn it_validates_against_its_schema() {
    let schema = warpfault(&fakes().none, "", &["schema", "probe"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let dry = warpfault(
        &fakes().none,
        "",
        &FILL_ROWS.into_iter().chain(["--dry-run", "--json"]).collect::<Vec<_>>(),
    );
    let dry: Value = serde_json::from_slice(&dry.stdout).unwrap();
    for view in [probe(&fakes().whole, "", &[]).1, dry] {
        let errors: Vec<String> = validator.iter_errors(&view).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn a_kernel_that_never_or_always_fails_refutes() {
    let (status, view, _) = probe(&fakes().whole, "babble", &[]);
    assert_eq!((status, view["conclusion"].as_str()), (0, Some("confirmed")), "babble hides no reply");
    let (status, view, _) = probe(&fakes().whole, "never", &[]);
    assert_eq!((status, view["conclusion"].as_str()), (1, Some("refuted")));
    let (status, view, _) = probe(&fakes().whole, "always", &[]);
    assert_eq!((status, view["conclusion"].as_str()), (1, Some("refuted")));
    assert!(view["why"].as_str().unwrap().starts_with("not an overflow"));
}

#[test]
fn what_bars_the_kernel_from_running_settles_nothing() {
    for (mode, outcome) in [("no-image", "no_kernel_image"), ("refuse", "launch_config"), ("ecc", "hardware")]
    {
        let (status, view, stderr) = probe(&fakes().whole, mode, &[]);
        assert_eq!((status, view["conclusion"].as_str()), (3, Some("inconclusive")), "{mode}: {stderr}");
        assert_eq!(outcomes(&view)[0].1, outcome, "{mode}");
    }
}

#[test]
fn a_kernel_that_hangs_is_ended_at_its_deadline() {
    let (status, view, _) = probe(&fakes().whole, "hang-in-kernel", &["--timeout", "1"]);
    assert_eq!((status, view["conclusion"].as_str()), (3, Some("inconclusive")));
    assert!(outcomes(&view).iter().all(|(_, outcome)| outcome == "timeout"));
    assert!(view["why"].as_str().unwrap().contains("did not end before its deadline"));
}

#[test]
fn a_driver_without_mapping_is_used_and_the_loss_stated() {
    for (library, mode) in [(&fakes().old, ""), (&fakes().whole, "no-mapping")] {
        let (status, view, stderr) = probe(library, mode, &["--memory-limit", "100000"]);
        assert_eq!(status, 0, "{stderr}");
        let notes = view["notes"].to_string();
        assert!(notes.contains("an ordinary allocation, because this driver maps no addresses"), "{notes}");
        assert_eq!(view["device"]["guarded_memory"], false);
    }
}

#[test]
fn a_bad_request_is_refused_before_the_gpu_is_looked_for() {
    let lora = [
        "probe",
        "samples/triton-cache",
        "--entry",
        "fused_lora_xw_kernel",
        "--set",
        "N=9216",
        "--sweep",
        "M",
    ];
    let ask = |more: &[&str]| {
        let output = warpfault(&fakes().none, "", &lora.iter().chain(more).copied().collect::<Vec<_>>());
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, stderr) = ask(&["--set", "K=32", "--set", "M=233016"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("233016 is no multiple of 16"), "{stderr}");
    let (status, stderr) = ask(&[]);
    assert_eq!(status, 2);
    assert!(stderr.contains("--set K=NUMBER"), "{stderr}");
}

#[test]
fn a_dry_run_writes_what_it_would_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("probe.toml");
    let file = file.to_str().unwrap();
    let first: Vec<&str> = FILL_ROWS.into_iter().chain(["--dry-run", "-o", file]).collect();
    let output = warpfault(&fakes().none, "", &first);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("65,537"));
    let output = warpfault(&fakes().whole, "", &["probe", file, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let view: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(view["conclusion"], "confirmed");
}

#[test]
fn doctor_never_fails() {
    let fakes = fakes();
    for (library, mode) in [
        (&fakes.none, ""),
        (&fakes.whole, ""),
        (&fakes.whole, "segv"),
        (&fakes.whole, "newer"),
        (&fakes.partial, ""),
    ] {
        let output = warpfault(library, mode, &["doctor"]);
        assert_eq!(output.status.code(), Some(0), "{mode}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("driver"));
    }
    let output = warpfault(&fakes.whole, "", &["doctor", "--json"]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["devices"][0]["cuda"], "13.0");
}

const INCIDENT: [&str; 3] =
    ["samples/triton-int32-wrap/run.log", "samples/triton-int32-wrap/dmesg.log", "samples/triton-cache"];

/// The walk through the overflow playbook with a yes to its probe, and nothing else.
fn walk(library: &Path, mode: &str, arguments: &[&str]) -> (String, String) {
    let given: Vec<&str> = ["playbook", "run", "auto"]
        .into_iter()
        .chain(INCIDENT)
        .chain(["--no-save", "--yes-to", "probe"])
        .chain(arguments.iter().copied())
        .collect();
    let output = warpfault(library, mode, &given);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// What the walk says of one step.
fn step(page: &str, id: &str) -> String {
    let found = page
        .split("\n\n")
        .find(|step| step.lines().next().is_some_and(|head| head.ends_with(&format!("({id})"))));
    found.unwrap_or_default().to_owned()
}

#[test]
fn a_yes_in_the_walk_proves_the_cause() {
    let (page, told) = walk(&fakes().whole, "", &[]);
    let shown = told.lines().find(|line| line.starts_with("warpfault: runs: ")).unwrap();
    for part in [
        "warpfault probe samples/triton-cache/HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA",
        "--entry fused_lora_xw_kernel",
        "M=234624",
        "N=9216",
        "K=32",
        "--sweep M",
        "--control-entry fused_lora_xw_kernel_i64",
        "(cost: seconds on a GPU",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let probe = step(&page, "probe");
    assert!(probe.starts_with("[done]"), "{page}\n{told}");
    assert!(
        probe.contains("Proven: a probe reran fused_lora_xw_kernel on Fake")
            && probe.contains("M = 233,008 passes, 233,024 ends with illegal_address, as predicted")
            && probe.contains("the fixed kernel fused_lora_xw_kernel_i64 passes there"),
        "{probe}"
    );
    // What is proven needs no rerun of the job.
    for aside in ["launch-blocking", "triton-debug", "memcheck"] {
        assert_eq!(step(&page, aside), "", "{page}");
    }
    // Nothing runs without its own yes.
    let (page, told) = walk(&fakes().whole, "", &["--skip", "probe"]);
    assert!(step(&page, "probe").starts_with("[skipped]") && !told.contains("runs: "), "{page}\n{told}");
}

#[test]
fn a_kernel_that_passes_everywhere_contradicts_the_cause() {
    let (page, told) = walk(&fakes().whole, "never", &[]);
    let probe = step(&page, "probe");
    assert!(probe.contains("Contradicted: a probe reran fused_lora_xw_kernel"), "{page}\n{told}");
    assert!(step(&page, "not-this-shape").contains("Is there a larger physical tensor"), "{page}");
}

#[test]
fn a_probe_that_settles_nothing_or_cannot_run_says_so() {
    let (page, _) = walk(&fakes().whole, "hang-in-kernel", &["--deadline", "2"]);
    assert!(step(&page, "probe").contains("before it concluded anything"), "{page}");
    let (page, _) = walk(&fakes().whole, "refuse", &[]);
    assert!(step(&page, "probe").contains("Not settled: a probe reran"), "{page}");
    let (page, _) = walk(&fakes().whole, "no-device", &[]);
    assert!(
        step(&page, "probe")
            .contains("It could not run: the NVIDIA driver is there but shows no GPU (cuInit returned 100)"),
        "{page}"
    );
}

#[test]
fn a_probe_report_among_the_inputs_proves_and_a_scribbled_one_does_not() {
    let lora: Vec<&str> = ["probe", INCIDENT[2], "--entry", "fused_lora_xw_kernel", "--set", "M=234624"]
        .into_iter()
        .chain(["--set", "N=9216", "--set", "K=32", "--sweep", "M", "--json"])
        .collect();
    let report = warpfault(&fakes().whole, "", &lora).stdout;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probe.json");
    let analyze = |bytes: &[u8]| -> Value {
        std::fs::write(&path, bytes).unwrap();
        let inputs: Vec<&str> =
            ["analyze"].into_iter().chain(INCIDENT).chain([path.to_str().unwrap(), "--json"]).collect();
        serde_json::from_slice(&warpfault(&fakes().none, "", &inputs).stdout).unwrap()
    };
    let proven = analyze(&report);
    assert_eq!(proven["verdict"]["cause"]["certainty"], "proven", "{proven}");
    let probe = proven["evidence"].as_array().unwrap().iter().find(|one| one["kind"] == "probe").unwrap();
    assert_eq!(probe["from"]["kind"], "probe");
    assert_eq!(probe["fields"]["boundary"], serde_json::json!({"last_pass": 233_008, "first_fail": 233_024}));
    assert_eq!(proven["inputs"].as_array().unwrap().last().unwrap()["kind"], "probe_report");

    for cut in [report.len() / 3, report.len() - 3] {
        let value = analyze(&report[..cut]);
        assert_eq!(value["verdict"]["cause"]["certainty"], "supported", "{cut}");
    }
    let text = String::from_utf8(report).unwrap();
    for (from, to) in [
        ("\"trials\": [", "\"trials\": [[[1e999]],"),
        ("\"lattice\": 16", "\"lattice\": 99999999999999999999999"),
        ("\"value\": \"9216\"", "\"value\": \"1232\""),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let value = analyze(text.replace(from, to).as_bytes());
        assert_ne!(value["verdict"]["cause"]["certainty"], "proven", "{from} → {to}");
    }
}
