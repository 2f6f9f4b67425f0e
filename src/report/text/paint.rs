//! Labels of the text report and their styles.
//!
//! In: a label and a text. Out: the text, styled or plain. Whether styles are wanted is the caller's to know.

use anstyle::{AnsiColor, Effects, Style};

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// The class of the failure.
    Class,
    /// A certainty.
    Certainty,
    /// The title of a section or row.
    Title,
    /// A command to copy.
    Command,
}

/// Whether labels become styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// No styles.
    Plain,
    /// ANSI styles in the terminal's own sixteen colours.
    Ansi,
}

impl Paint {
    /// `text` in the style of `label`.
    #[must_use]
    pub fn label(self, label: Label, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Ansi => {
                let style = style(label);
                format!("{style}{text}{style:#}")
            }
        }
    }
}

fn style(label: Label) -> Style {
    let plain = Style::new();
    match label {
        Label::Class => plain.fg_color(Some(AnsiColor::Red.into())).effects(Effects::BOLD),
        Label::Certainty => plain.effects(Effects::BOLD),
        Label::Title => plain.fg_color(Some(AnsiColor::Cyan.into())),
        Label::Command => plain.fg_color(Some(AnsiColor::Green.into())),
    }
}
