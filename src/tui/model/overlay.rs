//! What lies on top of the panes: help, a line to type, a form, a list to choose from, a question.
//!
//! In: nothing; plain types. Out: [`Overlay`]. The topmost takes the keys.

use crate::playbook::StepRef;
use crate::playbook::walk::Prepared;
use crate::session::Proposal;

/// Something on top of the panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    /// The help, scrolled down by so many rows.
    Help(usize),
    /// A line to type.
    Prompt(Prompt),
    /// Leave?
    Leave,
    /// A list to choose from.
    Pick(Pick),
    /// Run this command? Scrolled down by so many rows.
    Confirm(Box<Proposal>, usize),
    /// What a command lacks, to be filled in.
    Form(Box<Form>),
}

/// What a step's command lacks, a line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The step.
    pub step: StepRef,
    /// Its title, escaped.
    pub title: String,
    /// The command as far as it is known.
    pub command: Prepared,
    /// What is typed for each need of the command.
    pub lines: Vec<Prompt>,
    /// Position of the line that takes the keys.
    pub at: usize,
}

impl Form {
    /// An empty form.
    pub fn new(step: StepRef, title: String, command: Prepared) -> Self {
        let lines = command.needs.iter().map(|_| Prompt::new(PromptKind::Field)).collect();
        Self { step, title, command, lines, at: 0 }
    }

    /// What is typed, in the order of the needs.
    pub fn values(&self) -> Vec<String> {
        self.lines.iter().map(|line| line.text.clone()).collect()
    }
}

/// What a choice is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickFor {
    /// The answer to a step's question.
    Answer(StepRef),
    /// The outcome of a step.
    Outcome(StepRef),
    /// The playbook to walk through.
    Playbook,
}

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What is handed on.
    pub id: String,
    /// What is shown, escaped.
    pub label: String,
    /// What it would mean, escaped; empty where nothing is to be said.
    pub meaning: String,
}

/// A list to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// What is asked, escaped.
    pub title: String,
    /// What for.
    pub wanted: PickFor,
    /// What there is.
    pub choices: Vec<Choice>,
    /// Position of the one under the cursor.
    pub cursor: usize,
}

/// What a typed line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// A command.
    Command,
    /// A search.
    Search,
    /// A filter.
    Filter,
    /// The answer to a step's question.
    Answer,
    /// A step's command, edited before it runs.
    Edit,
    /// The path of a log that a step's command left elsewhere.
    Feed,
    /// A part of a command that nothing tells: a line of a form.
    Field,
}

/// Most characters of a line that something is pasted into: each key walks over all of them.
const LINE_CHARS: usize = 16 << 10;

/// A line being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What it is for.
    pub kind: PromptKind,
    /// The text.
    pub text: String,
    /// Cursor, in characters.
    pub cursor: usize,
    /// What Tab goes through, and where it stands.
    pub completions: Vec<String>,
    /// The completion that is shown.
    pub chosen: Option<usize>,
    /// Position in the history, counted from its end.
    pub recalled: usize,
    /// The step that it belongs to.
    pub step: Option<StepRef>,
}

impl Prompt {
    /// An empty line.
    pub fn new(kind: PromptKind) -> Self {
        Self {
            kind,
            text: String::new(),
            cursor: 0,
            completions: Vec::new(),
            chosen: None,
            recalled: 0,
            step: None,
        }
    }

    /// A line for a step, with a text to begin from.
    pub fn for_step(kind: PromptKind, step: StepRef, text: &str) -> Self {
        let mut prompt = Self { step: Some(step), ..Self::new(kind) };
        prompt.set(text);
        prompt
    }

    /// Puts a text in, with the cursor behind it.
    pub fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.chars().count();
    }

    /// Types a character.
    pub fn insert(&mut self, c: char) {
        let at = self.byte(self.cursor);
        self.text.insert(at, c);
        self.cursor += 1;
        self.chosen = None;
        self.completions.clear();
    }

    /// Puts in what was pasted: its first line, as far as a line may be long.
    pub fn paste(&mut self, text: &str) {
        let line = text.lines().next().unwrap_or("");
        let room = LINE_CHARS.saturating_sub(self.text.chars().count());
        let line: String = line.chars().filter(|c| !c.is_control()).take(room).collect();
        let at = self.byte(self.cursor);
        self.text.insert_str(at, &line);
        self.cursor += line.chars().count();
        self.chosen = None;
        self.completions.clear();
    }

    /// Takes the character before the cursor away.
    pub fn backspace(&mut self) {
        if self.cursor > 0 {
            let at = self.byte(self.cursor - 1);
            self.text.remove(at);
            self.cursor -= 1;
        }
        self.chosen = None;
        self.completions.clear();
    }

    /// Takes the word before the cursor away.
    pub fn erase_word(&mut self) {
        while self.cursor > 0 && self.before_cursor() == Some(' ') {
            self.backspace();
        }
        while self.cursor > 0 && self.before_cursor() != Some(' ') {
            self.backspace();
        }
    }

    fn before_cursor(&self) -> Option<char> {
        self.text.chars().nth(self.cursor.checked_sub(1)?)
    }

    /// Moves the cursor.
    pub fn step(&mut self, by: isize) {
        let last = self.text.chars().count();
        self.cursor = self.cursor.saturating_add_signed(by).min(last);
    }

    fn byte(&self, cursor: usize) -> usize {
        self.text.char_indices().nth(cursor).map_or(self.text.len(), |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_by_characters() {
        let mut prompt = Prompt::new(PromptKind::Search);
        "日本x".chars().for_each(|c| prompt.insert(c));
        prompt.step(-1);
        prompt.backspace();
        prompt.insert('é');
        assert_eq!((prompt.text.as_str(), prompt.cursor), ("日éx", 2));
        prompt.step(99);
        prompt.insert(' ');
        prompt.erase_word();
        assert_eq!(prompt.text, "");
    }
}
