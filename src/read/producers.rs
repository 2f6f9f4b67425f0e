//! The list of producers: who wants which lines, in the order in which they are asked.
//!
//! In: nothing. Out: [`PRODUCERS`]. Adding a producer is one file and one row here.

use super::lines::{Cx, Line, Taken};
use super::{environment, exception, kernel_log, launcher, nccl, process_group, signal, traceback};

/// A reader of one producer's lines.
#[derive(Debug)]
pub struct Producer {
    /// Name, as the documentation calls it.
    pub name: &'static str,
    /// Strings of which at least one stands in every line that it wants.
    pub literals: &'static [&'static str],
    /// Reads a line, its prefixes stripped.
    pub read: fn(&Line<'_>, &mut Cx<'_>) -> Taken,
}

/// Every producer, in the order in which a line is offered to them. At most 64.
pub static PRODUCERS: &[Producer] = &[
    Producer { name: "environment", literals: environment::LITERALS, read: environment::read },
    Producer { name: "kernel log", literals: kernel_log::LITERALS, read: kernel_log::read },
    Producer { name: "python traceback", literals: traceback::LITERALS, read: traceback::read },
    Producer { name: "launcher", literals: launcher::LITERALS, read: launcher::read },
    Producer { name: "signal", literals: signal::LITERALS, read: signal::read },
    Producer { name: "process group", literals: process_group::LITERALS, read: process_group::read },
    Producer { name: "nccl", literals: nccl::LITERALS, read: nccl::read },
    Producer { name: "python exception", literals: exception::LITERALS, read: exception::read },
];
