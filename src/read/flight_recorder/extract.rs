//! From decoded values to a dump's types.
//!
//! In: a [`Plain`] with the dump's outermost dict. Out: [`FlightDump`]. It leaves alone keys that it doesn't know.

mod fields;
mod groups;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use self::fields::{Fields, Key, key};
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
            let Some(known) = self.keys.get_mut(id as usize) else { continue };
            let known = *known.get_or_insert_with(|| key(self.plain.text(name).unwrap_or("")));
            if let Some(slot) = fields.slot(known) {
                *slot = Some(value);
            }
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
