//! Lines of launchers against their fields.

use super::super::event::Stop;
use super::super::event::{Cleanup, Command, Data, Event, ExitReporter, InputId, ProcessExit};
use super::super::read_text;

fn events(text: &str) -> Vec<Event> {
    read_text(InputId(0), text.as_bytes()).events
}

fn exits(text: &str) -> Vec<ProcessExit> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::Exit(exit) = event.data { Some(exit) } else { None })
        .collect()
}

fn cleanups(text: &str) -> Vec<Cleanup> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::Cleanup(found) = event.data { Some(found) } else { None })
        .collect()
}

fn commands(text: &str) -> Vec<Command> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::Command(found) = event.data { Some(found) } else { None })
        .collect()
}

fn ends(text: &str) -> Vec<(ExitReporter, Option<i64>, Option<u32>)> {
    exits(text).into_iter().map(|exit| (exit.reporter, exit.code, exit.signal)).collect()
}

#[test]
fn torchrun_lines_of_three_generations() {
    for line in [
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 1 (pid: 706) of binary: /usr/bin/python\n",
        "[2024-01-05 10:20:30,123] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -11) local_rank: 1 (pid: 706) of binary: /usr/bin/python\n",
        "E1129 19:42:18.520000 693 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: -11) local_rank: 1 (pid: 706) of binary: /usr/local/pyenv/bin/python\n",
    ] {
        let found = exits(line);
        assert_eq!(found.len(), 1, "{line}");
        assert_eq!(
            (found[0].reporter, found[0].local_rank, found[0].pid),
            (ExitReporter::Elastic, Some(1), Some(706))
        );
        assert_eq!((found[0].code, found[0].signal), (Some(-11), Some(11)));
    }
}

const REPORT: &str = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\nnccl_cases.py FAILED\n-----\nFailures:\n[1]:\n  time      : 2026-11-29_19:42:18\n  host      : localhost\n  rank      : 0 (local_rank: 0)\n  exitcode  : -15 (pid: 705)\n  error_file: <N/A>\n  traceback : Signal 15 (SIGTERM) received by PID 705\n-----\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-11-29_19:42:18\n  host      : localhost\n  rank      : 1 (local_rank: 1)\n  exitcode  : -11 (pid: 706)\n  error_file: <N/A>\n  traceback : Signal 11 (SIGSEGV) received by PID 706\n=====\n";

#[test]
fn the_report_parts_root_from_others() {
    let found = exits(REPORT);
    assert_eq!(found.len(), 2);
    assert!(events(REPORT).iter().all(|event| matches!(event.data, Data::Exit(_) | Data::Exception(_))));
    let victim = ProcessExit {
        reporter: ExitReporter::ElasticReport,
        rank: Some(0),
        local_rank: Some(0),
        pid: Some(705),
        host: Some("localhost".to_owned()),
        code: Some(-15),
        signal: Some(15),
        time: Some("2026-11-29_19:42:18".to_owned()),
    };
    assert_eq!(found[0], victim);
    assert_eq!(
        (found[1].reporter, found[1].rank, found[1].signal),
        (ExitReporter::ElasticRootCause, Some(1), Some(11))
    );
    let oldest = "Root Cause:\n[0]:\n  time: 2021-01-01_00:00:00\n  rank: 3 (local_rank: 3)\n  exitcode: 1 (pid: 12)\n  error_file: <N/A>\n  msg: \"Process failed with exitcode 1\"\n=====\nOther Failures:\n  <NO_OTHER_FAILURES>\n";
    let found = exits(oldest);
    assert_eq!(
        (found[0].reporter, found[0].rank, found[0].code),
        (ExitReporter::ElasticRootCause, Some(3), Some(1))
    );
    let flat = "Root Cause (first observed failure): [0]: time : 2026-11-29_19:42:18 host : gpu1 rank : 5 (local_rank: 1) exitcode : -6 (pid: 7)\n";
    let found = exits(flat);
    assert_eq!(
        (found[0].reporter, found[0].rank, found[0].host.as_deref()),
        (ExitReporter::ElasticRootCause, Some(5), Some("gpu1"))
    );
}

#[test]
fn clean_up_is_no_failure() {
    assert_eq!(
        cleanups(
            "W1129 19:42:18.405000 693 torch/x/api.py:1012] Sending process 705 closing signal SIGTERM\n"
        ),
        [Cleanup { pid: Some(705), signal: Some(15), told_to_stop: false, stop: None }]
    );
    assert_eq!(
        cleanups(
            "W0227 17:39:41.936000 293814 torch/x/api.py:766] Closing process 293866 via signal SIGTERM\n"
        ),
        [Cleanup { pid: Some(293_866), signal: Some(15), told_to_stop: false, stop: None }]
    );
    assert_eq!(
        cleanups(
            "W1129 19:43:34.006000 741 torch/x/api.py:739] Received 15 death signal, shutting down workers\n"
        ),
        [Cleanup { pid: None, signal: Some(15), told_to_stop: true, stop: Some(Stop::Signal) }]
    );
    assert_eq!(
        cleanups(
            "[2023-05-05 12:00:00,123] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 4321\n"
        )[0]
        .pid,
        Some(4321)
    );
    assert!(
        cleanups(
            "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
        )[0]
        .told_to_stop
    );
    assert!(
        cleanups("SIGTERM handler is not set because current thread is not the main thread.\n").is_empty()
    );
}

#[test]
fn the_jobs_command_is_read_off_a_process_of_deepspeed() {
    let command = |line| super::command::of_deepspeed(line).map(|command| command.words.join(" "));
    let ended = "['/opt/conda/bin/python3.10', '-u', 'train.py', '--local_rank=3', '--deepspeed', 'ds.json'] exits with return code = -6";
    assert_eq!(command(ended).as_deref(), Some("deepspeed train.py --deepspeed ds.json"));
    let module =
        "process 7 spawned with command: ['/usr/bin/python', '-u', '-m', 'pkg.train', '--local_rank=0']";
    assert_eq!(command(module).as_deref(), Some("deepspeed --module pkg.train"));
    assert_eq!(command("['/usr/bin/python', '--local_rank=3'] exits with return code = -9"), None);
    assert_eq!(command("sizes = ['a', 'b']"), None);
}

#[test]
fn other_launchers() {
    assert_eq!(
        ends(
            "subprocess.CalledProcessError: Command '['/usr/bin/python', '-u', 'train.py', '--local_rank=7']' died with <Signals.SIGSEGV: 11>.\n"
        ),
        [(ExitReporter::Python, Some(-11), Some(11))]
    );
    assert_eq!(
        exits("Command '['python', '--local_rank=7']' returned non-zero exit status 1.\n")[0].local_rank,
        Some(7)
    );
    assert_eq!(
        ends(
            "[2023-05-05 12:00:00,123] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', '--local_rank=3'] exits with return code = -9\n"
        ),
        [(ExitReporter::DeepSpeed, Some(-9), Some(9))]
    );
    let mpi =
        &exits("mpirun noticed that process rank 3 with PID 77 on node gpu1 exited on signal 6 (Aborted).\n")
            [0];
    assert_eq!(
        (mpi.rank, mpi.pid, mpi.host.as_deref(), mpi.signal),
        (Some(3), Some(77), Some("gpu1"), Some(6))
    );
    assert_eq!(ends("=   EXIT CODE: 135\n"), [(ExitReporter::Mpi, Some(135), Some(7))]);
    let slurm = &exits("srun: error: gpu-node7: task 3: Segmentation fault (core dumped)\n")[0];
    assert_eq!(
        (slurm.reporter, slurm.rank, slurm.host.as_deref(), slurm.signal),
        (ExitReporter::Slurm, Some(3), Some("gpu-node7"), Some(11))
    );
    assert_eq!(
        ends("srun: error: node1: tasks 0-7: Exited with exit code 1\n"),
        [(ExitReporter::Slurm, Some(1), None)]
    );
    assert_eq!(
        ends(
            "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGSEGV\n"
        ),
        [(ExitReporter::Python, None, Some(11))]
    );
    assert_eq!(ends("exit status 139\n"), [(ExitReporter::Shell, Some(139), Some(11))]);
    assert_eq!(ends("      Exit Code:    137\n"), [(ExitReporter::Shell, Some(137), Some(9))]);
    assert_eq!(
        ends("Process finished with exit code -1073741819 (0xC0000005)\n"),
        [(ExitReporter::Shell, Some(-1_073_741_819), Some(11))]
    );
    assert_eq!(
        ends("llama runner process has terminated: exit status 0xc0000409\n"),
        [(ExitReporter::Shell, Some(0xC000_0409), Some(6))]
    );
    assert_eq!(ends("worker-0 exited with code 139\n"), [(ExitReporter::Shell, Some(139), Some(11))]);
    assert_eq!(
        ends(
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': -11}\n"
        ),
        [(ExitReporter::Python, Some(-11), Some(11))]
    );
    assert!(ends("exit status 0\n").is_empty());
    assert!(ends("    sys.exit(main())\n").is_empty());
    assert!(ends("if exit code is not set, exit status None\n").is_empty());
}

#[test]
fn commands_give_words_and_settings() {
    let found = &commands(
        "$ NCCL_DEBUG=INFO CUDA_LAUNCH_BLOCKING=1 torchrun --nproc-per-node 2 nccl_cases.py missing_rank\n",
    )[0];
    assert_eq!(found.words, ["torchrun", "--nproc-per-node", "2", "nccl_cases.py", "missing_rank"]);
    assert_eq!(found.environment[1], ("CUDA_LAUNCH_BLOCKING".to_owned(), "1".to_owned()));
    assert_eq!(commands("+ python train.py --lr 1\n")[0].words.len(), 4);
    assert_eq!(commands("CUDA_LAUNCH_BLOCKING=1 python train.py\n")[0].environment.len(), 1);
    assert_eq!(commands("(base) user@gpu1:~/x$ python -m torch.distributed.run a.py\n")[0].words[1], "-m");
    assert_eq!(commands("$ bash -c python3 triton_cases.py segv\n")[0].words[0], "bash");
    for text in [
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n",
        "python3 is not found\n",
        "the price is $ 3 and python3 costs nothing\n",
        "please run python3 with -X\n",
        "torchrun is deprecated\n",
    ] {
        assert!(commands(text).is_empty(), "{text}");
    }
}

#[test]
fn of_a_shell_line_the_program_is_taken() {
    let words = |line: &str| {
        super::command::command(line).map(|command| (command.words.join(" "), command.environment.len()))
    };
    for (line, program, settings) in [
        ("$ cd /x && python3 t.py", "python3 t.py", 0),
        ("$ python3 t.py --n 5 2>&1 | tee run.log", "python3 t.py --n 5", 0),
        ("$ python3 t.py > out.txt 2> err.txt &", "python3 t.py", 0),
        ("$ export A_B=1; CD=2 torchrun t.py >>log; echo done", "torchrun t.py", 2),
        ("+ source env.sh ; python3 t.py --expr 'a && b'", "python3 t.py --expr a && b", 0),
    ] {
        assert_eq!(words(line), Some((program.to_owned(), settings)), "{line}");
    }
}

#[test]
fn schedulers_say_why_they_end_a_job() {
    for (line, expected) in [
        (
            "slurmstepd: error: *** JOB 77 ON node1 CANCELLED AT 2024-11-05T02:45:03 DUE TO TIME LIMIT ***\n",
            Stop::TimeLimit,
        ),
        (
            "slurmstepd: error: *** STEP 77.0 ON node1 CANCELLED AT 2024-11-05T02:45:03 DUE TO PREEMPTION ***\n",
            Stop::Preemption,
        ),
        (
            "slurmstepd: error: *** JOB 77 ON node1 CANCELLED AT 2024-11-05T02:45:03 DUE TO NODE node1 FAILURE ***\n",
            Stop::NodeFailure,
        ),
        ("slurmstepd: error: *** STEP 77.0 ON node1 CANCELLED AT 2024-11-05T02:45:03 ***\n", Stop::Cancelled),
        ("=>> PBS: job killed: walltime 3610 exceeded limit 3600\n", Stop::TimeLimit),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.\n", Stop::TimeLimit),
    ] {
        let found = cleanups(line);
        assert_eq!(found.iter().map(|cleanup| cleanup.stop).collect::<Vec<_>>(), [Some(expected)], "{line}");
    }
}

#[test]
fn a_childs_return_code_tells_its_signal() {
    let table = [
        ("WARNING:trainer:eval failed (returncode=-11), continuing without metrics\n", 11),
        ("eval subprocess exited with -11\n", 11),
        ("CompletedProcess(args=['python', 'eval.py'], returncode=-9)\n", 9),
        (
            "subprocess.CalledProcessError: Command '['python', 'eval.py']' died with <Signals.SIGSEGV: 11>.\n",
            11,
        ),
    ];
    for (text, signal) in table {
        assert_eq!(ends(text), [(exits(text)[0].reporter, Some(-i64::from(signal)), Some(signal))], "{text}");
    }
    assert!(ends("proc.returncode=1\nif result.returncode < 0:\n").is_empty());
}
