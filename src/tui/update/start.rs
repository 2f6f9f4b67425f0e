//! Keys on the screen that waits for an input.
//!
//! In: the model and keys. Out: the path being typed, a paste that arrives as keys, or an incident to open.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::tui::keymap::Action;
use crate::tui::model::{Model, Overlay, Prompt, PromptKind};
use crate::tui::msg::{Cmd, Opening};

use super::{action, open};

/// After so much silence a paste without brackets has ended.
const PASTE_ENDS: Duration = Duration::from_millis(400);

/// A burst of keys that no hand types: a paste on a terminal that doesn't bracket pastes.
pub fn typed(model: &mut Model, text: &str) -> Vec<Cmd> {
    if model.incident.is_some() {
        return Vec::new();
    }
    let now = model.now;
    let start = &mut model.start;
    let pasting = start.pasting.get_or_insert_with(|| std::mem::take(&mut start.typed));
    pasting.push_str(text);
    start.last_key = Some(now);
    Vec::new()
}

/// Ends a paste without brackets once it is silent.
pub fn tick(model: &mut Model) -> Vec<Cmd> {
    let silent = model.start.last_key.is_none_or(|last| model.now.saturating_sub(last) >= PASTE_ENDS);
    match model.start.pasting.take() {
        Some(text) if silent => open::pasted(model, text),
        pasting => {
            model.start.pasting = pasting;
            Vec::new()
        }
    }
}

/// A key on the start screen.
pub fn on_key(model: &mut Model, key: KeyEvent) -> Vec<Cmd> {
    if model.start.pasting.is_some() {
        match key.code {
            KeyCode::Char(c) => return typed(model, &c.to_string()),
            KeyCode::Enter => return typed(model, "\n"),
            KeyCode::Tab => return typed(model, "\t"),
            KeyCode::Esc => {
                model.start.pasting = None;
                return Vec::new();
            }
            _ => {}
        }
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return on_control(model, key);
    }
    let picks = model.start.picks().count();
    let empty = model.start.typed.is_empty();
    match key.code {
        KeyCode::Enter => return enter(model),
        KeyCode::Up => model.start.cursor = model.start.cursor.saturating_sub(1),
        KeyCode::Down => model.start.cursor = (model.start.cursor + 1).min(picks),
        KeyCode::Backspace => {
            model.start.typed.pop();
        }
        KeyCode::Tab => return vec![Cmd::CompletePath { text: model.start.typed.clone() }],
        KeyCode::Esc if empty => model.overlay = Some(Overlay::Leave),
        KeyCode::Esc => model.start.typed.clear(),
        KeyCode::F(1) => model.overlay = Some(Overlay::Help(0)),
        KeyCode::F(2) => return action::act(model, Action::Mouse),
        KeyCode::Char('?') if empty => model.overlay = Some(Overlay::Help(0)),
        KeyCode::Char(':') if empty => {
            model.overlay = Some(Overlay::Prompt(Prompt::new(PromptKind::Command)));
        }
        KeyCode::Char('q') if empty => return vec![Cmd::Quit],
        KeyCode::Char(c) if !c.is_control() => {
            model.start.typed.push(c);
            model.start.cursor = 0;
        }
        _ => {}
    }
    Vec::new()
}

fn on_control(model: &mut Model, key: KeyEvent) -> Vec<Cmd> {
    match key.code {
        KeyCode::Char('c' | 'd') => vec![Cmd::Quit],
        KeyCode::Char('z') => vec![Cmd::Suspend],
        KeyCode::Char('l') => vec![Cmd::Redraw],
        KeyCode::Char('u') => {
            model.start.typed.clear();
            Vec::new()
        }
        KeyCode::Char('h') => {
            model.start.typed.pop();
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn enter(model: &mut Model) -> Vec<Cmd> {
    let picked = model.start.cursor.checked_sub(1).and_then(|index| model.start.picks().nth(index)).cloned();
    match picked {
        Some(pick) => match pick.opening {
            Opening::Named(specs) => open::open(model, specs, false),
            Opening::Saved(id) => open::resume(model, id),
        },
        None => {
            let typed = model.start.typed.clone();
            open::open_typed(model, &typed)
        }
    }
}
