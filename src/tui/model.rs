//! Everything that the screen shows, and nothing else: no handles, no threads, no clock.
//!
//! In: nothing; plain types. Out: [`Model`]. Only `update` changes it, and drawing only reads it.

mod incident;
mod overlay;
mod run;
mod start;

pub use incident::{Content, Incident, Origin, Pane, Phase, Place};
pub use overlay::{Choice, Form, Overlay, Pick, PickFor, Prompt, PromptKind};
pub use run::Run;
pub use start::{Sample, Start};

use std::time::Duration;

use ratatui::layout::Rect;

use super::keymap::Keymap;
use super::theme::Theme;

/// The state of the UI.
#[derive(Debug, Clone)]
pub struct Model {
    /// Size of the terminal in cells.
    pub size: Rect,
    /// Colours and glyphs.
    pub theme: Theme,
    /// Keys.
    pub keymap: Keymap,
    /// Whether the mouse is ours.
    pub mouse: bool,
    /// Time since the start, as of the last message.
    pub now: Duration,
    /// What waits for an input.
    pub start: Start,
    /// The incident that is open.
    pub incident: Option<Incident>,
    /// What lies on top.
    pub overlay: Option<Overlay>,
    /// A sentence on the bottom line, and when it came.
    pub status: Option<(String, Duration)>,
    /// Number of the incident: answers to older ones are dropped.
    pub generation: u64,
    /// Number of the last job.
    pub job: u64,
    /// Whether to leave once a paste is saved.
    pub leave_when_saved: bool,
    /// The home folder, for `~` in typed paths.
    pub home: Option<std::path::PathBuf>,
    /// Commands typed so far, the latest last.
    pub history: Vec<String>,
}

impl Model {
    /// An empty screen.
    pub fn new(size: Rect, theme: Theme, keymap: Keymap) -> Self {
        Self {
            size,
            theme,
            keymap,
            mouse: true,
            now: Duration::ZERO,
            start: Start::default(),
            incident: None,
            overlay: None,
            status: None,
            generation: 0,
            job: 0,
            leave_when_saved: false,
            home: None,
            history: Vec::new(),
        }
    }

    /// Shows a sentence on the bottom line.
    pub fn say(&mut self, text: impl Into<String>) {
        self.status = Some((text.into(), self.now));
    }

    /// A number for a new job.
    pub fn next_job(&mut self) -> u64 {
        self.job += 1;
        self.job
    }

    /// Whether something on the screen moves by itself, so that ticks are wanted.
    pub fn is_busy(&self) -> bool {
        self.start.pasting.is_some() || self.incident.as_ref().is_some_and(Incident::is_busy)
    }
}
