//! A CUDA core dump (`core.nvcudmp`), read without cuda-gdb.
//!
//! In: the file's bytes, whole or cut. Out: a [`DumpSummary`]: what ran, which warps raised an exception and at which
//! source line, the launch's arguments, the registers of the lanes at fault, the PTX that the kernel carries; and a
//! diagnostic for each thing that could not be read. It leaves alone causes, and stack, shared and local memory.
//!
//! The layout is described in `rows` (tables) and `sections` (kinds). Everything is read in place; what is kept is
//! bounded however large the dump is.

use crate::image::elf::{Elf, MACHINE_CUDA};

pub mod arguments;
mod assemble;
mod carve;
pub mod displacement;
pub mod exceptions;
mod faults;
mod images;
mod lanes;
mod launch;
mod rows;
mod sections;
mod summary;
#[cfg(test)]
mod tests;

pub use arguments::{Argument, ArgumentKind};
pub use displacement::{Agreement, Displaced, RowIs, displaced};
pub use faults::{Counts, PcSource};
pub use lanes::{Lane, OddRegister};
pub use launch::{environment_facts, faulting_launch};
pub use rows::Metadata;
pub use summary::{Context, Device, DumpSummary, Fault, Grid, Image, KernelName, Memory};

/// Faults that are described; a wrapped index in a large grid raises one in every warp on the GPU.
const FAULTS_KEPT: usize = 256;

/// `e_type` of a core file.
const CORE_FILE: u16 = 4;

/// True for bytes that start like a CUDA core dump.
#[must_use]
pub fn looks_like_core_dump(bytes: &[u8]) -> bool {
    Elf::parse(bytes).is_ok_and(|elf| elf.machine == MACHINE_CUDA && elf.file_type == CORE_FILE)
}

/// Reads a core dump. Never fails: what can't be read is said in the diagnostics.
#[must_use]
pub fn read(bytes: &[u8]) -> (DumpSummary, Vec<String>) {
    let mut diagnostics = Vec::new();
    let elf = match Elf::parse(bytes) {
        Ok(elf) => elf,
        Err(reason) => return (DumpSummary::default(), vec![format!("core dump: {reason}")]),
    };
    if elf.machine != MACHINE_CUDA || elf.file_type != CORE_FILE {
        let (file_type, machine) = (elf.file_type, elf.machine);
        diagnostics
            .push(format!("core dump: ELF type {file_type} for machine {machine} is no CUDA core dump"));
        return (DumpSummary::default(), diagnostics);
    }
    let (there, claimed) = (elf.section_count(), elf.claimed_sections());
    let length = bytes.len();
    if there == 0 {
        // The count of a large dump stands in its first section header, so it isn't known here.
        diagnostics.push(format!(
            "core dump: cut at {length} bytes, before its section table: the process ended before the driver had written it, \
             or the copy is short"
        ));
    } else if u64::from(there) < claimed {
        diagnostics.push(format!(
            "core dump: cut at {length} bytes; {there} of {claimed} section headers are there"
        ));
    }
    if there <= 1 {
        return (carve::recover(bytes, &mut diagnostics), diagnostics);
    }
    let summary = assemble::Reader::new(&elf, &mut diagnostics).summary();
    (summary, diagnostics)
}
