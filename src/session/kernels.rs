//! Compiled kernels among the inputs: Triton cache entries, TTIR and PTX files.
//!
//! In: an input. Out: kernels with the event that stands for each, or what the lints say about a source. It leaves the
//! question whether they wrap to the verdict.

use std::collections::BTreeMap;

use crate::case::LintedSource;
use crate::kernel::cache::{self, File, Metadata};
use crate::kernel::model::Source;
use crate::kernel::{Kernel, lint};
use crate::read::event::{CompiledKernel, Data, Event, Origin, Span};
use crate::read::tritonparse::Compilation;
use crate::source::{Input, InputId, InputKind};

/// Cache entries that are read: the newest; a cache of months holds thousands.
const ENTRY_LIMIT: usize = 256;

/// The kernels of a trace's compilations.
pub fn of_trace(id: InputId, compilations: &[Compilation]) -> Vec<(Event, Kernel)> {
    let mut found = Vec::new();
    for compilation in compilations {
        let Some(ttir) = &compilation.ttir else { continue };
        for mut kernel in cache::from_ttir(ttir) {
            kernel.model.target.clone_from(&compilation.target);
            let metadata = Metadata {
                debug: compilation.debug,
                num_warps: compilation.num_warps,
                hash: compilation.hash.clone(),
                ..Metadata::default()
            };
            let mut event = event(id, "", &kernel, &metadata);
            event.span.line = compilation.line;
            event.span.byte = compilation.byte as u64;
            event.span.lines = 1;
            found.push((event, kernel));
        }
    }
    found
}

/// The kernels of an input, and sentences about what could not be read.
pub fn read(input: &Input, id: InputId) -> (Vec<(Event, Kernel)>, Vec<String>) {
    let kernels: Vec<(String, Kernel)> = match input.kind {
        InputKind::Ttir => {
            cache::from_ttir(&text(&input.bytes)).into_iter().map(|kernel| (String::new(), kernel)).collect()
        }
        InputKind::Ptx => {
            cache::from_ptx(&text(&input.bytes)).into_iter().map(|kernel| (String::new(), kernel)).collect()
        }
        InputKind::TritonCache => return entries(input, id),
        _ => Vec::new(),
    };
    let none = Metadata::default();
    let is_cut = input.kind == InputKind::SourceCode && input.bytes.len() > lint::MAX_SOURCE;
    let notes =
        is_cut.then(|| format!("only its first {} MiB were checked as a source", lint::MAX_SOURCE >> 20));
    let found = kernels.into_iter().map(|(key, kernel)| (event(id, &key, &kernel, &none), kernel));
    (found.collect(), notes.into_iter().collect())
}

/// What the lints say about a Triton source; none where the input is no such source.
pub fn linted(input: &Input, id: InputId) -> Option<LintedSource> {
    let path = input.path.unescaped();
    if input.kind != InputKind::SourceCode || !path.ends_with(".py") {
        return None;
    }
    let kernels = lint::lint(path, &text(&input.bytes));
    (!kernels.is_empty()).then_some(LintedSource { input: id, kernels })
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn entries(input: &Input, id: InputId) -> (Vec<(Event, Kernel)>, Vec<String>) {
    let mut folders: BTreeMap<&str, Vec<File<'_>>> = BTreeMap::new();
    for part in &input.parts {
        let path = part.path.unescaped();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        folders.entry(folder).or_default().push(File { name, bytes: &part.bytes });
    }
    let mut notes = Vec::new();
    if folders.len() > ENTRY_LIMIT {
        notes.push(format!(
            "holds {} entries; {ENTRY_LIMIT} were read: name the entry's own folder to choose",
            folders.len()
        ));
    }
    let mut found = Vec::new();
    for (folder, files) in folders.into_iter().take(ENTRY_LIMIT) {
        let entry = cache::load_entry(folder, &files);
        notes.extend(
            entry
                .complaints
                .iter()
                .take(4)
                .map(|complaint| format!("{folder}:{}: {}", complaint.line, complaint.message)),
        );
        for kernel in entry.kernels {
            found.push((event(id, folder, &kernel, &entry.metadata), kernel));
        }
    }
    (found, notes)
}

/// Threads of a block: Triton launches whole warps.
fn threads(metadata: &Metadata) -> Option<u32> {
    let warps = metadata.num_warps.filter(|warps| (1..=32).contains(warps))?;
    warps.checked_mul(metadata.warp_size.unwrap_or(32)).filter(|threads| *threads <= 1_024)
}

fn event(input: InputId, key: &str, kernel: &Kernel, metadata: &Metadata) -> Event {
    let mut files: Vec<String> =
        kernel.model.origins.iter().flatten().map(|location| location.file.clone()).collect();
    files.sort();
    files.dedup();
    files.truncate(16);
    let form = match kernel.model.source {
        Source::Ptx => "ptx",
        _ => "ttir",
    };
    let target = kernel.model.target.as_deref().map(|target| format!(" for {target}")).unwrap_or_default();
    let place = if key.is_empty() { String::new() } else { format!(" (entry {key})") };
    let text = format!("compiled kernel {}{target}, {form}{place}", kernel.model.entry);
    Event {
        span: Span { input, line: 0, byte: 0, lines: 0 },
        origin: Origin::default(),
        data: Data::CompiledKernel(CompiledKernel {
            entry: kernel.model.entry.clone(),
            files,
            form,
            folder: key.to_owned(),
            debug: metadata.debug == Some(true),
            threads: threads(metadata),
            compilation: metadata.hash.clone(),
        }),
        text,
    }
}
