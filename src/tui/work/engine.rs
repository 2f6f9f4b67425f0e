//! The engine on its thread: an incident from its opening to its last change, saved after each.
//!
//! In: what to open, then jobs. Out: messages with the report as it stands. The thread ends when nobody waits for it any
//! more; inside one reading it can't be stopped, and that reading's answer is then dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use crate::playbook::Library;
use crate::session::{self, Effect, Session, WalkInput};
use crate::source::{self, Change, Follower, InputSpec, Limits};
use crate::store::{self, Store};
use crate::tui::msg::{Msg, Opening};
use crate::tui::source as shown;

use super::Wanted;

/// How often a followed file is looked at.
const POLL: Duration = Duration::from_millis(250);

/// Something to do with the incident that is open.
#[derive(Debug)]
pub enum Job {
    /// Add inputs.
    Add(Vec<InputSpec>),
    /// Read the inputs once more.
    Again,
    /// Tell the engine something.
    Apply(Box<session::Input>),
}

/// What the thread needs.
pub struct Engine {
    /// Number of the incident in the UI.
    pub generation: u64,
    /// What to open.
    pub opening: Opening,
    /// Whether to go on as the inputs grow.
    pub follow: bool,
    /// Where incidents are saved; none where there is no home.
    pub store: Option<Store>,
    /// The playbooks.
    pub library: Arc<Library>,
    /// Where messages go.
    pub sender: Sender<Msg>,
    /// Whether anybody waits.
    pub(super) wanted: Wanted,
}

impl Engine {
    /// Serves until nobody waits.
    pub fn serve(self, jobs: &Receiver<Job>) {
        // Before the first reading: what is written meanwhile is read once more instead of never.
        let mut followers: Vec<Follower> =
            if self.follow { self.specs().iter().filter_map(follower).collect() } else { Vec::new() };
        let begun = Instant::now();
        let Some(mut open) = self.open() else { return };
        // Reading takes longer as the file grows; it never takes more than a quarter of the time.
        let mut took = begun.elapsed();
        loop {
            let pause = if followers.is_empty() { Duration::from_secs(3600) } else { POLL.max(took * 3) };
            let begun = Instant::now();
            match jobs.recv_timeout(pause) {
                Ok(job) => self.work(&mut open, job),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let changed = followers.iter_mut().fold(false, |changed, one| drain(one) | changed);
                    if changed && !self.wanted.is_withdrawn() {
                        let begun = Instant::now();
                        self.read_again(&mut open);
                        took = begun.elapsed();
                    }
                }
            }
            if self.wanted.is_withdrawn() {
                return;
            }
            // A job may take the time of a look at the files.
            took = took.max(begun.elapsed().saturating_sub(pause));
        }
    }

    fn specs(&self) -> Vec<InputSpec> {
        match &self.opening {
            Opening::Named(specs) => specs.clone(),
            Opening::Saved(_) => Vec::new(),
        }
    }

    fn open(&self) -> Option<Open> {
        match &self.opening {
            Opening::Named(specs) => {
                let session = self.read(specs, Session::with_library(Arc::clone(&self.library)))?;
                let mut open = Open { session, kept: None, specs: specs.clone(), summary: String::new() };
                self.publish(&mut open);
                Some(open)
            }
            Opening::Saved(id) => {
                let resumed =
                    self.store.as_ref().map(|store| store::resume(store, id, Arc::clone(&self.library)));
                match resumed {
                    Some(Ok(resumed)) => {
                        for note in &resumed.notes {
                            self.send(Msg::Told(crate::text::escape(note).to_string()));
                        }
                        let kept = Some(resumed.incident);
                        let mut open = Open {
                            session: resumed.session,
                            kept,
                            specs: Vec::new(),
                            summary: String::new(),
                        };
                        self.publish(&mut open);
                        Some(open)
                    }
                    Some(Err(error)) => self.fail(error.to_string()),
                    None => self.fail("there is no home folder in which incidents are kept".to_owned()),
                }
            }
        }
    }

    fn fail(&self, why: String) -> Option<Open> {
        let why = crate::text::escape(&why).to_string();
        self.send(Msg::Failed { generation: self.generation, why });
        None
    }

    /// Opens inputs and reads them; none where there is nothing to read or nobody waits any more.
    fn read(&self, specs: &[InputSpec], mut session: Session) -> Option<Session> {
        let loaded = source::load(specs, Limits::default());
        if self.wanted.is_withdrawn() {
            return None;
        }
        if loaded.inputs.is_empty() {
            let why: Vec<String> = loaded
                .left_out
                .iter()
                .map(|left| format!("{} {}", left.path.unescaped(), left.why))
                .collect();
            let why = if why.is_empty() { "there is nothing to read".to_owned() } else { why.join("; ") };
            self.fail(why);
            return None;
        }
        let sources = loaded.inputs.iter().map(shown::Source::of).collect();
        self.send(Msg::Loaded { generation: self.generation, sources });
        session.apply(session::Input::Loaded(loaded));
        (!self.wanted.is_withdrawn()).then_some(session)
    }

    fn work(&self, open: &mut Open, job: Job) {
        match job {
            Job::Add(specs) => {
                let loaded = source::load(&specs, Limits::default());
                if loaded.inputs.is_empty() {
                    let why: Vec<String> =
                        loaded.left_out.iter().map(|left| format!("{} {}", left.path, left.why)).collect();
                    self.send(Msg::Told(format!("Nothing added: {}", crate::text::escape(&why.join("; ")))));
                    // The screen waits for an answer.
                    return self.show(open);
                }
                open.specs.extend(specs);
                open.session.apply(session::Input::Loaded(loaded));
                self.publish(open);
            }
            Job::Again => self.read_again(open),
            Job::Apply(input) => {
                let effects = open.session.apply(*input);
                let save = effects.contains(&Effect::Save);
                if save {
                    self.publish(open)
                } else {
                    self.show(open)
                }
                self.send(Msg::Effects { generation: self.generation, effects });
            }
        }
    }

    /// Reads all inputs anew; what happened in the walk stays.
    fn read_again(&self, open: &mut Open) {
        if open.specs.is_empty() {
            return self.show(open);
        }
        let record = open.session.record().clone();
        if let Some(mut session) = self.read(&open.specs, Session::with_library(Arc::clone(&self.library))) {
            session.apply(session::Input::Walk(WalkInput::Restore(Box::new(record))));
            open.session = session;
            self.publish(open);
        }
    }

    /// Shows the incident, then saves it where its conclusion is new.
    fn publish(&self, open: &mut Open) {
        self.show(open);
        if self.wanted.is_withdrawn() {
            return;
        }
        // A followed log changes every second; its conclusion doesn't.
        let summary = open.session.report().verdict.summary.clone();
        if self.follow && open.kept.is_some() && summary == open.summary {
            return;
        }
        open.summary = summary;
        match self.save(open) {
            Ok(Some(id)) => self.send(Msg::Kept { generation: self.generation, id }),
            Ok(None) => {}
            Err(error) => self.send(Msg::Told(crate::text::escape(&error.to_string()).to_string())),
        }
    }

    fn show(&self, open: &Open) {
        let analysis = Box::new(shown::analysis(&open.session));
        let sources = shown::sources(&open.session);
        self.send(Msg::Analysed { generation: self.generation, sources, analysis });
    }

    fn save(&self, open: &mut Open) -> crate::error::Result<Option<String>> {
        let Some(store) = &self.store else { return Ok(None) };
        let now = format!("{:.0}", jiff::Timestamp::now());
        let kept = match &mut open.kept {
            Some(kept) => kept,
            none => none.insert(store.create(&now)?),
        };
        kept.save(&open.session, &now)?;
        Ok(Some(kept.id().to_owned()))
    }

    fn send(&self, msg: Msg) {
        // The UI is gone where this fails, and the next look at the jobs ends the thread.
        let _ = self.sender.send(msg);
    }
}

/// An incident that is open.
struct Open {
    session: Session,
    kept: Option<store::Incident>,
    specs: Vec<InputSpec>,
    summary: String,
}

/// Standard input and pastes don't grow.
fn follower(spec: &InputSpec) -> Option<Follower> {
    let InputSpec::Path(path) = spec else { return None };
    let len = path.metadata().ok().filter(std::fs::Metadata::is_file).map_or(0, |metadata| metadata.len());
    Some(Follower::from_offset(path, len))
}

/// Whether anything changed since the last look.
fn drain(follower: &mut Follower) -> bool {
    let mut changed = false;
    while let Ok(Change::Appended(_) | Change::Restarted(_)) = follower.poll() {
        changed = true;
    }
    changed
}
