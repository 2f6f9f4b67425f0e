//! Incidents that are saved, resumed, listed, locked and recognised.

use std::sync::Arc;

use super::*;
use crate::playbook::{Library, StepRef, StepState};
use crate::session::{Input, Session, WalkInput};
use crate::source::{InputSpec, Limits, load};

const NOW: &str = "2026-11-29T21:55:00.123Z";

fn sample(name: &str) -> InputSpec {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name);
    InputSpec::Path(folder.join("run.log"))
}

fn session(specs: &[InputSpec]) -> Session {
    let mut session = Session::new();
    session.apply(Input::Loaded(load(specs, Limits::default())));
    session
}

fn phase() -> StepRef {
    StepRef::new("index-overflow", "phase")
}

#[test]
fn an_incident_is_resumed_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().join("warpfault"));
    let pasted = InputSpec::Text { name: "paste".to_owned(), bytes: b"note: CUDA 13\n".to_vec() };
    let mut session = session(&[sample("triton-int32-wrap"), pasted]);
    let mut incident = store.create(NOW).unwrap();
    assert_eq!(incident.id(), "20261129-215500");
    incident.save(&session, NOW).unwrap();
    let blocking = StepRef::new("index-overflow", "launch-blocking");
    let output = load(&[sample("triton-int32-wrap-blocking")], Limits::default());
    session.apply(Input::Walk(WalkInput::Feed { step: blocking, output }));
    session.apply(Input::Walk(WalkInput::Answer { step: phase(), typed: "a shard".to_owned() }));
    incident.save(&session, "2026-11-29T22:00:00Z").unwrap();
    drop(incident);

    let resumed = resume(&store, "20261129-215500", Library::shipped()).unwrap();
    assert_eq!(resumed.notes, Vec::<String>::new());
    assert_eq!(resumed.session.walk(), session.walk());
    assert_eq!(resumed.session.verdict().places, session.verdict().places);
    assert_eq!(resumed.session.walk().step(&phase()).unwrap().state, StepState::Done);
    let rows = store.list().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].class.as_str(), rows[0].cause.as_deref()),
        ("illegal_address", Some("int32_overflow"))
    );
}

#[test]
fn one_program_at_a_time_works_on_an_incident() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().to_path_buf());
    let session = session(&[sample("triton-int32-wrap")]);
    let mut incident = store.create(NOW).unwrap();
    incident.save(&session, NOW).unwrap();
    let second = store.create(NOW).unwrap();
    assert_eq!(second.id(), "20261129-215500-2");
    let error = resume(&store, "20261129-215500", Library::shipped()).unwrap_err();
    assert_eq!(error.kind(), crate::error::ErrorKind::Refused);
    drop(incident);
    assert!(resume(&store, "20261129-215500", Library::shipped()).is_ok());
}

#[test]
fn ids_name_files_of_the_store_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().join("a"));
    std::fs::write(folder.path().join("secret.json"), "{}").unwrap();
    for id in ["../../secret", "", ".", "a/b", "x\0y"] {
        let error = resume(&store, id, Library::shipped()).unwrap_err();
        assert_eq!(error.kind(), crate::error::ErrorKind::Input, "{id:?}");
    }
}

#[test]
fn gone_and_changed_inputs_are_named_and_the_rest_keeps_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().join("state"));
    let paths: Vec<_> = ["a.log", "b.log", "c.log"].map(|name| folder.path().join(name)).to_vec();
    let specs: Vec<InputSpec> = paths.iter().cloned().map(InputSpec::Path).collect();
    for path in &paths {
        std::fs::write(path, "RuntimeError: CUDA error: an illegal memory access was encountered\n").unwrap();
    }
    let mut incident = store.create(NOW).unwrap();
    incident.save(&session(&specs), NOW).unwrap();
    drop(incident);
    std::fs::remove_file(&paths[0]).unwrap();
    std::fs::write(&paths[1], "all is well\n").unwrap();
    let resumed = resume(&store, "20261129-215500", Library::shipped()).unwrap();
    assert_eq!(resumed.notes.len(), 2);
    assert!(resumed.notes[0].contains("a.log: is gone"));
    assert!(resumed.notes[1].contains("b.log: has changed"));
    let names: Vec<String> =
        resumed.session.inputs().iter().map(|input| input.path.unescaped().to_owned()).collect();
    assert_eq!(names.len(), 3);
    assert!(names[2].ends_with("c.log"));
}

#[test]
fn broken_files_are_passed_over_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().to_path_buf());
    let mut incident = store.create(NOW).unwrap();
    incident.save(&session(&[sample("triton-int32-wrap")]), NOW).unwrap();
    drop(incident);
    let index = folder.path().join("index.jsonl");
    let line = std::fs::read_to_string(&index).unwrap();
    std::fs::write(&index, format!("{line}{}", &line[..40])).unwrap();
    std::fs::write(folder.path().join("incidents/x.json"), "{\"schema\"").unwrap();
    assert_eq!(store.list().unwrap().len(), 1);
    std::fs::remove_file(&index).unwrap();
    assert_eq!(store.list().unwrap().len(), 1, "the list is made anew from the incidents");
    let error = resume(&store, "x", Library::shipped()).unwrap_err();
    assert_eq!(error.kind(), crate::error::ErrorKind::Format);
    let newer = std::fs::read_to_string(folder.path().join("incidents/20261129-215500.json")).unwrap();
    let newer = newer.replace("warpfault/incident/1", "warpfault/incident/9");
    std::fs::write(folder.path().join("incidents/y.json"), newer).unwrap();
    assert!(resume(&store, "y", Library::shipped()).unwrap_err().to_string().contains("this build reads"));
}

/// The same crash on another rank, day and address is the same crash; the walk doesn't change it.
#[test]
fn a_crash_that_was_seen_before_is_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().to_path_buf());
    let mut first = session(&[sample("triton-int32-wrap")]);
    let mut incident = store.create(NOW).unwrap();
    incident.save(&first, NOW).unwrap();
    let before = signature::of(first.verdict()).unwrap();
    let output = load(&[sample("triton-int32-wrap-memcheck")], Limits::default());
    let memcheck = StepRef::new("index-overflow", "memcheck");
    first.apply(Input::Walk(WalkInput::Feed { step: memcheck, output }));
    incident.save(&first, NOW).unwrap();
    assert_eq!(signature::of(first.verdict()).unwrap(), before);
    assert_eq!(before.text, "illegal_address|cuda:700|triton_cases.py|forward|to");

    let log = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/triton-int32-wrap/run.log"),
    )
    .unwrap();
    let other: String = log.lines().map(|line| format!("[rank5]: {line}\n")).collect();
    let other = other.replace("line 60", "line 61").replace("/home/user/lora", "/srv/job7");
    let again = session(&[InputSpec::Text { name: "x".to_owned(), bytes: other.into_bytes() }]);
    let hash = signature::of(again.verdict()).unwrap().hash;
    let seen = store.seen_before(&hash, None).unwrap();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].cause_summary.as_deref().unwrap().contains("wrapped"));
    assert!(store.seen_before(&hash, Some("20261129-215500")).unwrap().is_empty());
}

#[test]
fn a_run_in_flight_is_open_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().to_path_buf());
    let mut session = session(&[sample("triton-int32-wrap")]);
    let step = StepRef::new("index-overflow", "launch-blocking");
    session.apply(Input::Walk(WalkInput::Propose { step: step.clone(), edited: None }));
    session.apply(Input::Walk(WalkInput::Confirm(true)));
    let mut incident = store.create(NOW).unwrap();
    incident.save(&session, NOW).unwrap();
    drop(incident);
    let resumed = resume(&store, "20261129-215500", Arc::clone(&Library::shipped())).unwrap();
    assert_eq!(resumed.session.walk().step(&step).unwrap().state, StepState::Open);
}
