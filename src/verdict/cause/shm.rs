//! A DataLoader worker that died of a bus error: `/dev/shm` had no page left for the batch that it wrote there.
//!
//! In: the DataLoader's own word of the signal, and errors of a full file system beside it. Out: `shm_exhausted`,
//! *suspected* from the signal, which a truncated mapped file brings too, *supported* where something else finds no room.

use crate::read::event::{Data, SignalReporter};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::named::summary;
use super::{Hypothesis, View};

/// SIGBUS.
const BUS_ERROR: u32 = 7;

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    if view.root.class != FailureClass::Segfault {
        return Vec::new();
    }
    let worker = view.case.pick(|data| match data {
        Data::Signal(signal) if signal.signal == BUS_ERROR => {
            (signal.reporter == Some(SignalReporter::DataLoader)).then_some(())
        }
        _ => None,
    });
    let mut supports: Vec<_> = worker.map(|(id, _, ())| id).take(4).collect();
    if supports.is_empty() {
        return Vec::new();
    }
    let full = view.case.pick(|data| {
        let message = match data {
            Data::Traceback(traceback) => traceback.exception.as_ref()?.message.as_str(),
            Data::Exception(exception) => exception.message.as_str(),
            _ => return None,
        };
        message.contains("No space left on device").then_some(())
    });
    let full: Vec<_> = full.map(|(id, _, ())| id).take(2).collect();
    let certainty = if full.is_empty() { Certainty::Suspected } else { Certainty::Supported };
    supports.extend(full);
    vec![Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::ShmExhausted),
        certainty,
        summary: format!(
            "{}: a DataLoader worker got a bus error, as a write to shared memory without room does",
            summary(CauseKind::ShmExhausted)
        ),
        supports,
        against: Vec::new(),
        would_settle: vec!["df -h /dev/shm while the job runs: full, or a small size, shows it".to_owned()],
    }]
}
