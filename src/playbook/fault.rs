//! A fault of a playbook file, as `check` names it.
//!
//! In: nothing; a plain type. Out: [`Fault`]. It leaves finding faults to `parse` and `check`.

use std::fmt;

/// Something wrong in a playbook file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, as named by whoever read it.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// The key at fault, dotted from the file's top (`step.outcome.goto`).
    pub key: String,
    /// What is wrong, and what to write in its place.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.key, self.message)
    }
}
