//! What logs say of collectives: watchdog time-outs and last-enqueued lines of each rank.
//!
//! In: events. Out: views of ranks in groups, put into the table beside those of dumps; a dump of the same rank and group
//! knows better and stays. It leaves alone lines that name neither a rank nor a number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::GroupName;
use super::finding::{Basis, Differs, Finding, Mismatch, Missing, View};
use super::table::{Call, RankView, Table};
use crate::read::event::{CollectiveMismatch, CollectiveName, Data, Event};
use crate::read::flight_recorder::{EntryState, OpName, Signature};

/// Statuses gathered from a log, by rank and by group as printed.
#[derive(Debug, Clone, Default)]
pub(super) struct Statuses {
    by_rank: BTreeMap<(u32, Option<String>), Status>,
}

#[derive(Debug, Default, Clone)]
struct Status {
    local: Option<u32>,
    enqueued: Option<i64>,
    completed: Option<i64>,
    /// Calls that timed out, or at which the watchdog noticed the failure.
    waits: BTreeMap<u64, Option<CollectiveName>>,
}

impl Status {
    fn merge(&mut self, other: Self) {
        self.local = self.local.or(other.local);
        self.enqueued = self.enqueued.max(other.enqueued);
        self.completed = self.completed.max(other.completed);
        for (seq, name) in other.waits {
            let known = self.waits.entry(seq).or_default();
            *known = known.take().or(name);
        }
    }

    /// True where a call numbered `seq` fits these numbers.
    fn fits(&self, seq: u64) -> bool {
        let Ok(number) = i64::try_from(seq) else { return false };
        self.waits.contains_key(&seq)
            || self.enqueued.is_some_and(|last| last >= number)
                && self.completed.is_none_or(|last| last < number)
    }
}

impl Statuses {
    pub fn is_empty(&self) -> bool {
        self.by_rank.is_empty()
    }

    /// Takes an event in. A mismatch that a producer states itself comes back as a finding.
    pub fn add(&mut self, event: &Event) -> Option<Finding> {
        let group = event.origin.group.as_ref();
        let local = group.and_then(|group| group.rank);
        let printed = |named: Option<&String>| {
            named.or(group.map(|group| &group.group)).filter(|name| !name.is_empty()).cloned()
        };
        let mut status = Status { local, ..Status::default() };
        let name = match &event.data {
            Data::CollectiveTimeout(timeout) => {
                if let Some(seq) = timeout.collective.seq {
                    status.waits.insert(seq, Some(timeout.collective.clone()));
                }
                printed(timeout.collective.group.as_ref())
            }
            Data::WorkStatus(work) => {
                status.enqueued = work.last_enqueued;
                status.completed = work.last_completed;
                if let Some(seq) = work.failed_at {
                    status.waits.insert(seq, None);
                }
                printed(None)
            }
            Data::CollectiveMismatch(mismatch) => {
                return reported(
                    mismatch,
                    group.map_or_else(GroupName::default, |group| group_name(Some(&group.group))),
                );
            }
            _ => return None,
        };
        let rank = event.origin.rank.or(local)?;
        self.by_rank.entry((rank, name)).or_default().merge(status);
        None
    }

    /// Puts all statuses into the table.
    pub fn merge_into(&self, table: &mut Table) {
        let mut named = self.clone();
        named.join_unnamed();
        let before = table.groups().len();
        for ((rank, name), status) in named.by_rank {
            let wanted = group_name(name.as_deref());
            let index = find(table, rank, &wanted).unwrap_or_else(|| table.group(&wanted, &Arc::from([])));
            let waits = status.waits.iter().filter(|(seq, _)| {
                status.completed.is_none_or(|last| i64::try_from(**seq).is_ok_and(|seq| seq > last))
            });
            let mut pending = None;
            for (&seq, name) in waits.take(1) {
                let signature = table.add_signature(signature(name.as_ref()));
                pending = Some(Call { seq, signature, at: None });
            }
            let Some(group) = table.groups_mut().get_mut(index) else { continue };
            group.from_log = index >= before;
            if group.views.contains_key(&rank) {
                continue;
            }
            if let Some(call) = pending {
                group.record(rank, call, EntryState::Scheduled);
            }
            let waits_at = pending.and_then(|call| i64::try_from(call.seq).ok());
            group.ambiguous |= status.local.is_some()
                && group.views.values().any(|other: &RankView| other.local == status.local);
            group.views.insert(
                rank,
                RankView {
                    last_enqueued: status.enqueued.max(waits_at),
                    is_exact: status.enqueued.is_some(),
                    last_completed: status.completed,
                    pending,
                    last: pending,
                    local: status.local,
                },
            );
        }
    }

    /// A time-out line may not name its group; the status line beside it does.
    fn join_unnamed(&mut self) {
        let named: BTreeSet<Option<String>> =
            self.by_rank.keys().map(|(_, name)| name.clone()).filter(Option::is_some).collect();
        let unnamed: Vec<u32> =
            self.by_rank.keys().filter(|(_, name)| name.is_none()).map(|(rank, _)| *rank).collect();
        for rank in unnamed {
            let Some(status) = self.by_rank.remove(&(rank, None)) else { continue };
            let own = || self.by_rank.iter().filter(|((of, _), _)| *of == rank);
            let fitting: Vec<_> = own()
                .filter(|(_, other)| status.waits.keys().any(|seq| other.fits(*seq)))
                .map(|(key, _)| key.clone())
                .collect();
            let all: Vec<_> = own().map(|(key, _)| key.clone()).collect();
            let key = match (fitting.as_slice(), all.as_slice()) {
                ([key], _) | (_, [key]) => key.clone(),
                _ if named.len() == 1 => (rank, named.first().cloned().flatten()),
                _ => (rank, None),
            };
            self.by_rank.entry(key).or_default().merge(status);
        }
    }
}

/// `default_pg`, `3`, `3(mesh_tp)`: name and description.
fn group_name(printed: Option<&str>) -> GroupName {
    let printed = printed.unwrap_or("").trim();
    if let Some((name, desc)) = printed.split_once('(') {
        let desc = desc.trim_end_matches(')').trim();
        return GroupName {
            name: name.trim().to_owned(),
            desc: Some(desc.to_owned()).filter(|desc| !desc.is_empty()),
        };
    }
    if printed == "default_pg" {
        return GroupName { name: "0".to_owned(), desc: Some(printed.to_owned()) };
    }
    GroupName { name: printed.to_owned(), desc: None }
}

/// The group of a dump that a log means: by name, else by a description that only one of the rank's groups bears.
fn find(table: &Table, rank: u32, wanted: &GroupName) -> Option<usize> {
    let mine = || {
        table
            .groups()
            .iter()
            .enumerate()
            .filter(|(_, group)| group.ranks.is_empty() || group.ranks.contains(&rank))
    };
    if wanted.name.is_empty() && wanted.desc.is_none() {
        let mut all = mine().map(|(index, _)| index);
        return all.next().filter(|_| all.next().is_none());
    }
    if let Some((index, _)) = mine().find(|(_, group)| group.name.name == wanted.name) {
        return Some(index);
    }
    let desc = wanted.desc.as_deref().unwrap_or(&wanted.name);
    let mut described =
        mine().filter(|(_, group)| group.name.desc.as_deref() == Some(desc)).map(|(index, _)| index);
    described.next().filter(|_| described.next().is_none())
}

fn signature(name: Option<&CollectiveName>) -> Signature {
    let Some(name) = name else { return Signature::default() };
    let sizes = |numel: Option<u64>| {
        numel.and_then(|numel| i64::try_from(numel).ok()).map_or_else(Vec::new, |numel| vec![vec![numel]])
    };
    Signature {
        op: OpName { op: name.op.clone(), peers: None },
        input_sizes: sizes(name.numel_in),
        output_sizes: sizes(name.numel_out),
        ..Signature::default()
    }
}

/// A disagreement that a producer states itself.
fn reported(mismatch: &CollectiveMismatch, group: GroupName) -> Option<Finding> {
    let first = mismatch.views.first().map(|(_, name)| name.clone());
    if !mismatch.missing.is_empty() {
        return Some(Finding::Missing(Missing {
            group,
            collective: first.unwrap_or_default(),
            missing: mismatch.missing.clone(),
            unseen: Vec::new(),
            waiting: mismatch
                .views
                .iter()
                .map(|(rank, _)| *rank)
                .filter(|rank| !mismatch.missing.contains(rank))
                .collect(),
            waiting_at: None,
            last: Vec::new(),
            blocked: Vec::new(),
            basis: Basis::Log,
        }));
    }
    first.as_ref()?;
    let differs = match mismatch.differs.as_str() {
        "op" | "sequence" => Differs::Op,
        "dtype" => Differs::Dtype,
        _ => Differs::Size,
    };
    let view = |(rank, name): &(u32, CollectiveName)| View {
        ranks: vec![*rank],
        collective: name.clone(),
        dtype: None,
        state: None,
        at: None,
    };
    Some(Finding::Mismatch(Mismatch {
        group,
        seq: first.and_then(|name| name.seq),
        differs,
        views: mismatch.views.iter().map(view).collect(),
        odd: Vec::new(),
        ahead: None,
        unseen: Vec::new(),
        calls_agree: false,
        completed: false,
        suspected: false,
        basis: Basis::Log,
    }))
}
