//! The files of a Triton cache gathered into one input.
//!
//! In: inputs. Out: the same inputs, the compiler's files of each cache replaced by one input whose parts they are. A cache
//! holds thousands of files; a list of inputs that long tells nobody anything. It leaves choosing an entry to `kernel`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::bytes::Bytes;
use super::hint::PathHint;
use super::kind::InputKind;
use super::{Input, Part};

/// Gathers compiler files that stand in a folder with a Triton entry's JSON.
pub(super) fn gather(inputs: Vec<Input>) -> Vec<Input> {
    let folder_of = |input: &Input| {
        input
            .file
            .as_deref()
            .filter(|_| input.kind.is_cache_file())
            .and_then(Path::parent)
            .map(Path::to_path_buf)
    };
    let entries: HashSet<PathBuf> =
        inputs.iter().filter(|input| input.kind == InputKind::TritonMetadata).filter_map(folder_of).collect();
    let mut out: Vec<Input> = Vec::new();
    let mut caches: HashMap<PathBuf, usize> = HashMap::new();
    for input in inputs {
        let Some(folder) = folder_of(&input).filter(|folder| entries.contains(folder)) else {
            out.push(input);
            continue;
        };
        let root = root_of(&folder);
        let index = *caches.entry(root.clone()).or_insert_with(|| {
            out.push(empty_cache(&root));
            out.len() - 1
        });
        if let Some(cache) = out.get_mut(index) {
            add(cache, &root, input);
        }
    }
    out
}

fn empty_cache(root: &Path) -> Input {
    Input {
        id: super::InputId(0),
        path: root.to_string_lossy().into_owned().into(),
        file: Some(root.to_path_buf()),
        kind: InputKind::TritonCache,
        bytes: Bytes::default(),
        size_bytes: 0,
        lines: None,
        truncated: false,
        hint: PathHint::of(root),
        modified: None,
        parts: Vec::new(),
    }
}

fn add(cache: &mut Input, root: &Path, input: Input) {
    cache.size_bytes += input.size_bytes;
    cache.modified = cache.modified.max(input.modified);
    cache.truncated |= input.truncated;
    let Some(file) = input.file else { return };
    // The front end's IR has the same form as the optimised one and would be taken for it.
    if input.kind == InputKind::Ttir && file.extension().is_some_and(|extension| extension == "source") {
        return;
    }
    let below = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
    cache.parts.push(Part {
        path: below.into(),
        kind: input.kind,
        bytes: input.bytes,
        modified: input.modified,
        file,
    });
}

/// The cache of an entry's folder: its parent, where the folder is named by a key (a hash in base 32), else itself.
fn root_of(folder: &Path) -> PathBuf {
    let is_key = folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
        name.len() >= 26 && name.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7'))
    });
    match folder.parent() {
        Some(parent) if is_key => parent.to_path_buf(),
        _ => folder.to_path_buf(),
    }
}
