//! Real commands of this machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene must fail loudly")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::output::Bounds;
use super::run::run_within;
use crate::playbook::record::Ended;
use crate::playbook::{Ran, StepRef};
use crate::session::Proposal;
use crate::source::Loaded;

fn proposal(words: &[&str], deadline_s: u64) -> Proposal {
    Proposal {
        step: StepRef::new("a", "b"),
        title: String::new(),
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        environment: vec![("COLOUR".to_owned(), "a $(b) 'c'".to_owned())],
        deadline_s,
        text: String::new(),
        cost: String::new(),
        from_input: false,
    }
}

fn run(words: &[&str], deadline_s: u64, stop: &AtomicBool) -> (Ran, Loaded, String) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("runs").join("1.log");
    let (ran, loaded) = run_within(&proposal(words, deadline_s), &log, stop, None, Bounds::default());
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    (ran, loaded, text)
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

#[test]
fn a_log_reads_like_a_transcript() {
    let (ran, loaded, text) = run(&["sh", "-c", "echo one; echo \"$COLOUR\" >&2; exit 3"], 60, &never());
    assert_eq!(ran.ended, Ended::Exit(3));
    assert_eq!(
        text,
        "$ env COLOUR='a $(b) '\"'c'\" sh -c 'echo one; echo \"$COLOUR\" >&2; exit 3'\none\na $(b) 'c'\nexit status 3\n"
    );
    assert_eq!((loaded.inputs.len(), ran.output_bytes), (1, 15));
}

#[test]
fn a_signal_is_told_as_a_shell_tells_it() {
    let (ran, _, text) = run(&["sh", "-c", "kill -SEGV $$"], 60, &never());
    assert_eq!(ran.ended, Ended::Signal(11));
    assert!(text.ends_with("exit status 139\n"), "{text}");
}

#[test]
fn a_missing_program_is_no_error_of_ours() {
    let (ran, loaded, text) = run(&["/nonexistent/program"], 60, &never());
    assert!(matches!(&ran.ended, Ended::NotStarted(why) if why.contains("No such file")), "{ran:?}");
    assert_eq!((loaded.inputs.len(), text.as_str()), (0, ""));
}

/// Words that a shell would take for commands reach the program as they are.
#[test]
fn hostile_words_reach_no_shell() {
    let folder = tempfile::tempdir().unwrap();
    let trap = folder.path().join("x");
    let hostile = format!("$(touch {0}); touch {0}; `touch {0}` | tee {0} > {0} & rm -rf ~", trap.display());
    let (ran, _, text) = run(&["printf", "%s", &hostile], 60, &never());
    assert_eq!(ran.ended, Ended::Exit(0));
    assert!(text.contains(&format!("\n{hostile}\n")), "{text}");
    assert!(!trap.exists());
}

fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn pids(folder: &Path) -> Vec<i32> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        pids.extend(text.trim().parse::<i32>());
    }
    pids
}

/// A shell that ignores SIGTERM, its child, a grandchild in a session of its own, and one whose parent died.
fn stubborn(folder: &Path) -> String {
    let at = folder.display();
    format!(
        "trap '' TERM HUP; echo $$ > {at}/1; sleep 1000 & echo $! > {at}/2; \
         setsid sh -c 'trap \"\" TERM; echo $$ > {at}/3; sleep 1001' & \
         (setsid sh -c 'echo $$ > {at}/4; sleep 1002' &) ; while :; do sleep 1; done"
    )
}

fn wait_for(folder: &Path, count: usize) -> Vec<i32> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let found = pids(folder);
        if found.len() >= count || Instant::now() > until {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_hanging_program_ends_at_its_deadline_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let (ran, _, text) = run(&["sh", "-c", &stubborn(folder.path())], 2, &never());
    assert_eq!(ran.ended, Ended::Deadline);
    assert!(text.ends_with("[warpfault ended this run at its deadline of 2 s]\n"), "{text}");
    let started = pids(folder.path());
    assert_eq!(started.len(), 4, "{started:?}");
    for pid in started {
        assert!(!alive(pid), "{pid} is still alive");
    }
}

#[test]
fn a_key_ends_the_whole_tree() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let (ran, started) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let started = wait_for(folder.path(), 4);
            stop.store(true, Ordering::Relaxed);
            started
        });
        let (ran, _, _) = run(&["sh", "-c", &stubborn(folder.path())], 600, &stop);
        (ran, watcher.join().unwrap())
    });
    assert_eq!((ran.ended, started.len()), (Ended::Stopped, 4));
    for pid in started {
        assert!(!alive(pid), "{pid} is still alive");
    }
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let script =
        format!("setsid sh -c 'echo $$ > {at}/1; sleep 1000' & while [ ! -s {at}/1 ]; do sleep 0.02; done");
    let (ran, _, _) = run(&["sh", "-c", &script], 60, &never());
    assert_eq!(ran.ended, Ended::Exit(0));
    for pid in wait_for(folder.path(), 1) {
        assert!(!alive(pid), "{pid} is still alive");
    }
}

#[test]
fn endless_output_is_bounded_and_its_end_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("1.log");
    let bounds = Bounds { head_bytes: 1 << 20, tail_bytes: 1 << 20 };
    let script = "head -c 200000000 /dev/zero; echo; echo last words";
    let (ran, _) = run_within(&proposal(&["sh", "-c", script], 600), &log, &never(), None, bounds);
    assert_eq!((ran.ended, ran.output_bytes), (Ended::Exit(0), 200_000_012));
    let text = std::fs::read(&log).unwrap();
    assert!(text.len() < (2 << 20) + 1_000, "{}", text.len());
    assert!(text.ends_with(b"\nlast words\nexit status 0\n"));
}
