//! Keys, pastes, mouse and sizes from the terminal.
//!
//! In: a time to wait. Out: messages. Keys that come in a burst while nothing is open are one text, since they are a paste on
//! a terminal that doesn't bracket pastes. Resizes in a row become the last one.

use std::io;
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::tui::msg::Msg;

/// Most events taken before the next frame.
const BATCH: usize = 4096;

/// So many keys at once were not typed.
const BURST: usize = 12;

/// Waits for events, at most so long; takes all that are there. `waiting` says that nothing is open yet.
///
/// # Errors
/// The terminal's.
pub fn wait(time: Duration, waiting: bool) -> io::Result<Vec<Msg>> {
    let mut events = Vec::new();
    let mut time = time;
    while events.len() < BATCH && event::poll(time)? {
        events.push(event::read()?);
        time = Duration::ZERO;
    }
    Ok(messages(events, waiting))
}

fn messages(events: Vec<Event>, waiting: bool) -> Vec<Msg> {
    if waiting && let Some(text) = burst(&events) {
        return vec![Msg::Typed(text)];
    }
    let mut out: Vec<Msg> = Vec::new();
    for event in events {
        let msg = match event {
            Event::Key(key) => Msg::Key(key),
            Event::Paste(text) => Msg::Paste(text),
            Event::Mouse(mouse) => Msg::Mouse(mouse),
            Event::Resize(width, height) => {
                if let Some(Msg::Resize(..)) = out.last() {
                    out.pop();
                }
                Msg::Resize(width, height)
            }
            Event::FocusGained | Event::FocusLost => continue,
        };
        out.push(msg);
    }
    out
}

/// The text of a burst of keys, if that is what the events are.
fn burst(events: &[Event]) -> Option<String> {
    let text: String = events.iter().filter_map(character).collect();
    (text.chars().count() >= BURST && text.chars().count() * 10 >= events.len() * 9).then_some(text)
}

fn character(event: &Event) -> Option<char> {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else { return None };
    match code {
        KeyCode::Char('j') if modifiers.contains(KeyModifiers::CONTROL) => Some('\n'),
        KeyCode::Char(c) if !modifiers.contains(KeyModifiers::CONTROL) => Some(*c),
        KeyCode::Enter => Some('\n'),
        KeyCode::Tab => Some('\t'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Vec<Event> {
        let code = |c| if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
        text.chars().map(|c| Event::Key(KeyEvent::new(code(c), KeyModifiers::NONE))).collect()
    }

    #[test]
    fn a_burst_is_a_text_and_a_few_keys_are_keys() {
        let text = "CUDA error: an illegal\nmemory access";
        assert!(matches!(&messages(typed(text), true)[..], [Msg::Typed(all)] if all == text));
        assert_eq!(messages(typed("run.log"), true).len(), 7);
        assert_eq!(messages(typed(text), false).len(), text.len());
    }

    #[test]
    fn of_many_sizes_the_last_counts() {
        let events = (1..90).map(|n| Event::Resize(n, n)).collect();
        assert!(matches!(&messages(events, false)[..], [Msg::Resize(89, 89)]));
    }
}
