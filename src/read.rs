//! Bytes to events, one file a producer; knows nothing of verdicts.

pub mod coredump;
pub mod cuda_gdb;
pub mod event;
