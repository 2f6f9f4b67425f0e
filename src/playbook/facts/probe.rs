//! What reruns at the boundary showed, by name: the report that says most about this incident.
//!
//! In: a case and its verdict. Out: `facts.probe.*`. It leaves weighing a report to the verdict.

use crate::case::Case;
use crate::verdict::Verdict;
use crate::verdict::cause::probe::{Reading, Standing, readings};

use super::super::known::Known;

pub(super) fn put(known: &mut Known, case: &Case, verdict: &Verdict) {
    let readings = verdict.view(case).map(|view| readings(&view)).unwrap_or_default();
    known.put("facts.probe.reports", readings.len());
    // Of several that say as much the last one counts: it was made with what the others taught.
    let Some(told) = readings.iter().max_by_key(|reading| weight(reading.standing)) else { return };
    known.put("facts.probe.standing", standing(told));
    known.put("facts.probe.why", told.why.as_str());
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
