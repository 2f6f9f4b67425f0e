//! Control flow: loops, branches, blocks, and the facts that hold inside them.
//!
//! In: the blocks of a region. Out: a walk over every operation with the conditions under which it runs; induction
//! variables, carried values and branch results as nodes.

use super::lower::{Indices, Lowering};
use super::ops::initial_values;
use crate::kernel::model::Access;
use crate::kernel::solve::Fact;
use crate::kernel::sym::{NodeId, Op, Pred, VarKind};

/// A jump: the operation, which successor, and the block it leaves.
#[derive(Debug, Clone, Copy)]
struct Edge {
    op: usize,
    successor: usize,
    from: usize,
}

impl Lowering<'_> {
    /// Walks a list of blocks under facts.
    pub(super) fn blocks(&mut self, blocks: &[usize], facts: &[Fact]) {
        let mut held: Vec<Vec<Fact>> = Vec::new();
        for (at, &block) in blocks.iter().enumerate() {
            let mut own = if at == 0 { facts.to_vec() } else { self.facts_on_entry(block, blocks, &held) };
            self.walk(block, &mut own);
            held.push(own);
        }
    }

    fn edges_to(&self, block: usize) -> Vec<Edge> {
        let label = self.function.blocks.get(block).map_or("", |b| b.label.as_str());
        let mut out = Vec::new();
        if label.is_empty() {
            return out;
        }
        let region = self.owner.get(&block);
        for (op, info) in self.function.operations.iter().enumerate() {
            if self.owner.get(&info.block) == region {
                let named = info.successors.iter().enumerate().filter(|(_, (to, _))| to == label);
                out.extend(named.map(|(successor, _)| Edge { op, successor, from: info.block }));
            }
        }
        out
    }

    /// What holds when a block is entered: what its only edge says, else what all earlier edges share.
    fn facts_on_entry(&mut self, block: usize, blocks: &[usize], held: &[Vec<Fact>]) -> Vec<Fact> {
        let mut common: Option<Vec<Fact>> = None;
        for edge in self.edges_to(block) {
            let Some(known) = blocks.iter().position(|&b| b == edge.from).and_then(|at| held.get(at)) else {
                continue;
            };
            let mut facts = known.clone();
            if let Some(cond) = self.op(edge.op).operands.first().copied()
                && self.op(edge.op).name == "cf.cond_br"
            {
                facts.push(self.fact(cond, &Vec::new(), edge.successor == 0));
            }
            common = Some(match common {
                None => facts,
                Some(known) => {
                    known.into_iter().zip(facts).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
                }
            });
        }
        common.unwrap_or_default()
    }

    fn walk(&mut self, block: usize, facts: &mut Vec<Fact>) {
        let operations = self.function.blocks.get(block).map(|b| b.operations.clone()).unwrap_or_default();
        for index in operations {
            let op = self.op(index);
            let (name, place, regions) = (op.name.clone(), op.place, op.regions.clone());
            match name.as_str() {
                "scf.for" => {
                    let inner = self.loop_facts(index, facts);
                    self.regions(&regions, &inner);
                }
                "scf.if" => {
                    for (region, truth) in regions.iter().zip([true, false]) {
                        let mut inner = facts.clone();
                        if let Some(&cond) = self.op(index).operands.first() {
                            inner.push(self.fact(cond, &Vec::new(), truth));
                        }
                        self.blocks(region, &inner);
                    }
                }
                "tt.assume" | "llvm.intr.assume" => {
                    if let Some(&cond) = self.op(index).operands.first() {
                        facts.push(self.fact(cond, &Vec::new(), true));
                    }
                }
                "tt.assert" => self.assertion(index),
                "tt.reduce" | "tt.scan" | "tt.map_elementwise" => {}
                "tt.call" | "func.call" => {
                    self.lost.push(("it calls a function that is not part of it".into(), place))
                }
                _ => {
                    if !self.access(index, facts) && self.may_touch_memory(index) {
                        self.lost.push((super::lower::unknown(&name), place));
                    }
                    self.regions(&regions, facts);
                }
            }
        }
    }

    fn regions(&mut self, regions: &[Vec<usize>], facts: &[Fact]) {
        for region in regions {
            self.blocks(region, facts);
        }
    }

    /// A debug build checks its own 32-bit arithmetic; whether it would wrap is still worth knowing.
    fn assertion(&mut self, index: usize) {
        let checks =
            self.op(index).words.iter().any(|word| format!("{:?}", word.kind).contains("overflow detected"));
        let note = "a debug build: its own assertions report the overflow before an address is used";
        if checks && !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.into());
        }
    }

    /// In every round start + trip count · step < end, as whole numbers: the counter itself never wraps.
    fn loop_facts(&mut self, index: usize, facts: &[Fact]) -> Vec<Fact> {
        let mut inner = facts.to_vec();
        let origin = Self::origin(index);
        let wide = |this: &mut Self, nth| {
            let node = this.operand(index, nth, &Vec::new());
            this.dag.make(Op::Sext, 64, &[node], origin)
        };
        let (start, end, step) = (wide(self, 0), wide(self, 1), wide(self, 2));
        let count = self.dag.var(VarKind::Trip(trip(index)), 64);
        let moved = self.dag.make(Op::Mul, 64, &[count, step], origin);
        let counter = self.dag.make(Op::Add, 64, &[start, moved], origin);
        inner.push((self.dag.compare(Pred::Slt, counter, end, origin), true));
        inner
    }

    /// An argument of a block: an induction variable, a carried value, or what the jumps to it pass.
    pub(super) fn block_argument(
        &mut self,
        value: usize,
        block: usize,
        index: usize,
        at: &Indices,
        width: u8,
    ) -> NodeId {
        let owner = self.owner.get(&block).copied();
        let name = owner.map_or("", |(op, _)| self.op(op).name.as_str());
        match (owner, name) {
            (Some((op, _)), "scf.for") if index == 0 => self.induction(op, value, width),
            (Some((op, _)), "scf.for") => {
                let (key, own) = self.carries.placeholder(&mut self.dag, width);
                self.memo.insert((value, at.clone()), own);
                self.carried_keys.insert((value, at.clone()), key);
                if let Some((start, next)) = self.carried(op, index - 1) {
                    let (start, next) = (self.value(start, at), self.value(next, at));
                    self.carries.define(key, start, next, trip(op), Self::origin(op));
                }
                own
            }
            (Some((op, _)), "scf.while") => {
                self.dag.opaque("a value that a `while` loop carries", width, Self::origin(op))
            }
            _ => self.passed(block, index, at, width),
        }
    }

    /// lower bound + trip count · step
    fn induction(&mut self, op: usize, value: usize, width: u8) -> NodeId {
        let origin = Self::origin(op);
        let (start, step) = (self.operand(op, 0, &Vec::new()), self.operand(op, 2, &Vec::new()));
        let count = self.dag.var(VarKind::Trip(trip(op)), 64);
        let count = self.dag.make(Op::Trunc, width, &[count], origin);
        let moved = self.dag.make(Op::Mul, width, &[count, step], origin);
        let node = self.dag.make(Op::Add, width, &[start, moved], origin);
        let name = self.function.values.get(value).map(|v| v.name.clone()).unwrap_or_default();
        if !name.starts_with("arg") {
            self.dag.name(node, &name);
        }
        node
    }

    /// The initial value and the yielded one of what a loop carries.
    pub(super) fn carried(&self, op: usize, index: usize) -> Option<(usize, usize)> {
        let start = initial_values(self.op(op)).get(index).copied()?;
        let block = self.op(op).regions.first()?.last().copied()?;
        Some((start, self.yielded(block, index)?))
    }

    fn yielded(&self, block: usize, index: usize) -> Option<usize> {
        let last = self.function.blocks.get(block)?.operations.last().copied()?;
        let op = self.op(last);
        (op.name == "scf.yield").then(|| op.operands.get(index).copied()).flatten()
    }

    /// The argument of a loop's region that a result of the loop ends as.
    pub(super) fn carried_argument(&self, op: usize, result: usize) -> Option<usize> {
        let block = self.op(op).regions.first()?.first().copied()?;
        self.function.blocks.get(block)?.args.get(result + 1).copied()
    }

    /// How often a loop goes round: max(0, ⌈(end − start) / step⌉).
    pub(super) fn trips(&mut self, op: usize) -> NodeId {
        let origin = Self::origin(op);
        let wide = |this: &mut Self, nth| {
            let node = this.operand(op, nth, &Vec::new());
            this.dag.make(Op::Sext, 64, &[node], origin)
        };
        let (start, end, step) = (wide(self, 0), wide(self, 1), wide(self, 2));
        let (zero, one) = (self.dag.constant(0, 64), self.dag.constant(1, 64));
        let span = self.dag.make(Op::Sub, 64, &[end, start], origin);
        let padded = self.dag.make(Op::Add, 64, &[span, step], origin);
        let padded = self.dag.make(Op::Sub, 64, &[padded, one], origin);
        let count = self.dag.make(Op::DivS, 64, &[padded, step], origin);
        self.dag.make(Op::MaxS, 64, &[zero, count], origin)
    }

    pub(super) fn loop_result(&mut self, op: usize, result: usize, at: &Indices, width: u8) -> NodeId {
        let Some(arg) = self.carried_argument(op, result) else {
            return self.dag.opaque("a loop's result", width, Self::origin(op));
        };
        self.value(arg, at);
        let Some(&of) = self.carried_keys.get(&(arg, at.clone())) else {
            return self.dag.opaque("a loop's result", width, Self::origin(op));
        };
        let trips = self.trips(op);
        let (key, node) = self.carries.placeholder(&mut self.dag, width);
        self.carries.define_final(key, of, trip(op), trips);
        node
    }

    /// The two values that a branch may give.
    pub(super) fn branch_values(&self, op: usize, result: usize) -> Option<(usize, usize)> {
        let regions = &self.op(op).regions;
        let then = self.yielded(regions.first()?.last().copied()?, result)?;
        let other = self.yielded(regions.get(1)?.last().copied()?, result)?;
        Some((then, other))
    }

    pub(super) fn branch_result(&mut self, op: usize, result: usize, at: &Indices, width: u8) -> NodeId {
        let Some((then, other)) = self.branch_values(op, result) else {
            return self.dag.opaque("a branch's result", width, Self::origin(op));
        };
        let cond = self.operand(op, 0, &Vec::new());
        let (then, other) = (self.value(then, at), self.value(other, at));
        self.dag.make(Op::Select, width, &[cond, then, other], Self::origin(op))
    }

    /// What the jumps to a block pass for an argument.
    fn passed(&mut self, block: usize, index: usize, at: &Indices, width: u8) -> NodeId {
        let edges = self.edges_to(block);
        let pass = |this: &Self, edge: Edge| {
            this.op(edge.op).successors.get(edge.successor).and_then(|(_, values)| values.get(index)).copied()
        };
        // A jump from this block or a later one closes a loop.
        let forward = edges.iter().all(|edge| edge.from < block);
        match *edges.as_slice() {
            [edge] if forward => {
                if let Some(value) = pass(self, edge) {
                    return self.value(value, at);
                }
            }
            [a, b] if forward && a.op == b.op => {
                if let (Some(first), Some(second)) = (pass(self, a), pass(self, b)) {
                    let cond = self.operand(a.op, 0, &Vec::new());
                    let args = [cond, self.value(first, at), self.value(second, at)];
                    return self.dag.make(Op::Select, width, &args, Self::origin(a.op));
                }
            }
            _ => {}
        }
        self.dag.opaque("a value that several branches set", width, crate::kernel::sym::Origin::NONE)
    }

    /// Whether an operation that isn't known takes a pointer.
    fn may_touch_memory(&self, index: usize) -> bool {
        let op = self.op(index);
        let known = ["arith.", "scf.", "cf.", "math.", "tt.return", "tt.func", "ub."];
        let moves = [
            "tt.addptr",
            "tt.splat",
            "tt.broadcast",
            "tt.expand_dims",
            "tt.reshape",
            "tt.view",
            "tt.trans",
            "tt.bitcast",
            "tt.ptr_to_int",
            "tt.int_to_ptr",
            "tt.make_tensor_ptr",
            "tt.make_tensor_descriptor",
            "tt.advance",
            "tt.print",
            "tt.join",
            "tt.split",
            "tt.cat",
            "tt.unsplat",
        ];
        if known.iter().any(|dialect| op.name.starts_with(dialect)) || moves.contains(&op.name.as_str()) {
            return false;
        }
        op.operands
            .iter()
            .any(|&value| self.ty(value).pointee_bytes().is_some() || !self.ty(value).block.is_empty())
    }

    /// Notes an access.
    pub(super) fn push(&mut self, access: Access) {
        self.accesses.push(access);
    }
}

/// The number of a loop's trip count.
pub(super) fn trip(op: usize) -> u32 {
    u32::try_from(op).unwrap_or(u32::MAX)
}
