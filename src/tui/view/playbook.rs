//! The walk through the playbook, what else to do next, and what was checked.
//!
//! In: the walk, and the report's next steps, mitigations and checks. Out: items; rows are the walk's steps first, then the
//! others in this order. A step that the walk doesn't come to has no row.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::playbook::StepState;
use crate::playbook::walk::{End, Walk, WalkStep};
use crate::report::model::{Check, Mitigation, Next};
use crate::tui::claims;
use crate::tui::keymap::Action;
use crate::tui::model::{Incident, Model, Pane};
use crate::tui::source::Analysis;
use crate::tui::theme::Role;

use super::checks;
use super::list::Item;
use super::walk;
use super::wrap::wrap;

/// What a row of the pane stands for.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// A step of the walk.
    Step(&'a WalkStep),
    /// A check.
    Check(&'a Check),
    /// A next step.
    Next(&'a Next),
    /// A stop-gap or fix.
    Mitigation(&'a Mitigation),
}

/// The steps of a walk that have a row.
pub fn steps(walk: &Walk) -> impl Iterator<Item = &WalkStep> {
    walk.steps.iter().filter(|step| step.state != StepState::Aside)
}

/// The row with this number: steps first, since they are what the pane is opened for.
pub fn row(analysis: &Analysis, row: usize) -> Option<Row<'_>> {
    let report = &analysis.report;
    let steps = steps(&analysis.walk).map(Row::Step).chain(report.next.iter().map(Row::Next));
    let mitigations = report.mitigations.iter().map(Row::Mitigation);
    steps.chain(mitigations).chain(report.checks.iter().map(Row::Check)).nth(row)
}

/// The row of the report's next step: the step of the walk that does it, where it is still to be taken, else its own.
pub fn row_of_next(analysis: &Analysis) -> Option<usize> {
    let next = analysis.report.next.first()?;
    let is_ahead = |step: &&WalkStep| !matches!(step.state, StepState::Answered | StepState::Done);
    let step = analysis.walk.called(&next.id).filter(is_ahead);
    let own = step.and_then(|step| steps(&analysis.walk).position(|other| other.at == step.at));
    Some(own.unwrap_or_else(|| steps(&analysis.walk).count()))
}

/// Rows of the pane.
pub fn rows(analysis: &Analysis) -> usize {
    let report = &analysis.report;
    steps(&analysis.walk).count() + report.next.len() + report.mitigations.len() + report.checks.len()
}

/// The items of the pane.
pub fn items(model: &Model, incident: &Incident, area: Rect) -> Vec<Item> {
    let Some(analysis) = &incident.analysis else { return Vec::new() };
    let width = usize::from(area.width).saturating_sub(3);
    let focus = (incident.pane == Pane::Playbook).then(|| incident.row_of(Pane::Playbook));
    let mut items = head(model, &analysis.walk, width);
    let mut last = "";
    let mut steps_ended = false;
    for number in 0..rows(analysis) {
        let Some(row) = row(analysis, number) else { break };
        if !matches!(row, Row::Step(_)) && !std::mem::replace(&mut steps_ended, true) {
            items.extend(tail(model, &analysis.walk, width));
        }
        let title = match row {
            Row::Step(_) => "",
            Row::Next(_) => "To find out, cheapest first",
            Row::Mitigation(_) => "To get going",
            Row::Check(_) => "Checked",
        };
        if title != last {
            if !items.is_empty() {
                items.push(Item::gap());
            }
            items.push(Item::plain(vec![Line::styled(title, model.theme.style(Role::Muted))]));
            last = title;
        }
        let here = focus == Some(number);
        let lines = match row {
            Row::Step(step) => walk::lines(model, incident, step, here, area),
            Row::Next(next) => next_lines(model, next, here, width),
            Row::Mitigation(mitigation) => mitigation_lines(model, mitigation, here, width),
            Row::Check(check) => checks::lines(model, check, here, width),
        };
        items.push(Item::at(number, lines));
    }
    if items.is_empty() {
        let text = if analysis.report.failures.is_empty() {
            "Nothing to check: no failure was found."
        } else {
            "No playbook is about this failure, and no check says more: the verdict and the log have all there is."
        };
        let muted = model.theme.style(Role::Muted);
        let lines = wrap(text, width).into_iter().map(|line| Line::styled(line, muted));
        items.push(Item::plain(lines.collect()));
    }
    items
}

/// The playbook's name, and what it is about.
fn head(model: &Model, walk: &Walk, width: usize) -> Vec<Item> {
    if walk.playbook.is_none() {
        return Vec::new();
    }
    let theme = &model.theme;
    let mut title = vec![Span::styled(walk.title.clone(), theme.style(Role::Title))];
    if !walk.others.is_empty() {
        let key = model.keymap.key(Action::OtherPlaybook);
        let text = format!("  {key}: {} more", walk.others.len());
        title.push(Span::styled(text, theme.style(Role::Muted)));
    }
    let about = walk.about.iter().flat_map(|about| wrap(&theme.words(about), width));
    let lines = std::iter::once(Line::from(title))
        .chain(about.map(|line| Line::styled(line, theme.style(Role::Muted))))
        .collect();
    vec![Item::plain(lines)]
}

/// How the walk ended, and the steps that it doesn't come to.
fn tail(model: &Model, walk: &Walk, width: usize) -> Vec<Item> {
    let mut texts = Vec::new();
    match &walk.end {
        Some(End::Reached) => texts.push("The playbook ends here.".to_owned()),
        Some(End::Repeats(at)) => {
            let title = walk.step(at).map_or("a step that was taken", |step| step.title.as_str());
            texts.push(format!("It leads back to: {title}."));
        }
        Some(End::Lost(to)) => {
            texts.push(format!("It leads to {}, which is not there.", crate::text::escape(to)));
        }
        None => {}
    }
    let aside: Vec<&str> = walk
        .steps
        .iter()
        .filter(|step| step.state == StepState::Aside)
        .map(|step| step.title.as_str())
        .collect();
    if !aside.is_empty() {
        texts.push(format!("Not on this way: {}.", aside.join("; ")));
    }
    let muted = model.theme.style(Role::Muted);
    let lines: Vec<Line<'static>> =
        texts.iter().flat_map(|text| wrap(text, width)).map(|line| Line::styled(line, muted)).collect();
    if lines.is_empty() { Vec::new() } else { vec![Item::plain(lines)] }
}

fn next_lines(model: &Model, next: &Next, here: bool, width: usize) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let mut lines: Vec<Line<'static>> = wrap(&next.title, width)
        .into_iter()
        .map(|line| Line::styled(line, theme.style(if here { Role::Focus } else { Role::Title })))
        .collect();
    let indented = |text: String, role: Role| {
        wrap(&text, width.saturating_sub(2))
            .into_iter()
            .map(move |line| (line, role))
            .map(|(line, role)| Line::from(vec![Span::raw("  "), Span::styled(line, theme.style(role))]))
            .collect::<Vec<_>>()
    };
    if let Some(command) = &next.command {
        lines.extend(indented(format!("$ {}", claims::shell(command)), Role::Link));
    }
    lines.extend(indented(next.why.clone(), Role::Text));
    if !next.cost.is_empty() && next.cost != "none" {
        lines.extend(indented(format!("cost: {}", next.cost), Role::Muted));
    }
    lines
}

fn mitigation_lines(model: &Model, mitigation: &Mitigation, here: bool, width: usize) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let role = if here { Role::Focus } else { Role::Text };
    wrap(&mitigation.summary, width.saturating_sub(14))
        .into_iter()
        .enumerate()
        .map(|(index, line)| {
            let scope = if index == 0 { mitigation.scope.as_str() } else { "" };
            Line::from(vec![
                Span::styled(format!("{scope:<14}"), theme.style(Role::Muted)),
                Span::styled(line, theme.style(role)),
            ])
        })
        .collect()
}
