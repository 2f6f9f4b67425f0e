//! A command and everything that it started, ended together.
//!
//! In: the leader of a session and a mark that its processes carry in their environment. Out: none of them is left. A
//! child that begins a session of its own, or whose parent died, still carries the mark. Only processes found so are
//! touched.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// Time between asking and forcing.
const GRACE: Duration = Duration::from_secs(2);

/// Name of the mark in the environment.
pub(super) const MARK: &str = "WARPFAULT_RUN";

/// A running command.
#[derive(Debug)]
pub(super) struct Tree {
    /// Leader of the command's session and process group.
    pub leader: Pid,
    /// Value of the mark; unique to this run.
    pub mark: String,
    /// Processes that were seen in the tree: the dead among them are this process's to reap.
    seen: RefCell<HashSet<Pid>>,
}

impl Tree {
    /// A tree of which only the leader is known yet.
    pub fn new(leader: Pid, mark: String) -> Self {
        Self { leader, mark, seen: RefCell::default() }
    }

    /// Ends every process of the tree: asks, waits, forces. The leader itself is reaped by its owner, which `reap` does
    /// between the steps.
    pub fn end(&self, mut reap: impl FnMut()) {
        self.signal(Signal::TERM);
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            reap();
            if self.members().is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // A process may fork while the list is being read: force until a list comes back empty.
        for _ in 0..100 {
            self.signal(Signal::KILL);
            reap();
            if self.members().is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: Signal) {
        // The leader first: one that learns of a child's end before its own would report it as a finding.
        let _ = rustix::process::kill_process(self.leader, signal);
        let _ = rustix::process::kill_process_group(self.leader, signal);
        for pid in self.members() {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

#[cfg(target_os = "linux")]
mod members {
    use super::{MARK, Pid, Tree};

    /// Largest environment that is searched for the mark.
    const ENVIRONMENT_LIMIT: u64 = 4 << 20;

    /// What `/proc/PID/stat` tells.
    struct Stat {
        state: u8,
        parent: i32,
        session: i32,
    }

    impl Tree {
        /// Processes of the tree that are alive. Dead ones whose parent is this process are reaped on the way.
        pub(super) fn members(&self) -> Vec<Pid> {
            let own = rustix::process::getpid();
            let mut members = Vec::new();
            let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
            for entry in entries {
                let Some(raw) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                    continue;
                };
                let Some(pid) = Pid::from_raw(raw).filter(|pid| *pid != own) else { continue };
                let Some(stat) = stat(raw) else { continue };
                if stat.state == b'Z' || stat.state == b'X' {
                    if stat.parent == own.as_raw_nonzero().get() && self.is_ours_to_reap(pid, &stat) {
                        let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
                    }
                    continue;
                }
                if stat.session == self.leader.as_raw_nonzero().get() || self.carries_mark(raw) {
                    self.seen.borrow_mut().insert(pid);
                    members.push(pid);
                }
            }
            members
        }

        fn carries_mark(&self, pid: i32) -> bool {
            use std::io::Read;
            let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) else { return false };
            let mut bytes = Vec::new();
            if file.take(ENVIRONMENT_LIMIT).read_to_end(&mut bytes).is_err() {
                return false;
            }
            let wanted = format!("{MARK}={}", self.mark);
            bytes.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
        }

        /// A dead process has no environment left to read: its session, or having been seen alive, tells. The leader is
        /// its owner's.
        fn is_ours_to_reap(&self, pid: Pid, stat: &Stat) -> bool {
            pid != self.leader
                && (stat.session == self.leader.as_raw_nonzero().get() || self.seen.borrow().contains(&pid))
        }
    }

    fn stat(pid: i32) -> Option<Stat> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may hold anything, brackets and blanks too: the fields begin after the last one.
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?.bytes().next()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        Some(Stat { state, parent, session })
    }
}

#[cfg(not(target_os = "linux"))]
impl Tree {
    /// Without /proc the process group is all that can be asked about.
    fn members(&self) -> Vec<Pid> {
        match rustix::process::test_kill_process_group(self.leader) {
            Ok(()) => vec![self.leader],
            Err(_) => Vec::new(),
        }
    }
}

/// Orphans of the tree come to this process while a guard lives, so that none is lost to init.
#[derive(Debug)]
pub(super) struct Adoption;

/// Guards that live.
static ADOPTIONS: AtomicUsize = AtomicUsize::new(0);

impl Adoption {
    pub fn begin() -> Self {
        ADOPTIONS.fetch_add(1, Ordering::SeqCst);
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        Self
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        if ADOPTIONS.fetch_sub(1, Ordering::SeqCst) == 1 {
            #[cfg(target_os = "linux")]
            let _ = rustix::process::set_child_subreaper(None);
        }
    }
}
