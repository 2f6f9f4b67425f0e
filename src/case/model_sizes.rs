//! A model's tensors at a number of tokens.
//!
//! In: model configurations and token counts among the evidence. Out: derived shapes of the projections, the logits and the
//! caches that pass 2³¹−1 elements, each with the evidence that it comes from. Without a token count nothing is derived:
//! which count was in the batch is never guessed. Attention scores and masks are left out, because fused attention never
//! forms them, and weights, because they don't depend on the batch.

use crate::arith::model::ModelExtent;
use crate::read::event::{Data, ModelFacts, ShapeForm, ShapeMention};
use crate::read::shapes::counts_tokens;
use crate::text::number::grouped;

use super::{Case, EvidenceId};

/// Models and token counts that are combined.
const EACH: usize = 4;

/// What a model and a token count say together.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAtTokens {
    /// The model and the token count.
    pub evidence: Vec<EvidenceId>,
    /// Tokens; `None` where no evidence names them.
    pub tokens: Option<u64>,
    /// Tensors that grow with the tokens, in the order of the forward pass.
    pub extents: Vec<ModelExtent>,
}

impl Case {
    /// True where a model's sizes are known.
    #[must_use]
    pub fn has_model(&self) -> bool {
        self.events().any(|(_, event)| matches!(event.data, Data::Model(_)))
    }

    /// Each model with each token count; a model alone where nothing names the tokens.
    #[must_use]
    pub fn models_at_tokens(&self) -> Vec<ModelAtTokens> {
        let models: Vec<(EvidenceId, &ModelFacts)> = self
            .pick(|data| match data {
                Data::Model(facts) => Some(&**facts),
                _ => None,
            })
            .map(|(id, _, facts)| (id, facts))
            .take(EACH)
            .collect();
        if models.is_empty() {
            return Vec::new();
        }
        let tokens = self.token_counts();
        let mut all = Vec::new();
        for (model, facts) in models {
            if tokens.is_empty() {
                all.extend(at(vec![model], facts, None));
            }
            for (id, count) in &tokens {
                all.extend(at(vec![model, *id], facts, Some(*count)));
            }
        }
        all
    }

    /// Derives the shapes of what crosses.
    pub fn derive_model_shapes(&mut self) {
        for found in self.models_at_tokens().into_iter().filter(|found| found.tokens.is_some()) {
            for extent in found.extents.iter().filter(|extent| extent.fits_int32 == Some(false)) {
                let (mention, text) = shape(extent);
                self.derive_shape(found.evidence.clone(), mention, text);
            }
        }
    }

    /// The engineer's word where there is one, else what the log prints near its failure.
    fn token_counts(&self) -> Vec<(EvidenceId, u64)> {
        let count = |data: &Data| match data {
            Data::Value(value) if counts_tokens(&value.name) => value.size(),
            _ => None,
        };
        let answered: Vec<(EvidenceId, u64)> =
            self.answers().filter_map(|(id, event)| Some((id, count(&event.data)?))).take(EACH).collect();
        if !answered.is_empty() {
            return answered;
        }
        self.events().filter_map(|(id, event)| Some((id, count(&event.data)?))).take(EACH).collect()
    }
}

fn at(evidence: Vec<EvidenceId>, facts: &ModelFacts, tokens: Option<u64>) -> Option<ModelAtTokens> {
    // Sizes that 128 bits cannot multiply belong to no model.
    let extents = facts.config.extents(tokens).ok()?;
    let extents = extents.into_iter().filter(|extent| extent.token_dims == 1).collect();
    Some(ModelAtTokens { evidence, tokens, extents })
}

fn shape(extent: &ModelExtent) -> (ShapeMention, String) {
    let parts: Vec<String> =
        extent.dims.iter().map(|(name, size)| format!("{name} {}", grouped(u128::from(*size)))).collect();
    let text = format!(
        "{}: {} = {} elements",
        extent.name,
        parts.join(" × "),
        extent.numel.map_or_else(|| "unknown".to_owned(), grouped)
    );
    let mention = ShapeMention {
        dims: extent.dims.iter().map(|(_, size)| *size).collect(),
        names: extent.dims.iter().map(|(name, _)| (*name).to_owned()).collect(),
        label: Some(extent.name.to_owned()),
        form: ShapeForm::Model,
        ..ShapeMention::default()
    };
    (mention, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::model::ModelConfig;
    use crate::case::{Answer, Fact, Provenance};

    fn model() -> Answer {
        let config = ModelConfig { hidden: Some(3_584), vocab: Some(151_936), ..ModelConfig::default() };
        let facts = Box::new(ModelFacts { config, ..ModelFacts::default() });
        Answer::Model { path: "config.json".to_owned(), facts }
    }

    #[test]
    fn what_crosses_is_derived_from_model_and_tokens() {
        let mut case = Case::default();
        case.take_answers(vec![model()]);
        case.derive_model_shapes();
        assert_eq!(case.evidence().len(), 1, "no tokens, no shapes");
        assert_eq!(case.models_at_tokens().first().map(|found| found.tokens), Some(None));
        case.take_answers(vec![Answer::value("tokens", "20000")]);
        case.derive_model_shapes();
        case.derive_model_shapes();
        let derived: Vec<_> = case
            .evidence()
            .iter()
            .filter_map(|evidence| match (&evidence.provenance, &evidence.fact) {
                (Provenance::Derived(from), Fact::Event(event)) => Some((from.clone(), event.text.clone())),
                _ => None,
            })
            .collect();
        let text = "logits: tokens 20,000 × vocab 151,936 = 3,038,720,000 elements".to_owned();
        assert_eq!(derived, [(vec![EvidenceId(1), EvidenceId(2)], text)]);
    }

    #[test]
    fn what_fits_is_not_derived() {
        let mut case = Case::default();
        case.take_answers(vec![model(), Answer::value("tokens", "14134")]);
        case.derive_model_shapes();
        assert_eq!(case.evidence().len(), 2);
    }
}
