//! A log on the screen: where it stands, which lines it shows, what is searched.
//!
//! In: positions, patterns, and what the workers found. Out: [`LogState`], which `view::log` draws. Positions are byte
//! offsets of line starts, so that a log of gigabytes opens before anything has counted its lines. It never copies a log.

pub mod filter;
pub mod index;
pub mod lines;
pub mod search;
pub mod text;

use filter::{Filter, Filtered};
use index::LineIndex;
use search::Search;

/// State of the log pane.
#[derive(Debug, Clone, Default)]
pub struct LogState {
    /// The input that is shown.
    pub source: usize,
    /// Start of the line on top.
    pub top: usize,
    /// Start of the line under the cursor.
    pub cursor: usize,
    /// Columns scrolled to the right.
    pub left: usize,
    /// Whether long lines are wrapped.
    pub wrap: bool,
    /// Line numbers of each input, as far as they are counted.
    pub indexes: Vec<LineIndex>,
    /// The search, if there is one.
    pub search: Option<Search>,
    /// Which lines are shown.
    pub filter: Filter,
    /// The lines that the filter lets through; none where it lets all through.
    pub filtered: Option<Filtered>,
    /// Where the cursor was before the filter.
    pub before_filter: Option<usize>,
    /// Which count was asked for last: incident, input, length.
    pub indexing: Option<(u64, usize, usize)>,
    /// Where the jump to this place started: pane and row go back there.
    pub from: Option<crate::tui::model::Place>,
    /// Whether the view stays at the end of a log that grows.
    pub tail: bool,
}

impl LogState {
    /// Number of the line that starts at `at`, counted from 1, once it is counted.
    pub fn number(&self, bytes: &[u8], at: usize) -> Option<u64> {
        self.indexes.get(self.source)?.number(bytes, at)
    }

    /// The offsets that the filter lets through.
    pub fn offsets(&self) -> Option<&[u64]> {
        self.filtered.as_ref().map(|filtered| filtered.lines.as_slice())
    }
}
