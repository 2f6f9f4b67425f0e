//! The walk inside an incident: what the engineer does at a step, and what becomes of it.
//!
//! In: [`WalkInput`]s. Out: the history, the walk, and effects. Nothing runs without a yes: only [`Approved`] commands
//! leave the engine, and only a yes makes one: here, or on the command line.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::playbook::facts;
use crate::playbook::record::{Answer, Ended, Happened, Ran, Record, Stamp, StepRef};
use crate::playbook::schema::{Action, Step};
use crate::playbook::walk::{Act, Fill, Prepared, Walk, Walker, command_text, need};
use crate::playbook::{Known, Library, StepKind};
use crate::read::event::{Data, EnvironmentFact, Event, Origin, Span};
use crate::source::{self, InputId};
use crate::verdict::cause::kernel_answer;

use super::{Effect, Session, handing_over, probing};

/// What the engineer does in a walk.
#[derive(Debug)]
pub enum WalkInput {
    /// Opens a playbook, by id.
    Start(String),
    /// Answers a question, as typed.
    Answer {
        /// The step.
        step: StepRef,
        /// What was typed.
        typed: String,
    },
    /// Picks an outcome, by id.
    Choose {
        /// The step.
        step: StepRef,
        /// The outcome.
        outcome: String,
    },
    /// Did what an `apply` step says.
    Applied(StepRef),
    /// Passes a step by.
    Skip(StepRef),
    /// Opens a step again.
    Reopen(StepRef),
    /// Wants a step's command run, perhaps edited; the engine asks for a yes.
    Propose {
        /// The step.
        step: StepRef,
        /// The command in place of the playbook's; none to take that one.
        edited: Option<Edited>,
    },
    /// Says yes or no to the command that was proposed last.
    Confirm(bool),
    /// Wants the running command and everything that it started ended.
    Stop,
    /// A command ended; `output` holds its log.
    Ended {
        /// The step.
        step: StepRef,
        /// How it ended.
        ran: Ran,
        /// Its output, loaded; empty where it printed nothing.
        output: source::Loaded,
    },
    /// Brings the log of a step that somebody ran elsewhere.
    Feed {
        /// The step.
        step: StepRef,
        /// The log, loaded.
        output: source::Loaded,
    },
    /// Takes up the history of a saved incident, whose inputs are loaded already.
    Restore(Box<Record>),
}

/// A command as the engineer edited it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// Words, the program first.
    pub command: Vec<String>,
    /// Variables to set.
    pub environment: Vec<(String, String)>,
    /// Most seconds that it may take.
    pub deadline_s: u64,
}

/// A command that waits for a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The step.
    pub step: StepRef,
    /// The step's title.
    pub title: String,
    /// Words, the program first; as they are, not escaped.
    pub command: Vec<String>,
    /// Variables to set.
    pub environment: Vec<(String, String)>,
    /// Most seconds that it may take.
    pub deadline_s: u64,
    /// The whole command, escaped, to be shown before the yes.
    pub text: String,
    /// What it costs.
    pub cost: String,
    /// Whether words of it come from the inputs: somebody else wrote them.
    pub from_input: bool,
}

/// A command that got its yes. Only the engine makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved(Proposal);

impl Approved {
    /// A command that got its yes before it was known here: `--yes`, or an answer at a prompt.
    #[must_use]
    pub fn on_the_command_line(proposal: Proposal) -> Self {
        Self(proposal)
    }

    /// The command.
    #[must_use]
    pub fn proposal(&self) -> &Proposal {
        &self.0
    }
}

/// The walk of a session.
#[derive(Debug)]
pub(super) struct Walking {
    pub library: Arc<Library>,
    pub record: Record,
    pub walk: Walk,
    pub unavailable: Vec<StepKind>,
    /// When and who, for what is done next.
    pub stamp: Stamp,
    proposal: Option<Proposal>,
    /// The probe step's command, and how much evidence there was when it was worked out.
    probe: Option<(usize, probing::Plan)>,
}

impl Walking {
    pub fn new(library: Arc<Library>) -> Self {
        Self {
            library,
            record: Record::default(),
            walk: Walk::default(),
            unavailable: Vec::new(),
            stamp: Stamp::default(),
            proposal: None,
            probe: None,
        }
    }

    fn add(&mut self, at: StepRef, what: Happened) {
        self.record.add_stamped(at, what, self.stamp.clone());
    }

    fn step(&self, at: &StepRef) -> Result<&Step, String> {
        let playbook = self
            .library
            .get(&at.playbook)
            .ok_or_else(|| format!("there is no playbook `{}`", at.playbook))?;
        playbook
            .step(&at.step)
            .map(|(_, step)| step)
            .ok_or_else(|| format!("playbook `{}` has no step `{}`", at.playbook, at.step))
    }
}

impl Session {
    /// Takes a step of the walk. The caller judges and builds the walk anew afterwards.
    pub(super) fn walk_input(&mut self, input: WalkInput) -> Vec<Effect> {
        let result = match input {
            WalkInput::Start(id) => self.start(id),
            WalkInput::Answer { step, typed } => self.answer(step, &typed),
            WalkInput::Choose { step, outcome } => self.choose(step, outcome),
            WalkInput::Applied(step) => self.note(step, Happened::Applied),
            WalkInput::Skip(step) => self.note(step, Happened::Skipped),
            WalkInput::Reopen(step) => self.note(step, Happened::Reopened),
            WalkInput::Propose { step, edited } => self.propose(step, edited),
            WalkInput::Confirm(yes) => self.confirm(yes),
            WalkInput::Stop => self.stop(),
            WalkInput::Ended { step, ran, output } => self.ended(step, ran, output),
            WalkInput::Feed { step, output } => self.feed(step, output),
            WalkInput::Restore(record) => self.restore(*record),
        };
        result.unwrap_or_else(|why| vec![Effect::Refuse(why)])
    }

    fn start(&mut self, id: String) -> Result<Vec<Effect>, String> {
        if self.walking.library.get(&id).is_none_or(|playbook| playbook.steps.is_empty()) {
            return Err(format!("there is no playbook `{id}` with steps"));
        }
        self.walking.record.start = Some(id);
        Ok(vec![Effect::Save])
    }

    /// The walk stays with its playbook from the first thing that the engineer does, though the verdict may move.
    fn settle(&mut self) {
        if self.walking.record.start.is_none() {
            self.walking.record.start.clone_from(&self.walking.walk.playbook);
        }
    }

    fn note(&mut self, at: StepRef, what: Happened) -> Result<Vec<Effect>, String> {
        self.walking.step(&at)?;
        if self.walking.record.running() == Some(&at) {
            return Err("its command is running; end it first".to_owned());
        }
        self.settle();
        self.walking.add(at, what);
        Ok(vec![Effect::Save])
    }

    fn answer(&mut self, at: StepRef, typed: &str) -> Result<Vec<Effect>, String> {
        let step = self.walking.step(&at)?;
        let Action::Ask(question) = &step.action else {
            return Err(format!("step `{}` asks nothing", at.step));
        };
        let answer = Answer::read(question, typed)?;
        self.note(at, Happened::Answered(answer))
    }

    fn choose(&mut self, at: StepRef, id: String) -> Result<Vec<Effect>, String> {
        let step = self.walking.step(&at)?;
        if !step.outcomes.iter().any(|outcome| outcome.id == id) {
            let known: Vec<&str> = step.outcomes.iter().map(|outcome| outcome.id.as_str()).collect();
            return Err(format!("step `{}` has no outcome `{id}`; it has {}", at.step, known.join(", ")));
        }
        self.note(at, Happened::Chose(id))
    }

    fn propose(&mut self, at: StepRef, edited: Option<Edited>) -> Result<Vec<Effect>, String> {
        if let Some(running) = self.walking.record.running() {
            return Err(format!("the command of step `{}` is still running", running.step));
        }
        let shown =
            self.walking.walk.step(&at).ok_or_else(|| format!("the walk has no step `{}`", at.step))?;
        let Act::Run(prepared) = &shown.act else {
            return Err(format!("step `{}` runs no command", at.step));
        };
        let proposal = proposal(&at, shown.title.clone(), shown.cost.clone(), prepared, edited)?;
        self.walking.proposal = Some(proposal.clone());
        Ok(vec![Effect::Confirm(Box::new(proposal))])
    }

    fn confirm(&mut self, yes: bool) -> Result<Vec<Effect>, String> {
        let proposal = self.walking.proposal.take().ok_or("no command waits for a yes")?;
        if !yes {
            return Ok(Vec::new());
        }
        self.note(proposal.step.clone(), Happened::Started)?;
        Ok(vec![Effect::Save, Effect::Run(Box::new(Approved(proposal)))])
    }

    fn stop(&mut self) -> Result<Vec<Effect>, String> {
        match self.walking.record.running() {
            Some(_) => Ok(vec![Effect::EndRun]),
            None => Err("no command is running".to_owned()),
        }
    }

    fn ended(&mut self, at: StepRef, mut ran: Ran, output: source::Loaded) -> Result<Vec<Effect>, String> {
        self.walking.step(&at)?;
        ran.input = self.take_rerun(output);
        self.settle();
        self.walking.add(at, Happened::Ran(ran));
        Ok(vec![Effect::Save])
    }

    fn feed(&mut self, at: StepRef, output: source::Loaded) -> Result<Vec<Effect>, String> {
        let step = self.walking.step(&at)?;
        if !matches!(step.kind, StepKind::Run | StepKind::Probe) {
            return Err(format!("step `{}` runs no command whose log could be given", at.step));
        }
        let settings = match self.walking.walk.step(&at).map(|shown| &shown.act) {
            Some(Act::Run(prepared)) => prepared.environment.clone(),
            _ => Vec::new(),
        };
        let Some(input) = self.take_rerun(output) else {
            return Err("the log could not be read".to_owned());
        };
        self.say_settings(InputId(input), &settings);
        let ran = Ran {
            command: Vec::new(),
            environment: settings,
            ended: Ended::Elsewhere,
            duration_ms: 0,
            output_bytes: self.case.inputs().get(input as usize).map_or(0, |input| input.bytes),
            log: self.case.inputs().get(input as usize).map(|input| input.path.clone()),
            input: Some(input),
        };
        self.settle();
        self.walking.add(at, Happened::Ran(ran));
        Ok(vec![Effect::Save])
    }

    /// A log that doesn't hold its own command: the engineer's word says which switches were on.
    fn say_settings(&mut self, input: InputId, settings: &[(String, String)]) {
        let has_command = self
            .case
            .events()
            .any(|(_, event)| event.span.input == input && matches!(event.data, Data::Command(_)));
        if has_command {
            return;
        }
        for (name, value) in settings {
            self.case.add_answer(Event {
                span: Span { input, line: 0, byte: 0, lines: 0 },
                origin: Origin::default(),
                data: Data::Environment(EnvironmentFact { name: name.clone(), value: value.clone() }),
                text: format!("{name}={value}"),
            });
        }
    }

    /// Takes the output of a rerun; its position among the inputs.
    fn take_rerun(&mut self, output: source::Loaded) -> Option<u32> {
        let first = self.inputs.len();
        self.take_loaded(output);
        for at in first..self.inputs.len() {
            if let Ok(at) = u32::try_from(at) {
                self.case.mark_rerun(InputId(at));
            }
        }
        (self.inputs.len() > first).then(|| u32::try_from(first).ok()).flatten()
    }

    fn restore(&mut self, mut record: Record) -> Result<Vec<Effect>, String> {
        record.forget_running();
        for entry in &record.history {
            let Happened::Ran(ran) = &entry.what else { continue };
            let Some(input) = ran.input.filter(|input| (*input as usize) < self.inputs.len()) else {
                continue;
            };
            self.case.mark_rerun(InputId(input));
            if ran.ended == Ended::Elsewhere {
                let settings = ran.environment.clone();
                self.say_settings(InputId(input), &settings);
            }
        }
        self.walking.record = record;
        Ok(vec![Effect::Save])
    }

    /// Whether the walk is through a playbook with a probe step and something compiled is among the inputs.
    fn has_probe_step(&self, evidence: &Known) -> bool {
        if evidence.get("facts.triton_cache") != Some(&Known::Bool(true)) {
            return false;
        }
        let opened = self.walking.record.start.as_deref().and_then(|id| self.walking.library.get(id));
        let chosen = opened.or_else(|| {
            self.walking.library.serving(&self.verdict, &Arc::new(evidence.clone())).first().copied()
        });
        chosen.is_some_and(|playbook| playbook.steps.iter().any(is_probe))
    }

    /// Works the probe's command out where the evidence has grown: it asks the compiled kernels much.
    fn plan_probe(&mut self) {
        let known = self.case.evidence().len();
        if self.walking.probe.as_ref().is_none_or(|(at, _)| *at != known) {
            let plan = probing::plan(&self.case, &self.verdict, &self.inputs);
            self.walking.probe = Some((known, plan));
        }
    }

    /// What a run showed; of a probe or a repro that could not be made, why.
    fn run_facts(&self, at: &StepRef, ran: &Ran) -> Known {
        let mut known = facts::run(&self.case, &self.verdict, ran);
        let own = |step: &Step| matches!(step.kind, StepKind::Probe | StepKind::Repro);
        if self.walking.step(at).is_ok_and(own) {
            let output = ran.input.and_then(|input| self.inputs.get(input as usize));
            known.put_some("said", output.and_then(|output| probing::said(&output.bytes)));
        }
        known
    }

    /// A command of this program whose last run asked for options: that run's words, with what it asked for to be filled in.
    /// Where inputs came since, the command that names them all stands.
    fn after_run(&self, kind: StepKind, runs: &BTreeMap<StepRef, Known>, fresh: Prepared) -> Prepared {
        let last = self.walking.record.runs().filter(|(at, ran)| {
            !ran.command.is_empty() && self.walking.step(at).is_ok_and(|step| step.kind == kind)
        });
        let Some((at, ran)) = last.last() else { return fresh };
        let needs = match runs.get(at).and_then(|known| known.get("said")) {
            Some(Known::Text(said)) => need::asked_for(said),
            _ => Vec::new(),
        };
        let hole = |at: usize| fresh.needs.iter().any(|need| need.fill == Fill::Word(at));
        let newer =
            fresh.command.iter().enumerate().any(|(at, word)| !hole(at) && !ran.command.contains(word));
        if needs.is_empty() || newer {
            return fresh;
        }
        Prepared {
            text: command_text(&ran.environment, &ran.command),
            command: ran.command.clone(),
            environment: ran.environment.clone(),
            needs,
            ..fresh
        }
    }

    /// Computes the walk anew.
    pub(super) fn rebuild_walk(&mut self) {
        let compiled = self
            .compiled
            .get_or_init(|| self.verdict.view(&self.case).and_then(|view| kernel_answer::answer(&view)));
        let mut evidence = facts::evidence(&self.case, &self.verdict, compiled.as_ref());
        let runs: BTreeMap<StepRef, Known> =
            self.walking.record.runs().map(|(at, ran)| (at.clone(), self.run_facts(at, ran))).collect();
        let probes = self.has_probe_step(&evidence);
        if probes {
            self.plan_probe();
        }
        let probe = self.walking.probe.as_ref().map(|(_, plan)| plan).filter(|_| probes);
        evidence.put_some("launch.probe", probe.map(|plan| plan.words.as_str()));
        let tree = Arc::new(evidence);
        let serving = self.walking.library.serving(&self.verdict, &tree);
        let repro = self.after_run(StepKind::Repro, &runs, handing_over::command(&self.case, &self.inputs));
        let probe = probe.map(|plan| self.after_run(StepKind::Probe, &runs, plan.prepared.clone()));
        let walker = Walker {
            library: &self.walking.library,
            evidence: &tree,
            record: &self.walking.record,
            runs: &runs,
            probe: probe.as_ref(),
            repro: Some(&repro),
            unavailable: &self.walking.unavailable,
        };
        self.walking.walk = walker.walk(self.walking.record.start.as_deref(), &serving);
    }
}

fn is_probe(step: &Step) -> bool {
    step.kind == StepKind::Probe
}

fn proposal(
    at: &StepRef,
    title: String,
    cost: String,
    prepared: &Prepared,
    edited: Option<Edited>,
) -> Result<Proposal, String> {
    let from_input = prepared.from_input && edited.is_none();
    let Edited { command, environment, deadline_s } = match edited {
        Some(edited) => edited,
        None if prepared.needs.is_empty() => Edited {
            command: prepared.command.clone(),
            environment: prepared.environment.clone(),
            deadline_s: prepared.deadline_s,
        },
        None => {
            return Err(format!(
                "the command is not complete. It lacks {}. Fill it in or edit it, then run it",
                need::list(&prepared.needs)
            ));
        }
    };
    if command.first().is_none_or(String::is_empty) {
        return Err("the command is empty".to_owned());
    }
    let words = environment.iter().flat_map(|(name, value)| [name, value]).chain(&command);
    if words.into_iter().any(|word| word.contains('\0')) {
        return Err("a word of the command holds a NUL byte: no program can be given that".to_owned());
    }
    let text = command_text(&environment, &command);
    Ok(Proposal {
        step: at.clone(),
        title,
        command,
        environment,
        deadline_s: deadline_s.max(1),
        text,
        cost,
        from_input,
    })
}
