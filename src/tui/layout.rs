//! Where each pane lies.
//!
//! In: the size of the terminal and the incident. Out: [`Areas`]. Drawing, paging and mouse clicks ask the same function, so
//! they can't disagree.

use ratatui::layout::{Constraint, Layout, Position, Rect};

use super::model::{Incident, Pane};

/// Columns from which panes lie side by side.
pub const WIDE_COLUMNS: u16 = 120;
/// Rows from which they do.
pub const WIDE_ROWS: u16 = 20;

/// A pane on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The pane.
    pub pane: Pane,
    /// All of its area, border included.
    pub outer: Rect,
    /// The area that it fills.
    pub inner: Rect,
}

/// The areas of an incident's screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Areas {
    /// The line on top.
    pub head: Rect,
    /// The tabs, where one pane is shown at a time.
    pub tabs: Option<Rect>,
    /// The panes that are shown.
    pub slots: Vec<Slot>,
    /// The line at the bottom.
    pub foot: Rect,
}

impl Areas {
    /// The area of a pane, if it is shown.
    pub fn slot(&self, pane: Pane) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.pane == pane)
    }

    /// The pane under a cell.
    pub fn at(&self, column: u16, row: u16) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.outer.contains(Position { x: column, y: row }))
    }
}

/// Whether panes lie side by side.
pub fn is_wide(size: Rect, incident: &Incident) -> bool {
    size.width >= WIDE_COLUMNS && size.height >= WIDE_ROWS && !incident.zoom
}

/// Lays the panes out.
pub fn areas(size: Rect, incident: &Incident) -> Areas {
    if is_wide(size, incident) { wide(size, incident) } else { narrow(size, incident) }
}

fn narrow(size: Rect, incident: &Incident) -> Areas {
    let [head, tabs, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(size);
    let slot = Slot { pane: incident.pane, outer: body, inner: body };
    Areas { head, tabs: Some(tabs), slots: vec![slot], foot }
}

fn wide(size: Rect, incident: &Incident) -> Areas {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)]).areas(size);
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(48), Constraint::Percentage(52)]).areas(body);
    let [verdict, lower] = upper_and_lower(left, incident.content.verdict, LIST_ROWS);
    let [log, playbook] = upper_and_lower(right, incident.content.log, u16::MAX);
    let slots =
        [(Pane::Verdict, verdict), (incident.lower, lower), (Pane::Playbook, playbook), (Pane::Log, log)]
            .map(|(pane, outer)| Slot { pane, outer, inner: inside(outer) });
    Areas { head, tabs: None, slots: slots.to_vec(), foot }
}

/// Rows that the pane below the verdict keeps, frame included, on a tall screen.
const LIST_ROWS: u16 = 14;

/// The upper pane gets what it has to show and the lower one the rest, of which `keeps` rows are its own; the upper one has its
/// share in any case.
fn upper_and_lower(area: Rect, content: Option<u16>, keeps: u16) -> [Rect; 2] {
    let share = area.height.saturating_mul(3) / 5;
    let most = share.max(area.height.saturating_sub(keeps));
    // A frame, and a line below the last.
    let upper = content.map_or(share, |rows| rows.saturating_add(3).clamp(share / 2, most));
    Layout::vertical([Constraint::Length(upper), Constraint::Min(0)]).areas(area)
}

/// The area inside a border.
fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x.saturating_add(1).min(area.right()),
        y: area.y.saturating_add(1).min(area.bottom()),
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}

/// The area that the log has, or would have if it were shown.
pub fn log_area(size: Rect, incident: &Incident) -> Rect {
    let areas = areas(size, incident);
    match areas.slot(Pane::Log) {
        Some(slot) => slot.inner,
        None => areas.slots.first().map_or(size, |slot| slot.inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::Origin;
    use std::time::Duration;

    fn incident() -> Incident {
        Incident::new(Origin::Named, crate::tui::msg::Opening::Named(Vec::new()), false, Duration::ZERO)
    }

    #[test]
    fn one_pane_on_a_small_screen_and_four_on_a_wide_one() {
        let small = areas(Rect::new(0, 0, 80, 24), &incident());
        assert_eq!(small.slots.len(), 1);
        assert_eq!(small.slots[0].inner, Rect::new(0, 2, 80, 21));
        assert_eq!(areas(Rect::new(0, 0, 160, 50), &incident()).slots.len(), 4);
        assert_eq!(areas(Rect::new(0, 0, 120, 10), &incident()).slots.len(), 1);
    }

    #[test]
    fn a_short_verdict_leaves_its_rows_to_the_pane_below() {
        let height = |rows| {
            let [upper, lower] = upper_and_lower(Rect::new(0, 1, 76, 48), rows, LIST_ROWS);
            assert_eq!(upper.height + lower.height, 48);
            upper.height
        };
        // Not known, a few lines, some lines, more than there is room for.
        assert_eq!([None, Some(3), Some(20), Some(90)].map(height), [28, 14, 23, 34]);
    }

    #[test]
    fn any_size_is_laid_out_inside_the_screen() {
        for width in [0, 1, 2, 5, 79, 119, 120, 300] {
            for height in [0, 1, 2, 3, 4, 19, 20, 90] {
                let size = Rect::new(0, 0, width, height);
                let areas = areas(size, &incident());
                for slot in &areas.slots {
                    assert_eq!(slot.inner.intersection(size), slot.inner, "{size:?}");
                }
            }
        }
    }
}
