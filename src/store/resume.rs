//! A saved incident, taken up again: its inputs read anew, its history applied.
//!
//! In: an id, and the playbooks. Out: [`Resumed`]: a session that stands where the saved one stood, and a sentence for
//! each input that is gone or has changed since. A run that was in flight is open again.

use std::sync::Arc;

use crate::error::Result;
use crate::playbook::Library;
use crate::session::{Input, Session, WalkInput};
use crate::source::{self, InputSpec, Limits, Loaded};

use super::Store;
use super::digest::digest;
use super::incident::{Incident, SavedInput};

/// An incident, taken up again.
#[derive(Debug)]
pub struct Resumed {
    /// Where it is saved.
    pub incident: Incident,
    /// The session.
    pub session: Session,
    /// What is not as it was.
    pub notes: Vec<String>,
}

/// Takes up the incident `id`.
///
/// # Errors
/// `Input` where there is none of this id, `Refused` where another program works on it, `Format` where its file can't be
/// understood.
pub fn resume(store: &Store, id: &str, library: Arc<Library>) -> Result<Resumed> {
    let (incident, saved) = Incident::take_up(store, id)?;
    let mut session = Session::with_library(library);
    let mut notes = Vec::new();
    let mut all = Loaded::default();
    for input in &saved.inputs {
        let loaded = load(input, &mut notes);
        all.inputs.extend(loaded.inputs);
        all.notes.extend(loaded.notes);
    }
    session.apply(Input::Loaded(all));
    session.apply(Input::Walk(WalkInput::Restore(Box::new(saved.record))));
    Ok(Resumed { incident, session, notes })
}

/// Loads one saved input: exactly one comes back, so that those after it keep their numbers.
fn load(saved: &SavedInput, notes: &mut Vec<String>) -> Loaded {
    let mut loaded = match &saved.file {
        Some(file) => source::load(&[InputSpec::Path(file.clone())], Limits::default()),
        None => Loaded::default(),
    };
    if loaded.inputs.is_empty() {
        notes.push(format!("{}: is gone; its evidence is missing", saved.name));
        let bytes = format!("[{} is gone]\n", saved.name).into_bytes();
        loaded = source::load(&[InputSpec::Text { name: saved.name.clone(), bytes }], Limits::default());
    }
    loaded.inputs.truncate(1);
    if let Some(input) = loaded.inputs.first_mut() {
        if digest(&input.bytes) != saved.digest && saved.file.as_ref().is_some_and(|file| file.exists()) {
            notes.push(format!("{}: has changed since the incident was saved", saved.name));
        }
        input.path = crate::text::LogText::new(saved.name.clone());
    }
    loaded
}
