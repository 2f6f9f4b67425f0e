//! The parent against stub children that do what children must not.

use super::super::outcome::{Outcome, judge};
use super::super::protocol::TrialReply;
use super::*;

const LONG: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Program {
    Program::new("/bin/sh", ["-c", script])
}

fn end(script: &str, deadline: Duration) -> Ending {
    ask(&shell(script), &Request::Describe { device: 0 }, deadline, &AtomicBool::new(false))
}

fn said(code: i32) -> String {
    protocol::line(&Reply::Trial(TrialReply { code, ..TrialReply::default() })).trim_end().to_owned()
}

#[test]
fn a_reply_is_heard_between_what_the_kernel_prints() {
    let script =
        format!("read request; echo noise; printf 'no end of line'; echo '{}'; echo more >&2", said(700));
    let ending = end(&script, LONG);
    let verdict = judge(&ending);
    assert_eq!((verdict.outcome, verdict.code), (Outcome::IllegalAddress, Some(700)));
    assert!(ending.printed.contains("no end of line"));
}

#[test]
fn the_child_gets_the_request_as_one_line() {
    let ending = end("cat >&2", LONG);
    assert_eq!(ending.printed, "{\"request\":\"describe\",\"device\":0}\n");
}

#[test]
fn a_crash_is_an_outcome() {
    let ending = end("read request; kill -SEGV $$", LONG);
    assert_eq!(ending.exit, Exit::Signal(11));
    assert_eq!(judge(&ending).outcome, Outcome::Crash);
}

#[test]
fn a_crash_after_the_reply_takes_nothing_away() {
    let script = format!("read request; echo '{}'; kill -ABRT $$", said(0));
    let ending = end(&script, LONG);
    assert_eq!(judge(&ending).outcome, Outcome::Pass);
    let request = Request::Describe { device: 0 };
    let ending = ask(&shell(&script).lingering(), &request, LONG, &AtomicBool::new(false));
    assert_eq!((ending.exit.clone(), judge(&ending).outcome), (Exit::Signal(6), Outcome::Pass));
}

#[test]
fn a_child_that_answered_is_not_waited_for_but_a_tool_around_it_is() {
    let ending = end(&format!("read request; echo '{}'; sleep 600", said(0)), LONG);
    assert_eq!((ending.exit.clone(), judge(&ending).outcome), (Exit::Answered, Outcome::Pass));
    let tool = shell(&format!("read request; echo '{}'; sleep 1; echo report >&2", said(0))).lingering();
    let ending = ask(&tool, &Request::Describe { device: 0 }, LONG, &AtomicBool::new(false));
    assert_eq!((ending.exit, ending.printed.as_str()), (Exit::Code(0), "report\n"));
}

#[test]
fn a_hang_is_ended_with_everything_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("grandchild");
    let stage = protocol::line(&Reply::Stage { stage: Stage::Run });
    let script = format!("sleep 600 & echo $! > '{}'; echo '{}'; wait", marker.display(), stage.trim_end());
    let ending = end(&script, Duration::from_secs(2));
    assert_eq!((ending.exit.clone(), ending.stage), (Exit::TimedOut, Some(Stage::Run)));
    let verdict = judge(&ending);
    assert_eq!(verdict.outcome, Outcome::Timeout);
    assert!(verdict.detail.unwrap().contains("while running the kernel"));
    let grandchild = std::fs::read_to_string(marker).unwrap();
    let path = format!("/proc/{}/stat", grandchild.trim());
    // A killed process that nobody waits for may stay as a zombie until its new parent looks.
    let state = || std::fs::read_to_string(&path).ok().filter(|stat| !stat.contains(") Z"));
    for _ in 0..500 {
        if state().is_none() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the grandchild still runs: {:?}", state());
}

#[test]
fn a_grandchild_that_holds_the_pipe_does_not_hold_the_parent() {
    let ending = end("sleep 600 & exit 4", LONG);
    assert_eq!((ending.exit.clone(), judge(&ending).outcome), (Exit::Code(4), Outcome::Garbage));
}

#[test]
fn babble_without_end_is_cut_and_ended() {
    let ending = end("yes 0123456789abcdef0123456789abcdef", Duration::from_secs(2));
    assert_eq!(ending.exit, Exit::TimedOut);
    assert!(ending.printed.len() <= PRINTED_LIMIT_BYTES);
}

#[test]
fn garbage_and_cut_replies_are_no_replies() {
    let whole = said(0);
    for text in ["", "{", "\u{1b}[2J", whole.get(..whole.len() - 3).unwrap()] {
        let ending = end(&format!("read request; printf '%s' '{text}'"), LONG);
        assert_eq!((ending.reply.clone(), judge(&ending).outcome), (None, Outcome::Garbage), "{text}");
    }
    let ending = end("head -c 100000 /dev/urandom; exit 3", LONG);
    assert_eq!((ending.exit.clone(), judge(&ending).outcome), (Exit::Code(3), Outcome::Garbage));
}

#[test]
fn a_child_that_closes_its_streams_and_sleeps_is_ended() {
    let ending = end("exec <&- >&- 2>&-; sleep 600", Duration::from_secs(2));
    assert_eq!(ending.exit, Exit::TimedOut);
}

#[test]
fn a_program_that_is_not_there_is_an_outcome() {
    let ending = ask(
        &Program::new("/nonexistent/warpfault", ["__probe"]),
        &Request::Describe { device: 0 },
        LONG,
        &AtomicBool::new(false),
    );
    assert!(matches!(ending.exit, Exit::NotStarted(_)));
    assert_eq!(judge(&ending).outcome, Outcome::NotStarted);
}

#[test]
fn a_stop_ends_it() {
    let cancel = AtomicBool::new(true);
    let ending = ask(&shell("sleep 600"), &Request::Describe { device: 0 }, LONG, &cancel);
    assert_eq!((ending.exit.clone(), judge(&ending).outcome), (Exit::Cancelled, Outcome::Cancelled));
}
