//! Questions on top of the panes: leave, run this command, choose one.
//!
//! In: the model and the question. Out: cells. A command that waits for a yes is shown whole; where it doesn't fit, it
//! scrolls.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};

use crate::session::Proposal;
use crate::tui::model::{Incident, Model, Pick};
use crate::tui::theme::Role;

use super::units;
use super::wrap::wrap;

/// Widest box.
const WIDTH: u16 = 100;

/// Draws the question before leaving.
pub fn draw_leave(model: &Model, area: Rect, buffer: &mut Buffer) {
    let unsaved = model.incident.as_ref().is_some_and(Incident::is_unsaved);
    let runs = model.incident.as_ref().is_some_and(|incident| incident.run.is_some());
    let lines = if unsaved {
        vec![" This paste is not on disk. ", " s  save it and leave    q  leave without it    Esc  stay "]
    } else if runs {
        vec![" A command is running. ", " q  end it and leave    Esc  stay "]
    } else {
        vec![" Leave warpfault? ", " q or Enter  leave    Esc  stay "]
    };
    let width = lines.iter().map(|line| line.len()).max().unwrap_or(0) + 2;
    let width = u16::try_from(width).unwrap_or(u16::MAX).min(area.width);
    let inner = framed(model, (width, 4), "", area, buffer);
    for (line, y) in lines.into_iter().zip(inner.y..inner.bottom()) {
        Line::raw(line).render(Rect { y, height: 1, ..inner }, buffer);
    }
}

/// A box in the middle of the screen; its inside.
pub fn framed(
    model: &Model,
    (width, height): (u16, u16),
    title: &str,
    area: Rect,
    buffer: &mut Buffer,
) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(place, buffer);
    let mut block =
        Block::bordered().border_set(model.theme.glyphs.border).border_style(model.theme.style(Role::Focus));
    if !title.is_empty() {
        block = block.title(title.to_owned());
    }
    let inner = block.inner(place);
    block.render(place, buffer);
    inner
}

/// Columns of text in the widest box.
pub fn box_width(area: Rect) -> usize {
    usize::from(area.width.min(WIDTH)).saturating_sub(4)
}

/// Draws a list to choose from.
pub fn draw_pick(model: &Model, pick: &Pick, area: Rect, buffer: &mut Buffer) {
    let theme = &model.theme;
    let width = box_width(area);
    let mut lines: Vec<(Option<usize>, Line<'static>)> = wrap(&pick.title, width)
        .into_iter()
        .map(|line| (None, Line::styled(line, theme.style(Role::Title))))
        .collect();
    for (index, choice) in pick.choices.iter().enumerate() {
        let here = index == pick.cursor;
        let role = if here { Role::Selected } else { Role::Text };
        let number = if index < 9 { format!("{} ", index + 1) } else { "  ".to_owned() };
        for (row, text) in wrap(&choice.label, width.saturating_sub(4)).into_iter().enumerate() {
            let number = if row == 0 { number.clone() } else { "  ".to_owned() };
            let cursor = if here && row == 0 { theme.glyphs.cursor } else { " " };
            lines.push((
                Some(index),
                Line::from(vec![
                    Span::styled(format!("{cursor} "), theme.style(Role::Focus)),
                    Span::styled(number, theme.style(Role::Key)),
                    Span::styled(text, theme.style(role)),
                ]),
            ));
        }
        if !choice.meaning.is_empty() {
            lines.extend(wrap(&choice.meaning, width.saturating_sub(6)).into_iter().map(|text| {
                (
                    Some(index),
                    Line::from(vec![Span::raw("      "), Span::styled(text, theme.style(Role::Muted))]),
                )
            }));
        }
    }
    let height = u16::try_from(lines.len() + 3).unwrap_or(u16::MAX);
    let outer = u16::try_from(width + 4).unwrap_or(u16::MAX);
    let inner = framed(model, (outer, height), "", area, buffer);
    let room = usize::from(inner.height.saturating_sub(1));
    // The chosen one is always visible.
    let last = lines.iter().rposition(|(index, _)| *index == Some(pick.cursor)).unwrap_or(0);
    let skip = (last + 1).saturating_sub(room);
    for ((_, line), y) in lines.iter().skip(skip).zip(inner.y..inner.bottom().saturating_sub(1)) {
        line.render(Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(1), height: 1 }, buffer);
    }
    foot(model, "Enter or its number chooses    Esc  back", inner, buffer);
}

/// The keys, on the last row of a box.
pub fn foot(model: &Model, text: &str, inner: Rect, buffer: &mut Buffer) {
    let Some(y) = inner.bottom().checked_sub(1).filter(|y| *y >= inner.y) else { return };
    let line = Line::styled(format!(" {text}"), model.theme.style(Role::Key));
    line.render(Rect { y, height: 1.min(inner.height), ..inner }, buffer);
}

/// Draws the question whether to run a command.
pub fn draw_confirm(model: &Model, proposal: &Proposal, top: usize, area: Rect, buffer: &mut Buffer) {
    let width = box_width(area);
    let lines = confirm_lines(model, proposal, width);
    let height = u16::try_from(lines.len() + 3).unwrap_or(u16::MAX);
    let outer = u16::try_from(width + 4).unwrap_or(u16::MAX);
    let inner = framed(model, (outer, height), " Run this? ", area, buffer);
    for (line, y) in lines.iter().skip(top).zip(inner.y..inner.bottom().saturating_sub(1)) {
        line.render(Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(1), height: 1 }, buffer);
    }
    let more = top < confirm_last_top(model, proposal);
    let text = if more {
        "more below: j or Space; then y  run it    c  change it    Esc  no"
    } else {
        "y  run it    c  change it    Esc  no"
    };
    foot(model, text, inner, buffer);
}

/// Rows of the question that can be scrolled away.
pub fn confirm_last_top(model: &Model, proposal: &Proposal) -> usize {
    let room = usize::from(model.size.height.saturating_sub(3));
    confirm_lines(model, proposal, box_width(model.size)).len().saturating_sub(room)
}

fn confirm_lines(model: &Model, proposal: &Proposal, width: usize) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let mut lines = Vec::new();
    let mut add = |text: &str, role: Role| {
        lines.extend(wrap(text, width).into_iter().map(|line| Line::styled(line, theme.style(role))));
    };
    add(&proposal.title, Role::Title);
    if proposal.from_input {
        add("Words of it come from the log: read it before you say yes.", Role::Warn);
    }
    add(&format!("$ {}", proposal.text), Role::Link);
    if !proposal.cost.is_empty() {
        add(&format!("cost: {}", proposal.cost), Role::Text);
    }
    let deadline = units::duration(std::time::Duration::from_secs(proposal.deadline_s));
    add(&format!("It is ended after {deadline} at the latest, with all that it started."), Role::Muted);
    lines
}
