//! A dump as events: its most trusted fault, and what it knows about the machine.
//!
//! In: a [`DumpSummary`]. Out: the same [`FaultingLaunch`] that readers of logs give, and facts of the environment. It
//! leaves alone the other faults and the registers.

use crate::read::event::{EnvironmentFact, FaultingLaunch};

use super::{Argument, DumpSummary, exceptions};

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
        let name =
            |argument: &Argument| argument.name.clone().unwrap_or_else(|| format!("arg{}", argument.ordinal));
        grid.arguments.iter().map(|argument| (name(argument), argument.text())).collect()
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

/// Driver, CUDA, GPU and launch mode, under the names that other readers use for them.
#[must_use]
pub fn environment_facts(summary: &DumpSummary) -> Vec<EnvironmentFact> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| facts.push(EnvironmentFact { name: name.to_owned(), value });
    if let Some(metadata) = summary.metadata {
        add("driver", format!("{}.{}", metadata.driver.0, metadata.driver.1));
        add("cuda", format!("{}.{}", metadata.cuda.0, metadata.cuda.1));
    }
    for device in &summary.devices {
        if let Some(name) = &device.name {
            add("gpu", name.clone());
        }
        add("compute_capability", format!("{}.{}", device.compute_capability.0, device.compute_capability.1));
    }
    if summary.grids.iter().any(|grid| grid.launch_blocking) {
        add("CUDA_LAUNCH_BLOCKING", "1".to_owned());
    }
    facts
}
