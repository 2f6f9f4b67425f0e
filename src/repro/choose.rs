//! Which kind of repro the evidence asks for.
//!
//! In: facts, and the kind where the engineer names one. Out: a plan of that kind, or what is missing.

use super::facts::{Facts, missing};
use super::recipe::{Kind, Origin, Plan, Value};
use super::{collective, cuda, graph, operator, segfault, symmetric, triton};
use crate::error::Result;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

/// Plans a repro.
///
/// # Errors
/// `Usage`, naming what is missing and the option that gives it; those of reading a Triton cache entry.
pub fn plan(facts: &Facts<'_>, kind: Option<Kind>) -> Result<Plan> {
    let kind = match kind {
        Some(kind) => kind,
        None => choose(facts)?,
    };
    let mut plan = match kind {
        Kind::Triton => triton::plan(facts),
        Kind::Segfault => segfault::plan(facts),
        Kind::Operator => operator::plan(facts),
        Kind::Cuda => cuda::plan(facts),
        Kind::Graph => graph::plan(facts),
        Kind::Collective if symmetric::is_known(facts) => symmetric::plan(facts),
        Kind::Collective => collective::plan(facts),
    }?;
    for (name, value, place) in facts.switches() {
        if !plan.recipe.environment.contains_key(&name) {
            plan.recipe.values.push(Value::new(&name, &value, Origin::Read, place));
            plan.recipe.environment.insert(name, value);
        }
    }
    for (name, version) in facts.versions() {
        plan.recipe.versions.entry(name).or_insert(version);
    }
    Ok(plan)
}

fn choose(facts: &Facts<'_>) -> Result<Kind> {
    let cause = facts.verdict.cause().and_then(|cause| cause.cause);
    Ok(match facts.verdict.class {
        FailureClass::Segfault => Kind::Segfault,
        FailureClass::DeviceAssert => Kind::Operator,
        FailureClass::Nccl => Kind::Collective,
        FailureClass::IllegalAddress if cause == Some(CauseKind::GraphReplay) => Kind::Graph,
        FailureClass::IllegalAddress
            if facts.cache().is_some() || facts.source.is_some() || triton::is_traced(facts) =>
        {
            Kind::Triton
        }
        FailureClass::IllegalAddress if cuda::is_known(facts) => Kind::Cuda,
        FailureClass::IllegalAddress => {
            return Err(missing(
                "the input names no kernel whose launch could be replayed",
                "add the Triton cache folder ($TRITON_CACHE_DIR, else ~/.triton/cache), a compute-sanitizer report or a GPU \
                 core dump to the inputs; or choose with --kind",
            ));
        }
        FailureClass::None => {
            return Err(missing(
                "the input holds no failure to reproduce",
                "give the log of the failing run",
            ));
        }
        class => {
            return Err(missing(
                format!("no kind of repro fits the class {}", class.name()),
                "choose one: --kind triton, segfault, operator, cuda, graph or collective",
            ));
        }
    })
}
