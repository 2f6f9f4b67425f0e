//! The list of producers: who wants which lines, in the order in which they are asked.
//!
//! In: nothing. Out: [`PRODUCERS`]. Adding a producer is one file and one row here.

use super::lines::{Cx, Line, Taken};

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
#[rustfmt::skip]
pub static PRODUCERS: &[Producer] = &[
    Producer { name: "stack dump", literals: super::stack_dump::LITERALS, read: super::stack_dump::read },
    Producer { name: "sanitizer", literals: super::sanitizer::LITERALS, read: super::sanitizer::read },
    Producer { name: "python traceback", literals: super::traceback::LITERALS, read: super::traceback::read },
    Producer { name: "process group", literals: super::process_group::LITERALS, read: super::process_group::read },
    Producer { name: "nccl", literals: super::nccl::LITERALS, read: super::nccl::read },
    Producer { name: "python exception", literals: super::exception::LITERALS, read: super::exception::read },
    Producer { name: "device assertion", literals: super::device_assert::LITERALS, read: super::device_assert::read },
    Producer { name: "advice", literals: super::advice::LITERALS, read: super::advice::read },
    Producer { name: "gpu memory", literals: super::gpu_memory::LITERALS, read: super::gpu_memory::read },
    Producer { name: "library status", literals: super::library::LITERALS, read: super::library::read },
    Producer { name: "gpu capability", literals: super::capability::LITERALS, read: super::capability::read },
    Producer { name: "other vendors", literals: super::rocm::LITERALS, read: super::rocm::read },
    Producer { name: "cuda status", literals: super::cuda_status::LITERALS, read: super::cuda_status::read },
    Producer { name: "printed launch", literals: super::launch_line::LITERALS, read: super::launch_line::read },
    Producer { name: "cuda-gdb", literals: super::cuda_gdb::LITERALS, read: super::cuda_gdb::read },
    Producer { name: "kernel log", literals: super::kernel_log::LITERALS, read: super::kernel_log::read },
    Producer { name: "compiler", literals: super::compile::LITERALS, read: super::compile::read },
    Producer { name: "signal", literals: super::signal::LITERALS, read: super::signal::read },
    Producer { name: "environment", literals: super::environment::LITERALS, read: super::environment::read },
    Producer { name: "launcher", literals: super::launcher::LITERALS, read: super::launcher::read },
    Producer { name: "unknown", literals: super::unknown::LITERALS, read: super::unknown::read },
];
