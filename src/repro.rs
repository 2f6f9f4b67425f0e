//! A minimal repro of the failure: the smallest program that shows it, with what must come out.
//!
//! In: the case, the verdict, the inputs, and what the engineer gives besides. Out: a [`Recipe`], and from it files as data
//! ([`files`]). It writes nothing and runs nothing; of the disk it reads a Triton cache entry alone, through
//! `probe::load`; a trace's texts stand in a temporary folder while the plan is made.
//! Values from logs enter the files as data: in `case.json`, or as literals through the typed escapes of [`literal`].

mod choose;
mod collective;
mod cuda;
mod facts;
mod graph;
pub mod literal;
mod operator;
pub mod recipe;
mod render;
mod segfault;
mod symmetric;
mod template;
mod triton;
pub mod verify;

pub use choose::plan;
pub use facts::{Facts, UserFile};
pub use recipe::{Asset, Kind, Plan, Recipe};
pub use render::{File, files};

/// The file that holds the recipe, and by which a folder is known as ours.
pub const CASE_FILE: &str = "case.json";

#[cfg(test)]
mod tests;
