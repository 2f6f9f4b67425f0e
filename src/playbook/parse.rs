//! Playbook files to playbooks.
//!
//! In: a file's name and text. Out: [`Parsed`]: the playbook as far as it could be read, and every fault of its form.
//! Whether conditions, branches and patterns make sense is `check`'s business.

use toml::de::DeTable;

use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::fault::Fault;
use super::schema::{
    Action, Advice, AnswerKind, Outcome, Playbook, Question, Rerun, SCHEMA, Scope, SignatureRule, Source,
    Step, StepKind,
};
use super::toml_view::{Page, View};

/// Largest playbook file in bytes.
const SIZE_LIMIT: usize = 1 << 20;

/// Most steps of a playbook, and most outcomes of a step.
const COUNT_LIMIT: usize = 200;

/// Seconds that a run may take where the file doesn't say.
const DEADLINE_S: u64 = 1_800;

/// Longest deadline: a week.
const LONGEST_DEADLINE_S: u64 = 7 * 24 * 3_600;

/// A file, read.
#[derive(Debug)]
pub struct Parsed {
    /// The playbook; none where the text is no TOML or names no id.
    pub playbook: Option<Playbook>,
    /// What is wrong with its form.
    pub faults: Vec<Fault>,
}

/// Reads a playbook file.
#[must_use]
pub fn parse(file: &str, text: &str) -> Parsed {
    let mut page = Page::new(file, text);
    if text.len() > SIZE_LIMIT {
        page.fault(1, "", format!("is larger than {SIZE_LIMIT} bytes; a playbook has a few thousand"));
        return Parsed { playbook: None, faults: page.faults };
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let line = page.line(error.span().map_or(0, |span| span.start));
        page.fault(line, "", format!("is no TOML here: {}", error.message()));
    }
    if !errors.is_empty() {
        return Parsed { playbook: None, faults: page.faults };
    }
    let mut top = View::new(&page, document.get_ref(), "", &document.span());
    schema(&mut page, &mut top);
    let playbook = playbook(&mut page, &mut top);
    top.finish(&mut page);
    Parsed { playbook, faults: page.faults }
}

fn schema(page: &mut Page<'_>, top: &mut View<'_, '_>) {
    match top.number(page, "schema") {
        Some(version) if i64::try_from(version) == Ok(SCHEMA) => {}
        Some(version) => page.fault(1, "schema", format!("is {version}; this build reads {SCHEMA}")),
        None => page.fault(1, "schema", format!("is missing: write schema = {SCHEMA} at the top")),
    }
}

fn playbook(page: &mut Page<'_>, top: &mut View<'_, '_>) -> Option<Playbook> {
    let Some(mut head) = top.table(page, "playbook") else {
        page.fault(1, "playbook", "is missing: [playbook] with id, title and classes");
        return None;
    };
    let id = head.required(page, "id");
    check_id(page, &id, &head.key("id"));
    let title = head.required(page, "title").text;
    let about = head.text(page, "about").map(|source| source.text);
    let classes = named(page, &mut head, "classes", FailureClass::from_name, "failure class");
    let causes = named(page, &mut head, "causes", CauseKind::from_name, "cause");
    let when = head.text(page, "when");
    let references = texts(head.texts(page, "references"));
    let line = head.line();
    head.finish(page);

    let steps: Vec<Step> = views(page, top, "step").into_iter().map(|view| step(page, view)).collect();
    let signatures: Vec<SignatureRule> =
        views(page, top, "signature").into_iter().filter_map(|view| signature(page, view)).collect();
    if steps.is_empty() && signatures.is_empty() {
        page.fault(line, "step", "there is none: a playbook needs at least one [[step]] or [[signature]]");
    }
    if id.text.is_empty() {
        return None;
    }
    Some(Playbook {
        file: page.file().to_owned(),
        line: id.line,
        id: id.text,
        title,
        about,
        classes,
        causes,
        when,
        references,
        steps,
        signatures,
    })
}

fn views<'t, 'i>(page: &mut Page<'_>, top: &mut View<'t, 'i>, name: &str) -> Vec<View<'t, 'i>> {
    let mut views = top.tables(page, name);
    if views.len() > COUNT_LIMIT {
        page.fault(1, name, format!("{} of them; at most {COUNT_LIMIT}", views.len()));
        views.truncate(COUNT_LIMIT);
    }
    views
}

fn texts(sources: Vec<Source>) -> Vec<String> {
    sources.into_iter().map(|source| source.text).collect()
}

fn named<T>(
    page: &mut Page<'_>,
    view: &mut View<'_, '_>,
    key: &str,
    find: fn(&str) -> Option<T>,
    what: &str,
) -> Vec<T> {
    let mut found = Vec::new();
    for source in view.texts(page, key) {
        match find(&source.text) {
            Some(value) => found.push(value),
            None => page.fault(source.line, view.key(key), format!("`{}` is no {what}", source.text)),
        }
    }
    found
}

fn check_id(page: &mut Page<'_>, id: &Source, key: &str) {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let first = id.text.chars().next().is_some_and(|c| c.is_ascii_lowercase());
    if !id.text.is_empty() && (!first || !id.text.chars().all(good) || id.text == "end") {
        page.fault(
            id.line,
            key,
            format!(
                "`{}` is no id: lower-case letters, digits and hyphens, a letter first; not `end`",
                id.text
            ),
        );
    }
}

fn step(page: &mut Page<'_>, mut view: View<'_, '_>) -> Step {
    let id = view.required(page, "id");
    check_id(page, &id, &view.key("id"));
    let spelled = view.required(page, "kind");
    let kind = StepKind::from_name(&spelled.text).unwrap_or_else(|| {
        if !spelled.text.is_empty() {
            let known: Vec<&str> = StepKind::ALL.into_iter().map(StepKind::name).collect();
            page.fault(
                spelled.line,
                view.key("kind"),
                format!("`{}` is no kind; known: {}", spelled.text, known.join(", ")),
            );
        }
        StepKind::Look
    });
    let title = view.required(page, "title").text;
    let why = view.required(page, "why").text;
    let cost = view.required(page, "cost").text;
    let step = Step {
        line: view.line(),
        id: id.text,
        kind,
        title,
        why,
        cost,
        misread: view.text(page, "misread").map(|source| source.text),
        when: view.text(page, "when"),
        answered: view.text(page, "answered"),
        shows: view.text(page, "shows"),
        unknown: view.text(page, "unknown"),
        action: action(page, &mut view, kind),
        outcomes: outcomes(page, &mut view),
        references: texts(view.texts(page, "references")),
    };
    view.finish(page);
    step
}

fn action(page: &mut Page<'_>, view: &mut View<'_, '_>, kind: StepKind) -> Action {
    match kind {
        StepKind::Ask => Action::Ask(question(page, view)),
        StepKind::Run => Action::Run(Box::new(rerun(page, view))),
        StepKind::Apply => Action::Apply(advice(page, view)),
        _ => Action::None,
    }
}

fn question(page: &mut Page<'_>, view: &mut View<'_, '_>) -> Question {
    let text = view.required(page, "question");
    let spelled = view.required(page, "answer");
    let answer = AnswerKind::from_name(&spelled.text).unwrap_or_else(|| {
        if !spelled.text.is_empty() {
            page.fault(
                spelled.line,
                view.key("answer"),
                format!("`{}` is no kind of answer; known: choice, number, shape, text", spelled.text),
            );
        }
        AnswerKind::Text
    });
    let choices = texts(view.texts(page, "choices"));
    let known = view.text(page, "known");
    match answer {
        AnswerKind::Choice if choices.len() < 2 => {
            page.fault(view.line(), view.key("choices"), "a choice needs at least two");
        }
        AnswerKind::Choice => {}
        _ if !choices.is_empty() => {
            page.fault(view.line(), view.key("choices"), "only an answer = \"choice\" has choices");
        }
        _ => {}
    }
    Question { text, answer, choices, known }
}

fn rerun(page: &mut Page<'_>, view: &mut View<'_, '_>) -> Rerun {
    let environment = view.pairs(page, "environment");
    for (name, value) in &environment {
        let good = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        if !good || name.is_empty() {
            page.fault(value.line, view.key("environment"), format!("`{name}` is no variable's name"));
        }
    }
    let mut before = view.texts(page, "before");
    let within = view.texts(page, "in_rank");
    let command = view.texts(page, "command");
    for (words, key) in [(&before, "before"), (&within, "in_rank")] {
        if !words.is_empty() && !command.is_empty() {
            page.fault(
                view.line(),
                view.key(key),
                "stands before the engineer's own command; with command there is none",
            );
        }
    }
    if !before.is_empty() && !within.is_empty() {
        page.fault(
            view.line(),
            view.key("in_rank"),
            "stands for before: words go in front of the whole command or of one rank's program",
        );
    }
    let in_rank = !within.is_empty();
    before.extend(within);
    if environment.is_empty() && before.is_empty() && command.is_empty() {
        page.fault(
            view.line(),
            view.key("environment"),
            "a run changes something: environment, before, in_rank or command",
        );
    }
    let deadline_s = view.number(page, "deadline_s").unwrap_or(DEADLINE_S).min(LONGEST_DEADLINE_S);
    Rerun { environment, before, in_rank, command, deadline_s }
}

fn advice(page: &mut Page<'_>, view: &mut View<'_, '_>) -> Advice {
    let text = view.required(page, "text");
    let spelled = view.required(page, "scope");
    let scope = Scope::from_name(&spelled.text).unwrap_or_else(|| {
        if !spelled.text.is_empty() {
            page.fault(
                spelled.line,
                view.key("scope"),
                format!(
                    "`{}` is no scope; known: stop-gap, fix, verification, prevention, check",
                    spelled.text
                ),
            );
        }
        Scope::Check
    });
    Advice { text, scope }
}

fn outcomes(page: &mut Page<'_>, view: &mut View<'_, '_>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for (at, mut view) in views(page, view, "outcome").into_iter().enumerate() {
        let id = view.text(page, "id");
        if let Some(id) = &id {
            check_id(page, id, &view.key("id"));
        }
        outcomes.push(Outcome {
            id: id.map_or_else(|| (at + 1).to_string(), |id| id.text),
            line: view.line(),
            when: view.text(page, "when"),
            reading: view.required(page, "reading"),
            goto: view.text(page, "goto"),
        });
        view.finish(page);
    }
    outcomes
}

fn signature(page: &mut Page<'_>, mut view: View<'_, '_>) -> Option<SignatureRule> {
    let id = view.required(page, "id");
    check_id(page, &id, &view.key("id"));
    let pattern = view.required(page, "pattern");
    let spelled = view.required(page, "class");
    let class = FailureClass::from_name(&spelled.text);
    if class.is_none() && !spelled.text.is_empty() {
        page.fault(spelled.line, view.key("class"), format!("`{}` is no failure class", spelled.text));
    }
    let matching = view.texts(page, "match");
    if matching.is_empty() {
        page.fault(view.line(), view.key("match"), "is missing: give at least one line that must match");
    }
    let not_matching = view.texts(page, "no_match");
    let rule = class.filter(|_| !pattern.text.is_empty()).map(|class| SignatureRule {
        id: id.text,
        line: view.line(),
        pattern,
        class,
        matching,
        not_matching,
    });
    view.finish(page);
    rule
}
