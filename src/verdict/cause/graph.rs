//! A captured graph replays recorded addresses; what it recorded must still be there.
//!
//! In: the place of notice and graph lines. Out: `graph_replay`, *suspected*: a failure at a replay is a sign, no proof.

use crate::read::event::{Data, GraphMention, PyFrame};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::named::summary;
use super::{Hypothesis, View};

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    if !matches!(
        view.root.class,
        FailureClass::IllegalAddress | FailureClass::MisalignedAddress | FailureClass::LaunchFailure
    ) {
        return Vec::new();
    }
    let in_stack = view.places.notice.iter().flat_map(|notice| notice.evidence.iter().copied()).find(|id| {
        view.case.get(*id).is_some_and(|evidence| match &evidence.fact {
            crate::case::Fact::Event(event) => match &event.data {
                Data::Traceback(traceback) => traceback.frames.iter().rev().take(6).any(replays),
                _ => false,
            },
            crate::case::Fact::Derived(_) => false,
        })
    });
    let said = view
        .case
        .pick(|data| matches!(data, Data::Graph(GraphMention::Replay)).then_some(()))
        .map(|(id, _, ())| id)
        .next();
    let Some(id) = in_stack.or(said) else { return Vec::new() };
    vec![Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::GraphReplay),
        certainty: Certainty::Suspected,
        summary: summary(CauseKind::GraphReplay).to_owned(),
        supports: vec![id],
        against: Vec::new(),
        would_settle: vec![
            "run eagerly, without the graph: a pass points to an address that the graph recorded".to_owned(),
            "take a GPU core dump: launch blocking and memcheck see little inside a graph".to_owned(),
        ],
    }]
}

fn replays(frame: &PyFrame) -> bool {
    let function = frame.function.as_deref().unwrap_or("");
    function == "replay"
        || frame
            .source
            .as_deref()
            .is_some_and(|source| source.contains(".replay(") || source.contains("graph_replay"))
}
