//! What a trace proves: the kernel of a traced launch forms an index that wraps with exactly these arguments.
//!
//! In: traced launches with their compiled kernels. Out: `int32_overflow`, *supported* where the evidence leads to that
//! kernel by name or by a file of the traceback, *suspected* where only the trace's end points to it. Earlier launches
//! count only where the evidence leads to their kernel.

use crate::kernel::{FindingKind, ask};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::text::number::grouped;

use super::super::failure::Certainty;
use super::super::launches::{Traced, traced};
use super::compiled::{entry_of, forms_in_32_bits, leads_to, replays_a_graph, safe_up_to};
use super::{Hypothesis, View};

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    let found = culprit(view).and_then(|(traced, suspect)| explain(view, &traced, suspect));
    found.into_iter().collect()
}

/// The traced launch whose index wraps for certain and that the evidence leads to; and whether it leads there by a name or
/// a file (`true`), or by the trace's end alone.
#[must_use]
pub fn culprit<'a>(view: &View<'a>) -> Option<(Traced<'a>, bool)> {
    if view.root.class != FailureClass::IllegalAddress || replays_a_graph(view) {
        return None;
    }
    let known_kernel = view.places.fault.as_ref().is_some_and(|fault| fault.kernel.is_some());
    traced(view.case, view.root)
        .into_iter()
        // A debug build checks its own arithmetic: it fails in another way.
        .filter(|traced| {
            traced.wraps() && entry_of(view, traced.kernel_evidence).is_some_and(|entry| !entry.debug)
        })
        .map(|traced| {
            let suspect = leads_to(view, traced.kernel);
            (traced, suspect)
        })
        // Where the fault's own kernel is known, another one's launch explains nothing.
        .filter(|(traced, suspect)| *suspect || (!known_kernel && traced.launch.last_of_trace))
        .max_by_key(|(traced, suspect)| (*suspect, traced.launch.last_of_trace))
}

fn explain(view: &View<'_>, traced: &Traced<'_>, suspect: bool) -> Option<Hypothesis> {
    let analysis = ask(traced.kernel, &traced.bindings, None);
    let finding = analysis.findings.iter().find(|finding| finding.kind == FindingKind::Int32Overflow)?;
    let mut summary = forms_in_32_bits(&traced.kernel.model.entry, finding);
    let which = if traced.launch.last_of_trace { "the last traced launch" } else { "a traced launch" };
    summary.push_str(&format!(": it wraps with the exact arguments of {which} ({})", arguments(traced)));
    summary.push_str(&safe_up_to(view, finding, &traced.bindings.values));
    let mut supports = vec![traced.evidence, traced.kernel_evidence];
    supports.extend(view.places.notice.iter().flat_map(|notice| notice.evidence.iter().copied()));
    let mut would_settle =
        vec!["rerun this kernel just below and past the boundary: a pass and a failure prove it".to_owned()];
    if !suspect {
        would_settle.insert(0, "the trace ends in this launch and nothing else names it: rerun with CUDA_LAUNCH_BLOCKING=1 or under memcheck to see which launch fails".to_owned());
    }
    Some(Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::Int32Overflow),
        certainty: if suspect { Certainty::Supported } else { Certainty::Suspected },
        summary,
        supports,
        against: Vec::new(),
        would_settle,
    })
}

/// `M 234,624, N 9,216; grid 1,833 × 72 × 1`
pub(in crate::verdict) fn arguments(traced: &Traced<'_>) -> String {
    let parameters = traced.kernel.model.params.iter();
    let values: Vec<String> = parameters
        .filter_map(|param| {
            let value = traced.bindings.values.get(&param.name)?;
            let sign = if *value < 0 { "-" } else { "" };
            Some(format!("{} {sign}{}", param.name, grouped(value.unsigned_abs())))
        })
        .collect();
    let grid = traced.launch.grid.map(|grid| grid.map(|size| grouped(u128::from(size))).join(" × "));
    match grid {
        Some(grid) => format!("{}; grid {grid}", values.join(", ")),
        None => values.join(", "),
    }
}
