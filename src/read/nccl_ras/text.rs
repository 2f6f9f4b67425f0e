//! The text form of a RAS answer and of monitor events.
//!
//! In: the lines. Out: fields of [`RasAnswer`]. It leaves tables alone: the records below them say the same by name.

use super::{Communicator, LaunchCount, Launched, MonitorEvent, Process, RasAnswer, RasRank};
use crate::read::flight_recorder::operation;

/// What the indented lines belong to.
enum Section {
    None,
    /// Processes without data, true where they are dead.
    Processes(bool),
    /// Ranks of the last communicator that did not answer.
    Missing,
    /// Operation counts of the last communicator's last kind.
    Counts,
    /// Errors or states of the last communicator.
    Other,
}

pub(super) fn read(text: &str, answer: &mut RasAnswer) {
    let mut section = Section::None;
    for line in text.lines() {
        let body = line.trim();
        if let Some(event) = monitor_event(line) {
            answer.events.push(event);
        } else if let Some(version) = body.strip_prefix("NCCL version ") {
            answer.nccl_version = version.split_whitespace().next().map(str::to_owned);
        } else if let Some((hash, verdict)) = communicator(body) {
            section = if verdict == "INCOMPLETE" { Section::Missing } else { Section::Other };
            let known = answer.communicators.iter().position(|known| known.hash == hash);
            let mut entry =
                known.map_or_else(Communicator::default, |known| answer.communicators.remove(known));
            entry.hash = hash.to_owned();
            entry.verdicts.push(verdict.to_owned());
            answer.communicators.push(entry);
        } else if matches!(body, "INCOMPLETE" | "DEAD") {
            section = Section::Processes(body == "DEAD");
        } else if let Some(op) = between(body, "Communicator ranks have different ", " operation counts") {
            section = Section::Counts;
            if let Some(comm) = answer.communicators.last_mut() {
                comm.launched.push(Launched { op: operation(op).op, counts: Vec::new() });
            }
        } else if body.starts_with("Communicator ranks have different") || body.contains(" error") {
            section = Section::Other;
        } else if let Some(count) = between(body, "Encountered ", " communication timeout") {
            answer.timeouts += count.parse().unwrap_or(0);
        } else {
            detail(body, &section, answer);
        }
    }
}

/// An indented line under a head.
fn detail(body: &str, section: &Section, answer: &mut RasAnswer) {
    match section {
        Section::Processes(dead) => {
            if let Some(rest) = body.strip_prefix("Process ") {
                answer.absent.push(Process { dead: *dead, ..process(rest, " managing GPU") });
            }
        }
        Section::Missing => {
            if let (Some((rank, _)), Some(comm)) = (ranked(body), answer.communicators.last_mut()) {
                let process = body.contains("managed by process").then(|| managed(body));
                comm.missing.push(RasRank { rank, process, ..RasRank::default() });
            }
        }
        Section::Counts => {
            if let Some(comm) = answer.communicators.last_mut() {
                counts(body, comm);
            }
        }
        Section::None | Section::Other => {}
    }
}

/// `Rank 0 has launched up to operation 2 -- …`, `3 ranks have not launched any operations`, `Rank 5 -- GPU …`.
fn counts(body: &str, comm: &mut Communicator) {
    let Some(kind) = comm.launched.last_mut() else { return };
    let launched = if body.contains("not launched any operations") {
        Some(0)
    } else {
        body.split_once("launched up to operation ").and_then(|(_, rest)| first_number(rest))
    };
    let own = ranked(body).map(|(rank, _)| rank);
    match (launched, own) {
        (Some(launched), Some(rank)) => {
            kind.counts.push(LaunchCount { launched, ranks: vec![rank], total: 1 })
        }
        (Some(launched), None) => {
            let total = first_number(body).unwrap_or(0);
            kind.counts.push(LaunchCount { launched, ranks: Vec::new(), total });
        }
        (None, Some(rank)) => {
            if let Some(count) = kind.counts.last_mut() {
                count.ranks.push(rank);
            }
        }
        (None, None) => return,
    }
    if let Some(rank) = own.filter(|_| body.contains("managed by process")) {
        comm.ranks.push(RasRank { rank, process: Some(managed(body)), ..RasRank::default() });
    }
}

/// `#0-0 (838cd01dee862fc2) MISMATCH`.
fn communicator(line: &str) -> Option<(&str, &str)> {
    let (member, rest) = line.strip_prefix('#')?.split_once(" (")?;
    let (hash, verdict) = rest.split_once(") ")?;
    let is_member = member.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_member && is_hash).then_some((hash, verdict.trim()))
}

/// `Rank 5 …`: the rank and the rest.
fn ranked(line: &str) -> Option<(u32, &str)> {
    let rest = line.strip_prefix("Rank ")?;
    let (rank, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((rank.parse().ok()?, rest))
}

/// `… GPU 0 managed by process 606 on node 192.0.2.2`.
fn managed(line: &str) -> Process {
    let gpus = between(line, "GPU ", " managed").map_or_else(Vec::new, numbers);
    let rest = line.split_once("managed by process ").map_or("", |(_, rest)| rest);
    Process { gpus, ..process(rest, "\n") }
}

/// `607 on node 192.0.2.2 managing GPU 1`.
fn process(text: &str, end_of_host: &str) -> Process {
    let (pid, rest) = text.split_once(" on node ").unwrap_or((text, ""));
    let (host, gpus) = rest.split_once(end_of_host).unwrap_or((rest, ""));
    Process {
        host: Some(host.trim().to_owned()).filter(|host| !host.is_empty()),
        pid: pid.trim().parse().ok(),
        gpus: numbers(gpus.trim_start_matches('s')),
        dead: false,
    }
}

/// `0,1 (NVML 4,5)`: the numbers before the bracket.
fn numbers(text: &str) -> Vec<u32> {
    text.split('(').next().unwrap_or("").split(',').filter_map(|number| number.trim().parse().ok()).collect()
}

/// `[2026-11-29 20:38:02] PEER_DEAD: Process 607 on node 192.0.2.2 managing GPU 1 details`.
pub(super) fn monitor_event(line: &str) -> Option<MonitorEvent> {
    let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (event, details) = rest.split_once(": ")?;
    let is_time = time.len() == 19
        && time.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b' '));
    let is_event = event.contains('_') && event.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if !(is_time && is_event) {
        return None;
    }
    let peer = details.split_once("rocess ").filter(|(_, rest)| rest.contains(" on node "));
    let peer = peer.map_or_else(Process::default, |(_, rest)| {
        let mut peer = process(rest, " ");
        peer.gpus =
            between(rest, "GPU ", " ").or_else(|| between(rest, "GPUs ", " ")).map_or_else(Vec::new, numbers);
        peer
    });
    Some(MonitorEvent {
        timestamp: Some(time.to_owned()),
        group: None,
        event: event.to_owned(),
        peer,
        details: details.trim().to_owned(),
    })
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(from)?;
    rest.split_once(to).map(|(inner, _)| inner)
}

fn first_number(text: &str) -> Option<u64> {
    let digits = text.trim_start();
    let end = digits.find(|char: char| !char.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}
