//! The distance test where no report names a nearest allocation: a page of Xid 31, or an address from a core dump.
//!
//! In: the page, its size, every allocation whose base is known, the context. Out: the best reading, and the
//! allocation that it belongs to. The exact test stands in the parent; what a page leaves open is a range of indices.

use super::wrap::{Span, wrap_reading};
use super::{Allocation, Context, Distance, Reading, Strength, WildReason};

/// Most allocations that are tried; a memory snapshot can list millions.
const MOST_ALLOCATIONS: usize = 100_000;

/// Reads a faulting page of `page_bytes` (4,096 for Xid 31, 1 for an exact address). The allocation returned is the
/// one that the reading speaks of.
///
/// Each allocation that is tried gives chance another try, so a wrap that nothing supports is a finding only when
/// one allocation alone explains it; otherwise it is [`Reading::TooLargeToTell`] or wild.
#[must_use]
pub fn read_page(
    page: u64,
    page_bytes: u64,
    allocations: &[Allocation],
    context: &Context,
) -> (Reading, Option<Allocation>) {
    let tried = allocations.get(..allocations.len().min(MOST_ALLOCATIONS)).unwrap_or_default();
    if page < super::NULL_PAGE_BYTES {
        return (Reading::NearNull { offset_bytes: page }, None);
    }
    if let Some(&holder) = tried.iter().find(|one| matches!(one.distance(page), Distance::Inside(_))) {
        let distance = Some(holder.distance(page));
        return (Reading::WildOrStale { distance, reason: WildReason::InsideKnownAllocation }, Some(holder));
    }
    let span = Span { first: page, bytes: page_bytes.max(1), access_bytes: 0 };
    let readings = tried.iter().filter_map(|&one| Some((wrap_reading(span, one, context)?, one)));
    let mut readings: Vec<(Reading, Allocation)> = readings.collect();
    let supported = |one: &(Reading, Allocation)| matches!(&one.0, Reading::Wrapped(found) if found.strength == Strength::Supported);
    if let Some(at) = readings.iter().position(supported) {
        let (reading, allocation) = readings.swap_remove(at);
        return (reading, Some(allocation));
    }
    let several = readings.len() > 1;
    let too_large = readings.iter().position(|one| matches!(one.0, Reading::TooLargeToTell { .. }));
    if let Some(at) = too_large.or((readings.len() == 1).then_some(0)) {
        let (reading, allocation) = readings.swap_remove(at);
        return (reading, Some(allocation));
    }
    nearest_reading(page, tried, several)
}

/// No allocation explains the page alone: say where it lies beside the nearest.
fn nearest_reading(page: u64, tried: &[Allocation], several: bool) -> (Reading, Option<Allocation>) {
    let gap = |one: &&Allocation| match one.distance(page) {
        Distance::Before(gap) | Distance::After(gap) => gap,
        Distance::Inside(_) => 0,
    };
    let Some(&nearest) = tried.iter().min_by_key(gap) else {
        return (Reading::WildOrStale { distance: None, reason: WildReason::NoAllocation }, None);
    };
    let reading = match nearest.distance(page) {
        // A page starts at or after the end, so the access lies at most a page further.
        Distance::After(gap) if gap < super::NEAR_BYTES => {
            Reading::TailUnguarded { past_end_bytes: gap.saturating_add(1) }
        }
        Distance::Before(gap) if gap <= super::NEAR_BYTES => Reading::JustBefore { before_bytes: gap },
        distance if several => {
            Reading::WildOrStale { distance: Some(distance), reason: WildReason::SeveralFit }
        }
        distance => super::wild(distance, nearest),
    };
    (reading, Some(nearest))
}
