//! Trials of a probe along the sweep: which sizes passed, which failed, and the fixed kernel beside them.
//!
//! In: the probes among the report's evidence, or what a probe that still runs has printed. Out: lines. What they prove, the
//! verdict says.

use ratatui::text::{Line, Span};

use crate::probe::outcome::Outcome;
use crate::read::event::ProbeFinding;
use crate::report::Report;
use crate::report::probe_text::{ToldTrial, read_told};
use crate::report::trials::{self, TrialRow, Trials};
use crate::tui::model::Model;
use crate::tui::theme::Role;

use super::units::grouped;
use super::wrap::wrap;

/// The lines; none without a probe.
pub fn lines(model: &Model, report: &Report, width: usize) -> Vec<Line<'static>> {
    trials::of(report).iter().flat_map(|probe| of_one(model, probe, width)).collect()
}

fn of_one(model: &Model, probe: &Trials, width: usize) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let mut lines = Vec::new();
    let mut add = |text: &str, role: Role| {
        lines.extend(wrap(text, width).into_iter().map(|line| Line::styled(line, theme.style(role))));
    };
    add(&format!("rerun {} [{}]", probe.heading, probe.evidence), Role::Title);
    if let Some(predicted) = &probe.predicted {
        add(&format!("predicted: {predicted}"), Role::Muted);
    }
    lines.extend(along(model, &probe.rows, &probe.sweep, width));
    if let Some(control) = &probe.control {
        lines.extend(
            wrap(&format!("control {control}"), width)
                .into_iter()
                .map(|line| Line::styled(line, theme.style(Role::Muted))),
        );
        lines.extend(along(model, &probe.control_rows, &probe.sweep, width));
    }
    let role = match probe.conclusion {
        Some(ProbeFinding::Confirmed) => Role::Good,
        Some(ProbeFinding::Refuted) => Role::Danger,
        Some(ProbeFinding::Inconclusive) | None => Role::Warn,
    };
    lines.extend(wrap(&probe.said(), width).into_iter().map(|line| Line::styled(line, theme.style(role))));
    lines
}

/// The trials that ended until now, by size; empty where the lines are of something else.
pub fn so_far(model: &Model, printed: &[String], width: usize) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let mut trials: Vec<ToldTrial> = printed.iter().filter_map(|line| read_told(line)).collect();
    trials.sort_by_key(|trial| (trial.control, trial.size));
    let shown = |size: i64| grouped(i128::from(size));
    let wide = trials.iter().map(|trial| shown(trial.size).len()).max().unwrap_or(0);
    trials
        .iter()
        .map(|trial| {
            let (glyph, role) = match trial.outcome {
                Outcome::Pass => (theme.glyphs.good, Role::Good),
                outcome if outcome.is_fault() => (theme.glyphs.bad, Role::Danger),
                _ => (theme.glyphs.unknown, Role::Muted),
            };
            let outcome = crate::tui::claims::words(trial.outcome.name());
            let whose = if trial.control { "  the fixed kernel" } else { "" };
            let text = format!(" {:>wide$}  {outcome}{whose}", shown(trial.size));
            Line::from(vec![
                Span::styled(glyph, theme.style(role)),
                Span::styled(crate::text::fit(&text, width.saturating_sub(1)), theme.style(role)),
            ])
        })
        .collect()
}

/// The trials in the order of their sizes: a mark, the size, how it ended, why it was tried.
fn along(model: &Model, rows: &[TrialRow], sweep: &str, width: usize) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let mut rows: Vec<&TrialRow> = rows.iter().collect();
    rows.sort_by_key(|row| (row.value.len(), row.value.clone()));
    let wide = rows.iter().map(|row| row.value.len()).max().unwrap_or(0);
    rows.into_iter()
        .map(|row| {
            let (glyph, role) = match row.passed {
                Some(true) => (theme.glyphs.good, Role::Good),
                Some(false) => (theme.glyphs.bad, Role::Danger),
                None => (theme.glyphs.unknown, Role::Muted),
            };
            let outcome = crate::tui::claims::words(&row.outcome);
            let text = format!(" {sweep} = {:>wide$}  {outcome:<16} ", row.value);
            let room = width.saturating_sub(text.len() + 1);
            Line::from(vec![
                Span::styled(glyph, theme.style(role)),
                Span::styled(text, theme.style(role)),
                Span::styled(crate::text::fit(row.role, room).to_string(), theme.style(Role::Muted)),
            ])
        })
        .collect()
}
