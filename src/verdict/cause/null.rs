//! An address of 0, or a little past it, that nobody's buffer can have: a null pointer.
//!
//! In: the page of an Xid 31, and the address that a signal handler prints. Out: `null_pointer`, *supported*. A sanitizer's
//! record with such an address is the distance test's.

use crate::case::EvidenceId;
use crate::read::event::Data;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::{Hypothesis, View};

/// Addresses below this one are never mapped.
const NULL_PAGE_BYTES: u64 = 4_096;

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    let found = match view.root.class {
        FailureClass::IllegalAddress => logged(view),
        FailureClass::Segfault => handled(view),
        _ => None,
    };
    let hypothesis = found.map(|(id, summary)| Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::NullPointer),
        certainty: Certainty::Supported,
        summary,
        supports: vec![id],
        against: Vec::new(),
        would_settle: Vec::new(),
    });
    hypothesis.into_iter().collect()
}

/// The page that the kernel driver logged.
fn logged(view: &View<'_>) -> Option<(EvidenceId, String)> {
    let (id, _, address) = view
        .case
        .pick(|data| match data {
            Data::Xid(xid) if xid.xid == 31 => xid.address,
            _ => None,
        })
        .find(|(id, _, _)| !view.apart.holds(*id))?;
    (address < NULL_PAGE_BYTES).then(|| {
        (id, format!("the driver logged the fault at address {address:#x}: device code used a null pointer, or a small offset from one"))
    })
}

/// The address that a handler in the crashing process printed.
fn handled(view: &View<'_>) -> Option<(EvidenceId, String)> {
    let (id, _, address) = view
        .case
        .pick(|data| match data {
            Data::Signal(signal) if signal.signal == 11 => signal.address,
            _ => None,
        })
        .find(|(id, _, _)| view.root.evidence.contains(id))?;
    (address < NULL_PAGE_BYTES).then(|| {
        (
            id,
            format!(
                "the host process touched address {address:#x}: a null pointer, or a small offset from one"
            ),
        )
    })
}
