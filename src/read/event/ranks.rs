//! What the communication layer says: NCCL, process groups, flight recorder, RAS.
//!
//! In: nothing; plain types. Out: the types that readers fill. Each says what was printed, never why.

use super::Place;
use serde::Serialize;

/// An NCCL line: `host:pid:tid [6] include/alloc.h:124 NCCL WARN Cuda failure 700 '…'` (formats.md 2.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NcclLine {
    /// `WARN`, `ERROR`, `INFO` (return chain).
    pub level: String,
    /// Message without its head.
    pub message: String,
    /// Source place inside NCCL or the plug-in.
    pub place: Option<Place>,
    /// What it is about.
    pub topic: NcclTopic,
    /// Result code of a return chain (`-> 6`).
    pub result: Option<u32>,
    /// CUDA code of `Cuda failure N '…'`.
    pub cuda_code: Option<u32>,
    /// Peer address, local rank or host that it names.
    pub peer: Option<String>,
}

/// What an NCCL line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NcclTopic {
    /// Nothing below.
    #[default]
    Other,
    /// A CUDA call inside NCCL failed.
    Cuda,
    /// InfiniBand completion or verbs error.
    Ib,
    /// IB status 5: flushed, follows another failure.
    IbFlushed,
    /// Sockets, bootstrap, interface choice.
    Socket,
    /// Connection closed by the peer: the peer is gone.
    PeerClosed,
    /// OFI, EFA, libfabric.
    Ofi,
    /// Shared memory segment.
    Shm,
    /// NVLink SHARP / multicast.
    Nvls,
    /// Mismatch between ranks that NCCL saw itself.
    Mismatch,
    /// Two ranks on one GPU.
    DuplicateGpu,
    /// Memory registration, memlock.
    Registration,
    /// Out of GPU memory while setting up.
    OutOfMemory,
    /// Library versions differ.
    Version,
    /// The proxy or service thread echoes an error.
    Echo,
    /// A return-chain line.
    Chain,
}

/// An NCCL result reported by a caller: `ncclSystemError: System call (e.g. socket, malloc) … failed`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NcclResult {
    /// Name or fixed text (`ncclSystemError`, `unhandled cuda error`).
    pub name: String,
    /// 1 unhandled CUDA, 2 unhandled system, 3 internal, 4 invalid argument, 5 invalid usage, 6 remote error, 7 in progress.
    pub code: Option<u32>,
    /// `Last error:` sentence.
    pub last_error: Option<String>,
    /// What that sentence is about.
    pub topic: NcclTopic,
    /// NCCL version printed with it.
    pub version: Option<String>,
}

/// A collective, as a watchdog line, a dump or RAS names it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CollectiveName {
    /// Operation, upper case, as PyTorch names it (`ALLREDUCE`, `_ALLGATHER_BASE`).
    pub op: String,
    /// Sequence number inside its group.
    pub seq: Option<u64>,
    /// Process group, as printed.
    pub group: Option<String>,
    /// Elements in.
    pub numel_in: Option<u64>,
    /// Elements out.
    pub numel_out: Option<u64>,
}

/// `Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, …) ran for 15045 milliseconds`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectiveTimeout {
    /// The collective that was waited for.
    pub collective: CollectiveName,
    /// Time limit in milliseconds.
    pub limit_ms: Option<u64>,
    /// Time that it ran, in milliseconds.
    pub elapsed_ms: Option<u64>,
}

/// `last enqueued work: 7, last completed work: 6`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkStatus {
    /// Sequence number at which the watchdog noticed the failure.
    pub failed_at: Option<u64>,
    /// Last enqueued sequence number.
    pub last_enqueued: Option<i64>,
    /// Last started.
    pub last_started: Option<i64>,
    /// Last completed; -1 before the first.
    pub last_completed: Option<i64>,
    /// Rank that sent the dump signal (`due to a collective timeout from rank 0`).
    pub signalled_by: Option<u32>,
}

/// Ranks disagree about a collective.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectiveMismatch {
    /// What differs: `op`, `size`, `dtype`, `sequence`, `missing`, `buffer_size`.
    pub differs: String,
    /// The ranks' views, where named.
    pub views: Vec<(u32, CollectiveName)>,
    /// Ranks that did not join, where named.
    pub missing: Vec<u32>,
    /// Text.
    pub detail: String,
}

/// How a peer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerLostKind {
    /// The heartbeat monitor found the watchdog stuck.
    Heartbeat,
    /// The key-value store closed or timed out.
    Store,
    /// gloo, MPI, Ray or a coordination service lost a peer.
    Peer,
    /// A rendezvous did not complete.
    Rendezvous,
    /// A supervisor says that a worker or a node of its is gone.
    Worker,
}

/// A peer, store or monitor gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerLost {
    /// How.
    pub kind: PeerLostKind,
    /// Peer or rank that it names.
    pub peer: Option<String>,
    /// Text.
    pub detail: String,
}

/// What a rank's flight-recorder dump says in short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlightDumpSummary {
    /// Rank that wrote it.
    pub rank: Option<u32>,
    /// Entries in it.
    pub entries: u64,
    /// Process groups in it.
    pub groups: u64,
    /// Format version.
    pub version: Option<String>,
}

/// What a RAS answer says in short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RasSummary {
    /// NCCL version.
    pub nccl_version: Option<String>,
    /// Communicators.
    pub communicators: u64,
    /// Verdict words of the answer (`MISMATCH`, `INCOMPLETE`).
    pub verdicts: Vec<String>,
}
