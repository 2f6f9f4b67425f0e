//! A kernel under bindings → findings.
//!
//! In: a [`Kernel`] and [`Bindings`]. Out: an [`Analysis`]: the answer, its findings with a witness each, and what could
//! not be decided. It reads no file and knows no log.

use std::collections::{BTreeMap, BTreeSet};

use super::bind::{Bindings, Expr};
use super::check::Verdict;
use super::explain::{describe, merge, overflow};
use super::finding::{Analysis, Answer, Finding, Unknown};
use super::launch::{GridAssumption, applying, grid_assumptions, grid_sizes, thread_facts, value_of};
use super::model::{Access, Model};
use super::solve::{Fact, Fuel};
use super::sym::{NodeId, Origin};
use super::verdicts::verdicts;

/// Nodes that the accesses of a kernel may need, counted for each: a chain of operations of which each one is stored costs its
/// length for each of them, in every analysis. Large kernels of libraries need a tenth.
const MAX_FOLLOWED: usize = 2_000_000;

/// A kernel ready to be analysed under any bindings.
#[derive(Debug)]
pub struct Kernel {
    /// Its accesses.
    pub model: Model,
    /// What its masks say about the grid.
    pub grid: Vec<GridAssumption>,
    /// What holds in every thread.
    pub thread_facts: Vec<Fact>,
}

impl Kernel {
    /// Prepares a model.
    #[must_use]
    pub fn new(mut model: Model) -> Self {
        let mut left = MAX_FOLLOWED;
        for access in &mut model.accesses {
            let facts = access.facts.iter().map(|fact| fact.0);
            let roots: Vec<NodeId> = facts.chain([access.offset]).collect();
            left = left.saturating_sub(model.dag.slice(&roots).len());
            if left == 0 {
                let why = "the kernel is too large to follow as a whole";
                access.offset = model.dag.opaque(why, 64, access.origin);
                access.facts.clear();
                access.also.clear();
            }
            access.meant = model.dag.meant(access.offset);
        }
        let thread_facts = thread_facts(&mut model);
        let grid = grid_assumptions(&mut model);
        Self { model, grid, thread_facts }
    }

    /// Writes the assumptions about the grid anew, after parameters got other names.
    pub fn rename_grid(&mut self) {
        self.grid = grid_assumptions(&mut self.model);
    }

    /// The facts that hold for every access under bindings.
    #[must_use]
    pub fn common_facts(&self, bindings: &Bindings) -> Vec<Fact> {
        let mut facts = self.thread_facts.clone();
        facts.extend(applying(&self.grid, bindings).into_iter().map(|a| (a.fact, true)));
        facts
    }
}

/// Analyses a kernel at the values that are set.
#[must_use]
pub fn analyze(kernel: &Kernel, bindings: &Bindings) -> Analysis {
    let all: Vec<usize> = (0..kernel.model.accesses.len()).collect();
    let verdicts = verdicts(kernel, bindings, &all, Fuel::default());
    let mut analysis = blank(kernel, bindings);
    let mut groups: Vec<Finding> = Vec::new();
    let mut undecided: Vec<&Access> = Vec::new();
    for (index, verdict) in verdicts.each.iter().enumerate() {
        let Some(access) = kernel.model.accesses.get(index) else { continue };
        match verdict {
            Verdict::Fits => {}
            Verdict::Wraps(wrap) => {
                let finding = overflow(kernel, bindings, index, access, wrap, &verdicts.single);
                merge(&mut groups, finding);
            }
            Verdict::Unknown(doubts) => {
                undecided.push(access);
                for doubt in doubts {
                    let unknown = describe(&kernel.model, access, doubt);
                    if !analysis.unknown.contains(&unknown) && analysis.unknown.len() < 200 {
                        analysis.unknown.push(unknown);
                    }
                }
            }
        }
    }
    analysis.undecided = operations(undecided);
    for axis in &verdicts.single {
        let letter = ["x", "y", "z"].get(usize::from(*axis)).copied().unwrap_or("?");
        analysis.stated.push(format!("grid {letter} is not known: taken as one program (--grid)"));
    }
    for (what, location) in &kernel.model.lost {
        analysis.unknown.push(Unknown { what: what.clone(), location: location.clone(), settle: None });
    }
    if kernel.model.dag.is_full() {
        let what = "the kernel is too large to follow as a whole".to_owned();
        analysis.unknown.push(Unknown { what, location: None, settle: None });
    }
    analysis.answer = match (groups.is_empty(), analysis.unknown.is_empty()) {
        (false, _) => Answer::Wraps,
        (true, true) => Answer::Fits,
        (true, false) => Answer::Unknown,
    };
    analysis.findings = groups;
    let unmasked = super::unmasked::find(kernel, bindings);
    analysis.stated.extend(unmasked.iter().filter_map(|f| f.1.clone()));
    analysis.stated.dedup();
    for (finding, _) in unmasked {
        merge(&mut analysis.findings, finding);
    }
    analysis
}

/// How many operations accesses stand for: one that a first and a later round of a loop reach is listed for each.
fn operations<'a>(accesses: impl IntoIterator<Item = &'a Access>) -> usize {
    let mut places = BTreeSet::new();
    let mut unplaced = 0;
    for access in accesses {
        if access.origin == Origin::NONE {
            unplaced += 1;
        } else {
            places.insert(access.origin);
        }
    }
    unplaced + places.len()
}

fn blank(kernel: &Kernel, bindings: &Bindings) -> Analysis {
    let model = &kernel.model;
    let mut assumptions = BTreeMap::new();
    let mut stated = Vec::new();
    for (index, param) in model.params.iter().enumerate() {
        if let Some(value) = value_of(model, bindings, index) {
            assumptions.insert(param.name.clone(), value);
            let lattice = lattice_of(model, bindings, index);
            if lattice > 1 && value.rem_euclid(i128::from(lattice)) != 0 {
                stated.push(format!(
                    "{} = {value} is no multiple of {lattice}, which the compiled kernel relies on",
                    param.name
                ));
            }
        }
    }
    stated.extend(applying(&kernel.grid, bindings).into_iter().map(|a| a.text.clone()));
    for (axis, size) in grid_sizes(bindings).into_iter().enumerate() {
        if let (Some(size), Some(Some(expr))) = (size, bindings.grid.get(axis))
            && !matches!(expr, Expr::Number(_))
        {
            stated.push(format!(
                "grid {} = {expr} = {size}",
                ["x", "y", "z"].get(axis).copied().unwrap_or("?")
            ));
        }
    }
    Analysis {
        entry: model.entry.clone(),
        source: model.source,
        target: model.target.clone(),
        answer: Answer::Unknown,
        findings: Vec::new(),
        unknown: Vec::new(),
        assumptions,
        stated,
        accesses: operations(&model.accesses),
        undecided: 0,
        sweep: None,
        complaints: model.complaints.clone(),
        notes: model.notes.clone(),
    }
}

/// What an argument is promised to be a multiple of: the text's promise or the bindings'.
#[must_use]
pub fn lattice_of(model: &Model, bindings: &Bindings, index: usize) -> u64 {
    let Some(param) = model.params.get(index) else { return 1 };
    bindings.lattice.get(&param.name).copied().unwrap_or(1).max(param.divisibility)
}
