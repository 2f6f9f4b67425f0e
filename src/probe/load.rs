//! Finds the kernel that is to be rerun.
//!
//! In: a path (a Triton cache or an entry of it, a cubin, PTX, a CUDA C++ source) and the name of an entry. Out: a
//! [`Target`], or a sentence that says what to name. It starts compilers only through [`super::compile`], and no kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::protocol::{Image, ImageKind};
use super::target::{self, Slot, SourceKind, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::image::{cubin, symbol};
use crate::kernel::{Kernel, cache, names};

mod entry;

pub(super) use entry::rename;

/// Longest file that is read.
const FILE_LIMIT_BYTES: u64 = 512 << 20;

/// Files of a cache that are looked at.
const FILES: usize = 200_000;

/// Folders below the one that is named.
const DEPTH: usize = 3;

/// A kernel that stands to choice.
struct Candidate {
    target: Target,
    /// What else names it: the key of its cache entry.
    key: String,
    debug: bool,
    modified: Option<SystemTime>,
}

/// Whether a path is a source that has to be compiled for a device first.
#[must_use]
pub fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    matches!(extension, "cu" | "cuh" | "cpp" | "cc" | "cxx" | "c")
}

/// Finds the kernel `entry` in what is already compiled.
///
/// # Errors
/// `Input` for what can't be read, `Usage` where the entry isn't there or several are and none is named.
pub fn load(path: &Path, entry: Option<&str>) -> Result<Target> {
    let metadata = fs::metadata(path).map_err(|error| cannot_read(path, error))?;
    let candidates = if metadata.is_dir() {
        folder(path)?
    } else {
        match path.extension().and_then(|extension| extension.to_str()).unwrap_or("") {
            "py" => {
                return Err(Error::new(ErrorKind::Usage, "a Python source holds no compiled kernel")
                    .at(path, None)
                    .hint("run it once and give the Triton cache: ~/.triton/cache, or $TRITON_CACHE_DIR"));
            }
            "ttir" | "ttgir" | "llir" | "json" => folder(path.parent().unwrap_or(Path::new(".")))?,
            _ => file(path, &read(path)?, SourceKind::Cubin)?,
        }
    };
    choose(path, candidates, entry)
}

/// Finds the kernel `entry` in what a compiler made of the source `path`.
///
/// # Errors
/// As [`load`].
pub fn load_compiled(
    path: &Path,
    code: &Path,
    entry: Option<&str>,
    keep: Arc<tempfile::TempDir>,
) -> Result<Target> {
    let mut candidates = file(code, &read(code)?, SourceKind::Cuda)?;
    let source = String::from_utf8_lossy(&read(path)?).into_owned();
    for candidate in &mut candidates {
        let target = &mut candidate.target;
        target.path = path.to_path_buf();
        target.keep = Some(keep.clone());
        if let Some(found) = names::cuda_parameters(&source, &target.name) {
            entry::rename(target, &found);
        }
    }
    choose(path, candidates, entry)
}

fn cannot_read(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Input, "can't be read").at(path, None).because(error)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let size = fs::metadata(path).map_err(|error| cannot_read(path, error))?.len();
    if size > FILE_LIMIT_BYTES {
        let message = format!("{size} bytes are more than the {FILE_LIMIT_BYTES} that are read of one file");
        return Err(Error::new(ErrorKind::Limit, message).at(path, None));
    }
    fs::read(path).map_err(|error| cannot_read(path, error))
}

/// The kernels of a cubin or a PTX text.
fn file(path: &Path, bytes: &[u8], source: SourceKind) -> Result<Vec<Candidate>> {
    let (kind, ptx, slots) = if cubin::looks_like_cubin(bytes) {
        let (cubin, _) = cubin::parse(bytes);
        let slots: Vec<(String, Vec<Slot>, Option<[u32; 3]>)> = cubin
            .kernels
            .iter()
            .map(|kernel| (kernel.symbol.clone(), target::slots_of_cubin(kernel), kernel.required_block))
            .collect();
        (ImageKind::Cubin, cubin.ptx.clone(), slots)
    } else if memchr::memmem::find(bytes, b".entry").is_some() {
        let kernels = cache::from_ptx(&String::from_utf8_lossy(bytes));
        let slots = kernels
            .iter()
            .map(|kernel| {
                let entry = kernel.model.entry.clone();
                let slots = target::slots_of_ptx(bytes, &entry);
                (entry, slots, fixed_block(kernel))
            })
            .collect();
        (ImageKind::Ptx, Some(bytes.to_vec()), slots)
    } else {
        return Err(Error::new(ErrorKind::Format, "is neither a cubin nor PTX nor a Triton cache entry")
            .at(path, None)
            .hint("give a Triton cache folder, a .cubin, a .ptx, a .cu, or a shape such as 234624x9216"));
    };
    let architecture = if kind == ImageKind::Cubin { cubin::parse(bytes).0.architecture } else { None };
    let mut models: Vec<Kernel> =
        ptx.as_deref().map_or_else(Vec::new, |text| cache::from_ptx(&String::from_utf8_lossy(text)));
    let source = if source == SourceKind::Cubin && kind == ImageKind::Ptx { SourceKind::Ptx } else { source };
    let candidates = slots.into_iter().map(|(symbol, slots, block)| {
        let at = models.iter().position(|kernel| kernel.model.entry == symbol);
        let model = at.map(|at| models.swap_remove(at));
        let vector = ptx.as_deref().map_or(1, |text| target::vector_of_entry(text, &symbol));
        let mut target = Target {
            name: symbol::name(&symbol),
            parameters: target::parameters(&slots, &symbol, &[], model.as_ref()),
            entry: symbol,
            source,
            path: path.to_path_buf(),
            images: vec![Image { kind, path: path.to_string_lossy().into_owned() }],
            kernel: None,
            vector,
            block,
            shared_bytes: 0,
            scratch_bytes: 0,
            architecture,
            notes: Vec::new(),
            keep: None,
        };
        entry::adopt_names(&mut target, model);
        Candidate { target, key: String::new(), debug: false, modified: None }
    });
    Ok(candidates.collect())
}

fn fixed_block(kernel: &Kernel) -> Option<[u32; 3]> {
    let model = &kernel.model;
    let fixed = !model.block_is_maximum && model.block.first().is_some_and(|threads| *threads > 0);
    fixed.then(|| model.block.map(|threads| threads.max(1)))
}

/// Every cache entry in a folder and below it.
fn folder(path: &Path) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    let mut left = FILES;
    walk(path, DEPTH, &mut left, &mut found)?;
    if found.is_empty() {
        return Err(Error::new(
            ErrorKind::Input,
            "holds no Triton cache entry (a .json beside a .cubin or .ptx)",
        )
        .at(path, None)
        .hint("give the folder that $TRITON_CACHE_DIR names; without it, ~/.triton/cache"));
    }
    Ok(found)
}

fn walk(path: &Path, depth: usize, left: &mut usize, found: &mut Vec<Candidate>) -> Result<()> {
    let listing = fs::read_dir(path).map_err(|error| cannot_read(path, error))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in listing.flatten().take(*left) {
        *left = left.saturating_sub(1);
        files.push(entry.path());
    }
    files.sort();
    for file in &files {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if file.is_dir() && depth > 0 {
            // A folder of the cache that can't be read hides one entry, not all.
            let _ = walk(file, depth - 1, left, found);
        } else if name.ends_with(".json") && !name.starts_with("__grp__") {
            found.extend(entry::read_entry(file));
        }
    }
    Ok(())
}

/// The candidate that an entry's name or key means.
fn choose(path: &Path, candidates: Vec<Candidate>, entry: Option<&str>) -> Result<Target> {
    let listed = names_of(&candidates);
    let mut matching: Vec<Candidate> = match entry {
        Some(wanted) => candidates.into_iter().filter(|candidate| candidate.is_called(wanted)).collect(),
        None => candidates,
    };
    if let (None, true) = (entry, names_of(&matching).len() > 1) {
        return Err(Error::new(ErrorKind::Usage, format!("holds {} kernels", listed.len()))
            .at(path, None)
            .hint(format!("name one with --entry: {}", some_of(&listed))));
    }
    // A debug build checks its own arithmetic and would not wrap; the newest build is the likeliest.
    matching.sort_by_key(|candidate| (candidate.debug, std::cmp::Reverse(candidate.modified)));
    let others = matching.len().saturating_sub(1);
    let Some(chosen) = matching.into_iter().next() else {
        return Err(Error::new(ErrorKind::Usage, format!("holds no kernel {}", entry.unwrap_or("")))
            .at(path, None)
            .hint(format!("it holds {}", some_of(&listed))));
    };
    let mut target = chosen.target;
    if others > 0 {
        target.notes.push(format!(
            "{} of this name; {} was taken (name another one by its key: --entry KEY)",
            others + 1,
            if chosen.key.is_empty() { "the first" } else { &chosen.key }
        ));
    }
    Ok(target)
}

impl Candidate {
    fn is_called(&self, wanted: &str) -> bool {
        self.target.entry == wanted
            || self.target.name == wanted
            || (wanted.len() >= 8 && self.key.starts_with(wanted))
    }
}

fn names_of(candidates: &[Candidate]) -> Vec<String> {
    let mut names: Vec<String> = candidates.iter().map(|candidate| candidate.target.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

fn some_of(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(20).map(String::as_str).collect();
    let more = names.len().saturating_sub(shown.len());
    if more > 0 { format!("{}, and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

#[cfg(test)]
mod tests;
