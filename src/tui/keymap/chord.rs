//! A key as it is pressed, and its name.
//!
//! In: key events, or names such as `ctrl-d`. Out: [`Chord`], equal for the same key on every terminal. It leaves meaning
//! to the table.

use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    ctrl: bool,
    alt: bool,
}

impl Chord {
    /// The chord of an event. Shift is part of the character (`G`), so it isn't kept.
    pub fn of(key: KeyEvent) -> Self {
        let code = match key.code {
            KeyCode::Tab if key.modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
            // Terminals send Ctrl-H for backspace, or the other way round; both go back.
            KeyCode::Char('h') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Self { code: KeyCode::Backspace, ctrl: false, alt: false };
            }
            code => code,
        };
        Self {
            code,
            ctrl: key.modifiers.contains(KeyModifiers::CONTROL),
            alt: key.modifiers.contains(KeyModifiers::ALT),
        }
    }

    /// Reads a name: `q`, `G`, `ctrl-d`, `alt-x`, `enter`, `f2`, `space`.
    pub fn parse(name: &str) -> Option<Self> {
        let mut rest = name;
        let (mut ctrl, mut alt) = (false, false);
        loop {
            let lower = rest.to_ascii_lowercase();
            if rest.len() > 5 && lower.starts_with("ctrl-") {
                ctrl = true;
                rest = rest.get(5..)?;
            } else if rest.len() > 4 && lower.starts_with("alt-") {
                alt = true;
                rest = rest.get(4..)?;
            } else {
                break;
            }
        }
        Some(Self { code: code(rest)?, ctrl, alt })
    }

    /// An event that this chord is made of, for tests.
    #[cfg(test)]
    pub fn event(self) -> KeyEvent {
        let mut modifiers = KeyModifiers::NONE;
        modifiers.set(KeyModifiers::CONTROL, self.ctrl);
        modifiers.set(KeyModifiers::ALT, self.alt);
        KeyEvent::new(self.code, modifiers)
    }
}

fn code(name: &str) -> Option<KeyCode> {
    let mut chars = name.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Some(KeyCode::Char(c));
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "shift-tab" | "backtab" => KeyCode::BackTab,
        "backspace" => KeyCode::Backspace,
        "space" => KeyCode::Char(' '),
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pgup" => KeyCode::PageUp,
        "pgdn" => KeyCode::PageDown,
        "del" => KeyCode::Delete,
        other => KeyCode::F(other.strip_prefix('f')?.parse().ok().filter(|n| (1..=12).contains(n))?),
    })
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("Ctrl-")?;
        }
        if self.alt {
            f.write_str("Alt-")?;
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("Space"),
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(n) => write!(f, "F{n}"),
            KeyCode::Enter => f.write_str("Enter"),
            KeyCode::Esc => f.write_str("Esc"),
            KeyCode::Tab => f.write_str("Tab"),
            KeyCode::BackTab => f.write_str("Shift-Tab"),
            KeyCode::Backspace => f.write_str("Backspace"),
            KeyCode::Up => f.write_str("Up"),
            KeyCode::Down => f.write_str("Down"),
            KeyCode::Left => f.write_str("Left"),
            KeyCode::Right => f.write_str("Right"),
            KeyCode::Home => f.write_str("Home"),
            KeyCode::End => f.write_str("End"),
            KeyCode::PageUp => f.write_str("PgUp"),
            KeyCode::PageDown => f.write_str("PgDn"),
            KeyCode::Delete => f.write_str("Del"),
            other => write!(f, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_round() {
        for name in ["q", "G", "Ctrl-d", "Alt-x", "Enter", "Space", "F2", "PgUp", "Shift-Tab", "-"] {
            assert_eq!(Chord::parse(name).map(|chord| chord.to_string()).as_deref(), Some(name));
        }
        assert_eq!(Chord::parse("f99"), None);
        assert_eq!(Chord::parse("hello"), None);
        assert_eq!(Chord::parse(""), None);
    }
}
