//! A dump's most trusted fault as the event that every other reader of faulting launches gives.
//!
//! In: a [`DumpSummary`]. Out: [`FaultingLaunch`]. It leaves alone the other faults and the registers.

use crate::read::event::FaultingLaunch;

use super::{DumpSummary, exceptions};

/// The launch at fault; `None` where the dump holds neither a fault nor a single running launch.
#[must_use]
pub fn faulting_launch(summary: &DumpSummary) -> Option<FaultingLaunch> {
    let (fault, grid) = (summary.fault(), summary.faulting_grid());
    if fault.is_none() && grid.is_none() {
        return None;
    }
    let kernel =
        grid.and_then(|grid| grid.kernel.as_ref()).or_else(|| fault.and_then(|f| f.function.as_ref()));
    let number = fault.map(|fault| fault.exception).filter(|number| *number != 0);
    let arguments = grid.map_or_else(Vec::new, |grid| {
        grid.arguments.iter().map(|argument| (format!("arg{}", argument.ordinal), argument.text())).collect()
    });
    Some(FaultingLaunch {
        kernel: kernel.map(|kernel| kernel.name.clone()),
        exception: number.map(|number| {
            exceptions::name(number).map_or_else(|| format!("exception {number}"), str::to_owned)
        }),
        exception_number: number,
        grid: grid.map(|grid| grid.grid),
        block_dim: grid.map(|grid| grid.block),
        block: fault.and_then(|fault| fault.block),
        thread: fault.and_then(|fault| fault.thread),
        pc: fault.and_then(|fault| fault.pc),
        place: fault.and_then(|fault| fault.place.clone()),
        arguments,
        dump: None,
    })
}
