//! Playbooks, names and walks as text.
//!
//! In: a library, a playbook, a walk. Out: plain text, every foreign string escaped.

use std::fmt::Write;

use crate::playbook::names::Name;
use crate::playbook::schema::{Action, Playbook, Step};
use crate::playbook::walk::{Act, End, Walk, WalkStep};
use crate::playbook::{Library, StepState};
use crate::text::escape;

/// Playbooks, one a line.
pub(super) fn list(library: &Library) -> String {
    let mut out = String::new();
    for playbook in library.playbooks() {
        let classes: Vec<&str> = playbook.classes.iter().map(|class| class.name()).collect();
        let _ = writeln!(
            out,
            "{:20} {:44} {} ({} steps)",
            escape(&playbook.id),
            escape(&playbook.title),
            classes.join(", "),
            playbook.steps.len()
        );
    }
    out
}

/// Names with their meanings.
pub(super) fn names(names: &[Name]) -> String {
    let mut out = String::new();
    for name in names {
        let _ = writeln!(out, "{:34} {:7} {}", name.path, name.sample.kind(), name.meaning);
    }
    out.push_str(
        "\nknown('NAME')                      yes/no  whether a name has a value; never missing itself\n",
    );
    out
}

/// A playbook as a page.
pub(super) fn playbook(playbook: &Playbook) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}: {}", escape(&playbook.id), escape(&playbook.title));
    if let Some(about) = &playbook.about {
        let _ = writeln!(out, "{}", escape(about));
    }
    let classes: Vec<&str> = playbook.classes.iter().map(|class| class.name()).collect();
    let causes: Vec<&str> = playbook.causes.iter().map(|cause| cause.name()).collect();
    let _ = writeln!(out, "serves  {}", classes.join(", "));
    if !causes.is_empty() {
        let _ = writeln!(out, "causes  {}", causes.join(", "));
    }
    if let Some(when) = &playbook.when {
        let _ = writeln!(out, "when    {}", escape(&when.text));
    }
    for (number, one) in playbook.steps.iter().enumerate() {
        step(&mut out, number + 1, one);
    }
    for signature in &playbook.signatures {
        let _ = writeln!(
            out,
            "\nsignature {}: {} means {}",
            escape(&signature.id),
            escape(&signature.pattern.text),
            signature.class.name()
        );
    }
    for reference in &playbook.references {
        let _ = writeln!(out, "\nsee {}", escape(reference));
    }
    out
}

fn step(out: &mut String, number: usize, step: &Step) {
    let _ = writeln!(out, "\n{number}. {} [{}, {}]", escape(&step.title), step.kind.name(), escape(&step.id));
    let _ = writeln!(out, "   why      {}", escape(&step.why));
    let _ = writeln!(out, "   cost     {}", escape(&step.cost));
    if let Some(misread) = &step.misread {
        let _ = writeln!(out, "   misread  {}", escape(misread));
    }
    if let Some(when) = &step.when {
        let _ = writeln!(out, "   when     {}", escape(&when.text));
    }
    match &step.action {
        Action::Ask(question) => {
            let _ = writeln!(out, "   asks     {}", escape(&question.text.text));
        }
        Action::Run(rerun) => {
            let settings = rerun.environment.iter().map(|(name, value)| format!("{name}={}", value.text));
            let words = if rerun.command.is_empty() { &rerun.before } else { &rerun.command };
            let words = words.iter().map(|word| word.text.clone());
            let own = rerun.command.is_empty().then(|| "YOUR COMMAND".to_owned());
            let line: Vec<String> = settings.chain(words).chain(own).collect();
            let _ = writeln!(out, "   runs     {}", escape(&line.join(" ")));
        }
        Action::Apply(advice) => {
            let _ = writeln!(out, "   {:8} {}", advice.scope.name(), escape(&advice.text.text));
        }
        Action::None => {}
    }
    for outcome in &step.outcomes {
        let when = outcome.when.as_ref().map_or("otherwise", |when| when.text.as_str());
        let _ = writeln!(out, "   - {} [{}]", escape(&outcome.id), escape(when));
        let _ = writeln!(out, "     {}", escape(&outcome.reading.text));
        if let Some(goto) = &outcome.goto {
            let _ = writeln!(out, "     → {}", escape(&goto.text));
        }
    }
}

/// A walk: what was answered, what it means, what is open. Its texts are escaped already.
pub(in crate::cli) fn walk_page(walk: &Walk) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", walk.title);
    for step in walk.steps.iter().filter(|step| step.state != StepState::Aside) {
        walk_step(&mut out, step);
    }
    match &walk.end {
        Some(End::Repeats(at)) => {
            let _ = writeln!(out, "\nback at step {}", at.step);
        }
        Some(End::Lost(to)) => {
            let _ = writeln!(out, "\nthe walk leads to {}, which is not there", escape(to));
        }
        Some(End::Reached) | None => {}
    }
    out
}

fn walk_step(out: &mut String, step: &WalkStep) {
    let _ = writeln!(out, "\n[{}] {} ({})", step.state.name(), step.title, step.at.step);
    if let Some(shows) = &step.shows {
        let _ = writeln!(out, "    {shows}");
    }
    if let Some(reading) = &step.reading {
        let _ = writeln!(out, "    {reading}");
    }
    let waits = matches!(step.state, StepState::Open | StepState::Skipped | StepState::Ahead);
    match &step.act {
        Act::Apply { text, scope } => {
            let _ = writeln!(out, "    {scope}: {text}");
        }
        Act::Run(prepared) if waits => {
            let _ = writeln!(out, "    $ {}", prepared.text);
            let _ = writeln!(out, "    cost: {}", step.cost);
        }
        Act::Ask(asked) if waits => {
            let choices = if asked.choices.is_empty() {
                String::new()
            } else {
                format!(" [{}]", asked.choices.join(" | "))
            };
            let _ = writeln!(out, "    {}{choices}", asked.text);
        }
        _ => {}
    }
}
