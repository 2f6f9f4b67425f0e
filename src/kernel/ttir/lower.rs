//! TTIR operations → symbolic values, one element at a time.
//!
//! In: a parsed function. Out: a [`Model`]. A tensor value is followed for one element, named by an index node for each
//! of its dimensions: so `offs_m[:, None]` in the mask and in the address are the same node, and a transposed use is not.

use std::collections::HashMap;

use super::ops::{constant, int_attribute, keyword, list_attribute};
use super::pointer::Pointer;
use super::types::{Element, Type};
use super::{Def, Function, Module, Operation};
use crate::kernel::carry::Carries;
use crate::kernel::model::{Access, Model, Param, Source};
use crate::kernel::solve::Fact;
use crate::kernel::sym::{Dag, NodeId, Op, Origin, Pred, VarKind};

/// Deepest chain of operands. Longer ones are unknown, not a crash.
const MAX_DEPTH: usize = 600;

/// For each dimension of a tensor, the node of the element's index.
pub(super) type Indices = Vec<NodeId>;

pub(super) struct Lowering<'m> {
    pub(super) module: &'m Module,
    pub(super) function: &'m Function,
    pub(super) dag: Dag,
    pub(super) carries: Carries,
    pub(super) memo: HashMap<(usize, Indices), NodeId>,
    pub(super) pointers: HashMap<(usize, Indices), Pointer>,
    pub(super) carried_keys: HashMap<(usize, Indices), u32>,
    /// The operation and region that a block stands in.
    pub(super) owner: HashMap<usize, (usize, usize)>,
    pub(super) accesses: Vec<Access>,
    pub(super) lost: Vec<(String, u32)>,
    pub(super) notes: Vec<String>,
    pub(super) depth: usize,
    named: Vec<bool>,
}

/// The accesses of a function.
#[must_use]
pub fn lower(module: &Module, function: &Function) -> Model {
    let mut owner = HashMap::new();
    for (index, op) in function.operations.iter().enumerate() {
        for (region, blocks) in op.regions.iter().enumerate() {
            owner.extend(blocks.iter().map(|&block| (block, (index, region))));
        }
    }
    let mut lowering = Lowering {
        module,
        function,
        dag: Dag::default(),
        carries: Carries::default(),
        memo: HashMap::new(),
        pointers: HashMap::new(),
        carried_keys: HashMap::new(),
        owner,
        accesses: Vec::new(),
        lost: Vec::new(),
        notes: Vec::new(),
        depth: 0,
        named: finished_names(module, function),
    };
    lowering.blocks(&function.body, &Vec::new());
    lowering.finish()
}

/// Which operations end an author's assignment: some user of theirs belongs to another one. The compiler names every
/// step of `x = load(p + i * s)` "x", but only the last one is x.
fn finished_names(module: &Module, function: &Function) -> Vec<bool> {
    let author =
        |index: usize| function.operations.get(index).and_then(|op| module.places.author_name(op.place));
    let names: Vec<Option<String>> = (0..function.operations.len()).map(author).collect();
    let mut finished = vec![false; names.len()];
    for (user, op) in function.operations.iter().enumerate() {
        for value in op.operands.iter().filter_map(|&v| function.values.get(v)) {
            if let Def::Result(maker, _) = value.def
                && names.get(maker) != names.get(user)
                && let Some(slot) = finished.get_mut(maker)
            {
                *slot = true;
            }
        }
    }
    finished
}

impl Lowering<'_> {
    fn finish(mut self) -> Model {
        let mut accesses = std::mem::take(&mut self.accesses);
        for access in &mut accesses {
            access.offset = self.carries.resolve(&mut self.dag, access.offset);
            for node in access.also.iter_mut().chain(access.facts.iter_mut().map(|(node, _)| node)) {
                *node = self.carries.resolve(&mut self.dag, *node);
            }
        }
        let mut used = vec![false; self.function.params.len()];
        for op in &self.function.operations {
            for value in op.operands.iter().filter_map(|&v| self.function.values.get(v)) {
                if let Def::Param(index) = value.def
                    && let Some(slot) = used.get_mut(index)
                {
                    *slot = true;
                }
            }
        }
        let params = self.function.params.iter().zip(&used).map(|(param, &used)| Param {
            name: param.name.clone(),
            ty: param.ty.text(),
            int_width: param.ty.int_width(),
            pointee_bytes: param.ty.pointee_bytes(),
            divisibility: param.divisibility,
            used,
        });
        if !self.function.complete {
            self.lost.push(("the text ends before the kernel does".into(), 0));
        }
        let places = &self.module.places;
        Model {
            entry: self.function.name.clone(),
            source: Source::Ttir,
            target: None,
            params: params.collect(),
            accesses,
            origins: self.function.operations.iter().map(|op| places.location(op.place)).collect(),
            block: [0; 3],
            block_is_maximum: false,
            lost: self.lost.into_iter().map(|(what, place)| (what, places.location(place))).collect(),
            notes: self.notes,
            complaints: self.module.complaints.clone(),
            modular_unsigned: false,
            dag: self.dag,
        }
    }

    pub(super) fn op(&self, index: usize) -> &Operation {
        static EMPTY: std::sync::OnceLock<Operation> = std::sync::OnceLock::new();
        self.function.operations.get(index).unwrap_or_else(|| EMPTY.get_or_init(Operation::default))
    }

    pub(super) fn ty(&self, value: usize) -> Type {
        self.function.values.get(value).map_or_else(Type::other, |v| v.ty.clone())
    }

    pub(super) fn origin(index: usize) -> Origin {
        u32::try_from(index).map_or(Origin::NONE, Origin)
    }

    /// The integer value of one element.
    pub(super) fn value(&mut self, value: usize, at: &Indices) -> NodeId {
        let key = (value, at.clone());
        if let Some(&known) = self.memo.get(&key) {
            return known;
        }
        let width = self.ty(value).int_width().unwrap_or(64);
        self.depth += 1;
        let node = if self.depth > MAX_DEPTH {
            self.dag.opaque("an expression nested too deeply", width, Origin::NONE)
        } else {
            self.compute(value, at, width)
        };
        self.depth -= 1;
        self.memo.insert(key, node);
        node
    }

    fn compute(&mut self, value: usize, at: &Indices, width: u8) -> NodeId {
        let Some(info) = self.function.values.get(value) else {
            return self.dag.opaque("a value that is defined nowhere", width, Origin::NONE);
        };
        match info.def {
            Def::Param(index) => match info.ty.element {
                Element::Int(width) => self.dag.var(VarKind::Arg(index), width),
                _ => self.dag.opaque("a parameter that is no integer", width, Origin::NONE),
            },
            Def::BlockArg(block, index) => self.block_argument(value, block, index, at, width),
            Def::Result(op, result) => {
                let node = self.result(op, result, value, at, width);
                if self.named.get(op).copied().unwrap_or(false)
                    && let Some(name) = self.module.places.author_name(self.op(op).place)
                {
                    self.dag.name(node, &name);
                }
                node
            }
            Def::Missing => self.dag.opaque("a value that is defined nowhere", width, Origin::NONE),
        }
    }

    pub(super) fn operand(&mut self, op: usize, nth: usize, at: &Indices) -> NodeId {
        match self.op(op).operands.get(nth).copied() {
            Some(value) => self.value(value, at),
            None => self.dag.opaque("a missing operand", 64, Self::origin(op)),
        }
    }

    /// The one-bit truth of an operand.
    pub(super) fn fact(&mut self, value: usize, at: &Indices, truth: bool) -> Fact {
        (self.value(value, at), truth)
    }

    fn result(&mut self, index: usize, result: usize, value: usize, at: &Indices, width: u8) -> NodeId {
        let origin = Self::origin(index);
        let op = self.op(index);
        let name = op.name.clone();
        if let Some(kind) = arithmetic(&name) {
            if self.ty(value).int_width().is_none() {
                return self.dag.opaque("a floating-point value", width, origin);
            }
            let args = [self.operand(index, 0, at), self.operand(index, 1, at)];
            return self.dag.make(kind, width, &args, origin);
        }
        match name.as_str() {
            "arith.constant" => match constant(self.op(index)) {
                Some(number) => self.dag.constant(number, width),
                None => self.dag.opaque("a constant that is no single integer", width, origin),
            },
            "arith.cmpi" => self.comparison(index, at),
            "arith.select" => {
                let cond_at = if self.op(index).operands.first().is_some_and(|&c| self.ty(c).shape.is_empty())
                {
                    Vec::new()
                } else {
                    at.clone()
                };
                let args = [
                    self.operand(index, 0, &cond_at),
                    self.operand(index, 1, at),
                    self.operand(index, 2, at),
                ];
                self.dag.make(Op::Select, width, &args, origin)
            }
            "arith.extsi" | "arith.index_cast" | "arith.extui" | "arith.index_castui" | "arith.trunci" => {
                let arg = self.operand(index, 0, at);
                let from = self.dag.node(arg).width;
                let kind = match name.as_str() {
                    _ if from > width => Op::Trunc,
                    "arith.extsi" | "arith.index_cast" if from > 1 => Op::Sext,
                    "arith.extsi" => return self.dag.opaque("a sign-extended truth value", width, origin),
                    _ => Op::Zext,
                };
                self.dag.make(kind, width, &[arg], origin)
            }
            "arith.ceildivsi" | "arith.floordivsi" => {
                self.rounded_quotient(index, name == "arith.ceildivsi", at, width)
            }
            "math.absi" => {
                let arg = self.operand(index, 0, at);
                let zero = self.dag.constant(0, width);
                let opposite = self.dag.make(Op::Sub, width, &[zero, arg], origin);
                let negative = self.dag.compare(Pred::Slt, arg, zero, origin);
                self.dag.make(Op::Select, width, &[negative, opposite, arg], origin)
            }
            "tt.make_range" => {
                let start = int_attribute(self.op(index), "start").unwrap_or(0);
                let base = self.dag.constant(start, width);
                let lane = at.first().copied().unwrap_or(base);
                let lane = self.dag.make(Op::Trunc, width, &[lane], origin);
                self.dag.make(Op::Add, width, &[base, lane], origin)
            }
            "tt.get_program_id" | "tt.get_num_programs" => {
                let axis = axis_of(self.op(index));
                let kind = if name == "tt.get_program_id" {
                    VarKind::ProgramId(axis)
                } else {
                    VarKind::ProgramCount(axis)
                };
                self.dag.var(kind, width)
            }
            "tt.load"
            | "tt.atomic_rmw"
            | "tt.atomic_cas"
            | "tt.descriptor_load"
            | "tt.experimental_descriptor_load"
            | "tt.descriptor_gather" => self.dag.loaded(width, origin),
            "scf.for" => self.loop_result(index, result, at, width),
            "scf.if" => self.branch_result(index, result, at, width),
            _ => match self.moved(index, result, at) {
                Some((source, from)) => self.value(source, &from),
                None => self.dag.opaque(unknown(&name), width, origin),
            },
        }
    }

    /// Operations that only move elements: the source value and where in it the element stands.
    pub(super) fn moved(&mut self, index: usize, result: usize, at: &Indices) -> Option<(usize, Indices)> {
        let op = self.op(index);
        let source = *op.operands.first()?;
        let from = self.ty(source).shape;
        match op.name.as_str() {
            "tt.splat" | "tt.unsplat" => Some((source, vec![self.dag.constant(0, 64); from.len()])),
            "tt.broadcast" => {
                let zero = self.dag.constant(0, 64);
                Some((
                    source,
                    from.iter().zip(at).map(|(&dim, &i)| if dim == 1 { zero } else { i }).collect(),
                ))
            }
            "tt.expand_dims" => {
                let axis = usize::try_from(int_attribute(op, "axis")?).ok()?;
                let mut inner = at.clone();
                (axis < inner.len()).then(|| inner.remove(axis))?;
                Some((source, inner))
            }
            "tt.trans" => {
                let order = list_attribute(op, "order").unwrap_or_else(|| vec![1, 0]);
                let mut inner = vec![self.dag.constant(0, 64); from.len()];
                for (&to, &i) in order.iter().zip(at) {
                    *inner.get_mut(to)? = i;
                }
                Some((source, inner))
            }
            "tt.reshape" | "tt.view" => {
                let to = self.ty(*op.results.first()?).shape;
                let reorders = op.words.iter().any(|w| format!("{:?}", w.kind).contains("allow_reorder"));
                if reorders { None } else { self.reshaped(&from, &to, at).map(|inner| (source, inner)) }
            }
            "tt.split" => {
                let mut inner = at.clone();
                inner.push(self.dag.constant(i128::try_from(result).ok()?, 64));
                Some((source, inner))
            }
            "arith.bitcast" | "tt.bitcast" | "tt.fp_to_fp" | "ttg.convert_layout" | "tt.unsqueeze" => {
                let same = self.ty(source).int_width() == self.ty(*op.results.first()?).int_width();
                same.then(|| (source, at.clone()))
            }
            _ => None,
        }
    }

    /// The element of a row-major reshape.
    fn reshaped(&mut self, from: &[i64], to: &[i64], at: &Indices) -> Option<Indices> {
        let mut flat = self.dag.constant(0, 64);
        for (&dim, &i) in to.iter().zip(at) {
            let dim = self.dag.constant(i128::from(dim), 64);
            flat = self.dag.make(Op::Mul, 64, &[flat, dim], Origin::NONE);
            flat = self.dag.make(Op::Add, 64, &[flat, i], Origin::NONE);
        }
        let mut inner = vec![flat; from.len()];
        let mut stride = 1i128;
        for (slot, &dim) in inner.iter_mut().zip(from).rev() {
            let (by, size) = (self.dag.constant(stride, 64), self.dag.constant(i128::from(dim), 64));
            let quotient = self.dag.make(Op::DivS, 64, &[flat, by], Origin::NONE);
            *slot = self.dag.make(Op::RemS, 64, &[quotient, size], Origin::NONE);
            stride = stride.checked_mul(i128::from(dim))?;
        }
        Some(inner)
    }

    fn comparison(&mut self, index: usize, at: &Indices) -> NodeId {
        let (a, b) = (self.operand(index, 0, at), self.operand(index, 1, at));
        let origin = Self::origin(index);
        let (pred, swap) = match keyword(self.op(index), 0) {
            "eq" => (Pred::Eq, false),
            "ne" => (Pred::Ne, false),
            "slt" => (Pred::Slt, false),
            "sle" => (Pred::Sle, false),
            "sgt" => (Pred::Slt, true),
            "sge" => (Pred::Sle, true),
            "ult" => (Pred::Ult, false),
            "ule" => (Pred::Ule, false),
            "ugt" => (Pred::Ult, true),
            "uge" => (Pred::Ule, true),
            other => {
                let reason = format!("the comparison `{other}` is not understood");
                return self.dag.opaque(reason, 1, origin);
            }
        };
        if swap { self.dag.compare(pred, b, a, origin) } else { self.dag.compare(pred, a, b, origin) }
    }

    /// A quotient rounded up or down instead of toward zero.
    fn rounded_quotient(&mut self, index: usize, up: bool, at: &Indices, width: u8) -> NodeId {
        let origin = Self::origin(index);
        let (a, b) = (self.operand(index, 0, at), self.operand(index, 1, at));
        let (zero, one) = (self.dag.constant(0, width), self.dag.constant(1, width));
        let quotient = self.dag.make(Op::DivS, width, &[a, b], origin);
        let rest = self.dag.make(Op::RemS, width, &[a, b], origin);
        let exact = self.dag.compare(Pred::Eq, rest, zero, origin);
        let a_negative = self.dag.compare(Pred::Slt, a, zero, origin);
        let b_negative = self.dag.compare(Pred::Slt, b, zero, origin);
        let differ = self.dag.make(Op::Xor, 1, &[a_negative, b_negative], origin);
        let below = self.dag.make(Op::Sub, width, &[quotient, one], origin);
        let above = self.dag.make(Op::Add, width, &[quotient, one], origin);
        let (if_differ, if_same) = if up { (quotient, above) } else { (below, quotient) };
        let rounded = self.dag.make(Op::Select, width, &[differ, if_differ, if_same], origin);
        self.dag.make(Op::Select, width, &[exact, quotient, rounded], origin)
    }
}

/// Why the result of an operation can't be followed.
pub(super) fn unknown(name: &str) -> String {
    match name {
        "tt.reduce" | "tt.scan" => format!("the value comes out of `{name}`"),
        "scf.while" => "the value comes out of a `while` loop".into(),
        "arith.fptosi" | "arith.fptoui" => "the value is computed from a floating-point number".into(),
        _ => format!("`{name}` is not understood"),
    }
}

/// x, y or z; older files write `{axis = 0 : i32}`.
fn axis_of(op: &Operation) -> u8 {
    match keyword(op, 0) {
        "x" => 0,
        "y" => 1,
        "z" => 2,
        _ => int_attribute(op, "axis").and_then(|axis| u8::try_from(axis).ok()).unwrap_or(0),
    }
}

fn arithmetic(name: &str) -> Option<Op> {
    Some(match name {
        "arith.addi" => Op::Add,
        "arith.subi" => Op::Sub,
        "arith.muli" => Op::Mul,
        "arith.divsi" => Op::DivS,
        "arith.divui" => Op::DivU,
        "arith.remsi" => Op::RemS,
        "arith.remui" => Op::RemU,
        "arith.andi" => Op::And,
        "arith.ori" => Op::Or,
        "arith.xori" => Op::Xor,
        "arith.shli" => Op::Shl,
        "arith.shrsi" => Op::ShrS,
        "arith.shrui" => Op::ShrU,
        "arith.minsi" => Op::MinS,
        "arith.maxsi" => Op::MaxS,
        "arith.minui" => Op::MinU,
        "arith.maxui" => Op::MaxU,
        "tt.mulhiui" => Op::MulHiU,
        _ => return None,
    })
}
