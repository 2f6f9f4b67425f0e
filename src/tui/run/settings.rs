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
        let read = file.as_ref().map_or(Ok(String::new()), |file| read_file(file));
        let name = file.as_ref().map_or("config.toml".to_owned(), |file| {
            crate::text::escape(&file.to_string_lossy()).to_string()
        });
        let mut settings = Self::from_file(&name, read.as_deref().unwrap_or(""));
        settings.faults.extend(read.err().map(|why| format!("{name}: {why}; nothing of it is used")));
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

    fn from_file(name: &str, text: &str) -> Self {
        let mut faults = Vec::new();
        let table: toml::Table = text.parse().unwrap_or_else(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| {
                text.get(..span.start).unwrap_or_default().bytes().filter(|byte| *byte == b'\n').count() + 1
            });
            let why = crate::text::escape(error.message()).to_string();
            faults.push(format!("{name}:{line}: {}; nothing of it is used", why.replace('\n', " ")));
            toml::Table::new()
        });
        let keys = match table.get("keys") {
            Some(toml::Value::Table(keys)) => keys.clone(),
            other => {
                faults.extend(other.map(|_| format!("{name}: keys is a table: write [keys]")));
                toml::Table::new()
            }
        };
        if table.get("theme").is_some_and(|theme| !theme.is_str()) {
            faults.push(format!("{name}: theme is a word: dark, light, mono"));
        }
        if table.get("mouse").is_some_and(|mouse| !mouse.is_bool()) {
            faults.push(format!("{name}: mouse is true or false"));
        }
        let (keymap, key_faults) = Keymap::with(&keys);
        faults.extend(key_faults.into_iter().map(|fault| format!("{name}: {fault}")));
        for key in table.keys().filter(|key| !["keys", "theme", "mouse"].contains(&key.as_str())) {
            let key = crate::text::escape(key);
            faults.push(format!("{name}: {key} is no setting; there are theme, mouse, [keys]"));
        }
        let palette = table.get("theme").and_then(toml::Value::as_str).and_then(|palette_name| {
            let palette = Palette::from_name(palette_name);
            if palette.is_none() {
                let palette = crate::text::escape(palette_name);
                faults.push(format!("{name}: no theme is called {palette}; there are dark, light, mono"));
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

/// Bytes of a configuration that is read.
const FILE_BYTES: u64 = 1 << 20;

/// The text of a file, empty where there is none. What is no plain file could make the start wait.
fn read_file(file: &std::path::Path) -> Result<String, String> {
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("can't be read: {error}")),
        Ok(metadata) if !metadata.is_file() => Err("is no plain file".to_owned()),
        Ok(metadata) if metadata.len() > FILE_BYTES => Err("is longer than 1 MiB".to_owned()),
        Ok(_) => std::fs::read_to_string(file).map_err(|error| format!("can't be read: {error}")),
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

    fn read(text: &str) -> Settings {
        Settings::from_file("config.toml", text)
    }

    #[test]
    fn a_file_sets_theme_mouse_and_keys() {
        let settings = read("theme = \"light\"\nmouse = false\n[keys]\nhelp = \"f5\"\n");
        assert_eq!(settings.surroundings.palette, Some(Palette::Light));
        assert!(!settings.mouse && settings.faults.is_empty());
        assert_eq!(settings.keymap.keys(Action::Help), "F5");
    }

    #[test]
    fn a_broken_file_is_told_and_the_rest_works() {
        let settings = read("theme = \"pink\"\ncolour = 1\n[keys]\nfly = \"x\"\n");
        assert_eq!(
            settings.faults,
            [
                "config.toml: keys: no action is called fly; docs/configuration.md lists them",
                "config.toml: colour is no setting; there are theme, mouse, [keys]",
                "config.toml: no theme is called pink; there are dark, light, mono",
            ]
        );
        let settings = read("mouse = true\ntheme = ");
        assert!(settings.faults[0].starts_with("config.toml:2: "), "{:?}", settings.faults);
        assert!(settings.faults[0].ends_with("; nothing of it is used") && settings.mouse);
    }

    #[test]
    fn values_of_another_type_are_told() {
        let settings = read("keys = 3\ntheme = 4\nmouse = \"no\"\n");
        assert_eq!(settings.faults.len(), 3, "{:?}", settings.faults);
        assert!(settings.mouse);
    }

    #[test]
    fn what_is_no_text_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        assert_eq!(read_file(&file), Ok(String::new()));
        assert_eq!(read_file(folder.path()), Err("is no plain file".to_owned()));
        std::fs::write(&file, b"theme = \"\xff\"").unwrap();
        assert!(read_file(&file).unwrap_err().starts_with("can't be read: "));
    }

    /// The page says what the table does: a row more or less fails here.
    #[test]
    fn the_page_lists_every_action() {
        let page = include_str!("../../../docs/configuration.md");
        for row in crate::tui::keymap::ROWS {
            let keys: Vec<String> = row.keys.iter().map(|key| format!("`{key}`")).collect();
            let line = format!("| `{}` | {} | {} |\n", row.name, keys.join(" "), row.help);
            assert!(page.contains(&line), "docs/configuration.md lacks:\n{line}");
        }
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, crate::tui::keymap::ROWS.len());
    }
}
