//! warpfault: incident triage for GPU crashes, in a terminal.
//!
//! The rooms, from the ground up. A room may use those above it in this list, never one below
//! (`tests/it/architecture.rs` holds this).

pub mod error;

pub mod arith;
pub mod tables;
pub mod text;

pub mod source;

pub mod image;
pub mod kernel;
pub mod read;

pub mod case;
pub mod verdict;

pub mod playbook;
pub mod probe;
pub mod repro;

pub mod report;
pub mod session;

pub mod store;

pub mod effect;

pub mod tui;

pub mod cli;
