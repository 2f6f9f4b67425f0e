//! The first place of a group's sequence at which its ranks part.
//!
//! In: the table and one of its groups. Out: at most two findings: what hangs, and a difference that completed all the same.
//! It leaves other groups alone.

use std::collections::BTreeSet;

use super::compare::{differs, name, needs_all};
use super::finding::{Basis, Differs, Finding, GroupName, LastSeen, Mismatch, Missing, Stuck, View};
use super::table::{Call, Cell, Group, RankView, Table};
use crate::read::event::CollectiveName;
use crate::read::flight_recorder::EntryState;

/// Most views and last calls that a finding lists; the ranks are all named.
const LIST_LIMIT: usize = 64;

/// Largest group that a size is believed to tell.
const MEMBER_LIMIT: u32 = 1 << 17;

/// Compares the ranks of one group.
pub(super) fn group(table: &Table, group: &Group, known: &BTreeSet<u32>) -> Vec<Finding> {
    let scan = Scan { table, group, members: members(table, group, known) };
    let mut seqs: Vec<u64> = group.cells.keys().copied().collect();
    seqs.sort_unstable();
    let mut out = Vec::new();
    let mut harmless = None;
    for seq in seqs {
        let Some(cell) = group.cells.get(&seq) else { continue };
        if scan.is_clean(seq, cell) {
            continue;
        }
        match scan.look(seq, cell) {
            Some(Finding::Mismatch(mismatch)) if mismatch.completed => {
                harmless.get_or_insert(Finding::Mismatch(mismatch));
            }
            Some(finding) => {
                out.push(finding);
                break;
            }
            None => {}
        }
    }
    out.extend(harmless);
    out
}

/// The members: as recorded, else all ranks that show themselves; in a log's default group all ranks of the job. Where a call
/// tells the group's size and its ranks are numbered as the job's, the ones that show nothing are members too.
fn members(table: &Table, group: &Group, known: &BTreeSet<u32>) -> Vec<u32> {
    if !group.ranks.is_empty() {
        return group.ranks.to_vec();
    }
    let mut members: BTreeSet<u32> = group.views.keys().copied().collect();
    if is_default(&group.name) {
        members.extend(known);
    }
    if let Some(size) = size_by_parts(table, group)
        && members.last().is_some_and(|last| *last < size)
        && group.views.iter().all(|(rank, view)| view.local == Some(*rank))
    {
        members.extend(0..size);
    }
    members.into_iter().collect()
}

/// Whether it is the group of all ranks.
fn is_default(name: &GroupName) -> bool {
    matches!(name.name.as_str(), "" | "0" | "default_pg") || name.desc.as_deref() == Some("default_pg")
}

/// Ranks of the group, from a call that gathers or scatters equal parts: one side is as often the other as there are ranks.
fn size_by_parts(table: &Table, group: &Group) -> Option<u32> {
    let signatures = group.cells.values().flat_map(|cell| &cell.variants);
    signatures.filter_map(|variant| table.signature(variant.signature)).find_map(|call| {
        let (whole, part) = match call.op.op.trim_start_matches('_') {
            "ALLGATHER_BASE" => (call.numel_out()?, call.numel_in()?),
            "REDUCE_SCATTER_BASE" => (call.numel_in()?, call.numel_out()?),
            _ => return None,
        };
        let size = u32::try_from(whole.checked_div(part)?).ok()?;
        (whole.is_multiple_of(part) && (2..=MEMBER_LIMIT).contains(&size)).then_some(size)
    })
}

struct Scan<'t> {
    table: &'t Table,
    group: &'t Group,
    members: Vec<u32>,
}

/// What the ranks did at one sequence number.
#[derive(Default)]
struct Arrivals {
    completed: Vec<u32>,
    waiting: Vec<u32>,
    /// Waiting ranks whose GPU has begun it, and those whose GPU has not.
    started: Vec<u32>,
    not_started: Vec<u32>,
    lacking: Vec<u32>,
    unseen: Vec<u32>,
}

impl Scan<'_> {
    /// True where all members called the same and completed it: nothing to look at.
    fn is_clean(&self, seq: u64, cell: &Cell) -> bool {
        let [variant] = cell.variants.as_slice() else { return false };
        if variant.all_completed() && variant.len() == self.members.len() {
            return true;
        }
        let waits = |(rank, state)| !self.group.has_completed(rank, seq, state);
        !variant.members().any(waits)
    }

    fn look(&self, seq: u64, cell: &Cell) -> Option<Finding> {
        let arrivals = self.arrivals(seq, cell);
        if let Some(mismatch) = self.mismatch(seq, cell, &arrivals) {
            return Some(Finding::Mismatch(mismatch));
        }
        if arrivals.waiting.is_empty() {
            return None;
        }
        let variant = cell.variants.iter().max_by_key(|variant| variant.len())?;
        let signature = self.table.signature(variant.signature);
        let together = signature.is_some_and(|signature| needs_all(&signature.op.op));
        let collective = name(signature, Some(seq), &self.group.name);
        let came_through = together && !arrivals.completed.is_empty();
        let at = self.table.place(variant.at);
        if came_through {
            return arrivals
                .lacking
                .is_empty()
                .then(|| Finding::Mismatch(self.came_through(seq, cell, &arrivals)));
        }
        // Groups of one name but several memberships can't tell who is absent.
        let absent = !arrivals.lacking.is_empty() || !arrivals.unseen.is_empty();
        if absent && !self.group.ambiguous {
            let last =
                arrivals.lacking.iter().take(LIST_LIMIT).filter_map(|rank| self.last_seen(*rank)).collect();
            return Some(Finding::Missing(Missing {
                group: self.group.name.clone(),
                collective,
                missing: arrivals.lacking,
                unseen: arrivals.unseen,
                waiting: arrivals.waiting,
                waiting_at: at,
                last,
                blocked: Vec::new(),
                basis: self.basis(),
            }));
        }
        let not_started = if arrivals.started.is_empty() { Vec::new() } else { arrivals.not_started };
        Some(Finding::Stuck(Stuck {
            group: self.group.name.clone(),
            collective,
            ranks: arrivals.waiting,
            not_started,
            at,
            all_seen: !absent && !self.group.ranks.is_empty(),
            basis: self.basis(),
        }))
    }

    fn basis(&self) -> Basis {
        if self.group.from_log { Basis::Log } else { Basis::Dumps }
    }

    fn arrivals(&self, seq: u64, cell: &Cell) -> Arrivals {
        let mut out = Arrivals::default();
        let mut recorded: Vec<(u32, EntryState)> =
            cell.variants.iter().flat_map(|variant| variant.members()).collect();
        recorded.sort_unstable();
        for &rank in &self.members {
            let record = recorded
                .binary_search_by_key(&rank, |(rank, _)| *rank)
                .ok()
                .and_then(|found| recorded.get(found));
            match (record, self.group.views.get(&rank)) {
                (Some(&(_, state)), _) if self.group.has_completed(rank, seq, state) => {
                    out.completed.push(rank)
                }
                (Some(&(_, state)), _) => {
                    out.waiting.push(rank);
                    let begun =
                        if state == EntryState::Started { &mut out.started } else { &mut out.not_started };
                    begun.push(rank);
                }
                (None, None) => out.unseen.push(rank),
                (None, Some(view)) => match arrival(view, seq) {
                    Some(EntryState::Completed) => out.completed.push(rank),
                    Some(_) => {}
                    None if view.is_exact => out.lacking.push(rank),
                    None => out.unseen.push(rank),
                },
            }
        }
        out
    }

    /// A difference between the calls themselves.
    fn mismatch(&self, seq: u64, cell: &Cell, arrivals: &Arrivals) -> Option<Mismatch> {
        if cell.variants.len() < 2 {
            return None;
        }
        // Variants that NCCL would take for the same call form one view.
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        let mut worst = None;
        for (index, variant) in cell.variants.iter().enumerate() {
            let signature = self.table.signature(variant.signature)?;
            let mut home = None;
            for (kind, first) in kinds
                .iter()
                .enumerate()
                .filter_map(|(kind, of)| Some((kind, cell.variants.get(*of.first()?)?)))
            {
                match differs(self.table.signature(first.signature)?, signature) {
                    None => home = Some(kind),
                    Some(differs) => worst = Some(worst.map_or(differs, |worst: Differs| worst.min(differs))),
                }
            }
            match home {
                Some(home) => kinds.get_mut(home)?.push(index),
                None if kinds.len() < LIST_LIMIT => kinds.push(vec![index]),
                None => {}
            }
        }
        let differs = worst.filter(|_| kinds.len() > 1)?;
        let mut views: Vec<View> = kinds.iter().filter_map(|kind| self.view(seq, cell, kind)).collect();
        views.sort_by(|a, b| (b.ranks.len(), &a.ranks).cmp(&(a.ranks.len(), &b.ranks)));
        let all: usize = views.iter().map(|view| view.ranks.len()).sum();
        Some(Mismatch {
            group: self.group.name.clone(),
            seq: Some(seq),
            differs,
            odd: odd(&views, all),
            views,
            ahead: None,
            unseen: Vec::new(),
            calls_agree: false,
            completed: arrivals.waiting.is_empty() && arrivals.lacking.is_empty(),
            suspected: false,
            basis: self.basis(),
        })
    }

    fn view(&self, seq: u64, cell: &Cell, kind: &[usize]) -> Option<View> {
        let variants = || kind.iter().filter_map(|index| cell.variants.get(*index));
        let first = variants().next()?;
        let signature = self.table.signature(first.signature);
        let mut ranks: Vec<u32> =
            variants().flat_map(|variant| variant.members().map(|(rank, _)| rank)).collect();
        ranks.sort_unstable();
        let slowest = variants()
            .flat_map(|variant| variant.members())
            .map(
                |(rank, state)| {
                    if self.group.has_completed(rank, seq, state) { EntryState::Completed } else { state }
                },
            )
            .min();
        Some(View {
            ranks,
            collective: name(signature, Some(seq), &self.group.name),
            dtype: signature.and_then(|signature| {
                signature.input_dtypes.first().or(signature.output_dtypes.first()).cloned()
            }),
            state: slowest,
            at: self.table.place(first.at),
        })
    }

    /// Members that show nothing; of a job's default group also the numbers between its ranks.
    fn silent(&self, arrivals: &Arrivals) -> Vec<u32> {
        let mut silent: BTreeSet<u32> = arrivals.unseen.iter().copied().collect();
        let last = self.members.last().copied().unwrap_or(0).min(MEMBER_LIMIT);
        if is_default(&self.group.name) && self.group.ranks.is_empty() {
            silent.extend((0..last).filter(|rank| !self.members.contains(rank)));
        }
        silent.into_iter().collect()
    }

    /// What the first of `ranks` that waits waits in.
    fn ahead(&self, ranks: &[u32]) -> Option<CollectiveName> {
        let pending = |rank| self.group.views.get(rank).and_then(|view| view.pending);
        let call = ranks.iter().find_map(pending)?;
        Some(name(self.table.signature(call.signature), Some(call.seq), &self.group.name))
    }

    /// Whether the cell holds what every one of `ranks` called, by operation.
    fn is_recorded(&self, cell: &Cell, ranks: &[u32]) -> bool {
        ranks.iter().all(|rank| {
            cell.variants.iter().any(|variant| {
                let is_named =
                    self.table.signature(variant.signature).is_some_and(|found| !found.op.op.is_empty());
                is_named && variant.members().any(|(member, _)| member == *rank)
            })
        })
    }

    /// A collective that needs all ranks, completed by some and hung in by others: they called different things, or it hangs
    /// below them. A ring's rank may be through while another's data is still on its way.
    fn came_through(&self, seq: u64, cell: &Cell, arrivals: &Arrivals) -> Mismatch {
        let of = |ranks: &[u32], state| {
            let variant =
                cell.variants.iter().find(|variant| variant.members().any(|(rank, _)| ranks.contains(&rank)));
            View {
                ranks: ranks.to_vec(),
                collective: name(
                    variant.and_then(|variant| self.table.signature(variant.signature)),
                    Some(seq),
                    &self.group.name,
                ),
                dtype: None,
                state: Some(state),
                at: variant.and_then(|variant| self.table.place(variant.at)),
            }
        };
        let completed = of(&arrivals.completed, EntryState::Completed);
        let state = if arrivals.not_started.is_empty() { EntryState::Started } else { EntryState::Scheduled };
        let mut views = vec![completed, of(&arrivals.waiting, state)];
        views.sort_by_key(|view| std::cmp::Reverse(view.ranks.len()));
        let all = views.iter().map(|view| view.ranks.len()).sum();
        Mismatch {
            group: self.group.name.clone(),
            seq: Some(seq),
            differs: Differs::State,
            odd: odd(&views, all),
            views,
            ahead: self.ahead(&arrivals.completed),
            unseen: self.silent(arrivals),
            calls_agree: self.is_recorded(cell, &arrivals.completed)
                && self.is_recorded(cell, &arrivals.waiting),
            completed: false,
            suspected: true,
            basis: self.basis(),
        }
    }

    fn last_seen(&self, rank: u32) -> Option<LastSeen> {
        let view = self.group.views.get(&rank)?;
        let at = self.table.place(view.last.and_then(|call: Call| call.at));
        Some(LastSeen { rank, last_enqueued: view.last_enqueued, at })
    }
}

/// How far a rank without a record of `seq` came there, by its numbers; `None` where it never arrived.
fn arrival(view: &RankView, seq: u64) -> Option<EntryState> {
    let reached =
        |last: Option<i64>| last.is_some_and(|last| u64::try_from(last).is_ok_and(|last| last >= seq));
    if reached(view.last_completed) {
        Some(EntryState::Completed)
    } else {
        reached(view.last_enqueued).then_some(EntryState::Scheduled)
    }
}

/// The ranks outside the first view, where that view is a clear majority of at least three ranks.
fn odd(views: &[View], all: usize) -> Vec<u32> {
    let Some((first, rest)) = views.split_first() else { return Vec::new() };
    if all < 3 || first.ranks.len() * 2 <= all {
        return Vec::new();
    }
    let mut odd: Vec<u32> = rest.iter().flat_map(|view| view.ranks.iter().copied()).collect();
    odd.sort_unstable();
    odd
}
