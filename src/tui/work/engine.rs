//! The engine on its thread: an incident from its opening to its last change, saved after each.
//!
//! In: what to open, then jobs. Out: messages with the report as it stands, and the output of a step's command. The thread
//! ends when nobody waits for it any more; inside one reading it can't be stopped, and that reading's answer is then dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, never, select};

use crate::effect::{self, RunEvent, RunHandle};
use crate::playbook::record::{Ended, Happened, Ran};
use crate::playbook::{Library, StepRef};
use crate::session::{self, Approved, Effect, Session, WalkInput};
use crate::source::{self, Change, Follower, InputSpec, Limits};
use crate::store::{self, Store};
use crate::tui::msg::{Msg, Opening};
use crate::tui::source as shown;

use super::Wanted;

/// How often a followed file is looked at.
const POLL: Duration = Duration::from_millis(250);

/// Chunks of output that may wait for the screen.
const LIVE_LIMIT: usize = 256;
/// How long the end of a command is waited for when the UI is left.
const LAST_WORDS: Duration = Duration::from_secs(6);

/// Something to do with the incident that is open.
#[derive(Debug)]
pub enum Job {
    /// Add inputs.
    Add(Vec<InputSpec>),
    /// Read the inputs once more.
    Again,
    /// Tell the engine something.
    Apply(Box<session::Input>),
    /// Take the log of a step's command that ran elsewhere.
    Feed(StepRef, InputSpec),
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
        if self.follow && !self.wait_for_files(jobs) {
            return;
        }
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
            let output = open.run.as_ref().map_or_else(never, |run| run.events.clone());
            select! {
                recv(jobs) -> job => match job {
                    Ok(job) => self.work(&mut open, job),
                    Err(_) => return self.close(open),
                },
                recv(output) -> event => match event {
                    Ok(event) => self.on_run(&mut open, event),
                    // Its thread died: there is nothing more to wait for.
                    Err(_) => open.run = None,
                },
                default(pause) => {
                    let changed = followers.iter_mut().fold(false, |changed, one| drain(one) | changed);
                    // Reading anew builds a new session, which knows nothing of a command that runs.
                    if changed && open.run.is_none() && !self.wanted.is_withdrawn() {
                        let begun = Instant::now();
                        self.read_again(&mut open);
                        took = begun.elapsed();
                    }
                }
            }
            if self.wanted.is_withdrawn() {
                return self.close(open);
            }
            // A job may take the time of a look at the files.
            took = took.max(begun.elapsed().saturating_sub(pause));
        }
    }

    /// Waits for a file to follow that is still to be written, as `tail -F` does. Returns false where nobody waits any more.
    fn wait_for_files(&self, jobs: &Receiver<Job>) -> bool {
        let specs = self.specs();
        let missing = |spec: &InputSpec| match spec {
            InputSpec::Path(path) if !path.exists() => Some(path.clone()),
            _ => None,
        };
        let mut told = false;
        while let Some(path) = specs.iter().find_map(missing) {
            if self.wanted.is_withdrawn() {
                return false;
            }
            if !told {
                let name = crate::text::escape(&path.to_string_lossy()).to_string();
                self.send(Msg::Told(format!("{name} is not there yet: waiting for it.")));
                told = true;
            }
            if matches!(jobs.recv_timeout(POLL), Err(RecvTimeoutError::Disconnected)) {
                return false;
            }
        }
        if told {
            self.send(Msg::Told("It is there: followed from now on.".to_owned()));
        }
        true
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
                let mut open = Open::new(session, None, specs.clone());
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
                        let mut open = Open::new(resumed.session, kept, Vec::new());
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
        let progress = session.progress();
        self.send(Msg::Loaded { generation: self.generation, sources, progress });
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
            Job::Again if open.run.is_some() => {
                self.send(Msg::Told(
                    "A command is running: the inputs are read once more when it ended.".into(),
                ));
                self.show(open);
            }
            Job::Again => self.read_again(open),
            Job::Apply(input) => self.apply(open, *input),
            Job::Feed(step, spec) => {
                let typed = match &spec {
                    InputSpec::Path(path) => path.to_string_lossy().into_owned(),
                    _ => String::new(),
                };
                let output = source::load(&[spec], Limits::default());
                if output.inputs.is_empty() {
                    let why: Vec<String> =
                        output.left_out.iter().map(|left| format!("{} {}", left.path, left.why)).collect();
                    let why = crate::text::escape(&why.join("; ")).to_string();
                    self.show(open);
                    self.send(Msg::NotFed { generation: self.generation, step, typed, why });
                    return;
                }
                self.apply(open, session::Input::Walk(WalkInput::Feed { step, output }));
            }
        }
    }

    fn apply(&self, open: &mut Open, input: session::Input) {
        let before = open.session.report().verdict.summary.clone();
        open.session.set_stamp(crate::effect::stamp());
        let effects = open.session.apply(input);
        for effect in &effects {
            match effect {
                Effect::Run(approved) => self.start(open, (**approved).clone()),
                Effect::EndRun => {
                    if let Some(run) = &open.run {
                        run.stop();
                    }
                }
                _ => {}
            }
        }
        if effects.contains(&Effect::Save) {
            self.publish(open);
        } else {
            self.show(open);
        }
        self.tell_move(open, &before);
        self.send(Msg::Effects { generation: self.generation, effects });
    }

    /// A command that got its yes. Its log lies beside the incident, or in a folder that goes with the program.
    fn start(&self, open: &mut Open, approved: Approved) {
        let (step, deadline) = (approved.proposal().step.clone(), approved.proposal().deadline_s);
        let log = match (&open.kept, &open.scratch) {
            (Some(kept), _) => Ok(kept.run_log(&step)),
            (None, Some(folder)) => Ok(folder.path().join(format!("{}-{}.log", step.playbook, step.step))),
            (None, None) => tempfile::tempdir().map(|folder| {
                let log = folder.path().join(format!("{}-{}.log", step.playbook, step.step));
                open.scratch = Some(folder);
                log
            }),
        };
        match log {
            Ok(log) => {
                open.run = Some(effect::spawn(approved, log));
                let deadline = Duration::from_secs(deadline);
                self.send(Msg::Started { generation: self.generation, step, deadline });
            }
            Err(error) => {
                let why = format!("a temporary folder can't be made: {error}");
                let ran = Ran {
                    command: approved.proposal().command.clone(),
                    environment: approved.proposal().environment.clone(),
                    ended: Ended::NotStarted(why),
                    duration_ms: 0,
                    output_bytes: 0,
                    log: None,
                    input: None,
                };
                self.ended(open, step, ran, source::Loaded::default());
            }
        }
    }

    fn on_run(&self, open: &mut Open, event: RunEvent) {
        match event {
            // The log keeps everything: where the screen lags, chunks are dropped.
            RunEvent::Output(chunk) if self.sender.len() < LIVE_LIMIT => {
                self.send(Msg::Printed { generation: self.generation, chunk });
            }
            RunEvent::Output(_) | RunEvent::Tick => {}
            RunEvent::Ended { step, ran, output } => self.ended(open, step, ran, output),
        }
    }

    fn ended(&self, open: &mut Open, step: StepRef, ran: Ran, output: source::Loaded) {
        open.run = None;
        let before = open.session.report().verdict.summary.clone();
        let said = how_it_ended(&ran);
        open.session.set_stamp(crate::effect::stamp());
        open.session.apply(session::Input::Walk(WalkInput::Ended { step, ran, output }));
        self.publish(open);
        self.send(Msg::Ended { generation: self.generation, said });
        self.tell_move(open, &before);
    }

    fn tell_move(&self, open: &Open, before: &str) {
        let now = &open.session.report().verdict.summary;
        if now != before {
            self.send(Msg::Told(format!("The verdict moved: {}", now.replace('\n', " "))));
        }
    }

    /// Ends the command that runs, waits for its last words, and saves what it showed.
    fn close(&self, mut open: Open) {
        let Some(run) = open.run.take() else { return };
        run.stop();
        let until = Instant::now() + LAST_WORDS;
        while let Ok(event) = run.events.recv_deadline(until) {
            if let RunEvent::Ended { step, ran, output } = event {
                open.session.apply(session::Input::Walk(WalkInput::Ended { step, ran, output }));
                // Nobody can be told any more.
                let _ = self.save(&mut open);
                return;
            }
        }
    }

    /// Reads all inputs anew; what happened in the walk stays.
    fn read_again(&self, open: &mut Open) {
        if open.specs.is_empty() {
            return self.show(open);
        }
        let mut record = open.session.record().clone();
        if let Some(mut session) = self.read(&open.specs, Session::with_library(Arc::clone(&self.library))) {
            // What runs showed comes after the inputs, whose number may have changed.
            for entry in &mut record.history {
                let Happened::Ran(ran) = &mut entry.what else { continue };
                let first = session.inputs().len();
                if let Some(log) = ran.log.as_ref().filter(|_| ran.input.is_some()) {
                    let output = source::load(&[InputSpec::Path(log.into())], Limits::default());
                    session.apply(session::Input::Loaded(output));
                }
                let any = session.inputs().len() > first;
                ran.input = any.then(|| u32::try_from(first).ok()).flatten();
            }
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
        if !std::mem::replace(&mut open.looked, true) {
            self.look_back(open);
        }
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
        let now = effect::now();
        let kept = match &mut open.kept {
            Some(kept) => kept,
            none => none.insert(store.create(&now)?),
        };
        kept.save(&open.session, &now)?;
        Ok(Some(kept.id().to_owned()))
    }

    /// Whether the same crash was seen before.
    fn look_back(&self, open: &Open) {
        let but = open.kept.as_ref().map(|kept| kept.id().to_owned());
        let Some(signature) = store::signature::of(open.session.verdict()) else { return };
        let seen =
            self.store.as_ref().and_then(|store| store.seen_before(&signature.hash, but.as_deref()).ok());
        if let Some(last) = seen.as_ref().and_then(|seen| seen.first()) {
            // One line of a small terminal: `warpfault resume ID` has the rest.
            let cause =
                last.cause.as_deref().map_or("no cause named".to_owned(), |cause| cause.replace('_', " "));
            let said = format!("seen before: same class and place as {}, {cause}", last.id);
            self.send(Msg::Seen {
                generation: self.generation,
                said: crate::text::escape(&said).to_string(),
            });
        }
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
    /// The command of a step that runs.
    run: Option<RunHandle>,
    /// Where logs go that no incident keeps.
    scratch: Option<tempfile::TempDir>,
    /// Whether past incidents were looked through.
    looked: bool,
}

impl Open {
    fn new(session: Session, kept: Option<store::Incident>, specs: Vec<InputSpec>) -> Self {
        Self { session, kept, specs, summary: String::new(), run: None, scratch: None, looked: false }
    }
}

/// How a command ended, in a sentence.
fn how_it_ended(ran: &Ran) -> String {
    let after = crate::tui::view::units::duration(Duration::from_millis(ran.duration_ms));
    match &ran.ended {
        Ended::Exit(0) => format!("It ended without an error after {after}."),
        Ended::Exit(status) => format!("It ended with status {status} after {after}."),
        Ended::Signal(signal) => format!("Signal {signal} ended it after {after}."),
        Ended::Deadline => format!("It was ended at its deadline, after {after}."),
        Ended::Stopped => format!("It was ended by you, after {after}."),
        Ended::NotStarted(why) => format!("It could not be started: {}", crate::text::escape(why)),
        Ended::Elsewhere => "Its log was read.".to_owned(),
    }
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
