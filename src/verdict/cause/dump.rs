//! What a GPU core dump proves: an address in the faulting lane's registers that only a wrapped index explains, or a lane
//! whose index breaks the pattern of its warp.
//!
//! In: dumps. Out: `int32_overflow`, *supported* where the recovered index also fits the launch's arguments and block,
//! *suspected* from the distance alone; `bad_index`, *suspected*, where one lane stands out.

use crate::case::{EvidenceId, Fact};
use crate::read::coredump::{Argument, ArgumentKind, Displaced, DumpSummary, Fault, Grid, RowIs};
use crate::read::event::Data;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::text::number::grouped;

use super::super::failure::Certainty;
use super::super::told;
use super::{Hypothesis, View};

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    if view.root.class != FailureClass::IllegalAddress {
        return Vec::new();
    }
    view.case.dumps().flat_map(|(id, dump)| explain(view, id, dump)).collect()
}

fn explain(view: &View<'_>, id: EvidenceId, dump: &DumpSummary) -> Vec<Hypothesis> {
    let mut found = Vec::new();
    let Some(fault) = dump.fault() else { return found };
    let grid = dump.faulting_grid();
    let names = names(view, id);
    let best = likeliest(&dump.faults);
    if let Some((block, displaced)) = &best {
        found.push(wrapped(view, id, displaced, &names, block));
    } else if let Some(product) = grid.and_then(|grid| overflowing_product(grid, &names)) {
        found.push(hypothesis(CauseKind::Int32Overflow, Certainty::Suspected, product, id, view));
    }
    if best.is_none()
        && let Some(text) = odd_lane(fault)
    {
        found.push(hypothesis(CauseKind::BadIndex, Certainty::Suspected, text, id, view));
    }
    found
}

/// The address that says most, with the block that formed it in words. Of several that say as much, that of the fault which the
/// report names: the first.
fn likeliest(faults: &[Fault]) -> Option<(String, &Displaced)> {
    let (at, fault, displaced) = faults
        .iter()
        .enumerate()
        .flat_map(|(at, fault)| fault.displaced.iter().map(move |found| (at, fault, found)))
        .filter(|(_, _, found)| found.is_telling())
        .max_by_key(|(at, _, found)| (found.agreements.len(), std::cmp::Reverse(*at)))?;
    let block = match fault.block.filter(|_| at > 0) {
        Some([x, y, z]) => format!("block ({x},{y},{z}), which faulted too"),
        None => "the faulting block".to_owned(),
    };
    Some((block, displaced))
}

fn wrapped(
    view: &View<'_>,
    id: EvidenceId,
    displaced: &Displaced,
    names: &[String],
    block: &str,
) -> Hypothesis {
    let pointer = name(names, displaced.argument);
    let mut text = format!(
        "register {} holds {:#x}: {pointer} ({:#x}) plus an index that wrapped; moved back up by 2^32 × {} bytes it is element {}",
        displaced.registers,
        displaced.address,
        displaced.pointer,
        displaced.element_bytes,
        grouped(u128::from(displaced.index)),
    );
    let certainty = match displaced.agreements.first() {
        Some(agreement) => {
            let what = match agreement.row_is {
                RowIs::Block(_) => block.to_owned(),
                RowIs::ArgumentPlusBlock(ordinal, _) => {
                    format!("{} plus {block}", name(names, ordinal))
                }
            };
            text.push_str(&format!(
                " = row {} × {} {} + {}, and that row is {what}",
                grouped(u128::from(agreement.row)),
                name(names, agreement.stride_argument),
                grouped(u128::from(agreement.stride)),
                grouped(u128::from(agreement.column)),
            ));
            Certainty::Supported
        }
        None => Certainty::Suspected,
    };
    hypothesis(CauseKind::Int32Overflow, certainty, text, id, view)
}

/// Two integer arguments whose product passes 2^31-1: a suspicion from sizes alone.
fn overflowing_product(grid: &Grid, names: &[String]) -> Option<String> {
    let integers: Vec<(&Argument, i128)> = grid
        .arguments
        .iter()
        .filter(|argument| argument.kind != ArgumentKind::Pointer)
        .filter_map(|argument| Some((argument, argument.integer()?)))
        .filter(|(_, value)| (2..=i128::from(i32::MAX)).contains(value))
        .take(32)
        .collect();
    let (left, right, product) = integers
        .iter()
        .enumerate()
        .flat_map(|(at, left)| integers.iter().skip(at + 1).map(move |right| (left, right, left.1 * right.1)))
        .filter(|(_, _, product)| *product > i128::from(i32::MAX))
        .min_by_key(|(_, _, product)| *product)?;
    Some(format!(
        "the launch's arguments {} {} × {} {} = {} pass 2,147,483,647: a row offset in 32 bits wraps",
        name(names, left.0.ordinal),
        grouped(left.1.unsigned_abs()),
        name(names, right.0.ordinal),
        grouped(right.1.unsigned_abs()),
        grouped(product.unsigned_abs()),
    ))
}

fn odd_lane(fault: &Fault) -> Option<String> {
    let odd = fault.odd_registers.first()?;
    let [x, y, z] = odd.thread;
    Some(format!(
        "lane {}, thread ({x},{y},{z}), alone breaks the pattern of its warp: register R{} holds {}, where the other lanes' values predict {}: an index that came from memory",
        odd.lane,
        odd.register,
        grouped(u128::from(odd.value)),
        grouped(u128::from(odd.expected)),
    ))
}

/// The arguments' names, where the kernel's compiled form is among the inputs: a dump has none.
fn names(view: &View<'_>, id: EvidenceId) -> Vec<String> {
    let launch = view.case.get(id).and_then(|evidence| match &evidence.fact {
        Fact::Event(event) => match &event.data {
            Data::FaultingLaunch(launch) => told::named(view.case, launch),
            _ => None,
        },
        Fact::Derived(_) => None,
    });
    launch.into_iter().flatten().map(|(name, _)| name).collect()
}

fn name(names: &[String], ordinal: u16) -> String {
    names.get(usize::from(ordinal)).cloned().unwrap_or_else(|| format!("argument {ordinal}"))
}

fn hypothesis(
    cause: CauseKind,
    certainty: Certainty,
    summary: String,
    id: EvidenceId,
    view: &View<'_>,
) -> Hypothesis {
    let settle = match cause {
        CauseKind::Int32Overflow => {
            "rerun the kernel just below and past the boundary: a pass and a failure prove it"
        }
        _ => "check max(index) < size and min(index) >= 0 before the launch",
    };
    Hypothesis {
        class: view.root.class,
        cause: Some(cause),
        certainty,
        summary,
        supports: vec![id],
        against: Vec::new(),
        would_settle: vec![settle.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{InputSpec, Limits, load};

    #[test]
    fn of_equal_lanes_the_one_that_the_report_names_is_told_of() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/triton-coredump/core.nvcudmp.gz");
        let loaded = load(&[InputSpec::Path(path.into())], Limits::default());
        let dump = crate::read::coredump::read(&loaded.inputs[0].bytes).0;
        let named = dump.fault().unwrap().clone();
        let mut other = named.clone();
        other.block = Some([7, 0, 0]);
        let displaced = |faults: &[Fault]| likeliest(faults).map(|(block, found)| (block, found.index));
        let index = 1 << 31;
        let both = [named.clone(), other.clone()];
        assert_eq!(displaced(&both), Some(("the faulting block".to_owned(), index)));
        // Only another lane's registers still hold the address.
        let mut blank = named;
        blank.displaced.clear();
        let said = "block (7,0,0), which faulted too".to_owned();
        assert_eq!(displaced(&[blank.clone(), other]), Some((said, index)));
        assert_eq!(displaced(&[blank]), None);
    }
}
