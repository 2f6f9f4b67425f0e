//! Text cut and filled to a number of terminal columns.
//!
//! In: a string and a width in columns. Out: an escaped string that is no wider. It leaves layout to its callers.

use unicode_width::UnicodeWidthStr;

use super::escape;

const CUT: char = '…';

/// Columns that `text` takes once it is escaped.
#[must_use]
pub fn columns(text: &str) -> usize {
    escape(text).to_cow().width()
}

/// The beginning of `text`, escaped, in at most `width` columns; `…` marks the cut.
#[must_use]
pub fn fit(text: &str, width: usize) -> String {
    let shown = escape(text).to_cow();
    if shown.width() <= width {
        return shown.into_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    // The width of a string is not the sum over its characters: a variation selector widens the one before it.
    let mut end = 0;
    for (at, c) in shown.char_indices() {
        let next = at + c.len_utf8();
        if shown.get(..next).unwrap_or("").width() > room {
            break;
        }
        end = next;
    }
    format!("{}{CUT}", shown.get(..end).unwrap_or(""))
}

/// The end of `text`, escaped, in at most `width` columns; for paths, whose end tells more than their beginning.
#[must_use]
pub fn fit_end(text: &str, width: usize) -> String {
    let shown = escape(text).to_cow();
    if shown.width() <= width {
        return shown.into_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let mut from = shown.len();
    for (at, _) in shown.char_indices().rev() {
        if shown.get(at..).unwrap_or("").width() > room {
            break;
        }
        from = at;
    }
    format!("{CUT}{}", shown.get(from..).unwrap_or(""))
}

/// `text` cut or filled with blanks to exactly `width` columns.
#[must_use]
pub fn pad(text: &str, width: usize) -> String {
    let mut out = fit(text, width);
    let missing = width.saturating_sub(out.width());
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_characters_count_two_columns() {
        assert_eq!(columns("日本"), 4);
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(pad("日本語", 4), "日… ");
        assert_eq!(fit_end("/home/日本/train.py", 10), "…/train.py");
    }

    #[test]
    fn text_that_fits_is_whole() {
        assert_eq!(fit("illegal", 7), "illegal");
        assert_eq!(fit("illegal", 6), "illeg…");
        assert_eq!(fit("illegal", 0), "");
    }

    proptest! {
        #[test]
        fn never_wider_than_asked(text in any::<String>(), width in 0_usize..40) {
            prop_assert!(fit(&text, width).width() <= width);
            prop_assert!(fit_end(&text, width).width() <= width);
            prop_assert_eq!(pad(&text, width).width(), width);
        }
    }
}
