//! RAS answers compared: who launched fewer operations than the others, who did not answer.
//!
//! In: an answer. Out: findings, one a communicator. It leaves sequence numbers of process groups alone: RAS counts each kind
//! of operation on its own, so the number of a finding is the count of that kind.

use super::finding::{Basis, Differs, Finding, GroupName, LastSeen, Mismatch, Missing, View};
use crate::read::event::CollectiveName;
use crate::read::nccl_ras::{Communicator, Launched, RasAnswer};

/// Findings of an answer.
pub(super) fn findings(answer: &RasAnswer) -> Vec<Finding> {
    answer.communicators.iter().filter_map(communicator).collect()
}

/// The lowest count of a kind with its ranks, and the ranks ahead of it.
struct Lag<'a> {
    kind: &'a Launched,
    first_missed: u64,
    behind: Vec<u32>,
    ahead: Vec<u32>,
    /// Ranks ahead that the answer counts without naming them.
    distance: u64,
}

fn lag(kind: &Launched) -> Option<Lag<'_>> {
    let highest = kind.counts.iter().map(|count| count.launched).max()?;
    let lowest = kind.counts.iter().map(|count| count.launched).min()?;
    if highest == lowest {
        return None;
    }
    let of = |wanted: &dyn Fn(u64) -> bool| {
        let named = kind
            .counts
            .iter()
            .filter(|count| wanted(count.launched))
            .flat_map(|count| count.ranks.iter().copied());
        let mut ranks: Vec<u32> = named.collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    };
    Some(Lag {
        kind,
        first_missed: lowest.saturating_add(1),
        behind: of(&|launched| launched == lowest),
        ahead: of(&|launched| launched > lowest),
        distance: highest - lowest,
    })
}

fn communicator(comm: &Communicator) -> Option<Finding> {
    let group = GroupName { name: comm.hash.clone(), desc: None };
    let unseen: Vec<u32> = comm.missing.iter().map(|rank| rank.rank).collect();
    let lags: Vec<Lag<'_>> = comm.launched.iter().filter_map(lag).collect();
    if let Some(mismatch) = crossed(&group, &lags) {
        return Some(Finding::Mismatch(mismatch));
    }
    let worst = lags.iter().max_by_key(|lag| lag.distance);
    if worst.is_none() && unseen.is_empty() {
        return None;
    }
    let (collective, missing, waiting) = worst.map_or_else(
        || {
            (
                CollectiveName { group: Some(comm.hash.clone()), ..CollectiveName::default() },
                Vec::new(),
                Vec::new(),
            )
        },
        |lag| (name(lag, &group), lag.behind.clone(), lag.ahead.clone()),
    );
    let launched = worst.and_then(|lag| i64::try_from(lag.first_missed - 1).ok());
    Some(Finding::Missing(Missing {
        group,
        collective,
        last: missing
            .iter()
            .take(64)
            .map(|&rank| LastSeen { rank, last_enqueued: launched, at: None })
            .collect(),
        missing,
        unseen,
        waiting,
        waiting_at: None,
        blocked: Vec::new(),
        basis: Basis::Ras,
    }))
}

/// Ranks behind in one kind and ahead in another are in the same place with different operations.
fn crossed(group: &GroupName, lags: &[Lag<'_>]) -> Option<Mismatch> {
    for one in lags {
        for other in lags {
            let is_crossed = one.kind.op != other.kind.op
                && !one.behind.is_empty()
                && one.behind.iter().all(|rank| other.ahead.contains(rank))
                && other.behind.iter().any(|rank| one.ahead.contains(rank));
            if is_crossed {
                let view = |lag: &Lag<'_>| View {
                    ranks: lag.ahead.clone(),
                    collective: name(lag, group),
                    dtype: None,
                    state: None,
                    at: None,
                };
                let (mut first, mut second) = (view(one), view(other));
                if second.ranks.len() > first.ranks.len() {
                    std::mem::swap(&mut first, &mut second);
                }
                let all = first.ranks.len() + second.ranks.len();
                let odd =
                    if all >= 3 && first.ranks.len() * 2 > all { second.ranks.clone() } else { Vec::new() };
                return Some(Mismatch {
                    group: group.clone(),
                    seq: None,
                    differs: Differs::Op,
                    views: vec![first, second],
                    odd,
                    ahead: None,
                    unseen: Vec::new(),
                    calls_agree: false,
                    completed: false,
                    suspected: true,
                    basis: Basis::Ras,
                });
            }
        }
    }
    None
}

fn name(lag: &Lag<'_>, group: &GroupName) -> CollectiveName {
    CollectiveName {
        op: lag.kind.op.clone(),
        seq: Some(lag.first_missed),
        group: Some(group.name.clone()),
        numel_in: None,
        numel_out: None,
    }
}
