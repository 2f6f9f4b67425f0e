//! Every playbook at hand: the shipped ones, overlaid by a team's own.
//!
//! In: playbook files as text. Out: [`Library`]: playbooks by id, which of them serve a verdict, their signatures, and
//! the faults of their form. A file with the id of a shipped playbook takes its place. Who reads the files is `effect`.

use std::sync::{Arc, LazyLock};

use crate::tables::class::FailureClass;
use crate::verdict::Verdict;

use super::condition::{self, Truth};
use super::fault::Fault;
use super::known::Known;
use super::parse;
use super::schema::Playbook;
use super::signature::Signatures;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// The shipped playbooks: file name and text.
        pub const SHIPPED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../playbooks/", $name)))),*];
    };
}

shipped![
    "illegal-address.toml",
    "index-overflow.toml",
    "illegal-instruction.toml",
    "nccl.toml",
    "symmetric-memory.toml",
    "cuda-graph.toml",
    "segfault.toml",
    "triton-review.toml",
    "device-assert.toml",
    "out-of-memory.toml",
    "race.toml",
    "leak.toml",
    "hardware.toml",
];

/// Playbooks by id.
#[derive(Debug, Default)]
pub struct Library {
    playbooks: Vec<Playbook>,
    signatures: Signatures,
    faults: Vec<Fault>,
}

static OWN: LazyLock<Arc<Library>> = LazyLock::new(|| Arc::new(Library::of(std::iter::empty())));

impl Library {
    /// The shipped playbooks.
    #[must_use]
    pub fn shipped() -> Arc<Self> {
        Arc::clone(&OWN)
    }

    /// The shipped playbooks, overlaid by files (name and text) in the order in which they are given.
    #[must_use]
    pub fn of(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut library = Self::default();
        for (name, text) in SHIPPED {
            library.lay(&format!("playbooks/{name}"), text);
        }
        for (name, text) in files {
            library.lay(&name, &text);
        }
        library.signatures =
            Signatures::new(library.playbooks.iter().flat_map(|playbook| playbook.signatures.iter()));
        library
    }

    fn lay(&mut self, name: &str, text: &str) {
        let parsed = parse::parse(name, text);
        self.faults.extend(parsed.faults);
        let Some(playbook) = parsed.playbook else { return };
        match self.playbooks.iter_mut().find(|known| known.id == playbook.id) {
            Some(known) => *known = playbook,
            None => self.playbooks.push(playbook),
        }
    }

    /// Every playbook, the shipped ones first.
    #[must_use]
    pub fn playbooks(&self) -> &[Playbook] {
        &self.playbooks
    }

    /// The playbook with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Playbook> {
        self.playbooks.iter().find(|playbook| playbook.id == id)
    }

    /// Signatures of every playbook.
    #[must_use]
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// Faults of form in the files.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The playbooks that serve a verdict, the best first.
    #[must_use]
    pub fn serving(&self, verdict: &Verdict, known: &Arc<Known>) -> Vec<&Playbook> {
        if verdict.class == FailureClass::None {
            return Vec::new();
        }
        let mut scored: Vec<(u8, &Playbook)> = self
            .playbooks
            .iter()
            .filter(|playbook| !playbook.steps.is_empty())
            .filter_map(|playbook| Some((score(playbook, verdict, known)?, playbook)))
            .collect();
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        scored.into_iter().map(|(_, playbook)| playbook).collect()
    }
}

/// How well a playbook serves a verdict; none where it doesn't.
fn score(playbook: &Playbook, verdict: &Verdict, known: &Arc<Known>) -> Option<u8> {
    let cause = verdict.cause().and_then(|hypothesis| hypothesis.cause);
    let named = cause.is_some_and(|cause| playbook.causes.contains(&cause));
    if !playbook.classes.contains(&verdict.class) {
        return None;
    }
    let when = match &playbook.when {
        Some(when) => condition::judge(&when.text, known).map_or(Truth::Unknown, |judged| judged.truth),
        None => Truth::True,
    };
    match when {
        Truth::False => None,
        Truth::Unknown => Some(1),
        // A condition that holds speaks of this very incident; a bare class is what the general playbook has too.
        Truth::True if named => Some(if playbook.when.is_some() { 6 } else { 5 }),
        Truth::True if playbook.when.is_some() => Some(4),
        Truth::True if playbook.causes.is_empty() => Some(3),
        Truth::True => Some(2),
    }
}
