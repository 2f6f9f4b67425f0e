//! The control flow of an entry: blocks, dominators, loops.
//!
//! In: instructions and labels. Out: a graph of blocks. It evaluates nothing.

use super::{Entry, Operand};

/// How control leaves a block.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    /// Its instructions.
    pub from: usize,
    /// One past the last.
    pub to: usize,
    /// Where it goes: block, and the predicate with the value that it then has.
    pub next: Vec<(usize, Option<(u32, bool)>)>,
    /// Where it comes from: block, which of its exits.
    pub before: Vec<(usize, usize)>,
}

/// The graph.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub blocks: Vec<Block>,
    /// The block of each instruction.
    pub block_of: Vec<usize>,
    /// Immediate dominators; the entry and unreachable blocks dominate themselves.
    pub dominator: Vec<usize>,
    depth: Vec<usize>,
    /// For each loop header: its blocks and its only back edge's block, `None` with several.
    pub loops: Vec<Loop>,
    /// For each block, the loops that it stands in, as indices.
    loops_of: Vec<Vec<usize>>,
    /// A branch whose targets aren't known.
    pub indirect: bool,
}

/// A natural loop.
#[derive(Debug, Clone)]
pub(super) struct Loop {
    pub header: usize,
    pub latch: Option<usize>,
    pub blocks: Vec<usize>,
}

impl Flow {
    pub(super) fn new(entry: &Entry) -> Self {
        let mut flow = Self::default();
        flow.split(entry);
        flow.connect(entry);
        flow.dominators();
        flow.find_loops();
        flow
    }

    fn split(&mut self, entry: &Entry) {
        let count = entry.instructions.len();
        let mut starts: Vec<usize> = entry.labels.values().copied().filter(|&at| at < count).collect();
        starts.push(0);
        for (at, instruction) in entry.instructions.iter().enumerate() {
            let base = instruction.opcode.split('.').next().unwrap_or("");
            if matches!(base, "bra" | "brx" | "ret" | "exit" | "trap") && at + 1 < count {
                starts.push(at + 1);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        self.block_of = vec![0; count];
        for (index, &from) in starts.iter().enumerate() {
            let to = starts.get(index + 1).copied().unwrap_or(count);
            for slot in self.block_of.iter_mut().take(to).skip(from) {
                *slot = index;
            }
            self.blocks.push(Block { from, to, ..Block::default() });
        }
    }

    fn connect(&mut self, entry: &Entry) {
        let count = self.blocks.len();
        for index in 0..count {
            let Some(last) = self.blocks.get(index).and_then(|b| b.to.checked_sub(1)) else { continue };
            let Some(instruction) = entry.instructions.get(last) else { continue };
            let base = instruction.opcode.split('.').next().unwrap_or("");
            let after = (index + 1 < count).then_some(index + 1);
            let guard = instruction.guard;
            let mut next = Vec::new();
            match base {
                "bra" => {
                    let target = match instruction.operands.first() {
                        Some(Operand::Symbol(label)) => {
                            entry.labels.get(label).and_then(|&at| self.block_of.get(at)).copied()
                        }
                        _ => None,
                    };
                    match target {
                        Some(target) => next.push((target, guard.map(|(p, negated)| (p, !negated)))),
                        None => self.indirect = true,
                    }
                    if let (Some((p, negated)), Some(after)) = (guard, after) {
                        next.push((after, Some((p, negated))));
                    }
                }
                "brx" => self.indirect = true,
                "ret" | "exit" | "trap" => {
                    if let (Some((p, negated)), Some(after)) = (guard, after) {
                        next.push((after, Some((p, negated))));
                    }
                }
                _ => next.extend(after.map(|after| (after, None))),
            }
            for (exit, &(to, _)) in next.iter().enumerate() {
                if let Some(block) = self.blocks.get_mut(to) {
                    block.before.push((index, exit));
                }
            }
            if let Some(block) = self.blocks.get_mut(index) {
                block.next = next;
            }
        }
    }

    fn order(&self) -> Vec<usize> {
        let mut seen = vec![false; self.blocks.len()];
        let mut out = Vec::new();
        let mut stack: Vec<(usize, usize)> = vec![(0, 0)];
        if let Some(first) = seen.first_mut() {
            *first = true;
        }
        while let Some((block, at)) = stack.pop() {
            match self.blocks.get(block).and_then(|b| b.next.get(at)) {
                Some(&(to, _)) => {
                    stack.push((block, at + 1));
                    if let Some(slot) = seen.get_mut(to)
                        && !*slot
                    {
                        *slot = true;
                        stack.push((to, 0));
                    }
                }
                None => out.push(block),
            }
        }
        out.reverse();
        out
    }

    /// Cooper, Harvey and Kennedy's iteration over reverse postorder.
    fn dominators(&mut self) {
        let order = self.order();
        let mut rank = vec![usize::MAX; self.blocks.len()];
        for (at, &block) in order.iter().enumerate() {
            if let Some(slot) = rank.get_mut(block) {
                *slot = at;
            }
        }
        let mut idom: Vec<Option<usize>> = vec![None; self.blocks.len()];
        if let Some(first) = idom.first_mut() {
            *first = Some(0);
        }
        let of = |list: &[usize], at: usize| list.get(at).copied().unwrap_or(usize::MAX);
        for _ in 0..order.len().min(64) + 1 {
            let mut changed = false;
            for &block in order.iter().skip(1) {
                let mut new: Option<usize> = None;
                for &(from, _) in self.blocks.get(block).map_or(&[][..], |b| &b.before) {
                    if idom.get(from).copied().flatten().is_none() {
                        continue;
                    }
                    new = Some(match new {
                        None => from,
                        Some(mut a) => {
                            let mut b = from;
                            while a != b {
                                if of(&rank, a) > of(&rank, b) {
                                    a = idom.get(a).copied().flatten().unwrap_or(0);
                                } else {
                                    b = idom.get(b).copied().flatten().unwrap_or(0);
                                }
                            }
                            a
                        }
                    });
                }
                if let Some(slot) = idom.get_mut(block)
                    && *slot != new
                {
                    *slot = new;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        self.dominator = idom.into_iter().enumerate().map(|(at, d)| d.unwrap_or(at)).collect();
        self.depth = vec![0; self.blocks.len()];
        for &block in order.iter().skip(1) {
            let above = self.dominator.get(block).and_then(|&d| self.depth.get(d)).copied().unwrap_or(0);
            if let Some(slot) = self.depth.get_mut(block) {
                *slot = above + 1;
            }
        }
    }

    pub(super) fn dominates(&self, above: usize, below: usize) -> bool {
        let depth = |block: usize| self.depth.get(block).copied().unwrap_or(0);
        let mut at = below;
        while depth(at) > depth(above) {
            at = self.dominator.get(at).copied().unwrap_or(0);
        }
        at == above
    }

    fn find_loops(&mut self) {
        for header in 0..self.blocks.len() {
            let before = self.blocks.get(header).map(|b| b.before.clone()).unwrap_or_default();
            let latches: Vec<usize> =
                before.iter().map(|&(from, _)| from).filter(|&from| self.dominates(header, from)).collect();
            if latches.is_empty() {
                continue;
            }
            let mut inside = vec![false; self.blocks.len()];
            if let Some(slot) = inside.get_mut(header) {
                *slot = true;
            }
            let mut todo = latches.clone();
            while let Some(block) = todo.pop() {
                if let Some(slot) = inside.get_mut(block)
                    && !*slot
                {
                    *slot = true;
                    todo.extend(
                        self.blocks.get(block).map_or(&[][..], |b| &b.before).iter().map(|&(from, _)| from),
                    );
                }
            }
            let blocks = inside.iter().enumerate().filter(|(_, is)| **is).map(|(at, _)| at).collect();
            let latch = if let [only] = latches.as_slice() { Some(*only) } else { None };
            self.loops.push(Loop { header, latch, blocks });
        }
        self.loops_of = vec![Vec::new(); self.blocks.len()];
        for (index, own) in self.loops.iter().enumerate() {
            for &block in &own.blocks {
                if let Some(list) = self.loops_of.get_mut(block) {
                    list.push(index);
                }
            }
        }
    }

    /// The loops that a block stands in, as indices.
    pub(super) fn loops_of(&self, block: usize) -> &[usize] {
        self.loops_of.get(block).map_or(&[], Vec::as_slice)
    }

    /// The exits on the way to a block that must have been taken: block, which exit.
    pub(super) fn taken(&self, block: usize) -> Vec<(usize, usize)> {
        let mut out = Vec::new();
        let mut at = block;
        while self.dominator.get(at).is_some_and(|&d| d != at) {
            let before = self.blocks.get(at).map_or(&[][..], |b| &b.before);
            // Back edges come from inside, so they need no exit of their own.
            let mut outside = before.iter().filter(|&&(from, _)| !self.dominates(at, from));
            if let (Some(&edge), None) = (outside.next(), outside.next()) {
                out.push(edge);
            }
            at = self.dominator.get(at).copied().unwrap_or(0);
        }
        out
    }
}
