//! A kernel as its memory accesses: what both front ends hand to the analysis.
//!
//! In: what a front end understood. Out: parameters, accesses with symbolic byte offsets and the facts that hold there.
//! Values of arguments come later.

use super::location::{Complaint, Location};
use super::solve::Fact;
use super::sym::{Dag, NodeId, Origin};

/// Which compiler output was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Triton's TTIR.
    Ttir,
    /// PTX.
    Ptx,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// The author's name, else `arg3` (TTIR) or the PTX name.
    pub name: String,
    /// Its type as text: `i32`, `ptr<16>` (a pointer to 16-bit elements), `b64`.
    pub ty: String,
    /// Width in bits where it is an integer.
    pub int_width: Option<u8>,
    /// Bytes that a pointer's element takes, where the parameter is a pointer and this is known.
    pub pointee_bytes: Option<u32>,
    /// What its value is promised to be a multiple of.
    pub divisibility: u64,
    /// Whether the front end saw it used.
    pub used: bool,
}

/// Read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes at once.
    Atomic,
}

/// What an address starts from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Base {
    /// The parameter of this index.
    Param(usize),
    /// A pointer that was read from memory or made of an integer.
    Computed,
}

/// One memory access, for one lane (TTIR) or thread (PTX) of its program.
#[derive(Debug, Clone)]
pub struct Access {
    /// Read or write.
    pub kind: AccessKind,
    /// What the address starts from.
    pub base: Base,
    /// Byte offset from there, 64 bits.
    pub offset: NodeId,
    /// The same offset in whole numbers, nothing wrapped.
    pub meant: NodeId,
    /// Further values that must be true ones, such as the coordinates of a tensor descriptor.
    pub also: Vec<NodeId>,
    /// What holds wherever the access happens.
    pub facts: Vec<Fact>,
    /// Bytes from the address on that one access touches: a vector's whole width.
    pub bytes: u32,
    /// Bytes of one element.
    pub element_bytes: u32,
    /// Whether a mask or a bounds check guards it.
    pub masked: bool,
    /// Whether a masked load says what masked lanes read.
    pub has_other: bool,
    /// The operation.
    pub origin: Origin,
    /// Why its address can't be followed at all.
    pub lost: Option<String>,
}

/// A kernel ready for analysis.
#[derive(Debug)]
pub struct Model {
    /// The entry's name.
    pub entry: String,
    /// What it was read from.
    pub source: Source,
    /// `sm_90`, where the text says.
    pub target: Option<String>,
    /// The parameters.
    pub params: Vec<Param>,
    /// All values.
    pub dag: Dag,
    /// The accesses, in program order.
    pub accesses: Vec<Access>,
    /// Where each operation came from.
    pub origins: Vec<Option<Location>>,
    /// Threads of a block that the text fixes, by axis; 0 where it doesn't.
    pub block: [u32; 3],
    /// Whether the text only gives the most threads of a block.
    pub block_is_maximum: bool,
    /// Parts that no analysis may pass over in silence: calls, unknown instructions that may touch memory.
    pub lost: Vec<(String, Option<Location>)>,
    /// Remarks that don't change the answer.
    pub notes: Vec<String>,
    /// What the reader could not make sense of.
    pub complaints: Vec<Complaint>,
    /// Whether an unsigned operation may lean on arithmetic modulo 2ⁿ (compiler output) or not (what an author wrote).
    pub modular_unsigned: bool,
}

impl Model {
    /// Where an operation came from.
    #[must_use]
    pub fn location(&self, origin: Origin) -> Option<&Location> {
        self.origins.get(origin.0 as usize).and_then(Option::as_ref)
    }

    /// The name of a base for people.
    #[must_use]
    pub fn base_name(&self, base: &Base) -> String {
        match base {
            Base::Param(index) => {
                self.params.get(*index).map_or_else(|| format!("arg{index}"), |p| p.name.clone())
            }
            Base::Computed => "a computed pointer".into(),
        }
    }

    /// A parameter's index by name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|param| param.name == name)
    }
}
