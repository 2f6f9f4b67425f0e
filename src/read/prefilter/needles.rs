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

/// Needles of one vector search: four a bucket, the most that its quick form takes.
const NEEDLES_A_GROUP: usize = 32;

/// Needles shorter than a gram of one vector search.
const SHORT_A_GROUP: usize = 16;

/// Buckets of the vector search.
const BUCKETS: usize = 8;

type Gram = [u8; GRAM];

/// Needles for `literals`: each literal holds one of them. Literals shorter than a gram are their own needle.
pub(super) fn needles(literals: &[&str]) -> Vec<Vec<u8>> {
    let mut open: Vec<&[u8]> = literals.iter().map(|literal| literal.as_bytes()).collect();
    open.sort_unstable();
    open.dedup();
    let mut found: Vec<Vec<u8>> = open.iter().filter(|l| l.len() < GRAM).map(|l| l.to_vec()).collect();
    open.retain(|literal| !found.iter().any(|needle| holds(literal, needle)));
    let mut choices = Choices::new(&open);
    while let Some(best) = choices.best() {
        let (taken, rest): (Vec<&[u8]>, Vec<&[u8]>) =
            open.iter().partition(|literal| grams(literal).any(|gram| gram == best));
        taken.iter().for_each(|literal| choices.drop(literal));
        found.push(extended(best, &taken));
        open = rest;
    }
    found
}

/// Needles in groups for one vector search each, in the order in which the search takes them.
///
/// The search sorts its strings into eight buckets, the one at index i into bucket i modulo 8, and compares each byte
/// with all that a bucket's strings have at that place. Strings with like beginnings in one bucket give fewest false
/// alarms, so sorted needles are dealt out in runs. A short needle shortens the comparison of its whole group: those
/// stand apart.
pub(super) fn groups(mut needles: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
    needles.sort_unstable();
    let (long, short): (Vec<_>, Vec<_>) = needles.into_iter().partition(|needle| needle.len() >= GRAM);
    let mut groups: Vec<Vec<Vec<u8>>> = short.chunks(SHORT_A_GROUP).map(<[_]>::to_vec).collect();
    let count = long.len().div_ceil(NEEDLES_A_GROUP);
    let buckets = count * BUCKETS;
    let size =
        |bucket: usize| long.len() / buckets.max(1) + usize::from(bucket < long.len() % buckets.max(1));
    let mut rest = &long[..];
    let mut runs = Vec::new();
    for bucket in 0..buckets {
        let (run, after) = rest.split_at(size(bucket).min(rest.len()));
        runs.push(run);
        rest = after;
    }
    for group in 0..count {
        let own: Vec<&[Vec<u8>]> = runs.iter().skip(group).step_by(count).copied().collect();
        let rows = own.iter().map(|run| run.len()).max().unwrap_or(0);
        groups.push(
            (0..rows).flat_map(|row| own.iter().filter_map(move |run| run.get(row).cloned())).collect(),
        );
    }
    groups
}

/// The grams of the literals that no needle covers yet.
struct Choices {
    /// Cost, and number of literals, of each.
    grams: HashMap<Gram, (f64, u32)>,
}

impl Choices {
    fn new(literals: &[&[u8]]) -> Self {
        let mut ordinary: HashMap<Gram, u32> = HashMap::new();
        for gram in grams(ORDINARY.as_bytes()) {
            *ordinary.entry(gram).or_default() += 1;
        }
        let mut choices = Self { grams: HashMap::new() };
        for gram in literals.iter().flat_map(|literal| distinct_grams(literal)) {
            let seen = ordinary.get(&gram).copied().unwrap_or(0);
            let cost = 1.0 + OCCURRENCE_COST * f64::from(seen) + commonness(&gram);
            choices.grams.entry(gram).or_insert((cost, 0)).1 += 1;
        }
        choices
    }

    /// The gram that covers most literals for its cost; of equals the first in order, so that the choice never varies.
    fn best(&self) -> Option<Gram> {
        let value = |(cost, literals): (f64, u32)| f64::from(literals) / cost;
        self.grams
            .iter()
            .max_by(|a, b| value(*a.1).total_cmp(&value(*b.1)).then_with(|| b.0.cmp(a.0)))
            .map(|(gram, _)| *gram)
    }

    fn drop(&mut self, literal: &[u8]) {
        for gram in distinct_grams(literal) {
            if let Some((_, literals)) = self.grams.get_mut(&gram) {
                *literals = literals.saturating_sub(1);
                if *literals == 0 {
                    self.grams.remove(&gram);
                }
            }
        }
    }
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

fn distinct_grams(text: &[u8]) -> Vec<Gram> {
    let mut own: Vec<Gram> = grams(text).collect();
    own.sort_unstable();
    own.dedup();
    own
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

        #[test]
        fn groups_hold_every_needle_once(count in 0_usize..200) {
            let needles: Vec<Vec<u8>> = (0..count).map(|n| format!("{:x}", n * n * 7).into_bytes()).collect();
            let mut all: Vec<Vec<u8>> = groups(needles.clone()).concat();
            let mut want = needles;
            all.sort();
            want.sort();
            prop_assert_eq!(all, want);
        }
    }
}
