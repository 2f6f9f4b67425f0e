//! Regular expressions that are compiled once, on first use.
//!
//! In: a pattern written in the source. Out: matches. It leaves error handling out: a pattern that does not compile
//! never matches, and the tests of its user show that.

use std::sync::OnceLock;

use regex::{Captures, Match, Regex};

/// A regular expression of the source code.
#[derive(Debug)]
pub struct Pattern {
    source: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// A pattern; nothing is compiled yet.
    #[must_use]
    pub const fn new(source: &'static str) -> Self {
        Self { source, compiled: OnceLock::new() }
    }

    fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(self.source).ok()).as_ref()
    }

    /// Whether it matches somewhere in `text`.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// The first match.
    #[must_use]
    pub fn find<'t>(&self, text: &'t str) -> Option<Match<'t>> {
        self.regex()?.find(text)
    }

    /// The groups of the first match.
    #[must_use]
    pub fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }

    /// Group `group` of the first match.
    #[must_use]
    pub fn group<'t>(&self, text: &'t str, group: usize) -> Option<&'t str> {
        self.captures(text)?.get(group).map(|found| found.as_str())
    }

    /// Group 1 of the first match, as a decimal number.
    #[must_use]
    pub fn number<T: std::str::FromStr>(&self, text: &str) -> Option<T> {
        self.group(text, 1)?.parse().ok()
    }
}
