//! What went wrong in the tool itself (never in the crash that it reads).
//!
//! In: a kind, a sentence, optionally a cause and a hint. Out: one error type that the command line maps to an
//! exit status and prints as value + limit + consequence + next step. It leaves crash findings alone: those are evidence.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why the tool could not do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// An argument, shape or option that can't be read.
    Usage,
    /// A file or folder that can't be opened or read.
    Input,
    /// A file that can't be written.
    Output,
    /// Bytes that don't follow the format that they claim.
    Format,
    /// A bound that protects memory or time was reached.
    Limit,
    /// Something this machine lacks: a GPU, a driver, a program.
    Missing,
    /// The user said no, or asked to stop.
    Refused,
}

/// An error of the tool: a kind, a sentence, where, and what to do next.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    place: Option<Place>,
    hint: Option<String>,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Where an error stands: a file and, where known, a line (counted from 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file that was being read.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: Option<u64>,
}

/// The tool's result type.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: None, hint: None, cause: None }
    }

    /// Adds what the reader can do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the file, and the line counted from 1 where there is one.
    #[must_use]
    pub fn at(mut self, path: impl AsRef<Path>, line: Option<u64>) -> Self {
        self.place = Some(Place { path: path.as_ref().to_path_buf(), line });
        self
    }

    /// Adds the error underneath.
    #[must_use]
    pub fn because(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// The kind, which decides the exit status.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What to do next, where the error knows.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}", place.path.display())?;
            if let Some(line) = place.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)?;
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as &(dyn std::error::Error + 'static))
    }
}
