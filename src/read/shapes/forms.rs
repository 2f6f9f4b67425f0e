//! Shapes that are printed as such: `torch.Size([…])`, `shape=(…)`, `hidden=(…, …)`, `bf16[…]`, `<<<…>>>`.
//!
//! In: one line. Out: mentions with label and type where the line gives them. Named single values are `named`'s.

use std::sync::LazyLock;

use regex::Regex;

use super::super::event::{ShapeForm, ShapeMention};

/// A pattern that is part of the program; one that doesn't compile finds nothing, and a test says so.
fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

static TORCH_SIZE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(r"(?:(?P<label>[A-Za-z_][\w.]*)\s*[=:]\s*)?torch\.Size\(\[(?P<dims>[\d,\s_]*)\]\)")
});
static KEYED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:(?P<label>[A-Za-z_][\w]*)[ .:=])?\b(?:shape|sizes?|dims?|dimensions)\s*(?:is|of|=|:)?\s*[\(\[\{](?P<dims>\d[\d,\sx_]*)[\)\]\}]",
    )
});
static TUPLE: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"\b(?P<label>[A-Za-z_]\w*)\s*=\s*[\(\[](?P<dims>\d+(?:\s*,\s*\d+)+,?)[\)\]]"));
static TYPED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"\b(?P<dtype>f16|bf16|f32|f64|f8e4m3fn?|f8e5m2|[su]8|[su]16|[su]32|[su]64|i8|i16|i32|i64|pred)\[(?P<dims>\d+(?:,\d+)*)\]",
    )
});
static LAUNCH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(r"<<<\s*\((?P<grid>\d+\s*,\s*\d+\s*,\s*\d+)\)\s*,\s*\((?P<block>\d+\s*,\s*\d+\s*,\s*\d+)\)")
});
static DTYPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r"\b(?:dtype\s*[=:]\s*)?(?:torch\.)?(bfloat16|float16|float32|float64|half|int64|int32|int16|int8|uint8|float8_e4m3fn|float8_e5m2|fp16|bf16|fp32)\b",
    )
});

/// Names of settings that are tuples and no shapes.
const NO_SHAPES: &[&str] = &[
    "betas",
    "version",
    "range",
    "block",
    "blockidx",
    "threadidx",
    "thread",
    "ranks",
    "devices",
    "device_ids",
    "gpus",
    "seeds",
    "stages",
    "compute_capability",
    "capability",
    "grid",
    "lr",
    "window",
    "mesh",
    "ports",
    "missing_ranks",
    "kernel_size",
    "padding",
    "dilation",
];

/// Every shape on the line.
pub fn shapes(body: &str) -> Vec<ShapeMention> {
    let mut found: Vec<ShapeMention> = Vec::new();
    let mut add = |mention: ShapeMention| {
        if !mention.dims.is_empty() && !found.iter().any(|known| known.dims == mention.dims) {
            found.push(mention);
        }
    };
    for pattern in [&*TORCH_SIZE, &*KEYED, &*TUPLE].into_iter().flatten() {
        for hit in pattern.captures_iter(body).take(32) {
            let label = hit.name("label").map(|label| label.as_str().to_owned());
            let is_setting = label
                .as_deref()
                .is_some_and(|label| NO_SHAPES.contains(&label.to_ascii_lowercase().as_str()));
            let Some(dims) = hit.name("dims").and_then(|dims| numbers(dims.as_str())) else { continue };
            if !is_setting && !dims.is_empty() {
                add(ShapeMention { dims, label, form: ShapeForm::Shape, ..ShapeMention::default() });
            }
        }
    }
    for hit in TYPED.iter().flat_map(|pattern| pattern.captures_iter(body)).take(32) {
        let dtype = hit.name("dtype").map(|dtype| xla_type(dtype.as_str()).to_owned());
        if let Some(dims) = hit.name("dims").and_then(|dims| numbers(dims.as_str())) {
            add(ShapeMention { dims, dtype, form: ShapeForm::Shape, ..ShapeMention::default() });
        }
    }
    for hit in LAUNCH.iter().flat_map(|pattern| pattern.captures_iter(body)).take(4) {
        for name in ["grid", "block"] {
            if let Some(dims) = hit.name(name).and_then(|dims| numbers(dims.as_str())) {
                add(ShapeMention {
                    dims,
                    label: Some(name.to_owned()),
                    form: ShapeForm::Launch,
                    ..ShapeMention::default()
                });
            }
        }
    }
    found
}

/// The element type that the line names, if it names just one.
pub fn dtype(body: &str) -> Option<String> {
    let mut names = DTYPE
        .iter()
        .flat_map(|pattern| pattern.captures_iter(body))
        .filter_map(|hit| hit.get(1))
        .map(|name| name.as_str());
    let first = names.next()?;
    names.all(|other| other == first).then(|| first.to_owned())
}

fn xla_type(short: &str) -> &str {
    match short {
        "f16" => "float16",
        "bf16" => "bfloat16",
        "f32" => "float32",
        "f64" => "float64",
        "s8" | "i8" => "int8",
        "s32" | "i32" => "int32",
        "s64" | "i64" => "int64",
        "u8" | "pred" => "uint8",
        other => other,
    }
}

/// `234624, 9_216` as numbers; none where one is no u64.
fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split([',', 'x'])
        .map(|part| part.trim().replace('_', ""))
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in [&*TORCH_SIZE, &*KEYED, &*TUPLE, &*TYPED, &*LAUNCH, &*DTYPE] {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn labels_and_types() {
        let found = shapes("feat=torch.Size([349459, 64]),w=torch.Size([64, 27, 64])");
        assert_eq!(found[0].label.as_deref(), Some("feat"));
        assert_eq!(found[1].dims, [64, 27, 64]);
        assert_eq!(shapes("fusion: bf16[234624,9216]{1,0}")[0].dtype.as_deref(), Some("bfloat16"));
        assert_eq!(shapes("gather<<<(4,1,1),(256,1,1)>>>")[0].dims, [4, 1, 1]);
        assert!(shapes("Adam(betas=(0, 999), lr=1)").is_empty());
    }
}
