//! The parent: starts a child, waits no longer than its deadline, ends all of it, and says how it ended.
//!
//! In: a program, a request, a deadline. Out: an [`Ending`]. A child that crashes, hangs, babbles or cuts its reply short
//! is an ending like any other and never an error of ours. It knows nothing of kernels.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use rustix::process::{Pid, Signal, kill_process_group};

use super::protocol::{self, Reply, Request, Stage};

/// The hidden command that serves one request.
pub const CHILD_COMMAND: &str = "__probe";

/// What a child may print besides its replies.
const PRINTED_LIMIT_BYTES: usize = 16 << 10;

/// Longest line that is looked at.
const LINE_LIMIT_BYTES: u64 = 8 << 20;

/// How often a wait looks up.
const GLANCE: Duration = Duration::from_millis(10);

/// How long a killed process may take to go.
const GRACE: Duration = Duration::from_secs(5);

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables on top of ours.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether it may go on after its answer: a tool around it has to write its own report.
    pub lingers: bool,
}

impl Program {
    /// This very program as a child.
    ///
    /// # Errors
    /// Of the operating system, where it doesn't tell where the program lies.
    pub fn this() -> std::io::Result<Self> {
        Ok(Self::new(std::env::current_exe()?, [CHILD_COMMAND]))
    }

    /// A program with arguments.
    pub fn new<A: Into<OsString>>(path: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) -> Self {
        Self {
            path: path.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            lingers: false,
        }
    }

    /// The same program, started by another one (`compute-sanitizer …`).
    #[must_use]
    pub fn under(self, path: impl Into<PathBuf>, arguments: Vec<OsString>) -> Self {
        let mut all = arguments;
        all.push(self.path.into_os_string());
        all.extend(self.arguments);
        Self { path: path.into(), arguments: all, environment: self.environment, lingers: true }
    }

    /// Lets it go on after its answer.
    #[must_use]
    pub fn lingering(mut self) -> Self {
        self.lingers = true;
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With a status.
    Code(i32),
    /// Of a signal.
    Signal(i32),
    /// It was ended because it had answered. Giving a context back takes a process some 100 ms, and the kernel does it
    /// as well.
    Answered,
    /// It was killed at its deadline.
    TimedOut,
    /// It did not go even then; it hangs in the kernel.
    Unkillable,
    /// It was killed because somebody asked to stop.
    Cancelled,
    /// It did not start.
    NotStarted(String),
}

/// What became of a child.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// Its last reply that is no stage.
    pub reply: Option<Reply>,
    /// How far it came.
    pub stage: Option<Stage>,
    /// How it ended.
    pub exit: Exit,
    /// What else it printed, on both streams, cut at 16 KiB.
    pub printed: String,
    /// Start to end.
    pub elapsed: Duration,
}

/// A line of a child.
enum Heard {
    Out(String),
    Err(String),
}

/// Starts a child, hands it the request and waits for its end.
#[must_use]
pub fn ask(program: &Program, request: &Request, deadline: Duration, cancel: &AtomicBool) -> Ending {
    let line = serde_json::to_string(request).unwrap_or_default() + "\n";
    run(program, line.into_bytes(), deadline, cancel)
}

/// Starts a program, gives it `input` and waits for its end.
#[must_use]
pub fn run(program: &Program, input: Vec<u8>, deadline: Duration, cancel: &AtomicBool) -> Ending {
    let start = Instant::now();
    let mut ending = Ending {
        reply: None,
        stage: None,
        exit: Exit::Code(0),
        printed: String::new(),
        elapsed: Duration::ZERO,
    };
    let mut child = match spawn(program) {
        Ok(child) => child,
        Err(error) => {
            ending.exit = Exit::NotStarted(format!("{}: {error}", program.path.display()));
            return ending;
        }
    };
    let heard = listen(&mut child, input);
    let hurry = !program.lingers;
    ending.exit = wait(&mut child, &heard, start + deadline, cancel, hurry, &mut ending);
    // Whatever it started goes too; after that its streams end.
    end_group(&child);
    while let Ok(line) = heard.recv_timeout(Duration::from_millis(200)) {
        take(line, &mut ending);
    }
    ending.elapsed = start.elapsed();
    ending
}

fn spawn(program: &Program) -> std::io::Result<Child> {
    Command::new(&program.path)
        .args(&program.arguments)
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that what it starts can be ended with it.
        .process_group(0)
        .spawn()
}

/// Feeds the child and hears it, each stream on a thread of its own: a child that reads nothing or prints without end
/// must not hold the parent.
fn listen(child: &mut Child, input: Vec<u8>) -> Receiver<Heard> {
    let (sender, receiver) = crossbeam_channel::bounded(1_024);
    if let Some(mut stdin) = child.stdin.take() {
        std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
    }
    if let Some(stdout) = child.stdout.take() {
        let sender = sender.clone();
        std::thread::spawn(move || hear(stdout, &sender, Heard::Out));
    }
    if let Some(stderr) = child.stderr.take() {
        std::thread::spawn(move || hear(stderr, &sender, Heard::Err));
    }
    receiver
}

fn hear(stream: impl Read, sender: &Sender<Heard>, wrap: fn(String) -> Heard) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        match (&mut stream).take(LINE_LIMIT_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if sender.send(wrap(String::from_utf8_lossy(&line).into_owned())).is_err() => return,
            Ok(_) => {}
        }
    }
}

fn take(heard: Heard, ending: &mut Ending) {
    let line = match heard {
        Heard::Out(line) => {
            match protocol::reply_in(&line) {
                Some(Reply::Stage { stage }) => ending.stage = Some(stage),
                Some(reply) => ending.reply = Some(reply),
                None => {}
            }
            match line.find(protocol::OPENING) {
                Some(at) => line.get(..at).unwrap_or("").to_owned(),
                None => line,
            }
        }
        Heard::Err(line) => line,
    };
    let room = PRINTED_LIMIT_BYTES.saturating_sub(ending.printed.len());
    if line.len() <= room {
        ending.printed.push_str(&line);
    }
}

fn wait(
    child: &mut Child,
    heard: &Receiver<Heard>,
    deadline: Instant,
    cancel: &AtomicBool,
    hurry: bool,
    ending: &mut Ending,
) -> Exit {
    let mut open = true;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return exit_of(status);
        }
        if hurry && ending.reply.is_some() {
            return kill(child, Exit::Answered);
        }
        if cancel.load(Ordering::Relaxed) {
            return kill(child, Exit::Cancelled);
        }
        if Instant::now() >= deadline {
            return kill(child, Exit::TimedOut);
        }
        if open {
            match heard.recv_timeout(GLANCE) {
                Ok(line) => take(line, ending),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => open = false,
            }
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

fn end_group(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn kill(child: &mut Child, exit: Exit) -> Exit {
    end_group(child);
    let _ = child.kill();
    let gone = Instant::now() + GRACE;
    while Instant::now() < gone {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return exit;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Exit::Unkillable
}

#[cfg(test)]
mod tests;
