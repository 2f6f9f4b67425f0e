//! Which sizes to try, in which order, and what they say together. Pure: it runs nothing.
//!
//! In: a predicted boundary, the reported size and what sizes are multiples of; then one outcome after another. Out: the
//! next [`Step`], and in the end a [`Conclusion`].
//!
//! The predicted boundary comes first, both sides of it; then the reported size, those asked for, one well past it and a
//! small one, which also runs start-aligned. Only where the prediction fails is the range halved. Every size stays on the lattice:
//! compiled code relies on what its arguments are multiples of, and off the lattice even a correct kernel faults.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::protocol::Placement;

mod conclude;

pub use conclude::{Conclusion, ControlTrial, Finding};

/// Most halvings: enough for any range of 64 bits.
const HALVINGS: usize = 64;

/// A kernel that hangs is not asked more often than this.
const TIMEOUTS: usize = 2;

/// The boundary as the static answer gives it, on the lattice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Predicted {
    /// The largest size that must pass.
    pub last_pass: i64,
    /// The next one, which must fail.
    pub first_fail: i64,
}

/// What is to be found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What every size is a multiple of.
    pub lattice: i64,
    /// The predicted boundary.
    pub predicted: Option<Predicted>,
    /// The size that crashed.
    pub reported: Option<i64>,
    /// Further sizes that somebody wants to see.
    pub asked: Vec<i64>,
    /// The largest size that makes sense.
    pub most: i64,
}

/// Why a size is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Predicted to pass, the last one.
    LastPass,
    /// Predicted to fail, the first one.
    FirstFail,
    /// The size that crashed.
    Reported,
    /// Well past the boundary.
    WellPast,
    /// Asked for.
    Asked,
    /// Far below the boundary.
    Small,
    /// Far below the boundary, start-aligned: an access before the start faults.
    UnderRun,
    /// Between a pass and a failure.
    Halving,
    /// The only run of a kernel that has no size.
    Only,
}

/// A run to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The size.
    pub value: i64,
    /// Why.
    pub role: Role,
    /// Which end of the buffers is guarded closely.
    pub placement: Placement,
}

/// The boundary as the runs show it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Boundary {
    /// The largest size below every failure that passed.
    pub last_pass: Option<i64>,
    /// The smallest size that failed.
    pub first_fail: Option<i64>,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Plan {
    question: Question,
    wanted: Vec<Step>,
    done: Vec<(Step, Outcome)>,
}

impl Question {
    /// Why a size can't be tried; `None` where it can.
    #[must_use]
    pub fn objection(&self, value: i64) -> Option<String> {
        if value < 1 {
            return Some(format!("{value} is no size"));
        }
        if value > self.most {
            return Some(format!("{value} is past {}, the largest that the argument can hold", self.most));
        }
        (value % self.lattice != 0).then(|| {
            let below = value - value % self.lattice;
            format!(
                "{value} is no multiple of {}: the compiled code relies on that (tt.divisibility), and off it even a \
                 correct kernel faults; the nearest sizes are {below} and {}",
                self.lattice,
                below + self.lattice
            )
        })
    }

    fn up(&self, value: i64) -> i64 {
        let rest = value.rem_euclid(self.lattice);
        if rest == 0 { value } else { value.saturating_add(self.lattice - rest) }
    }
}

impl Plan {
    /// A plan for a question. A size that can't be tried is left out; see [`Question::objection`].
    #[must_use]
    pub fn new(mut question: Question) -> Self {
        question.lattice = question.lattice.max(1);
        let mut plan = Self { question, wanted: Vec::new(), done: Vec::new() };
        plan.fill();
        plan
    }

    /// A plan of one run, for a kernel that has no size.
    #[must_use]
    pub fn once() -> Self {
        let question = Question { lattice: 1, predicted: None, reported: None, asked: Vec::new(), most: 0 };
        let step = Step { value: 0, role: Role::Only, placement: Placement::End };
        Self { question, wanted: vec![step], done: Vec::new() }
    }

    fn fill(&mut self) {
        let question = self.question.clone();
        if let Some(predicted) = question.predicted {
            self.want(predicted.last_pass, Role::LastPass);
            self.want(predicted.first_fail, Role::FirstFail);
        }
        if let Some(reported) = question.reported {
            self.want(reported, Role::Reported);
        }
        for &value in &question.asked {
            self.want(value, Role::Asked);
        }
        if let Some(Predicted { first_fail, .. }) = question.predicted {
            // Something a quarter past it shows as well that no masked edge hides the failure.
            let far = first_fail.saturating_add(first_fail / 4);
            if self.wanted.iter().all(|step| step.value < far) {
                self.want(question.up(first_fail.saturating_add(first_fail / 2)), Role::WellPast);
            }
        }
        let top = self.wanted.iter().map(|step| step.value).max().unwrap_or(question.lattice);
        let base = question.predicted.map_or(top, |predicted| predicted.last_pass.max(1));
        // An odd multiple: a power of two would hide a kernel that only fails on a partial block.
        let small = ((base / 1_000 / question.lattice) | 1).saturating_mul(question.lattice);
        self.want(small, Role::Small);
        self.wanted.push(Step { value: small, role: Role::UnderRun, placement: Placement::Start });
    }

    fn want(&mut self, value: i64, role: Role) {
        let known = self.wanted.iter().any(|step| step.value == value);
        if !known && self.question.objection(value).is_none() {
            self.wanted.push(Step { value, role, placement: Placement::End });
        }
    }

    /// What is to be found out.
    #[must_use]
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// The steps that are certain, in order: what a dry run shows.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.wanted
    }

    /// The runs so far.
    #[must_use]
    pub fn done(&self) -> &[(Step, Outcome)] {
        &self.done
    }

    /// Takes the outcome of a step.
    pub fn record(&mut self, step: Step, outcome: Outcome) {
        self.done.push((step, outcome));
    }

    /// The next run; `None` when no further one would say more.
    #[must_use]
    pub fn next_step(&self) -> Option<Step> {
        if self.is_hopeless() {
            return None;
        }
        let is_done = |step: &Step| {
            self.done.iter().any(|(done, _)| done.value == step.value && done.placement == step.placement)
        };
        if let Some(step) = self.wanted.iter().find(|step| !is_done(step)) {
            // Where the end-aligned small run failed already, the start-aligned one says nothing.
            let pointless =
                step.role == Role::UnderRun && self.outcome_of(Role::Small) != Some(Outcome::Pass);
            return if pointless { self.halving() } else { Some(*step) };
        }
        self.halving()
    }

    /// Whether further runs would end as the last ones did, for reasons outside the kernel.
    fn is_hopeless(&self) -> bool {
        let timeouts = self.done.iter().filter(|(_, outcome)| *outcome == Outcome::Timeout).count();
        let barred = |outcome: &Outcome| {
            outcome.is_void()
                && !matches!(outcome, Outcome::Timeout | Outcome::GpuOom | Outcome::LaunchConfig)
        };
        timeouts >= TIMEOUTS || self.done.iter().any(|(_, outcome)| barred(outcome))
    }

    fn outcome_of(&self, role: Role) -> Option<Outcome> {
        self.done.iter().find(|(step, _)| step.role == role).map(|(_, outcome)| *outcome)
    }

    /// Halves between the largest pass and the smallest failure, where they don't touch.
    fn halving(&self) -> Option<Step> {
        let halved = self.done.iter().filter(|(step, _)| step.role == Role::Halving).count();
        let boundary = self.boundary();
        let (low, high) = (boundary.last_pass?, boundary.first_fail?);
        let lattice = self.question.lattice;
        if halved >= HALVINGS || !self.is_monotone() || high - low <= lattice {
            return None;
        }
        let value = low + (high - low) / lattice / 2 * lattice;
        let step = Step { value, role: Role::Halving, placement: Placement::End };
        // A trial that said nothing (out of memory, say) is not made again.
        let known = self.done.iter().any(|(done, _)| done.value == value);
        (value > low && value < high && !known).then_some(step)
    }

    /// The boundary between passes and failures of the end-aligned runs.
    #[must_use]
    pub fn boundary(&self) -> Boundary {
        let ends = || self.done.iter().filter(|(step, _)| step.placement == Placement::End);
        let first_fail = ends().filter(|(_, o)| o.is_fault()).map(|(step, _)| step.value).min();
        let last_pass = ends()
            .filter(|(step, o)| *o == Outcome::Pass && first_fail.is_none_or(|fail| step.value < fail))
            .map(|(step, _)| step.value)
            .max();
        Boundary { last_pass, first_fail }
    }

    /// Whether everything past the first failure failed.
    fn is_monotone(&self) -> bool {
        let first_fail = self.boundary().first_fail.unwrap_or(i64::MAX);
        self.done.iter().all(|(step, outcome)| *outcome != Outcome::Pass || step.value < first_fail)
    }
}

#[cfg(test)]
mod tests;
