//! The way through steps and playbooks that the evidence, the answers and the outcomes make.
//!
//! In: a walker and the first playbook. Out: [`Path`]. It waits at the first step that needs the engineer, ends at `end`,
//! and stops where it would go round in a circle.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::known::Known;
use super::super::record::StepRef;
use super::super::schema::{Outcome, Playbook, Source, Step, StepKind, name_of};
use super::act;
use super::judge::{Judgement, judge};
use super::{End, OutcomeRow, StepState, WalkStep, Walker, sentence, shown};

/// The way so far.
pub(super) struct Path {
    pub steps: Vec<WalkStep>,
    pub current: Option<usize>,
    pub end: Option<End>,
}

/// Where the walk goes from a step.
enum Next {
    Step(StepRef),
    End(End),
}

/// Follows the walk from the first step of a playbook.
pub(super) fn follow(walker: &Walker<'_>, first: &Playbook, known: &mut Known) -> Path {
    let mut path = Path { steps: Vec::new(), current: None, end: None };
    let mut seen: BTreeSet<StepRef> = BTreeSet::new();
    let mut at = first.steps.first().map(|step| StepRef::new(&first.id, &step.id));
    let mut last_playbook = first.id.clone();
    while let Some(here) = at.take() {
        let Some((playbook, step)) = find(walker, &here) else {
            path.end = Some(End::Lost(here.playbook));
            break;
        };
        last_playbook.clone_from(&playbook.id);
        if !seen.insert(here.clone()) {
            path.current = path.steps.iter().position(|step| step.at == here);
            path.end = Some(End::Repeats(here));
            break;
        }
        let judgement = judge(walker, &here, step, known);
        if let Some(outcome) = judgement.outcome {
            known.put(&format!("outcomes.{}", name_of(&step.id)), outcome.id.as_str());
        }
        path.steps.push(view(walker, &here, step, &judgement, known));
        if judgement.waits {
            path.current = Some(path.steps.len() - 1);
            break;
        }
        match next(walker, playbook, step, &judgement) {
            Next::Step(next) => at = Some(next),
            Next::End(end) => path.end = Some(end),
        }
    }
    rest(walker, &last_playbook, &seen, known, &mut path);
    path
}

fn find<'a>(walker: &Walker<'a>, at: &StepRef) -> Option<(&'a Playbook, &'a Step)> {
    let playbook = walker.library.get(&at.playbook)?;
    playbook.step(&at.step).map(|(_, step)| (playbook, step))
}

fn next(walker: &Walker<'_>, playbook: &Playbook, step: &Step, judgement: &Judgement<'_>) -> Next {
    let goto = match judgement.outcome {
        Some(outcome) => outcome.goto.as_ref(),
        None if judgement.state == StepState::Skipped => only_way(step),
        None => None,
    };
    let Some(goto) = goto.map(|source| source.text.as_str()) else {
        let following = playbook.step(&step.id).and_then(|(at, _)| playbook.steps.get(at + 1));
        return match following {
            Some(step) => Next::Step(StepRef::new(&playbook.id, &step.id)),
            None => Next::End(End::Reached),
        };
    };
    if goto == "end" {
        return Next::End(End::Reached);
    }
    if playbook.step(goto).is_some() {
        return Next::Step(StepRef::new(&playbook.id, goto));
    }
    match walker.library.get(goto).and_then(|other| Some((other, other.steps.first()?))) {
        Some((other, step)) => Next::Step(StepRef::new(&other.id, &step.id)),
        None => Next::End(End::Lost(goto.to_owned())),
    }
}

/// Where every outcome leads: a step that is passed by leads there too.
fn only_way(step: &Step) -> Option<&Source> {
    let first = step.outcomes.first()?.goto.as_ref()?;
    let same = |outcome: &Outcome| outcome.goto.as_ref().is_some_and(|goto| goto.text == first.text);
    step.outcomes.iter().all(same).then_some(first)
}

/// The steps of the last playbook that the walk has not come to. What the evidence or the engineer has answered there
/// already is shown so.
fn rest(walker: &Walker<'_>, playbook: &str, seen: &BTreeSet<StepRef>, known: &mut Known, path: &mut Path) {
    let Some(playbook) = walker.library.get(playbook) else { return };
    let over = path.end.is_some();
    for step in &playbook.steps {
        let at = StepRef::new(&playbook.id, &step.id);
        if seen.contains(&at) {
            continue;
        }
        let mut judgement = judge(walker, &at, step, known);
        let told = walker.record.last(&at).is_some()
            || (!over && matches!(judgement.state, StepState::Answered | StepState::Aside));
        if !told {
            judgement = Judgement::new(if over { StepState::Aside } else { StepState::Ahead });
        }
        path.steps.push(view(walker, &at, step, &judgement, known));
    }
}

fn view(
    walker: &Walker<'_>,
    at: &StepRef,
    step: &Step,
    judgement: &Judgement<'_>,
    known: &Known,
) -> WalkStep {
    let tree = Arc::new(known.clone());
    let act = act::act(step, &tree, walker.unavailable, walker.probe, walker.repro);
    let outcomes: Vec<OutcomeRow> = step
        .outcomes
        .iter()
        .map(|outcome| OutcomeRow {
            id: outcome.id.clone(),
            reading: sentence(&outcome.reading.text, &tree).0,
            taken: judgement.outcome.is_some_and(|taken| taken.id == outcome.id),
            goto: outcome.goto.as_ref().map(|goto| goto.text.clone()),
        })
        .collect();
    let reading = outcomes.iter().find(|row| row.taken).map(|row| row.reading.clone());
    // Working with holes in it teaches nothing.
    let shows = step.shows.as_ref().map(|shows| sentence(&shows.text, &tree));
    WalkStep {
        at: at.clone(),
        kind: step.kind,
        title: shown(&step.title),
        why: shown(&step.why),
        cost: shown(&step.cost),
        misread: step.misread.as_deref().map(shown),
        state: judgement.state,
        shows: shows
            .and_then(|(text, needs)| needs.is_empty().then_some(text))
            .or_else(|| answer(step, judgement, known)),
        reading: reading.or_else(|| unknown(step, judgement, &act, &tree)),
        outcome: judgement.outcome.map(|outcome| outcome.id.clone()),
        outcomes,
        needs: judgement.needs.clone(),
        act,
        references: step.references.iter().map(|reference| shown(reference)).collect(),
    }
}

/// What a question was answered with, by the evidence or by the engineer.
fn answer(step: &Step, judgement: &Judgement<'_>, known: &Known) -> Option<String> {
    if step.kind != StepKind::Ask || !matches!(judgement.state, StepState::Answered | StepState::Done) {
        return None;
    }
    match known.get(&format!("answers.{}", name_of(&step.id)))? {
        Known::Text(text) => Some(format!("answer: {}", shown(text))),
        Known::Int(number) => Some(format!("answer: {}", crate::text::number::grouped_signed(*number))),
        Known::Bool(yes) => Some(format!("answer: {}", if *yes { "yes" } else { "no" })),
        _ => None,
    }
}

/// What it means that nothing tells, and what would.
fn unknown(step: &Step, judgement: &Judgement<'_>, act: &act::Act, known: &Arc<Known>) -> Option<String> {
    if let Some(fault) = &judgement.fault {
        return Some(format!("a condition of this step can't be evaluated: {}", shown(fault)));
    }
    if !matches!(judgement.state, StepState::Unknown | StepState::Done | StepState::Answered) {
        return None;
    }
    if let act::Act::Room { unavailable: Some(why), .. } = act {
        return Some((*why).to_owned());
    }
    if let Some(text) = &step.unknown {
        return Some(sentence(&text.text, known).0);
    }
    if step.outcomes.is_empty() || (judgement.state == StepState::Done && step.kind.is_picked()) {
        return None;
    }
    Some(if judgement.needs.is_empty() {
        "none of the known outcomes fits".to_owned()
    } else {
        format!("not known; this needs {}", judgement.needs.join(", "))
    })
}
