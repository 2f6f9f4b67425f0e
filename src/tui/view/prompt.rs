//! The line being typed, and what Tab offers.
//!
//! In: a prompt. Out: cells, and where the cursor stands.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};
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
        PromptKind::Answer => "answer: ",
        PromptKind::Edit => "run: ",
        PromptKind::Feed => "log of the run: ",
        PromptKind::Field => "",
    }
}

/// Draws the line at the bottom and the candidates above it.
pub fn draw(model: &Model, prompt: &Prompt, area: Rect, buffer: &mut Buffer) {
    let Some(y) = area.bottom().checked_sub(1) else { return };
    let line = Rect { y, height: 1.min(area.height), ..area };
    Clear.render(line, buffer);
    let sign = sign(prompt.kind);
    let text = visible(prompt, room(prompt.kind, area)).0;
    Line::from(vec![Span::styled(sign, model.theme.style(Role::Key)), Span::raw(text)]).render(line, buffer);
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
    let x = u16::try_from(sign(prompt.kind).width() + visible(prompt, room(prompt.kind, area)).1).ok()?;
    Some(Position { x: area.x + x.min(area.width.checked_sub(1)?), y: area.bottom().checked_sub(1)? })
}

fn room(kind: PromptKind, area: Rect) -> usize {
    usize::from(area.width).saturating_sub(sign(kind).width() + 1)
}

/// The part of the line that is shown in so many columns, and the cursor's column in it: a longer line slides under it.
pub fn visible(prompt: &Prompt, room: usize) -> (String, usize) {
    let before: Vec<String> = prompt
        .text
        .chars()
        .take(prompt.cursor)
        .map(|c| escape(c.encode_utf8(&mut [0; 4])).to_string())
        .collect();
    let after: String = prompt.text.chars().skip(prompt.cursor).collect();
    let mut used = 0;
    let mut from = before.len();
    while from > 0 {
        let columns = before.get(from - 1).map_or(0, |text| text.width());
        if used + columns > room {
            break;
        }
        used += columns;
        from -= 1;
    }
    let shown = before.get(from..).unwrap_or_default().concat();
    (shown + &escape(&after).to_string(), used)
}
