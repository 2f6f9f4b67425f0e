//! One table: key, where it works, what it does, and the words that explain it.
//!
//! In: a key and where the keyboard goes. Out: an [`Action`]. The help screen and the key line at the bottom are made from
//! the same rows, and a TOML table can rebind any of them. It leaves carrying an action out to `update`.

mod chord;
mod rows;

pub use chord::Chord;
pub use rows::{Action, ROWS, Scope};

use crossterm::event::KeyEvent;

/// Which key does what.
#[derive(Debug, Clone)]
pub struct Keymap {
    bindings: Vec<(Scope, Chord, Action)>,
}

impl Default for Keymap {
    fn default() -> Self {
        let bindings = ROWS
            .iter()
            .flat_map(|row| {
                row.keys.iter().filter_map(|key| Some((row.scope, Chord::parse(key)?, row.action)))
            })
            .collect();
        Self { bindings }
    }
}

impl Keymap {
    /// The defaults with the rows of a `[keys]` table laid over: `action-name = "key"` or `["key", "key"]`. What can't be
    /// used comes back as sentences.
    pub fn with(table: &toml::Table) -> (Self, Vec<String>) {
        let mut keymap = Self::default();
        let mut faults = Vec::new();
        for (name, value) in table {
            let Some(row) = ROWS.iter().find(|row| row.name == name) else {
                let name = crate::text::escape(name);
                faults.push(format!("keys: no action is called {name}; docs/configuration.md lists them"));
                continue;
            };
            let names: Vec<&str> = match value {
                toml::Value::String(key) => vec![key],
                toml::Value::Array(keys) => keys.iter().filter_map(toml::Value::as_str).collect(),
                _ => Vec::new(),
            };
            let chords: Vec<Chord> = names.iter().filter_map(|name| Chord::parse(name)).collect();
            if chords.is_empty() || chords.len() < names.len() {
                faults.push(format!(
                    "keys: {name}: {value} names no key; write keys as \"x\", \"ctrl-x\", \"f5\""
                ));
                continue;
            }
            if let Some(taken) = chords.iter().find(|chord| keymap.is_way_out(chord)) {
                faults.push(format!("keys: {name}: {taken} is a way out and stays one"));
                continue;
            }
            keymap.bindings.retain(|(_, chord, action)| *action != row.action && !chords.contains(chord));
            keymap.bindings.extend(chords.into_iter().map(|chord| (row.scope, chord, row.action)));
        }
        (keymap, faults)
    }

    /// No key leads out of the UI if a table could take all of these away.
    fn is_way_out(&self, chord: &Chord) -> bool {
        let ways = [Action::Quit, Action::Back, Action::Interrupt];
        self.bindings.iter().any(|(_, bound, action)| bound == chord && ways.contains(action))
    }

    /// What `key` does in `scope`; rows of the scope come before those that work everywhere.
    pub fn find(&self, key: KeyEvent, scope: Scope) -> Option<Action> {
        let chord = Chord::of(key);
        let within = |wanted: Scope| {
            self.bindings
                .iter()
                .find(|(scope, bound, _)| *scope == wanted && *bound == chord)
                .map(|(_, _, action)| *action)
        };
        within(scope).or_else(|| within(Scope::Everywhere))
    }

    /// Whether a key with Alt is bound as such.
    pub fn has_alt(&self, key: KeyEvent) -> bool {
        let chord = Chord::of(key);
        self.bindings.iter().any(|(_, bound, _)| *bound == chord)
    }

    /// The keys of an action, as the help shows them.
    pub fn keys(&self, action: Action) -> String {
        let names: Vec<String> = self
            .bindings
            .iter()
            .filter(|(_, _, bound)| *bound == action)
            .map(|(_, chord, _)| chord.to_string())
            .collect();
        names.join(" ")
    }

    /// The first key of an action, for the key line.
    pub fn key(&self, action: Action) -> String {
        self.bindings
            .iter()
            .find(|(_, _, bound)| *bound == action)
            .map(|(_, chord, _)| chord.to_string())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::{KeyCode, KeyModifiers};

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn every_row_is_reachable_and_no_key_means_two_things() {
        let keymap = Keymap::default();
        let mut seen = std::collections::HashMap::new();
        for row in ROWS {
            assert!(!row.keys.is_empty() && !row.help.is_empty(), "{}", row.name);
            for name in row.keys {
                let chord = Chord::parse(name).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(seen.insert((row.scope, chord), row.name), None, "{name} in {:?}", row.scope);
                assert_eq!(keymap.find(chord.event(), row.scope), Some(row.action), "{name}");
            }
        }
    }

    #[test]
    fn a_table_rebinds() {
        let table = toml::from_str("down = [\"s\", \"ctrl-n\"]\nhelp = \"f1\"\nfly = \"x\"\nup = 3").unwrap();
        let (keymap, faults) = Keymap::with(&table);
        assert_eq!(keymap.find(key(KeyCode::Char('s')), Scope::List), Some(Action::Down));
        assert_eq!(keymap.find(key(KeyCode::Char('j')), Scope::List), None);
        assert_eq!(keymap.find(key(KeyCode::F(1)), Scope::Log), Some(Action::Help));
        assert_eq!(keymap.keys(Action::Down), "s Ctrl-n");
        assert_eq!(faults.len(), 2, "{faults:?}");
    }

    #[test]
    fn no_table_can_take_the_way_out() {
        let table = toml::from_str("down = [\"q\", \"esc\"]").unwrap();
        let (keymap, faults) = Keymap::with(&table);
        assert_eq!(faults, ["keys: down: q is a way out and stays one"]);
        assert_eq!(keymap.find(key(KeyCode::Esc), Scope::List), Some(Action::Back));
        assert_eq!(keymap.find(key(KeyCode::Char('q')), Scope::Log), Some(Action::Quit));
    }
}
