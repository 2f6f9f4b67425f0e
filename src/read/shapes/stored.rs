//! Tensors that lie in memory for long: weights, caches, optimizer states, data sets and files of them.
//!
//! ```text
//! INFO loading lm_head.weight torch.Size([262144, 16384]) bf16 shard 0/8
//! INFO kv_cache: torch.Size([2, 120000, 16, 8, 128]) dtype=bfloat16
//! ```
//!
//! In: a line and what it calls the tensor. Out: whether that is such a tensor. A program prints their sizes when it starts, whatever
//! it does later, so that such a line says nothing about the launch that fails. Which launch used it is left alone.

use crate::read::event::ShapeMention;
use crate::read::pattern::Pattern;

/// What a tensor is called: the whole of a dotted or underscored part.
static LABEL: Pattern = Pattern::new(
    r"(?i)(?:^|[._])(?:weights?|biases|bias|params?|parameters?|caches?|lm_head|embed_tokens|word_embeddings|wte|wpe|exp_avg(?:_sq)?|state_dict|optim(?:izer)?|dataset|corpus|checkpoint|buffers?)(?:$|[._\d])|(?:^|[._a-z])(?:kv|key|value|k|v|block|page)_?cache",
);
/// What a line is about, where it gives the tensor no name, or one that says nothing.
static LINE: Pattern = Pattern::new(
    r"(?i)\b(?:loading|loaded|checkpoint|state[_ ]dict|shards? \d+(?:/| of )\d+|safetensors|memmap|mmap(?:ed)?|on disk|data ?sets?|optimizer states?|kv[_ ]caches?|[\w.]+\.(?:weight|bias)\b)",
);

/// Whether the tensor of a mention is such a one.
pub(super) fn is_stored(body: &str, mention: &ShapeMention) -> bool {
    match &mention.label {
        Some(label) if LABEL.is_match(label) => true,
        // A word that only says that a shape follows is no name.
        Some(label) if !matches!(label.as_str(), "shape" | "size" | "torch" | "tensor") => false,
        _ if mention.names.is_empty() => LINE.is_match(body),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::event::Data;
    use super::super::super::event::InputId;

    fn stored(line: &str) -> Vec<bool> {
        super::super::read_near(InputId(0), format!("{line}\n").as_bytes(), &[])
            .into_iter()
            .filter_map(|event| match event.data {
                Data::Shape(shape) => Some(shape.stored),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn weights_caches_and_files_are_told_from_operands() {
        for line in [
            "INFO loading lm_head.weight torch.Size([262144, 16384]) bf16 shard 0/8",
            "INFO embed_tokens.weight torch.Size([256000, 12288])",
            "model.layers.3.mlp.weight: torch.Size([65536, 65536])",
            "INFO kv_cache: torch.Size([2, 120000, 16, 8, 128]) dtype=bfloat16",
            "allocated key_cache shape=(120000, 16, 8, 128)",
            "INFO dataset: shape=(40000000, 128) int32 on disk (memmap)",
            "exp_avg_sq=torch.Size([65536, 65536])",
            "loaded checkpoint shard 3 of 8: torch.Size([65536, 65536])",
        ] {
            assert_eq!(stored(line), [true], "{line}");
        }
        for line in [
            "hidden=(262144, 16384)",
            "x.shape=torch.Size([401408, 8192])",
            "fill_rows rows=70000 cols=32768 stride=32768 elements=2293760000",
            "INFO image batch torch.Size([4, 3, 1024, 1024])",
            "logits: torch.Size([64, 4096, 32000])",
            "cached_states=torch.Size([65536, 65536])",
            "[launch] rmsnorm_fwd grid=(2621440,) x.shape=torch.Size([2621440, 1024])",
        ] {
            assert_eq!(stored(line), [false], "{line}");
        }
    }
}
