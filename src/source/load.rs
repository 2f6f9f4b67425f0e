//! Everything the user named, loaded.
//!
//! In: [`InputSpec`]s and [`Limits`]. Out: [`Loaded`]. One thing that can't be read never keeps the others out. It leaves
//! opening, unpacking, decoding and sniffing to their files.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::bytes::Bytes;
use super::hint::PathHint;
use super::kind::InputKind;
use super::open::{self, Raw, why};
use super::walk::{self, Found};
use super::{Input, InputId, InputSpec, LeftOut, Limits, Loaded, cache, compress, decode, sniff};

/// Least bytes of an expanded file that are held in memory, however many were held before.
const LEAST_MEMORY_BYTES: usize = 64 << 10;

/// What one more compressed input may become where the others took all.
const LEAST_EXPANDED_BYTES: u64 = 16 << 20;

/// Loads everything that was named; what can't be loaded is in [`Loaded::left_out`], with the reason.
#[must_use]
pub fn load(specs: &[InputSpec], limits: Limits) -> Loaded {
    let mut loader = Loader {
        limits,
        loaded: Loaded::default(),
        seen: HashSet::new(),
        stdin_taken: false,
        held_bytes: 0,
        expanded_bytes: 0,
    };
    for spec in specs {
        match spec {
            InputSpec::Path(path) => loader.path(path),
            InputSpec::Stdin => loader.stdin(),
            InputSpec::Glob(pattern) => loader.glob(pattern),
            InputSpec::Text { name, bytes } => {
                let size_bytes = bytes.len() as u64;
                let bytes = Bytes::from(bytes.clone());
                loader.take(name, None, Raw { bytes, size_bytes, modified: None, cut: None });
            }
        }
    }
    let mut loaded = loader.loaded;
    loaded.inputs = cache::gather(loaded.inputs);
    for (index, input) in loaded.inputs.iter_mut().enumerate() {
        input.id = InputId(u32::try_from(index).unwrap_or(u32::MAX));
    }
    loaded
}

struct Loader {
    limits: Limits,
    loaded: Loaded,
    /// Device and inode of every file taken: one named twice is loaded once.
    seen: HashSet<(u64, u64)>,
    stdin_taken: bool,
    /// Bytes of inputs that are in memory and not mapped.
    held_bytes: usize,
    /// Bytes that compressed inputs became so far.
    expanded_bytes: u64,
}

impl Loader {
    fn path(&mut self, path: &Path) {
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => self.folder(path),
            Ok(_) => self.file(path),
            Err(error) => self.leave_out(&path.to_string_lossy(), why(&error)),
        }
    }

    fn folder(&mut self, root: &Path) {
        let found = walk::walk(root, self.room());
        let nothing = found.files.is_empty() && found.failed.is_empty();
        let binary_before = self.loaded.left_out.len();
        for file in &found.files {
            self.file(file);
        }
        self.fold_binaries(root, binary_before);
        self.report(root, found);
        if nothing {
            self.leave_out(&root.to_string_lossy(), "is a folder without files to read".to_owned());
        }
    }

    /// A folder of a thousand pictures is one sentence.
    fn fold_binaries(&mut self, root: &Path, from: usize) {
        let later = self.loaded.left_out.split_off(from);
        let (binary, other): (Vec<_>, Vec<_>) = later.into_iter().partition(|left| left.why == BINARY);
        self.loaded.left_out.extend(other);
        match &binary[..] {
            [] => {}
            [only] => self.loaded.left_out.push(only.clone()),
            [first, ..] => self.leave_out(
                &root.to_string_lossy(),
                format!(
                    "holds {} binary files that nothing here reads, {} the first",
                    binary.len(),
                    first.path
                ),
            ),
        }
    }

    fn report(&mut self, root: &Path, found: Found) {
        let name = root.to_string_lossy();
        for (path, why) in found.failed {
            self.leave_out(&path.to_string_lossy(), why);
        }
        for (count, what) in
            [(found.hidden, "hidden file or folder"), (found.special, "pipe, socket or device")]
        {
            if count > 0 {
                let plural = if count == 1 { "" } else { "s" };
                self.leave_out(&name, format!("holds {count} {what}{plural}, not read; name it to read it"));
            }
        }
        if found.cut {
            let limit = self.limits.files;
            self.leave_out(&name, format!("holds more than {limit} files; name a smaller folder"));
        }
    }

    fn glob(&mut self, pattern: &str) {
        let paths = match glob::glob(pattern) {
            Ok(paths) => paths,
            Err(error) => {
                return self.leave_out(pattern, format!("is no pattern: {}", error.msg));
            }
        };
        let mut matches: Vec<PathBuf> = Vec::new();
        for path in paths {
            match path {
                Ok(path) => matches.push(path),
                Err(error) => {
                    let reason = why(error.error());
                    self.leave_out(&error.path().to_string_lossy(), reason);
                }
            }
            if matches.len() > self.limits.files {
                self.leave_out(pattern, format!("matches more than {} files", self.limits.files));
                break;
            }
        }
        matches.sort_by(|a, b| {
            walk::by_name(a.as_os_str().as_encoded_bytes(), b.as_os_str().as_encoded_bytes())
        });
        if matches.is_empty() {
            self.leave_out(pattern, "matches no file".to_owned());
        }
        for path in matches {
            self.path(&path);
        }
    }

    fn stdin(&mut self) {
        if std::mem::replace(&mut self.stdin_taken, true) {
            return self.leave_out("standard input", "was named twice and read once".to_owned());
        }
        match open::stream(io::stdin().lock(), &self.limits()) {
            Ok(raw) => self.take("standard input", None, raw),
            Err(why) => self.leave_out("standard input", why),
        }
    }

    fn file(&mut self, path: &Path) {
        if let Ok(metadata) = path.metadata()
            && metadata.is_file()
            && !self.seen.insert(walk::identity(&metadata))
        {
            return;
        }
        let name = path.to_string_lossy();
        match open::open(path, &self.limits()) {
            Ok(raw) => self.take(&name, Some(path), raw),
            Err(why) => self.leave_out(&name, why),
        }
    }

    /// Unpacks, decodes and sniffs what was opened.
    fn take(&mut self, name: &str, file: Option<&Path>, raw: Raw) {
        let limits = self.limits();
        let packed = raw.bytes.len() as u64;
        let unpacked = match compress::unpack(raw.bytes, file, &limits) {
            Ok(unpacked) => unpacked,
            Err(why) => return self.leave_out(name, why),
        };
        let grown = (unpacked.bytes.len() as u64).saturating_sub(packed);
        self.expanded_bytes = self.expanded_bytes.saturating_add(grown);
        let bytes = match decode::decode(unpacked.bytes, limits.memory_bytes) {
            Ok(bytes) => bytes,
            Err(error) => return self.leave_out(name, why(&error)),
        };
        let cut = raw.cut.or(unpacked.cut);
        let (kind, bytes) = kind_of(bytes, file);
        if kind == InputKind::UnknownBinary {
            let why = binary(&bytes);
            return self.leave_out(name, cut.map_or_else(|| why.clone(), |cut| format!("{why}; {cut}")));
        }
        if !bytes.is_mapped() {
            self.held_bytes += bytes.len();
        }
        let truncated = cut.is_some();
        if let Some(cut) = cut {
            self.loaded.notes.push(format!("{}: {cut}", crate::text::escape(name)));
        }
        self.loaded.inputs.push(Input {
            id: InputId(0),
            path: name.into(),
            file: file.map(Path::to_path_buf),
            kind,
            bytes,
            size_bytes: raw.size_bytes,
            lines: None,
            truncated,
            hint: file.map(PathHint::of).unwrap_or_default(),
            modified: raw.modified,
            parts: Vec::new(),
        });
    }

    fn leave_out(&mut self, name: &str, why: String) {
        self.loaded.left_out.push(LeftOut { path: name.into(), why });
    }

    fn room(&self) -> usize {
        self.limits.files.saturating_sub(self.loaded.inputs.len())
    }

    /// The bounds with what is left of memory and of what may be unpacked: a thousand compressed logs share both.
    fn limits(&self) -> Limits {
        let memory_bytes = self.limits.memory_bytes.saturating_sub(self.held_bytes).max(LEAST_MEMORY_BYTES);
        let expanded_bytes =
            self.limits.expanded_bytes.saturating_sub(self.expanded_bytes).max(LEAST_EXPANDED_BYTES);
        Limits { memory_bytes, expanded_bytes, ..self.limits }
    }
}

/// The kind, and the bytes without the fence around a structured document.
fn kind_of(bytes: Bytes, file: Option<&Path>) -> (InputKind, Bytes) {
    if let Some(inside) = decode::fenced(&bytes) {
        let kind = sniff(&inside, file);
        // The lines of a log keep the numbers that they have in the paste.
        if kind.is_line_text() {
            return (kind, bytes);
        }
        return (kind, inside);
    }
    (sniff(&bytes, file), bytes)
}

const BINARY: &str = "is binary and no format that is read here";

fn binary(bytes: &[u8]) -> String {
    // Type 4 at offset 16: a core file, and not of a GPU.
    if bytes.starts_with(b"\x7fELF") && bytes.get(16..18) == Some(&[4, 0]) {
        return "is a core file of a host process; run gdb -batch -ex 'thread apply all bt' PROGRAM CORE and give its output".to_owned();
    }
    BINARY.to_owned()
}

#[cfg(test)]
mod tests;
