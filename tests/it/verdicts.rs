//! Small logs and what is said of them: each rule with a log that it is for, and one beside it that it is not for.
//!
//! In: logs written here. Out: the report's cause, restart, checks, next steps and sentences.

use serde_json::Value;
use warpfault::report::text::{self, Paint};
use warpfault::session::{Input, Session};
use warpfault::source::{self, InputSpec, Limits};

/// The report of a log as a program reads it.
fn read(log: &str) -> Value {
    serde_json::to_value(session(log).report()).unwrap()
}

/// The report of a log as a person reads it, on one line.
fn shown(log: &str) -> String {
    let shown = text::render(session(log).report(), Paint::Plain);
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn session(log: &str) -> Session {
    let mut session = Session::new();
    let text = InputSpec::Text { name: "run.log".to_owned(), bytes: log.as_bytes().to_vec() };
    session.apply(Input::Loaded(source::load(&[text], Limits::default())));
    session
}

fn check<'a>(report: &'a Value, id: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap_or(&Value::Null)
}

fn next_ids(report: &Value) -> Vec<&str> {
    report["next"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap()).collect()
}

const DIED: &str = "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    loss.item()\nRuntimeError: CUDA error: an illegal memory access was encountered\n";

#[test]
fn a_shape_that_passed_before_is_no_cause() {
    let same =
        "step 1 hidden=(262144, 16384)\nstep 2 hidden=(262144, 16384)\nstep 3 hidden=(262144, 16384)\n";
    let at_start = "attention logits shape (64, 32, 4096, 4096) dtype=torch.bfloat16\nstep 1812 loss 2.113\n";
    for (log, says) in [(same, "passed 2 times before"), (at_start, "to step 1812")] {
        let report = read(&format!("{log}{DIED}"));
        assert_eq!(report["verdict"]["cause"], Value::Null);
        assert_eq!(report["verdict"]["restart"]["advice"], "unknown");
        assert_eq!(check(&report, "shape-passed")["status"], "fails");
        let hypothesis = &report["hypotheses"][0];
        assert_eq!(
            (&hypothesis["cause"], &hypothesis["certainty"]),
            (&"int32_overflow".into(), &"undecided".into())
        );
        assert!(!hypothesis["against"].as_array().unwrap().is_empty());
        assert!(shown(&format!("{log}{DIED}")).contains(says));
    }
}

#[test]
fn the_first_step_past_the_limit_stays_suspected() {
    let growing = "step 1 packed tokens M=131072 N=9216\nstep 2 packed tokens M=200000 N=9216\nstep 3 packed tokens M=234624 N=9216\n";
    let report = read(&format!("{growing}{DIED}"));
    let cause = &report["verdict"]["cause"];
    assert_eq!((&cause["kind"], &cause["certainty"]), (&"int32_overflow".into(), &"suspected".into()));
    assert_eq!(check(&report, "shape-passed"), &Value::Null);
    // Suspected alone: it is pointless only if that is the cause.
    assert_eq!(report["verdict"]["restart"]["advice"], "unknown");
    assert!(report["verdict"]["restart"]["summary"].as_str().unwrap().starts_with("pointless if"));
}
