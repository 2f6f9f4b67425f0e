//! PTX: text to instructions, instructions to accesses.
//!
//! In: the text of a PTX module, of Triton, nvcc or NVRTC. Out: entries with parameters, instructions and `.loc` places;
//! then the global memory accesses with symbolic offsets. An instruction that isn't known is kept, and the kernel's
//! answer is then unknown.

mod flow;
mod known;
mod lower;
mod memory;
mod parse;
mod phi;
mod scan;

pub use lower::lower;
pub use parse::parse;

use std::collections::{HashMap, HashSet};

use super::location::{Complaint, Location};

/// A parsed module.
#[derive(Debug, Default)]
pub struct Module {
    /// `sm_90a`.
    pub target: Option<String>,
    /// `8.7`.
    pub version: Option<String>,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// Source files by number.
    pub files: HashMap<u32, String>,
    /// Variables that stand in global memory.
    pub globals: HashSet<String>,
    /// Variables in shared, local, constant or parameter memory, of the module and of bodies.
    pub elsewhere: HashSet<String>,
    /// What was not understood.
    pub complaints: Vec<Complaint>,
}

/// One `.entry`.
#[derive(Debug, Default)]
pub struct Entry {
    /// Its name, mangled as it stands.
    pub name: String,
    /// Its parameters.
    pub params: Vec<EntryParam>,
    /// Threads that `.reqntid` fixes or `.maxntid` limits.
    pub block: [u32; 3],
    /// Whether [`Entry::block`] is only a limit.
    pub block_is_maximum: bool,
    /// Its instructions, in order.
    pub instructions: Vec<Instruction>,
    /// Where each label stands: the index of the instruction after it.
    pub labels: HashMap<String, usize>,
    /// The names of its registers; an operand holds the index.
    pub registers: Vec<String>,
    /// The places that instructions refer to.
    pub places: Vec<Place>,
    /// Whether its end was seen.
    pub complete: bool,
}

/// A parameter of an entry.
#[derive(Debug, Clone, Default)]
pub struct EntryParam {
    /// Its name in the PTX.
    pub name: String,
    /// `u64`, `b32`; `b8` for a structure.
    pub ty: String,
    /// Bytes of a structure, 0 for a plain parameter.
    pub array_bytes: u32,
    /// Whether `.ptr` says that it is a pointer.
    pub is_pointer: bool,
}

/// A `.loc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// File number, line, column.
    pub at: (u32, u32, u32),
    /// For inlined code: where the call stands.
    pub caller: Option<(u32, u32, u32)>,
}

/// One instruction.
#[derive(Debug, Clone, Default)]
pub struct Instruction {
    /// The operation with its modifiers: `mad.wide.s32`.
    pub opcode: String,
    /// The predicate register that guards it, and whether it is negated.
    pub guard: Option<(u32, bool)>,
    /// The operands.
    pub operands: Vec<Operand>,
    /// Index of its place.
    pub place: u32,
    /// The line of the PTX.
    pub line: u32,
}

/// An operand.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A register.
    Register(u32),
    /// `%tid.x` and the like.
    Special(String),
    /// An integer.
    Integer(i128),
    /// A floating-point constant.
    Float,
    /// `[base + offset]`.
    Address(Box<Operand>, i128),
    /// `{a, b}`.
    Vector(Vec<Operand>),
    /// A label, a variable or a function.
    Symbol(String),
}

impl Module {
    /// The source place of an instruction.
    #[must_use]
    pub fn location(&self, entry: &Entry, instruction: &Instruction) -> Option<Location> {
        let place = entry.places.get(instruction.place as usize)?;
        let make = |(file, line, column): (u32, u32, u32)| {
            self.files.get(&file).map(|path| Location { file: path.clone(), line, column })
        };
        // Of inlined code that stands in another file than the kernel, the call is what the author knows.
        let home = entry.places.iter().find(|p| p.at.1 > 0).map(|p| p.at.0);
        match place.caller {
            Some(caller) if home != Some(place.at.0) => make(caller).or_else(|| make(place.at)),
            _ => make(place.at),
        }
        .filter(|location| location.line > 0)
    }
}
