//! Accesses without a mask that pass the end of what they read or write.
//!
//! In: a kernel and bindings. Out: findings. It looks at tiles: an offset in which a program id steps by as much as the
//! lanes span, so that the last program covers elements past a size that is no multiple of the tile.

use std::collections::BTreeSet;

use super::analyze::Kernel;
use super::bind::Bindings;
use super::explain::reaches;
use super::finding::{Certainty, Finding, FindingKind};
use super::launch::{environment, value_of};
use super::model::Access;
use super::sym::{NodeId, VarKind};

/// Words that authors use for a number of elements.
const SIZE_NAMES: [&str; 9] =
    ["n", "numel", "n_elements", "num_elements", "size", "length", "len", "total", "n_elem"];

/// A tile: which axis steps by how many elements.
struct Tile {
    axis: u8,
    step: i128,
}

/// Findings, each with what was assumed about the grid.
pub(super) fn find(kernel: &Kernel, bindings: &Bindings) -> Vec<(Finding, Option<String>)> {
    let model = &kernel.model;
    let mut out = Vec::new();
    for (index, access) in model.accesses.iter().enumerate() {
        if access.masked || access.lost.is_some() || !access.also.is_empty() {
            continue;
        }
        let Some(tile) = tile(kernel, bindings, access) else { continue };
        let Some(size) = size_argument(kernel) else { continue };
        let name = model.params.get(size).map_or_else(String::new, |p| p.name.clone());
        let target = reaches(model, access);
        let step = tile.step;
        let letter = ["x", "y", "z"].get(usize::from(tile.axis)).copied().unwrap_or("?");
        let (certainty, last, detail) = match value_of(model, bindings, size) {
            Some(n) if n > 0 && n % step == 0 => continue,
            Some(n) => {
                let last = (n + step - 1).div_euclid(step) * step - 1;
                let detail = format!(
                    "no mask: the last program's {step} elements reach {last}, {name} is {n}; elements {n} to {last} are outside"
                );
                (Certainty::Supported, Some((last, n - 1)), detail)
            }
            None => {
                let detail =
                    format!("no mask: the last program passes the end unless {name} is a multiple of {step}");
                (Certainty::Suspected, None, detail)
            }
        };
        let location = model.location(access.origin).cloned();
        let assumed = last
            .map(|_| format!("grid {letter} = cdiv({name}, {step}): one program for each {step} of {name}"));
        let expression = format!("program_id({letter}) * {step} + arange(0, {step})");
        out.push((
            Finding {
                kind: FindingKind::UnmaskedAccess,
                certainty,
                expression,
                reaches: target,
                access_location: location.clone(),
                location,
                max_value: last.map(|l| l.0),
                limit: last.map(|l| l.1),
                witness: None,
                sweep: None,
                detail,
                remedy: Some(format!("mask = offs < {name}, given to the load and the store")),
                accesses: vec![index],
            },
            assumed,
        ));
    }
    out
}

/// The argument that is the number of elements: one that the kernel takes and never uses, or one named like a size.
fn size_argument(kernel: &Kernel) -> Option<usize> {
    let params = &kernel.model.params;
    let int = |i: &usize| params.get(*i).is_some_and(|p| p.int_width.is_some());
    let unused: Vec<usize> =
        (0..params.len()).filter(int).filter(|&i| params.get(i).is_some_and(|p| !p.used)).collect();
    if let [only] = unused.as_slice() {
        return Some(*only);
    }
    let named =
        |i: &usize| params.get(*i).is_some_and(|p| SIZE_NAMES.contains(&p.name.to_lowercase().as_str()));
    unused.iter().copied().find(|i| named(i))
}

fn tile(kernel: &Kernel, bindings: &Bindings, access: &Access) -> Option<Tile> {
    let dag = &kernel.model.dag;
    let env = environment(&kernel.model, bindings, &BTreeSet::new(), &[access.offset]);
    // A condition on the lanes or the program is a guard too.
    let guards: Vec<NodeId> = access.facts.iter().map(|f| f.0).collect();
    let guarded = env.vars_of(&guards).into_iter().any(|v| {
        matches!(
            dag.vars().get(v.index()).map(|v| &v.kind),
            Some(VarKind::ProgramId(_) | VarKind::Lane(..) | VarKind::Thread(_))
        )
    });
    if guarded {
        return None;
    }
    let poly = env.poly(access.offset);
    let bytes = i128::from(access.element_bytes.max(1));
    let mut programs: Vec<(u8, i128)> = Vec::new();
    let mut span = 0i128;
    for (mono, c) in poly.terms() {
        match mono.as_slice() {
            [] => {}
            &[id] => match dag.as_var(id).map(|(_, v)| v.kind.clone()) {
                Some(VarKind::ProgramId(axis)) => programs.push((axis, *c)),
                Some(VarKind::Lane(_, extent)) if *c == bytes => span += i128::from(extent) * bytes,
                _ => return None,
            },
            _ => return None,
        }
    }
    match programs.as_slice() {
        &[(axis, c)] if c == span && span > bytes => Some(Tile { axis, step: c / bytes }),
        _ => None,
    }
}
