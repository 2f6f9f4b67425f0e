//! The rules, a file each. The table that they follow stands in the Triton review playbook.
//!
//! In: a kernel. Out: issues. A rule that is in doubt says nothing.

mod launches;
mod masks;
mod reductions;
mod stores;
mod widths;

use super::Issue;
use super::scope::Scope;
use super::source::{Call, KernelSource, Launch, Source};

const ACCESSES: [&str; 10] = [
    "load",
    "store",
    "atomic_add",
    "atomic_max",
    "atomic_min",
    "atomic_xchg",
    "atomic_cas",
    "atomic_and",
    "atomic_or",
    "atomic_xor",
];

pub(super) fn is_access(call: &Call<'_>) -> bool {
    ACCESSES.contains(&call.name.as_str())
}

/// Every issue of a kernel; `launches` are the calls of it in its file.
pub(super) fn all<'n>(source: &Source<'_>, kernel: &KernelSource<'n>, launches: &[Launch<'n>]) -> Vec<Issue> {
    let scope = Scope::new(source, kernel);
    let mut out = Vec::new();
    for call in scope.accesses() {
        out.extend(widths::narrow_products(&scope, call));
        out.extend(stores::missing_stride(&scope, call));
        out.extend(masks::unmasked(&scope, call, launches));
        out.extend(stores::shared_address(&scope, call, launches));
    }
    out.extend(reductions::missing_other(&scope));
    out.extend(launches::odd_blocks(&scope));
    out.extend(launches::launches(&scope, launches));
    out
}

/// `text` with the first `from` that is no part of a longer name replaced.
fn with_name_replaced(text: &str, from: &str, to: &str) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.');
    let stands_alone = |at: usize| {
        let before = text.get(..at).and_then(|head| head.chars().next_back());
        let after = text.get(at + from.len()..).and_then(|tail| tail.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(|letter| letter != '.' && is_part(letter))
    };
    match text.match_indices(from).map(|(at, _)| at).find(|&at| stands_alone(at)) {
        Some(at) => {
            let (head, tail) = (text.get(..at).unwrap_or(""), text.get(at + from.len()..).unwrap_or(""));
            format!("{head}{to}{tail}")
        }
        None => text.to_owned(),
    }
}
