//! One step: its state, its outcome and its reading.
//!
//! In: a step, what is known, what happened at it. Out: [`Judgement`]. An outcome is taken where its condition holds; the
//! one without a condition only where every other one fails. Unknown is shown and never rounded.

use std::sync::Arc;

use super::super::condition::{self, Truth};
use super::super::known::Known;
use super::super::record::{Ended, Happened, Ran, StepRef};
use super::super::schema::{Action, Outcome, Step, StepKind, name_of};
use super::{StepState, Walker, act};

/// What became of a step.
pub(super) struct Judgement<'a> {
    pub state: StepState,
    pub outcome: Option<&'a Outcome>,
    /// Names without a value that keep it unknown.
    pub needs: Vec<String>,
    /// A note where a condition can't be evaluated.
    pub fault: Option<String>,
    /// Whether the walk waits here.
    pub waits: bool,
}

impl<'a> Judgement<'a> {
    pub(super) fn new(state: StepState) -> Self {
        Self { state, outcome: None, needs: Vec::new(), fault: None, waits: false }
    }

    fn with(state: StepState, picked: Picked<'a>) -> Self {
        Self { outcome: picked.outcome, needs: picked.needs, fault: picked.fault, ..Self::new(state) }
    }
}

/// Judges a step. `known` gets the answer that the evidence has, and what the step's run showed.
pub(super) fn judge<'a>(
    walker: &Walker<'_>,
    at: &StepRef,
    step: &'a Step,
    known: &mut Known,
) -> Judgement<'a> {
    known.put("this", walker.runs.get(at).cloned().unwrap_or_default());
    let tree = Arc::new(known.clone());
    // What happened at a step stays, though its own result may since have made the step needless.
    if let Some(judgement) = happened(walker, at, step, &tree) {
        return judgement;
    }
    let when = held(step.when.as_ref().map(|when| when.text.as_str()), &tree);
    if when.0 == Truth::False {
        return Judgement::new(StepState::Aside);
    }
    if step.kind.is_automatic() {
        let picked = pick(step, &tree);
        let found = picked.outcome.is_some() || (step.outcomes.is_empty() && when.0 == Truth::True);
        return Judgement::with(if found { StepState::Answered } else { StepState::Unknown }, picked);
    }
    if let Some(judgement) = already(step, known, &tree) {
        return judgement;
    }
    if when.0 == Truth::Unknown {
        return Judgement { needs: when.1, ..Judgement::new(StepState::Unknown) };
    }
    if walker.unavailable.contains(&step.kind) {
        return Judgement::new(StepState::Unknown);
    }
    // An advice without outcomes has nothing to report back, and no other step needs a repro: the walk goes on and leaves
    // them open.
    let waits = match step.kind {
        StepKind::Apply => !step.outcomes.is_empty(),
        kind => kind != StepKind::Repro,
    };
    Judgement { waits, ..Judgement::new(StepState::Open) }
}

/// What the history says about the step.
fn happened<'a>(
    walker: &Walker<'_>,
    at: &StepRef,
    step: &'a Step,
    tree: &Arc<Known>,
) -> Option<Judgement<'a>> {
    Some(match walker.record.last(at)? {
        Happened::Skipped => Judgement::new(StepState::Skipped),
        Happened::Applied => Judgement::new(StepState::Done),
        Happened::Started => Judgement { waits: true, ..Judgement::new(StepState::Running) },
        Happened::Chose(id) => {
            let outcome = step.outcomes.iter().find(|outcome| outcome.id == *id)?;
            Judgement { outcome: Some(outcome), ..Judgement::new(StepState::Done) }
        }
        Happened::Ran(ran) if !missing_settings(step, ran).is_empty() => {
            Judgement { needs: missing_settings(step, ran), ..Judgement::new(StepState::Done) }
        }
        // What was to be written is not there.
        Happened::Ran(ran) if step.kind == StepKind::Repro && !matches!(ran.ended, Ended::Exit(0)) => {
            Judgement::with(StepState::Unknown, pick(step, tree))
        }
        // A run that never came as far as the failure leaves its question as it was.
        Happened::Ran(_) if tree.get("this.started") == Some(&Known::Bool(false)) => {
            Judgement::with(StepState::Unknown, pick(step, tree))
        }
        Happened::Answered(_) | Happened::Ran(_) => Judgement::with(StepState::Done, pick(step, tree)),
        Happened::Reopened => return None,
    })
}

/// The playbook's settings that an edited command left out: such a run says nothing about them.
fn missing_settings(step: &Step, ran: &Ran) -> Vec<String> {
    let Action::Run(rerun) = &step.action else { return Vec::new() };
    if !matches!(ran.ended, Ended::Exit(_) | Ended::Signal(_)) {
        return Vec::new();
    }
    let is_set = |name: &String| {
        let start = format!("{name}=");
        ran.environment.iter().any(|(set, _)| set == name)
            || ran.command.iter().any(|word| word.starts_with(&start))
    };
    rerun.environment.iter().map(|(name, _)| name).filter(|name| !is_set(name)).cloned().collect()
}

/// Whether the evidence has answered a step that would otherwise be asked or run.
fn already<'a>(step: &'a Step, known: &mut Known, tree: &Arc<Known>) -> Option<Judgement<'a>> {
    if let Some(answered) = &step.answered
        && held(Some(&answered.text), tree).0 == Truth::True
    {
        return Some(Judgement::with(StepState::Answered, pick(step, tree)));
    }
    let Action::Ask(question) = &step.action else { return None };
    let answer = act::known_answer(question, tree)?;
    known.put(&format!("answers.{}", name_of(&step.id)), answer);
    Some(Judgement::with(StepState::Answered, pick(step, &Arc::new(known.clone()))))
}

/// The outcome that was picked, or what kept it from being picked.
struct Picked<'a> {
    outcome: Option<&'a Outcome>,
    needs: Vec<String>,
    fault: Option<String>,
}

/// The first outcome whose condition holds; the one without a condition where every other one fails.
fn pick<'a>(step: &'a Step, known: &Arc<Known>) -> Picked<'a> {
    let mut picked = Picked { outcome: None, needs: Vec::new(), fault: None };
    let mut all_fail = true;
    for outcome in &step.outcomes {
        let Some(when) = &outcome.when else {
            if all_fail && !step.kind.is_picked() {
                picked.outcome = Some(outcome);
                return picked;
            }
            continue;
        };
        match condition::judge(&when.text, known) {
            Ok(judged) if judged.truth == Truth::True => {
                return Picked { outcome: Some(outcome), needs: Vec::new(), fault: None };
            }
            Ok(judged) => {
                all_fail &= judged.truth == Truth::False;
                picked.needs.extend(judged.needs);
            }
            Err(why) => {
                all_fail = false;
                picked.fault = Some(why);
            }
        }
    }
    picked.needs.sort();
    picked.needs.dedup();
    picked
}

/// A condition that may be absent (it holds) or faulty (it is unknown).
fn held(condition: Option<&str>, known: &Arc<Known>) -> (Truth, Vec<String>) {
    match condition.map(|text| condition::judge(text, known)) {
        None => (Truth::True, Vec::new()),
        Some(Ok(judged)) => (judged.truth, judged.needs),
        Some(Err(_)) => (Truth::Unknown, Vec::new()),
    }
}
