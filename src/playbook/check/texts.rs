//! Conditions and sentences: syntax, names, and whether they can be evaluated where every name has a value.

use std::sync::Arc;

use super::super::known::Known;
use super::super::names;
use super::super::schema::{Action, AnswerKind, Playbook, Source, StepKind, name_of};
use super::super::{condition, template};
use super::{Doubts, has_run};

pub(super) fn check(playbook: &Playbook, doubts: &mut Doubts<'_>) {
    let known = Arc::new(sample(playbook));
    let page = Page { playbook, known: &known };
    if let Some(when) = &playbook.when {
        page.condition(when, "playbook.when", false, doubts);
    }
    for step in &playbook.steps {
        let run = has_run(step);
        let conditions = [(&step.when, "step.when"), (&step.answered, "step.answered")];
        for (source, key) in conditions {
            if let Some(source) = source {
                page.condition(source, key, false, doubts);
            }
        }
        for (source, key) in [(&step.shows, "step.shows"), (&step.unknown, "step.unknown")] {
            if let Some(source) = source {
                page.template(source, key, run, doubts);
            }
        }
        for outcome in &step.outcomes {
            if let Some(when) = &outcome.when {
                page.condition(when, "step.outcome.when", run, doubts);
            }
            page.template(&outcome.reading, "step.outcome.reading", run, doubts);
        }
        page.action(&step.action, doubts);
    }
}

struct Page<'a> {
    playbook: &'a Playbook,
    known: &'a Arc<Known>,
}

impl Page<'_> {
    fn action(&self, action: &Action, doubts: &mut Doubts<'_>) {
        match action {
            Action::None => {}
            Action::Ask(question) => {
                self.template(&question.text, "step.question", false, doubts);
                if let Some(known) = &question.known {
                    self.names(known, "step.known", condition::names(&known.text), false, doubts);
                }
            }
            Action::Run(rerun) => {
                for (_, value) in &rerun.environment {
                    self.template(value, "step.environment", false, doubts);
                }
                for (words, key) in [(&rerun.before, "step.before"), (&rerun.command, "step.command")] {
                    for word in words {
                        self.template(word, key, false, doubts);
                    }
                }
            }
            Action::Apply(advice) => self.template(&advice.text, "step.text", false, doubts),
        }
    }

    fn condition(&self, source: &Source, key: &str, run: bool, doubts: &mut Doubts<'_>) {
        self.names(source, key, condition::names(&source.text), run, doubts);
        for word in ["is defined", "is undefined", "| default", "|default"] {
            if source.text.contains(word) {
                doubts.at(
                    source,
                    key,
                    format!(
                        "`{word}`: a missing name makes a condition unknown; ask known('name') in its place"
                    ),
                );
                return;
            }
        }
        // Each part by itself: in `a or b` a fault of b would hide behind an a that holds.
        match condition::parts(&source.text) {
            Err(why) => doubts.at(source, key, format!("can't be evaluated: {why}")),
            Ok(parts) => {
                for part in parts {
                    if let Err(why) = condition::judge(&part, self.known) {
                        doubts.at(source, key, format!("can't be evaluated: {why}"));
                    }
                }
            }
        }
    }

    fn template(&self, source: &Source, key: &str, run: bool, doubts: &mut Doubts<'_>) {
        self.names(source, key, template::names(&source.text), run, doubts);
        if let Err(why) = template::render(&source.text, self.known) {
            doubts.at(source, key, format!("can't be filled in: {why}"));
        }
    }

    fn names(
        &self,
        source: &Source,
        key: &str,
        names: Result<Vec<String>, String>,
        run: bool,
        doubts: &mut Doubts<'_>,
    ) {
        for name in names.unwrap_or_default() {
            if let Some(why) = self.doubt(&name, run) {
                doubts.at(source, key, why);
            }
        }
    }

    /// Why a name is none.
    fn doubt(&self, name: &str, run: bool) -> Option<String> {
        let mut parts = name.split('.');
        let root = parts.next().unwrap_or("");
        let second = parts.next().unwrap_or("");
        let steps = || self.playbook.steps.iter();
        match root {
            "this" if !run => {
                Some(format!("`{name}`: only the outcomes of a run or probe step have a run to speak of"))
            }
            "answers" => {
                let asked = steps().any(|step| step.kind == StepKind::Ask && name_of(&step.id) == second);
                (!asked)
                    .then(|| format!("`{name}`: no ask step has the id `{second}` (hyphens as underscores)"))
            }
            "outcomes" => {
                let there = steps().any(|step| name_of(&step.id) == second);
                (!there).then(|| format!("`{name}`: no step has the id `{second}` (hyphens as underscores)"))
            }
            _ if names::is_known(name) => None,
            _ => Some(match names::nearest(name) {
                Some(near) => format!("`{name}` is no name; did you mean `{near}`?"),
                None => format!("`{name}` is no name; `warpfault playbook show --names` lists them"),
            }),
        }
    }
}

/// A tree in which every name that the playbook may ask for has a value.
fn sample(playbook: &Playbook) -> Known {
    let mut known = names::sample();
    for step in &playbook.steps {
        let name = name_of(&step.id);
        let first = step.outcomes.first().map_or("1", |outcome| outcome.id.as_str());
        known.put(&format!("outcomes.{name}"), first);
        if let Action::Ask(question) = &step.action {
            let answer = match question.answer {
                AnswerKind::Number => Known::from(234_624),
                AnswerKind::Shape => known.get("shapes.first").cloned().unwrap_or_default(),
                AnswerKind::Choice => Known::from(question.choices.first().map_or("", String::as_str)),
                AnswerKind::Text => Known::from("text"),
            };
            known.put(&format!("answers.{name}"), answer);
        }
    }
    known
}
