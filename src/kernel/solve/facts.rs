//! Facts as inequalities.
//!
//! In: one-bit nodes that are known to be true or false. Out: the comparisons they rest on, and for each the polynomial
//! that is then not positive, together with the values that must fit their type for this to be so.

use std::rc::Rc;

use super::{Env, reads};
use crate::kernel::interval::Sign;
use crate::kernel::sym::{Dag, NodeId, Op, Poly, Pred};

/// A one-bit node and its known value.
pub type Fact = (NodeId, bool);

/// Values that must fit their type.
pub type Needs = Vec<(NodeId, Sign)>;

/// `poly ≤ 0` wherever every value of `needs` fits.
#[derive(Debug, Clone)]
pub(super) struct Inequality {
    pub poly: Poly,
    pub needs: Rc<Needs>,
}

/// The facts that a fact is made of: both halves of an `and`, the opposite of a negation.
#[must_use]
pub fn flatten(dag: &Dag, facts: &[Fact]) -> Vec<Fact> {
    let mut todo: Vec<Fact> = facts.iter().rev().copied().collect();
    let mut out: Vec<Fact> = Vec::new();
    while let Some((id, value)) = todo.pop() {
        if out.contains(&(id, value)) {
            continue;
        }
        let node = dag.node(id);
        match (node.op, node.args()) {
            (Op::And, &[a, b]) if value && node.width == 1 => todo.extend([(a, true), (b, true)]),
            (Op::Or, &[a, b]) if !value && node.width == 1 => todo.extend([(a, false), (b, false)]),
            (Op::Xor, &[a, b]) if node.width == 1 && dag.as_const(b).is_some() => {
                todo.push((a, value != (dag.as_const(b) == Some(1))));
            }
            (Op::Select, &[c, a, b]) if node.width == 1 => match (dag.as_const(a), dag.as_const(b)) {
                (_, Some(0)) if value => todo.extend([(c, true), (a, true)]),
                (_, Some(1)) if !value => todo.extend([(c, true), (a, false)]),
                (Some(0), _) if value => todo.extend([(c, false), (b, true)]),
                (Some(1), _) if !value => todo.extend([(c, false), (b, false)]),
                _ => {}
            },
            (Op::Cmp(Pred::Eq | Pred::Ne), &[a, b]) if dag.as_const(b) == Some(0) => {
                let nonzero = value == (node.op == Op::Cmp(Pred::Ne));
                nonzero_facts(dag, a, nonzero, &mut todo);
            }
            _ => {}
        }
        out.push((id, value));
    }
    out
}

/// What follows from a value being zero or not.
fn nonzero_facts(dag: &Dag, id: NodeId, nonzero: bool, todo: &mut Vec<Fact>) {
    let node = dag.node(id);
    if node.width == 1 {
        todo.push((id, nonzero));
    } else if let (Op::Select, &[c, a, b]) = (node.op, node.args())
        && nonzero
    {
        // A copy whose size is `size if p else 0` happens only where p holds.
        if dag.as_const(b) == Some(0) {
            todo.push((c, true));
            nonzero_facts(dag, a, true, todo);
        } else if dag.as_const(a) == Some(0) {
            todo.push((c, false));
            nonzero_facts(dag, b, true, todo);
        }
    } else if let (Op::Zext | Op::Sext, &[a]) = (node.op, node.args()) {
        nonzero_facts(dag, a, nonzero, todo);
    }
}

/// The values that must fit for a node's polynomial to be its true value.
#[must_use]
pub fn needs_of(dag: &Dag, root: NodeId, sign: Sign) -> Needs {
    let mut needs = vec![(root, sign)];
    let mut todo = vec![root];
    let mut seen = std::collections::HashSet::new();
    while let Some(id) = todo.pop() {
        let node = dag.node(id);
        if !seen.insert(id)
            || !matches!(node.op, Op::Add | Op::Sub | Op::Mul | Op::Sext | Op::Zext | Op::Trunc)
        {
            continue;
        }
        for (index, &arg) in node.args().iter().enumerate() {
            if let Some(sign) = reads(node.op, index) {
                needs.push((arg, sign));
            }
            todo.push(arg);
        }
    }
    needs
}

/// The inequalities that follow from the facts.
pub(super) fn inequalities(env: &Env<'_>, facts: &[Fact]) -> Vec<Inequality> {
    let mut out = Vec::new();
    for &(id, value) in facts {
        let node = env.dag.node(id);
        let (Op::Cmp(pred), &[a, b]) = (node.op, node.args()) else { continue };
        let sign = if matches!(pred, Pred::Ult | Pred::Ule) { Sign::Unsigned } else { Sign::Signed };
        let mut needs = needs_of(env.dag, a, sign);
        needs.extend(needs_of(env.dag, b, sign));
        let needs = Rc::new(needs);
        let (pa, pb) = (env.poly(a), env.poly(b));
        let mut push = |left: &Poly, right: &Poly, gap: i128| {
            if let Some(poly) = left.plus(right, -1).and_then(|p| p.plus(&Poly::constant(gap), 1)) {
                out.push(Inequality { poly, needs: needs.clone() });
            }
        };
        match (pred, value) {
            (Pred::Slt | Pred::Ult, true) => push(&pa, &pb, 1),
            (Pred::Slt | Pred::Ult, false) => push(&pb, &pa, 0),
            (Pred::Sle | Pred::Ule, true) => push(&pa, &pb, 0),
            (Pred::Sle | Pred::Ule, false) => push(&pb, &pa, 1),
            (Pred::Eq, true) | (Pred::Ne, false) => {
                push(&pa, &pb, 0);
                push(&pb, &pa, 0);
            }
            (Pred::Eq, false) | (Pred::Ne, true) => {}
        }
    }
    out
}
