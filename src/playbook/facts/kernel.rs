//! What the compiled kernels and the sources among the inputs say, by name.

use crate::case::Case;
use crate::kernel::lint::key;
use crate::kernel::{Answer, Finding};
use crate::text::number::grouped;
use crate::verdict::Verdict;
use crate::verdict::cause::kernel_answer::{Compiled, Wrapping};

use super::super::chain;
use super::super::known::Known;

/// Findings of a source check that are told; the count says how many there are.
const TOLD: usize = 6;

pub(super) fn put(known: &mut Known, case: &Case, verdict: &Verdict, compiled: Option<&Compiled>) {
    match compiled {
        Some(compiled) => compiled_kernel(known, compiled),
        None if case.kernels().next().is_some() => {
            known.put("facts.kernel.answer", "unknown");
            known.put(
                "facts.kernel.why",
                "no compiled kernel among the inputs is named by the failure or by its stack",
            );
        }
        None => {}
    }
    source(known, case, verdict);
}

fn compiled_kernel(known: &mut Known, compiled: &Compiled) {
    known.put("facts.kernel.entry", compiled.entry.as_str());
    known.put(
        "facts.kernel.answer",
        match compiled.answer {
            Answer::Wraps => "wraps",
            Answer::Fits => "fits",
            Answer::Unknown => "unknown",
        },
    );
    known.put("facts.kernel.tried", compiled.tried);
    known.put("facts.kernel.wrapping", compiled.wrapping);
    known.put("facts.kernel.always", compiled.always);
    known.put_some("facts.kernel.why", compiled.why.clone());
    if !compiled.values.is_empty() {
        let values: Vec<String> =
            compiled.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        known.put("facts.kernel.values", values.join(", "));
    }
    if let Some(wrap) = &compiled.wrap {
        wrapping(known, compiled, wrap);
    }
}

fn wrapping(known: &mut Known, compiled: &Compiled, wrap: &Wrapping) {
    known.put("facts.kernel.expression", wrap.expression.as_str());
    known.put("facts.kernel.reaches", wrap.reaches.as_str());
    if let Some(location) = &wrap.location {
        known.put("facts.kernel.file", location.file.as_str());
        known.put("facts.kernel.line", location.line);
        let place = chain::place(Some(&location.file), Some(location.line));
        known.put_some("facts.kernel.place", place);
    }
    known.put_some("facts.kernel.max_value", wrap.max_value.and_then(|max| u64::try_from(max).ok()));
    let Some(sweep) = &wrap.sweep else { return };
    let number = |value: i128| u64::try_from(value).ok();
    known.put("facts.kernel.argument", sweep.name.as_str());
    known.put_some("facts.kernel.safe", number(sweep.safe));
    known.put_some("facts.kernel.first_unsafe", sweep.first_unsafe.and_then(number));
    known.put("facts.kernel.lattice", sweep.lattice);
    known.put_some("facts.kernel.safe_on_lattice", number(sweep.safe_on_lattice));
    let with = wrap.with(&compiled.values);
    known.put_some("facts.kernel.with", (!with.is_empty()).then_some(with));
}

fn source(known: &mut Known, case: &Case, verdict: &Verdict) {
    let sources = case.sources();
    known.put("facts.source.checked", !sources.is_empty());
    let places = &verdict.places;
    let fault = places.fault.as_ref().and_then(|fault| fault.file.as_deref());
    let notice = places.notice.as_ref().and_then(|notice| notice.file.as_deref());
    let python = [fault, notice].into_iter().flatten().find(|file| file.ends_with(".py"));
    known
        .put_some("facts.source.path", python.and_then(|file| shlex::try_quote(file).ok()).map(String::from));
    if sources.is_empty() {
        return;
    }
    let kernels: Vec<_> = sources.iter().flat_map(|source| &source.kernels).collect();
    let findings: Vec<&Finding> = kernels.iter().flat_map(|kernel| &kernel.findings).collect();
    known.put("facts.source.kernels", kernels.len());
    known.put("facts.source.findings", findings.len());
    let mut told: Vec<String> = findings.iter().take(TOLD).map(|finding| tell(finding)).collect();
    told.dedup();
    if findings.len() > TOLD {
        told.push(format!("and {} more", grouped((findings.len() - TOLD) as u128)));
    }
    known.put("facts.source.list", told.join("; "));
}

/// `kernel.py:18 int32_overflow: offs_m * stride_ym`
fn tell(finding: &Finding) -> String {
    let location = finding.location.as_ref();
    let place = location.and_then(|at| chain::place(Some(&at.file), Some(at.line))).unwrap_or_default();
    format!("{place} {}: {}", key(finding.kind), finding.expression)
}
