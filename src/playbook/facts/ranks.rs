//! Ranks by name: who failed, who waits, who is silent, who is behind.

use crate::verdict::{RankRow, RankState, Verdict};

use super::super::known::Known;

/// Ranks that a list names; a sentence with more helps nobody.
const LIST_LIMIT: usize = 64;

pub(super) fn put(known: &mut Known, verdict: &Verdict) {
    let rows = &verdict.ranks;
    if rows.is_empty() {
        return;
    }
    known.put("ranks.count", rows.len());
    for (name, state) in [
        ("failed", RankState::Failed),
        ("waiting", RankState::Waiting),
        ("silent", RankState::Silent),
        ("terminated", RankState::Terminated),
        ("finished", RankState::Finished),
    ] {
        known.put(&format!("ranks.{name}"), list(rows.iter().filter(|row| row.state == state)));
    }
    let completed: Vec<i64> = rows.iter().filter_map(|row| row.last_completed).collect();
    if let (Some(low), Some(high)) = (completed.iter().min(), completed.iter().max()) {
        known.put("ranks.lowest_completed", *low);
        known.put("ranks.highest_completed", *high);
        if completed.len() == rows.len() {
            known.put("ranks.all_at_one_point", low == high);
        }
        if low < high {
            known.put("ranks.behind", list(rows.iter().filter(|row| row.last_completed == Some(*low))));
        }
    }
}

fn list<'a>(rows: impl Iterator<Item = &'a RankRow>) -> Vec<u32> {
    let mut ranks: Vec<u32> = rows.map(|row| row.rank).collect();
    ranks.sort_unstable();
    ranks.truncate(LIST_LIMIT);
    ranks
}
