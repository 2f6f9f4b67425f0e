//! The terminal: taken, and always given back as it was.
//!
//! In: the wish to draw. Out: a [`Screen`]. However the program ends (return, error, panic, signal), raw mode, alternate
//! screen, mouse and bracketed paste are undone, in that they are undone by [`restore`], which is safe to call twice.

use std::io::{self, BufWriter, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// The signal that asks to end; 0 for none.
static ENDING: AtomicI32 = AtomicI32::new(0);
/// A stop from outside.
static STOPPING: AtomicBool = AtomicBool::new(false);
/// A continuation after a stop.
static CONTINUED: AtomicBool = AtomicBool::new(false);

/// How long the loop has to save what is unsaved before a signal ends the program.
const GRACE: Duration = Duration::from_millis(1500);

/// A terminal that is ours until it is dropped.
pub struct Screen {
    /// Never dropped: its own clean-up prints to standard error where the terminal is gone, and dies of that.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>,
    mouse: bool,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// The terminal's, after giving it back.
    pub fn take(mouse: bool) -> io::Result<Self> {
        hook_panics();
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, io::stdout()));
        take(mouse)?;
        let terminal = Terminal::new(backend).inspect_err(|_| restore())?;
        Ok(Self { terminal: ManuallyDrop::new(terminal), mouse })
    }

    /// Draws what changed.
    ///
    /// # Errors
    /// The terminal's.
    pub fn draw(&mut self, view: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(view).map(|_| ())
    }

    /// Draws every cell again at the next draw.
    ///
    /// # Errors
    /// The terminal's.
    pub fn forget(&mut self) -> io::Result<()> {
        // Not `clear`, which asks the terminal where its cursor is and fails where no answer comes.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Size in columns and rows.
    ///
    /// # Errors
    /// The terminal's.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        self.terminal.size().map(|size| (size.width, size.height))
    }

    /// Takes the mouse, or leaves it to the terminal.
    ///
    /// # Errors
    /// The terminal's.
    pub fn set_mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on;
        let mut out = io::stdout();
        if on { execute!(out, EnableMouseCapture) } else { execute!(out, DisableMouseCapture) }
    }

    /// Gives the terminal back while `work` runs.
    ///
    /// # Errors
    /// The terminal's.
    pub fn without<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        restore();
        let result = work();
        self.again()?;
        Ok(result)
    }

    /// Takes the terminal again, whatever was done to it.
    ///
    /// # Errors
    /// The terminal's.
    pub fn again(&mut self) -> io::Result<()> {
        take(self.mouse)?;
        self.forget()
    }

    /// Stops the program until it is continued.
    ///
    /// # Errors
    /// The terminal's.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.without(|| {
            let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn take(mouse: bool) -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    let taken = (|| {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
        if mouse { execute!(io::stdout(), EnableMouseCapture) } else { Ok(()) }
    })();
    taken.inspect_err(|_| restore())
}

/// Gives the terminal back; does nothing where it isn't ours.
pub fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = execute!(out, DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// ratatui's own hook would leave mouse and paste on, so ours comes before it. A panic on a worker's thread becomes a message
/// there and leaves the screen alone.
fn hook_panics() {
    static HOOKED: AtomicBool = AtomicBool::new(false);
    if HOOKED.swap(true, Ordering::SeqCst) {
        return;
    }
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() == Some(super::work::THREAD) {
            return;
        }
        restore();
        before(panic);
    }));
}

/// Listens to signals on a thread of its own. The loop sees them by [`ending`] and [`stops`]; where it doesn't end in time,
/// the thread gives the terminal back and ends the program.
///
/// # Errors
/// The operating system's.
pub fn listen() -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT])?;
    std::thread::Builder::new().name("warpfault-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGTSTP => STOPPING.store(true, Ordering::SeqCst),
                SIGCONT => CONTINUED.store(true, Ordering::SeqCst),
                signal => {
                    ENDING.store(signal, Ordering::SeqCst);
                    std::thread::sleep(GRACE);
                    end_by(signal);
                }
            }
        }
    })?;
    Ok(())
}

/// The signal that asks to end, if one came.
pub fn ending() -> Option<i32> {
    Some(ENDING.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

/// Whether a stop was asked for, and whether the program was continued, since the last call.
pub fn stops() -> (bool, bool) {
    (STOPPING.swap(false, Ordering::SeqCst), CONTINUED.swap(false, Ordering::SeqCst))
}

/// Whether a shell would take over and could continue the program. Where none stands behind it (`ssh -t HOST warpfault`, a
/// container's first process), a stopped program is lost; the kernel leaves such process groups running, too.
pub fn has_shell() -> bool {
    rustix::process::getppid()
        .is_some_and(|parent| could_continue(Standing::of(parent.as_raw_nonzero().get()), Standing::of(0)))
}

/// A process's session and process group. None where the operating system refuses to say, and where the leader lives outside
/// the process's own PID namespace, which the kernel gives as 0: a container whose terminal was opened outside of it.
#[derive(Clone, Copy)]
struct Standing {
    session: Option<i32>,
    group: Option<i32>,
}

impl Standing {
    /// That of process `pid`; 0 is this process itself.
    #[expect(
        unsafe_code,
        reason = "rustix takes the kernel's answer as never 0, and panics or worse where it is"
    )]
    fn of(pid: i32) -> Self {
        // SAFETY: both calls take a number and answer with one.
        let (session, group) = unsafe { (libc::getsid(pid), libc::getpgid(pid)) };
        let known = |id: i32| Some(id).filter(|id| *id > 0);
        Self { session: known(session), group: known(group) }
    }
}

/// A shell with job control leads the same session and has put the program into a group of its own. What isn't known is taken
/// as no shell: a refused Ctrl-Z costs a message, a stop that nobody ends costs the session.
fn could_continue(parent: Standing, own: Standing) -> bool {
    let (Some(of_parent), Some(of_own)) = (parent.session, own.session) else { return false };
    of_parent == of_own && parent.group.is_some() && own.group.is_some() && parent.group != own.group
}

/// Ends the program as the signal would have, with the terminal given back.
pub fn end_by(signal: i32) {
    restore();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(session: i32, group: i32) -> Standing {
        let known = |id: i32| Some(id).filter(|id| *id > 0);
        Standing { session: known(session), group: known(group) }
    }

    #[test]
    fn a_shell_with_job_control_could_continue_the_program() {
        assert!(could_continue(standing(10, 10), standing(10, 11)));
        assert!(!could_continue(standing(10, 10), standing(10, 10)), "a shell without job control");
        assert!(!could_continue(standing(10, 10), standing(11, 11)), "a session of its own");
    }

    #[test]
    fn a_leader_outside_the_namespace_is_no_shell() {
        assert!(!could_continue(standing(0, 0), standing(11, 11)));
        assert!(!could_continue(standing(0, 0), standing(0, 0)));
        assert!(!could_continue(standing(0, 1), standing(0, 2)));
    }

    #[test]
    fn this_process_stands_somewhere() {
        // The answers themselves depend on who runs the tests; a process that doesn't exist has none.
        let nobody = Standing::of(i32::MAX);
        assert_eq!((nobody.session, nobody.group), (None, None));
        has_shell();
    }
}
