//! Moving the cursor, and keeping it on the screen.
//!
//! In: the model and how far. Out: cursors and tops that lie inside what there is.

use ratatui::layout::Rect;

use crate::tui::layout;
use crate::tui::model::{Content, Incident, Model, Pane};
use crate::tui::view;

use super::action::rows;
use super::jump;

/// By lines or rows.
pub fn by(model: &mut Model, count: isize) {
    let Some(incident) = model.incident.as_mut() else { return };
    if incident.pane == Pane::Log {
        incident.log.cursor = incident.lines().step(incident.log.cursor, count);
        incident.log.tail = false;
        return;
    }
    let last = rows(incident).saturating_sub(1);
    let row = incident.row().saturating_add_signed(count).min(last);
    let pane = incident.pane;
    incident.set_row(pane, row);
    jump::preview(model);
}

/// By halves of a page.
pub fn by_pages(model: &mut Model, halves: isize) {
    let Some(incident) = model.incident.as_ref() else { return };
    let height = if incident.pane == Pane::Log {
        layout::log_area(model.size, incident).height
    } else {
        // A claim takes several lines; a page of rows would pass over most of them.
        layout::areas(model.size, incident).slot(incident.pane).map_or(10, |slot| slot.inner.height / 3)
    };
    by(model, halves.saturating_mul(isize::from(i16::try_from(height / 2).unwrap_or(1).max(1))));
}

/// To the first line or row.
pub fn to_top(model: &mut Model) {
    let Some(incident) = model.incident.as_mut() else { return };
    if incident.pane == Pane::Log {
        incident.log.cursor = incident.lines().first();
        incident.log.tail = false;
        return;
    }
    let pane = incident.pane;
    incident.set_row(pane, 0);
    jump::preview(model);
}

/// To the last line or row.
pub fn to_bottom(model: &mut Model) {
    let Some(incident) = model.incident.as_mut() else { return };
    if incident.pane == Pane::Log {
        incident.log.cursor = incident.lines().last();
        incident.log.tail = incident.follow;
        return;
    }
    let (pane, last) = (incident.pane, rows(incident).saturating_sub(1));
    incident.set_row(pane, last);
    jump::preview(model);
}

/// Scrolls long lines of the log; `isize::MIN` goes to their start.
pub fn sideways(model: &mut Model, columns: isize) {
    let Some(incident) = model.incident.as_mut() else { return };
    if incident.log.wrap && columns != isize::MIN {
        return model.say("Lines are wrapped; w cuts them again.");
    }
    incident.log.left = match columns {
        isize::MIN => 0,
        columns => incident.log.left.saturating_add_signed(columns).min(crate::tui::log::text::LINE_BYTES),
    };
}

/// Puts the line under the cursor a third down the pane.
pub fn centre(model: &mut Model) {
    let Some(incident) = model.incident.as_mut() else { return };
    let height = layout::log_area(model.size, incident).height;
    incident.log.top =
        incident.lines().step(incident.log.cursor, -isize::from(i16::try_from(height / 3).unwrap_or(0)));
}

/// Measures what the upper panes have to show, where panes lie side by side.
pub fn fit(model: &mut Model) {
    let Some(incident) = model.incident.as_ref().filter(|incident| layout::is_wide(model.size, incident))
    else {
        return;
    };
    let areas = layout::areas(model.size, incident);
    let all =
        Rect { height: model.size.height, ..areas.slot(Pane::Verdict).map_or(model.size, |slot| slot.inner) };
    let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let verdict = incident.report().map(|_| rows(view::height(model, incident, Pane::Verdict, all)));
    // A longer log fills its share anyway, and counting its lines would cost.
    let log = incident.source().filter(|source| source.bytes.len() < SHORT_LOG && !source.bytes.is_empty());
    let log = log.filter(|_| !incident.log.wrap && !incident.follow && incident.log.filter.is_off()).map(
        |source| {
            rows(if source.is_text() { memchr::memchr_iter(b'\n', &source.bytes).count() + 1 } else { 1 })
        },
    );
    if let Some(incident) = model.incident.as_mut() {
        incident.content = Content { verdict, log };
    }
}

/// Bytes of a log that may be shorter than its pane.
const SHORT_LOG: usize = 64 << 10;

/// Keeps the cursor of the log inside its pane.
pub fn settle(model: &mut Model) {
    let Some(incident) = model.incident.as_ref() else { return };
    if incident.sources.is_empty() {
        return;
    }
    let area = layout::log_area(model.size, incident);
    let height = usize::from(area.height).max(1);
    let top = top_for(model, incident, height);
    if let Some(incident) = model.incident.as_mut() {
        incident.log.top = top;
    }
}

/// The top nearest to the present one with which the cursor is visible.
fn top_for(model: &Model, incident: &Incident, height: usize) -> usize {
    let lines = incident.lines();
    let cursor = incident.log.cursor;
    if cursor <= incident.log.top {
        return cursor;
    }
    // Down from the top: is the cursor on the screen?
    let mut at = incident.log.top;
    let mut used = 0;
    while used < height {
        used += line_rows(model, incident, at);
        if at == cursor && used <= height {
            return incident.log.top;
        }
        match lines.next(at) {
            Some(next) if at < cursor => at = next,
            _ => break,
        }
    }
    // Up from the cursor: as many lines as fit above it.
    let mut top = cursor;
    let mut used = line_rows(model, incident, cursor);
    while let Some(previous) = lines.previous(top) {
        used += line_rows(model, incident, previous);
        if used > height {
            break;
        }
        top = previous;
    }
    top
}

fn line_rows(model: &Model, incident: &Incident, at: usize) -> usize {
    if !incident.log.wrap {
        return 1;
    }
    let area = layout::log_area(model.size, incident);
    let width = usize::from(area.width.saturating_sub(view::gutter(incident)));
    view::log_rows(model, incident, incident.lines().text(at), width).max(1)
}
