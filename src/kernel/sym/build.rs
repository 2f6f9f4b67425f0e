//! Makes nodes: folds constants, spots bit tricks, flips comparisons.
//!
//! In: operations of a front end. Out: node ids. A rewrite here holds for every value of the variables.

use super::{Dag, Key, MAX_NODES, Node, NodeId, Op, Origin, Var, VarId, VarKind};
use crate::kernel::interval::{Interval, Sign};

/// A comparison. The others are these with the operands swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pred {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Signed less.
    Slt,
    /// Signed less or equal.
    Sle,
    /// Unsigned less.
    Ult,
    /// Unsigned less or equal.
    Ule,
}

/// `value` reduced to `width` bits and read as signed (one bit: as 0 or 1).
#[must_use]
pub(super) fn wrap(value: i128, width: u8) -> i128 {
    let low = unsigned(value, width);
    if width > 1 && low >> (width - 1) & 1 == 1 { low - (1i128 << width) } else { low }
}

/// `value` reduced to `width` bits and read as unsigned.
#[must_use]
pub(super) fn unsigned(value: i128, width: u8) -> i128 {
    value & ((1i128 << width.clamp(1, 64)) - 1)
}

fn mask(width: u8) -> u64 {
    u64::MAX >> (64 - u32::from(width.clamp(1, 64)))
}

impl Dag {
    /// A constant of `width` bits.
    pub fn constant(&mut self, value: i128, width: u8) -> NodeId {
        self.insert(Op::Const(wrap(value, width)), width, &[], Origin::NONE)
    }

    /// A variable; the same kind and width gives the same node.
    pub fn var(&mut self, kind: VarKind, width: u8) -> NodeId {
        let var = Var { kind, width };
        let id = match self.known_vars.get(&var) {
            Some(&id) => id,
            None => {
                let id = VarId(u32::try_from(self.vars.len()).unwrap_or(u32::MAX));
                self.vars.push(var.clone());
                self.known_vars.insert(var, id);
                id
            }
        };
        self.insert(Op::Var(id), width, &[], Origin::NONE)
    }

    /// A value that can't be followed, with the reason; each call makes another one.
    pub fn opaque(&mut self, reason: impl Into<String>, width: u8, origin: Origin) -> NodeId {
        let serial = u32::try_from(self.vars.len()).unwrap_or(u32::MAX);
        self.var(VarKind::Opaque(reason.into(), origin, serial), width)
    }

    /// A value read from memory; each call makes another one.
    pub fn loaded(&mut self, width: u8, origin: Origin) -> NodeId {
        let serial = u32::try_from(self.vars.len()).unwrap_or(u32::MAX);
        self.var(VarKind::Loaded(origin, serial), width)
    }

    /// An operation. Operands of other widths than it needs are the caller's fault and only lose precision.
    pub fn make(&mut self, op: Op, width: u8, args: &[NodeId], origin: Origin) -> NodeId {
        let consts: Option<Vec<i128>> = args.iter().map(|&arg| self.as_const(arg)).collect();
        if let (Some(values), Some(&first)) = (consts, args.first()) {
            let arg_width = self.node(first).width;
            if let Some(value) = super::eval::fold(op, width, arg_width, &values) {
                return self.constant_exact(value, width);
            }
        }
        match (op, args) {
            (Op::Add, &[a, b]) => self.add(a, b, width, origin),
            (Op::Sub, &[a, b]) if self.as_const(b) == Some(0) => a,
            (Op::Sub, &[a, b]) => match self.remainder(a, b) {
                Some((op, divisor)) => self.insert(op, width, &[a, divisor], origin),
                None => self.insert(op, width, args, origin),
            },
            (Op::Mul, &[a, b]) => self.mul(a, b, width, origin),
            (Op::Shl, &[a, b]) => match self.as_const(b) {
                Some(bits) if (0..i128::from(width)).contains(&bits) => {
                    let factor = self.constant_exact(1i128 << bits, width);
                    self.mul(a, factor, width, origin)
                }
                _ => self.insert(op, width, args, origin),
            },
            (Op::Or | Op::Xor, &[a, b]) => {
                let apart = (self.node(a).zeros | self.node(b).zeros) & mask(width) == mask(width);
                if apart && width > 1 {
                    self.add(a, b, width, origin)
                } else {
                    self.insert(op, width, args, origin)
                }
            }
            (Op::And, &[a, b]) => self.and(a, b, width, origin),
            (Op::ShrS | Op::ShrU | Op::DivS | Op::DivU, &[a, b]) if self.neutral(op, b) => a,
            (Op::Sext | Op::Zext | Op::Trunc, &[a]) => self.resize(op, a, width, origin),
            (Op::Select, &[_, a, b]) if a == b => a,
            (Op::Select, &[c, a, b]) => match self.as_const(c) {
                Some(0) => b,
                Some(_) => a,
                None => self.insert(op, width, args, origin),
            },
            (Op::Cmp(pred), &[a, b]) if a == b => {
                self.constant(i128::from(matches!(pred, Pred::Eq | Pred::Sle | Pred::Ule)), 1)
            }
            _ => self.insert(op, width, args, origin),
        }
    }

    /// `a − (a / d) · d`, which compilers write for `a % d`.
    fn remainder(&self, a: NodeId, b: NodeId) -> Option<(Op, NodeId)> {
        let product = self.node(b);
        let (Op::Mul, &[left, right]) = (product.op, product.args()) else { return None };
        [(left, right), (right, left)].into_iter().find_map(|(quotient, divisor)| {
            let node = self.node(quotient);
            let op = match node.op {
                Op::DivS => Op::RemS,
                Op::DivU => Op::RemU,
                _ => return None,
            };
            (node.args() == [a, divisor]).then_some((op, divisor))
        })
    }

    fn neutral(&self, op: Op, b: NodeId) -> bool {
        let unit = i128::from(matches!(op, Op::DivS | Op::DivU));
        self.as_const(b) == Some(unit)
    }

    /// A factor that must not be reduced to a signed value: 1 << 31 is a large positive factor, not a negative one.
    fn constant_exact(&mut self, value: i128, width: u8) -> NodeId {
        self.insert(Op::Const(value), width, &[], Origin::NONE)
    }

    fn add(&mut self, a: NodeId, b: NodeId, width: u8, origin: Origin) -> NodeId {
        match (self.as_const(a), self.as_const(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => self.insert(Op::Add, width, &[a, b], origin),
        }
    }

    fn mul(&mut self, a: NodeId, b: NodeId, width: u8, origin: Origin) -> NodeId {
        match (self.as_const(a), self.as_const(b)) {
            (Some(1), _) => b,
            (_, Some(1)) => a,
            (Some(0), _) | (_, Some(0)) => self.constant(0, width),
            _ => self.insert(Op::Mul, width, &[a, b], origin),
        }
    }

    fn and(&mut self, a: NodeId, b: NodeId, width: u8, origin: Origin) -> NodeId {
        for (value, other) in [(a, b), (b, a)] {
            if let Some(bits) = self.as_const(other) {
                // A mask that keeps every bit that can be set changes nothing.
                let kept = u64::try_from(unsigned(bits, width)).unwrap_or(0);
                if (self.node(value).zeros | kept) & mask(width) == mask(width) {
                    return value;
                }
            }
        }
        self.insert(Op::And, width, &[a, b], origin)
    }

    fn resize(&mut self, op: Op, a: NodeId, width: u8, origin: Origin) -> NodeId {
        let inner = self.node(a);
        if inner.width == width {
            return a;
        }
        if op == Op::Trunc
            && matches!(inner.op, Op::Sext | Op::Zext)
            && let &[source] = inner.args()
        {
            let from = self.node(source).width;
            return match from.cmp(&width) {
                std::cmp::Ordering::Equal => source,
                std::cmp::Ordering::Greater => self.insert(Op::Trunc, width, &[source], origin),
                std::cmp::Ordering::Less => self.insert(inner.op, width, &[source], origin),
            };
        }
        if op == Op::Trunc && width > inner.width {
            return self.insert(Op::Sext, width, &[a], origin);
        }
        self.insert(op, width, &[a], origin)
    }

    /// `a pred b`.
    pub fn compare(&mut self, pred: Pred, a: NodeId, b: NodeId, origin: Origin) -> NodeId {
        self.make(Op::Cmp(pred), 1, &[a, b], origin)
    }

    /// The opposite of a one-bit node.
    pub fn negate(&mut self, cond: NodeId) -> NodeId {
        let one = self.constant(1, 1);
        self.make(Op::Xor, 1, &[cond, one], Origin::NONE)
    }

    /// Both of two one-bit nodes.
    pub fn both(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.as_const(a), self.as_const(b)) {
            (Some(1), _) => b,
            (_, Some(1)) => a,
            _ => self.insert(Op::And, 1, &[a, b], Origin::NONE),
        }
    }

    fn insert(&mut self, op: Op, width: u8, args: &[NodeId], origin: Origin) -> NodeId {
        let mut operands = [NodeId(0); 3];
        for (slot, &arg) in operands.iter_mut().zip(args) {
            *slot = arg;
        }
        let arity = u8::try_from(args.len().min(3)).unwrap_or(3);
        let key = Key { op, width, operands, arity };
        if let Some(&id) = self.known.get(&key) {
            return id;
        }
        if self.nodes.len() >= MAX_NODES {
            self.full = true;
            return NodeId(0);
        }
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(0));
        let zeros = self.zeros(op, width, args);
        self.nodes.push(Node { op, width, origin, zeros, operands, arity });
        self.known.insert(key, id);
        id
    }

    /// The bits of a result that are always zero.
    fn zeros(&self, op: Op, width: u8, args: &[NodeId]) -> u64 {
        let of = |i: usize| args.get(i).map_or(0, |&arg| self.node(arg).zeros);
        let amount =
            |i: usize| args.get(i).and_then(|&arg| self.as_const(arg)).and_then(|v| u32::try_from(v).ok());
        let above = !mask(width);
        let low_run = |zeros: u64| (!zeros).trailing_zeros();
        let low_mask = |bits: u32| if bits >= 64 { u64::MAX } else { (1u64 << bits) - 1 };
        let bits = match op {
            Op::Const(value) => !u64::try_from(unsigned(value, width)).unwrap_or(u64::MAX),
            Op::Var(var) => self.vars.get(var.index()).map_or(0, var_zeros),
            // Low zeros of a sum are those of both; of a product they add up.
            Op::Add if (of(0) | of(1)) == u64::MAX => of(0) & of(1),
            Op::Add | Op::Sub => {
                let low = low_mask(low_run(of(0)).min(low_run(of(1))));
                let high = of(0) & of(1);
                // Without a carry out of the top one-bits nothing above them is set.
                let lead = high.leading_ones().saturating_sub(1);
                if op == Op::Add && lead > 0 { low | !(u64::MAX >> lead) } else { low }
            }
            Op::Mul => low_mask(low_run(of(0)).saturating_add(low_run(of(1))).min(64)),
            Op::And => of(0) | of(1),
            Op::Or | Op::Xor => of(0) & of(1),
            Op::Zext => of(0) | !mask(args.first().map_or(64, |&arg| self.node(arg).width)),
            Op::Trunc => of(0),
            Op::Sext => {
                let from = args.first().map_or(64, |&arg| self.node(arg).width);
                if of(0) >> (from - 1) & 1 == 1 { of(0) | !mask(from) } else { of(0) & mask(from) }
            }
            Op::ShrU => match amount(1) {
                Some(bits) if bits < u32::from(width) => {
                    ((of(0) & mask(width)) | above) >> bits | !(mask(width) >> bits)
                }
                _ => 0,
            },
            Op::Select => of(1) & of(2),
            Op::MinU => {
                let lead = (of(0) | above).leading_ones().max((of(1) | above).leading_ones());
                if lead >= 64 { u64::MAX } else { !(u64::MAX >> lead) }
            }
            Op::Cmp(_) => !1,
            _ => 0,
        };
        bits | above
    }

    /// `node` with variables replaced; nodes that don't need them stay.
    pub fn substitute(
        &mut self,
        root: NodeId,
        replace: &dyn Fn(&Var) -> Option<NodeId>,
        memo: &mut std::collections::HashMap<NodeId, NodeId>,
    ) -> NodeId {
        for id in self.slice(&[root]) {
            if memo.contains_key(&id) {
                continue;
            }
            let node = self.node(id);
            let new = match node.op {
                Op::Var(var) => self.vars.get(var.index()).and_then(replace).unwrap_or(id),
                Op::Const(_) => id,
                op => {
                    let args: Vec<NodeId> =
                        node.args().iter().map(|arg| memo.get(arg).copied().unwrap_or(*arg)).collect();
                    if args == node.args() { id } else { self.make(op, node.width, &args, node.origin) }
                }
            };
            if let Some(name) = self.names.get(&id).cloned()
                && new != id
            {
                self.name(new, &name);
            }
            memo.insert(id, new);
        }
        memo.get(&root).copied().unwrap_or(root)
    }
}

fn var_zeros(var: &Var) -> u64 {
    let range = match var.kind {
        VarKind::Lane(_, extent) => Interval::new(0, i128::from(extent) - 1),
        VarKind::Thread(_) => Interval::new(0, 1023),
        VarKind::ProgramId(_) | VarKind::ProgramCount(_) => Interval::of_type(31, Sign::Unsigned),
        _ => return 0,
    };
    let top = u64::try_from(range.hi.max(0)).unwrap_or(u64::MAX);
    if top == 0 { u64::MAX } else { !(u64::MAX >> top.leading_zeros()) }
}
