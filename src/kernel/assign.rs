//! Numbers out of a log, tried as a kernel's arguments in every way that agrees with the kernel.
//!
//! In: a kernel and numbers, some with names. Out: whether it wraps under all, some or none of the assignments. It doesn't
//! know where the numbers came from. An assignment agrees with the kernel when named numbers go to the argument of that
//! name, every value is a multiple of what the compiled kernel relies on, an argument that the compiler left in is not 1
//! where 1 would have been folded away, rows don't overlap (a row's stride is at least the row's extent), and every number
//! that has to appear does.

use std::collections::BTreeMap;

use super::analyze::{Kernel, analyze, lattice_of};
use super::bind::Bindings;
use super::finding::{Analysis, Answer};
use super::launch::environment;
use super::model::Model;
use super::solve::flatten;
use super::sym::{NodeId, Op, Pred, VarKind};

/// Most assignments that are tried.
const MAX_ASSIGNMENTS: usize = 4_096;

/// A number that an argument may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// Its value.
    pub value: i128,
    /// Its name, where it has one: `M` of `M=234624`.
    pub name: Option<String>,
    /// Whether an assignment has to give it to some argument.
    pub must_appear: bool,
}

/// How a kernel stands to a set of numbers.
#[derive(Debug, Clone)]
pub struct Assigned {
    /// How many assignments agree with the kernel.
    pub tried: usize,
    /// Under how many of them an index wraps.
    pub wrapping: usize,
    /// Under how many it is not known.
    pub unknown: usize,
    /// Whether there were more than are tried: then nothing is said about all.
    pub cut: bool,
    /// The analysis of the first wrapping assignment, by the order of the numbers.
    pub example: Option<Box<Analysis>>,
    /// An assignment under which nothing wraps.
    pub counterexample: Option<BTreeMap<String, i128>>,
    /// What stopped the first analysis that stayed unknown.
    pub doubt: Option<String>,
    /// The rows that were taken not to overlap: stride at least extent, by argument name.
    pub layout: Vec<(String, String)>,
    /// Arguments that an index can depend on and that were assigned.
    pub arguments: Vec<String>,
}

impl Assigned {
    /// Whether it wraps under every assignment, and there is one.
    #[must_use]
    pub fn always_wraps(&self) -> bool {
        !self.cut && self.tried > 0 && self.wrapping == self.tried
    }

    /// Whether it wraps under some assignment.
    #[must_use]
    pub fn sometimes_wraps(&self) -> bool {
        self.wrapping > 0
    }
}

/// Tries every assignment.
#[must_use]
pub fn assign(kernel: &Kernel, base: &Bindings, numbers: &[Number]) -> Assigned {
    let model = &kernel.model;
    let layout = layout(kernel);
    let names = |i: usize| model.params.get(i).map(|p| p.name.clone()).unwrap_or_default();
    let mut choices: Vec<(usize, Vec<i128>)> = Vec::new();
    let mut fixed = base.clone();
    for index in relevant(model) {
        let name = names(index);
        if fixed.values.contains_key(&name) {
            continue;
        }
        if let Some(number) = numbers.iter().find(|n| n.name.as_deref() == Some(name.as_str())) {
            fixed.values.insert(name, number.value);
            continue;
        }
        let lattice = i128::from(lattice_of(model, base, index));
        let mut values: Vec<i128> = numbers
            .iter()
            .map(|n| n.value)
            .filter(|&v| v > 1 && v.rem_euclid(lattice) == 0 && fits(model, index, v))
            .collect();
        values.sort_unstable();
        values.dedup();
        choices.push((index, values));
    }
    let mut out = Assigned {
        tried: 0,
        wrapping: 0,
        unknown: 0,
        cut: false,
        example: None,
        counterexample: None,
        doubt: None,
        layout: layout.iter().map(|&(s, e)| (names(s), names(e))).collect(),
        arguments: choices.iter().map(|(i, _)| names(*i)).collect(),
    };
    if choices.iter().any(|(_, values)| values.is_empty()) {
        return out;
    }
    let mut picks = vec![0usize; choices.len()];
    let mut steps = 0usize;
    loop {
        steps += 1;
        if steps > MAX_ASSIGNMENTS * 64 || out.tried >= MAX_ASSIGNMENTS {
            out.cut = true;
            return out;
        }
        let mut bindings = fixed.clone();
        for ((index, values), &pick) in choices.iter().zip(&picks) {
            if let Some(&value) = values.get(pick) {
                bindings.values.insert(names(*index), value);
            }
        }
        if agrees(&bindings, &layout, numbers, &names) {
            try_one(kernel, &bindings, &mut out);
        }
        if !advance(&mut picks, &choices) {
            return out;
        }
    }
}

fn advance(picks: &mut [usize], choices: &[(usize, Vec<i128>)]) -> bool {
    for (pick, (_, values)) in picks.iter_mut().zip(choices).rev() {
        *pick += 1;
        if *pick < values.len() {
            return true;
        }
        *pick = 0;
    }
    false
}

fn try_one(kernel: &Kernel, bindings: &Bindings, out: &mut Assigned) {
    let analysis = analyze(kernel, bindings);
    out.tried += 1;
    match analysis.answer {
        Answer::Wraps => {
            out.wrapping += 1;
            if out.example.is_none() {
                out.example = Some(Box::new(analysis));
            }
        }
        Answer::Unknown => {
            out.unknown += 1;
            if out.doubt.is_none() {
                out.doubt = analysis.unknown.into_iter().next().map(|unknown| unknown.what);
            }
        }
        Answer::Fits => {
            out.counterexample.get_or_insert_with(|| bindings.values.clone());
        }
    }
}

fn fits(model: &Model, index: usize, value: i128) -> bool {
    let width = model.params.get(index).and_then(|p| p.int_width).unwrap_or(32);
    super::interval::Interval::of_type(width, super::interval::Sign::Signed).holds(value)
}

fn agrees(
    bindings: &Bindings,
    layout: &[(usize, usize)],
    numbers: &[Number],
    names: &dyn Fn(usize) -> String,
) -> bool {
    let value = |index: usize| bindings.values.get(&names(index)).copied();
    let rows_apart = layout.iter().all(|&(stride, extent)| match (value(stride), value(extent)) {
        (Some(stride), Some(extent)) => stride >= extent,
        _ => true,
    });
    let appears = |number: &Number| bindings.values.values().any(|&v| v == number.value);
    rows_apart && numbers.iter().filter(|n| n.must_appear).all(appears)
}

/// The integer arguments that some address or mask depends on.
fn relevant(model: &Model) -> Vec<usize> {
    let mut roots: Vec<NodeId> = Vec::new();
    for access in &model.accesses {
        roots.push(access.offset);
        roots.extend(&access.also);
        roots.extend(access.facts.iter().map(|f| f.0));
    }
    let mut out: Vec<usize> = model
        .dag
        .slice(&roots)
        .into_iter()
        .filter_map(|id| match model.dag.as_var(id).map(|(_, v)| &v.kind) {
            Some(VarKind::Arg(index)) if model.params.get(*index).is_some_and(|p| p.int_width.is_some()) => {
                Some(*index)
            }
            _ => None,
        })
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Strides with the extent of the row they step over: an address `stride · row + column` where `column < extent` holds.
fn layout(kernel: &Kernel) -> Vec<(usize, usize)> {
    let model = &kernel.model;
    let dag = &model.dag;
    let mut out: Vec<(usize, usize)> = Vec::new();
    for access in &model.accesses {
        let facts = flatten(dag, &access.facts);
        let mut roots = vec![access.offset];
        roots.extend(facts.iter().map(|f| f.0));
        let env = environment(model, &Bindings::default(), &std::collections::BTreeSet::new(), &roots);
        let poly = env.poly(access.offset);
        let unit = i128::from(access.element_bytes.max(1));
        let arg = |id: NodeId| match dag.as_var(id).map(|(_, v)| &v.kind) {
            Some(VarKind::Arg(index)) => Some(*index),
            _ => None,
        };
        let strides: Vec<usize> = poly
            .terms()
            .iter()
            .filter(|(mono, _)| mono.len() > 1)
            .flat_map(|(mono, _)| mono.iter().filter_map(|&id| arg(id)))
            .collect();
        for &(node, truth) in &facts {
            let info = dag.node(node);
            let (Op::Cmp(Pred::Slt | Pred::Ult), &[a, b], true) = (info.op, info.args(), truth) else {
                continue;
            };
            let (left, right) = (env.poly(a), env.poly(b));
            let extent = match right.terms() {
                [(mono, 1)] => mono.as_slice().first().copied().and_then(arg).filter(|_| mono.len() == 1),
                _ => None,
            };
            // The column is what stands in the address as it stands in the condition, one element a step.
            let about_columns = left.terms().iter().any(|(mono, _)| !mono.is_empty())
                && left.terms().iter().filter(|(mono, _)| !mono.is_empty()).all(|(mono, c)| {
                    mono.iter().all(|&id| arg(id).is_none()) && poly.coefficient(mono) == c * unit
                });
            if let (Some(extent), true) = (extent, about_columns) {
                for &stride in strides.iter().filter(|&&s| s != extent) {
                    if !out.contains(&(stride, extent)) {
                        out.push((stride, extent));
                    }
                }
            }
        }
    }
    out
}
