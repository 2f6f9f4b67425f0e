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

const ACCESSES: [&str; 8] =
    ["load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas", "atomic_or"];

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
