//! The UI through the real binary, in a pseudo-terminal, with a terminal emulator reading its screen.
//!
//! In: keys, pastes, sizes and signals. Out: what a person would see, and how the terminal is left. No figure of time is
//! asserted; a deadline only ends a test that hangs.

mod terminal;

use std::io::Write;
use std::path::Path;

use rustix::process::Signal;
use terminal::Tty;

const CRASH: &str = "samples/pair-rank1-memory-fault/run.log";

fn crash() -> Vec<u8> {
    std::fs::read(CRASH).unwrap()
}

/// A bracketed paste, with the line ends that terminals send.
fn bracketed(text: &[u8]) -> Vec<u8> {
    let mut paste = b"\x1b[200~".to_vec();
    paste.extend(text.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }));
    paste.extend_from_slice(b"\x1b[201~");
    paste
}

#[test]
fn a_pasted_crash_of_two_ranks_is_read_at_once() {
    let mut tty = Tty::open(80, 24, &[]);
    tty.until("Paste a crash log here");
    tty.send(&bracketed(&crash()));
    tty.until("Rank 1 failed first");
    let screen = tty.until("The NCCL watchdog is only the messenger").replace('\n', " ");
    assert!(screen.contains("nccl_cases.py:25"), "{screen}");
    tty.wait_until_kept();
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
    tty.assert_given_back();
    tty.until("To go on with it: warpfault resume ");
}

#[test]
fn an_incident_is_taken_up_again() {
    let mut tty = Tty::open(80, 24, &[]);
    tty.until("Paste a crash log here");
    tty.send(&bracketed(&crash()));
    tty.until("Rank 1 failed first");
    tty.wait_until_kept();
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
    let mut again = tty.again(&[]);
    again.until("paste: Rank 1 failed first");
    again.send(b"\x1b[B\r");
    again.until("ILLEGAL ADDRESS");
    again.send(b"5");
    again.until("[rank1]: Traceback");
    again.send(b"q");
    assert_eq!(again.exit(), 0);
}

#[test]
fn a_paste_of_five_megabytes_is_read() {
    let mut text = Vec::new();
    while text.len() < 5 << 20 {
        let step = text.len();
        writeln!(text, "[rank0] step {step} loss 2.31, nothing wrong here, 数据 fine").unwrap();
    }
    text.extend(crash());
    let mut tty = Tty::open(80, 24, &[]);
    tty.until("Paste a crash log here");
    tty.send(&bracketed(&text));
    tty.until("Rank 1 failed first");
    tty.send(b"5");
    tty.until("▶");
    tty.wait_until_kept();
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
}

#[test]
fn a_paste_without_brackets_is_read() {
    let mut tty = Tty::open(80, 24, &[]);
    tty.until("Paste a crash log here");
    let keys: Vec<u8> = crash().iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect();
    tty.send(&keys);
    tty.until("Rank 1 failed first");
}

#[test]
fn a_typed_path_is_opened_and_tab_completes_it() {
    let mut tty = Tty::open(80, 24, &[]);
    tty.until("Or type the path");
    tty.send(b"samples/pair-rank1-me\t");
    tty.until("> samples/pair-rank1-memory-fault/");
    tty.send(b"run.l\t");
    tty.until("memory-fault/run.log");
    tty.send(b"\r");
    tty.until("Rank 1 failed first");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
    tty.assert_given_back();
}

#[test]
fn resizes_in_a_storm_leave_a_working_screen() {
    let mut tty = Tty::open(160, 50, &[CRASH]);
    tty.until("Rank 1 failed first");
    for step in 0..80_u16 {
        tty.resize(1 + step * 7 % 200, 1 + step * 5 % 70);
        if step % 9 == 0 {
            tty.send(b"j5w\x1b");
        }
    }
    tty.resize(80, 24);
    tty.send(b"?");
    // A frame may arrive in pieces: the title can stand on the screen before the bottom border does.
    tty.until_screen(|screen| {
        let contents = screen.contents();
        contents.contains("Help") && contents.lines().last().unwrap_or("").starts_with('└')
    });
    tty.send(b"\x1b");
    tty.until_gone("Help");
    tty.send(b"q");
    if tty.is_running() {
        tty.send(b"q");
    }
    assert_eq!(tty.exit(), 0);
    tty.assert_given_back();
}

#[test]
fn garbage_typed_at_it_breaks_nothing() {
    // A linear congruential generator: the same garbage every time.
    let mut state = 12_345_u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    for _ in 0..4 {
        let mut tty = Tty::open(100, 30, &[CRASH]);
        tty.until("Rank 1 failed first");
        // Ctrl-Z would stop it, and e and v would open an editor.
        let garbage: Vec<u8> =
            (0..1500).map(|_| byte()).filter(|byte| !matches!(byte, 0x1a | b'e' | b'v')).collect();
        tty.send(&garbage);
        for _ in 0..4 {
            if tty.is_running() {
                tty.send(b"\x1b[201~");
                tty.send(b"\x1b");
                tty.settle();
                tty.send(b"q");
                tty.settle();
            }
        }
        assert_eq!(tty.exit(), 0);
        tty.assert_given_back();
    }
}

#[test]
fn a_log_can_not_touch_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.log");
    let log = b"\x1b]0;owned\x07\x1b[2J\x1b[1;1Hforged \x9b31m \x1b]52;c;cm0=\x07 CUDA error: an illegal memory access was encountered\n\x1b[?1049l\x1b[?25h\n";
    std::fs::write(&path, log).unwrap();
    let mut tty = Tty::open(80, 24, &[path.to_str().unwrap()]);
    tty.until("ILLEGAL ADDRESS");
    tty.send(b"5");
    tty.until("\\x1b]0;owned");
    let raw = tty.raw();
    for sequence in [&b"\x1b]0;"[..], b"\x1b]52;", b"\x1b[2J\x1b[1;1Hforged"] {
        assert!(!raw.windows(sequence.len()).any(|window| window == sequence), "{sequence:?}");
    }
    assert!(tty.alternate_screen());
}

#[test]
fn a_signal_ends_it_with_the_terminal_given_back() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut tty = Tty::open(80, 24, &[CRASH]);
        tty.until("Rank 1 failed first");
        tty.signal(signal);
        assert_eq!(tty.ended_by(), Some(signal.as_raw()));
        tty.assert_given_back();
    }
}

#[test]
fn a_signal_does_not_lose_a_paste() {
    let mut tty = Tty::open(80, 24, &[]);
    tty.until("Paste a crash log here");
    tty.send(&bracketed(&crash()));
    tty.until("Rank 1 failed first");
    tty.signal(Signal::TERM);
    assert_eq!(tty.ended_by(), Some(Signal::TERM.as_raw()));
    let state = tty.home().join("state/warpfault");
    let saved = std::fs::read(state.join("pastes/paste-1.log"));
    let kept =
        tty.incidents().first().map(|id| std::fs::read(state.join(format!("incidents/{id}/inputs/0.txt"))));
    assert_eq!(saved.ok().or(kept.and_then(Result::ok)), Some(crash()));
}

#[test]
fn it_stops_and_comes_back() {
    let program = env!("CARGO_BIN_EXE_warpfault");
    let script = format!("{program} {CRASH}; echo stopped once; read x; fg; echo stopped twice; read x; fg");
    let mut tty = Tty::run("sh", &["-mc", &script], 80, 24, &[]);
    tty.until("Rank 1 failed first");
    tty.send(b"\x1a");
    tty.until_screen(|screen| !screen.alternate_screen() && screen.contents().contains("stopped once"));
    tty.assert_given_back();
    tty.resize(100, 30);
    tty.send(b"\r");
    tty.until_screen(|screen| screen.alternate_screen() && screen.contents().contains("Rank 1 failed first"));
    tty.send(b"2");
    tty.until("traceback");
    // From outside, too.
    tty.signal_child(Signal::TSTP);
    tty.until_screen(|screen| !screen.alternate_screen() && screen.contents().contains("stopped twice"));
    tty.assert_given_back();
    tty.send(b"\r");
    tty.until_screen(|screen| screen.alternate_screen() && screen.contents().contains("traceback"));
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
}

/// A program that nobody could continue is not stopped.
#[test]
fn without_a_shell_behind_it_it_does_not_stop() {
    let mut tty = Tty::open(80, 24, &[CRASH]);
    tty.until("Rank 1 failed first");
    tty.send(b"\x1a");
    tty.until("No shell stands behind this program");
    tty.signal(Signal::TSTP);
    tty.send(b"2");
    tty.until("traceback");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
}

/// In a container whose terminal was opened outside of it, the kernel gives the session as 0.
#[cfg(target_os = "linux")]
#[test]
fn a_session_led_from_outside_a_container_is_no_shell() {
    const APART: [&str; 3] = ["--user", "--pid", "--fork"];
    let can = std::process::Command::new("unshare").args(APART).arg("true").output();
    if !can.is_ok_and(|output| output.status.success()) {
        // Not every machine lets its users make namespaces; the rule itself has its tests beside it.
        return;
    }
    let program = format!("{} {CRASH}; exit $?", env!("CARGO_BIN_EXE_warpfault"));
    let [user, pid, fork] = APART;
    let mut tty = Tty::run("unshare", &[user, pid, fork, "sh", "-c", &program], 80, 24, &[]);
    tty.until("Rank 1 failed first");
    tty.send(b"\x1a");
    tty.until("No shell stands behind this program");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
}

#[test]
fn a_piped_log_is_read_and_keys_come_from_the_terminal() {
    let program = env!("CARGO_BIN_EXE_warpfault");
    let mut tty = Tty::run("sh", &["-c", &format!("cat {CRASH} | {program}")], 80, 24, &[]);
    tty.until("Rank 1 failed first");
    tty.send(b"5");
    tty.until("standard input:");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
    tty.assert_given_back();
}

#[test]
fn a_log_that_is_still_to_be_written_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later.log");
    let mut tty = Tty::open(100, 30, &["--follow", path.to_str().unwrap()]);
    tty.until("later.log is not there yet");
    std::fs::write(&path, "RuntimeError: CUDA error: an illegal memory access was encountered\n").unwrap();
    tty.until("ILLEGAL ADDRESS");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
}

#[test]
fn a_log_that_grows_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.log");
    std::fs::write(&path, "[rank0] step 1\n").unwrap();
    let mut tty = Tty::open(100, 30, &["--follow", path.to_str().unwrap()]);
    tty.until("NO FAILURE FOUND");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&crash()).unwrap();
    tty.until("Rank 1 failed first");
    tty.send(b"5G");
    file.write_all(b"the very last line\n").unwrap();
    tty.until("the very last line");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
}

#[test]
fn without_colours_the_selection_is_still_seen() {
    let mut tty = Tty::run(env!("CARGO_BIN_EXE_warpfault"), &[CRASH], 80, 24, &[("NO_COLOR", "1")]);
    tty.until("Rank 1 failed first");
    assert!(tty.is_reversed(1, 3), "the tab in front is reversed");
    tty.send(b"2");
    tty.until("traceback");
    let coloured = tty.raw().windows(5).any(|window| window == b"\x1b[38;");
    assert!(!coloured);
}

#[test]
fn a_terminal_without_unicode_gets_plain_characters() {
    let mut tty = Tty::run(env!("CARGO_BIN_EXE_warpfault"), &[CRASH], 80, 24, &[("LC_ALL", "C")]);
    let screen = tty.until("Rank 1 failed first");
    assert!(screen.contains("> Rank 1 failed first") && !screen.contains('▸'), "{screen}");
}

#[test]
fn the_editor_gets_the_keyboard_and_the_screen_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let editor = folder.path().join("editor");
    std::fs::write(&editor, "#!/bin/sh\necho \"editing $1 $2\"\nread answer\necho \"got $answer\"\n")
        .unwrap();
    std::fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = env!("CARGO_BIN_EXE_warpfault");
    let mut tty = Tty::run(program, &[CRASH], 80, 24, &[("EDITOR", editor.to_str().unwrap())]);
    tty.until("Rank 1 failed first");
    tty.send(b"5e");
    tty.until("editing +13");
    assert!(!tty.alternate_screen());
    tty.send(b"yes\r");
    tty.until_screen(|screen| screen.alternate_screen() && screen.contents().contains("5 Log"));
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
}

#[test]
fn what_can_not_be_opened_is_said_and_can_be_left() {
    let mut tty = Tty::open(80, 24, &["no/such/file.log"]);
    tty.until("could not be read");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
    tty.assert_given_back();
}

#[test]
fn without_a_terminal_it_prints_the_report() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_warpfault")).arg(CRASH).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Rank 1 failed first"));
}

/// Opens the walk of a crash with a command of the test's own in place of the crashed one.
fn run_in_walk(command: &str) -> Tty {
    let mut tty = Tty::open(100, 30, &["samples/triton-int32-wrap/run.log"]);
    tty.until("noticed");
    tty.send(b"4");
    tty.until("Rerun with launch blocking");
    tty.send(b"c\x15");
    tty.send(command.as_bytes());
    tty.send(b"\r");
    tty.until("Run this?");
    tty.send(b"y");
    tty
}

#[test]
fn a_step_runs_after_a_yes_and_a_key_ends_it() {
    let mut tty = run_in_walk("sh -c 'echo started-$((40 + 2)); sleep 600'");
    tty.until("started-42");
    tty.send(b"x");
    tty.until("ended by you");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
    tty.assert_given_back();
}

#[test]
fn a_rerun_moves_the_verdict() {
    let log = std::fs::canonicalize("samples/torch-oom/run.log").unwrap();
    let mut tty = run_in_walk(&format!("cat {}", log.display()));
    tty.until("ended without an error");
    tty.send(b"5]");
    tty.until("OutOfMemoryError");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
}

#[test]
fn leaving_ends_the_command_with_its_children() {
    let mut tty = run_in_walk("sh -c 'sleep 600 & echo \"child-$!-\"; wait'");
    let child = |screen: &str| -> Option<i32> {
        screen.split("child-").find_map(|rest| rest.split('-').next()?.parse().ok())
    };
    let screen = tty.until_screen(|screen| child(&screen.contents()).is_some());
    let pid = child(&screen).unwrap();
    tty.send(b"q");
    tty.until("A command is running.");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
    let gone = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.is_empty() || status.contains(") Z ")
    };
    let begun = std::time::Instant::now();
    while !gone() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "process {pid} is left behind");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_repro_of_the_overflow_is_written_in_under_ten_keys() {
    let sample = |name: &str| std::fs::canonicalize(name).unwrap().display().to_string();
    let inputs = ["samples/triton-int32-wrap/run.log", "samples/triton-cache"].map(sample);
    let mut tty = Tty::open_at_home(&[&inputs[0], &inputs[1]]);
    tty.until("noticed");
    let mut keys = 0;
    let mut press = |tty: &mut Tty, key: &[u8]| {
        tty.send(key);
        keys += 1;
    };
    press(&mut tty, b"R");
    let screen = tty.until_screen(|screen| screen.contents().contains("Run this?"));
    if screen.contains("more below") {
        press(&mut tty, b" ");
    }
    press(&mut tty, b"y");
    tty.until("The folder repro holds");
    tty.until("ended without an error");
    assert!(keys < 10, "{keys}");
    let folder = tty.home().join("repro");
    for name in ["run.sh", "README.md", "repro.py", "probe.toml", "case.json"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(readme.contains("233"), "{readme}");
    tty.send(b"q");
    assert_eq!(tty.exit(), 0);
}

/// Law 10: by keys alone, on every sample.
#[test]
fn command_line_and_ui_reach_the_same_report() {
    let mut wrong = Vec::new();
    for name in crate::samples::incidents() {
        let folder = format!("samples/{name}");
        let mut tty = Tty::open(100, 30, &[]);
        tty.until("Or type the path");
        for byte in folder.bytes() {
            tty.send(&[byte]);
        }
        tty.until(&format!("> {folder}"));
        tty.send(b"\r");
        tty.until_screen(|screen| {
            screen.contents().contains('[') && screen.contents().contains("noticed at")
                || screen.contents().contains("ndecided]")
                || screen.contents().contains("upported]")
                || screen.contents().contains("uspected]")
                || screen.contents().contains("roven]")
        });
        let file = tty.home().join("report.json");
        tty.send(format!(":export {}\r", file.display()).as_bytes());
        tty.until("Wrote");
        tty.send(b"q");
        assert_eq!(tty.exit(), 0, "{name}");
        if std::fs::read_to_string(&file).unwrap() != printed(&folder) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

fn printed(folder: &str) -> String {
    assert!(Path::new(folder).is_dir());
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_warpfault"))
        .args(["analyze", "--format", "json", folder])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}
