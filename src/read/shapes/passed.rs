//! Shapes that ran before and passed: a log that shows a later step after a shape speaks against it as the cause.
//!
//! ```text
//! step 1 hidden=(262144, 16384)
//! step 2 hidden=(262144, 16384)        <- the shape of step 1 had passed
//! logits shape=(64, 32, 4096, 4096)
//! step 1812 loss 2.113                 <- so had this one
//! ```
//!
//! In: the text, its events with the shapes among them. Out: [`Passed`] on each shape past 2³¹−1 that was followed by steps
//! before the next failure. Smaller shapes are left alone: nothing is claimed of them.

use std::collections::BTreeSet;

use crate::read::event::{Data, Event, InputId, Passed, ShapeForm, ShapeMention};
use crate::read::steps::{Step, step};

use super::{Line, each_line, forms, named};

/// Different shapes that are followed.
const SHAPE_LIMIT: usize = 64;
/// Steps of one shape that are told apart.
const STEP_LIMIT: usize = 10_000;

/// A shape that is followed from its first line on.
struct Followed {
    shape: ShapeMention,
    rank: Option<u32>,
    line: u64,
    before: Option<u64>,
    first_begun: Option<u64>,
    over: BTreeSet<Option<u64>>,
    passed: Passed,
}

/// Fills in [`ShapeMention::passed`].
pub fn mark(input: InputId, bytes: &[u8], events: &mut [Event]) {
    let mut followed = large(events);
    if followed.is_empty() {
        return;
    }
    let focus: Vec<_> = events.iter().map(|event| event.span).collect();
    let failures: BTreeSet<u64> =
        events.iter().filter(|event| ends_a_run(&event.data)).map(|event| event.span.line).collect();
    let mut latest: Vec<(Option<u32>, u64)> = Vec::new();
    each_line(input, bytes, &focus, |line| {
        if let Some(step) = step(line.body()) {
            for one in &mut followed {
                // An empty range that begins past its end is refused: the order counts.
                if line.number >= one.line
                    && failures.range(one.line..line.number).next().is_none()
                    && compatible(one.rank, line.origin.rank)
                {
                    one.before = one.before.or_else(|| last(&latest, one.rank));
                    one.take(line, step);
                }
            }
            if let Some(number) = step.number {
                note(&mut latest, line.origin.rank, number);
            }
        }
        true
    });
    for event in events {
        let Data::Shape(shape) = &mut event.data else { continue };
        let found = followed.iter().find(|one| same(&one.shape, shape) && one.rank == event.origin.rank);
        shape.passed = found.filter(|one| one.passed.steps > 0).map(|one| one.passed);
    }
}

/// Shapes past 2³¹−1, each once, at its first line.
fn large(events: &[Event]) -> Vec<Followed> {
    let mut found: Vec<Followed> = Vec::new();
    for event in events {
        let Data::Shape(shape) = &event.data else { continue };
        let is_known = || found.iter().any(|one| same(&one.shape, shape) && one.rank == event.origin.rank);
        let is_printed = matches!(shape.form, ShapeForm::Shape | ShapeForm::Named);
        if shape.passes_int32() && is_printed && found.len() < SHAPE_LIMIT && !is_known() {
            found.push(Followed {
                shape: shape.clone(),
                rank: event.origin.rank,
                line: event.span.line,
                before: None,
                first_begun: None,
                over: BTreeSet::new(),
                passed: Passed { shown: 1, ..Passed::default() },
            });
        }
    }
    found
}

impl Followed {
    fn take(&mut self, line: &Line<'_>, step: Step) {
        let is_own = line.number == self.line;
        if is_own {
            self.before = step.number.map(|number| number.saturating_sub(1)).or(self.before);
        } else if self.over.len() < STEP_LIMIT && self.shows_again(line, step) {
            self.passed.shown += 1;
        }
        let steps = match (step.is_over, step.number) {
            (true, number) => {
                if self.over.len() < STEP_LIMIT {
                    self.over.insert(number);
                }
                let counted = number.map_or(0, |number| number.saturating_sub(self.before.unwrap_or(0)));
                counted.max(self.over.len() as u64)
            }
            (false, Some(number)) => number.saturating_sub(*self.first_begun.get_or_insert(number)),
            (false, None) => 0,
        };
        if steps > self.passed.steps {
            self.passed.steps = steps;
            self.passed.line = line.number;
            self.passed.last_step = step.number;
        }
    }

    /// Whether a line of another step prints the same shape.
    fn shows_again(&self, line: &Line<'_>, step: Step) -> bool {
        step.number.is_some_and(|number| Some(number) > self.passed.last_step.or(self.before))
            && forms::shapes(line.body())
                .into_iter()
                .chain(named::shapes(line.body()))
                .any(|shape| same(&shape, &self.shape))
    }
}

fn same(a: &ShapeMention, b: &ShapeMention) -> bool {
    a.dims == b.dims && a.label == b.label && a.names == b.names
}

fn compatible(a: Option<u32>, b: Option<u32>) -> bool {
    a.is_none() || b.is_none() || a == b
}

fn last(latest: &[(Option<u32>, u64)], rank: Option<u32>) -> Option<u64> {
    latest.iter().filter(|(of, _)| compatible(*of, rank)).map(|(_, number)| *number).max()
}

fn note(latest: &mut Vec<(Option<u32>, u64)>, rank: Option<u32>, number: u64) {
    if let Some(known) = latest.iter_mut().find(|(of, _)| *of == rank) {
        known.1 = number;
    } else if latest.len() < 4096 {
        latest.push((rank, number));
    }
}

/// What ends a run: steps behind it are another run's.
fn ends_a_run(data: &Data) -> bool {
    matches!(
        data,
        Data::Status(_)
            | Data::Library(_)
            | Data::GpuOutOfMemory(_)
            | Data::DeviceAssert(_)
            | Data::Traceback(_)
            | Data::Signal(_)
            | Data::Abort(_)
            | Data::Sanitizer(_)
            | Data::CollectiveTimeout(_)
            | Data::Exit(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_text;
    use crate::read::shapes::read_near;

    fn passed(log: &str) -> Vec<Option<Passed>> {
        let mut events = read_text(InputId(0), log.as_bytes()).events;
        events.extend(read_near(InputId(0), log.as_bytes(), &[]));
        mark(InputId(0), log.as_bytes(), &mut events);
        events
            .into_iter()
            .filter_map(|event| match event.data {
                Data::Shape(shape) => Some(shape.passed),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_shape_of_earlier_steps_passed_there() {
        let log =
            "step 1 hidden=(262144, 16384)\nstep 2 hidden=(262144, 16384)\nstep 3 hidden=(262144, 16384)\n";
        assert_eq!(passed(log), [Some(Passed { steps: 2, shown: 3, line: 3, last_step: Some(3) })]);
    }

    #[test]
    fn steps_after_a_shape_of_the_start() {
        let log = "logits shape=(64, 32, 4096, 4096)\nstep 1812 loss 2.113\n";
        assert_eq!(passed(log), [Some(Passed { steps: 1812, shown: 1, line: 2, last_step: Some(1812) })]);
    }

    #[test]
    fn the_shape_of_the_last_step_passed_nowhere() {
        let varying = "step 1 hidden=(131072, 8192)\nstep 2 hidden=(262144, 16384)\n";
        assert_eq!(passed(varying), [None, None]);
        let printed_late = "step 40 loss 2.5\nstep 41 loss 2.4\nhidden=(262144, 16384)\n";
        assert_eq!(passed(printed_late), [None]);
    }

    #[test]
    fn steps_of_another_run_or_rank_do_not_count() {
        let rerun = "hidden=(262144, 16384)\nRuntimeError: CUDA error: an illegal memory access was encountered\nstep 9 loss 2\n";
        assert_eq!(passed(rerun), [None]);
        let other = "[rank1]: hidden=(262144, 16384)\n[rank0]: step 9 loss 2.0\n";
        assert_eq!(passed(other), [None]);
    }
}
