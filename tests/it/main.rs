//! The integration tests: one binary, one module a subject.

mod architecture;
mod probe;
mod samples;
mod schema;
mod source;
mod tui;
