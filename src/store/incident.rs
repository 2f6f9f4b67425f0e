//! One incident that is being worked on: its lock, its file, its folder.
//!
//! In: a session and the time. Out: `incidents/ID.json`, and `incidents/ID/` with what has no file of its own: pasted
//! inputs, logs of runs. Only one program works on an incident at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::playbook::{Record, StepRef};
use crate::session::Session;
use crate::source;

use super::digest::digest;
use super::index::{self, Row};
use super::{Store, signature, write_whole};

/// The schema of an incident file.
pub const SCHEMA: &str = "warpfault/incident/1";

/// An incident as it stands on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Saved {
    /// `SCHEMA`.
    pub schema: String,
    /// Version of the tool that wrote it.
    pub tool: String,
    /// Id.
    pub id: String,
    /// When it was begun.
    pub created: String,
    /// When it was saved last.
    pub updated: String,
    /// Inputs in the order of their ids.
    pub inputs: Vec<SavedInput>,
    /// What happened in the walk.
    pub record: Record,
    /// The verdict then.
    pub verdict: SavedVerdict,
    /// The crash signature: readable, and its hash.
    pub signature: Option<(String, String)>,
    /// The report's evidence then, as the report prints it, should an input be gone one day.
    pub evidence: serde_json::Value,
}

/// An input by path and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedInput {
    /// Name to show.
    pub name: String,
    /// The file; a pasted input has one in the incident's folder.
    pub file: Option<PathBuf>,
    /// What it is.
    pub kind: String,
    /// Bytes as given.
    pub bytes: u64,
    /// Digest of the decoded content.
    pub digest: String,
}

/// A verdict in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SavedVerdict {
    /// Class.
    pub class: String,
    /// Cause.
    pub cause: Option<String>,
    /// How sure the cause is.
    pub certainty: String,
    /// One sentence.
    pub summary: String,
    /// The cause in one sentence.
    pub cause_summary: Option<String>,
}

/// An incident that is being worked on.
#[derive(Debug)]
pub struct Incident {
    store: Store,
    id: String,
    created: String,
    inputs: Vec<SavedInput>,
    /// Holds the lock for as long as it lives.
    _lock: Option<File>,
}

impl Incident {
    pub(super) fn create(store: &Store, now: &str) -> Result<Self> {
        let folder = store.incidents();
        std::fs::create_dir_all(&folder).map_err(|error| {
            Error::new(ErrorKind::Output, "the folder for incidents can't be made")
                .at(&folder, None)
                .because(error)
        })?;
        let stem = stem(now);
        for number in 1..1_000_u32 {
            let id = if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
            if store.file_of(&id).exists() || store.incidents().join(&id).exists() {
                continue;
            }
            // The lock file is the claim: whoever makes it has the id.
            match OpenOptions::new().write(true).create_new(true).open(lock_path(store, &id)) {
                Ok(file) => {
                    let lock = file.try_lock().is_ok().then_some(file);
                    let (store, created) = (store.clone(), now.to_owned());
                    return Ok(Self { store, id, created, inputs: Vec::new(), _lock: lock });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(Error::new(ErrorKind::Output, "an incident can't be begun")
                        .at(lock_path(store, &id), None)
                        .because(error));
                }
            }
        }
        Err(Error::new(ErrorKind::Limit, "a thousand incidents of one second"))
    }

    /// Takes up a saved incident.
    ///
    /// # Errors
    /// `Input` where there is none of this id, `Refused` where another program works on it, `Format` where its file can't
    /// be read.
    pub(super) fn take_up(store: &Store, id: &str) -> Result<(Self, Saved)> {
        let path = saved_path(store, id)?;
        let lock = lock(store, id)?;
        let saved = read(&path)?;
        let incident = Self {
            store: store.clone(),
            id: id.to_owned(),
            created: saved.created.clone(),
            inputs: saved.inputs.clone(),
            _lock: lock,
        };
        Ok((incident, saved))
    }

    /// Id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.store.file_of(&self.id)
    }

    /// A new file for the log of a step's run.
    #[must_use]
    pub fn run_log(&self, step: &StepRef) -> PathBuf {
        let folder = self.folder().join("runs");
        let name = |number: u32| folder.join(format!("{number}-{}.log", step.step));
        (1..10_000).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
    }

    fn folder(&self) -> PathBuf {
        self.store.incidents().join(&self.id)
    }

    /// Saves a session, whole or not at all. `now` is the time.
    ///
    /// # Errors
    /// `Output` where it can't be written.
    pub fn save(&mut self, session: &Session, now: &str) -> Result<()> {
        for input in session.inputs().iter().skip(self.inputs.len()) {
            let saved = self.keep(input)?;
            self.inputs.push(saved);
        }
        let report = session.report();
        let signature = signature::of(session.verdict());
        let saved = Saved {
            schema: SCHEMA.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            id: self.id.clone(),
            created: self.created.clone(),
            updated: now.to_owned(),
            inputs: self.inputs.clone(),
            record: session.record().clone(),
            verdict: in_words(session),
            signature: signature.clone().map(|signature| (signature.text, signature.hash)),
            evidence: serde_json::to_value(&report.evidence).unwrap_or_default(),
        };
        let json = serde_json::to_vec_pretty(&saved).map_err(|error| {
            Error::new(ErrorKind::Output, "the incident could not be written as JSON").because(error)
        })?;
        write_whole(&self.path(), &json)?;
        index::add(&self.store, &Row::of(&saved))
    }

    /// An input by path; one without a file gets a file in the incident's folder.
    fn keep(&self, input: &source::Input) -> Result<SavedInput> {
        let file = match &input.file {
            Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.clone()),
            None => {
                let folder = self.folder().join("inputs");
                std::fs::create_dir_all(&folder).map_err(|error| {
                    Error::new(ErrorKind::Output, "the incident's folder can't be made")
                        .at(&folder, None)
                        .because(error)
                })?;
                let path = folder.join(format!("{}.txt", self.inputs.len()));
                write_whole(&path, &input.bytes)?;
                path
            }
        };
        let kind = serde_json::to_value(input.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
        Ok(SavedInput {
            name: input.path.unescaped().to_owned(),
            file: Some(file),
            kind: kind.unwrap_or_default(),
            bytes: input.size_bytes,
            digest: digest(&input.bytes),
        })
    }
}

/// `2026-11-29T21:55:00Z` as `20261129-215500`: sorts by time, and is a file name.
fn stem(now: &str) -> String {
    let seconds = now.split('.').next().unwrap_or(now);
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).take(14).collect::<String>();
    match seconds.split_once('T') {
        Some((day, time)) => format!("{}-{}", digits(day), digits(time)),
        None => format!("i{}", digits(seconds)),
    }
}

fn in_words(session: &Session) -> SavedVerdict {
    let verdict = session.verdict();
    let cause = verdict.cause();
    let report = &session.report().verdict;
    SavedVerdict {
        class: verdict.class.name().to_owned(),
        cause: cause.and_then(|cause| cause.cause).map(|cause| cause.name().to_owned()),
        certainty: cause.map(|cause| format!("{:?}", cause.certainty).to_lowercase()).unwrap_or_default(),
        summary: report.summary.clone(),
        cause_summary: report.cause.as_ref().map(|cause| cause.summary.clone()),
    }
}

fn lock_path(store: &Store, id: &str) -> PathBuf {
    store.incidents().join(format!("{id}.lock"))
}

/// An id names a file: nothing else may come out of it.
fn saved_path(store: &Store, id: &str) -> Result<PathBuf> {
    let good = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') && !id.is_empty() && id.len() < 100;
    let path = store.file_of(id);
    if good && path.is_file() {
        return Ok(path);
    }
    Err(Error::new(ErrorKind::Input, format!("there is no incident `{id}`"))
        .hint("warpfault resume lists the incidents that were saved"))
}

fn lock(store: &Store, id: &str) -> Result<Option<File>> {
    let path = lock_path(store, id);
    let Ok(file) = OpenOptions::new().write(true).create(true).truncate(false).open(&path) else {
        // A folder that can only be read: the incident may be looked at, and saving will say so.
        return Ok(None);
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            Err(Error::new(ErrorKind::Refused, format!("another warpfault works on incident `{id}`"))
                .hint("close it there first"))
        }
        // Some network file systems know no locks.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// Largest incident file that is read, in bytes.
const SIZE_LIMIT: u64 = 256 << 20;

pub(super) fn read(path: &Path) -> Result<Saved> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Input, "the saved incident can't be read").at(path, None).because(error)
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    let size = metadata.len();
    if !metadata.is_file() {
        return Err(Error::new(ErrorKind::Input, "the saved incident is no plain file").at(path, None));
    }
    if size > SIZE_LIMIT {
        return Err(
            Error::new(ErrorKind::Limit, format!("the saved incident has {size} bytes")).at(path, None)
        );
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let saved: Saved = serde_json::from_slice(&bytes).map_err(|error| {
        Error::new(ErrorKind::Format, "the saved incident can't be understood").at(path, None).because(error)
    })?;
    if saved.schema != SCHEMA {
        return Err(Error::new(
            ErrorKind::Format,
            format!("the incident is saved as {}; this build reads {SCHEMA}", saved.schema),
        )
        .at(path, None)
        .hint("use the version of warpfault that wrote it, or a newer one"));
    }
    Ok(saved)
}
