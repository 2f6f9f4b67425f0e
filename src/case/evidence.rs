//! One piece of evidence: an id, where it comes from, what it says.
//!
//! In: an event or a derivation. Out: [`Evidence`]. It leaves its weight to the verdict.

use crate::read::event::{Event, Span};

/// Number of a piece of evidence, counted from 1; printed as `e4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EvidenceId(pub u32);

impl std::fmt::Display for EvidenceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// Where evidence comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provenance {
    /// A span of an input.
    Span(Span),
    /// A conclusion from other evidence by arithmetic or matching.
    Derived(Vec<EvidenceId>),
    /// A reply of the probe.
    Probe,
    /// The user's answer.
    Answer,
}

/// Evidence with its provenance.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Its number.
    pub id: EvidenceId,
    /// Where it comes from.
    pub provenance: Provenance,
    /// What it says.
    pub fact: Fact,
}

/// What evidence says.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A producer printed it.
    Event(Box<Event>),
    /// It follows from other evidence.
    Derived(Box<Derived>),
}

/// A derivation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// Name of the check or rule that derived it (`overflow-arithmetic`, `address-distance`, `collective-match`).
    pub rule: &'static str,
    /// One sentence with the numbers.
    pub text: String,
    /// Named values, as text, in order.
    pub fields: Vec<(&'static str, String)>,
}
