//! Bars of how far each rank came, and a board of many ranks at once.
//!
//! In: plain numbers and a width. Out: text.

use crate::tui::theme::Glyphs;

/// Cells of a bar from `low` to `high`: completed ones full, enqueued ones light.
pub fn bar(
    completed: i64,
    enqueued: i64,
    low: i64,
    high: i64,
    width: usize,
    glyphs: &Glyphs,
) -> (String, String) {
    let span = i128::from(high) - i128::from(low);
    let cells = |value: i64| -> usize {
        if span <= 0 {
            return if value >= high { width } else { 0 };
        }
        let part = (i128::from(value) - i128::from(low)).clamp(0, span);
        usize::try_from(part * i128::try_from(width).unwrap_or(0) / span).unwrap_or(0)
    };
    let done = cells(completed);
    let begun = cells(enqueued).max(done);
    (glyphs.bar[0].repeat(done), glyphs.bar[1].repeat(begun - done))
}

/// The range that bars are drawn over: a little below the least, so that the least still has a bar.
pub fn range(values: impl Iterator<Item = i64>) -> Option<(i64, i64)> {
    let (low, high) = values.fold(None, |range: Option<(i64, i64)>, value| {
        Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    })?;
    let margin = (high.saturating_sub(low) / 4).max(1);
    Some((low.saturating_sub(margin).max(low.min(0)), high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::UNICODE;

    #[test]
    fn a_rank_that_lags_has_a_shorter_bar() {
        let (low, high) = range([7, 7, 5].into_iter()).unwrap();
        assert_eq!((low, high), (4, 7));
        assert_eq!(bar(5, 7, low, high, 12, &UNICODE), ("████".to_owned(), "░░░░░░░░".to_owned()));
        assert_eq!(bar(7, 7, low, high, 12, &UNICODE), ("█".repeat(12), String::new()));
    }

    #[test]
    fn no_numbers_break_it() {
        assert_eq!(range(std::iter::empty()), None);
        for value in [i64::MIN, -1, 0, i64::MAX] {
            let (low, high) = range([value, 3].into_iter()).unwrap();
            let (done, begun) = bar(value, 3, low, high, 10, &UNICODE);
            assert!(done.chars().count() + begun.chars().count() <= 10);
        }
        assert_eq!(bar(3, 3, 3, 3, 4, &UNICODE).0, "████");
    }
}
