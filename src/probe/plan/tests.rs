//! The search against kernels that are made up: each is a rule from size to outcome.

use super::*;

fn question() -> Question {
    Question {
        lattice: 16,
        predicted: Some(Predicted { last_pass: 233_008, first_fail: 233_024 }),
        reported: Some(234_624),
        asked: vec![333_312],
        most: i64::from(i32::MAX),
    }
}

/// Runs a plan to its end against a rule.
fn walk(question: Question, rule: impl Fn(Step) -> Outcome) -> Plan {
    let mut plan = Plan::new(question);
    while let Some(step) = plan.next_step() {
        plan.record(step, rule(step));
        assert!(plan.done().len() < 100, "the search must end");
    }
    plan
}

fn wraps_from(first: i64) -> impl Fn(Step) -> Outcome {
    move |step| if step.value >= first { Outcome::IllegalAddress } else { Outcome::Pass }
}

fn values(plan: &Plan) -> Vec<i64> {
    plan.done().iter().map(|(step, _)| step.value).collect()
}

#[test]
fn a_prediction_that_holds_takes_no_halving() {
    let plan = walk(question(), wraps_from(233_024));
    assert_eq!(values(&plan), [233_008, 233_024, 234_624, 333_312, 240, 240]);
    let alone = walk(Question { reported: None, asked: vec![], ..question() }, wraps_from(233_024));
    assert_eq!(values(&alone), [233_008, 233_024, 349_536, 240, 240]);
    assert_eq!(plan.boundary(), Boundary { last_pass: Some(233_008), first_fail: Some(233_024) });
    let control = [(233_024, Outcome::Pass), (234_624, Outcome::Pass), (333_312, Outcome::Pass)];
    let conclusion = plan.conclude("M", Some(&control));
    assert_eq!(conclusion.finding, Finding::Confirmed);
    assert_eq!(
        conclusion.why,
        "M = 233,008 passes, 233,024 ends with illegal_address, each in a process of its own; the control passes \
         233,024, 234,624, 333,312"
    );
    assert_eq!(plan.conclude("M", None).finding, Finding::Confirmed);
}

#[test]
fn a_control_that_fails_too_settles_nothing() {
    let plan = walk(question(), wraps_from(233_024));
    let control = [(233_024, Outcome::IllegalAddress)];
    assert_eq!(plan.conclude("M", Some(&control)).finding, Finding::Inconclusive);
    assert_eq!(plan.conclude("M", Some(&[(240, Outcome::Pass)])).finding, Finding::Inconclusive);
}

#[test]
fn a_boundary_elsewhere_is_found_on_the_lattice_and_refutes() {
    for truth in [16 * 10_000 + 5, 300_000, 233_025] {
        let plan = walk(question(), wraps_from(truth));
        let found = plan.boundary();
        let first = (truth + 15) / 16 * 16;
        assert_eq!(found, Boundary { last_pass: Some(first - 16), first_fail: Some(first) }, "{truth}");
        assert!(values(&plan).iter().all(|value| value % 16 == 0));
        assert_eq!(plan.conclude("M", None).finding, Finding::Refuted);
    }
}

#[test]
fn a_kernel_that_never_fails_refutes() {
    let plan = walk(question(), |_| Outcome::Pass);
    assert!(plan.done().iter().all(|(step, _)| step.role != Role::Halving));
    let conclusion = plan.conclude("M", None);
    assert_eq!(conclusion.finding, Finding::Refuted);
    assert!(conclusion.why.contains("predicted to fail"), "{}", conclusion.why);
}

#[test]
fn a_kernel_that_fails_at_every_size_is_no_overflow() {
    let plan = walk(question(), |_| Outcome::IllegalAddress);
    let conclusion = plan.conclude("M", None);
    assert_eq!(conclusion.finding, Finding::Refuted);
    assert!(conclusion.why.starts_with("not an overflow"), "{}", conclusion.why);
    assert_eq!(plan.done().last().map(|(step, _)| step.role), Some(Role::Small));
}

#[test]
fn a_partial_block_that_faults_is_no_overflow() {
    // n elements in blocks of 256 without a guard; the last index would wrap at 2^31.
    let question = Question {
        lattice: 1,
        predicted: None,
        reported: Some(1_000),
        asked: vec![],
        most: i64::from(i32::MAX),
    };
    let partial = |step: Step| if step.value % 256 == 0 { Outcome::Pass } else { Outcome::IllegalAddress };
    let conclusion = walk(question, partial).conclude("n", None);
    assert_eq!(conclusion.finding, Finding::Refuted);
    assert!(conclusion.why.starts_with("not an overflow"), "{}", conclusion.why);
}

#[test]
fn an_access_before_the_start_is_told_apart() {
    let rule = |step: Step| {
        if step.placement == Placement::Start { Outcome::IllegalAddress } else { wraps_from(233_024)(step) }
    };
    let conclusion = walk(question(), rule).conclude("M", None);
    assert_eq!(conclusion.finding, Finding::Refuted);
    assert!(conclusion.why.contains("before the start"), "{}", conclusion.why);
}

#[test]
fn a_hang_ends_the_search_soon() {
    let plan = walk(question(), |_| Outcome::Timeout);
    assert_eq!(plan.done().len(), 2);
    assert_eq!(plan.conclude("M", None).finding, Finding::Inconclusive);
}

#[test]
fn what_bars_one_run_bars_all() {
    for outcome in
        [Outcome::NoKernelImage, Outcome::Driver, Outcome::Garbage, Outcome::Crash, Outcome::NotStarted]
    {
        let plan = walk(question(), |_| outcome);
        assert_eq!(plan.done().len(), 1, "{outcome:?}");
        assert_eq!(plan.conclude("M", None).finding, Finding::Inconclusive);
    }
}

#[test]
fn failures_that_differ_settle_nothing() {
    let rule = |step: Step| match step.value {
        v if v < 233_024 => Outcome::Pass,
        234_624 => Outcome::MisalignedAddress,
        _ => Outcome::IllegalAddress,
    };
    assert_eq!(walk(question(), rule).conclude("M", None).finding, Finding::Inconclusive);
}

#[test]
fn sizes_off_the_lattice_are_refused_with_the_reason() {
    let question = question();
    assert_eq!(question.objection(233_024), None);
    let why = question.objection(233_016).unwrap();
    assert!(why.contains("no multiple of 16") && why.contains("233008 and 233024"), "{why}");
    assert!(question.objection(0).is_some() && question.objection(1 << 40).is_some());
    let plan = Plan::new(Question { reported: Some(233_016), ..question });
    assert!(plan.steps().iter().all(|step| step.value != 233_016));
}

#[test]
fn without_a_prediction_a_boundary_is_only_reported() {
    let question = Question { predicted: None, reported: Some(4_096), asked: vec![1 << 20], ..question() };
    let plan = walk(question.clone(), wraps_from(100_000));
    assert_eq!(plan.boundary(), Boundary { last_pass: Some(99_984), first_fail: Some(100_000) });
    assert_eq!(plan.conclude("M", None).finding, Finding::Inconclusive);
    let plan = walk(question, |_| Outcome::Pass);
    assert_eq!(plan.conclude("M", None).finding, Finding::Refuted);
}
