//! PyTorch flight-recorder dumps: what one rank enqueued, and how far each collective came (formats.md 3.4).
//!
//! In: one file's bytes, pickle or JSON. Out: [`FlightDump`], compact: signatures and stacks are stored once, an entry is a
//! few numbers. It leaves alone what other ranks did: `case::collectives` compares them.
//!
//! A dump has no room for its own rank, which stands in the file's name: see [`ranks_from_names`]. Keys that a version
//! lacks stay empty; a dump that was cut gives the entries that were whole.

mod extract;
mod many;
mod op;
mod rank_name;

use std::sync::Arc;

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::read::event::{Data, Event, GroupRank, InputId, Origin, Place, Span, WorkStatus};
use crate::read::{loose_json, pickle};

pub use many::read_each;
pub use op::{OpName, operation};
pub use rank_name::ranks_from_names;

/// One rank's dump.
#[derive(Debug, Clone, Default)]
pub struct FlightDump {
    /// The rank, where the content tells it; the file's name usually knows better.
    pub rank: Option<u32>,
    /// Format version as written (`2.10`).
    pub version: Option<String>,
    /// Version of the communication library (`2.28.9`).
    pub comm_lib_version: Option<String>,
    /// Process groups that this rank is in, or has entries of.
    pub groups: Vec<DumpGroup>,
    /// Entries, in the order in which they were recorded.
    pub entries: Vec<Entry>,
    /// Signatures that entries refer to, each once.
    pub signatures: Vec<Arc<Signature>>,
    /// Python frames that stacks refer to, each once.
    pub frames: Vec<Place>,
    /// Stacks that entries refer to, each once: indices in `frames`, innermost first.
    pub stacks: Vec<Box<[u32]>>,
    /// False where the file ends before the dump does.
    pub complete: bool,
    /// Older entries that the ring buffer overwrote; absence of an early number then says nothing.
    pub overwritten: u64,
    /// Sentences about what was left out.
    pub diagnostics: Vec<String>,
}

/// A process group, as one rank knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DumpGroup {
    /// Name (`0`): the same on all members.
    pub name: String,
    /// Description (`default_pg`); `None` where absent or `undefined`.
    pub desc: Option<String>,
    /// Global ranks of the members, ascending; empty where the dump doesn't say.
    pub ranks: Arc<[u32]>,
    /// Last collective that this rank enqueued; -1 before the first.
    pub last_enqueued: Option<i64>,
    /// Last one known to have started; -1 where starts aren't recorded.
    pub last_started: Option<i64>,
    /// Last one known to have completed; -1 before the first.
    pub last_completed: Option<i64>,
}

/// One recorded operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Number of the record on this rank.
    pub record: u64,
    /// Sequence number: of collectives, or of point-to-point operations where `p2p`.
    pub seq: Option<u64>,
    /// Wall clock of this rank at enqueueing, in nanoseconds since 1970.
    pub created_ns: i64,
    /// Time limit in milliseconds.
    pub timeout_ms: Option<u32>,
    /// Index in [`FlightDump::groups`].
    pub group: u32,
    /// Index in [`FlightDump::signatures`].
    pub signature: u32,
    /// Index in [`FlightDump::stacks`].
    pub stack: Option<u32>,
    /// How far it came.
    pub state: EntryState,
    /// True for send, receive and their coalesced form.
    pub p2p: bool,
}

/// How far an operation came on its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    /// Enqueued. Also the state of a running one where starts aren't recorded, which is the default.
    Scheduled,
    /// Seen running on the GPU.
    Started,
    /// Seen done.
    Completed,
}

/// What an operation was called with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Signature {
    /// Operation (`ALLREDUCE`), and the peers of a point-to-point one.
    pub op: OpName,
    /// Shapes of the inputs, in elements.
    pub input_sizes: Vec<Vec<i64>>,
    /// Shapes of the outputs, in elements.
    pub output_sizes: Vec<Vec<i64>>,
    /// Element types of the inputs as written (`Float`).
    pub input_dtypes: Vec<String>,
    /// Element types of the outputs.
    pub output_dtypes: Vec<String>,
}

impl Signature {
    /// Elements of all inputs; `None` beyond 64 bits or without inputs.
    #[must_use]
    pub fn numel_in(&self) -> Option<u64> {
        numel(&self.input_sizes)
    }

    /// Elements of all outputs; `None` beyond 64 bits or without outputs.
    #[must_use]
    pub fn numel_out(&self) -> Option<u64> {
        numel(&self.output_sizes)
    }
}

fn numel(sizes: &[Vec<i64>]) -> Option<u64> {
    if sizes.is_empty() {
        return None;
    }
    sizes.iter().try_fold(0u64, |sum, shape| {
        let elements = shape.iter().try_fold(1u64, |all, &dim| all.checked_mul(u64::try_from(dim).ok()?))?;
        sum.checked_add(elements)
    })
}

impl FlightDump {
    /// The frames of a stack, innermost first.
    pub fn stack(&self, stack: u32) -> impl Iterator<Item = &Place> {
        let frames = self.stacks.get(stack as usize).map_or(&[][..], AsRef::as_ref);
        frames.iter().filter_map(|frame| self.frames.get(*frame as usize))
    }

    /// The frame of a stack that belongs to the user's program: the innermost one outside the framework and its launchers.
    #[must_use]
    pub fn user_frame(&self, stack: u32) -> Option<&Place> {
        self.stack(stack).find(|frame| !is_framework_file(&frame.file))
    }

    /// How far `rank` came in each group, as events of the whole file.
    #[must_use]
    pub fn status_events(&self, input: InputId, rank: u32) -> Vec<Event> {
        let event = |group: &DumpGroup| {
            let name = group
                .desc
                .as_ref()
                .map_or_else(|| group.name.clone(), |desc| format!("{}({desc})", group.name));
            let shown = |seq: Option<i64>| seq.map_or_else(|| "unknown".to_owned(), |seq| seq.to_string());
            let place = group.ranks.binary_search(&rank).ok().and_then(|place| u32::try_from(place).ok());
            Event {
                span: Span { input, line: 0, byte: 0, lines: 0 },
                text: format!(
                    "rank {rank}, group {name}: last enqueued {}, last completed {}",
                    shown(group.last_enqueued),
                    shown(group.last_completed)
                ),
                origin: Origin {
                    rank: Some(rank),
                    group: Some(GroupRank { group: name, rank: place }),
                    ..Origin::default()
                },
                data: Data::WorkStatus(WorkStatus {
                    last_enqueued: group.last_enqueued,
                    last_started: group.last_started,
                    last_completed: group.last_completed,
                    ..WorkStatus::default()
                }),
            }
        };
        self.groups.iter().map(event).collect()
    }
}

/// True for files of PyTorch, the frameworks above it and the standard library.
fn is_framework_file(file: &str) -> bool {
    const PACKAGES: [&str; 12] = [
        "torch",
        "torchrun",
        "lightning",
        "pytorch_lightning",
        "lightning_fabric",
        "accelerate",
        "deepspeed",
        "transformers",
        "megatron",
        "ray",
        "concurrent",
        "threading.py",
    ];
    if file.starts_with('<') || file.ends_with(".cpp") || file.contains("/importlib/") {
        return true;
    }
    let mut parts = file.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_library = part == "site-packages" || part == "dist-packages" || part.starts_with("python3.");
        if is_library && parts.peek().is_some_and(|next| PACKAGES.contains(next)) {
            return true;
        }
    }
    file.starts_with("torch/distributed/")
        || file.contains("/torch/distributed/")
        || file.contains("/torch/nn/")
}

/// Reads a dump, pickle or JSON.
///
/// # Errors
/// [`ErrorKind::Refused`] for a pickle that names code, [`ErrorKind::Limit`] past a bound, [`ErrorKind::Format`] for bytes
/// that hold no dump at all.
pub fn read(bytes: &[u8]) -> Result<FlightDump> {
    let first = bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    let (dump, stopped) = if first == Some(b'{') && !pickle::looks_like_pickle(bytes) {
        let json = loose_json::decode(bytes, 0)?;
        (extract::dump(&json.plain, json.root), json.stopped)
    } else {
        let pickle = pickle::decode(bytes)?;
        (extract::dump(&pickle.plain, pickle.root), pickle.stopped)
    };
    let Some(mut dump) = dump else {
        let why = stopped.map_or_else(String::new, |why| format!(": {why}"));
        return Err(Error::new(
            ErrorKind::Format,
            format!("no flight-recorder dump: neither entries nor groups{why}"),
        ));
    };
    dump.complete = stopped.is_none();
    if let Some(why) = stopped {
        dump.diagnostics
            .push(format!("the dump is cut ({why}); {} whole entries were read", dump.entries.len()));
    }
    Ok(dump)
}

/// True where the bytes look like a dump: any pickle (a hostile one is to be reported, not overlooked), or JSON with the
/// recorder's keys near its beginning.
#[must_use]
pub fn looks_like_flight_dump(bytes: &[u8]) -> bool {
    if pickle::looks_like_pickle(bytes) {
        return true;
    }
    let head = bytes.get(..bytes.len().min(1 << 16)).unwrap_or(bytes);
    let has = |key: &[u8]| memchr::memmem::find(head, key).is_some();
    head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
        && (has(b"\"collective_seq_id\"") || has(b"\"pg_config\"") || has(b"\"nccl_comm_state\""))
}

#[cfg(test)]
mod tests;
