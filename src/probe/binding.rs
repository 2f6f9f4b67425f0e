//! Arguments of a launch, each with where it came from; what can't be told is asked for.
//!
//! In: a [`Target`], a [`Spec`] and a value of the swept argument. Out: a [`Bound`] launch, or the list of what is
//! [`Wanted`]. It runs nothing. In this order: what was set; strides of rows that lie end to end; the grid that masks ask
//! for; buffers as far as masked accesses reach; floating-point numbers, which reach no address, as 1.

use std::collections::BTreeMap;

use super::extent::{self, Axis};
use super::protocol::{Argument, Placement};
use super::spec::Spec;
use super::target::{ParameterKind, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Bindings;

mod argument;
mod pointer;
mod scalar;

use argument::Launch;

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

#[cfg(test)]
mod tests;
