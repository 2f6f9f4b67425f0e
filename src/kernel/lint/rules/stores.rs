//! Addresses that are the same where they should differ: several programs that store to one place, and a row offset without
//! its stride.

use tree_sitter::Node;

use super::super::super::finding::FindingKind;
use super::super::Issue;
use super::super::scope::Scope;
use super::super::source::{Call, Launch};
use super::with_name_replaced;

/// `ptr + row + cols`: the row is added as it is, beside lanes that lie one element apart.
pub(super) fn missing_stride<'n>(scope: &Scope<'_, '_, 'n>, call: &Call<'n>) -> Option<Issue> {
    let address = call.argument(0, "pointer")?;
    let terms = scope.terms(address);
    let row = *terms.iter().find(|&&term| scope.facts(term).bare_program)?;
    // A product is a row already, or makes the program id the column of one.
    let lanes = terms.iter().any(|&term| scope.extent(term).is_some_and(|end| end != "1"));
    let others = terms.iter().any(|&term| scope.source.parts(term, &["*"]).len() > 1);
    if !lanes || others {
        return None;
    }
    let mut issue = scope.issue(FindingKind::MissingStride, address, Some(call));
    let row = scope.source.short(row);
    issue.detail =
        format!("{row} is added without its stride: rows overlap and only the first elements are read");
    issue.after = with_name_replaced(&issue.before, &row, &format!("{row} * stride"));
    Some(issue)
}

/// A plain store whose address no program id, loop or loaded value moves, of a value that differs between programs.
pub(super) fn shared_address<'n>(
    scope: &Scope<'_, '_, 'n>,
    call: &Call<'n>,
    launches: &[Launch<'n>],
) -> Option<Issue> {
    if call.name != "store" {
        return None;
    }
    let (address, value) = (call.argument(0, "pointer")?, call.argument(1, "value")?);
    let base = scope.base(address);
    let fixed = scope.is_pointer(&base)
        && !scope.varies(address)
        && scope.terms(address).into_iter().all(|term| {
            let facts = scope.facts(term);
            !facts.program && !facts.opaque && !scope.varies(term)
        });
    let one_program = launches.iter().any(|launch| launch.single_program);
    if !fixed || !scope.varies(value) || one_program || is_conditional(scope, call.node) {
        return None;
    }
    let mut issue = scope.issue(FindingKind::NonAtomicStore, call.node, Some(call));
    issue.detail = "the address is the same in every program: the last writer wins".into();
    issue.after = issue.before.replacen("store", "atomic_add", 1);
    Some(issue)
}

/// Whether only some programs come here: a condition around the store, or a return before it, that is no constant.
fn is_conditional<'n>(scope: &Scope<'_, '_, 'n>, node: Node<'n>) -> bool {
    let decides = |around: Node<'n>| {
        let condition =
            around.child_by_field_name("condition").or_else(|| around.child_by_field_name("right"));
        matches!(around.kind(), "if_statement" | "elif_clause" | "while_statement" | "for_statement")
            && condition.is_some_and(|c| scope.varies(c) || scope.facts(c).opaque)
    };
    let mut at = scope.parent(node);
    while let Some(around) = at {
        if decides(around) {
            return true;
        }
        at = scope.parent(around);
    }
    scope.returns.iter().any(|early| {
        early.start_byte() < node.start_byte()
            && scope.parent(*early).and_then(|block| scope.parent(block)).is_some_and(decides)
    })
}
