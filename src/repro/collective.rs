//! Ranks that disagree about a collective.
//!
//! In: what the comparison of ranks found. Out: a plan with the same operation, sizes and odd rank, a short time limit and
//! as few ranks as show it.

use super::facts::{Facts, missing};
use super::recipe::{Collective, CollectiveFault, Origin, Plan, Program, Recipe, Size, Value};
use crate::case::collectives::{Differs, Finding, Mismatch};
use crate::error::Result;

/// Seconds after which the watchdog ends the job.
const TIMEOUT_S: u64 = 10;

/// Elements that are enough where the evidence names none.
const ELEMENTS: u64 = 1024;

/// Plans it.
pub(super) fn plan(facts: &Facts<'_>) -> Result<Plan> {
    let finding = facts.case.matched().findings.iter().find(|finding| match finding {
        Finding::Missing(missing) => !missing.missing.is_empty(),
        Finding::Mismatch(mismatch) => !mismatch.completed && matches!(mismatch.differs, Differs::Size),
        Finding::Stuck(_) => false,
    });
    // What the ranks called is known, and is no fault that a repro is written for.
    let other = facts.case.matched().findings.iter().find(|finding| {
        matches!(finding, Finding::Mismatch(mismatch)
            if !mismatch.completed && !mismatch.suspected && mismatch.differs != Differs::State)
    });
    let Some(finding) = finding else {
        if let Some(other) = other {
            return Err(missing(
                format!(
                    "{}; a repro is written for another size and for a call that is left out",
                    other.summary()
                ),
                "compare the lines of these ranks that lead to the call: nothing more is needed to see it",
            ));
        }
        return Err(missing(
            "nothing in the input tells which rank differs in which collective",
            "add the flight-recorder dumps of every rank (TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1)",
        ));
    };
    let from = "the ranks compared, by their dumps and log lines";
    let collective = finding.collective();
    let recorded = collective.map(|collective| collective.op.as_str()).unwrap_or_default();
    let operation = operation(recorded).ok_or_else(|| {
        missing(
            format!("{recorded} is no collective that is known here"),
            "all-reduce, all-gather, reduce-scatter and broadcast are",
        )
    })?;
    let mut values = vec![Value::new("operation", recorded, Origin::Read, from)];
    let (fault, sizes, odd) = match finding {
        Finding::Mismatch(mismatch) => size_mismatch(facts, mismatch, &mut values)?,
        other => {
            let read = collective
                .and_then(|collective| collective.numel_in)
                .map(|elements| (elements, from.to_owned()));
            let (elements, value) =
                facts.size("elements", read, (ELEMENTS, "no input prints it; any number shows the fault"))?;
            values.push(value);
            let odd = other.suspects().first().copied().unwrap_or(1);
            (CollectiveFault::Missing, vec![("elements", elements)], odd)
        }
    };
    if sizes.iter().any(|(_, elements)| *elements == 0) {
        return Err(missing(
            "a collective of no elements is recorded",
            "give the numbers: --set elements=1024 (and odd_elements= for the rank that differs)",
        ));
    }
    let seen = seen_ranks(finding).max(2);
    let (ranks, value) = facts.size("ranks", None, (2, "two ranks show what a larger job shows"))?;
    values.push(value);
    let odd_rank = odd.min(u32::try_from(ranks.saturating_sub(1)).unwrap_or(1));
    let said = if odd_rank == odd {
        format!("{from}: rank {odd} differs")
    } else {
        format!("rank {odd} of {seen} differs")
    };
    values.push(Value::new("odd_rank", odd_rank, Origin::Read, said));
    values.push(Value::new(
        "dtype",
        "float32",
        Origin::Assumed,
        "the element type does not matter for this fault",
    ));
    values.push(Value::new("timeout_s", TIMEOUT_S, Origin::Assumed, "short, so that the repro ends soon"));
    let what = match fault {
        CollectiveFault::Size => "ranks give different numbers of elements to one collective",
        CollectiveFault::Missing => "one rank leaves a collective out, the others wait in it",
    };
    let odd_label = match fault {
        CollectiveFault::Size => format!("rank {odd_rank} gives another number of elements"),
        CollectiveFault::Missing => format!("rank {odd_rank} leaves one call out"),
    };
    let labels = ["every rank calls the same".to_owned(), odd_label];
    let mut expect = facts.expect();
    expect.collective = Some(recorded.to_owned());
    let program = Program::Collective(Collective {
        operation: operation.to_owned(),
        dtype: "float32".to_owned(),
        fault,
        odd_rank,
        timeout_s: TIMEOUT_S,
    });
    let shows = format!("{what}; the watchdog ends the job");
    let mut recipe = Recipe::two_sided(shows, expect, program, labels);
    for (name, value) in sizes {
        // A few elements are as good as one; the odd number stays what it was.
        let least = if name == "odd_elements" { value } else { value.min(ELEMENTS) };
        recipe.sizes.insert(name.to_owned(), Size { value, least });
    }
    recipe.sizes.insert("ranks".to_owned(), Size { value: ranks, least: 2 });
    recipe.values = values;
    // Without a dump to write, the watchdog tears the job down at once.
    for (name, value) in [("TORCH_NCCL_DUMP_ON_TIMEOUT", "0"), ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")] {
        recipe.environment.insert(name.to_owned(), value.to_owned());
    }
    recipe.deadline_s = 75;
    recipe.notes.push(format!("Each rank needs a GPU of its own. In the incident: {}.", finding.summary()));
    Ok(Plan { recipe, assets: Vec::new() })
}

type Sizes = (CollectiveFault, Vec<(&'static str, u64)>, u32);

fn size_mismatch(facts: &Facts<'_>, mismatch: &Mismatch, values: &mut Vec<Value>) -> Result<Sizes> {
    let view = |at: usize| {
        let view = mismatch.views.get(at)?;
        Some((view.collective.numel_in?, *view.ranks.first()?))
    };
    let (Some(one), Some(other)) = (view(0), view(1)) else {
        return Err(missing(
            "the ranks' numbers of elements are not in the input",
            "add the flight-recorder dumps of every rank",
        ));
    };
    let read = |(elements, rank): (u64, u32)| Some((elements, format!("what rank {rank} gave")));
    // The higher rank is the odd one, so that two ranks are enough.
    let (usual, odd) = if one.1 <= other.1 { (one, other) } else { (other, one) };
    let assumed = (ELEMENTS, "");
    let (elements, value) = facts.size("elements", read(usual), assumed)?;
    values.push(value);
    let (odd_elements, value) = facts.size("odd_elements", read(odd), assumed)?;
    values.push(value);
    Ok((CollectiveFault::Size, vec![("elements", elements), ("odd_elements", odd_elements)], odd.1))
}

/// The highest rank that the finding names, plus one.
fn seen_ranks(finding: &Finding) -> u32 {
    let all: Vec<u32> = match finding {
        Finding::Missing(missing) => missing.missing.iter().chain(&missing.waiting).copied().collect(),
        Finding::Mismatch(mismatch) => mismatch.views.iter().flat_map(|view| &view.ranks).copied().collect(),
        Finding::Stuck(stuck) => stuck.ranks.clone(),
    };
    all.into_iter().max().unwrap_or(0).saturating_add(1)
}

/// PyTorch's function for an operation as recorded.
fn operation(recorded: &str) -> Option<&'static str> {
    let plain: String =
        recorded.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_uppercase();
    Some(match plain.as_str() {
        "ALLREDUCE" | "ALLREDUCECOALESCED" => "all_reduce",
        "ALLGATHER" | "ALLGATHERBASE" | "ALLGATHERINTOTENSORCOALESCED" => "all_gather",
        "REDUCESCATTER" | "REDUCESCATTERBASE" => "reduce_scatter",
        "BROADCAST" => "broadcast",
        _ => return None,
    })
}
