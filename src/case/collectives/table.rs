//! The table that comparisons read: for each group, each sequence number, who called what and how far it came.
//!
//! In: dumps, one by one, and views taken from logs. Out: [`Table`]. It leaves comparing to its readers.
//!
//! A collective that all ranks call alike costs one signature and four bytes a rank, so 2,048 ranks of 2,000 entries fit in
//! some tens of megabytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{ByRank, GroupName, Progress};
use crate::read::event::Place;
use crate::read::flight_recorder::{DumpGroup, Entry, EntryState, FlightDump, Signature};

/// A signature's or place's number in the table.
pub(super) type Id = u32;

/// All groups.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    groups: Vec<Group>,
    by_name: HashMap<String, Vec<usize>>,
    signatures: Interned<Signature>,
    places: Interned<Place>,
}

#[derive(Debug, Clone)]
struct Interned<T> {
    all: Vec<Arc<T>>,
    ids: HashMap<Arc<T>, Id>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { all: Vec::new(), ids: HashMap::new() }
    }
}

impl<T: Eq + std::hash::Hash> Interned<T> {
    fn add(&mut self, value: Arc<T>) -> Id {
        let next = Id::try_from(self.all.len()).unwrap_or(Id::MAX);
        let id = *self.ids.entry(Arc::clone(&value)).or_insert(next);
        if id == next {
            self.all.push(value);
        }
        id
    }

    fn get(&self, id: Id) -> Option<&T> {
        self.all.get(id as usize).map(AsRef::as_ref)
    }
}

/// One process group.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub name: GroupName,
    /// Global ranks of the members, ascending; empty where nothing says.
    pub ranks: Arc<[u32]>,
    pub cells: HashMap<u64, Cell>,
    pub views: ByRank<RankView>,
    /// Point-to-point operations that have not completed, by rank.
    pub peers: ByRank<Vec<PendingPeer>>,
    /// True where everything known of the group comes from logs.
    pub from_log: bool,
    /// True where two ranks claim the same place inside the group, so that it is several groups of one name.
    pub ambiguous: bool,
}

/// What one rank shows of a group.
#[derive(Debug, Clone, Default)]
pub(super) struct RankView {
    /// Last enqueued; `None` where unknown.
    pub last_enqueued: Option<i64>,
    /// False where it may have enqueued more than is recorded.
    pub is_exact: bool,
    pub last_completed: Option<i64>,
    /// Oldest call that it has not completed.
    pub pending: Option<Call>,
    /// Its last recorded call.
    pub last: Option<Call>,
    /// Rank inside the group, as a log prints it.
    pub local: Option<u32>,
}

/// A call by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub seq: u64,
    pub signature: Id,
    pub at: Option<Id>,
}

/// A send or receive that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingPeer {
    pub seq: Option<u64>,
    pub signature: Id,
    pub at: Option<Id>,
}

/// One sequence number.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub variants: Vec<Variant>,
}

/// The ranks that called it in the same way.
#[derive(Debug, Clone)]
pub(super) struct Variant {
    pub signature: Id,
    /// Where the first of them called it.
    pub at: Option<Id>,
    members: Vec<u32>,
    completed: u32,
}

impl Variant {
    /// The ranks with their states.
    pub fn members(&self) -> impl Iterator<Item = (u32, EntryState)> + '_ {
        self.members.iter().map(|&packed| {
            let state = match packed & 3 {
                0 => EntryState::Scheduled,
                1 => EntryState::Started,
                _ => EntryState::Completed,
            };
            (packed >> 2, state)
        })
    }

    /// How many ranks.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// True where every rank completed it.
    pub fn all_completed(&self) -> bool {
        self.completed as usize == self.members.len()
    }
}

impl Cell {
    fn add(&mut self, call: Call, rank: u32, state: EntryState) {
        let packed = rank << 2 | state as u32;
        let completed = u32::from(state == EntryState::Completed);
        match self.variants.iter_mut().find(|variant| variant.signature == call.signature) {
            Some(variant) => {
                variant.members.push(packed);
                variant.completed += completed;
            }
            None => self.variants.push(Variant {
                signature: call.signature,
                at: call.at,
                members: vec![packed],
                completed,
            }),
        }
    }
}

impl Group {
    pub fn progress(&self) -> impl Iterator<Item = Progress> + '_ {
        self.views.iter().map(|(&rank, view)| Progress {
            rank,
            group: self.name.clone(),
            last_enqueued: view.last_enqueued,
            last_completed: view.last_completed,
        })
    }

    /// True where `rank` completed number `seq`, by its own record or by its last completed number.
    pub fn has_completed(&self, rank: u32, seq: u64, state: EntryState) -> bool {
        state == EntryState::Completed
            || self
                .views
                .get(&rank)
                .and_then(|view| view.last_completed)
                .is_some_and(|last| u64::try_from(last).is_ok_and(|last| last >= seq))
    }

    /// Adds a call of a rank that was not added at this number before.
    pub fn record(&mut self, rank: u32, call: Call, state: EntryState) {
        self.cells.entry(call.seq).or_default().add(call, rank, state);
    }
}

/// Ranks beyond this are no ranks: they share a word with their state.
const RANK_LIMIT: u32 = 1 << 30;

impl Table {
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub fn groups_mut(&mut self) -> &mut [Group] {
        &mut self.groups
    }

    pub fn signature(&self, id: Id) -> Option<&Signature> {
        self.signatures.get(id)
    }

    pub fn place(&self, id: Option<Id>) -> Option<Place> {
        self.places.get(id?).cloned()
    }

    pub fn add_signature(&mut self, signature: Signature) -> Id {
        self.signatures.add(Arc::new(signature))
    }

    /// Members of the group with the most members.
    pub fn largest_group(&self) -> Vec<u32> {
        let largest = self.groups.iter().max_by_key(|group| group.ranks.len());
        largest.map_or_else(Vec::new, |group| group.ranks.to_vec())
    }

    /// The group of this name and these members, made where it is new. A name alone stands for a group whose members nobody
    /// has named otherwise: subgroups of one mesh dimension may share a name.
    pub fn group(&mut self, name: &GroupName, ranks: &Arc<[u32]>) -> usize {
        let known = self.by_name.entry(name.name.clone()).or_default();
        let same = |group: &Group| group.ranks.is_empty() || ranks.is_empty() || group.ranks == *ranks;
        if let Some(&found) = known.iter().find(|&&index| self.groups.get(index).is_some_and(same)) {
            if let Some(group) = self.groups.get_mut(found) {
                if group.ranks.is_empty() {
                    group.ranks = Arc::clone(ranks);
                }
                group.name.desc = group.name.desc.take().or_else(|| name.desc.clone());
            }
            return found;
        }
        known.push(self.groups.len());
        self.groups.push(Group { name: name.clone(), ranks: Arc::clone(ranks), ..Group::default() });
        self.groups.len() - 1
    }

    /// Adds one rank's dump.
    pub fn add(&mut self, rank: u32, dump: &FlightDump) {
        if rank >= RANK_LIMIT {
            return;
        }
        let signatures: Vec<Id> =
            dump.signatures.iter().map(|signature| self.signatures.add(Arc::clone(signature))).collect();
        let stacks = 0..u32::try_from(dump.stacks.len()).unwrap_or(u32::MAX);
        let places: Vec<Option<Id>> = stacks
            .map(|stack| dump.user_frame(stack).map(|frame| self.places.add(Arc::new(frame.clone()))))
            .collect();
        let mut loading: Vec<Loading> =
            dump.groups.iter().map(|group| self.load_group(rank, group)).collect();
        let coalesced = Coalesced::of(dump);
        for entry in &dump.entries {
            let Some(loading) = loading.get_mut(entry.group as usize) else { continue };
            let Some(&signature) = signatures.get(entry.signature as usize) else { continue };
            let at = entry.stack.and_then(|stack| places.get(stack as usize).copied().flatten());
            let Some(group) = self.groups.get_mut(loading.group) else { continue };
            let state = coalesced.state(entry);
            if entry.p2p {
                if state != EntryState::Completed && !coalesced.is_head(dump, entry) {
                    let pending = PendingPeer { seq: entry.seq, signature, at };
                    group.peers.entry(rank).or_default().push(pending);
                }
                continue;
            }
            let Some(seq) = entry.seq else { continue };
            if coalesced.hides(dump, entry) || loading.last.is_some_and(|last| last.seq >= seq) {
                continue;
            }
            let call = Call { seq, signature, at };
            loading.last = Some(call);
            if state != EntryState::Completed && loading.pending.is_none() {
                loading.pending = Some(call);
            }
            group.record(rank, call, state);
        }
        for loading in loading {
            let Some(group) = self.groups.get_mut(loading.group) else { continue };
            group.views.insert(rank, loading.view(dump));
        }
    }

    fn load_group(&mut self, rank: u32, group: &DumpGroup) -> Loading {
        let name = GroupName { name: group.name.clone(), desc: group.desc.clone() };
        let index = self.group(&name, &group.ranks);
        // A second dump of the same rank would be counted twice; the first one stays.
        let is_known = self.groups.get(index).is_some_and(|table| table.views.contains_key(&rank));
        Loading {
            group: if is_known { usize::MAX } else { index },
            status: (group.last_enqueued, group.last_completed),
            last: None,
            pending: None,
        }
    }
}

/// A group while a dump is being added.
struct Loading {
    group: usize,
    status: (Option<i64>, Option<i64>),
    last: Option<Call>,
    pending: Option<Call>,
}

impl Loading {
    fn view(self, dump: &FlightDump) -> RankView {
        let recorded = self.last.and_then(|call| i64::try_from(call.seq).ok());
        let (enqueued, completed) = self.status;
        // Without a record and without a status it never called the group, unless the record of it was overwritten or cut.
        let never = (dump.complete && dump.overwritten == 0).then_some(-1);
        RankView {
            last_enqueued: enqueued.max(recorded).or(never),
            is_exact: enqueued.is_some() || dump.complete && (recorded.is_some() || never.is_some()),
            last_completed: completed,
            pending: self.pending.filter(|call| {
                completed.is_none_or(|last| i64::try_from(call.seq).is_ok_and(|seq| seq > last))
            }),
            last: self.last,
            local: None,
        }
    }
}

/// Calls that were enqueued together: the parts stand before a `COALESCED` entry of the same number and never change their
/// own state, so the state of the whole is theirs.
struct Coalesced(BTreeMap<(u32, bool, u64), EntryState>);

const COALESCED: &str = "COALESCED";

impl Coalesced {
    fn of(dump: &FlightDump) -> Self {
        let is_head: Vec<bool> =
            dump.signatures.iter().map(|signature| signature.op.op == COALESCED).collect();
        if !is_head.contains(&true) {
            return Self(BTreeMap::new());
        }
        let heads = dump.entries.iter().filter(|entry| is_head.get(entry.signature as usize) == Some(&true));
        Self(heads.filter_map(|entry| Some(((entry.group, entry.p2p, entry.seq?), entry.state))).collect())
    }

    fn whole(&self, entry: &Entry) -> Option<EntryState> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&(entry.group, entry.p2p, entry.seq?)).copied()
    }

    fn state(&self, entry: &Entry) -> EntryState {
        self.whole(entry).unwrap_or(entry.state)
    }

    /// True for the entry that stands for the whole.
    fn is_head(&self, dump: &FlightDump, entry: &Entry) -> bool {
        !self.0.is_empty()
            && dump
                .signatures
                .get(entry.signature as usize)
                .is_some_and(|signature| signature.op.op == COALESCED)
    }

    /// True for a part: the whole is compared instead.
    fn hides(&self, dump: &FlightDump, entry: &Entry) -> bool {
        self.whole(entry).is_some() && !self.is_head(dump, entry)
    }
}
