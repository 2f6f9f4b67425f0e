//! A form: what a step's command lacks, a line each, and the command as it becomes.
//!
//! In: the model and the form. Out: cells, and where the cursor stands. The line in focus is always on the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use unicode_width::UnicodeWidthStr;

use crate::playbook::walk::command_text;
use crate::text::{escape, fit};
use crate::tui::model::{Form, Model};
use crate::tui::theme::Role;
use crate::tui::update;

use super::prompt;
use super::question::{box_width, foot, framed};
use super::wrap::wrap;

/// Columns of a name at most; a longer one has a line of its own.
const NAME: usize = 30;
/// Candidates of a path that are shown.
const CANDIDATES: usize = 5;

/// Draws it.
pub fn draw(model: &Model, form: &Form, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let theme = &model.theme;
    let width = box_width(area);
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut add = |text: &str, role: Role| {
        lines.extend(wrap(text, width).into_iter().map(|line| Line::styled(line, theme.style(role))));
    };
    add(&form.title, Role::Title);
    let typed = update::form_so_far(form);
    add(&format!("$ {}", theme.words(&command_text(&typed.environment, &typed.command))), Role::Link);
    let optional = form.command.needs.iter().all(|need| !need.required);
    add(if optional { "It asked for one of these:" } else { "Nothing in the inputs tells:" }, Role::Muted);
    let mut cursor = None;
    let mut last = 0;
    for (index, (need, line)) in form.command.needs.iter().zip(&form.lines).enumerate() {
        let here = index == form.at;
        let name = escape(&need.name).to_string();
        let glyph = if here { theme.glyphs.cursor } else { " " };
        let role = if here { Role::Focus } else { Role::Title };
        let mut spans = vec![Span::styled(format!("{glyph} "), theme.style(Role::Focus))];
        if name.width() > NAME {
            for (row, text) in wrap(&name, width.saturating_sub(2)).into_iter().enumerate() {
                let lead = if row == 0 { glyph } else { " " };
                lines.push(Line::from(vec![
                    Span::styled(format!("{lead} "), theme.style(Role::Focus)),
                    Span::styled(text, theme.style(role)),
                ]));
            }
            spans = vec![Span::raw("    ")];
        } else {
            let between = if name.ends_with('=') { "" } else { ": " };
            spans.push(Span::styled(format!("{name}{between}"), theme.style(role)));
        }
        let used: usize = spans.iter().map(|span| span.content.width()).sum();
        let room = width.saturating_sub(used);
        let (shown, column) = prompt::visible(line, room.saturating_sub(1));
        match shown.is_empty() && !here {
            true => spans.push(Span::styled("(empty)", theme.style(Role::Muted))),
            false => spans.push(Span::styled(shown, theme.style(Role::Text))),
        }
        if here {
            cursor = Some((lines.len(), used + column));
        }
        lines.push(Line::from(spans));
        if here {
            for text in wrap(&escape(&need.why).to_string(), width.saturating_sub(4)) {
                if !text.is_empty() {
                    lines.push(Line::from(vec![
                        Span::raw("    "),
                        Span::styled(text, theme.style(Role::Muted)),
                    ]));
                }
            }
            let from = line.chosen.unwrap_or(0).saturating_sub(CANDIDATES - 1);
            for (index, candidate) in line.completions.iter().enumerate().skip(from).take(CANDIDATES) {
                let role = if line.chosen == Some(index) { Role::Selected } else { Role::Muted };
                let text = fit(candidate, width.saturating_sub(4));
                lines.push(Line::from(vec![Span::raw("    "), Span::styled(text, theme.style(role))]));
            }
            last = lines.len();
        }
    }
    let height = u16::try_from(lines.len() + 3).unwrap_or(u16::MAX);
    let outer = u16::try_from(width + 4).unwrap_or(u16::MAX);
    let inner = framed(model, (outer, height), " Fill in ", area, buffer);
    let room = usize::from(inner.height.saturating_sub(1));
    let skip = last.saturating_sub(room);
    for (line, y) in lines.iter().skip(skip).zip(inner.y..inner.bottom().saturating_sub(1)) {
        line.render(Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(1), height: 1 }, buffer);
    }
    foot(
        model,
        "Enter  next, then the whole command    Ctrl-L  edit it as a line    Esc  back",
        inner,
        buffer,
    );
    let (row, column) = cursor?;
    let y = inner.y + u16::try_from(row.checked_sub(skip)?).ok()?;
    let x = inner.x + 1 + u16::try_from(column).ok()?;
    (y < inner.bottom().saturating_sub(1) && x < inner.right()).then_some(Position { x, y })
}
