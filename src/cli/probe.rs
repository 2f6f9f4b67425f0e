//! `warpfault probe`: reruns a kernel on the GPU at boundary sizes, each in a process of its own.
//!
//! In: a path, a shape or a `probe.toml`, and options. Out: the trials as they end on standard error, the report on
//! standard output, and the contract's exit status. The command itself is the yes to run; it asks once more where
//! somebody else computes on the GPU.

mod again;
mod settings;

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};

use crate::error::{Error, ErrorKind, Result};
use crate::probe::host::Program;
use crate::probe::load::is_source;
use crate::probe::protocol::Device;
use crate::probe::run::{Job, describe, prepare};
use crate::probe::spec::{Guard, MemoryMode};
use crate::report::probe::{ProbeView, TrialView};
use crate::report::probe_text;
use crate::text::escape;
use crate::text::number::binary_size;

use super::output;

/// More memory than this in use, with nobody to see, means somebody who can't be seen.
const IDLE_BYTES: u64 = 2 << 30;

/// Arguments of `warpfault probe`.
#[derive(Debug, Clone, Default, Args)]
pub struct ProbeArgs {
    /// Triton cache folder or entry, .cubin, .ptx, .cu, a shape such as 234624x9216 (for the built-in reference kernel), or
    /// a probe.toml
    #[arg(value_name = "SPEC|PATH")]
    pub path: String,
    /// The kernel's name, symbol or cache key
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// An argument: N=9216, stride=N, x_ptr=M*K, index=1024:iota, p=null; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// The argument whose boundary is looked for; the one that the static check names when left out
    #[arg(long, value_name = "NAME")]
    pub sweep: Option<String>,
    /// A further value of the swept argument to try; repeatable
    #[arg(long, value_name = "VALUE")]
    pub also: Vec<i64>,
    /// The launch grid, as in "cdiv(M,128),cdiv(N,128)"; read off the masks when left out
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub grid: Option<String>,
    /// Threads of a block, where the code doesn't fix them
    #[arg(long, value_name = "X[,Y[,Z]]")]
    pub block: Option<String>,
    /// Dynamic shared memory in bytes, where the code doesn't fix it
    #[arg(long, value_name = "BYTES")]
    pub shared: Option<u32>,
    /// What an argument is a multiple of, where the code doesn't say: M=16; repeatable
    #[arg(long, value_name = "NAME=MULTIPLE")]
    pub lattice: Vec<String>,
    /// The fixed kernel: it must pass where this one fails
    #[arg(long, value_name = "PATH")]
    pub control: Option<String>,
    /// The fixed kernel's name, where PATH holds several
    #[arg(long, value_name = "NAME", requires = "control")]
    pub control_entry: Option<String>,
    /// What lies under buffers
    #[arg(long, value_enum)]
    pub memory: Option<MemoryMode>,
    /// Which side of buffers is guarded closely
    #[arg(long, value_enum)]
    pub guard: Option<Guard>,
    /// Compile a .cu with NVRTC even where nvcc is there
    #[arg(long)]
    pub nvrtc: bool,
    /// Element type of the reference kernel
    #[arg(long)]
    pub dtype: Option<String>,
    /// The GPU's number
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Deadline of one run
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Most physical device memory for buffers
    #[arg(long, value_name = "MIB")]
    pub memory_limit: Option<u64>,
    /// Run the failing trial once more under compute-sanitizer, to see the line and the thread
    #[arg(long)]
    pub sanitize: bool,
    /// Run the failing trial once more with a GPU core dump, to see the line and the thread
    #[arg(long)]
    pub core_dump: bool,
    /// Show what would run and start nothing; with -o write a probe.toml
    #[arg(long)]
    pub dry_run: bool,
    /// Run even where somebody else computes on the GPU
    #[arg(long)]
    pub yes: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: ProbeFormat,
    /// Short for --format json
    #[arg(long)]
    pub json: bool,
    /// Write the report, or in a dry run the probe.toml, to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Output formats of `warpfault probe`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ProbeFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Runs it; returns the exit status of the contract.
///
/// # Errors
/// Those of [`prepare`], `Missing` without a GPU, `Refused` where somebody else computes on it and nobody said yes.
pub fn run(args: &ProbeArgs) -> Result<u8> {
    let spec = settings::spec(args)?;
    let program = this()?;
    if args.dry_run {
        return dry_run(args, &prepare(&spec, None, &program)?);
    }
    // What is wrong with the request is told before the GPU is looked for; a source needs to know the GPU.
    let early = if is_source(spec.path.as_ref()) { None } else { Some(prepare(&spec, None, &program)?) };
    let device = describe(&program, spec.device)?;
    let job = match early {
        Some(job) => Job { used_before_bytes: device.used_bytes, ..job },
        None => prepare(&spec, Some(&device), &program)?,
    };
    permission(args, &device)?;
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Without it a signal ends this process, and the children end with it.
        let _ = signal_hook::flag::register(signal, cancel.clone());
    }
    let sweep = job.sweep.clone();
    let run = job.run(&program, &cancel, &mut |record| {
        let trial = TrialView::of(record, sweep.as_deref());
        output::tell(&probe_text::told(&trial, record.control));
    })?;
    if run.cancelled() {
        return Err(Error::new(ErrorKind::Refused, "stopped; what had run is lost").hint("run it again"));
    }
    let mut view = ProbeView::of(&job, Some(&run), Some(&device));
    if let Some(step) = run.failing() {
        again::look(args, &job, step, &program, &cancel, &mut view);
    } else if args.sanitize || args.core_dump {
        view.notes.push("no trial failed, so there is nothing to look into".to_owned());
    }
    output::write(args.output.as_deref(), &page(args, &view)?)?;
    Ok(run.status())
}

fn this() -> Result<Program> {
    Program::this().map_err(|error| {
        Error::new(ErrorKind::Missing, "this program can't find its own file").because(error)
    })
}

fn dry_run(args: &ProbeArgs, job: &Job) -> Result<u8> {
    let view = ProbeView::of(job, None, None);
    match &args.output {
        Some(path) => {
            output::write(Some(path), &job.spec.to_toml()?)?;
            output::print(&page(args, &view)?)?;
            output::tell(&format!(
                "wrote {}; run it with: warpfault probe {}",
                path.display(),
                path.display()
            ));
        }
        None => output::print(&page(args, &view)?)?,
    }
    Ok(0)
}

fn page(args: &ProbeArgs, view: &ProbeView) -> Result<String> {
    if args.json || args.format == ProbeFormat::Json {
        let json = serde_json::to_string_pretty(view);
        return json.map(|text| text + "\n").map_err(|error| {
            Error::new(ErrorKind::Output, "the answer can't be written as JSON").because(error)
        });
    }
    Ok(probe_text::text(view))
}

/// Asks before running where somebody else computes on the GPU.
fn permission(args: &ProbeArgs, device: &Device) -> Result<()> {
    let used = device.used_bytes.unwrap_or(0);
    if args.yes || (device.processes.is_empty() && used < IDLE_BYTES) {
        return Ok(());
    }
    let who: Vec<String> = device
        .processes
        .iter()
        .take(8)
        .map(|process| {
            let size = process
                .used_bytes
                .map_or_else(String::new, |bytes| format!(" ({})", binary_size(u128::from(bytes))));
            format!("process {}{size}", process.pid)
        })
        .collect();
    let who = if who.is_empty() { "somebody who can't be seen from here".to_owned() } else { who.join(", ") };
    let said = format!(
        "GPU {} ({}) is in use by {who}, {} of its memory; a probe takes some 600 MiB, and a fault of its own ends its own \
         process only",
        args.device.unwrap_or(0),
        escape(&device.name),
        binary_size(u128::from(used))
    );
    // Who asks for JSON is a program, and nobody is there to answer.
    let asks = !(args.json || args.format == ProbeFormat::Json);
    if asks && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let _ = write!(anstream::stderr(), "warpfault: {said}\nRun it? [y/N] ");
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    Err(Error::new(ErrorKind::Refused, said).hint("say --yes, or choose another GPU with --device"))
}
