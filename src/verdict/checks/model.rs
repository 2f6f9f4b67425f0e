//! Does a tensor of the model pass 2³¹−1 at the tokens of the failing batch?
//!
//! In: models and token counts of the case. Out: one check: it holds, it fails, or the tokens are unknown and the reading
//! says how many each tensor takes.

use crate::arith::model::ModelExtent;
use crate::case::{Case, ModelAtTokens};
use crate::text::number::grouped;

use super::{Check, CheckStatus};

/// Tensors that a reading names.
const NAMED: usize = 4;

/// The check, where a model is known.
pub(super) fn extents(case: &Case) -> Option<Check> {
    let all = case.models_at_tokens();
    let crossing =
        |found: &&ModelAtTokens| found.extents.iter().any(|extent| extent.fits_int32 == Some(false));
    let found = all.iter().find(crossing).or(all.first())?;
    let (status, reading) = match found.tokens {
        None => (CheckStatus::Unknown, unknown(&found.extents)?),
        Some(tokens) => read(tokens, &found.extents)?,
    };
    Some(Check {
        id: "model-extents",
        title: "Does a tensor of the model pass 2^31-1 at the tokens of the batch?",
        status,
        reading,
        evidence: found.evidence.clone(),
    })
}

fn read(tokens: u64, extents: &[ModelExtent]) -> Option<(CheckStatus, String)> {
    let tokens = grouped(u128::from(tokens));
    let crossing: Vec<&ModelExtent> =
        extents.iter().filter(|extent| extent.fits_int32 == Some(false)).collect();
    if crossing.is_empty() {
        let (name, safe) = first_to_cross(extents)?;
        let reading = format!(
            "no: at {tokens} tokens every projection, the logits and the caches fit; {name} would cross first, past {safe} tokens"
        );
        return Some((CheckStatus::Fails, reading));
    }
    let named: Vec<String> = crossing
        .iter()
        .take(NAMED)
        .map(|extent| {
            let (numel, safe) = (extent.numel.unwrap_or(0), extent.safe_tokens.unwrap_or(0));
            format!("{} with {} elements (safe up to {} tokens)", extent.name, grouped(numel), grouped(safe))
        })
        .collect();
    let more = crossing.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let reading = format!(
        "at {tokens} tokens these pass 2,147,483,647 elements: {}{more}; it matters only in a kernel that forms their flat index in 32 bits",
        named.join(", ")
    );
    Some((CheckStatus::Holds, reading))
}

fn unknown(extents: &[ModelExtent]) -> Option<String> {
    let (name, safe) = first_to_cross(extents)?;
    Some(format!(
        "no line near the failure names a token count: give --set tokens=N; {name} crosses first, past {safe} tokens"
    ))
}

fn first_to_cross(extents: &[ModelExtent]) -> Option<(&'static str, String)> {
    let first = extents.iter().filter_map(|extent| Some((extent.safe_tokens?, extent.name))).min()?;
    Some((first.1, grouped(first.0)))
}
