//! Work on threads of its own, so that keys are answered while it runs.
//!
//! In: jobs. Out: messages, in pieces. Newest wins: a job that nobody waits for any more stops at its next step. The engine
//! itself can't be stopped inside one input; its answer is then dropped.

mod engine;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, never, unbounded};

use crate::playbook::Library;
use crate::source::Bytes;
use crate::store::Store;

use super::log::filter::FilterRun;
use super::log::index::LineIndex;
use super::log::search::{self, Pattern};
use super::msg::{Msg, Opening};
use engine::Engine;
pub use engine::Job;

/// Name of the threads; the panic hook leaves the screen alone for these.
pub const THREAD: &str = "warpfault-work";

/// How long the end of a command is waited for.
const CLOSE: std::time::Duration = std::time::Duration::from_secs(8);

/// A wish that can be withdrawn.
#[derive(Debug, Clone, Default)]
struct Wanted(Arc<AtomicBool>);

impl Wanted {
    fn withdraw(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The workers.
#[derive(Debug)]
pub struct Work {
    sender: Sender<Msg>,
    jobs: Option<Sender<Job>>,
    /// Closed when the engine's thread has ended.
    alive: Receiver<()>,
    engine: Wanted,
    index: Wanted,
    search: Wanted,
    filter: Wanted,
}

impl Work {
    /// Workers that answer to `sender`.
    pub fn new(sender: Sender<Msg>) -> Self {
        Self {
            sender,
            jobs: None,
            alive: never(),
            engine: Wanted::default(),
            index: Wanted::default(),
            search: Wanted::default(),
            filter: Wanted::default(),
        }
    }

    /// Where answers go.
    pub fn sender(&self) -> Sender<Msg> {
        self.sender.clone()
    }

    /// Withdraws the wish for a report.
    pub fn stop(&mut self) {
        self.engine.withdraw();
        self.jobs = None;
    }

    /// Ends the command that runs, and waits until it is gone.
    pub fn close(&mut self) {
        self.stop();
        // Nothing is ever sent: only the end of the thread is waited for.
        let _ = self.alive.recv_timeout(CLOSE);
    }

    /// Opens an incident on a thread of its own.
    pub fn open(&mut self, generation: u64, opening: Opening, follow: bool, store: Option<Store>) {
        let wanted = renew(&mut self.engine);
        let (jobs, inbox) = unbounded();
        self.jobs = Some(jobs);
        let (living, alive) = bounded::<()>(0);
        self.alive = alive;
        let (sender, failed) = (self.sender.clone(), self.sender.clone());
        spawn(
            move || {
                let (library, notes) = playbooks();
                for note in notes {
                    let _ = sender.send(Msg::Told(crate::text::escape(&note).to_string()));
                }
                Engine { generation, opening, follow, store, library, sender, wanted }.serve(&inbox);
                drop(living);
            },
            move |why| {
                let _ = failed.send(Msg::Failed { generation, why });
            },
        );
    }

    /// Hands a job to the incident that is open.
    pub fn job(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // A thread that ended has said why.
            let _ = jobs.send(job);
        }
    }

    /// Counts lines.
    pub fn index(&mut self, generation: u64, source: usize, bytes: Bytes, mut index: LineIndex) {
        let wanted = renew(&mut self.index);
        let sender = self.sender.clone();
        self.plain(move || {
            loop {
                let done = index.step(&bytes);
                let gone = sender.send(Msg::Indexed { generation, source, index: index.clone() }).is_err();
                if done || gone || wanted.is_withdrawn() {
                    return;
                }
            }
        });
    }

    /// Searches.
    pub fn search(&mut self, id: u64, bytes: Bytes, mut from: usize, pattern: Pattern) {
        let wanted = renew(&mut self.search);
        let sender = self.sender.clone();
        self.plain(move || {
            loop {
                let (lines, searched) = search::step(&pattern, &bytes, from);
                let done = searched >= bytes.len();
                from = searched;
                let gone = sender.send(Msg::Found { id, lines, searched, done }).is_err();
                if done || gone || wanted.is_withdrawn() {
                    return;
                }
            }
        });
    }

    /// Filters.
    pub fn filter(&mut self, id: u64, bytes: Bytes, mut run: FilterRun) {
        let wanted = renew(&mut self.filter);
        let sender = self.sender.clone();
        self.plain(move || {
            let mut from = 0;
            loop {
                let (lines, to) = run.step(&bytes, from);
                let done = to >= bytes.len();
                from = to;
                let gone = sender.send(Msg::Filtered { id, lines, done }).is_err();
                if done || gone || wanted.is_withdrawn() {
                    return;
                }
            }
        });
    }

    /// Does something that answers by itself.
    pub fn plain(&self, job: impl FnOnce() + Send + 'static) {
        let sender = self.sender.clone();
        spawn(job, move |why| {
            let _ = sender.send(Msg::Told(format!("That failed inside warpfault: {why}")));
        });
    }
}

/// The shipped playbooks and the user's own.
fn playbooks() -> (Arc<Library>, Vec<String>) {
    match crate::effect::library(&[]) {
        Ok((library, notes)) => (Arc::new(library), notes),
        Err(error) => (Library::shipped(), vec![error.to_string()]),
    }
}

/// Withdraws the wish before and makes a new one.
fn renew(wanted: &mut Wanted) -> Wanted {
    wanted.withdraw();
    *wanted = Wanted::default();
    wanted.clone()
}

/// Runs a job on a thread; a panic in it becomes a message, and the screen stays.
fn spawn(job: impl FnOnce() + Send + 'static, on_panic: impl FnOnce(String) + Send + 'static) {
    let run = move || {
        if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(job)) {
            let why = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without words".to_owned());
            on_panic(crate::text::escape(&why).to_string());
        }
    };
    // A machine that can't start a thread gets its answer late instead of never.
    let run = std::sync::Mutex::new(Some(run));
    let run = Arc::new(run);
    let on_thread = Arc::clone(&run);
    let take = |slot: &std::sync::Mutex<Option<_>>| slot.lock().ok().and_then(|mut run| run.take());
    let started = thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
        if let Some(run) = take(&on_thread) {
            run();
        }
    });
    if started.is_err()
        && let Some(run) = run.lock().ok().and_then(|mut run| run.take())
    {
        run();
    }
}

/// Whole lines that complete the path at the end of `text`.
pub fn complete_path(text: &str, home: Option<&PathBuf>) -> Vec<String> {
    let (before, typed) = match text.split_once(' ') {
        Some((word, rest))
            if text.trim_start() == text && super::command::parse(&format!("{word} x")).is_ok() =>
        {
            (format!("{word} "), rest.trim_start())
        }
        _ => (String::new(), text),
    };
    let (folder, start) = typed.rfind('/').map_or(("", typed), |at| typed.split_at(at + 1));
    let real = match (folder.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if folder.is_empty() => PathBuf::from("."),
        _ => PathBuf::from(folder),
    };
    let Ok(entries) = std::fs::read_dir(real) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .filter_map(std::result::Result::ok)
        .take(10_000)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !start.starts_with('.');
            if hidden || !name.starts_with(start) || name.chars().any(char::is_control) {
                return None;
            }
            let slash = if entry.path().is_dir() { "/" } else { "" };
            Some(format!("{before}{folder}{name}{slash}"))
        })
        .collect();
    found.sort();
    found.truncate(200);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_panic_is_a_message() {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Work::new(sender).plain(|| panic!("a \x1b[2J panic"));
        match receiver.recv_timeout(Duration::from_secs(10)) {
            Ok(Msg::Told(text)) => assert_eq!(text, "That failed inside warpfault: a \\x1b[2J panic"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_are_completed_behind_a_command() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rank0.log"), "").unwrap();
        std::fs::create_dir(folder.path().join("ranks")).unwrap();
        let base = folder.path().display().to_string();
        assert_eq!(
            complete_path(&format!("open {base}/ra"), None),
            [format!("open {base}/rank0.log"), format!("open {base}/ranks/")]
        );
        assert_eq!(complete_path("~/rank0", Some(&folder.path().to_path_buf())), ["~/rank0.log"]);
    }
}
