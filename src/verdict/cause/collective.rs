//! What the comparison of collectives across ranks found: a rank that never came, ranks that called different things.
//!
//! In: findings of `case::collectives`. Out: `missing_collective` and `collective_mismatch`, *supported* by recorded data
//! (dumps, RAS), *suspected* from what log lines let conclude. A rank that hangs in what others completed leaves the cause
//! undecided: another call and a broken network look alike. All ranks in one place is no cause for the same reason.

use crate::case::collectives::{Basis, Differs, Finding};
use crate::read::event::Data;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::{Hypothesis, View};

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    if view.root.class != FailureClass::Nccl {
        return Vec::new();
    }
    view.case.matched().findings.iter().take(4).filter_map(|finding| explain(view, finding)).collect()
}

fn explain(view: &View<'_>, finding: &Finding) -> Option<Hypothesis> {
    let (cause, certainty) = match finding {
        Finding::Missing(missing) => {
            let certainty = match (missing.basis, missing.missing.is_empty()) {
                (Basis::Dumps | Basis::Ras, false) => Certainty::Supported,
                _ => Certainty::Suspected,
            };
            (CauseKind::MissingCollective, certainty)
        }
        Finding::Mismatch(mismatch) if mismatch.completed => return None,
        // Two readings, and nothing that prefers one: the sentence gives both.
        Finding::Mismatch(mismatch) if mismatch.differs == Differs::State => {
            (CauseKind::CollectiveMismatch, Certainty::Undecided)
        }
        Finding::Mismatch(mismatch) => {
            let certainty = if mismatch.suspected { Certainty::Suspected } else { Certainty::Supported };
            (CauseKind::CollectiveMismatch, certainty)
        }
        Finding::Stuck(_) => return None,
    };
    Some(Hypothesis {
        class: FailureClass::Nccl,
        cause: Some(cause),
        certainty,
        summary: finding.summary(),
        supports: supports(view),
        against: Vec::new(),
        would_settle: settle(certainty),
    })
}

/// The dumps, answers and status lines that were compared.
fn supports(view: &View<'_>) -> Vec<crate::case::EvidenceId> {
    view.case
        .pick(|data| {
            matches!(
                data,
                Data::FlightDump(_)
                    | Data::Ras(_)
                    | Data::CollectiveTimeout(_)
                    | Data::WorkStatus(_)
                    | Data::CollectiveMismatch(_)
            )
            .then_some(())
        })
        .map(|(id, _, ())| id)
        .take(8)
        .collect()
}

fn settle(certainty: Certainty) -> Vec<String> {
    if certainty >= Certainty::Supported {
        return Vec::new();
    }
    let mut all = vec![
        "flight-recorder dumps of all ranks show what each rank called, with sizes and the line that enqueued it"
            .to_owned(),
    ];
    if certainty == Certainty::Undecided {
        all.push(
            "NCCL_DEBUG=WARN on every node, and the kernel log of the node that is behind, show a broken link or GPU"
                .to_owned(),
        );
    }
    all
}
