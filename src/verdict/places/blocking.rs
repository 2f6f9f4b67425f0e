//! Where a second run with launch blocking stopped: at the launch, not at the call that waited for it.
//!
//! In: a case with the logs of both runs, and the root of the first. Out: the launch's place, where the second run failed
//! alike. A run that is the root's own says where it was noticed, and that is `notice`'s business.

use crate::case::Case;
use crate::read::event::Data;

use super::super::failure::Failure;
use super::super::judge;
use super::Fault;

/// The launch at which the blocking run stopped.
pub fn find(case: &Case, root: &Failure) -> Option<Fault> {
    if !root.class.is_device_fault() || case.inputs().len() < 2 {
        return None;
    }
    case.blocking_inputs().into_iter().filter(|input| *input != root.at.input).find_map(|input| {
        let (evidence, _, ()) = case
            .pick(|data| matches!(data, Data::Traceback(_)).then_some(()))
            .find(|(_, event, ())| event.span.input == input)?;
        let run = judge(&case.only(input));
        let notice = run.places.notice.filter(|_| run.class == root.class)?;
        Some(Fault {
            rank: notice.rank,
            file: notice.file,
            line: notice.line,
            evidence: vec![evidence],
            ..Fault::default()
        })
    })
}
