//! The command line: one file a subcommand.
//!
//! In: arguments. Out: an exit status; reports on standard output, diagnostics and progress on standard error. It leaves
//! the work to the engine.

mod analyze;
mod answers;
mod arguments;
mod doctor;
pub mod kernel;
mod open;
mod output;
pub mod playbook;
pub mod probe;
pub mod repro;
pub mod resume;
mod schema;
pub mod shapes;
mod threads;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::error::Error;
use arguments::{Arguments, Command};

/// Runs the command line and returns the exit status.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let status = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(status);
        }
    };
    if !matches!(arguments.command, Some(Command::ProbeChild)) {
        threads::start();
    }
    let result = match arguments.command {
        Some(Command::Analyze(args)) => analyze::run(&args),
        Some(Command::Shapes(args)) => {
            let args = args.for_terminal(std::env::var_os("TERM").as_deref());
            shapes::run(&args, &mut anstream::stdout()).map(|()| 0)
        }
        Some(Command::Kernel(args)) => kernel::run(&args, &mut anstream::stdout()),
        Some(Command::Playbook(args)) => playbook::run(&args),
        Some(Command::Resume(args)) => resume::run(&args),
        Some(Command::Probe(args)) => probe::run(&args),
        Some(Command::Repro(args)) => repro::run(&args),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::ProbeChild) => Ok(crate::probe::child::serve(std::io::stdin(), &mut std::io::stdout())),
        Some(Command::Schema(args)) => schema::run(&args),
        Some(Command::Completions { shell }) => output::completions(shell),
        Some(Command::Man) => output::man(),
        None => open::run(arguments.open),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}

/// Prints an error: what, why, and what to do next. Names in it came from outside and are escaped.
fn complain(error: &Error) {
    let mut stderr = anstream::stderr();
    let _ = writeln!(stderr, "warpfault: {}", crate::text::escape(&error.to_string()));
    if let Some(hint) = error.hint_text() {
        let _ = writeln!(stderr, "  {}", crate::text::escape(hint));
    }
}
