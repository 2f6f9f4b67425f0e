//! What maintainers ask for before they look at a crash, and whether the report has it.
//!
//! In: a report. Out: [`environment`]: versions and settings from the evidence, and [`asked`]: one row a question, with the
//! evidence that answers it or how to get the answer. Which questions: those that threads about such crashes ask again and
//! again. It leaves layout to the formats.

mod questions;

use serde_json::Value;

use super::Report;
use super::model::{Evidence, EvidenceKind};

pub use questions::asked;

/// Different values that one name lists.
const VALUE_LIMIT: usize = 4;

/// Names that are listed.
const NAME_LIMIT: usize = 60;

/// A version, a piece of hardware or a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Its name as the evidence has it (`torch`, `driver`, `NCCL_DEBUG`).
    pub name: String,
    /// Its values, each with the id of the evidence; more than one where ranks or lines differ.
    pub values: Vec<(String, String)>,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// What is asked for.
    pub what: &'static str,
    /// The answer in short; `None` where it is missing.
    pub answer: Option<String>,
    /// Ids of the evidence that answers.
    pub evidence: Vec<String>,
    /// How to get it where it is missing.
    pub how: &'static str,
}

/// Hardware and versions first, in the order in which people read them, then settings by name.
const ORDER: &[&str] = &[
    "gpu",
    "compute_capability",
    "driver",
    "driver_cuda",
    "cuda",
    "torch",
    "torch_cuda",
    "torch_rocm",
    "nccl",
    "triton",
    "jax",
    "xla",
    "vllm",
    "sglang",
    "deepspeed",
    "transformers",
    "flash_attn",
    "flashinfer",
    "bitsandbytes",
    "xformers",
    "python",
];

/// Versions, hardware and settings, each name once.
#[must_use]
pub fn environment(report: &Report) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for evidence in of_kind(report, EvidenceKind::Environment) {
        let [Some(name), Some(value)] = ["name", "value"].map(|key| text(evidence, key)) else { continue };
        let full = facts.len() >= NAME_LIMIT;
        if let Some(fact) = facts.iter_mut().find(|fact| fact.name == name) {
            let listed = fact.values.iter().any(|(known, _)| known == value);
            if !listed && fact.values.len() < VALUE_LIMIT {
                fact.values.push((value.to_owned(), evidence.id.clone()));
            }
        } else if !full {
            let values = vec![(value.to_owned(), evidence.id.clone())];
            facts.push(Fact { name: name.to_owned(), values });
        }
    }
    let place = |fact: &Fact| ORDER.iter().position(|name| *name == fact.name).unwrap_or(ORDER.len());
    let is_setting = |fact: &Fact| fact.name.chars().any(|c| c.is_ascii_uppercase());
    facts.sort_by(|a, b| (place(a), is_setting(a), &a.name).cmp(&(place(b), is_setting(b), &b.name)));
    facts
}

fn of_kind(report: &Report, kind: EvidenceKind) -> impl Iterator<Item = &Evidence> {
    report.evidence.iter().filter(move |evidence| evidence.kind == kind)
}

fn text<'r>(evidence: &'r Evidence, key: &str) -> Option<&'r str> {
    evidence.fields.get(key).and_then(Value::as_str)
}
