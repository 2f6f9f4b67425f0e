//! The pictures that go with a cause: which there are numbers for.
//!
//! In: a report. Out: lines. Numbers that the report doesn't have are not made up here; where the cause is a wrapped index,
//! the arithmetic room says which index an address came from.

use ratatui::text::Line;
use serde_json::Value;

use crate::arith::distance::{Access, Allocation, Context, Reading, read_access};
use crate::report::Report;
use crate::report::model::{Evidence, EvidenceKind};
use crate::tables::cause::CauseKind;
use crate::tui::model::Model;

use super::memory_map::{MemoryMap, WrappedIndex};
use super::number_line::{NumberLine, Point};
use super::{memory_map, number_line};

/// Columns of the widest picture.
const WIDEST: usize = 100;

/// The number line, if a shape has come far enough to be worth one; with a gap before it.
pub fn number_line(model: &Model, report: &Report, width: usize) -> Option<Vec<Line<'static>>> {
    let picture = number_line_of(report, model.theme.glyphs.int32_max)?;
    framed(number_line::lines(&picture, width.min(WIDEST), &model.theme))
}

/// The map of memory, if an access and its nearest allocation are known; with a gap before it.
pub fn memory_map(model: &Model, report: &Report, width: usize) -> Option<Vec<Line<'static>>> {
    framed(memory_map::lines(&memory_map_of(report)?, width.min(WIDEST), &model.theme))
}

fn framed(mut lines: Vec<Line<'static>>) -> Option<Vec<Line<'static>>> {
    if lines.is_empty() {
        return None;
    }
    lines.insert(0, Line::default());
    Some(lines)
}

/// The number line of the shape that goes furthest.
fn number_line_of(report: &Report, limit_name: &str) -> Option<NumberLine> {
    let shape = report.shapes.iter().filter_map(shape).max_by_key(|shape| shape.last)?;
    let limit = i128::from(i32::MAX);
    // A tensor of a few thousand elements has nothing to show on a line of two milliards.
    if shape.last < limit / 20 {
        return None;
    }
    Some(NumberLine {
        limit,
        limit_name: limit_name.to_owned(),
        reported: Point { index: shape.last, label: label(&shape.dims) },
        safe: shape.safe,
        wraps: is_wrap(report),
    })
}

fn is_wrap(report: &Report) -> bool {
    report.verdict.cause.as_ref().is_some_and(|cause| cause.kind == CauseKind::Int32Overflow)
}

struct Shape {
    dims: Vec<i128>,
    last: i128,
    safe: Option<Point>,
}

fn shape(value: &Value) -> Option<Shape> {
    let dims: Vec<i128> = value.get("dims")?.as_array()?.iter().filter_map(number).collect();
    let numel = value.get("numel").and_then(number).or_else(|| product(&dims))?;
    let last = value.get("max_index").and_then(number).unwrap_or(numel - 1);
    let safe = value.get("safe").and_then(number).and_then(|safe| {
        let swept = swept(value, &dims)?;
        let mut safe_dims = dims.clone();
        *safe_dims.get_mut(swept)? = safe;
        let index = product(&safe_dims)? - 1;
        Some(Point { index, label: label(&safe_dims) })
    });
    Some(Shape { dims, last, safe })
}

/// The dimension that `safe` is a value of: named by `sweep`, else the first.
fn swept(value: &Value, dims: &[i128]) -> Option<usize> {
    let named = value.get("sweep").and_then(|sweep| match sweep {
        Value::String(name) => {
            let names = value.get("names")?.as_array()?;
            names.iter().position(|other| other.as_str() == Some(name))
        }
        Value::Number(index) => usize::try_from(index.as_u64()?).ok(),
        _ => None,
    });
    named.or((!dims.is_empty()).then_some(0))
}

fn product(dims: &[i128]) -> Option<i128> {
    dims.iter().try_fold(1_i128, |all, dim| all.checked_mul(*dim))
}

fn label(dims: &[i128]) -> String {
    dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// Integers past 64 bits come as text.
fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => number.as_i64().map(i128::from).or(number.as_u64().map(i128::from)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// The map of the first access whose nearest allocation is known.
fn memory_map_of(report: &Report) -> Option<MemoryMap> {
    report.evidence.iter().filter(|evidence| evidence.kind == EvidenceKind::Sanitizer).find_map(|evidence| {
        let nearest = evidence.fields.get("nearest")?;
        let base = address(nearest.get("base")?)?;
        let bytes = nearest.get("size_bytes")?.as_u64()?;
        let at = address(evidence.fields.get("address")?)?;
        let size = evidence.fields.get("size_bytes").and_then(Value::as_u64).unwrap_or(0);
        let access = evidence.fields.get("access").and_then(Value::as_str).unwrap_or("access");
        let wrapped =
            is_wrap(report).then(|| wrapped(at, size, Allocation { base, bytes }, evidence)).flatten();
        Some(MemoryMap { base, bytes, address: at, access: format!("{access} of {size} bytes"), wrapped })
    })
}

fn wrapped(address: u64, bytes: u64, nearest: Allocation, evidence: &Evidence) -> Option<WrappedIndex> {
    let context = Context {
        block: triple(evidence.fields.get("block")),
        thread: triple(evidence.fields.get("thread")),
        ..Context::default()
    };
    let access = Access { address, bytes, reported_misaligned: false };
    match read_access(access, Some(nearest), &context) {
        Reading::Wrapped(found) => {
            Some(WrappedIndex { index: found.recovered_index, element_bytes: found.element_bytes })
        }
        _ => None,
    }
}

fn triple(value: Option<&Value>) -> Option<[u64; 3]> {
    match value?.as_array()?.as_slice() {
        [x, y, z] => Some([x.as_u64()?, y.as_u64()?, z.as_u64()?]),
        _ => None,
    }
}

fn address(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_shape_of_the_report_becomes_a_line() {
        let value = json!({
            "dims": [234_624, 9216], "names": ["M", "N"], "numel": 2_162_294_784_u64, "max_index": 2_162_294_783_u64,
            "sweep": "M", "safe": 233_016,
        });
        let shape = shape(&value).unwrap();
        assert_eq!(shape.last, 2_162_294_783);
        assert_eq!(shape.safe, Some(Point { index: 2_147_475_455, label: "233016x9216".to_owned() }));
    }

    #[test]
    fn a_shape_with_half_its_keys_still_counts() {
        let shape = shape(&json!({"dims": [70_000, 32_768]})).unwrap();
        assert_eq!((shape.last, shape.safe), (2_293_759_999, None));
        assert!(super::shape(&json!({"numel": 4})).is_none());
    }
}
