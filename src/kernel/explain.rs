//! Verdicts in words: which expression wraps on the way to which access, and what an open one waits for.
//!
//! In: an access and its verdict. Out: a [`Finding`] or an [`Unknown`]. It decides nothing.

use std::collections::BTreeSet;

use super::analyze::Kernel;
use super::bind::Bindings;
use super::check::{Checker, Doubt, Wrap, culprit};
use super::finding::{Certainty, Finding, FindingKind, Unknown, Witness};
use super::launch::environment;
use super::model::{Access, AccessKind, Model, Source};
use super::solve::Fuel;
use super::sym::{NodeId, VarKind};
use super::verdicts::axes_of;

/// `store to y_ptr`
pub(super) fn reaches(model: &Model, access: &Access) -> String {
    let verb = match access.kind {
        AccessKind::Load => "load from",
        AccessKind::Store => "store to",
        AccessKind::Atomic => "atomic update of",
    };
    format!("{verb} {}", model.base_name(&access.base))
}

pub(super) fn overflow(
    kernel: &Kernel,
    bindings: &Bindings,
    index: usize,
    access: &Access,
    wrap: &Wrap,
    single: &BTreeSet<u8>,
) -> Finding {
    let model = &kernel.model;
    let dag = &model.dag;
    let (node, at_point) = culprit(model, wrap);
    let limits = wrap.duty.limits(dag);
    let limit = if wrap.upward { limits.hi } else { limits.lo };
    let common = kernel.common_facts(bindings);
    let mut roots: Vec<NodeId> = common.iter().map(|f| f.0).collect();
    roots.push(access.offset);
    roots.extend(&access.also);
    roots.extend(access.facts.iter().map(|f| f.0));
    let used: BTreeSet<u8> = axes_of(kernel, access).intersection(single).copied().collect();
    let mut env = environment(model, bindings, &used, &roots);
    let mut checker = Checker::new(model, &mut env, Fuel::default());
    let extreme = checker.extreme(node, wrap.upward, limit, access, &common).unwrap_or(at_point);
    let name = |i: usize| model.params.get(i).map_or_else(|| format!("arg{i}"), |p| p.name.clone());
    let expression = dag.expression(node, &name);
    let own = model.location(dag.node(node).origin);
    let read = model.location(dag.node(wrap.duty.reader).origin);
    let at = model.location(access.origin);
    // A compiler moves and merges 32-bit arithmetic; the widening stays where the address is formed.
    let location = match model.source {
        Source::Ttir => own.or(read).or(at),
        Source::Ptx => read.or(at).or(own),
    };
    let target = reaches(model, access);
    let width = dag.node(wrap.duty.value).width;
    let detail = format!(
        "{expression} reaches {extreme} in {width}-bit arithmetic, past {limit}, and goes on to the {target}"
    );
    Finding {
        kind: FindingKind::Int32Overflow,
        certainty: Certainty::Supported,
        expression,
        reaches: target,
        location: location.cloned(),
        access_location: at.cloned(),
        max_value: Some(extreme),
        limit: Some(limit),
        witness: Some(witness(model, wrap)),
        sweep: None,
        detail,
        remedy: Some("widen before multiplying: row.to(tl.int64) * stride, (long long)row * stride".into()),
        accesses: vec![index],
    }
}

fn witness(model: &Model, wrap: &Wrap) -> Witness {
    let mut out = Witness { index: wrap.value, ..Witness::default() };
    let span = wrap.duty.limits(&model.dag);
    let turn = span.hi - span.lo + 1;
    out.wrapped = (wrap.value - span.lo).rem_euclid(turn) + span.lo;
    let mut vars: Vec<_> = wrap.point.iter().collect();
    vars.sort();
    for (var, &value) in vars {
        match model.dag.vars().get(var.index()).map(|v| &v.kind) {
            Some(VarKind::ProgramId(axis)) => {
                if let Some(slot) = out.program.get_mut(usize::from(*axis)) {
                    *slot = value;
                }
            }
            Some(VarKind::Lane(axis, _)) => out.lanes.push((format!("lane{axis}"), value)),
            Some(kind @ (VarKind::Thread(_) | VarKind::ThreadCount(_))) => {
                out.lanes.push((model.dag.variable_name(kind), value));
            }
            Some(VarKind::Trip(_)) => out.iterations.push(value),
            _ => {}
        }
    }
    out
}

/// Accesses of one kind at one place with one expression are one finding.
pub(super) fn merge(groups: &mut Vec<Finding>, finding: Finding) {
    let same = groups.iter_mut().find(|known| {
        known.kind == finding.kind
            && known.reaches == finding.reaches
            && known.location.as_ref().map(|l| (&l.file, l.line))
                == finding.location.as_ref().map(|l| (&l.file, l.line))
    });
    match same {
        Some(known) => {
            known.accesses.extend(&finding.accesses);
            if finding.max_value.map(i128::abs) > known.max_value.map(i128::abs) {
                let accesses = std::mem::take(&mut known.accesses);
                *known = Finding { accesses, ..finding };
            }
        }
        None => groups.push(finding),
    }
}

pub(super) fn describe(model: &Model, access: &Access, doubt: &Doubt) -> Unknown {
    let at = model.location(access.origin).cloned();
    let target = reaches(model, access);
    match doubt {
        Doubt::Argument(index) => {
            let name = model.params.get(*index).map_or_else(|| format!("arg{index}"), |p| p.name.clone());
            Unknown {
                what: format!("the {target} depends on {name}, which has no value"),
                location: at,
                settle: Some(format!("--set {name}=…")),
            }
        }
        Doubt::Loaded(origin, in_mask) => {
            let what = if *in_mask { "mask of the" } else { "index of the" };
            let from = model.location(*origin).map(|l| format!(", at {l}")).unwrap_or_default();
            Unknown {
                what: format!(
                    "the {what} {target} is loaded from memory{from}: its values are not in the compiled kernel"
                ),
                location: at,
                settle: Some(
                    "check the largest index on the host, or rerun under compute-sanitizer memcheck".into(),
                ),
            }
        }
        Doubt::Opaque(reason, origin) => Unknown {
            what: format!("the address of the {target} can't be followed: {reason}"),
            location: model.location(*origin).cloned().or(at),
            settle: None,
        },
        Doubt::Grid { axis, from } => {
            let letter = ["x", "y", "z"].get(usize::from(*axis)).copied().unwrap_or("?");
            Unknown {
                what: format!("the {target} wraps in program {from} along {letter}, if the grid has so many"),
                location: at,
                settle: Some("--grid".into()),
            }
        }
        Doubt::GaveUp => Unknown {
            what: format!("the search for a bound of the {target} was given up"),
            location: at,
            settle: None,
        },
    }
}
