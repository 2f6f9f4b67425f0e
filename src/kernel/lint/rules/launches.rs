//! Block sizes that are no power of two, and a fixed number of warps for a heavy kernel.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::super::super::finding::FindingKind;
use super::super::Issue;
use super::super::scope::Scope;
use super::super::source::Launch;

/// `tl.arange(0, 100)`, or a block's default of 100.
pub(super) fn odd_blocks(scope: &Scope<'_, '_, '_>) -> Vec<Issue> {
    let mut out = Vec::new();
    for call in scope.calls.iter().filter(|c| c.name == "arange") {
        let (Some(start), Some(end)) = (call.argument(0, "start"), call.argument(1, "end")) else { continue };
        let name = scope.source.text(end);
        let literal = match end.kind() {
            "integer" if scope.source.text(start) == "0" => name.parse::<u64>().ok(),
            _ => scope
                .kernel
                .params
                .iter()
                .find(|p| p.name == name && p.constexpr)
                .and_then(|p| p.default.as_deref())
                .and_then(|d| d.parse().ok()),
        };
        if let Some(size) = literal.filter(|&n| n > 0 && !n.is_power_of_two()) {
            out.push(block_issue(scope, end, size));
        }
    }
    out
}

fn block_issue<'n>(scope: &Scope<'_, '_, 'n>, node: Node<'n>, size: u64) -> Issue {
    let mut issue = scope.issue(FindingKind::BlockNotPowerOfTwo, node, None);
    issue.detail = format!("{size} is no power of two: the compiler refuses it, or the code is poor");
    issue.after = match size.checked_next_power_of_two() {
        Some(next) => format!("{next} (with a mask), or triton.next_power_of_2(n)"),
        None => "triton.next_power_of_2(n)".to_owned(),
    };
    issue
}

/// `kernel[grid](…, BLOCK=100, num_warps=8)`
pub(super) fn launches<'n>(scope: &Scope<'_, '_, 'n>, launches: &[Launch<'n>]) -> Vec<Issue> {
    let mut out = Vec::new();
    let ends: BTreeSet<&str> = scope
        .calls
        .iter()
        .filter(|c| c.name == "arange")
        .filter_map(|c| c.argument(1, "end"))
        .map(|end| scope.source.text(end))
        .collect();
    let heavy = scope.calls.iter().any(|c| c.name == "dot" && scope.is_triton(c));
    for (key, value) in launches.iter().flat_map(|launch| &launch.call.keywords) {
        match scope.source.text(*value).parse::<u64>().ok() {
            Some(size) if ends.contains(key.as_str()) && size > 0 && !size.is_power_of_two() => {
                out.push(block_issue(scope, *value, size));
            }
            Some(warps) if key == "num_warps" && heavy && !scope.kernel.autotuned => {
                let mut issue = scope.issue(FindingKind::FixedNumWarps, *value, None);
                issue.expression = format!("num_warps={warps}");
                issue.detail =
                    "a fixed number of warps on a kernel with `tl.dot`: spills or low occupancy on other shapes"
                        .into();
                issue.before = format!("num_warps={warps}");
                issue.after = "@triton.autotune(configs=[...], key=[\"M\", \"N\", \"K\"])".into();
                out.push(issue);
            }
            _ => {}
        }
    }
    out
}
