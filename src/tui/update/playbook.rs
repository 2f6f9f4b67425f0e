//! What the keys do in the playbook, and what the engine sends back.
//!
//! In: the model, keys, effects. Out: the walk's inputs for the engine, and the lists, lines and questions that a step
//! needs. It decides nothing about a step: which acts there are, the engine says.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::playbook::template::NOT_KNOWN;
use crate::playbook::walk::need::{self, Typed};
use crate::playbook::walk::{Act, Fill, Walk, WalkStep, shell_line};
use crate::playbook::{StepKind, StepRef, StepState};
use crate::session::{Edited, Effect, Input, Proposal, WalkInput};
use crate::source::InputSpec;
use crate::tui::keymap::{Action, Scope};
use crate::tui::model::{
    Choice, Form, Incident, Model, Overlay, Pane, Pick, PickFor, Prompt, PromptKind, Run,
};
use crate::tui::msg::Cmd;
use crate::tui::view::playbook::{self, Row};

use super::prompt;

/// The step under the cursor, where the playbook takes the keys.
pub fn step_in_focus(model: &Model) -> Option<&WalkStep> {
    let incident = model.incident.as_ref().filter(|incident| incident.pane == Pane::Playbook)?;
    match playbook::row(incident.analysis.as_ref()?, incident.row_of(Pane::Playbook))? {
        Row::Step(step) => Some(step),
        _ => None,
    }
}

/// Hands something on to the engine; the cursor goes where the walk goes.
pub(super) fn tell(model: &mut Model, input: WalkInput) -> Vec<Cmd> {
    if let Some(incident) = model.incident.as_mut() {
        incident.walk_moves = true;
    }
    vec![Cmd::Apply(Box::new(Input::Walk(input)))]
}

/// The step under the cursor, or a word about why nothing happens.
fn step_or_say(model: &mut Model) -> Option<WalkStep> {
    let step = step_in_focus(model).cloned();
    if step.is_none() {
        model.say("No step of the playbook is under the cursor.");
    }
    step
}

/// Does what the step wants.
pub fn act(model: &mut Model) -> Vec<Cmd> {
    match step_or_say(model) {
        Some(step) => act_on(model, step),
        None => Vec::new(),
    }
}

/// Does the repro step of the walk, wherever the cursor stands.
pub fn repro(model: &mut Model) -> Vec<Cmd> {
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    let Some(walk) = incident.walk() else {
        model.say("The input is still being read.");
        return Vec::new();
    };
    let is_repro = |step: &&WalkStep| step.kind == StepKind::Repro;
    let Some(step) = walk.steps.iter().find(is_repro).cloned() else {
        model.say("This playbook writes no repro. In a shell: warpfault repro INPUT... -o repro --kind KIND");
        return Vec::new();
    };
    let row = playbook::steps(walk).position(|other| other.at == step.at);
    incident.pane = Pane::Playbook;
    if let Some(row) = row {
        incident.set_row(Pane::Playbook, row);
    }
    act_on(model, step)
}

fn act_on(model: &mut Model, step: WalkStep) -> Vec<Cmd> {
    if step.state == StepState::Running {
        model.say(format!("It is running; {} ends it.", model.keymap.key(Action::EndRun)));
        return Vec::new();
    }
    match &step.act {
        Act::Run(prepared) if prepared.needs.is_empty() => {
            return tell(model, WalkInput::Propose { step: step.at, edited: None });
        }
        Act::Run(prepared) if prepared.needs.iter().any(|need| need.fill == Fill::Line) => {
            let needs = crate::text::escape(&need::list(&prepared.needs)).to_string();
            change(model);
            model.say(format!(
                "Not known from the inputs: {needs}. Fill it in; Enter shows the whole command."
            ));
        }
        Act::Run(prepared) => {
            let form = Form::new(step.at, step.title, (**prepared).clone());
            model.overlay = Some(Overlay::Form(Box::new(form)));
        }
        Act::Ask(asked) if asked.choices.is_empty() => {
            model.say(asked.text.clone());
            model.overlay = Some(Overlay::Prompt(Prompt::for_step(PromptKind::Answer, step.at, "")));
        }
        Act::Ask(asked) => {
            let choices = asked.choices.iter().map(|choice| Choice {
                id: choice.clone(),
                label: choice.clone(),
                meaning: String::new(),
            });
            pick(model, asked.text.clone(), PickFor::Answer(step.at.clone()), choices.collect());
        }
        Act::Apply { .. } if step.outcomes.is_empty() => return tell(model, WalkInput::Applied(step.at)),
        Act::Look if step.state == StepState::Answered => {
            model.say("The evidence has answered this step.");
        }
        Act::Room { unavailable: Some(why), .. } => model.say(format!("{}: {why}.", step.title)),
        Act::Apply { .. } | Act::Look | Act::Room { .. } => outcome(model),
    }
    Vec::new()
}

/// Passes the step by.
pub fn skip(model: &mut Model) -> Vec<Cmd> {
    match step_or_say(model) {
        Some(step) => tell(model, WalkInput::Skip(step.at)),
        None => Vec::new(),
    }
}

/// Opens the step again.
pub fn reopen(model: &mut Model) -> Vec<Cmd> {
    match step_or_say(model) {
        Some(step) if !matches!(step.state, StepState::Done | StepState::Skipped) => {
            model.say(format!("There is nothing to undo: this step is {}.", step.state.name()));
            Vec::new()
        }
        Some(step) => tell(model, WalkInput::Reopen(step.at)),
        None => Vec::new(),
    }
}

/// Lets the command be edited.
pub fn change(model: &mut Model) {
    let Some(step) = step_or_say(model) else { return };
    let Act::Run(prepared) = &step.act else {
        return model.say("This step runs no command.");
    };
    // What can't be quoted can't be edited as a line either.
    let line = shell_line(&prepared.environment, &prepared.command).unwrap_or_default();
    edit(model, step.at, &line);
}

pub(super) fn edit(model: &mut Model, step: StepRef, line: &str) {
    model.overlay = Some(Overlay::Prompt(Prompt::for_step(PromptKind::Edit, step, line)));
}

/// Asks which outcome the step had.
pub fn outcome(model: &mut Model) {
    let Some(step) = step_or_say(model) else { return };
    if step.outcomes.is_empty() {
        return model.say("This step has no outcomes to choose from.");
    }
    let choices = step.outcomes.iter().map(|outcome| Choice {
        id: outcome.id.clone(),
        label: crate::text::escape(&outcome.id).to_string(),
        // What would name something that nobody knows yet says nothing yet.
        meaning: if outcome.reading.contains(NOT_KNOWN) { String::new() } else { outcome.reading.clone() },
    });
    pick(model, step.title.clone(), PickFor::Outcome(step.at.clone()), choices.collect());
}

/// Asks for the log of a run made elsewhere.
pub fn feed(model: &mut Model) {
    let Some(step) = step_or_say(model) else { return };
    if !matches!(step.act, Act::Run(_)) {
        return model.say("This step runs no command whose log could be taken.");
    }
    model.overlay = Some(Overlay::Prompt(Prompt::for_step(PromptKind::Feed, step.at, "")));
}

/// Offers the other playbooks that serve.
pub fn others(model: &mut Model) {
    let Some(walk) = model.incident.as_ref().and_then(Incident::walk) else {
        return model.say("The input is still being read.");
    };
    if walk.others.is_empty() {
        return model.say("No other playbook serves this verdict.");
    }
    let choices = walk.others.iter().map(|(id, title)| Choice {
        id: id.clone(),
        label: title.clone(),
        meaning: String::new(),
    });
    let choices = choices.collect();
    pick(model, "Which playbook?".to_owned(), PickFor::Playbook, choices);
}

fn pick(model: &mut Model, title: String, wanted: PickFor, choices: Vec<Choice>) {
    model.overlay = Some(Overlay::Pick(Pick { title, wanted, choices, cursor: 0 }));
}

/// Ends the command that runs.
pub fn end_run(model: &mut Model) -> Vec<Cmd> {
    let Some(run) = model.incident.as_mut().and_then(|incident| incident.run.as_mut()) else {
        model.say("No command is running.");
        return Vec::new();
    };
    run.ending = true;
    model.say("Ending the command and everything that it started.");
    vec![Cmd::Apply(Box::new(Input::Walk(WalkInput::Stop)))]
}

/// A key in a list to choose from.
pub fn on_pick_key(model: &mut Model, mut pick: Pick, key: KeyEvent) -> Vec<Cmd> {
    let last = pick.choices.len().saturating_sub(1);
    if let KeyCode::Char(c) = key.code
        && let Some(at) = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok()?.checked_sub(1))
        && at <= last
    {
        pick.cursor = at;
        return choose(model, &pick);
    }
    match model.keymap.find(key, Scope::List) {
        Some(Action::Down) => pick.cursor = (pick.cursor + 1).min(last),
        Some(Action::Up) => pick.cursor = pick.cursor.saturating_sub(1),
        Some(Action::Top) => pick.cursor = 0,
        Some(Action::Bottom) => pick.cursor = last,
        Some(Action::Open) => return choose(model, &pick),
        Some(Action::Suspend) => {
            model.overlay = Some(Overlay::Pick(pick));
            return vec![Cmd::Suspend];
        }
        _ => return Vec::new(),
    }
    model.overlay = Some(Overlay::Pick(pick));
    Vec::new()
}

fn choose(model: &mut Model, pick: &Pick) -> Vec<Cmd> {
    let Some(choice) = pick.choices.get(pick.cursor) else { return Vec::new() };
    let id = choice.id.clone();
    let input = match &pick.wanted {
        PickFor::Answer(step) => WalkInput::Answer { step: step.clone(), typed: id },
        PickFor::Outcome(step) => WalkInput::Choose { step: step.clone(), outcome: id },
        PickFor::Playbook => WalkInput::Start(id),
    };
    tell(model, input)
}

/// A key at the question whether to run. Only `y` is a yes: Enter is pressed by habit.
pub fn on_confirm_key(model: &mut Model, proposal: Box<Proposal>, top: usize, key: KeyEvent) -> Vec<Cmd> {
    match key.code {
        KeyCode::Char('y') if key.modifiers.is_empty() => {
            // A yes is for what was read, and what was not on the screen was not.
            let last = crate::tui::view::confirm_last_top(model, &proposal);
            if top >= last {
                return tell(model, WalkInput::Confirm(true));
            }
            model.say("The command goes on below: scroll to its end first.");
            model.overlay = Some(Overlay::Confirm(proposal, top));
            return Vec::new();
        }
        KeyCode::Char('c' | 'e') if key.modifiers.is_empty() => {
            let line = shell_line(&proposal.environment, &proposal.command).unwrap_or_default();
            edit(model, proposal.step.clone(), &line);
            return no(model);
        }
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return no(model),
        KeyCode::Esc | KeyCode::Char('n' | 'q') => return no(model),
        _ => {}
    }
    let page = usize::from(model.size.height.saturating_sub(4)).max(1);
    let top = match model.keymap.find(key, Scope::List) {
        Some(Action::Down) => top + 1,
        Some(Action::Up) => top.saturating_sub(1),
        Some(Action::PageDown | Action::HalfDown) => top + page,
        Some(Action::PageUp | Action::HalfUp) => top.saturating_sub(page),
        Some(Action::Top) => 0,
        Some(Action::Bottom) => usize::MAX,
        Some(Action::Suspend) => {
            model.overlay = Some(Overlay::Confirm(proposal, top));
            return vec![Cmd::Suspend];
        }
        _ => top,
    };
    let top = top.min(crate::tui::view::confirm_last_top(model, &proposal));
    model.overlay = Some(Overlay::Confirm(proposal, top));
    Vec::new()
}

fn no(_: &mut Model) -> Vec<Cmd> {
    vec![Cmd::Apply(Box::new(Input::Walk(WalkInput::Confirm(false))))]
}

/// A typed line that belongs to a step.
pub fn typed(model: &mut Model, kind: PromptKind, step: StepRef, text: &str) -> Vec<Cmd> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    match kind {
        PromptKind::Answer => tell(model, WalkInput::Answer { step, typed: text.to_owned() }),
        PromptKind::Feed => {
            let path = prompt::typed_path(model, text.trim());
            if let Some(incident) = model.incident.as_mut() {
                incident.walk_moves = true;
            }
            vec![Cmd::Feed { step, spec: InputSpec::from_argument(path.as_os_str()) }]
        }
        _ => {
            let deadline_s = deadline(model, &step);
            match edited(text, deadline_s) {
                Ok(edited) => tell(model, WalkInput::Propose { step, edited: Some(edited) }),
                Err(why) => {
                    model.say(why);
                    edit(model, step, text);
                    Vec::new()
                }
            }
        }
    }
}

fn deadline(model: &Model, step: &StepRef) -> u64 {
    let walk = model.incident.as_ref().and_then(Incident::walk);
    match walk.and_then(|walk| walk.step(step)).map(|step| &step.act) {
        Some(Act::Run(prepared)) => prepared.deadline_s,
        _ => 3600,
    }
}

fn edited(line: &str, deadline_s: u64) -> Result<Edited, String> {
    let Typed { command, environment } = need::read(line)?;
    Ok(Edited { command, environment, deadline_s })
}

/// The log could not be read: its path is typed once more from where it stands.
pub fn not_fed(model: &mut Model, generation: u64, step: StepRef, typed: &str, why: String) {
    if generation != model.generation {
        return;
    }
    if model.overlay.is_none() {
        model.overlay = Some(Overlay::Prompt(Prompt::for_step(PromptKind::Feed, step, typed)));
    }
    model.say(format!("Not read: {why}"));
}

/// Takes effects in; those of an incident that was left are dropped.
pub fn effects(model: &mut Model, generation: u64, effects: Vec<Effect>) {
    if generation != model.generation {
        return;
    }
    for effect in effects {
        match effect {
            Effect::Refuse(why) => model.say(crate::text::escape(&why).to_string()),
            Effect::Confirm(proposal) => model.overlay = Some(Overlay::Confirm(proposal, 0)),
            Effect::Show | Effect::Save | Effect::Run(_) | Effect::EndRun => {}
        }
    }
}

/// A command was started.
pub fn started(model: &mut Model, generation: u64, step: StepRef, deadline: Duration) {
    let now = model.now;
    if generation == model.generation
        && let Some(incident) = model.incident.as_mut()
    {
        incident.run = Some(Run::new(step, now, deadline));
    }
}

/// It printed something.
pub fn printed(model: &mut Model, generation: u64, chunk: &[u8]) {
    if generation == model.generation
        && let Some(run) = model.incident.as_mut().and_then(|incident| incident.run.as_mut())
    {
        run.push(chunk);
    }
}

/// It ended.
pub fn ended(model: &mut Model, generation: u64, said: String) {
    if generation == model.generation
        && let Some(incident) = model.incident.as_mut()
    {
        incident.run = None;
        model.say(said);
    }
}

/// A new walk: at first, and after something was done in it, the cursor stands on the step that runs, else on the one that
/// waits. A repro may run while an earlier step waits.
pub fn analysed(incident: &mut Incident, first: bool) {
    if !(first || std::mem::take(&mut incident.walk_moves)) {
        return;
    }
    let at = incident.walk().and_then(row_of_current);
    if let Some(at) = at {
        incident.set_row(Pane::Playbook, at);
    }
}

/// Row of the step that runs, else of the one that waits for the engineer.
fn row_of_current(walk: &Walk) -> Option<usize> {
    let running = walk.steps.iter().find(|step| step.state == StepState::Running);
    let current = running.or_else(|| walk.current())?;
    playbook::steps(walk).position(|step| step.at == current.at)
}
