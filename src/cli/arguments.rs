//! Every flag of the program, one row each.
//!
//! In: words. Out: typed arguments. It leaves defaults that depend on the machine to the commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Incident triage for GPU crashes.
///
/// Reads a crash log and whatever lies beside it, and says what failed, where it was noticed, where it happened, why, and
/// what to do next.
#[derive(Debug, Parser)]
#[command(name = "warpfault", version, args_conflicts_with_subcommands = true, after_help = EXIT)]
pub struct Arguments {
    /// A subcommand; without one, INPUT is opened.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What to open.
    #[command(flatten)]
    pub open: Open,
}

const EXIT: &str = "Exit status of analyze: 0 a failure was found and classed; 1 no failure in the input; \
3 a failure that stays undecided; 2 the tool could not do its work.";

/// `warpfault [INPUT]...`
#[derive(Debug, Args)]
pub struct Open {
    /// Log file, folder, `-` for standard input, or a pattern; all of them are one incident.
    pub input: Vec<OsString>,
    /// Go on reading as the input grows; the verdict follows.
    #[arg(short = 'F', long)]
    pub follow: bool,
    /// Colours: dark, light or mono; without it the environment decides.
    #[arg(long, value_parser = ["dark", "light", "mono"], env = "WARPFAULT_THEME")]
    pub theme: Option<String>,
    /// Leave the mouse to the terminal (F2 changes it later).
    #[arg(long)]
    pub no_mouse: bool,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the report once.
    Analyze(AnalyzeArgs),
    /// Print the overflow arithmetic of shapes.
    Shapes(super::shapes::ShapesArgs),
    /// Check a compiled kernel for indices that wrap, without a GPU.
    Kernel(super::kernel::KernelArgs),
    /// List, show, check or walk through playbooks.
    Playbook(super::playbook::PlaybookArgs),
    /// List saved incidents, or open one.
    Resume(super::resume::ResumeArgs),
    /// Rerun a kernel on the GPU at boundary sizes, each in a process of its own.
    Probe(Box<super::probe::ProbeArgs>),
    /// Write a minimal repro of the failure, and check that it shows it.
    Repro(Box<super::repro::ReproArgs>),
    /// Say what this machine can do.
    Doctor(super::doctor::DoctorArgs),
    /// Serve one request of the probe.
    #[command(name = "__probe", hide = true)]
    ProbeChild,
    /// Print a JSON Schema of what the tool prints.
    Schema(SchemaArgs),
    /// Print a completion script.
    #[command(hide = true)]
    Completions {
        /// Shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    #[command(hide = true)]
    Man,
}

/// `warpfault analyze`
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// Log file, folder, `-` for standard input, or a pattern; all of them are one incident.
    pub input: Vec<OsString>,
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Short for --format json.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write the report to this file.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace hosts, users, paths, addresses and keys.
    #[arg(long)]
    pub redact: bool,
    /// What the engineer knows besides.
    #[command(flatten)]
    pub answers: super::answers::AnswerArgs,
}

impl From<Open> for AnalyzeArgs {
    fn from(open: Open) -> Self {
        Self {
            input: open.input,
            format: Format::Text,
            json: false,
            output: None,
            redact: false,
            answers: super::answers::AnswerArgs::default(),
        }
    }
}

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For issue trackers.
    Markdown,
    /// One self-contained page with pictures.
    Html,
}

/// `warpfault schema`
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Which schema.
    #[arg(value_enum, default_value_t = SchemaName::Report)]
    pub name: SchemaName,
}

/// Published schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// `analyze --format json`
    Report,
    /// `shapes --format json`
    Shapes,
    /// `kernel --format json`
    Kernel,
    /// `probe --format json`
    Probe,
}
