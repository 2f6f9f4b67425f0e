//! Logs of which the telling part is missing: cut pastes, advice without its error, a supervisor's word alone.
//!
//! In: small logs, written here. Out: an honest class for each, and none for logs of jobs that went well.

use warpfault::session::{Input, Session};
use warpfault::source::{InputSpec, Limits, load};
use warpfault::tables::cause::CauseKind;
use warpfault::tables::class::FailureClass;
use warpfault::verdict::{Certainty, Verdict};

fn judge(log: &str) -> Verdict {
    let spec = InputSpec::Text { name: "run.log".to_owned(), bytes: log.as_bytes().to_vec() };
    let mut session = Session::new();
    session.apply(Input::Loaded(load(&[spec], Limits::default())));
    session.verdict().clone()
}

fn class(log: &str) -> FailureClass {
    judge(log).class
}

fn cause(log: &str) -> Option<CauseKind> {
    judge(log).cause().and_then(|hypothesis| hypothesis.cause)
}

#[test]
fn host_memory_that_ran_out_is_told_by_its_keepers() {
    for log in [
        "(task) Memory on the node (IP: 10.0.0.1, ID: ab) where the task (actor ID: cd, name=W.__init__, pid=308, memory used=11.15GB) was running was 12.49GB / 13.15GB (0.950003), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: ef) because it was the most recently scheduled task.\n",
        "(raylet) [2025-04-02 15:02:00,117 E 135782 135782] (raylet) node_manager.cc:3069: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: ab)\nTraceback (most recent call last):\n  File \"/usr/lib/python3.10/runpy.py\", line 196, in _run_module_as_main\n",
        "[  687.293876] python invoked oom-killer: gfp_mask=0x24280ca, order=0, oom_score_adj=0\n[  687.293888] CPU: 0 PID: 3557 Comm: python\n",
    ] {
        assert_eq!((class(log), cause(log)), (FailureClass::HostOom, Some(CauseKind::HostMemory)), "{log}");
    }
}

#[test]
fn a_signal_from_outside_killed_the_job() {
    for log in [
        "W0227 17:39:41.936000 293817 torch/x/api.py:719] Received 15 death signal, shutting down workers\n",
        "W0823 16:54:02.337000 1397 torch/x/api.py:688] Received Signals.SIGTERM death signal, shutting down workers\nW0823 16:54:02.337000 1397 torch/x/api.py:857] Sending process 6236 closing signal SIGTERM\nTraceback (most recent call last):\n  File \"/usr/local/bin/torchrun\", line 33, in <module>\n",
        "iter 144: loss 0.58\n**Killed**\n",
        "iter 144: loss 0.58\n已杀死\n",
    ] {
        assert_eq!(class(log), FailureClass::Killed, "{log}");
    }
}

#[test]
fn what_lacks_its_telling_part_is_undecided() {
    let head = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    main()\n";
    for log in [
        head,
        "(raylet) The node with node id: ab and address: 10.0.0.51 and node name: n1 has been marked dead because the detector has missed too many heartbeats from it.\n",
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. Worker PID: 311\n",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n",
        "ggml_cuda_init: found 1 CUDA devices:\n\\ggml\\src\\ggml-cuda\\ggml-cuda.cu:88: CUDA error\n",
        "/src/ggml-cuda.cu:71: CUDA error\nAborted (core dumped)\n",
        "Error: llama runner process has terminated: signal: aborted (core dumped) CUDA error: CUBLAS_STATUS_EXECUTION_FAILED\n  current device: 0, in function ggml_cuda_op at /src/ggml-cuda.cu:1905\n",
        "RuntimeError: CUDA error: an illegal ",
    ] {
        assert_eq!(
            (class(log), judge(log).certainty),
            (FailureClass::Undecided, Certainty::Undecided),
            "{log}"
        );
    }
    assert_eq!(class(&format!("{head}ValueError: bad\n")), FailureClass::PythonError);
}

#[test]
fn a_message_that_is_cut_is_suspected_and_says_so() {
    let verdict = judge("step 3\nRuntimeError: CUDA error: an illegal mem");
    assert_eq!((verdict.class, verdict.certainty), (FailureClass::IllegalAddress, Certainty::Suspected));
    assert!(verdict.summary.contains("cut off"), "{}", verdict.summary);
}

#[test]
fn set_up_of_communication_that_fails_is_communication() {
    for log in [
        "/s/src/host/init/init.cu:989: non-zero status: 7 nvshmem detect topo failed \n",
        "torch.distributed.DistBackendError: NCCL error in: /p/ProcessGroupNCCL.cpp:3699, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 217 'peer access is not supported between these two devices'\n",
    ] {
        assert_eq!(class(log), FailureClass::Nccl, "{log}");
    }
    let timed_out = "/s/modules/transport/ibrc/ibrc.cpp:418: non-zero status: 110 ibv_modify_qp failed \n";
    assert_eq!((class(timed_out), cause(timed_out)), (FailureClass::Nccl, Some(CauseKind::Network)));
}

#[test]
fn drivers_say_what_they_say_in_many_words() {
    let mismatch =
        "CUDA initialization error on h1: system has unsupported display driver / cuda driver combination\n";
    assert_eq!((class(mismatch), cause(mismatch)), (FailureClass::Driver, Some(CauseKind::VersionMismatch)));
    let tegra = "nvgpu: 17000000.gpu gv11b_fb_mmu_fault_info_dump:294  [ERR]  [MMU FAULT] mmu engine id:  18, ch id:  479, fault addr: 0x0, fault addr aperture: 0, fault type: invalid pde, access type: virt read,\n";
    assert_eq!((class(tegra), cause(tegra)), (FailureClass::IllegalAddress, Some(CauseKind::NullPointer)));
    let pending = "    Remapped Rows\n        Uncorrectable Error               : 4\n        Pending                           : Yes\n";
    assert_eq!((class(pending), cause(pending)), (FailureClass::Hardware, Some(CauseKind::Ecc)));
    let unknown = "CUDA error = 999at main.cu:196'cudaDeviceSynchronize()/n\n";
    assert_eq!(class(unknown), FailureClass::Undecided);
    let wrapped = "2019-06-13 01:17:08.886805: E local_client.cc:672] Execution of replica 0 failed: Resource exhausted: Out \nof memory while trying to allocate 5520758552 bytes.\n";
    assert_eq!(class(wrapped), FailureClass::GpuOom);
}

#[test]
fn stacks_of_running_processes_show_where_each_stands() {
    let dump = |pid: u32, frames: &str| {
        format!(
            "Process {pid}: python3 train.py\nPython v3.11.9 (/usr/bin/python3.11)\n\nThread {pid} (active): \"MainThread\"\n{frames}    <module> (train.py:340)\n\n"
        )
    };
    let waits = "    all_gather_into_tensor (torch/distributed/distributed_c10d.py:3795)\n    forward (train.py:210)\n";
    let log = dump(9100, waits)
        + &dump(9101, "    read (ssl.py:1167)\n    upload (train.py:255)\n")
        + &dump(9102, waits);
    let verdict = judge(&log);
    assert_eq!((verdict.class, verdict.root_rank), (FailureClass::Undecided, None));
    assert_eq!(
        verdict.summary,
        "Stacks of 3 running processes: they show where each one stands, and no failure. In a collective (all_gather_into_tensor): process 9100, process 9102. Elsewhere: process 9101 in read (ssl.py:1167), from upload (train.py:255)."
    );
    let died = log + "ValueError: bad\n";
    assert_eq!(class(&died), FailureClass::PythonError);
}

#[test]
fn a_finished_run_that_quotes_errors_failed_of_none() {
    let log = "INFO: retry policy: will restart job on \"CUDA error: an illegal memory access was encountered\" or \"NCCL error\"\nINFO: step 1 loss 2.0\nINFO: training finished in 312.1 s, exit code 0\n";
    assert_eq!(judge(log).certainty, Certainty::Supported);
    assert_eq!(class(log), FailureClass::None);
    let metric = "12/100 [==>...] - ETA: 3:59 - loss: 1.8e-05 - mean_squared_error: 9.0033e-08\n";
    assert_eq!(class(metric), FailureClass::None);
}
