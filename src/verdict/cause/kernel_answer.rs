//! What the suspected compiled kernels answer, the fitting ones too: the kernel step of a playbook tells it.
//!
//! In: what a rule sees. Out: [`Compiled`]. `Fits` only where every suspect fits under every way in which the numbers fit
//! its arguments.

use std::collections::BTreeMap;

use crate::kernel::location::Location;
use crate::kernel::sweep::Sweep;
use crate::kernel::{Answer, Assigned, Bindings, FindingKind, Kernel, Number, ask, assign};
use crate::text::number::grouped;

use super::View;
use super::compiled::{launch_arguments, leads_to, numbers, suspects};

/// Kernels that are asked.
const KERNEL_LIMIT: usize = 32;

/// What the suspected kernels say about the numbers of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// The kernel.
    pub entry: String,
    /// `Wraps` where some assignment of the numbers wraps, `Fits` where none of any suspect does.
    pub answer: Answer,
    /// In how many ways the numbers fit the kernel's arguments.
    pub tried: usize,
    /// Under how many of them an index wraps.
    pub wrapping: usize,
    /// Whether it wraps under all.
    pub always: bool,
    /// The arguments of the example, or of one way in which it fits.
    pub values: BTreeMap<String, i128>,
    /// The index that wraps.
    pub wrap: Option<Wrapping>,
    /// What keeps it unknown.
    pub why: Option<String>,
}

/// An index that wraps.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrapping {
    /// The expression, in the author's names.
    pub expression: String,
    /// `store to y_ptr`.
    pub reaches: String,
    /// Where it stands.
    pub location: Option<Location>,
    /// Its largest exact value.
    pub max_value: Option<i128>,
    /// Up to where it is safe.
    pub sweep: Option<Sweep>,
}

impl Wrapping {
    /// The other arguments of the expression, as `N 9,216`.
    #[must_use]
    pub fn with(&self, values: &BTreeMap<String, i128>) -> String {
        let swept = self.sweep.as_ref().map(|sweep| sweep.name.as_str());
        let with: Vec<String> = values
            .iter()
            .filter(|(name, _)| Some(name.as_str()) != swept && self.expression.contains(name.as_str()))
            .map(|(name, value)| format!("{name} {}", grouped(value.unsigned_abs())))
            .collect();
        with.join(", ")
    }
}

/// Asks the suspected kernels; none where no kernel is suspected.
#[must_use]
pub fn answer(view: &View<'_>) -> Option<Compiled> {
    if let Some(suspect) = suspects(view).first() {
        return Some(wrapping(view, suspect.kernel, &suspect.assigned));
    }
    let numbers = numbers(view);
    let mut fits: Option<Compiled> = None;
    let kernels = view.case.kernels().map(|(_, kernel)| kernel).filter(|kernel| leads_to(view, kernel));
    for kernel in kernels.take(KERNEL_LIMIT) {
        let base = launch_arguments(view, kernel);
        if numbers.is_empty() && base.values.is_empty() {
            return Some(unknown(kernel, 0, "the evidence gives no sizes near the failure".to_owned()));
        }
        let tried: &[Number] = if base.values.is_empty() { &numbers } else { &[] };
        let assigned = assign(kernel, &base, tried);
        if assigned.tried == 0 || assigned.unknown > 0 || assigned.cut || assigned.sometimes_wraps() {
            let why = assigned.doubt.clone().unwrap_or_else(|| open(&assigned));
            return Some(unknown(kernel, assigned.tried, why));
        }
        fits.get_or_insert_with(|| Compiled {
            answer: Answer::Fits,
            tried: assigned.tried,
            values: assigned.counterexample.unwrap_or_default(),
            ..blank(kernel)
        });
    }
    fits
}

fn open(assigned: &Assigned) -> String {
    match (assigned.tried, assigned.wrapping) {
        (0, _) => "the evidence's numbers fit its arguments in no way".to_owned(),
        (tried, 0) => format!("the evidence's numbers fit its arguments in more than {tried} ways"),
        (tried, wrapping) => format!(
            "an index wraps under {wrapping} of the {tried} ways in which the numbers fit its arguments, yet this failure \
             has another story"
        ),
    }
}

fn blank(kernel: &Kernel) -> Compiled {
    Compiled {
        entry: kernel.model.entry.clone(),
        answer: Answer::Unknown,
        tried: 0,
        wrapping: 0,
        always: false,
        values: BTreeMap::new(),
        wrap: None,
        why: None,
    }
}

fn unknown(kernel: &Kernel, tried: usize, why: String) -> Compiled {
    Compiled { tried, why: Some(why), ..blank(kernel) }
}

fn wrapping(view: &View<'_>, kernel: &Kernel, assigned: &Assigned) -> Compiled {
    let values = assigned.example.as_deref().map(|example| example.assumptions.clone()).unwrap_or_default();
    let bindings = Bindings { values: values.clone(), ..launch_arguments(view, kernel) };
    let analysis = ask(kernel, &bindings, None);
    let finding = analysis.findings.into_iter().find(|finding| finding.kind == FindingKind::Int32Overflow);
    Compiled {
        answer: Answer::Wraps,
        tried: assigned.tried,
        wrapping: assigned.wrapping,
        always: assigned.always_wraps(),
        values,
        wrap: finding.map(|finding| Wrapping {
            expression: finding.expression,
            reaches: finding.reaches,
            location: finding.location,
            max_value: finding.max_value,
            sweep: finding.sweep,
        }),
        ..blank(kernel)
    }
}
