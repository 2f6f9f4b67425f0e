//! Traced launches beside the kernel that ran: can an index of it wrap with exactly these arguments?
//!
//! In: launches that a trace mentions and the compiled kernels of the same trace, or of a cache. Out: [`Traced`] launches, the last one
//! first, each with the kernel's answer under its exact arguments and grid. A traced launch is no failed launch: whether the
//! evidence leads to it is the rules' question.

use crate::case::{Case, EvidenceId, Fact};
use crate::kernel::bind::Expr;
use crate::kernel::interval::{Interval, Sign};
use crate::kernel::{Assigned, Bindings, Kernel, assign};
use crate::read::event::{Data, Event, LaunchMention};

use super::failure::Failure;

/// Launches that are looked at.
const LAUNCH_LIMIT: usize = 32;

/// A traced launch whose compilation is at hand.
#[derive(Debug)]
pub struct Traced<'a> {
    /// Evidence of the launch.
    pub evidence: EvidenceId,
    /// The record.
    pub event: &'a Event,
    /// What it says.
    pub launch: &'a LaunchMention,
    /// Evidence of the kernel.
    pub kernel_evidence: EvidenceId,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its exact arguments and grid.
    pub bindings: Bindings,
    /// The answer.
    pub assigned: Assigned,
}

impl Traced<'_> {
    /// Whether nothing wraps under these arguments, for certain.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.assigned.tried == 1 && self.assigned.counterexample.is_some()
    }

    /// Whether an index wraps under these arguments, for certain.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.assigned.tried == 1 && self.assigned.always_wraps()
    }
}

/// The traced launches that may belong to the process that failed.
#[must_use]
pub fn traced<'a>(case: &'a Case, root: &Failure) -> Vec<Traced<'a>> {
    let mut found: Vec<Traced<'a>> = case
        .pick(|data| match data {
            Data::LaunchMention(launch) if launch.compilation.is_some() => Some(launch),
            _ => None,
        })
        .filter(|(_, event, _)| same_rank(event, root))
        .take(LAUNCH_LIMIT)
        .filter_map(|(evidence, event, launch)| {
            let (kernel_evidence, kernel) = compiled(case, launch)?;
            let bindings = bindings(kernel, launch);
            let assigned = assign(kernel, &bindings, &[]);
            Some(Traced { evidence, event, launch, kernel_evidence, kernel, bindings, assigned })
        })
        .collect();
    found.sort_by_key(|traced| !traced.launch.last_of_trace);
    found
}

/// Whether a record may come from the rank that failed: one that names another rank does not.
#[must_use]
pub fn same_rank(event: &Event, root: &Failure) -> bool {
    root.rank.is_none() || event.origin.rank.is_none() || root.rank == event.origin.rank
}

/// The kernel by its compilation's hash: a name alone may be another specialisation.
fn compiled<'a>(case: &'a Case, launch: &LaunchMention) -> Option<(EvidenceId, &'a Kernel)> {
    case.kernels().find(|(id, kernel)| {
        compilation_of(case, *id) == launch.compilation.as_deref() && kernel.model.entry == launch.kernel
    })
}

/// The hash of the compilation that a kernel's evidence stands for; a trace and a cache give the same one.
#[must_use]
pub fn compilation_of(case: &Case, kernel: EvidenceId) -> Option<&str> {
    match &case.get(kernel)?.fact {
        Fact::Event(event) => match &event.data {
            Data::CompiledKernel(found) => found.compilation.as_deref(),
            _ => None,
        },
        Fact::Derived(_) => None,
    }
}

fn bindings(kernel: &Kernel, launch: &LaunchMention) -> Bindings {
    let mut bindings = Bindings::default();
    for (name, value) in &launch.arguments {
        let param = kernel.model.params.iter().find(|param| param.name == *name);
        // A truth value of one bit, and a number that its type reads otherwise, stay open: nothing is claimed with them.
        let holds = |value: i128| {
            let width = param.and_then(|param| param.int_width).filter(|width| *width > 1);
            width.is_some_and(|width| Interval::of_type(width, Sign::Signed).holds(value))
        };
        if let Some(value) = value.parse::<i128>().ok().filter(|value| holds(*value)) {
            bindings.values.insert(name.clone(), value);
        }
    }
    if let Some(grid) = launch.grid {
        bindings.grid = grid.map(|size| Some(Expr::Number(i128::from(size))));
    }
    bindings
}
