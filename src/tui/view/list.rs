//! A list of items of several lines each, one of them under the cursor.
//!
//! In: items, a height, a cursor. Out: cells; and the item under a row, for the mouse. What is visible follows from the
//! cursor alone, so that there is no scroll position to keep right.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::tui::model::Model;
use crate::tui::theme::Role;

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its lines.
    pub lines: Vec<Line<'static>>,
    /// Its row, if the cursor can stand on it.
    pub row: Option<usize>,
}

impl Item {
    /// Lines that the cursor passes over.
    pub fn plain(lines: Vec<Line<'static>>) -> Self {
        Self { lines, row: None }
    }

    /// Lines that the cursor can stand on.
    pub fn at(row: usize, lines: Vec<Line<'static>>) -> Self {
        Self { lines, row: Some(row) }
    }

    /// An empty line.
    pub fn gap() -> Self {
        Self::plain(vec![Line::default()])
    }
}

/// Lines above the first visible one.
fn offset(items: &[Item], height: usize, cursor: usize) -> usize {
    let total: usize = items.iter().map(|item| item.lines.len()).sum();
    if total <= height {
        return 0;
    }
    let mut start = 0;
    let mut lines = 0;
    for item in items {
        if item.row == Some(cursor) {
            lines = item.lines.len();
            break;
        }
        start += item.lines.len();
    }
    // The cursor stands a little below the middle, since what led there is read again; but for the ends, where there is
    // nothing more to see. All of what it stands on is shown, as far as that fits.
    let middle = start.saturating_sub(height * 3 / 5);
    middle.max((start + lines).saturating_sub(height)).min(start).min(total - height)
}

/// Draws the visible items.
pub fn draw(model: &Model, items: &[Item], area: Rect, cursor: usize, focused: bool, buffer: &mut Buffer) {
    let height = usize::from(area.height);
    let skip = offset(items, height, cursor);
    let total: usize = items.iter().map(|item| item.lines.len()).sum();
    let lines =
        items.iter().flat_map(|item| item.lines.iter().enumerate().map(move |(i, line)| (item, i, line)));
    for ((item, index, line), y) in lines.skip(skip).zip(area.y..area.bottom()) {
        let here = item.row == Some(cursor) && item.row.is_some();
        if here && index == 0 {
            let style = model.theme.style(if focused { Role::Focus } else { Role::Muted });
            buffer.set_stringn(area.x, y, model.theme.glyphs.cursor, usize::from(area.width), style);
        }
        let text = Rect { x: area.x + 2.min(area.width), y, width: area.width.saturating_sub(2), height: 1 };
        ratatui::widgets::Widget::render(line, text, buffer);
    }
    if total > height {
        scrollbar(model, area, skip, total, buffer);
    }
}

/// A bar at the right edge: how much there is, and where this is.
pub fn scrollbar(model: &Model, area: Rect, skip: usize, total: usize, buffer: &mut Buffer) {
    let height = usize::from(area.height);
    if total <= height || height < 2 || area.width == 0 {
        return;
    }
    let size = (height * height / total).clamp(1, height - 1);
    let start = skip * (height - size) / (total - height).max(1);
    let [full, light] = model.theme.glyphs.scroll;
    for (row, y) in (area.y..area.bottom()).enumerate() {
        let inside = (start..start + size).contains(&row);
        let (glyph, role) = if inside { (full, Role::Muted) } else { (light, Role::Muted) };
        buffer.set_string(area.right() - 1, y, glyph, model.theme.style(role));
    }
}

/// The row under line `y` of the area.
pub fn hit(items: &[Item], height: u16, cursor: usize, y: u16) -> Option<usize> {
    let skip = offset(items, usize::from(height), cursor);
    items.iter().flat_map(|item| item.lines.iter().map(|_| item.row)).nth(skip + usize::from(y)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Item> {
        (0..10).map(|row| Item::at(row, vec![Line::from(format!("{row}a")), Line::from("b")])).collect()
    }

    #[test]
    fn the_cursor_is_always_visible() {
        let items = items();
        for cursor in 0..10 {
            let skip = offset(&items, 6, cursor);
            assert!(cursor * 2 >= skip && cursor * 2 + 2 <= skip + 6, "{cursor}: {skip}");
        }
    }

    #[test]
    fn a_click_finds_what_is_drawn() {
        let items = items();
        assert_eq!(hit(&items, 6, 0, 3), Some(1));
        assert_eq!(hit(&items, 6, 9, 5), Some(9));
        assert_eq!(hit(&items, 60, 0, 30), None);
    }
}
