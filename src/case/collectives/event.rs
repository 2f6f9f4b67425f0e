//! A finding as an event's data, for what reads events only.
//!
//! In: a [`Finding`]. Out: [`CollectiveMismatch`]: what differs, the ranks' views, who is missing. It leaves provenance to the
//! case: a finding is derived from the dumps, lines or answers that were compared.

use super::Finding;
use crate::read::event::CollectiveMismatch;

/// Most views that an event lists.
const VIEW_LIMIT: usize = 64;

impl Finding {
    /// `differs` is `missing`, `op`, `size`, `dtype`, `state` or `stuck`; the first view is that of a rank that waits, where one
    /// does.
    #[must_use]
    pub fn to_mismatch(&self) -> CollectiveMismatch {
        let (differs, views, missing) = match self {
            Self::Missing(found) => {
                let views = found
                    .waiting
                    .iter()
                    .take(VIEW_LIMIT)
                    .map(|rank| (*rank, found.collective.clone()))
                    .collect();
                ("missing", views, self.suspects())
            }
            Self::Mismatch(found) => {
                let differs = match found.differs {
                    super::Differs::Op => "op",
                    super::Differs::Size => "size",
                    super::Differs::Dtype => "dtype",
                    super::Differs::State => "state",
                };
                let of = |view: &super::View| view.ranks.first().map(|rank| (*rank, view.collective.clone()));
                (differs, found.views.iter().take(VIEW_LIMIT).filter_map(of).collect(), Vec::new())
            }
            Self::Stuck(found) => {
                let views = found
                    .ranks
                    .iter()
                    .take(VIEW_LIMIT)
                    .map(|rank| (*rank, found.collective.clone()))
                    .collect();
                ("stuck", views, Vec::new())
            }
        };
        CollectiveMismatch { differs: differs.to_owned(), views, missing, detail: self.summary() }
    }
}

#[cfg(test)]
mod tests {
    use crate::case::collectives::Matcher;
    use crate::read::flight_recorder;

    #[test]
    fn the_event_names_who_is_missing_and_what_is_waited_for() {
        let mut matcher = Matcher::default();
        for (rank, dump) in [
            (0, &include_bytes!("../../../samples/pair-missing-rank/nccl_trace_rank_0")[..]),
            (1, &include_bytes!("../../../samples/pair-missing-rank/nccl_trace_rank_1")[..]),
        ] {
            matcher.add_dump(rank, &flight_recorder::read(dump).unwrap());
        }
        let event = matcher.finish().findings[0].to_mismatch();
        assert_eq!((event.differs.as_str(), event.missing.as_slice()), ("missing", &[1][..]));
        let (rank, collective) = &event.views[0];
        assert_eq!((*rank, collective.op.as_str(), collective.seq), (0, "ALLREDUCE", Some(2)));
    }
}
