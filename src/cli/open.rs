//! `warpfault [INPUT]...`: the incident in the terminal UI.
//!
//! In: what to open. Out: the UI's exit status. Without a terminal to draw on it prints the report, as `analyze` does.

use std::io::IsTerminal;

use crate::error::{Error, ErrorKind, Result};
use crate::source::InputSpec;
use crate::tui::{self, TuiOptions};

use super::analyze;
use super::arguments::Open;

/// Runs it.
pub fn run(open: Open) -> Result<u8> {
    if !can_draw() {
        return analyze::run(&open.into());
    }
    let mut inputs: Vec<InputSpec> = open.input.iter().map(|word| InputSpec::from_argument(word)).collect();
    if inputs.is_empty() && !std::io::stdin().is_terminal() {
        inputs.push(InputSpec::Stdin);
    }
    if open.follow && !inputs.iter().any(|input| matches!(input, InputSpec::Path(_))) {
        return Err(Error::new(ErrorKind::Usage, "--follow needs a file")
            .hint("name the file that is being written: warpfault --follow train.log"));
    }
    tui::run(TuiOptions {
        inputs,
        resume: None,
        follow: open.follow,
        theme: open.theme,
        no_mouse: open.no_mouse,
    })
}

/// Whether standard output is a terminal that can place text.
pub fn can_draw() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    std::io::stdout().is_terminal() && !term.is_empty() && term != "dumb"
}
