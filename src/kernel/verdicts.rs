//! Every access of a kernel asked for its verdict, under a grid that may be open.
//!
//! In: a [`Kernel`], [`Bindings`] and which accesses. Out: a [`Verdict`] each, and the axes that had to be taken as one program.
//! It leaves words to `explain`, and each single question to `check`.

use std::collections::BTreeSet;

use super::analyze::Kernel;
use super::bind::Bindings;
use super::check::{Checker, Doubt, Verdict};
use super::launch::{applying, environment, grid_sizes};
use super::model::{Access, Model};
use super::solve::{Fact, Fuel};
use super::sym::{NodeId, Point, VarKind};

/// The raw verdict of every access.
pub(super) struct Verdicts {
    pub each: Vec<Verdict>,
    pub single: BTreeSet<u8>,
}

/// Checks some accesses. Where an open grid leaves one undecided, it is tried again with one program along that axis:
/// every launch has at least that one.
pub(super) fn verdicts(kernel: &Kernel, bindings: &Bindings, which: &[usize], fuel: Fuel) -> Verdicts {
    let model = &kernel.model;
    let common = kernel.common_facts(bindings);
    let open = open_axes(kernel, bindings);
    let mut roots: Vec<NodeId> = common.iter().map(|f| f.0).collect();
    for access in which.iter().filter_map(|&i| model.accesses.get(i)) {
        roots.push(access.offset);
        roots.extend(&access.also);
        roots.extend(access.facts.iter().map(|f| f.0));
    }
    let mut env = environment(model, bindings, &BTreeSet::new(), &roots);
    let mut checker = Checker::new(model, &mut env, fuel);
    let mut each: Vec<Verdict> = Vec::new();
    let mut settled: Vec<bool> = Vec::new();
    for access in which.iter().filter_map(|&i| model.accesses.get(i)) {
        let verdict = checker.access(access, &common);
        settled.push(match &verdict {
            Verdict::Fits => true,
            Verdict::Wraps(_) => false,
            Verdict::Unknown(_) => checker.is_settled(),
        });
        each.push(verdict);
    }
    let mut single = BTreeSet::new();
    if !open.is_empty() && !settled.iter().all(|&settled| settled) {
        let mut env = environment(model, bindings, &open, &roots);
        let mut checker = Checker::new(model, &mut env, fuel);
        for ((verdict, settled), &index) in each.iter_mut().zip(settled).zip(which) {
            let Some(access) = model.accesses.get(index).filter(|_| !settled) else { continue };
            let used: BTreeSet<u8> = axes_of(kernel, access).intersection(&open).copied().collect();
            if used.is_empty() {
                continue;
            }
            let narrow = checker.access(access, &common);
            match (&narrow, &*verdict) {
                (Verdict::Wraps(_), _) => {
                    single.extend(used);
                    *verdict = narrow;
                }
                (_, Verdict::Wraps(wrap)) => {
                    let doubts = used
                        .iter()
                        .map(|&axis| Doubt::Grid { axis, from: program_at(model, &wrap.point, axis) });
                    let mut doubts: Vec<Doubt> = doubts.collect();
                    if let Verdict::Unknown(more) = narrow {
                        doubts.extend(more);
                    }
                    *verdict = Verdict::Unknown(doubts);
                }
                _ => {}
            }
        }
    }
    Verdicts { each, single }
}

fn program_at(model: &Model, point: &Point, axis: u8) -> i128 {
    let found = point.iter().find(|(var, _)| {
        matches!(model.dag.vars().get(var.index()).map(|v| &v.kind), Some(VarKind::ProgramId(a)) if *a == axis)
    });
    found.map_or(0, |(_, &value)| value)
}

/// The axes whose size neither the bindings nor a mask gives. A mask gives it where it bounds the program id; one that
/// speaks only of a remainder of it doesn't.
fn open_axes(kernel: &Kernel, bindings: &Bindings) -> BTreeSet<u8> {
    let given = grid_sizes(bindings);
    let facts: Vec<Fact> = applying(&kernel.grid, bindings).into_iter().map(|a| (a.fact, true)).collect();
    let roots: Vec<NodeId> = facts.iter().map(|f| f.0).collect();
    let env = environment(&kernel.model, bindings, &BTreeSet::new(), &roots);
    let told = |axis: u8| {
        let var = kernel.model.dag.slice(&roots).into_iter().find_map(|id| {
            let (var, info) = kernel.model.dag.as_var(id)?;
            (info.kind == VarKind::ProgramId(axis)).then_some((var, id))
        });
        var.is_some_and(|(var, node)| env.bound_under(var, node, &facts).hi < env.bound(var).hi)
    };
    (0..3u8).filter(|&a| given.get(usize::from(a)).copied().flatten().is_none() && !told(a)).collect()
}

pub(super) fn axes_of(kernel: &Kernel, access: &Access) -> BTreeSet<u8> {
    let mut roots = vec![access.offset];
    roots.extend(&access.also);
    roots.extend(access.facts.iter().map(|f| f.0));
    kernel
        .model
        .dag
        .slice(&roots)
        .into_iter()
        .filter_map(|id| match kernel.model.dag.as_var(id).map(|(_, v)| &v.kind) {
            Some(VarKind::ProgramId(axis) | VarKind::ProgramCount(axis)) => Some(*axis),
            _ => None,
        })
        .collect()
}
