//! What the compiled kernel says about its launch: the grid that its masks ask for, how far each buffer is reached, how
//! rows are laid.
//!
//! In: a [`Kernel`] and the values of its arguments. Out: numbers, in exact integers, as the author's masks allow them and
//! not as 32 bits compute them. So a buffer of that size holds every access that was meant, and one that wrapped misses it.

use std::collections::BTreeSet;

use crate::kernel::bind::{Bindings, Expr};
use crate::kernel::launch::{applying, environment, grid_sizes};
use crate::kernel::model::{Access, Base};
use crate::kernel::solve::{Env, Fact, Fuel, Goal, Outcome};
use crate::kernel::sym::{NodeId, VarKind};
use crate::kernel::{Kernel, analyze};

/// Boxes that one search may look at.
const FUEL: Fuel = Fuel { per_search: 4_000, total: 40_000, nodes: 10_000_000 };

/// One axis of a grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Axis {
    /// That many blocks, with where the number is from.
    Blocks(u32, String),
    /// It has to be set.
    Open,
}

/// How far a kernel reaches from a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// No access starts from it.
    Untouched,
    /// So many bytes from it on.
    Bytes {
        /// Bytes.
        bytes: u64,
        /// Whether every access is guarded by a mask or a bounds check.
        masked: bool,
    },
    /// It can't be told.
    Unknown(String),
}

/// The grid by axis, under bindings.
#[must_use]
pub fn grid(kernel: &Kernel, bindings: &Bindings) -> [Axis; 3] {
    let given = grid_sizes(bindings);
    let axis = |axis: u8| {
        if let Some(size) = given.get(usize::from(axis)).copied().flatten() {
            return u32::try_from(size).map_or(Axis::Open, |size| Axis::Blocks(size, "--grid".to_owned()));
        }
        if let Some(found) = from_masks(kernel, bindings, axis) {
            return found;
        }
        let used = kernel.model.dag.vars().iter().any(|var| var.kind == VarKind::ProgramId(axis));
        if used { Axis::Open } else { Axis::Blocks(1, "the kernel doesn't use this axis".to_owned()) }
    };
    [axis(0), axis(1), axis(2)]
}

/// The largest program index with which the masks leave every program some work, plus one.
fn from_masks(kernel: &Kernel, bindings: &Bindings, axis: u8) -> Option<Axis> {
    let dag = &kernel.model.dag;
    let mut best: Option<(i128, &str)> = None;
    for assumption in applying(&kernel.grid, bindings) {
        if !assumption.axes.contains(&axis) {
            continue;
        }
        let roots = [assumption.fact];
        let program = dag
            .slice(&roots)
            .into_iter()
            .find(|&id| dag.as_var(id).is_some_and(|(_, var)| var.kind == VarKind::ProgramId(axis)))?;
        let env = environment(&kernel.model, bindings, &BTreeSet::new(), &[assumption.fact, program]);
        let goal = Goal { node: program, upward: true, limit: -1 };
        let Outcome::Passes { value, greatest: true, .. } =
            env.search(goal, &[(assumption.fact, true)], &mut FUEL.clone())
        else {
            continue;
        };
        // Masks may differ: the launch that leaves no program without work under any of them is the smallest.
        if best.is_none_or(|(known, _)| value < known) {
            best = Some((value, assumption.text.as_str()));
        }
    }
    let (last, text) = best?;
    let blocks = u32::try_from(last + 1).ok()?;
    Some(Axis::Blocks(blocks, text.to_owned()))
}

/// Writes a grid into bindings, so that later questions see numbers.
#[must_use]
pub fn with_grid(bindings: &Bindings, grid: [u32; 3]) -> Bindings {
    let mut bindings = bindings.clone();
    bindings.grid = grid.map(|size| Some(Expr::Number(i128::from(size))));
    bindings
}

/// How far the accesses that start from parameter `index` reach, all values and the grid being set.
#[must_use]
pub fn reach(kernel: &Kernel, bindings: &Bindings, index: usize) -> Reach {
    let mut bytes = 0_i128;
    let (mut touched, mut masked) = (false, true);
    for access in accesses(kernel, index) {
        touched = true;
        masked &= access.masked;
        match span(kernel, bindings, access) {
            Some((low, _)) if low < 0 => {
                return Reach::Unknown("an access lies before the pointer".to_owned());
            }
            Some((_, high)) => bytes = bytes.max(high),
            None => {
                let why = access.lost.clone().unwrap_or_else(|| "an address can't be followed".to_owned());
                return Reach::Unknown(why);
            }
        }
    }
    match (touched, u64::try_from(bytes)) {
        (false, _) => Reach::Untouched,
        (true, Ok(bytes)) => Reach::Bytes { bytes, masked },
        (true, Err(_)) => Reach::Unknown("it reaches past 64 bits".to_owned()),
    }
}

fn accesses(kernel: &Kernel, index: usize) -> impl Iterator<Item = &Access> {
    kernel.model.accesses.iter().filter(move |access| access.base == Base::Param(index))
}

/// Whether some access that starts from parameter `index` reads a number that another address is made of.
#[must_use]
pub fn feeds_addresses(kernel: &Kernel, index: usize) -> bool {
    let dag = &kernel.model.dag;
    let offsets: Vec<NodeId> = kernel.model.accesses.iter().map(|access| access.offset).collect();
    let loads: Vec<_> = dag
        .slice(&offsets)
        .into_iter()
        .filter_map(|id| match dag.as_var(id).map(|(_, var)| &var.kind) {
            Some(VarKind::Loaded(origin, _)) => Some(*origin),
            _ => None,
        })
        .collect();
    accesses(kernel, index).any(|access| loads.contains(&access.origin))
}

/// The largest element that is read or written from parameter `index`, in bytes.
#[must_use]
pub fn access_bytes(kernel: &Kernel, index: usize) -> Option<u32> {
    accesses(kernel, index).map(|access| access.element_bytes).max()
}

/// First byte and the one past the last that an access touches.
fn span(kernel: &Kernel, bindings: &Bindings, access: &Access) -> Option<(i128, i128)> {
    if access.lost.is_some() {
        return None;
    }
    let mut facts: Vec<Fact> = kernel.common_facts(bindings);
    facts.extend(&access.facts);
    let mut roots: Vec<NodeId> = facts.iter().map(|fact| fact.0).collect();
    roots.push(access.meant);
    let env = environment(&kernel.model, bindings, &BTreeSet::new(), &roots);
    if env.vars_of(&[access.meant]).iter().any(|&var| env.is_unknown(var)) {
        return None;
    }
    let low = extreme(&env, &facts, Goal { node: access.meant, upward: false, limit: 0 })?;
    let high = extreme(&env, &facts, Goal { node: access.meant, upward: true, limit: 0 })?;
    Some((low, high + i128::from(access.bytes)))
}

/// The greatest (or least) value of a node, no less (no more) than the goal's limit.
fn extreme(env: &Env<'_>, facts: &[Fact], goal: Goal) -> Option<i128> {
    match env.search(goal, facts, &mut FUEL.clone()) {
        Outcome::Holds(_) => Some(goal.limit),
        Outcome::Passes { value, greatest: true, .. } => Some(value),
        Outcome::Passes { .. } | Outcome::Open { .. } => None,
    }
}

/// A row's length where rows lie end to end: what an unset stride is, with the pointer that it belongs to. `None` where
/// the stride multiplies nothing, or more than one stride of an access is unset.
#[must_use]
pub fn stride(kernel: &Kernel, bindings: &Bindings, name: &str) -> Option<(i128, String)> {
    let model = &kernel.model;
    let index = model.param(name)?;
    let lattice = i128::from(analyze::lattice_of(model, bindings, index).max(1));
    let is = |id: NodeId, wanted: usize| {
        model.dag.as_var(id).is_some_and(|(_, var)| var.kind == VarKind::Arg(wanted))
    };
    for access in &model.accesses {
        let Base::Param(base) = access.base else { continue };
        let mut roots = vec![access.meant];
        roots.extend(access.facts.iter().map(|fact| fact.0));
        let env = environment(model, bindings, &BTreeSet::new(), &roots);
        let poly = env.poly(access.meant);
        // A stride stands in products only, and a row's number beside it.
        let products = poly.terms().iter().filter(|(product, _)| product.iter().any(|&id| is(id, index)));
        let scales: Vec<i128> = products.clone().map(|(_, scale)| *scale).collect();
        let alone = products.into_iter().any(|(product, _)| product.len() < 2);
        let in_mask = model.dag.slice(&roots[1..]).into_iter().any(|id| is(id, index));
        let (Some(&scale), false, false) = (scales.first(), alone, in_mask) else { continue };
        let mut zeroed = bindings.clone();
        zeroed.values.insert(name.to_owned(), 0);
        if let Some((0, row)) = span(kernel, &zeroed, access) {
            let unit = i128::from(access.element_bytes.max(1)).min(scale.abs().max(1));
            let elements = (row + unit - 1) / unit;
            let laid = (elements + lattice - 1) / lattice * lattice;
            let pointer = model.params.get(base).map_or_else(String::new, |param| param.name.clone());
            return (laid > 0).then_some((laid, pointer));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cache::{File, from_ptx, load_entry};

    const WRAP: &str = "HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA";
    const NO_MASK: &str = "PY3URV6FO6GO6GS5CWTVRZT52VGUOU7IIJPAZ6CKXVBZ346SVP7Q";

    fn cached(key: &str, name: &str) -> Kernel {
        let file = format!("{name}.ttir");
        let text = std::fs::read(format!("samples/triton-cache/{key}/{file}")).unwrap();
        load_entry(key, &[File { name: &file, bytes: &text }]).kernels.remove(0)
    }

    fn bindings(text: &str) -> Bindings {
        let mut bindings = Bindings::default();
        for part in text.split_whitespace() {
            bindings.set(part).unwrap();
        }
        bindings
    }

    #[test]
    fn the_masks_give_the_grid_and_the_buffers() {
        let kernel = cached(WRAP, "fused_lora_xw_kernel");
        let set = bindings("M=234624 N=9216 K=32 stride_xm=32 stride_ym=9216");
        let axes = grid(&kernel, &set);
        let sizes: Vec<Option<u32>> = axes
            .iter()
            .map(|axis| if let Axis::Blocks(size, _) = axis { Some(*size) } else { None })
            .collect();
        assert_eq!(sizes, [Some(1833), Some(72), Some(1)]);
        let set = with_grid(&set, [1833, 72, 1]);
        let bytes = |index| reach(&kernel, &set, index);
        assert_eq!(bytes(0), Reach::Bytes { bytes: 234_624 * 32 * 2, masked: true });
        assert_eq!(bytes(1), Reach::Bytes { bytes: 32 * 9_216 * 2, masked: true });
        assert_eq!(bytes(2), Reach::Bytes { bytes: 234_624 * 9_216 * 2, masked: true });
        assert_eq!(bytes(3), Reach::Untouched);
    }

    #[test]
    fn rows_that_lie_end_to_end_give_the_strides() {
        let kernel = cached(WRAP, "fused_lora_xw_kernel");
        let set = bindings("M=234624 N=9216 K=32");
        assert_eq!(stride(&kernel, &set, "stride_ym"), Some((9_216, "y_ptr".to_owned())));
        assert_eq!(stride(&kernel, &set, "stride_xm"), Some((32, "x_ptr".to_owned())));
        assert_eq!(stride(&kernel, &set, "K"), None);
        assert_eq!(stride(&kernel, &set, "M"), None);
    }

    #[test]
    fn an_access_without_a_mask_is_told_apart() {
        let kernel = cached(NO_MASK, "no_mask_kernel");
        let set = with_grid(&bindings("n=1000"), [1, 1, 1]);
        assert_eq!(reach(&kernel, &set, 0), Reach::Bytes { bytes: 4_096, masked: false });
        assert_eq!(grid(&kernel, &bindings("n=1000"))[0], Axis::Open);
    }

    #[test]
    fn a_row_index_that_wraps_is_followed_in_exact_integers() {
        let text = std::fs::read_to_string("samples/ptx/crash.ptx").unwrap();
        let kernels = from_ptx(&text);
        let fill = kernels.iter().find(|kernel| kernel.model.entry.contains("fill_rows")).unwrap();
        let mut set = bindings("param_1=70000 param_2=32768 param_3=32768");
        set.set_block("256").unwrap();
        let set = with_grid(&set, [70_000, 1, 1]);
        let Reach::Bytes { bytes, .. } = reach(fill, &set, 0) else { panic!("{:?}", reach(fill, &set, 0)) };
        assert_eq!(bytes, 70_000 * 32_768 * 4);
    }

    #[test]
    fn an_index_that_is_read_from_memory_is_known_as_such() {
        let text = std::fs::read_to_string("samples/ptx/crash.ptx").unwrap();
        let kernels = from_ptx(&text);
        let gather = kernels.iter().find(|kernel| kernel.model.entry.contains("gather")).unwrap();
        let feeds: Vec<bool> = (0..4).map(|index| feeds_addresses(gather, index)).collect();
        assert_eq!(feeds, [false, true, false, false]);
        let mut set = bindings("param_3=1024");
        set.set_block("256").unwrap();
        assert!(matches!(reach(gather, &with_grid(&set, [4, 1, 1]), 0), Reach::Unknown(_)));
    }
}
