//! An open incident: what is known, and where the eyes are.
//!
//! In: nothing; plain types. Out: [`Incident`]. It leaves the log's own state to `log`.

use std::sync::Arc;
use std::time::Duration;

use crate::playbook::Walk;
use crate::read::Progress;
use crate::report::Report;
use crate::tui::claims::{self, Subject};
use crate::tui::log::LogState;
use crate::tui::log::lines::Lines;
use crate::tui::msg::Opening;
use crate::tui::source::{Analysis, Mark, Source};

use super::run::Run;

/// A pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pane {
    /// The answer.
    Verdict,
    /// What it rests on.
    Evidence,
    /// The ranks.
    Ranks,
    /// The walk through the playbook, checks and next steps.
    Playbook,
    /// The log.
    Log,
}

impl Pane {
    /// Every pane, in the order of the tabs.
    pub const ALL: [Self; 5] = [Self::Verdict, Self::Evidence, Self::Ranks, Self::Playbook, Self::Log];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verdict => "Verdict",
            Self::Evidence => "Evidence",
            Self::Ranks => "Ranks",
            Self::Playbook => "Playbook",
            Self::Log => "Log",
        }
    }

    /// Its position among the tabs.
    pub fn index(self) -> usize {
        Self::ALL.iter().position(|pane| *pane == self).unwrap_or(0)
    }
}

/// Where an incident comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It was named, and can be opened again.
    Named,
    /// It was pasted: leaving loses it unless it is saved.
    Pasted(Arc<String>),
}

/// How far the work is.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// Inputs are being opened.
    Loading {
        /// Since when.
        since: Duration,
    },
    /// Inputs are open, their lines are being read.
    Reading {
        /// Since when.
        since: Duration,
    },
    /// Done.
    Done {
        /// How long it took.
        took: Duration,
    },
    /// Stopped by the user.
    Stopped,
    /// It could not be done, with the reason.
    Failed(String),
}

/// A place in the UI to come back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The pane.
    pub pane: Pane,
    /// The row under its cursor.
    pub row: usize,
}

/// Rows that the upper panes would fill; none while that isn't known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content {
    /// Of the verdict.
    pub verdict: Option<u16>,
    /// Of the log.
    pub log: Option<u16>,
}

/// An open incident.
#[derive(Debug, Clone)]
pub struct Incident {
    /// Where it comes from.
    pub origin: Origin,
    /// What it was opened from.
    pub opening: Opening,
    /// Its id in the store, once it is saved.
    pub kept: Option<String>,
    /// Whether the inputs are followed.
    pub follow: bool,
    /// How far the work is.
    pub phase: Phase,
    /// Bytes that were read.
    pub progress: Progress,
    /// Inputs, once they are open.
    pub sources: Vec<Source>,
    /// The report with its marks, once there is one.
    pub analysis: Option<Analysis>,
    /// The pane that takes the keys.
    pub pane: Pane,
    /// Whether it is alone on a wide screen.
    pub zoom: bool,
    /// How much the panes have to show, where they lie side by side.
    pub content: Content,
    /// Which of evidence and ranks share their place is on top.
    pub lower: Pane,
    /// Rows under the cursors of the panes, in the order of the tabs (the log has its own).
    pub rows: [usize; 4],
    /// The log.
    pub log: LogState,
    /// Whether a paste was saved.
    pub saved: bool,
    /// An earlier incident with the same crash, and how it ended.
    pub seen: Option<String>,
    /// The command that runs.
    pub run: Option<Run>,
    /// Whether the cursor goes with the walk: something was done in it, and the answer is on its way.
    pub walk_moves: bool,
}

impl Incident {
    /// An incident whose inputs are being opened.
    pub fn new(origin: Origin, opening: Opening, follow: bool, now: Duration) -> Self {
        Self {
            origin,
            opening,
            kept: None,
            follow,
            phase: Phase::Loading { since: now },
            progress: Progress::default(),
            sources: Vec::new(),
            analysis: None,
            pane: Pane::Verdict,
            zoom: false,
            content: Content::default(),
            lower: Pane::Evidence,
            rows: [0; 4],
            log: LogState { wrap: false, tail: follow, ..LogState::default() },
            saved: false,
            seen: None,
            run: None,
            walk_moves: false,
        }
    }

    /// The report.
    pub fn report(&self) -> Option<&Report> {
        self.analysis.as_ref().map(|analysis| &*analysis.report)
    }

    /// The walk through the playbook.
    pub fn walk(&self) -> Option<&Walk> {
        self.analysis.as_ref().map(|analysis| &*analysis.walk)
    }

    /// Row under the cursor of the pane that takes the keys.
    pub fn row(&self) -> usize {
        self.row_of(self.pane)
    }

    /// Row under the cursor of a pane.
    pub fn row_of(&self, pane: Pane) -> usize {
        self.rows.get(pane.index()).copied().unwrap_or(0)
    }

    /// Moves the cursor of a pane.
    pub fn set_row(&mut self, pane: Pane, row: usize) {
        if let Some(slot) = self.rows.get_mut(pane.index()) {
            *slot = row;
        }
    }

    /// The input that the log pane shows.
    pub fn source(&self) -> Option<&Source> {
        self.sources.get(self.log.source)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.source().map(|source| &*source.bytes).unwrap_or_default()
    }

    /// Its lines, as the filter leaves them.
    pub fn lines(&self) -> Lines<'_> {
        Lines::new(self.bytes(), self.log.offsets())
    }

    /// The evidence in the input that the log pane shows.
    pub fn marks(&self) -> &[Mark] {
        self.analysis
            .as_ref()
            .and_then(|analysis| analysis.marks.get(self.log.source))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Whether the row under the cursor is what to do next, which the playbook does.
    pub fn leads_to_steps(&self) -> bool {
        self.pane == Pane::Verdict
            && self.report().is_some_and(|report| {
                let claim = claims::claims(report).into_iter().nth(self.row_of(Pane::Verdict));
                claim.is_some_and(|claim| claim.subject == Subject::Next)
            })
    }

    /// Whether work goes on.
    pub fn is_working(&self) -> bool {
        matches!(self.phase, Phase::Loading { .. } | Phase::Reading { .. })
    }

    /// Whether something on the screen moves by itself.
    pub fn is_busy(&self) -> bool {
        self.is_working()
            || self.run.is_some()
            || self.log.search.as_ref().is_some_and(|search| !search.done)
            || self.log.filtered.as_ref().is_some_and(|filtered| !filtered.done)
            || self.log.indexes.iter().any(|index| !index.is_done())
    }

    /// Whether leaving would lose something.
    pub fn is_unsaved(&self) -> bool {
        matches!(self.origin, Origin::Pasted(_)) && !self.saved && self.kept.is_none()
    }
}
