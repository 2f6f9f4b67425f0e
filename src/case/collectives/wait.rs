//! Who waits for whom across groups.
//!
//! In: the findings of all groups. Out: the same, the likeliest origin first, with the missing ranks that are themselves
//! blocked elsewhere. It leaves the findings' content alone.

use std::collections::BTreeMap;

use super::finding::{Blocked, Differs, Finding, GroupName};
use super::table::Table;

/// Orders `findings`. True where every absent rank is blocked in another group, so that the groups wait for each other.
pub(super) fn order(findings: &mut [Finding], table: &Table) -> bool {
    let mut waits: BTreeMap<u32, (GroupName, Option<u64>)> = BTreeMap::new();
    for group in table.groups() {
        for (&rank, call) in group.views.iter().filter_map(|(rank, view)| Some((rank, view.pending?))) {
            waits.entry(rank).or_insert_with(|| (group.name.clone(), Some(call.seq)));
        }
    }
    for finding in findings.iter() {
        let Finding::Missing(missing) = finding else { continue };
        for &rank in &missing.waiting {
            waits.entry(rank).or_insert_with(|| (missing.group.clone(), missing.collective.seq));
        }
    }
    let mut missing_anywhere = false;
    let mut free_anywhere = false;
    for finding in findings.iter_mut() {
        let Finding::Missing(missing) = finding else { continue };
        missing_anywhere = true;
        for &rank in &missing.missing {
            // It can't wait in the very collective that it never entered, so wherever it waits is elsewhere.
            if let Some((group, seq)) = waits.get(&rank) {
                missing.blocked.push(Blocked { rank, group: group.clone(), seq: *seq });
            }
        }
        free_anywhere |= missing.blocked.len() < missing.missing.len() || !missing.unseen.is_empty();
    }
    let only_missing = findings.iter().all(|finding| matches!(finding, Finding::Missing(_)));
    findings.sort_by_key(weight);
    missing_anywhere && !free_anywhere && only_missing
}

/// The smaller, the likelier the origin.
fn weight(finding: &Finding) -> (u8, u64) {
    let seq = finding.collective().and_then(|collective| collective.seq).unwrap_or(u64::MAX);
    let rank = match finding {
        Finding::Mismatch(mismatch) if mismatch.completed => 6,
        Finding::Mismatch(mismatch) if mismatch.differs == Differs::State => 3,
        Finding::Mismatch(_) => 0,
        Finding::Missing(missing) if missing.missing.is_empty() => 2,
        Finding::Missing(missing) if missing.blocked.len() < missing.missing.len() => 1,
        Finding::Missing(_) => 5,
        Finding::Stuck(_) => 4,
    };
    (rank, seq)
}
