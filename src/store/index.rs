//! The list of incidents: one line a save in `index.jsonl`, the last line of an id counts.
//!
//! In: rows. Out: rows, the newest first. A line that was cut by a crash is passed over; a list that is gone is made anew
//! from the incidents themselves.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

use super::incident::{Saved, read};
use super::{Store, write_whole};

/// An incident in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Id.
    pub id: String,
    /// When it was begun.
    pub created: String,
    /// When it was saved last.
    pub updated: String,
    /// Class of the failure.
    pub class: String,
    /// Cause, where one was found.
    pub cause: Option<String>,
    /// The conclusion in a sentence.
    pub summary: String,
    /// The cause in a sentence.
    pub cause_summary: Option<String>,
    /// Hash of the crash signature.
    pub signature: Option<String>,
    /// Name of the first input.
    pub input: Option<String>,
}

impl Row {
    pub(super) fn of(saved: &Saved) -> Self {
        Self {
            id: saved.id.clone(),
            created: saved.created.clone(),
            updated: saved.updated.clone(),
            class: saved.verdict.class.clone(),
            cause: saved.verdict.cause.clone(),
            summary: saved.verdict.summary.clone(),
            cause_summary: saved.verdict.cause_summary.clone(),
            signature: saved.signature.as_ref().map(|(_, hash)| hash.clone()),
            input: saved.inputs.first().map(|input| input.name.clone()),
        }
    }
}

/// Lines from which on a list with many old lines is written anew.
const LINE_LIMIT: usize = 2_000;

/// Adds a line for an incident.
pub(super) fn add(store: &Store, row: &Row) -> Result<()> {
    let path = store.folder().join("index.jsonl");
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Output, "the list of incidents can't be written").at(&path, None).because(error)
    };
    let mut line = serde_json::to_vec(row).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(failed)?;
    // One write: lines of two programs don't mix.
    file.write_all(&line).map_err(failed)
}

/// Past incidents, the newest first.
pub(super) fn list(store: &Store) -> Result<Vec<Row>> {
    let path = store.folder().join("index.jsonl");
    let mut lines = 0;
    let mut rows: HashMap<String, Row> = HashMap::new();
    match std::fs::File::open(&path) {
        Ok(file) => {
            for line in BufReader::new(file).split(b'\n').map_while(std::result::Result::ok) {
                lines += 1;
                if let Ok(row) = serde_json::from_slice::<Row>(&line) {
                    rows.insert(row.id.clone(), row);
                }
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(Error::new(ErrorKind::Input, "the list of incidents can't be read")
                .at(&path, None)
                .because(error));
        }
    }
    add_missing(store, &mut rows);
    let mut rows: Vec<Row> = rows.into_values().filter(|row| store.file_of(&row.id).is_file()).collect();
    rows.sort_by(|a, b| (&b.updated, &b.id).cmp(&(&a.updated, &a.id)));
    if lines > LINE_LIMIT && lines > 4 * rows.len() {
        compact(store, &rows);
    }
    Ok(rows)
}

/// Incidents whose line is missing: the program was killed between file and line, or the list was deleted.
fn add_missing(store: &Store, rows: &mut HashMap<String, Row>) {
    for entry in std::fs::read_dir(store.incidents()).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let is_incident = path.extension().is_some_and(|end| end == "json");
        if is_incident
            && !rows.contains_key(id)
            && let Ok(saved) = read(&path)
        {
            rows.insert(id.to_owned(), Row::of(&saved));
        }
    }
}

fn compact(store: &Store, rows: &[Row]) {
    let mut text = Vec::new();
    for row in rows.iter().rev() {
        if serde_json::to_writer(&mut text, row).is_err() {
            return;
        }
        text.push(b'\n');
    }
    // A failure leaves the long list, which still serves.
    let _ = write_whole(&store.folder().join("index.jsonl"), &text);
}
