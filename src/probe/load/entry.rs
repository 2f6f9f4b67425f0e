//! One entry of a Triton cache.
//!
//! In: the path of its JSON. Out: a candidate: code (cubin, else PTX), parameters in the order of the TTIR with the hidden
//! ones at the end, and what a launch needs. An entry that needs what the probe can't give is left out with a note.

use std::path::Path;
use std::sync::Arc;

use super::super::protocol::{Image, ImageKind};
use super::super::target::{self, SourceKind, Target};
use super::{Candidate, read};
use crate::image::cubin;
use crate::kernel::cache::{File, load_entry, rename as rename_kernel};
use crate::kernel::{Kernel, cache};

/// Threads of a warp.
const WARP: u32 = 32;

/// Reads an entry; `None` where there is no code beside the JSON, or the JSON is none.
pub(super) fn read_entry(json: &Path) -> Option<Candidate> {
    let text = read(json).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let number = |key: &str| value.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let name = value.get("name")?.as_str()?.to_owned();
    let stem = json.file_stem()?.to_str()?;
    let beside = |extension: &str| {
        let path = json.with_file_name(format!("{stem}.{extension}"));
        read(&path).ok().map(|bytes| (path, bytes))
    };
    let (code, ptx, ttir) = (beside("cubin"), beside("ptx"), beside("ttir"));
    let mut images = Vec::new();
    let mut image = |kind, found: &Option<(std::path::PathBuf, Vec<u8>)>| {
        images
            .extend(found.iter().map(|(path, _)| Image { kind, path: path.to_string_lossy().into_owned() }));
    };
    image(ImageKind::Cubin, &code);
    image(ImageKind::Ptx, &ptx);
    let slots = match (&code, &ptx) {
        (Some((_, bytes)), _) => {
            let (cubin, _) = cubin::parse(bytes);
            cubin.kernel(&name).map(target::slots_of_cubin)
        }
        (None, Some((_, bytes))) => Some(target::slots_of_ptx(bytes, &name)),
        (None, None) => None,
    }?;
    let json_name = format!("{stem}.json");
    let (ttir_name, ptx_name) = (format!("{stem}.ttir"), format!("{stem}.ptx"));
    let mut files = vec![File { name: &json_name, bytes: &text }];
    files.extend(ttir.iter().map(|(_, bytes)| File { name: &ttir_name, bytes }));
    files.extend(ptx.iter().filter(|_| ttir.is_none()).map(|(_, bytes)| File { name: &ptx_name, bytes }));
    let mut entry = load_entry("", &files);
    let at = entry.kernels.iter().position(|kernel| kernel.model.entry == name);
    let kernel = at.map(|at| entry.kernels.swap_remove(at));
    let architecture = code.as_ref().and_then(|(_, bytes)| cubin::parse(bytes).0.architecture);
    let folder = json.parent()?;
    // TTIR counts element by element; only PTX has vectors.
    let text = ptx.as_ref().filter(|_| ttir.is_none());
    let vector = text.map_or(1, |(_, bytes)| target::vector_of_entry(bytes, &name));
    let target = Target {
        parameters: target::parameters(&slots, &name, &[], kernel.as_ref()),
        entry: name.clone(),
        name,
        source: SourceKind::TritonCache,
        path: folder.to_path_buf(),
        images,
        kernel: kernel.map(Arc::new),
        vector,
        block: u32::try_from(number("num_warps"))
            .ok()
            .filter(|warps| (1..=32).contains(warps))
            .map(|warps| [warps * WARP, 1, 1]),
        shared_bytes: u32::try_from(number("shared")).unwrap_or(u32::MAX),
        scratch_bytes: number("global_scratch_size"),
        architecture,
        notes: objections(&value),
        keep: None,
    };
    Some(Candidate {
        target,
        key: folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        debug: value.get("debug").and_then(serde_json::Value::as_bool).unwrap_or(false),
        modified: std::fs::metadata(json).and_then(|metadata| metadata.modified()).ok(),
    })
}

/// What a launch of this entry needs and the probe doesn't give.
fn objections(value: &serde_json::Value) -> Vec<String> {
    let mut notes = Vec::new();
    if value.get("num_ctas").and_then(serde_json::Value::as_u64).is_some_and(|ctas| ctas > 1) {
        notes.push("it was launched in clusters, which the probe doesn't do".to_owned());
    }
    if value.get("launch_cooperative_grid").and_then(serde_json::Value::as_bool) == Some(true) {
        notes.push("it was launched cooperatively, which the probe doesn't do".to_owned());
    }
    if value.get("tensordesc_meta").and_then(serde_json::Value::as_array).is_some_and(|list| !list.is_empty())
    {
        notes.push("it takes tensor descriptors, which the probe doesn't make".to_owned());
    }
    notes
}

/// Gives a target's model and parameters one set of names: those of the parameters.
pub(super) fn adopt_names(target: &mut Target, model: Option<Kernel>) {
    let Some(mut kernel) = model else { return };
    let names: Vec<String> = target.parameters.iter().map(|parameter| parameter.name.clone()).collect();
    if cache::rename(&mut kernel, &names) {
        target.kernel = Some(Arc::new(kernel));
    }
}

/// Gives parameters the names of a source's signature, where the numbers agree.
pub(in crate::probe) fn rename(target: &mut Target, names: &[String]) {
    if names.len() != target.parameters.len() {
        return;
    }
    for (parameter, name) in target.parameters.iter_mut().zip(names) {
        parameter.name.clone_from(name);
    }
    // The model is shared from here on only; just after loading it has one owner.
    if let Some(mut kernel) = target.kernel.take().and_then(Arc::into_inner) {
        rename_kernel(&mut kernel, names);
        target.kernel = Some(Arc::new(kernel));
    }
}
