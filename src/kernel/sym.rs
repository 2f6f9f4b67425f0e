//! Symbolic machine integers: the arithmetic of a kernel as a graph without cycles.
//!
//! In: constants, variables (program ids, lanes, arguments, loop counts, loaded values) and operations with their width
//! in bits. Out: nodes, each made once, in an order where operands come first. A sum, difference or product stands for
//! its exact integer value and is only reduced to its width where an operation reads it; so a node tells the true
//! index and the wrapped one apart. It knows no source language and no argument values.

mod build;
mod eval;
mod poly;
mod show;
mod widen;

pub use build::Pred;
pub use eval::{Point, Values};
pub use poly::{Poly, Polys};

use std::collections::HashMap;

/// One node of a [`Dag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// The node's place in its graph.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One variable of a [`Dag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(u32);

impl VarId {
    /// The variable's place in [`Dag::vars`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a node came from: an index into the front end's list of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(pub u32);

impl Origin {
    /// Made by the analysis, not written in the program.
    pub const NONE: Self = Self(u32::MAX);
}

/// What a node computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// A constant, kept as a signed value.
    Const(i128),
    /// A variable.
    Var(VarId),
    /// Sum, exact.
    Add,
    /// Difference, exact.
    Sub,
    /// Product, exact.
    Mul,
    /// Signed widening: reads its operand as signed.
    Sext,
    /// Unsigned widening: reads its operand as unsigned.
    Zext,
    /// Narrowing: the same exact value, a smaller width.
    Trunc,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift by a variable amount (a constant one is a product).
    Shl,
    /// Signed right shift.
    ShrS,
    /// Unsigned right shift.
    ShrU,
    /// Signed quotient, toward zero.
    DivS,
    /// Unsigned quotient.
    DivU,
    /// Signed remainder.
    RemS,
    /// Unsigned remainder.
    RemU,
    /// Signed smaller.
    MinS,
    /// Signed larger.
    MaxS,
    /// Unsigned smaller.
    MinU,
    /// Unsigned larger.
    MaxU,
    /// Upper half of a signed product.
    MulHiS,
    /// Upper half of an unsigned product.
    MulHiU,
    /// A comparison; one bit.
    Cmp(Pred),
    /// The second operand where the first is 1, else the third.
    Select,
}

/// An operation, its width and operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// Width of the result in bits, 1 to 64.
    pub width: u8,
    /// Where it was first written.
    pub origin: Origin,
    /// Bits that are zero whatever the variables are.
    pub zeros: u64,
    operands: [NodeId; 3],
    arity: u8,
}

impl Node {
    /// The operands.
    #[must_use]
    pub fn args(&self) -> &[NodeId] {
        self.operands.get(..usize::from(self.arity)).unwrap_or(&[])
    }

    /// Whether the result is exact until an operation reads it.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        matches!(self.op, Op::Add | Op::Sub | Op::Mul | Op::Trunc | Op::Select)
    }
}

/// What a variable stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VarKind {
    /// The kernel's parameter of this index.
    Arg(usize),
    /// The program or block index along an axis (0 = x).
    ProgramId(u8),
    /// The number of programs or blocks along an axis.
    ProgramCount(u8),
    /// The index inside a tensor along one axis of an access, below the extent.
    Lane(u8, i64),
    /// The thread index along an axis.
    Thread(u8),
    /// The number of threads of a block along an axis.
    ThreadCount(u8),
    /// How often a loop has gone round before.
    Trip(u32),
    /// A value read from memory, at an operation; the number tells several from one operation apart.
    Loaded(Origin, u32),
    /// A value that the analysis can't follow, with the reason; the number tells several apart.
    Opaque(String, Origin, u32),
    /// A value carried round a loop, until it is resolved.
    Carried(u32),
}

/// A variable: what it stands for and its width.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Var {
    /// What it stands for.
    pub kind: VarKind,
    /// Width in bits.
    pub width: u8,
}

/// Most nodes that one kernel may need. A compiled kernel of 700 KB needs some tens of thousands.
pub const MAX_NODES: usize = 400_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    op: Op,
    width: u8,
    operands: [NodeId; 3],
    arity: u8,
}

/// All nodes of one kernel.
#[derive(Debug, Default)]
pub struct Dag {
    nodes: Vec<Node>,
    vars: Vec<Var>,
    known: HashMap<Key, NodeId>,
    known_vars: HashMap<Var, VarId>,
    names: HashMap<NodeId, String>,
    full: bool,
    cuda_words: bool,
}

impl Dag {
    /// An empty graph that writes program ids in CUDA's words.
    #[must_use]
    pub fn in_cuda_words() -> Self {
        Self { cuda_words: true, ..Self::default() }
    }

    /// A variable in the words of the programming model.
    #[must_use]
    pub fn variable_name(&self, kind: &VarKind) -> String {
        show::variable(kind, self.cuda_words)
    }

    /// The node of an id.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes.get(id.index()).copied().unwrap_or(Node {
            op: Op::Const(0),
            width: 1,
            origin: Origin::NONE,
            zeros: u64::MAX,
            operands: [NodeId(0); 3],
            arity: 0,
        })
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether [`MAX_NODES`] was reached: what came after it isn't in the graph, and no answer may rest on it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// All nodes, operands first.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId(u32::try_from(index).unwrap_or(0)), node))
    }

    /// All variables.
    #[must_use]
    pub fn vars(&self) -> &[Var] {
        &self.vars
    }

    /// The variable of a node, where it is one.
    #[must_use]
    pub fn as_var(&self, id: NodeId) -> Option<(VarId, &Var)> {
        match self.node(id).op {
            Op::Var(var) => self.vars.get(var.index()).map(|info| (var, info)),
            _ => None,
        }
    }

    /// The constant of a node, where it is one.
    #[must_use]
    pub fn as_const(&self, id: NodeId) -> Option<i128> {
        match self.node(id).op {
            Op::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Gives a node the author's name for it; the first name stays.
    pub fn name(&mut self, id: NodeId, name: &str) {
        if !matches!(self.node(id).op, Op::Const(_)) {
            self.names.entry(id).or_insert_with(|| name.to_owned());
        }
    }

    /// The nodes that `roots` need, operands first.
    #[must_use]
    pub fn slice(&self, roots: &[NodeId]) -> Vec<NodeId> {
        // Operands come before what is made of them, so no node past the last root is needed.
        let last = roots.iter().map(|id| id.index()).max().unwrap_or(0);
        let mut seen = vec![0u64; last / 64 + 1];
        let mut todo: Vec<NodeId> = roots.to_vec();
        let mut ids: Vec<NodeId> = Vec::with_capacity(todo.len());
        while let Some(id) = todo.pop() {
            let Some(word) = seen.get_mut(id.index() / 64) else { continue };
            let bit = 1u64 << (id.index() % 64);
            if *word & bit == 0 {
                *word |= bit;
                ids.push(id);
                todo.extend_from_slice(self.node(id).args());
            }
        }
        ids.sort_unstable();
        ids
    }
}
