//! The whole question: a kernel, values, an argument to sweep → an answer with its boundaries.
//!
//! In: a [`Kernel`], [`Bindings`] and optionally the name of an argument. Out: an [`Analysis`] whose findings say up to
//! where they are safe.

use super::analyze::{Kernel, analyze, lattice_of};
use super::bind::Bindings;
use super::check::Verdict;
use super::finding::{Analysis, Finding, FindingKind};
use super::launch::value_of;
use super::model::Source;
use super::solve::Fuel;
use super::sweep::{MACHINE_BYTES, machine_limit, sweep};
use super::sym::{NodeId, VarKind};
use super::verdicts::verdicts;

/// Answers at the set values; an argument to sweep that has none is set to the largest that fits the machine.
#[must_use]
pub fn ask(kernel: &Kernel, bindings: &Bindings, swept: Option<&str>) -> Analysis {
    let mut bindings = bindings.clone();
    let mut stated = Vec::new();
    let alias = swept.map(|name| alias(kernel, name));
    let swept = alias.as_deref();
    if let Some(name) = swept
        && !bindings.values.contains_key(name)
    {
        let index = kernel.model.param(name);
        let lattice = i128::from(index.map_or(1, |i| lattice_of(&kernel.model, &bindings, i)));
        let most = machine_limit(kernel, &bindings, name);
        let value = (most - most.rem_euclid(lattice)).max(1);
        stated.push(format!(
            "{name} goes from 1 to {value}, the largest with which every access stays within {} GiB",
            MACHINE_BYTES >> 30
        ));
        bindings.values.insert(name.to_owned(), value);
    }
    stated.extend(lattice_remarks(kernel, &bindings));
    let mut analysis = analyze(kernel, &bindings);
    analysis.stated.extend(stated);
    for finding in analysis.findings.iter_mut().filter(|f| f.kind == FindingKind::Int32Overflow) {
        let name = swept.map(str::to_owned).or_else(|| natural_argument(kernel, &bindings, finding));
        let Some(name) = name else { continue };
        if let Some(&value) = bindings.values.get(&name) {
            finding.sweep = sweep(kernel, &bindings, &name, &finding.accesses, value);
        }
    }
    if let Some(name) = swept {
        let limit =
            machine_limit(kernel, &bindings, name).max(bindings.values.get(name).copied().unwrap_or(1));
        let all: Vec<usize> = (0..kernel.model.accesses.len()).collect();
        let decided = verdicts(kernel, &bindings, &all, Fuel::default()).each;
        let which: Vec<usize> = decided
            .iter()
            .enumerate()
            .filter(|(_, verdict)| !matches!(verdict, Verdict::Unknown(_)))
            .map(|(at, _)| at)
            .collect();
        analysis.sweep = sweep(kernel, &bindings, name, &which, limit);
    }
    analysis
}

/// The argument that a name means: its own name, or `arg3`.
fn alias(kernel: &Kernel, name: &str) -> String {
    if kernel.model.param(name).is_some() {
        return name.to_owned();
    }
    let index = name.strip_prefix("arg").and_then(|n| n.parse::<usize>().ok());
    index.and_then(|i| kernel.model.params.get(i)).map_or_else(|| name.to_owned(), |p| p.name.clone())
}

/// PTX doesn't say what arguments are multiples of, and its masks may lean on it.
fn lattice_remarks(kernel: &Kernel, bindings: &Bindings) -> Vec<String> {
    if kernel.model.source != Source::Ptx {
        return Vec::new();
    }
    let open: Vec<&str> = kernel
        .model
        .params
        .iter()
        .enumerate()
        .filter(|(i, p)| {
            p.int_width.is_some()
                && lattice_of(&kernel.model, bindings, *i) == 1
                && value_of(&kernel.model, bindings, *i).is_some()
        })
        .map(|(_, p)| p.name.as_str())
        .collect();
    if open.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "PTX keeps no divisibility: {} taken as any integer (--lattice {}=16 for a Triton kernel specialised on 16)",
        open.join(", "),
        open.first().copied().unwrap_or("M")
    )]
}

/// The set argument that bounds a wrapped index: of those in the access's conditions the largest, else of those in its
/// address.
fn natural_argument(kernel: &Kernel, bindings: &Bindings, finding: &Finding) -> Option<String> {
    let model = &kernel.model;
    let access = finding.accesses.first().and_then(|&i| model.accesses.get(i))?;
    let largest = |roots: &[NodeId]| {
        model
            .dag
            .slice(roots)
            .into_iter()
            .filter_map(|id| match model.dag.as_var(id).map(|(_, v)| &v.kind) {
                Some(VarKind::Arg(index)) => {
                    Some((value_of(model, bindings, *index)?, model.params.get(*index)?.name.clone()))
                }
                _ => None,
            })
            .max()
            .map(|(_, name)| name)
    };
    let conditions: Vec<NodeId> = access.facts.iter().map(|f| f.0).collect();
    let own = [access.offset];
    let from_conditions = largest(&conditions);
    let from_address = largest(&own);
    match (from_conditions, from_address) {
        (Some(a), Some(b)) => {
            let value = |name: &String| bindings.values.get(name).copied().unwrap_or(0);
            Some(if value(&a) >= value(&b) { a } else { b })
        }
        (a, b) => a.or(b),
    }
}
