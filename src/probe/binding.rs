//! Arguments of a launch, each with where it came from; what can't be told is asked for.
//!
//! In: a [`Target`], a [`Spec`] and a value of the swept argument. Out: a [`Bound`] launch, or the list of what is
//! [`Wanted`]. It runs nothing. In this order: what was set; strides of rows that lie end to end; the grid that masks ask
//! for; buffers as far as masked accesses reach; floating-point numbers, which reach no address, as 1.

use std::collections::BTreeMap;

use super::extent::{self, Axis, Reach};
use super::protocol::{Argument, Backing, Buffer, Fill, Placement};
use super::spec::{MemoryMode, Spec};
use super::target::{Parameter, ParameterKind, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Bindings;
use crate::kernel::bind::Expr;

mod pointer;
mod scalar;

use pointer::PointerValue;

/// Alignment of a buffer about which nothing is known: the widest access of one thread.
const ALIGN_BYTES: u64 = 16;

/// Largest alignment that is kept.
const MOST_ALIGN_BYTES: u64 = 256;

/// An argument with its provenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundArgument {
    /// The parameter's name.
    pub name: String,
    /// What the child is told.
    pub argument: Argument,
    /// For people: `233024`, `4324589568 bytes`.
    pub shown: String,
    /// Where it came from.
    pub from: String,
}

/// A launch that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Arguments in the kernel's order.
    pub arguments: Vec<BoundArgument>,
    /// Blocks by axis.
    pub grid: [u32; 3],
    /// Where the grid came from, by axis.
    pub grid_from: [String; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// Something that has to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The option, as it is written.
    pub option: String,
    /// Why.
    pub why: String,
}

/// What binding came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// A launch.
    Ready(Box<Bound>),
    /// Something is missing.
    Wanted(Vec<Wanted>),
}

impl Binding {
    /// The launch.
    ///
    /// # Errors
    /// `Usage` with everything that is missing, and how to set it.
    pub fn ready(self) -> Result<Bound> {
        match self {
            Self::Ready(bound) => Ok(*bound),
            Self::Wanted(wanted) => {
                let list: Vec<String> =
                    wanted.iter().map(|want| format!("{}: {}", want.option, want.why)).collect();
                let message = format!("{} of the launch can't be told", plural(wanted.len(), "part"));
                Err(Error::new(ErrorKind::Usage, message).hint(format!("set {}", list.join("; "))))
            }
        }
    }
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// The values of integers by name, with their provenance, and what the static model is asked with.
#[derive(Debug, Clone, Default)]
pub struct Values {
    /// For the static model: values, grid, block, lattices.
    pub bindings: Bindings,
    /// Where each value came from.
    pub from: BTreeMap<String, String>,
}

/// Integer values: what was set, the swept one, strides.
///
/// # Errors
/// `Usage` for a grid, block or lattice that can't be read, or a name that nothing has.
pub fn values(target: &Target, spec: &Spec, swept: Option<(&str, i64)>) -> Result<Values> {
    let mut out = Values::default();
    if let Some(grid) = &spec.grid {
        out.bindings.set_grid(grid)?;
    }
    match (&spec.block, target.block) {
        (Some(block), None) => out.bindings.set_block(block)?,
        (_, Some(block)) => out.bindings.block = block.map(Some),
        (None, None) => {}
    }
    for (name, multiple) in &spec.lattice {
        out.bindings.lattice.insert(canonical(target, name), (*multiple).max(1));
    }
    scalar::integers(target, spec, swept, &mut out)?;
    strides(target, &mut out);
    // A value may be written in terms of a stride.
    scalar::integers(target, spec, swept, &mut out)?;
    Ok(out)
}

/// A parameter's own name for a name that may be `arg3`.
fn canonical(target: &Target, name: &str) -> String {
    target
        .parameter(name)
        .and_then(|index| target.parameters.get(index))
        .map_or_else(|| name.to_owned(), |parameter| parameter.name.clone())
}

/// Unset strides, where the compiled code shows rows that lie end to end.
fn strides(target: &Target, out: &mut Values) {
    let Some(kernel) = target.kernel.as_deref() else { return };
    for parameter in target.parameters.iter().filter(|parameter| parameter.kind == ParameterKind::Integer) {
        if out.bindings.values.contains_key(&parameter.name) {
            continue;
        }
        if let Some((value, pointer)) = extent::stride(kernel, &out.bindings, &parameter.name) {
            out.bindings.values.insert(parameter.name.clone(), value);
            out.from.insert(parameter.name.clone(), format!("rows of {pointer} lie end to end"));
        }
    }
}

/// Binds every argument of a launch.
///
/// # Errors
/// `Usage` for what is set and can't be meant.
pub fn bind(
    target: &Target,
    spec: &Spec,
    swept: Option<(&str, i64)>,
    placement: Placement,
) -> Result<Binding> {
    let values = values(target, spec, swept)?;
    let mut wanted = Vec::new();
    let mut bound = Bound {
        arguments: Vec::new(),
        grid: [1; 3],
        grid_from: [const { String::new() }; 3],
        block: block(target, spec, &values, &mut wanted),
        shared_bytes: if target.shared_bytes > 0 {
            target.shared_bytes
        } else {
            spec.shared_bytes.unwrap_or(0)
        },
        notes: Vec::new(),
    };
    scalar::missing(target, &values, &mut wanted);
    grid(target, &values, &mut bound, &mut wanted);
    let ready = extent::with_grid(&values.bindings, bound.grid);
    let launch =
        Launch { target, spec, values: &values, bindings: &ready, placement, complete: wanted.is_empty() };
    for (index, parameter) in target.parameters.iter().enumerate() {
        match launch.argument(index, parameter, bound.grid)? {
            Ok(argument) => bound.arguments.push(argument),
            Err(Some(want)) => wanted.push(want),
            // Its number is among what is wanted already.
            Err(None) => {}
        }
    }
    Ok(if wanted.is_empty() { Binding::Ready(Box::new(bound)) } else { Binding::Wanted(wanted) })
}

fn block(target: &Target, spec: &Spec, values: &Values, wanted: &mut Vec<Wanted>) -> [u32; 3] {
    if let Some(block) = target.block {
        return block;
    }
    if spec.block.is_none() {
        wanted.push(Wanted { option: "--block THREADS".into(), why: "the code fixes no block size".into() });
    }
    values.bindings.block.map(|threads| threads.unwrap_or(1))
}

fn grid(target: &Target, values: &Values, bound: &mut Bound, wanted: &mut Vec<Wanted>) {
    let axes = match target.kernel.as_deref() {
        Some(kernel) => extent::grid(kernel, &values.bindings),
        None => {
            let sizes = crate::kernel::launch::grid_sizes(&values.bindings);
            sizes.map(|size| match size.and_then(|size| u32::try_from(size).ok()) {
                Some(size) => Axis::Blocks(size, "--grid".to_owned()),
                None => Axis::Open,
            })
        }
    };
    let mut open = Vec::new();
    for ((axis, letter), (size, from)) in
        axes.into_iter().zip(["x", "y", "z"]).zip(bound.grid.iter_mut().zip(bound.grid_from.iter_mut()))
    {
        match axis {
            Axis::Blocks(blocks, said) => (*size, *from) = (blocks, said),
            Axis::Open => open.push(letter),
        }
    }
    if !open.is_empty() {
        let why = format!("the number of blocks along {} can't be told from a mask", open.join(", "));
        wanted.push(Wanted { option: "--grid EXPRESSIONS (as in cdiv(M,128),72)".into(), why });
    }
}

struct Launch<'a> {
    target: &'a Target,
    spec: &'a Spec,
    values: &'a Values,
    bindings: &'a Bindings,
    placement: Placement,
    /// Whether every integer and the grid are known, so that reaches can be worked out.
    complete: bool,
}

/// An argument, or what is wanted for it; `None` in its place where something before it is wanted already.
type Found = std::result::Result<BoundArgument, Option<Wanted>>;

impl Launch<'_> {
    fn argument(&self, index: usize, parameter: &Parameter, grid: [u32; 3]) -> Result<Found> {
        if parameter.hidden {
            return Ok(Ok(self.hidden(index, parameter, grid)));
        }
        match parameter.kind {
            ParameterKind::Pointer(element) => self.pointer(index, parameter, element),
            ParameterKind::Integer => match self.values.bindings.values.get(&parameter.name) {
                None => Ok(Err(None)),
                Some(&value) => {
                    let argument = scalar::integer(parameter, value, self.target)?;
                    let from = self.values.from.get(&parameter.name).cloned().unwrap_or_default();
                    Ok(Ok(BoundArgument {
                        name: parameter.name.clone(),
                        argument,
                        shown: value.to_string(),
                        from,
                    }))
                }
            },
            ParameterKind::Float => scalar::float(parameter, self.set(&parameter.name, index)).map(Ok),
            ParameterKind::Opaque => scalar::opaque(parameter, self.set(&parameter.name, index)),
        }
    }

    /// What was set for a parameter, by its name or its number.
    fn set(&self, name: &str, index: usize) -> Option<&str> {
        let set = &self.spec.set;
        set.get(name).or_else(|| set.get(&format!("arg{index}"))).map(String::as_str)
    }

    /// A parameter that the compiler added: scratch memory where the entry asks for some, else null.
    fn hidden(&self, index: usize, parameter: &Parameter, grid: [u32; 3]) -> BoundArgument {
        let first = self.target.parameters.iter().position(|parameter| parameter.hidden) == Some(index);
        let programs: u64 = grid.iter().map(|size| u64::from(*size)).product();
        let bytes = self.target.scratch_bytes.saturating_mul(programs);
        let (argument, shown) = if first && bytes > 0 {
            let buffer = Buffer {
                name: parameter.name.clone(),
                bytes,
                align: ALIGN_BYTES,
                backing: Backing::Whole,
                placement: Placement::End,
                fill: Fill::Zero,
            };
            (Argument::Buffer(buffer), format!("{bytes} bytes"))
        } else {
            (Argument::Address { address: 0 }, "null".to_owned())
        };
        let from = "hidden scratch memory that the compiler added".to_owned();
        BoundArgument { name: parameter.name.clone(), argument, shown, from }
    }

    fn pointer(&self, index: usize, parameter: &Parameter, element: Option<u32>) -> Result<Found> {
        let kernel = self.target.kernel.as_deref();
        let scalar = kernel.and_then(|kernel| extent::access_bytes(kernel, index));
        let accessed = scalar.map(|bytes| bytes.saturating_mul(self.target.vector));
        let element_bytes = element.or(scalar).unwrap_or(1);
        let named = |argument, shown, from: String| BoundArgument {
            name: parameter.name.clone(),
            argument,
            shown,
            from,
        };
        let (bytes, fill, from) = match self.set(&parameter.name, index) {
            Some(text) => match pointer::parse(text, element_bytes)? {
                PointerValue::Address(address) => {
                    let shown = if address == 0 { "null".to_owned() } else { format!("{address:#x}") };
                    return Ok(Ok(named(Argument::Address { address }, shown, "set".into())));
                }
                PointerValue::Host(bytes) => {
                    return Ok(Ok(named(
                        Argument::Host { bytes },
                        "memory of the host".into(),
                        "set".into(),
                    )));
                }
                PointerValue::Freed(bytes) => {
                    let shown = format!("{bytes} bytes that were freed");
                    return Ok(Ok(named(Argument::Freed { bytes }, shown, "set".into())));
                }
                PointerValue::Elements(count, fill) => {
                    let Some(elements) = self.elements(&count)? else { return Ok(Err(None)) };
                    let bytes = elements.checked_mul(u64::from(element_bytes));
                    let bytes = bytes.ok_or_else(|| scalar::wrong(&parameter.name, text, "is too large"))?;
                    (bytes, fill, format!("set: {count} elements of {element_bytes} bytes"))
                }
                PointerValue::Contents(fill) => match self.reached(index, parameter)? {
                    Ok((bytes, from)) => (bytes, Some(fill), from),
                    Err(wanted) => return Ok(Err(wanted)),
                },
            },
            None => match self.reached(index, parameter)? {
                Ok((bytes, from)) => (bytes, None, from),
                Err(wanted) => return Ok(Err(wanted)),
            },
        };
        if fill.is_none() && kernel.is_some_and(|kernel| extent::feeds_addresses(kernel, index)) {
            let option =
                format!("--set {}=COUNT:iota (or :zero, :random(LOW,HIGH), :file(PATH))", parameter.name);
            let why = "the kernel makes addresses of what it reads there".to_owned();
            return Ok(Err(Some(Wanted { option, why })));
        }
        let fill = fill.unwrap_or(Fill::Zero);
        let backing = match self.spec.memory {
            MemoryMode::Plain => Backing::Plain,
            MemoryMode::Guarded if fill == Fill::Zero => Backing::Aliased,
            MemoryMode::Guarded | MemoryMode::Real => Backing::Whole,
        };
        let buffer = Buffer {
            name: parameter.name.clone(),
            bytes,
            align: self.align(parameter, element, accessed),
            backing,
            placement: self.placement,
            fill,
        };
        Ok(Ok(named(Argument::Buffer(buffer), format!("{bytes} bytes"), from)))
    }

    /// What a buffer's address is a multiple of: as the compiled code relies on it, and no more, so that an access one
    /// element past the end faults.
    fn align(&self, parameter: &Parameter, element: Option<u32>, accessed: Option<u32>) -> u64 {
        let known = u64::from(element.unwrap_or(0).max(accessed.unwrap_or(0))).max(parameter.divisibility);
        // Where the code was read, its widest access is known; a call may hide one, and no code hides them all.
        let seen = self.target.kernel.as_deref().is_some_and(|kernel| kernel.model.lost.is_empty());
        let least = if seen && known > 0 { known } else { known.max(ALIGN_BYTES) };
        least.next_power_of_two().min(MOST_ALIGN_BYTES)
    }

    fn elements(&self, count: &str) -> Result<Option<u64>> {
        let expr = Expr::parse(count)?;
        match expr.value(&|name| self.bindings.values.get(name).copied()) {
            Some(value) => u64::try_from(value).map(Some).map_err(|_| {
                Error::new(ErrorKind::Usage, format!("`{count}` is {value}, no number of elements"))
            }),
            None => Ok(None),
        }
    }

    /// Bytes that the masked accesses from a pointer reach.
    fn reached(
        &self,
        index: usize,
        parameter: &Parameter,
    ) -> Result<std::result::Result<(u64, String), Option<Wanted>>> {
        let want = |why: &str| {
            let option = format!("--set {}=ELEMENTS (as in M*N)", parameter.name);
            Ok(Err(Some(Wanted { option, why: why.to_owned() })))
        };
        let Some(kernel) = self.target.kernel.as_deref() else {
            return want("without PTX or TTIR its size can't be told");
        };
        if !self.complete {
            return Ok(Err(None));
        }
        match extent::reach(kernel, self.bindings, index) {
            Reach::Untouched => Ok(Ok((ALIGN_BYTES, "no access starts from it".to_owned()))),
            Reach::Bytes { bytes, masked: true } => {
                // PTX counts a vector as its first element.
                let element = u64::from(extent::access_bytes(kernel, index).unwrap_or(0));
                let bytes = bytes.saturating_add(element * u64::from(self.target.vector.saturating_sub(1)));
                Ok(Ok((bytes, "as far as its masked accesses reach, in exact integers".to_owned())))
            }
            Reach::Bytes { bytes, masked: false } => {
                want(&format!("an access has no mask, so its reach ({bytes} bytes) says nothing of its size"))
            }
            Reach::Unknown(why) => want(&why),
        }
    }
}

#[cfg(test)]
mod tests;
