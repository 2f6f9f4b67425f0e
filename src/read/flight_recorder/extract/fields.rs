//! The keys of an entry and their values, unread.
//!
//! In: key texts. Out: [`Fields`]. It leaves the values' meaning to its reader.

use crate::read::plain::Value;

/// The keys of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
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

/// What a text means as a key of an entry.
pub(super) fn key(name: &str) -> Key {
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
pub(super) struct Fields {
    pub record: Option<Value>,
    pub pg_id: Option<Value>,
    pub group: Option<Value>,
    pub collective_seq: Option<Value>,
    pub p2p_seq: Option<Value>,
    pub any_seq: Option<Value>,
    pub name: Option<Value>,
    pub created: Option<Value>,
    pub timeout: Option<Value>,
    pub state: Option<Value>,
    pub p2p: Option<Value>,
    pub frames: Option<Value>,
    pub sizes: [Option<Value>; 2],
    pub dtypes: [Option<Value>; 2],
}

impl Fields {
    /// Where the value of a known key belongs.
    pub fn slot(&mut self, key: Key) -> Option<&mut Option<Value>> {
        Some(match key {
            Key::RecordId => &mut self.record,
            Key::PgId => &mut self.pg_id,
            Key::ProcessGroup => &mut self.group,
            Key::CollectiveSeq => &mut self.collective_seq,
            Key::P2pSeq => &mut self.p2p_seq,
            Key::AnySeq => &mut self.any_seq,
            Key::ProfilingName => &mut self.name,
            Key::TimeCreated => &mut self.created,
            Key::TimeoutMs => &mut self.timeout,
            Key::State => &mut self.state,
            Key::IsP2p => &mut self.p2p,
            Key::Frames => &mut self.frames,
            Key::InputSizes => &mut self.sizes[0],
            Key::OutputSizes => &mut self.sizes[1],
            Key::InputDtypes => &mut self.dtypes[0],
            Key::OutputDtypes => &mut self.dtypes[1],
            Key::Other => return None,
        })
    }
}
