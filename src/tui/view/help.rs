//! The help: every key from the key table, every command, and what the marks mean.
//!
//! In: the key table. Out: cells. Nothing is listed here by hand that the tables know.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};

use crate::tui::command::COMMANDS;
use crate::tui::keymap::{ROWS, Scope};
use crate::tui::model::Model;
use crate::tui::theme::Role;

use super::wrap::wrap;

/// Most columns of the help, frame included.
const WIDTH: u16 = 100;

/// Columns of the keys.
const KEYS: usize = 24;

/// Draws it from row `top` on.
pub fn draw(model: &Model, top: usize, area: Rect, buffer: &mut Buffer) {
    let width = area.width.min(WIDTH);
    let place = Rect { x: area.x + (area.width - width) / 2, width, ..area };
    Clear.render(place, buffer);
    let all = lines(model, width);
    let more = all.len() > usize::from(area.height);
    let title = if more { " Help: j and k scroll, Esc closes " } else { " Help: Esc closes " };
    let block = Block::bordered()
        .border_set(model.theme.glyphs.border)
        .border_style(model.theme.style(Role::Focus))
        .title(title);
    let inner = block.inner(place);
    block.render(place, buffer);
    for (line, y) in all.into_iter().skip(top).zip(inner.y..inner.bottom()) {
        line.render(Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(1), height: 1 }, buffer);
    }
}

/// Rows that can be scrolled away.
pub fn last_top(model: &Model) -> usize {
    lines(model, model.size.width.min(WIDTH))
        .len()
        .saturating_sub(usize::from(model.size.height.saturating_sub(2)))
}

fn lines(model: &Model, width: u16) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let title = |text: &'static str| Line::styled(text, theme.style(Role::Title));
    // Two columns of frame and one of margin at each side.
    let room = usize::from(width).saturating_sub(KEYS + 4).max(16);
    let pair = |key: String, words: &str| -> Vec<Line<'static>> {
        let key = format!("  {key}");
        let long = Span::raw(&key).width() >= KEYS;
        let own = long.then(|| Line::styled(key.clone(), theme.style(Role::Key)));
        let rest = wrap(words, room).into_iter().enumerate().map(|(row, words)| {
            let key = if row == 0 && !long { key.as_str() } else { "" };
            Line::from(vec![Span::styled(format!("{key:<KEYS$}"), theme.style(Role::Key)), Span::raw(words)])
        });
        own.into_iter().chain(rest).collect()
    };
    let mut lines = vec![title("Keys")];
    for scope in [Scope::Everywhere, Scope::List, Scope::Playbook, Scope::Log] {
        let rows: Vec<_> = ROWS.iter().filter(|row| row.scope == scope).collect();
        match scope {
            Scope::Playbook => lines.extend([Line::default(), title("In the playbook")]),
            Scope::Log => lines.extend([Line::default(), title("In the log")]),
            Scope::Everywhere | Scope::List => {}
        }
        lines.extend(rows.iter().flat_map(|row| pair(model.keymap.keys(row.action), row.help)));
    }
    lines.extend([Line::default(), title("Commands")]);
    lines.extend(COMMANDS.iter().flat_map(|command| pair(format!(":{}", command.usage), command.help)));
    let glyphs = theme.glyphs;
    lines.extend([Line::default(), title("How sure")]);
    for (word, meaning) in [
        ("proven", "a rerun or the failing component itself shows it"),
        ("supported", "independent evidence agrees"),
        ("suspected", "it fits, nothing else agrees"),
        ("undecided", "nothing here decides; the next steps would"),
    ] {
        lines.extend(pair(word.to_owned(), meaning));
    }
    lines.extend([Line::default(), title("Marks in the log")]);
    lines.extend(pair(glyphs.deciding.to_owned(), "the verdict rests on this line"));
    lines.extend(pair(glyphs.evidence.to_owned(), "other evidence"));
    lines.extend(pair(glyphs.continued.to_owned(), "belongs to the evidence above"));
    lines
}
