//! Typed commands, copying and the editor.
//!
//! In: the model and a command. Out: the model changed, and what is to be done.

use std::path::PathBuf;
use std::sync::Arc;

use crate::playbook::walk::{Act, shell_line};
use crate::source::InputSpec;
use crate::text::LogText;
use crate::tui::claims;
use crate::tui::command::Command;
use crate::tui::model::{Model, Overlay, Pane};
use crate::tui::msg::Cmd;
use crate::tui::view::playbook;

use super::{action, jump, logs, open, prompt};

/// Carries a typed command out.
pub fn run(model: &mut Model, command: Command) -> Vec<Cmd> {
    match command {
        Command::Open(path) => open::open_typed(model, &path),
        Command::Quit => action::leave(model),
        Command::Help => {
            model.overlay = Some(Overlay::Help(0));
            Vec::new()
        }
        Command::Theme(palette) => {
            model.theme.palette = palette;
            Vec::new()
        }
        _ if model.incident.is_none() => {
            model.say("Nothing is open yet. Paste a log, or :open PATH.");
            Vec::new()
        }
        command => run_in_incident(model, command),
    }
}

fn run_in_incident(model: &mut Model, command: Command) -> Vec<Cmd> {
    match command {
        Command::Add(path) => {
            let path = prompt::typed_path(model, &path);
            open::add(model, InputSpec::from_argument(path.as_os_str()))
        }
        Command::Again => open::again(model),
        Command::Follow => {
            if let Some(incident) = model.incident.as_mut() {
                incident.follow = !incident.follow;
                incident.log.tail = incident.follow;
            }
            open::reopen(model)
        }
        Command::Search(pattern) => logs::search(model, &pattern),
        Command::Only { pattern, invert } => prompt::only(model, &pattern, invert),
        Command::Rank(rank) => {
            let before =
                model.incident.as_ref().map(|incident| incident.log.filter.clone()).unwrap_or_default();
            logs::set_filter(model, crate::tui::log::filter::Filter { rank: Some(rank), ..before })
        }
        Command::Kind(name) => kind(model, &name),
        Command::All => logs::clear_filter(model),
        Command::Goto(line) => {
            goto(model, line);
            Vec::new()
        }
        Command::Wrap => {
            logs::toggle_wrap(model);
            Vec::new()
        }
        Command::Save(path) => {
            let path = prompt::typed_path(model, &path);
            open::save(model, Some(path))
        }
        Command::Export(path) => match &model.incident {
            Some(incident) if incident.analysis.is_some() => {
                let report = incident.analysis.as_ref().map(|analysis| Arc::clone(&analysis.report));
                report
                    .map(|report| Cmd::Export { path: prompt::typed_path(model, &path), report })
                    .into_iter()
                    .collect()
            }
            _ => {
                model.say("There is no report yet.");
                Vec::new()
            }
        },
        Command::Open(_) | Command::Quit | Command::Help | Command::Theme(_) => Vec::new(),
    }
}

fn kind(model: &mut Model, name: &str) -> Vec<Cmd> {
    let wanted = name.replace('_', " ");
    let Some(incident) = model.incident.as_ref() else { return Vec::new() };
    let found = logs::kinds(incident).into_iter().find(|kind| claims::kind_name(*kind) == wanted);
    match found {
        Some(kind) => {
            let before = incident.log.filter.clone();
            logs::set_filter(model, crate::tui::log::filter::Filter { kind: Some(kind), ..before })
        }
        None => {
            model.say(format!("No evidence of the kind {} in this input.", LogText::new(name)));
            Vec::new()
        }
    }
}

fn goto(model: &mut Model, line: u64) {
    let Some(incident) = model.incident.as_ref() else { return };
    let source = incident.log.source;
    let at = incident.log.indexes.get(source).and_then(|index| index.offset(incident.bytes(), line));
    match at {
        Some(at) => {
            action::focus(model, Pane::Log);
            jump::go(model, source, at);
        }
        None => model.say("The lines are still being counted."),
    }
}

/// Copies what is in focus: a command where there is one, else the sentence or the line.
pub fn copy(model: &mut Model) -> Vec<Cmd> {
    let Some(incident) = model.incident.as_ref() else { return Vec::new() };
    let copied = match incident.pane {
        Pane::Log => {
            let line = incident.lines().text(incident.log.cursor);
            Some((LogText::from_bytes(line.get(..64 << 10).unwrap_or(line)).to_string(), "the line"))
        }
        Pane::Playbook => incident
            .analysis
            .as_ref()
            .and_then(|analysis| playbook::row(analysis, incident.row_of(Pane::Playbook)))
            .map(copied_step),
        pane => incident.report().and_then(|report| copied_from(report, pane, incident.row_of(pane))),
    };
    match copied {
        Some((text, what)) => vec![Cmd::Copy { text, what }],
        None => {
            model.say("Nothing to copy here.");
            Vec::new()
        }
    }
}

fn copied_from(report: &crate::report::Report, pane: Pane, row: usize) -> Option<(String, &'static str)> {
    match pane {
        Pane::Verdict => {
            let claims = claims::claims(report);
            let claim = claims.get(row)?;
            let what = if claim.command.is_some() { "the command" } else { "the sentence" };
            Some((claim.copied().to_owned(), what))
        }
        Pane::Evidence => report.evidence.get(row).map(|evidence| (evidence.text.clone(), "the evidence")),
        Pane::Ranks => {
            let rank = report.ranks.get(row)?;
            Some((format!("rank {}: {}", rank.rank, claims::kind_name(rank.state)), "the rank"))
        }
        Pane::Playbook | Pane::Log => None,
    }
}

fn copied_step(row: playbook::Row<'_>) -> (String, &'static str) {
    match row {
        playbook::Row::Step(step) => match &step.act {
            Act::Run(prepared) => {
                // A control character can end a paste early: such a command is copied as it is shown.
                let line = shell_line(&prepared.environment, &prepared.command)
                    .filter(|line| !line.chars().any(char::is_control));
                (line.unwrap_or_else(|| prepared.text.clone()), "the command")
            }
            Act::Apply { text, .. } => (text.clone(), "the sentence"),
            _ => {
                let parts = [Some(&step.title), step.shows.as_ref(), step.reading.as_ref()];
                (parts.into_iter().flatten().cloned().collect::<Vec<_>>().join("\n"), "the step")
            }
        },
        playbook::Row::Next(next) => match &next.command {
            Some(command) => (claims::shell(command), "the command"),
            None => (next.title.clone(), "the step"),
        },
        playbook::Row::Mitigation(mitigation) => (mitigation.summary.clone(), "the sentence"),
        playbook::Row::Check(check) => (format!("{}: {}", check.title, check.reading), "the check"),
    }
}

/// Copies the whole report.
pub fn copy_report(model: &mut Model) -> Vec<Cmd> {
    match model.incident.as_ref().and_then(|incident| incident.analysis.as_ref()) {
        Some(analysis) => vec![Cmd::Copy { text: analysis.markdown.to_string(), what: "the report" }],
        None => {
            model.say("There is no report yet.");
            Vec::new()
        }
    }
}

/// Opens the editor at the source line that the claim names, else at the line of the log.
pub fn edit(model: &mut Model) -> Vec<Cmd> {
    let Some(incident) = model.incident.as_ref() else { return Vec::new() };
    let log = incident.source().and_then(|source| {
        let line = incident.log.number(&source.bytes, incident.log.cursor);
        Some((source.file.clone()?, line))
    });
    let source = (incident.pane == Pane::Verdict)
        .then(|| incident.report().map(claims::claims))
        .flatten()
        .and_then(|claims| claims.get(incident.row())?.place.clone())
        .map(|(file, line)| (PathBuf::from(file), Some(u64::from(line))));
    let choices: Vec<(PathBuf, Option<u64>)> = source.into_iter().chain(log).collect();
    if choices.is_empty() {
        model.say("No file stands behind this: it was pasted or piped. :save FILE puts a paste on disk.");
        return Vec::new();
    }
    vec![Cmd::Edit { choices }]
}
