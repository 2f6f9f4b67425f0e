//! `loc(…)`: files, names given by the author, inlined calls.
//!
//! In: the tokens of a location. Out: an index into [`Places`], which resolves aliases once the whole file is read.

use std::collections::HashMap;

use super::token::{Kind, Token};
use crate::kernel::location::Location;

/// Longest chain of aliases and nested locations that is followed.
const MAX_DEPTH: usize = 40;
/// Most places that are looked at for one location: calls have two, so that aliases in a circle would double at each step.
const MAX_STEPS: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Unknown,
    File(Location),
    Named(String, u32),
    Call { callee: u32, caller: u32 },
    Fused(Vec<u32>),
    Alias(String),
}

/// The locations of a file.
#[derive(Debug)]
pub struct Places {
    list: Vec<Place>,
    aliases: HashMap<String, u32>,
}

impl Default for Places {
    fn default() -> Self {
        Self { list: vec![Place::Unknown], aliases: HashMap::new() }
    }
}

impl Places {
    fn push(&mut self, place: Place) -> u32 {
        let index = u32::try_from(self.list.len()).unwrap_or(0);
        self.list.push(place);
        index
    }

    /// Notes `#name = loc(…)`.
    pub(super) fn alias(&mut self, name: &str, place: u32) {
        self.aliases.insert(name.to_owned(), place);
    }

    /// Reads what stands between the parentheses of `loc(…)`.
    pub(super) fn read(&mut self, tokens: &[Token]) -> u32 {
        self.inner(tokens, 0).0
    }

    /// location = text ":" line ":" column | text "(" location ")" | "callsite" "(" location "at" location ")"
    ///          | "fused" … "[" locations "]" | "#" name | "unknown"; returns how many tokens it took.
    fn inner(&mut self, tokens: &[Token], depth: usize) -> (u32, usize) {
        let kind = |at: usize| tokens.get(at).map(|t| &t.kind);
        if depth > MAX_DEPTH {
            return (0, 1);
        }
        match kind(0) {
            Some(Kind::Alias(name)) => {
                let name = name.clone();
                (self.push(Place::Alias(name)), 1)
            }
            Some(Kind::Text(text)) => match (kind(1), kind(2), kind(3), kind(4)) {
                (
                    Some(Kind::Sign(':')),
                    Some(Kind::Int(line)),
                    Some(Kind::Sign(':')),
                    Some(Kind::Int(column)),
                ) => {
                    let number = |v: i128| u32::try_from(v).unwrap_or(0);
                    let (line, column) = (number(*line), number(*column));
                    (self.push(Place::File(Location { file: text.clone(), line, column })), 5)
                }
                (Some(Kind::Sign('(')), ..) => {
                    let name = text.clone();
                    let (inner, used) = self.inner(tokens.get(2..).unwrap_or(&[]), depth + 1);
                    (self.push(Place::Named(name, inner)), used + 3)
                }
                _ => (self.push(Place::Named(text.clone(), 0)), 1),
            },
            Some(Kind::Word(word)) if word == "callsite" => {
                let (callee, first) = self.inner(tokens.get(2..).unwrap_or(&[]), depth + 1);
                let (caller, second) = self.inner(tokens.get(first + 3..).unwrap_or(&[]), depth + 1);
                (self.push(Place::Call { callee, caller }), first + second + 4)
            }
            Some(Kind::Word(word)) if word == "fused" => self.fused(tokens, 1, depth),
            Some(Kind::Angled(word)) if word.starts_with("fused") => self.fused(tokens, 1, depth),
            _ => (0, 1),
        }
    }

    fn fused(&mut self, tokens: &[Token], mut at: usize, depth: usize) -> (u32, usize) {
        let mut parts = Vec::new();
        at += 1;
        while let Some(token) = tokens.get(at) {
            match token.kind {
                Kind::Sign(']') => break,
                Kind::Sign(',') => at += 1,
                _ => {
                    let (part, used) = self.inner(tokens.get(at..).unwrap_or(&[]), depth + 1);
                    parts.push(part);
                    at += used.max(1);
                }
            }
        }
        (self.push(Place::Fused(parts)), at + 1)
    }

    fn get(&self, index: u32) -> &Place {
        self.list.get(index as usize).unwrap_or(&Place::Unknown)
    }

    /// The file, line and column. Of an inlined call into Triton's own library, the caller's; of another, the callee's.
    #[must_use]
    pub fn location(&self, index: u32) -> Option<Location> {
        self.resolve(index, 0, &mut 0)
    }

    fn resolve(&self, index: u32, depth: usize, steps: &mut usize) -> Option<Location> {
        *steps += 1;
        if depth > MAX_DEPTH || *steps > MAX_STEPS {
            return None;
        }
        match self.get(index) {
            Place::Unknown => None,
            Place::File(location) => Some(location.clone()),
            Place::Named(_, inner) => self.resolve(*inner, depth + 1, steps),
            Place::Call { callee, caller } => {
                let callee = self.resolve(*callee, depth + 1, steps);
                let caller = self.resolve(*caller, depth + 1, steps);
                match callee {
                    Some(place) if !place.file.contains("/triton/language/") => Some(place),
                    other => caller.or(other),
                }
            }
            Place::Fused(parts) => parts.iter().find_map(|&part| self.resolve(part, depth + 1, steps)),
            Place::Alias(name) => self.aliases.get(name).and_then(|&to| self.resolve(to, depth + 1, steps)),
        }
    }

    /// The author's name for the value, where the compiler kept it.
    #[must_use]
    pub fn author_name(&self, index: u32) -> Option<String> {
        let mut index = index;
        for _ in 0..MAX_DEPTH {
            match self.get(index) {
                Place::Named(name, _) => return Some(name.clone()),
                Place::Alias(name) => index = *self.aliases.get(name)?,
                Place::Call { callee, .. } => index = *callee,
                _ => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_a_circle_end() {
        let mut places = Places::default();
        let alias = places.push(Place::Alias("loc1".to_owned()));
        let call = places.push(Place::Call { callee: alias, caller: alias });
        places.alias("loc1", call);
        assert_eq!(places.location(call), None);
    }
}
