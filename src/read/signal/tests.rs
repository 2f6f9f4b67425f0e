//! Signals, aborts and stacks against their fields.

use proptest::prelude::*;

use super::super::event::{
    Abort, AbortReason, Data, Event, FatalSignal, InputId, NativeFrames, SignalReporter,
};
use super::super::read_text;

fn events(text: &str) -> Vec<Event> {
    read_text(InputId(0), text.as_bytes()).events
}

fn signals(text: &str) -> Vec<FatalSignal> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::Signal(found) = event.data { Some(found) } else { None })
        .collect()
}

fn aborts(text: &str) -> Vec<Abort> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::Abort(found) = event.data { Some(found) } else { None })
        .collect()
}

fn stacks(text: &str) -> Vec<NativeFrames> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::NativeFrames(found) = event.data { Some(found) } else { None })
        .collect()
}

#[test]
fn faulthandler_gives_the_current_thread_innermost_first() {
    let text = "Fatal Python error: Segmentation fault\n\nThread 0x00007fcb00000001 (most recent call first):\n  File \"/usr/lib/python3.12/threading.py\", line 300 in wait\n\nCurrent thread 0x00007fcb13ffa140 (most recent call first):\n  File \"/usr/lib/python3.12/ctypes/__init__.py\", line 525 in string_at\n  File \"/home/user/lora/py/triton_cases.py\", line 104 in <module>\n\nExtension modules: numpy._core._multiarray_umath, torch._C (total: 13)\nSegmentation fault      \nexit status 139\n";
    let found = signals(text);
    assert_eq!(
        (found.len(), found[0].signal, found[0].reporter),
        (2, 11, Some(SignalReporter::Faulthandler))
    );
    let frames: Vec<(&str, Option<u32>, Option<&str>)> = found[0]
        .python
        .iter()
        .map(|frame| (frame.file.as_str(), frame.line, frame.function.as_deref()))
        .collect();
    assert_eq!(
        frames,
        [
            ("/usr/lib/python3.12/ctypes/__init__.py", Some(525), Some("string_at")),
            ("/home/user/lora/py/triton_cases.py", Some(104), Some("<module>")),
        ]
    );
    assert_eq!((found[1].signal, found[1].reporter), (11, Some(SignalReporter::Shell)));
}

#[test]
fn two_zipped_processes_are_one_signal() {
    let text = "Fatal Python error: Fatal Python error: Segmentation faultSegmentation fault\n\n\nCurrent thread 0x00007f (most recent call first):\n  File \"a.py\", line 404404 in  in ff\n";
    let found = signals(text);
    assert_eq!((found.len(), found[0].signal), (1, 11));
}

#[test]
fn python_that_gives_up_itself_aborts() {
    let found = aborts("Fatal Python error: Cannot recover from stack overflow.\n");
    assert_eq!(found[0].reason, AbortReason::Stack);
    assert_eq!(signals("Fatal Python error: Aborted\n\nThread 0x00007f (most recent call first):\n  File \"a.py\", line 4 in f\n")[0].signal, 6);
}

#[test]
fn handlers_and_their_stacks() {
    let absl = "*** SIGSEGV received at time=1700000000 on cpu 12 ***\nPC: @     0x7f1234  (unknown)  cuMemFree_v2\n    @     0x7f5678       1234  torch::run()\n    @ ... and at least 3 more frames\nnext\n";
    let found = &signals(absl)[0];
    assert_eq!((found.signal, found.reporter), (11, Some(SignalReporter::Absl)));
    assert_eq!(found.native[0].function.as_deref(), Some("cuMemFree_v2"));
    assert_eq!(found.native[1].address.as_deref(), Some("0x7f5678"));
    let ucx = "[gpu1:12  :0:34] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x7f10)\n==== backtrace (tid:     34) ====\n 0 0x0000000000042520 __sigaction()  ???:0\n 1 0x00000000000a0000 ncclGroupEnd()  /x/group.cc:12\n=================================\n";
    let found = &signals(ucx)[0];
    assert_eq!((found.signal, found.address, found.reporter), (11, Some(0x7f10), Some(SignalReporter::Ucx)));
    assert_eq!(found.native.len(), 2);
    assert_eq!(found.native[1].place.as_ref().unwrap().line, Some(12));
    let mpi = "[node1:77] *** Process received signal ***\n[node1:77] Signal: Segmentation fault (11)\n[node1:77] Signal code: Address not mapped (1)\n[node1:77] Failing at address: 0x10\n[node1:77] [ 0] /lib/libc.so.6(+0x42520)[0x7f00]\n[node1:77] [ 1] /lib/libcuda.so.1(cuInit+0x10)[0x7f01]\n[node1:77] *** End of error message ***\n";
    let found = &signals(mpi)[0];
    assert_eq!((found.signal, found.address, found.pid, found.native.len()), (11, Some(0x10), Some(77), 2));
    assert_eq!(found.native[1].function.as_deref(), Some("cuInit"));
    let gdb = "Thread 1 \"python\" received signal SIGSEGV, Segmentation fault.\n0x00007f in ?? ()\n#0  0x00007f10 in cuMemcpy () from /lib/libcuda.so.1\n#1  0x00007f11 in run (x=1) at /src/a.cpp:12\n";
    let found = &signals(gdb)[0];
    assert_eq!((found.signal, found.reporter), (11, Some(SignalReporter::Debugger)));
    assert_eq!(found.native[0].library.as_deref(), Some("/lib/libcuda.so.1"));
    assert_eq!(found.native[1].place.as_ref().unwrap().file, "/src/a.cpp");
    assert!(
        signals(
            "CUDA Exception: x\nThread 1 \"a\" received signal CUDA_EXCEPTION_14, Warp Illegal Address.\n"
        )
        .is_empty()
    );
}

#[test]
fn data_loaders_and_runtimes() {
    let found = &signals(
        "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n",
    )[0];
    assert_eq!((found.signal, found.pid, found.reporter), (7, Some(77), Some(SignalReporter::DataLoader)));
    assert_eq!(signals("ERROR: Unexpected segmentation fault encountered in worker.\n")[0].signal, 11);
    assert_eq!(signals("signal (11): Segmentation fault\nin expression starting at a.jl:3\n")[0].signal, 11);
    assert_eq!(signals("[12] signal 11 (1): Segmentation fault\n")[0].signal, 11);
    assert_eq!(signals("#  SIGSEGV (0xb) at pc=0x00007f, pid=12, tid=13\n")[0].pid, Some(12));
    assert_eq!(
        signals("[signal SIGSEGV: segmentation violation code=0x1 addr=0x10 pc=0x1]\n")[0].address,
        Some(0x10)
    );
    assert_eq!(
        signals("!!!!!!! Segfault encountered !!!!!!!\n  File \"a.py\", line 1, in f\n")[0].python.len(),
        1
    );
    assert_eq!(
        signals("process didn't exit successfully: `x` (signal: 11, SIGSEGV: invalid memory reference)\n")[0]
            .signal,
        11
    );
    assert_eq!(signals("Windows fatal exception: access violation\n\nCurrent thread 0x01 (most recent call first):\n  File \"a.py\", line 4 in f\n")[0].python.len(), 1);
}

#[test]
fn shells() {
    let pairs =
        |text: &str| signals(text).into_iter().map(|found| (found.signal, found.pid)).collect::<Vec<_>>();
    assert_eq!(pairs("Segmentation fault (core dumped)\n"), [(11, None)]);
    assert_eq!(
        pairs("train.sh: line 3: 77 Segmentation fault      (core dumped) python t.py\n"),
        [(11, Some(77))]
    );
    assert_eq!(pairs("[1]    83815 segmentation fault (core dumped)  python t.py\n"), [(11, Some(83815))]);
    assert_eq!(pairs("zsh: bus error  python t.py\n"), [(7, None)]);
    assert_eq!(pairs("Illegal instruction (core dumped)\n"), [(4, None)]);
    let killed = events("Killed\n");
    assert!(matches!(&killed[0].data, Data::Exit(exit) if exit.signal == Some(9)));
    assert!(
        events("2 workers were Killed by the scheduler\n")
            .iter()
            .all(|event| !matches!(event.data, Data::Exit(_)))
    );
}

#[test]
fn reports_of_launchers_and_lists_of_causes_make_no_signal() {
    for text in [
        "  traceback : Signal 11 (SIGSEGV) received by PID 706\n",
        "W1129 19:42:18.405000 693 torch/x/api.py:1012] Sending process 705 closing signal SIGTERM\n",
        "(3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors. (2) ray stop --force is called.\n",
        "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGSEGV\n",
        "mpirun noticed that process rank 3 with PID 77 on node gpu1 exited on signal 11 (Segmentation fault).\n",
        "CUDA error: an illegal instruction was encountered\n",
        "SIGMOID activation signal 3 of 11\n",
    ] {
        assert!(signals(text).is_empty(), "{text}");
    }
}

#[test]
fn aborts_name_their_reason() {
    let reasons = |text: &str| aborts(text).into_iter().map(|found| found.reason).collect::<Vec<_>>();
    assert_eq!(reasons("double free or corruption (!prev)\n"), [AbortReason::Heap]);
    assert_eq!(reasons("free(): invalid pointer\n"), [AbortReason::Heap]);
    assert_eq!(reasons("malloc(): unsorted double linked list corrupted\n"), [AbortReason::Heap]);
    assert_eq!(reasons("corrupted size vs. prev_size\n"), [AbortReason::Heap]);
    assert_eq!(
        reasons("pure virtual method called\nterminate called without an active exception\n"),
        [AbortReason::PureVirtual, AbortReason::Terminate]
    );
    assert_eq!(reasons("*** stack smashing detected ***: terminated\n"), [AbortReason::Stack]);
    assert_eq!(reasons("Abort trap: 6\n"), [AbortReason::Bare]);
    let found = &aborts(
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  NCCL error\n",
    )[0];
    assert_eq!(
        (found.exception.as_deref(), found.what.as_deref()),
        (Some("std::runtime_error"), Some("NCCL error"))
    );
    let glued =
        &aborts("99%|█| 1/2 [00:01<00:01]t\nerminate called after throwing an instance of 'c10::Error'\n")[0];
    assert_eq!(glued.exception.as_deref(), Some("c10::Error"));
}

#[test]
fn host_assertions_keep_their_place_and_cuda_ones_are_left() {
    let found = &aborts("/x/llama.cpp:1234: GGML_ASSERT(n <= 4) failed\n")[0];
    assert_eq!((found.reason, found.what.as_deref()), (AbortReason::HostAssert, Some("(n <= 4) failed")));
    assert_eq!(found.place.as_ref().unwrap().line, Some(1234));
    let found = &aborts("python3: /src/x.cc:77: void f(int): Assertion `a == b' failed.\n")[0];
    assert_eq!((found.what.as_deref(), found.place.as_ref().unwrap().line), (Some("a == b"), Some(77)));
    let found = &aborts("F0116 12:00:00.123456 123 blob.cpp:34] Check failed: size <= max (3 vs. 2)\n")[0];
    assert_eq!(found.what.as_deref(), Some("size <= max (3 vs. 2)"));
    assert!(
        aborts(
            "F0116 12:00:00.123456 123 math_functions.cu:79] Check failed: error == cudaSuccess (77 vs. 0)\n"
        )
        .is_empty()
    );
    assert!(aborts("/x/Indexing.cu:1284: indexSelectLargeIndex: block: [1,0,0], thread: [2,0,0] Assertion `srcIndex < size` failed.\n").is_empty());
}

#[test]
fn torch_stacks_know_who_raised_them() {
    let text = "Exception raised from query at /pytorch/c10/cuda/CUDAEvent.h:111 (most recent call first):\nframe #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7f3d4657305d in /x/libc10.so)\nframe #1: <unknown function> + 0xc114 (0x7f3d4699c114 in /x/libc10_cuda.so)\n\nterminate called after throwing an instance of 'x'\n";
    let found = &stacks(text)[0];
    let place = found.raised_from.as_ref().unwrap();
    assert_eq!((place.function.as_deref(), place.line), (Some("query"), Some(111)));
    assert_eq!(found.frames.len(), 2);
    assert_eq!(found.frames[0].library.as_deref(), Some("/x/libc10.so"));
    assert_eq!(found.frames[1].function, None);
    let collective = "[rank0]:[E1129 19:42:45.3 ProcessGroupNCCL.cpp:733] Stack trace of the failed collective: \n#0 all_reduce from /x/distributed_c10d.py:3068\n#1 <module> from /home/user/nccl_cases.py:16\n";
    let event =
        events(collective).into_iter().find(|event| matches!(event.data, Data::NativeFrames(_))).unwrap();
    assert_eq!((event.origin.rank, event.span.line, event.span.lines), (Some(0), 1, 3));
    let found = &stacks(collective)[0];
    assert_eq!(found.frames[1].place.as_ref().unwrap().line, Some(16));
    assert_eq!(found.frames[0].function.as_deref(), Some("all_reduce"));
}

proptest! {
    #[test]
    fn mutated_blocks_never_panic(
        cut in 0_usize..400,
        glue in "\\PC{0,6}",
        seed in prop::sample::select(vec![
            "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n  File \"é.py\", line 525 in f\n",
            "Exception raised from query at /x:1 (most recent call first):\nframe #0: é + 0x9d (0x7f in /x)\nframe #1: <\n",
            "terminate called after throwing an instance of 'é'\n  what():  é\n",
            "[gpu1:12  :0:34] Caught signal 11 (Segmentation fault: at address 0x7f10)\n==== backtrace ====\n 0 0x42 f()  ???:0\n",
            "NVRM: Xid (PCI:0000:00:06): 31, pid=1, name=é, MMU Fault: ENGINE G é faulted @ 0x7fe0_b8009000. Fault is of type F ACCESS_TYPE_V\n",
            "python3[2431]: segfault at 0 ip 00007f sp 0 error 4 in libé.so[19bc5c,7f6+1] likely on CPU 15\n",
            "[rank0]: NCCL error in: x:1, unhandled system error, NCCL version 2.2é\nncclSystemError: x\nLast error:\né\n",
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=é, Timeout(ms)=1) ran for 1 milliseconds. last enqueued work: 3, last completed work: -1\n",
        ]),
    ) {
        let mut text: String = seed.chars().take(cut).collect();
        text.push_str(&glue);
        text.push_str(seed);
        prop_assert!(read_text(InputId(0), text.as_bytes()).lines > 0);
    }
}

#[test]
fn shells_speak_other_languages_and_pastes_are_marked_up() {
    let exit = |text: &str| -> Vec<(Option<u32>, Option<u32>)> {
        events(text)
            .into_iter()
            .filter_map(|event| match event.data {
                Data::Exit(exit) => Some((exit.signal, exit.pid)),
                _ => None,
            })
            .collect()
    };
    for text in
        ["**Killed**\n", "`Killed`\n", "已杀死\n", "Getötet\n", "__Killed__\n", "Terminado (killed)\n"]
    {
        assert_eq!(exit(text), [(Some(9), None)], "{text}");
    }
    assert_eq!(exit("run.sh: 行 3: 77 已杀死               python train.py\n"), [(Some(9), Some(77))]);
    let signal = |text: &str| signals(text).first().map(|found| found.signal);
    assert_eq!(signal("段错误 (核心已转储)\n"), Some(11));
    assert_eq!(signal("Speicherzugriffsfehler (Speicherabzug geschrieben)\n"), Some(11));
    assert_eq!(signal("已放弃（吐核）\n"), Some(6));
    assert_eq!(signal("Недопустимая инструкция\n"), Some(4));
    assert!(events("Upload Abgebrochen\n**Killed by the way**\n").is_empty());
}
