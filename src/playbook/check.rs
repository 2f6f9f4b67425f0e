//! Doubts about a playbook: what `playbook check` names, each with file, line and key.
//!
//! In: playbooks and the library that their branches may lead to. Out: faults: a name nobody knows, a condition that
//! can't be evaluated, a branch to nowhere, a step that no branch reaches, a circle without an exit, a pattern that
//! doesn't do what its samples say. Faults of form come from `parse`.

mod flow;
mod patterns;
mod texts;

use super::fault::Fault;
use super::library::Library;
use super::parse;
use super::schema::{Playbook, Source, Step, StepKind};

/// Checks a file; `library` holds the playbooks that its branches may name.
#[must_use]
pub fn file(name: &str, text: &str, library: &Library) -> Vec<Fault> {
    let parsed = parse::parse(name, text);
    let mut faults = parsed.faults;
    if let Some(playbook) = &parsed.playbook {
        faults.extend(check(playbook, library));
    }
    faults.sort_by(|a, b| (a.line, &a.key).cmp(&(b.line, &b.key)));
    faults.dedup();
    faults
}

/// Checks a playbook that could be read.
#[must_use]
pub fn check(playbook: &Playbook, library: &Library) -> Vec<Fault> {
    let mut doubts = Doubts { file: &playbook.file, faults: Vec::new() };
    ids(playbook, &mut doubts);
    texts::check(playbook, &mut doubts);
    outcomes(playbook, &mut doubts);
    flow::check(playbook, library, &mut doubts);
    patterns::check(playbook, &mut doubts);
    doubts.faults
}

/// Faults of one file.
struct Doubts<'a> {
    file: &'a str,
    faults: Vec<Fault>,
}

impl Doubts<'_> {
    fn add(&mut self, line: u32, key: &str, message: impl Into<String>) {
        self.faults.push(Fault {
            file: self.file.to_owned(),
            line,
            key: key.to_owned(),
            message: message.into(),
        });
    }

    fn at(&mut self, source: &Source, key: &str, message: impl Into<String>) {
        self.add(source.line, key, message);
    }
}

fn ids(playbook: &Playbook, doubts: &mut Doubts<'_>) {
    for (at, step) in playbook.steps.iter().enumerate() {
        if playbook.steps.iter().take(at).any(|other| other.id == step.id) {
            doubts.add(step.line, "step.id", format!("`{}` stands twice", step.id));
        }
        for (at, outcome) in step.outcomes.iter().enumerate() {
            if step.outcomes.iter().take(at).any(|other| other.id == outcome.id) {
                doubts.add(outcome.line, "step.outcome.id", format!("`{}` stands twice", outcome.id));
            }
        }
    }
    for (at, signature) in playbook.signatures.iter().enumerate() {
        if playbook.signatures.iter().take(at).any(|other| other.id == signature.id) {
            doubts.add(signature.line, "signature.id", format!("`{}` stands twice", signature.id));
        }
    }
}

fn outcomes(playbook: &Playbook, doubts: &mut Doubts<'_>) {
    for step in &playbook.steps {
        if step.kind.is_picked() {
            continue;
        }
        for (at, outcome) in step.outcomes.iter().enumerate() {
            if outcome.when.is_none() && at + 1 < step.outcomes.len() {
                doubts.add(
                    outcome.line,
                    "step.outcome.when",
                    "is missing: only the last outcome may leave it out, and those after it are never taken",
                );
            }
        }
        let told = !matches!(step.kind, StepKind::Look | StepKind::Compute) || !step.outcomes.is_empty();
        if !told && step.shows.is_none() {
            doubts.add(step.line, "step.outcome", "there is none: the step would show nothing");
        }
    }
}

/// Whether an outcome's condition may speak of the step's own run.
fn has_run(step: &Step) -> bool {
    matches!(step.kind, StepKind::Run | StepKind::Probe | StepKind::Repro)
}

#[cfg(test)]
mod tests;
