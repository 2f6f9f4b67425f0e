//! Keys in a form: what a step's command lacks, a line each.
//!
//! In: the form and a key. Out: the form changed, or the whole command for the engine, which shows it and asks for a yes.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::playbook::walk::need::{self, Fill, Typed};
use crate::playbook::walk::shell_line;
use crate::session::{Edited, WalkInput};
use crate::tui::model::{Form, Model, Overlay};
use crate::tui::msg::Cmd;

use super::{playbook, prompt};

/// A key in a form. It is open again afterwards unless the key ended it.
pub fn on_key(model: &mut Model, mut form: Box<Form>, key: KeyEvent) -> Vec<Cmd> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let last = form.lines.len().saturating_sub(1);
    let mut commands = Vec::new();
    match key.code {
        KeyCode::Esc => return commands,
        KeyCode::Char('c' | 'g') if control => return commands,
        KeyCode::Char('z') if control => commands.push(Cmd::Suspend),
        KeyCode::Char('l') if control => return whole_line(model, &form),
        KeyCode::Enter if form.at >= last => return finish(model, form),
        KeyCode::Tab if wants_path(&form) => commands.extend(complete(&mut form, 1)),
        KeyCode::BackTab if wants_path(&form) => commands.extend(complete(&mut form, -1)),
        KeyCode::Enter | KeyCode::Down | KeyCode::Tab => form.at = (form.at + 1).min(last),
        KeyCode::Up | KeyCode::BackTab => form.at = form.at.saturating_sub(1),
        _ => {
            let at = form.at;
            if let Some(line) = form.lines.get_mut(at) {
                prompt::typed(line, key);
            }
        }
    }
    model.overlay = Some(Overlay::Form(form));
    commands
}

/// Whether the line is for a path and something of it is typed.
fn wants_path(form: &Form) -> bool {
    let typed = form.lines.get(form.at).is_some_and(|line| !line.text.is_empty());
    typed && matches!(form.command.needs.get(form.at).map(|need| &need.fill), Some(Fill::Word(_)))
}

/// The next candidate for the path; the first time, the disk is asked.
fn complete(form: &mut Form, by: isize) -> Option<Cmd> {
    let line = form.lines.get_mut(form.at)?;
    if line.completions.is_empty() {
        return Some(Cmd::CompletePath { text: line.text.clone() });
    }
    prompt::choose(line, by);
    None
}

/// The command as far as it is known, with what is typed.
pub fn so_far(form: &Form) -> Typed {
    let base = base(form);
    need::so_far(&base, &form.command.needs, &form.values()).unwrap_or(base)
}

fn base(form: &Form) -> Typed {
    Typed { environment: form.command.environment.clone(), command: form.command.command.clone() }
}

fn finish(model: &mut Model, mut form: Box<Form>) -> Vec<Cmd> {
    match need::filled(&base(&form), &form.command.needs, &form.values()) {
        Ok(Typed { environment, command }) => {
            let edited = Some(Edited { command, environment, deadline_s: form.command.deadline_s });
            playbook::tell(model, WalkInput::Propose { step: form.step, edited })
        }
        Err(why) => {
            model.say(crate::text::escape(&why).to_string());
            let empty = |(need, line): (&need::Need, &crate::tui::model::Prompt)| {
                need.required && line.text.trim().is_empty()
            };
            if let Some(at) = form.command.needs.iter().zip(&form.lines).position(empty) {
                form.at = at;
            }
            model.overlay = Some(Overlay::Form(form));
            Vec::new()
        }
    }
}

/// The whole command as a line, for what no field covers.
fn whole_line(model: &mut Model, form: &Form) -> Vec<Cmd> {
    let Typed { environment, command } = so_far(form);
    let line = shell_line(&environment, &command).unwrap_or_default();
    playbook::edit(model, form.step.clone(), &line);
    Vec::new()
}
