//! Trials of a probe along the sweep: which sizes passed, which failed, and the fixed kernel beside them.
//!
//! In: the probes among the report's evidence, or what a probe that still runs has printed. Out: lines. What they prove, the
//! verdict says.

use ratatui::text::{Line, Span};

use crate::probe::outcome::Outcome;
use crate::read::event::ProbeFinding;
use crate::report::Report;
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

/// A trial that a running probe told of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    control: bool,
    size: i64,
    outcome: Outcome,
}

/// Reads `warpfault: control 233,024  pass …`, as `warpfault probe` tells of each trial that ended.
fn told(line: &str) -> Option<Told> {
    let rest = line.strip_prefix("warpfault: ")?;
    let (control, rest) = match rest.strip_prefix("control ") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let mut words = rest.split_whitespace();
    let size = words.next()?.replace(',', "").parse().ok()?;
    let outcome = Outcome::from_name(words.next()?)?;
    Some(Told { control, size, outcome })
}

/// The trials that ended until now, by size; empty where the lines are of something else.
pub fn so_far(model: &Model, printed: &[String], width: usize) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let mut trials: Vec<Told> = printed.iter().filter_map(|line| told(line)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_running_probe_is_a_trial_and_no_other_line_is() {
        let line =
            "warpfault: control 233,024  pass                     0        1.2      358.0   535.56 MiB";
        assert_eq!(told(line), Some(Told { control: true, size: 233_024, outcome: Outcome::Pass }));
        let line = "warpfault: 240  illegal_address        700";
        assert_eq!(told(line), Some(Told { control: false, size: 240, outcome: Outcome::IllegalAddress }));
        for other in ["warpfault: 12 apples", "240  pass", "warpfault: the driver shows no GPU", ""] {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
