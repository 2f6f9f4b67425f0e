//! A program in a pseudo-terminal, and an emulator that reads its screen.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustix::termios::{LocalModes, tcgetattr};

/// After so long a test has hung.
const DEADLINE: Duration = Duration::from_secs(60);

/// A program on a terminal of its own.
pub struct Tty {
    pty: Arc<Pty>,
    child: std::process::Child,
    screen: vt100::Parser,
    output: Receiver<Vec<u8>>,
    raw: Vec<u8>,
    home: Arc<tempfile::TempDir>,
    local_modes: LocalModes,
    status: Option<WaitStatus>,
}

impl Tty {
    /// Opens the UI.
    pub fn open(columns: u16, rows: u16, arguments: &[&str]) -> Self {
        Self::run(env!("CARGO_BIN_EXE_warpfault"), arguments, columns, rows, &[])
    }

    /// Runs a program with a few variables changed.
    pub fn run(
        program: &str,
        arguments: &[&str],
        columns: u16,
        rows: u16,
        variables: &[(&str, &str)],
    ) -> Self {
        let home = Arc::new(tempfile::tempdir().unwrap());
        Self::run_at(home, program, arguments, (columns, rows), variables, None)
    }

    /// Opens the UI once more, in the same home.
    pub fn again(&self, arguments: &[&str]) -> Self {
        Self::run_at(Arc::clone(&self.home), env!("CARGO_BIN_EXE_warpfault"), arguments, (80, 24), &[], None)
    }

    /// Opens the UI in its home folder; arguments must be whole paths.
    pub fn open_at_home(arguments: &[&str]) -> Self {
        let home = Arc::new(tempfile::tempdir().unwrap());
        let folder = home.path().to_owned();
        Self::run_at(home, env!("CARGO_BIN_EXE_warpfault"), arguments, (80, 24), &[], Some(&folder))
    }

    fn run_at(
        home: Arc<tempfile::TempDir>,
        program: &str,
        arguments: &[&str],
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
        folder: Option<&Path>,
    ) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let mut command = Command::new(program)
            .args(arguments)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", home.path())
            .env("XDG_CONFIG_HOME", home.path().join("config"))
            .env("XDG_STATE_HOME", home.path().join("state"));
        for (name, value) in variables {
            command = command.env(name, value);
        }
        if let Some(folder) = folder {
            command = command.current_dir(folder);
        }
        let local_modes = tcgetattr(&pty).unwrap().local_modes;
        let child = command.spawn(pts).unwrap();
        let pty = Arc::new(pty);
        let (sender, output) = channel();
        let reader = Arc::clone(&pty);
        std::thread::spawn(move || {
            let mut chunk = [0; 65536];
            while let Ok(len @ 1..) = (&*reader).read(&mut chunk) {
                if sender.send(chunk[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        let screen = vt100::Parser::new(cells(rows), cells(columns), 0);
        Self { pty, child, screen, output, raw: Vec::new(), home, local_modes, status: None }
    }

    /// The program's home folder.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Ids of the incidents that were saved.
    pub fn incidents(&self) -> Vec<String> {
        let folder = self.home().join("state/warpfault/incidents");
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"));
        paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect()
    }

    /// Waits until the incident is saved and the UI knows it.
    pub fn wait_until_kept(&mut self) {
        let begun = Instant::now();
        while self.incidents().is_empty() {
            assert!(begun.elapsed() < DEADLINE, "never saved");
            self.take(Duration::from_millis(20));
        }
        self.settle();
    }

    /// Everything that was printed.
    pub fn raw(&mut self) -> &[u8] {
        self.settle();
        &self.raw
    }

    /// Types bytes. The program may read slowly, so its output is taken meanwhile.
    pub fn send(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(1024) {
            if (&*self.pty).write_all(piece).is_err() {
                return;
            }
            self.take(Duration::ZERO);
        }
    }

    /// Changes the size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.take(Duration::ZERO);
        self.screen.screen_mut().set_size(cells(rows), cells(columns));
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    /// Takes output that is there, waiting for the first of it.
    fn take(&mut self, wait: Duration) {
        let mut wait = wait;
        while let Ok(bytes) = self.output.recv_timeout(wait) {
            self.screen.process(&bytes);
            self.raw.extend_from_slice(&bytes);
            wait = Duration::ZERO;
        }
    }

    /// Takes output until there is a pause.
    pub fn settle(&mut self) {
        for _ in 0..4 {
            self.take(Duration::from_millis(60));
        }
    }

    /// Waits for a screen.
    pub fn until_screen(&mut self, is: impl Fn(&vt100::Screen) -> bool) -> String {
        let begun = Instant::now();
        while !is(self.screen.screen()) {
            assert!(begun.elapsed() < DEADLINE, "still\n{}", self.screen.screen().contents());
            self.take(Duration::from_millis(20));
        }
        self.screen.screen().contents()
    }

    /// Waits for a text on the screen; line ends count as blanks.
    pub fn until(&mut self, text: &str) -> String {
        self.until_screen(|screen| flat(screen).contains(text))
    }

    /// Waits until a text is gone.
    pub fn until_gone(&mut self, text: &str) -> String {
        self.until_screen(|screen| !flat(screen).contains(text))
    }

    /// Whether the program is on the alternate screen.
    pub fn alternate_screen(&mut self) -> bool {
        self.settle();
        self.screen.screen().alternate_screen()
    }

    /// Whether a cell is reversed.
    pub fn is_reversed(&self, row: u16, column: u16) -> bool {
        self.screen.screen().cell(row, column).is_some_and(vt100::Cell::inverse)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Sends a signal to what the program started.
    pub fn signal_child(&self, signal: Signal) {
        let pid = self.pid().as_raw_nonzero();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let child = children.split_whitespace().next().and_then(|child| child.parse().ok()).unwrap();
        rustix::process::kill_process(Pid::from_raw(child).unwrap(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether the program runs.
    pub fn is_running(&mut self) -> bool {
        self.take(Duration::from_millis(50));
        self.poll(WaitOptions::NOHANG).is_none()
    }

    fn poll(&mut self, options: WaitOptions) -> Option<WaitStatus> {
        if self.status.is_none()
            && let Ok(Some((_, status))) = rustix::process::waitpid(Some(self.pid()), options)
        {
            if status.stopped() {
                return Some(status);
            }
            self.status = Some(status);
        }
        self.status
    }

    fn wait_for(&mut self, options: WaitOptions) -> WaitStatus {
        let begun = Instant::now();
        loop {
            self.take(Duration::from_millis(20));
            if let Some(status) = self.poll(options | WaitOptions::NOHANG) {
                self.settle();
                return status;
            }
            assert!(begun.elapsed() < DEADLINE, "still running\n{}", self.screen.screen().contents());
        }
    }

    /// Waits for its end and gives its exit status.
    pub fn exit(&mut self) -> i32 {
        let status = self.wait_for(WaitOptions::empty());
        status.exit_status().unwrap_or_else(|| panic!("ended by signal {:?}", status.terminating_signal()))
    }

    /// Waits for its end and gives the signal that ended it.
    pub fn ended_by(&mut self) -> Option<i32> {
        self.wait_for(WaitOptions::empty()).terminating_signal()
    }

    /// The terminal is as it was: screen, cursor, mouse, paste, echo and line editing.
    pub fn assert_given_back(&mut self) {
        self.settle();
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "alternate screen");
        assert!(!screen.hide_cursor(), "cursor");
        assert!(!screen.bracketed_paste(), "bracketed paste");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_eq!(tcgetattr(&*self.pty).unwrap().local_modes, self.local_modes, "modes of the terminal");
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        if self.poll(WaitOptions::NOHANG).is_none() {
            let _ = rustix::process::kill_process(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap_or(NonZero::<u16>::MIN)
}

/// The screen with line ends and the blanks around them as one blank.
fn flat(screen: &vt100::Screen) -> String {
    let lines: Vec<String> = screen.contents().lines().map(|line| line.trim().to_owned()).collect();
    lines.join(" ")
}
