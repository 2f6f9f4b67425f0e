//! `warpfault kernel`: the static check of compiled kernels, and the lints of Triton sources.
//!
//! In: a path and what is known about the launch. Out: text or JSON, and an exit status: 0 fits, 1 wraps or another
//! finding, 3 unknown. It reads files and runs nothing.

mod files;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::error::{Error, ErrorKind, Result};
use crate::image::symbol;
use crate::kernel::cache::{self, Entry, Metadata};
use crate::kernel::finding::{Certainty, Finding, FindingKind};
use crate::kernel::{Analysis, Bindings, Kernel, ask, device, lint, names};
use crate::report::kernel::{KernelView, KernelsView};
use crate::report::kernel_text;

/// Arguments of `warpfault kernel`.
#[derive(Debug, Clone, Default, Args)]
pub struct KernelArgs {
    /// A .ttir, .ptx, .cubin or .py file, a Triton cache entry, or a whole cache folder
    pub path: PathBuf,
    /// Only the kernel of this name
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// An argument's value, as in M=234624; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Find up to which value of this argument it is safe
    #[arg(long, value_name = "NAME")]
    pub sweep: Option<String>,
    /// The launch grid, as in 1833,72 or "cdiv(M,128),cdiv(N,128)"; read off the masks when left out
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub grid: Option<String>,
    /// Threads of a block, where the compiled text doesn't fix them
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub block: Option<String>,
    /// What an argument is a multiple of, where the compiled text doesn't say: M=16; repeatable
    #[arg(long, value_name = "NAME=MULTIPLE")]
    pub lattice: Vec<String>,
    /// Names of the parameters in order, where the compiled text keeps none
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    pub names: Vec<String>,
    /// The source file to take the parameters' names from
    #[arg(long, value_name = "FILE")]
    pub source: Option<PathBuf>,
    /// The device it should run on, as in sm_90: checks architecture and shared memory
    #[arg(long, value_name = "SM")]
    pub device: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: KernelFormat,
    /// Short for --format json
    #[arg(long)]
    pub json: bool,
}

/// Output formats of `warpfault kernel`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum KernelFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Checks every kernel in `args.path` and prints the answers to `out`; returns the exit status.
///
/// # Errors
/// `Usage` for an option that can't be read or a kernel that isn't there; `Input` or `Format` for the path; `Output` when
/// `out` can't be written (a closed pipe is no error).
pub fn run(args: &KernelArgs, out: &mut dyn Write) -> Result<u8> {
    let bindings = bindings(args)?;
    let wanted = args.device.as_deref().map(wanted_device).transpose()?;
    let found = files::collect(&args.path)?;
    let mut view =
        KernelsView { schema: KernelsView::SCHEMA, kernels: Vec::new(), diagnostics: found.diagnostics };
    let mut available: Vec<String> = Vec::new();
    let mut arguments = BTreeSet::new();
    let mut swept = false;
    let mut unmatched: Vec<&String> = bindings.values.keys().chain(bindings.lattice.keys()).collect();
    for target in found.targets {
        let (path, entry) = match target {
            files::Target::Python { path, text } => {
                if text.len() > lint::MAX_SOURCE {
                    let limit = lint::MAX_SOURCE >> 20;
                    view.diagnostics.push(format!("{path}: only its first {limit} MiB were checked"));
                }
                view.kernels.extend(
                    lint::lint(&path, &text).into_iter().map(|file| KernelView::of_source(&path, &file)),
                );
                continue;
            }
            files::Target::Compiled { path, entry } => (path, entry),
        };
        let Entry { kernels, metadata, cubin_architecture, complaints, .. } = entry;
        view.diagnostics.extend(complaints.into_iter().map(|c| format!("{path}: {}", c.message)));
        for mut kernel in kernels {
            let readable = symbol::name(&kernel.model.entry);
            available.push(readable.clone());
            if args.entry.as_ref().is_some_and(|name| *name != kernel.model.entry && *name != readable) {
                continue;
            }
            name_parameters(&mut kernel, args, &readable)?;
            unmatched.retain(|name| !knows(&kernel, name) && !in_grid(&bindings, name));
            let sweep = args.sweep.as_deref().filter(|name| knows(&kernel, name) || in_grid(&bindings, name));
            swept |= sweep.is_some();
            let integers = kernel.model.params.iter().filter(|param| param.int_width.is_some());
            arguments.extend(integers.map(|param| param.name.clone()));
            let mut analysis = ask(&kernel, &bindings, sweep);
            if let Some(device) = wanted {
                analysis.findings.extend(device_findings(device, &analysis, &metadata, cubin_architecture));
            } else {
                let own = metadata.architecture.map(|own| (own, false));
                analysis.findings.extend(own.and_then(|own| shared_finding(own.0, &metadata)));
            }
            view.kernels.push(KernelView::new(&path, &kernel.model.params, &analysis));
        }
    }
    if view.kernels.is_empty() {
        return Err(nothing_found(args, &available, &view.diagnostics));
    }
    // A misspelt name would be swept to the end of its type, and look safe.
    if let Some(name) = args.sweep.as_deref().filter(|_| !swept && !arguments.is_empty()) {
        let names = arguments.into_iter().take(12).collect::<Vec<_>>().join(", ");
        return Err(Error::new(
            ErrorKind::Usage,
            format!("no kernel here has an argument `{name}` to sweep"),
        )
        .hint(format!("integer arguments here: {names}")));
    }
    if !available.is_empty() {
        let told = unmatched.into_iter().map(|name| format!("no kernel here has an argument `{name}`"));
        view.diagnostics.extend(told.collect::<BTreeSet<_>>());
    }
    let page = if args.json || args.format == KernelFormat::Json {
        let json = serde_json::to_string_pretty(&view);
        json.map_err(|error| {
            Error::new(ErrorKind::Output, "the answer can't be written as JSON").because(error)
        })? + "\n"
    } else {
        kernel_text::page(&view, &files::source_line)
    };
    match out.write_all(page.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Output, "the answer can't be written").because(error))
        }
        _ => Ok(status(&view)),
    }
}

fn status(view: &KernelsView) -> u8 {
    use crate::report::kernel::{AnswerView, SourceView};
    let finds = view.kernels.iter().any(|k| k.answer == AnswerView::Wraps || !k.findings.is_empty());
    // A source is linted, not analysed: it has no answer to be unknown.
    let open = view.kernels.iter().any(|k| k.answer == AnswerView::Unknown && k.source != SourceView::Python);
    match (finds, open) {
        (true, _) => 1,
        (false, true) => 3,
        (false, false) => 0,
    }
}

fn bindings(args: &KernelArgs) -> Result<Bindings> {
    let mut bindings = Bindings::default();
    for text in &args.set {
        bindings.set(text)?;
    }
    for text in &args.lattice {
        bindings.set_lattice(text)?;
    }
    if let Some(grid) = &args.grid {
        bindings.set_grid(grid)?;
    }
    if let Some(block) = &args.block {
        bindings.set_block(block)?;
    }
    Ok(bindings)
}

fn wanted_device(text: &str) -> Result<u32> {
    device::architecture(text).map(|(number, _)| number).ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("`{text}` is no device"))
            .hint("write a compute capability, as in sm_90 or 9.0")
    })
}

fn knows(kernel: &Kernel, name: &str) -> bool {
    let nth = name.strip_prefix("arg").and_then(|n| n.parse::<usize>().ok());
    kernel.model.param(name).is_some() || nth.is_some_and(|n| n < kernel.model.params.len())
}

fn in_grid(bindings: &Bindings, name: &str) -> bool {
    bindings.grid.iter().flatten().any(|expr| expr.names().contains(&name))
}

/// Names given by hand, else out of the source: the file given, else the one that the compiler recorded, if it is there.
fn name_parameters(kernel: &mut Kernel, args: &KernelArgs, readable: &str) -> Result<()> {
    let bare = readable.rsplit("::").next().unwrap_or(readable).split('<').next().unwrap_or(readable);
    if !args.names.is_empty() {
        if !cache::rename(kernel, &args.names) {
            let (given, taken) = (args.names.len(), kernel.model.params.len());
            let message = format!("--names gives {given} names, {readable} has {taken} parameters");
            return Err(Error::new(ErrorKind::Usage, message));
        }
        return Ok(());
    }
    let nameless = kernel
        .model
        .params
        .iter()
        .enumerate()
        .all(|(i, p)| p.name == format!("arg{i}") || p.name == format!("param_{i}"));
    if !nameless {
        return Ok(());
    }
    let (path, chosen) = match &args.source {
        Some(path) => (path.clone(), true),
        None => match kernel.model.origins.iter().flatten().next() {
            Some(location) => (PathBuf::from(&location.file), false),
            None => return Ok(()),
        },
    };
    let Some(text) = files::small_text(&path, chosen)? else { return Ok(()) };
    let found = names::python_parameters(&text, bare).or_else(|| names::cuda_parameters(&text, bare));
    if let Some(found) = found {
        cache::rename(kernel, &found);
    }
    Ok(())
}

fn device_findings(
    device: u32,
    analysis: &Analysis,
    metadata: &Metadata,
    cubin: Option<u32>,
) -> Vec<Finding> {
    let mut out = Vec::new();
    let text = analysis.target.as_deref().and_then(device::architecture);
    let built = cubin.or(metadata.architecture).map(|own| (own, text.is_some_and(|t| t.1))).or(text);
    if let Some(why) = built.and_then(|built| device::mismatch(built, device, cubin.is_none())) {
        out.push(plain_finding(FindingKind::ArchMismatch, why));
    }
    out.extend(shared_finding(device, metadata));
    out
}

fn shared_finding(device: u32, metadata: &Metadata) -> Option<Finding> {
    let (needed, limit) = (metadata.shared_bytes?, device::shared_limit_bytes(device)?);
    (needed > limit).then(|| {
        let detail =
            format!("it asks for {needed} bytes of shared memory, sm_{device} gives a block {limit}");
        Finding {
            max_value: Some(i128::from(needed)),
            limit: Some(i128::from(limit)),
            remedy: Some("smaller blocks or fewer stages".into()),
            ..plain_finding(FindingKind::SharedMemory, detail)
        }
    })
}

fn plain_finding(kind: FindingKind, detail: String) -> Finding {
    Finding {
        kind,
        certainty: Certainty::Supported,
        expression: String::new(),
        reaches: String::new(),
        location: None,
        access_location: None,
        max_value: None,
        limit: None,
        witness: None,
        sweep: None,
        detail,
        remedy: None,
        accesses: Vec::new(),
    }
}

fn nothing_found(args: &KernelArgs, available: &[String], diagnostics: &[String]) -> Error {
    let place = |error: Error| error.at(&args.path, None);
    match &args.entry {
        Some(name) if !available.is_empty() => {
            let mut list = available.to_vec();
            list.sort();
            list.dedup();
            list.truncate(20);
            place(Error::new(ErrorKind::Usage, format!("has no kernel `{name}`")))
                .hint(format!("it has: {}", list.join(", ")))
        }
        _ => {
            let why = diagnostics.first().map_or(String::new(), |d| format!(": {d}"));
            place(Error::new(ErrorKind::Format, format!("holds no kernel that can be read{why}")))
                .hint("give a .ttir, .ptx or .py file, a cubin with its PTX beside it, or a folder of a Triton cache")
        }
    }
}

#[cfg(test)]
mod tests;
