//! The pictures that a report has numbers for, as plain data.
//!
//! In: a report. Out: a number line of the largest shape, a map of memory around a bad access, lanes of ranks. Numbers that
//! the report doesn't have are not made up here. How they are drawn is the formats' business.

mod memory_map;
mod number_line;
mod rank_lanes;

pub use memory_map::{MemoryMap, Wrapped};
pub use number_line::{NumberLine, Point};
pub use rank_lanes::{Lane, RankLanes};

use serde_json::Value;

/// An address or offset as reports print it: `0x7f74f8ed2000`.
fn address(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

/// A count as JSON carries it.
fn integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}
