//! The mouse: a click puts the keys and the cursor where it lands, a second one opens, the wheel scrolls.
//!
//! In: mouse events. Out: the model changed.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use crate::tui::keymap::Action;
use crate::tui::layout::{self, Slot};
use crate::tui::model::{Model, Overlay, Pane};
use crate::tui::msg::Cmd;
use crate::tui::view;

use super::{action, jump, scroll};

/// Lines that one turn of the wheel scrolls.
const WHEEL: isize = 3;

/// Takes a mouse event in.
pub fn on_mouse(model: &mut Model, event: MouseEvent) -> Vec<Cmd> {
    if let Some(Overlay::Help(top)) = model.overlay {
        let step = match event.kind {
            MouseEventKind::ScrollDown => WHEEL,
            MouseEventKind::ScrollUp => -WHEEL,
            _ => return Vec::new(),
        };
        let top = top.saturating_add_signed(step).min(view::help_last_top(model));
        model.overlay = Some(Overlay::Help(top));
        return Vec::new();
    }
    if model.overlay.is_some() {
        return Vec::new();
    }
    match event.kind {
        MouseEventKind::ScrollDown => wheel(model, event, WHEEL),
        MouseEventKind::ScrollUp => wheel(model, event, -WHEEL),
        MouseEventKind::Down(MouseButton::Left) => return click(model, event),
        _ => {}
    }
    Vec::new()
}

fn wheel(model: &mut Model, event: MouseEvent, lines: isize) {
    let Some(incident) = model.incident.as_mut() else { return };
    let areas = layout::areas(model.size, incident);
    let Some(slot) = areas.at(event.column, event.row) else { return };
    if slot.pane == Pane::Log {
        incident.log.cursor = incident.lines().step(incident.log.cursor, lines);
        incident.log.top = incident.lines().step(incident.log.top, lines);
        incident.log.tail = false;
    } else {
        let before = incident.pane;
        incident.pane = slot.pane;
        scroll::by(model, lines.signum());
        if let Some(incident) = model.incident.as_mut() {
            incident.pane = before;
        }
    }
}

fn click(model: &mut Model, event: MouseEvent) -> Vec<Cmd> {
    let Some(incident) = model.incident.as_ref() else {
        let top = view::picks_top(model.size);
        let picks = model.start.picks().count();
        if let Some(index) = event.row.checked_sub(top).map(usize::from).filter(|index| *index < picks) {
            model.start.cursor = index + 1;
        }
        return Vec::new();
    };
    let areas = layout::areas(model.size, incident);
    if areas.tabs.is_some_and(|tabs| tabs.y == event.row) {
        if let Some(pane) = view::tab_at(incident, event.column) {
            action::focus(model, pane);
        }
        return Vec::new();
    }
    let Some(slot) = areas.at(event.column, event.row).copied() else { return Vec::new() };
    let again = incident.pane == slot.pane;
    match row_under(model, &slot, event) {
        Some(Hit::Row(row)) => {
            let before = incident.row_of(slot.pane);
            if !again {
                action::focus(model, slot.pane);
            }
            if let Some(incident) = model.incident.as_mut() {
                incident.set_row(slot.pane, row);
            }
            if again && before == row {
                return action::act(model, Action::Open);
            }
            jump::preview(model);
        }
        Some(Hit::Line(at)) => {
            if !again {
                action::focus(model, Pane::Log);
            }
            if let Some(incident) = model.incident.as_mut() {
                incident.log.cursor = at;
            }
        }
        None => action::focus(model, slot.pane),
    }
    Vec::new()
}

enum Hit {
    Row(usize),
    Line(usize),
}

fn row_under(model: &Model, slot: &Slot, event: MouseEvent) -> Option<Hit> {
    let incident = model.incident.as_ref()?;
    let y = event.row.checked_sub(slot.inner.y).filter(|y| *y < slot.inner.height)?;
    match slot.pane {
        Pane::Log => {
            let width = usize::from(slot.inner.width.saturating_sub(view::gutter(incident)));
            let lines = incident.lines();
            let mut at = incident.log.top;
            let mut passed = 0;
            loop {
                passed += view::log_rows(model, incident, lines.text(at), width).max(1);
                if passed > usize::from(y) {
                    return Some(Hit::Line(at));
                }
                at = lines.next(at)?;
            }
        }
        Pane::Evidence => view::evidence_hit(incident, slot.inner, y).map(Hit::Row),
        pane => {
            let items = view::items(model, incident, pane, slot.inner);
            view::hit(&items, slot.inner.height, incident.row_of(pane), y).map(Hit::Row)
        }
    }
}
