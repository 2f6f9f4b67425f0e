//! What was compiled.
pub mod interval;
pub mod solve;
pub mod sym;
