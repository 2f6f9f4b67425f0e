//! PTX accesses and the facts under which they happen.
//!
//! In: instructions that touch global memory. Out: [`Access`]es. A fact is the guard, the branches on the way, and for a
//! loop the condition of its back edge one round earlier.

use std::collections::{HashMap, HashSet};

use super::flow::Loop;
use super::known::{Effect, effect, harmless_call};
use super::lower::{ELSEWHERE, Lowering, VARIABLE, type_width};
use super::{Instruction, Operand};
use crate::kernel::carry::replace_trip;
use crate::kernel::model::{Access, AccessKind, Base};
use crate::kernel::solve::Fact;
use crate::kernel::sym::{NodeId, Op, Origin, Poly, Polys, Pred, VarKind};

/// Most accesses of one entry.
const MAX_ACCESSES: usize = 20_000;

/// What holds in some block: one list for each way in which its loops may have been entered.
type Ways = Vec<Vec<Fact>>;

impl Lowering<'_> {
    pub(super) fn all_accesses(&mut self) {
        if self.flow.indirect {
            self.lost.push(("it branches to a place that is computed".into(), usize::MAX));
        }
        let mut ways: HashMap<usize, Ways> = HashMap::new();
        let mut effects: HashMap<&str, Effect> = HashMap::new();
        let entry = self.entry;
        for index in 0..self.entry.instructions.len() {
            let Some(instruction) = entry.instructions.get(index) else { continue };
            let opcode = instruction.opcode.as_str();
            let kind = match *effects.entry(opcode).or_insert_with(|| effect(opcode)) {
                Effect::None => continue,
                Effect::Load | Effect::AsyncCopy => AccessKind::Load,
                Effect::Store => AccessKind::Store,
                Effect::Atomic => AccessKind::Atomic,
                Effect::Lost => {
                    self.lose(index, instruction);
                    continue;
                }
                Effect::Foreign => {
                    self.lost
                        .push((format!("the instruction `{}` is not understood", instruction.opcode), index));
                    continue;
                }
            };
            if self.accesses.len() >= MAX_ACCESSES {
                self.lost.push(("it has more accesses than are followed".into(), index));
                return;
            }
            let block = self.flow.block_of.get(index).copied().unwrap_or(0);
            let known = ways.entry(block).or_insert_with(|| self.ways(block)).clone();
            self.access(index, instruction, kind, &known);
        }
    }

    fn lose(&mut self, index: usize, instruction: &Instruction) {
        if instruction.opcode.starts_with("call") {
            let names: Vec<&str> = instruction
                .operands
                .iter()
                .filter_map(|o| if let Operand::Symbol(name) = o { Some(name.as_str()) } else { None })
                .collect();
            if names.iter().any(|name| harmless_call(name)) {
                return;
            }
            let callee = names.iter().find(|n| !n.starts_with("retval")).copied().unwrap_or("a function");
            self.lost.push((format!("it calls {callee}, whose accesses are not followed"), index));
        } else {
            self.lost.push((
                format!("`{}` addresses memory in a way that is not followed", instruction.opcode),
                index,
            ));
        }
    }

    fn access(&mut self, index: usize, instruction: &Instruction, kind: AccessKind, ways: &Ways) {
        let is_copy = effect(&instruction.opcode) == Effect::AsyncCopy;
        let place = if is_copy { instruction.operands.get(1) } else { None };
        let place = place.or_else(|| instruction.operands.iter().find(|o| matches!(o, Operand::Address(..))));
        let Some(Operand::Address(base, moved)) = place else {
            self.lost.push((format!("`{}` has no address that can be read", instruction.opcode), index));
            return;
        };
        let address = self.operand(base, 64, index);
        let moved = self.dag.constant(*moved, 64);
        let address = self.dag.make(Op::Add, 64, &[address, moved], Self::origin(index));
        // Carried pointers show their base only once they are resolved.
        let address = self.carries.resolve(&mut self.dag, address);
        let (base, offset) = self.split_base(address);
        let leads_elsewhere = self.dag.slice(&[address]).into_iter().any(|id| {
            matches!(self.dag.as_var(id).map(|(_, v)| &v.kind), Some(VarKind::Opaque(why, ..)) if why == ELSEWHERE)
        });
        if leads_elsewhere {
            return;
        }
        let mut own: Vec<Fact> = Vec::new();
        if let Some((predicate, negated)) = instruction.guard {
            own.push((self.register(predicate, index), !negated));
        }
        if is_copy && let Some(size) = instruction.operands.get(3) {
            let size = self.operand(size, 32, index);
            let zero = self.dag.constant(0, 32);
            own.push((self.dag.compare(Pred::Ne, size, zero, Self::origin(index)), true));
        }
        let (bytes, element_bytes) = widths(instruction, is_copy);
        for way in ways {
            let mut facts = way.clone();
            facts.extend(&own);
            let masked = !facts.is_empty();
            self.accesses.push(Access {
                kind,
                base: base.clone(),
                offset,
                meant: offset,
                also: Vec::new(),
                facts,
                bytes,
                element_bytes,
                masked,
                has_other: true,
                origin: Self::origin(index),
                lost: None,
            });
        }
    }

    /// The pointer at the start of an address, and the rest.
    fn split_base(&mut self, address: NodeId) -> (Base, NodeId) {
        let leaf = |sure| self.pointer_leaf(address, 0, sure, &mut HashSet::new());
        let leaf = leaf(true).or_else(|| leaf(false));
        let Some(leaf) = leaf else { return (Base::Computed, address) };
        let base = match self.dag.as_var(leaf).map(|(_, v)| v.kind.clone()) {
            Some(VarKind::Arg(index)) => {
                if let Some(slot) = self.pointer_params.get_mut(index) {
                    *slot = true;
                }
                Base::Param(index)
            }
            _ => Base::Computed,
        };
        let offset = self.without(address, leaf, 0, &mut HashMap::new());
        (base, offset)
    }

    /// A 64-bit parameter, or a loaded pointer, that is added into an address. `seen` are sums without one: a sum that stands
    /// twice in another, over and over, has more paths than anybody can walk.
    fn pointer_leaf(
        &self,
        id: NodeId,
        depth: usize,
        sure: bool,
        seen: &mut HashSet<NodeId>,
    ) -> Option<NodeId> {
        if depth > 200 || !seen.insert(id) {
            return None;
        }
        let node = self.dag.node(id);
        match (node.op, node.args()) {
            (Op::Add, &[a, b]) => {
                let first = self.pointer_leaf(a, depth + 1, sure, seen);
                first.or_else(|| self.pointer_leaf(b, depth + 1, sure, seen))
            }
            (Op::Sub, &[a, _]) => self.pointer_leaf(a, depth + 1, sure, seen),
            (Op::Var(_), _) if node.width == 64 => match self.dag.as_var(id).map(|(_, v)| &v.kind) {
                Some(VarKind::Arg(index)) => {
                    let known = self.pointer_params.get(*index).copied().unwrap_or(false);
                    (known || !sure).then_some(id)
                }
                // An address that was put down in shared memory is somebody's whole address, not a base.
                Some(VarKind::Loaded(origin, _)) if !sure => {
                    let from =
                        self.entry.instructions.get(origin.0 as usize).map_or("", |i| i.opcode.as_str());
                    let kept = from.contains(".shared") || from.contains(".local");
                    (!kept).then_some(id)
                }
                Some(VarKind::Opaque(why, ..)) if why.starts_with(VARIABLE) => Some(id),
                _ => None,
            },
            _ => None,
        }
    }

    /// An address with one leaf of its sum taken out, once. `known` are the sums that were gone through.
    fn without(
        &mut self,
        id: NodeId,
        leaf: NodeId,
        depth: usize,
        known: &mut HashMap<NodeId, NodeId>,
    ) -> NodeId {
        if id == leaf {
            return self.dag.constant(0, 64);
        }
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let node = self.dag.node(id);
        let mut rest = id;
        if depth <= 200
            && let (Op::Add | Op::Sub, &[a, b]) = (node.op, node.args())
        {
            let first = self.without(a, leaf, depth + 1, known);
            if first != a {
                rest = self.dag.make(node.op, 64, &[first, b], node.origin);
            } else if node.op == Op::Add {
                let second = self.without(b, leaf, depth + 1, known);
                rest = self.dag.make(Op::Add, 64, &[a, second], node.origin);
            }
        }
        known.insert(id, rest);
        rest
    }

    /// The predicate of a block's exit as a fact.
    fn exit_fact(&mut self, block: usize, exit: usize) -> Option<Fact> {
        let (_, condition) = *self.flow.blocks.get(block)?.next.get(exit)?;
        let (predicate, truth) = condition?;
        let at = self.flow.blocks.get(block)?.to.checked_sub(1)?;
        Some((self.register(predicate, at), truth))
    }

    /// What holds in a block.
    fn ways(&mut self, block: usize) -> Ways {
        let inside = self.flow.loops_of(block).to_vec();
        let mut facts: Vec<Fact> = Vec::new();
        for (from, exit) in self.flow.taken(block) {
            // A condition out of a loop that was left belongs to its last round.
            if self.flow.loops_of(from).iter().all(|l| inside.contains(l))
                && let Some(fact) = self.exit_fact(from, exit)
            {
                let node = self.carries.resolve(&mut self.dag, fact.0);
                facts.push((node, fact.1));
            }
        }
        let mut ways = vec![facts];
        for own in inside {
            let Some(info) = self.flow.loops.get(own).cloned() else { continue };
            ways = self.round(&info, ways);
        }
        ways
    }

    /// Adds what a loop's round says: it is the first, or the back edge was taken one round earlier.
    fn round(&mut self, info: &Loop, ways: Ways) -> Ways {
        let trip = u32::try_from(info.header).unwrap_or(u32::MAX);
        let count = self.dag.var(VarKind::Trip(trip), 64);
        let one = self.dag.constant(1, 64);
        let zero = self.dag.constant(0, 64);
        let earlier = self.dag.make(Op::Sub, 64, &[count, one], Origin::NONE);
        let mut back: Vec<Fact> = Vec::new();
        // To go round again a round takes every exit on the way to its end, and the back edge.
        let mut exits: Vec<(usize, usize)> = Vec::new();
        if let Some(latch) = info.latch {
            let back_edge = self
                .flow
                .blocks
                .get(latch)
                .and_then(|b| b.next.iter().position(|&(to, _)| to == info.header));
            exits.extend(back_edge.map(|exit| (latch, exit)));
            let inside = |from: &usize| info.blocks.binary_search(from).is_ok();
            exits.extend(self.flow.taken(latch).into_iter().filter(|(from, _)| inside(from)));
        }
        for (from, exit) in exits {
            if let Some(fact) = self.exit_fact(from, exit) {
                let node = self.carries.resolve(&mut self.dag, fact.0);
                let node = self.read_earlier(node, info);
                let (node, truth) = self.counted(node, fact.1, trip);
                // In whole numbers: that the condition held in every earlier round too rules a wrapped counter out.
                let node = self.dag.meant_comparison(node);
                back.push((replace_trip(&mut self.dag, node, trip, earlier), truth));
            }
        }
        let first = self.dag.compare(Pred::Eq, count, zero, Origin::NONE);
        let later = self.dag.compare(Pred::Sle, one, count, Origin::NONE);
        let mut out = Vec::new();
        for way in ways {
            // Where the round before the first would have passed too, one list serves all rounds.
            let start =
                back.iter().map(|&(node, truth)| (replace_trip(&mut self.dag, node, trip, zero), truth));
            let start: Vec<Fact> = start.collect();
            let implied = !start.is_empty() && start.iter().all(|fact| self.follows(*fact, &way));
            if implied {
                let mut all = way;
                all.extend(back.iter().copied());
                out.push(all);
                continue;
            }
            if out.len() > 8 {
                // Too many lists: the facts that hold in any round, whichever it is.
                out.push(way);
                continue;
            }
            let mut once = way.clone();
            once.push((first, true));
            let mut again = way;
            again.push((later, true));
            again.extend(back.iter().copied());
            out.extend([once, again]);
        }
        out
    }

    /// A value of an earlier round: what each round reads from memory, or can't be followed there, was another one then.
    fn read_earlier(&mut self, node: NodeId, info: &Loop) -> NodeId {
        let mut earlier: HashMap<VarKind, NodeId> = HashMap::new();
        for id in self.dag.slice(&[node]) {
            let Some((_, var)) = self.dag.as_var(id) else { continue };
            let (kind, width) = (var.kind.clone(), var.width);
            let (VarKind::Loaded(origin, _) | VarKind::Opaque(_, origin, _)) = &kind else { continue };
            let block = self.flow.block_of.get(origin.0 as usize);
            if block.is_none_or(|block| info.blocks.binary_search(block).is_ok()) {
                let other = match &kind {
                    VarKind::Opaque(reason, origin, _) => self.dag.opaque(reason.clone(), width, *origin),
                    _ => self.dag.loaded(width, *origin),
                };
                earlier.insert(kind, other);
            }
        }
        if earlier.is_empty() {
            return node;
        }
        self.dag.substitute(node, &|var| earlier.get(&var.kind).copied(), &mut HashMap::new())
    }

    /// `i != end` of a counter that steps by one constant means `i < end`, or `i > end` when it counts down: reaching
    /// the end from the other side would take 2³² rounds.
    fn counted(&mut self, node: NodeId, truth: bool, trip: u32) -> Fact {
        let info = self.dag.node(node);
        let (Op::Cmp(pred), &[a, b]) = (info.op, info.args()) else { return (node, truth) };
        let differs = matches!((pred, truth), (Pred::Ne, true) | (Pred::Eq, false));
        if !differs {
            return (node, truth);
        }
        let count = self.dag.var(VarKind::Trip(trip), 64);
        let poly = self.difference(a, b);
        match poly.map(|p| p.coefficient(&[count])) {
            Some(step) if step > 0 => (self.dag.compare(Pred::Slt, a, b, info.origin), true),
            Some(step) if step < 0 => (self.dag.compare(Pred::Slt, b, a, info.origin), true),
            _ => (node, truth),
        }
    }

    fn difference(&self, a: NodeId, b: NodeId) -> Option<Poly> {
        let mut polys = Polys::default();
        let none = |_| None;
        let (pa, pb) = (polys.of(&self.dag, a, &none), polys.of(&self.dag, b, &none));
        pa.plus(&pb, -1)
    }

    /// Whether a fact is one of others, up to how it is written.
    fn follows(&self, fact: Fact, among: &[Fact]) -> bool {
        let form = |(node, truth): Fact| {
            let info = self.dag.node(node);
            let (Op::Cmp(pred), &[a, b]) = (info.op, info.args()) else { return None };
            let unsigned = matches!(pred, Pred::Ult | Pred::Ule);
            let (left, right, gap) = match (pred, truth) {
                (Pred::Slt | Pred::Ult, true) => (a, b, 1),
                (Pred::Slt | Pred::Ult, false) => (b, a, 0),
                (Pred::Sle | Pred::Ule, true) => (a, b, 0),
                (Pred::Sle | Pred::Ule, false) => (b, a, 1),
                _ => return None,
            };
            self.difference(left, right)?.plus(&Poly::constant(gap), 1).map(|poly| (poly, unsigned))
        };
        if self.dag.as_const(fact.0).is_some_and(|value| (value == 1) == fact.1) {
            return true;
        }
        let wanted = form(fact);
        among.iter().any(|&known| known == fact || wanted.is_some() && form(known) == wanted)
    }
}

/// Bytes that an access touches, and bytes of one element of it. `ld.global.v4.b32` touches 16, `cp.async` says how many.
fn widths(instruction: &Instruction, is_copy: bool) -> (u32, u32) {
    let parts = || instruction.opcode.split('.');
    let element =
        instruction.opcode.rsplit('.').find_map(type_width).map_or(1, |bits| u32::from(bits).div_ceil(8));
    if is_copy && let Some(Operand::Integer(bytes)) = instruction.operands.get(2) {
        return (u32::try_from(*bytes).map_or(16, |bytes| bytes.clamp(1, 128)), element);
    }
    let lanes = parts().find_map(|part| part.strip_prefix('v')?.parse::<u32>().ok()).unwrap_or(1).clamp(1, 8);
    (element * lanes, element)
}

#[cfg(test)]
mod tests {
    use crate::kernel::cache;
    use crate::kernel::model::Base;

    /// A sum of itself, two hundred times over, without a pointer in it: 2²⁰⁰ paths.
    #[test]
    fn sums_that_double_are_gone_through_once() {
        let doubled = "add.s64 %rd2, %rd2, %rd2;\n".repeat(150);
        let text = format!(
            ".version 8.0\n.target sm_90\n.visible .entry k(.param .u64 k_param_0)\n{{\n\
             cvt.u64.u32 %rd2, %tid.x;\n{doubled}ld.param.u64 %rd1, [k_param_0];\n\
             add.s64 %rd3, %rd2, %rd1;\nst.global.u32 [%rd2], %r1;\nst.global.u32 [%rd3], %r1;\nret;\n}}\n"
        );
        let kernel = cache::from_ptx(&text).remove(0);
        let bases: Vec<_> = kernel.model.accesses.iter().map(|a| a.base.clone()).collect();
        assert_eq!(bases, [Base::Computed, Base::Param(0)]);
    }

    #[test]
    fn a_vector_access_has_its_whole_width() {
        let text = ".version 8.0\n.target sm_90\n.visible .entry k(.param .u64 k_param_0)\n{\n\
            ld.param.u64 %rd1, [k_param_0];\n\
            ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];\n\
            st.global.v2.b16 [%rd1+8], {%rs1, %rs2};\n\
            st.global.u8 [%rd1], %rs1;\n\
            cp.async.cg.shared.global [%r9], [%rd1], 16;\nret;\n}\n";
        let kernel = cache::from_ptx(text).remove(0);
        let widths: Vec<_> = kernel.model.accesses.iter().map(|a| (a.bytes, a.element_bytes)).collect();
        assert_eq!(widths, [(16, 4), (4, 2), (1, 1), (16, 1)]);
    }
}
