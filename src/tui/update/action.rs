//! What the actions of the key table do.
//!
//! In: the model and an action. Out: the model changed, and commands.

use crate::tui::keymap::Action;
use crate::tui::layout;
use crate::tui::model::{Incident, Model, Overlay, Pane, Phase, Prompt, PromptKind};
use crate::tui::msg::Cmd;
use crate::tui::view;

use super::{commands, jump, logs, playbook, scroll};

/// Carries an action out.
pub fn act(model: &mut Model, action: Action) -> Vec<Cmd> {
    match action {
        Action::Quit => return quit(model),
        Action::Back => return back(model),
        Action::Interrupt => return interrupt(model),
        Action::Help => model.overlay = Some(Overlay::Help(0)),
        Action::Command => ask(model, PromptKind::Command),
        Action::Search => ask(model, PromptKind::Search),
        Action::Filter => ask(model, PromptKind::Filter),
        Action::NextPane => step_pane(model, 1),
        Action::PreviousPane => step_pane(model, -1),
        Action::Pane1 => focus(model, Pane::Verdict),
        Action::Pane2 => focus(model, Pane::Evidence),
        Action::Pane3 => focus(model, Pane::Ranks),
        Action::Pane4 => focus(model, Pane::Playbook),
        Action::Pane5 => focus(model, Pane::Log),
        Action::Zoom => zoom(model),
        Action::Up => scroll::by(model, -1),
        Action::Down => scroll::by(model, 1),
        Action::PageUp => scroll::by_pages(model, -2),
        Action::PageDown => scroll::by_pages(model, 2),
        Action::HalfUp => scroll::by_pages(model, -1),
        Action::HalfDown => scroll::by_pages(model, 1),
        Action::Top => scroll::to_top(model),
        Action::Bottom => scroll::to_bottom(model),
        Action::Left => scroll::sideways(model, -8),
        Action::Right => scroll::sideways(model, 8),
        Action::LineStart => scroll::sideways(model, isize::MIN),
        Action::Open if playbook::step_in_focus(model).is_some() => return playbook::act(model),
        Action::Open => jump::open(model),
        Action::Act => return playbook::act(model),
        Action::Skip => return playbook::skip(model),
        Action::Reopen => return playbook::reopen(model),
        Action::Change => playbook::change(model),
        Action::Outcome => playbook::outcome(model),
        Action::Feed => playbook::feed(model),
        Action::OtherPlaybook => playbook::others(model),
        Action::Repro => return playbook::repro(model),
        Action::EndRun => return playbook::end_run(model),
        Action::NextFailure => jump::failure(model, true),
        Action::PreviousFailure => jump::failure(model, false),
        Action::NextMatch => logs::step_match(model, true),
        Action::PreviousMatch => logs::step_match(model, false),
        Action::Wrap => logs::toggle_wrap(model),
        Action::FilterRank => return logs::cycle_rank(model),
        Action::FilterKind => return logs::cycle_kind(model),
        Action::ClearFilter => return logs::clear_filter(model),
        Action::NextInput => logs::step_source(model, 1),
        Action::PreviousInput => logs::step_source(model, -1),
        Action::Copy => return commands::copy(model),
        Action::CopyReport => return commands::copy_report(model),
        Action::Edit => return commands::edit(model),
        Action::Mouse => {
            model.mouse = !model.mouse;
            model.say(if model.mouse { "Mouse on." } else { "Mouse off: the terminal selects text." });
            return vec![Cmd::Mouse(model.mouse)];
        }
        Action::Theme => {
            model.theme.palette = model.theme.palette.next();
            model.say(format!("Colours: {}", model.theme.palette.name()));
        }
        Action::Suspend => return vec![Cmd::Suspend],
        Action::Redraw => return vec![Cmd::Redraw],
    }
    Vec::new()
}

fn ask(model: &mut Model, kind: PromptKind) {
    model.overlay = Some(Overlay::Prompt(Prompt::new(kind)));
}

/// Back where a jump came from, else out; a paste that isn't saved asks first.
fn quit(model: &mut Model) -> Vec<Cmd> {
    if jump::back(model) {
        return Vec::new();
    }
    leave(model)
}

/// Leaves, or asks where that would lose something.
pub fn leave(model: &mut Model) -> Vec<Cmd> {
    if model.incident.as_ref().is_some_and(|incident| incident.is_unsaved() || incident.run.is_some()) {
        model.overlay = Some(Overlay::Leave);
        return Vec::new();
    }
    vec![Cmd::Quit]
}

/// One step out: a jump, a search, a filter, a zoom, a pane, and at last the question.
fn back(model: &mut Model) -> Vec<Cmd> {
    if jump::back(model) {
        return Vec::new();
    }
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    // Nothing could be opened: back to where another path can be typed.
    if matches!(incident.phase, Phase::Failed(_)) && incident.sources.is_empty() && !incident.is_unsaved() {
        model.incident = None;
        return vec![Cmd::Stop];
    }
    if incident.pane == Pane::Log && incident.log.search.take().is_some() {
        return Vec::new();
    }
    if incident.pane == Pane::Log && !incident.log.filter.is_off() {
        return logs::clear_filter(model);
    }
    if incident.zoom {
        incident.zoom = false;
        return Vec::new();
    }
    if incident.pane != Pane::Verdict {
        focus(model, Pane::Verdict);
        return Vec::new();
    }
    model.overlay = Some(Overlay::Leave);
    Vec::new()
}

fn interrupt(model: &mut Model) -> Vec<Cmd> {
    if model.incident.as_ref().is_some_and(|incident| incident.run.as_ref().is_some_and(|run| !run.ending)) {
        return playbook::end_run(model);
    }
    let working = model.incident.as_mut().is_some_and(|incident| {
        let working = incident.is_working();
        if working {
            incident.phase = crate::tui::model::Phase::Stopped;
        }
        working
    });
    if working {
        model.generation += 1;
        model.say("Stopped. :again reads the inputs once more.");
        return vec![Cmd::Stop];
    }
    leave(model)
}

/// Gives the keys to a pane.
pub fn focus(model: &mut Model, pane: Pane) {
    if let Some(incident) = model.incident.as_mut() {
        if pane != incident.pane {
            incident.log.from = None;
        }
        incident.pane = pane;
        if matches!(pane, Pane::Evidence | Pane::Ranks) {
            incident.lower = pane;
        }
    }
    jump::preview(model);
}

fn step_pane(model: &mut Model, by: isize) {
    let Some(incident) = model.incident.as_ref() else { return };
    let count = Pane::ALL.len();
    let index = incident.pane.index() + count;
    let next = index.saturating_add_signed(by) % count;
    if let Some(pane) = Pane::ALL.get(next) {
        focus(model, *pane);
    }
}

fn zoom(model: &mut Model) {
    let size = model.size;
    let Some(incident) = model.incident.as_mut() else { return };
    incident.zoom = !incident.zoom;
    if incident.zoom && (size.width < layout::WIDE_COLUMNS || size.height < layout::WIDE_ROWS) {
        incident.zoom = false;
        model.say("One pane at a time already; panes lie side by side from 120 columns.");
    }
}

/// Rows of the pane that takes the keys.
pub fn rows(incident: &Incident) -> usize {
    view::rows(incident, incident.pane)
}
