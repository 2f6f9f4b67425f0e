//! Did a 32-bit index wrap? From the fault address where there is one, from shapes where there is none.
//!
//! In: the measured shapes and the distance readings. Out: `int32_overflow`, *supported* where the distance test and an
//! independent fact agree, *suspected* from a distance or a shape alone (law 4). A distance that reads otherwise speaks
//! against every shape: overflow is the popular story and often wrong (law 5).

use crate::arith::{IndexLimit, Reading, Strength, Wrapped};
use crate::case::{EvidenceId, Fact};
use crate::read::event::{InputId, Passed, ShapeForm};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::super::launches::traced;
use super::super::shapes::{Likelihood, ShapeRow};
use super::distance::{DistanceReading, readings};
use super::distance_words::sentence;
use super::wide::wide_index;
use super::{Hypothesis, View};
use crate::text::number::grouped;

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    if !matches!(view.root.class, FailureClass::IllegalAddress) {
        return Vec::new();
    }
    let readings = readings(view);
    let wrapped = readings.iter().filter_map(|reading| match &reading.reading {
        Reading::Wrapped(wrapped) => Some((reading, wrapped)),
        _ => None,
    });
    if let Some((reading, wrapped)) = wrapped.max_by_key(|(_, wrapped)| wrapped.strength) {
        return vec![from_distance(view, reading, wrapped)];
    }
    let read_otherwise =
        readings.iter().any(|reading| !matches!(reading.reading, Reading::TooLargeToTell { .. }));
    if read_otherwise {
        return Vec::new();
    }
    from_shape(view).into_iter().collect()
}

fn from_distance(view: &View<'_>, reading: &DistanceReading, wrapped: &Wrapped) -> Hypothesis {
    let certainty = match wrapped.strength {
        Strength::Supported => Certainty::Supported,
        Strength::Suspected => Certainty::Suspected,
    };
    let summary = sentence(&reading.reading);
    let mut supports = vec![reading.evidence];
    supports.extend(view.shapes.iter().filter(|shape| shape.overflows()).map(|shape| shape.evidence).take(2));
    Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::Int32Overflow),
        certainty,
        summary,
        supports,
        against: Vec::new(),
        would_settle: vec![
            "rerun the kernel just below and past the boundary: a pass and a failure prove it".to_owned(),
        ],
    }
}

/// A shape alone makes a suspicion, and only one that the failing process printed near its failure.
fn from_shape(view: &View<'_>) -> Option<Hypothesis> {
    let traced = traced(view.case, view.root);
    let ran_safely = |shape: &ShapeRow| {
        shape.mention.form == ShapeForm::Argument
            && traced
                .iter()
                .any(|traced| traced.fits() && at(view, shape.evidence) == at(view, traced.evidence))
    };
    let mut candidates = view
        .shapes
        .iter()
        .filter(|shape| shape.overflows() && shape.likelihood >= Likelihood::Near && !ran_safely(shape));
    let Some(shape) = candidates.clone().find(|shape| shape.passed().is_none()) else {
        let shape = candidates.next()?;
        let passed = shape.passed()?;
        let why = format!(
            "{}: a 32-bit index that wraps on it would most likely have failed there",
            passed_words(passed)
        );
        return Some(spoken_against(view, shape, &why, vec![shape.evidence]));
    };
    if let Some(wide) = wide_index(view, shape) {
        return Some(spoken_against(view, shape, &wide.why, wide.evidence));
    }
    // Operands that the engineer names and that fit speak against any other shape of the log.
    let fitting =
        view.shapes.iter().filter(|other| other.likelihood == Likelihood::Operand && !other.overflows());
    let against = if shape.likelihood == Likelihood::Operand {
        Vec::new()
    } else {
        let launches = traced.iter().filter(|traced| traced.launch.last_of_trace && traced.fits());
        fitting.map(|other| other.evidence).chain(launches.map(|traced| traced.evidence)).take(4).collect()
    };
    Some(Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::Int32Overflow),
        certainty: Certainty::Suspected,
        summary: shape_words(shape),
        supports: vec![shape.evidence],
        against,
        would_settle: vec![
            "memcheck: the distance to the nearest allocation shows a wrapped index".to_owned(),
            format!(
                "run {} {}, then one more: a pass and a failure prove it",
                safe_words(shape),
                swept(shape)
            ),
        ],
    })
}

/// A shape past the limit with something else in the input that speaks against it as the cause: the arithmetic holds, no more.
fn spoken_against(view: &View<'_>, shape: &ShapeRow, why: &str, against: Vec<EvidenceId>) -> Hypothesis {
    Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::Int32Overflow),
        certainty: Certainty::Undecided,
        summary: format!(
            "{} = {} elements is past 2,147,483,647, but {why}",
            shape.words(),
            grouped(shape.extent.numel),
        ),
        supports: vec![shape.evidence],
        against,
        would_settle: vec![
            "memcheck: the distance to the nearest allocation shows a wrapped index, or that there is none"
                .to_owned(),
        ],
    }
}

/// `the same shape passed 2 times before (line 4 shows it again at step 3)`
pub fn passed_words(passed: Passed) -> String {
    let step = passed.last_step.map(|step| format!(" step {step}")).unwrap_or_default();
    if passed.shown > 1 {
        let times = if passed.shown == 2 { "once".to_owned() } else { format!("{} times", passed.shown - 1) };
        return format!(
            "the same shape passed {times} before (the log goes on to{step} in line {})",
            passed.line
        );
    }
    let step = if step.is_empty() { " a later step".to_owned() } else { step };
    format!("the program ran on after it was printed, to{step} in line {}", passed.line)
}

/// The arithmetic in one sentence.
pub fn shape_words(shape: &ShapeRow) -> String {
    let check = IndexLimit::INT32.check(&shape.extent);
    let percent = check.over_percent();
    format!(
        "{} = {} elements, {} past 2,147,483,647 ({percent:.2} %): a flat index in 32 bits wraps; safe up to {}",
        shape.words(),
        grouped(shape.extent.numel),
        grouped(check.excess_by_count),
        safe_words(shape),
    )
}

/// Where a piece of evidence stands.
fn at(view: &View<'_>, id: EvidenceId) -> Option<(InputId, u64)> {
    match &view.case.get(id)?.fact {
        Fact::Event(event) => Some((event.span.input, event.span.line)),
        Fact::Derived(_) => None,
    }
}

fn swept(shape: &ShapeRow) -> &str {
    shape
        .mention
        .names
        .get(shape.sweep)
        .map_or("rows", |name| if name == "tokens" { "tokens" } else { "rows" })
}

fn safe_words(shape: &ShapeRow) -> String {
    shape.boundary.safe.map_or_else(|| "any size".to_owned(), grouped)
}
