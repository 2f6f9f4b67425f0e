//! The index range of a shape against 2³¹−1: what was reported, what is safe.
//!
//! In: a report. Out: one line. It leaves which shape matters to the verdict, which lists the likeliest first.

use serde_json::Value;

use super::super::Report;
use super::integer;
use crate::text::number::grouped;

/// A shape below this share of the limit has nothing to show on a line of two thousand million.
const LEAST_SHARE: i128 = 20;

/// A shape on the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Its last index.
    pub index: i128,
    /// Its sizes with their names: `M 234,624 × N 9,216`.
    pub label: String,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberLine {
    /// The largest index that fits a signed 32-bit integer.
    pub limit: i128,
    /// The shape as reported.
    pub reported: Point,
    /// The same shape with the largest size of its varying dimension that fits.
    pub safe: Option<Point>,
    /// Evidence of the shape.
    pub evidence: Vec<String>,
}

impl NumberLine {
    /// The line of the first shape that comes near the limit or passes it.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let limit = i128::from(i32::MAX);
        report
            .shapes
            .iter()
            .filter_map(|shape| read(shape, limit))
            .find(|line| line.reported.index >= limit / LEAST_SHARE)
    }

    /// True where the last index passes the limit.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.reported.index > self.limit
    }
}

fn read(shape: &Value, limit: i128) -> Option<NumberLine> {
    let dims: Vec<i128> = shape.get("dims")?.as_array()?.iter().filter_map(integer).collect();
    let names: Vec<Option<&str>> =
        shape.get("names").and_then(Value::as_array).into_iter().flatten().map(Value::as_str).collect();
    let index = shape.get("max_index").and_then(integer)?;
    let swept = shape.get("sweep_dim").and_then(Value::as_u64).and_then(|dim| usize::try_from(dim).ok());
    let safe = shape.get("safe").and_then(integer).zip(swept).and_then(|(safe, swept)| {
        let mut safe_dims = dims.clone();
        *safe_dims.get_mut(swept)? = safe;
        let stride = shape.get("strides")?.as_array()?.get(swept).and_then(integer)?;
        let fewer = dims.get(swept)?.checked_sub(safe)?;
        let index = index.checked_sub(fewer.checked_mul(stride)?)?;
        (safe > 0).then(|| Point { index, label: label(&safe_dims, &names) })
    });
    let evidence = shape.get("evidence").and_then(Value::as_array).into_iter().flatten();
    Some(NumberLine {
        limit,
        reported: Point { index, label: label(&dims, &names) },
        safe,
        evidence: evidence.filter_map(|id| id.as_str().map(str::to_owned)).collect(),
    })
}

fn label(dims: &[i128], names: &[Option<&str>]) -> String {
    let parts: Vec<String> = dims
        .iter()
        .enumerate()
        .map(|(at, dim)| {
            let size = grouped(dim.unsigned_abs());
            match names.get(at).copied().flatten() {
                Some(name) => format!("{name} {size}"),
                None => size,
            }
        })
        .collect();
    parts.join(" × ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_safe_point_lies_below_the_limit() {
        let shape = json!({
            "dims": [234_624, 9_216], "names": ["M", "N"], "strides": [9_216, 1], "max_index": 2_162_294_783_u64,
            "sweep_dim": 0, "safe": 233_016, "evidence": ["e2"],
        });
        let line = read(&shape, i128::from(i32::MAX)).unwrap();
        assert_eq!(line.reported.label, "M 234,624 × N 9,216");
        let safe = line.safe.clone().unwrap();
        assert_eq!((safe.index, safe.label.as_str()), (2_147_475_455, "M 233,016 × N 9,216"));
        assert!(line.wraps());
        assert_eq!(line.evidence, ["e2"]);
    }

    #[test]
    fn half_a_shape_is_no_line() {
        assert_eq!(read(&json!({"dims": [3]}), 5), None);
        assert_eq!(read(&json!("x"), 5), None);
        let nameless = json!({"dims": [3, 4], "max_index": 11});
        assert_eq!(read(&nameless, 5).unwrap().reported.label, "3 × 4");
    }
}
