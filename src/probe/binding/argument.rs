//! One argument of a launch: its bytes, or the buffer behind it.
//!
//! In: a parameter, what was set for it, and how far the compiled code reaches from it. Out: an argument with where it came
//! from, or what is wanted for it.

use super::pointer::{self, PointerValue};
use super::{BoundArgument, Values, Wanted, scalar};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Bindings;
use crate::kernel::bind::Expr;
use crate::probe::extent::{self, Reach};
use crate::probe::protocol::{Argument, Backing, Buffer, Fill, Placement};
use crate::probe::spec::{MemoryMode, Spec};
use crate::probe::target::{Parameter, ParameterKind, Target};

/// Alignment of a buffer about which nothing is known: the widest access of one thread.
const ALIGN_BYTES: u64 = 16;

/// Largest alignment that is kept.
const MOST_ALIGN_BYTES: u64 = 256;

/// What every argument of a launch is worked out from.
pub(super) struct Launch<'a> {
    pub target: &'a Target,
    pub spec: &'a Spec,
    pub values: &'a Values,
    pub bindings: &'a Bindings,
    pub placement: Placement,
    /// Whether every integer and the grid are known, so that reaches can be worked out.
    pub complete: bool,
}

/// An argument, or what is wanted for it; `None` in its place where something before it is wanted already.
pub(super) type Found = std::result::Result<BoundArgument, Option<Wanted>>;

impl Launch<'_> {
    /// The argument of a parameter.
    pub fn argument(&self, index: usize, parameter: &Parameter, grid: [u32; 3]) -> Result<Found> {
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
                PointerValue::Freed(bytes, reused) => {
                    let shown = format!("{bytes} bytes that were freed");
                    return Ok(Ok(named(Argument::Freed { bytes, reused }, shown, "set".into())));
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
        least.min(MOST_ALIGN_BYTES).next_power_of_two()
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
                Ok(Ok((bytes, "as far as its masked accesses reach, in exact integers".to_owned())))
            }
            Reach::Bytes { bytes, masked: false } => {
                want(&format!("an access has no mask, so its reach ({bytes} bytes) says nothing of its size"))
            }
            Reach::Unknown(why) => want(&why),
        }
    }
}
