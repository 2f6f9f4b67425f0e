//! From what is known to what would settle it: playbooks, their conditions, and the walk through one.
//!
//! In: playbook files as text, the evidence and the verdict, what the engineer answered. Out: a [`Library`], a
//! [`walk::Walk`] that any front end draws, and the faults that `check` names. It knows no log text, opens no file and
//! runs nothing.

pub mod chain;
pub mod check;
pub mod condition;
pub mod facts;
mod fault;
pub mod known;
pub mod library;
pub mod names;
mod parse;
pub mod record;
pub mod schema;
pub mod signature;
pub mod template;
mod toml_view;
pub mod walk;

pub use fault::Fault;
pub use known::Known;
pub use library::Library;
pub use record::{Answer, Happened, Ran, Record, StepRef};
pub use schema::{Playbook, Step, StepKind};
pub use walk::{StepState, Walk, WalkStep};
