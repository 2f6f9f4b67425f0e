//! A PyTorch operator with one index outside its table.
//!
//! In: the device-side assertion, the shapes near it. Out: a plan of the operator that has such an assertion. The log seldom
//! prints the table's size or the index itself: what nobody says is assumed, and the README says so.

use super::facts::{Facts, missing};
use super::recipe::{Operator, Origin, Plan, Program, Recipe, Size, Value};
use crate::error::Result;
use crate::read::event::{Data, DeviceAssert, ShapeForm};
use crate::text::number::grouped_signed;

/// Words of an assertion's kernel or condition, and the operator that has it (PyTorch's `aten/src/ATen/native/cuda`).
const ASSERTIONS: [(&str, Operator); 6] = [
    ("vectorized_gather_kernel", Operator::Embedding),
    ("srcSelectDimSize", Operator::Embedding),
    ("n_classes", Operator::CrossEntropy),
    ("idx_dim >= 0 && idx_dim < index_size", Operator::Gather),
    ("-sizes[i] <= index && index < sizes[i]", Operator::Index),
    ("index out of bounds", Operator::Index),
];

impl Operator {
    fn shown(self) -> &'static str {
        match self {
            Self::Embedding => "torch.nn.functional.embedding",
            Self::Index => "table[indices]",
            Self::Gather => "torch.gather",
            Self::CrossEntropy => "torch.nn.functional.cross_entropy",
        }
    }
}

/// Plans it.
pub(super) fn plan(facts: &Facts<'_>) -> Result<Plan> {
    let (place, assertion) = facts
        .first(|data| match data {
            Data::DeviceAssert(assertion) => Some(assertion),
            _ => None,
        })
        .ok_or_else(|| {
            missing("no device-side assertion is in the input", "give the log with the assertion's line")
        })?;
    let operator = operator(facts, assertion)?;
    let mut values = vec![Value::new(
        "operator",
        operator.shown(),
        Origin::Read,
        format!("{place}, the assertion's kernel and condition"),
    )];
    let shape = facts.verdict.shapes.iter().find(|shape| shape.mention.form == ShapeForm::Shape);
    let dims = shape.map(|shape| (shape.mention.dims.as_slice(), facts.place_of(shape.evidence)));
    // The printed shape is the result's: its last dimension is the table's, the others are the indices'.
    let last = dims.as_ref().and_then(|(dims, place)| {
        let last = dims.last().filter(|_| dims.len() > 1 && operator == Operator::Embedding)?;
        Some((*last, format!("{place}, the last dimension of the shape there")))
    });
    let count = dims.as_ref().and_then(|(dims, place)| {
        let (_, rest) = dims.split_last().filter(|_| operator == Operator::Embedding)?;
        let count = rest
            .iter()
            .try_fold(1_u64, |product, dim| product.checked_mul(*dim))
            .filter(|count| *count > 0)?;
        Some((count, format!("{place}, the other dimensions of the shape there")))
    });
    let (rows, from) = facts.size(
        "rows",
        None,
        (1000, "no input prints the table's rows; any number shows the fault (--set rows=…)"),
    )?;
    values.push(from);
    let (columns, from) = facts.size(
        "columns",
        last,
        (64, "no input prints it; any number shows the fault (--set columns=…)"),
    )?;
    values.push(from);
    // The gather kernel of embedding takes one index a block.
    let block = assertion
        .block
        .map(|block| block[0])
        .filter(|_| assertion.place.function.as_deref() == Some("vectorized_gather_kernel"));
    let least = block.map_or(1, |block| block.saturating_add(1));
    let (indices, from) = facts.size(
        "indices",
        count,
        (512.max(least), "no input prints it; any number shows the fault (--set indices=…)"),
    )?;
    values.push(from);
    let position = block.unwrap_or(0).min(indices.saturating_sub(1));
    values.push(match block {
        Some(_) => Value::new(
            "position",
            position,
            Origin::Read,
            format!("{place}: the block that asserted; this kernel takes one index a block"),
        ),
        None => Value::new("position", position, Origin::Assumed, "any position shows the fault"),
    });
    let bad_index = match facts.given.get("bad_index") {
        Some(text) => {
            let index: i64 = text.parse().map_err(|_| {
                missing(format!("--set bad_index={text}: no number"), "as in --set bad_index=1000")
            })?;
            values.push(Value::new("bad_index", index, Origin::Given, "--set bad_index"));
            index
        }
        None => {
            let index = i64::try_from(rows).unwrap_or(i64::MAX);
            values.push(Value::new(
                "bad_index",
                index,
                Origin::Assumed,
                "the first one past the table: the log says only that it is outside (--set bad_index=…)",
            ));
            index
        }
    };
    let shows = format!("{} with one index outside its table: a device-side assertion", operator.shown());
    let mut expect = facts.expect();
    expect.kernel.clone_from(&assertion.place.function);
    let labels = [
        "every index inside the table".to_owned(),
        format!(
            "index {} in a table of {} rows",
            grouped_signed(bad_index.into()),
            grouped_signed(rows.into())
        ),
    ];
    let program = Program::Operator { operator, bad_index, position };
    let mut recipe = Recipe::two_sided(shows, expect, program, labels);
    recipe.values = values;
    recipe.sizes.insert("indices".to_owned(), Size { value: indices, least: 1 });
    recipe.sizes.insert("columns".to_owned(), Size { value: columns, least: 1 });
    recipe.sizes.insert("rows".to_owned(), Size { value: rows, least: rows });
    recipe.notes.push(
        "Below the assertion every CUDA call of the process fails: the traceback shows where it was noticed."
            .to_owned(),
    );
    Ok(Plan { recipe, assets: Vec::new() })
}

fn operator(facts: &Facts<'_>, assertion: &DeviceAssert) -> Result<Operator> {
    const NAMES: [(&str, Operator); 4] = [
        ("embedding", Operator::Embedding),
        ("index", Operator::Index),
        ("gather", Operator::Gather),
        ("cross_entropy", Operator::CrossEntropy),
    ];
    const HINT: &str = "name it: --set operator=embedding, index, gather or cross_entropy";
    if let Some(name) = facts.given.get("operator") {
        let known = NAMES.into_iter().find(|(known, _)| known == name).map(|(_, operator)| operator);
        return known.ok_or_else(|| missing(format!("no operator {name} is known here"), HINT));
    }
    let kernel = assertion.place.function.as_deref().unwrap_or("");
    let found =
        ASSERTIONS.into_iter().find(|(word, _)| kernel.contains(word) || assertion.expression.contains(word));
    found
        .map(|(_, operator)| operator)
        .ok_or_else(|| missing("the assertion is of no operator that is known here", HINT))
}
