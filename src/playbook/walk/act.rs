//! What one key does at a step: a command with its settings, a question, an advice, or a room that is not there yet.
//!
//! In: a step and what is known. Out: [`Act`]. A command is words; the text that a person copies is quoted by shlex and
//! by nothing else. Nothing is run here.

use std::sync::Arc;

use super::super::known::Known;
use super::super::schema::{Action, AnswerKind, Question, Rerun, Step, StepKind};
use super::super::{condition, template};
use super::need::{Fill, Need};
use super::{sentence, shown};
use crate::verdict;

/// What one key does at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Nothing: the evidence answers.
    Look,
    /// Ask for a yes, then run.
    Run(Box<Prepared>),
    /// Ask.
    Ask(Asked),
    /// Something for the engineer to do.
    Apply {
        /// What to do.
        text: String,
        /// `stop-gap`, `fix`, `verification`, `prevention` or `check`.
        scope: &'static str,
    },
    /// Another room's work: the kernel check, the probe, a repro.
    Room {
        /// Which.
        kind: StepKind,
        /// Why not, where this build can't.
        unavailable: Option<&'static str>,
    },
}

/// A command, ready to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Words, the program first; as they are, not escaped.
    pub command: Vec<String>,
    /// Variables to set.
    pub environment: Vec<(String, String)>,
    /// Most seconds that it may take.
    pub deadline_s: u64,
    /// The whole command as a person would type it, escaped; or why it can't be written so.
    pub text: String,
    /// Whether words of it come from the inputs: somebody else wrote them.
    pub from_input: bool,
    /// What it lacks; it can't run before what is required of it is filled in.
    pub needs: Vec<Need>,
}

/// A question, ready to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The question.
    pub text: String,
    /// What kind of answer.
    pub answer: AnswerKind,
    /// The choices of a choice.
    pub choices: Vec<String>,
}

/// Said by the kinds whose rooms are not there yet.
const NOT_AVAILABLE: &str = "not available in this build";

pub(super) fn act(
    step: &Step,
    known: &Arc<Known>,
    unavailable: &[StepKind],
    probe: Option<&Prepared>,
    repro: Option<&Prepared>,
) -> Act {
    if let (StepKind::Repro, Some(prepared)) = (step.kind, repro) {
        return Act::Run(Box::new(prepared.clone()));
    }
    match &step.action {
        Action::None
            if step.kind == StepKind::Probe && probe.is_some() && !unavailable.contains(&step.kind) =>
        {
            Act::Run(Box::new(probe.cloned().unwrap_or_default()))
        }
        Action::Run(rerun) => Act::Run(Box::new(prepare(rerun, known))),
        Action::Ask(question) => Act::Ask(ask(question, known)),
        Action::Apply(advice) => {
            Act::Apply { text: sentence(&advice.text.text, known).0, scope: advice.scope.name() }
        }
        Action::None if step.kind.is_automatic() => Act::Look,
        Action::None => Act::Room {
            kind: step.kind,
            unavailable: unavailable.contains(&step.kind).then_some(NOT_AVAILABLE),
        },
    }
}

fn ask(question: &Question, known: &Arc<Known>) -> Asked {
    Asked {
        text: sentence(&question.text.text, known).0,
        answer: question.answer,
        choices: question.choices.iter().map(|choice| shown(choice)).collect(),
    }
}

/// The answer that the evidence has.
pub(super) fn known_answer(question: &Question, known: &Arc<Known>) -> Option<Known> {
    let value = condition::value(&question.known.as_ref()?.text, known).ok()??;
    if let Some(text) = value.as_str() {
        return Some(Known::from(text));
    }
    i128::try_from(value).ok().map(Known::Int)
}

fn prepare(rerun: &Rerun, known: &Arc<Known>) -> Prepared {
    let mut needs: Vec<Need> = Vec::new();
    // Names that a text lacks; a place of their own is filled in, others need the whole line.
    let mut lacks = |names: &[String], fill: Fill| {
        if !names.is_empty() && !needs.iter().any(|need| need.fill == fill) {
            needs.push(Need::new(names.join(", "), "", fill));
        }
    };
    let mut environment = Vec::new();
    for (name, value) in &rerun.environment {
        let (text, names) = word(&value.text, known);
        lacks(&names, Fill::Line);
        environment.push((name.clone(), text));
    }
    let templates = if rerun.command.is_empty() { &rerun.before } else { &rerun.command };
    let mut command = Vec::new();
    for template in templates {
        let (text, names) = word(&template.text, known);
        if text.is_empty() {
            continue;
        }
        let holes = text.matches(template::NOT_KNOWN).count();
        let fill = if holes == 1 { Fill::Within(command.len(), template::NOT_KNOWN) } else { Fill::Line };
        lacks(&names, fill);
        command.push(text);
    }
    let mut from_input = templates.iter().any(|source| source.text.contains("{{"));
    if rerun.command.is_empty() {
        match own_command(known) {
            Some(words) if rerun.in_rank => {
                from_input = true;
                if let Some(whole) = verdict::in_rank(&command, &words, root_rank(known)) {
                    command = whole;
                } else {
                    let why =
                        "in front of a launcher they work on the launcher: put them where it starts one rank";
                    needs.push(Need::new(
                        format!(
                            "a place for the words of {}",
                            command.first().map_or("the tool", String::as_str)
                        ),
                        why,
                        Fill::Line,
                    ));
                    command.extend(words);
                }
            }
            Some(words) => {
                command.extend(words);
                from_input = true;
            }
            None => {
                let why = "how the job was started, with its arguments";
                needs.push(Need::new("the command that failed", why, Fill::Command(command.len())));
                command.push(verdict::YOUR_COMMAND.to_owned());
            }
        }
    }
    let text = command_text(&environment, &command);
    Prepared { command, environment, deadline_s: rerun.deadline_s, text, from_input, needs }
}

/// A template, filled in, and the names that it lacks.
fn word(template: &str, known: &Arc<Known>) -> (String, Vec<String>) {
    match template::render(template, known) {
        Ok(rendered) => (rendered.text, rendered.needs),
        Err(_) => (template::NOT_KNOWN.to_owned(), Vec::new()),
    }
}

fn root_rank(known: &Known) -> Option<u32> {
    match known.get("verdict.root_rank")? {
        Known::Int(rank) => u32::try_from(*rank).ok(),
        _ => None,
    }
}

/// The engineer's own words.
fn own_command(known: &Known) -> Option<Vec<String>> {
    let Some(Known::List(words)) = known.get("launch.command") else { return None };
    let words: Vec<String> = words
        .iter()
        .filter_map(|word| match word {
            Known::Text(word) => Some(word.clone()),
            _ => None,
        })
        .collect();
    Some(words).filter(|words| !words.is_empty())
}

/// A command as a person would type it into a shell, quoted by shlex and escaped for the screen.
#[must_use]
pub fn command_text(environment: &[(String, String)], command: &[String]) -> String {
    match shell_line(environment, command) {
        Some(line) => crate::text::escape(&line).to_string(),
        None => "(a word of this command holds a NUL byte: it can't be typed into a shell)".to_owned(),
    }
}

/// The same, not escaped, for the clipboard and for logs; none where a word can't be quoted.
#[must_use]
pub fn shell_line(environment: &[(String, String)], command: &[String]) -> Option<String> {
    let mut words = Vec::new();
    if !environment.is_empty() {
        words.push("env".to_owned());
    }
    for (name, value) in environment {
        // The name alone may stand unquoted: quoted whole, `'A=1'` would read as a strange program.
        words.push(format!("{}={}", shlex::try_quote(name).ok()?, shlex::try_quote(value).ok()?));
    }
    for word in command {
        words.push(shlex::try_quote(word).ok()?.into_owned());
    }
    Some(words.join(" "))
}
