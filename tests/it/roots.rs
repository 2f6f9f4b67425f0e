//! Which failure is the first one, beside lines that only look like one.
//!
//! In: small logs, written here. Out: class, certainty and what was left aside, as a user reads them.

use warpfault::session::{Input, Session};
use warpfault::source::{InputSpec, Limits, load};
use warpfault::tables::class::FailureClass;
use warpfault::verdict::{Certainty, Role, Verdict};

fn judge(texts: &[&str]) -> Verdict {
    let specs: Vec<InputSpec> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| InputSpec::Text { name: format!("input{at}"), bytes: text.as_bytes().to_vec() })
        .collect();
    let mut session = Session::new();
    session.apply(Input::Loaded(load(&specs, Limits::default())));
    session.verdict().clone()
}

fn class(texts: &[&str]) -> (FailureClass, Certainty) {
    let verdict = judge(texts);
    (verdict.class, verdict.certainty)
}

const VALUE_ERROR: &str = "2024-11-05 02:14:51,201 INFO starting, pid 4242
2024-11-05 02:44:51,201 INFO step 5
Traceback (most recent call last):
  File \"train.py\", line 9, in <module>
    raise ValueError(\"bad config\")
ValueError: bad config
";

const GPU_FAULT: &str = "2024-11-05 02:40:00 step 5
2024-11-05 02:44:51 ERROR
[rank1]: Traceback (most recent call last):
[rank1]:   File \"t.py\", line 3, in <module>
[rank1]:     y.item()
[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered
";

const OCTOBER: &str = "[Tue Oct  1 09:00:00 2024]";
const IN_TIME: &str = "[Tue Nov  5 02:44:52 2024]";
const SINCE_BOOT: &str = "[   38.741965]";

fn xid31(stamp: &str, name: &str) -> String {
    format!(
        "{stamp} NVRM: Xid (PCI:0000:07:00): 31, pid=99, name={name}, channel 0x8, intr 0. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f12_3000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ\n"
    )
}

fn xid(stamp: &str, number: u32, detail: &str) -> String {
    format!("{stamp} NVRM: Xid (PCI:0000:41:00): {number}, pid=99, {detail}\n")
}

const OFF_THE_BUS: &str = "GPU has fallen off the bus.";

#[test]
fn a_kernel_line_of_another_month_is_the_state_of_the_machine() {
    for kernel in [
        xid31(OCTOBER, "otherjob"),
        xid31(OCTOBER, "python3"),
        xid(OCTOBER, 79, OFF_THE_BUS),
        xid(OCTOBER, 94, "name=other, Contained: SM (0x1). RST: No, D-RST: No"),
        xid("Nov  5 01:14:51 host kernel:", 79, OFF_THE_BUS).replace("01:14:51", "01:09:11"),
    ] {
        let verdict = judge(&[VALUE_ERROR, &kernel]);
        assert_eq!(
            (verdict.class, verdict.certainty),
            (FailureClass::PythonError, Certainty::Supported),
            "{kernel}"
        );
        let aside = verdict.failures.iter().find(|failure| failure.is_xid()).unwrap();
        assert!(aside.why.contains("before the job's log begins"), "{}", aside.why);
        assert_eq!(aside.role, Role::Cascade, "{kernel}");
        assert!(verdict.places.fault.is_none(), "{kernel}");
        assert_eq!(judge(&[GPU_FAULT, &kernel]).class, FailureClass::IllegalAddress, "{kernel}");
    }
}

#[test]
fn a_kernel_line_of_another_time_gives_no_address_and_agrees_with_nothing() {
    let holds = |verdict: &Verdict| {
        verdict
            .checks
            .iter()
            .any(|check| check.id == "driver-log" && check.status == warpfault::verdict::CheckStatus::Holds)
    };
    let address = |verdict: &Verdict| verdict.places.fault.as_ref().and_then(|fault| fault.address);
    let old = judge(&[GPU_FAULT, &xid31(OCTOBER, "python3")]);
    assert_eq!((address(&old), holds(&old)), (None, false));
    let own = judge(&[GPU_FAULT, &xid31(IN_TIME, "python3")]);
    assert_eq!((address(&own), holds(&own)), (Some(0x7f12_0000_3000), true));
    // Both, in one kernel log: the one of the job's time counts.
    let both = judge(&[GPU_FAULT, &(xid31(OCTOBER, "python3") + &xid31(IN_TIME, "python3"))]);
    assert_eq!((address(&both), holds(&both)), (Some(0x7f12_0000_3000), true));
}

#[test]
fn broken_hardware_in_time_or_of_an_unknown_time_comes_first() {
    for log in [VALUE_ERROR, GPU_FAULT] {
        for stamp in [IN_TIME, "[Tue Nov  5 02:38:00 2024]", SINCE_BOOT, "Nov  5 02:44:52 host kernel:"] {
            for (number, detail) in [(79, OFF_THE_BUS), (94, "Contained: SM (0x1)"), (48, "DBE")] {
                let kernel = xid(stamp, number, detail);
                assert_eq!(class(&[log, &kernel]).0, FailureClass::Hardware, "{kernel}{log}");
            }
        }
    }
    // Seven hours apart to the minute: the log's clock may be UTC and the kernel's local.
    let zone = xid("[Mon Nov  4 19:45:10 2024]", 79, OFF_THE_BUS);
    assert_eq!(class(&[GPU_FAULT, &zone]).0, FailureClass::Hardware);
}

#[test]
fn a_gpu_that_was_lost_before_the_job_explains_why_it_finds_none() {
    let log = "2024-11-05 02:40:00 starting
Traceback (most recent call last):
  File \"t.py\", line 3, in <module>
    torch.zeros(1, device=\"cuda\")
RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable
2024-11-05 02:40:02 exit
";
    assert_eq!(class(&[log, &xid(OCTOBER, 79, OFF_THE_BUS)]).0, FailureClass::Hardware);
}

#[test]
fn without_dates_the_name_of_the_process_counts_beside_a_plain_exception() {
    let other = judge(&[VALUE_ERROR, &xid31(SINCE_BOOT, "otherjob")]);
    assert_eq!((other.class, other.certainty), (FailureClass::PythonError, Certainty::Supported));
    assert!(other.failures.iter().any(|failure| failure.is_xid() && failure.why.contains("otherjob")));
    // A name that can be the program's own: possible, and nothing agrees.
    assert_eq!(
        class(&[VALUE_ERROR, &xid31(SINCE_BOOT, "pt_main_thread")]),
        (FailureClass::IllegalAddress, Certainty::Suspected)
    );
    let named = "$ ./otherjob --steps 3\n".to_owned() + VALUE_ERROR;
    assert_eq!(class(&[&named, &xid31(SINCE_BOOT, "otherjob")]).0, FailureClass::IllegalAddress);
    // A log with a GPU fault of its own: the names of a container's processes may differ.
    let verdict = judge(&[GPU_FAULT, &xid31(SINCE_BOOT, "otherjob")]);
    assert!(verdict.places.fault.is_some_and(|fault| fault.address.is_some()));
}

#[test]
fn hardware_of_another_gpu_is_said_and_does_not_take_over() {
    let own = xid31(SINCE_BOOT, "python");
    let other = xid("[1184023.332220]", 79, OFF_THE_BUS);
    let verdict = judge(&[GPU_FAULT, &own, &other]);
    assert_eq!(verdict.class, FailureClass::IllegalAddress);
    assert!(verdict.failures.iter().any(|failure| {
        failure.class == FailureClass::Hardware && failure.why.contains("another GPU, 0000:41:00")
    }));
    // Of the same GPU, or just before the fault in one kernel log: the hardware comes first.
    let same = other.replace("0000:41:00", "00000000:07:00.0");
    assert_eq!(judge(&[GPU_FAULT, &own, &same]).class, FailureClass::Hardware);
    let before = xid("[   30.000000]", 79, OFF_THE_BUS) + &own;
    assert_eq!(judge(&[GPU_FAULT, &before]).class, FailureClass::Hardware);
}

#[test]
fn a_kernel_log_alone_says_what_it_says() {
    assert_eq!(class(&[&xid31(OCTOBER, "otherjob")]), (FailureClass::IllegalAddress, Certainty::Supported));
    assert_eq!(class(&[&xid(OCTOBER, 79, OFF_THE_BUS)]), (FailureClass::Hardware, Certainty::Supported));
}

const WELL: &str = "INFO 10-14 03:12:01 gpu memory utilization 0.9
WARNING: retrying after torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB; batch halved to 16
step 100 loss 2.3
step 200 loss 2.2
";

const SKIPPED: &str = "step 1
Traceback (most recent call last):
  File \"a.py\", line 3, in f
    x()
ValueError: bad sample, skipping
step 2
step 3
";

#[test]
fn an_error_that_the_program_went_on_after_is_none() {
    for log in [
        format!("{WELL}Training finished, 200 steps, exit 0\n"),
        format!("{SKIPPED}Training finished successfully\n"),
        "$ python train.py\nstep 100 loss 2.3\n[rank0] caught CUDA out of memory, halving batch\nstep 200 loss 2.2\nsaved checkpoint\nexit status 0\n".to_owned(),
    ] {
        let verdict = judge(&[&log]);
        assert_eq!(verdict.class, FailureClass::None, "{log}{:?}", verdict.failures);
        let note = verdict.notes.first().unwrap();
        assert!(note.severity == "info" && note.message.contains("was handled"), "{}", note.message);
    }
}

#[test]
fn a_weak_sign_only_makes_the_class_suspected() {
    let error = SKIPPED.replace("step 2\nstep 3\n", "");
    for log in
        [format!("{error}exit status 0\n"), SKIPPED.to_owned(), format!("{error}saved\nTraining finished\n")]
    {
        let verdict = judge(&[&log]);
        assert_eq!(
            (verdict.class, verdict.certainty),
            (FailureClass::PythonError, Certainty::Suspected),
            "{log}"
        );
        assert!(verdict.summary.contains("may have been handled"), "{}", verdict.summary);
    }
    let verdict = judge(&[&format!("{error}exit status 1\n")]);
    assert_eq!((verdict.class, verdict.certainty), (FailureClass::PythonError, Certainty::Supported));
}

#[test]
fn what_no_program_survives_stays_whatever_follows() {
    let after = "step 2\nstep 3\nTraining finished successfully\nexit status 0\n";
    for (error, expected) in [
        (
            "RuntimeError: CUDA error: an illegal memory access was encountered\n",
            FailureClass::IllegalAddress,
        ),
        ("Fatal Python error: Segmentation fault\n", FailureClass::Segfault),
        (
            "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 3, in f\n[rank1]:     x()\n[rank1]: ValueError: bad\n",
            FailureClass::PythonError,
        ),
        ("free(): invalid pointer\nAborted (core dumped)\n", FailureClass::Abort),
        (
            "========= Invalid __global__ write of size 4 bytes\n=========     at k(float*)+0x90\n=========     by thread (0,0,0) in block (1,0,0)\n",
            FailureClass::IllegalAddress,
        ),
    ] {
        let verdict = judge(&[&format!("step 1\n{error}{after}")]);
        assert_eq!((verdict.class, verdict.certainty), (expected, Certainty::Supported), "{error}");
    }
    // The run that ended well is not the one that failed.
    let killed = SKIPPED.to_owned() + "Training finished successfully\nexit status 139\n";
    assert_ne!(judge(&[&killed]).class, FailureClass::None);
}

#[test]
fn news_that_names_no_failed_job_is_suspected() {
    for (kernel, expected) in [
        (
            xid(SINCE_BOOT, 154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
            FailureClass::Hardware,
        ),
        (
            xid(SINCE_BOOT, 63, "Row Remapper: New row (0x0000000000000000) marked for remapping"),
            FailureClass::Hardware,
        ),
        (xid(SINCE_BOOT, 43, "name=python3, Ch 00000008"), FailureClass::LaunchFailure),
        (
            xid(SINCE_BOOT, 13, "name=python3, Graphics Exception: channel 0x0000000a, Class 0000cbc0"),
            FailureClass::LaunchFailure,
        ),
    ] {
        let verdict = judge(&[&kernel]);
        assert_eq!((verdict.class, verdict.certainty), (expected, Certainty::Suspected), "{kernel}");
        assert!(verdict.restart.summary.starts_with("for Xid "), "{}", verdict.restart.summary);
        let beside = judge(&[&kernel, VALUE_ERROR]);
        assert_eq!(
            (beside.class, beside.failures.iter().any(|failure| failure.is_xid())),
            (FailureClass::PythonError, false)
        );
    }
    for quiet in [
        xid(SINCE_BOOT, 154, "GPU recovery action changed from 0x2 (Node Reboot Required) to 0x0 (None)"),
        xid(SINCE_BOOT, 45, "name=python3, Ch 00000008"),
    ] {
        assert_eq!(judge(&[&quiet]).class, FailureClass::None, "{quiet}");
    }
}

#[test]
fn a_scheduler_that_ends_a_job_killed_it() {
    let steps = "step 1 loss 2\nstep 2 loss 2\n";
    let cancelled = "slurmstepd: error: *** JOB 77 ON node1 CANCELLED AT 2024-11-05T02:45:03 ***\n";
    let limit = cancelled.replace(" ***\n", " DUE TO TIME LIMIT ***\n");
    let verdict = judge(&[&format!("{steps}{limit}")]);
    assert_eq!((verdict.class, verdict.certainty), (FailureClass::Killed, Certainty::Supported));
    assert!(verdict.summary.contains("time limit") && verdict.restart.summary.contains("checkpoint"));
    assert_eq!(class(&[&format!("{steps}{cancelled}")]), (FailureClass::Killed, Certainty::Suspected));
    // Slurm cancels the rest of a step of which one task failed.
    let segfault = format!("{cancelled}srun: error: node1: task 3: Segmentation fault (core dumped)\n");
    assert_eq!(class(&[&segfault]).0, FailureClass::Segfault);
    let fault = format!("{GPU_FAULT}{limit}");
    assert_eq!(class(&[&fault]).0, FailureClass::IllegalAddress);
}

#[test]
fn a_document_that_quotes_an_error_is_at_most_suspected() {
    let readme = include_str!("../../README.md");
    assert_eq!(class(&[readme]), (FailureClass::IllegalAddress, Certainty::Suspected));
    assert_eq!(judge(&[readme, VALUE_ERROR]).class, FailureClass::PythonError);
}

const BOTH_RANKS: &str = "$ torchrun --nproc-per-node 2 t.py
[rank1]: Traceback (most recent call last):
[rank1]:   File \"t.py\", line 3, in <module>
[rank1]:     f()
[rank1]: ValueError: bad
[rank0]: Traceback (most recent call last):
[rank0]:   File \"t.py\", line 3, in <module>
[rank0]:     f()
[rank0]: ValueError: bad
";

fn elastic(other: &str, root: &str) -> String {
    format!(
        "t.py FAILED
Failures:
[1]:
  time      : 2026-11-29_19:48:{other}
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 1310)
Root Cause (first observed failure):
[0]:
  time      : 2026-11-29_19:48:{root}
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 1309)
"
    )
}

#[test]
fn the_order_of_lines_alone_names_no_first_rank() {
    assert_eq!(judge(&[BOTH_RANKS]).root_rank, None);
    let equal = format!("{BOTH_RANKS}{}", elastic("26", "26"));
    assert_eq!(judge(&[&equal]).root_rank, None);
    let measured = judge(&[&format!("{BOTH_RANKS}{}", elastic("27", "26"))]);
    assert_eq!((measured.root_rank, measured.failures[0].rank), (Some(0), Some(0)));
    // One rank alone failed by itself.
    let alone = BOTH_RANKS.split("[rank0]").next().unwrap();
    assert_eq!(judge(&[alone]).root_rank, Some(1));
}

#[test]
fn the_class_is_as_sure_as_the_cause_that_implies_it() {
    for name in super::samples::incidents() {
        let folder = format!("samples/{name}");
        let report = serde_json::to_value(super::samples::report(&[&folder])).unwrap();
        let order = ["undecided", "suspected", "supported", "proven"];
        let rank = |value: &serde_json::Value| order.iter().position(|word| Some(*word) == value.as_str());
        let verdict = &report["verdict"];
        assert!(
            rank(&verdict["cause"]["certainty"]) <= rank(&verdict["certainty"]),
            "{name}: {} {}",
            verdict["certainty"],
            verdict["cause"]
        );
    }
}
