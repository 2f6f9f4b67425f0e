//! Names of operations, brought to one spelling.
//!
//! In: a recorder's profiling name (`nccl:all_reduce`, `nccl:send 0->1`) or a RAS counter's name (`AllReduce`). Out:
//! [`OpName`] in the spelling of the watchdog's `OpType` (`ALLREDUCE`). It leaves alone sizes and states.

/// An operation, and whom a point-to-point one joins.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct OpName {
    /// `ALLREDUCE`, `_ALLGATHER_BASE`, `SEND`, …
    pub op: String,
    /// Sender and receiver as ranks inside the group, for `SEND` and `RECV`.
    pub peers: Option<(u32, u32)>,
}

/// Recorder names whose upper case is not the watchdog's name of the same operation.
const SPELLINGS: [(&str, &str); 20] = [
    ("all_reduce", "ALLREDUCE"),
    ("allreduce", "ALLREDUCE"),
    ("all_reduce_barrier", "BARRIER"),
    ("barrier", "BARRIER"),
    ("allreduce_coalesced", "ALLREDUCE_COALESCED"),
    ("all_gather", "ALLGATHER"),
    ("allgather", "ALLGATHER"),
    ("_all_gather_base", "_ALLGATHER_BASE"),
    ("all_gather_single", "_ALLGATHER_BASE"),
    ("all_gather_into_tensor_coalesced", "ALLGATHER_INTO_TENSOR_COALESCED"),
    ("allgather_coalesced", "ALLGATHER_COALESCED"),
    ("all_to_all", "ALLTOALL"),
    ("alltoall", "ALLTOALL"),
    ("all_to_all_single", "ALLTOALL_BASE"),
    ("all_to_all_v_single", "ALLTOALL_BASE"),
    ("reducescatter", "REDUCE_SCATTER"),
    ("reduce_scatter_single", "_REDUCE_SCATTER_BASE"),
    ("_broadcast_oop", "BROADCAST"),
    ("_reduce_oop", "REDUCE"),
    ("sendrecv", "SENDRECV"),
];

/// Reads `nccl:all_reduce`, `nccl:send 0->1`, `nccl:recv 1<-0`, `AllReduce`.
#[must_use]
pub fn operation(name: &str) -> OpName {
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name).trim();
    let (word, peers) = name.split_once(' ').map_or((name, ""), |(word, peers)| (word, peers.trim()));
    let lower = word.to_ascii_lowercase();
    let op = SPELLINGS
        .iter()
        .find(|(from, _)| *from == lower)
        .map_or_else(|| lower.to_ascii_uppercase(), |(_, to)| (*to).into());
    let sent = peers.split_once("->");
    let received = peers.split_once("<-").map(|(to, from)| (from, to));
    let peers =
        sent.or(received).and_then(|(from, to)| Some((from.trim().parse().ok()?, to.trim().parse().ok()?)));
    OpName { op, peers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brings_names_to_one_spelling() {
        let op = |name: &str| operation(name).op;
        assert_eq!(op("nccl:all_reduce"), "ALLREDUCE");
        assert_eq!(op("AllReduce"), "ALLREDUCE");
        assert_eq!(op("xccl:_all_gather_base"), "_ALLGATHER_BASE");
        assert_eq!(op("nccl:_reduce_scatter_base"), "_REDUCE_SCATTER_BASE");
        assert_eq!(op("nccl:all_reduce_barrier"), "BARRIER");
        assert_eq!(op("ReduceScatter"), "REDUCE_SCATTER");
        assert_eq!(op("nccl:broadcast"), "BROADCAST");
        assert_eq!(op("nccl:coalesced"), "COALESCED");
    }

    #[test]
    fn reads_peers() {
        assert_eq!(operation("nccl:send 0->1"), OpName { op: "SEND".into(), peers: Some((0, 1)) });
        assert_eq!(operation("nccl:recv 3<-0"), OpName { op: "RECV".into(), peers: Some((0, 3)) });
        assert_eq!(operation("nccl:send x->1").peers, None);
    }
}
