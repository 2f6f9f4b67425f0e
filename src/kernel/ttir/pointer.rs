//! Pointers and accesses: pointer tensors, block pointers, tensor descriptors.
//!
//! In: an operation that reads or writes. Out: an [`Access`] for one element of its tensor. An offset that `tt.addptr`
//! takes is widened to 64 bits and scaled there; a block pointer's and a descriptor's arithmetic is 64-bit from the start,
//! and only their coordinates are 32-bit.

use std::rc::Rc;

use super::Def;
use super::loops::trip;
use super::lower::{Indices, Lowering};
use super::ops::{bracket_counts, list_attribute};
use crate::kernel::model::{Access, AccessKind, Base};
use crate::kernel::solve::Fact;
use crate::kernel::sym::{NodeId, Op, Origin, Pred, VarKind};

/// A pointer to one element.
#[derive(Debug, Clone)]
pub(super) struct Pointer {
    base: Base,
    /// Bytes, 64 bits.
    offset: NodeId,
    /// For a block pointer or a descriptor: its tensor.
    tile: Option<Rc<Tile>>,
    lost: Option<String>,
}

/// The tensor behind a block pointer or a descriptor; all nodes are 64 bits wide.
#[derive(Debug)]
struct Tile {
    shape: Vec<NodeId>,
    strides: Vec<NodeId>,
    offsets: Vec<NodeId>,
}

impl Lowering<'_> {
    fn lost_pointer(&mut self, why: impl Into<String>) -> Pointer {
        Pointer { base: Base::Computed, offset: self.dag.constant(0, 64), tile: None, lost: Some(why.into()) }
    }

    fn pointer(&mut self, value: usize, at: &Indices) -> Pointer {
        let key = (value, at.clone());
        if let Some(known) = self.pointers.get(&key) {
            return known.clone();
        }
        self.depth += 1;
        let pointer = if self.depth > 600 {
            self.lost_pointer("an address nested too deeply")
        } else {
            self.compute_pointer(value, at)
        };
        self.depth -= 1;
        self.pointers.insert(key, pointer.clone());
        pointer
    }

    fn compute_pointer(&mut self, value: usize, at: &Indices) -> Pointer {
        let Some(def) = self.function.values.get(value).map(|v| v.def) else {
            return self.lost_pointer("an address that is defined nowhere");
        };
        match def {
            Def::Param(index) => {
                let offset = self.dag.constant(0, 64);
                Pointer { base: Base::Param(index), offset, tile: None, lost: None }
            }
            Def::BlockArg(block, index) => self.carried_pointer(value, block, index, at),
            Def::Result(op, result) => self.made_pointer(op, result, value, at),
            Def::Missing => self.lost_pointer("an address that is defined nowhere"),
        }
    }

    fn nth_pointer(&mut self, op: usize, nth: usize, at: &Indices) -> Pointer {
        match self.op(op).operands.get(nth).copied() {
            Some(value) => self.pointer(value, at),
            None => self.lost_pointer("a missing operand"),
        }
    }

    fn made_pointer(&mut self, index: usize, result: usize, value: usize, at: &Indices) -> Pointer {
        let name = self.op(index).name.clone();
        match name.as_str() {
            "tt.addptr" => {
                let mut pointer = self.nth_pointer(index, 0, at);
                let bytes = self.ty(value).pointee_bytes().unwrap_or(1);
                let step = self.operand(index, 1, at);
                pointer.offset = self.moved_offset(pointer.offset, step, bytes, Self::origin(index));
                pointer
            }
            "tt.bitcast" => self.nth_pointer(index, 0, at),
            "tt.make_tensor_ptr" | "tt.make_tensor_descriptor" => self.tile_pointer(index),
            "tt.advance" => self.advanced(index),
            "arith.select" => {
                let at_cond = if self.op(index).operands.first().is_some_and(|&c| self.ty(c).shape.is_empty())
                {
                    Vec::new()
                } else {
                    at.clone()
                };
                let cond = self.operand(index, 0, &at_cond);
                let (a, b) = (self.nth_pointer(index, 1, at), self.nth_pointer(index, 2, at));
                self.either(cond, a, b, index)
            }
            "scf.if" => match self.branch_values(index, result) {
                Some((then, other)) => {
                    let cond = self.operand(index, 0, &Vec::new());
                    let (a, b) = (self.pointer(then, at), self.pointer(other, at));
                    self.either(cond, a, b, index)
                }
                None => self.lost_pointer("an address out of a branch"),
            },
            "scf.for" => self.final_pointer(index, result, at),
            "tt.int_to_ptr" | "tt.load" => {
                let offset = self.dag.constant(0, 64);
                Pointer { base: Base::Computed, offset, tile: None, lost: None }
            }
            _ => match self.moved(index, result, at) {
                Some((source, from)) => self.pointer(source, &from),
                None => self.lost_pointer(super::lower::unknown(&name)),
            },
        }
    }

    fn moved_offset(&mut self, offset: NodeId, step: NodeId, bytes: u32, origin: Origin) -> NodeId {
        let wide = self.dag.make(Op::Sext, 64, &[step], origin);
        let size = self.dag.constant(i128::from(bytes), 64);
        let scaled = self.dag.make(Op::Mul, 64, &[wide, size], origin);
        self.dag.make(Op::Add, 64, &[offset, scaled], origin)
    }

    fn either(&mut self, cond: NodeId, a: Pointer, b: Pointer, index: usize) -> Pointer {
        if a.base != b.base || a.tile.is_some() || b.tile.is_some() {
            return self.lost_pointer("an address that is one of two");
        }
        let offset = self.dag.make(Op::Select, 64, &[cond, a.offset, b.offset], Self::origin(index));
        Pointer { base: a.base, offset, tile: None, lost: a.lost.or(b.lost) }
    }

    /// `base, [shape], [strides], [offsets]`
    fn tile_pointer(&mut self, index: usize) -> Pointer {
        let pointer = self.nth_pointer(index, 0, &Vec::new());
        let counts = bracket_counts(self.op(index));
        let mut next = 1;
        let mut lists: Vec<Vec<NodeId>> = Vec::new();
        for count in counts {
            let list = (next..next + count)
                .map(|nth| {
                    let node = self.operand(index, nth, &Vec::new());
                    self.dag.make(Op::Sext, 64, &[node], Self::origin(index))
                })
                .collect();
            next += count;
            lists.push(list);
        }
        let mut lists = lists.into_iter();
        let (shape, strides) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
        let zero = self.dag.constant(0, 64);
        let offsets = lists.next().unwrap_or_else(|| vec![zero; shape.len()]);
        Pointer { tile: Some(Rc::new(Tile { shape, strides, offsets })), ..pointer }
    }

    fn advanced(&mut self, index: usize) -> Pointer {
        let pointer = self.nth_pointer(index, 0, &Vec::new());
        let Some(tile) = pointer.tile.clone() else {
            return self.lost_pointer("an advance of no block pointer");
        };
        let mut offsets = Vec::new();
        for (nth, &offset) in tile.offsets.iter().enumerate() {
            let step = self.operand(index, nth + 1, &Vec::new());
            let step = self.dag.make(Op::Sext, 64, &[step], Self::origin(index));
            offsets.push(self.dag.make(Op::Add, 64, &[offset, step], Self::origin(index)));
        }
        let tile = Tile { shape: tile.shape.clone(), strides: tile.strides.clone(), offsets };
        Pointer { tile: Some(Rc::new(tile)), ..pointer }
    }

    /// A pointer that a loop carries: the base stays, the offsets are carried values.
    fn carried_pointer(&mut self, value: usize, block: usize, index: usize, at: &Indices) -> Pointer {
        let Some((op, _)) = self.owner.get(&block).copied() else {
            return self.lost_pointer("an address that several branches set");
        };
        let pair =
            if self.op(op).name == "scf.for" && index > 0 { self.carried(op, index - 1) } else { None };
        let Some((start, next)) = pair else {
            return self.lost_pointer("an address that a `while` loop carries");
        };
        let start = self.pointer(start, at);
        let mut own = start.clone();
        let mut keys = Vec::new();
        let place = |this: &mut Self, keys: &mut Vec<u32>| {
            let (key, node) = this.carries.placeholder(&mut this.dag, 64);
            keys.push(key);
            node
        };
        own.offset = place(self, &mut keys);
        if let Some(tile) = &start.tile {
            let offsets = tile.offsets.iter().map(|_| place(self, &mut keys)).collect();
            own.tile =
                Some(Rc::new(Tile { shape: tile.shape.clone(), strides: tile.strides.clone(), offsets }));
        }
        self.pointers.insert((value, at.clone()), own.clone());
        let next = self.pointer(next, at);
        if next.base != start.base || next.lost.is_some() {
            // What was derived from it in the meantime keeps its undefined, so unknown, offset.
            own.lost = next.lost.or_else(|| Some("an address whose base changes from round to round".into()));
            return own;
        }
        let all = |pointer: &Pointer| -> Vec<NodeId> {
            let tile = pointer.tile.iter().flat_map(|tile| tile.offsets.iter().copied());
            std::iter::once(pointer.offset).chain(tile).collect()
        };
        for ((key, from), to) in keys.into_iter().zip(all(&start)).zip(all(&next)) {
            self.carries.define(key, from, to, trip(op), Self::origin(op));
        }
        own
    }

    fn final_pointer(&mut self, op: usize, result: usize, at: &Indices) -> Pointer {
        let Some(arg) = self.carried_argument(op, result) else {
            return self.lost_pointer("an address out of a loop");
        };
        let mut pointer = self.pointer(arg, at);
        let trips = self.trips(op);
        let end = |this: &mut Self, node: NodeId| match this.dag.as_var(node).map(|(_, var)| var.kind.clone())
        {
            Some(VarKind::Carried(of)) => {
                let (key, last) = this.carries.placeholder(&mut this.dag, 64);
                this.carries.define_final(key, of, trip(op), trips);
                last
            }
            _ => node,
        };
        pointer.offset = end(self, pointer.offset);
        if let Some(tile) = &pointer.tile {
            let offsets = tile.offsets.iter().map(|&offset| end(self, offset)).collect();
            pointer.tile =
                Some(Rc::new(Tile { shape: tile.shape.clone(), strides: tile.strides.clone(), offsets }));
        }
        pointer
    }

    /// Notes the access of an operation; whether it is one.
    pub(super) fn access(&mut self, index: usize, facts: &[Fact]) -> bool {
        let name = self.op(index).name.clone();
        let (kind, mask) = match name.as_str() {
            "tt.load" => (AccessKind::Load, Some(1)),
            "tt.store" => (AccessKind::Store, Some(2)),
            "tt.atomic_rmw" => (AccessKind::Atomic, Some(2)),
            "tt.atomic_cas" => (AccessKind::Atomic, None),
            "tt.descriptor_load" | "tt.experimental_descriptor_load" | "tt.descriptor_gather" => {
                (AccessKind::Load, None)
            }
            "tt.descriptor_store" | "tt.experimental_descriptor_store" | "tt.descriptor_scatter" => {
                (AccessKind::Store, None)
            }
            "tt.descriptor_reduce" | "tt.experimental_descriptor_reduce" => (AccessKind::Atomic, None),
            _ => return false,
        };
        let Some(&target) = self.op(index).operands.first() else { return false };
        if name.contains("descriptor") {
            self.descriptor_access(index, kind, target, facts);
        } else if self.ty(target).block.is_empty() {
            self.tensor_access(index, kind, mask, target, facts);
        } else {
            self.block_access(index, kind, target, facts);
        }
        true
    }

    fn lanes(&mut self, shape: &[i64]) -> Indices {
        let lane = |(axis, &extent): (usize, &i64)| (u8::try_from(axis).unwrap_or(u8::MAX), extent.max(1));
        shape.iter().enumerate().map(lane).map(|(a, e)| self.dag.var(VarKind::Lane(a, e), 64)).collect()
    }

    fn tensor_access(
        &mut self,
        index: usize,
        kind: AccessKind,
        mask: Option<usize>,
        target: usize,
        facts: &[Fact],
    ) {
        let ty = self.ty(target);
        let at = self.lanes(&ty.shape);
        let pointer = self.pointer(target, &at);
        let mut facts = facts.to_vec();
        let mask = mask.and_then(|nth| self.op(index).operands.get(nth).copied());
        let mask = mask.filter(|&value| self.ty(value).int_width() == Some(1));
        let mut masked = false;
        if let Some(mask) = mask {
            let at_mask = if self.ty(mask).shape.is_empty() { Vec::new() } else { at };
            let fact = self.fact(mask, &at_mask, true);
            masked = self.dag.as_const(fact.0) != Some(1);
            facts.push(fact);
        }
        let has_other = kind == AccessKind::Load && self.op(index).operands.len() > 2;
        self.note(
            index,
            kind,
            pointer,
            Vec::new(),
            facts,
            ty.pointee_bytes().unwrap_or(1),
            masked,
            has_other,
        );
    }

    /// Adds (offset + lane) · stride of every dimension, and the bounds of those that are checked.
    fn block_access(&mut self, index: usize, kind: AccessKind, target: usize, facts: &[Fact]) {
        let ty = self.ty(target);
        let pointer = self.pointer(target, &Vec::new());
        let checked = list_attribute(self.op(index), "boundaryCheck").unwrap_or_default();
        let Some(tile) = pointer.tile.clone() else {
            let pointer = self.lost_pointer("a block pointer made elsewhere");
            return self.note(index, kind, pointer, Vec::new(), facts.to_vec(), 1, false, false);
        };
        let lanes = self.lanes(&ty.block);
        self.tile_access(
            index,
            kind,
            pointer,
            &tile,
            &tile.offsets,
            &lanes,
            &checked,
            facts,
            ty.pointee_bytes(),
        );
    }

    fn descriptor_access(&mut self, index: usize, kind: AccessKind, target: usize, facts: &[Fact]) {
        let ty = self.ty(target);
        let pointer = self.pointer(target, &Vec::new());
        let count = bracket_counts(self.op(index)).first().copied().unwrap_or(0);
        let lanes = self.lanes(&ty.block);
        let mut coordinates = Vec::new();
        for nth in 1..=count {
            let Some(&value) = self.op(index).operands.get(nth) else { continue };
            // A gather takes a whole tensor of row numbers.
            let at = if self.ty(value).shape.is_empty() {
                Vec::new()
            } else {
                lanes.get(..1).unwrap_or(&[]).to_vec()
            };
            let node = self.value(value, &at);
            coordinates.push(self.dag.make(Op::Sext, 64, &[node], Self::origin(index)));
        }
        match pointer.tile.clone() {
            Some(tile) if tile.strides.len() == coordinates.len() && lanes.len() == coordinates.len() => {
                let checked: Vec<usize> = (0..coordinates.len()).collect();
                self.tile_access(
                    index,
                    kind,
                    pointer,
                    &tile,
                    &coordinates,
                    &lanes,
                    &checked,
                    facts,
                    ty.pointee_bytes(),
                );
            }
            // A descriptor made on the host: the hardware multiplies in 64 bits, only the coordinates are ours.
            _ => self.note(
                index,
                kind,
                pointer,
                coordinates,
                facts.to_vec(),
                ty.pointee_bytes().unwrap_or(1),
                true,
                true,
            ),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one access, each needed once")]
    fn tile_access(
        &mut self,
        index: usize,
        kind: AccessKind,
        mut pointer: Pointer,
        tile: &Tile,
        offsets: &[NodeId],
        lanes: &Indices,
        checked: &[usize],
        facts: &[Fact],
        bytes: Option<u32>,
    ) {
        let origin = Self::origin(index);
        let bytes = bytes.unwrap_or(1);
        let mut facts = facts.to_vec();
        let size = self.dag.constant(i128::from(bytes), 64);
        let zero = self.dag.constant(0, 64);
        for (dim, (&offset, &lane)) in offsets.iter().zip(lanes).enumerate() {
            let place = self.dag.make(Op::Add, 64, &[offset, lane], origin);
            let stride = tile.strides.get(dim).copied().unwrap_or(zero);
            let moved = self.dag.make(Op::Mul, 64, &[place, stride], origin);
            let moved = self.dag.make(Op::Mul, 64, &[moved, size], origin);
            pointer.offset = self.dag.make(Op::Add, 64, &[pointer.offset, moved], origin);
            if checked.contains(&dim) {
                let end = tile.shape.get(dim).copied().unwrap_or(zero);
                facts.push((self.dag.compare(Pred::Sle, zero, place, origin), true));
                facts.push((self.dag.compare(Pred::Slt, place, end, origin), true));
            }
        }
        let masked = !checked.is_empty();
        self.note(index, kind, pointer, offsets.to_vec(), facts, bytes, masked, true);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one access, each needed once")]
    fn note(
        &mut self,
        index: usize,
        kind: AccessKind,
        pointer: Pointer,
        also: Vec<NodeId>,
        facts: Vec<Fact>,
        bytes: u32,
        masked: bool,
        has_other: bool,
    ) {
        self.push(Access {
            kind,
            base: pointer.base,
            offset: pointer.offset,
            meant: pointer.offset,
            also,
            facts,
            bytes,
            element_bytes: bytes,
            masked,
            has_other,
            origin: Self::origin(index),
            lost: pointer.lost,
        });
    }
}
