//! The terminal UI: an incident on a screen, worked by keys that hands already know.
//!
//! In: what to open, and keys. Out: a screen drawn from the engine's report and the inputs' bytes. `update` is the only
//! writer of the `model` and does no I/O; `view` only reads; `run` and `work` carry out what `update` asks for. It leaves
//! judging to the engine, and every string that it draws was escaped by the report or by `text::escape`.

mod claims;
mod command;
mod copy;
mod keymap;
mod layout;
mod log;
mod model;
mod msg;
mod run;
mod source;
mod terminal;
mod theme;
mod update;
mod view;
mod work;

#[cfg(test)]
mod tests;

pub use run::{TuiOptions, run};
