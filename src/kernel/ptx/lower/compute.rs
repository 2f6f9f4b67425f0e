//! What one instruction computes: arithmetic, moves, conversions, comparisons.
//!
//! In: an instruction. Out: the node of its result; what isn't understood is opaque, never guessed. It leaves definitions, loops
//! and memory to the parent and its siblings.

use super::{Lowering, type_width};
use crate::kernel::ptx::{Instruction, Operand};
use crate::kernel::sym::{NodeId, Op, Pred, VarKind};

impl Lowering<'_> {
    pub(super) fn compute(
        &mut self,
        index: usize,
        register: u32,
        instruction: &Instruction,
        width: u8,
    ) -> NodeId {
        let origin = Self::origin(index);
        let opcode = instruction.opcode.as_str();
        let base = opcode.split('.').next().unwrap_or("");
        let operands = &instruction.operands;
        let last = opcode.rsplit('.').next().unwrap_or("");
        let signed = last.starts_with('s');
        let float = opcode
            .split('.')
            .skip(1)
            .any(|part| part.starts_with('f') && type_width(part).is_some() || part.starts_with("bf16"));
        if float && base != "ld" {
            return self.dag.opaque("a floating-point value", width, origin);
        }
        let arg = |this: &mut Self, nth: usize, width: u8| match operands.get(nth) {
            Some(operand) => this.operand(operand, width, index),
            None => this.dag.opaque("a missing operand", width, origin),
        };
        let plain = |this: &mut Self, op: Op| {
            let args = [arg(this, 1, width), arg(this, 2, width)];
            this.dag.make(op, width, &args, origin)
        };
        let pick = |signed_op: Op, unsigned_op: Op| if signed { signed_op } else { unsigned_op };
        let carries = opcode.contains(".cc") || opcode.contains(".sat");
        match base {
            _ if carries => self.dag.opaque(format!("`{opcode}` is not understood"), width, origin),
            "ld" | "ldu" if opcode.starts_with("ld.param") => match self.param_of(instruction) {
                Some(param) => self.parameter(param, width),
                None => self.dag.opaque("a field of a structure, or a function's result", width, origin),
            },
            "ld" | "ldu" | "atom" | "ldmatrix" => self.dag.loaded(width, origin),
            "mov" => self.moved(index, register, instruction, width),
            "add" => plain(self, Op::Add),
            "sub" => plain(self, Op::Sub),
            "and" => plain(self, Op::And),
            "or" => plain(self, Op::Or),
            "xor" => plain(self, Op::Xor),
            "not" => {
                let value = arg(self, 1, width);
                let ones = self.dag.constant(-1, width);
                let op = if width == 1 { Op::Xor } else { Op::Sub };
                let args = if width == 1 { [value, ones] } else { [ones, value] };
                self.dag.make(op, width, &args, origin)
            }
            "neg" => {
                let args = [self.dag.constant(0, width), arg(self, 1, width)];
                self.dag.make(Op::Sub, width, &args, origin)
            }
            "abs" => {
                let value = arg(self, 1, width);
                let zero = self.dag.constant(0, width);
                let opposite = self.dag.make(Op::Sub, width, &[zero, value], origin);
                let negative = self.dag.compare(Pred::Slt, value, zero, origin);
                self.dag.make(Op::Select, width, &[negative, opposite, value], origin)
            }
            "mul" | "mad" => self.product(index, instruction, width),
            "shl" => {
                let args = [arg(self, 1, width), arg(self, 2, 32)];
                self.dag.make(Op::Shl, width, &args, origin)
            }
            "shr" => {
                let args = [arg(self, 1, width), arg(self, 2, 32)];
                self.dag.make(pick(Op::ShrS, Op::ShrU), width, &args, origin)
            }
            "div" => plain(self, pick(Op::DivS, Op::DivU)),
            "rem" => plain(self, pick(Op::RemS, Op::RemU)),
            "min" => plain(self, pick(Op::MinS, Op::MinU)),
            "max" => plain(self, pick(Op::MaxS, Op::MaxU)),
            "bfe" if !signed => self.bit_field(index, instruction, width),
            "cvt" => self.converted(index, instruction, width),
            "cvta" => arg(self, 1, width),
            "selp" => {
                let args = [arg(self, 3, 1), arg(self, 1, width), arg(self, 2, width)];
                self.dag.make(Op::Select, width, &args, origin)
            }
            "setp" => self.comparison(index, register, instruction),
            _ => self.dag.opaque(format!("`{opcode}` is not understood"), width, origin),
        }
    }

    fn parameter(&mut self, param: usize, width: u8) -> NodeId {
        let own = self.entry.params.get(param).and_then(|p| type_width(&p.ty)).unwrap_or(width);
        let node = self.dag.var(VarKind::Arg(param), own);
        self.resize(node, width)
    }

    /// `mov`, and the packing and unpacking of pairs.
    fn moved(&mut self, index: usize, register: u32, instruction: &Instruction, width: u8) -> NodeId {
        let origin = Self::origin(index);
        match (instruction.operands.first(), instruction.operands.get(1)) {
            (Some(Operand::Vector(to)), Some(from)) if to.len() == 2 => {
                let whole = self.operand(from, 64, index);
                if to.first() == Some(&Operand::Register(register)) {
                    return self.dag.make(Op::Trunc, 32, &[whole], origin);
                }
                let bits = self.dag.constant(32, 64);
                let high = self.dag.make(Op::ShrU, 64, &[whole, bits], origin);
                self.dag.make(Op::Trunc, 32, &[high], origin)
            }
            (Some(Operand::Register(_)), Some(Operand::Vector(from))) if from.len() == 2 && width == 64 => {
                let halves: Vec<NodeId> = from.iter().map(|half| self.operand(half, 32, index)).collect();
                let &[low, high] = halves.as_slice() else {
                    return self.dag.opaque("a packed value", width, origin);
                };
                let low = self.dag.make(Op::Zext, 64, &[low], origin);
                let high = self.dag.make(Op::Zext, 64, &[high], origin);
                let bits = self.dag.constant(32, 64);
                let high = self.dag.make(Op::Shl, 64, &[high, bits], origin);
                self.dag.make(Op::Or, 64, &[low, high], origin)
            }
            (
                Some(Operand::Register(_)),
                Some(
                    from @ (Operand::Register(_)
                    | Operand::Integer(_)
                    | Operand::Special(_)
                    | Operand::Symbol(_)
                    | Operand::Float),
                ),
            ) => self.operand(from, width, index),
            _ => self.dag.opaque("a packed value", width, origin),
        }
    }

    /// `mul` and `mad`, low, high and wide.
    fn product(&mut self, index: usize, instruction: &Instruction, width: u8) -> NodeId {
        let origin = Self::origin(index);
        let opcode = instruction.opcode.as_str();
        let signed = opcode.rsplit('.').next().is_some_and(|t| t.starts_with('s'));
        let narrow = if opcode.contains(".wide") { width / 2 } else { width };
        let args: Vec<NodeId> = [1, 2]
            .iter()
            .map(|&nth| match instruction.operands.get(nth) {
                Some(operand) => self.operand(operand, narrow, index),
                None => self.dag.opaque("a missing operand", narrow, origin),
            })
            .collect();
        let product = if opcode.contains(".wide") {
            let widen = if signed { Op::Sext } else { Op::Zext };
            let wide: Vec<NodeId> = args.iter().map(|&a| self.dag.make(widen, width, &[a], origin)).collect();
            self.dag.make(Op::Mul, width, &wide, origin)
        } else if opcode.contains(".hi") {
            self.dag.make(if signed { Op::MulHiS } else { Op::MulHiU }, width, &args, origin)
        } else if opcode.contains(".lo") {
            self.dag.make(Op::Mul, width, &args, origin)
        } else {
            self.dag.opaque(format!("`{opcode}` is not understood"), width, origin)
        };
        match instruction.operands.get(3) {
            Some(addend) if opcode.starts_with("mad") => {
                let addend = self.operand(addend, width, index);
                self.dag.make(Op::Add, width, &[product, addend], origin)
            }
            _ => product,
        }
    }

    /// `bfe.u32 d, a, from, length`
    fn bit_field(&mut self, index: usize, instruction: &Instruction, width: u8) -> NodeId {
        let origin = Self::origin(index);
        match instruction.operands.as_slice() {
            [_, value, Operand::Integer(from), Operand::Integer(length)]
                if (0..i128::from(width)).contains(from) && (1..i128::from(width)).contains(length) =>
            {
                let value = self.operand(value, width, index);
                let from = self.dag.constant(*from, width);
                let shifted = self.dag.make(Op::ShrU, width, &[value, from], origin);
                let mask = self.dag.constant((1i128 << length) - 1, width);
                self.dag.make(Op::And, width, &[shifted, mask], origin)
            }
            _ => self.dag.opaque("a bit field of variable place", width, origin),
        }
    }

    fn converted(&mut self, index: usize, instruction: &Instruction, width: u8) -> NodeId {
        let origin = Self::origin(index);
        let types: Vec<&str> =
            instruction.opcode.split('.').filter(|part| type_width(part).is_some()).collect();
        let (Some(from), Some(operand)) = (types.last(), instruction.operands.get(1)) else {
            return self.dag.opaque("a conversion", width, origin);
        };
        let narrow = type_width(from).unwrap_or(width);
        let value = self.operand(operand, narrow, index);
        let op = match narrow.cmp(&width) {
            std::cmp::Ordering::Less if from.starts_with('s') => Op::Sext,
            std::cmp::Ordering::Less => Op::Zext,
            _ => Op::Trunc,
        };
        self.dag.make(op, width, &[value], origin)
    }

    /// `setp.lt.s32 p, a, b`
    fn comparison(&mut self, index: usize, register: u32, instruction: &Instruction) -> NodeId {
        let origin = Self::origin(index);
        let mut parts = instruction.opcode.split('.').skip(1);
        let (relation, ty) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let second = instruction.operands.first() != Some(&Operand::Register(register));
        let width = type_width(ty);
        let (Some(width), false, 3, None) = (width, second, instruction.operands.len(), parts.next()) else {
            return self.dag.opaque(format!("`{}` is not understood", instruction.opcode), 1, origin);
        };
        let unsigned = ty.starts_with(['u', 'b']);
        let (pred, swap) = match (relation, unsigned) {
            ("eq", _) => (Pred::Eq, false),
            ("ne", _) => (Pred::Ne, false),
            ("lt", false) => (Pred::Slt, false),
            ("le", false) => (Pred::Sle, false),
            ("gt", false) => (Pred::Slt, true),
            ("ge", false) => (Pred::Sle, true),
            ("lt" | "lo", true) => (Pred::Ult, false),
            ("le" | "ls", true) => (Pred::Ule, false),
            ("gt" | "hi", true) => (Pred::Ult, true),
            ("ge" | "hs", true) => (Pred::Ule, true),
            _ => return self.dag.opaque(format!("`{}` is not understood", instruction.opcode), 1, origin),
        };
        let values: Vec<NodeId> =
            instruction.operands.iter().skip(1).map(|operand| self.operand(operand, width, index)).collect();
        match (values.as_slice(), swap) {
            (&[a, b], false) => self.dag.compare(pred, a, b, origin),
            (&[a, b], true) => self.dag.compare(pred, b, a, origin),
            _ => self.dag.opaque("a comparison", 1, origin),
        }
    }
}
