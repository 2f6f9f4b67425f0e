//! Keys, pastes, mouse and sizes from the terminal.
//!
//! In: the terminal's input, read on a thread of its own, since a key sequence that is cut short makes the read wait. Out:
//! messages. Keys that come in a burst while nothing is open are one text, since they are a paste on a terminal that
//! doesn't bracket pastes. Resizes in a row become the last one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::tui::msg::Msg;

/// Most events taken before the next frame.
const BATCH: usize = 4096;

/// So many keys at once were not typed, even where they make one line.
const BURST: usize = 400;

/// How long the thread waits before it looks whether it should rest.
const LOOK: Duration = Duration::from_millis(80);

/// Not zero, at which crossterm doesn't look into what it has read already.
const AT_ONCE: Duration = Duration::from_micros(100);

/// The thread that reads the terminal.
#[derive(Debug)]
pub struct Keyboard {
    /// Batches of events. The thread ends, and this with it, where the terminal can't be read.
    pub events: Receiver<Vec<Event>>,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    closed: AtomicBool,
    resting: AtomicBool,
}

impl Keyboard {
    /// Starts to read.
    ///
    /// # Errors
    /// The operating system's.
    pub fn listen() -> io::Result<Self> {
        let (sender, events) = unbounded();
        let gate = Arc::new(Gate::default());
        let seen = Arc::clone(&gate);
        thread::Builder::new().name("warpfault-keys".to_owned()).spawn(move || read(&sender, &seen))?;
        Ok(Self { events, gate })
    }

    /// Leaves the keys to another program while `work` runs.
    pub fn without<T>(&self, work: impl FnOnce() -> T) -> T {
        self.gate.closed.store(true, Ordering::SeqCst);
        let asked = Instant::now();
        // A read inside a cut key sequence can't be called back; the other program then gets what comes after it.
        while !self.gate.resting.load(Ordering::SeqCst) && asked.elapsed() < 4 * LOOK {
            thread::sleep(Duration::from_millis(2));
        }
        let result = work();
        self.gate.closed.store(false, Ordering::SeqCst);
        result
    }
}

fn read(sender: &Sender<Vec<Event>>, gate: &Gate) {
    loop {
        if gate.closed.load(Ordering::SeqCst) {
            gate.resting.store(true, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        gate.resting.store(false, Ordering::SeqCst);
        let batch = match event::poll(LOOK) {
            Ok(true) => batch(),
            Ok(false) => continue,
            Err(error) => Err(error),
        };
        let Ok(batch) = batch else { return };
        if sender.send(batch).is_err() {
            return;
        }
    }
}

fn batch() -> io::Result<Vec<Event>> {
    let mut events = vec![event::read()?];
    while events.len() < BATCH && event::poll(AT_ONCE)? {
        events.push(event::read()?);
    }
    Ok(events)
}

/// What events mean; `waiting` says that nothing is open yet.
pub fn messages(events: Vec<Event>, waiting: bool) -> Vec<Msg> {
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
    let count = text.chars().count();
    // A path and Enter may come at once over a slow line; a line and the beginning of another one were not typed.
    let lines = text.trim_end_matches('\n').contains('\n');
    ((lines || count >= BURST) && count * 10 >= events.len() * 9).then_some(text)
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
        assert_eq!(messages(typed("run.log\n"), true).len(), 8);
        assert_eq!(messages(typed(text), false).len(), text.len());
    }

    #[test]
    fn of_many_sizes_the_last_counts() {
        let events = (1..90).map(|n| Event::Resize(n, n)).collect();
        assert!(matches!(&messages(events, false)[..], [Msg::Resize(89, 89)]));
    }
}
