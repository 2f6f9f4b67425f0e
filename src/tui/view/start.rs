//! The screen that waits for an input.
//!
//! In: the start state. Out: cells, and where the cursor stands.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use unicode_width::UnicodeWidthStr;

use crate::text::{escape, fit, fit_end};
use crate::tui::model::Model;
use crate::tui::theme::Role;

use super::units;

const PATH_ROW: u16 = 7;
const PATH_SIGN: &str = "  > ";

/// Draws it.
pub fn draw(model: &Model, area: Rect, buffer: &mut Buffer) {
    let theme = &model.theme;
    let lines = top_lines(model, usize::from(area.width));
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        line.render(Rect { y, height: 1, ..area }, buffer);
    }
    draw_picks(model, area, buffer);
    let foot = match &model.status {
        Some((text, _)) => Span::styled(
            format!(" {}", fit(text, usize::from(area.width).saturating_sub(2))),
            theme.style(Role::Warn),
        ),
        None => Span::styled(
            " Enter open   Tab complete   Up/Down pick   ? help   q leave",
            theme.style(Role::Muted),
        ),
    };
    if let Some(y) = area.bottom().checked_sub(1) {
        Line::from(foot).render(Rect { y, height: 1.min(area.height), ..area }, buffer);
    }
}

fn top_lines(model: &Model, width: usize) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let start = &model.start;
    let paste = match &start.pasting {
        Some(text) => format!("  Taking the paste: {}", units::bytes(text.len() as u64)),
        None => "  Paste a crash log here. It is read at once.".to_owned(),
    };
    vec![
        Line::default(),
        Line::from(vec![
            Span::styled("  warpfault", theme.style(Role::Title)),
            Span::styled("  what failed, where, why, and what next", theme.style(Role::Muted)),
        ]),
        Line::default(),
        Line::styled(paste, theme.style(Role::Focus)),
        Line::default(),
        Line::raw("  Or type the path of a log, a folder, or a pattern:"),
        Line::default(),
        Line::from(vec![
            Span::styled(PATH_SIGN, theme.style(Role::Key)),
            Span::raw(fit_end(&start.typed, width.saturating_sub(6))),
        ]),
    ]
}

/// First row of the list of picks.
pub fn picks_top(area: Rect) -> u16 {
    area.y + PATH_ROW + 3
}

fn draw_picks(model: &Model, area: Rect, buffer: &mut Buffer) {
    let theme = &model.theme;
    let start = &model.start;
    let top = picks_top(area);
    let bottom = area.bottom().saturating_sub(1);
    if start.picks().next().is_none() || top + 1 >= bottom {
        return;
    }
    let title = if start.recent.is_empty() { "  Or try a recorded crash:" } else { "  Or pick one:" };
    Line::raw(title).render(Rect { y: top - 1, height: 1, ..area }, buffer);
    let height = usize::from(bottom - top);
    let skip = start.cursor.saturating_sub(1 + height / 2).min(start.picks().count().saturating_sub(height));
    for ((index, pick), y) in start.picks().enumerate().skip(skip).zip(top..bottom) {
        // Row 0 of the cursor is the path; the picks follow.
        let here = start.cursor == index + 1;
        let mark = if here { theme.glyphs.cursor } else { " " };
        let role = if here { Role::Focus } else { Role::Text };
        let recent = if index < start.recent.len() { "recent  " } else { "" };
        Line::from(vec![
            Span::styled(format!("  {mark} "), theme.style(Role::Focus)),
            Span::styled(recent, theme.style(Role::Muted)),
            Span::styled(fit(&pick.title, usize::from(area.width).saturating_sub(14)), theme.style(role)),
        ])
        .render(Rect { y, height: 1, ..area }, buffer);
    }
}

/// Where the cursor stands.
pub fn cursor(model: &Model, area: Rect) -> Option<Position> {
    if model.incident.is_some() {
        return None;
    }
    let typed = escape(&model.start.typed).to_string().width();
    let x = u16::try_from(PATH_SIGN.width() + typed).ok()?.min(area.width.checked_sub(1)?);
    let y = area.y + PATH_ROW;
    (y < area.bottom()).then_some(Position { x: area.x + x, y })
}
