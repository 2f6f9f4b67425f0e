//! The integers that a rerun of the suspected kernel takes.
//!
//! In: what the evidence knows of the launch: what a tool read off it, what the engineer set, the numbers of the log.
//! Out: [`Arguments`], each with where it is from. Strides of rows that lie end to end are left to the probe, which reads
//! them off the code; where the numbers fit in several ways, the way that agrees with the fault's access is taken.

use std::collections::BTreeMap;

use super::Set;
use crate::kernel::{Analysis, Bindings, Finding, FindingKind, Kernel, Number, ask};
use crate::read::event::Data;
use crate::verdict::cause::View;
use crate::verdict::cause::compiled::{self, Suspect};
use crate::verdict::told;

/// Ways that are tried.
const WAY_LIMIT: usize = 512;

/// The integers of a launch.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    /// What is set in the command.
    pub set: Set,
    /// Every value, strides included, as the static check takes them; the grid where a tool read it off the launch.
    pub bindings: Bindings,
    /// The argument whose boundary is looked for.
    pub sweep: Option<String>,
    /// Ways in which the numbers fit and it wraps.
    pub ways: usize,
}

/// What a tool read off the launch, for a kernel that was not shown to wrap.
pub(super) fn of_launch(view: &View<'_>, kernel: &Kernel) -> Arguments {
    let (set, bindings) = known(view, kernel);
    let sweep = overflow(&ask(kernel, &bindings, None))
        .and_then(|finding| finding.sweep.as_ref())
        .map(|s| s.name.clone());
    Arguments { set, bindings, sweep, ways: 0 }
}

/// The arguments of a suspect.
pub(super) fn choose(view: &View<'_>, suspect: &Suspect<'_>) -> Arguments {
    let kernel = suspect.kernel;
    let (mut set, mut base) = known(view, kernel);
    let values = &mut base.values;
    let numbers = compiled::numbers(view);
    for number in &numbers {
        if let Some(name) =
            number.name.as_ref().filter(|name| is_integer(kernel, name) && !values.contains_key(*name))
        {
            values.insert(name.clone(), number.value);
            set.insert(name.clone(), (number.value, format!("the log's {name}")));
        }
    }
    let layout = &suspect.assigned.layout;
    let is_stride = |name: &str| layout.iter().any(|(stride, _)| stride == name);
    let free: Vec<&str> = kernel
        .model
        .params
        .iter()
        .filter(|param| param.int_width.is_some())
        .map(|param| param.name.as_str())
        .filter(|name| !values.contains_key(*name) && !is_stride(name))
        .collect();
    let ways = ways(kernel, &base, &free, &numbers, layout);
    let access = view.places.fault.as_ref().and_then(|fault| fault.access.as_deref()).unwrap_or("write");
    let agrees =
        |way: &Way| way.reaches.starts_with(if access.starts_with("read") { "load" } else { "store" });
    let count = ways.len();
    let Some(way) = ways.iter().find(|way| agrees(way)).or(ways.first()) else {
        return with_strides(suspect, set, &base);
    };
    for name in free {
        if let Some(value) = way.values.get(name) {
            set.insert(name.to_owned(), (*value, provenance(&numbers, *value)));
        }
    }
    let bindings = Bindings { values: way.values.clone(), ..base };
    Arguments { set, bindings, sweep: way.sweep.clone(), ways: count }
}

/// Rows that don't lie end to end: the assignment under which it was found to wrap, strides and all.
fn with_strides(suspect: &Suspect<'_>, mut set: Set, base: &Bindings) -> Arguments {
    let Some(example) = suspect.assigned.example.as_deref() else {
        return Arguments { set, ..Arguments::default() };
    };
    let values = example.assumptions.clone();
    for (name, value) in values.iter().filter(|(name, _)| is_integer(suspect.kernel, name)) {
        set.entry(name.clone()).or_insert_with(|| (*value, "a number of the log that fits here".to_owned()));
    }
    let bindings = Bindings { values, ..base.clone() };
    let analysis = ask(suspect.kernel, &bindings, None);
    let sweep =
        overflow(&analysis).and_then(|finding| finding.sweep.as_ref()).map(|sweep| sweep.name.clone());
    Arguments { set, bindings, sweep, ways: suspect.assigned.wrapping }
}

/// What the engineer set, and what a tool read off the launch or a trace has of it.
fn known(view: &View<'_>, kernel: &Kernel) -> (Set, Bindings) {
    let launch = told::told(view.case, view.root, kernel);
    let mut bindings = launch.as_ref().map(|launch| launch.bindings(kernel)).unwrap_or_default();
    let by = launch.as_ref().map_or("", told::Told::by);
    let named = |(name, value): (&String, &i128)| (name.clone(), (*value, by.to_owned()));
    let mut set: Set = bindings.values.iter().map(named).collect();
    for (_, event) in view.case.answers() {
        if let Data::Value(value) = &event.data
            && is_integer(kernel, &value.name)
            && let Some(size) = value.size()
        {
            set.insert(value.name.clone(), (i128::from(size), "as you set it".to_owned()));
        }
    }
    bindings.values = set.iter().map(|(name, (value, _))| (name.clone(), *value)).collect();
    (set, bindings)
}

fn is_integer(kernel: &Kernel, name: &str) -> bool {
    let parameter = kernel.model.param(name).and_then(|at| kernel.model.params.get(at));
    parameter.is_some_and(|parameter| parameter.int_width.is_some())
}

fn provenance(numbers: &[Number], value: i128) -> String {
    let known = numbers.iter().find(|number| number.value == value);
    match known.and_then(|number| number.name.as_deref()) {
        Some(name) => format!("the log's {name}"),
        None => "a number of the log".to_owned(),
    }
}

/// One way in which the numbers fit and the kernel wraps.
struct Way {
    values: BTreeMap<String, i128>,
    reaches: String,
    sweep: Option<String>,
}

fn overflow(analysis: &Analysis) -> Option<&Finding> {
    analysis.findings.iter().find(|finding| finding.kind == FindingKind::Int32Overflow)
}

fn ways(
    kernel: &Kernel,
    base: &Bindings,
    free: &[&str],
    numbers: &[Number],
    layout: &[(String, String)],
) -> Vec<Way> {
    let mut found = Vec::new();
    let known = &base.values;
    let each =
        u32::try_from(free.len()).ok().and_then(|free| numbers.len().checked_pow(free)).unwrap_or(usize::MAX);
    for pick in 0..each.min(WAY_LIMIT) {
        let mut values = known.clone();
        let mut rest = pick;
        for name in free {
            if let Some(number) = numbers.get(rest % numbers.len().max(1)) {
                values.insert((*name).to_owned(), number.value);
            }
            rest /= numbers.len().max(1);
        }
        end_to_end(&mut values, layout);
        let fits = on_lattice(kernel, &values);
        let all = numbers
            .iter()
            .filter(|number| number.must_appear)
            .all(|number| values.values().any(|v| *v == number.value));
        if !(fits && (all || known.len() + free.len() < numbers.len())) {
            continue;
        }
        let bindings = Bindings { values: values.clone(), ..base.clone() };
        if let Some(finding) = overflow(&ask(kernel, &bindings, None)) {
            let sweep = finding.sweep.as_ref().map(|sweep| sweep.name.clone());
            found.push(Way { values, reaches: finding.reaches.clone(), sweep });
        }
    }
    found
}

/// Strides without a value: rows lie end to end.
fn end_to_end(values: &mut BTreeMap<String, i128>, layout: &[(String, String)]) {
    let given = values.clone();
    for (stride, extent) in layout.iter().filter(|(stride, _)| !given.contains_key(stride)) {
        if let Some(width) = given.get(extent).copied() {
            let known = values.entry(stride.clone()).or_insert(width);
            *known = (*known).max(width);
        }
    }
}

/// Whether every value is what the compiled code relies on; an argument of 1 is folded away.
fn on_lattice(kernel: &Kernel, values: &BTreeMap<String, i128>) -> bool {
    kernel.model.params.iter().filter(|param| param.int_width.is_some()).all(|param| {
        let multiple = i128::from(param.divisibility.max(1));
        values.get(&param.name).is_none_or(|value| *value > 1 && value.rem_euclid(multiple) == 0)
    })
}
