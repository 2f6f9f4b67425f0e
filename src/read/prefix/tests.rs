//! Lines of every dialect against their fields and messages.

use proptest::prelude::*;

use super::super::event::{Clock, Origin, Severity};
use super::strip;

fn split(text: &str) -> (Origin, &str) {
    let (origin, at) = strip(text);
    (origin, &text[at..])
}

#[test]
fn messages_are_left_alone() {
    for text in [
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "  File \"/home/user/a.py\", line 3 in <module>",
        "Traceback (most recent call last):",
        "terminate called after throwing an instance of 'c10::Error'",
        "    at 0x7f in [file.cu:12]:kernel",
        "python3: double free",
        "#0 all_reduce from distributed_c10d.py:3068",
        "ERROR: Unexpected segmentation fault encountered in worker.",
        "[0]:",
        "[1]    83815 segmentation fault  python train.py",
        "[1]+  Segmentation fault      (core dumped) python t.py",
        "1: [cudaResources.cpp::~ScopedCudaEvent::24] Error Code 1: Cuda Runtime (an illegal memory access)",
        "[3] finished collective #7, but didn't join collective #8",
        "[/dvs/barrier.cpp:21] cuda failed with an illegal memory access was encountered",
        "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaEventSynchronize(get())",
        "libc.so.6: version `GLIBC_2.32' not found",
        "srun: error: node1: task 3: Segmentation fault (core dumped)",
        "foo.cu:75: CUDA error",
        "   0: rust_begin_unwind",
        "step 100 loss 0.3",
        "| N/A   32C    P0    70W / 700W |      0MiB / 81559MiB |",
        ">>> import torch",
        "",
        "  what():  CUDA error: an illegal instruction was encountered",
        "(1, 2) pid",
    ] {
        assert_eq!(split(text), (Origin::default(), text), "{text}");
    }
}

#[test]
fn torchrun_and_glog() {
    let (origin, text) = split(
        "[rank1]:[E1129 19:41:59.757231482 ProcessGroupNCCL.cpp:2119] [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated",
    );
    assert_eq!(text, "Process group watchdog thread terminated");
    assert_eq!((origin.rank, origin.severity), (Some(1), Some(Severity::Error)));
    let time = origin.time.unwrap();
    assert_eq!((time.text.as_str(), time.clock), ("1129 19:41:59.757231482", Clock::WallNoYear));
    assert_eq!(time.ns, ((333 * 86_400 + 70_919) * 1_000_000_000_i128) + 757_231_482);
    let place = origin.logger.unwrap();
    assert_eq!((place.file.as_str(), place.line), ("ProcessGroupNCCL.cpp", Some(2119)));
    let group = origin.group.unwrap();
    assert_eq!((group.group.as_str(), group.rank), ("default_pg", Some(1)));
}

#[test]
fn group_ranks_are_local() {
    let (origin, text) =
        split("[rank4]:[E321 12:14:43.351 ProcessGroupNCCL.cpp:1595] [PG ID 2 PG GUID 3 Rank 0] text");
    assert_eq!((origin.rank, text), (Some(4), "text"));
    let group = origin.group.unwrap();
    assert_eq!((group.group.as_str(), group.rank), ("3", Some(0)));
    let (origin, _) =
        split("[E321 12:14:43.351 ProcessGroupNCCL.cpp:1] [PG 3 Rank 0] Timeout at NCCL work: 3");
    assert_eq!((origin.rank, origin.group.unwrap().rank), (None, Some(0)));
    let (origin, text) = split("[rank0]:[E909 00:00:00.5 P.cpp:1] [PG 0 (default_pg) Rank 0] x");
    assert_eq!((origin.group.unwrap().group.as_str(), text), ("default_pg", "x"));
    let (origin, text) = split("[PG ID 2 ... Rank 3] watchdog: x");
    assert_eq!((origin.group.unwrap().rank, text), (Some(3), "watchdog: x"));
    let (origin, text) = split("[E ProcessGroupNCCL.cpp:566] [Rank 2] Watchdog caught collective");
    assert_eq!((origin.rank, text), (Some(2), "Watchdog caught collective"));
    let (origin, _) = split("[rank5]:[E1129 19:46:51.9 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog");
    assert_eq!((origin.rank, origin.group.unwrap().rank), (Some(5), Some(0)));
}

#[test]
fn the_old_glog_form_keeps_its_message() {
    let (origin, text) = split("[W CUDAGuardImpl.h:113] Warning: CUDA warning: an illegal memory access");
    assert_eq!(text, "Warning: CUDA warning: an illegal memory access");
    assert_eq!(origin.severity, Some(Severity::Warning));
    assert_eq!(origin.logger.unwrap().line, Some(113));
}

#[test]
fn indentation_stays() {
    assert_eq!(split("[rank1]:   File \"a.py\", line 1, in f").1, "  File \"a.py\", line 1, in f");
    assert_eq!(split("[rank0] warm all_reduce ok 2.0").0.rank, Some(0));
    assert_eq!(
        split("(EngineCore pid=7) ERROR 06-15 16:27:50 [core.py:710]   File \"a.py\"").1,
        "  File \"a.py\""
    );
    assert_eq!(split("│   File \"a.py\", line 3 │").1, "  File \"a.py\", line 3 │");
}

#[test]
fn bare_heads_of_torchelastic() {
    let (origin, text) = split(
        "E1129 19:42:18.520000 693 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: -11)",
    );
    assert_eq!(
        (text, origin.pid, origin.severity),
        ("failed (exitcode: -11)", Some(693), Some(Severity::Error))
    );
    assert_eq!(
        split("ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 1").1,
        "failed (exitcode: -11) local_rank: 1"
    );
    let (origin, text) = split(
        "[2024-01-05 10:20:30,123] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -6)",
    );
    assert_eq!((text, origin.severity), ("failed (exitcode: -6)", Some(Severity::Error)));
    assert_eq!(origin.time.unwrap().clock, Clock::Wall);
}

#[test]
fn role_tails_and_launchers() {
    assert_eq!(split("[default1]:[rank1]: Traceback").0.local_rank, Some(1));
    assert_eq!(split("[default1]:text").1, "text");
    let (origin, text) = split("[1,3]<stdout>:[host1:12] x");
    assert_eq!((origin.rank, text), (Some(3), "x"));
    let (origin, text) = split("Mon Jan  5 12:00:00 2026[1,7]<stdout>:x");
    assert_eq!((origin.rank, origin.time.unwrap().clock, text), (Some(7), Clock::Wall, "x"));
    let (origin, text) = split("[1,290]<stderr>: terminate called");
    assert_eq!((origin.rank, text), (Some(290), "terminate called"));
    let (origin, text) = split("3: [rank3]: Traceback");
    assert_eq!((origin.rank, text), (Some(3), "Traceback"));
    let (origin, text) = split("node1: node1: [rank3]: boom");
    assert_eq!((origin.host.as_deref(), origin.rank, text), (Some("node1"), Some(3), "boom"));
    let (origin, text) = split("trainer-worker-0: RuntimeError: x");
    assert_eq!((origin.host.as_deref(), text), (Some("trainer-worker-0"), "RuntimeError: x"));
    let (origin, text) = split("bench.node.nolog [stderr] Traceback");
    assert_eq!((origin.process.as_deref(), text), (Some("bench.node.nolog"), "Traceback"));
    let (origin, text) = split("[RANK 1] 2024-01-05 10:20:30 [ERROR] boom");
    assert_eq!((origin.rank, origin.severity, text), (Some(1), Some(Severity::Error), "boom"));
    assert_eq!(split("> > [rank2]: x").0.rank, Some(2));
    assert_eq!(split("[80746] [rank2]: x").0.rank, Some(2));
    assert_eq!(split("trainer-0  | [rank2]: x").0.host.as_deref(), Some("trainer-0"));
}

#[test]
fn workers_of_serving_engines() {
    let (origin, text) =
        split("(RayWorkerWrapper pid=123, ip=10.0.0.1) [rank3]:[E1129 19:41:59.7 P.cpp:1] boom");
    assert_eq!((origin.process.as_deref(), origin.pid), (Some("RayWorkerWrapper"), Some(123)));
    assert_eq!((origin.host.as_deref(), origin.rank, text), (Some("10.0.0.1"), Some(3), "boom"));
    let (origin, text) = split("(VllmWorker TP1 pid=9) ERROR 06-15 16:27:50 [serving.py:471] boom");
    assert_eq!((origin.process.as_deref(), origin.rank, text), (Some("VllmWorker TP1"), Some(1), "boom"));
    assert_eq!(split("(VllmWorker rank=2 pid=92) x").0.rank, Some(2));
    let (origin, text) = split("ERROR 09-27 06:46:46 engine.py:157] boom");
    assert_eq!((origin.logger.unwrap().line, text), (Some(157), "boom"));
    let (origin, text) = split("[2025-09-30 09:51:59.029 TP6 PP1] Scheduler hit an exception");
    assert_eq!((origin.process.as_deref(), origin.rank), (Some("TP6 PP1"), None));
    assert_eq!(text, "Scheduler hit an exception");
    assert_eq!(split("[2025-09-30 09:51:59 TP6] x").0.rank, Some(6));
    let (origin, text) = split("[2024-01-05 10:20:30,123 E 1234 5678] logging.cc:97: *** SIGSEGV received");
    assert_eq!(
        (origin.pid, origin.tid, text),
        (Some(1234), Some(5678), "logging.cc:97: *** SIGSEGV received")
    );
}

#[test]
fn kernel_logs_and_journals() {
    let (origin, text) = split("[  152.789234] NVRM: Xid (PCI:0000:00:06): 31, pid=1714");
    let time = origin.time.unwrap();
    assert_eq!((time.ns, time.clock), (152_789_234_000, Clock::Boot));
    assert!(text.starts_with("NVRM: Xid"));
    assert_eq!(split("[  152.789234][ T1234] NVRM: x").1, "NVRM: x");
    assert_eq!(split("<4>[  152.789234] NVRM: x").1, "NVRM: x");
    let (origin, text) = split("4,9921,152789234,-;NVRM: Xid");
    assert_eq!((origin.time.unwrap().ns, text), (152_789_234_000, "NVRM: Xid"));
    let (origin, text) = split("Jan  2 15:04:05 gpu-host1 kernel: [ 38.5326] NVRM: x");
    assert_eq!(
        (origin.host.as_deref(), origin.process.as_deref(), text),
        (Some("gpu-host1"), Some("kernel"), "NVRM: x")
    );
    let (origin, text) = split("6月 10 16:45:05 host bash[71]: Traceback");
    assert_eq!((origin.host.as_deref(), origin.pid, text), (Some("host"), Some(71), "Traceback"));
    let (origin, text) = split("[Mon Jan  5 00:00:01 1970] NVRM: x");
    assert_eq!((origin.time.unwrap().clock, text), (Clock::Wall, "NVRM: x"));
    let (origin, text) = split("10.0.0.1: kern: warning: [2024-01-01T12:00:00Z]: NVRM: x");
    assert_eq!((origin.host.as_deref(), text), (Some("10.0.0.1"), "NVRM: x"));
    let (origin, text) = split("2024-01-01T12:00:00.123456+00:00 node7 kernel: NVRM: x");
    assert_eq!((origin.host.as_deref(), text), (Some("node7"), "NVRM: x"));
}

#[test]
fn containers_and_python_loggers() {
    assert_eq!(split("2024-01-01T12:00:00.123456789Z stderr F [rank0]: x").1, "x");
    assert_eq!(split("2024-01-01T12:00:00.123456789Z Traceback (most").1, "Traceback (most");
    let (origin, text) = split("2024-01-01 12:00:00,123 - trainer.x - ERROR - boom");
    assert_eq!((origin.severity, text), (Some(Severity::Error), "boom"));
    assert_eq!(split("2024-01-01 12:00:00,123\tERROR worker.py:406 -- Unhandled error").1, "Unhandled error");
    assert_eq!(split("2024-01-01 12:00:00.123 | ERROR    | app.main:run:12 - boom").1, "boom");
    assert_eq!(split("2024-01-01 12:00:00.123456: E external/xla/cuda_driver.cc:1] failed").1, "failed");
    assert_eq!(
        split("[2023-05-05 12:00:00,123] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python'] exits")
            .1,
        "['/usr/bin/python'] exits"
    );
    let (origin, text) = split("[56285] 0.54.236.075 E CUDA error: an illegal memory access was encountered");
    assert_eq!((origin.pid, text), (Some(56285), "CUDA error: an illegal memory access was encountered"));
    assert_eq!(
        split("2024-01-01T12:00:00Z   File \"a.py\", line 3, in f").1,
        "  File \"a.py\", line 3, in f"
    );
}

#[test]
fn nccl_heads_go_to_the_origin() {
    let (origin, text) = split(
        "[2025-11-29 19:41:59] vm-1:912:936 [3] transport/net.cc:12 (f) NCCL WARN Cuda failure 700 'x'",
    );
    assert_eq!(
        (origin.host.as_deref(), origin.pid, origin.tid, origin.device),
        (Some("vm-1"), Some(912), Some(936), Some(3))
    );
    assert_eq!(text, "transport/net.cc:12 (f) NCCL WARN Cuda failure 700 'x'");
    assert_eq!(
        split("vm:912:912 [0] NCCL INFO cudaDriverVersion 13000").1,
        "NCCL INFO cudaDriverVersion 13000"
    );
}

#[test]
fn a_bar_before_the_message_goes() {
    let (origin, text) =
        split(" 45%|████▌     | 45/100 [00:10<00:12,  4.5it/s][rank2]:[E1129 19:41:59.7 P.cpp:1] boom");
    assert_eq!((origin.rank, text), (Some(2), "boom"));
}

proptest! {
    #[test]
    fn any_text_splits_at_a_character(text in "[\\PC ]{0,80}") {
        let (_, at) = strip(&text);
        prop_assert!(text.get(at..).is_some());
    }

    #[test]
    fn heads_cut_anywhere_split_at_a_character(
        cut in 0_usize..90,
        head in prop::sample::select(vec![
            "[rank1]:[E1129 19:41:59.757231482 ProcessGroupNCCL.cpp:2119] [PG ID 0 PG GUID 0(é) Rank 1] 月",
            "(RayWorkerWrapper pid=123, ip=10.0.0.1) ERROR 06-15 16:27:50 [serving.py:471] 月",
            "6月 10 16:45:05 host bash[71]: 4,9921,152789234,-;月",
            "[2024-01-05 10:20:30,123 E 1234 5678] vm:1:2 [3] NCCL WARN 月",
            "10.0.0.1: kern: warning: [2024-01-01T12:00:00Z]: 月 [1,3]<stdout>:月",
        ]),
        tail in "\\PC{0,8}",
    ) {
        let mut text: String = head.chars().take(cut).collect();
        text.push_str(&tail);
        let (_, at) = strip(&text);
        prop_assert!(text.get(at..).is_some());
    }
}
