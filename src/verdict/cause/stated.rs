//! Failures that state their own reason, for which no kind of cause is needed: an exception, a race between two lines.
//!
//! In: the root failure. Out: a sentence without a cause's kind, *supported*: the failing component says it.

use crate::read::event::{Data, SanitizerFinding, SanitizerRecord};
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::super::summary::base_name;
use super::{Hypothesis, View};

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    let summary = match view.root.class {
        // `ValueError: bad batch`; without a message the class says as much.
        FailureClass::PythonError => {
            view.root.why.contains(": ").then(|| format!("the exception says it: {}", view.root.why))
        }
        FailureClass::Race => race(view),
        _ => None,
    };
    let stated = summary.map(|summary| Hypothesis {
        class: view.root.class,
        cause: None,
        certainty: Certainty::Supported,
        summary,
        supports: view.root.evidence.iter().take(4).copied().collect(),
        against: Vec::new(),
        would_settle: Vec::new(),
    });
    stated.into_iter().collect()
}

/// Both accesses of the first race that names them.
fn race(view: &View<'_>) -> Option<String> {
    let records = view.case.pick(|data| match data {
        Data::Sanitizer(record) if record.finding == SanitizerFinding::Race => Some(&**record),
        _ => None,
    });
    records.into_iter().find_map(|(_, _, record)| both(record))
}

fn both(record: &SanitizerRecord) -> Option<String> {
    let place = |place: &crate::read::event::Place| {
        let line = place.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line}", base_name(&place.file))
    };
    let one = place(record.place.as_ref()?);
    let other = place(record.other_place.as_ref()?);
    let access = record.access.as_deref().map_or_else(|| "an access".to_owned(), |kind| format!("a {kind}"));
    // The record's detail begins with the other access: `Read access at …`.
    let kind = record.detail.as_deref().and_then(|detail| detail.split(" access").next());
    let kind = kind.filter(|kind| kind.len() <= 6 && !kind.is_empty());
    let against =
        kind.map_or_else(|| "an access".to_owned(), |kind| format!("a {}", kind.to_ascii_lowercase()));
    Some(format!(
        "{access} at {one} and {against} at {other} touch the same memory with nothing that orders them"
    ))
}
