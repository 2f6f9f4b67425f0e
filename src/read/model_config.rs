//! A model's `config.json`, as Hugging Face writes it, and its relatives (`params.json`, GPT-2 style names).
//!
//! In: the file's bytes. Out: the sizes that the overflow arithmetic needs, and notes on what was left out or
//! assumed. Missing fields are fine; sizes are capped before they are trusted. What they mean is `arith::model`'s.
//!
//! ```text
//! {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "vocab_size": 151936,
//!  "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28, "torch_dtype": "bfloat16"}
//! ```

use serde_json::{Map, Value};

use crate::arith::DType;
use crate::arith::model::ModelConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::read::event::ModelFacts;

/// Largest file that is read; real ones have a few kilobytes, quantisation tables a few hundred.
pub const CONFIG_LIMIT_BYTES: u64 = 16 << 20;

/// Largest size that is believed: no tensor of a real model has 2⁴⁰ entries along one dimension.
const SIZE_LIMIT: u64 = 1 << 40;

/// Objects inside a multimodal configuration that hold the language model.
const NESTED: [&str; 6] =
    ["text_config", "llm_config", "language_config", "language_model", "thinker_config", "decoder"];

/// Names of each size, the usual one first.
const HIDDEN: &[&str] = &["hidden_size", "n_embd", "d_model", "dim", "model_dim"];
const INTERMEDIATE: &[&str] =
    &["intermediate_size", "ffn_hidden_size", "n_inner", "d_ff", "ffn_dim", "hidden_dim"];
const EXPERT_INTERMEDIATE: &[&str] =
    &["moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size"];
const VOCAB: &[&str] = &["vocab_size", "padded_vocab_size", "n_vocab"];
const HEADS: &[&str] = &["num_attention_heads", "n_head", "num_heads", "n_heads", "decoder_attention_heads"];
const KV_HEADS: &[&str] =
    &["num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv", "n_kv_heads"];
const HEAD_DIM: &[&str] = &["head_dim", "kv_channels", "attention_head_size", "d_kv"];
const LAYERS: &[&str] = &["num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers"];
const EXPERTS: &[&str] = &["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"];
const PER_TOKEN: &[&str] =
    &["num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k"];
const POSITIONS: &[&str] = &[
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_sequence_length",
];

/// What a configuration said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundConfig {
    /// The sizes.
    pub config: ModelConfig,
    /// `model_type`, at most 100 characters; not yet escaped.
    pub model_type: Option<String>,
    /// `torch_dtype` or `dtype`.
    pub dtype: Option<DType>,
    /// What was left out, or assumed, and why.
    pub notes: Vec<String>,
}

impl FoundConfig {
    /// The sizes as an event carries them.
    #[must_use]
    pub fn facts(&self) -> ModelFacts {
        ModelFacts {
            model_type: self.model_type.clone(),
            config: self.config,
            dtype: self.dtype.map(|dtype| dtype.name().to_owned()),
        }
    }
}

/// `model qwen2: hidden 3584, intermediate 18944, vocabulary 151936, 28 heads, 4 key/value heads, 28 layers`
#[must_use]
pub fn sentence(facts: &ModelFacts) -> String {
    let config = &facts.config;
    let sizes = [
        ("hidden", config.hidden),
        ("intermediate", config.intermediate),
        ("expert width", config.expert_intermediate),
        ("vocabulary", config.vocab),
        ("heads", config.heads),
        ("key/value heads", config.kv_heads),
        ("head size", config.head_dim()),
        ("layers", config.layers),
        ("experts", config.experts),
    ];
    let parts: Vec<String> =
        sizes.into_iter().filter_map(|(name, size)| size.map(|size| format!("{name} {size}"))).collect();
    let kind = facts.model_type.as_deref().map(|kind| format!(" {kind}")).unwrap_or_default();
    format!("model{kind}: {}", parts.join(", "))
}

/// Reads a configuration.
///
/// # Errors
/// `Limit` for a file past [`CONFIG_LIMIT_BYTES`], `Format` for one that is no JSON object or names no size at all.
pub fn read(bytes: &[u8]) -> Result<FoundConfig> {
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > CONFIG_LIMIT_BYTES {
        return Err(Error::new(
            ErrorKind::Limit,
            "more than 16 MiB; a model's config.json has a few kilobytes",
        ));
    }
    let value: Value = serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
        .map_err(|error| Error::new(ErrorKind::Format, "no JSON").because(error))?;
    let Value::Object(top) = value else {
        return Err(Error::new(ErrorKind::Format, "no JSON object; expected a model's config.json"));
    };
    let mut reader = Reader { objects: objects(&top), notes: Vec::new() };
    let config = reader.config();
    if config == ModelConfig::default() {
        return Err(Error::new(ErrorKind::Format, "no size of a model in it")
            .hint("expected keys such as hidden_size, intermediate_size, vocab_size, num_attention_heads"));
    }
    let model_type = reader.text("model_type").map(|name| name.chars().take(100).collect());
    let dtype = reader.text("torch_dtype").or_else(|| reader.text("dtype")).and_then(DType::find);
    Ok(FoundConfig { config, model_type, dtype, notes: reader.notes })
}

/// The objects to look in: the language model's own first, the whole file last.
fn objects(top: &Map<String, Value>) -> Vec<&Map<String, Value>> {
    let mut objects = vec![top];
    // Qwen-Omni nests twice (thinker_config.text_config); nobody nests deeper.
    for _ in 0..3 {
        let Some(inner) = objects.last().and_then(|last| nested(last)) else { break };
        objects.push(inner);
    }
    objects.reverse();
    objects
}

fn nested(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    NESTED.iter().find_map(|&name| object.get(name)?.as_object())
}

struct Reader<'a> {
    objects: Vec<&'a Map<String, Value>>,
    notes: Vec<String>,
}

impl<'a> Reader<'a> {
    fn config(&mut self) -> ModelConfig {
        let hidden = self.size(HIDDEN);
        let intermediate = self.size(INTERMEDIATE).or_else(|| self.gpt2_intermediate(hidden));
        // DeepSeek's latent attention: a query head is the sum of two parts, the cache holds one latent vector.
        let rope = self.size(&["qk_rope_head_dim"]);
        let latent_head =
            self.size(&["qk_nope_head_dim"]).zip(rope).and_then(|(nope, rope)| nope.checked_add(rope));
        let latent = self.size(&["kv_lora_rank"]).zip(rope).and_then(|(rank, rope)| rank.checked_add(rope));
        ModelConfig {
            hidden,
            intermediate,
            expert_intermediate: self.size(EXPERT_INTERMEDIATE),
            vocab: self.size(VOCAB),
            heads: self.size(HEADS),
            kv_heads: self.size(KV_HEADS),
            head_dim: latent_head.or_else(|| self.size(HEAD_DIM)),
            latent_kv: latent,
            layers: self.size(LAYERS),
            experts: self.size(EXPERTS),
            experts_per_token: self.size(PER_TOKEN),
            max_position: self.size(POSITIONS),
        }
    }

    /// GPT-2 leaves `n_inner` null and means four times the width.
    fn gpt2_intermediate(&mut self, hidden: Option<u64>) -> Option<u64> {
        let null = self.objects.iter().any(|object| object.get("n_inner").is_some_and(Value::is_null));
        let width = hidden.filter(|_| null)?.checked_mul(4)?;
        self.notes.push(format!("n_inner is null; 4 × n_embd = {width} is assumed"));
        Some(width)
    }

    /// The first usable size under any of `names`.
    fn size(&mut self, names: &[&str]) -> Option<u64> {
        for object in self.objects.clone() {
            for &name in names {
                match object.get(name) {
                    None | Some(Value::Null) => {}
                    Some(value) => match value.as_u64().filter(|&size| size > 0 && size <= SIZE_LIMIT) {
                        Some(size) => return Some(size),
                        None => self.refuse(name, value),
                    },
                }
            }
        }
        None
    }

    fn refuse(&mut self, name: &str, value: &Value) {
        let kind = match value {
            Value::Number(number) if number.as_u64() == Some(0) => "0".to_owned(),
            Value::Number(number) => number.to_string().chars().take(40).collect(),
            Value::Array(_) => "a list (one entry a layer?)".to_owned(),
            Value::Object(_) => "an object".to_owned(),
            Value::String(_) => "a text".to_owned(),
            Value::Bool(_) | Value::Null => "no number".to_owned(),
        };
        self.notes
            .push(format!("{name} is {kind}; expected a whole number from 1 to 2^40, so it is left out"));
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.objects.iter().find_map(|object| object.get(name)?.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str) -> FoundConfig {
        read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_plain_configuration() {
        let found = found(
            r#"{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "vocab_size": 151936,
            "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28, "torch_dtype": "bfloat16",
            "max_position_embeddings": 32768}"#,
        );
        let want = ModelConfig {
            hidden: Some(3_584),
            intermediate: Some(18_944),
            vocab: Some(151_936),
            heads: Some(28),
            kv_heads: Some(4),
            layers: Some(28),
            max_position: Some(32_768),
            ..ModelConfig::default()
        };
        assert_eq!((found.config, found.dtype), (want, Some(DType::BFloat16)));
        assert_eq!((found.model_type.as_deref(), found.notes.len()), (Some("qwen2"), 0));
        let want = "model qwen2: hidden 3584, intermediate 18944, vocabulary 151936, heads 28, key/value heads 4, head size \
                    128, layers 28";
        assert_eq!(sentence(&found.facts()), want);
    }

    #[test]
    fn the_language_model_inside_a_multimodal_one_wins() {
        let nested = found(
            r#"{"hidden_size": 1, "vocab_size": 7, "vision_config": {"hidden_size": 2},
            "thinker_config": {"text_config": {"hidden_size": 4096, "moe_intermediate_size": 1536, "num_experts": 128,
            "num_experts_per_tok": 8}}}"#,
        );
        let config = nested.config;
        assert_eq!((config.hidden, config.vocab, config.experts), (Some(4_096), Some(7), Some(128)));
        assert_eq!((config.expert_intermediate, config.experts_per_token), (Some(1_536), Some(8)));
    }

    #[test]
    fn other_families_use_other_names() {
        let gpt2 =
            found(r#"{"n_embd": 768, "n_head": 12, "n_layer": 12, "n_inner": null, "vocab_size": 50257}"#);
        assert_eq!((gpt2.config.hidden, gpt2.config.intermediate), (Some(768), Some(3_072)));
        assert_eq!(gpt2.notes, ["n_inner is null; 4 × n_embd = 3072 is assumed"]);
        let latent = found(
            r#"{"hidden_size": 7168, "num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512,
            "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}"#,
        );
        assert_eq!((latent.config.head_dim, latent.config.latent_kv), (Some(192), Some(576)));
    }

    #[test]
    fn hostile_sizes_are_left_out_with_a_note() {
        let found = found(
            r#"{"hidden_size": -5, "vocab_size": 18446744073709551615, "intermediate_size": 1e30,
            "num_attention_heads": "28", "num_key_value_heads": [1, 2], "num_hidden_layers": 0, "head_dim": 128.5,
            "num_experts": 99999999999999999999999999, "max_position_embeddings": 4096}"#,
        );
        let want = ModelConfig { max_position: Some(4_096), ..ModelConfig::default() };
        assert_eq!(found.config, want);
        assert_eq!(found.notes.len(), 8);
        assert!(
            found.notes.iter().any(|note| note.starts_with("vocab_size is 18446744073709551615; expected"))
        );
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        for text in ["", "{", "[]", "{}", "null", r#"{"a": 1}"#, deep.as_str()] {
            assert_eq!(read(text.as_bytes()).unwrap_err().kind(), ErrorKind::Format);
        }
        let large = vec![b' '; usize::try_from(CONFIG_LIMIT_BYTES).unwrap() + 1];
        assert_eq!(read(&large).unwrap_err().kind(), ErrorKind::Limit);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
