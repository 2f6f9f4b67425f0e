//! Peers, stores and rendezvous that gave up: c10d, gloo, MPI, Horovod, JAX, XLA, Ray, serving engines.
//!
//! In: a line. Out: [`Data::PeerLost`], and for Ray's end reports [`Data::Exit`]. Ray adds a list of common causes that
//! names signals; it is boilerplate, so such a line is spent.

use super::super::event::{Data, ExitReporter, PeerLost, PeerLostKind, ProcessExit};
use super::super::lines::{Cx, Line, Taken};
use super::super::scan::{after, clip, has_any_case, signed_after, small_after};
use crate::tables::signals;

/// Longest text that an event keeps.
const DETAIL_LIMIT_BYTES: usize = 400;

/// Reads a loss.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let Some(kind) = kind(body) else { return false };
    let detail = clip(body.trim(), DETAIL_LIMIT_BYTES).to_owned();
    cx.push(line, Data::PeerLost(PeerLost { kind, peer: peer(body), detail }));
    true
}

fn kind(body: &str) -> Option<PeerLostKind> {
    let any = |words: &[&str]| words.iter().any(|word| body.contains(word));
    // IPv6 that is switched off; every start on such a host prints it.
    if any(&["cannot be initialized", "errno: 97"]) {
        return None;
    }
    if any(&[
        "RendezvousTimeout",
        "RendezvousConnection",
        "RendezvousClosed",
        "waiting for clients",
        "be stuck",
    ]) && !any(&["import "])
    {
        return Some(PeerLostKind::Rendezvous);
    }
    let store =
        any(&["ncclUniqueId", "store->get", "DistStoreError", "TCPStore", "client socket has", "SocketImpl"])
            || has_any_case(body, "timeout after") && body.contains("keys:");
    let fails = ["rror", "failed", "timed out", "timeout", "reset by peer", "closed", "Broken pipe"]
        .iter()
        .any(|word| has_any_case(body, &word.to_ascii_lowercase()));
    if store && fails {
        return Some(PeerLostKind::Store);
    }
    if body.contains("Socket Timeout") && !body.contains("NCCL") {
        return Some(PeerLostKind::Store);
    }
    let gloo = any(&["gloo", "Gloo"]);
    if gloo && (fails || body.contains("by peer")) && !any(&["Gloo connected", "is connected to"]) {
        return Some(PeerLostKind::Peer);
    }
    let coordination = has_any_case(body, "coordination service")
        || any(&["CoordinationService", "coordination_service", "JAX distributed service"]);
    if coordination && (fails || has_any_case(body, "unhealthy") || has_any_case(body, "heartbeat")) {
        return Some(PeerLostKind::Peer);
    }
    if any(&[
        "HorovodInternalError",
        "Horovod has been shut down",
        "An error occurred in MPI_",
        "closed by peer",
        "reset by peer",
        "while waiting for send/recv",
        "died unexpectedly",
        "Worker proc",
        "stopped sending heartbeats",
    ]) && !any(&["import ", "HTTP"])
    {
        let worker = !body.contains("Worker proc") || body.contains("died");
        return worker.then_some(PeerLostKind::Peer);
    }
    None
}

/// The peer that a sentence names: an address, a task, a rank.
fn peer(body: &str) -> Option<String> {
    if let Some(task) = after(body, "/task:").or_else(|| after(body, "task_id: ")) {
        let number: String = task.chars().take_while(char::is_ascii_digit).take(9).collect();
        return (!number.is_empty()).then(|| format!("task {number}"));
    }
    if let Some(rest) = after(body, "by peer [") {
        return Some(
            clip(rest, 96).split([' ', ',']).next()?.replace("]:", ":").trim_end_matches(']').to_owned(),
        );
    }
    small_after(body, "send/recv from rank ")
        .or_else(|| small_after(body, "from rank "))
        .map(|rank| format!("rank {rank}"))
}

/// `The actor is dead because its worker process has died`, `A worker died or was killed while executing a task`, a node that
/// `has been marked dead`.
pub fn ray(line: &Line<'_>, cx: &mut Cx<'_>) -> Option<Taken> {
    let body = line.body();
    let dead = body.contains("actor is dead")
        || body.contains("actor died")
        || body.contains("worker process has died")
        || body.contains("worker died or was killed")
        || body.contains("Worker unexpectedly exits")
        || body.contains("worker is dead")
        || body.contains("has been marked dead because")
        || body.contains("Raylet is terminated");
    let boilerplate = body.contains("ray stop --force")
        || body.contains("common causes include")
        || body.contains("root causes");
    if !dead {
        return boilerplate.then_some(Taken::Whole);
    }
    let detail = clip(body.trim(), DETAIL_LIMIT_BYTES).to_owned();
    let pid = small_after(body, "Worker PID").or_else(|| small_after(body, "pid="));
    cx.push(
        line,
        Data::PeerLost(PeerLost {
            kind: PeerLostKind::Worker,
            peer: pid.map(|pid| format!("pid {pid}")),
            detail,
        }),
    );
    // "connection error code 2. End of file" is the socket's, not the process's.
    if let Some(code) = signed_after(body, "exit code").filter(|&code| code != 0) {
        cx.push(
            line,
            Data::Exit(ProcessExit {
                reporter: ExitReporter::Ray,
                rank: None,
                local_rank: None,
                pid,
                host: after(body, "ip=")
                    .map(|rest| rest.split([',', ')', ' ']).next().unwrap_or("").to_owned()),
                code: Some(code),
                signal: signals::of_status(code),
                time: None,
            }),
        );
    }
    // A traceback that names the actor's death needs its last line; only the list of causes is worthless.
    Some(if boilerplate { Taken::Whole } else { Taken::Part })
}
