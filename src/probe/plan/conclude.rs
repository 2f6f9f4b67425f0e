//! What the runs say together.
//!
//! In: a [`Plan`] with its outcomes, and the control's. Out: a [`Conclusion`] with its reason. A conclusion needs a pass
//! below the predicted boundary and failures past it that all look alike, each from a process of its own; where a control
//! kernel is given, it must pass where the other one fails.

use serde::{Deserialize, Serialize};

use super::{Plan, Role, Step};
use crate::probe::outcome::Outcome;
use crate::text::number::grouped;

/// What was concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The predicted boundary is there.
    Confirmed,
    /// It is not.
    Refuted,
    /// The runs don't settle it.
    Inconclusive,
}

/// What was concluded, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// What.
    pub finding: Finding,
    /// The reason, for people.
    pub why: String,
}

/// A run of the control kernel.
pub type ControlTrial = (i64, Outcome);

fn number(value: i64) -> String {
    grouped(u128::from(value.unsigned_abs()))
}

impl Plan {
    /// What the runs so far say. `name` is the swept argument; `control` holds the control's runs, where there is one.
    #[must_use]
    pub fn conclude(&self, name: &str, control: Option<&[ControlTrial]>) -> Conclusion {
        let (finding, why) = self.weigh(name, control);
        Conclusion { finding, why }
    }

    fn weigh(&self, name: &str, control: Option<&[ControlTrial]>) -> (Finding, String) {
        if self.done.is_empty() {
            return (Finding::Inconclusive, "nothing was run".to_owned());
        }
        if let Some(said) = self.barred(name) {
            return (Finding::Inconclusive, said);
        }
        if let Some(said) = self.fails_everywhere(name) {
            return (Finding::Refuted, said);
        }
        if !self.is_monotone() {
            let why = format!(
                "not an overflow: sizes of {name} past the first failure pass, so failing doesn't follow the size"
            );
            return (Finding::Refuted, why);
        }
        if let Some(Outcome::Pass) | None = self.outcome_of(Role::UnderRun) {
        } else if let Some(outcome) = self.outcome_of(Role::UnderRun) {
            let why = format!(
                "a small size passes with the end of each buffer guarded and ends with {} with the start guarded: an access \
                 lies before the start of a buffer",
                outcome.name()
            );
            return (Finding::Refuted, why);
        }
        match self.question.predicted {
            Some(_) => self.against_prediction(name, control),
            None => self.without_prediction(name),
        }
    }

    /// A run that could not be made, or one that never ended.
    fn barred(&self, name: &str) -> Option<String> {
        let of = |outcome: Outcome| self.done.iter().find(|(_, found)| *found == outcome);
        let at = |step: &Step| {
            if step.role == Role::Only {
                String::new()
            } else {
                format!(" at {name} = {}", number(step.value))
            }
        };
        if let Some((step, _)) = of(Outcome::Timeout) {
            return Some(format!("the kernel did not end before its deadline{}; it was ended", at(step)));
        }
        let decisive = |step: &Step| {
            matches!(step.role, Role::LastPass | Role::FirstFail | Role::Only | Role::Reported | Role::Small)
        };
        let (step, outcome) = self.done.iter().find(|(step, o)| o.is_void() && decisive(step))?;
        Some(format!("a run that is needed could not be made{}: {}", at(step), outcome.name()))
    }

    fn fails_everywhere(&self, name: &str) -> Option<String> {
        let (step, outcome) = self.done.iter().find(|(step, _)| step.role == Role::Small)?;
        if !outcome.is_fault() {
            return None;
        }
        Some(format!(
            "not an overflow: it ends with {} already at {name} = {}, where no 32-bit index comes near its limit; look at \
             masks, strides and how the arguments are bound",
            outcome.name(),
            number(step.value)
        ))
    }

    /// Failures that don't look alike: two faults, or one that isn't what a wrapped index does.
    fn mixed(&self) -> Option<String> {
        let mut seen: Vec<Outcome> = Vec::new();
        for (_, outcome) in self.done.iter().filter(|(_, outcome)| outcome.is_fault()) {
            if !seen.contains(outcome) {
                seen.push(*outcome);
            }
        }
        let names: Vec<&str> = seen.iter().map(|outcome| outcome.name()).collect();
        (seen.len() > 1).then(|| format!("the failures don't look alike: {}", names.join(", ")))
    }

    fn against_prediction(&self, name: &str, control: Option<&[ControlTrial]>) -> (Finding, String) {
        let Some(predicted) = self.question.predicted else { return self.without_prediction(name) };
        let boundary = self.boundary();
        let (last, first) = (number(predicted.last_pass), number(predicted.first_fail));
        if boundary.first_fail.is_none() {
            let largest = self.done.iter().map(|(step, _)| step.value).max().unwrap_or(0);
            let why = format!(
                "it passes at {name} = {first}, where it was predicted to fail, and up to {}",
                number(largest)
            );
            return (Finding::Refuted, why);
        }
        if let Some(mixed) = self.mixed() {
            return (Finding::Inconclusive, mixed);
        }
        if boundary.last_pass != Some(predicted.last_pass)
            || boundary.first_fail != Some(predicted.first_fail)
        {
            let found = match (boundary.last_pass, boundary.first_fail) {
                (Some(pass), Some(fail)) => format!("{} passes and {} fails", number(pass), number(fail)),
                _ => "no size passes".to_owned(),
            };
            return (
                Finding::Refuted,
                format!("the boundary is elsewhere: {found}; predicted were {last} and {first}"),
            );
        }
        let fault = self.done.iter().find(|(_, o)| o.is_fault()).map_or("fails", |(_, o)| o.name());
        let head = format!("{name} = {last} passes, {first} ends with {fault}, each in a process of its own");
        match control {
            None => (Finding::Confirmed, format!("{head}; no control kernel was given")),
            Some(trials) => with_control(trials, predicted.first_fail, &head),
        }
    }

    fn without_prediction(&self, name: &str) -> (Finding, String) {
        let boundary = self.boundary();
        let largest = self.done.iter().map(|(step, _)| step.value).max().unwrap_or(0);
        if let [(Step { role: Role::Only, .. }, outcome)] = self.done.as_slice() {
            return (
                Finding::Inconclusive,
                format!("one run, which ended with {}; there is no size to sweep", outcome.name()),
            );
        }
        match (boundary.last_pass, boundary.first_fail) {
            (_, None) => (
                Finding::Refuted,
                format!("no boundary: every size of {name} up to {} passes", number(largest)),
            ),
            (Some(pass), Some(fail)) => (
                Finding::Inconclusive,
                format!(
                    "{name} = {} passes and {} fails, but nothing predicted a boundary there",
                    number(pass),
                    number(fail)
                ),
            ),
            (None, Some(fail)) => (
                Finding::Inconclusive,
                format!("it fails from {name} = {} on, and nothing smaller was run", number(fail)),
            ),
        }
    }
}

fn with_control(trials: &[ControlTrial], first_fail: i64, head: &str) -> (Finding, String) {
    let past: Vec<&ControlTrial> = trials.iter().filter(|(value, _)| *value >= first_fail).collect();
    if let Some((value, outcome)) = trials.iter().find(|(_, outcome)| *outcome != Outcome::Pass) {
        let why = format!(
            "{head}, but the control ends with {} at {}: something else than the index is wrong too",
            outcome.name(),
            number(*value)
        );
        return (Finding::Inconclusive, why);
    }
    if past.is_empty() {
        return (Finding::Inconclusive, format!("{head}, but the control was not run past the boundary"));
    }
    let list: Vec<String> = past.iter().map(|(value, _)| number(*value)).collect();
    (Finding::Confirmed, format!("{head}; the control passes {}", list.join(", ")))
}
