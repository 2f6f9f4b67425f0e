//! Exit statuses in the words of launchers, schedulers, containers and Python.
//!
//! In: a line. Out: a [`ProcessExit`]. A status of 0 is no failure and makes no event.

use super::super::event::{ExitReporter, ProcessExit};
use super::super::scan::{
    after, before, between, find_any_case, has_any_case, signed, signed_after, small, small_after,
};
use crate::tables::signals;

fn signal_in(text: &str) -> Option<u32> {
    signals::name_in(text).or_else(|| signals::text_in(text)).map(|signal| signal.number)
}

/// The end of a process that a line reports.
pub fn exit(body: &str) -> Option<ProcessExit> {
    let text = body.trim();
    if text.starts_with("File \"")
        || text.starts_with("raise ")
        || text.starts_with("sys.exit(")
        || text.starts_with('#')
    {
        return None;
    }
    let found = subprocess(text)
        .or_else(|| deepspeed(text))
        .or_else(|| mpi(text))
        .or_else(|| slurm(text))
        .or_else(|| python(text))
        .or_else(|| worded(text))?;
    (found.code != Some(0) || found.signal.is_some()).then_some(found)
}

fn with_code(reporter: ExitReporter, code: i64) -> ProcessExit {
    ProcessExit { code: Some(code), signal: signals::of_status(code), ..super::exit(reporter) }
}

/// `Command '[…'--local_rank=7'…]' died with <Signals.SIGSEGV: 11>.`, `returned non-zero exit status 1.`
fn subprocess(text: &str) -> Option<ProcessExit> {
    let local_rank = small_after(text, "--local_rank").or_else(|| small_after(text, "--local-rank"));
    if let Some(rest) =
        after(text, "died with ").filter(|rest| rest.contains("Signals") || rest.contains("signal"))
    {
        let signal = signal_in(rest).or_else(|| small_after(rest, "signal"))?;
        return Some(ProcessExit {
            local_rank,
            signal: Some(signal),
            code: Some(-i64::from(signal)),
            ..super::exit(ExitReporter::Python)
        });
    }
    let code = signed_after(text, "returned non-zero exit status ")?;
    Some(ProcessExit { local_rank, ..with_code(ExitReporter::Python, code) })
}

/// `['…', '--local_rank=3'] exits with return code = -9`.
fn deepspeed(text: &str) -> Option<ProcessExit> {
    let code = signed_after(after(text, "exits with return code")?, "")?;
    let local_rank = small_after(text, "--local_rank");
    Some(ProcessExit { local_rank, ..with_code(ExitReporter::DeepSpeed, code) })
}

/// `mpirun noticed that process rank 3 with PID 77 on node h exited on signal 6 (Aborted).`, hydra's `EXIT CODE: 135` and
/// `KILLED BY SIGNAL: 11`, `MPI_ABORT was invoked on rank 3 … with errorcode 1`.
fn mpi(text: &str) -> Option<ProcessExit> {
    if let Some(rest) = after(text, "exited on signal ") {
        let signal = small(rest)?.0;
        return Some(ProcessExit {
            rank: small_after(text, "process rank "),
            pid: small_after(text, "PID "),
            host: after(text, "on node ").map(|rest| before(rest, " ").to_owned()),
            signal: Some(signal),
            ..super::exit(ExitReporter::Mpi)
        });
    }
    if let Some(rest) = after(text, "KILLED BY SIGNAL:") {
        let signal = small(rest.trim_start())?.0;
        return Some(ProcessExit { signal: Some(signal), ..super::exit(ExitReporter::Mpi) });
    }
    if text.contains("MPI_ABORT was invoked") || text.contains("application called MPI_Abort") {
        let rank = small_after(text, "on rank ").or_else(|| small_after(text, "process "));
        let code = signed_after(text, "errorcode ").or_else(|| signed_after(text, ", "));
        return Some(ProcessExit { rank, code, ..super::exit(ExitReporter::Mpi) });
    }
    let code = signed_after(text, "EXIT CODE")?;
    Some(with_code(ExitReporter::Mpi, code))
}

/// `srun: error: NODE: task 3: Segmentation fault (core dumped)`, `tasks 0,2-3: Exited with exit code 1`.
fn slurm(text: &str) -> Option<ProcessExit> {
    let rest = after(text, "srun: error: ").or_else(|| after(text, "slurmstepd: error: "))?;
    let (host, rest) = rest.split_once(": task").filter(|(host, _)| !host.contains(' '))?;
    let (tasks, told) = rest.trim_start_matches('s').split_once(": ")?;
    let rank = small(tasks.trim()).filter(|(_, rest)| rest.is_empty()).map(|(rank, _)| rank);
    let mut found = ProcessExit { rank, host: Some(host.to_owned()), ..super::exit(ExitReporter::Slurm) };
    if let Some(code) = signed_after(told, "exit code") {
        found.code = Some(code);
        found.signal = signals::of_status(code);
    } else {
        found.signal = Some(signals::text_in(told)?.number);
    }
    Some(found)
}

/// Python's multiprocessing and the engines above it: `process 0 terminated with signal SIGSEGV`, `exitcode=-11`.
fn python(text: &str) -> Option<ProcessExit> {
    if let Some(rest) = after(text, "terminated with signal ") {
        let signal = signal_in(rest).or_else(|| small(rest).map(|(number, _)| number))?;
        let rank = small_after(text, "process ").or_else(|| small_after(text, "Process "));
        return Some(ProcessExit {
            local_rank: rank,
            signal: Some(signal),
            ..super::exit(ExitReporter::Python)
        });
    }
    if let Some(code) = signed_after(text, "terminated with exit code ")
        .or_else(|| signed_after(text, "terminated with code "))
    {
        let local_rank = small_after(text, "process ").or_else(|| small_after(text, "Process "));
        let pid = small_after(text, "PID ").or_else(|| small_after(text, "pid="));
        return Some(ProcessExit {
            local_rank: local_rank.filter(|_| pid.is_none()),
            pid,
            ..with_code(ExitReporter::Python, code)
        });
    }
    // vLLM's `Failed core proc(s): {'EngineCore_0': -9}`.
    if let Some(code) = after(text, "Failed core proc(s): ").and_then(|rest| signed_after(rest, "': ")) {
        return Some(with_code(ExitReporter::Python, code));
    }
    // `subprocess`'s own field, as programs print it; other values than signals are the program's own affair.
    if let Some(code) = after(text, "returncode")
        .and_then(|rest| signed(rest.trim_start_matches(['=', ':', ' '])))
        .map(|(code, _)| code)
        .filter(|&code| code < 0 && signals::of_status(code).is_some())
    {
        return Some(with_code(ExitReporter::Python, code));
    }
    let code =
        after(text, "exitcode=").and_then(signed).or_else(|| after(text, "exitcode: ").and_then(signed))?;
    Some(ProcessExit { pid: small_after(text, "pid="), ..with_code(ExitReporter::Python, code.0) })
}

/// `exit status 139`, `exited with code 137`, `Exit Code: 137`, `exitCode: 137`, `finished with exit code -1073741819
/// (0xC0000005)`, `exit status 0xc0000409`.
fn worded(text: &str) -> Option<ProcessExit> {
    const WORDS: [&str; 8] = [
        "exit status",
        "exit code",
        "exitcode",
        "exited with code",
        "exited with status",
        "exited with",
        "returned code",
        "return code",
    ];
    let (at, word) = WORDS
        .iter()
        .filter_map(|word| Some((find_any_case(text, word)?, word)))
        .min_by_key(|&(at, word)| (at, usize::MAX - word.len()))?;
    let rest = text.get(at + word.len()..)?;
    let rest = rest.trim_start_matches([' ', ':', '=', '"', '\'', '(', '`']);
    let rest = rest.strip_prefix("of ").unwrap_or(rest);
    let code = match rest.strip_prefix("0x") {
        Some(_) => i64::try_from(super::super::scan::hex(rest)?.0).ok()?,
        None => {
            let (code, tail) = signed(rest)?;
            // "exit code 2.5" and "exit status 0s" are something else.
            if tail.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_') {
                return None;
            }
            code
        }
    };
    let pid = small_after(text, "pid=")
        .or_else(|| between(text, "(pid ", ")").and_then(|pid| small(pid).map(|(pid, _)| pid)));
    let ray = has_any_case(text, "worker exit");
    let reporter = if ray { ExitReporter::Ray } else { ExitReporter::Shell };
    Some(ProcessExit { pid, ..with_code(reporter, code) })
}
