//! Why it failed: ranked hypotheses, each with evidence for, against, and what would settle it.
//!
//! In: the case, the failures (the root first) and the places. Out: hypotheses, the likeliest first. Each rule stands in a
//! file of its own and may stay silent: about half of all crash logs never contain their cause (law 3).

mod asserted;
mod bounds;
mod collective;
pub mod compiled;
pub mod distance;
mod distance_words;
mod dump;
mod graph;
pub mod kernel_answer;
mod limits;
pub mod memory;
mod named;
mod null;
pub mod overflow;
pub mod port;
pub mod probe;
mod shm;
mod source;
mod stated;
mod tail;
pub mod traced;
pub mod wide;

pub use distance_words::sentence;

use crate::case::{Case, EvidenceId};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::collect::Apart;
use super::failure::{Certainty, Failure};
use super::places::Places;
use super::shapes::ShapeRow;

/// An explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hypothesis {
    /// Class that it explains.
    pub class: FailureClass,
    /// Cause; none where it says only that the evidence names none.
    pub cause: Option<CauseKind>,
    /// How sure.
    pub certainty: Certainty,
    /// One sentence.
    pub summary: String,
    /// Evidence for it.
    pub supports: Vec<EvidenceId>,
    /// Evidence against it.
    pub against: Vec<EvidenceId>,
    /// What would settle it.
    pub would_settle: Vec<String>,
}

/// What a rule sees.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The evidence.
    pub case: &'a Case,
    /// The failures, the root first.
    pub failures: &'a [Failure],
    /// The root.
    pub root: &'a Failure,
    /// The two places.
    pub places: &'a Places,
    /// The measured shapes, the likeliest first.
    pub shapes: &'a [ShapeRow],
    /// Kernel lines that nothing ties to the failure.
    pub apart: &'a Apart,
}

type Rule = fn(&View<'_>) -> Vec<Hypothesis>;

/// Every rule.
const RULES: &[Rule] = &[
    collective::rule,
    named::rule,
    shm::rule,
    stated::rule,
    limits::rule,
    null::rule,
    dump::rule,
    traced::rule,
    compiled::rule,
    overflow::rule,
    bounds::rule,
    source::rule,
    graph::rule,
];

/// All hypotheses, the likeliest first; of two for one cause the surer stays.
#[must_use]
pub fn hypotheses(view: &View<'_>) -> Vec<Hypothesis> {
    let mut all: Vec<Hypothesis> = Vec::new();
    for hypothesis in RULES.iter().flat_map(|rule| rule(view)) {
        match all.iter_mut().find(|known| known.cause == hypothesis.cause) {
            Some(known) if known.certainty < hypothesis.certainty => *known = hypothesis,
            Some(_) => {}
            None => all.push(hypothesis),
        }
    }
    probe::apply(view, &mut all);
    all.sort_by_key(|hypothesis| std::cmp::Reverse(hypothesis.certainty));
    all
}
