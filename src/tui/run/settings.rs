//! The environment and the configuration file.
//!
//! In: environment variables, `$XDG_CONFIG_HOME/warpfault/config.toml`. Out: [`Settings`]. Flags go over the environment,
//! the environment over the file. A file that can't be used is told, and the rest works.

use std::path::PathBuf;

use crate::store::Store;
use crate::tui::keymap::Keymap;
use crate::tui::run::TuiOptions;
use crate::tui::theme::{Palette, Surroundings};

/// How the UI looks and where it keeps things.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The terminal.
    pub surroundings: Surroundings,
    /// Keys.
    pub keymap: Keymap,
    /// Whether to take the mouse.
    pub mouse: bool,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Where state goes.
    pub state: Option<PathBuf>,
    /// Words of the editor's command.
    pub editor: Vec<String>,
    /// What could not be used, as sentences.
    pub faults: Vec<String>,
}

impl Settings {
    /// Where incidents are kept.
    pub fn store(&self) -> Option<Store> {
        self.state.clone().map(Store::at)
    }

    /// Reads them.
    pub fn read(options: &TuiOptions) -> Self {
        let home = path("HOME");
        let under = |variable: &str, default: &str| {
            path(variable)
                .filter(|path| path.is_absolute())
                .or_else(|| Some(home.as_ref()?.join(default)))
                .map(|path| path.join("warpfault"))
        };
        let file = under("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("config.toml"));
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let mut settings = Self::from_file(text.as_deref().unwrap_or(""));
        settings.surroundings = Surroundings {
            no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            term: variable("TERM"),
            colorterm: variable("COLORTERM"),
            colorfgbg: variable("COLORFGBG"),
            locale: crate::text::signs::locale(|name| std::env::var(name).ok()),
            palette: options
                .theme
                .clone()
                .or_else(|| Some(variable("WARPFAULT_THEME")).filter(|name| !name.is_empty()))
                .and_then(|name| Palette::from_name(&name))
                .or(settings.surroundings.palette),
        };
        settings.mouse &= !options.no_mouse;
        settings.state = under("XDG_STATE_HOME", ".local/state");
        settings.home = home;
        settings.editor = ["VISUAL", "EDITOR"]
            .into_iter()
            .filter_map(|name| shlex::split(&variable(name)))
            .find(|words| !words.is_empty())
            .unwrap_or_else(|| vec!["vi".to_owned()]);
        settings
    }

    fn from_file(text: &str) -> Self {
        let mut faults = Vec::new();
        let table: toml::Table = text.parse().unwrap_or_else(|error: toml::de::Error| {
            faults.push(format!("config.toml: {}", error.message()));
            toml::Table::new()
        });
        let keys = match table.get("keys") {
            Some(toml::Value::Table(keys)) => keys.clone(),
            _ => toml::Table::new(),
        };
        let (keymap, key_faults) = Keymap::with(&keys);
        faults.extend(key_faults);
        let palette = table.get("theme").and_then(toml::Value::as_str).and_then(|name| {
            let palette = Palette::from_name(name);
            if palette.is_none() {
                faults.push(format!("config.toml: no theme is called {name}; there are dark, light, mono"));
            }
            palette
        });
        Self {
            surroundings: Surroundings { palette, ..Surroundings::default() },
            keymap,
            mouse: table.get("mouse").and_then(toml::Value::as_bool).unwrap_or(true),
            home: None,
            state: None,
            editor: Vec::new(),
            faults,
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::keymap::Action;

    #[test]
    fn a_file_sets_theme_mouse_and_keys() {
        let settings = Settings::from_file("theme = \"light\"\nmouse = false\n[keys]\nhelp = \"f5\"\n");
        assert_eq!(settings.surroundings.palette, Some(Palette::Light));
        assert!(!settings.mouse && settings.faults.is_empty());
        assert_eq!(settings.keymap.keys(Action::Help), "F5");
    }

    #[test]
    fn a_broken_file_is_told_and_the_rest_works() {
        let settings = Settings::from_file("theme = \"pink\"\n");
        assert_eq!(settings.faults.len(), 1);
        let settings = Settings::from_file("theme = ");
        assert_eq!((settings.faults.len(), settings.mouse), (1, true));
    }
}
