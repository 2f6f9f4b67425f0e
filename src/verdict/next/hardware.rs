//! Steps for a broken GPU or driver: what the driver asks for by itself comes first.
//!
//! In: driver lines. Out: steps, the cheapest first. Resets and reboots are advice for people with that right; nothing is run.
//! Xid 154 names the recovery action in words (NVIDIA's Xid catalogue).

use crate::case::Case;
use crate::read::event::Data;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::Verdict;
use super::Next;

/// The steps.
pub(super) fn steps(case: &Case, verdict: &Verdict) -> Vec<Next> {
    let cause = verdict.cause().and_then(|hypothesis| hypothesis.cause);
    if cause == Some(CauseKind::VersionMismatch) {
        return vec![match_versions(), loaded_module()];
    }
    let is_lost = verdict.cause().is_some_and(|hypothesis| {
        matches!(hypothesis.cause, Some(CauseKind::GpuLost | CauseKind::GspFirmware))
    });
    let mut steps = Vec::new();
    if is_lost {
        steps.push(bug_report());
    }
    let asked = recovery(case);
    steps.extend(asked.is_none().then(|| remapping(case)).flatten());
    steps.extend(asked);
    if verdict.class == FailureClass::Driver && !is_lost {
        steps.push(Next {
            id: "driver-answers",
            title: "See whether the driver answers, and what the kernel log says of it",
            command: Some(vec!["nvidia-smi".into()]),
            cost: "none",
            why: "no answer here means driver, module or container set-up, and no fault of the program; dmesg has the driver's reason",
        });
        return steps;
    }
    steps.push(Next {
        id: "gpu-state",
        title: "Read the GPU's counters",
        command: Some(vec!["nvidia-smi".into(), "-q".into()]),
        cost: if is_lost { "none; it may hang or not find a GPU that is lost" } else { "none" },
        why: "ECC counters, remapped rows and pending actions say whether this GPU needs a reset or a replacement",
    });
    steps
}

fn match_versions() -> Next {
    Next {
        id: "match-versions",
        title: "Bring the driver's kernel module and its libraries to one version: reload the module, or reboot the node",
        command: None,
        cost: "ends what runs on the node's GPUs; for someone with that right",
        why: "a package was updated under the loaded module, a container brings another libcuda, or the driver is older than the program's CUDA needs",
    }
}

fn loaded_module() -> Next {
    Next {
        id: "loaded-module",
        title: "Read which module is loaded, and compare it with the installed libcuda and nvidia-smi",
        command: Some(["cat", "/proc/driver/nvidia/version"].map(str::to_owned).to_vec()),
        cost: "none",
        why: "this number is the module's; the libraries' stands in the name of libcuda.so.VERSION on host and in the container",
    }
}

/// A row that was marked for remapping takes effect with a reset.
fn remapping(case: &Case) -> Option<Next> {
    let marked = case.pick(|data| match data {
        Data::Xid(xid) if xid.xid == 63 && xid.detail.to_ascii_lowercase().contains("reset gpu") => Some(xid),
        _ => None,
    });
    let (_, _, last) = marked.last()?;
    let pci = last.pci.clone().unwrap_or_else(|| "GPU".to_owned());
    Some(Next {
        id: "drain-and-reset",
        title: "Drain the node, then reset the GPU or reboot: a faulty row waits to be remapped",
        command: Some(["sudo", "nvidia-smi", "--gpu-reset", "-i", &pci].map(str::to_owned).to_vec()),
        cost: "ends what runs there; for someone with that right",
        why: "the driver says \"reset gpu to activate\": until then the faulty row stays in use",
    })
}

/// What is known of a GPU that is lost stands in the driver, and goes with it.
fn bug_report() -> Next {
    Next {
        id: "bug-report",
        title: "Collect the driver's report before the node is reset",
        command: Some(vec!["sudo".into(), "nvidia-bug-report.sh".into()]),
        cost: "minutes; needs root; add --safe-mode if it hangs",
        why: "the driver's crash dump is gone once the module is unloaded, and a lost GPU answers nothing else",
    }
}

/// The recovery action that the last Xid 154 asks for.
fn recovery(case: &Case) -> Option<Next> {
    let xids = case.pick(|data| match data {
        Data::Xid(xid) if xid.xid == 154 => Some(xid),
        _ => None,
    });
    let (_, _, last) = xids.last()?;
    let wanted = last.detail.rsplit(" to ").next().unwrap_or("").to_ascii_lowercase();
    let reset = || {
        let pci = last.pci.clone().unwrap_or_else(|| "GPU".to_owned());
        Some(["sudo", "nvidia-smi", "--gpu-reset", "-i", &pci].map(str::to_owned).to_vec())
    };
    let (title, command) = if wanted.contains("node reboot required") {
        ("Drain the node and reboot it: Xid 154 says \"Node Reboot Required\"", None)
    } else if wanted.contains("drain and reset") {
        ("Let the GPU's work end, take no new one, then reset it: Xid 154 says \"Drain and Reset\"", reset())
    } else if wanted.contains("gpu reset required") {
        ("End what runs on the GPU and reset it: Xid 154 says \"GPU Reset Required\"", reset())
    } else if wanted.contains("drain p2p") {
        ("End the jobs that use the GPU with its peers: Xid 154 says \"Drain P2P\"", None)
    } else {
        return None;
    };
    Some(Next {
        id: "recovery-action",
        title,
        command,
        cost: "ends what runs there; for someone with that right",
        why: "the driver names the least that brings the GPU back",
    })
}
