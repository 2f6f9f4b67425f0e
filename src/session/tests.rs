//! Walks through the recorded incidents: inputs in, what the engineer reads out.

use super::*;
use crate::playbook::walk::{Act, End};
use crate::playbook::{Ran, StepRef, StepState, record::Ended};
use crate::source::{InputSpec, Limits, load};

mod commands;
mod reruns;

fn sample(name: &str, files: &[&str]) -> source::Loaded {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name);
    let specs: Vec<InputSpec> = files.iter().map(|file| InputSpec::Path(folder.join(file))).collect();
    load(&specs, Limits::default())
}

fn text(name: &str, text: &str) -> source::Loaded {
    load(&[InputSpec::Text { name: name.to_owned(), bytes: text.as_bytes().to_vec() }], Limits::default())
}

fn opened(loaded: source::Loaded) -> Session {
    let mut session = Session::new();
    session.apply(Input::Loaded(loaded));
    session
}

fn at(step: &str) -> StepRef {
    StepRef::new("index-overflow", step)
}

fn walk(session: &mut Session, input: WalkInput) -> Vec<Effect> {
    session.apply(Input::Walk(input))
}

fn current(session: &Session) -> String {
    session.walk().current().map(|step| step.at.step.clone()).unwrap_or_default()
}

fn advice(session: &Session, step: &str) -> String {
    match &session.walk().step(&at(step)).unwrap().act {
        Act::Apply { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// From opening the log to cap, fix and verification: an input each is a key press.
#[test]
fn the_overflow_walk_takes_at_most_six_key_presses() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log", "dmesg.log"]));
    let mut presses = 1;
    assert_eq!(session.walk().playbook.as_deref(), Some("index-overflow"));
    let mut press = |session: &mut Session, input: WalkInput| {
        presses += 1;
        walk(session, input)
    };
    assert_eq!(current(&session), "launch-blocking");
    press(&mut session, WalkInput::Skip(at("launch-blocking")));
    assert_eq!(current(&session), "phase");
    press(&mut session, WalkInput::Answer { step: at("phase"), typed: "the whole input".to_owned() });
    assert_eq!(current(&session), "triton-debug");
    press(&mut session, WalkInput::Skip(at("triton-debug")));
    assert_eq!(current(&session), "memcheck");
    press(&mut session, WalkInput::Skip(at("memcheck")));
    assert_eq!(current(&session), "verify");
    assert!(presses <= 6, "{presses} key presses");

    let product = session.walk().step(&at("product")).unwrap();
    assert_eq!(product.state, StepState::Answered);
    assert_eq!(
        product.shows.as_deref(),
        Some(
            "M 234,624 × intermediate_size 9,216 = 2,162,294,784 elements; largest index 2,162,294,783; a signed 32-bit index ends at 2,147,483,647."
        )
    );
    assert!(product.reading.as_deref().unwrap().starts_with(
        "2,162,294,784 elements are 14,811,137 past 2,147,483,647 (0.69 %). Formed in 32 bits, the index wraps; 233,016 is"
    ));
    assert!(advice(&session, "cap").starts_with("Cap rows at 233,016 for rows of 9,216 elements"));
    assert!(advice(&session, "widen").starts_with("Widen the row index to 64 bits before multiplying"));
    assert!(
        advice(&session, "verify")
            .starts_with("Verify at 232,960 / 234,624 / 333,312 rows of 9,216 elements")
    );
}

#[test]
fn the_blocking_log_moves_the_fault_and_shows_both_chains() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    let before = session.verdict().clone();
    assert_eq!(before.places.fault.as_ref().and_then(|fault| fault.line), None);
    assert_eq!(before.asynchronous, Some(true));
    walk(
        &mut session,
        WalkInput::Feed {
            step: at("launch-blocking"),
            output: sample("triton-int32-wrap-blocking", &["run.log"]),
        },
    );
    let verdict = session.verdict();
    assert_eq!(verdict.class.name(), "illegal_address");
    let notice = verdict.places.notice.as_ref().unwrap();
    assert_eq!(notice.line, Some(60));
    let fault = verdict.places.fault.as_ref().unwrap();
    assert!(fault.file.as_deref().unwrap().ends_with("triton_cases.py"));
    assert_eq!(fault.line, Some(49));
    assert_eq!(verdict.asynchronous, Some(true), "the first run was asynchronous, and stays so");
    assert_eq!(verdict.failures.iter().filter(|failure| failure.at.input.0 == 1).count(), 0);

    let step = session.walk().step(&at("launch-blocking")).unwrap();
    assert_eq!((step.state, step.outcome.as_deref()), (StepState::Done, Some("moved")));
    let reading = step.reading.as_deref().unwrap();
    assert!(reading.contains("noticed at triton_cases.py:60, launched at triton_cases.py:49"), "{reading}");

    let chains = session.chains();
    assert_eq!(chains.iter().map(|chain| chain.blocking).collect::<Vec<_>>(), [false, true]);
    assert_eq!(chains[0].words(), "triton_cases.py:69 <module> → triton_cases.py:60 forward");
    assert_eq!(
        chains[1].words(),
        "triton_cases.py:69 <module> → triton_cases.py:60 forward → triton_cases.py:57 forward → triton_cases.py:54 forward → triton_cases.py:49 xw"
    );
}

#[test]
fn triton_debug_names_the_line() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    walk(
        &mut session,
        WalkInput::Feed {
            step: at("triton-debug"),
            output: sample("triton-int32-wrap-triton-debug", &["run.log"]),
        },
    );
    let step = session.walk().step(&at("triton-debug")).unwrap();
    assert_eq!(
        step.reading.as_deref(),
        Some("Triton names the overflow: int32 overflow detected for operation mul at triton_cases.py:18.")
    );
    assert_eq!(session.verdict().class.name(), "illegal_address", "a rerun's failure is no second incident");
}

#[test]
fn bad_input_is_refused_with_a_reason_and_changes_nothing() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    let before = session.walk().clone();
    let refused = |session: &mut Session, input: WalkInput| match walk(session, input).as_slice() {
        [Effect::Show, Effect::Refuse(why)] => why.clone(),
        other => panic!("{other:?}"),
    };
    let session = &mut session;
    assert!(refused(session, WalkInput::Start("nothing".to_owned())).contains("no playbook `nothing`"));
    assert!(refused(session, WalkInput::Skip(at("nothing"))).contains("no step `nothing`"));
    let answer = WalkInput::Answer { step: at("phase"), typed: "perhaps".to_owned() };
    assert!(refused(session, answer).contains("choose the whole input or a shard or not known"));
    let answer = WalkInput::Answer { step: at("cap"), typed: "5".to_owned() };
    assert!(refused(session, answer).contains("asks nothing"));
    let choose = WalkInput::Choose { step: at("verify"), outcome: "maybe".to_owned() };
    assert!(refused(session, choose).contains("it has passes, fails"));
    assert!(refused(session, WalkInput::Stop).contains("no command is running"));
    let feed = WalkInput::Feed { step: at("cap"), output: text("x", "x") };
    assert!(refused(session, feed).contains("runs no command"));
    let mut after = session.walk().clone();
    after.playbook.clone_from(&before.playbook);
    assert_eq!(after, before);
}

#[test]
fn an_answer_may_be_changed_and_the_walk_may_go_back() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    for step in ["launch-blocking", "triton-debug", "memcheck"] {
        walk(&mut session, WalkInput::Skip(at(step)));
    }
    walk(&mut session, WalkInput::Answer { step: at("phase"), typed: "a shard".to_owned() });
    let phase = |session: &Session| session.walk().step(&at("phase")).unwrap().outcome.clone();
    assert_eq!(phase(&session).as_deref(), Some("shard"));
    walk(&mut session, WalkInput::Answer { step: at("phase"), typed: "not known".to_owned() });
    assert_eq!(phase(&session).as_deref(), Some("not-known"));
    walk(&mut session, WalkInput::Choose { step: at("verify"), outcome: "fails".to_owned() });
    assert_eq!(session.walk().end, Some(End::Repeats(at("widen"))));
    assert_eq!(current(&session), "widen");
    walk(&mut session, WalkInput::Reopen(at("verify")));
    assert_eq!(current(&session), "verify");
    walk(&mut session, WalkInput::Choose { step: at("verify"), outcome: "passes".to_owned() });
    walk(&mut session, WalkInput::Choose { step: at("prevent"), outcome: "done".to_owned() });
    assert_eq!((session.walk().end.clone(), session.walk().current), (Some(End::Reached), None));
}

#[test]
fn a_typed_shape_is_measured_and_counts() {
    let mut session =
        opened(text("paste", "RuntimeError: CUDA error: an illegal memory access was encountered\n"));
    walk(&mut session, WalkInput::Start("index-overflow".to_owned()));
    assert_eq!(current(&session), "shape");
    walk(&mut session, WalkInput::Answer { step: at("shape"), typed: "70000x32768".to_owned() });
    assert!(advice(&session, "cap").starts_with("Cap rows at 65,536 for rows of 32,768 elements"));
}

#[test]
fn a_saved_history_leads_to_the_same_walk() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    walk(
        &mut session,
        WalkInput::Feed {
            step: at("launch-blocking"),
            output: sample("triton-int32-wrap-blocking", &["run.log"]),
        },
    );
    walk(&mut session, WalkInput::Answer { step: at("phase"), typed: "a shard".to_owned() });
    let saved = serde_json::to_string(session.record()).unwrap();

    let mut again = Session::new();
    again.apply(Input::Loaded(sample("triton-int32-wrap", &["run.log"])));
    again.apply(Input::Loaded(sample("triton-int32-wrap-blocking", &["run.log"])));
    walk(&mut again, WalkInput::Restore(Box::new(serde_json::from_str(&saved).unwrap())));
    assert_eq!(again.walk(), session.walk());
    assert_eq!(again.verdict().places, session.verdict().places);
}

#[test]
fn a_sites_own_line_becomes_evidence() {
    let playbook = "schema = 1\n[playbook]\nid = \"acme\"\ntitle = \"Acme\"\nclasses = [\"illegal_address\"]\n[[signature]]\nid = \"acme-fault\"\npattern = 'ACME fault in (?<kernel>\\w+)'\nclass = \"illegal_address\"\nmatch = ['ACME fault in qkv']\n[[step]]\nid = \"which\"\nkind = \"look\"\ntitle = \"t\"\nwhy = \"w\"\ncost = \"none\"\nwhen = \"known('facts.signatures.acme_fault.kernel')\"\n[[step.outcome]]\nwhen = \"facts.signatures.acme_fault.kernel == 'qkv'\"\nreading = \"Kernel {{ facts.signatures.acme_fault.kernel }}.\"\n";
    assert_eq!(crate::playbook::check::file("acme.toml", playbook, &Library::shipped()), []);
    let library = Library::of([("acme.toml".to_owned(), playbook.to_owned())]);
    let mut session = Session::with_library(Arc::new(library));
    session.apply(Input::Loaded(text("log", "[rank2]: ACME fault in qkv\n")));
    assert_eq!(session.verdict().class.name(), "illegal_address");
    assert_eq!(session.verdict().root_rank, Some(2));
    walk(&mut session, WalkInput::Start("acme".to_owned()));
    let step = session.walk().step(&StepRef::new("acme", "which")).unwrap();
    assert_eq!(step.reading.as_deref(), Some("Kernel qkv."));
}

#[test]
fn what_was_done_stands_in_every_report() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    let stamp = Stamp { at: Some("2026-01-02T03:04:05Z".to_owned()), by: Some("ann".to_owned()) };
    session.set_stamp(stamp);
    session.apply(Input::Walk(WalkInput::Skip(at("launch-blocking"))));
    let typed = "a shard".to_owned();
    session.apply(Input::Walk(WalkInput::Answer { step: at("phase"), typed }));
    let mut report = session.report().clone();
    let did: Vec<&str> = report.history.iter().map(|entry| entry.did.as_str()).collect();
    assert_eq!(did, ["skipped", "answered: a shard"]);
    if let Some(entry) = report.history.last_mut() {
        entry.did = "answered: <b>|`x`".to_owned();
    }
    let text = report::text::render(&report, report::text::Paint::Plain);
    assert!(
        text.contains("what was tried\n  2026-01-02T03:04:05Z, ann  Rerun with launch blocking: skipped"),
        "{text}"
    );
    let markdown = report::markdown::render(&report);
    assert!(markdown.contains("### What was tried") && !markdown.contains("<b>|`x`"), "{markdown}");
    let html = report::html::render(&report);
    assert!(html.contains("<h2>What was tried</h2>") && html.contains("&lt;b&gt;|`x`"));
    let redacted = report::redact::redact(report);
    assert_eq!(redacted.history[0].by.as_deref(), Some("USER-1"));
}

/// The compiled kernels among the inputs answer their step, and nobody is asked.
#[test]
fn compiled_kernels_answer_their_step() {
    let both = |entries: &[&str]| {
        let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
        session.apply(Input::Loaded(sample("triton-cache", entries)));
        walk(&mut session, WalkInput::Start("index-overflow".to_owned()));
        session
    };
    let kernel = |session: &Session| {
        let step = session.walk().step(&at("kernel")).unwrap().clone();
        (step.outcome.unwrap_or_default(), step.reading.unwrap_or_default())
    };
    let session = both(&["HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA"]);
    let (outcome, reading) = kernel(&session);
    assert_eq!(outcome, "wraps");
    assert!(
        reading.starts_with(
            "fused_lora_xw_kernel wraps: first wrap at M=233018 with stride_ym 9,216, offs_m * stride_ym at triton_cases.py:18"
        ),
        "{reading}"
    );
    let alone = opened(sample("triton-int32-wrap", &["run.log"]));
    assert!(alone.walk().step(&at("kernel")).is_none_or(|step| step.outcome.is_none()));
}

#[test]
fn a_source_among_the_inputs_is_checked() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    let check = StepRef::new("triton-review", "source-check");
    walk(&mut session, WalkInput::Start("triton-review".to_owned()));
    let reading =
        |session: &Session| session.walk().step(&check).unwrap().reading.clone().unwrap_or_default();
    assert!(
        reading(&session).ends_with("This reads one: warpfault kernel /home/user/lora/py/triton_cases.py")
    );
    session.apply(Input::Loaded(sample("../tests/fixtures/ttir", &["kernels.py"])));
    assert!(reading(&session).contains("kernels.py:"), "{}", reading(&session));
}

#[test]
fn no_failure_is_said_of_what_could_be_read_only() {
    let all = opened(text("ok.log", "step 1 loss 2.0\n"));
    assert_eq!(all.report().verdict.summary, "No failure in the input.");
    assert_eq!(all.report().verdict.certainty, report::model::Certainty::Supported);
    let spec = InputSpec::Text { name: "ok.log".to_owned(), bytes: b"step 1 loss 2.0\n".to_vec() };
    let some = opened(load(&[spec, InputSpec::Path("/no/such/file".into())], Limits::default()));
    assert_eq!(some.report().verdict.summary, "No failure in what could be read.");
    assert_eq!(some.report().verdict.certainty, report::model::Certainty::Undecided);
}

/// A script that has the word in its name does not make its fault one of Triton.
#[test]
fn only_what_shows_triton_brings_its_review_first() {
    let first = |name: &str, files: &[&str]| opened(sample(name, files)).walk().playbook.clone();
    let cublas = first("torch-cublas-after-ima", &["run.log", "dmesg.log"]);
    assert_eq!(cublas.as_deref(), Some("illegal-address"));
    let refused = first("torch-shared-out-of-resource", &["run.log"]);
    assert_eq!(refused.as_deref(), Some("triton-review"));
}

/// A kernel line of another month is no word on this failure in the playbook either.
#[test]
fn a_kernel_line_that_nothing_ties_to_the_failure_answers_no_step() {
    let log = "2024-11-05 02:44:51,201 INFO step 5\n\
               RuntimeError: CUDA error: an illegal memory access was encountered\n";
    let old = "[Tue Oct  1 09:00:00 2024] NVRM: Xid (PCI:0000:41:00): 31, pid=99, name=python3, Ch 00000008, \
               intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ\n";
    let text =
        |name: &str, text: &str| InputSpec::Text { name: name.to_owned(), bytes: text.as_bytes().to_vec() };
    let step = |kernel_log: &str| {
        let session = opened(load(&[text("run.log", log), text("dmesg.log", kernel_log)], Limits::default()));
        let found = session.walk().step(&StepRef::new("illegal-address", "hardware")).unwrap().clone();
        (found.outcome, session.verdict().apart.holds(session.case().events().last().unwrap().0))
    };
    assert_eq!(step(old), (Some("apart".to_owned()), true));
    let near = old.replace("Tue Oct  1 09:00:00", "Tue Nov  5 02:45:00");
    assert_eq!(step(&near), (Some("program".to_owned()), false));
}
