//! Carries effects out: reads a team's playbooks, runs an approved command and ends it with everything that it started.
//!
//! In: an [`Approved`](crate::session::Approved) command, folders of playbooks. Out: live output, how the command ended
//! and its log as an input; a library. It decides nothing and never uses a shell.

mod clock;
mod output;
mod playbooks;
mod run;
mod tree;

pub use clock::{now, stamp};
pub use playbooks::{default_folder, library, read_file};
pub use run::{RunEvent, RunHandle, run, spawn};

#[cfg(all(test, target_os = "linux"))]
mod tests;
