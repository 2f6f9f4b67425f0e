//! `warpfault doctor`: what this machine can do.
//!
//! In: nothing. Out: one row a fact, text or JSON, and always status 0: a thing that is missing is an answer. It asks the
//! driver in a child, and changes nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::probe::compile::tool;
use crate::probe::host::Program;
use crate::probe::run::describe;
use crate::report::probe::DeviceView;
use crate::text::escape;
use crate::text::number::binary_size;

use super::output;

/// Most devices that are listed.
const DEVICES: u32 = 64;

/// Variables that change how a CUDA program fails.
const VARIABLES: [&str; 9] = [
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
    "CUDA_COREDUMP_FILE",
    "TORCH_USE_CUDA_DSA",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "NCCL_DEBUG",
    "TRITON_CACHE_DIR",
];

/// Arguments of `warpfault doctor`.
#[derive(Debug, Clone, Default, Args)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
struct Findings {
    schema: &'static str,
    devices: Vec<DeviceView>,
    rows: Vec<Row>,
}

/// One fact.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// Whether it is there and usable.
    ok: bool,
    found: String,
    /// What it is for, or what to do where it is missing.
    hint: String,
}

/// Prints what there is.
///
/// # Errors
/// `Output` alone.
pub fn run(args: &DoctorArgs) -> Result<u8> {
    let mut findings = Findings { schema: "warpfault/doctor/1", devices: Vec::new(), rows: Vec::new() };
    devices(&mut findings);
    tools(&mut findings.rows);
    findings.rows.push(triton_cache());
    core_dumps(&mut findings.rows);
    findings.rows.push(kernel_log());
    variables(&mut findings.rows);
    let page = if args.json {
        let json = serde_json::to_string_pretty(&findings);
        json.map_err(|error| {
            Error::new(ErrorKind::Output, "the answer can't be written as JSON").because(error)
        })? + "\n"
    } else {
        text(&findings)
    };
    output::print(&page)?;
    Ok(0)
}

fn row(name: &str, ok: bool, found: impl Into<String>, hint: &str) -> Row {
    Row { name: name.to_owned(), ok, found: escape(&found.into()).to_string(), hint: hint.to_owned() }
}

fn devices(findings: &mut Findings) {
    let program = match Program::this() {
        Ok(program) => program,
        Err(error) => {
            findings.rows.push(row("driver", false, error.to_string(), ""));
            return;
        }
    };
    let mut count = 1;
    let mut number = 0;
    while number < count {
        match describe(&program, number) {
            Ok(device) => {
                count = device.devices.min(DEVICES);
                let view = DeviceView::of(&device);
                if number == 0 {
                    let release =
                        view.driver.clone().unwrap_or_else(|| "release unknown (no NVML)".to_owned());
                    findings.rows.push(row("driver", true, format!("{release}, CUDA {}", view.cuda), ""));
                }
                findings.rows.push(device_row(number, &view, &device));
                findings.devices.push(view);
            }
            Err(error) => {
                let name = if number == 0 { "driver".to_owned() } else { format!("GPU {number}") };
                let hint =
                    "without a GPU the logs, the arithmetic and the static check still work; probe does not";
                findings.rows.push(row(&name, false, error.to_string(), hint));
            }
        }
        number += 1;
    }
}

fn device_row(number: u32, view: &DeviceView, device: &crate::probe::protocol::Device) -> Row {
    let others = match device.processes.len() {
        0 => String::new(),
        1 => ", 1 process computes on it".to_owned(),
        count => format!(", {count} processes compute on it"),
    };
    let used = device
        .used_bytes
        .map_or_else(String::new, |used| format!(" ({} in use)", binary_size(u128::from(used))));
    let found = format!(
        "{}, compute capability {}, {}{used}{others}",
        view.name,
        view.compute_capability,
        binary_size(u128::from(view.memory_bytes))
    );
    let hint = if view.guarded_memory {
        "probe: guarded memory"
    } else {
        "probe: ordinary allocations only, no guards"
    };
    row(&format!("GPU {number}"), true, found, hint)
}

fn tools(rows: &mut Vec<Row>) {
    let uses = [
        ("nvcc", "compiles .cu for probe; without it NVRTC does"),
        ("compute-sanitizer", "names line and thread of a bad access"),
        ("cuda-gdb", "opens GPU core dumps; warpfault reads them without it"),
        ("nvidia-smi", "telemetry and Xid context"),
        ("cuobjdump", "disassembles cubins"),
    ];
    for (name, use_) in uses {
        match tool(name) {
            Some(path) => rows.push(row(name, true, path.to_string_lossy(), use_)),
            None => rows.push(row(name, false, "not on PATH, not below CUDA_HOME", use_)),
        }
    }
}

fn triton_cache() -> Row {
    let folder = std::env::var_os("TRITON_CACHE_DIR")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".triton/cache")));
    let Some(folder) = folder else {
        return row("Triton cache", false, "neither TRITON_CACHE_DIR nor HOME is set", "");
    };
    let use_ = "give it to analyze, kernel or probe";
    match std::fs::read_dir(&folder) {
        Ok(entries) => {
            let count = entries.flatten().filter(|entry| entry.path().is_dir()).count();
            row("Triton cache", true, format!("{} ({count} entries)", folder.display()), use_)
        }
        Err(error) => row("Triton cache", false, format!("{}: {error}", folder.display()), use_),
    }
}

fn core_dumps(rows: &mut Vec<Row>) {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Core).current;
    let (on, said) = match limit {
        Some(0) => (false, "off (ulimit -c is 0)".to_owned()),
        Some(bytes) => (true, format!("up to {}", binary_size(u128::from(bytes)))),
        None => (true, "on".to_owned()),
    };
    let found = format!("{said}, pattern {}", pattern.trim());
    rows.push(row("host core dumps", on, found, "for segfaults: ulimit -c unlimited"));
    let on = std::env::var("CUDA_ENABLE_COREDUMP_ON_EXCEPTION").is_ok_and(|value| value == "1");
    let hint = "for GPU faults: CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_FILE=core.%p";
    rows.push(row(
        "GPU core dumps",
        on,
        if on { "on in this environment" } else { "off in this environment" },
        hint,
    ));
}

fn kernel_log() -> Row {
    let readable = std::fs::File::open("/dev/kmsg").is_ok();
    let found = if readable { "readable" } else { "not readable here (needs root, or dmesg_restrict=0)" };
    row("kernel log", readable, found, "Xid lines: dmesg --json | warpfault analyze run.log -")
}

fn variables(rows: &mut Vec<Row>) {
    let set: Vec<String> =
        VARIABLES.iter().filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?))).collect();
    let found = if set.is_empty() {
        "none of those that change how a program fails".to_owned()
    } else {
        set.join(" ")
    };
    rows.push(row("environment", true, found, ""));
    let here = Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists();
    if here {
        let hint = "processes of other containers on the same GPU can't be seen";
        rows.push(row("container", true, "this is one", hint));
    }
}

fn text(findings: &Findings) -> String {
    let width = findings.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for row in &findings.rows {
        let mark = if row.ok { "+" } else { "-" };
        // Writing to a string can't fail.
        let _ = writeln!(out, "{mark} {:width$}  {}", row.name, row.found);
        if !row.hint.is_empty() {
            let _ = writeln!(out, "  {:width$}  {}", "", row.hint);
        }
    }
    out
}
