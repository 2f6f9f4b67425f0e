//! What lies on top of the panes: help, a line to type, a question.
//!
//! In: nothing; plain types. Out: [`Overlay`]. The topmost takes the keys.

/// Something on top of the panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    /// The help, scrolled down by so many rows.
    Help(usize),
    /// A line to type.
    Prompt(Prompt),
    /// Leave?
    Leave,
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
}

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
}

impl Prompt {
    /// An empty line.
    pub fn new(kind: PromptKind) -> Self {
        Self { kind, text: String::new(), cursor: 0, completions: Vec::new(), chosen: None, recalled: 0 }
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
