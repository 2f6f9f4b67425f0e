//! The tensors of a model against int32: `shapes --model`, for programs and for people.
//!
//! In: a model's configuration and a token count. Out: a serialisable view and its text. The arithmetic stands in
//! `arith::model`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use crate::arith::model::{ModelConfig, ModelExtent};
use crate::error::Result;
use crate::text::number::grouped;

/// A model's tensors at a token count.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ModelView {
    /// Packed tokens that one rank sees at once; null when none were given.
    pub tokens: Option<u64>,
    /// Longest sequence that the model was made for.
    pub max_position: Option<u64>,
    /// One entry a tensor, in the order of the forward pass.
    pub extents: Vec<ExtentView>,
    /// What the configuration left open, or what was assumed.
    pub notes: Vec<String>,
}

/// One tensor of a model.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ExtentView {
    /// Short name.
    pub name: &'static str,
    /// Sizes; 0 stands for tokens when none were given.
    pub dims: Vec<u64>,
    /// What each size counts.
    pub names: Vec<&'static str>,
    /// Number of elements; null when tokens are needed and none were given.
    pub numel: Option<u128>,
    /// Whether the last index fits a signed 32-bit index; null with `numel`.
    pub fits_int32: Option<bool>,
    /// Most tokens that fit; null when the tensor doesn't grow with tokens.
    pub safe_tokens: Option<u128>,
}

impl ModelView {
    /// Works out every tensor whose sizes `config` names.
    ///
    /// # Errors
    /// `Limit` when an element count reaches 2¹²⁸.
    pub fn of(config: &ModelConfig, tokens: Option<u64>) -> Result<Self> {
        let extents = config.extents(tokens)?.into_iter().map(ExtentView::from).collect();
        Ok(Self { tokens, max_position: config.max_position, extents, notes: Vec::new() })
    }

    /// Adds what reading the configuration left open.
    #[must_use]
    pub fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.notes = notes;
        self
    }

    /// The view as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let crossing: Vec<&ExtentView> =
            self.extents.iter().filter(|one| one.fits_int32 == Some(false)).collect();
        let head = match self.tokens {
            Some(tokens) => format!("Model at {} tokens a rank", grouped(u128::from(tokens))),
            None => "Model (give --tokens N to see which tensors cross)".to_owned(),
        };
        let verdict = match (self.tokens, crossing.len()) {
            (None, 0) => String::new(),
            (Some(_), 0) => ": every tensor below FITS a signed 32-bit index".to_owned(),
            (_, 1) => ": 1 tensor PASSES 2^31-1 elements".to_owned(),
            (_, many) => format!(": {many} tensors PASS 2^31-1 elements"),
        };
        let _ = writeln!(text, "{head}{verdict}\n");
        let _ = writeln!(text, "  {:<44}{:>20}  {:<7}{:>13}", "tensor", "elements", "int32", "safe tokens");
        for extent in &self.extents {
            let numel = extent.numel.map_or_else(|| "-".to_owned(), grouped);
            let fits = extent.fits_int32.map_or("-", |fits| if fits { "fits" } else { "WRAPS" });
            let safe = extent.safe_tokens.map_or_else(|| "-".to_owned(), grouped);
            let _ = writeln!(text, "  {:<44}{numel:>20}  {fits:<7}{safe:>13}", extent.name);
            let _ = writeln!(text, "    {}", extent.product());
        }
        self.closing(&mut text);
        text
    }

    fn closing(&self, text: &mut String) {
        let linear =
            self.extents.iter().filter(|one| one.names.iter().filter(|&&name| name == "tokens").count() == 1);
        let first = linear.filter_map(|one| Some((one.safe_tokens?, one.name))).min();
        if let Some((safe, name)) = first {
            let safe = grouped(safe);
            let _ = writeln!(
                text,
                "\n  Of those that grow with the tokens, {name} crosses first, past {safe} tokens."
            );
        }
        if let Some(longest) = self.max_position {
            let longest = grouped(u128::from(longest));
            let _ = writeln!(text, "  The model was made for sequences of up to {longest} tokens.");
        }
        let _ = writeln!(
            text,
            "  A tensor that crosses fails only in a kernel that forms its flat index in 32 bits;"
        );
        let _ = writeln!(text, "  fused attention never forms the scores or the mask.");
        for note in &self.notes {
            let _ = writeln!(text, "  note: {note}");
        }
    }
}

impl ExtentView {
    /// `234,624 tokens x 9,216 intermediate`.
    fn product(&self) -> String {
        let factor = |(&size, &name): (&u64, &&str)| match (name, size) {
            ("tokens", 0) => "tokens".to_owned(),
            _ => format!("{} {name}", grouped(u128::from(size))),
        };
        let factors: Vec<String> = self.dims.iter().zip(&self.names).map(factor).collect();
        factors.join(" × ")
    }
}

impl From<ModelExtent> for ExtentView {
    fn from(extent: ModelExtent) -> Self {
        let (names, dims) = extent.dims.into_iter().unzip();
        Self {
            name: extent.name,
            dims,
            names,
            numel: extent.numel,
            fits_int32: extent.fits_int32,
            safe_tokens: extent.safe_tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_crosses_and_the_tightest_tensor() {
        let config = ModelConfig { vocab: Some(151_936), hidden: Some(3_584), ..ModelConfig::default() };
        let text = ModelView::of(&config, Some(20_000)).unwrap().text();
        assert!(text.contains("Model at 20,000 tokens a rank: 1 tensor PASSES 2^31-1 elements"), "{text}");
        assert!(text.contains("20,000 tokens × 151,936 vocab"), "{text}");
        let logits = text.lines().find(|line| line.trim_start().starts_with("logits")).unwrap();
        let cells: Vec<&str> = logits.split_whitespace().collect();
        assert_eq!(cells, ["logits", "3,038,720,000", "WRAPS", "14,134"]);
    }

    #[test]
    fn without_tokens_only_the_safe_counts_stand() {
        let config = ModelConfig { vocab: Some(151_936), ..ModelConfig::default() };
        let view = ModelView::of(&config, None).unwrap();
        let text = view.text();
        assert!(text.contains("give --tokens N"), "{text}");
        assert!(text.contains("logits crosses first, past 14,134 tokens"), "{text}");
    }
}
