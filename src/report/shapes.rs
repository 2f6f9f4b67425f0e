//! The overflow arithmetic of a shape as programs read it: `warpfault shapes --format json`, and `shapes` in a report.
//!
//! In: a tensor layout. Out: serialisable views whose keys the contract fixes. The text for people is `shapes_text`'s.
//! Counts are exact integers of up to 128 bits, so write them with a serialiser that streams
//! (`serde_json::to_writer`); `serde_json::to_value` refuses what is past 64 bits.

use schemars::JsonSchema;
use serde::Serialize;

use super::model_extents::ModelView;
use crate::arith::boundary::{self, Boundary, BoundaryShape, Expect, Role};
use crate::arith::padding::{self, Padded};
use crate::arith::{Extent, IndexLimit, LimitCheck, TensorLayout};
use crate::error::Result;
use crate::text::number::grouped;

/// What `warpfault shapes --format json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShapesView {
    /// `warpfault/shapes/1`.
    pub schema: &'static str,
    /// One entry a shape, in the order given.
    pub shapes: Vec<ShapeView>,
    /// The tensors of a model, where one was given.
    pub model: Option<ModelView>,
}

impl ShapesView {
    /// The schema's name and version.
    pub const SCHEMA: &'static str = "warpfault/shapes/1";

    /// The JSON Schema of this view.
    #[must_use]
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Self)
    }
}

/// One shape with its limits and its boundary. Sizes, strides, counts and indices are in elements.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShapeView {
    /// Sizes, outermost first.
    pub dims: Vec<u64>,
    /// Names of the dimensions, where any has one.
    pub names: Option<Vec<Option<String>>>,
    /// Strides, given or row-major.
    pub strides: Vec<i128>,
    /// Elements before the first one.
    pub storage_offset: i128,
    /// Element type, as PyTorch names it.
    pub dtype: Option<&'static str>,
    /// Number of elements.
    pub numel: u128,
    /// Largest flat index; null for an empty tensor.
    pub max_index: Option<i128>,
    /// Bytes from the first to the end of the last element; null without an element type.
    pub bytes: Option<u128>,
    /// How the tensor stands to each limit.
    pub limits: LimitsView,
    /// The swept dimension: its name, or its number from 0 where it has none.
    pub sweep: SweepView,
    /// Number of the swept dimension, from 0.
    pub sweep_dim: usize,
    /// Largest size of the swept dimension whose last index fits int32; null when every size fits, 0 when none does.
    pub safe: Option<u128>,
    /// The same for the element count.
    pub safe_by_count: Option<u128>,
    /// The multiple that the swept size comes in.
    pub granularity: u64,
    /// Largest multiple of the granularity that fits by last index.
    pub safe_multiple: Option<u128>,
    /// Shapes to run, by rising size of the swept dimension.
    pub boundary_shapes: Vec<BoundaryShapeView>,
    /// Paddings that make a tensor cross int32 which fits as it stands.
    pub padded: Vec<PaddedView>,
}

/// A dimension by name or number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SweepView {
    /// Its name.
    Name(String),
    /// Its number, from 0.
    Number(usize),
}

/// A tensor against every limit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LimitsView {
    /// Signed 32-bit index.
    pub int32: LimitView,
    /// Unsigned 32-bit index.
    pub uint32: LimitView,
    /// Signed 32-bit byte offset, counted in elements; null without an element type.
    pub int32_bytes: Option<LimitView>,
    /// An index that is doubled in 32 bits.
    pub elements_2_30: LimitView,
}

/// A tensor against one limit, in elements.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LimitView {
    /// Largest value that fits.
    pub limit: u128,
    /// The last index fits.
    pub fits_by_index: bool,
    /// The element count fits.
    pub fits_by_count: bool,
    /// Elements by which the last index passes; 0 when it fits.
    pub excess_by_index: u128,
    /// Elements by which the count passes; 0 when it fits.
    pub excess_by_count: u128,
    /// Elements by which the last index could still grow; 0 when it passes.
    pub margin_by_index: u128,
    /// Elements by which the count could still grow; 0 when it passes.
    pub margin_by_count: u128,
    /// Excess by count in per cent of the limit, to four decimals; 0 when it fits.
    pub over_percent: f64,
}

/// A shape to run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BoundaryShapeView {
    /// Size of the swept dimension.
    pub value: u64,
    /// All sizes.
    pub dims: Vec<u64>,
    /// Number of elements.
    pub numel: u128,
    /// What a kernel with a 32-bit index must do.
    pub expect: ExpectView,
    /// Why this shape.
    pub why: String,
}

/// What a run must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExpectView {
    /// Every index fits.
    Pass,
    /// The last index wraps.
    Wrap,
}

/// A padding that makes a fitting tensor cross.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PaddedView {
    /// The padded dimension, from 0.
    pub dim: usize,
    /// What its size is rounded up to a multiple of.
    pub block: u64,
    /// Its size after rounding.
    pub size: u64,
    /// Number of elements after rounding.
    pub numel: u128,
}

impl ShapeView {
    /// Works out everything about `layout`, sweeping dimension `sweep` under the int32 limit. `multiple` overrides the
    /// granularity of the reported size.
    ///
    /// # Errors
    /// `Usage` for a dimension that doesn't exist, `Limit` where a number leaves 127 bits.
    pub fn of(layout: &TensorLayout, sweep: usize, multiple: Option<u64>) -> Result<Self> {
        let extent = layout.extent()?;
        let shape = layout.shape();
        let found = boundary::boundary(layout, sweep, IndexLimit::INT32, multiple)?;
        let padded = padding::crossings(layout, sweep, IndexLimit::INT32)?;
        let named = shape.names().iter().any(Option::is_some);
        Ok(Self {
            dims: shape.dims().to_vec(),
            names: named.then(|| shape.names().to_vec()),
            strides: layout.strides().0.clone(),
            storage_offset: layout.storage_offset,
            dtype: layout.dtype.map(crate::arith::DType::name),
            numel: extent.numel,
            max_index: extent.max_index,
            bytes: extent.bytes,
            limits: LimitsView::of(layout, &extent),
            sweep: shape
                .name(sweep)
                .map_or(SweepView::Number(sweep), |name| SweepView::Name(name.to_owned())),
            sweep_dim: sweep,
            safe: found.safe,
            safe_by_count: found.safe_by_count,
            granularity: found.granularity,
            safe_multiple: found.safe_multiple,
            boundary_shapes: found.shapes.iter().map(|shape| boundary_shape(shape, &found)).collect(),
            padded: padded.into_iter().map(PaddedView::from).collect(),
        })
    }

    /// Bytes of an element, where its type is known.
    #[must_use]
    pub fn element_bytes(&self) -> Option<u128> {
        self.dtype.and_then(crate::arith::DType::find).map(|dtype| u128::from(dtype.element_bytes()))
    }

    /// What a person calls dimension `dim`: its name, "rows" and "columns" of a matrix, or its number.
    #[must_use]
    pub fn dim_label(&self, dim: usize) -> String {
        let name = self.names.as_ref().and_then(|names| names.get(dim)?.clone());
        name.unwrap_or_else(|| match (self.dims.len(), dim) {
            (2, 0) => "rows".to_owned(),
            (2, 1) => "columns".to_owned(),
            _ => format!("dimension {dim}"),
        })
    }
}

impl LimitsView {
    /// `layout` against every limit.
    #[must_use]
    pub fn of(layout: &TensorLayout, extent: &Extent) -> Self {
        let bytes = layout.dtype.map(|dtype| IndexLimit::int32_bytes(dtype.element_bytes()));
        Self {
            int32: IndexLimit::INT32.check(extent).into(),
            uint32: IndexLimit::UINT32.check(extent).into(),
            int32_bytes: bytes.map(|limit| limit.check(extent).into()),
            elements_2_30: IndexLimit::ELEMENTS_2_30.check(extent).into(),
        }
    }
}

impl From<LimitCheck> for LimitView {
    fn from(check: LimitCheck) -> Self {
        Self {
            limit: check.limit.max.unsigned_abs(),
            fits_by_index: check.fits_by_index(),
            fits_by_count: check.fits_by_count(),
            excess_by_index: check.excess_by_index,
            excess_by_count: check.excess_by_count,
            margin_by_index: check.margin_by_index,
            margin_by_count: check.margin_by_count,
            over_percent: (check.over_percent() * 10_000.0).round() / 10_000.0,
        }
    }
}

impl From<Padded> for PaddedView {
    fn from(padded: Padded) -> Self {
        Self { dim: padded.dim, block: padded.block, size: padded.size, numel: padded.numel }
    }
}

fn boundary_shape(shape: &BoundaryShape, found: &Boundary) -> BoundaryShapeView {
    let why: Vec<String> = shape.roles.iter().map(|&role| why(role, found, shape)).collect();
    BoundaryShapeView {
        value: shape.value,
        dims: shape.dims.clone(),
        numel: shape.numel,
        expect: match shape.expect {
            Expect::Pass => ExpectView::Pass,
            Expect::Wrap => ExpectView::Wrap,
        },
        why: why.join("; "),
    }
}

fn why(role: Role, found: &Boundary, shape: &BoundaryShape) -> String {
    let block = grouped(u128::from(found.granularity));
    let count_wraps = shape.numel > IndexLimit::INT32.max.unsigned_abs();
    match role {
        Role::LastSafeMultiple => format!("last multiple of {block} that fits"),
        Role::LastSafeByCount => "last whose element count fits as well".to_owned(),
        Role::LastSafe if count_wraps => "last that fits (an int32 count wraps here)".to_owned(),
        Role::LastSafe => "last that fits".to_owned(),
        Role::FirstUnsafe => "first whose last index passes 2^31-1".to_owned(),
        Role::FirstUnsafeMultiple => format!("first multiple of {block} that does not fit"),
        Role::Reported => "the size that was reported".to_owned(),
        Role::WellPast => "well past it: no masked edge hides the wrap".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::{DType, Shape, parse};
    use serde_json::{Value, json};

    fn view(text: &str, dtype: Option<DType>) -> ShapeView {
        let layout = TensorLayout::contiguous(parse::parse_shape(text).unwrap().shape, dtype).unwrap();
        ShapeView::of(&layout, layout.shape().default_sweep(), None).unwrap()
    }

    fn as_json(view: &ShapeView) -> Value {
        serde_json::from_str(&serde_json::to_string(view).unwrap()).unwrap()
    }

    #[test]
    fn the_contract_for_234624_by_9216() {
        let json = as_json(&view("M=234624,N=9216", Some(DType::BFloat16)));
        assert_eq!(json["dims"], json!([234_624, 9_216]));
        assert_eq!(json["names"], json!(["M", "N"]));
        assert_eq!(json["strides"], json!([9_216, 1]));
        assert_eq!(json["dtype"], "bfloat16");
        assert_eq!(json["numel"], 2_162_294_784_u64);
        assert_eq!(json["max_index"], 2_162_294_783_u64);
        assert_eq!(json["bytes"], 4_324_589_568_u64);
        let int32 = json!({
            "limit": 2_147_483_647, "fits_by_index": false, "fits_by_count": false, "excess_by_index": 14_811_136,
            "excess_by_count": 14_811_137, "margin_by_index": 0, "margin_by_count": 0, "over_percent": 0.6897,
        });
        assert_eq!(json["limits"]["int32"], int32);
        assert_eq!(json["limits"]["uint32"]["fits_by_index"], true);
        assert_eq!(json["limits"]["int32_bytes"]["limit"], 1_073_741_823);
        assert_eq!((&json["sweep"], &json["safe"]), (&json!("M"), &json!(233_016)));
        assert_eq!((&json["granularity"], &json["safe_multiple"]), (&json!(128), &json!(232_960)));
        let values: Vec<&Value> =
            json["boundary_shapes"].as_array().unwrap().iter().map(|one| &one["value"]).collect();
        assert_eq!(values, [232_960, 233_016, 233_017, 233_088, 234_624, 333_312]);
        let first = &json["boundary_shapes"][0];
        assert_eq!(
            (&first["expect"], &first["why"]),
            (&json!("pass"), &json!("last multiple of 128 that fits"))
        );
        assert_eq!(json["boundary_shapes"][4]["expect"], "wrap");
    }

    #[test]
    fn the_two_boundaries_stand_side_by_side() {
        let json = as_json(&view("70000x32768", None));
        assert_eq!((&json["safe"], &json["safe_by_count"]), (&json!(65_536), &json!(65_535)));
        assert_eq!(
            (&json["names"], &json["dtype"], &json["bytes"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
        assert_eq!((&json["limits"]["int32_bytes"], &json["sweep"]), (&Value::Null, &json!(0)));
    }

    #[test]
    fn counts_past_64_bits_are_written_exactly() {
        let text = serde_json::to_string(&view("18446744073709551615x16", None)).unwrap();
        assert!(text.contains(r#""numel":295147905179352825840"#), "{text}");
    }

    #[test]
    fn an_empty_tensor_fits_and_has_nothing_to_run() {
        let shape = Shape::new(vec![7, 0]).unwrap();
        let json = as_json(&ShapeView::of(&TensorLayout::contiguous(shape, None).unwrap(), 0, None).unwrap());
        assert_eq!((&json["max_index"], &json["safe"]), (&Value::Null, &Value::Null));
        assert_eq!(json["boundary_shapes"], json!([]));
    }

    #[test]
    fn what_is_written_follows_the_published_schema() {
        let schema = serde_json::to_value(ShapesView::json_schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for text in ["234624x9216", "M=70000,N=32768", "[1600,16,729,72]", "0x5", "3x1099511627776"] {
            let shapes = vec![view(text, Some(DType::Float16))];
            let all = ShapesView { schema: ShapesView::SCHEMA, shapes, model: None };
            let json: Value = serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
            let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{text}");
        }
    }
}
