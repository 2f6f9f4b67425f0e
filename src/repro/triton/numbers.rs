//! Why more than one size is called safe.
//!
//! In: the shape's arithmetic, the kernel's own boundary, what sizes are multiples of. Out: one or two sentences, where the
//! numbers differ. A reader meets the first in the report, the second in `warpfault kernel`, the third in the table.

use super::super::facts::Facts;
use super::bind::Prepared;
use crate::kernel::{FindingKind, ask};
use crate::probe::binding;
use crate::probe::plan::Predicted;
use crate::text::number::grouped_signed;

/// The sentences.
pub(super) fn sentence(
    facts: &Facts<'_>,
    prepared: &Prepared,
    boundary: Predicted,
    sizes: &[i64],
) -> Option<String> {
    let n = |size: i64| grouped_signed(i128::from(size));
    let sweep = &prepared.sweep;
    let mut parts = Vec::new();
    let (exact, expression) = of_kernel(prepared)?;
    let arithmetic = of_shape(facts, prepared).filter(|size| *size != exact);
    if let Some(size) = arithmetic {
        parts.push(format!(
            "{} by the shape alone, which takes row × stride + column as one 32-bit number",
            n(size)
        ));
    }
    if arithmetic.is_some() || exact != boundary.last_pass {
        parts.push(format!(
            "{} as the kernel is compiled, which forms {expression} in 32 bits ({} is the first to wrap)",
            n(exact),
            n(exact.saturating_add(1))
        ));
    }
    if exact != boundary.last_pass {
        parts.push(format!(
            "{} because the compiled code takes multiples of {} only (tt.divisibility), of which {} is the next and wraps",
            n(boundary.last_pass),
            prepared.lattice,
            n(boundary.first_fail)
        ));
    }
    let row = sizes.iter().rev().find(|size| **size <= boundary.last_pass).copied();
    if let Some(row) = row.filter(|row| *row != boundary.last_pass && *row != exact) {
        let step = facts.verdict.shapes.iter().find_map(|shape| {
            let safe = shape.boundary.safe_multiple.and_then(|safe| i64::try_from(safe).ok());
            (safe == Some(row)).then_some(shape.boundary.granularity)
        });
        let step = step.map(|step| format!(", like the reported size a multiple of {step}"));
        parts.push(format!("{} in the table{}", n(row), step.unwrap_or_default()));
    }
    (parts.len() > 1).then(|| {
        format!(
            "More than one size of {sweep} is called the last safe one, each for its reason: {}.",
            parts.join("; ")
        )
    })
}

/// The greatest size at which no 32-bit index of the kernel wraps, off its lattice too; and the index that wraps first.
fn of_kernel(prepared: &Prepared) -> Option<(i64, String)> {
    let job = &prepared.job;
    let kernel = job.target.kernel.as_deref()?;
    let swept = Some((prepared.sweep.as_str(), prepared.lattice));
    let mut values = binding::values(&job.target, &job.spec, swept).ok()?;
    values.bindings.values.remove(&prepared.sweep);
    let analysis = ask(kernel, &values.bindings, Some(&prepared.sweep));
    let wraps = analysis.findings.iter().filter(|finding| finding.kind == FindingKind::Int32Overflow);
    wraps
        .filter_map(|finding| {
            let sweep = finding.sweep.as_ref().filter(|sweep| sweep.name == prepared.sweep)?;
            Some((i64::try_from(sweep.safe).ok()?, finding.expression.clone()))
        })
        .min()
}

/// The greatest size by the arithmetic of the shape whose swept dimension is the reported size.
fn of_shape(facts: &Facts<'_>, prepared: &Prepared) -> Option<i64> {
    let shape = facts.verdict.shapes.iter().find(|shape| {
        let value = shape.mention.dims.get(shape.sweep).and_then(|dim| i64::try_from(*dim).ok());
        value.is_some() && value == prepared.reported && shape.overflows()
    })?;
    i64::try_from(shape.boundary.safe?).ok()
}
