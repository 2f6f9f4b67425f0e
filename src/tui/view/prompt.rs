//! The line being typed, what Tab offers, and the question before leaving.
//!
//! In: a prompt. Out: cells, and where the cursor stands.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};
use unicode_width::UnicodeWidthStr;

use crate::text::{escape, fit};
use crate::tui::model::{Model, Prompt, PromptKind};
use crate::tui::theme::Role;

/// Most candidates shown at a time.
const CANDIDATES: usize = 8;

fn sign(kind: PromptKind) -> &'static str {
    match kind {
        PromptKind::Command => ":",
        PromptKind::Search => "/",
        PromptKind::Filter => "only lines with: ",
    }
}

/// Draws the line at the bottom and the candidates above it.
pub fn draw(model: &Model, prompt: &Prompt, area: Rect, buffer: &mut Buffer) {
    let Some(y) = area.bottom().checked_sub(1) else { return };
    let line = Rect { y, height: 1.min(area.height), ..area };
    Clear.render(line, buffer);
    let sign = sign(prompt.kind);
    Line::from(vec![
        Span::styled(sign, model.theme.style(Role::Key)),
        Span::raw(escape(&prompt.text).to_string()),
    ])
    .render(line, buffer);
    let from = prompt.chosen.unwrap_or(0).saturating_sub(CANDIDATES - 1);
    let shown: Vec<(usize, &String)> =
        prompt.completions.iter().enumerate().skip(from).take(CANDIDATES).collect();
    let height = u16::try_from(shown.len()).unwrap_or(0).min(y);
    for ((index, candidate), row) in shown.into_iter().zip(y - height..y) {
        let place = Rect { y: row, height: 1, width: area.width.min(70), ..area };
        Clear.render(place, buffer);
        let role = if prompt.chosen == Some(index) { Role::Selected } else { Role::Muted };
        Line::styled(fit(candidate, usize::from(place.width)), model.theme.style(role)).render(place, buffer);
    }
}

/// Where the cursor stands.
pub fn cursor(prompt: &Prompt, area: Rect) -> Option<Position> {
    let before: String = prompt.text.chars().take(prompt.cursor).collect();
    let column = sign(prompt.kind).width() + escape(&before).to_string().width();
    let x = u16::try_from(column).ok()?.min(area.width.checked_sub(1)?);
    Some(Position { x: area.x + x, y: area.bottom().checked_sub(1)? })
}

/// Draws the question before leaving.
pub fn draw_leave(model: &Model, area: Rect, buffer: &mut Buffer) {
    let unsaved = model.incident.as_ref().is_some_and(crate::tui::model::Incident::is_unsaved);
    let lines = if unsaved {
        vec![" This paste is not on disk. ", " s  save it and leave    q  leave without it    Esc  stay "]
    } else {
        vec![" Leave warpfault? ", " q or Enter  leave    Esc  stay "]
    };
    let width = lines.iter().map(|line| line.len()).max().unwrap_or(0) + 2;
    let width = u16::try_from(width).unwrap_or(u16::MAX).min(area.width);
    let height = 4.min(area.height);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(place, buffer);
    let block =
        Block::bordered().border_set(model.theme.glyphs.border).border_style(model.theme.style(Role::Focus));
    let inner = block.inner(place);
    block.render(place, buffer);
    for (line, y) in lines.into_iter().zip(inner.y..inner.bottom()) {
        Line::raw(line).render(Rect { y, height: 1, ..inner }, buffer);
    }
}
