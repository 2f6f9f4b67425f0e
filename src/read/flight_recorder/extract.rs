//! From decoded values to a dump's types.
//!
//! In: a [`Plain`] with the dump's outermost dict. Out: [`FlightDump`]. It leaves alone keys that it doesn't know.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::{DumpGroup, Entry, EntryState, FlightDump, Signature, operation};
use crate::read::event::Place;
use crate::read::plain::{Plain, Value};

/// Most ranks that a group's list is read to.
const RANK_LIMIT: usize = 1 << 20;

/// Most frames that a stack keeps, from the innermost on.
const FRAME_LIMIT: usize = 256;

/// Most tensors of a signature, and most dimensions of a tensor.
const TENSOR_LIMIT: usize = 1 << 16;
const DIM_LIMIT: usize = 64;

/// Longest text that is kept, in bytes: a file may mention one long text a million times.
const TEXT_LIMIT_BYTES: usize = 1024;

/// Most bytes of distinct signatures, frames, stacks and groups.
const KEPT_LIMIT_BYTES: usize = 64 << 20;

/// Reads the dump; `None` where the root holds neither entries nor groups.
pub(super) fn dump(plain: &Plain<'_>, root: Value) -> Option<FlightDump> {
    let entries = plain.get(root, "entries");
    let config = plain.get(root, "pg_config");
    let status = plain.get(root, "pg_status");
    if entries.is_none() && config.is_none() && status.is_none() {
        return None;
    }
    let text = |key| plain.get(root, key).and_then(|value| plain.shown(value));
    let mut out = FlightDump {
        version: text("version"),
        comm_lib_version: text("comm_lib_version").or_else(|| text("nccl_version")),
        ..FlightDump::default()
    };
    let mut reader = Extract::new(plain);
    if let Some(config) = config {
        reader.groups(config);
    }
    let mut skipped = 0u64;
    if let Some(entries) = entries {
        let items = plain.items(entries);
        out.entries.reserve(items.len());
        for &item in items {
            if plain.is_unfinished(item) {
                continue;
            }
            if reader.kept_bytes > KEPT_LIMIT_BYTES {
                let kept = out.entries.len();
                out.diagnostics
                    .push(format!("the entries differ too much to be kept: only the first {kept} were read"));
                break;
            }
            match reader.entry(item) {
                Some(entry) => out.entries.push(entry),
                None => skipped += 1,
            }
        }
    }
    if skipped > 0 {
        out.diagnostics.push(format!("{skipped} entries hold no operation and were left out"));
    }
    if let Some(status) = status {
        reader.statuses(status);
    }
    out.overwritten = out.entries.iter().map(|entry| entry.record).min().unwrap_or(0);
    out.groups = reader.groups;
    out.signatures = reader.signatures;
    out.frames = reader.frames;
    out.stacks = reader.stacks;
    out.rank = rank(plain, root, &out);
    Some(out)
}

/// The keys of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    RecordId,
    PgId,
    ProcessGroup,
    CollectiveSeq,
    P2pSeq,
    AnySeq,
    ProfilingName,
    TimeCreated,
    InputSizes,
    InputDtypes,
    OutputSizes,
    OutputDtypes,
    State,
    TimeoutMs,
    IsP2p,
    Frames,
    Other,
}

fn key(name: &str) -> Key {
    match name {
        "record_id" => Key::RecordId,
        "pg_id" => Key::PgId,
        "process_group" => Key::ProcessGroup,
        "collective_seq_id" => Key::CollectiveSeq,
        "p2p_seq_id" => Key::P2pSeq,
        "seq_id" => Key::AnySeq,
        "profiling_name" => Key::ProfilingName,
        "time_created_ns" => Key::TimeCreated,
        "input_sizes" => Key::InputSizes,
        "input_dtypes" => Key::InputDtypes,
        "output_sizes" => Key::OutputSizes,
        "output_dtypes" => Key::OutputDtypes,
        "state" => Key::State,
        "timeout_ms" => Key::TimeoutMs,
        "is_p2p" => Key::IsP2p,
        "frames" => Key::Frames,
        _ => Key::Other,
    }
}

/// The values of one entry, unread.
#[derive(Default)]
struct Fields {
    record: Option<Value>,
    pg_id: Option<Value>,
    group: Option<Value>,
    collective_seq: Option<Value>,
    p2p_seq: Option<Value>,
    any_seq: Option<Value>,
    name: Option<Value>,
    created: Option<Value>,
    timeout: Option<Value>,
    state: Option<Value>,
    p2p: Option<Value>,
    frames: Option<Value>,
    sizes: [Option<Value>; 2],
    dtypes: [Option<Value>; 2],
}

struct Extract<'p, 'a> {
    plain: &'p Plain<'a>,
    /// What each text means as a key, by the text's number: keys repeat in every entry.
    keys: Vec<Option<Key>>,
    hasher: RandomState,
    groups: Vec<DumpGroup>,
    group_of: HashMap<String, u32>,
    /// Groups by the numbers of their name's and description's texts, or by the local id.
    group_seen: HashMap<(Option<u32>, i64), u32>,
    group_of_pg_id: HashMap<i64, u32>,
    signatures: Vec<Arc<Signature>>,
    signature_seen: HashMap<u64, u32>,
    signature_of: HashMap<Arc<Signature>, u32>,
    frames: Vec<Place>,
    /// Frames by the number of their dict, and by content.
    frame_seen: HashMap<u32, u32>,
    frame_of: HashMap<Place, u32>,
    stacks: Vec<Box<[u32]>>,
    stack_seen: HashMap<u64, u32>,
    stack_of: HashMap<Box<[u32]>, u32>,
    ranks_seen: HashMap<u64, Arc<[u32]>>,
    words: Vec<u64>,
    kept_bytes: usize,
}

impl<'p, 'a> Extract<'p, 'a> {
    fn new(plain: &'p Plain<'a>) -> Self {
        Self {
            plain,
            keys: vec![None; plain.texts()],
            hasher: RandomState::new(),
            groups: Vec::new(),
            group_of: HashMap::new(),
            group_seen: HashMap::new(),
            group_of_pg_id: HashMap::new(),
            signatures: Vec::new(),
            signature_seen: HashMap::new(),
            signature_of: HashMap::new(),
            frames: Vec::new(),
            frame_seen: HashMap::new(),
            frame_of: HashMap::new(),
            stacks: Vec::new(),
            stack_seen: HashMap::new(),
            stack_of: HashMap::new(),
            ranks_seen: HashMap::new(),
            words: Vec::new(),
            kept_bytes: 0,
        }
    }

    /// `pg_config`: `{'0': {'name': '0', 'desc': 'default_pg', 'ranks': '[0, 1]'}}`.
    fn groups(&mut self, config: Value) {
        for (id, info) in self.plain.pairs(config) {
            let get = |key| self.plain.get(info, key);
            let Some(name) = get("name").and_then(|name| self.short(name)).or_else(|| self.short(id)) else {
                continue;
            };
            let desc = get("desc").and_then(|desc| self.short(desc));
            let ranks = get("ranks").map(|ranks| self.ranks(ranks));
            if self.kept_bytes > KEPT_LIMIT_BYTES {
                return;
            }
            let group = self.group(name, desc);
            if let (Some(group), Some(ranks)) = (self.groups.get_mut(group as usize), ranks) {
                group.ranks = ranks;
            }
        }
    }

    /// A list of ranks: numbers, or text such as `[0, 1]` or `0-7,9`. Groups that share the value share the list.
    fn ranks(&mut self, ranks: Value) -> Arc<[u32]> {
        if let Some(known) = self.ranks_seen.get(&word(ranks)) {
            return Arc::clone(known);
        }
        let mut out: Vec<u32> = if let Some(text) = self.plain.text(ranks) {
            let mut out = Vec::new();
            for part in text.split([',', '[', ']', '(', ')', '{', '}', ' ']).filter(|part| !part.is_empty()) {
                let (from, to) = part.split_once('-').unwrap_or((part, part));
                if let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) {
                    out.extend((from..=to).take(RANK_LIMIT.saturating_sub(out.len())));
                }
            }
            out
        } else {
            let items = self.plain.items(ranks).iter().take(RANK_LIMIT);
            items.filter_map(|&rank| u32::try_from(self.plain.integer(rank)?).ok()).collect()
        };
        out.sort_unstable();
        out.dedup();
        self.kept_bytes += out.len() * size_of::<u32>();
        let out: Arc<[u32]> = out.into();
        self.ranks_seen.insert(word(ranks), Arc::clone(&out));
        out
    }

    /// A text or number as text, cut at [`TEXT_LIMIT_BYTES`].
    fn short(&self, value: Value) -> Option<String> {
        match self.plain.text(value) {
            Some(text) => {
                let end =
                    (0..=TEXT_LIMIT_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end))?;
                text.get(..end).map(str::to_owned)
            }
            None => self.plain.shown(value),
        }
    }

    fn group(&mut self, name: String, desc: Option<String>) -> u32 {
        if let Some(&group) = self.group_of.get(&name) {
            return group;
        }
        let group = index(self.groups.len());
        let desc = desc.filter(|desc| desc != "undefined" && !desc.is_empty());
        self.kept_bytes += 2 * name.len() + size_of::<DumpGroup>();
        self.group_of.insert(name.clone(), group);
        self.groups.push(DumpGroup { name, desc, ..DumpGroup::default() });
        group
    }

    /// `pg_status`: `{'0': {'last_enqueued_collective': 7, …}}`, keyed by the rank's own number of the group.
    fn statuses(&mut self, status: Value) {
        for (id, numbers) in self.plain.pairs(status) {
            let Some(id) = self.plain.integer(id) else { continue };
            let only = (self.groups.len() == 1).then_some(0);
            let by_name = || self.group_of.get(&id.to_string()).copied().filter(|_| id == 0);
            let Some(group) = self.group_of_pg_id.get(&id).copied().or(only).or_else(by_name) else {
                continue;
            };
            let get = |key| self.plain.get(numbers, key).and_then(|value| self.plain.integer(value));
            let (enqueued, started, completed) = (
                get("last_enqueued_collective"),
                get("last_started_collective"),
                get("last_completed_collective"),
            );
            if let Some(group) = self.groups.get_mut(group as usize) {
                (group.last_enqueued, group.last_started, group.last_completed) =
                    (enqueued, started, completed);
            }
        }
    }

    fn entry(&mut self, item: Value) -> Option<Entry> {
        let fields = self.fields(item);
        let name = fields.name?;
        let integer = |value: Option<Value>| value.and_then(|value| self.plain.integer(value));
        let record = integer(fields.record).and_then(|record| u64::try_from(record).ok()).unwrap_or(0);
        let p2p = match fields.p2p {
            Some(flag) => integer(Some(flag)) == Some(1),
            None => {
                // Old versions have no such key. Only a short name is searched: a file may mention a long one very often.
                let name = self.plain.text(name).filter(|name| name.len() < 100).unwrap_or("");
                name.contains(":send ") || name.contains(":recv ")
            }
        };
        let seq = integer(if p2p {
            fields.p2p_seq.or(fields.any_seq)
        } else {
            fields.collective_seq.or(fields.any_seq)
        });
        let (created, timeout) = (integer(fields.created), integer(fields.timeout));
        let state = match fields.state.and_then(|state| self.plain.text(state)) {
            Some("completed") => EntryState::Completed,
            Some("started") => EntryState::Started,
            _ => EntryState::Scheduled,
        };
        Some(Entry {
            record,
            seq: seq.and_then(|seq| u64::try_from(seq).ok()),
            created_ns: created.unwrap_or(0),
            timeout_ms: timeout.and_then(|timeout| u32::try_from(timeout).ok()),
            group: self.entry_group(&fields),
            signature: self.signature(name, &fields),
            stack: fields.frames.and_then(|frames| self.stack(frames)),
            state,
            p2p,
        })
    }

    fn fields(&mut self, item: Value) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in self.plain.pairs(item) {
            let Value::Text(id) = name else { continue };
            let Some(slot) = self.keys.get_mut(id as usize) else { continue };
            let known = *slot.get_or_insert_with(|| key(self.plain.text(name).unwrap_or("")));
            let field = match known {
                Key::RecordId => &mut fields.record,
                Key::PgId => &mut fields.pg_id,
                Key::ProcessGroup => &mut fields.group,
                Key::CollectiveSeq => &mut fields.collective_seq,
                Key::P2pSeq => &mut fields.p2p_seq,
                Key::AnySeq => &mut fields.any_seq,
                Key::ProfilingName => &mut fields.name,
                Key::TimeCreated => &mut fields.created,
                Key::TimeoutMs => &mut fields.timeout,
                Key::State => &mut fields.state,
                Key::IsP2p => &mut fields.p2p,
                Key::Frames => &mut fields.frames,
                Key::InputSizes => &mut fields.sizes[0],
                Key::OutputSizes => &mut fields.sizes[1],
                Key::InputDtypes => &mut fields.dtypes[0],
                Key::OutputDtypes => &mut fields.dtypes[1],
                Key::Other => continue,
            };
            *field = Some(value);
        }
        fields
    }

    /// The entry's group: `process_group: ('0', 'default_pg')`, or the local id in versions without it.
    fn entry_group(&mut self, fields: &Fields) -> u32 {
        let pg_id = fields.pg_id.and_then(|id| self.plain.integer(id));
        let name = fields.group.map(|group| match self.plain.items(group) {
            [name, ..] => *name,
            [] => group,
        });
        let seen = match name {
            Some(Value::Text(id)) => (Some(id), -1),
            _ => (None, pg_id.unwrap_or(-1)),
        };
        let group = match self.group_seen.get(&seen) {
            Some(&group) => group,
            None => {
                let desc = fields.group.and_then(|group| self.plain.items(group).get(1)).copied();
                let desc = desc.and_then(|desc| self.short(desc));
                let name = name.and_then(|name| self.short(name));
                let group = self.group(name.unwrap_or_else(|| pg_id.unwrap_or(0).to_string()), desc);
                self.group_seen.insert(seen, group);
                group
            }
        };
        if let Some(pg_id) = pg_id {
            self.group_of_pg_id.entry(pg_id).or_insert(group);
        }
        group
    }

    fn signature(&mut self, name: Value, fields: &Fields) -> u32 {
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        words.push(word(name));
        for list in fields.sizes.iter().chain(&fields.dtypes) {
            let items = list.map_or(&[][..], |list| self.plain.items(list));
            words.push(items.len() as u64);
            for &item in items.iter().take(TENSOR_LIMIT) {
                if matches!(item, Value::List(_)) {
                    let dims = self.plain.items(item);
                    words.push(dims.len() as u64);
                    words.extend(dims.iter().take(DIM_LIMIT).map(|dim| word(*dim)));
                } else {
                    words.push(word(item));
                }
            }
        }
        let fingerprint = self.hasher.hash_one(&words);
        self.words = words;
        if let Some(&known) = self.signature_seen.get(&fingerprint) {
            return known;
        }
        self.kept_bytes += size_of::<Signature>() + self.words.len() * 4 * size_of::<u64>();
        let made = Arc::new(self.make_signature(name, fields));
        let next = index(self.signatures.len());
        let id = *self.signature_of.entry(Arc::clone(&made)).or_insert(next);
        if id == next {
            self.signatures.push(made);
        }
        self.signature_seen.insert(fingerprint, id);
        id
    }

    fn make_signature(&self, name: Value, fields: &Fields) -> Signature {
        let sizes = |list: Option<Value>| -> Vec<Vec<i64>> {
            let items = list.map_or(&[][..], |list| self.plain.items(list));
            let shape = |item: &Value| {
                let dims = self.plain.items(*item).iter().take(DIM_LIMIT);
                dims.filter_map(|dim| self.plain.integer(*dim)).collect()
            };
            items.iter().take(TENSOR_LIMIT).map(shape).collect()
        };
        let dtypes = |list: Option<Value>| -> Vec<String> {
            let items = list.map_or(&[][..], |list| self.plain.items(list));
            let first = items.iter().take(DIM_LIMIT);
            first
                .filter_map(|dtype| self.plain.shown(*dtype))
                .map(|dtype| dtype.chars().take(40).collect())
                .collect()
        };
        Signature {
            op: operation(&self.short(name).unwrap_or_default()),
            input_sizes: sizes(fields.sizes[0]),
            output_sizes: sizes(fields.sizes[1]),
            input_dtypes: dtypes(fields.dtypes[0]),
            output_dtypes: dtypes(fields.dtypes[1]),
        }
    }

    fn stack(&mut self, frames: Value) -> Option<u32> {
        let items = self.plain.items(frames);
        let items = items.get(..items.len().min(FRAME_LIMIT)).unwrap_or(items);
        if items.is_empty() {
            return None;
        }
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        words.extend(items.iter().map(|item| word(*item)));
        let fingerprint = self.hasher.hash_one(&words);
        self.words = words;
        if let Some(&known) = self.stack_seen.get(&fingerprint) {
            return Some(known);
        }
        let stack: Box<[u32]> = items.iter().filter_map(|item| self.frame(*item)).collect();
        let next = index(self.stacks.len());
        let id = *self.stack_of.entry(stack.clone()).or_insert(next);
        if id == next {
            self.kept_bytes += 2 * stack.len() * size_of::<u32>();
            self.stacks.push(stack);
        }
        self.stack_seen.insert(fingerprint, id);
        Some(id)
    }

    fn frame(&mut self, item: Value) -> Option<u32> {
        let Value::Dict(dict) = item else { return None };
        if let Some(&known) = self.frame_seen.get(&dict) {
            return Some(known);
        }
        let get = |key| self.plain.get(item, key);
        let place = Place {
            file: get("filename").and_then(|file| self.short(file)).unwrap_or_default(),
            line: get("line").and_then(|line| u32::try_from(self.plain.integer(line)?).ok()),
            function: get("name").and_then(|name| self.short(name)),
        };
        let next = index(self.frames.len());
        let id = match self.frame_of.get(&place) {
            Some(&known) => known,
            None if self.kept_bytes > KEPT_LIMIT_BYTES => return None,
            None => {
                self.kept_bytes += 2 * (size_of::<Place>() + place.file.len());
                self.frame_of.insert(place.clone(), next);
                self.frames.push(place);
                next
            }
        };
        self.frame_seen.insert(dict, id);
        Some(id)
    }
}

/// A number that tells values of one file apart.
fn word(value: Value) -> u64 {
    match value {
        Value::Int(number) => number.cast_unsigned(),
        Value::Text(id) => 1 << 62 | u64::from(id),
        Value::List(id) | Value::Dict(id) => 1 << 61 | u64::from(id),
        Value::Float(number) => number.to_bits(),
        Value::Bool(flag) => u64::from(flag),
        Value::Null => u64::MAX,
    }
}

fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// The rank, where the content gives it away: a key of its own, the communicator that spans the job, or an operation between
/// two peers, which names its own side first.
fn rank(plain: &Plain<'_>, root: Value, dump: &FlightDump) -> Option<u32> {
    let number = |dict, key| plain.get(dict, key).and_then(|value| u32::try_from(plain.integer(value)?).ok());
    if let Some(rank) = ["rank", "global_rank"].iter().find_map(|key| number(root, key)) {
        return Some(rank);
    }
    let world = dump.groups.iter().map(|group| group.ranks.len()).max().unwrap_or(0);
    if let Some(comms) = plain.get(root, "nccl_comm_state") {
        for (_, comm) in plain.pairs(comms) {
            let size = ["nRanks", "n_ranks", "nranks", "size"].iter().find_map(|key| number(comm, key));
            if let (Some(rank), Some(size)) = (number(comm, "rank"), size)
                && size as usize == world
            {
                return Some(rank);
            }
        }
    }
    dump.entries.iter().find_map(|entry| {
        let op = &dump.signatures.get(entry.signature as usize)?.op;
        let (from, to) = op.peers?;
        let own = if op.op == "SEND" { from } else { to };
        dump.groups.get(entry.group as usize)?.ranks.get(own as usize).copied()
    })
}
