//! The search for an index that wrapped on its way through 32 bits.
//!
//! In: the address (or the page) of a fault, one allocation, the context. Out: the wrap that fits best with its
//! agreements, or that this allocation explains too much; nothing where no element size fits. Near misses and
//! everything else an address can mean are the parent's business.

use super::{Allocation, Context, Reading, Strength, Wrapped, agreement};

/// Element sizes that an index is tried with.
const ELEMENT_BYTES: [u64; 4] = [1, 2, 4, 8];

/// Most multiples of 2³² that are tried: 2³⁶ elements are past any GPU's memory.
const MOST_MULTIPLES: u64 = 16;

/// The addresses that a fault may have had: one, or a page of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// First address.
    pub(super) first: u64,
    /// Addresses from there on; 1 when the address is exact.
    pub(super) bytes: u64,
    /// Bytes that the access touched; 0 when unknown.
    pub(super) access_bytes: u64,
}

/// A wrap that fits the distance, judged; `None` when none fits.
pub(super) fn wrap_reading(span: Span, allocation: Allocation, context: &Context) -> Option<Reading> {
    let fits =
        (1..=MOST_MULTIPLES).flat_map(|k| ELEMENT_BYTES.map(|element| fit(span, allocation, element, k)));
    let judged = fits.flatten().map(|fit| judge(fit, span, allocation, context));
    // An index past 3·2³¹ loses more than one 2³². It needs an allocation that explains any address, so only a row
    // that agrees makes it a finding.
    let mut candidates: Vec<Wrapped> = judged.filter(|one| one.k == 1 || one.has_given_place()).collect();
    let at = best(&candidates)?;
    let mut chosen = candidates.swap_remove(at);
    let others = candidates.iter().map(|other| other.element_bytes);
    chosen.other_element_bytes = others.filter(|&size| size != chosen.element_bytes).collect();
    let explains_all_from_bytes = chosen.element_bytes << 32;
    let unresolved = candidates.iter().chain([&chosen]).filter(|one| one.conflicts.is_empty());
    let explains_all = unresolved.map(|one| one.element_bytes).find(|&e| allocation.bytes >= e << 32);
    if !chosen.has_given_place() && (explains_all.is_some() || allocation.bytes >= explains_all_from_bytes) {
        let element_bytes = explains_all.unwrap_or(chosen.element_bytes);
        return Some(Reading::TooLargeToTell { element_bytes, explains_all_from_bytes: element_bytes << 32 });
    }
    Some(Reading::Wrapped(chosen))
}

/// Most agreements, fewest conflicts; the first of equals.
fn best(candidates: &[Wrapped]) -> Option<usize> {
    let rank = |one: &Wrapped| {
        (one.has_given_place(), one.has_place(), one.conflicts.is_empty(), one.agreements.len())
    };
    (0..candidates.len()).rev().max_by_key(|&at| candidates.get(at).map(rank))
}

/// An element size and multiple that put the recovered index inside the allocation.
struct Fit {
    element_bytes: u64,
    k: u64,
    index: u64,
    index_span: u64,
}

/// w = (address − base)/e must be an integer that `k` wrapped terms can sum to; i = w + k·2³² must lie at or past
/// 2³¹ with its whole access inside the allocation.
fn fit(span: Span, allocation: Allocation, element_bytes: u64, k: u64) -> Option<Fit> {
    let element = i128::from(element_bytes);
    let offset = i128::from(span.first) - i128::from(allocation.base);
    let lost = i128::from(k) << 32;
    let one_access = span.bytes == 1;
    if one_access
        && (offset % element != 0
            || (span.access_bytes > 0 && !span.access_bytes.is_multiple_of(element_bytes)))
    {
        return None;
    }
    let wrapped = offset.div_euclid(element);
    let (low, high) = (-(i128::from(k) << 31), i128::from(k) << 31);
    let index = wrapped + lost;
    let end_bytes = index * element + i128::from(if one_access { span.access_bytes.max(1) } else { 1 });
    let in_range =
        (low..high).contains(&wrapped) && index >= 1 << 31 && end_bytes <= i128::from(allocation.bytes);
    let index_span = if one_access { 1 } else { span.bytes.div_ceil(element_bytes) };
    in_range.then(|| Some(Fit { element_bytes, k, index: u64::try_from(index).ok()?, index_span }))?
}

fn judge(fit: Fit, span: Span, allocation: Allocation, context: &Context) -> Wrapped {
    let mut wrapped = Wrapped {
        element_bytes: fit.element_bytes,
        k: fit.k,
        recovered_index: fit.index,
        index_span: fit.index_span,
        columns: None,
        row_col: None,
        agreements: Vec::new(),
        conflicts: Vec::new(),
        other_element_bytes: Vec::new(),
        chance_per_10_000: chance_per_10_000(allocation, fit.element_bytes),
        strength: Strength::Suspected,
    };
    agreement::collect(&mut wrapped, span.access_bytes, allocation, context);
    wrapped.strength = if wrapped.is_supported() { Strength::Supported } else { Strength::Suspected };
    wrapped
}

/// A stray address up to 2³¹·e bytes before the base fits if it is at least 2³²·e − n before it.
fn chance_per_10_000(allocation: Allocation, element_bytes: u64) -> u64 {
    let reach = u128::from(element_bytes) << 31;
    let explained = u128::from(allocation.bytes).saturating_sub(reach).min(reach);
    u64::try_from(explained * 10_000 / reach.max(1)).unwrap_or(10_000)
}
