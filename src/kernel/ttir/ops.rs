//! What an operation's words say: result types, attributes, constants.
//!
//! In: an [`Operation`]. Out: types and numbers. It evaluates nothing.

use super::token::{Kind, Token};
use super::types::{Element, Type, parse_type};
use super::{Function, Operation};

/// The types after the operation's last `:` outside brackets and attributes, split at `->` or `to`: before, after.
fn types(op: &Operation) -> (Vec<Type>, Vec<Type>) {
    let mut sides = (Vec::new(), Vec::new());
    let mut depth = 0usize;
    let (mut typed, mut after) = (false, false);
    for token in &op.words {
        match &token.kind {
            Kind::Sign('{' | '[') => depth += 1,
            Kind::Sign('}' | ']') => depth = depth.saturating_sub(1),
            // A colon after the arrow (`-> (f32) : i32`) goes back to what is read, not made.
            Kind::Sign(':') if depth == 0 => (typed, after) = (true, false),
            Kind::Sign('>') if depth == 0 => (typed, after) = (true, true),
            Kind::Word(word) if word == "to" && depth == 0 && typed => after = true,
            Kind::Word(word) | Kind::Angled(word) if typed && depth == 0 => {
                let ty = parse_type(word);
                if ty.element != Element::Other
                    || !ty.block.is_empty()
                    || word.starts_with('!')
                    || word.starts_with("tensor")
                {
                    if after { sides.1.push(ty) } else { sides.0.push(ty) }
                }
            }
            _ => {}
        }
    }
    sides
}

/// The types of the results, in order.
pub(super) fn result_types(op: &Operation, function: &Function) -> Vec<Type> {
    let (before, after) = types(op);
    match op.name.as_str() {
        // `: i32` after a loop's result list is the induction variable's type.
        "scf.for" | "scf.if" | "scf.while" => after,
        "arith.cmpi" | "arith.cmpf" => {
            before.first().map(|ty| Type { element: Element::Int(1), ..ty.clone() }).into_iter().collect()
        }
        "tt.load" => {
            let pointer = op.operands.first().and_then(|&v| function.values.get(v)).map(|v| v.ty.clone());
            let ty = pointer.or_else(|| before.first().cloned());
            ty.map(|ty| loaded(op, ty)).into_iter().collect()
        }
        "tt.addptr" | "tt.advance" => before.first().cloned().into_iter().collect(),
        "tt.make_tensor_descriptor" => {
            let element = before.first().map_or(Element::Other, |ty| ty.element);
            let block = before.get(1).or(after.first()).map(|ty| ty.shape.clone()).unwrap_or_default();
            let bytes = match element {
                Element::Int(bits) | Element::Float(bits) => u32::from(bits).div_ceil(8),
                _ => 1,
            };
            vec![Type { shape: Vec::new(), element: Element::Pointer(bytes), block }]
        }
        _ if !after.is_empty() => after,
        _ => before.last().cloned().into_iter().collect(),
    }
}

/// The type that a load gives: the pointee's width is known from the text of the pointer's type alone.
fn loaded(op: &Operation, pointer: Type) -> Type {
    let text = op.words.iter().rev().find_map(|token| match &token.kind {
        Kind::Angled(word) if word.contains("tt.ptr<") => Some(word.as_str()),
        _ => None,
    });
    let pointee = text.and_then(|t| t.split_once("tt.ptr<")).map_or("", |(_, rest)| rest);
    let end = pointee.find(['>', ',']).unwrap_or(pointee.len());
    let element = if pointee.starts_with("tensor<") || pointee.starts_with("!tt.ptr") {
        parse_type(&format!("{}>", pointee.get(..end).unwrap_or(""))).element
    } else {
        parse_type(pointee.get(..end).unwrap_or("")).element
    };
    let shape = if pointer.block.is_empty() { pointer.shape } else { pointer.block };
    Type { shape, element, block: Vec::new() }
}

/// Gives the arguments of a loop's first block their types, once they are known.
pub(super) fn type_region_arguments(op: &Operation, function: &mut Function) {
    let Some(&block) = op.regions.first().and_then(|blocks| blocks.first()) else { return };
    let args = function.blocks.get(block).map(|b| b.args.clone()).unwrap_or_default();
    let (before, after) = types(op);
    let carried = match op.name.as_str() {
        "scf.for" => {
            let own = before.last().cloned().unwrap_or_else(|| Type::scalar(Element::Int(32)));
            set_type(function, args.first().copied(), own);
            args.get(1..).unwrap_or(&[]).to_vec()
        }
        "scf.while" => args,
        _ => return,
    };
    let initial: Vec<usize> = initial_values(op).to_vec();
    for (at, &arg) in carried.iter().enumerate() {
        let ty = initial.get(at).and_then(|&v| function.values.get(v)).map(|v| v.ty.clone());
        let ty = ty.filter(|ty| ty.element != Element::Other).or_else(|| after.get(at).cloned());
        set_type(function, Some(arg), ty.unwrap_or_else(Type::other));
    }
}

fn set_type(function: &mut Function, value: Option<usize>, ty: Type) {
    if let Some(value) = value.and_then(|v| function.values.get_mut(v)) {
        value.ty = ty;
    }
}

/// The initial values of what a loop carries.
pub(super) fn initial_values(op: &Operation) -> &[usize] {
    match op.name.as_str() {
        // lower bound, upper bound and step come first
        "scf.for" => op.operands.get(3..2 + op.carried.max(1)).unwrap_or(&[]),
        "scf.while" => op.operands.get(..op.carried).unwrap_or(&[]),
        _ => &[],
    }
}

/// An attribute's integer: `axis = 1 : i32`, in braces or in `<{…}>`.
#[must_use]
pub(super) fn int_attribute(op: &Operation, key: &str) -> Option<i128> {
    let plain = op.words.windows(3).find_map(|window| match window {
        [
            Token { kind: Kind::Word(k), .. },
            Token { kind: Kind::Sign('='), .. },
            Token { kind: Kind::Int(v), .. },
        ] if k == key => Some(*v),
        _ => None,
    });
    plain.or_else(|| {
        op.words.iter().find_map(|token| match &token.kind {
            Kind::Angled(text) => {
                let rest = text.split_once(&format!("{key} = "))?.1;
                rest.split(|c: char| !c.is_ascii_digit() && c != '-').next()?.parse().ok()
            }
            _ => None,
        })
    })
}

/// A list attribute's integers: `array<i32: 0, 1>` after `key =`.
#[must_use]
pub(super) fn list_attribute(op: &Operation, key: &str) -> Option<Vec<usize>> {
    let at = op.words.iter().position(|token| matches!(&token.kind, Kind::Word(k) if k == key))?;
    let text = op.words.get(at + 1..)?.iter().find_map(|token| match &token.kind {
        Kind::Angled(text) if text.starts_with("array<") => Some(text.as_str()),
        _ => None,
    })?;
    let list = text.trim_end_matches('>').split_once(':').map_or("", |(_, list)| list);
    Some(list.split(',').filter_map(|n| n.trim().parse().ok()).collect())
}

/// The words before the types and attributes that are plain names: a comparison's predicate, an axis.
pub(super) fn keyword(op: &Operation, at: usize) -> &str {
    op.words
        .iter()
        .filter_map(|token| match &token.kind {
            Kind::Word(word) => Some(word.as_str()),
            _ => None,
        })
        .nth(at)
        .unwrap_or("")
}

/// The value of `arith.constant`, where it is one integer for all elements.
#[must_use]
pub(super) fn constant(op: &Operation) -> Option<i128> {
    match op.words.first().map(|token| &token.kind) {
        Some(Kind::Int(value)) => Some(*value),
        Some(Kind::Word(word)) => match word.as_str() {
            "true" => Some(1),
            "false" => Some(0),
            _ => None,
        },
        Some(Kind::Angled(text)) => match text.strip_prefix("dense<")?.strip_suffix('>')?.trim() {
            "true" => Some(1),
            "false" => Some(0),
            number => number.parse().ok(),
        },
        _ => None,
    }
}

/// How many operands stand in each bracketed list of a call such as `tt.make_tensor_ptr %p, [%a, %b], [%c, %d]`.
#[must_use]
pub(super) fn bracket_counts(op: &Operation) -> Vec<usize> {
    let mut out = Vec::new();
    let mut open: Option<usize> = None;
    for token in &op.words {
        match &token.kind {
            Kind::Sign('[') => open = Some(0),
            Kind::Sign(']') => out.extend(open.take()),
            Kind::Value(..) => {
                if let Some(count) = &mut open {
                    *count += 1;
                }
            }
            _ => {}
        }
    }
    out
}
