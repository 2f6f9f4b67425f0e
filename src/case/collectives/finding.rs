//! What a comparison of ranks can find, and the sentence for each.
//!
//! In: nothing; plain types. Out: [`Finding`]. It leaves alone how findings come about.

use std::fmt::Write as _;

use serde::Serialize;

use crate::read::event::{CollectiveName, Place};
use crate::read::flight_recorder::EntryState;
use crate::text::number::grouped;

/// A process group, or a communicator of NCCL.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash, PartialOrd, Ord, Serialize)]
pub struct GroupName {
    /// Name or number as recorded (`0`); the hash of a communicator; empty where a log doesn't name it.
    pub name: String,
    /// Description (`default_pg`).
    pub desc: Option<String>,
}

impl std::fmt::Display for GroupName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.desc, self.name.as_str()) {
            (Some(desc), "" | "0") => f.write_str(desc),
            (Some(desc), name) => write!(f, "{desc} ({name})"),
            (None, "") => f.write_str("its group"),
            (None, name) => write!(f, "group {name}"),
        }
    }
}

/// What a finding rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Records of flight-recorder dumps.
    Dumps,
    /// Lines of a log.
    Log,
    /// An answer of NCCL's RAS.
    Ras,
}

/// One thing that the comparison found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// Ranks wait in a collective that others never enqueued.
    Missing(Missing),
    /// Ranks are in the same place of the sequence with different calls, or one came through and another didn't.
    Mismatch(Mismatch),
    /// Every rank enqueued the same collective and none completed it.
    Stuck(Stuck),
}

/// Ranks wait for others that never came.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Missing {
    /// Where.
    pub group: GroupName,
    /// What the others wait in.
    pub collective: CollectiveName,
    /// Ranks known not to have enqueued it.
    pub missing: Vec<u32>,
    /// Members of which nothing is known: no dump, no line.
    pub unseen: Vec<u32>,
    /// Ranks that wait.
    pub waiting: Vec<u32>,
    /// User frame that enqueued it on a waiting rank.
    pub waiting_at: Option<Place>,
    /// The last call of each missing rank, where recorded.
    pub last: Vec<LastSeen>,
    /// Missing ranks that are themselves blocked in another group.
    pub blocked: Vec<Blocked>,
    /// What it rests on.
    pub basis: Basis,
}

/// Where a missing rank was last.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastSeen {
    /// The rank.
    pub rank: u32,
    /// Last sequence number that it enqueued in the group; -1 before the first.
    pub last_enqueued: Option<i64>,
    /// User frame that enqueued it.
    pub at: Option<Place>,
}

/// A missing rank that waits elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// The rank.
    pub rank: u32,
    /// The group in which it waits.
    pub group: GroupName,
    /// The sequence number at which it waits there.
    pub seq: Option<u64>,
}

/// What differs between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Differs {
    /// The operation.
    Op,
    /// The number of elements.
    Size,
    /// The element type.
    Dtype,
    /// One rank came through what another hangs in; sizes or types were not printed or agree.
    State,
}

/// Ranks disagree about one place of the sequence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mismatch {
    /// Where.
    pub group: GroupName,
    /// Sequence number.
    pub seq: Option<u64>,
    /// What differs.
    pub differs: Differs,
    /// The views, the most common first.
    pub views: Vec<View>,
    /// Ranks that differ from a clear majority; empty without one.
    pub odd: Vec<u32>,
    /// What the ranks that came through wait in now, where it is known.
    pub ahead: Option<CollectiveName>,
    /// Members of which nothing is known: no dump, no line.
    pub unseen: Vec<u32>,
    /// True where the records show the same call on both sides, so that no difference of calls explains it.
    pub calls_agree: bool,
    /// True where it completed on every rank all the same: a bug, but not what hangs.
    pub completed: bool,
    /// True where the difference is concluded from who came through, not read.
    pub suspected: bool,
    /// What it rests on.
    pub basis: Basis,
}

/// One view of a collective and the ranks that share it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    /// Ranks, ascending.
    pub ranks: Vec<u32>,
    /// What they called.
    pub collective: CollectiveName,
    /// Element type as recorded.
    pub dtype: Option<String>,
    /// How far the slowest of them came.
    pub state: Option<EntryState>,
    /// User frame that enqueued it.
    pub at: Option<Place>,
}

/// All are there and nobody gets through.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stuck {
    /// Where.
    pub group: GroupName,
    /// What they are in.
    pub collective: CollectiveName,
    /// Ranks that wait in it.
    pub ranks: Vec<u32>,
    /// Ranks whose GPU has not begun it while others' have: busy with something before it.
    pub not_started: Vec<u32>,
    /// User frame that enqueued it.
    pub at: Option<Place>,
    /// False where the log doesn't show all members, so that one may be absent after all.
    pub all_seen: bool,
    /// What it rests on.
    pub basis: Basis,
}

impl Finding {
    /// The collective that never finished or differs.
    #[must_use]
    pub fn collective(&self) -> Option<&CollectiveName> {
        match self {
            Self::Missing(missing) => Some(&missing.collective),
            Self::Mismatch(mismatch) => {
                let named = mismatch.views.iter().find(|view| !view.collective.op.is_empty());
                named.or(mismatch.views.first()).map(|view| &view.collective)
            }
            Self::Stuck(stuck) => Some(&stuck.collective),
        }
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        match self {
            Self::Missing(missing) => &missing.group,
            Self::Mismatch(mismatch) => &mismatch.group,
            Self::Stuck(stuck) => &stuck.group,
        }
    }

    /// Ranks to look at first. Missing ranks that wait elsewhere are left out while others remain; ranks of which nothing is
    /// known count only where no rank is known to be absent.
    #[must_use]
    pub fn suspects(&self) -> Vec<u32> {
        match self {
            Self::Missing(missing) => {
                let is_free = |rank: &&u32| !missing.blocked.iter().any(|blocked| blocked.rank == **rank);
                let free: Vec<u32> = missing.missing.iter().filter(is_free).copied().collect();
                if !free.is_empty() {
                    free
                } else if !missing.unseen.is_empty() {
                    missing.unseen.clone()
                } else {
                    missing.missing.clone()
                }
            }
            Self::Mismatch(mismatch) => mismatch.odd.clone(),
            Self::Stuck(stuck) => stuck.not_started.clone(),
        }
    }

    /// One sentence: who, what, and what the others wait for.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Missing(missing) => missing.sentence(),
            Self::Mismatch(mismatch) => mismatch.sentence(),
            Self::Stuck(stuck) => stuck.sentence(),
        }
    }
}

impl Missing {
    fn sentence(&self) -> String {
        let what = shown(&self.collective);
        let mut out = if self.missing.is_empty() {
            format!(
                "nothing is known of {}, which may not have entered {what} of {}",
                ranks(&self.unseen),
                self.group
            )
        } else {
            format!("{} never entered {what} of {}", ranks(&self.missing), self.group)
        };
        if !self.waiting.is_empty() {
            let verb = if self.waiting.len() == 1 { "waits" } else { "wait" };
            let _ = write!(out, "; {} {verb} in it", ranks(&self.waiting));
            if let Some(at) = &self.waiting_at {
                let _ = write!(out, " ({})", place(at));
            }
        }
        if let [last] = self.last.as_slice() {
            match last.last_enqueued {
                Some(seq) if seq >= 0 => {
                    let _ = write!(out, "; rank {}'s last was number {seq}", last.rank);
                }
                Some(_) => {
                    let _ = write!(out, "; rank {} enqueued none", last.rank);
                }
                None => {}
            }
            if let Some(at) = &last.at {
                let _ = write!(out, " ({})", place(at));
            }
        }
        if !self.missing.is_empty() && !self.unseen.is_empty() {
            let _ = write!(out, "; nothing is known of {}", ranks(&self.unseen));
        }
        if let Some(blocked) = self.blocked.first() {
            let _ = write!(out, "; rank {} is itself blocked in {}", blocked.rank, blocked.group);
        }
        out
    }
}

impl Mismatch {
    /// A rank hangs in what others completed: what is known, and both readings of it.
    fn parted(&self) -> String {
        let view = |completed: bool| {
            self.views.iter().find(move |view| (view.state == Some(EntryState::Completed)) == completed)
        };
        let (Some(behind), Some(through)) = (view(false), view(true)) else { return String::new() };
        let verb = |ranks: &[u32]| if ranks.len() == 1 { "waits" } else { "wait" };
        let mut out = format!(
            "{} {} in {} of {}; {} completed that number",
            ranks(&behind.ranks),
            verb(&behind.ranks),
            shown(&behind.collective),
            self.group,
            ranks(&through.ranks),
        );
        if let Some(ahead) = &self.ahead {
            let _ = write!(out, " and {} in {}", verb(&through.ranks), shown(ahead));
        }
        if !self.unseen.is_empty() {
            let _ = write!(out, "; nothing is known of {}", ranks(&self.unseen));
        }
        let whose = ranks(&behind.ranks);
        let _ = if self.calls_agree {
            write!(
                out,
                ". The recorded calls agree, so the network or the GPU of {whose} is likelier than another call"
            )
        } else {
            write!(
                out,
                ". Two readings fit: {whose} called another operation or size there, or the same call hangs for {whose} in \
                 the network or on the GPU while the others came through; a log alone doesn't tell which"
            )
        };
        out
    }

    fn sentence(&self) -> String {
        if self.differs == Differs::State {
            return self.parted();
        }
        let seq = self.seq.map_or_else(|| "one collective".to_owned(), |seq| format!("collective {seq}"));
        let what = match self.differs {
            Differs::Op => "ranks call different operations",
            Differs::Size => "ranks give different numbers of elements",
            Differs::Dtype => "ranks give different element types",
            Differs::State => "a rank hangs in what another completed",
        };
        let mut out = format!("in {seq} of {} {what}", self.group);
        for (index, view) in self.views.iter().take(3).enumerate() {
            let _ = write!(out, "{} {} ", if index == 0 { ":" } else { "," }, ranks(&view.ranks));
            out.push_str(&shown(&view.collective));
            if let (Differs::Dtype, Some(dtype)) = (self.differs, &view.dtype) {
                let _ = write!(out, " of {dtype}");
            }
            if let Some(at) = &view.at {
                let _ = write!(out, " ({})", place(at));
            }
        }
        if self.completed {
            out.push_str("; it completed all the same");
        }
        out
    }
}

impl Stuck {
    fn sentence(&self) -> String {
        let all = if self.all_seen { "every rank" } else { "every rank that is seen" };
        let mut out =
            format!("{all} entered {} of {} and none completed it", shown(&self.collective), self.group);
        if let Some(at) = &self.at {
            let _ = write!(out, " ({})", place(at));
        }
        if !self.not_started.is_empty() {
            let _ = write!(out, "; the GPU of {} has not begun it", ranks(&self.not_started));
        }
        out
    }
}

fn shown(collective: &CollectiveName) -> String {
    let mut out = if collective.op.is_empty() { "a collective".to_owned() } else { collective.op.clone() };
    if let Some(seq) = collective.seq {
        let _ = write!(out, " number {seq}");
    }
    match (collective.numel_in, collective.numel_out) {
        (Some(elements), _) | (None, Some(elements)) => {
            let _ = write!(out, " of {} elements", grouped(u128::from(elements)));
        }
        _ => {}
    }
    out
}

fn place(place: &Place) -> String {
    place.line.map_or_else(|| place.file.clone(), |line| format!("{}:{line}", place.file))
}

fn ranks(all: &[u32]) -> String {
    format!("{} {}", if all.len() == 1 { "rank" } else { "ranks" }, ranges(all))
}

/// Ascending numbers as ranges: `0-3,7`; at most twelve of them, then the rest counted.
#[must_use]
pub fn ranges(all: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &rank in all {
        match parts.last_mut() {
            Some((_, to)) if to.checked_add(1) == Some(rank) => *to = rank,
            _ => parts.push((rank, rank)),
        }
    }
    let written =
        |&(from, to): &(u32, u32)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    let mut out = parts.iter().take(12).map(written).collect::<Vec<_>>().join(",");
    let rest: u64 = parts.iter().skip(12).map(|&(from, to)| u64::from(to - from) + 1).sum();
    if rest > 0 {
        let _ = write!(out, " and {rest} more");
    }
    out
}
