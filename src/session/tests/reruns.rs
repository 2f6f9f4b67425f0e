//! What a run, or a log of one made elsewhere, shows.
//!
//! In: inputs and the ends of commands. Out: the step's outcome and the next step. It runs nothing.

use super::*;

/// A log that doesn't hold its command: the engineer's word says which step it belongs to.
#[test]
fn a_log_without_its_command_counts_as_its_step() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/triton-int32-wrap-blocking/run.log");
    let log = std::fs::read_to_string(folder).unwrap();
    let (_, without) = log.split_once('\n').unwrap();
    walk(&mut session, WalkInput::Feed { step: at("launch-blocking"), output: text("paste", without) });
    assert_eq!(session.verdict().places.fault.as_ref().unwrap().line, Some(49));
    assert!(session.case().evidence().iter().any(|one| one.provenance == crate::case::Provenance::Answer));
}

#[test]
fn memcheck_of_a_rerun_raises_the_cause() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    let certainty = |session: &Session| session.verdict().cause().map(|cause| cause.certainty);
    assert_eq!(certainty(&session), Some(verdict::Certainty::Suspected));
    walk(
        &mut session,
        WalkInput::Feed { step: at("memcheck"), output: sample("triton-int32-wrap-memcheck", &["run.log"]) },
    );
    assert_eq!(certainty(&session), Some(verdict::Certainty::Supported));
    let step = session.walk().step(&at("memcheck")).unwrap();
    assert_eq!(step.outcome.as_deref(), Some("wrapped"));
    let distance = session.walk().step(&at("distance")).unwrap();
    assert_eq!(distance.state, StepState::Answered);
    assert!(distance.reading.as_deref().unwrap().contains("2,155,253,760, row 233,860"));
}

/// The first run says only that it ended; the rerun says where.
#[test]
fn a_rerun_with_faulthandler_reclassifies() {
    let mut session = opened(text("job.log", "$ python3 triton_cases.py segv\nexit status 139\n"));
    assert_eq!(session.verdict().class.name(), "segfault");
    assert_eq!(session.verdict().places.fault, None);
    assert_eq!(session.walk().playbook.as_deref(), Some("segfault"));
    assert_eq!(current(&session), "python-line");
    walk(
        &mut session,
        WalkInput::Feed {
            step: StepRef::new("segfault", "python-line"),
            output: sample("torch-segv-faulthandler", &["run.log"]),
        },
    );
    let fault = session.verdict().places.fault.clone().unwrap();
    assert_eq!(fault.line, Some(525));
    let step = session.walk().step(&StepRef::new("segfault", "python-line")).unwrap();
    assert_eq!(step.reading.as_deref(), Some("The crash is below __init__.py:525."));
}

fn ended(session: &mut Session, environment: &[(&str, &str)], code: i32) -> (Option<String>, Vec<String>) {
    printed(session, environment, code, "");
    let step = session.walk().step(&at("launch-blocking")).unwrap();
    (step.outcome.clone(), step.needs.clone())
}

/// A run of launch blocking that ended and printed this.
fn printed(session: &mut Session, environment: &[(&str, &str)], code: i32, output: &str) {
    let output = if output.is_empty() { source::Loaded::default() } else { text("run", output) };
    let ran = Ran {
        command: vec!["python3".to_owned()],
        environment: environment.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        ended: Ended::Exit(code),
        duration_ms: 100,
        output_bytes: 0,
        log: None,
        input: None,
    };
    walk(session, WalkInput::Ended { step: at("launch-blocking"), ran, output });
}

/// A rerun that fails in another way than the incident confirms nothing.
#[test]
fn a_run_that_did_not_come_as_far_as_the_failure_shows_nothing() {
    let step = |output: &str, code| {
        let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
        printed(&mut session, &[("CUDA_LAUNCH_BLOCKING", "1")], code, output);
        let step = session.walk().step(&at("launch-blocking")).unwrap();
        (step.state, step.outcome.clone().unwrap(), step.reading.clone().unwrap())
    };
    let import = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import torch\n\
                  ModuleNotFoundError: No module named 'torch'\n";
    for (output, code, why) in [
        (
            "python3: can't open file '/x/a.py': [Errno 2] No such file or directory\nexit status 2\n",
            2,
            "before it did anything",
        ),
        (import, 1, "in another way, python error at a.py:1"),
        ("Segmentation fault (core dumped)\n", 139, "in another way, segfault"),
        ("usage: a.py [-h]\n", 1, "without a failure that is known"),
    ] {
        let (state, outcome, reading) = step(output, code);
        assert_eq!((state, outcome.as_str()), (StepState::Unknown, "not-started"), "{output}");
        assert!(reading.contains(why), "{reading}");
    }
    let again = "RuntimeError: CUDA error: an illegal memory access was encountered\n";
    assert_eq!(step(again, 1).0, StepState::Done);
}

#[test]
fn a_run_that_reran_nothing_is_no_evidence() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    let setting = [("CUDA_LAUNCH_BLOCKING", "1")];
    // The edited command left the setting out: it says nothing about launch blocking.
    assert_eq!(ended(&mut session, &[], 0), (None, vec!["CUDA_LAUNCH_BLOCKING".to_owned()]));
    // `python3: can't open file` ends with 2, a missing program with 127.
    assert_eq!(ended(&mut session, &setting, 2).0.as_deref(), Some("not-started"));
    assert_eq!(ended(&mut session, &setting, 127).0.as_deref(), Some("not-started"));
    assert_eq!(ended(&mut session, &setting, 0).0.as_deref(), Some("passes"));
}

/// What was done is not proposed again; undone, it is.
#[test]
fn a_step_that_was_done_is_no_next_step() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    let first = |session: &Session| session.report().next.first().map(|next| next.id.clone());
    assert_eq!(first(&session).as_deref(), Some("launch-blocking"));
    let again = "RuntimeError: CUDA error: an illegal memory access was encountered\n";
    printed(&mut session, &[("CUDA_LAUNCH_BLOCKING", "1")], 1, again);
    assert_eq!(first(&session).as_deref(), Some("compute-sanitizer"));
    walk(&mut session, WalkInput::Reopen(at("launch-blocking")));
    assert_eq!(first(&session).as_deref(), Some("launch-blocking"));
    // Passed by, it comes after what wasn't.
    walk(&mut session, WalkInput::Skip(at("launch-blocking")));
    assert_eq!(first(&session).as_deref(), Some("compute-sanitizer"));
    assert!(session.report().next.iter().any(|next| next.id == "launch-blocking"));
}

/// An empty log, or one of something else, is no run that passed.
#[test]
fn a_fed_log_has_to_say_how_the_run_ended() {
    let fed = |output: &str| {
        let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
        walk(
            &mut session,
            WalkInput::Feed { step: at("launch-blocking"), output: text("other.log", output) },
        );
        let step = session.walk().step(&at("launch-blocking")).unwrap();
        (step.state, step.outcome.clone().unwrap_or_default())
    };
    for nothing in ["", "ls: no such thing\n", "step 1\nstep 2\n"] {
        assert_eq!(fed(nothing), (StepState::Unknown, "not-started".to_owned()), "{nothing:?}");
    }
    assert_eq!(fed("step 1\nexit status 0\n"), (StepState::Done, "passes".to_owned()));
}
