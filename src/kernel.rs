//! What was compiled: can a 32-bit index of a kernel wrap before it reaches an address?
//!
//! In: the text of TTIR or PTX (or a Triton cache entry as bytes) and what is known about a launch. Out: an
//! [`Analysis`]: `wraps` with a point where it does, `fits`, or `unknown` with what stopped it, and up to which size an
//! argument is safe. It reads no file, knows no log and draws no verdict.
//!
//! Text becomes a [`model::Model`] (by [`ttir`] or [`ptx`]): accesses whose offsets are nodes of one graph ([`sym`]).
//! [`launch`] bounds the variables, [`check`] asks [`solve`] about each value that an address reads through 32 bits.

pub mod analyze;
pub mod assign;
pub mod bind;
pub mod cache;
pub mod carry;
pub mod check;
pub mod device;
mod explain;
pub mod finding;
pub mod interval;
pub mod launch;
pub mod lint;
pub mod location;
pub mod model;
pub mod names;
pub mod ptx;
pub mod query;
pub mod solve;
pub mod sweep;
pub mod sym;
pub mod ttir;
mod unmasked;
mod verdicts;

pub use analyze::{Kernel, analyze};
pub use assign::{Assigned, Number, assign};
pub use bind::Bindings;
pub use finding::{Analysis, Answer, Finding, FindingKind};
pub use query::ask;

#[cfg(test)]
mod tests;
