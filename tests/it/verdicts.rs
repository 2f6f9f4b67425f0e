//! Small logs and what is said of them: each rule with a log that it is for, and one beside it that it is not for.
//!
//! In: logs written here. Out: the report's cause, restart, checks, next steps and sentences.

use serde_json::Value;
use warpfault::report::text::{self, Paint};
use warpfault::session::{Input, Session};
use warpfault::source::{self, InputSpec, Limits};

/// The report of a log as a program reads it.
fn read(log: &str) -> Value {
    serde_json::to_value(session(log).report()).unwrap()
}

/// The report of a folder as a program reads it.
fn read_folder(folder: &std::path::Path) -> Value {
    let mut session = Session::new();
    let path = InputSpec::Path(folder.to_owned());
    session.apply(Input::Loaded(source::load(&[path], Limits::default())));
    serde_json::to_value(session.report()).unwrap()
}

/// The report of a log as a person reads it, on one line.
fn shown(log: &str) -> String {
    let shown = text::render(session(log).report(), Paint::Plain);
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn session(log: &str) -> Session {
    let mut session = Session::new();
    let text = InputSpec::Text { name: "run.log".to_owned(), bytes: log.as_bytes().to_vec() };
    session.apply(Input::Loaded(source::load(&[text], Limits::default())));
    session
}

fn check<'a>(report: &'a Value, id: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap_or(&Value::Null)
}

fn next_ids(report: &Value) -> Vec<&str> {
    report["next"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap()).collect()
}

const DIED: &str = "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    loss.item()\nRuntimeError: CUDA error: an illegal memory access was encountered\n";

#[test]
fn a_shape_that_passed_before_is_no_cause() {
    let same =
        "step 1 hidden=(262144, 16384)\nstep 2 hidden=(262144, 16384)\nstep 3 hidden=(262144, 16384)\n";
    let at_start = "attention logits shape (64, 32, 4096, 4096) dtype=torch.bfloat16\nstep 1812 loss 2.113\n";
    for (log, says) in [(same, "passed 2 times before"), (at_start, "to step 1812")] {
        let report = read(&format!("{log}{DIED}"));
        assert_eq!(report["verdict"]["cause"], Value::Null);
        assert_eq!(report["verdict"]["restart"]["advice"], "unknown");
        assert_eq!(check(&report, "shape-passed")["status"], "fails");
        let hypothesis = &report["hypotheses"][0];
        assert_eq!(
            (&hypothesis["cause"], &hypothesis["certainty"]),
            (&"int32_overflow".into(), &"undecided".into())
        );
        assert!(!hypothesis["against"].as_array().unwrap().is_empty());
        assert!(shown(&format!("{log}{DIED}")).contains(says));
    }
}

/// A size that the program prints when it loads a weight says nothing about the launch that fails later.
#[test]
fn a_weight_or_a_cache_past_the_limit_is_no_cause() {
    for line in [
        "INFO loading lm_head.weight torch.Size([262144, 16384]) bf16 shard 0/8\n",
        "INFO kv_cache: torch.Size([2, 120000, 16, 8, 128]) dtype=bfloat16\n",
    ] {
        let report = read(&format!("{line}{DIED}"));
        assert_eq!(report["verdict"]["cause"], Value::Null, "{line}");
        assert_eq!(report["hypotheses"].as_array().map(Vec::len), Some(0), "{line}");
        let check = check(&report, "overflow-arithmetic");
        assert_eq!(check["status"], "unknown", "{line}");
        assert!(check["reading"].as_str().unwrap().contains("nothing ties it to the launch"), "{line}");
    }
    let report = read(&format!("hidden=(262144, 16384)\n{DIED}"));
    assert_eq!(report["verdict"]["cause"]["kind"], "int32_overflow");
}

#[test]
fn a_printed_kernel_with_wide_indices_speaks_against_a_wrap() {
    let kernel = "triton_meta={'signature': {'in_ptr0': '*bf16', 'xnumel': 'i64'}}\n";
    let report = read(&format!("{kernel}x.shape=torch.Size([401408, 8192])\n{DIED}"));
    assert_eq!(report["verdict"]["cause"], Value::Null);
    let summary = report["hypotheses"][0]["summary"].as_str().unwrap();
    assert!(summary.contains("line 1 shows a kernel that forms its indices in 64 bits"), "{summary}");
    let narrow = kernel.replace("'i64'", "'i32'");
    let report = read(&format!("{narrow}x.shape=torch.Size([401408, 8192])\n{DIED}"));
    assert_eq!(report["verdict"]["cause"]["kind"], "int32_overflow");
}

/// The source of the kernel that the log names lies beside it.
#[test]
fn a_source_that_widens_leaves_the_missing_mask() {
    let source = |row: &str, mask: &str| {
        format!(
            "import triton\nimport triton.language as tl\n\n@triton.jit\ndef scale_kernel(x_ptr, y_ptr, M, N, stride, BLOCK: tl.constexpr, WIDTH: tl.constexpr):\n    rows = {row} * BLOCK + tl.arange(0, BLOCK)\n    cols = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)\n    x = tl.load(x_ptr + rows[:, None] * stride + cols[None, :]{mask})\n    tl.store(y_ptr + rows[:, None] * stride + cols[None, :], x, mask=(rows < M)[:, None])\n"
        )
    };
    let log = format!("[launch] scale_kernel grid=(4688,) x.shape=torch.Size([300001, 9216])\n{DIED}");
    let cause = |source: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("run.log"), &log).unwrap();
        std::fs::write(folder.path().join("kernels.py"), source).unwrap();
        let report = read_folder(folder.path());
        report["verdict"]["cause"].clone()
    };
    let wide = "tl.program_id(0).to(tl.int64)";
    let unmasked = cause(&source(wide, ""));
    assert_eq!((&unmasked["kind"], &unmasked["certainty"]), (&"missing_mask".into(), &"suspected".into()));
    assert!(unmasked["summary"].as_str().unwrap().starts_with("kernels.py:8 in scale_kernel: no mask"));
    assert_eq!(cause(&source(wide, ", mask=(rows < M)[:, None]")), Value::Null);
    let narrow = cause(&source("tl.program_id(0)", ", mask=(rows < M)[:, None]"));
    assert_eq!((&narrow["kind"], &narrow["certainty"]), (&"int32_overflow".into(), &"suspected".into()));
}

#[test]
fn the_first_step_past_the_limit_stays_suspected() {
    let growing = "step 1 packed tokens M=131072 N=9216\nstep 2 packed tokens M=200000 N=9216\nstep 3 packed tokens M=234624 N=9216\n";
    let report = read(&format!("{growing}{DIED}"));
    let cause = &report["verdict"]["cause"];
    assert_eq!((&cause["kind"], &cause["certainty"]), (&"int32_overflow".into(), &"suspected".into()));
    assert_eq!(check(&report, "shape-passed"), &Value::Null);
    // Suspected alone: it is pointless only if that is the cause.
    assert_eq!(report["verdict"]["restart"]["advice"], "unknown");
    assert!(report["verdict"]["restart"]["summary"].as_str().unwrap().starts_with("pointless if"));
}

fn timed_out(rank: u32, seq: u64, op: &str, sizes: (u64, u64), enqueued: u64) -> String {
    format!(
        "[rank{rank}]:[E1105 02:45:03.118273645 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={}, NumelOut={}, Timeout(ms)=600000) ran for 600034 milliseconds before timing out.\n[rank{rank}]:[E1105 02:45:03.119220031 ProcessGroupNCCL.cpp:1785] [PG ID 1 PG GUID 1 Rank {rank}] Exception (either an error or timeout) detected by watchdog at work: {seq}, last enqueued NCCL work: {enqueued}, last completed NCCL work: {}.\n",
        sizes.0,
        sizes.1,
        seq - 1,
    )
}

#[test]
fn a_rank_one_collective_behind_has_two_readings() {
    let log = [
        timed_out(3, 31, "_ALLGATHER_BASE", (20, 160), 33),
        timed_out(1, 31, "_ALLGATHER_BASE", (20, 160), 33),
        timed_out(5, 30, "_REDUCE_SCATTER_BASE", (160, 20), 30),
    ]
    .concat();
    let report = read(&log);
    assert_eq!(report["verdict"]["cause"], Value::Null);
    assert_eq!(report["verdict"]["restart"]["advice"], "unknown");
    assert_eq!(report["verdict"]["root_rank"], 5);
    let states: Vec<(u64, &str)> = report["ranks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rank| (rank["rank"].as_u64().unwrap(), rank["state"].as_str().unwrap()))
        .collect();
    // A gathered array is eight parts long, so the group has eight ranks: five of them show nothing.
    let silent = [0, 2, 4, 6, 7].map(|rank| (rank, "silent"));
    assert_eq!(states, [&[(5, "waiting")][..], &silent, &[(1, "waiting"), (3, "waiting")]].concat());
    let settle = report["hypotheses"][0]["would_settle"].to_string();
    assert!(settle.contains("flight-recorder") && settle.contains("NCCL_DEBUG=WARN"), "{settle}");
    let shown = shown(&log);
    for part in [
        "rank 5 waits in _REDUCE_SCATTER_BASE number 30",
        "ranks 1,3 completed that number and wait in _ALLGATHER_BASE number 31",
        "nothing is known of ranks 0,2,4,6-7",
        "Two readings fit",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn a_rank_that_never_came_stays_a_suspected_cause() {
    let behind = "[rank2]:[E1105 02:45:03.119220031 ProcessGroupNCCL.cpp:1785] [PG ID 1 PG GUID 1 Rank 2] Exception (either an error or timeout) detected by watchdog at work: 30, last enqueued NCCL work: 30, last completed NCCL work: 30.\n";
    let log =
        [timed_out(0, 31, "ALLREDUCE", (64, 64), 31), timed_out(1, 31, "ALLREDUCE", (64, 64), 31)].concat();
    let report = read(&format!("{log}{behind}"));
    let cause = &report["verdict"]["cause"];
    assert_eq!((&cause["kind"], &cause["certainty"]), (&"missing_collective".into(), &"suspected".into()));
    assert_eq!(report["verdict"]["root_rank"], 2);
}

/// A traceback of one frame that ends in an illegal address.
fn at(frames: &str) -> String {
    format!(
        "Traceback (most recent call last):\n{frames}RuntimeError: CUDA error: an illegal memory access was encountered\n"
    )
}

#[test]
fn a_call_that_no_table_knows_is_not_said_to_run_on() {
    for (call, waits) in [
        ("loss.item()", Value::Bool(true)),
        ("ids = self._to_list(sampled)", Value::Null),
        ("logger.log(loss)", Value::Null),
        ("y = layers[i](x)", Value::Null),
        ("scale_kernel[grid](x, y, n)", Value::Bool(false)),
        ("y = torch.matmul(a, b)", Value::Bool(false)),
    ] {
        let log = at(&format!("  File \"t.py\", line 3, in <module>\n    {call}\n"));
        let report = read(&log);
        assert_eq!(report["verdict"]["observed_at"]["is_sync_point"], waits, "{call}");
        let status = match waits {
            Value::Null => "unknown",
            Value::Bool(true) => "holds",
            _ => "fails",
        };
        assert_eq!(check(&report, "sync-point")["status"], status, "{call}");
    }
}

#[test]
fn the_innermost_frame_tells_whether_a_call_waits() {
    let log = at(
        "  File \"t.py\", line 3, in <module>\n    out = model(batch)\n  File \"/x/site-packages/transformers/masks.py\", line 277, in _ignore\n    elif not tracing and torch.all(mask == 1):\n",
    );
    let report = read(&log);
    let noticed = &report["verdict"]["observed_at"];
    assert_eq!((&noticed["file"], &noticed["is_sync_point"]), (&"t.py".into(), &Value::Bool(true)));
    let reading = check(&report, "sync-point")["reading"].as_str().unwrap();
    assert!(reading.contains("model reaches bool(") && reading.contains("masks.py:277"), "{reading}");
    let unknown = log.replace("torch.all(mask == 1)", "checked(mask)");
    assert_eq!(read(&unknown)["verdict"]["observed_at"]["is_sync_point"], Value::Null);
    assert!(shown(&unknown).contains("not known whether it waits"));
}

/// PyTorch's message, in GiB: asked, free, held by another process, reserved and unused.
fn refused(asked: &str, free: &str, other: &str, unused: &str) -> String {
    format!(
        "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    x = torch.empty(n)\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} GiB. GPU 0 has a total capacity of 79.25 GiB of which {free} GiB is free. {other}Including non-PyTorch memory, this process has 48.13 GiB memory in use. Of the allocated memory 33.02 GiB is allocated by PyTorch, and {unused} GiB is reserved by PyTorch but unallocated.\n"
    )
}

#[test]
fn the_numbers_of_a_refused_request_order_the_steps() {
    let neighbour = "Process 91234 has 22.10 GiB memory in use. ";
    let advice = |report: &Value| report["verdict"]["restart"]["advice"].as_str().unwrap().to_owned();
    let log = refused("15.66", "9.01", neighbour, "13.50");
    let pieces = read(&log);
    assert_eq!(next_ids(&pieces), ["expandable-segments", "gpu-tenants", "smaller-batch"]);
    assert_eq!(advice(&pieces), "worth_trying");
    let said = shown(&log);
    for part in [
        "15.66 GiB were asked for and 9.01 GiB are free",
        "13.50 GiB more",
        "in pieces",
        "process 91234 holds 22.10 GiB",
        "-p 91234",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let held = read(&refused("15.66", "9.01", neighbour, "0.50"));
    assert_eq!(next_ids(&held), ["gpu-tenants", "expandable-segments", "smaller-batch"]);
    assert!(held["verdict"]["restart"]["summary"].as_str().unwrap().contains("91234"));
    let full = read(&refused("15.66", "9.01", "", "0.50"));
    assert_eq!(advice(&full), "pointless");
    assert!(!full["verdict"]["cause"]["summary"].as_str().unwrap().contains("pieces"));
    let too_large = read(&refused("4096.00", "9.01", neighbour, "13.50"));
    assert_eq!((next_ids(&too_large), advice(&too_large).as_str()), (vec!["wrong-size"], "pointless"));
}

#[test]
fn a_bus_error_of_a_dataloader_worker_points_to_shared_memory() {
    let log = "$ python3 train.py\nTraceback (most recent call last):\n  File \"train.py\", line 5, in <module>\n    for b in loader:\nRuntimeError: DataLoader worker (pid 2211) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n";
    let report = read(log);
    let cause = &report["verdict"]["cause"];
    assert_eq!((&cause["kind"], &cause["certainty"]), (&"shm_exhausted".into(), &"suspected".into()));
    assert_eq!(next_ids(&report), ["shm-size", "no-workers"]);
    assert!(report["mitigations"].to_string().contains("--ipc=host"));
    let full = format!(
        "{log}Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    w.join()\nOSError: [Errno 28] No space left on device\n"
    );
    assert_eq!(read(&full)["verdict"]["cause"]["certainty"], "supported");
    let other = log.replace("Bus error", "Segmentation fault");
    assert_eq!(read(&other)["verdict"]["cause"], Value::Null);
}

/// The driver's lines of a GPU that fell off the bus, with the action that it asks for.
fn fell_off(action: &str) -> String {
    format!(
        "[1184023.332220] NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n[1184025.501122] NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x0 (None) to {action}\n"
    )
}

#[test]
fn a_lost_gpu_is_named_with_what_its_driver_asks_for() {
    let report = read(&fell_off("0x2 (Node Reboot Required)"));
    assert!(
        report["verdict"]["summary"].as_str().unwrap().contains("0000:41:00"),
        "{}",
        report["verdict"]["summary"]
    );
    assert_eq!(next_ids(&report), ["bug-report", "recovery-action", "gpu-state"]);
    assert!(shown(&fell_off("0x2 (Node Reboot Required)")).contains("Node Reboot Required\""));
    let reset = read(&fell_off("0x1 (GPU Reset Required)"));
    assert_eq!(
        reset["next"][1]["command"],
        serde_json::json!(["sudo", "nvidia-smi", "--gpu-reset", "-i", "0000:41:00"])
    );
    assert_eq!(next_ids(&read(&fell_off("0x0 (None)"))), ["bug-report", "gpu-state"]);
}

#[test]
fn where_a_graph_was_replayed_the_first_step_leaves_it_out() {
    let frames = "  File \"serve.py\", line 3, in <module>\n    g.replay(); torch.cuda.synchronize()\n";
    assert_eq!(next_ids(&read(&at(frames))), ["without-graph", "core-dump", "compute-sanitizer"]);
    let vllm = read(&format!("$ vllm serve m\n{}", at(frames)));
    assert_eq!(vllm["next"][0]["command"], serde_json::json!(["vllm", "serve", "m", "--enforce-eager"]));
    let plain = at("  File \"serve.py\", line 3, in <module>\n    x.item()\n");
    assert_eq!(next_ids(&read(&plain))[0], "launch-blocking");
}

#[test]
fn an_assertion_about_an_index_asks_for_the_index_first() {
    let log = "/x/Indexing.cu:1369: indexSelectLargeIndex: block: [412,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n";
    assert_eq!(next_ids(&read(log)), ["index-range", "on-the-cpu", "launch-blocking"]);
    let other = log.replace("srcIndex < srcSelectDimSize", "is_ready");
    assert_eq!(next_ids(&read(&other))[0], "on-the-cpu");
}

#[test]
fn an_exception_is_its_own_reason() {
    let log = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n    raise ValueError(text)\nValueError: label 32001 outside the vocabulary\n";
    let report = read(log);
    assert_eq!(report["verdict"]["cause"], Value::Null);
    assert_eq!(next_ids(&report), ["raising-frame"]);
    assert!(
        shown(log).contains("cause the exception says it: ValueError: label 32001 outside the vocabulary")
    );
}

#[test]
fn a_race_names_both_accesses() {
    let log = "$ compute-sanitizer --tool racecheck ./crash\n========= COMPUTE-SANITIZER\n========= Error: Race reported between Write access at racy(int *)+0xa0 in crash.cu:31\n=========     and Read access at racy(int *)+0xb0 in crash.cu:32 [256 hazards]\n=========\n========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n";
    let said = shown(log);
    assert!(said.contains("a write at crash.cu:31 and a read at crash.cu:32"), "{said}");
}

/// A stack of gdb names the function, and no step asks for a stack that is there.
#[test]
fn a_native_stack_names_the_function_that_crashed() {
    let log = "$ gdb --args python train.py\n\
        Thread 41 \"pt_autograd_0\" received signal SIGSEGV, Segmentation fault.\n\
        #0  0x00007fff9d1c3a20 in ext::backward(at::Tensor const&) () from /opt/lib/ext.so\n\
        #1  0x00007fff9d1d0b12 in pybind11::cpp_function::dispatcher(_object*, _object*) () from /opt/lib/ext.so\n";
    let report = read(log);
    assert_eq!(report["verdict"]["fault_at"]["function"], "ext::backward");
    let summary = report["verdict"]["summary"].as_str().unwrap();
    assert!(summary.contains("in ext::backward at ext.so"), "{summary}");
    assert_eq!(next_ids(&report), ["native-frame"]);
}

/// In a container the message names this very process like any other: no neighbour is blamed.
#[test]
fn a_process_that_may_be_this_one_is_no_neighbour() {
    let log = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.83 GiB. GPU 0 has a total capacity of 79.10 GiB of \
        which 5.41 GiB is free. Process 81233 has 73.68 GiB memory in use. Of the allocated memory 48.22 GiB is allocated by \
        PyTorch, and 24.61 GiB is reserved by PyTorch but unallocated.\n";
    let report = read(log);
    assert!(!report.to_string().contains("process 81233 holds"), "{report}");
    assert_eq!(next_ids(&report).first(), Some(&"expandable-segments"));
}

/// A batch that didn't fit was made smaller; what failed an hour later is another story.
#[test]
fn a_lack_of_memory_that_was_survived_is_not_the_root() {
    let caught = "rank0: batch_size=48 caught torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. -> retrying with batch_size=32\n";
    let worked = "rank0: step 900 loss 1.93\nrank0: step 1200 loss 1.88\n";
    let report = read(&format!("{caught}{worked}{DIED}"));
    assert_eq!(report["verdict"]["class"], "illegal_address");
    assert!(report["failures"].as_array().unwrap().iter().all(|failure| failure["class"] != "gpu_oom"));
    let said = report["diagnostics"].to_string();
    assert!(said.contains("the error on line 1 was survived"), "{said}");
    // Without work in between the first failure stays the first.
    let report = read(&format!("{caught}{DIED}"));
    assert_eq!(report["verdict"]["class"], "gpu_oom");
    // What follows from it is no other story: the peers of a rank that died of it time out.
    let plain = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.\n";
    let timeout = timed_out(0, 7, "ALLREDUCE", (1, 1), 7);
    let report = read(&format!("{plain}[rank1] step 1\n[rank1] step 2\n{timeout}"));
    assert_eq!(report["verdict"]["class"], "gpu_oom");
}
