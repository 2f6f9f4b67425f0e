//! A model under bindings: bounds for every variable, and what is assumed about the grid.
//!
//! In: a [`Model`] and [`Bindings`]. Out: an [`Env`] and facts. Where no grid is given, the masks tell it: a launch of
//! `cdiv(M, 128)` programs is one in which every program has at least one row below M. Such an assumption is stated.

use std::collections::BTreeSet;

use super::bind::Bindings;
use super::interval::{Interval, Sign};
use super::model::Model;
use super::solve::{Env, Fact, flatten};
use super::sym::{Dag, NodeId, Op, Origin, Poly, Pred, VarKind};

/// Most programs along x.
const MAX_GRID_X: i128 = (1 << 31) - 1;
/// Most programs along y and z.
const MAX_GRID_YZ: i128 = 65_535;

/// Something assumed about the grid: a comparison that holds in every program, and the sentence that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridAssumption {
    /// A one-bit node that is true in every program.
    pub fact: NodeId,
    /// The axes that it bounds.
    pub axes: BTreeSet<u8>,
    /// For people.
    pub text: String,
}

/// A variable's interval and whether its value can't be chosen.
fn bounds_of(
    kind: &VarKind,
    width: u8,
    model: &Model,
    bindings: &Bindings,
    grid: &[Option<i128>; 3],
) -> (Interval, bool) {
    let whole = Interval::of_type(width, Sign::Signed);
    let axis_of = |axis: u8| usize::from(axis.min(2));
    match kind {
        VarKind::Arg(index) => match value_of(model, bindings, *index) {
            Some(value) => (Interval::point(value), false),
            None => (whole, true),
        },
        VarKind::ProgramId(axis) => {
            let most = if *axis == 0 { MAX_GRID_X } else { MAX_GRID_YZ };
            let count = grid.get(axis_of(*axis)).copied().flatten().unwrap_or(most).clamp(1, most);
            (Interval::new(0, count - 1), false)
        }
        VarKind::ProgramCount(axis) => match grid.get(axis_of(*axis)).copied().flatten() {
            Some(count) => (Interval::point(count.max(1)), false),
            None => (Interval::new(1, if *axis == 0 { MAX_GRID_X } else { MAX_GRID_YZ }), false),
        },
        VarKind::Lane(_, extent) => (Interval::new(0, i128::from(*extent) - 1), false),
        VarKind::Thread(axis) => (Interval::new(0, threads(model, bindings, *axis).hi - 1), false),
        VarKind::ThreadCount(axis) => (threads(model, bindings, *axis), false),
        VarKind::Trip(_) => (Interval::new(0, 1 << 32), false),
        VarKind::Loaded(..) | VarKind::Opaque(..) | VarKind::Carried(_) => (whole, true),
    }
}

/// The possible numbers of threads of a block along an axis.
#[must_use]
pub fn threads(model: &Model, bindings: &Bindings, axis: u8) -> Interval {
    let at = usize::from(axis.min(2));
    if let Some(count) = bindings.block.get(at).copied().flatten() {
        return Interval::point(i128::from(count));
    }
    let fixed = i128::from(model.block.get(at).copied().unwrap_or(0));
    match (fixed, model.block_is_maximum) {
        (0, _) => Interval::new(1, if axis == 2 { 64 } else { 1024 }),
        (most, true) => Interval::new(1, most),
        (count, false) => Interval::point(count),
    }
}

/// The value of an argument, by its name.
#[must_use]
pub fn value_of(model: &Model, bindings: &Bindings, index: usize) -> Option<i128> {
    let param = model.params.get(index)?;
    param.int_width?;
    bindings.values.get(&param.name).or_else(|| bindings.values.get(&format!("arg{index}"))).copied()
}

/// The grid's sizes that the bindings give.
#[must_use]
pub fn grid_sizes(bindings: &Bindings) -> [Option<i128>; 3] {
    let size = |axis: usize| {
        let expr = bindings.grid.get(axis)?.as_ref()?;
        expr.value(&|name| bindings.values.get(name).copied())
    };
    [size(0), size(1), size(2)]
}

/// The environment of a model under bindings. `single` are axes taken to have one program.
#[must_use]
pub fn environment<'m>(
    model: &'m Model,
    bindings: &Bindings,
    single: &BTreeSet<u8>,
    roots: &[NodeId],
) -> Env<'m> {
    let mut grid = grid_sizes(bindings);
    for (axis, slot) in grid.iter_mut().enumerate() {
        if single.contains(&u8::try_from(axis).unwrap_or(3)) {
            *slot = Some(1);
        }
    }
    let vars = model.dag.vars().iter();
    let (bounds, unknown) = vars.map(|var| bounds_of(&var.kind, var.width, model, bindings, &grid)).unzip();
    Env::new(&model.dag, bounds, unknown, roots)
}

/// Adds to a model what its masks say about the grid. Called once, after lowering.
#[must_use]
pub fn grid_assumptions(model: &mut Model) -> Vec<GridAssumption> {
    let mut found: Vec<(Poly, BTreeSet<u8>)> = Vec::new();
    let roots: Vec<NodeId> = model.accesses.iter().flat_map(|a| a.facts.iter().map(|f| f.0)).collect();
    {
        let env = environment(model, &Bindings::default(), &BTreeSet::new(), &roots);
        let mut facts: Vec<Fact> = Vec::new();
        for access in &model.accesses {
            for fact in flatten(&model.dag, &access.facts) {
                if !facts.contains(&fact) && facts.len() < 4_000 {
                    facts.push(fact);
                }
            }
        }
        for fact in facts {
            if let Some(candidate) = every_program(&env, fact)
                && !found.contains(&candidate)
            {
                found.push(candidate);
            }
        }
    }
    let names: Vec<String> = model.params.iter().map(|p| p.name.clone()).collect();
    let arg = |index: usize| names.get(index).cloned().unwrap_or_else(|| format!("arg{index}"));
    found.into_iter().filter_map(|(poly, axes)| assumption(&mut model.dag, &poly, axes, &arg)).collect()
}

/// From a mask `B·pid + lane − M + 1 ≤ 0` the part without lanes, where only program ids and arguments are left.
fn every_program(env: &Env<'_>, fact: Fact) -> Option<(Poly, BTreeSet<u8>)> {
    let node = env.dag.node(fact.0);
    let (Op::Cmp(pred), &[a, b]) = (node.op, node.args()) else { return None };
    let (pa, pb) = (env.poly(a), env.poly(b));
    let (left, right, gap) = match (pred, fact.1) {
        (Pred::Slt | Pred::Ult, true) => (pa, pb, 1),
        (Pred::Slt | Pred::Ult, false) => (pb, pa, 0),
        (Pred::Sle | Pred::Ule, true) => (pa, pb, 0),
        (Pred::Sle | Pred::Ule, false) => (pb, pa, 1),
        _ => return None,
    };
    let poly = left.plus(&right, -1)?.plus(&Poly::constant(gap), 1)?;
    let mut kept = Poly::constant(0);
    let mut axes = BTreeSet::new();
    for (mono, c) in poly.terms() {
        let kinds: Vec<VarKind> = env
            .vars_of(mono)
            .into_iter()
            .filter_map(|v| env.dag.vars().get(v.index()))
            .map(|v| v.kind.clone())
            .collect();
        let lanes_only =
            !mono.is_empty() && kinds.iter().all(|k| matches!(k, VarKind::Lane(..) | VarKind::Thread(_)));
        if lanes_only {
            let range = mono.iter().fold(Interval::point(*c), |p, &id| p.times(env.root(id)));
            if range.lo < 0 {
                return None;
            }
            continue;
        }
        let plain =
            |k: &VarKind| matches!(k, VarKind::Arg(_) | VarKind::ProgramId(_) | VarKind::ThreadCount(_));
        if !kinds.iter().all(plain) {
            return None;
        }
        let own: BTreeSet<u8> = kinds
            .iter()
            .filter_map(|k| if let VarKind::ProgramId(axis) = k { Some(*axis) } else { None })
            .collect();
        if !own.is_empty() && *c < 0 {
            return None;
        }
        axes.extend(own);
        let mut term = Poly::constant(*c);
        for &id in mono {
            term = term.times(&Poly::atom(id))?;
        }
        kept = kept.plus(&term, 1)?;
    }
    // The first lane of the tile is the one that every program has; a later one's offset may lie past the end.
    let extra = kept.constant_term() - 1;
    if extra > 0 {
        kept = kept.plus(&Poly::constant(extra), -1)?;
    }
    let bounded_by_args = kept.terms().iter().any(|(mono, c)| {
        *c < 0
            && env
                .vars_of(mono)
                .iter()
                .any(|v| matches!(env.dag.vars().get(v.index()).map(|v| &v.kind), Some(VarKind::Arg(_))))
    });
    (!axes.is_empty() && bounded_by_args).then_some((kept, axes))
}

/// `poly ≤ 0` as a node in 64 bits, and in words.
fn assumption(
    dag: &mut Dag,
    poly: &Poly,
    axes: BTreeSet<u8>,
    arg: &dyn Fn(usize) -> String,
) -> Option<GridAssumption> {
    let (mut left, mut right) = (dag.constant(0, 64), dag.constant(0, 64));
    let (mut block, mut size) = (None, None);
    let mut simple = true;
    for (mono, c) in poly.terms() {
        let mut term = dag.constant(c.abs(), 64);
        for &id in mono {
            let wide = dag.make(Op::Sext, 64, &[id], Origin::NONE);
            term = dag.make(Op::Mul, 64, &[term, wide], Origin::NONE);
        }
        let side = if *c > 0 { &mut left } else { &mut right };
        *side = dag.make(Op::Add, 64, &[*side, term], Origin::NONE);
        match (mono.as_slice(), *c) {
            ([], 1) => {}
            (&[id], c)
                if c > 0
                    && matches!(dag.as_var(id), Some((_, v)) if matches!(v.kind, VarKind::ProgramId(_))) =>
            {
                simple &= block.replace(c.to_string()).is_none();
            }
            (&[a, b], 1) => {
                let count = [a, b].into_iter().find(
                    |&id| matches!(dag.as_var(id), Some((_, v)) if matches!(v.kind, VarKind::ThreadCount(_))),
                );
                simple &= count.is_some()
                    && block.replace(count.map_or_else(String::new, |id| dag.expression(id, arg))).is_none();
            }
            (&[id], -1) => simple &= size.replace(dag.expression(id, arg)).is_none(),
            _ => simple = false,
        }
    }
    let fact = dag.compare(Pred::Sle, left, right, Origin::NONE);
    let letters: Vec<&str> =
        axes.iter().map(|&a| ["x", "y", "z"].get(usize::from(a)).copied().unwrap_or("?")).collect();
    let text = match (simple, block, size) {
        (true, Some(block), Some(size)) if block == "1" => {
            format!("grid {} = {size}, from the mask", letters.join(", "))
        }
        (true, Some(block), Some(size)) => {
            format!("grid {} = cdiv({size}, {block}), from the mask", letters.join(", "))
        }
        _ => {
            let condition = format!("{} <= {}", dag.expression(left, arg), dag.expression(right, arg));
            format!("grid {}: every program has work, {condition}", letters.join(", "))
        }
    };
    Some(GridAssumption { fact, axes, text })
}

/// The assumptions that apply: those about axes that the bindings leave open.
#[must_use]
pub fn applying<'g>(assumed: &'g [GridAssumption], bindings: &Bindings) -> Vec<&'g GridAssumption> {
    let grid = grid_sizes(bindings);
    let open = |axis: &u8| grid.get(usize::from(*axis)).copied().flatten().is_none();
    assumed.iter().filter(|a| a.axes.iter().all(open)).collect()
}

/// Facts about the block that hold in every thread: the thread index is below the block's size.
pub fn thread_facts(model: &mut Model) -> Vec<Fact> {
    let has = |kind: &VarKind| model.dag.vars().iter().any(|var| var.kind == *kind);
    let axes: Vec<u8> =
        (0..3).filter(|&a| has(&VarKind::Thread(a)) && has(&VarKind::ThreadCount(a))).collect();
    axes.into_iter()
        .map(|axis| {
            let thread = model.dag.var(VarKind::Thread(axis), 32);
            let count = model.dag.var(VarKind::ThreadCount(axis), 32);
            (model.dag.compare(Pred::Slt, thread, count, Origin::NONE), true)
        })
        .collect()
}
