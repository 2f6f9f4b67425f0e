//! The UI worked without a terminal: keys in, frames out.
//!
//! In: an incident made by hand, so that frames change only when the UI does. Out: snapshots of every pane and state at
//! three sizes, and proofs about keys.

mod fixture;
mod frames;
mod harness;
mod keys;
mod walk;
mod ways_out;
