//! `warpfault playbook run`: a walk with its answers given beforehand.
//!
//! In: a library, inputs, answers, the kinds of step that get a yes. Out: the walk on standard output, live output of
//! commands on standard error. A command runs only with `--yes-to run` or, where it is this program's own probe,
//! `--yes-to probe`; Ctrl-C ends it with everything that it started.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::effect::{self, RunEvent};
use crate::error::{Error, ErrorKind, Result};
use crate::playbook::walk::{Act, End, WalkStep, need};
use crate::playbook::{Library, StepKind, StepRef, StepState};
use crate::session::{Approved, Effect, Input, Session, WalkInput};
use crate::source::{InputSpec, Limits, load};
use crate::store::{Incident, Store, signature};
use crate::text::escape;

use super::super::output;
use super::{RunArgs, page};

/// What was decided beforehand.
struct Plan {
    answers: BTreeMap<String, String>,
    choices: BTreeMap<String, String>,
    feeds: BTreeMap<String, String>,
    skips: BTreeSet<String>,
    yes: BTreeSet<StepKind>,
    deadline_s: Option<u64>,
}

impl Plan {
    fn read(args: &RunArgs) -> Result<Self> {
        let mut yes = BTreeSet::new();
        for kind in &args.yes_to {
            yes.insert(StepKind::from_name(kind).ok_or_else(|| {
                let known: Vec<&str> = StepKind::ALL.into_iter().map(StepKind::name).collect();
                Error::new(ErrorKind::Usage, format!("`{kind}` is no kind of step"))
                    .hint(format!("kinds are {}", known.join(", ")))
            })?);
        }
        Ok(Self {
            answers: pairs("--answer", &args.answer)?,
            choices: pairs("--choose", &args.choose)?,
            feeds: pairs("--feed", &args.feed)?,
            skips: args.skip.iter().cloned().collect(),
            yes,
            deadline_s: args.deadline,
        })
    }

    /// A step that no playbook has is a slip of the pen, and would pass unnoticed.
    fn check(&self, library: &Library) -> Result<()> {
        let is_step = |id: &str| {
            library.playbooks().iter().any(|playbook| playbook.steps.iter().any(|step| step.id == id))
        };
        let named = [("--answer", &self.answers), ("--choose", &self.choices), ("--feed", &self.feeds)];
        let flags = named.into_iter().flat_map(|(flag, steps)| steps.keys().map(move |step| (flag, step)));
        for (flag, step) in flags.chain(self.skips.iter().map(|step| ("--skip", step))) {
            if !is_step(step) {
                return Err(Error::new(
                    ErrorKind::Usage,
                    format!("{flag}: no playbook has a step called {step}"),
                )
                .hint("the steps of one: warpfault playbook show ID"));
            }
        }
        Ok(())
    }
}

fn pairs(flag: &str, texts: &[String]) -> Result<BTreeMap<String, String>> {
    texts
        .iter()
        .map(|text| {
            text.split_once('=')
                .map(|(step, value)| (step.to_owned(), value.to_owned()))
                .ok_or_else(|| Error::new(ErrorKind::Usage, format!("{flag} {text}: expected STEP=VALUE")))
        })
        .collect()
}

/// A walk that is being made.
struct Walker {
    session: Session,
    plan: Plan,
    incident: Option<Incident>,
    scratch: Option<tempfile::TempDir>,
    done: BTreeSet<StepRef>,
    /// Whether somebody wanted it to end.
    interrupted: bool,
}

/// Walks.
pub(super) fn run(library: Library, args: &RunArgs) -> Result<u8> {
    let plan = Plan::read(args)?;
    plan.check(&library)?;
    if args.id != "auto" && library.get(&args.id).is_none() {
        return Err(Error::new(ErrorKind::Usage, format!("no playbook is called {}", args.id))
            .hint("the ids: warpfault playbook list"));
    }
    let mut session = Session::with_library(Arc::new(library));
    let specs: Vec<InputSpec> = args.input.iter().map(|input| InputSpec::from_argument(input)).collect();
    session.apply(Input::Loaded(load(&specs, Limits::default())));
    for note in &session.report().diagnostics {
        output::tell(&note.message);
    }
    let incident = if args.no_save { None } else { begin(&session) };
    let mut walker =
        Walker { session, plan, incident, scratch: None, done: BTreeSet::new(), interrupted: false };
    walker.save();
    if args.id != "auto" {
        walker.give(WalkInput::Start(args.id.clone()))?;
    } else if walker.session.walk().playbook.is_none() {
        return Err(Error::new(ErrorKind::Usage, "no playbook serves this verdict")
            .hint("name one: warpfault playbook list"));
    }
    walker.go()?;
    output::print(&page::walk_page(walker.session.walk()))?;
    Ok(walker.status())
}

/// Begins to save. An incident that can't be saved is still walked.
fn begin(session: &Session) -> Option<Incident> {
    let store = match Store::of_user() {
        Ok(store) => store,
        Err(error) => {
            output::tell(&error.to_string());
            return None;
        }
    };
    if let Some(signature) = signature::of(session.verdict())
        && let Ok(seen) = store.seen_before(&signature.hash, None)
        && let Some(last) = seen.first()
    {
        let conclusion = last.cause_summary.as_ref().unwrap_or(&last.summary);
        output::tell(&format!("seen before, in incident {}: {}", last.id, escape(conclusion)));
    }
    match store.create(&effect::now()) {
        Ok(incident) => {
            output::tell(&format!("saved as incident {}", incident.id()));
            Some(incident)
        }
        Err(error) => {
            output::tell(&format!("{}; the walk is not saved", escape(&error.to_string())));
            None
        }
    }
}

impl Walker {
    fn go(&mut self) -> Result<()> {
        loop {
            let walk = self.session.walk();
            if matches!(walk.end, Some(End::Repeats(_))) {
                return Ok(());
            }
            // An advice without outcomes and a repro never wait, and may still be asked for.
            let open = walk.steps.iter().find(|step| {
                step.state == StepState::Open
                    && !self.done.contains(&step.at)
                    && self.plan.yes.contains(&step.kind)
            });
            let Some(step) = open
                .filter(|step| matches!(step.kind, StepKind::Apply | StepKind::Repro))
                .or_else(|| walk.current())
                .cloned()
            else {
                return Ok(());
            };
            if !self.done.insert(step.at.clone()) {
                return Ok(());
            }
            self.step(&step)?;
            if self.interrupted {
                output::tell("interrupted: the steps after this one were not taken");
                return Ok(());
            }
        }
    }

    fn step(&mut self, step: &WalkStep) -> Result<()> {
        let (at, id) = (step.at.clone(), step.at.step.as_str());
        if self.plan.skips.contains(id) {
            return self.give(WalkInput::Skip(at));
        }
        if let Some(outcome) = self.plan.choices.get(id).cloned() {
            return self.give(WalkInput::Choose { step: at, outcome });
        }
        if let Some(file) = self.plan.feeds.get(id) {
            let output = load(&[InputSpec::Path(PathBuf::from(file))], Limits::default());
            if let (true, Some(left)) = (output.inputs.is_empty(), output.left_out.first()) {
                return Err(Error::new(ErrorKind::Input, format!("--feed {id}: {} {}", left.path, left.why)));
            }
            return self.give(WalkInput::Feed { step: at, output });
        }
        if let Some(typed) = self.plan.answers.get(id).cloned() {
            return self.give(WalkInput::Answer { step: at, typed });
        }
        match &step.act {
            Act::Run(prepared) if self.plan.yes.contains(&step.kind) => {
                if prepared.needs.is_empty() {
                    return self.run_step(step);
                }
                output::tell(&format!(
                    "step {id} can't run: {} is not known",
                    escape(&need::list(&prepared.needs))
                ));
            }
            Act::Run(_) => {
                output::tell(&format!("step {id} was not run: it needs --yes-to {}", step.kind.name()));
            }
            Act::Ask(_) => output::tell(&format!("step {id} was not answered: --answer {id}=…")),
            Act::Apply { .. } if self.plan.yes.contains(&StepKind::Apply) && step.outcomes.is_empty() => {
                return self.give(WalkInput::Applied(at));
            }
            _ => {}
        }
        self.give(WalkInput::Skip(at))
    }

    /// Shows the command, which got its yes on the command line, and runs it.
    fn run_step(&mut self, step: &WalkStep) -> Result<()> {
        let edited = self.plan.deadline_s.and_then(|deadline_s| match &step.act {
            Act::Run(prepared) => Some(crate::session::Edited {
                command: prepared.command.clone(),
                environment: prepared.environment.clone(),
                deadline_s,
            }),
            _ => None,
        });
        let effects = self.apply(WalkInput::Propose { step: step.at.clone(), edited });
        for effect in &effects {
            match effect {
                Effect::Confirm(proposal) => {
                    output::tell(&format!("runs: {} (cost: {})", proposal.text, proposal.cost));
                    if proposal.from_input {
                        output::tell("words of this command come from the input");
                    }
                }
                Effect::Refuse(why) => return Err(refused(why)),
                _ => {}
            }
        }
        let effects = self.apply(WalkInput::Confirm(true));
        self.save();
        for effect in effects {
            if let Effect::Run(approved) = effect {
                self.carry(*approved)?;
            }
        }
        Ok(())
    }

    fn carry(&mut self, approved: Approved) -> Result<()> {
        let log = self.log_for(&approved.proposal().step)?;
        let stop = Arc::new(AtomicBool::new(false));
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let keys =
            [SIGINT, SIGTERM, SIGHUP].map(|signal| signal_hook::flag::register(signal, Arc::clone(&stop)));
        let run = effect::spawn(approved, log);
        for event in &run.events {
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                run.stop();
            }
            match event {
                RunEvent::Output(chunk) => output::live(&chunk),
                RunEvent::Tick => {}
                RunEvent::Ended { step, ran, output } => {
                    self.give(WalkInput::Ended { step, ran, output })?;
                    break;
                }
            }
        }
        for key in keys.into_iter().flatten() {
            signal_hook::low_level::unregister(key);
        }
        self.interrupted = stop.load(std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn log_for(&mut self, step: &StepRef) -> Result<PathBuf> {
        if let Some(incident) = &self.incident {
            return Ok(incident.run_log(step));
        }
        if self.scratch.is_none() {
            let folder = tempfile::tempdir().map_err(|error| {
                Error::new(ErrorKind::Output, "a temporary folder can't be made").because(error)
            })?;
            self.scratch = Some(folder);
        }
        let folder = self.scratch.as_ref().map(|folder| folder.path().to_path_buf()).unwrap_or_default();
        Ok(folder.join(format!("{}-{}.log", step.playbook, step.step)))
    }

    fn apply(&mut self, input: WalkInput) -> Vec<Effect> {
        self.session.set_stamp(crate::effect::stamp());
        self.session.apply(Input::Walk(input))
    }

    /// Applies an input that must not be refused, and saves.
    fn give(&mut self, input: WalkInput) -> Result<()> {
        for effect in self.apply(input) {
            match effect {
                Effect::Refuse(why) => return Err(refused(&why)),
                Effect::Save => self.save(),
                _ => {}
            }
        }
        Ok(())
    }

    fn save(&mut self) {
        if let Some(incident) = &mut self.incident
            && let Err(error) = incident.save(&self.session, &effect::now())
        {
            output::tell(&escape(&error.to_string()).to_string());
        }
    }

    fn status(&self) -> u8 {
        if self.interrupted {
            return 3;
        }
        let walk = self.session.walk();
        let open = walk.steps.iter().any(|step| step.state == StepState::Skipped);
        if walk.end == Some(End::Reached) && !open { 0 } else { 3 }
    }
}

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::Usage, why)
}
