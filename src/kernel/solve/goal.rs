//! What a search is asked, may cost and finds.
//!
//! In: nothing. Out: [`Goal`], [`Fuel`], [`Outcome`]. It leaves the search to `search`.

use crate::kernel::sym::{NodeId, Point};

/// A node that must not pass a limit, upward or downward.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// The node.
    pub node: NodeId,
    /// Whether the limit is an upper one.
    pub upward: bool,
    /// The last allowed exact value.
    pub limit: i128,
}

/// What the search found.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The node never passes the limit; this value bounds it.
    Holds(i128),
    /// It passes the limit at a point, where its exact value is this. `greatest` says that no point has a worse one.
    Passes {
        /// Values of the variables.
        point: Point,
        /// The exact value there.
        value: i128,
        /// Whether it is the extreme.
        greatest: bool,
    },
    /// Neither was shown.
    Open {
        /// The bound that was reached.
        bound: i128,
        /// Whether every point's value hangs on a variable that can't be chosen, so that none can ever be shown, here
        /// or in a part of the box.
        pointless: bool,
    },
}

/// Work left, counted in boxes and nodes.
#[derive(Debug, Clone, Copy)]
pub struct Fuel {
    /// Boxes for one search.
    pub per_search: u32,
    /// Boxes for all searches together.
    pub total: u32,
    /// Nodes that all searches together may prepare: a chain of operations, each of them stored, costs its length for each.
    pub nodes: u64,
}

impl Default for Fuel {
    fn default() -> Self {
        Self { per_search: 400, total: 8_000, nodes: 10_000_000 }
    }
}
