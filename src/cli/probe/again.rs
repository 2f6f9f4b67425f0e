//! The failing trial once more, under a tool that sees the line and the thread.
//!
//! In: a job and a step that failed. Out: what compute-sanitizer or a GPU core dump says, read by our own readers, added to
//! the view. A tool that isn't there or says nothing becomes a note.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::ProbeArgs;
use crate::probe::compile::tool;
use crate::probe::host::{self, Program};
use crate::probe::plan::Step;
use crate::probe::run::Job;
use crate::report::model::FaultAt;
use crate::report::probe::{FaultView, ProbeView, values};
use crate::session::{Input, Session};
use crate::source::{self, InputSpec, Limits};
use crate::tables::dump_flags;

/// A tool slows a launch down a thousandfold.
const DEADLINE: Duration = Duration::from_secs(300);

/// Runs the step under each tool that was asked for.
pub fn look(
    args: &ProbeArgs,
    job: &Job,
    step: Step,
    program: &Program,
    cancel: &AtomicBool,
    view: &mut ProbeView,
) {
    if args.sanitize {
        let found = tool("compute-sanitizer").ok_or("compute-sanitizer isn't there".to_owned());
        let result = found.and_then(|path| {
            with_tool(job, step, cancel, "compute-sanitizer", |folder| {
                let log = folder.join("memcheck.log");
                let mut arguments: Vec<OsString> =
                    ["--tool", "memcheck", "--log-file"].map(OsString::from).to_vec();
                arguments.push(log.clone().into_os_string());
                (program.clone().under(&path, arguments), log)
            })
        });
        add(result, view);
    }
    if args.core_dump {
        let result = with_tool(job, step, cancel, "core dump", |folder| {
            let dump = folder.join("core.nvcudmp");
            let program = program
                .clone()
                .lingering()
                .with("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1")
                .with("CUDA_COREDUMP_GENERATION_FLAGS", dump_flags::SMALL)
                .with("CUDA_COREDUMP_FILE", dump.clone().into_os_string());
            (program, dump)
        });
        add(result, view);
    }
}

fn add(result: Result<FaultView, String>, view: &mut ProbeView) {
    match result {
        Ok(fault) => view.faults.push(fault),
        Err(why) => view.notes.push(why),
    }
}

/// Runs the step in a program that leaves a file, and reads that file as an incident of its own.
fn with_tool(
    job: &Job,
    step: Step,
    cancel: &AtomicBool,
    name: &str,
    make: impl FnOnce(&Path) -> (Program, std::path::PathBuf),
) -> Result<FaultView, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("{name}: no temporary folder: {error}"))?;
    let (program, file) = make(folder.path());
    let request = job.request(step, false).map_err(|error| format!("{name}: {error}"))?;
    let ending = host::ask(&program, &request, DEADLINE, cancel);
    if !file.is_file() {
        return Err(format!("{name}: left no file (the run ended with {:?})", ending.exit));
    }
    let mut session = Session::new();
    session.apply(Input::Loaded(source::load(&[InputSpec::Path(file)], Limits::default())));
    let report = session.report();
    let fault_at = report.verdict.fault_at.clone();
    let summary = fault_at.as_ref().map_or_else(|| report.verdict.summary.clone(), place);
    Ok(FaultView {
        tool: name.to_owned(),
        values: values(job.sweep.as_deref(), step.value),
        summary,
        fault_at,
    })
}

/// A place in one sentence.
fn place(fault: &FaultAt) -> String {
    let mut words = vec![fault.access.clone().unwrap_or_else(|| "fault".to_owned())];
    words.extend(fault.kernel.as_ref().map(|kernel| format!("in {kernel}")));
    if let Some(file) = &fault.file {
        let line = fault.line.map_or_else(String::new, |line| format!(":{line}"));
        words.push(format!("at {file}{line}"));
    }
    let triple = |list: &[u64; 3]| format!("({}, {}, {})", list[0], list[1], list[2]);
    words.extend(fault.block.as_ref().map(|block| format!("block {}", triple(block))));
    words.extend(fault.thread.as_ref().map(|thread| format!("thread {}", triple(thread))));
    words.extend(fault.address.as_ref().map(|address| format!("address {address}")));
    words.join(" ")
}
