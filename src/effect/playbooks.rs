//! A team's playbooks, laid over the shipped ones.
//!
//! In: folders. Out: a library, and a sentence for each file that could not be read. Only `*.toml` directly in a folder
//! is read, in the order of its names.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::playbook::Library;

/// Largest playbook file that is read, in bytes.
const SIZE_LIMIT: u64 = 1 << 20;

/// Most files of a folder.
const FILE_LIMIT: usize = 1_000;

/// `$XDG_CONFIG_HOME/warpfault/playbooks`, where there is a home.
#[must_use]
pub fn default_folder() -> Option<PathBuf> {
    use etcetera::BaseStrategy;
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("warpfault").join("playbooks"))
}

/// The shipped playbooks, overlaid by the user's own folder, then by those of `folders`.
///
/// # Errors
/// `Input` for one of `folders` that can't be read; the user's own folder may be missing.
pub fn library(folders: &[PathBuf]) -> Result<(Library, Vec<String>)> {
    let mut files = Vec::new();
    let mut notes = Vec::new();
    if let Some(own) = default_folder().filter(|folder| folder.is_dir()) {
        match read_folder(&own, &mut files) {
            Ok(more) => notes.extend(more),
            Err(error) => notes.push(error.to_string()),
        }
    }
    for folder in folders {
        notes.extend(read_folder(folder, &mut files)?);
    }
    Ok((Library::of(files), notes))
}

fn read_folder(folder: &Path, files: &mut Vec<(String, String)>) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        Error::new(ErrorKind::Input, "the playbook folder can't be read").at(folder, None).because(error)
    })?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    paths.sort();
    paths.truncate(FILE_LIMIT);
    let mut notes = Vec::new();
    for path in paths {
        match read_file(&path) {
            Ok(text) => files.push((path.display().to_string(), text)),
            Err(error) => notes.push(error.to_string()),
        }
    }
    Ok(notes)
}

/// Reads one playbook file.
///
/// # Errors
/// `Input` where it can't be read, is larger than a megabyte, or is no UTF-8.
pub fn read_file(path: &Path) -> Result<String> {
    use std::io::Read;
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Input, "the playbook can't be read").at(path, None).because(error)
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(SIZE_LIMIT + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > SIZE_LIMIT {
        return Err(Error::new(ErrorKind::Limit, format!("the playbook is larger than {SIZE_LIMIT} bytes"))
            .at(path, None));
    }
    Ok(text)
}
