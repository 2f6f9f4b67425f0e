//! Windows of symmetric memory that don't fit, beside the plain all_reduce of the same sizes.
//!
//! In: what the library said about the windows. Out: a plan with three rows: the plain call, which tells trouble of NCCL from
//! trouble of symmetric memory; the same windows on every rank; and the fault. Sizes are in no message: they are assumed.

use super::facts::Facts;
use super::recipe::{Origin, Plan, Program, Recipe, Row, Side, Size, Value, WindowFault};
use crate::error::Result;
use crate::read::event::Data;
use crate::tables::cause::CauseKind;

/// 8 KiB of bfloat16: small messages are what the fast path is for.
const ELEMENTS: u64 = 4096;

/// Another size, still a multiple of the 16 bytes that the operation takes.
const ODD_ELEMENTS: u64 = 1024;

/// Whether the evidence speaks of symmetric memory.
pub(super) fn is_known(facts: &Facts<'_>) -> bool {
    facts.verdict.cause().and_then(|cause| cause.cause) == Some(CauseKind::SymmWindow)
}

/// Plans it.
pub(super) fn plan(facts: &Facts<'_>) -> Result<Plan> {
    let said = facts.first(|data| match data {
        Data::CollectiveMismatch(mismatch)
            if matches!(mismatch.differs.as_str(), "buffer_size" | "window") =>
        {
            Some(mismatch)
        }
        _ => None,
    });
    let (place, fault) = match said {
        Some((place, mismatch)) if mismatch.differs == "window" => (place, WindowFault::Outside),
        Some((place, _)) => (place, WindowFault::Size),
        None => ("derived".to_owned(), WindowFault::Size),
    };
    let why = "no message prints the size; any shows the fault";
    let mut values = vec![Value::new("fault", fault.shown(), Origin::Read, place)];
    let mut sizes = Vec::new();
    let (elements, value) = facts.size("elements", None, (ELEMENTS, why))?;
    values.push(value);
    sizes.push(("elements", elements, elements));
    if fault == WindowFault::Size {
        let (odd, value) = facts.size("odd_elements", None, (ODD_ELEMENTS, why))?;
        values.push(value);
        sizes.push(("odd_elements", odd, odd));
    }
    let (ranks, value) = facts.size("ranks", None, (2, "two ranks show what a larger job shows"))?;
    values.push(value);
    sizes.push(("ranks", ranks, 2));
    let odd_rank = 1;
    values.push(Value::new(
        "odd_rank",
        odd_rank,
        Origin::Assumed,
        "every rank prints the same: any may be the odd one",
    ));
    values.push(Value::new(
        "dtype",
        "bfloat16",
        Origin::Assumed,
        "the element type does not matter for this fault",
    ));
    let labels = ["one_shot_all_reduce, the same window on every rank".to_owned(), fault.label(odd_rank)];
    let mut expect = facts.expect();
    expect.text = vec![fault.text().to_owned()];
    let program = Program::Symmetric { fault, odd_rank };
    let mut recipe = Recipe::two_sided(fault.shown().to_owned(), expect, program, labels);
    recipe.rows.insert(
        0,
        Row {
            key: "plain".to_owned(),
            label: "plain dist.all_reduce of the same sizes".to_owned(),
            expect: Some(Side::Pass),
        },
    );
    for (name, value, least) in sizes {
        recipe.sizes.insert(name.to_owned(), Size { value, least });
    }
    recipe.values = values;
    recipe.notes = vec![
        "If the plain row fails, NCCL or the machine is at fault and is to be mended first. If it passes and the second row \
         fails, symmetric memory doesn't work between these GPUs. If both pass, the windows of the job are wrong."
            .to_owned(),
        "Each rank needs a GPU of its own, and the GPUs must reach each other's memory.".to_owned(),
    ];
    Ok(Plan { recipe, assets: Vec::new() })
}

impl WindowFault {
    fn shown(self) -> &'static str {
        match self {
            Self::Size => "ranks rendezvous with symmetric-memory windows of different sizes",
            Self::Outside => "a tensor outside symmetric memory is given to one_shot_all_reduce",
        }
    }

    fn label(self, odd_rank: u32) -> String {
        match self {
            Self::Size => format!("rank {odd_rank} allocates a window of another size"),
            Self::Outside => "the tensor is an ordinary one".to_owned(),
        }
    }

    /// What the library prints: an extended regular expression.
    fn text(self) -> &'static str {
        match self {
            Self::Size => r"reqs\[r\]\.buffer_size",
            Self::Outside => "empty_strided_p2p|not within any SymmetricMemory|[Ss]ymmetric memory",
        }
    }
}
