//! What was meant: the same arithmetic in whole numbers.
//!
//! In: a node. Out: a node of 64 bits whose sums, differences and products are as wide as needed, so that nothing wraps.

use super::{Dag, NodeId, Op, Origin, Pred};

impl Dag {
    /// The value that a node stands for if nothing wrapped, 64 bits wide.
    pub fn meant(&mut self, root: NodeId) -> NodeId {
        let ids = self.slice(&[root]);
        // In the order of `ids`, whose operands come first.
        let mut memo: Vec<NodeId> = Vec::with_capacity(ids.len());
        for &id in &ids {
            let node = self.node(id);
            let of = |memo: &[NodeId], nth: usize| {
                let place = node.args().get(nth).and_then(|arg| ids.binary_search(arg).ok());
                place.and_then(|at| memo.get(at)).copied().unwrap_or(id)
            };
            let new = match node.op {
                Op::Add | Op::Sub | Op::Mul => {
                    let args = [of(&memo, 0), of(&memo, 1)];
                    self.make(node.op, 64, &args, node.origin)
                }
                Op::Sext | Op::Zext | Op::Trunc => of(&memo, 0),
                Op::Select => {
                    let cond = node.args().first().copied().unwrap_or(id);
                    let args = [cond, of(&memo, 1), of(&memo, 2)];
                    self.make(Op::Select, 64, &args, node.origin)
                }
                _ if node.width == 64 => id,
                _ => self.make(if node.width == 1 { Op::Zext } else { Op::Sext }, 64, &[id], node.origin),
            };
            memo.push(new);
        }
        memo.last().copied().unwrap_or(root)
    }

    /// A comparison of what its operands stand for; anything else stays.
    pub fn meant_comparison(&mut self, id: NodeId) -> NodeId {
        let node = self.node(id);
        let (Op::Cmp(pred), &[a, b]) = (node.op, node.args()) else { return id };
        let signed = match pred {
            Pred::Ult => Pred::Slt,
            Pred::Ule => Pred::Sle,
            other => other,
        };
        let (a, b) = (self.meant(a), self.meant(b));
        self.compare(signed, a, b, Origin::NONE)
    }
}
