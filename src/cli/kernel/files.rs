//! The files that a path means: one compiled file with its siblings, a cache entry, a whole cache, a Python source.
//!
//! In: a path. Out: what to check. Sizes and counts are capped; what is left out is said.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::kernel::cache::{Entry, File, load_entry};
use crate::report::kernel::LocationView;

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// Largest source file that is read for names and lines, in bytes.
const MAX_SOURCE: u64 = 8 << 20;
/// Most files of a folder that are looked at.
const MAX_FILES: usize = 50_000;
/// Most bytes that are read in all.
const MAX_TOTAL: u64 = 2 << 30;
/// Deepest folder.
const MAX_DEPTH: usize = 6;

/// What to check.
#[derive(Debug)]
pub(super) enum Target {
    /// A Python source.
    Python { path: String, text: String },
    /// Compiled files of one kernel.
    Compiled { path: String, entry: Entry },
}

/// Everything that a path means.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub targets: Vec<Target>,
    pub diagnostics: Vec<String>,
}

const COMPILED: [&str; 4] = ["ttir", "ptx", "json", "cubin"];

fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let failed = |error| Error::new(ErrorKind::Input, "can't be read").at(path, None).because(error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A text file's content; without one, an error only where the user named it.
pub(super) fn small_text(path: &Path, named: bool) -> Result<Option<String>> {
    match read(path, MAX_SOURCE) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if named => Err(error),
        Err(_) => Ok(None),
    }
}

/// The text of a source line, where the recorded file is on this machine.
pub(super) fn source_line(location: &LocationView) -> Option<String> {
    let text = small_text(Path::new(&location.file), false).ok()??;
    text.lines().nth(usize::try_from(location.line.checked_sub(1)?).ok()?).map(str::to_owned)
}

/// What a path means.
pub(super) fn collect(path: &Path) -> Result<Found> {
    let kind = std::fs::metadata(path)
        .map_err(|error| Error::new(ErrorKind::Input, "can't be read").at(path, None).because(error))?;
    if kind.is_dir() {
        return Ok(folder(path));
    }
    let shown = path.display().to_string();
    let extension = extension(path);
    if extension == "py" {
        let text = String::from_utf8_lossy(&read(path, MAX_SOURCE)?).into_owned();
        return Ok(Found { targets: vec![Target::Python { path: shown, text }], ..Found::default() });
    }
    if extension == "cu" || extension == "cuh" {
        return Err(Error::new(ErrorKind::Usage, "is source, not a compiled kernel")
            .at(path, None)
            .hint("compile it to PTX with line information: nvcc -ptx -lineinfo"));
    }
    let mut held = vec![(file_name(path), read(path, MAX_BYTES)?)];
    let suffix = match extension.as_str() {
        known if COMPILED.contains(&known) => known.to_owned(),
        _ => sniffed(held.first().map_or(&[], |(_, bytes)| bytes.as_slice())).to_owned(),
    };
    if let Some((name, _)) = held.first_mut()
        && suffix != extension
        && !suffix.is_empty()
    {
        *name = format!("{name}.{suffix}");
    }
    // A TTIR stands for itself; the others have names and divisibility in the TTIR beside them.
    let siblings: &[&str] = match suffix.as_str() {
        "ttir" => &["json"],
        "ptx" => &["ttir", "json"],
        "json" | "cubin" => &["ttir", "ptx", "json"],
        _ => &[],
    };
    for sibling in siblings.iter().map(|s| path.with_extension(s)).filter(|s| s != path && s.is_file()) {
        held.push((file_name(&sibling), read(&sibling, MAX_BYTES)?));
    }
    let mut entry = loaded("", &held);
    if suffix == "ptx" && !entry.ptx.is_empty() {
        entry.kernels = std::mem::take(&mut entry.ptx);
    }
    Ok(Found { targets: vec![Target::Compiled { path: shown, entry }], ..Found::default() })
}

fn sniffed(bytes: &[u8]) -> &'static str {
    let head = String::from_utf8_lossy(bytes.get(..64 << 10).unwrap_or(bytes));
    if bytes.starts_with(b"\x7fELF") {
        "cubin"
    } else if head.contains("tt.func") {
        "ttir"
    } else if head.contains(".version") && head.contains(".target") {
        "ptx"
    } else {
        ""
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn loaded(key: &str, held: &[(String, Vec<u8>)]) -> Entry {
    let files: Vec<File<'_>> = held.iter().map(|(name, bytes)| File { name, bytes }).collect();
    load_entry(key, &files)
}

/// Every entry below a folder: files of one stem in one folder belong together.
fn folder(root: &Path) -> Found {
    let mut found = Found::default();
    let mut groups: BTreeMap<(PathBuf, String), Vec<PathBuf>> = BTreeMap::new();
    let mut count = 0usize;
    walk(root, 0, &mut count, &mut groups, &mut found.diagnostics);
    let mut left = MAX_TOTAL;
    for ((folder, stem), paths) in groups {
        let has_text = paths.iter().any(|p| matches!(extension(p).as_str(), "ttir" | "ptx" | "cubin"));
        if !has_text {
            continue;
        }
        // PTX and cubin repeat what the TTIR says more plainly; of a cubin only the header is needed then.
        let has_ttir = paths.iter().any(|p| extension(p) == "ttir");
        let mut held = Vec::new();
        for path in paths.iter().filter(|p| !has_ttir || extension(p) != "ptx") {
            match read(path, MAX_BYTES.min(left)) {
                Ok(bytes) => {
                    left = left.saturating_sub(bytes.len() as u64);
                    held.push((file_name(path), bytes));
                }
                Err(error) => found.diagnostics.push(error.to_string()),
            }
        }
        if left == 0 {
            found.diagnostics.push(format!("only the first {MAX_TOTAL} bytes of the folder are read"));
            break;
        }
        let key = file_name(&folder);
        let shown = folder.join(&stem).display().to_string();
        found.targets.push(Target::Compiled { path: shown, entry: loaded(&key, &held) });
    }
    found
}

fn walk(
    folder: &Path,
    depth: usize,
    count: &mut usize,
    groups: &mut BTreeMap<(PathBuf, String), Vec<PathBuf>>,
    diagnostics: &mut Vec<String>,
) {
    let list = match std::fs::read_dir(folder) {
        Ok(list) => list,
        Err(error) => return diagnostics.push(format!("{}: {error}", folder.display())),
    };
    let mut paths: Vec<PathBuf> = list.filter_map(|item| item.ok().map(|item| item.path())).collect();
    paths.sort();
    for path in paths {
        *count += 1;
        if *count > MAX_FILES {
            if *count == MAX_FILES + 1 {
                diagnostics.push(format!("only the first {MAX_FILES} files are looked at"));
            }
            return;
        }
        // A link could lead out of the cache or round in a circle.
        let Ok(kind) = std::fs::symlink_metadata(&path) else { continue };
        if kind.is_dir() && depth < MAX_DEPTH {
            walk(&path, depth + 1, count, groups, diagnostics);
        } else if kind.is_file() && COMPILED.contains(&extension(&path).as_str()) {
            let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            groups.entry((folder.to_path_buf(), stem)).or_default().push(path);
        }
    }
}
