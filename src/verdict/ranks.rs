//! The rank board: what each rank did, and which one failed first.
//!
//! In: the case and the failures. Out: a row a rank, the odd one out first, and the root rank. A rank inside a group or a
//! device ordinal is never taken for a global rank.

use schemars::JsonSchema;
use serde::Serialize;

use std::collections::BTreeMap;

use crate::case::collectives::Finding;
use crate::case::{Case, EvidenceId};
use crate::read::event::{CollectiveName, Data, Event, ExitReporter};
use crate::tables::class::FailureClass;

use super::failure::{Failure, Role, Weight};
use super::roles;

/// State of a rank, the odd ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RankState {
    /// Failed by itself.
    Failed,
    /// Left nothing where the others left something.
    Silent,
    /// Waited for another rank.
    Waiting,
    /// Ended by the launcher.
    Terminated,
    /// Ended well.
    Finished,
    /// Nothing tells.
    Unknown,
}

/// A rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankRow {
    /// Global rank.
    pub rank: u32,
    /// Host.
    pub host: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// PCI bus id.
    pub pci: Option<String>,
    /// State.
    pub state: RankState,
    /// Signal that ended it.
    pub signal: Option<u32>,
    /// Exit code as printed.
    pub exit_code: Option<i64>,
    /// Last enqueued collective.
    pub last_enqueued: Option<i64>,
    /// Last completed collective.
    pub last_completed: Option<i64>,
    /// Evidence.
    pub evidence: Vec<EvidenceId>,
}

impl RankRow {
    fn new(rank: u32) -> Self {
        Self {
            rank,
            host: None,
            pid: None,
            pci: None,
            state: RankState::Unknown,
            signal: None,
            exit_code: None,
            last_enqueued: None,
            last_completed: None,
            evidence: Vec::new(),
        }
    }
}

/// Evidence that a row lists.
const EVIDENCE_LIMIT: usize = 8;

/// One row a rank.
#[must_use]
pub fn board(case: &Case, failures: &[Failure]) -> Vec<RankRow> {
    let mut rows: BTreeMap<u32, RankRow> = BTreeMap::new();
    let pids = pids(case);
    let is_nccl = failures.first().is_some_and(|failure| failure.class == FailureClass::Nccl);
    for (id, event) in case.events() {
        let Some(rank) = rank_of(event, &pids) else { continue };
        let row = rows.entry(rank).or_insert_with(|| RankRow::new(rank));
        take(row, id, event);
    }
    for failure in failures {
        let rank = failure.rank.or_else(|| failure.pid.and_then(|pid| pids.get(&pid).copied()));
        let Some(row) = rank.and_then(|rank| rows.get_mut(&rank)) else { continue };
        let own =
            failure.role == Role::Root || failure.role == Role::Cascade && failure.weight >= Weight::Program;
        // A watchdog that gives up waiting aborts its own process.
        let gave_up = is_nccl && failure.class == FailureClass::Abort && gave_up_at(case, row.rank);
        if gave_up {
            row.state = RankState::Waiting;
        } else if own && failure.class != FailureClass::Nccl {
            row.state = RankState::Failed;
        }
    }
    let suspects = take_matched(&mut rows, case);
    let mut rows: Vec<RankRow> = rows.into_values().collect();
    // Among ranks that wait for each other the one that is behind is the odd one, whichever was ended first.
    let is_odd = |row: &RankRow| is_nccl && suspects.contains(&row.rank);
    rows.sort_by_key(|row| (!is_odd(row), row.state, row.rank));
    rows
}

/// Whether a rank's own watchdog said that it waited too long.
fn gave_up_at(case: &Case, rank: u32) -> bool {
    case.pick(|data| matches!(data, Data::CollectiveTimeout(_)).then_some(()))
        .any(|(_, event, ())| event.origin.rank == Some(rank))
}

/// How far each rank came, who waits and who never came, as the comparison of collectives tells. Gives the ranks to look at
/// first.
fn take_matched(rows: &mut BTreeMap<u32, RankRow>, case: &Case) -> Vec<u32> {
    let matched = case.matched();
    for progress in &matched.progress {
        let row = rows.entry(progress.rank).or_insert_with(|| RankRow::new(progress.rank));
        row.last_enqueued = row.last_enqueued.or(progress.last_enqueued);
        row.last_completed = row.last_completed.or(progress.last_completed);
    }
    let Some(finding) = matched.findings.first() else { return Vec::new() };
    let (waiting, unseen) = match finding {
        Finding::Missing(missing) => (missing.waiting.clone(), missing.unseen.clone()),
        Finding::Mismatch(mismatch) => (Vec::new(), mismatch.unseen.clone()),
        Finding::Stuck(stuck) => (stuck.ranks.clone(), Vec::new()),
    };
    for rank in waiting {
        let row = rows.entry(rank).or_insert_with(|| RankRow::new(rank));
        if matches!(row.state, RankState::Unknown | RankState::Terminated | RankState::Finished) {
            row.state = RankState::Waiting;
        }
    }
    let suspects = finding.suspects();
    let silent = suspects.iter().chain(&unseen).chain(&matched.without_dump);
    for &rank in silent.take(4_096) {
        let row = rows.entry(rank).or_insert_with(|| RankRow::new(rank));
        // One that says that it waits is behind, not silent.
        let waits_aloud = matches!(finding, Finding::Mismatch(_)) && row.state == RankState::Waiting;
        if row.state != RankState::Failed && !waits_aloud {
            row.state = RankState::Silent;
        }
    }
    suspects
}

/// Process ids of ranks, as launchers print them.
fn pids(case: &Case) -> BTreeMap<u32, u32> {
    case.events()
        .filter_map(|(_, event)| match &event.data {
            Data::Exit(exit) => Some((exit.pid?, exit.rank.or(exit.local_rank)?)),
            _ => Some((event.origin.pid?, event.origin.rank?)),
        })
        .collect()
}

fn rank_of(event: &Event, pids: &BTreeMap<u32, u32>) -> Option<u32> {
    let by_pid = |pid: Option<u32>| pid.and_then(|pid| pids.get(&pid).copied());
    match &event.data {
        Data::Exit(exit) => exit.rank.or(exit.local_rank).or_else(|| by_pid(exit.pid)).or(event.origin.rank),
        Data::Cleanup(cleanup) => by_pid(cleanup.pid).or(event.origin.rank),
        Data::Xid(xid) => by_pid(xid.pid),
        _ => event.origin.rank.or_else(|| by_pid(event.origin.pid)),
    }
}

fn take(row: &mut RankRow, id: EvidenceId, event: &Event) {
    if row.evidence.len() < EVIDENCE_LIMIT {
        row.evidence.push(id);
    }
    row.host = row.host.take().or_else(|| event.origin.host.clone());
    row.pid = row.pid.or(event.origin.pid);
    match &event.data {
        Data::CollectiveTimeout(_) => row.state = row.state.min(RankState::Waiting),
        Data::WorkStatus(status) => {
            row.last_enqueued = status.last_enqueued.or(row.last_enqueued);
            row.last_completed = status.last_completed.or(row.last_completed);
        }
        Data::Exit(exit) => {
            row.pid = exit.pid.or(row.pid);
            row.host = exit.host.clone().or_else(|| row.host.take());
            row.signal = exit.signal.or(row.signal);
            row.exit_code = exit.code.or(row.exit_code);
            let state = match (exit.signal, exit.code) {
                (Some(15 | 9), _) | (None, Some(-15 | -9)) => RankState::Terminated,
                (None, Some(0)) => RankState::Finished,
                _ => RankState::Failed,
            };
            row.state = if row.state == RankState::Unknown { state } else { row.state.min(state) };
        }
        Data::Cleanup(_) if row.state == RankState::Unknown => row.state = RankState::Terminated,
        Data::Xid(xid) => row.pci = xid.pci.clone().or_else(|| row.pci.take()),
        _ => {}
    }
}

/// The rank that failed first.
#[must_use]
pub fn root_rank(case: &Case, failures: &[Failure]) -> Option<u32> {
    let root = failures.first()?;
    if root.class == FailureClass::Nccl
        && (root.weight == Weight::Waiting || !case.matched().findings.is_empty())
    {
        return case.matched().root_rank();
    }
    if root.rank.is_some() {
        let ordered = !failures.iter().skip(1).any(|other| roles::unordered(root, other));
        return root.rank.filter(|rank| ordered || observed_first(case) == Some(*rank));
    }
    let pids = pids(case);
    if let Some(rank) = root.pid.and_then(|pid| pids.get(&pid).copied()) {
        return Some(rank);
    }
    let alike = failures.iter().skip(1).find(|other| other.class == root.class && other.rank.is_some());
    alike.and_then(|other| other.rank).or_else(|| named_by_launcher(case, root))
}

/// The rank that torchrun saw fail first, where its times tell ranks apart; they count seconds.
#[must_use]
pub fn observed_first(case: &Case) -> Option<u32> {
    let exits: Vec<_> = case
        .pick(|data| match data {
            Data::Exit(exit) if exit.code != Some(0) && exit.signal != Some(15) => Some(exit),
            _ => None,
        })
        .map(|(_, _, exit)| exit)
        .collect();
    let root = exits.iter().find(|exit| exit.reporter == ExitReporter::ElasticRootCause)?;
    let rank = root.rank?;
    let same_time = exits.iter().any(|exit| {
        exit.reporter == ExitReporter::ElasticReport
            && exit.rank != Some(rank)
            && exit.time.is_some()
            && exit.time == root.time
    });
    (!same_time).then_some(rank)
}

/// torchrun's first observed failure: a heuristic of the launcher, taken where nothing better tells and where its exit fits.
fn named_by_launcher(case: &Case, root: &Failure) -> Option<u32> {
    let exits: Vec<_> = case
        .pick(|data| match data {
            Data::Exit(exit) if exit.rank.is_some() || exit.local_rank.is_some() => Some(exit),
            _ => None,
        })
        .map(|(_, _, exit)| exit)
        .collect();
    let fits = |signal: Option<u32>| match root.class {
        FailureClass::Segfault => matches!(signal, Some(11 | 7)),
        _ => !matches!(signal, Some(15)),
    };
    let rank = |reporter: ExitReporter| {
        exits
            .iter()
            .find(|exit| exit.reporter == reporter && fits(exit.signal) && exit.code != Some(0))
            .and_then(|exit| exit.rank.or(exit.local_rank))
    };
    rank(ExitReporter::ElasticRootCause).or_else(|| rank(ExitReporter::Elastic))
}

/// The collective that never finished, as the logs name it.
#[must_use]
pub fn collective(case: &Case, class: FailureClass) -> Option<CollectiveName> {
    if class != FailureClass::Nccl {
        return None;
    }
    if let Some(found) = case.matched().findings.iter().find_map(Finding::collective) {
        return Some(found.clone());
    }
    case.pick(|data| match data {
        Data::CollectiveTimeout(timeout) => Some(&timeout.collective),
        _ => None,
    })
    .map(|(_, _, collective)| collective.clone())
    .min_by_key(|collective| collective.seq.unwrap_or(u64::MAX))
}
