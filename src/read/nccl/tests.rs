//! Lines of NCCL and its callers against their fields.

use super::super::event::{Data, Event, InputId, NcclLine, NcclResult, NcclTopic};
use super::super::read_text;

fn events(text: &str) -> Vec<Event> {
    read_text(InputId(0), text.as_bytes()).events
}

fn lines(text: &str) -> Vec<NcclLine> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::Nccl(line) = event.data { Some(line) } else { None })
        .collect()
}

fn results(text: &str) -> Vec<NcclResult> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::NcclResult(result) = event.data { Some(result) } else { None })
        .collect()
}

#[test]
fn a_warning_keeps_head_place_and_code() {
    let text = "vm:912:936 [6] include/alloc.h:124 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'\n";
    let event = events(text).into_iter().find(|event| matches!(event.data, Data::Nccl(_))).unwrap();
    assert_eq!(
        (event.origin.pid, event.origin.tid, event.origin.device, event.origin.rank),
        (Some(912), Some(936), Some(6), None)
    );
    let line = &lines(text)[0];
    assert_eq!((line.level.as_str(), line.topic, line.cuda_code), ("WARN", NcclTopic::Cuda, Some(700)));
    let place = line.place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("include/alloc.h", Some(124)));
}

#[test]
fn old_and_newest_heads_read_alike() {
    let old = &lines(
        "vm:1:2 [0] enqueue.cc:74 NCCL WARN Cuda failure 'an illegal memory access was encountered'\n",
    )[0];
    assert_eq!(old.cuda_code, Some(700));
    let new = &lines(
        "[2026-01-05 10:20:30] vm:1:2 [0] misc/socket.cc:881 (ncclSocketRecv) NCCL WARN socketProgress: Connection closed by remote peer gpu7<4444>\n",
    )[0];
    assert_eq!((new.topic, new.peer.as_deref()), (NcclTopic::PeerClosed, Some("gpu7<4444>")));
    assert_eq!(new.place.as_ref().unwrap().function.as_deref(), Some("ncclSocketRecv"));
    let quiet = &lines(
        "NCCL WARN NET/IB : Got completion from peer 10.0.0.1<333> with error 12, opcode 129, len 1, vendor err 129\n",
    )[0];
    assert_eq!((quiet.topic, quiet.peer.as_deref()), (NcclTopic::Ib, Some("10.0.0.1<333>")));
    let function =
        &lines("h:1:2 [0] register_mr_buffers:465 NCCL WARN NET/OFI Unable to register memory. RC: 12\n")[0];
    assert_eq!(function.place.as_ref().unwrap().function.as_deref(), Some("register_mr_buffers"));
}

#[test]
fn chains_keep_their_codes_and_other_information_is_left_out() {
    let text = "vm:1:2 [0] NCCL INFO misc/socket.cc:47 -> 6\nvm:1:2 [0] NCCL INFO init.cc:1358 -> 3 [Async thread]\n\
                vm:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\nvm:1:2 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so)\n\
                vm:1:2 [0] NCCL INFO NCCL_NVLS_ENABLE set by environment to 0.\n";
    let found: Vec<(NcclTopic, Option<u32>)> =
        lines(text).iter().map(|line| (line.topic, line.result)).collect();
    assert_eq!(found, [(NcclTopic::Chain, Some(6)), (NcclTopic::Chain, Some(3))]);
    let gone = &lines("vm:813:828 [0] NCCL INFO [Service thread] Connection closed by localRank 1\n")[0];
    assert_eq!((gone.topic, gone.peer.as_deref()), (NcclTopic::PeerClosed, Some("localRank 1")));
}

#[test]
fn a_result_takes_the_sentence_under_it() {
    let text = "[rank2]: torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1970, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n\
                [rank3]: something else\n\
                [rank2]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. \n\
                [rank2]: Last error:\n\
                [rank2]: socketStartConnect: Connect to 10.0.0.1<39571> failed : Software caused connection abort\n";
    let found = results(text);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].name.as_str(), found[0].code, found[0].version.as_deref()),
        ("ncclSystemError", Some(2), Some("2.21.5"))
    );
    assert_eq!(found[0].topic, NcclTopic::Socket);
    assert_eq!(
        found[0].last_error.as_deref(),
        Some("socketStartConnect: Connect to 10.0.0.1<39571> failed : Software caused connection abort")
    );
}

#[test]
fn results_of_other_callers() {
    assert_eq!(results("gpu1: Test NCCL failure common.cu:958 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '\n")[0].code, Some(1));
    assert_eq!(results("RuntimeError: NCCL Error 2: unhandled system error\n")[0].code, Some(2));
    assert_eq!(results("RuntimeError: NCCL Error 5: x\n")[0].name, "invalid usage");
    assert_eq!(results("ncclInternalError: Internal check failed.\n")[0].code, Some(3));
    assert!(results("ValueError: invalid argument to forward\n").is_empty());
    assert!(results("export NCCL_ASYNC_ERROR_HANDLING=1 # error\n").is_empty());
}

#[test]
fn a_sentence_that_may_be_unrelated_has_no_topic() {
    let found = &results(
        "jaxlib.XlaRuntimeError: INTERNAL: NCCL operation ncclCommInitRank(&comm) failed: unhandled system error (run with NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry (may be unrelated) 'socketStartConnect: Connect to 1.2.3.4<5> failed'.\n",
    )[0];
    assert_eq!((found.code, found.topic, found.last_error.as_deref()), (Some(2), NcclTopic::Other, None));
}

#[test]
fn libfabric_and_ucx() {
    let line = &lines(
        "libfabric:8:1700000000::efa:cq:efa_rdm_cq_handle_error():312<warn> err: 5, message: Invalid address My EFA addr: fi_addr_efa://x\n",
    )[0];
    assert_eq!((line.topic, line.level.as_str()), (NcclTopic::Ofi, "WARN"));
    let line = &lines(
        "[1700000000.12] [gpu1:77 :0] ib_mlx5_log.c:177 UCX  ERROR Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81)\n",
    )[0];
    assert_eq!((line.topic, line.level.as_str()), (NcclTopic::Ib, "ERROR"));
}

#[test]
fn a_completion_error_without_its_head_is_nccls() {
    let line = &lines(
        "NET/IBP:Got completion from peer 10.0.0.1<36315> with status=12 opcode=32698 len=32696 vendor err 129 (Send)\n",
    )[0];
    assert_eq!((line.topic, line.peer.as_deref()), (NcclTopic::Ib, Some("10.0.0.1<36315>")));
}
