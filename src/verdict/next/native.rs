//! The native stack of a host crash, in gdb; under a launcher, of one rank.
//!
//! In: the program's words, the rank that crashed. Out: a step, or the words with any tool in front of a rank. `gdb torchrun …` would debug the launcher and not the rank:
//! torchrun starts each rank as a process of its own, so that gdb has to stand between the two. `--no-python` makes torchrun
//! start the words that follow as they are, and RANK is set for each of them (both documented by torchrun).

use crate::case::Case;
use crate::read::event::{Data, SignalReporter};
use crate::tables::class::FailureClass;

use super::super::Verdict;
use super::super::failure::Failure;
use super::Next;
use super::framework::is_windows;
use super::program::on_host;

/// What gdb is told.
const GDB: [&str; 7] = ["gdb", "-batch", "-ex", "run", "-ex", "bt", "--args"];

/// Programs that start each rank as a process of its own.
const LAUNCHERS: [&str; 8] = [
    "torchrun",
    "torch.distributed.run",
    "mpirun",
    "mpiexec",
    "srun",
    "accelerate",
    "deepspeed",
    "horovodrun",
];

/// The steps where no native stack is known.
pub(super) fn steps(case: &Case, verdict: &Verdict, program: &[String]) -> Vec<Next> {
    if is_windows(case) {
        return vec![crash_dump()];
    }
    if let Some(core) = core_of_actor(case, verdict) {
        return vec![core];
    }
    let root = verdict.failures.first();
    if root.is_some_and(|root| is_loader(case, root)) {
        return vec![no_workers(), in_worker(program)];
    }
    vec![step(program, root.and_then(|failure| failure.rank))]
}

/// The steps where a native stack is there already.
pub(super) fn known(case: &Case, verdict: &Verdict, program: &[String]) -> Vec<Next> {
    let loader = verdict.failures.first().is_some_and(|root| is_loader(case, root));
    let more = loader.then(|| [no_workers(), in_worker(program)]);
    std::iter::once(frame()).chain(more.into_iter().flatten()).chain(core_of_actor(case, verdict)).collect()
}

/// What is left of an actor that died on its node: its core file, by process. A debugger before the driver of the job would not
/// reach it.
fn core_of_actor(case: &Case, verdict: &Verdict) -> Option<Next> {
    let root = verdict.failures.first()?;
    let (host, pid) = (root.host.as_deref()?, root.pid?);
    let is_actor =
        case.events().any(|(id, event)| root.evidence.contains(&id) && event.origin.process.is_some());
    let command = on_host(host, &["coredumpctl", "info", &pid.to_string()])?;
    is_actor.then_some(Next {
        id: "core-file",
        title: "Look for the core file of the process that died, on its own node",
        command: Some(command),
        cost: "none; where no systemd keeps core files, see /proc/sys/kernel/core_pattern and ulimit -c there",
        why: "its native stack names the library and function; a debugger before the job's own command would not reach a worker of another node",
    })
}

/// Whether the process that died was a worker of PyTorch's DataLoader.
fn is_loader(case: &Case, root: &Failure) -> bool {
    let by_word = case
        .pick(|data| match data {
            Data::Signal(signal) => (signal.reporter == Some(SignalReporter::DataLoader)
                || signal.python.iter().any(|frame| frame.function.as_deref() == Some("_worker_loop")))
            .then_some(()),
            Data::KernelSegfault(segfault) => segfault.comm.starts_with("pt_data_worker").then_some(()),
            _ => None,
        })
        .next()
        .is_some();
    by_word && root.class == FailureClass::Segfault
}

fn no_workers() -> Next {
    Next {
        id: "no-workers",
        title: "Rerun with num_workers=0",
        command: None,
        cost: "slower loading",
        why: "the crash was in a worker of the DataLoader, a forked process: without workers it comes out in the main process, under every tool",
    }
}

fn in_worker(program: &[String]) -> Next {
    let gdb = [
        "gdb",
        "-batch",
        "-ex",
        "set follow-fork-mode child",
        "-ex",
        "set detach-on-fork off",
        "-ex",
        "run",
        "-ex",
        "bt",
        "--args",
    ];
    Next {
        id: "native-stack",
        title: "Take the native stack of the worker in gdb",
        command: in_rank(&gdb.map(str::to_owned), program, None),
        cost: "needs gdb; slower start; num_workers=1, so that there is one process to follow",
        why: "gdb stays with the parent unless it is told to follow a fork",
    }
}

fn crash_dump() -> Next {
    Next {
        id: "crash-dump",
        title: "Let Windows write a dump of the process (LocalDumps of Windows Error Reporting, or procdump -e -ma)",
        command: None,
        cost: "as much disk as the process has memory",
        why: "WinDbg or Visual Studio read its native stack, which names the module and function that ended the process",
    }
}

/// The step. `rank` is the global rank that crashed, where one is known.
pub(super) fn step(program: &[String], rank: Option<u32>) -> Next {
    let gdb = GDB.map(str::to_owned);
    match (Launched::of(program), in_rank(&gdb, program, rank)) {
        (Launched::Plain, command @ Some(_)) => Next {
            id: "native-stack",
            title: "Take the native stack in gdb",
            command,
            cost: "needs gdb; slower start",
            why: "it names the library and function that crashed",
        },
        (_, command @ Some(_)) => Next {
            id: "native-stack",
            title: "Take the native stack of one rank in gdb",
            command,
            cost: "needs gdb on the node of that rank; slower start",
            why: "it names the library and function that crashed; torchrun starts gdb in the rank's place, the other ranks run as they did",
        },
        (_, None) => Next {
            id: "native-stack",
            title: "Attach gdb to the rank before it crashes: gdb -batch -p PID -ex continue -ex bt",
            command: None,
            cost: "needs gdb and the right to trace (ptrace_scope); the process stops while it attaches",
            why: "it names the library and function that crashed; gdb before the launcher would debug the launcher",
        },
    }
}

/// What a native stack that is there leaves to do.
fn frame() -> Next {
    Next {
        id: "native-frame",
        title: "Look at the innermost frame of an extension, and at what its caller passed",
        command: None,
        cost: "reading; a rebuild with -g gives lines and arguments",
        why: "the stack names it: a build for another PyTorch, an argument of another type or device, or a buffer that is gone",
    }
}

/// The program with `before` in front of it; under torchrun in front of one rank's script. None under a launcher whose words
/// don't tell where the rank's own begin.
#[must_use]
pub fn in_rank(before: &[String], program: &[String], rank: Option<u32>) -> Option<Vec<String>> {
    match Launched::of(program) {
        Launched::Plain => Some(before.iter().chain(program).cloned().collect()),
        Launched::Script(at) => {
            // The words become part of a script for bash.
            let before = shlex::try_join(before.iter().map(String::as_str)).ok()?;
            Some(under_launcher(program, at, &before, rank))
        }
        Launched::Other => None,
    }
}

/// How a program is started.
#[derive(Debug, PartialEq, Eq)]
enum Launched {
    /// By itself.
    Plain,
    /// By torchrun, the script at this word.
    Script(usize),
    /// By a launcher in another way.
    Other,
}

impl Launched {
    fn of(program: &[String]) -> Self {
        let base = |word: &String| word.rsplit('/').next().unwrap_or(word).to_owned();
        let first = program.first().map(base).unwrap_or_default();
        let is_module =
            |word: &String| matches!(word.as_str(), "torch.distributed.run" | "torch.distributed.launch");
        let head = if first == "torchrun" {
            1
        } else if let Some(at) = program.iter().take(4).position(is_module) {
            at + 1
        } else if LAUNCHERS.contains(&first.as_str()) {
            return Self::Other;
        } else if matches!(first.as_str(), "bash" | "sh") {
            // A shell gives way to the one command of `-c`, and gdb follows it; a launcher in there starts further processes.
            let launches = |word: &String| LAUNCHERS.iter().any(|launcher| word.contains(launcher));
            return if program.iter().any(launches) { Self::Other } else { Self::Plain };
        } else {
            return Self::Plain;
        };
        let script = program.iter().skip(head).position(|word| word.ends_with(".py")).map(|at| head + at);
        // Before the script stand torchrun's own options; `-m` and `--no-python` change what the script is.
        let own = |at| program.get(head..at).unwrap_or(&[]);
        let changes =
            |word: &String| matches!(word.as_str(), "-m" | "--module" | "--no-python" | "--no_python");
        match script {
            Some(at) if !own(at).iter().any(changes) => Self::Script(at),
            _ => Self::Other,
        }
    }
}

fn under_launcher(program: &[String], at: usize, before: &str, rank: Option<u32>) -> Vec<String> {
    let tool = format!("exec {before} python3 \"$0\" \"$@\"");
    let script = match rank {
        Some(rank) => format!("if [ \"$RANK\" = {rank} ]; then {tool}; fi; exec python3 \"$0\" \"$@\""),
        None => tool,
    };
    let (launcher, job) = program.split_at(at.min(program.len()));
    let mut words = launcher.to_vec();
    words.extend(["--no-python".to_owned(), "bash".to_owned(), "-c".to_owned(), script]);
    words.extend(job.iter().cloned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn gdb_stands_between_launcher_and_rank() {
        let found = step(&words("torchrun --nproc-per-node 2 nccl_cases.py rank1_segv"), Some(1));
        let command = found.command.unwrap();
        assert_eq!(&command[..6], words("torchrun --nproc-per-node 2 --no-python bash -c"));
        assert_eq!(
            command[6],
            r#"if [ "$RANK" = 1 ]; then exec gdb -batch -ex run -ex bt --args python3 "$0" "$@"; fi; exec python3 "$0" "$@""#
        );
        assert_eq!(&command[7..], words("nccl_cases.py rank1_segv"));
        let command =
            step(&words("python3 -m torch.distributed.run --standalone a.py"), None).command.unwrap();
        assert_eq!(&command[..6], words("python3 -m torch.distributed.run --standalone --no-python bash"));
        assert_eq!(command[7], r#"exec gdb -batch -ex run -ex bt --args python3 "$0" "$@""#);
    }

    #[test]
    fn a_plain_program_runs_in_gdb_itself() {
        let command = step(&words("python3 train.py"), None).command.unwrap();
        assert_eq!(command, words("gdb -batch -ex run -ex bt --args python3 train.py"));
        for other in
            ["srun python3 a.py", "torchrun -m pkg.train", "torchrun --no-python ./run.py", "mpirun -n 2 a"]
        {
            assert_eq!(step(&words(other), None).command, None, "{other}");
        }
    }
}
