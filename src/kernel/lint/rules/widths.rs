//! `row * stride` in 32 bits: a program id times what the caller passes.
//!
//! Integer arguments below 2^31 are 32 bits wide in Triton, as program ids are, and so is their product. Widening the product
//! afterwards is too late. A head's or group's number (`pid % H`) is left out: it is small by its meaning.

use tree_sitter::Node;

use super::super::super::finding::FindingKind;
use super::super::Issue;
use super::super::scope::Scope;
use super::super::source::Call;
use super::with_name_replaced;

pub(super) fn narrow_products<'n>(scope: &Scope<'_, '_, 'n>, call: &Call<'n>) -> Vec<Issue> {
    let Some(address) = call.argument(0, "pointer") else { return Vec::new() };
    let mut out = Vec::new();
    for term in scope.terms(address) {
        for (sum, late) in inside_casts(scope, term) {
            for term in scope.terms(sum) {
                out.extend(narrow_product(scope, call, term, late));
            }
        }
    }
    out
}

/// What a cast is made of, and whether that cast widens it; the term itself where it is none.
fn inside_casts<'n>(scope: &Scope<'_, '_, 'n>, term: Node<'n>) -> Vec<(Node<'n>, bool)> {
    let cast = scope.source.call(term).filter(|c| matches!(c.name.as_str(), "to" | "cast"));
    let Some(cast) = cast else { return vec![(term, false)] };
    let receiver = cast.node.child_by_field_name("function").and_then(|f| f.child_by_field_name("object"));
    let inner = match receiver {
        Some(receiver) if scope.source.text(receiver) != "tl" => Some(receiver),
        _ => cast.positional.first().copied(),
    };
    let widens = scope.source.text(cast.node).contains("int64");
    inner.map(|inner| (inner, widens)).into_iter().collect()
}

fn narrow_product<'n>(
    scope: &Scope<'_, '_, 'n>,
    call: &Call<'n>,
    term: Node<'n>,
    late: bool,
) -> Option<Issue> {
    let factors = scope.source.parts(term, &["*"]);
    if factors.len() < 2 {
        return None;
    }
    let passed =
        factors.iter().any(|&f| f.kind() == "identifier" && scope.is_runtime_param(scope.source.text(f)));
    let wide = factors.iter().any(|&f| scope.facts(f).wide);
    let row = *factors.iter().find(|&&f| {
        let facts = scope.facts(f);
        facts.program && !facts.remainder
    })?;
    let text = scope.source.short(row);
    if !passed || wide || names_a_head(&text) {
        return None;
    }
    let mut issue = scope.issue(FindingKind::Int32Overflow, term, Some(call));
    issue.detail = if late {
        "the product is formed in 32 bits and widened afterwards: it has wrapped by then".into()
    } else {
        "the product is formed in 32 bits and wraps on large tensors; the compiled kernel says at which size"
            .into()
    };
    let (from, to) = if row.kind() == "identifier" || row.kind() == "call" {
        (text.clone(), format!("{text}.to(tl.int64)"))
    } else {
        (format!("({text})"), format!("({text}).to(tl.int64)"))
    };
    issue.after = with_name_replaced(&issue.before, &from, &to);
    if issue.after == issue.before {
        issue.after = with_name_replaced(&issue.before, &text, &format!("({text}).to(tl.int64)"));
    }
    // One product, one mend: its other places are named by the first.
    issue.group.clone_from(&issue.before);
    Some(issue)
}

fn names_a_head(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("head")
        || text == "h"
        || ["_h", "_hq", "_hk", "_hkv", "_hid"].iter().any(|end| text.ends_with(end))
}
