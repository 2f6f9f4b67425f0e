//! Keys in a line being typed.
//!
//! In: the line and a key. Out: the line changed, or what it asks for.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::tui::claims;
use crate::tui::command;
use crate::tui::log::filter::Filter;
use crate::tui::log::search::Pattern;
use crate::tui::model::{Model, Overlay, Prompt, PromptKind};
use crate::tui::msg::Cmd;

use super::{commands, logs, playbook};

/// A key in the line. The overlay is open again afterwards unless the key ended it.
pub fn on_key(model: &mut Model, mut prompt: Prompt, key: KeyEvent) -> Vec<Cmd> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => return Vec::new(),
        KeyCode::Char('c' | 'g') if control => return Vec::new(),
        KeyCode::Char('z') if control => {
            model.overlay = Some(Overlay::Prompt(prompt));
            return vec![Cmd::Suspend];
        }
        KeyCode::Enter => return finish(model, prompt),
        KeyCode::Tab => return complete(model, prompt, 1),
        KeyCode::BackTab => return complete(model, prompt, -1),
        // As in vi and less, rubbing out an empty line leaves it.
        KeyCode::Backspace if prompt.text.is_empty() => return Vec::new(),
        KeyCode::Up => recall(model, &mut prompt, 1),
        KeyCode::Down => recall(model, &mut prompt, -1),
        _ => typed(&mut prompt, key),
    }
    model.overlay = Some(Overlay::Prompt(prompt));
    Vec::new()
}

/// A key that changes the line or moves in it; others do nothing.
pub fn typed(line: &mut Prompt, key: KeyEvent) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Backspace => line.backspace(),
        KeyCode::Char('h') if control => line.backspace(),
        KeyCode::Char('w') if control => line.erase_word(),
        KeyCode::Char('u') if control => line.set(""),
        KeyCode::Char('a') if control => line.cursor = 0,
        KeyCode::Char('e') if control => line.step(isize::MAX),
        KeyCode::Home => line.cursor = 0,
        KeyCode::End => line.step(isize::MAX),
        KeyCode::Left => line.step(-1),
        KeyCode::Right => line.step(1),
        KeyCode::Char(c) if !control => line.insert(c),
        _ => {}
    }
}

fn recall(model: &Model, prompt: &mut Prompt, by: isize) {
    if prompt.kind != PromptKind::Command {
        return;
    }
    let count = model.history.len();
    prompt.recalled = prompt.recalled.saturating_add_signed(by).min(count);
    let text = count.checked_sub(prompt.recalled).and_then(|at| model.history.get(at)).cloned();
    prompt.set(&text.unwrap_or_default());
}

fn finish(model: &mut Model, prompt: Prompt) -> Vec<Cmd> {
    match prompt.kind {
        PromptKind::Search => logs::search(model, &prompt.text),
        PromptKind::Filter => filter(model, &prompt.text),
        PromptKind::Answer | PromptKind::Edit | PromptKind::Feed => match prompt.step {
            Some(step) => playbook::typed(model, prompt.kind, step, &prompt.text),
            None => Vec::new(),
        },
        // A form takes its own keys.
        PromptKind::Field => Vec::new(),
        PromptKind::Command => {
            if prompt.text.trim().is_empty() {
                return Vec::new();
            }
            model.history.retain(|line| *line != prompt.text);
            model.history.push(prompt.text.clone());
            match command::parse(&prompt.text) {
                Ok(command) => commands::run(model, command),
                Err(why) => {
                    model.say(crate::text::escape(&why).to_string());
                    Vec::new()
                }
            }
        }
    }
}

/// `!` in front turns the pattern round.
fn filter(model: &mut Model, text: &str) -> Vec<Cmd> {
    if text.is_empty() {
        return logs::clear_filter(model);
    }
    let (invert, pattern) = match text.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    only(model, pattern, invert)
}

/// Shows only lines that match, or only the others.
pub fn only(model: &mut Model, pattern: &str, invert: bool) -> Vec<Cmd> {
    match Pattern::new(pattern) {
        Ok(pattern) => {
            let before =
                model.incident.as_ref().map(|incident| incident.log.filter.clone()).unwrap_or_default();
            logs::set_filter(model, Filter { pattern: Some(pattern), invert, ..before })
        }
        Err(why) => {
            model.say(format!("That is no regular expression: {}", crate::text::escape(&why)));
            Vec::new()
        }
    }
}

fn complete(model: &mut Model, mut prompt: Prompt, by: isize) -> Vec<Cmd> {
    if prompt.kind == PromptKind::Feed && prompt.completions.is_empty() {
        let text = prompt.text.clone();
        model.overlay = Some(Overlay::Prompt(prompt));
        return vec![Cmd::CompletePath { text }];
    }
    if !matches!(prompt.kind, PromptKind::Command | PromptKind::Feed) {
        model.overlay = Some(Overlay::Prompt(prompt));
        return Vec::new();
    }
    if prompt.completions.is_empty() {
        let (ranks, kinds) = match &model.incident {
            Some(incident) => (logs::ranks(incident), logs::kinds(incident)),
            None => (Vec::new(), Vec::new()),
        };
        let kinds: Vec<String> =
            kinds.into_iter().map(|kind| claims::kind_name(kind).replace(' ', "_")).collect();
        match command::complete(&prompt.text, &ranks, &kinds) {
            Some(candidates) => prompt.completions = candidates,
            None => {
                let text = prompt.text.clone();
                model.overlay = Some(Overlay::Prompt(prompt));
                return vec![Cmd::CompletePath { text }];
            }
        }
    }
    choose(&mut prompt, by);
    model.overlay = Some(Overlay::Prompt(prompt));
    Vec::new()
}

/// Puts the next candidate in; a single one is final.
pub fn choose(prompt: &mut Prompt, by: isize) {
    let count = prompt.completions.len();
    if count == 0 {
        return;
    }
    let next = match prompt.chosen {
        None if by < 0 => count - 1,
        None => 0,
        Some(at) => (at + count).saturating_add_signed(by) % count,
    };
    if let Some(text) = prompt.completions.get(next).cloned() {
        prompt.set(&text);
    }
    prompt.chosen = Some(next);
    if count == 1 {
        prompt.completions.clear();
        prompt.chosen = None;
    }
}

/// Takes in what the disk offers for a path.
pub fn completed(model: &mut Model, text: &str, candidates: Vec<String>) {
    match &mut model.overlay {
        Some(Overlay::Prompt(prompt)) if prompt.text == text => {
            prompt.completions = candidates;
            choose(prompt, 1);
        }
        Some(Overlay::Form(form)) => {
            if let Some(line) = form.lines.get_mut(form.at).filter(|line| line.text == text) {
                line.completions = candidates;
                choose(line, 1);
            }
        }
        None if model.incident.is_none() && model.start.typed == text => {
            if let Some(longest) = common_start(&candidates) {
                model.start.typed = longest;
            }
            if candidates.is_empty() {
                model.say("No path begins like this.");
            }
            if candidates.len() > 1 {
                let names: Vec<&str> = candidates
                    .iter()
                    .map(|path| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path))
                    .collect();
                model.say(crate::text::escape(&names.join("  ")).to_string());
            }
        }
        _ => {}
    }
}

fn common_start(candidates: &[String]) -> Option<String> {
    let first = candidates.first()?;
    let len = candidates.iter().fold(first.len(), |len, other| {
        let same = first.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        len.min(same)
    });
    let end = (0..=len).rev().find(|end| first.is_char_boundary(*end))?;
    first.get(..end).map(str::to_owned)
}

/// A typed path, with `~` at its head replaced.
pub fn typed_path(model: &Model, typed: &str) -> PathBuf {
    match (typed.strip_prefix("~/"), &model.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(typed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_share_a_start() {
        let paths = ["/tmp/é1".to_owned(), "/tmp/è2".to_owned()];
        assert_eq!(common_start(&paths).as_deref(), Some("/tmp/"));
        assert_eq!(common_start(&[]), None);
    }
}
