//! A Triton cache entry: the compiler's files of one kernel.
//!
//! In: file names and bytes. Out: the kernel, from TTIR where it is there, else from PTX, with what the entry's JSON says.
//! It opens no file and walks no folder.

use super::analyze::Kernel;
use super::device::architecture;
use super::location::Complaint;
use super::{ptx, ttir};

/// Largest text that is read, in bytes.
const MAX_TEXT: usize = 64 << 20;
/// Largest JSON that is read, in bytes.
const MAX_JSON: usize = 4 << 20;

/// What the entry's JSON says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The kernel's name.
    pub name: Option<String>,
    /// Compute capability as one number.
    pub architecture: Option<u32>,
    /// Dynamic shared memory in bytes.
    pub shared_bytes: Option<u64>,
    /// Warps of a block.
    pub num_warps: Option<u32>,
    /// Threads of a warp.
    pub warp_size: Option<u32>,
    /// The release that compiled it.
    pub triton_version: Option<String>,
    /// Whether it is a debug build, which checks its own arithmetic.
    pub debug: Option<bool>,
    /// Hash of the compilation, as launches in a trace name it.
    pub hash: Option<String>,
}

/// A cache entry that was read.
#[derive(Debug, Default)]
pub struct Entry {
    /// The folder's name, a hash; empty for loose files.
    pub key: String,
    /// The kernels: of TTIR if any, else of PTX.
    pub kernels: Vec<Kernel>,
    /// The kernels of the PTX, when TTIR came first.
    pub ptx: Vec<Kernel>,
    /// What the JSON says.
    pub metadata: Metadata,
    /// Compute capability of the cubin.
    pub cubin_architecture: Option<u32>,
    /// What could not be read.
    pub complaints: Vec<Complaint>,
}

/// One file of an entry.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Its name, folders left out.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
}

fn text<'a>(file: &File<'a>, complaints: &mut Vec<Complaint>) -> std::borrow::Cow<'a, str> {
    let bytes = file.bytes.get(..MAX_TEXT).unwrap_or(file.bytes);
    if bytes.len() < file.bytes.len() {
        complaints
            .push(Complaint::new(0, format!("{}: only the first {MAX_TEXT} bytes are read", file.name)));
    }
    String::from_utf8_lossy(bytes)
}

/// The kernels of a TTIR text.
#[must_use]
pub fn from_ttir(text: &str) -> Vec<Kernel> {
    let module = ttir::parse(text);
    let entries = module.functions.iter().filter(|function| function.public);
    entries.map(|function| Kernel::new(ttir::lower(&module, function))).collect()
}

/// The kernels of a PTX text.
#[must_use]
pub fn from_ptx(text: &str) -> Vec<Kernel> {
    let module = ptx::parse(text);
    module.entries.iter().map(|entry| Kernel::new(ptx::lower(&module, entry))).collect()
}

/// Reads an entry. Files that it has no use for are passed over.
#[must_use]
pub fn load_entry(key: &str, files: &[File<'_>]) -> Entry {
    let mut entry = Entry { key: key.to_owned(), ..Entry::default() };
    let mut complaints = Vec::new();
    for file in files {
        let extension = file.name.rsplit('.').next().unwrap_or("");
        match extension {
            "json" if !file.name.starts_with("__grp__") => match metadata(file.bytes) {
                Some(read) if read.name.is_some() || entry.metadata.name.is_none() => entry.metadata = read,
                Some(_) => {}
                None => {
                    complaints.push(Complaint::new(0, format!("{} is no JSON that can be read", file.name)))
                }
            },
            "ttir" => entry.kernels.extend(from_ttir(&text(file, &mut complaints))),
            "ptx" => entry.ptx.extend(from_ptx(&text(file, &mut complaints))),
            "cubin" => {
                let (cubin, problems) = crate::image::cubin::parse(file.bytes);
                entry.cubin_architecture = cubin.architecture;
                complaints.extend(problems.into_iter().map(|problem| Complaint::new(0, problem)));
                let has_ptx = files.iter().any(|f| f.name.ends_with(".ptx") || f.name.ends_with(".ttir"));
                if let (Some(text), false) = (&cubin.ptx, has_ptx) {
                    entry.ptx.extend(from_ptx(&String::from_utf8_lossy(text)));
                }
            }
            _ => {}
        }
    }
    entry.complaints = complaints;
    finish(&mut entry);
    entry
}

fn finish(entry: &mut Entry) {
    let target = entry.metadata.architecture.map(|arch| format!("sm_{arch}"));
    for kernel in &mut entry.kernels {
        kernel.model.target = target.clone();
    }
    for kernel in &mut entry.ptx {
        if let Some(twin) = entry.kernels.iter().find(|k| k.model.entry == kernel.model.entry) {
            adopt(kernel, twin);
        }
    }
    if entry.kernels.is_empty() {
        entry.kernels = std::mem::take(&mut entry.ptx);
    }
    let notes = |kernel: &Kernel| kernel.model.notes.clone();
    if entry.metadata.debug == Some(true) && entry.kernels.iter().all(|k| notes(k).is_empty()) {
        for kernel in &mut entry.kernels {
            kernel.model.notes.push("a debug build".into());
        }
    }
}

/// Takes over what PTX doesn't keep: the parameters' names and what they are multiples of. The hidden parameters that
/// Triton adds stand at the end.
pub fn adopt(kernel: &mut Kernel, twin: &Kernel) {
    let theirs = &twin.model.params;
    if theirs.len() > kernel.model.params.len() {
        return;
    }
    for (own, other) in kernel.model.params.iter_mut().zip(theirs) {
        own.name.clone_from(&other.name);
        own.divisibility = other.divisibility;
    }
    kernel.rename_grid();
}

/// Gives parameters the names of a source signature, where the numbers agree; whether they do.
pub fn rename(kernel: &mut Kernel, names: &[String]) -> bool {
    let shown = kernel.model.params.len();
    let hidden = kernel.model.source == super::model::Source::Ptx && names.len() < shown;
    if names.len() != shown && !hidden {
        return false;
    }
    for (param, name) in kernel.model.params.iter_mut().zip(names) {
        param.name.clone_from(name);
    }
    kernel.rename_grid();
    true
}

fn metadata(bytes: &[u8]) -> Option<Metadata> {
    let value: serde_json::Value = serde_json::from_slice(bytes.get(..MAX_JSON).unwrap_or(bytes)).ok()?;
    let number = |value: &serde_json::Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    let target = value.get("target");
    let arch = target
        .and_then(|t| t.get("arch"))
        .or_else(|| value.get("arch"))
        .or_else(|| target.and_then(|t| t.get(1)));
    let architecture =
        arch.and_then(|a| number(a).or_else(|| a.as_str().and_then(architecture).map(|(n, _)| n)));
    Some(Metadata {
        name: value.get("name").and_then(|v| v.as_str()).map(str::to_owned),
        architecture,
        shared_bytes: value.get("shared").and_then(serde_json::Value::as_u64),
        num_warps: value.get("num_warps").and_then(number),
        warp_size: value
            .get("warp_size")
            .or_else(|| target.and_then(|t| t.get("warp_size")))
            .and_then(number),
        triton_version: value.get("triton_version").and_then(|v| v.as_str()).map(str::to_owned),
        debug: value.get("debug").and_then(serde_json::Value::as_bool),
        hash: value.get("hash").and_then(|v| v.as_str()).map(str::to_owned),
    })
}
