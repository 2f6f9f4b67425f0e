//! `warpfault playbook list|show|check|run`.
//!
//! In: which playbook, which files, which answers. Out: lists and pages on standard output, faults and progress on
//! standard error, and the exit status that the contract promises. It leaves reading and judging to the engine.

mod page;
mod walk;

pub(super) use page::walk_page;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::effect;
use crate::error::{Error, ErrorKind, Result};
use crate::playbook::{Library, check, names};

use super::output;

/// `warpfault playbook`
#[derive(Debug, Args)]
pub struct PlaybookArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: PlaybookCommand,
    /// Folder of playbooks, laid over the shipped ones and your own; repeatable.
    #[arg(long, value_name = "DIR", global = true)]
    pub playbooks: Vec<PathBuf>,
}

/// `warpfault playbook …`
#[derive(Debug, Subcommand)]
pub enum PlaybookCommand {
    /// List the playbooks.
    List,
    /// Print a playbook, or every name that conditions may ask for.
    Show(ShowArgs),
    /// Check playbook files: each fault with file, line and key.
    Check(CheckArgs),
    /// Walk through a playbook without the UI.
    Run(RunArgs),
}

/// `warpfault playbook show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Playbook's id.
    #[arg(required_unless_present = "names")]
    pub id: Option<String>,
    /// Print every name with its meaning.
    #[arg(long)]
    pub names: bool,
}

/// `warpfault playbook check`
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 all good; 1 faults found; 2 a file could not be read.")]
pub struct CheckArgs {
    /// Playbook files; none checks the shipped ones.
    pub file: Vec<PathBuf>,
}

/// `warpfault playbook run`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 the walk came to its end; 3 a step stayed open; 2 it could not be walked. \
Steps that nobody answers are passed by and listed as skipped."
)]
pub struct RunArgs {
    /// Playbook's id; `auto` takes the one that serves the verdict best.
    pub id: String,
    /// Log file, folder, `-` for standard input, or a pattern; all of them are one incident.
    pub input: Vec<OsString>,
    /// Say yes to every step of this kind (`run`, `apply`) beforehand; repeatable. Without it no command runs.
    #[arg(long, value_name = "KIND")]
    pub yes_to: Vec<String>,
    /// Answer a question; repeatable.
    #[arg(long, value_name = "STEP=VALUE")]
    pub answer: Vec<String>,
    /// Pick an outcome; repeatable.
    #[arg(long, value_name = "STEP=OUTCOME")]
    pub choose: Vec<String>,
    /// Give the log of a step that was run elsewhere; repeatable.
    #[arg(long, value_name = "STEP=FILE")]
    pub feed: Vec<String>,
    /// Pass a step by; repeatable.
    #[arg(long, value_name = "STEP")]
    pub skip: Vec<String>,
    /// Most seconds that a command may take, in place of the playbook's.
    #[arg(long, value_name = "SECONDS")]
    pub deadline: Option<u64>,
    /// Keep nothing on disk but the logs of runs, which go to a temporary folder.
    #[arg(long)]
    pub no_save: bool,
}

/// Runs it.
pub fn run(args: &PlaybookArgs) -> Result<u8> {
    let (library, notes) = effect::library(&args.playbooks)?;
    for note in &notes {
        output::tell(&crate::text::escape(note).to_string());
    }
    match &args.command {
        PlaybookCommand::List => output::print(&page::list(&library)).map(|()| 0),
        PlaybookCommand::Show(show) if show.names => output::print(&page::names(names::NAMES)).map(|()| 0),
        PlaybookCommand::Show(show) => show_one(&library, show.id.as_deref().unwrap_or_default()),
        PlaybookCommand::Check(files) => check_files(&library, &files.file),
        PlaybookCommand::Run(run) => walk::run(library, run),
    }
}

fn show_one(library: &Library, id: &str) -> Result<u8> {
    let Some(playbook) = library.get(id) else {
        return Err(Error::new(ErrorKind::Usage, format!("there is no playbook `{id}`"))
            .hint("warpfault playbook list names them"));
    };
    output::print(&page::playbook(playbook)).map(|()| 0)
}

fn check_files(library: &Library, files: &[PathBuf]) -> Result<u8> {
    let mut faults = Vec::new();
    let mut unreadable = 0;
    for path in files {
        match effect::read_file(path) {
            // Branches may lead to other playbooks of the same call.
            Ok(text) => faults.extend(check::file(&path.display().to_string(), &text, library)),
            Err(error) => {
                unreadable += 1;
                output::tell(&crate::text::escape(&error.to_string()).to_string());
            }
        }
    }
    if files.is_empty() {
        faults.extend(library.faults().to_vec());
        faults.extend(library.playbooks().iter().flat_map(|playbook| check::check(playbook, library)));
    }
    let text: String =
        faults.iter().map(|fault| format!("{}\n", crate::text::escape(&fault.to_string()))).collect();
    output::print(&text)?;
    Ok(match (unreadable, faults.len()) {
        (0, 0) => 0,
        (0, _) => 1,
        _ => 2,
    })
}
