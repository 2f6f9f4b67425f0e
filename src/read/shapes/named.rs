//! Sizes printed one by one under names: `rows=70000 cols=32768`, `M=234624 intermediate_size=9216`.
//!
//! In: one line. Out: a shape for each pair of a row-like and a column-like name on it. A pair is an assumption: the
//! mention says so by its form. Values without such names are left alone.

use std::sync::LazyLock;

use regex::Regex;

use super::super::event::{NamedValue, ShapeForm, ShapeMention};

static PAIR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s,(\[{;|])(?P<name>[A-Za-z][A-Za-z0-9_.]*)\s*[=:]\s*(?P<value>\d[\d_]*(?:,\d{3})*)(?:$|[\s,)\]};|])").ok()
});

/// Names of a number of rows, in lower case unless a single capital.
const ROWS: &[&str] = &[
    "M",
    "rows",
    "n_rows",
    "num_rows",
    "nrows",
    "tokens",
    "num_tokens",
    "n_tokens",
    "total_tokens",
    "packed_tokens",
    "num_input_tokens",
    "total_num_scheduled_tokens",
    "num_scheduled_tokens",
    "seq_len",
    "seqlen",
    "sequence_length",
    "total_seq_len",
    "max_seqlen",
    "T",
];
/// Names of a number of tokens that a batch holds; a limit of a configuration (`max_num_batched_tokens`) is none.
const TOKENS: &[&str] = &[
    "tokens",
    "num_tokens",
    "n_tokens",
    "total_tokens",
    "packed_tokens",
    "num_input_tokens",
    "total_num_scheduled_tokens",
    "num_scheduled_tokens",
    "num_prefill_tokens",
    "extend_num_tokens",
    "new-token",
];
/// Names of a row's length.
const COLUMNS: &[&str] = &[
    "N",
    "cols",
    "columns",
    "n_cols",
    "num_cols",
    "ncols",
    "hidden_size",
    "hidden_dim",
    "intermediate_size",
    "ffn_dim",
    "d_model",
    "d_ff",
    "width",
    "vocab",
    "vocab_size",
    "inner_dim",
    "out_features",
    "n_columns",
];
/// Names of the distance between rows.
const STRIDES: &[&str] = &["stride", "row_stride", "stride_row", "ld", "lda", "ldc", "stride_m"];

/// Shapes that the names on the line make.
pub fn shapes(body: &str) -> Vec<ShapeMention> {
    let pairs = pairs(body);
    let of = |names: &[&str]| -> Vec<(String, u64)> {
        pairs.iter().filter(|(name, _)| is_one_of(name, names)).take(4).cloned().collect()
    };
    let stride = of(STRIDES).first().map(|(_, value)| *value);
    let mut found = Vec::new();
    let columns = of(COLUMNS);
    for (row_name, rows) in of(ROWS) {
        for (column_name, column_count) in &columns {
            let strides = stride
                .and_then(|stride| i64::try_from(stride).ok())
                .map(|stride| vec![stride, 1])
                .unwrap_or_default();
            found.push(ShapeMention {
                dims: vec![rows, *column_count],
                names: vec![row_name.clone(), column_name.clone()],
                strides,
                form: ShapeForm::Named,
                ..ShapeMention::default()
            });
        }
        // A stride says how long a row is in memory, even where nobody names the columns.
        if let (true, Some(stride)) = (columns.is_empty(), stride) {
            found.push(ShapeMention {
                dims: vec![rows, stride],
                names: vec![row_name.clone(), "stride".to_owned()],
                form: ShapeForm::Named,
                ..ShapeMention::default()
            });
        }
    }
    found
}

/// True for a name that counts tokens.
pub fn counts_tokens(name: &str) -> bool {
    is_one_of(name, TOKENS)
}

/// Token counts of a line.
pub fn tokens(body: &str) -> Vec<NamedValue> {
    // SGLang writes `#new-token: 8192`.
    let body = body.replace("#new-token", "new_token");
    let named = |name: String| if name == "new_token" { "new-token".to_owned() } else { name };
    pairs(&body)
        .into_iter()
        .map(|(name, value)| (named(name), value))
        .filter(|(name, value)| counts_tokens(name) && *value > 0)
        .map(|(name, value)| NamedValue { name, value: value.to_string() })
        .collect()
}

fn pairs(body: &str) -> Vec<(String, u64)> {
    let Some(pattern) = &*PAIR else { return Vec::new() };
    let mut found = Vec::new();
    let mut at = 0;
    // Neighbours share a separator, so the search goes on at the end of the value.
    while let Some(hit) = body.get(at..).and_then(|rest| pattern.captures(rest)) {
        let (Some(name), Some(value)) = (hit.name("name"), hit.name("value")) else { break };
        if let Ok(number) = value.as_str().replace(['_', ','], "").parse() {
            found.push((name.as_str().to_owned(), number));
        }
        at += value.end();
        if found.len() >= 32 {
            break;
        }
    }
    found
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    names.iter().any(|known| if known.len() == 1 { *known == last } else { known.eq_ignore_ascii_case(last) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_compiles() {
        assert!(PAIR.is_some());
    }

    #[test]
    fn a_stride_is_kept() {
        let found = shapes("fill_rows rows=70000 cols=32768 stride=32768 elements=2293760000");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].dims.as_slice(), found[0].strides.as_slice()),
            (&[70_000, 32_768][..], &[32_768, 1][..])
        );
    }

    #[test]
    fn thousands_separators() {
        assert_eq!(pairs("M=234,624, N=9216"), [("M".to_owned(), 234_624), ("N".to_owned(), 9216)]);
    }
}
