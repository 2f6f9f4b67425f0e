//! What process groups say when a collective, a peer or a store fails: ProcessGroupNCCL of every generation, gloo, MPI,
//! Horovod, JAX, Ray, XLA, symmetric memory.
//!
//! In: a line of one of them, and for blocks the lines after it. Out: [`Data::CollectiveTimeout`], [`Data::WorkStatus`],
//! [`Data::CollectiveMismatch`], [`Data::PeerLost`]. It leaves alone a CUDA error that the watchdog relays (the status
//! reader has it) and does not say who is to blame.

mod mismatch;
mod peer;
mod watchdog;

use super::event::{Data, Event};
use super::lines::{Cx, Line, Taken};

/// Strings of which one stands in every line that this reader wants.
pub const LITERALS: &[&str] = &[
    "atchdog",
    "WorkNCCL(",
    "ast completed",
    "eartbeat",
    "collective",
    "imed out",
    "rror",
    "ailed",
    "by peer",
    " died",
    "actor is dead",
    "marked dead",
    "aylet is terminated",
    "be stuck",
    "oordination",
    "subset of ranks",
    "issing ranks",
    "timeout after",
];

/// Reads a line of a process group.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    if body.starts_with("  File \"") || body.starts_with("frame #") {
        return Taken::No;
    }
    if let Some(taken) = peer::ray(line, cx) {
        return taken;
    }
    let timed_out = watchdog::timeouts(line, cx);
    let status = watchdog::work_status(line, cx);
    let stuck = watchdog::heartbeat(line, cx);
    let differs = mismatch::read(line, cx);
    let lost = !(timed_out || status || stuck || differs) && peer::read(line, cx);
    if timed_out || status || stuck || differs || lost { Taken::Part } else { Taken::No }
}

/// Adds what `line` says of another rank than its own prefix tells: two messages can share one line.
fn push_of_rank(line: &Line<'_>, cx: &mut Cx<'_>, rank: Option<u32>, data: Data) {
    cx.push(line, data);
    if let (Some(rank), Some(Event { origin, .. })) = (rank, cx.last_event()) {
        origin.rank = Some(rank);
    }
}

#[cfg(test)]
mod tests;
