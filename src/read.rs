//! Bytes to events, one file a producer; knows nothing of verdicts.

pub mod event;
