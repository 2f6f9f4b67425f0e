//! One CUDA C++ file: a row offset in 32 bits, or a gather with one index far outside its table.
//!
//! In: what a sanitizer or a core dump says of the access, and the shapes. Out: a plan. The kernel is written anew: it has
//! the address pattern of the one at fault and its name, and nothing else of it.

use super::facts::{Facts, missing};
use super::recipe::{Origin, Plan, Program, Recipe, Row, Side, Sides, Size, Value};
use crate::arith::boundary::Role;
use crate::arith::{Reading, Wrapped};
use crate::case::EvidenceId;
use crate::error::Result;
use crate::read::coredump::DumpSummary;
use crate::tables::cause::CauseKind;
use crate::text::number::grouped;
use crate::verdict::cause::distance;
use crate::verdict::shapes::ShapeRow;

/// Largest index that a signed 32-bit gather can hold.
const INDEX_LIMIT: u64 = 0x7fff_ffff;

/// Whether the evidence names an access that one of the two patterns explains.
pub(super) fn is_known(facts: &Facts<'_>) -> bool {
    facts
        .verdict
        .cause()
        .and_then(|cause| cause.cause)
        .is_some_and(|cause| matches!(cause, CauseKind::Int32Overflow | CauseKind::BadIndex))
}

/// Plans it.
pub(super) fn plan(facts: &Facts<'_>) -> Result<Plan> {
    match facts.verdict.cause().and_then(|cause| cause.cause) {
        Some(CauseKind::Int32Overflow) => rows(facts),
        Some(CauseKind::BadIndex) => gather(facts),
        _ => Err(missing(
            "the cause is neither an index that wraps nor one out of a table",
            "add a compute-sanitizer report or a GPU core dump to the inputs; warpfault probe reruns a .cu or .cubin as it is",
        )),
    }
}

fn kernel(facts: &Facts<'_>, values: &mut Vec<Value>) -> Option<String> {
    let fault = facts.verdict.places.fault.as_ref()?;
    let name = fault.kernel.clone()?;
    let place = fault.evidence.first().map(|id| facts.place_of(*id)).unwrap_or_default();
    values.push(Value::new("kernel", &name, Origin::Read, place));
    Some(name)
}

/// The shape that overflows, as rows and columns.
fn shape<'a>(facts: &Facts<'a>) -> Option<(&'a ShapeRow, u64, u64)> {
    let found = facts.verdict.shapes.iter().find(|shape| shape.overflows() && shape.sweep == 0)?;
    let (rows, rest) = found.mention.dims.split_first()?;
    let columns = rest.iter().try_fold(1_u64, |product, dim| product.checked_mul(*dim))?;
    Some((found, *rows, columns))
}

fn wrapped(facts: &Facts<'_>) -> Option<(EvidenceId, Wrapped)> {
    let view = facts.verdict.view(facts.case)?;
    distance::readings(&view).into_iter().find_map(|found| match found.reading {
        Reading::Wrapped(wrapped) => Some((found.evidence, wrapped)),
        _ => None,
    })
}

fn rows(facts: &Facts<'_>) -> Result<Plan> {
    let mut values = Vec::new();
    let name = kernel(facts, &mut values);
    let shape = shape(facts);
    let wrapped = wrapped(facts);
    let place = shape.as_ref().map(|(shape, ..)| facts.place_of(shape.evidence));
    let read = |size: Option<u64>| size.zip(place.clone());
    let need = |name: &str, size: Option<u64>| match (facts.given_size(name)?, size) {
        (None, None) => Err(missing(
            format!("the input does not print the launch's {name}"),
            format!("give them: --set {name}=32768"),
        )),
        _ => facts.size(name, read(size), (1, "")),
    };
    let (columns, from) = need("columns", shape.as_ref().map(|(.., columns)| *columns))?;
    values.push(from);
    let (reported, from) = need("rows", shape.as_ref().map(|(_, rows, _)| *rows))?;
    values.push(from);
    let by_distance = wrapped.as_ref().map(|(id, wrapped)| (wrapped.element_bytes, facts.place_of(*id)));
    let by_dtype = shape
        .as_ref()
        .and_then(|(shape, ..)| Some((shape.dtype?.element_bytes(), facts.place_of(shape.evidence))));
    let (element_bytes, from) = facts.size(
        "element_bytes",
        by_distance.or(by_dtype),
        (4, "no input tells the element type; the boundary does not depend on it"),
    )?;
    values.push(from);
    if !matches!(element_bytes, 1 | 2 | 4 | 8) || columns == 0 || columns > INDEX_LIMIT {
        return Err(missing(
            format!("elements of {element_bytes} bytes in rows of {columns} are not for this repro"),
            "use warpfault probe",
        ));
    }
    // The last index of `safe` rows is safe × columns − 1.
    let safe = (INDEX_LIMIT + 1) / columns;
    if reported <= safe {
        let what =
            format!("{} rows of {} do not wrap", grouped(u128::from(reported)), grouped(u128::from(columns)));
        return Err(missing(what, format!("give a number past {safe}: --set rows={}", safe + 1)));
    }
    values.push(Value::new(
        "boundary",
        format!("{safe} rows pass, {} wrap", safe + 1),
        Origin::Computed,
        "2^31 / columns",
    ));
    // Without a kernel's name the repro is about the shape, and must not read as a finding about the user's code.
    let what = match name {
        Some(_) => "a row's offset is formed in 32 bits",
        None => "arithmetic of the log's shape, in a kernel of its own that forms a row's offset in 32 bits",
    };
    let shows = format!(
        "{what}: past {} rows of {} elements it wraps",
        grouped(u128::from(safe)),
        grouped(u128::from(columns))
    );
    let mut expect = facts.expect();
    expect.kernel.clone_from(&name);
    // Under a sanitizer the runtime reports another status than alone.
    expect.code = None;
    let program = Program::CudaRows {
        kernel: name.unwrap_or_default(),
        columns,
        element_bytes: u32::try_from(element_bytes).unwrap_or(4),
    };
    let mut recipe = Recipe::two_sided(shows, expect, program, Default::default());
    let past = shape
        .as_ref()
        .and_then(|(shape, ..)| shape.boundary.shapes.iter().find(|row| row.roles.contains(&Role::WellPast)))
        .map_or(safe.saturating_mul(143) / 100, |row| row.value);
    let mut sizes = vec![safe, reported, past.max(reported)];
    sizes.dedup();
    recipe.rows = sizes
        .iter()
        .map(|rows| Row {
            key: rows.to_string(),
            label: format!(
                "rows = {}, columns = {}: {}",
                grouped(u128::from(*rows)),
                grouped(u128::from(columns)),
                if *rows <= safe { "within int32" } else { "past int32" }
            ),
            expect: Some(if *rows <= safe { Side::Pass } else { Side::Fail }),
        })
        .collect();
    recipe.sides = Sides { pass: safe.to_string(), fail: reported.to_string() };
    if recipe.expect.kernel.is_none() {
        recipe.notes.push(
            "No input names the kernel: this shows the arithmetic of the shape, not the user's kernel. With the Triton cache \
             folder among the inputs the compiled kernel itself is replayed."
                .to_owned(),
        );
    }
    recipe.closer = Some(Sides { pass: safe.to_string(), fail: (safe + 1).to_string() });
    recipe.values = values;
    recipe.notes.push("The kernel is written anew with the address pattern of the one at fault; the user's own is rerun by warpfault probe.".to_owned());
    Ok(Plan { recipe, assets: Vec::new() })
}

/// The lane that breaks its warp's pattern: what it holds, and which thread of the grid it is.
fn odd_lane(dump: &DumpSummary) -> Option<(u64, u64)> {
    let fault = dump.fault()?;
    let odd = fault.odd_registers.first()?;
    let block = dump.faulting_grid()?.block;
    let position = fault.block?[0].checked_mul(block[0])?.checked_add(odd.thread[0])?;
    Some((u64::from(odd.value), position))
}

fn gather(facts: &Facts<'_>) -> Result<Plan> {
    let mut values = Vec::new();
    let name = kernel(facts, &mut values);
    let dump = facts.case.dumps().next();
    let place = dump.as_ref().map(|(id, _)| facts.place_of(*id)).unwrap_or_default();
    let read = |size: Option<u64>| size.map(|size| (size, place.clone()));
    let grid = dump.as_ref().and_then(|(_, dump)| dump.faulting_grid());
    let odd = dump.as_ref().and_then(|(_, dump)| odd_lane(dump));
    let anything = "no input prints it; any number shows the fault";
    let (blocks, from) = facts.size("blocks", read(grid.map(|grid| grid.grid[0])), (4, anything))?;
    values.push(from);
    let (threads, from) = facts.size("threads", read(grid.map(|grid| grid.block[0])), (256, anything))?;
    values.push(from);
    let (position, from) = facts.size(
        "position",
        odd.map(|(_, position)| (position, format!("{place}: the lane that breaks the pattern of its warp"))),
        (1, anything),
    )?;
    values.push(from);
    let (bad_index, from) = facts.size(
        "bad_index",
        odd.map(|(value, _)| (value, format!("{place}: what that lane holds"))),
        (1 << 30, "no input prints the index; far past any table"),
    )?;
    values.push(from);
    let count =
        blocks.checked_mul(threads).filter(|count| *count <= 1 << 24 && (1..=1024).contains(&threads));
    let Some(count) = count.filter(|count| position < *count && bad_index <= INDEX_LIMIT) else {
        return Err(missing(
            format!(
                "{blocks} blocks of {threads} threads with index {bad_index} at {position} are no launch for this repro"
            ),
            "give --set blocks=, threads=, position= and bad_index=",
        ));
    };
    values.push(Value::new(
        "table",
        format!("{count} float32"),
        Origin::Assumed,
        "as many elements as threads: no input prints the table's size",
    ));
    let mut expect = facts.expect();
    expect.kernel.clone_from(&name);
    expect.code = None;
    let program = Program::CudaGather { kernel: name.unwrap_or_default(), threads, position, bad_index };
    let shows = format!(
        "a gather with one index of {} out of its table: nothing checks it",
        grouped(u128::from(bad_index))
    );
    let labels = [
        "every index inside the table".to_owned(),
        format!("index {} at element {position}", grouped(u128::from(bad_index))),
    ];
    let mut recipe = Recipe::two_sided(shows, expect, program, labels);
    recipe.values = values;
    recipe.sizes.insert("blocks".to_owned(), Size { value: blocks, least: position / threads + 1 });
    recipe.notes.push("The kernel is written anew with the address pattern of the one at fault. Depending on where the driver places the table, the same fault is reported as status 700 or 717: both are this class.".to_owned());
    Ok(Plan { recipe, assets: Vec::new() })
}
