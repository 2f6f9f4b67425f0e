//! What the engineer answered and what ran: the walk's history, append-only, as the store keeps it.
//!
//! In: entries in the order in which they happened. Out: [`Record`]; for each step the last entry counts. It leaves alone
//! what an entry means for the walk.

use serde::{Deserialize, Serialize};

use crate::arith::parse::parse_shape;

use super::schema::{AnswerKind, Question};

/// A step of a playbook.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepRef {
    /// Playbook's id.
    pub playbook: String,
    /// Step's id.
    pub step: String,
}

impl StepRef {
    /// A step by its ids.
    #[must_use]
    pub fn new(playbook: &str, step: &str) -> Self {
        Self { playbook: playbook.to_owned(), step: step.to_owned() }
    }
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// One of the choices.
    Choice(String),
    /// A whole number.
    Number(i64),
    /// A shape as typed; it can be read.
    Shape(String),
    /// Text as typed.
    Text(String),
}

/// Longest answer in bytes.
const ANSWER_LIMIT: usize = 4_000;

impl Answer {
    /// Reads an answer as typed.
    ///
    /// # Errors
    /// What was expected.
    pub fn read(question: &Question, typed: &str) -> Result<Self, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            return Err("the answer is empty".to_owned());
        }
        if typed.len() > ANSWER_LIMIT {
            return Err(format!("the answer is longer than {ANSWER_LIMIT} bytes"));
        }
        match question.answer {
            AnswerKind::Choice => question
                .choices
                .iter()
                .find(|choice| choice.eq_ignore_ascii_case(typed))
                .map(|choice| Self::Choice(choice.clone()))
                .ok_or_else(|| format!("`{typed}` is no choice; choose {}", question.choices.join(" or "))),
            AnswerKind::Number => typed
                .replace([',', '_'], "")
                .parse()
                .map(Self::Number)
                .map_err(|_| format!("`{typed}` is no whole number, such as 234624")),
            AnswerKind::Shape => match parse_shape(typed) {
                Ok(_) => Ok(Self::Shape(typed.to_owned())),
                Err(error) => Err(format!("`{typed}` is no shape, such as 234624x9216: {error}")),
            },
            AnswerKind::Text => Ok(Self::Text(typed.to_owned())),
        }
    }

    /// As typed.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Choice(text) | Self::Shape(text) | Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// By itself, with this exit status.
    Exit(i32),
    /// By a signal that warpfault didn't send.
    Signal(i32),
    /// At its deadline, by warpfault.
    Deadline,
    /// By the engineer's key.
    Stopped,
    /// It couldn't be started, and why.
    NotStarted(String),
    /// Somebody ran it elsewhere and brought the log.
    Elsewhere,
}

/// A run and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The command's words, without the environment.
    pub command: Vec<String>,
    /// Variables that were set.
    pub environment: Vec<(String, String)>,
    /// How it ended.
    pub ended: Ended,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Bytes that it printed.
    pub output_bytes: u64,
    /// The file that keeps its output.
    pub log: Option<String>,
    /// Position of its output among the inputs; none where it printed nothing.
    pub input: Option<u32>,
}

/// What happened at a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happened {
    /// The engineer answered.
    Answered(Answer),
    /// The engineer picked an outcome, by id.
    Chose(String),
    /// The engineer skipped it.
    Skipped,
    /// The engineer did what an `apply` step says.
    Applied,
    /// It was opened again: what came before no longer counts.
    Reopened,
    /// Its command was started.
    Started,
    /// Its command ended.
    Ran(Ran),
}

/// When something happened and who did it, as the front end knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Time, ISO 8601.
    pub at: Option<String>,
    /// User name.
    pub by: Option<String>,
}

/// An entry of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, and who; empty in incidents of a front end that doesn't know.
    #[serde(default)]
    pub stamp: Stamp,
    /// The step.
    pub step: StepRef,
    /// What happened.
    pub what: Happened,
}

/// The history of a walk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The playbook that the engineer opened; none lets the verdict choose.
    pub start: Option<String>,
    /// What happened, the first thing first.
    pub history: Vec<Entry>,
}

impl Record {
    /// Adds what happened.
    pub fn add(&mut self, step: StepRef, what: Happened) {
        self.add_stamped(step, what, Stamp::default());
    }

    /// Adds what happened, with its time and author.
    pub fn add_stamped(&mut self, step: StepRef, what: Happened, stamp: Stamp) {
        self.history.push(Entry { stamp, step, what });
    }

    /// The last thing that happened at a step; none where it was opened again.
    #[must_use]
    pub fn last(&self, step: &StepRef) -> Option<&Happened> {
        self.history
            .iter()
            .rev()
            .find(|entry| entry.step == *step)
            .map(|entry| &entry.what)
            .filter(|what| !matches!(what, Happened::Reopened))
    }

    /// The last run of every step that ran.
    pub fn runs(&self) -> impl Iterator<Item = (&StepRef, &Ran)> {
        self.history.iter().filter_map(|entry| match (&entry.what, self.last(&entry.step)) {
            (Happened::Ran(ran), Some(Happened::Ran(last))) if ran == last => Some((&entry.step, ran)),
            _ => None,
        })
    }

    /// The step whose command was started and has not ended.
    #[must_use]
    pub fn running(&self) -> Option<&StepRef> {
        let last = self
            .history
            .iter()
            .rev()
            .find(|entry| matches!(entry.what, Happened::Started | Happened::Ran(_)))?;
        (last.what == Happened::Started && self.last(&last.step) == Some(&Happened::Started))
            .then_some(&last.step)
    }

    /// Forgets a run that was in flight when the program ended.
    pub fn forget_running(&mut self) {
        if let Some(step) = self.running().cloned() {
            self.add(step, Happened::Reopened);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::schema::Source;

    fn question(answer: AnswerKind) -> Question {
        Question {
            text: Source { text: String::new(), line: 1 },
            answer,
            choices: vec!["sharded".to_owned(), "unsharded".to_owned()],
            known: None,
        }
    }

    #[test]
    fn answers_are_read_or_refused_with_a_reason() {
        let read = |kind, text| Answer::read(&question(kind), text);
        assert_eq!(read(AnswerKind::Choice, "Sharded "), Ok(Answer::Choice("sharded".to_owned())));
        assert!(read(AnswerKind::Choice, "half").unwrap_err().contains("choose sharded or unsharded"));
        assert_eq!(read(AnswerKind::Number, "234,624"), Ok(Answer::Number(234_624)));
        assert!(read(AnswerKind::Number, "many").is_err());
        assert_eq!(read(AnswerKind::Shape, "234624x9216"), Ok(Answer::Shape("234624x9216".to_owned())));
        assert!(read(AnswerKind::Shape, "wide").is_err());
        assert!(read(AnswerKind::Text, "  ").is_err());
    }

    #[test]
    fn the_last_entry_counts() {
        let step = StepRef::new("a", "b");
        let mut record = Record::default();
        assert_eq!(record.last(&step), None);
        record.add(step.clone(), Happened::Started);
        assert_eq!(record.running(), Some(&step));
        record.forget_running();
        assert_eq!((record.running(), record.last(&step)), (None, None));
        record.add(step.clone(), Happened::Skipped);
        assert_eq!(record.last(&step), Some(&Happened::Skipped));
    }
}
