//! The folder of a repro on disk.
//!
//! In: a path, files. Out: the files written, or a plan read back. Only an empty folder or one of ours is written to, and
//! a file is replaced as a whole: what a link points to stays as it is.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::repro::recipe::LIMIT_BYTES;
use crate::repro::{Asset, CASE_FILE, File, Plan, Recipe};

/// Most bytes of the files that go along.
const ASSETS_BYTES: u64 = 64 << 20;

/// Files that are made anew from the recipe, and what a run leaves.
const GENERATED: [&str; 6] = [CASE_FILE, "repro.py", "repro.cu", "repro", "run.sh", "README.md"];

/// Files that go along under a name of ours.
const COPIED: [&str; 3] = ["probe.toml", "user_kernels.py", "user_script.py"];

/// Folders with a compiled kernel: the forward one, and the backward ones beside it.
const CODE: [&str; 5] = ["kernel", "backward-1", "backward-2", "backward-3", "backward-4"];

/// Whether a folder holds a repro.
pub fn is_ours(folder: &Path) -> bool {
    recipe(folder).is_ok()
}

fn recipe(folder: &Path) -> Result<Recipe> {
    let path = folder.join(CASE_FILE);
    let failed = |error| Error::new(ErrorKind::Input, "can't be read").at(&path, None).because(error);
    let size = fs::metadata(&path).map_err(failed)?.len();
    if size > LIMIT_BYTES as u64 {
        return Err(Error::new(ErrorKind::Limit, format!("{size} bytes are no case.json")).at(&path, None));
    }
    Recipe::read(&fs::read(&path).map_err(failed)?).map_err(|error| error.at(&path, None))
}

/// Reads a folder of ours.
pub fn read(folder: &Path) -> Result<Plan> {
    let recipe = recipe(folder)?;
    let mut assets = Vec::new();
    gather(folder, "", &mut assets)?;
    Ok(Plan { recipe, assets })
}

fn gather(folder: &Path, below: &str, assets: &mut Vec<Asset>) -> Result<()> {
    let failed = |error| Error::new(ErrorKind::Input, "can't be read").at(folder, None).because(error);
    let mut entries: Vec<_> = fs::read_dir(folder).map_err(failed)?.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() && below.is_empty() && CODE.contains(&name.as_str()) {
            gather(&entry.path(), &format!("{name}/"), assets)?;
        } else if kind.is_file() && !(below.is_empty() && GENERATED.contains(&name.as_str())) {
            let held: u64 = assets.iter().map(|asset| asset.bytes.len() as u64).sum();
            let size = entry.metadata().map_err(failed)?.len();
            if held.saturating_add(size) > ASSETS_BYTES {
                return Err(Error::new(ErrorKind::Limit, format!("holds more than {ASSETS_BYTES} bytes"))
                    .at(folder, None));
            }
            assets.push(Asset {
                path: format!("{below}{name}"),
                bytes: fs::read(entry.path()).map_err(failed)?,
            });
        }
    }
    Ok(())
}

/// Whether the folder may be written: it isn't there, is empty, or is ours.
///
/// # Errors
/// `Output` where it holds something else.
pub fn may_write(folder: &Path) -> Result<()> {
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_none() || is_ours(folder) {
                return Ok(());
            }
            Err(Error::new(ErrorKind::Output, "holds files that are no repro of ours; nothing was written")
                .at(folder, None)
                .hint("name a new folder with -o"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::new(ErrorKind::Output, "is no folder that can be used")
            .at(folder, None)
            .because(error)),
    }
}

/// Takes away what an earlier repro left in the folder and the new one doesn't have. Only names of ours.
fn clear(folder: &Path, files: &[File]) {
    let kernel = CODE.iter().flat_map(|folder| {
        ["json", "cubin", "ptx", "ttir"].map(|ending| format!("{folder}/kernel.{ending}"))
    });
    let old = GENERATED.iter().chain(&COPIED).map(|name| (*name).to_owned()).chain(kernel);
    for name in old.filter(|name| files.iter().all(|file| file.path != *name)) {
        let _ = fs::remove_file(folder.join(name));
    }
}

/// Writes a repro in place of what is there.
pub fn replace(folder: &Path, files: &[File]) -> Result<()> {
    if is_ours(folder) {
        clear(folder, files);
    }
    write(folder, files)
}

/// Writes the files.
pub fn write(folder: &Path, files: &[File]) -> Result<()> {
    for file in files {
        let path = folder.join(&file.path);
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Output, "can't be written").at(&path, None).because(error)
        };
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(failed)?;
        let mut new = tempfile::NamedTempFile::new_in(parent).map_err(failed)?;
        new.write_all(&file.bytes).map_err(failed)?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        new.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
        new.persist(&path).map_err(|error| failed(error.error))?;
    }
    Ok(())
}
