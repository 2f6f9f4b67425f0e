//! Where running processes stand: which wait in a collective, and which are elsewhere.
//!
//! In: a case with stack dumps. Out: one sentence. It leaves open what the odd one does there: slow work and a hang look alike in
//! one dump.

use crate::case::{Case, EvidenceId};
use crate::read::event::{Data, Event, PyFrame, StackDump};

/// Innermost frames that tell of a collective.
const INNERMOST: usize = 6;
/// Processes that a sentence names.
const NAMED: usize = 8;

/// The stack dumps of a case.
pub fn dumps(case: &Case) -> impl Iterator<Item = (EvidenceId, &Event, &StackDump)> {
    case.pick(|data| match data {
        Data::StackDump(dump) => Some(dump),
        _ => None,
    })
}

/// What the dumps say together; none without one.
pub fn sentence(case: &Case) -> Option<String> {
    let (mut waiting, mut elsewhere) = (Vec::new(), Vec::new());
    let mut call = None;
    for (_, event, dump) in dumps(case) {
        let who = match (event.origin.rank, dump.pid) {
            (Some(rank), _) => format!("rank {rank}"),
            (None, Some(pid)) => format!("process {pid}"),
            (None, None) => "a process".to_owned(),
        };
        match dump.frames.iter().take(INNERMOST).find_map(collective) {
            Some(name) => {
                call.get_or_insert(name);
                waiting.push(who);
            }
            None => elsewhere.push(format!("{who}{}", at(dump))),
        }
    }
    let count = waiting.len() + elsewhere.len();
    let mut text = format!(
        "Stacks of {count} running process{}: they show where each one stands, and no failure.",
        if count == 1 { "" } else { "es" }
    );
    if let Some(call) = call {
        text.push_str(&format!(" In a collective ({call}): {}.", listed(&waiting)));
        if !elsewhere.is_empty() {
            text.push_str(&format!(" Elsewhere: {}.", listed(&elsewhere)));
        }
    }
    (count > 0).then_some(text)
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMED);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// ` in read (ssl.py:1167), from upload (train.py:255)`: the innermost frame, and the innermost one of the program's own file.
fn at(dump: &StackDump) -> String {
    let shown = |frame: &PyFrame| {
        let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!(
            "{} ({}{line})",
            frame.function.as_deref().unwrap_or("?"),
            super::summary::base_name(&frame.file)
        )
    };
    let Some(inner) = dump.frames.first() else { return String::new() };
    let own = dump.frames.last().map(|outer| &outer.file);
    let caller = dump.frames.iter().find(|frame| Some(&frame.file) == own).filter(|frame| *frame != inner);
    let from = caller.map(|frame| format!(", from {}", shown(frame))).unwrap_or_default();
    format!(" in {}{from}", shown(inner))
}

/// The collective that a frame of a communication library is.
fn collective(frame: &PyFrame) -> Option<String> {
    const CALLS: [&str; 9] = [
        "all_reduce",
        "allreduce",
        "all_gather",
        "allgather",
        "reduce_scatter",
        "broadcast",
        "barrier",
        "all_to_all",
        "alltoall",
    ];
    let name = frame.function.as_deref()?;
    let lower = name.to_ascii_lowercase();
    let library =
        ["distributed", "c10d", "nccl", "horovod", "mpi4py"].iter().any(|part| frame.file.contains(part))
            || lower.starts_with("nccl");
    (library && CALLS.iter().any(|call| lower.contains(call))).then(|| name.to_owned())
}
