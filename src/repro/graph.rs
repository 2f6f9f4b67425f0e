//! A captured CUDA graph whose input is freed before the replay.
//!
//! In: the verdict. Out: a plan. Logs name neither the captured operations nor their shapes: a sum over one large tensor
//! stands for them, and the README says so.

use super::facts::Facts;
use super::recipe::{Origin, Plan, Program, Recipe, Size, Value};
use crate::error::Result;

/// 64 MiB of float32: the allocator gives blocks of 20 MiB and more back to the driver whole.
const SIZE: u64 = 4096;

/// The least size whose tensor has an allocation of its own: 2,304² × 4 bytes are past 20 MiB.
const LEAST: u64 = 2304;

/// Plans it.
pub(super) fn plan(facts: &Facts<'_>) -> Result<Plan> {
    let why = "no input prints what was captured; large enough that its memory goes back to the driver (--set size=…)";
    let (size, from) = facts.size("size", None, (SIZE, why))?;
    let labels = ["the input is kept", "the input is freed before the replay"].map(str::to_owned);
    let shows = "a captured CUDA graph reads an input that was freed before the replay".to_owned();
    let mut recipe = Recipe::two_sided(shows, facts.expect(), Program::Graph, labels);
    recipe.sizes.insert("size".to_owned(), Size { value: size, least: LEAST.min(size) });
    recipe.values = vec![
        from,
        Value::new(
            "captured",
            "x.sum(0)",
            Origin::Assumed,
            "the log does not name the captured operations; one that reads the input is enough",
        ),
        Value::new(
            "freed",
            "the graph's input",
            Origin::Assumed,
            "a freed input is the commonest cause of a failed replay",
        ),
    ];
    recipe.notes.push(
        "The graph holds addresses, not tensors: keep its inputs alive and refill them with copy_."
            .to_owned(),
    );
    Ok(Plan { recipe, assets: Vec::new() })
}
