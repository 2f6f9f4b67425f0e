//! What reruns at the boundary showed, by name: the report that says most about this incident.
//!
//! In: a case and its verdict. Out: `facts.probe.*`. It leaves weighing a report to the verdict.

use crate::case::Case;
use crate::tables::cause::CauseKind;
use crate::verdict::cause::probe::{Reading, Standing, readings};
use crate::verdict::{Certainty, Hypothesis, Verdict};

use super::super::known::Known;

pub(super) fn put(known: &mut Known, case: &Case, verdict: &Verdict) {
    let readings = verdict.view(case).map(|view| readings(&view)).unwrap_or_default();
    known.put("facts.probe.reports", readings.len());
    known.put("facts.probe.proven", verdict.cause().is_some_and(is_proven_overflow));
    // Of several that say as much the last one counts: it was made with what the others taught.
    let Some(told) = readings.iter().max_by_key(|reading| weight(reading.standing)) else { return };
    let contradicted = readings.iter().find(|reading| reading.standing == Standing::Contradicts);
    match contradicted.filter(|_| told.standing == Standing::Proves) {
        Some(other) => {
            known.put("facts.probe.standing", "disagree");
            known.put("facts.probe.why", format!("two probes disagree: {}; {}", told.why, other.why));
        }
        None => {
            known.put("facts.probe.standing", standing(told));
            known.put("facts.probe.why", told.why.as_str());
        }
    }
    known.put("facts.probe.kernel", told.report.kernel.entry.as_str());
    known.put_some(
        "facts.probe.conclusion",
        told.report.conclusion.map(crate::read::event::ProbeFinding::name),
    );
    known.put_some("facts.probe.device", told.report.device.as_ref().map(|device| device.name.as_str()));
    known.put_some("facts.probe.sweep", told.report.sweep.as_deref());
    known.put_some("facts.probe.last_pass", told.report.boundary.last_pass);
    known.put_some("facts.probe.first_fail", told.report.boundary.first_fail);
}

/// A proof that another probe contradicts proves nothing.
fn is_proven_overflow(cause: &Hypothesis) -> bool {
    cause.cause == Some(CauseKind::Int32Overflow) && cause.certainty == Certainty::Proven
}

fn weight(standing: Standing) -> u8 {
    match standing {
        Standing::Open => 0,
        Standing::Contradicts => 1,
        Standing::Proves => 2,
    }
}

fn standing(reading: &Reading<'_>) -> &'static str {
    match reading.standing {
        Standing::Proves => "proves",
        Standing::Contradicts => "contradicts",
        Standing::Open => "open",
    }
}
