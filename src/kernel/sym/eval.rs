//! Evaluates nodes: at a point as the machine would, and over boxes as intervals.
//!
//! In: values or intervals of the variables. Out: the exact value, or an interval that holds every exact value, of each
//! node of a slice. "Exact" is before reduction to the width: where a node's exact value leaves its type, the machine's
//! value differs from it.

use std::collections::HashMap;

use super::build::{unsigned, wrap};
use super::{Dag, NodeId, Op, Pred, VarId};
use crate::kernel::interval::{Interval, Sign};

/// Values of variables.
pub type Point = HashMap<VarId, i128>;

/// One node's exact value from its operands' exact values; `None` where the program has none (a division by zero) or
/// where it passes 128 bits.
fn exact(op: Op, width: u8, from: u8, args: &[i128]) -> Option<i128> {
    let at = |i: usize| args.get(i).copied();
    let (a, b) = (at(0)?, at(1).unwrap_or(0));
    let (sa, sb) = (wrap(a, from), wrap(b, from));
    let (ua, ub) = (unsigned(a, from), unsigned(b, from));
    let shift = u32::try_from(ub.min(127)).ok()?;
    Some(match op {
        Op::Const(value) => value,
        Op::Var(_) => return None,
        Op::Add => a.checked_add(b)?,
        Op::Sub => a.checked_sub(b)?,
        Op::Mul => a.checked_mul(b)?,
        Op::Sext => sa,
        Op::Zext => ua,
        Op::Trunc => a,
        Op::And => wrap(a & b, width),
        Op::Or => wrap(a | b, width),
        Op::Xor => wrap(a ^ b, width),
        Op::Shl if shift >= u32::from(width) => 0,
        Op::Shl => wrap(ua << shift, width),
        Op::ShrS => sa >> shift,
        Op::ShrU => ua >> shift,
        Op::DivS => sa.checked_div(sb)?,
        Op::DivU => ua.checked_div(ub)?,
        Op::RemS => sa.checked_rem(sb)?,
        Op::RemU => ua.checked_rem(ub)?,
        Op::MinS => sa.min(sb),
        Op::MaxS => sa.max(sb),
        Op::MinU => ua.min(ub),
        Op::MaxU => ua.max(ub),
        Op::MulHiS => (sa * sb) >> width,
        Op::MulHiU => ua.checked_mul(ub)? >> width,
        Op::Cmp(pred) => i128::from(match pred {
            Pred::Eq => ua == ub,
            Pred::Ne => ua != ub,
            Pred::Slt => sa < sb,
            Pred::Sle => sa <= sb,
            Pred::Ult => ua < ub,
            Pred::Ule => ua <= ub,
        }),
        Op::Select => {
            if a & 1 == 1 {
                b
            } else {
                at(2)?
            }
        }
    })
}

/// The constant that an operation on constants gives; `None` where it leaves its type, so that the wrap stays visible.
pub(super) fn fold(op: Op, width: u8, from: u8, args: &[i128]) -> Option<i128> {
    if matches!(op, Op::Select) {
        return None;
    }
    let value = exact(op, width, from, args)?;
    let fits = Interval::of_type(width, Sign::Signed).holds(value)
        || (matches!(op, Op::Zext | Op::ShrU) && Interval::of_type(width, Sign::Unsigned).holds(value));
    fits.then_some(value)
}

/// How an interval of exact values reads through a type: itself where it fits, else the whole type.
#[must_use]
pub(super) fn read(range: Interval, width: u8, sign: Sign) -> Interval {
    let whole = Interval::of_type(width, sign);
    if range.within(whole) {
        return range;
    }
    let turn = Interval::point(1i128 << width.min(64));
    let (up, down) = (range.plus(turn), range.minus(turn));
    if up.within(whole) {
        up
    } else if down.within(whole) {
        down
    } else {
        whole
    }
}

/// One node's interval from its operands' intervals.
fn ranged(op: Op, width: u8, from: u8, args: &[Interval], trusted: bool) -> Interval {
    let at = |i: usize| args.get(i).copied().unwrap_or(Interval::ALL);
    let signed = |i: usize| read(at(i), from, Sign::Signed);
    let bare = |i: usize| read(at(i), from, Sign::Unsigned);
    let whole = |sign| Interval::of_type(from, sign);
    match op {
        Op::Const(value) => Interval::point(value),
        Op::Var(_) => Interval::ALL,
        Op::Add => at(0).plus(at(1)),
        Op::Sub => at(0).minus(at(1)),
        Op::Mul => at(0).times(at(1)),
        Op::Sext if trusted => at(0).meet(whole(Sign::Signed)),
        Op::Sext => signed(0),
        Op::Zext if trusted => at(0).meet(whole(Sign::Unsigned)),
        Op::Zext => bare(0),
        Op::Trunc => at(0),
        Op::And => signed(0).and(signed(1), width),
        Op::Or | Op::Xor => signed(0).or(signed(1), width),
        Op::Shl => Interval::of_type(width, Sign::Signed),
        Op::ShrS => signed(0).shift_right(bare(1)),
        Op::ShrU => bare(0).shift_right(bare(1)),
        Op::DivS => signed(0).quotient(signed(1)),
        Op::DivU => bare(0).quotient(bare(1)),
        Op::RemS => signed(0).remainder(signed(1)),
        Op::RemU => bare(0).remainder(bare(1)),
        Op::MinS => signed(0).min(signed(1)),
        Op::MaxS => signed(0).max(signed(1)),
        Op::MinU => bare(0).min(bare(1)),
        Op::MaxU => bare(0).max(bare(1)),
        Op::MulHiS => signed(0).times(signed(1)).shift_right(Interval::point(i128::from(width))),
        Op::MulHiU => bare(0).times(bare(1)).shift_right(Interval::point(i128::from(width))),
        Op::Cmp(pred) => match pred {
            Pred::Eq => equal(signed(0), signed(1)),
            Pred::Ne => flip(equal(signed(0), signed(1))),
            Pred::Slt => less(signed(0), signed(1)),
            Pred::Sle => flip(less(signed(1), signed(0))),
            Pred::Ult => less(bare(0), bare(1)),
            Pred::Ule => flip(less(bare(1), bare(0))),
        },
        Op::Select => match at(0).single() {
            Some(0) => at(2),
            Some(_) => at(1),
            None => at(1).hull(at(2)),
        },
    }
}

fn truth(sure: bool, never: bool) -> Interval {
    Interval { lo: i128::from(sure), hi: i128::from(!never) }
}

fn less(a: Interval, b: Interval) -> Interval {
    truth(a.hi < b.lo, a.lo >= b.hi)
}

fn equal(a: Interval, b: Interval) -> Interval {
    truth(a.single().is_some() && a.single() == b.single(), a.meet(b).is_empty())
}

fn flip(a: Interval) -> Interval {
    Interval { lo: 1 - a.hi, hi: 1 - a.lo }
}

#[derive(Debug, Clone)]
struct Step {
    op: Op,
    width: u8,
    from: u8,
    args: [usize; 3],
    arity: usize,
    trusted: bool,
}

/// A slice made ready to be evaluated many times.
#[derive(Debug, Clone)]
pub struct Values {
    ids: Vec<NodeId>,
    steps: Vec<Step>,
}

impl Values {
    /// The nodes that `roots` need. Widenings in `trusted` read operands that are known to fit.
    #[must_use]
    pub fn new(dag: &Dag, roots: &[NodeId], trusted: &dyn Fn(NodeId) -> bool) -> Self {
        let ids = dag.slice(roots);
        let steps = ids
            .iter()
            .map(|&id| {
                let node = dag.node(id);
                let mut args = [0; 3];
                for (slot, arg) in args.iter_mut().zip(node.args()) {
                    *slot = ids.binary_search(arg).unwrap_or(0);
                }
                // A selection's own width is its operands'; everything else reads the first operand's.
                let from = node.args().first().map_or(node.width, |&arg| dag.node(arg).width);
                Step {
                    op: node.op,
                    width: node.width,
                    from,
                    args,
                    arity: node.args().len(),
                    trusted: trusted(id),
                }
            })
            .collect();
        Self { ids, steps }
    }

    /// The nodes, operands first.
    #[must_use]
    pub fn ids(&self) -> &[NodeId] {
        &self.ids
    }

    /// The place of a node in the results.
    #[must_use]
    pub fn place(&self, id: NodeId) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    /// The exact value of every node at a point, `None` where there is none or a variable has no value.
    #[must_use]
    pub fn at(&self, point: &dyn Fn(VarId) -> Option<i128>) -> Vec<Option<i128>> {
        let mut out: Vec<Option<i128>> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let value = if let Op::Var(var) = step.op {
                point(var)
            } else if step.op == Op::Select {
                // The side that isn't chosen may have no value.
                let of = |i: usize| step.args.get(i).and_then(|&at| out.get(at)).copied().flatten();
                of(0).and_then(|cond| if cond & 1 == 1 { of(1) } else { of(2) })
            } else if step.arity == 0 {
                exact(step.op, step.width, step.width, &[0])
            } else {
                let used = step.args.get(..step.arity).unwrap_or(&[]);
                let args: Option<Vec<i128>> = used.iter().map(|&at| out.get(at).copied().flatten()).collect();
                args.and_then(|args| exact(step.op, step.width, step.from, &args))
            };
            out.push(value);
        }
        out
    }

    /// Of every node whether it has a value only where one of the variables that `open` names has one. The side of a
    /// selection that isn't chosen needs none.
    #[must_use]
    pub fn needing(&self, open: &dyn Fn(VarId) -> bool) -> Vec<bool> {
        let mut out: Vec<bool> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let of = |nth: usize| step.args.get(nth).and_then(|&at| out.get(at)).copied().unwrap_or(false);
            let needs = match step.op {
                Op::Var(var) => open(var),
                Op::Select => of(0) || of(1) && of(2),
                _ => (0..step.arity).any(of),
            };
            out.push(needs);
        }
        out
    }

    /// An interval for every node, from those of the variables and of nodes that are known to be narrower.
    #[must_use]
    pub fn over(
        &self,
        var: &dyn Fn(VarId) -> Interval,
        narrowed: &dyn Fn(NodeId) -> Option<Interval>,
    ) -> Vec<Interval> {
        let mut out: Vec<Interval> = Vec::with_capacity(self.steps.len());
        for (step, &id) in self.steps.iter().zip(&self.ids) {
            let mut range = if let Op::Var(id) = step.op {
                var(id)
            } else {
                let mut args = [Interval::ALL; 3];
                for (slot, &at) in args.iter_mut().zip(&step.args) {
                    *slot = out.get(at).copied().unwrap_or(Interval::ALL);
                }
                ranged(step.op, step.width, step.from, &args, step.trusted)
            };
            if let Some(known) = narrowed(id) {
                range = range.meet(known);
            }
            out.push(range);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Origin, VarKind};
    use super::*;

    /// The exact value of an int32 product is kept; widening reads the wrapped one.
    #[test]
    fn a_product_is_exact_until_it_is_read() {
        let mut dag = Dag::default();
        let x = dag.var(VarKind::Arg(0), 32);
        let c = dag.constant(9216, 32);
        let product = dag.make(Op::Mul, 32, &[x, c], Origin::NONE);
        let wide = dag.make(Op::Sext, 64, &[product], Origin::NONE);
        let values = Values::new(&dag, &[wide], &|_| false);
        let at = values.at(&|_| Some(234_623));
        assert_eq!(at.get(values.place(product).unwrap()).copied().flatten(), Some(2_162_285_568));
        assert_eq!(at.get(values.place(wide).unwrap()).copied().flatten(), Some(2_162_285_568 - (1 << 32)));
    }

    #[test]
    fn disjoint_bits_add_up() {
        let mut dag = Dag::default();
        let block = dag.var(VarKind::ProgramId(0), 32);
        let thread = dag.var(VarKind::Thread(0), 32);
        let seven = dag.constant(7, 32);
        let base = dag.make(Op::Shl, 32, &[block, seven], Origin::NONE);
        let low = dag.constant(31, 32);
        let lane = dag.make(Op::And, 32, &[thread, low], Origin::NONE);
        let row = dag.make(Op::Or, 32, &[lane, base], Origin::NONE);
        assert_eq!(dag.node(row).op, Op::Add);
        let offset = dag.constant(96, 32);
        assert_eq!(dag.make(Op::Or, 32, &[row, offset], Origin::NONE), {
            dag.make(Op::Add, 32, &[row, offset], Origin::NONE)
        });
    }
}
