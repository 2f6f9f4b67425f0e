//! The line on top, the tabs, and the titles of panes.
//!
//! In: the model. Out: cells, and titles as text. It says what is open, what it is and how far the work is.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use crate::playbook::StepState;
use crate::source::InputKind;
use crate::text;
use crate::tui::claims;
use crate::tui::model::{Incident, Model, Pane, Phase};
use crate::tui::theme::Role;

use super::units;

/// Bytes from which a reading takes long enough for a rate.
const LONG: u64 = 64 << 20;

/// Draws the line on top.
pub fn draw(model: &Model, incident: &Incident, area: Rect, buffer: &mut Buffer) {
    let theme = &model.theme;
    let right = progress(model, incident);
    let right_width = u16::try_from(right.width()).unwrap_or(u16::MAX);
    let left_width = usize::from(area.width.saturating_sub(right_width + 2));
    let narrow = !crate::tui::layout::is_wide(model.size, incident);
    let name = match detail(model, incident, incident.pane).filter(|_| narrow) {
        Some(detail) => text::fit(&detail, left_width.saturating_sub(11)),
        None => text::fit_end(&what(incident), left_width.saturating_sub(11)),
    };
    let left = Line::from(vec![
        Span::styled(" warpfault ", theme.style(Role::Title)),
        Span::styled(name, theme.style(Role::Muted)),
    ]);
    left.render(area, buffer);
    if right_width < area.width {
        let place = Rect { x: area.right() - right_width, width: right_width, ..area };
        right.render(place, buffer);
    }
}

fn what(incident: &Incident) -> String {
    let total: u64 = incident.sources.iter().map(|source| source.bytes.len() as u64).sum();
    match &incident.sources[..] {
        [] => "opening".to_owned(),
        [one] => format!("{}  {}", one.name, units::bytes(total)),
        [first, ..] => {
            // A folder's first file may be a note or an old report; the log is what was meant.
            let sources = || incident.sources.iter();
            let log = sources().find(|one| one.kind == InputKind::Log);
            let first = log.or_else(|| sources().find(|one| one.kind != InputKind::Report)).unwrap_or(first);
            let more = incident.sources.len() - 1;
            let inputs = if more == 1 { "input" } else { "inputs" };
            format!("{} and {more} more {inputs}  {}", first.name, units::bytes(total))
        }
    }
}

fn progress(model: &Model, incident: &Incident) -> Line<'static> {
    let theme = &model.theme;
    let spinner = || {
        let frames = theme.glyphs.spinner;
        let turn = usize::try_from(model.now.as_millis() / 100).unwrap_or(0) % frames.len().max(1);
        frames.get(turn).copied().unwrap_or("")
    };
    let elapsed = |since: Duration| units::duration(model.now.saturating_sub(since));
    let (text, role) = match &incident.phase {
        Phase::Loading { since } => (format!("{} opening {} ", spinner(), elapsed(*since)), Role::Warn),
        Phase::Reading { since } => (
            format!(
                "{} reading {}{} {} Ctrl-c stops ",
                spinner(),
                elapsed(*since),
                how_far(incident, model.now.saturating_sub(*since)),
                theme.glyphs.dot
            ),
            Role::Warn,
        ),
        Phase::Done { took } if incident.follow => {
            (format!("following {} read in {} ", theme.glyphs.dot, units::duration(*took)), Role::Good)
        }
        Phase::Done { .. } => return Line::from(verdict_words(model, incident)),
        Phase::Stopped => ("stopped ".to_owned(), Role::Warn),
        Phase::Failed(_) => ("failed ".to_owned(), Role::Danger),
    };
    Line::from(Span::styled(text, theme.style(role)))
}

/// Share, rate and time that is left; nothing before they mean something.
fn how_far(incident: &Incident, elapsed: Duration) -> String {
    let total: u64 = incident.sources.iter().map(|source| source.bytes.len() as u64).sum();
    let done = incident.progress.bytes().min(total);
    let ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    if done == 0 || total < LONG || ms < 200 {
        return String::new();
    }
    let percent = done.saturating_mul(100) / total;
    let rate = done.saturating_mul(1000) / ms;
    let left = Duration::from_secs((total - done).div_ceil(rate.max(1)));
    format!(", {percent} % at {}/s, {} left", units::bytes(rate), units::duration(left))
}

fn verdict_words(model: &Model, incident: &Incident) -> Vec<Span<'static>> {
    let Some(report) = incident.report() else { return Vec::new() };
    let name = claims::words(report.verdict.class.name());
    let role = if report.failures.is_empty() { Role::Good } else { Role::Danger };
    vec![
        Span::styled(name, model.theme.style(role)),
        Span::styled(
            format!(" [{}] ", claims::certainty(report.verdict.certainty)),
            model.theme.style(Role::Muted),
        ),
    ]
}

/// Draws the tabs.
pub fn draw_tabs(model: &Model, incident: &Incident, area: Rect, buffer: &mut Buffer) {
    let mut spans = vec![Span::raw(" ")];
    for pane in Pane::ALL {
        let focused = pane == incident.pane;
        let label = format!(" {} ", label(incident, pane));
        let style = model.theme.style(if focused { Role::Selected } else { Role::Muted });
        spans.push(Span::styled(label, style));
        spans.push(Span::raw(" "));
    }
    Line::from(spans).render(area, buffer);
}

/// The tab under a column.
pub fn tab_at(incident: &Incident, column: u16) -> Option<Pane> {
    let mut x = 1;
    for pane in Pane::ALL {
        let width = unicode_width::UnicodeWidthStr::width(label(incident, pane).as_str()) + 2;
        if (x..x + width).contains(&usize::from(column)) {
            return Some(pane);
        }
        x += width + 1;
    }
    None
}

/// The title of a pane with a border.
pub fn title(model: &Model, incident: &Incident, pane: Pane, focused: bool) -> Line<'static> {
    let style = model.theme.style(if focused { Role::Focus } else { Role::Title });
    let mut spans = Vec::new();
    let shared = [Pane::Evidence, Pane::Ranks];
    if shared.contains(&pane) {
        for other in shared {
            let style = if other == pane { style } else { model.theme.style(Role::Muted) };
            spans.push(Span::styled(format!(" {} ", label(incident, other)), style));
        }
    } else {
        spans.push(Span::styled(format!(" {} ", label(incident, pane)), style));
    }
    if let Some(detail) = detail(model, incident, pane) {
        spans.push(Span::styled(format!("{detail} "), model.theme.style(Role::Muted)));
    }
    Line::from(spans)
}

fn label(incident: &Incident, pane: Pane) -> String {
    let number = pane.index() + 1;
    let name = pane.name();
    let count = incident.report().map_or(0, |report| match pane {
        Pane::Evidence => report.evidence.len(),
        Pane::Ranks => report.ranks.len(),
        Pane::Playbook => incident.walk().map_or(0, |walk| {
            let waits = [StepState::Open, StepState::Running, StepState::Ahead];
            walk.steps.iter().filter(|step| waits.contains(&step.state)).count()
        }),
        Pane::Verdict | Pane::Log => 0,
    });
    if count > 0 { format!("{number} {name} {count}") } else { format!("{number} {name}") }
}

/// What a title says besides the name: of the log, where it stands and what is filtered and found.
fn detail(model: &Model, incident: &Incident, pane: Pane) -> Option<String> {
    if pane != Pane::Log {
        return None;
    }
    let source = incident.source()?;
    let log = &incident.log;
    let mut parts = Vec::new();
    let position =
        log.number(&source.bytes, log.cursor).map(|number| format!(":{number}")).unwrap_or_default();
    let of = match incident.sources.len() {
        1 => String::new(),
        count => format!(" ({}/{count})", log.source + 1),
    };
    parts.push(format!("{}{position}{of}", source.short_name()));
    if !log.filter.is_off() {
        let count = log.filtered.as_ref().map_or(0, |filtered| filtered.lines.len());
        parts.push(format!("only {} ({count})", log.filter.words()));
    }
    if let Some(search) = log.search.as_ref().filter(|search| search.source == log.source) {
        let text = text::LogText::new(search.pattern.text.as_str());
        parts.push(format!("/{text}/ {}", search.tally(log.cursor)));
    }
    if log.wrap {
        parts.push("wrap".to_owned());
    } else if log.left > 0 {
        parts.push(format!("+{}", log.left));
    }
    Some(parts.join(&format!(" {} ", model.theme.glyphs.dot)))
}
