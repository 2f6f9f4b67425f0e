//! A load or store of a block without a mask.
//!
//! Only `program * BLOCK + arange(0, BLOCK)` counts: its last block passes the end when the size is no multiple. A range over
//! a head's or row's own width, which a constant gives, is left alone, and so is what a constant of the compilation chose
//! (`if EVEN_M:`) or a caller asserts (`assert n % BLOCK == 0`).

use tree_sitter::Node;

use super::super::super::finding::FindingKind;
use super::super::Issue;
use super::super::scope::Scope;
use super::super::source::{Call, Launch};

pub(super) fn unmasked<'n>(
    scope: &Scope<'_, '_, 'n>,
    call: &Call<'n>,
    launches: &[Launch<'n>],
) -> Option<Issue> {
    let address = call.argument(0, "pointer")?;
    let (position, value) = match call.name.as_str() {
        "load" => (1, None),
        "atomic_cas" => return None,
        _ => (2, call.argument(1, "value")),
    };
    if call.argument(position, "mask").is_some() || call.keyword("boundary_check").is_some() {
        return None;
    }
    let terms = scope.terms(address);
    let whole = |term: &Node<'n>| {
        let facts = scope.facts(*term);
        facts.tile && !facts.bounded
    };
    // Start and lanes may be added to the pointer one after the other.
    let apart = || whole(&address).then(|| terms.iter().find(|&&t| scope.extent(t).is_some())).flatten();
    let tile = *terms.iter().find(|t| whole(t)).or_else(apart)?;
    let masked = |c: &&Call<'n>| c.argument(if c.name == "load" { 1 } else { 2 }, "mask").is_some();
    let same = |c: &Call<'n>| {
        c.argument(0, "pointer").is_some_and(|a| scope.source.short(a) == scope.source.short(address))
    };
    // Whole blocks first, the last one under a mask.
    if scope.accesses().filter(masked).any(same) {
        return None;
    }
    if is_specialised(scope, call.node) || launches.iter().any(|launch| launch.asserts_multiple) {
        return None;
    }
    let factors = scope.source.parts(tile, &["*"]);
    let offsets = factors.into_iter().find(|&f| scope.facts(f).tile).unwrap_or(tile);
    let offsets = scope.source.short(offsets);
    let mut issue = scope.issue(FindingKind::UnmaskedAccess, call.node, Some(call));
    issue.expression.clone_from(&offsets);
    issue.detail =
        "no mask: the last program leaves the buffer when the size is no multiple of the block".into();
    let pointer = scope.source.short(address);
    issue.after = match (call.name.as_str(), value) {
        ("load", _) => format!("tl.load({pointer}, mask={offsets} < n, other=0.0)"),
        (name, value) => {
            let value = value.map_or_else(|| "value".into(), |v| scope.source.short(v));
            format!("tl.{name}({pointer}, {value}, mask={offsets} < n)")
        }
    };
    Some(issue)
}

/// Whether a constant of the compilation decides that this access is there.
fn is_specialised<'n>(scope: &Scope<'_, '_, 'n>, node: Node<'n>) -> bool {
    let mut at = scope.parent(node);
    while let Some(around) = at {
        if matches!(around.kind(), "if_statement" | "elif_clause" | "conditional_expression") {
            let condition = around.child_by_field_name("condition").or_else(|| around.named_child(1));
            let constant = condition
                .is_some_and(|c| scope.source.names(c).iter().any(|(name, _)| scope.is_constexpr(name)));
            if constant {
                return true;
            }
        }
        at = scope.parent(around);
    }
    false
}
