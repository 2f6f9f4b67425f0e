//! What happens, and what is to be done about it.
//!
//! In: nothing; plain types. Out: [`Msg`], which `update` takes, and [`Cmd`], which it gives back and `run` carries out.

use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};

use crate::playbook::StepRef;
use crate::read::Progress;
use crate::session::{self, Effect};
use crate::source::{Bytes, InputSpec};

use super::log::filter::FilterRun;
use super::log::index::LineIndex;
use super::log::search::Pattern;
use super::source::{Analysis, Source};

/// What an incident is opened from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// Files, folders, patterns, pastes, standard input.
    Named(Vec<InputSpec>),
    /// A saved incident, by id.
    Saved(String),
}

/// Something that happened.
#[derive(Debug)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// Keys came faster than hands type: a paste without brackets.
    Typed(String),
    /// Whether a pasted line is a path.
    PathChecked {
        /// The line.
        text: String,
        /// Whether something of that name exists.
        exists: bool,
    },
    /// The mouse was used.
    Mouse(MouseEvent),
    /// The terminal has another size.
    Resize(u16, u16),
    /// Time passed while something moves.
    Tick,
    /// Inputs were opened; their lines are not read yet.
    Loaded {
        /// Of which incident.
        generation: u64,
        /// The inputs.
        sources: Vec<Source>,
        /// Counts their bytes as they are read.
        progress: Progress,
    },
    /// The engine has a report.
    Analysed {
        /// Of which incident.
        generation: u64,
        /// The inputs.
        sources: Vec<Source>,
        /// The report.
        analysis: Box<Analysis>,
    },
    /// The engine could not go on.
    Failed {
        /// Of which incident.
        generation: u64,
        /// Why.
        why: String,
    },
    /// Lines were counted.
    Indexed {
        /// Of which incident.
        generation: u64,
        /// Of which input.
        source: usize,
        /// As far as it is.
        index: LineIndex,
    },
    /// A search went on.
    Found {
        /// Which search.
        id: u64,
        /// Starts of matching lines.
        lines: Vec<u64>,
        /// Bytes searched.
        searched: usize,
        /// Whether that was all.
        done: bool,
    },
    /// A filter went on.
    Filtered {
        /// Which run.
        id: u64,
        /// Starts of the lines that pass.
        lines: Vec<u64>,
        /// Whether that was all.
        done: bool,
    },
    /// What the engine wants done after a [`Cmd::Apply`].
    Effects {
        /// Of which incident.
        generation: u64,
        /// The effects.
        effects: Vec<Effect>,
    },
    /// A step's command was started.
    Started {
        /// Of which incident.
        generation: u64,
        /// The step.
        step: StepRef,
        /// How long it may take.
        deadline: Duration,
    },
    /// It printed something.
    Printed {
        /// Of which incident.
        generation: u64,
        /// As printed.
        chunk: Vec<u8>,
    },
    /// It ended; a [`Msg::Analysed`] with what it showed came before.
    Ended {
        /// Of which incident.
        generation: u64,
        /// How, in a sentence.
        said: String,
    },
    /// The log of a run made elsewhere could not be read.
    NotFed {
        /// Of which incident.
        generation: u64,
        /// The step.
        step: StepRef,
        /// What was typed.
        typed: String,
        /// Why, escaped.
        why: String,
    },
    /// An earlier incident with the same crash.
    Seen {
        /// Of which incident.
        generation: u64,
        /// Which, and how it ended.
        said: String,
    },
    /// The incident is on disk.
    Kept {
        /// Which one in the UI.
        generation: u64,
        /// Its id in the store.
        id: String,
    },
    /// Something to tell on the bottom line.
    Told(String),
    /// A paste was saved.
    Saved(PathBuf),
    /// Candidates for a path being typed.
    Completed {
        /// The text that was to be completed.
        text: String,
        /// Whole lines to choose from.
        candidates: Vec<String>,
    },
    /// Samples and recent incidents were found.
    Picks {
        /// Incidents opened before.
        recent: Vec<super::model::Sample>,
        /// Recorded crashes.
        samples: Vec<super::model::Sample>,
    },
}

/// Something to do.
#[derive(Debug)]
pub enum Cmd {
    /// End with this status.
    Quit,
    /// To the shell until `fg`.
    Suspend,
    /// Draw every cell again.
    Redraw,
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Open an incident and read it.
    Open {
        /// Its number.
        generation: u64,
        /// What to open.
        opening: Opening,
        /// Whether to go on as the inputs grow.
        follow: bool,
    },
    /// Add inputs to the incident that is open.
    Add(Vec<InputSpec>),
    /// Read its inputs once more.
    Again,
    /// Tell the engine something; a [`Msg::Analysed`] and a [`Msg::Effects`] come back.
    Apply(Box<session::Input>),
    /// Take the log of a step's command that ran elsewhere.
    Feed {
        /// The step.
        step: StepRef,
        /// The log.
        spec: InputSpec,
    },
    /// Stop the work of the incident.
    Stop,
    /// Count the lines of an input.
    Index {
        /// For which incident.
        generation: u64,
        /// Of which input.
        source: usize,
        /// Its bytes.
        bytes: Bytes,
        /// What is counted already.
        index: LineIndex,
    },
    /// Search an input.
    Search {
        /// Which search.
        id: u64,
        /// The bytes.
        bytes: Bytes,
        /// Bytes searched already: a line's start.
        from: usize,
        /// The pattern.
        pattern: Pattern,
    },
    /// Filter an input.
    Filter {
        /// Which run.
        id: u64,
        /// The bytes.
        bytes: Bytes,
        /// The filter.
        run: Box<FilterRun>,
    },
    /// Put a text on the clipboard, and in a file where the terminal refuses.
    Copy {
        /// The text.
        text: String,
        /// What it is, for the message.
        what: &'static str,
    },
    /// Open an editor at the first of these files that exists.
    Edit {
        /// Files, with the line counted from 1.
        choices: Vec<(PathBuf, Option<u64>)>,
    },
    /// See whether a pasted line is a path.
    OpenIfPath {
        /// The line.
        text: String,
    },
    /// Write a text to a file that must not exist.
    Save {
        /// The file; none for a new one in the state folder.
        path: Option<PathBuf>,
        /// The text.
        text: std::sync::Arc<String>,
    },
    /// Write the report to a file; the name tells the format.
    Export {
        /// The file.
        path: PathBuf,
        /// The report.
        report: std::sync::Arc<crate::report::Report>,
    },
    /// Find candidates for the path at the end of a line.
    CompletePath {
        /// The line.
        text: String,
    },
}
