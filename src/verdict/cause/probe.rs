//! What a rerun at the boundary says about this incident, and what it doesn't.
//!
//! In: reports of the probe, the compiled kernels, the sizes of the log. Out: [`Reading`]s, and `int32_overflow` raised to
//! *proven* or lowered. It is proven only where everything fits: the trials bear out the conclusion, the kernel is the one
//! that the evidence names, its failure is the incident's, its boundary was predicted, and the incident's size lies past
//! it. A report that disagrees with the log raises nothing, and says why. The built-in reference kernel proves the
//! arithmetic, never the user's kernel.

use crate::arith::Expect;
use crate::case::EvidenceId;
use crate::kernel::bind::Expr;
use crate::kernel::{Bindings, FindingKind, Kernel, ask};
use crate::read::event::{Data, ProbeBoundary, ProbeFinding, ProbeReport, ProbeTrial};
use crate::tables::cause::CauseKind;
use crate::text::number::grouped;

use super::super::failure::Certainty;
use super::super::shapes::{Likelihood, ShapeRow};
use super::super::told;
use super::{Hypothesis, View, compiled};

/// Reports that are weighed.
const REPORT_LIMIT: usize = 16;

/// What a report does to the overflow as the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It proves it.
    Proves,
    /// It contradicts it.
    Contradicts,
    /// It leaves it as it is.
    Open,
}

/// A report with what it says about the incident.
#[derive(Debug, Clone)]
pub struct Reading<'a> {
    /// The evidence that stands for it.
    pub evidence: EvidenceId,
    /// The report.
    pub report: &'a ProbeReport,
    /// What it does.
    pub standing: Standing,
    /// The reason, in a sentence without its end.
    pub why: String,
}

/// Reads every report.
#[must_use]
pub fn readings<'a>(view: &View<'a>) -> Vec<Reading<'a>> {
    view.case
        .pick(|data| match data {
            Data::Probe(report) => Some(&**report),
            _ => None,
        })
        .take(REPORT_LIMIT)
        .map(|(evidence, _, report)| {
            let (standing, why) = weigh(view, report);
            Reading { evidence, report, standing, why }
        })
        .collect()
}

/// Raises or lowers the overflow among the hypotheses.
pub fn apply(view: &View<'_>, all: &mut Vec<Hypothesis>) {
    let readings = readings(view);
    let of = |standing| readings.iter().find(|reading| reading.standing == standing);
    match (of(Standing::Proves), of(Standing::Contradicts)) {
        (Some(proof), None) => raise(view, proof, all),
        (None, Some(contradiction)) => lower(contradiction, all),
        (Some(proof), Some(contradiction)) => disagree(proof, contradiction, all),
        (None, None) => {}
    }
}

fn raise(view: &View<'_>, proof: &Reading<'_>, all: &mut Vec<Hypothesis>) {
    let known = all.iter().position(|hypothesis| hypothesis.cause == Some(CauseKind::Int32Overflow));
    let before = known.map(|at| all.remove(at));
    let mut supports = vec![proof.evidence];
    supports.extend(before.iter().flat_map(|hypothesis| hypothesis.supports.iter().copied()));
    let mut summary = proof.why.clone();
    if let Some(before) = &before {
        // What made it likely; the rest stands in the checks.
        let reason =
            before.summary.split("; ").next().and_then(|part| part.split(". ").next()).unwrap_or_default();
        summary.push_str("; ");
        summary.push_str(reason);
    }
    all.push(Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::Int32Overflow),
        certainty: Certainty::Proven,
        summary,
        supports,
        against: before.map(|hypothesis| hypothesis.against).unwrap_or_default(),
        would_settle: Vec::new(),
    });
}

fn lower(contradiction: &Reading<'_>, all: &mut [Hypothesis]) {
    let overflow = all.iter_mut().filter(|hypothesis| hypothesis.cause == Some(CauseKind::Int32Overflow));
    for hypothesis in overflow {
        hypothesis.certainty = match hypothesis.certainty {
            Certainty::Proven | Certainty::Supported => Certainty::Suspected,
            Certainty::Suspected | Certainty::Undecided => Certainty::Undecided,
        };
        hypothesis.against.push(contradiction.evidence);
        hypothesis.summary = format!("contradicted: {}. {}", contradiction.why, hypothesis.summary);
    }
}

/// One build fails there and another doesn't, say: people must look which of them crashed.
fn disagree(proof: &Reading<'_>, contradiction: &Reading<'_>, all: &mut [Hypothesis]) {
    let overflow = all.iter_mut().filter(|hypothesis| hypothesis.cause == Some(CauseKind::Int32Overflow));
    for hypothesis in overflow {
        hypothesis.supports.push(proof.evidence);
        hypothesis.against.push(contradiction.evidence);
        hypothesis.summary = format!("two probes disagree, so neither counts. {}", hypothesis.summary);
    }
}

fn weigh(view: &View<'_>, report: &ProbeReport) -> (Standing, String) {
    let open = |why: String| (Standing::Open, why);
    let said = said(report);
    match report.conclusion {
        None => open(format!("{said}: it was a dry run, and nothing was run")),
        Some(ProbeFinding::Inconclusive) => open(format!("{said}, which settles nothing: {}", report.why)),
        Some(ProbeFinding::Refuted) => match refutes(view, report) {
            Ok(()) => {
                (Standing::Contradicts, format!("{said} and refutes the predicted boundary: {}", report.why))
            }
            Err(why) => {
                open(format!("{said} and finds no boundary, but {why}: it says nothing about this log"))
            }
        },
        Some(ProbeFinding::Confirmed) => match proves(view, report) {
            Ok(size) => (Standing::Proves, format!("{said}: {}", proof(report, &size))),
            Err(why) => {
                open(format!("{said} and confirms its boundary, but {why}: it proves nothing about this log"))
            }
        },
    }
}

/// `a probe reran fused_lora_xw_kernel on NVIDIA H200`
fn said(report: &ProbeReport) -> String {
    let device = report.device.as_ref().map(|device| format!(" on {}", device.name)).unwrap_or_default();
    let which = if report.is_reference() { "the built-in reference kernel" } else { &report.kernel.entry };
    format!("a probe reran {which}{device}")
}

fn proof(report: &ProbeReport, size: &Size) -> String {
    let name = report.sweep.as_deref().unwrap_or("the size");
    let mut text = format!(
        "{name} = {} passes, {} ends with illegal_address, as predicted, each in a process of its own, and {}{} lies past it",
        number(report.boundary.last_pass),
        number(report.boundary.first_fail),
        size.words,
        if size.was_tried { " (which fails there too)" } else { "" },
    );
    if let Some(control) = report.control.as_ref().filter(|control| !control.trials.is_empty()) {
        text.push_str(&format!("; the fixed kernel {} passes there", control.kernel.entry));
    }
    text
}

fn number(value: Option<i64>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| grouped(u128::from(value.unsigned_abs())))
}

/// The incident's size of the swept argument.
struct Size {
    value: i64,
    words: String,
    was_tried: bool,
}

/// What keeps a confirmed report from proving this incident's cause; the incident's size where nothing does.
fn proves(view: &View<'_>, report: &ProbeReport) -> Result<Size, String> {
    if report.is_reference() {
        return Err("the reference kernel shows the arithmetic and not your kernel".to_owned());
    }
    bears_out(report)?;
    if view.root.class.name() != FAILS_WITH {
        return Err(format!("its failure is {FAILS_WITH} and the log's is {}", view.root.class.name()));
    }
    is_the_kernel(view, report)?;
    was_predicted(view, report)?;
    let size = size(view, report)?;
    match report.boundary.first_fail {
        Some(first_fail) if size.value >= first_fail => Ok(size),
        _ => Err(format!("{} does not lie past the boundary", size.words)),
    }
}

/// How a wrapped index ends where everything around a buffer is unmapped.
const FAILS_WITH: &str = "illegal_address";

/// Whether the trials say what the report concludes.
fn bears_out(report: &ProbeReport) -> Result<(), String> {
    let wrong = || Err("its trials don't bear that out".to_owned());
    let ProbeBoundary { last_pass: Some(last_pass), first_fail: Some(first_fail) } = report.boundary else {
        return wrong();
    };
    if report.predicted != Some(report.boundary) || last_pass >= first_fail {
        return wrong();
    }
    let holds = |trial: &ProbeTrial| match trial.value() {
        Some(value) if trial.guards_start() || value <= last_pass => trial.ended("pass"),
        Some(value) => value >= first_fail && trial.ended(FAILS_WITH),
        None => false,
    };
    let tried =
        |value| report.trials.iter().any(|trial| trial.value() == Some(value) && !trial.guards_start());
    let control = report.control.iter().flat_map(|control| &control.trials);
    let fine = report.trials.iter().all(holds)
        && tried(last_pass)
        && tried(first_fail)
        && control.into_iter().all(|trial| trial.ended("pass"));
    if fine { Ok(()) } else { wrong() }
}

/// Whether it is the kernel that the evidence names.
fn is_the_kernel(view: &View<'_>, report: &ProbeReport) -> Result<(), String> {
    let entry = report.kernel.entry.as_str();
    if let Some(named) = view.places.fault.as_ref().and_then(|fault| fault.kernel.as_deref()) {
        return if named == entry { Ok(()) } else { Err(format!("the fault was in {named}")) };
    }
    let suspect = view
        .case
        .kernels()
        .any(|(_, kernel)| kernel.model.entry == entry && compiled::leads_to(view, kernel));
    if suspect { Ok(()) } else { Err(format!("nothing in the inputs leads to {entry}")) }
}

/// Whether the compiled kernel among the inputs has its boundary there; without one, the report's own prediction counts,
/// which the probe made from the code that it ran.
fn was_predicted(view: &View<'_>, report: &ProbeReport) -> Result<(), String> {
    let own: Vec<&Kernel> = view
        .case
        .kernels()
        .map(|(_, kernel)| kernel)
        .filter(|kernel| kernel.model.entry == report.kernel.entry)
        .take(8)
        .collect();
    if own.is_empty() || own.iter().any(|kernel| predicts(kernel, report)) {
        return Ok(());
    }
    Err(format!("the compiled {} among the inputs has its boundary elsewhere", report.kernel.entry))
}

fn predicts(kernel: &Kernel, report: &ProbeReport) -> bool {
    let (Some(name), Some(last_pass), Some(first_fail)) =
        (report.sweep.as_deref(), report.boundary.last_pass, report.boundary.first_fail)
    else {
        return false;
    };
    let mut bindings = Bindings::default();
    for (name, value, _) in report.integers() {
        if kernel.model.param(name).is_some() {
            bindings.values.insert(name.to_owned(), i128::from(value));
        }
    }
    for ((axis, blocks), from) in
        bindings.grid.iter_mut().zip(report.launch.grid).zip(&report.launch.grid_from)
    {
        if from == "--grid" {
            *axis = Some(Expr::Number(i128::from(blocks)));
        }
    }
    // The smallest size that must fail decides: asking there finds the boundary below it.
    bindings.values.insert(name.to_owned(), i128::from(first_fail));
    let analysis = ask(kernel, &bindings, Some(name));
    let sweeps = analysis
        .findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Int32Overflow)
        .filter_map(|finding| finding.sweep.as_ref())
        .filter(|sweep| sweep.name == name);
    let lattice = i128::from(report.lattice.max(1));
    sweeps
        .map(|sweep| sweep.safe - sweep.safe.rem_euclid(lattice))
        .min()
        .is_some_and(|safe| safe == i128::from(last_pass))
}

/// What keeps a refuted report from contradicting this incident's cause.
fn refutes(view: &View<'_>, report: &ProbeReport) -> Result<(), String> {
    if report.is_reference() {
        return Err("it ran the reference kernel and not yours".to_owned());
    }
    is_the_kernel(view, report)?;
    let largest =
        report.trials.iter().filter(|trial| !trial.guards_start()).filter_map(ProbeTrial::value).max();
    let all_pass = report.trials.iter().all(|trial| trial.ended("pass"));
    match (size(view, report), largest) {
        (Ok(size), Some(largest)) if all_pass && largest < size.value => {
            Err(format!("it tried nothing as large as {}", size.words))
        }
        (Err(why), _) => Err(why),
        _ => Ok(()),
    }
}

/// The incident's size of the swept argument: read off the launch, else printed near the failure.
fn size(view: &View<'_>, report: &ProbeReport) -> Result<Size, String> {
    let Some(name) = report.sweep.as_deref() else { return Err("it varied no size".to_owned()) };
    let tried = |value: i64| report.trials.iter().any(|trial| trial.value() == Some(value));
    if let Some(found) = from_launch(view, report, name) {
        let value = found?;
        let words = format!("the launch's {name} = {}", number(Some(value)));
        return Ok(Size { value, words, was_tried: tried(value) });
    }
    let near = || view.shapes.iter().filter(|shape| shape.likelihood >= Likelihood::Near);
    let of = |shape: &ShapeRow| {
        let named = shape.mention.names.iter().position(|known| known == name);
        let dim = named.or(shape.overflows().then_some(shape.sweep))?;
        i64::try_from(*shape.mention.dims.get(dim)?).ok()
    };
    let Some((shape, value)) = near().find_map(|shape| Some((shape, of(shape)?))) else {
        return Err(format!("the log prints no {name} near its failure"));
    };
    if !agrees_by_arithmetic(shape, report) {
        agree_by_number(view, report)?;
    }
    Ok(Size { value, words: format!("this log's {}", shape.words()), was_tried: tried(value) })
}

/// The swept argument as a tool read it off the faulting launch, or as a trace has it; an error where another argument differs.
fn from_launch(view: &View<'_>, report: &ProbeReport, name: &str) -> Option<Result<i64, String>> {
    let arguments = told::arguments(view.case, view.root, &report.kernel.entry)?;
    let value = |name: &str| -> Option<i64> {
        // A dump without names numbers the arguments, in the order of the report's.
        let at = report.bindings.iter().position(|bound| bound.name == name)?;
        let numbered = format!("arg{at}");
        let told = arguments.iter().find(|(known, _)| known == name || *known == numbered);
        told.and_then(|(_, value)| value.parse().ok())
    };
    let swept = value(name)?;
    let differs = report.integers().find_map(|(other, bound, _)| {
        let own = value(other).filter(|own| *own != bound)?;
        Some(format!("it ran with {other} = {bound} and the launch had {own}"))
    });
    Some(differs.map_or(Ok(swept), Err))
}

/// Whether the boundary is that of the shape's own arithmetic, give or take what sizes are multiples of: then the probe's
/// rows are as wide as the log's.
fn agrees_by_arithmetic(shape: &ShapeRow, report: &ProbeReport) -> bool {
    let safe = shape.boundary.safe.and_then(|safe| i64::try_from(safe).ok());
    let wraps = shape.boundary.shapes.iter().any(|found| found.expect == Expect::Wrap);
    match (safe, report.boundary.last_pass) {
        (Some(safe), Some(last_pass)) => {
            wraps && safe.abs_diff(last_pass) <= report.lattice.max(1).unsigned_abs()
        }
        _ => false,
    }
}

/// Whether every number that somebody set stands near the failure.
fn agree_by_number(view: &View<'_>, report: &ProbeReport) -> Result<(), String> {
    let printed = |value: i64| {
        view.shapes
            .iter()
            .filter(|shape| shape.likelihood >= Likelihood::Near)
            .any(|shape| shape.mention.dims.iter().any(|dim| i64::try_from(*dim) == Ok(value)))
    };
    match report.integers().find(|(_, value, from)| from.starts_with("set") && !printed(*value)) {
        Some((name, value, _)) => {
            Err(format!("it ran with {name} = {value}, a number that the log doesn't print"))
        }
        None => Ok(()),
    }
}
