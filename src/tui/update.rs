//! The only writer of the model.
//!
//! In: the model, a message, the time. Out: the model changed, and what is to be done. It does no I/O and asks no clock.

mod action;
mod commands;
mod form;
mod jump;
mod logs;
mod mouse;
mod open;
mod playbook;
mod prompt;
mod scroll;
mod start;

pub use form::so_far as form_so_far;
pub use open::{open, resume};

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;

use super::keymap::{Action, Scope};
use super::model::{Model, Overlay, Pane};
use super::msg::{Cmd, Msg};
use super::view;

/// Takes a message in.
pub fn update(model: &mut Model, msg: Msg, now: Duration) -> Vec<Cmd> {
    model.now = now;
    let mut commands = match msg {
        Msg::Key(key) if key.kind == KeyEventKind::Release => return Vec::new(),
        Msg::Key(key) => on_key(model, key),
        Msg::Typed(text) => start::typed(model, &text),
        Msg::Paste(text) => open::pasted(model, text),
        Msg::Mouse(event) => mouse::on_mouse(model, event),
        Msg::Resize(width, height) => {
            model.size = Rect::new(0, 0, width, height);
            Vec::new()
        }
        Msg::Tick => start::tick(model),
        Msg::Loaded { generation, sources, progress } => open::loaded(model, generation, sources, &progress),
        Msg::Analysed { generation, sources, analysis } => {
            open::analysed(model, generation, sources, *analysis)
        }
        Msg::Failed { generation, why } => open::failed(model, generation, why),
        Msg::Indexed { generation, source, index } => {
            logs::indexed(model, generation, source, index);
            Vec::new()
        }
        Msg::Found { id, lines, searched, done } => {
            logs::found(model, id, &lines, searched, done);
            Vec::new()
        }
        Msg::Filtered { id, lines, done } => {
            logs::filtered(model, id, &lines, done);
            Vec::new()
        }
        Msg::Kept { generation, id } => {
            open::kept(model, generation, id);
            Vec::new()
        }
        Msg::Started { generation, step, deadline } => {
            playbook::started(model, generation, step, deadline);
            Vec::new()
        }
        Msg::Printed { generation, chunk } => {
            playbook::printed(model, generation, &chunk);
            Vec::new()
        }
        Msg::Ended { generation, said } => {
            playbook::ended(model, generation, said);
            Vec::new()
        }
        Msg::NotFed { generation, step, typed, why } => {
            playbook::not_fed(model, generation, step, &typed, why);
            Vec::new()
        }
        Msg::Seen { generation, said } => {
            open::seen(model, generation, said);
            Vec::new()
        }
        Msg::Effects { generation, effects } => {
            playbook::effects(model, generation, effects);
            Vec::new()
        }
        Msg::Told(text) => {
            model.say(text);
            Vec::new()
        }
        Msg::PathChecked { text, exists } => open::path_checked(model, text, exists),
        Msg::Saved(path) => open::saved(model, &path),
        Msg::Completed { text, candidates } => {
            prompt::completed(model, &text, candidates);
            Vec::new()
        }
        Msg::Picks { recent, samples } => {
            model.start.recent = recent;
            model.start.samples = samples;
            Vec::new()
        }
    };
    commands.extend(logs::want_index(model));
    scroll::fit(model);
    scroll::settle(model);
    commands
}

fn on_key(model: &mut Model, key: KeyEvent) -> Vec<Cmd> {
    // Esc and the key after it look like Alt where they arrive together.
    if key.modifiers.contains(KeyModifiers::ALT) && !model.keymap.has_alt(key) {
        let mut commands = on_key(model, KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
        let plain = KeyEvent { modifiers: key.modifiers - KeyModifiers::ALT, ..key };
        commands.extend(on_key(model, plain));
        return commands;
    }
    model.status = None;
    match model.overlay.take() {
        Some(Overlay::Prompt(typed)) => return prompt::on_key(model, typed, key),
        Some(Overlay::Help(top)) => return on_help_key(model, top, key),
        Some(Overlay::Leave) => return on_leave_key(model, key),
        Some(Overlay::Pick(pick)) => return playbook::on_pick_key(model, pick, key),
        Some(Overlay::Confirm(proposal, top)) => {
            return playbook::on_confirm_key(model, proposal, top, key);
        }
        Some(Overlay::Form(asked)) => return form::on_key(model, asked, key),
        None => {}
    }
    let Some(incident) = &model.incident else { return start::on_key(model, key) };
    let scope = match incident.pane {
        Pane::Log => Scope::Log,
        Pane::Playbook => Scope::Playbook,
        _ => Scope::List,
    };
    match model.keymap.find(key, scope) {
        Some(action) => action::act(model, action),
        None => {
            if let KeyCode::Char(c) = key.code {
                let c = crate::text::LogText::new(c.to_string());
                model.say(format!("{c} has no meaning here; ? lists the keys"));
            }
            Vec::new()
        }
    }
}

/// The help scrolls by the keys that scroll everywhere, and any way out closes it.
fn on_help_key(model: &mut Model, top: usize, key: KeyEvent) -> Vec<Cmd> {
    let page = usize::from(model.size.height.saturating_sub(3)).max(1);
    let action = model.keymap.find(key, Scope::List);
    let top = match action {
        Some(Action::Down) => top + 1,
        Some(Action::Up) => top.saturating_sub(1),
        Some(Action::PageDown | Action::HalfDown) => top + page,
        Some(Action::PageUp | Action::HalfUp) => top.saturating_sub(page),
        Some(Action::Top) => 0,
        Some(Action::Bottom) => usize::MAX,
        Some(Action::Suspend) => {
            model.overlay = Some(Overlay::Help(top));
            return vec![Cmd::Suspend];
        }
        _ => return Vec::new(),
    };
    model.overlay = Some(Overlay::Help(top.min(view::help_last_top(model))));
    Vec::new()
}

fn on_leave_key(model: &mut Model, key: KeyEvent) -> Vec<Cmd> {
    let unsaved = model.incident.as_ref().is_some_and(super::model::Incident::is_unsaved);
    match key.code {
        KeyCode::Char('s') if unsaved => open::save_and_leave(model),
        KeyCode::Char('q' | 'y' | 'Q') => vec![Cmd::Quit],
        KeyCode::Enter if !unsaved => vec![Cmd::Quit],
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            vec![Cmd::Quit]
        }
        _ => Vec::new(),
    }
}
