//! The stack of each run, side by side: an asynchronous run and one with launch blocking differ in where they end.
//!
//! In: a case. Out: one [`Chain`] an input that holds a traceback, in the order of the inputs. It leaves alone which of
//! them is right.

use crate::case::Case;
use crate::read::event::{Data, InputId, PyFrame};
use crate::verdict::places::is_own_file;

/// The stack of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The input that holds it.
    pub input: InputId,
    /// Whether launch blocking was on.
    pub blocking: bool,
    /// Frames, outermost first; not yet escaped.
    pub frames: Vec<Link>,
}

/// A frame of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// File as printed.
    pub file: String,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Function.
    pub function: Option<String>,
    /// Whether the file is the engineer's own and not a library's.
    pub own: bool,
}

impl Chain {
    /// Where the engineer's own code ends: `triton_cases.py:49`.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        let frame = self.frames.iter().rev().find(|frame| frame.own).or_else(|| self.frames.last())?;
        place(Some(&frame.file), frame.line)
    }

    /// The engineer's own frames, outermost first: `triton_cases.py:69 <module> → …:60 forward`.
    #[must_use]
    pub fn words(&self) -> String {
        let own: Vec<String> = self
            .frames
            .iter()
            .filter(|frame| frame.own)
            .filter_map(|frame| {
                let place = place(Some(&frame.file), frame.line)?;
                Some(match &frame.function {
                    Some(function) => format!("{place} {function}"),
                    None => place,
                })
            })
            .collect();
        own.join(" → ")
    }
}

/// Frames that a chain keeps, the innermost ones.
const FRAME_LIMIT: usize = 200;

/// The chains of a case: of each input the first traceback.
#[must_use]
pub fn chains(case: &Case) -> Vec<Chain> {
    let mut chains: Vec<Chain> = Vec::new();
    let blocking = case.blocking_inputs();
    let tracebacks = case.pick(|data| match data {
        Data::Traceback(traceback) if !traceback.frames.is_empty() && !traceback.ignored => Some(traceback),
        _ => None,
    });
    for (_, event, traceback) in tracebacks {
        if chains.iter().any(|chain| chain.input == event.span.input) {
            continue;
        }
        let skip = traceback.frames.len().saturating_sub(FRAME_LIMIT);
        chains.push(Chain {
            input: event.span.input,
            blocking: blocking.contains(&event.span.input),
            frames: traceback.frames.iter().skip(skip).map(link).collect(),
        });
    }
    chains
}

fn link(frame: &PyFrame) -> Link {
    Link {
        file: frame.file.clone(),
        line: frame.line,
        function: frame.function.clone(),
        own: is_own_file(&frame.file),
    }
}

/// `triton_cases.py:49`
#[must_use]
pub fn place(file: Option<&str>, line: Option<u32>) -> Option<String> {
    let name = file?.rsplit(['/', '\\']).next()?;
    Some(match line {
        Some(line) => format!("{name}:{line}"),
        None => name.to_owned(),
    })
}
