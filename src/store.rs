//! Incidents on disk: saved as they go, resumed after a crash, a reboot or on the next shift.
//!
//! In: a session after each change, and the time as a value. Out: one JSON file an incident, written whole or not at all,
//! and `index.jsonl`, one line a save; a list of past incidents; the earlier conclusion of a crash that was seen before.
//! Killing the program at any moment loses at most the step in flight. It leaves judging to the engine: a resumed
//! incident is read and judged anew.

mod digest;
mod incident;
mod index;
mod resume;
pub mod signature;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

pub use incident::{Incident, Saved, SavedInput, SavedVerdict};
pub use index::Row;
pub use resume::{Resumed, resume};

/// Where incidents are kept.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// `$XDG_STATE_HOME/warpfault`.
    ///
    /// # Errors
    /// `Missing` where there is no home.
    pub fn of_user() -> Result<Self> {
        use etcetera::BaseStrategy;
        let base = etcetera::choose_base_strategy().map_err(|error| {
            Error::new(ErrorKind::Missing, "there is no home folder to keep incidents in")
                .because(error)
                .hint("set XDG_STATE_HOME to a folder that can be written")
        })?;
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Ok(Self { folder: state.join("warpfault") })
    }

    /// A store in this folder; it is made when the first incident is.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn incidents(&self) -> PathBuf {
        self.folder.join("incidents")
    }

    fn file_of(&self, id: &str) -> PathBuf {
        self.incidents().join(format!("{id}.json"))
    }

    /// Begins an incident that nobody else works on. `now` is its time, such as `2026-11-29T21:55:00Z`.
    ///
    /// # Errors
    /// `Output` where the folder can't be written.
    pub fn create(&self, now: &str) -> Result<Incident> {
        Incident::create(self, now)
    }

    /// Past incidents, the newest first.
    ///
    /// # Errors
    /// `Input` where the folder is there and can't be read.
    pub fn list(&self) -> Result<Vec<Row>> {
        index::list(self)
    }

    /// Past incidents with this crash signature, the newest first, without the incident `but`.
    ///
    /// # Errors
    /// As [`Store::list`].
    pub fn seen_before(&self, signature: &str, but: Option<&str>) -> Result<Vec<Row>> {
        let rows = self.list()?.into_iter();
        Ok(rows
            .filter(|row| row.signature.as_deref() == Some(signature) && Some(row.id.as_str()) != but)
            .collect())
    }
}

/// Writes a file whole or not at all: beside its place first, then moved over it.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Output, "the incident could not be saved").at(path, None).because(error)
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}
