//! What was checked, and what to do next.
//!
//! In: the report's checks, next steps and mitigations. Out: items; rows are checks first, then steps. A playbook that is
//! walked step by step takes this pane's place: it has to fill [`items`], [`rows`] and [`row`] only.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::report::Report;
use crate::report::model::{Check, Mitigation, Next};
use crate::tui::claims;
use crate::tui::model::{Incident, Model, Pane};
use crate::tui::theme::Role;

use super::checks;
use super::list::Item;
use super::wrap::wrap;

/// What a row of the pane stands for.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// A check.
    Check(&'a Check),
    /// A next step.
    Next(&'a Next),
    /// A stop-gap or fix.
    Mitigation(&'a Mitigation),
}

/// The row with this number: steps first, since they are what the pane is opened for.
pub fn row(report: &Report, row: usize) -> Option<Row<'_>> {
    let steps = report.next.iter().map(Row::Next);
    let mitigations = report.mitigations.iter().map(Row::Mitigation);
    steps.chain(mitigations).chain(report.checks.iter().map(Row::Check)).nth(row)
}

/// Rows of the pane.
pub fn rows(report: &Report) -> usize {
    report.next.len() + report.mitigations.len() + report.checks.len()
}

/// The items of the pane.
pub fn items(model: &Model, incident: &Incident, area: Rect) -> Vec<Item> {
    let Some(report) = incident.report() else { return Vec::new() };
    let width = usize::from(area.width).saturating_sub(3);
    let focus = (incident.pane == Pane::Playbook).then(|| incident.row_of(Pane::Playbook));
    let mut items = Vec::new();
    let mut last = "";
    for number in 0..rows(report) {
        let Some(row) = row(report, number) else { break };
        let title = match row {
            Row::Next(_) => "To find out, cheapest first",
            Row::Mitigation(_) => "To get going",
            Row::Check(_) => "Checked",
        };
        if title != last {
            if !last.is_empty() {
                items.push(Item::gap());
            }
            items.push(Item::plain(vec![Line::styled(title, model.theme.style(Role::Muted))]));
            last = title;
        }
        let here = focus == Some(number);
        let lines = match row {
            Row::Next(next) => next_lines(model, next, here, width),
            Row::Mitigation(mitigation) => mitigation_lines(model, mitigation, here, width),
            Row::Check(check) => checks::lines(model, check, here, width),
        };
        items.push(Item::at(number, lines));
    }
    if items.is_empty() {
        let text = "Nothing to check: no failure was found.";
        items.push(Item::plain(vec![Line::styled(text, model.theme.style(Role::Muted))]));
    }
    items
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
