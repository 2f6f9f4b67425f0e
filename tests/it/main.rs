//! The integration tests: one binary, one module a subject.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its sample must fail loudly")]

mod answers;
mod architecture;
mod endings;
mod exits;
mod mixtures;
mod playbooks;
mod probe;
mod repro;
mod roots;
mod samples;
mod schema;
mod source;
mod tui;
mod verdicts;
