//! Registers → values at a point of the program: the nearest definition, joins, loops.
//!
//! In: a register and the instruction that reads it. Out: a node. A register that a loop sets becomes a carried value;
//! one that two branches set becomes a selection on the branch's predicate.

use super::lower::{Lowering, result_width};
use crate::kernel::sym::{NodeId, Op, VarKind};

impl Lowering<'_> {
    /// A register's value as instruction `at` reads it.
    pub(super) fn register(&mut self, register: u32, at: usize) -> NodeId {
        let block = self.flow.block_of.get(at).copied().unwrap_or(0);
        self.before(register, at, block)
    }

    /// A register's value just before instruction `at` of `block`.
    pub(super) fn before(&mut self, register: u32, at: usize, block: usize) -> NodeId {
        let defs = self.defs.get(register as usize).map_or(&[][..], Vec::as_slice);
        let nearest = defs.partition_point(|&def| def < at).checked_sub(1).and_then(|i| defs.get(i)).copied();
        // A register with one definition has its value wherever that definition was passed.
        if let [only] = *defs
            && self.guard(only).is_none()
        {
            let node = self.result(only, register);
            return self.outside_its_loops(node, only, block);
        }
        let from = self.flow.blocks.get(block).map_or(0, |b| b.from);
        match nearest {
            Some(def) if def >= from => match self.guard(def) {
                None => self.result(def, register),
                Some(guard) => self.guarded(register, def, block, guard),
            },
            _ => self.on_entry_to(register, block),
        }
    }

    /// A register's value after a definition that happens under a predicate only. Predicates may be set under predicates, by
    /// instructions that lead through one another on two ways each.
    fn guarded(&mut self, register: u32, def: usize, block: usize, guard: (u32, bool)) -> NodeId {
        if let Some(&known) = self.after_guarded.get(&(def, register)) {
            return known;
        }
        let new = self.result(def, register);
        let width = self.dag.node(new).width;
        self.depth += 1;
        let node = if self.depth > super::lower::MAX_DEPTH {
            self.dag.opaque("an instruction under too many predicates", width, Self::origin(def))
        } else {
            let (predicate, negated) = guard;
            let old = self.before(register, def, block);
            let cond = self.before(predicate, def, block);
            let args = if negated { [cond, old, new] } else { [cond, new, old] };
            self.dag.make(Op::Select, width, &args, Self::origin(def))
        };
        self.depth -= 1;
        self.after_guarded.insert((def, register), node);
        node
    }

    fn guard(&self, at: usize) -> Option<(u32, bool)> {
        self.entry.instructions.get(at).and_then(|i| i.guard)
    }

    /// A value that a loop changes is, after the loop, that of its last round, which isn't followed.
    fn outside_its_loops(&mut self, node: NodeId, def: usize, block: usize) -> NodeId {
        let at = self.flow.block_of.get(def).copied().unwrap_or(0);
        let inside = self.flow.loops_of(block);
        let left: Vec<usize> = self
            .flow
            .loops_of(at)
            .iter()
            .filter(|l| !inside.contains(l))
            .filter_map(|&l| self.flow.loops.get(l))
            .map(|l| l.header)
            .collect();
        if left.is_empty() {
            return node;
        }
        let carried =
            self.dag.slice(&[node]).into_iter().any(|id| match self.dag.as_var(id).map(|(_, v)| &v.kind) {
                Some(VarKind::Carried(key)) => {
                    self.carried_by.get(key).is_some_and(|header| left.contains(header))
                }
                Some(VarKind::Trip(header)) => left.contains(&(*header as usize)),
                _ => false,
            });
        if !carried {
            return node;
        }
        let width = self.dag.node(node).width;
        self.dag.opaque("a loop's value after its last round", width, Self::origin(def))
    }

    fn width_of(&self, register: u32) -> u8 {
        let first = self.defs.get(register as usize).and_then(|list| list.first());
        first.and_then(|&def| self.entry.instructions.get(def)).map_or(32, result_width)
    }

    /// A register's value at the end of a block.
    fn at_end(&mut self, register: u32, block: usize) -> NodeId {
        let to = self.flow.blocks.get(block).map_or(0, |b| b.to);
        self.before(register, to, block)
    }

    fn on_entry_to(&mut self, register: u32, block: usize) -> NodeId {
        if let Some(&known) = self.on_entry.get(&(register, block)) {
            return known;
        }
        let width = self.width_of(register);
        self.depth += 1;
        let node = if self.depth > super::lower::MAX_DEPTH {
            self.dag.opaque("control flow nested too deeply", width, crate::kernel::sym::Origin::NONE)
        } else {
            // What a loop carries has to be known at its header first: a join inside that is asked for from the way
            // back would otherwise find itself unfinished.
            for own in self.flow.loops_of(block).to_vec() {
                let header = self.flow.loops.get(own).map_or(block, |l| l.header);
                if header != block {
                    self.on_entry_to(register, header);
                }
            }
            match self.on_entry.get(&(register, block)) {
                Some(&known) => known,
                None => self.joined(register, block, width),
            }
        };
        self.depth -= 1;
        self.on_entry.insert((register, block), node);
        node
    }

    fn joined(&mut self, register: u32, block: usize, width: u8) -> NodeId {
        let before = self.flow.blocks.get(block).map(|b| b.before.clone()).unwrap_or_default();
        let at = self.flow.blocks.get(block).map_or(0, |b| b.from);
        let own = self.flow.loops.iter().position(|l| l.header == block);
        if let Some(own) = own {
            return self.at_loop(register, block, own, width);
        }
        match *before.as_slice() {
            [] => self.dag.opaque("a register that is never set", width, Self::origin(at)),
            [(from, _)] => {
                let node = self.at_end(register, from);
                self.left_loops(node, from, block)
            }
            _ => {
                // Until the other ways are known, a way that leads back here finds this.
                let stuck = self.dag.opaque("a value that several branches set", width, Self::origin(at));
                self.on_entry.insert((register, block), stuck);
                let mut values: Vec<NodeId> = Vec::new();
                for &(from, _) in before.iter().take(16) {
                    let node = self.at_end(register, from);
                    values.push(self.left_loops(node, from, block));
                }
                match values.split_first() {
                    Some((&first, rest)) if before.len() <= 16 && rest.iter().all(|&v| v == first) => first,
                    _ => match *values.as_slice() {
                        [a, b] => self.chosen(block, &before, a, b, width).unwrap_or(stuck),
                        _ => stuck,
                    },
                }
            }
        }
    }

    fn left_loops(&mut self, node: NodeId, from: usize, block: usize) -> NodeId {
        let last = self.flow.blocks.get(from).map_or(0, |b| b.to.saturating_sub(1));
        self.outside_its_loops(node, last, block)
    }

    /// Two ways into a block from one branch: the branch's predicate tells them apart.
    fn chosen(
        &mut self,
        block: usize,
        before: &[(usize, usize)],
        a: NodeId,
        b: NodeId,
        width: u8,
    ) -> Option<NodeId> {
        let fork = *self.flow.dominator.get(block)?;
        let exits = self.flow.blocks.get(fork)?.next.clone();
        let [(first, Some((predicate, truth))), (second, Some(_))] = *exits.as_slice() else { return None };
        let way = |flow: &super::flow::Flow, (from, exit): (usize, usize)| {
            if from == fork {
                return Some(exit);
            }
            let through = |to: usize| to != block && flow.dominates(to, from);
            match (through(first), through(second)) {
                (true, false) => Some(0),
                (false, true) => Some(1),
                _ => None,
            }
        };
        let ways = (way(&self.flow, *before.first()?)?, way(&self.flow, *before.get(1)?)?);
        let (if_first, if_second) = match ways {
            (0, 1) => (a, b),
            (1, 0) => (b, a),
            _ => return None,
        };
        let cond = self.at_end(predicate, fork);
        let args = if truth { [cond, if_first, if_second] } else { [cond, if_second, if_first] };
        let at = self.flow.blocks.get(fork).map_or(0, |b| b.to.saturating_sub(1));
        Some(self.dag.make(Op::Select, width, &args, Self::origin(at)))
    }

    fn at_loop(&mut self, register: u32, block: usize, own: usize, width: u8) -> NodeId {
        let Some(info) = self.flow.loops.get(own).cloned() else {
            return self.dag.opaque("a loop", width, crate::kernel::sym::Origin::NONE);
        };
        let at = self.flow.blocks.get(block).map_or(0, |b| b.from);
        let outside: Vec<usize> = self
            .flow
            .blocks
            .get(block)
            .map(|b| {
                b.before
                    .iter()
                    .map(|&(from, _)| from)
                    .filter(|from| info.blocks.binary_search(from).is_err())
                    .collect()
            })
            .unwrap_or_default();
        // Set nowhere in the loop: the same as before it.
        let set_inside = self.defs.get(register as usize).is_some_and(|defs| {
            defs.iter()
                .any(|&def| self.flow.block_of.get(def).is_some_and(|b| info.blocks.binary_search(b).is_ok()))
        });
        let entry = match *outside.as_slice() {
            [from] => from,
            _ => return self.dag.opaque("a loop that is entered in several ways", width, Self::origin(at)),
        };
        if !set_inside {
            let node = self.at_end(register, entry);
            return self.left_loops(node, entry, block);
        }
        let Some(latch) = info.latch else {
            return self.dag.opaque("a loop with several ways back", width, Self::origin(at));
        };
        let (key, node) = self.carries.placeholder(&mut self.dag, width);
        self.carried_by.insert(key, block);
        self.on_entry.insert((register, block), node);
        let start = self.at_end(register, entry);
        let start = self.left_loops(start, entry, block);
        let next = self.at_end(register, latch);
        self.carries.define(key, start, next, u32::try_from(block).unwrap_or(u32::MAX), Self::origin(at));
        node
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::cache;

    fn accesses(body: &str) -> usize {
        let text = format!(
            ".version 8.0\n.target sm_90\n.visible .entry k(.param .u64 k_param_0)\n{{\n\
             ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\nsetp.lt.s32 %p1, %r1, 7;\n{body}\
             mul.wide.s32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n@%p1 st.global.u32 [%rd3], %r1;\nret;\n}}\n"
        );
        cache::from_ptx(&text).remove(0).model.accesses.len()
    }

    /// Each asks for the one before twice: as the value that stays and as the condition.
    #[test]
    fn predicates_under_themselves_are_gone_through_once() {
        assert_eq!(accesses(&"@%p1 setp.gt.s32 %p1, %r1, 3;\n".repeat(200)), 1);
    }

    /// A recursion as deep as the text is long would end the process.
    #[test]
    fn a_register_set_under_a_predicate_over_and_over_ends() {
        assert_eq!(accesses(&"@%p1 add.s32 %r1, %r1, 1;\n".repeat(40_000)), 1);
    }
}
