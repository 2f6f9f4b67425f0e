//! `warpfault analyze`: inputs in, one report out.
//!
//! In: what to read and how to print it. Out: the report and the exit status that the contract promises. It leaves
//! reading and judging to the engine.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::Arc;

use crate::effect;
use crate::error::{Error, ErrorKind, Result};
use crate::report::redact::redact;
use crate::report::{Report, html, markdown, text};
use crate::session::{Input, Session};
use crate::source::{self, InputSpec, Limits};
use crate::tables::class::FailureClass;
use crate::text::escape;

use super::arguments::{AnalyzeArgs, Format};
use super::output;

/// Runs it.
pub fn run(args: &AnalyzeArgs) -> Result<u8> {
    // A flag that can't be read is told before minutes of reading.
    let answers = args.answers.answers()?;
    let named: Vec<InputSpec> =
        args.input.iter().map(|argument| InputSpec::from_argument(argument)).collect();
    output::spare(args.output.as_deref(), &named)?;
    let mut session = open(&args.input)?;
    if !answers.is_empty() {
        session.apply(Input::Answered(answers));
    }
    let redacted = args.redact.then(|| redact(session.report().clone()));
    let report = redacted.as_ref().unwrap_or(session.report());
    // A report about nothing would read as "no failure".
    if session.inputs().is_empty() {
        for diagnostic in &report.diagnostics {
            output::tell(&diagnostic.message);
        }
        return Err(Error::new(ErrorKind::Input, "none of the inputs could be read"));
    }
    let format = if args.json { Format::Json } else { args.format };
    let styled = args.output.is_none();
    let text = print(report, format, styled)?;
    output::write(args.output.as_deref(), &text)?;
    Ok(status(report.verdict.class))
}

/// The exit status of a verdict.
fn status(class: FailureClass) -> u8 {
    match class {
        FailureClass::None => 1,
        FailureClass::Undecided => 3,
        _ => 0,
    }
}

fn print(report: &Report, format: Format, styled: bool) -> Result<String> {
    match format {
        Format::Text => Ok(text::render(report, if styled { text::Paint::Ansi } else { text::Paint::Plain })),
        Format::Markdown => Ok(markdown::render(report)),
        Format::Html => Ok(html::render(report)),
        Format::Json => serde_json::to_string_pretty(report)
            .map(|mut json| {
                json.push('\n');
                json
            })
            .map_err(|error| {
                Error::new(ErrorKind::Output, "the report could not be written as JSON").because(error)
            }),
    }
}

/// Loads the inputs into a fresh incident.
pub fn open(inputs: &[OsString]) -> Result<Session> {
    let mut specs: Vec<InputSpec> =
        inputs.iter().map(|argument| InputSpec::from_argument(argument)).collect();
    if specs.is_empty() {
        if std::io::stdin().is_terminal() {
            return Err(Error::new(ErrorKind::Usage, "no input given")
                .hint("give a log file or a folder, or pipe a log in: dmesg | warpfault analyze -"));
        }
        specs.push(InputSpec::Stdin);
    }
    // A team's own signatures are evidence here, too.
    let (library, notes) = effect::library(&[])?;
    for note in notes {
        output::tell(&escape(&note).to_string());
    }
    let mut session = Session::with_library(Arc::new(library));
    session.apply(Input::Loaded(source::load(&specs, Limits::default())));
    Ok(session)
}
