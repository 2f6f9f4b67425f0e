//! Writes a node as the author might have written it.
//!
//! In: a node and the names that the front end gave. Out: text such as `offs_m * stride_ym`. Widenings don't show.

use super::{Dag, NodeId, Op, Pred, VarKind};

/// Deeper operands show as `…`.
const MAX_DEPTH: usize = 5;

impl Dag {
    /// The author's name of a node.
    #[must_use]
    pub fn name_of(&self, id: NodeId) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    /// A node as an expression: its operands by name where they have one, else written out.
    #[must_use]
    pub fn expression(&self, id: NodeId, arg: &dyn Fn(usize) -> String) -> String {
        self.write(id, arg, 0, true)
    }

    fn write(&self, id: NodeId, arg: &dyn Fn(usize) -> String, depth: usize, outermost: bool) -> String {
        let node = self.node(id);
        if let Op::Var(var) = node.op
            && let Some(var) = self.vars.get(var.index())
            && let VarKind::Arg(index) = var.kind
        {
            return arg(index);
        }
        if !outermost && let Some(name) = self.name_of(id) {
            return name.to_owned();
        }
        if depth > MAX_DEPTH {
            return "…".into();
        }
        let part = |i: usize| {
            node.args().get(i).map_or_else(String::new, |&arg_id| self.write(arg_id, arg, depth + 1, false))
        };
        let infix = |sign: &str| {
            let text = format!("{} {sign} {}", part(0), part(1));
            if outermost { text } else { format!("({text})") }
        };
        match node.op {
            Op::Const(value) => value.to_string(),
            Op::Var(var) => self
                .vars
                .get(var.index())
                .map_or_else(String::new, |var| variable(&var.kind, self.cuda_words)),
            // Looked through, so that a widened sum keeps its outermost look.
            Op::Sext | Op::Zext | Op::Trunc => {
                node.args().first().map_or_else(String::new, |&a| self.write(a, arg, depth, outermost))
            }
            Op::Add => infix("+"),
            Op::Sub => infix("-"),
            Op::Mul => infix("*"),
            Op::And => infix("&"),
            Op::Or => infix("|"),
            Op::Xor => infix("^"),
            Op::Shl => infix("<<"),
            Op::ShrS | Op::ShrU => infix(">>"),
            Op::DivS | Op::DivU => infix("//"),
            Op::RemS | Op::RemU => infix("%"),
            Op::MinS | Op::MinU => format!("min({}, {})", part(0), part(1)),
            Op::MaxS | Op::MaxU => format!("max({}, {})", part(0), part(1)),
            Op::MulHiS | Op::MulHiU => format!("mulhi({}, {})", part(0), part(1)),
            Op::Cmp(pred) => infix(match pred {
                Pred::Eq => "==",
                Pred::Ne => "!=",
                Pred::Slt | Pred::Ult => "<",
                Pred::Sle | Pred::Ule => "<=",
            }),
            Op::Select => format!("({} if {} else {})", part(1), part(0), part(2)),
        }
    }
}

/// A variable in the words of its programming model.
#[must_use]
pub fn variable(kind: &VarKind, cuda_words: bool) -> String {
    let axis = |a: u8| char::from(b"xyz".get(usize::from(a)).copied().unwrap_or(b'?'));
    match kind {
        VarKind::Arg(index) => format!("arg{index}"),
        VarKind::ProgramId(a) if cuda_words => format!("blockIdx.{}", axis(*a)),
        VarKind::ProgramCount(a) if cuda_words => format!("gridDim.{}", axis(*a)),
        VarKind::ProgramId(a) => format!("program_id({})", axis(*a)),
        VarKind::ProgramCount(a) => format!("num_programs({})", axis(*a)),
        VarKind::Lane(_, extent) => format!("arange(0, {extent})"),
        VarKind::Thread(a) => format!("threadIdx.{}", axis(*a)),
        VarKind::ThreadCount(a) => format!("blockDim.{}", axis(*a)),
        VarKind::Trip(_) => "iteration".into(),
        VarKind::Loaded(..) => "loaded".into(),
        VarKind::Opaque(..) => "?".into(),
        VarKind::Carried(_) => "carried".into(),
    }
}
