//! Collectives matched across ranks: who never arrived, who called something else, who waits for whom.
//!
//! In: flight-recorder dumps, log events and RAS answers, in any order and mix ([`Matcher`]). Out: [`Matched`]: findings, the
//! likeliest origin first, and how far each rank came in each group. It leaves alone why a rank stayed away: its own log
//! or its missing process tells that.
//!
//! Sequence numbers are compared inside one process group only. A rank that lacks the next record is the suspect, not the
//! ranks that timed out waiting for it. With two ranks that differ neither is the odd one.

mod compare;
mod diagnose;
mod event;
mod finding;
mod log;
mod p2p;
mod ras;
mod table;
mod wait;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::read::event::Event;
use crate::read::flight_recorder::FlightDump;
use crate::read::nccl_ras::RasAnswer;

pub use finding::{
    Basis, Blocked, Differs, Finding, GroupName, LastSeen, Mismatch, Missing, Stuck, View, ranges,
};

/// Gathers what each rank did, then compares. Dumps may be dropped once they are added.
#[derive(Debug, Clone, Default)]
pub struct Matcher {
    table: table::Table,
    log: log::Statuses,
    /// Ranks that are known to exist.
    members: BTreeSet<u32>,
    /// Ranks that left a dump.
    dumped: BTreeSet<u32>,
    reported: Vec<Finding>,
}

/// How far a rank came in one group.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Progress {
    /// Global rank, where known; else the rank inside the group.
    pub rank: u32,
    /// The group.
    pub group: GroupName,
    /// Last collective that it enqueued; -1 before the first; `None` where unknown.
    pub last_enqueued: Option<i64>,
    /// Last one that completed.
    pub last_completed: Option<i64>,
}

/// What the comparison found.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Matched {
    /// Findings, the likeliest origin first; empty where every rank agrees and nothing waits.
    pub findings: Vec<Finding>,
    /// One row a rank and group, by rank.
    pub progress: Vec<Progress>,
    /// Members of a dumped group that left no dump, where some rank did.
    pub without_dump: Vec<u32>,
    /// True where every absent rank is itself blocked in another group: ranks call their groups in different orders.
    pub crossed: bool,
}

impl Matched {
    /// The rank to look at first, where the evidence names exactly one.
    #[must_use]
    pub fn root_rank(&self) -> Option<u32> {
        match self.findings.first()?.suspects().as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }
}

impl Matcher {
    /// Adds the dump of `rank`.
    pub fn add_dump(&mut self, rank: u32, dump: &FlightDump) {
        self.dumped.insert(rank);
        self.members.insert(rank);
        self.table.add(rank, dump);
    }

    /// Adds what an event says about a collective; other events are ignored.
    pub fn add_event(&mut self, event: &Event) {
        self.members.extend(event.origin.rank);
        self.reported.extend(self.log.add(event));
    }

    /// Adds a RAS answer.
    pub fn add_ras(&mut self, answer: &RasAnswer) {
        self.reported.extend(ras::findings(answer));
    }

    /// Says that ranks 0 to `size` - 1 exist, so that a silent one can be named.
    pub fn set_world_size(&mut self, size: u32) {
        self.members.extend(0..size.min(1 << 20));
    }

    /// Says that `rank` exists.
    pub fn add_member(&mut self, rank: u32) {
        self.members.insert(rank);
    }

    /// True where something was added that can be compared.
    #[must_use]
    pub fn has_evidence(&self) -> bool {
        !self.dumped.is_empty() || !self.log.is_empty() || !self.reported.is_empty()
    }

    /// Compares all that was added so far.
    #[must_use]
    pub fn finish(&self) -> Matched {
        let world = if self.dumped.is_empty() { Vec::new() } else { self.table.largest_group() };
        let without_dump = world.into_iter().filter(|rank| !self.dumped.contains(rank)).collect();
        let mut table = Cow::Borrowed(&self.table);
        if !self.log.is_empty() {
            self.log.merge_into(table.to_mut());
        }
        let mut findings = Vec::new();
        for group in table.groups() {
            findings.extend(diagnose::group(&table, group, &self.members));
            findings.extend(p2p::group(&table, group));
        }
        findings.extend(self.reported.iter().cloned());
        let crossed = wait::order(&mut findings, &table);
        let mut progress: Vec<Progress> = table.groups().iter().flat_map(table::Group::progress).collect();
        progress.sort_by(|a, b| (a.rank, &a.group.name).cmp(&(b.rank, &b.group.name)));
        Matched { findings, progress, without_dump, crossed }
    }
}

/// Ranks in ascending order, by what is said of each.
type ByRank<T> = BTreeMap<u32, T>;

#[cfg(test)]
mod tests;
