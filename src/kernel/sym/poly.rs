//! Polynomials over nodes: what a node's exact value is in terms of variables and of operations that aren't arithmetic.
//!
//! In: a node, and which variables have one value. Out: Σ cᵢ·mᵢ, where equal sums look equal whatever order the
//! compiler wrote them in. Widenings are looked through: that holds only where their operand fits its type, and the
//! caller has to see to that.

use std::collections::HashMap;
use std::rc::Rc;

use super::{Dag, NodeId, Op};
use crate::kernel::interval::Interval;

/// More terms than this and a product is kept as it stands.
const MAX_TERMS: usize = 32;
/// More factors than this in one term and a product is kept as it stands.
const MAX_DEGREE: usize = 4;

/// Σ coefficient · product of nodes. The empty product is the constant term.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Poly {
    terms: Vec<(Vec<NodeId>, i128)>,
}

impl Poly {
    /// A constant.
    #[must_use]
    pub fn constant(value: i128) -> Self {
        Self { terms: if value == 0 { Vec::new() } else { vec![(Vec::new(), value)] } }
    }

    /// A node by itself.
    #[must_use]
    pub fn atom(id: NodeId) -> Self {
        Self { terms: vec![(vec![id], 1)] }
    }

    /// The terms, sorted by their product.
    #[must_use]
    pub fn terms(&self) -> &[(Vec<NodeId>, i128)] {
        &self.terms
    }

    /// The constant term.
    #[must_use]
    pub fn constant_term(&self) -> i128 {
        self.coefficient(&[])
    }

    /// The coefficient of a product of nodes.
    #[must_use]
    pub fn coefficient(&self, product: &[NodeId]) -> i128 {
        self.terms
            .binary_search_by(|(mono, _)| mono.as_slice().cmp(product))
            .ok()
            .and_then(|at| self.terms.get(at))
            .map_or(0, |&(_, c)| c)
    }

    fn from_map(map: std::collections::BTreeMap<Vec<NodeId>, i128>) -> Option<Self> {
        let terms: Vec<_> = map.into_iter().filter(|&(_, c)| c != 0).collect();
        (terms.len() <= MAX_TERMS).then_some(Self { terms })
    }

    /// `self + factor · other`.
    #[must_use]
    pub fn plus(&self, other: &Self, factor: i128) -> Option<Self> {
        let mut map: std::collections::BTreeMap<_, _> = self.terms.iter().cloned().collect();
        for (mono, c) in &other.terms {
            let slot = map.entry(mono.clone()).or_insert(0i128);
            *slot = slot.checked_add(c.checked_mul(factor)?)?;
        }
        Self::from_map(map)
    }

    /// `self · other`.
    #[must_use]
    pub fn times(&self, other: &Self) -> Option<Self> {
        let mut map = std::collections::BTreeMap::new();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let mut mono: Vec<NodeId> = left.iter().chain(right).copied().collect();
                if mono.len() > MAX_DEGREE {
                    return None;
                }
                mono.sort_unstable();
                let slot = map.entry(mono).or_insert(0i128);
                *slot = i128::checked_add(*slot, a.checked_mul(*b)?)?;
            }
        }
        Self::from_map(map)
    }

    /// The bounds, from those of the nodes.
    #[must_use]
    pub fn range(&self, of: &dyn Fn(NodeId) -> Interval) -> Interval {
        self.terms.iter().fold(Interval::point(0), |sum, (mono, c)| {
            sum.plus(mono.iter().fold(Interval::point(*c), |product, &id| product.times(of(id))))
        })
    }

    /// Whether a node is in some term.
    #[must_use]
    pub fn mentions(&self, id: NodeId) -> bool {
        self.terms.iter().any(|(mono, _)| mono.contains(&id))
    }
}

/// Makes polynomials of nodes and remembers them.
#[derive(Debug, Default)]
pub struct Polys {
    known: HashMap<NodeId, Rc<Poly>>,
}

impl Polys {
    /// The polynomial of a node. `value` gives the value of nodes that have just one.
    pub fn of(&mut self, dag: &Dag, root: NodeId, value: &dyn Fn(NodeId) -> Option<i128>) -> Rc<Poly> {
        if let Some(known) = self.known.get(&root) {
            return known.clone();
        }
        for id in dag.slice(&[root]) {
            if !self.known.contains_key(&id) {
                let poly = self.one(dag, id, value).unwrap_or_else(|| Poly::atom(id));
                self.known.insert(id, Rc::new(poly));
            }
        }
        self.known.get(&root).cloned().unwrap_or_else(|| Rc::new(Poly::atom(root)))
    }

    fn one(&self, dag: &Dag, id: NodeId, value: &dyn Fn(NodeId) -> Option<i128>) -> Option<Poly> {
        if let Some(value) = value(id) {
            return Some(Poly::constant(value));
        }
        let node = dag.node(id);
        let arg = |i: usize| node.args().get(i).and_then(|arg| self.known.get(arg)).map(Rc::as_ref);
        match node.op {
            Op::Const(value) => Some(Poly::constant(value)),
            Op::Add => arg(0)?.plus(arg(1)?, 1),
            Op::Sub => arg(0)?.plus(arg(1)?, -1),
            Op::Mul => arg(0)?.times(arg(1)?),
            Op::Sext | Op::Zext | Op::Trunc => arg(0).cloned(),
            _ => None,
        }
    }
}
