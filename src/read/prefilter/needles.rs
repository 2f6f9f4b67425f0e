//! Short strings that stand for the literals in the fast search.
//!
//! In: literals. Out: needles such that every literal holds at least one, few and rare in the lines of a job that runs
//! well. Vector searches are fast for few and rare strings only, and a hundred literals share their rare parts
//! (`CUDA_E`, `Xid `, `nccl`). It leaves checking a line for the literals themselves to the prefilter.

use std::collections::HashMap;

/// Length of the part of a needle that decides: the vector search compares this many bytes at once.
const GRAM: usize = 4;

/// Longest needle: past this, bytes add nothing to rarity.
const NEEDLE_BYTES: usize = 8;

/// What one occurrence of a gram in [`ORDINARY`] costs, in needles. One needle more slows the search by about one per cent;
/// a gram seen once in these few kilobytes stops the search at some per cent of all lines.
const OCCURRENCE_COST: f64 = 12.0;

/// Lines of jobs that run well, of the kinds that fill logs. What stands here is no good needle.
const ORDINARY: &str = include_str!("ordinary.txt");

type Gram = [u8; GRAM];

/// Needles for `literals`: each literal holds one of them. Literals shorter than a gram are their own needle.
pub(super) fn needles(literals: &[&str]) -> Vec<Vec<u8>> {
    let ordinary = counts(ORDINARY.as_bytes());
    let mut open: Vec<&[u8]> = literals.iter().map(|literal| literal.as_bytes()).collect();
    open.sort_unstable();
    open.dedup();
    let mut found: Vec<Vec<u8>> = open.iter().filter(|l| l.len() < GRAM).map(|l| l.to_vec()).collect();
    open.retain(|literal| !found.iter().any(|needle| holds(literal, needle)));
    while let Some(best) = best_gram(&open, &ordinary) {
        let (taken, rest): (Vec<&[u8]>, Vec<&[u8]>) =
            open.iter().partition(|literal| grams(literal).any(|gram| gram == best));
        found.push(extended(best, &taken));
        open = rest;
    }
    found
}

/// The gram that covers most literals for its cost; of equals the first in order, so that the choice never varies.
fn best_gram(open: &[&[u8]], ordinary: &HashMap<Gram, u32>) -> Option<Gram> {
    let mut covers: HashMap<Gram, u32> = HashMap::new();
    for literal in open {
        let mut own: Vec<Gram> = grams(literal).collect();
        own.sort_unstable();
        own.dedup();
        for gram in own {
            *covers.entry(gram).or_default() += 1;
        }
    }
    let value = |gram: &Gram, literals: u32| {
        let seen = ordinary.get(gram).copied().unwrap_or(0);
        f64::from(literals) / (1.0 + OCCURRENCE_COST * f64::from(seen) + commonness(gram))
    };
    covers
        .into_iter()
        .max_by(|a, b| value(&a.0, a.1).total_cmp(&value(&b.0, b.1)).then_with(|| b.0.cmp(&a.0)))
        .map(|(gram, _)| gram)
}

/// How likely a gram is in text that the sample doesn't show, from 0 to about 2: small letters, digits and blanks are
/// everywhere.
fn commonness(gram: &Gram) -> f64 {
    gram.iter()
        .map(|byte| match byte {
            b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' | b' ' | b'0'..=b'9' => 0.5,
            b'a'..=b'z' | b'.' | b'/' | b'-' | b':' | b'_' => 0.3,
            _ => 0.05,
        })
        .sum()
}

/// `gram` and the bytes that follow it in all of `literals`.
fn extended(gram: Gram, literals: &[&[u8]]) -> Vec<u8> {
    let mut needle = gram.to_vec();
    while needle.len() < NEEDLE_BYTES {
        let follows: Vec<Option<u8>> = literals.iter().map(|literal| next_byte(literal, &needle)).collect();
        match follows.first() {
            Some(&Some(byte)) if follows.iter().all(|&next| next == Some(byte)) => needle.push(byte),
            _ => break,
        }
    }
    needle
}

fn next_byte(literal: &[u8], needle: &[u8]) -> Option<u8> {
    let at = literal.windows(needle.len()).position(|window| window == needle)?;
    literal.get(at + needle.len()).copied()
}

fn holds(literal: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && literal.windows(needle.len()).any(|window| window == needle)
}

fn grams(text: &[u8]) -> impl Iterator<Item = Gram> {
    text.windows(GRAM).filter_map(|window| Gram::try_from(window).ok())
}

fn counts(text: &[u8]) -> HashMap<Gram, u32> {
    let mut counts = HashMap::new();
    for gram in grams(text) {
        *counts.entry(gram).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rare_parts_are_chosen_and_shared() {
        let found = needles(&["CUDA error", "CUDA error: out", "step failed"]);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|needle| !needle.starts_with(b"step")));
    }

    #[test]
    fn short_literals_stand_for_themselves() {
        assert_eq!(needles(&["Xid", "Xid (PCI"]), [b"Xid".to_vec()]);
    }

    proptest! {
        #[test]
        fn every_literal_holds_a_needle(literals in prop::collection::vec("[abcd]{1,12}", 1..40)) {
            let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
            let found = needles(&literals);
            for literal in &literals {
                prop_assert!(found.iter().any(|needle| holds(literal.as_bytes(), needle)));
            }
        }
    }
}
