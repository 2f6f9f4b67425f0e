//! An approved command, run in a pseudo-terminal of its own.
//!
//! In: the command, where its log goes, a way to end it early. Out: live output, and how it ended. It is a session leader
//! with a deadline; whatever it started ends with it. Words go to the program as they are: there is no shell.

use std::fs::File;
use std::io::{ErrorKind as IoKind, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use pty_process::blocking::{Command, Pts, Pty};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::Pid;
use rustix::termios::{LocalModes, OptionalActions, OutputModes};

use crate::error::{Error, ErrorKind, Result};
use crate::playbook::walk::shell_line;
use crate::playbook::{Ran, StepRef, record::Ended};
use crate::session::{Approved, PROGRAM, Proposal};
use crate::source::{self, InputSpec, Limits, Loaded};

use super::output::{Bounds, Output};
use super::tree::{Adoption, MARK, Tree};

/// Wide enough that no program wraps its error lines.
const ROWS: u16 = 50;
const COLUMNS: u16 = 500;

/// Between two looks at deadline and key.
const TICK: Duration = Duration::from_millis(50);

/// What is still read after the command itself has ended: its last words may be on their way.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Chunks of live output that wait for a front end; more are dropped, the log keeps them.
const LIVE_LIMIT: usize = 256;

/// What a run tells its front end.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one outcome a run, and chunks are small beside their buffers")]
pub enum RunEvent {
    /// A chunk of output, as printed: hostile until escaped.
    Output(Vec<u8>),
    /// Time passed: look at the keys.
    Tick,
    /// It ended; `output` is its log, loaded, for the engine.
    Ended {
        /// The step.
        step: StepRef,
        /// How it ended.
        ran: Ran,
        /// Its log.
        output: Loaded,
    },
}

/// A command that runs on a thread of its own.
#[derive(Debug)]
pub struct RunHandle {
    /// What it tells, in order; the last one is [`RunEvent::Ended`].
    pub events: Receiver<RunEvent>,
    stop: Arc<AtomicBool>,
}

impl RunHandle {
    /// Ends the command and everything that it started. Returns at once; the end comes as an event.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Runs an approved command on a thread of its own; its log goes to `log`.
#[must_use]
pub fn spawn(approved: Approved, log: PathBuf) -> RunHandle {
    let (live, output) = bounded(LIVE_LIMIT);
    let (send, events) = unbounded();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let forward = send.clone();
    let forwarder = std::thread::spawn(move || {
        loop {
            let event = match output.recv_timeout(TICK) {
                Ok(chunk) => RunEvent::Output(chunk),
                Err(RecvTimeoutError::Timeout) => RunEvent::Tick,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // The log keeps everything: where the front end lags, live chunks are dropped and memory stays bounded.
            if forward.len() < LIVE_LIMIT && forward.send(event).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        let (ran, output) = run(&approved, &log, &flag, Some(&live));
        drop(live);
        // The end comes last.
        let _ = forwarder.join();
        let _ = send.send(RunEvent::Ended { step: approved.proposal().step.clone(), ran, output });
    });
    RunHandle { events, stop }
}

/// Runs an approved command to its end, its deadline, or until `stop` is set.
#[must_use]
pub fn run(
    approved: &Approved,
    log: &Path,
    stop: &AtomicBool,
    live: Option<&Sender<Vec<u8>>>,
) -> (Ran, Loaded) {
    run_within(approved.proposal(), log, stop, live, Bounds::default())
}

pub(super) fn run_within(
    proposal: &Proposal,
    log: &Path,
    stop: &AtomicBool,
    live: Option<&Sender<Vec<u8>>>,
    bounds: Bounds,
) -> (Ran, Loaded) {
    let began = Instant::now();
    let finished = carry(proposal, log, stop, live, bounds);
    let (ended, output_bytes) = match finished {
        Ok(finished) => finished,
        Err(error) => (Ended::NotStarted(error.to_string()), 0),
    };
    let kept = !matches!(ended, Ended::NotStarted(_));
    let ran = Ran {
        command: proposal.command.clone(),
        environment: proposal.environment.clone(),
        ended,
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        output_bytes,
        log: kept.then(|| log.display().to_string()),
        input: None,
    };
    let output = if kept {
        source::load(&[InputSpec::Path(log.to_path_buf())], Limits::default())
    } else {
        Loaded::default()
    };
    (ran, output)
}

fn carry(
    proposal: &Proposal,
    log: &Path,
    stop: &AtomicBool,
    live: Option<&Sender<Vec<u8>>>,
    bounds: Bounds,
) -> Result<(Ended, u64)> {
    let file = new_log(log)?;
    let line = shell_line(&proposal.environment, &proposal.command).unwrap_or_default();
    let mut output = Output::new(file, &line, bounds).map_err(|error| log_failed(log, error))?;
    let _adoption = Adoption::begin();
    let (pty, mut child, tree) = match start(proposal) {
        Ok(started) => started,
        Err(error) => {
            let _ = std::fs::remove_file(log);
            return Err(error);
        }
    };
    let deadline = Instant::now() + Duration::from_secs(proposal.deadline_s);
    let ended = follow(pty, &mut child, &tree, &mut output, &Until { deadline, stop }, live)
        .map_err(|error| log_failed(log, error));
    // Whatever happened: nothing of it is left running, and the leader leaves no zombie.
    tree.end(|| {
        let _ = child.try_wait();
    });
    let _ = child.wait();
    let ended = ended?;
    let total = output.total();
    output.finish(&ending(&ended, proposal.deadline_s)).map_err(|error| log_failed(log, error))?;
    Ok((ended, total))
}

fn new_log(path: &Path) -> Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| log_failed(path, error))?;
    }
    File::create(path).map_err(|error| log_failed(path, error))
}

fn log_failed(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Output, "the command's log could not be written").at(path, None).because(error)
}

/// Starts the command as the leader of a session on a terminal of its own.
fn start(proposal: &Proposal) -> Result<(Pty, Child, Tree)> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Missing, "the command could not be started").because(error)
    };
    let terminal = |error: pty_process::Error| {
        Error::new(ErrorKind::Missing, "no pseudo-terminal could be opened").because(error)
    };
    let (pty, pts) = pty_process::blocking::open().map_err(terminal)?;
    // Ioctls on the master fail on some systems before a slave is open; `open` has opened it.
    let _ = pty.resize(pty_process::Size::new(ROWS, COLUMNS));
    plain(&pts).map_err(|error| failed(error.into()))?;
    let flags = rustix::fs::fcntl_getfl(&pty).map_err(|error| failed(error.into()))?;
    rustix::fs::fcntl_setfl(&pty, flags | OFlags::NONBLOCK).map_err(|error| failed(error.into()))?;
    let Some((program, words)) = proposal.command.split_first() else {
        return Err(Error::new(ErrorKind::Usage, "the command is empty"));
    };
    let mark = mark();
    let command = Command::new(own_path(program).unwrap_or_else(|| program.into()))
        .args(words)
        .envs(proposal.environment.iter().map(|(name, value)| (name, value)))
        .env(MARK, &mark);
    let child = command.spawn(pts).map_err(|error| match error {
        pty_process::Error::Io(error) => failed(error),
        other => terminal(other),
    })?;
    let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let leader = leader.ok_or_else(|| Error::new(ErrorKind::Missing, "the command has no process id"))?;
    Ok((pty, child, Tree::new(leader, mark)))
}

/// This program's own file, where the command names it without a path: what is shown stays short and the same everywhere.
fn own_path(program: &str) -> Option<PathBuf> {
    if program == PROGRAM { std::env::current_exe().ok() } else { None }
}

/// Output as the program writes it: no carriage return before line ends, no echo.
fn plain(pts: &Pts) -> rustix::io::Result<()> {
    let mut modes = rustix::termios::tcgetattr(pts)?;
    modes.output_modes.remove(OutputModes::OPOST);
    modes.local_modes.remove(LocalModes::ECHO);
    rustix::termios::tcsetattr(pts, OptionalActions::Now, &modes)
}

/// Unique among the runs of every warpfault that is alive.
fn mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// When to end a command early.
struct Until<'a> {
    deadline: Instant,
    stop: &'a AtomicBool,
}

/// Reads until the command ends, by itself or not.
fn follow(
    mut pty: Pty,
    child: &mut Child,
    tree: &Tree,
    output: &mut Output,
    until: &Until<'_>,
    live: Option<&Sender<Vec<u8>>>,
) -> std::io::Result<Ended> {
    let mut buffer = vec![0_u8; 64 * 1024];
    let mut ended: Option<(Ended, Instant)> = None;
    loop {
        let open = read_some(&mut pty, &mut buffer, output, live)?;
        if let Some((how, at)) = &ended {
            if open != More::Yes || at.elapsed() > LAST_WORDS {
                return Ok(how.clone());
            }
            continue;
        }
        if let Some(status) = child.try_wait()? {
            ended = Some((natural(status), Instant::now()));
        } else if until.stop.load(Ordering::Relaxed) {
            tree.end(|| {
                let _ = child.try_wait();
            });
            ended = Some((Ended::Stopped, Instant::now()));
        } else if Instant::now() >= until.deadline {
            tree.end(|| {
                let _ = child.try_wait();
            });
            ended = Some((Ended::Deadline, Instant::now()));
        } else if open == More::Never {
            // It closed its terminal and runs on.
            std::thread::sleep(TICK);
        }
    }
}

/// Whether more output may come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    /// There was some.
    Yes,
    /// Nothing came within a tick.
    NotNow,
    /// Every process has closed the terminal.
    Never,
}

fn read_some(
    pty: &mut Pty,
    buffer: &mut [u8],
    output: &mut Output,
    live: Option<&Sender<Vec<u8>>>,
) -> std::io::Result<More> {
    let tick = Timespec { tv_sec: 0, tv_nsec: i64::try_from(TICK.as_nanos()).unwrap_or(0) };
    let ready = {
        let mut fds = [PollFd::new(pty, PollFlags::IN)];
        match poll(&mut fds, Some(&tick)) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        }
    };
    if ready == 0 {
        output.flush()?;
        return Ok(More::NotNow);
    }
    // A terminal hands out 4 KiB at a time: gather what is there before it goes on.
    let mut filled = 0;
    let more = loop {
        let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) else { break More::Yes };
        match pty.read(room) {
            Ok(0) => break More::Never,
            Ok(count) => filled += count,
            Err(error) if error.kind() == IoKind::Interrupted => {}
            Err(error) if error.kind() == IoKind::WouldBlock => {
                break if filled > 0 { More::Yes } else { More::NotNow };
            }
            // Linux says EIO when the last process has closed its side.
            Err(_) => break More::Never,
        }
    };
    let chunk = buffer.get(..filled).unwrap_or_default();
    if !chunk.is_empty() {
        output.push(chunk)?;
        if let Some(live) = live.filter(|live| !live.is_full()) {
            // A front end that lags loses live lines, never the log.
            let _ = live.try_send(chunk.to_vec());
        }
    }
    Ok(more)
}

fn natural(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exit(code),
        (None, Some(signal)) => Ended::Signal(signal),
        (None, None) => Ended::Exit(-1),
    }
}

/// The last line of the log. A shell's convention where the command ended by itself, so that the readers know it; words
/// that no reader takes for a crash where warpfault ended it.
fn ending(ended: &Ended, deadline_s: u64) -> String {
    match ended {
        Ended::Exit(code) => format!("exit status {code}"),
        Ended::Signal(signal) => format!("exit status {}", 128 + signal),
        Ended::Deadline => format!("[warpfault ended this run at its deadline of {deadline_s} s]"),
        Ended::Stopped => "[warpfault ended this run when asked to]".to_owned(),
        Ended::NotStarted(_) | Ended::Elsewhere => String::new(),
    }
}
