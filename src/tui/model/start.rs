//! The screen that waits for an input.
//!
//! In: nothing; plain types. Out: [`Start`]: the line being typed, a paste that comes in as keys, and what can be picked.

use std::time::Duration;

use crate::tui::msg::Opening;

/// A recorded crash that can be tried, or an incident opened before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// What it shows.
    pub title: String,
    /// What it is opened from.
    pub opening: Opening,
}

/// State of the start screen.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The path being typed.
    pub typed: String,
    /// Row of the list under the cursor.
    pub cursor: usize,
    /// Recent incidents.
    pub recent: Vec<Sample>,
    /// Recorded crashes.
    pub samples: Vec<Sample>,
    /// A paste that arrives as keys, because the terminal doesn't bracket it.
    pub pasting: Option<String>,
    /// When the last key came.
    pub last_key: Option<Duration>,
}

impl Start {
    /// What can be picked, recent ones first.
    pub fn picks(&self) -> impl Iterator<Item = &Sample> {
        self.recent.iter().chain(&self.samples)
    }
}
