//! The log: line numbers, marked evidence, matches, wrapped or scrolled.
//!
//! In: the bytes of one input and where it stands. Out: cells. It reads the visible lines only.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use crate::tui::log::text;
use crate::tui::model::{Incident, Model, Pane};
use crate::tui::source::Mark;
use crate::tui::theme::Role;

/// Most rows that one wrapped line takes.
pub const FOLD_ROWS: usize = 12;

/// Columns of marks and line numbers.
pub fn gutter(incident: &Incident) -> u16 {
    let bytes = incident.bytes();
    let last = incident.log.number(bytes, bytes.len()).unwrap_or(99_999).max(999);
    let digits = u16::try_from(last.to_string().len()).unwrap_or(8);
    digits + 3
}

/// Draws the pane.
pub fn draw(model: &Model, incident: &Incident, area: Rect, buffer: &mut Buffer) {
    let muted = model.theme.style(Role::Muted);
    let lines = incident.lines();
    let Some(source) = incident.source() else { return };
    if !source.is_text() {
        let text = "This input is no text: its findings are under Evidence.";
        return Line::styled(text, muted).render(area, buffer);
    }
    if lines.is_empty() {
        let done = incident.log.filtered.as_ref().is_some_and(|filtered| filtered.done);
        let text = if done { "No line passes the filter. F shows all lines." } else { "Filtering." };
        return Line::styled(text, muted).render(area, buffer);
    }
    let area = if source.bytes.was_cut() { told_as_cut(model, area, buffer) } else { area };
    let gutter = gutter(incident).min(area.width);
    let width = usize::from(area.width - gutter);
    let mut at = Some(incident.log.top);
    let mut y = area.y;
    while let (Some(here), true) = (at, y < area.bottom()) {
        let rows = rows(model, incident, lines.text(here), width);
        let cursor = here == incident.log.cursor;
        for (index, row) in rows.into_iter().enumerate() {
            if y >= area.bottom() {
                break;
            }
            draw_gutter(model, incident, here, index, Rect { y, width: gutter, height: 1, ..area }, buffer);
            row.render(Rect { x: area.x + gutter, y, width: area.width - gutter, height: 1 }, buffer);
            if cursor && index == 0 {
                select(model, incident, Rect { y, height: 1, ..area }, gutter, buffer);
            }
            y += 1;
        }
        at = lines.next(here);
    }
}

/// Says in the last row that the file is no longer what it was; the rows above are left.
fn told_as_cut(model: &Model, area: Rect, buffer: &mut Buffer) -> Rect {
    let rest = Rect { height: area.height.saturating_sub(1), ..area };
    let row = Rect { y: area.y + rest.height, height: area.height - rest.height, ..area };
    let text = "Another program cut this file after it was opened: what is gone reads as zeros.";
    Line::styled(text, model.theme.style(Role::Warn)).render(row, buffer);
    rest
}

/// The line under the cursor: its number reversed, and underlined where the pane has the keys, so that the line's own marks
/// stay visible.
fn select(model: &Model, incident: &Incident, row: Rect, gutter: u16, buffer: &mut Buffer) {
    let style = model.theme.style(Role::Selected);
    let number = Rect { x: row.x + 1, width: gutter.saturating_sub(2), ..row };
    buffer.set_style(number, style);
    if incident.pane == Pane::Log {
        let text = Rect { x: row.x + gutter, width: row.width.saturating_sub(gutter), ..row };
        buffer
            .set_style(text, ratatui::style::Style::new().add_modifier(ratatui::style::Modifier::UNDERLINED));
    }
}

/// The rows of a line on the screen.
pub fn rows(model: &Model, incident: &Incident, line: &[u8], width: usize) -> Vec<Line<'static>> {
    let search = incident.log.search.as_ref().map(|search| &search.pattern);
    let spans = text::spans(line, search, &model.theme);
    if incident.log.wrap {
        let mut rows = text::wrapped(&spans, width, FOLD_ROWS);
        let shown: usize = rows.iter().map(Line::width).sum();
        let rest = text::width(&spans).saturating_sub(shown);
        if let (true, Some(last)) = (rest > 0, rows.last_mut()) {
            *last = Line::styled(
                format!("{} {rest} more columns", model.theme.glyphs.cut),
                model.theme.style(Role::Muted),
            );
        }
        return rows;
    }
    let mut spans = text::from_column(&spans, incident.log.left);
    if text::width(&spans) > width {
        spans = cut(spans, width, model);
    }
    vec![Line::from(spans)]
}

/// A mark at the right edge says that the line goes on.
fn cut(spans: Vec<Span<'static>>, width: usize, model: &Model) -> Vec<Span<'static>> {
    let mut rows = text::wrapped(&spans, width.saturating_sub(1), 1);
    let mut row = rows.pop().map(|line| line.spans).unwrap_or_default();
    let used = text::width(&row);
    row.push(Span::raw(" ".repeat(width.saturating_sub(1).saturating_sub(used))));
    row.push(Span::styled(model.theme.glyphs.cut, model.theme.style(Role::Muted)));
    row
}

fn draw_gutter(model: &Model, incident: &Incident, at: usize, index: usize, area: Rect, buffer: &mut Buffer) {
    let theme = &model.theme;
    let (glyph, role) =
        mark_at(incident.marks(), at, index).map_or((" ", Role::Muted), |(mark, first)| {
            match (first, mark.deciding) {
                (true, true) => (theme.glyphs.deciding, Role::Danger),
                (true, false) => (theme.glyphs.evidence, Role::Warn),
                (false, true) => (theme.glyphs.continued, Role::Danger),
                (false, false) => (theme.glyphs.continued, Role::Muted),
            }
        });
    let number = match index {
        0 => incident.log.number(incident.bytes(), at).map_or("?".to_owned(), |number| number.to_string()),
        _ => String::new(),
    };
    let width = usize::from(area.width).saturating_sub(3);
    Line::from(vec![
        Span::styled(glyph.to_owned(), theme.style(role)),
        Span::styled(format!(" {number:>width$} "), theme.style(Role::Muted)),
    ])
    .render(area, buffer);
}

/// The evidence whose lines hold the line at `at`, and whether it starts there. Deciding evidence comes before other.
fn mark_at(marks: &[Mark], at: usize, index: usize) -> Option<(&Mark, bool)> {
    let end = marks.partition_point(|mark| mark.at <= at);
    let near = marks.get(end.saturating_sub(32)..end).unwrap_or_default();
    let holding = || near.iter().rev().filter(|mark| mark.at == at || at < mark.end);
    let starting = || near.iter().filter(|mark| mark.at == at);
    let mark = starting()
        .find(|mark| mark.deciding)
        .or_else(|| starting().next())
        .or_else(|| holding().find(|mark| mark.deciding))
        .or_else(|| holding().next())?;
    Some((mark, mark.at == at && index == 0))
}
