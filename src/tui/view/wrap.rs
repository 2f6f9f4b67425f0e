//! Words into lines of a width.
//!
//! In: text, already escaped, and columns. Out: lines that fit, broken at blanks where there are any.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// `text` in lines of at most `width` columns; never empty.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(4);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let columns = word.width();
        if used > 0 && used + 1 + columns <= width {
            line.push(' ');
            line.push_str(word);
            used += 1 + columns;
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
        }
        let (whole, rest) = broken(word, width);
        lines.extend(whole);
        used = rest.width();
        line = rest;
    }
    if used > 0 || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// A word in pieces of a width, the last of which may be shorter.
fn broken(word: &str, width: usize) -> (Vec<String>, String) {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut used = 0;
    for c in word.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns > width && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            used = 0;
        }
        piece.push(c);
        used += columns;
    }
    (pieces, piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("", 9), [""]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_all_fits(text in "[a-z日 ]{0,80}", width in 4_usize..30) {
            let lines = wrap(&text, width);
            prop_assert!(lines.iter().all(|line| line.width() <= width));
            let squeezed = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(squeezed(&lines.concat()), squeezed(&text));
        }
    }
}
