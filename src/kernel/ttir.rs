//! Triton's TTIR: text to operations, operations to accesses.
//!
//! In: the text of a `.ttir` file of Triton 3.0 or later. Out: functions with their parameters, blocks and operations in
//! SSA form with the author's names and source locations; then the memory accesses with symbolic offsets. Operations that
//! it doesn't know are kept, and what depends on them is unknown.

mod loops;
mod lower;
mod ops;
mod parse;
mod place;
mod pointer;
mod token;
mod types;

pub use lower::lower;
pub use parse::parse;
pub use types::{Element, Type};

use super::location::Complaint;
pub use place::Places;

/// A parsed module.
#[derive(Debug, Default)]
pub struct Module {
    /// The functions, in order.
    pub functions: Vec<Function>,
    /// The source locations that operations refer to.
    pub places: Places,
    /// What was not understood.
    pub complaints: Vec<Complaint>,
}

/// One `tt.func`.
#[derive(Debug, Default)]
pub struct Function {
    /// Its name, without the `@`.
    pub name: String,
    /// Its parameters.
    pub params: Vec<Parameter>,
    /// Whether it is an entry (`public`).
    pub public: bool,
    /// The blocks of the whole function; region bodies refer to them by index.
    pub blocks: Vec<Block>,
    /// The operations of the whole function.
    pub operations: Vec<Operation>,
    /// Every value's definition and type.
    pub values: Vec<Value>,
    /// The blocks of the function's own body.
    pub body: Vec<usize>,
    /// Whether its end was seen.
    pub complete: bool,
}

/// One parameter of a function.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// The author's name, or `arg3` where the compiler kept none.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// What the caller promised the value to be a multiple of; 1 without a promise.
    pub divisibility: u64,
    /// Its value.
    pub value: usize,
}

/// A straight run of operations.
#[derive(Debug, Default)]
pub struct Block {
    /// Its label, where it has one.
    pub label: String,
    /// Its arguments, as values.
    pub args: Vec<usize>,
    /// Its operations, as indices.
    pub operations: Vec<usize>,
}

/// One operation.
#[derive(Debug, Default)]
pub struct Operation {
    /// Dialect and name, such as `arith.muli`.
    pub name: String,
    /// The values that it defines.
    pub results: Vec<usize>,
    /// Everything between the name and the types, regions taken out.
    pub words: Vec<token::Token>,
    /// The values that it names, in order of their appearance.
    pub operands: Vec<usize>,
    /// For a loop: how many of `operands` are the initial values of what is carried.
    pub carried: usize,
    /// Its regions, each a list of blocks.
    pub regions: Vec<Vec<usize>>,
    /// Where it came from, as an index into the places.
    pub place: u32,
    /// The line in the TTIR.
    pub line: u32,
    /// Blocks that it may jump to, with the values passed.
    pub successors: Vec<(String, Vec<usize>)>,
    /// The block that it stands in.
    pub block: usize,
}

/// One SSA value.
#[derive(Debug, Clone)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// What defines it.
    pub def: Def,
    /// Its name in the text, without `%`.
    pub name: String,
}

/// What defines a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Def {
    /// A parameter of the function.
    Param(usize),
    /// A result of an operation: operation, which result.
    Result(usize, usize),
    /// An argument of a block: block, which argument.
    BlockArg(usize, usize),
    /// Nothing that was seen.
    Missing,
}
