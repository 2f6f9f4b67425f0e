//! What the communication layer says: NCCL lines, results, mismatches, lost peers.
//!
//! In: the typed event. Out: a claim. It leaves matching ranks against each other to `case::collectives`.

use crate::read::event::{
    CollectiveMismatch, Messenger, NcclLine, NcclResult, NcclTopic, PeerLost, PeerLostKind,
};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::tables::cuda_status;

use super::super::failure::Weight;
use super::Claim;

/// Cause that a topic names.
fn topic_cause(topic: NcclTopic) -> Option<CauseKind> {
    match topic {
        NcclTopic::Ib | NcclTopic::Socket | NcclTopic::Ofi => Some(CauseKind::Network),
        NcclTopic::Shm => Some(CauseKind::ShmExhausted),
        NcclTopic::Mismatch => Some(CauseKind::CollectiveMismatch),
        NcclTopic::DuplicateGpu => Some(CauseKind::DuplicateGpu),
        NcclTopic::OutOfMemory => Some(CauseKind::GpuMemory),
        NcclTopic::Version => Some(CauseKind::VersionMismatch),
        NcclTopic::PeerClosed => Some(CauseKind::PeerDied),
        NcclTopic::Registration => Some(CauseKind::HostMemory),
        NcclTopic::Other
        | NcclTopic::Cuda
        | NcclTopic::IbFlushed
        | NcclTopic::Nvls
        | NcclTopic::Echo
        | NcclTopic::Chain => None,
    }
}

/// An NCCL line.
pub fn nccl(line: &NcclLine) -> Option<Claim> {
    if line.level == "INFO" && line.topic != NcclTopic::Chain {
        return None;
    }
    if let Some(row) = line.cuda_code.and_then(cuda_status::by_code)
        && row.is_sticky_device_fault()
    {
        return Some(
            Claim::direct(row.class, "NCCL relays a CUDA status")
                .code("cuda", Some(i64::from(row.code)), Some(row.runtime.to_owned()))
                .relayed(Some(Messenger::Nccl)),
        );
    }
    let weight = match line.topic {
        NcclTopic::Echo
        | NcclTopic::Chain
        | NcclTopic::IbFlushed
        | NcclTopic::PeerClosed
        | NcclTopic::Other => Weight::Waiting,
        _ => Weight::Program,
    };
    let cause = match (line.topic, line.cuda_code) {
        (NcclTopic::Cuda, Some(2)) => Some(CauseKind::GpuMemory),
        (topic, _) => topic_cause(topic),
    };
    Some(
        Claim::new(FailureClass::Nccl, weight, "NCCL reports it")
            .code("nccl", line.result.map(i64::from), None)
            .cause(cause),
    )
}

/// An NCCL result that a caller reports.
pub fn nccl_result(result: &NcclResult) -> Option<Claim> {
    if result.code == Some(0) || result.code == Some(7) {
        return None;
    }
    Some(
        Claim::new(FailureClass::Nccl, Weight::Waiting, "an NCCL call returned an error")
            .code("nccl", result.code.map(i64::from), Some(result.name.clone()))
            .cause(topic_cause(result.topic)),
    )
}

/// Ranks disagree.
pub fn mismatch(mismatch: &CollectiveMismatch) -> Claim {
    let cause = match mismatch.differs.as_str() {
        "missing" | "sequence" => CauseKind::MissingCollective,
        "buffer_size" | "window" => CauseKind::SymmWindow,
        _ => CauseKind::CollectiveMismatch,
    };
    Claim::new(FailureClass::Nccl, Weight::Program, "ranks disagree about a collective").cause(Some(cause))
}

/// A peer, a store or a monitor gave up.
pub fn peer_lost(lost: &PeerLost) -> Claim {
    // Nothing of it says that ranks communicated, or of what the worker died.
    if lost.kind == PeerLostKind::Worker {
        let why = "a supervisor lost a worker or a node, and does not say of what it died";
        return Claim::new(FailureClass::Undecided, Weight::Hint, why);
    }
    let cause = matches!(lost.kind, PeerLostKind::Peer).then_some(CauseKind::PeerDied);
    Claim::new(FailureClass::Nccl, Weight::Waiting, "a rank lost its peer or store").cause(cause)
}
