//! Launchers and schedulers: how processes ended, which were ended as clean-up, and the command that started the job.
//!
//! In: a line of torchrun, DeepSpeed, MPI, Slurm, Ray, docker, Kubernetes, Python's multiprocessing or a shell. Out:
//! [`Data::Exit`], [`Data::Cleanup`], [`Data::Command`]. It does not say whose end was the first.

pub mod command;
mod elastic;
mod status;

use super::event::{Cleanup, Data, ExitReporter, ProcessExit, Stop};
use super::lines::{Cx, Line, Taken};
use super::scan::{after, has_any_case, small, small_after};
use crate::tables::signals;

/// Strings of which one stands in every line that this reader wants.
pub const LITERALS: &[&str] = &[
    "xit",
    "XIT CODE",
    "ignal",
    "Killing subprocess",
    " died",
    "eturn code",
    "returncode",
    "spawned with command",
    "rror",
    "srun:",
    "slurmstepd",
    "CANCELLED",
    "TERM_RUNLIMIT",
    "TERM_PREEMPT",
    "job killed: walltime",
    "SIG",
    "erminat",
    "KILLED BY",
    "$ ",
    "+ python",
    "torchrun ",
    "CUDA_",
    "python3 ",
    "python -",
    "ailure",
    "FAILED",
];

/// Reads a launcher's line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    if let Some(command) = command::command(line.body()) {
        cx.push(line, Data::Command(command));
        return Taken::Part;
    }
    if let Some(command) = command::of_deepspeed(line.body()) {
        cx.push(line, Data::Command(command));
    }
    if elastic::is_heading(line.body()) || elastic::read(line, cx) {
        return Taken::Whole;
    }
    if let Some(cleanup) = cleanup(line.body()) {
        cx.push(line, Data::Cleanup(cleanup));
        return Taken::Whole;
    }
    match status::exit(line.body()) {
        Some(exit) => {
            cx.push(line, Data::Exit(exit));
            Taken::Part
        }
        None => Taken::No,
    }
}

/// An exit without fields, to fill.
fn exit(reporter: ExitReporter) -> ProcessExit {
    ProcessExit {
        reporter,
        rank: None,
        local_rank: None,
        pid: None,
        host: None,
        code: None,
        signal: None,
        time: None,
    }
}

/// A launcher that ends a process, or was told to stop itself.
fn cleanup(body: &str) -> Option<Cleanup> {
    if let Some(rest) = after(body, "Sending process ") {
        let signal = signals::name_in(rest).map(|signal| signal.number);
        return Some(Cleanup { pid: small(rest).map(|(pid, _)| pid), signal, ..Cleanup::default() });
    }
    if let Some(rest) = after(body, "Closing process ").filter(|rest| rest.contains(" via signal ")) {
        let signal = signals::name_in(rest).map(|signal| signal.number);
        return Some(Cleanup { pid: small(rest).map(|(pid, _)| pid), signal, ..Cleanup::default() });
    }
    if let Some(rest) = after(body, "Unable to shutdown process ") {
        return Some(Cleanup { pid: small(rest).map(|(pid, _)| pid), signal: Some(9), ..Cleanup::default() });
    }
    if let Some(rest) = after(body, "Killing subprocess ") {
        return Some(Cleanup { pid: small(rest).map(|(pid, _)| pid), signal: Some(9), ..Cleanup::default() });
    }
    let stop = stop(body).or_else(|| body.contains("death signal").then_some(Stop::Signal));
    let told = stop.is_some()
        || body.contains("SignalException") && body.contains("got signal")
        || body.contains("SIGTERM")
            && ["received", "caught", "got "].iter().any(|word| has_any_case(body, word))
            && !body.contains("handler")
            && !body.contains("received by PID");
    if !told {
        return has_any_case(body, "job step aborted")
            .then(|| Cleanup { signal: Some(15), ..Cleanup::default() });
    }
    let number = small_after(body, "eceived ")
        .or_else(|| small_after(body, "got signal"))
        .or_else(|| signals::name_in(body).map(|signal| signal.number));
    let pid = small_after(body, "Process ").or_else(|| small_after(body, "pid"));
    Some(Cleanup { pid, signal: number.or(Some(15)), told_to_stop: true, stop })
}

/// Slurm's `*** JOB 77 ON node1 CANCELLED AT 2024-11-05T02:45:03 DUE TO TIME LIMIT ***`, PBS's `job killed: walltime 3610
/// exceeded limit 3600`, LSF's `TERM_RUNLIMIT: job killed after reaching LSF run time limit`.
fn stop(body: &str) -> Option<Stop> {
    let slurm = body.contains("CANCELLED AT") || body.contains("slurmstepd") && body.contains("CANCELLED");
    if body.contains("TERM_RUNLIMIT") || body.contains("job killed: walltime") {
        return Some(Stop::TimeLimit);
    }
    if body.contains("TERM_PREEMPT") {
        return Some(Stop::Preemption);
    }
    if !slurm {
        return None;
    }
    let reason = after(body, "DUE TO ").unwrap_or("");
    Some(if reason.contains("TIME LIMIT") {
        Stop::TimeLimit
    } else if reason.contains("PREEMPTION") {
        Stop::Preemption
    } else if reason.contains("NODE") && reason.contains("FAIL") {
        Stop::NodeFailure
    } else {
        Stop::Cancelled
    })
}

#[cfg(test)]
mod tests;
