//! From the pasted log and the cache to a proven cause, and what must not lead there.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::super::{Edited, Effect, Input, Proposal, Session, WalkInput};
use super::said;
use crate::effect;
use crate::playbook::record::Ended;
use crate::playbook::walk::Act;
use crate::playbook::{Ran, StepRef, StepState};
use crate::source::{self, InputSpec, Limits, load};
use crate::tables::cause::CauseKind;
use crate::verdict::{Certainty, CheckStatus};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

fn files(paths: &[PathBuf]) -> source::Loaded {
    let specs: Vec<InputSpec> = paths.iter().cloned().map(InputSpec::Path).collect();
    load(&specs, Limits::default())
}

/// The log, the kernel's log and the whole cache: the entry is for the walk to find.
fn incident() -> Session {
    let mut session = Session::new();
    let log = folder("triton-int32-wrap");
    let loaded = files(&[log.join("run.log"), log.join("dmesg.log"), folder("triton-cache")]);
    session.apply(Input::Loaded(loaded));
    session
}

fn recorded() -> String {
    std::fs::read_to_string(folder("triton-int32-wrap-probe").join("probe.json")).unwrap()
}

fn step() -> StepRef {
    StepRef::new("index-overflow", "probe")
}

fn walk(session: &mut Session, input: WalkInput) -> Vec<Effect> {
    session.apply(Input::Walk(input))
}

fn proposed(effects: &[Effect]) -> Proposal {
    match effects {
        [Effect::Show, Effect::Confirm(proposal)] => (**proposal).clone(),
        other => panic!("{other:?}"),
    }
}

fn feed(session: &mut Session, text: &str) {
    let text = InputSpec::Text { name: "probe".to_owned(), bytes: text.as_bytes().to_vec() };
    walk(session, WalkInput::Feed { step: step(), output: load(&[text], Limits::default()) });
}

fn overflow(session: &Session) -> (Certainty, String) {
    let found = session.verdict().hypotheses.iter().find(|one| one.cause == Some(CauseKind::Int32Overflow));
    found.map(|one| (one.certainty, one.summary.clone())).unwrap()
}

fn outcome(session: &Session) -> (String, String) {
    let step = session.walk().step(&step()).unwrap();
    (step.outcome.clone().unwrap_or_default(), step.reading.clone().unwrap_or_default())
}

#[test]
fn three_key_presses_from_the_log_and_the_cache_to_proven() {
    // One: the log and the cache are opened.
    let mut session = incident();
    assert_eq!(overflow(&session).0, Certainty::Supported);
    let current = session.walk().current().unwrap();
    assert_eq!((current.at.clone(), current.state), (step(), StepState::Open));
    let shows = current.shows.as_deref().unwrap();
    assert!(
        shows.starts_with(
            "Reruns fused_lora_xw_kernel with K = 32 (a number of the log), M = 234624 (the log's M), N = 9216 (the log's intermediate_size)"
        ),
        "{shows}"
    );

    // Two: the command is shown whole.
    let proposal = proposed(&walk(&mut session, WalkInput::Propose { step: step(), edited: None }));
    let entry = folder("triton-cache/HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA");
    let control = folder("triton-cache/Z3X5GRPAH7WDUJHAIBIK4YX5DQDQ2FPOPFI2ZF2GKDJNRBYNGZ5Q");
    let words = [
        "warpfault",
        "probe",
        entry.to_str().unwrap(),
        "--entry",
        "fused_lora_xw_kernel",
        "--set",
        "K=32",
        "--set",
        "M=234624",
        "--set",
        "N=9216",
        "--sweep",
        "M",
        "--control",
        control.to_str().unwrap(),
        "--control-entry",
        "fused_lora_xw_kernel_i64",
        "--format",
        "json",
    ];
    assert_eq!(proposal.command, words);
    assert!(proposal.from_input && proposal.cost.contains("seconds on a GPU"));

    // A stub in its place prints what a real probe printed, progress and all.
    let report = folder("triton-int32-wrap-probe").join("probe.json");
    let script =
        format!("echo 'warpfault:  233,024  illegal_address  700' >&2; cat '{}'; exit 0", report.display());
    let edited = Edited {
        command: ["sh", "-c", &script].map(str::to_owned).to_vec(),
        environment: Vec::new(),
        deadline_s: proposal.deadline_s,
    };
    walk(&mut session, WalkInput::Propose { step: step(), edited: Some(edited) });
    // Three: yes.
    let effects = walk(&mut session, WalkInput::Confirm(true));
    let Some(Effect::Run(approved)) = effects.into_iter().find(|effect| matches!(effect, Effect::Run(_)))
    else {
        panic!("nothing runs");
    };
    let scratch = tempfile::tempdir().unwrap();
    let (ran, output) =
        effect::run(&approved, &scratch.path().join("probe.log"), &AtomicBool::new(false), None);
    walk(&mut session, WalkInput::Ended { step: step(), ran, output });

    let (certainty, summary) = overflow(&session);
    assert_eq!(certainty, Certainty::Proven, "{summary}");
    assert!(
        summary.contains("M = 233,008 passes, 233,024 ends with illegal_address, as predicted"),
        "{summary}"
    );
    assert!(summary.contains("this log's M 234,624 × intermediate_size 9,216"), "{summary}");
    let (outcome, reading) = outcome(&session);
    assert_eq!(outcome, "confirmed");
    assert!(reading.starts_with("Proven: a probe reran fused_lora_xw_kernel on NVIDIA H200"), "{reading}");
    assert_eq!(session.verdict().class.name(), "illegal_address");
    // The rerun that failed on purpose is no failure of the job, and no command of it either.
    assert!(session.verdict().failures.iter().all(|failure| failure.at.input.0 < 3));
    assert_eq!(session.walk().current().unwrap().at.step, "phase");

    let trials = crate::report::trials::of(session.report());
    assert_eq!(trials.len(), 1);
    let rows: Vec<_> = trials[0].rows.iter().map(|row| (row.value.as_str(), row.passed)).collect();
    assert_eq!(rows[..2], [("233,008", Some(true)), ("233,024", Some(false))]);
    for page in [
        crate::report::text::render(session.report(), crate::report::text::Paint::Plain),
        crate::report::markdown::render(session.report()).replace('\\', ""),
        crate::report::html::render(session.report()),
    ] {
        assert!(page.contains("233,024") && page.contains("predicted to fail, the first one"), "{page}");
        assert!(page.contains("fused_lora_xw_kernel_i64"), "{page}");
    }
}

#[test]
fn a_report_that_is_fed_counts_as_one_that_ran() {
    let mut session = incident();
    feed(&mut session, &recorded());
    assert_eq!(overflow(&session).0, Certainty::Proven);
    assert_eq!(outcome(&session).0, "confirmed");
}

/// The recorded report, changed: what must keep it from proving this log's cause.
#[test]
fn what_disagrees_with_the_log_raises_nothing() {
    let change = |path: &str, value: serde_json::Value| {
        let mut report: serde_json::Value = serde_json::from_str(&recorded()).unwrap();
        *report.pointer_mut(path).unwrap() = value;
        report.to_string()
    };
    let trials = |report: &str| report.replace("illegal_address", "misaligned_address");
    for (report, reason) in [
        (
            change("/kernel/entry", "no_mask_kernel_2".into()),
            "nothing in the inputs leads to no_mask_kernel_2",
        ),
        (
            change("/kernel/source", "reference".into()),
            "the reference kernel shows the arithmetic and not your kernel",
        ),
        (change("/boundary/first_fail", 233_040.into()), "its trials don't bear that out"),
        (change("/trials/0/outcome", "illegal_address".into()), "its trials don't bear that out"),
        (change("/control/trials/0/outcome", "illegal_address".into()), "its trials don't bear that out"),
        (trials(&recorded()), "its trials don't bear that out"),
        (recorded().replace("233008", "107360").replace("233024", "107376"), "has its boundary elsewhere"),
        (change("/sweep", serde_json::Value::Null), "has its boundary elsewhere"),
    ] {
        let mut session = incident();
        feed(&mut session, &report);
        let (certainty, summary) = overflow(&session);
        assert_eq!(certainty, Certainty::Supported, "{reason}: {summary}");
        let check = session.verdict().checks.iter().find(|check| check.id == "probe").unwrap();
        assert_eq!(check.status, CheckStatus::Unknown);
        assert!(check.reading.contains(reason), "{reason}: {}", check.reading);
        let (outcome, reading) = outcome(&session);
        assert_eq!(outcome, "inconclusive", "{reading}");
        assert!(reading.contains(reason), "{reading}");
    }
}

#[test]
fn a_size_below_the_boundary_is_not_proven() {
    let log = std::fs::read_to_string(folder("triton-int32-wrap").join("run.log")).unwrap();
    let mut session = Session::new();
    let small =
        InputSpec::Text { name: "run.log".to_owned(), bytes: log.replace("234624", "232960").into_bytes() };
    let report = folder("triton-int32-wrap-probe").join("probe.json");
    let specs = [small, InputSpec::Path(folder("triton-cache")), InputSpec::Path(report)];
    session.apply(Input::Loaded(load(&specs, Limits::default())));
    assert!(session.verdict().hypotheses.iter().all(|one| one.certainty < Certainty::Proven));
    let check = session.verdict().checks.iter().find(|check| check.id == "probe").unwrap();
    assert!(check.reading.contains("does not lie past the boundary"), "{}", check.reading);
}

#[test]
fn a_refuted_boundary_lowers_the_cause_and_says_so() {
    let mut report: serde_json::Value = serde_json::from_str(&recorded()).unwrap();
    for trial in report["trials"].as_array_mut().unwrap() {
        trial["outcome"] = "pass".into();
    }
    report["boundary"] = serde_json::json!({"last_pass": 349_536, "first_fail": null});
    report["conclusion"] = "refuted".into();
    report["why"] = "it passes at M = 233,024, where it was predicted to fail".into();
    let mut session = incident();
    feed(&mut session, &report.to_string());
    let (certainty, summary) = overflow(&session);
    assert_eq!(certainty, Certainty::Suspected);
    assert!(summary.starts_with("contradicted: a probe reran fused_lora_xw_kernel"), "{summary}");
    assert_eq!(outcome(&session).0, "refuted");
    assert_eq!(session.walk().current().unwrap().at.step, "not-this-shape");

    // A refuted one and a confirmed one: neither counts.
    feed(&mut session, &recorded());
    let (certainty, summary) = overflow(&session);
    assert_eq!(certainty, Certainty::Supported);
    assert!(summary.starts_with("two probes disagree"), "{summary}");
    let said = outcome(&session);
    assert_eq!(said.0, "inconclusive");
    assert!(said.1.starts_with("Not settled: two probes disagree: a probe reran"), "{}", said.1);

    let mut session = incident();
    report["conclusion"] = "inconclusive".into();
    feed(&mut session, &report.to_string());
    assert_eq!(overflow(&session).0, Certainty::Supported);
    assert!(outcome(&session).1.contains("which settles nothing"), "{}", outcome(&session).1);
}

/// The numbers stand in the dump: nothing is guessed.
#[test]
fn a_core_dump_gives_the_arguments() {
    let mut session = Session::new();
    session.apply(Input::Loaded(files(&[folder("triton-coredump")])));
    walk(&mut session, WalkInput::Start("index-overflow".to_owned()));
    let Act::Run(prepared) = &session.walk().step(&step()).unwrap().act else { panic!() };
    assert_eq!(prepared.needs, []);
    let words: Vec<&str> = prepared.command.iter().map(String::as_str).skip(3).collect();
    assert_eq!(
        words,
        [
            "--entry",
            "scatter_rows",
            "--set",
            "first_row=262144",
            "--set",
            "n_cols=4096",
            "--set",
            "n_rows=300000",
            "--set",
            "row_stride=8192",
            "--sweep",
            "first_row",
            "--grid",
            "1,1,1",
            "--format",
            "json"
        ]
    );
}

#[test]
fn what_is_wanted_is_said_and_nothing_runs_without_it() {
    let mut session = Session::new();
    let log = InputSpec::Text {
        name: "paste".to_owned(),
        bytes: b"RuntimeError: CUDA error: an illegal memory access was encountered\n".to_vec(),
    };
    session.apply(Input::Loaded(load(&[log, InputSpec::Path(folder("triton-cache"))], Limits::default())));
    walk(&mut session, WalkInput::Start("index-overflow".to_owned()));
    let shown = session.walk().step(&step()).unwrap();
    let Act::Run(prepared) = &shown.act else { panic!("{:?}", shown.act) };
    let names: Vec<&str> = prepared.needs.iter().map(|need| need.name.as_str()).collect();
    assert_eq!(names, ["--entry KERNEL", "--set NAME=VALUE"]);
    let effects = walk(&mut session, WalkInput::Propose { step: step(), edited: None });
    let [_, Effect::Refuse(why)] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(why.contains("--entry KERNEL"), "{why}");
}

/// A run of a step's own command that printed this and ended with status 2.
fn refused(session: &mut Session, at: &StepRef, words: &[String], output: &str) {
    let ran = Ran {
        command: words.to_vec(),
        environment: Vec::new(),
        ended: Ended::Exit(2),
        duration_ms: 5,
        output_bytes: output.len() as u64,
        log: None,
        input: None,
    };
    let spec = InputSpec::Text { name: "output".to_owned(), bytes: output.as_bytes().to_vec() };
    let output = load(&[spec], Limits::default());
    walk(session, WalkInput::Ended { step: at.clone(), ran, output });
}

#[test]
fn what_a_run_asked_for_is_filled_in_at_the_next() {
    let mut session = incident();
    walk(&mut session, WalkInput::Start("index-overflow".to_owned()));
    for step in ["probe", "repro"] {
        let at = StepRef::new("index-overflow", step);
        let command = |session: &Session| match &session.walk().step(&at).unwrap().act {
            Act::Run(prepared) => (**prepared).clone(),
            other => panic!("{other:?}"),
        };
        let planned = command(&session);
        assert_eq!(planned.needs, [], "{step}");
        let mut words = planned.command.clone();
        words.extend(["--set".to_owned(), "typed=1".to_owned()]);
        let said = "warpfault: 1 part can't be told\n  set --set n=NUMBER: nothing gives it; --rm -rf\n";
        refused(&mut session, &at, &words, said);
        let asked = command(&session);
        assert_eq!(asked.command, words, "what was typed before stays");
        let names: Vec<&str> = asked.needs.iter().map(|need| need.name.as_str()).collect();
        assert_eq!(names, ["--set n="], "{step}");
        // Another end leaves nothing to fill in.
        refused(&mut session, &at, &words, "warpfault: the driver shows no GPU\n");
        assert_eq!(command(&session), planned, "{step}");
        refused(&mut session, &at, &words, said);
    }
    // An input that comes later belongs to the repro: its command is worked out anew.
    session.apply(Input::Loaded(load(&[InputSpec::Path(folder("ptx"))], Limits::default())));
    let at = StepRef::new("index-overflow", "repro");
    let Act::Run(prepared) = &session.walk().step(&at).unwrap().act else { panic!() };
    assert!(prepared.needs.is_empty() && prepared.command.iter().any(|word| word.contains("samples/ptx")));
}

#[test]
fn why_a_probe_could_not_run_is_found_in_what_it_printed() {
    let output = b"$ warpfault probe x\nnoise\nwarpfault: the driver shows no GPU\r\n  run it where the GPU is\r\nexit status 2\n";
    assert_eq!(said(output).as_deref(), Some("the driver shows no GPU (run it where the GPU is)"));
    assert_eq!(said(b"nothing of it\n"), None);
}

/// The files of a cache entry, without the dump and the logs beside it.
fn scatter_entry() -> Vec<InputSpec> {
    let names = ["scatter_rows.ttir", "scatter_rows.json", "scatter_rows.ptx", "__grp__scatter_rows.json"];
    names.iter().map(|name| InputSpec::Path(folder("triton-coredump").join(name))).collect()
}

fn scatter_trace(with_compilation: bool) -> InputSpec {
    let name = "dedicated_log_triton_trace_user_rank_none_pid_543_.ndjson";
    let text = std::fs::read_to_string(folder("tritonparse-scatter").join(name)).unwrap();
    let is_kept = |line: &&str| with_compilation || !line.contains("\"event_type\":\"compilation\"");
    let kept: String = text.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect();
    InputSpec::Text { name: "trace.ndjson".to_owned(), bytes: kept.into_bytes() }
}

/// The trace has the arguments, the cache the kernel: their hash joins them, with the trace's own compilation and without.
#[test]
fn a_trace_gives_the_arguments_of_the_cache_entry_of_its_compilation() {
    for with_compilation in [true, false] {
        let mut specs = scatter_entry();
        specs.push(scatter_trace(with_compilation));
        specs.push(InputSpec::Path(folder("tritonparse-scatter").join("run.log")));
        let mut session = Session::new();
        session.apply(Input::Loaded(load(&specs, Limits::default())));
        let (certainty, summary) = overflow(&session);
        assert!(
            summary.contains("it wraps with the exact arguments of the last traced launch (n_rows 300,000, n_cols 4,096, row_stride 8,192, first_row 262,144"),
            "{summary}"
        );
        assert_eq!(certainty, Certainty::Supported);
        walk(&mut session, WalkInput::Start("index-overflow".to_owned()));
        let shown = session.walk().step(&step()).unwrap();
        let Act::Run(prepared) = &shown.act else { panic!() };
        assert_eq!(prepared.needs, []);
        let text = prepared.command.join(" ");
        let arguments = "--entry scatter_rows --set first_row=262144 --set n_cols=4096 --set n_rows=300000 --set row_stride=8192";
        assert!(text.contains(arguments), "{text}");
        let from = shown.shows.as_deref().unwrap();
        assert!(from.contains("row_stride = 8192 (of the last traced launch)"), "{from}");
    }
}

/// A cache entry of another compilation has other code, and perhaps other parameters.
#[test]
fn another_compilation_is_not_the_traced_one() {
    let mut specs = scatter_entry();
    let InputSpec::Text { name, bytes } = scatter_trace(false) else { panic!() };
    let other = String::from_utf8(bytes).unwrap().replace("85616111c467ad23", "0000000000000000");
    specs.push(InputSpec::Text { name, bytes: other.into_bytes() });
    specs.push(InputSpec::Path(folder("tritonparse-scatter").join("run.log")));
    let mut session = Session::new();
    session.apply(Input::Loaded(load(&specs, Limits::default())));
    let said = session.verdict().hypotheses.iter().any(|one| one.summary.contains("exact arguments"));
    assert!(!said, "{:?}", session.verdict().hypotheses);
}

/// The dump numbers its arguments, the TTIR beside it has their names.
#[test]
fn a_dump_and_the_cache_entry_name_the_arguments() {
    let mut specs = scatter_entry();
    specs.push(InputSpec::Path(folder("triton-coredump").join("core.nvcudmp.gz")));
    let mut session = Session::new();
    session.apply(Input::Loaded(load(&specs, Limits::default())));
    let (certainty, summary) = overflow(&session);
    assert_eq!(certainty, Certainty::Supported);
    assert!(
        summary.contains("row 262,144 × row_stride 8,192 + 0, and that row is first_row plus"),
        "{summary}"
    );
    let check = session.verdict().checks.iter().find(|check| check.id == "faulting-launch").unwrap();
    assert_eq!(check.status, CheckStatus::Holds);
    assert!(check.reading.contains("n_rows=300000, n_cols=4096, row_stride=8192, first_row=262144"));
    let fault = session.verdict().places.fault.clone().unwrap();
    // Every lane of the warp raised it: its first thread is no likelier than the others.
    assert_eq!((fault.block, fault.thread), (Some([0, 0, 0]), None));
    assert_eq!(
        (fault.file.as_deref().map(|f| f.ends_with("more_cases.py")), fault.line),
        (Some(true), Some(30))
    );
}
