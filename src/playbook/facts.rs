//! The evidence and the verdict as named values for conditions and sentences.
//!
//! In: a case, its verdict, what was answered. Out: a [`Known`] tree with the names of [`super::names`]. A name is set
//! only where the evidence tells its value: what nobody printed stays missing, and is not false. It decides nothing.

mod asked;
mod events;
mod kernel;
mod launch;
mod probe;
mod ranks;
mod run;
mod shape;
mod verdict;

pub use asked::answers;
pub use run::run;

use crate::case::Case;
use crate::verdict::Verdict;
use crate::verdict::cause::kernel_answer::Compiled;

use super::known::Known;

/// Everything known from the evidence alone. What the compiled kernels answer is asked once for each verdict, by the
/// caller: it costs much more than the rest.
#[must_use]
pub fn evidence(case: &Case, verdict: &Verdict, compiled: Option<&Compiled>) -> Known {
    let mut known = Known::default();
    for root in super::names::ROOTS {
        known.put(root, Known::default());
    }
    limits(&mut known);
    verdict::put(&mut known, case, verdict);
    shape::put(&mut known, verdict);
    ranks::put(&mut known, verdict);
    launch::put(&mut known, case, verdict);
    events::put(&mut known, case, verdict);
    probe::put(&mut known, case, verdict);
    kernel::put(&mut known, case, verdict, compiled);
    known
}

/// Limits of index types and launches. Grid limits: CUDA C Programming Guide, "Technical Specifications per Compute
/// Capability".
fn limits(known: &mut Known) {
    for (name, value) in [
        ("int32", (1_u64 << 31) - 1),
        ("uint32", (1 << 32) - 1),
        ("elements_2_30", (1 << 30) - 1),
        ("grid_x", (1 << 31) - 1),
        ("grid_y", 65_535),
        ("grid_z", 65_535),
        ("block_threads", 1_024),
    ] {
        known.put(&format!("limits.{name}"), value);
    }
}
