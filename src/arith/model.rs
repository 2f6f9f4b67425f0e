//! The large tensors of a transformer at a given number of tokens, and the most tokens that each takes.
//!
//! In: a plain [`ModelConfig`] and a token count. Out: one [`ModelExtent`] a tensor, exact. Reading a `config.json`
//! is `read`'s business; wording is `report`'s.

use super::limits::IndexLimit;
use super::shape::Shape;
use crate::error::Result;

/// The sizes that a model's configuration names. `None` where it does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelConfig {
    /// Width of the residual stream.
    pub hidden: Option<u64>,
    /// Width of the MLP (of one expert's, where there is no other).
    pub intermediate: Option<u64>,
    /// Width of one expert's MLP, where it differs.
    pub expert_intermediate: Option<u64>,
    /// Vocabulary.
    pub vocab: Option<u64>,
    /// Attention heads.
    pub heads: Option<u64>,
    /// Key/value heads; as many as attention heads where unnamed.
    pub kv_heads: Option<u64>,
    /// Elements of a head; hidden/heads where unnamed.
    pub head_dim: Option<u64>,
    /// Elements that the cache keeps a token and layer under latent attention, in place of keys and values.
    pub latent_kv: Option<u64>,
    /// Layers.
    pub layers: Option<u64>,
    /// Routed experts.
    pub experts: Option<u64>,
    /// Experts that each token goes to.
    pub experts_per_token: Option<u64>,
    /// Longest sequence that the model was made for.
    pub max_position: Option<u64>,
}

/// One tensor of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelExtent {
    /// Short name: `logits`, `gate_up_proj`.
    pub name: &'static str,
    /// What each dimension counts, beside its size; a token dimension holds the tokens given.
    pub dims: Vec<(&'static str, u64)>,
    /// Number of elements at the tokens given; `None` where no tokens were given and the tensor needs them.
    pub numel: Option<u128>,
    /// Whether the last index fits a signed 32-bit index; `None` with `numel`.
    pub fits_int32: Option<bool>,
    /// Most tokens with which the last index fits; `None` when the tensor doesn't grow with tokens.
    pub safe_tokens: Option<u128>,
    /// How many of the dimensions are tokens: 0, 1 or 2.
    pub token_dims: usize,
}

/// What a factor of a tensor's size is.
enum Factor {
    /// The tokens of the batch.
    Tokens,
    /// A size from the configuration.
    Size(&'static str, Option<u64>),
}

impl ModelConfig {
    /// Elements of a head, named or hidden/heads.
    #[must_use]
    pub fn head_dim(&self) -> Option<u64> {
        self.head_dim.or_else(|| self.hidden?.checked_div(self.heads?))
    }

    /// Every tensor whose sizes are known, in the order of the forward pass. `tokens` counts packed tokens that one
    /// rank sees at once.
    ///
    /// # Errors
    /// `Limit` when an element count reaches 2¹²⁸.
    pub fn extents(&self, tokens: Option<u64>) -> Result<Vec<ModelExtent>> {
        let known = self.tensors().into_iter().filter_map(|(name, factors)| {
            let mut dims = Vec::with_capacity(factors.len());
            let mut token_dims = 0;
            for factor in factors {
                match factor {
                    Factor::Tokens => {
                        token_dims += 1;
                        dims.push(("tokens", tokens.unwrap_or(0)));
                    }
                    Factor::Size(what, size) => dims.push((what, size?)),
                }
            }
            Some(extent(name, dims, token_dims, tokens.is_some()))
        });
        known.collect()
    }

    fn tensors(&self) -> Vec<(&'static str, Vec<Factor>)> {
        use Factor::{Size, Tokens};
        let head_dim = self.head_dim();
        // Latent attention has no keys and values of full width in memory.
        let kv_heads = if self.latent_kv.is_some() { None } else { self.kv_heads.or(self.heads) };
        let times = |a: Option<u64>, b: Option<u64>| a?.checked_mul(b?);
        let q_width = times(self.heads, head_dim);
        let kv_width = times(kv_heads, head_dim);
        let qkv_width = q_width.zip(kv_width).and_then(|(q, kv)| q.checked_add(kv.checked_mul(2)?));
        let hidden = || Size("hidden", self.hidden);
        let routed = || Size("experts per token", self.experts_per_token);
        let expert_width = self.expert_intermediate.or(self.intermediate);
        vec![
            ("hidden_states", vec![Tokens, hidden()]),
            ("q_proj", vec![Tokens, Size("heads x head_dim", q_width)]),
            ("k_proj, v_proj", vec![Tokens, Size("kv_heads x head_dim", kv_width)]),
            ("qkv_proj (fused)", vec![Tokens, Size("q + k + v", qkv_width)]),
            ("attention scores (one sequence, not fused)", vec![Size("heads", self.heads), Tokens, Tokens]),
            ("attention mask (one sequence)", vec![Tokens, Tokens]),
            ("o_proj", vec![Tokens, hidden()]),
            ("gate_proj, up_proj", vec![Tokens, Size("intermediate", self.intermediate)]),
            (
                "gate_up_proj (fused)",
                vec![Tokens, Size("2 x intermediate", times(self.intermediate, Some(2)))],
            ),
            ("down_proj", vec![Tokens, hidden()]),
            ("router logits", vec![Tokens, Size("experts", self.experts)]),
            (
                "expert gate_up (routed)",
                vec![Tokens, routed(), Size("2 x expert width", times(expert_width, Some(2)))],
            ),
            ("expert down (routed)", vec![Tokens, routed(), hidden()]),
            ("logits", vec![Tokens, Size("vocab", self.vocab)]),
            (
                "KV cache, one layer",
                vec![Tokens, Size("k + v", Some(2)), Size("kv_heads", kv_heads), Size("head_dim", head_dim)],
            ),
            (
                "KV cache, all layers",
                vec![
                    Size("layers", self.layers),
                    Tokens,
                    Size("k + v", Some(2)),
                    Size("kv_heads", kv_heads),
                    Size("head_dim", head_dim),
                ],
            ),
            ("latent KV cache, one layer", vec![Tokens, Size("latent", self.latent_kv)]),
            (
                "latent KV cache, all layers",
                vec![Size("layers", self.layers), Tokens, Size("latent", self.latent_kv)],
            ),
            ("embedding weight", vec![Size("vocab", self.vocab), hidden()]),
            (
                "expert weights, one layer",
                vec![
                    Size("experts", self.experts),
                    Size("2 x expert width", times(expert_width, Some(2))),
                    hidden(),
                ],
            ),
        ]
    }
}

fn extent(
    name: &'static str,
    dims: Vec<(&'static str, u64)>,
    token_dims: usize,
    counted: bool,
) -> Result<ModelExtent> {
    let limit = IndexLimit::INT32.max.unsigned_abs();
    let sizes = dims.iter().filter(|(what, _)| *what != "tokens").map(|&(_, size)| size).chain([1]).collect();
    let per_token = Shape::new(sizes)?.numel()?;
    let room = (limit + 1).checked_div(per_token);
    let safe_tokens = match token_dims {
        0 => None,
        1 => room,
        _ => room.map(u128::isqrt),
    };
    let numel = match counted || token_dims == 0 {
        true => Some(Shape::new(dims.iter().map(|&(_, size)| size).collect())?.numel()?),
        false => None,
    };
    let fits_int32 = numel.map(|numel| numel <= limit + 1);
    Ok(ModelExtent { name, dims, numel, fits_int32, safe_tokens, token_dims })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    /// A dense model of 7 billion parameters with a vocabulary of 151,936.
    fn dense() -> ModelConfig {
        ModelConfig {
            hidden: Some(3_584),
            intermediate: Some(18_944),
            vocab: Some(151_936),
            heads: Some(28),
            kv_heads: Some(4),
            layers: Some(28),
            max_position: Some(32_768),
            ..ModelConfig::default()
        }
    }

    fn find<'a>(extents: &'a [ModelExtent], name: &str) -> &'a ModelExtent {
        extents.iter().find(|extent| extent.name == name).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn logits_cross_at_14_134_tokens() {
        let extents = dense().extents(Some(14_135)).unwrap();
        let logits = find(&extents, "logits");
        assert_eq!((logits.safe_tokens, logits.fits_int32), (Some(14_134), Some(false)));
        assert_eq!(logits.numel, Some(14_135 * 151_936));
        assert_eq!(find(&dense().extents(Some(14_134)).unwrap(), "logits").fits_int32, Some(true));
    }

    #[test]
    fn widths_follow_from_heads() {
        let extents = dense().extents(Some(234_624)).unwrap();
        assert_eq!(find(&extents, "q_proj").dims, [("tokens", 234_624), ("heads x head_dim", 3_584)]);
        assert_eq!(find(&extents, "qkv_proj (fused)").dims, [("tokens", 234_624), ("q + k + v", 4_608)]);
        assert_eq!(find(&extents, "gate_proj, up_proj").safe_tokens, Some((1 << 31) / 18_944));
        assert_eq!(find(&extents, "gate_up_proj (fused)").safe_tokens, Some((1 << 31) / 37_888));
        let cache = find(&extents, "KV cache, all layers");
        assert_eq!(cache.numel, Some(28 * 234_624 * 2 * 4 * 128));
    }

    #[test]
    fn scores_grow_with_the_square_of_the_tokens() {
        let extents = dense().extents(None).unwrap();
        let scores = find(&extents, "attention scores (one sequence, not fused)");
        // 28 · 8,757² = 2,147,181,372 fits, 28 · 8,758² = 2,147,671,792 does not.
        assert_eq!((scores.safe_tokens, scores.numel, scores.fits_int32), (Some(8_757), None, None));
    }

    #[test]
    fn tensors_with_unknown_sizes_are_left_out_and_weights_need_no_tokens() {
        let only_vocab = ModelConfig { vocab: Some(151_936), hidden: Some(20_000), ..ModelConfig::default() };
        let extents = only_vocab.extents(None).unwrap();
        assert!(extents.iter().all(|extent| !extent.name.contains("KV")));
        let embedding = find(&extents, "embedding weight");
        assert_eq!((embedding.fits_int32, embedding.safe_tokens), (Some(false), None));
        assert_eq!(ModelConfig::default().extents(Some(1)).unwrap().len(), 1);
    }

    #[test]
    fn hostile_sizes_are_an_error_or_left_out() {
        let wide = ModelConfig { heads: Some(u64::MAX), head_dim: Some(u64::MAX), ..ModelConfig::default() };
        let error = wide.extents(Some(u64::MAX)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        let none = ModelConfig { heads: Some(0), hidden: Some(5), ..ModelConfig::default() };
        assert_eq!(none.head_dim(), None);
        assert!(none.extents(Some(5)).is_ok());
    }

    proptest! {
        /// The safe token count fits and one more does not, whatever the widths.
        #[test]
        fn the_token_edge_is_exact(vocab in 1_u64..1 << 33, heads in 1_u64..1 << 20) {
            let config = ModelConfig { vocab: Some(vocab), heads: Some(heads), ..ModelConfig::default() };
            for extent in config.extents(None).unwrap() {
                let Some(safe) = extent.safe_tokens else { continue };
                let safe = u64::try_from(safe).unwrap();
                let at = |tokens| find(&config.extents(Some(tokens)).unwrap(), extent.name).fits_int32.unwrap();
                prop_assert!(safe == 0 || at(safe), "{}", extent.name);
                prop_assert!(!at(safe + 1), "{}", extent.name);
            }
        }
    }
}
