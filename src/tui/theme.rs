//! Colours and glyphs by meaning.
//!
//! In: what the terminal can do. Out: a [`Style`] for each [`Role`], and the [`Glyphs`]. Nothing is told by colour alone:
//! each role that matters also has a glyph or a word. It leaves reading the environment to `run`.

use std::borrow::Cow;

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

/// What a piece of the screen means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Plain text.
    Text,
    /// Secondary text.
    Muted,
    /// Name of a pane or a row.
    Title,
    /// The pane or row that takes the keys.
    Focus,
    /// The row under the cursor.
    Selected,
    /// A failure.
    Danger,
    /// Something that holds, passes or fits.
    Good,
    /// Something to be careful about.
    Warn,
    /// A reference, a path, a command.
    Link,
    /// A key to press.
    Key,
    /// A match of the search.
    Match,
    /// Python or native frames inside a log.
    Code,
}

/// Every role, for tests.
#[cfg(test)]
pub const ROLES: [Role; 12] = [
    Role::Text,
    Role::Muted,
    Role::Title,
    Role::Focus,
    Role::Selected,
    Role::Danger,
    Role::Good,
    Role::Warn,
    Role::Link,
    Role::Key,
    Role::Match,
    Role::Code,
];

/// A set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// For dark backgrounds.
    Dark,
    /// For light backgrounds.
    Light,
    /// No colours: bold, underlined and reversed only.
    Mono,
}

impl Palette {
    /// The palette of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "dark" => Some(Self::Dark),
            "light" => Some(Self::Light),
            "mono" | "none" => Some(Self::Mono),
            _ => None,
        }
    }

    /// The name in commands and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
            Self::Mono => "mono",
        }
    }

    /// The next one, for the key that goes round.
    pub fn next(self) -> Self {
        match self {
            Self::Dark => Self::Light,
            Self::Light => Self::Mono,
            Self::Mono => Self::Dark,
        }
    }
}

/// Colours and glyphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Colours.
    pub palette: Palette,
    /// Whether the terminal has 256 colours; else the 16 of the user's palette are used.
    pub wide_colours: bool,
    /// Glyphs.
    pub glyphs: &'static Glyphs,
}

impl Theme {
    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        if self.palette == Palette::Mono {
            return mono(role);
        }
        let style = Style::new();
        let colour = self.colour(role);
        match role {
            Role::Text => style,
            Role::Selected => style.add_modifier(Modifier::REVERSED),
            Role::Danger | Role::Focus | Role::Title => style.fg(colour).add_modifier(Modifier::BOLD),
            Role::Key => style.fg(colour).add_modifier(Modifier::BOLD),
            Role::Match => style.fg(Color::Black).bg(colour),
            _ => style.fg(colour),
        }
    }

    /// Our own words, without signs that the terminal may not have. What a log printed is left as it is.
    pub fn words<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if *self.glyphs == ASCII { crate::text::signs::plain(text) } else { Cow::Borrowed(text) }
    }

    fn colour(&self, role: Role) -> Color {
        let light = self.palette == Palette::Light;
        let (dark_wide, light_wide, dark_16, light_16) = match role {
            Role::Text | Role::Selected => return Color::Reset,
            Role::Muted => (247, 240, Color::Gray, Color::DarkGray),
            Role::Title => (253, 234, Color::White, Color::Black),
            Role::Focus => (117, 25, Color::LightCyan, Color::Blue),
            Role::Danger => (210, 124, Color::LightRed, Color::Red),
            Role::Good => (114, 22, Color::LightGreen, Color::Green),
            Role::Warn => (221, 94, Color::LightYellow, Color::Magenta),
            Role::Link => (117, 25, Color::LightCyan, Color::Blue),
            Role::Key => (222, 90, Color::LightYellow, Color::Magenta),
            Role::Match => (221, 221, Color::LightYellow, Color::LightYellow),
            Role::Code => (183, 90, Color::LightMagenta, Color::Magenta),
        };
        match (self.wide_colours, light) {
            (true, false) => Color::Indexed(dark_wide),
            (true, true) => Color::Indexed(light_wide),
            (false, false) => dark_16,
            (false, true) => light_16,
        }
    }
}

/// crossterm 0.29 writes an empty colour under NO_COLOR, which would reset the attribute: no colour is ever set here.
fn mono(role: Role) -> Style {
    let style = Style::new();
    match role {
        Role::Title | Role::Danger | Role::Focus | Role::Key => style.add_modifier(Modifier::BOLD),
        Role::Selected => style.add_modifier(Modifier::REVERSED),
        Role::Match => style.add_modifier(Modifier::REVERSED | Modifier::BOLD),
        Role::Link | Role::Warn => style.add_modifier(Modifier::UNDERLINED),
        Role::Text | Role::Muted | Role::Good | Role::Code => style,
    }
}

/// The glyphs that the screen is made of.
#[derive(Debug, PartialEq, Eq)]
pub struct Glyphs {
    /// The row under the cursor.
    pub cursor: &'static str,
    /// A deciding line.
    pub deciding: &'static str,
    /// Another line of evidence.
    pub evidence: &'static str,
    /// A further line of the same evidence.
    pub continued: &'static str,
    /// A check that holds, a rank that finished, a trial that passed.
    pub good: &'static str,
    /// A failure.
    pub bad: &'static str,
    /// Not known.
    pub unknown: &'static str,
    /// Waiting.
    pub waiting: &'static str,
    /// Left out.
    pub skipped: &'static str,
    /// Separator inside a line.
    pub dot: &'static str,
    /// Cut text.
    pub cut: &'static str,
    /// Text cut on the left.
    pub cut_left: &'static str,
    /// Light horizontal stroke.
    pub line: &'static str,
    /// Heavy horizontal stroke: past a limit.
    pub heavy: &'static str,
    /// A limit on a line.
    pub limit: &'static str,
    /// A safe value on a line.
    pub safe: &'static str,
    /// The reported value on a line.
    pub reported: &'static str,
    /// A piece of axis left out.
    pub gap: &'static str,
    /// Full and empty cells of a bar.
    pub bar: [&'static str; 2],
    /// Left and right end of a block of memory, and its filling.
    pub memory: [&'static str; 3],
    /// Thumb and rail of a scroll bar.
    pub scroll: [&'static str; 2],
    /// Points left, points right.
    pub arrows: [&'static str; 2],
    /// Frames of the activity mark.
    pub spinner: &'static [&'static str],
    /// Borders of a pane.
    pub border: border::Set<'static>,
    /// The limit's name.
    pub int32_max: &'static str,
}

/// For UTF-8 terminals.
pub static UNICODE: Glyphs = Glyphs {
    cursor: "▸",
    deciding: "▶",
    evidence: "•",
    continued: "│",
    good: "✓",
    bad: "✗",
    unknown: "?",
    waiting: "…",
    skipped: "–",
    dot: "·",
    cut: "…",
    cut_left: "…",
    line: "─",
    heavy: "═",
    limit: "┃",
    safe: "●",
    reported: "▲",
    gap: "╱╱",
    bar: ["█", "░"],
    memory: ["[", "]", "█"],
    scroll: ["┃", "╎"],
    arrows: ["◀", "▶"],
    spinner: &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"],
    border: border::PLAIN,
    int32_max: "2³¹−1",
};

/// For terminals and locales without UTF-8.
pub static ASCII: Glyphs = Glyphs {
    cursor: ">",
    deciding: ">",
    evidence: "*",
    continued: "|",
    good: "+",
    bad: "x",
    unknown: "?",
    waiting: ".",
    skipped: "-",
    dot: "-",
    cut: "~",
    cut_left: "~",
    line: "-",
    heavy: "=",
    limit: "|",
    safe: "o",
    reported: "^",
    gap: "//",
    bar: ["#", "."],
    memory: ["[", "]", "#"],
    scroll: ["#", ":"],
    arrows: ["<", ">"],
    spinner: &["|", "/", "-", "\\"],
    border: border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "-",
        horizontal_bottom: "-",
    },
    int32_max: "2^31-1",
};

/// What the environment says about the terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// `NO_COLOR` is set and not empty.
    pub no_color: bool,
    /// `TERM`.
    pub term: String,
    /// `COLORTERM`.
    pub colorterm: String,
    /// `COLORFGBG`.
    pub colorfgbg: String,
    /// The first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set.
    pub locale: String,
    /// The palette that the user asked for.
    pub palette: Option<Palette>,
}

impl Theme {
    /// The theme for a terminal.
    pub fn choose(surroundings: &Surroundings) -> Self {
        let utf8 = crate::text::signs::is_utf8(&surroundings.locale);
        let palette = match surroundings.palette {
            Some(palette) => palette,
            None if surroundings.no_color => Palette::Mono,
            None if has_light_background(&surroundings.colorfgbg) => Palette::Light,
            None => Palette::Dark,
        };
        Self {
            palette: if surroundings.no_color { Palette::Mono } else { palette },
            wide_colours: surroundings.term.contains("256color") || !surroundings.colorterm.is_empty(),
            glyphs: if utf8 && surroundings.term != "linux" { &UNICODE } else { &ASCII },
        }
    }
}

/// `COLORFGBG=0;15`: the last number is the background.
fn has_light_background(colorfgbg: &str) -> bool {
    matches!(colorfgbg.rsplit(';').next(), Some("7" | "15"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of a colour of the 256-colour cube or grey ramp.
    fn luminance(index: u8) -> f64 {
        let rgb = match index {
            232.. => [8.0 + 10.0 * (f64::from(index) - 232.0); 3],
            16.. => {
                let i = index - 16;
                [i / 36, i / 6 % 6, i % 6].map(|c| if c == 0 { 0.0 } else { 55.0 + 40.0 * f64::from(c) })
            }
            _ => unreachable!("only fixed colours are checked"),
        };
        let [r, g, b] = rgb.map(|c| {
            let c = c / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn contrast(a: f64, b: f64) -> f64 {
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_colour_is_readable_on_its_background() {
        for (palette, background) in [(Palette::Dark, luminance(234)), (Palette::Light, 1.0)] {
            let theme = Theme { palette, wide_colours: true, glyphs: &UNICODE };
            for role in ROLES {
                let style = theme.style(role);
                let against = match style.bg {
                    Some(Color::Indexed(index)) => luminance(index),
                    _ => background,
                };
                let fore = match style.fg {
                    Some(Color::Indexed(index)) => luminance(index),
                    Some(Color::Black) => 0.0,
                    _ => continue,
                };
                assert!(contrast(fore, against) >= 4.5, "{palette:?} {role:?}: {}", contrast(fore, against));
            }
        }
    }

    #[test]
    fn mono_sets_no_colour_and_still_shows_the_selection() {
        let theme = Theme { palette: Palette::Mono, wide_colours: true, glyphs: &UNICODE };
        for role in ROLES {
            assert_eq!((theme.style(role).fg, theme.style(role).bg), (None, None), "{role:?}");
        }
        assert!(theme.style(Role::Selected).add_modifier.contains(Modifier::REVERSED));
    }

    #[test]
    fn the_environment_decides() {
        let base = Surroundings {
            term: "xterm-256color".to_owned(),
            locale: "en_US.UTF-8".to_owned(),
            ..Surroundings::default()
        };
        assert_eq!(Theme::choose(&base).palette, Palette::Dark);
        assert_eq!(Theme::choose(&base).glyphs, &UNICODE);
        let light = Surroundings { colorfgbg: "0;15".to_owned(), ..base.clone() };
        assert_eq!(Theme::choose(&light).palette, Palette::Light);
        let plain = Surroundings { no_color: true, palette: Some(Palette::Dark), ..base.clone() };
        assert_eq!(Theme::choose(&plain).palette, Palette::Mono);
        let posix = Surroundings { locale: "C".to_owned(), ..base };
        assert_eq!(Theme::choose(&posix).glyphs, &ASCII);
    }
}
