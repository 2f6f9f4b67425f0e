//! A line of sizes with the boundary on it, drawn in characters.
//!
//! In: marks, each a size with a label, and the last size that fits. Out: lines of text, at most 80 columns for
//! labels of up to 38 characters. Colours and terminals are the front ends' business.

/// Columns of the line itself.
const WIDTH: usize = 36;

/// Columns that two marks keep between them, so that neighbours such as 233,016 and 233,017 stay apart.
const GAP: usize = 3;

/// The characters to draw with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Box drawing characters.
    Unicode,
    /// Characters that every terminal has.
    Ascii,
}

impl Glyphs {
    fn pick(self, unicode: char, ascii: char) -> char {
        if self == Self::Unicode { unicode } else { ascii }
    }
}

/// A size on the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Where it stands.
    pub value: u128,
    /// What is written beside it.
    pub label: String,
    /// True for the reported size, which is drawn as a triangle.
    pub reported: bool,
}

/// Draws the line: solid up to the last mark that fits, broken past it. At most a dozen marks are drawn.
#[must_use]
pub fn draw(mut marks: Vec<Mark>, safe: u128, glyphs: Glyphs) -> Vec<String> {
    marks.sort_by_key(|mark| mark.value);
    marks.truncate(WIDTH / GAP);
    let (Some(low), Some(high)) = (marks.first().map(|mark| mark.value), marks.last().map(|mark| mark.value))
    else {
        return Vec::new();
    };
    // From 0 where the marks span a good part of the way; else only the stretch that holds them.
    let from = if high > low.saturating_mul(2) { 0 } else { low };
    let columns = columns(&marks, from, high);
    let fitting =
        marks.iter().zip(&columns).filter(|(mark, _)| mark.value <= safe).map(|(_, &column)| column);
    let solid = fitting.max().map_or(0, |column| column + 1);

    let mut line = vec![glyphs.pick('╌', '-'); WIDTH];
    for at in line.iter_mut().take(solid) {
        *at = glyphs.pick('━', '=');
    }
    for (mark, &column) in marks.iter().zip(&columns) {
        let limit = if mark.value == safe { glyphs.pick('┃', '|') } else { glyphs.pick('●', 'o') };
        put(&mut line, column, if mark.reported { glyphs.pick('▲', '^') } else { limit });
    }
    let start = if from == 0 { '0' } else { glyphs.pick('…', '~') };
    let mut lines = vec![format!("{start} {}", text(&line))];
    for at in (0..marks.len()).rev() {
        let mut leader = vec![' '; columns.get(at).copied().unwrap_or(0)];
        for &column in columns.iter().take(at) {
            put(&mut leader, column, glyphs.pick('│', '|'));
        }
        let label = marks.get(at).map_or("", |mark| mark.label.as_str());
        lines.push(format!("  {}{} {label}", text(&leader), glyphs.pick('└', '`')));
    }
    lines
}

/// A column for each mark: in proportion, but never closer than [`GAP`].
fn columns(marks: &[Mark], from: u128, to: u128) -> Vec<usize> {
    let (first, last) = (1, WIDTH - 4);
    let span = to.saturating_sub(from).max(1);
    let scaled = |value: u128| {
        // Values of up to 128 bits: halve both until the product fits.
        let shift = (128 - span.leading_zeros()).saturating_sub(64);
        let along = (value.saturating_sub(from) >> shift) * (last - first) as u128 / (span >> shift).max(1);
        first + usize::try_from(along).unwrap_or(last).min(last - first)
    };
    let mut columns: Vec<usize> = Vec::with_capacity(marks.len());
    for mark in marks {
        let after = columns.last().map_or(0, |&column| column + GAP);
        columns.push(scaled(mark.value).max(after));
    }
    let mut before = WIDTH;
    for column in columns.iter_mut().rev() {
        *column = (*column).min(before.saturating_sub(1));
        before = column.saturating_sub(GAP - 1);
    }
    columns
}

fn put(line: &mut [char], column: usize, glyph: char) {
    if let Some(at) = line.get_mut(column) {
        *at = glyph;
    }
}

fn text(line: &[char]) -> String {
    line.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark(value: u128, label: &str) -> Mark {
        Mark { value, label: label.to_owned(), reported: false }
    }

    fn case() -> Vec<Mark> {
        let reported = Mark { reported: true, ..mark(234_624, "reported") };
        vec![reported, mark(233_016, "last that fits"), mark(232_960, "last multiple")]
    }

    #[test]
    fn the_boundary_lies_between_what_passes_and_what_was_reported() {
        let want = [
            "… ━●━━┃╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌▲╌╌╌",
            "   │  │                           └ reported",
            "   │  └ last that fits",
            "   └ last multiple",
        ];
        assert_eq!(draw(case(), 233_016, Glyphs::Unicode), want);
    }

    #[test]
    fn ascii_draws_the_same_line() {
        let lines = draw(case(), 233_016, Glyphs::Ascii);
        assert!(lines.iter().all(|line| line.is_ascii()));
        assert_eq!(lines.first().map(String::as_str), Some("~ =o==|---------------------------^---"));
    }

    #[test]
    fn a_wide_range_starts_at_zero() {
        let lines = draw(vec![mark(65_536, "safe"), mark(1 << 40, "far")], 65_536, Glyphs::Ascii);
        assert!(lines[0].starts_with("0 "), "{lines:?}");
        assert!(draw(Vec::new(), 1, Glyphs::Ascii).is_empty());
    }

    proptest! {
        /// Every label is drawn once, in order, whatever the values.
        #[test]
        fn every_mark_has_its_own_column(values in proptest::collection::btree_set(any::<u128>(), 1..8), safe in any::<u128>()) {
            let marks: Vec<Mark> = values.iter().map(|&value| mark(value, "x")).collect();
            let lines = draw(marks, safe, Glyphs::Ascii);
            prop_assert_eq!(lines.len(), values.len() + 1);
            let glyphs = lines[0].chars().skip(2).filter(|glyph| matches!(glyph, 'o' | '|')).count();
            prop_assert_eq!(glyphs, values.len());
            prop_assert!(lines.iter().all(|line| line.chars().count() <= WIDTH + 4));
        }
    }
}
