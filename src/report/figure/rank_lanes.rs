//! What each rank did: a lane of collectives a rank, and a board of all states.
//!
//! In: a report. Out: lanes in the report's order (the odd one out first). It leaves which rank is to blame to the verdict.

use super::super::Report;
use super::super::model::RankState;

/// Collectives drawn one by one; longer ranges are bars.
const CELLS: i64 = 16;

/// One rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Global rank.
    pub rank: u32,
    /// Its state.
    pub state: RankState,
    /// Last completed collective; `None` where unknown.
    pub completed: Option<i64>,
    /// Last enqueued collective.
    pub enqueued: Option<i64>,
    /// True for the rank that failed first.
    pub first: bool,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankLanes {
    /// Every rank, the odd one out first.
    pub lanes: Vec<Lane>,
    /// First and last sequence number that is drawn; `None` where no rank names one.
    pub range: Option<(i64, i64)>,
    /// The collective in question: its sequence number and operation.
    pub disputed: Option<(i64, String)>,
}

impl RankLanes {
    /// The lanes of two or more ranks.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        if report.ranks.len() < 2 {
            return None;
        }
        let first = report.verdict.root_rank;
        let lanes: Vec<Lane> = report
            .ranks
            .iter()
            .map(|rank| Lane {
                rank: rank.rank,
                state: rank.state,
                completed: rank.last_completed,
                enqueued: rank.last_enqueued,
                first: first == Some(rank.rank),
            })
            .collect();
        let collective = report.verdict.collective.as_ref();
        let disputed = collective.and_then(|one| {
            Some((i64::try_from(one.seq?).ok()?, one.op.clone().unwrap_or_else(|| "collective".to_owned())))
        });
        let range = range(&lanes, disputed.as_ref().map(|(seq, _)| *seq));
        Some(Self { lanes, range, disputed })
    }

    /// True where the range is short enough to draw each collective.
    #[must_use]
    pub fn one_by_one(&self) -> bool {
        self.range.is_some_and(|(low, high)| high.saturating_sub(low) < CELLS)
    }

    /// Ranks of each state, the odd states first; states without ranks are left out.
    #[must_use]
    pub fn counts(&self) -> Vec<(RankState, usize)> {
        use RankState::{Failed, Finished, Silent, Terminated, Unknown, Waiting};
        let count = |state| self.lanes.iter().filter(|lane| lane.state == state).count();
        let all = [Failed, Silent, Waiting, Terminated, Finished, Unknown];
        all.into_iter().map(|state| (state, count(state))).filter(|(_, count)| *count > 0).collect()
    }
}

/// From a little below the slowest rank to the fastest one. Sequence numbers begin at 0 or 1; -1 means none.
fn range(lanes: &[Lane], disputed: Option<i64>) -> Option<(i64, i64)> {
    let named = lanes.iter().flat_map(|lane| [lane.completed, lane.enqueued]).flatten();
    let (low, high) = named.chain(disputed).fold(None, |range: Option<(i64, i64)>, value| {
        Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    })?;
    lanes.iter().any(|lane| lane.completed.or(lane.enqueued).is_some()).then(|| {
        let from = if high.saturating_sub(low) < CELLS - 2 { low.saturating_sub(1) } else { low };
        (from.max(i64::from(low > 0)).max(0), high.max(0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(rank: u32, completed: Option<i64>, enqueued: Option<i64>) -> Lane {
        Lane { rank, state: RankState::Waiting, completed, enqueued, first: false }
    }

    #[test]
    fn the_range_begins_just_below_the_slowest() {
        assert_eq!(range(&[lane(0, Some(6), Some(7)), lane(1, Some(6), Some(6))], Some(7)), Some((5, 7)));
        assert_eq!(range(&[lane(0, Some(-1), Some(0))], None), Some((0, 0)));
        assert_eq!(range(&[lane(0, Some(10), Some(900))], None), Some((10, 900)));
        assert_eq!(range(&[lane(0, None, None)], Some(3)), None);
        assert_eq!(range(&[lane(0, Some(i64::MIN), Some(i64::MAX))], None), Some((0, i64::MAX)));
    }
}
