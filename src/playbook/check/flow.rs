//! Branches: whether they lead somewhere, whether every step is reached, whether every circle has an exit.
//!
//! A step goes where its outcomes go; an outcome without `goto`, and a step without outcomes, go to the next step. A
//! look or compute step that nothing answers goes to the next step too. Skipping is the engineer's choice and counts
//! for neither.

use std::collections::BTreeSet;

use super::super::library::Library;
use super::super::schema::{Playbook, Step};
use super::Doubts;

pub(super) fn check(playbook: &Playbook, library: &Library, doubts: &mut Doubts<'_>) {
    branches(playbook, library, doubts);
    let ways: Vec<Ways> = (0..playbook.steps.len())
        .filter_map(|at| Some(ways(playbook, at, playbook.steps.get(at)?)))
        .collect();
    unreached(playbook, &ways, doubts);
    circles(playbook, &ways, doubts);
}

fn branches(playbook: &Playbook, library: &Library, doubts: &mut Doubts<'_>) {
    for step in &playbook.steps {
        for goto in step.outcomes.iter().filter_map(|outcome| outcome.goto.as_ref()) {
            let target = goto.text.as_str();
            if target == "end" || playbook.step(target).is_some() {
                continue;
            }
            match library.get(target) {
                Some(other) if other.steps.is_empty() => {
                    doubts.at(goto, "step.outcome.goto", format!("playbook `{target}` has no steps"));
                }
                Some(_) => {}
                None => doubts.at(
                    goto,
                    "step.outcome.goto",
                    format!("`{target}` is no step of this playbook, no playbook, and not `end`"),
                ),
            }
        }
    }
}

/// Where a step may go: positions in the playbook.
struct Ways {
    /// Steps by outcome.
    steps: BTreeSet<usize>,
    /// The step after a look that nothing answers.
    unknown: Option<usize>,
    /// Whether an outcome leaves the playbook.
    leaves: bool,
}

fn ways(playbook: &Playbook, at: usize, step: &Step) -> Ways {
    let last = at + 1 >= playbook.steps.len();
    let mut ways = Ways { steps: BTreeSet::new(), unknown: None, leaves: false };
    let mut to_next = || {
        if last {
            ways.leaves = true;
        } else {
            ways.steps.insert(at + 1);
        }
    };
    if step.outcomes.is_empty()
        || step.outcomes.iter().any(|outcome| outcome.goto.is_none())
        || step.when.is_some()
    {
        to_next();
    }
    for goto in step.outcomes.iter().filter_map(|outcome| outcome.goto.as_ref()) {
        match playbook.step(&goto.text) {
            Some((to, _)) => {
                ways.steps.insert(to);
            }
            None => ways.leaves = true,
        }
    }
    let decided = step.outcomes.last().is_some_and(|outcome| outcome.when.is_none());
    if step.kind.is_automatic() && !decided && !last {
        ways.unknown = Some(at + 1);
    }
    ways
}

fn unreached(playbook: &Playbook, ways: &[Ways], doubts: &mut Doubts<'_>) {
    let mut reached = BTreeSet::new();
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        if reached.insert(at)
            && let Some(way) = ways.get(at)
        {
            open.extend(way.steps.iter().chain(way.unknown.iter()));
        }
    }
    for (at, step) in playbook.steps.iter().enumerate() {
        if !reached.contains(&at) {
            doubts.add(step.line, "step.id", format!("`{}` is reached by no outcome", step.id));
        }
    }
}

/// A step from which no way leads out goes round for ever.
fn circles(playbook: &Playbook, ways: &[Ways], doubts: &mut Doubts<'_>) {
    let mut free: BTreeSet<usize> =
        (0..ways.len()).filter(|at| ways.get(*at).is_some_and(|way| way.leaves)).collect();
    loop {
        let more: Vec<usize> = (0..ways.len())
            .filter(|at| !free.contains(at))
            .filter(|at| ways.get(*at).is_some_and(|way| way.steps.iter().any(|to| free.contains(to))))
            .collect();
        if more.is_empty() {
            break;
        }
        free.extend(more);
    }
    for (at, step) in playbook.steps.iter().enumerate() {
        if !free.contains(&at) {
            doubts.add(
                step.line,
                "step.outcome.goto",
                format!("from `{}` every branch goes round in a circle: give one an exit", step.id),
            );
        }
    }
}
