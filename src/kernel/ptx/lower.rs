//! PTX instructions → symbolic values of one thread.
//!
//! In: an entry and its control flow. Out: a [`Model`]. Values are followed backward from the addresses and predicates
//! that need them, so the arithmetic of the data costs nothing.

mod compute;

use std::collections::{HashMap, HashSet};

use super::flow::Flow;
use super::{Entry, Instruction, Module, Operand};
use crate::kernel::carry::Carries;
use crate::kernel::model::{Access, Model, Param, Source};
use crate::kernel::sym::{Dag, NodeId, Op, Origin, VarKind};

/// Deepest chain of definitions. Longer ones are unknown, not a crash.
pub(super) const MAX_DEPTH: usize = 400;

/// Marks values that lead to memory no 32-bit index of the caller's arrays addresses.
pub(super) const ELSEWHERE: &str = "an address of shared or local memory";

/// Marks the address of a variable in global memory.
pub(super) const VARIABLE: &str = "the address of ";

pub(super) struct Lowering<'m> {
    pub(super) module: &'m Module,
    pub(super) entry: &'m Entry,
    pub(super) flow: Flow,
    pub(super) dag: Dag,
    pub(super) carries: Carries,
    /// For each register, the instructions that set it.
    pub(super) defs: Vec<Vec<usize>>,
    pub(super) on_entry: HashMap<(u32, usize), NodeId>,
    pub(super) results: HashMap<(usize, u32), NodeId>,
    /// Values after definitions under a predicate: instruction, register.
    pub(super) after_guarded: HashMap<(usize, u32), NodeId>,
    /// For each placeholder, the header of its loop.
    pub(super) carried_by: HashMap<u32, usize>,
    pub(super) accesses: Vec<Access>,
    pub(super) lost: Vec<(String, usize)>,
    pub(super) pointer_params: Vec<bool>,
    /// Whole parameters by name.
    param_named: HashMap<&'m str, usize>,
    pub(super) depth: usize,
}

/// The accesses of an entry.
#[must_use]
pub fn lower(module: &Module, entry: &Entry) -> Model {
    let mut defs = vec![Vec::new(); entry.registers.len()];
    for (at, instruction) in entry.instructions.iter().enumerate() {
        for register in destinations(instruction) {
            if let Some(list) = defs.get_mut(register as usize)
                && list.last() != Some(&at)
            {
                list.push(at);
            }
        }
    }
    let mut lowering = Lowering {
        module,
        entry,
        flow: Flow::new(entry),
        dag: Dag::in_cuda_words(),
        carries: Carries::default(),
        defs,
        on_entry: HashMap::new(),
        results: HashMap::new(),
        after_guarded: HashMap::new(),
        carried_by: HashMap::new(),
        accesses: Vec::new(),
        lost: Vec::new(),
        pointer_params: entry.params.iter().map(|p| p.is_pointer).collect(),
        param_named: whole_params(entry),
        depth: 0,
    };
    lowering.mark_pointers();
    lowering.all_accesses();
    lowering.finish()
}

/// Parameters that are no arrays, by name; of two with one name the first.
fn whole_params(entry: &Entry) -> HashMap<&str, usize> {
    let params = entry.params.iter().enumerate().rev();
    params.filter(|(_, param)| param.array_bytes == 0).map(|(at, param)| (param.name.as_str(), at)).collect()
}

/// The registers that an instruction sets.
pub(super) fn destinations(instruction: &Instruction) -> Vec<u32> {
    let base = instruction.opcode.split('.').next().unwrap_or("");
    let none = [
        "st", "red", "bra", "brx", "ret", "exit", "trap", "bar", "barrier", "membar", "fence", "cp",
        "prefetch", "call", "stmatrix",
    ];
    if none.contains(&base) || opcode_starts(instruction, "bar.sync") {
        return Vec::new();
    }
    match instruction.operands.first() {
        Some(Operand::Register(register)) => vec![*register],
        Some(Operand::Vector(list)) => list
            .iter()
            .filter_map(|item| if let Operand::Register(register) = item { Some(*register) } else { None })
            .collect(),
        _ => Vec::new(),
    }
}

fn opcode_starts(instruction: &Instruction, start: &str) -> bool {
    instruction.opcode.starts_with(start)
}

/// The width in bits that a type suffix names; 1 for `pred`.
pub(super) fn type_width(ty: &str) -> Option<u8> {
    match ty {
        "pred" => Some(1),
        _ => match ty.get(1..)?.parse::<u8>().ok()? {
            bits @ (8 | 16 | 32 | 64) if ty.starts_with(['s', 'u', 'b', 'f']) => Some(bits),
            _ => None,
        },
    }
}

/// The width of what an instruction sets.
pub(super) fn result_width(instruction: &Instruction) -> u8 {
    let mut parts = instruction.opcode.split('.');
    let base = parts.next().unwrap_or("");
    let types: Vec<u8> = parts.filter_map(type_width).collect();
    let (first, last) = (types.first().copied().unwrap_or(32), types.last().copied().unwrap_or(32));
    let wide = instruction.opcode.contains(".wide");
    match base {
        "setp" | "testp" | "isspacep" | "elect" => 1,
        "mul" | "mad" if wide => last.saturating_mul(2).min(64),
        "cvt" | "set" => first,
        "mov" if matches!(instruction.operands.first(), Some(Operand::Vector(_))) => 32,
        _ => last,
    }
}

impl Lowering<'_> {
    /// A parameter is a pointer where the text says so or where its value is converted to a global address.
    fn mark_pointers(&mut self) {
        let mut seen = HashSet::new();
        for index in 0..self.entry.instructions.len() {
            let Some(instruction) = self.entry.instructions.get(index) else { continue };
            if !instruction.opcode.starts_with("cvta.to.global") {
                continue;
            }
            let Some(Operand::Register(register)) = instruction.operands.get(1) else { continue };
            if !seen.insert(*register) {
                continue;
            }
            for &def in self.defs.get(*register as usize).map_or(&[][..], Vec::as_slice) {
                if let Some(param) = self.entry.instructions.get(def).and_then(|i| self.param_of(i))
                    && let Some(slot) = self.pointer_params.get_mut(param)
                {
                    *slot = true;
                }
            }
        }
    }

    /// The parameter that an `ld.param` reads as a whole.
    fn param_of(&self, instruction: &Instruction) -> Option<usize> {
        if !instruction.opcode.starts_with("ld.param") {
            return None;
        }
        match instruction.operands.get(1) {
            Some(Operand::Address(base, 0)) => match base.as_ref() {
                Operand::Symbol(name) => self.param_named.get(name.as_str()).copied(),
                _ => None,
            },
            _ => None,
        }
    }

    fn finish(mut self) -> Model {
        let mut accesses = std::mem::take(&mut self.accesses);
        for access in &mut accesses {
            access.offset = self.carries.resolve(&mut self.dag, access.offset);
            for (node, _) in &mut access.facts {
                *node = self.carries.resolve(&mut self.dag, *node);
            }
        }
        let used: HashSet<usize> = self.entry.instructions.iter().filter_map(|i| self.param_of(i)).collect();
        let params = self.entry.params.iter().enumerate().map(|(index, param)| {
            let pointer = self.pointer_params.get(index).copied().unwrap_or(false);
            let width = (param.array_bytes == 0 && !pointer && !param.ty.starts_with('f'))
                .then(|| type_width(&param.ty));
            Param {
                name: format!("param_{index}"),
                ty: if pointer { "ptr".into() } else { param.ty.clone() },
                int_width: width.flatten(),
                pointee_bytes: pointer.then_some(0),
                divisibility: 1,
                used: used.contains(&index),
            }
        });
        let origins =
            self.entry.instructions.iter().map(|i| self.module.location(self.entry, i)).collect::<Vec<_>>();
        if !self.entry.complete {
            self.lost.push(("the text ends before the kernel does".into(), usize::MAX));
        }
        let lost =
            self.lost.into_iter().map(|(what, at)| (what, origins.get(at).cloned().flatten())).collect();
        Model {
            entry: self.entry.name.clone(),
            source: Source::Ptx,
            target: self.module.target.clone(),
            params: params.collect(),
            accesses,
            lost,
            origins,
            block: self.entry.block,
            block_is_maximum: self.entry.block_is_maximum,
            notes: Vec::new(),
            complaints: self.module.complaints.clone(),
            modular_unsigned: true,
            dag: self.dag,
        }
    }

    pub(super) fn origin(index: usize) -> Origin {
        u32::try_from(index).map_or(Origin::NONE, Origin)
    }

    /// An operand's value as `at` reads it.
    pub(super) fn operand(&mut self, operand: &Operand, width: u8, at: usize) -> NodeId {
        let node = match operand {
            Operand::Integer(value) => return self.dag.constant(*value, width),
            Operand::Register(register) => self.register(*register, at),
            Operand::Special(name) => self.special(name, at),
            Operand::Float => self.dag.opaque("a floating-point value", width, Self::origin(at)),
            Operand::Symbol(name) if self.module.globals.contains(name) => {
                return self.dag.opaque(format!("{VARIABLE}`{name}`"), width, Self::origin(at));
            }
            Operand::Symbol(name) if self.module.elsewhere.contains(name) => {
                self.dag.opaque(ELSEWHERE, width, Self::origin(at))
            }
            Operand::Symbol(_) => self.dag.opaque("a name that is not declared", width, Self::origin(at)),
            Operand::Address(..) | Operand::Vector(_) => {
                self.dag.opaque("a memory operand", width, Self::origin(at))
            }
        };
        self.resize(node, width)
    }

    fn resize(&mut self, node: NodeId, width: u8) -> NodeId {
        match self.dag.node(node).width {
            w if w == width => node,
            w if w > width => self.dag.make(Op::Trunc, width, &[node], Origin::NONE),
            _ => self.dag.make(Op::Zext, width, &[node], Origin::NONE),
        }
    }

    fn special(&mut self, name: &str, at: usize) -> NodeId {
        let axis = match name.rsplit('.').next() {
            Some("x") => 0,
            Some("y") => 1,
            Some("z") => 2,
            _ => 3,
        };
        let kind = match name.split('.').next().unwrap_or("") {
            "%tid" if axis < 3 => VarKind::Thread(axis),
            "%ntid" if axis < 3 => {
                let fixed = self.entry.block.get(usize::from(axis)).copied().unwrap_or(0);
                if fixed > 0 && !self.entry.block_is_maximum {
                    return self.dag.constant(i128::from(fixed), 32);
                }
                VarKind::ThreadCount(axis)
            }
            "%ctaid" if axis < 3 => VarKind::ProgramId(axis),
            "%nctaid" if axis < 3 => VarKind::ProgramCount(axis),
            "%laneid" => {
                let value = self.dag.opaque("the lane of its warp", 32, Self::origin(at));
                let mask = self.dag.constant(31, 32);
                return self.dag.make(Op::And, 32, &[value, mask], Origin::NONE);
            }
            _ => return self.dag.opaque(format!("`{name}`"), 32, Self::origin(at)),
        };
        self.dag.var(kind, 32)
    }

    /// What an instruction gives one of its destinations.
    pub(super) fn result(&mut self, index: usize, register: u32) -> NodeId {
        if let Some(&known) = self.results.get(&(index, register)) {
            return known;
        }
        let Some(instruction) = self.entry.instructions.get(index) else {
            return self.dag.opaque("no instruction", 32, Origin::NONE);
        };
        let width = result_width(instruction);
        self.depth += 1;
        let node = if self.depth > MAX_DEPTH {
            self.dag.opaque("an expression nested too deeply", width, Self::origin(index))
        } else {
            self.compute(index, register, instruction, width)
        };
        self.depth -= 1;
        self.results.insert((index, register), node);
        node
    }
}
