//! Bounds a node over a box of variables, under facts that hold wherever the access happens.
//!
//! In: a graph, the bounds of its variables, facts (a mask, a loop condition, an assumption) and a node with a range
//! that it must not leave. Out: proof that it stays inside, a point where it leaves, or neither. The proof is by
//! intervals, by subtracting multiples of the facts' inequalities, and by splitting the box; a point counts only if the
//! machine's own arithmetic makes every fact true there. It knows no source language.

mod facts;
mod goal;
mod narrow;
mod search;

pub use facts::{Fact, Needs, flatten, needs_of};
pub use goal::{Fuel, Goal, Outcome};

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use super::interval::{Interval, Sign};
use super::sym::{Dag, NodeId, Op, Poly, Polys, Values, VarId};

/// A graph with bounds for its variables.
#[derive(Debug)]
pub struct Env<'a> {
    /// The graph.
    pub dag: &'a Dag,
    /// Bounds, in the order of [`Dag::vars`].
    pub bounds: Vec<Interval>,
    /// Variables that can't be chosen: no point may rest on their value.
    pub unknown: Vec<bool>,
    values: Values,
    root: Vec<Interval>,
    polys: RefCell<Polys>,
    trusted: HashSet<NodeId>,
}

impl<'a> Env<'a> {
    /// Ready to bound the nodes that `roots` need.
    #[must_use]
    pub fn new(dag: &'a Dag, bounds: Vec<Interval>, unknown: Vec<bool>, roots: &[NodeId]) -> Self {
        let values = Values::new(dag, roots, &|_| false);
        let root = values.over(&|var| bounds.get(var.index()).copied().unwrap_or(Interval::ALL), &|_| None);
        Self { dag, bounds, unknown, values, root, polys: RefCell::default(), trusted: HashSet::new() }
    }

    /// The interval of a node over the whole box, no facts used.
    #[must_use]
    pub fn root(&self, id: NodeId) -> Interval {
        self.values.place(id).and_then(|at| self.root.get(at)).copied().unwrap_or(Interval::ALL)
    }

    /// The node as a polynomial, widenings looked through.
    #[must_use]
    pub fn poly(&self, id: NodeId) -> Rc<Poly> {
        self.polys.borrow_mut().of(self.dag, id, &|node| self.root(node).single())
    }

    /// The bounds of a variable.
    #[must_use]
    pub fn bound(&self, var: VarId) -> Interval {
        self.bounds.get(var.index()).copied().unwrap_or(Interval::ALL)
    }

    /// Whether a variable's value can't be chosen.
    #[must_use]
    pub fn is_unknown(&self, var: VarId) -> bool {
        self.unknown.get(var.index()).copied().unwrap_or(true)
    }

    /// Notes that the operand of a widening is proven to fit wherever it is used.
    pub fn trust(&mut self, widening: NodeId) {
        self.trusted.insert(widening);
    }

    /// Whether [`Env::trust`] was called for it.
    #[must_use]
    pub fn trusts(&self, widening: NodeId) -> bool {
        self.trusted.contains(&widening)
    }

    /// Forgets what was proven under another access's facts.
    pub fn forget(&mut self) {
        self.trusted.clear();
    }

    /// The variables that a node needs.
    #[must_use]
    pub fn vars_of(&self, roots: &[NodeId]) -> Vec<VarId> {
        self.dag.slice(roots).into_iter().filter_map(|id| self.dag.as_var(id).map(|(var, _)| var)).collect()
    }
}

/// A value that an operation reads through a type, so it must fit that type for the result to be the true one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Duty {
    /// The value that is read.
    pub value: NodeId,
    /// The operation that reads it.
    pub reader: NodeId,
    /// How it is read.
    pub sign: Sign,
    /// Choices under which what is read goes on: conditions of the selections on the way.
    pub when: Vec<Fact>,
    /// Whether there were more choices than are kept, so that a point may not be a real one.
    pub loose: bool,
}

/// Most choices on the way from a value to the address that are kept.
const MAX_CHOICES: usize = 8;
/// Most steps in looking for duties.
const MAX_STEPS: usize = 20_000;

impl Duty {
    /// The range that the value must not leave.
    #[must_use]
    pub fn limits(&self, dag: &Dag) -> Interval {
        Interval::of_type(dag.node(self.value).width, self.sign)
    }
}

/// How an operation reads its operand `index`; `None` where it takes the exact value or only bits.
#[must_use]
pub fn reads(op: Op, index: usize) -> Option<Sign> {
    match op {
        Op::Sext | Op::DivS | Op::RemS | Op::MinS | Op::MaxS | Op::MulHiS => Some(Sign::Signed),
        Op::ShrS if index == 0 => Some(Sign::Signed),
        Op::Zext | Op::DivU | Op::RemU | Op::MinU | Op::MaxU => Some(Sign::Unsigned),
        Op::ShrU if index == 0 => Some(Sign::Unsigned),
        _ => None,
    }
}

/// Every duty of the values that `roots` are made of, innermost first. Conditions are left out: a wrapped comparison
/// is evaluated as the machine does it.
#[must_use]
pub fn duties(dag: &Dag, roots: &[NodeId], modular_unsigned: bool) -> Vec<Duty> {
    let mut seen: HashSet<(NodeId, Vec<Fact>)> = HashSet::new();
    let mut todo: Vec<(NodeId, Vec<Fact>, bool)> = roots.iter().map(|&id| (id, Vec::new(), false)).collect();
    let mut out: Vec<Duty> = Vec::new();
    while let Some((id, when, mut loose)) = todo.pop() {
        loose |= seen.len() > MAX_STEPS;
        let when = if loose { Vec::new() } else { when };
        if !seen.insert((id, when.clone())) {
            continue;
        }
        let node = dag.node(id);
        if matches!(node.op, Op::Cmp(_)) {
            continue;
        }
        for (index, &arg) in node.args().iter().enumerate() {
            if node.op == Op::Select && index == 0 {
                continue;
            }
            let mut inner_when = when.clone();
            let mut inner_loose = loose;
            if let (Op::Select, Some(&cond)) = (node.op, node.args().first()) {
                let choice = (cond, index == 1);
                if !inner_when.contains(&choice) {
                    inner_when.push(choice);
                    inner_when.sort_unstable();
                }
                inner_loose |= inner_when.len() > MAX_CHOICES;
            }
            let inner = dag.node(arg);
            if let Some(sign) = reads(node.op, index)
                && inner.is_exact()
                && inner.width < 64
                && inner.width > 1
                // A compiler uses unsigned arithmetic modulo 2ⁿ on purpose, so only a widening must be exact there.
                && (node.op == Op::Zext || sign == Sign::Signed || !modular_unsigned)
            {
                out.push(Duty { value: arg, reader: id, sign, when: when.clone(), loose });
            }
            todo.push((arg, inner_when, inner_loose));
        }
    }
    out.sort_unstable();
    out
}
