//! Lines of every generation of process groups against their fields.

use super::super::event::{
    CollectiveMismatch, CollectiveName, CollectiveTimeout, Data, Event, InputId, PeerLost, PeerLostKind,
    WorkStatus,
};
use super::super::read_text;

fn events(text: &str) -> Vec<Event> {
    read_text(InputId(0), text.as_bytes()).events
}

fn timeouts(text: &str) -> Vec<(Option<u32>, CollectiveTimeout)> {
    events(text)
        .into_iter()
        .filter_map(|event| match event.data {
            Data::CollectiveTimeout(timeout) => Some((event.origin.rank, timeout)),
            _ => None,
        })
        .collect()
}

fn statuses(text: &str) -> Vec<(Option<u32>, WorkStatus)> {
    events(text)
        .into_iter()
        .filter_map(|event| match event.data {
            Data::WorkStatus(status) => Some((event.origin.rank, status)),
            _ => None,
        })
        .collect()
}

fn mismatches(text: &str) -> Vec<CollectiveMismatch> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::CollectiveMismatch(found) = event.data { Some(found) } else { None })
        .collect()
}

fn losses(text: &str) -> Vec<PeerLost> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::PeerLost(found) = event.data { Some(found) } else { None })
        .collect()
}

fn timeout(op: &str, seq: Option<u64>, numel: Option<u64>, limit: u64, elapsed: u64) -> CollectiveTimeout {
    CollectiveTimeout {
        collective: CollectiveName { op: op.to_owned(), seq, group: None, numel_in: numel, numel_out: numel },
        limit_ms: Some(limit),
        elapsed_ms: Some(elapsed),
    }
}

#[test]
fn timeouts_of_every_generation() {
    let oldest = "[E ProcessGroupNCCL.cpp:566] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802710 milliseconds before timing out.\n";
    assert_eq!(timeouts(oldest), [(Some(2), timeout("ALLREDUCE", None, None, 1_800_000, 1_802_710))]);
    let middle = "[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=11, OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1805222 milliseconds before timing out.\n";
    assert_eq!(
        timeouts(middle),
        [(Some(1), timeout("_ALLGATHER_BASE", Some(11), None, 1_800_000, 1_805_222))]
    );
    let new = "[rank5]:[E1129 19:46:51.952263418 ProcessGroupNCCL.cpp:689] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=15000) ran for 15045 milliseconds before timing out.\n";
    assert_eq!(timeouts(new), [(Some(5), timeout("ALLREDUCE", Some(7), Some(1_048_576), 15_000, 15_045))]);
    let grouped = "[rank3]:[E321 12:14:43.351 ProcessGroupNCCL.cpp:607] [PG ID 2 PG GUID 3(tp) Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=SEND, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n";
    assert_eq!(timeouts(grouped)[0].1.collective.group.as_deref(), Some("tp"));
}

#[test]
fn two_messages_on_one_line_and_a_wrapped_one() {
    let text = "[rank0]:[E1129 19:46:51.9 P.cpp:689] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=15000) ran for 15045 milliseconds before timing out.[rank1]:[E1129 19:46:51.9 P.cpp:689] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=REDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=15000) ran for 15046 milliseconds before timing out.\n";
    let found = timeouts(text);
    assert_eq!((found[0].0, found[0].1.collective.seq), (Some(0), Some(7)));
    assert_eq!((found[1].0, found[1].1.collective.op.as_str()), (Some(1), "REDUCE"));
    let wrapped = "[rank0]:[E1129 19:46:51.9 P.cpp:689] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7,\nOpType=ALLREDUCE, NumelIn=10, NumelOut=10, Timeout(ms)=15000) ran for 15045 milliseconds before timing out.\n";
    assert_eq!(timeouts(wrapped), [(Some(0), timeout("ALLREDUCE", Some(7), Some(10), 15_000, 15_045))]);
}

#[test]
fn work_status_in_every_spelling() {
    let new = "[rank0]:[E1129 19:42:41.05 ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID 0(default_pg) Rank 0]  failure detected by watchdog at work sequence id: 3 PG status: last enqueued work: 3, last completed work: 2\n";
    let wanted = WorkStatus {
        failed_at: Some(3),
        last_enqueued: Some(3),
        last_completed: Some(2),
        ..WorkStatus::default()
    };
    assert_eq!(statuses(new), [(Some(0), wanted)]);
    let dump = "[rank1]:[E1129 19:46:56.83 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 1] Received a dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 6, last completed NCCL work: 6.This is most likely caused by incorrect usages of collectives.\n";
    let wanted = WorkStatus {
        last_enqueued: Some(6),
        last_completed: Some(6),
        signalled_by: Some(0),
        ..WorkStatus::default()
    };
    assert_eq!(statuses(dump), [(Some(1), wanted)]);
    let local = "[rank1]: Received a dump signal due to a collective timeout from this local rank. Last enqueued NCCL work: 2, last completed NCCL work: -1.\n";
    assert_eq!(statuses(local)[0].1.signalled_by, None);
    assert_eq!(statuses(local)[0].1.last_completed, Some(-1));
    let middle = "[rank2]:[E P.cpp:1] [PG 0 (default_pg) Rank 2] Timeout at NCCL work: 1167, last enqueued NCCL work: 1171, last completed NCCL work: 1166.\n";
    assert_eq!(statuses(middle)[0].1.failed_at, Some(1167));
    let either = "[rank2]:[E909 01:02:03.4 P.cpp:1] [PG 0 (default_pg) Rank 2] Exception (either an error or timeout) detected by watchdog at work: 35, last enqueued NCCL work: 36, last completed NCCL work: 34.\n";
    assert_eq!(statuses(either)[0].1.failed_at, Some(35));
}

#[test]
fn desync_and_fingerprints() {
    let found = &mismatches(
        "[E ProcessGroupNCCL.cpp:1] [3] finished collective #7, but didn't join collective #8 (count from 1)\n",
    )[0];
    assert_eq!((found.differs.as_str(), found.missing.as_slice()), ("missing", [3].as_slice()));
    assert_eq!(found.views[0].1.seq, Some(8));
    let text = "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=101, OpType=ALLREDUCE, TensorShape=[4, 8], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float)), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=0, OpType=BROADCAST).Collectives differ in the following aspects: \t Sequence number: 101vs 0\t Op type: ALLREDUCEvs BROADCAST\n";
    let found = &mismatches(text)[0];
    assert_eq!(found.differs, "op");
    assert_eq!((found.views[0].0, found.views[0].1.seq, found.views[0].1.numel_in), (1, Some(101), Some(32)));
    assert_eq!((found.views[1].0, found.views[1].1.op.as_str()), (0, "BROADCAST"));
    let barrier =
        &mismatches("RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 5000 ms\n")[0];
    assert_eq!(barrier.missing, [1, 3]);
}

#[test]
fn symmetric_memory_names_what_differs() {
    let text = "[rank1]: RuntimeError: Expected reqs[r].buffer_size == reqs[0].buffer_size to be true, but got false.\n";
    assert_eq!(mismatches(text)[0].differs, "buffer_size");
    assert_eq!(
        mismatches("RuntimeError: one_shot_all_reduce: input must be allocated with empty_strided_p2p().\n")
            [0]
        .differs,
        "window"
    );
    assert_eq!(
        mismatches("RuntimeError: Pointer not within any SymmetricMemory allocation\n")[0].differs,
        "window"
    );
    assert!(
        mismatches("<torch._C._distributed_c10d._SymmetricMemory object at 0x7f1cf728d4b0>\n").is_empty()
    );
}

#[test]
fn stalled_tensors_name_missing_ranks() {
    let text = "[1,0]<stderr>:[2024-01-01 10:00:00.1: W /tmp/stall_inspector.cc:107] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds.\nMissing ranks:\n0: [allreduce.x, allreduce.y]\n2: [allreduce.x]\n\nnext\n";
    assert_eq!(mismatches(text)[0].missing, [0, 2]);
    assert_eq!(mismatches("allreduce.x [missing ranks: 1, 2]\n")[0].missing, [1, 2]);
}

#[test]
fn peers_stores_and_monitors() {
    let kinds = |text: &str| losses(text).into_iter().map(|lost| (lost.kind, lost.peer)).collect::<Vec<_>>();
    assert_eq!(
        kinds(
            "RuntimeError: [3] is setting up NCCL communicator and retreiving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by peer\n"
        ),
        [(PeerLostKind::Store, None)]
    );
    assert_eq!(
        kinds(
            "[F1129 10:00:00.1 ProcessGroupNCCL.cpp:1250] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress\n"
        ),
        [(PeerLostKind::Heartbeat, None)]
    );
    assert_eq!(
        kinds(
            "[E1129 10:00:00.1 P.cpp:1] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=4\n"
        ),
        [(PeerLostKind::Heartbeat, None)]
    );
    assert_eq!(
        kinds(
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.2]:1234\n"
        ),
        [(PeerLostKind::Peer, Some("10.0.0.2:1234".to_owned()))]
    );
    assert_eq!(
        kinds(
            "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n"
        ),
        [(PeerLostKind::Rendezvous, None)]
    );
    assert_eq!(
        kinds(
            "E0101 00:00:00.0 1 coordination_service_agent.cc:1] The following tasks are unhealthy (stopped sending heartbeats): /job:jax_worker/replica:0/task:3 coordination service error\n"
        ),
        [(PeerLostKind::Peer, Some("task 3".to_owned()))]
    );
    assert!(kinds("[W socket.cpp:426] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not supported by protocol).\n").is_empty());
    assert!(kinds("[rank0]: WARNING: destroy_process_group() was not called before program exit, which can leak resources\n").is_empty());
}

#[test]
fn an_applications_own_label_is_no_mismatch_and_no_loss() {
    assert!(mismatches("job 12 status=cuda_error reason=collective_mismatch\n").is_empty());
    assert!(losses("job 12 status=cuda_error\n").is_empty());
}

#[test]
fn rays_list_of_causes_names_no_signal() {
    let text = "(raylet) The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.\n";
    let found = events(text);
    assert_eq!(found.len(), 1);
    assert!(matches!(&found[0].data, Data::PeerLost(lost) if lost.kind == PeerLostKind::Worker));
}

#[test]
fn a_node_that_ray_lost_is_a_lost_worker() {
    for text in [
        "(raylet) The node with node id: ab and address: 10.0.0.51 and node name: n1 has been marked dead because the detector has missed too many heartbeats from it.\n",
        "(raylet) Raylet is terminated. Termination is unexpected. Possible reasons include: (1) SIGKILL by the user or system OOM killer, (2) Invalid memory access from Raylet causing SIGSEGV or SIGBUS\n",
    ] {
        let kinds: Vec<PeerLostKind> = losses(text).into_iter().map(|lost| lost.kind).collect();
        assert_eq!(kinds, [PeerLostKind::Worker], "{text}");
        assert_eq!(events(text).len(), 1, "{text}");
    }
}
