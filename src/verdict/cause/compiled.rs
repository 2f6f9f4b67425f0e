//! What the compiled kernel says: can a 32-bit index of it wrap with the numbers of the log?
//!
//! In: compiled kernels whose source file stands in the traceback, or whose name the evidence gives, and the numbers that
//! the failing process printed. Out: `int32_overflow`, *supported* where it wraps under every way in which the numbers fit
//! the kernel's arguments, *suspected* where it wraps under some; nothing where it fits.

use std::collections::BTreeMap;

use crate::case::EvidenceId;
use crate::kernel::{Assigned, Bindings, Finding, FindingKind, Kernel, Number, ask, assign};
use crate::read::event::{CompiledKernel, Data, GraphMention};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::text::number::grouped;

use super::super::failure::Certainty;
use super::super::launches::{compilation_of, traced};
use super::super::shapes::{Likelihood, ShapeRow};
use super::super::summary::base_name;
use super::super::told::{is_named, told};
use super::overflow::passed_words;
use super::{Hypothesis, View};

/// Kernels that are tried: suspects by file or name, the first of a cache.
const KERNEL_LIMIT: usize = 32;
/// Numbers of the log that are tried as arguments.
const NUMBER_LIMIT: usize = 6;

/// A kernel that the evidence leads to and that wraps with the numbers of the incident.
#[derive(Debug)]
pub struct Suspect<'a> {
    /// The evidence that stands for it.
    pub evidence: EvidenceId,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// What stands about its cache entry.
    pub entry: &'a CompiledKernel,
    /// How it stands to the numbers.
    pub assigned: Assigned,
}

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    suspects(view).first().and_then(|suspect| explain(view, suspect)).into_iter().collect()
}

/// The kernels that wrap, the likeliest first. A debug build checks its own arithmetic: it fails in another way.
#[must_use]
pub fn suspects<'a>(view: &View<'a>) -> Vec<Suspect<'a>> {
    if view.root.class != FailureClass::IllegalAddress || replays_a_graph(view) {
        return Vec::new();
    }
    let numbers = numbers(view);
    // What a trace says about a kernel's own arguments is better than numbers of a log.
    let ran_safely: Vec<&str> = traced(view.case, view.root)
        .iter()
        .filter(|traced| traced.launch.last_of_trace && traced.fits())
        .filter_map(|traced| traced.launch.compilation.as_deref())
        .collect();
    let ran = |id| compilation_of(view.case, id).is_some_and(|hash| ran_safely.contains(&hash));
    let mut found: Vec<Suspect<'a>> = view
        .case
        .kernels()
        .filter(|(id, kernel)| leads_to(view, kernel) && !ran(*id))
        .take(KERNEL_LIMIT)
        .filter_map(|(evidence, kernel)| {
            let base = launch_arguments(view, kernel);
            if numbers.is_empty() && base.values.is_empty() {
                return None;
            }
            // What a tool read off the launch needs no guess.
            let tried: &[Number] = if base.values.is_empty() { &numbers } else { &[] };
            let assigned = assign(kernel, &base, tried);
            let entry = entry_of(view, evidence)?;
            assigned.sometimes_wraps().then_some(Suspect { evidence, kernel, entry, assigned })
        })
        .collect();
    found.sort_by_key(|suspect| {
        let assigned = &suspect.assigned;
        std::cmp::Reverse((!suspect.entry.debug, assigned.always_wraps(), assigned.wrapping))
    });
    found
}

/// What stands about the cache entry of a kernel.
#[must_use]
pub fn entry_of<'a>(view: &View<'a>, evidence: EvidenceId) -> Option<&'a CompiledKernel> {
    match &view.case.get(evidence)?.fact {
        crate::case::Fact::Event(event) => match &event.data {
            Data::CompiledKernel(entry) => Some(entry),
            _ => None,
        },
        crate::case::Fact::Derived(_) => None,
    }
}

/// The grid of a launch whose arguments are known, and its integers by the kernel's own names.
#[must_use]
pub fn launch_arguments(view: &View<'_>, kernel: &Kernel) -> Bindings {
    told(view.case, view.root, kernel).map(|told| told.bindings(kernel)).unwrap_or_default()
}

/// A replayed graph fails for reasons of its own.
pub(super) fn replays_a_graph(view: &View<'_>) -> bool {
    view.case.pick(|data| matches!(data, Data::Graph(GraphMention::Replay)).then_some(())).next().is_some()
}

/// Whether the evidence leads to this kernel: by its name, or by a source file in a traceback.
#[must_use]
pub fn leads_to(view: &View<'_>, kernel: &Kernel) -> bool {
    if let Some(name) = view.places.fault.as_ref().and_then(|fault| fault.kernel.as_deref()) {
        return is_named(&kernel.model.entry, name);
    }
    let files: Vec<&str> =
        kernel.model.origins.iter().flatten().map(|location| base_name(&location.file)).collect();
    view.case
        .pick(|data| match data {
            Data::Traceback(traceback) => Some(traceback),
            _ => None,
        })
        .any(|(_, _, traceback)| traceback.frames.iter().any(|frame| files.contains(&base_name(&frame.file))))
}

/// The likeliest shape.
fn numbers_from<'a>(view: &View<'a>) -> Option<&'a ShapeRow> {
    view.shapes.iter().find(|shape| shape.likelihood >= Likelihood::Near)
}

/// The numbers on the lines that print the likeliest shape: each has to be some argument's.
#[must_use]
pub fn numbers(view: &View<'_>) -> Vec<Number> {
    let Some(first) = numbers_from(view) else { return Vec::new() };
    let line = |shape: &ShapeRow| {
        view.case.get(shape.evidence).and_then(|evidence| match &evidence.fact {
            crate::case::Fact::Event(event) => Some((event.span.input, event.span.line)),
            crate::case::Fact::Derived(_) => None,
        })
    };
    let at = line(first);
    let mut found: Vec<Number> = Vec::new();
    for shape in view.shapes.iter().filter(|shape| line(shape) == at) {
        for (dim, value) in shape.mention.dims.iter().enumerate() {
            let value = i128::from(*value);
            let name = shape.mention.names.get(dim).cloned();
            let known = found.iter().position(|number| number.value == value);
            if let Some(known) = known.and_then(|at| found.get_mut(at)) {
                known.name = known.name.take().or(name);
            } else if found.len() < NUMBER_LIMIT {
                found.push(Number { value, name, must_appear: true });
            }
        }
    }
    found
}

fn explain(view: &View<'_>, suspect: &Suspect<'_>) -> Option<Hypothesis> {
    let (id, kernel, assigned) = (suspect.evidence, suspect.kernel, &suspect.assigned);
    let example = assigned.example.as_deref()?;
    let bindings = Bindings { values: example.assumptions.clone(), ..launch_arguments(view, kernel) };
    let analysis = ask(kernel, &bindings, None);
    let finding = analysis.findings.iter().find(|finding| finding.kind == FindingKind::Int32Overflow)?;
    let always = assigned.always_wraps();
    let from_launch = !launch_arguments(view, kernel).values.is_empty();
    let ran = numbers_from(view).filter(|_| !from_launch).and_then(|shape| Some((shape, shape.passed()?)));
    let certainty = if always && ran.is_none() { Certainty::Supported } else { Certainty::Suspected };
    let mut supports = vec![id];
    supports.extend(view.shapes.first().map(|shape| shape.evidence));
    supports.extend(view.places.notice.iter().flat_map(|notice| notice.evidence.iter().copied()));
    let mut summary =
        sentence(view, &kernel.model.entry, finding, assigned, &example.assumptions, from_launch);
    if let Some((_, passed)) = ran {
        summary.push_str(&format!(". Against it: {}", passed_words(passed)));
    }
    Some(Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::Int32Overflow),
        certainty,
        summary,
        supports,
        against: ran.map(|(shape, _)| shape.evidence).into_iter().collect(),
        would_settle: vec![
            "rerun this kernel just below and past the boundary: a pass and a failure prove it".to_owned(),
        ],
    })
}

fn sentence(
    view: &View<'_>,
    entry: &str,
    finding: &Finding,
    assigned: &Assigned,
    values: &BTreeMap<String, i128>,
    from_launch: bool,
) -> String {
    let mut text = forms_in_32_bits(entry, finding);
    text.push_str(&match (assigned.always_wraps(), assigned.tried) {
        (true, 1) if from_launch => ": it wraps with the arguments of the launch".to_owned(),
        (true, 1) => ": it wraps with the log's numbers as its arguments".to_owned(),
        (true, tried) => {
            format!(": it wraps under each of the {tried} ways in which the log's numbers fit its arguments")
        }
        (false, tried) => format!(
            ": it wraps under {} of the {tried} ways in which the log's numbers fit its arguments",
            assigned.wrapping
        ),
    });
    text.push_str(&safe_up_to(view, finding, values));
    text
}

/// Which index is formed in 32 bits, where, and how far it goes.
pub(super) fn forms_in_32_bits(entry: &str, finding: &Finding) -> String {
    let place = finding
        .location
        .as_ref()
        .map(|location| format!(" at {}:{}", base_name(&location.file), location.line))
        .unwrap_or_default();
    let mut text = format!(
        "the compiled kernel {entry} forms {} in 32 bits{place} on the way to the {}",
        finding.expression, finding.reaches
    );
    if let Some(max) = finding.max_value.and_then(|max| u128::try_from(max).ok()) {
        text.push_str(&format!(", up to {}", grouped(max)));
    }
    text
}

/// `; safe up to M 233,016 with stride_ym 9,216`, where the kernel says so.
pub(super) fn safe_up_to(view: &View<'_>, finding: &Finding, values: &BTreeMap<String, i128>) -> String {
    let mut text = String::new();
    if let Some(sweep) = &finding.sweep
        && let Ok(safe) = u128::try_from(sweep.safe)
    {
        let with: Vec<String> = values
            .iter()
            .filter(|(name, _)| **name != sweep.name && finding.expression.contains(name.as_str()))
            .map(|(name, value)| format!("{name} {}", grouped(value.unsigned_abs())))
            .collect();
        let with = if with.is_empty() { String::new() } else { format!(" with {}", with.join(", ")) };
        text.push_str(&format!("; safe up to {} {}{with}", sweep.name, grouped(safe)));
        text.push_str(&difference(view, safe));
    }
    text
}

/// Why the arithmetic bound of the shape and the kernel's differ, where they do.
fn difference(view: &View<'_>, safe: u128) -> String {
    let Some(arithmetic) =
        view.shapes.iter().find(|shape| shape.overflows()).and_then(|shape| shape.boundary.safe)
    else {
        return String::new();
    };
    if arithmetic == safe {
        return String::new();
    }
    format!(
        ". The arithmetic bound is {}: it takes row × stride + column as one 32-bit number, which is all that a log can tell; \
         the kernel says what is really formed in 32 bits",
        grouped(arithmetic)
    )
}
