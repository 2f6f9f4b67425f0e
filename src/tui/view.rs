//! Drawing: a pure read of the model, one file a pane.
//!
//! In: the model. Out: cells. It changes nothing and asks nobody.

mod checks;
mod evidence;
mod foot;
mod form;
mod head;
mod help;
mod list;
mod log;
mod memory_map;
mod number_line;
mod pictures;
pub mod playbook;
mod prompt;
mod question;
mod rank_board;
mod ranks;
mod start;
mod trials;
pub mod units;
mod verdict;
mod walk;
mod wrap;

pub use head::tab_at;
pub use help::last_top as help_last_top;
pub use list::{Item, hit};
pub use log::gutter;
pub use question::confirm_last_top;
pub use start::picks_top;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Widget};

use super::layout::{self, Slot};
use super::model::{Incident, Model, Overlay, Pane};
use super::theme::Role;

/// Draws the whole screen.
pub fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    match &model.incident {
        Some(incident) => draw_incident(model, incident, area, buffer),
        None => start::draw(model, area, buffer),
    }
    match &model.overlay {
        Some(Overlay::Help(top)) => help::draw(model, *top, area, buffer),
        Some(Overlay::Prompt(prompt)) => {
            prompt::draw(model, prompt, area, buffer);
            if let Some(position) = prompt::cursor(prompt, area) {
                frame.set_cursor_position(position);
            }
        }
        Some(Overlay::Leave) => question::draw_leave(model, area, buffer),
        Some(Overlay::Pick(pick)) => question::draw_pick(model, pick, area, buffer),
        Some(Overlay::Confirm(proposal, top)) => question::draw_confirm(model, proposal, *top, area, buffer),
        Some(Overlay::Form(asked)) => {
            if let Some(position) = form::draw(model, asked, area, buffer) {
                frame.set_cursor_position(position);
            }
        }
        None => {
            if let Some(position) = start::cursor(model, area) {
                frame.set_cursor_position(position);
            }
        }
    }
}

fn draw_incident(model: &Model, incident: &Incident, area: Rect, buffer: &mut Buffer) {
    let areas = layout::areas(area, incident);
    head::draw(model, incident, areas.head, buffer);
    if let Some(tabs) = areas.tabs {
        head::draw_tabs(model, incident, tabs, buffer);
    }
    for slot in &areas.slots {
        if areas.tabs.is_none() {
            frame_of(model, incident, slot, buffer);
        }
        draw_pane(model, incident, slot, buffer);
    }
    foot::draw(model, incident, areas.foot, buffer);
}

fn frame_of(model: &Model, incident: &Incident, slot: &Slot, buffer: &mut Buffer) {
    let focused = slot.pane == incident.pane;
    let style = model.theme.style(if focused { Role::Focus } else { Role::Muted });
    let title = head::title(model, incident, slot.pane, focused);
    Block::bordered()
        .border_set(model.theme.glyphs.border)
        .border_style(style)
        .title(title)
        .render(slot.outer, buffer);
}

fn draw_pane(model: &Model, incident: &Incident, slot: &Slot, buffer: &mut Buffer) {
    let area = slot.inner;
    match slot.pane {
        Pane::Log => log::draw(model, incident, area, buffer),
        Pane::Evidence => evidence::draw(model, incident, area, buffer),
        pane => {
            let items = items(model, incident, pane, area);
            list::draw(model, &items, area, incident.row_of(pane), pane == incident.pane, buffer);
        }
    }
}

/// The items of a pane that is a list of items; empty for the others.
pub fn items(model: &Model, incident: &Incident, pane: Pane, area: Rect) -> Vec<Item> {
    match pane {
        Pane::Verdict => verdict::items(model, incident, area),
        Pane::Ranks => ranks::items(model, incident, area),
        Pane::Playbook => playbook::items(model, incident, area),
        Pane::Evidence | Pane::Log => Vec::new(),
    }
}

/// Lines of a pane that is a list of items.
pub fn height(model: &Model, incident: &Incident, pane: Pane, area: Rect) -> usize {
    items(model, incident, pane, area).iter().map(|item| item.lines.len()).sum()
}

/// The row of the evidence list under a line of its pane.
pub fn evidence_hit(incident: &Incident, area: Rect, y: u16) -> Option<usize> {
    evidence::hit(incident, area, y)
}

/// Rows that a line of the log takes on the screen.
pub fn log_rows(model: &Model, incident: &Incident, line: &[u8], width: usize) -> usize {
    if incident.log.wrap { log::rows(model, incident, line, width).len() } else { 1 }
}

/// Rows that a pane's cursor can stand on.
pub fn rows(incident: &Incident, pane: Pane) -> usize {
    let Some(report) = incident.report() else { return 0 };
    match pane {
        Pane::Verdict => super::claims::claims(report).len(),
        Pane::Evidence => report.evidence.len(),
        Pane::Ranks => report.ranks.len(),
        Pane::Playbook => incident.analysis.as_ref().map_or(0, playbook::rows),
        Pane::Log => 0,
    }
}
