//! The number line of an index: what is safe, the limit, what was reported.
//!
//! In: plain numbers and a width. Out: lines. Where the numbers lie close to the limit, the axis is cut and drawn around it,
//! since 0.7 % past 2³¹ is what these crashes look like.

use ratatui::text::{Line, Span};

use crate::tui::theme::{Role, Theme};

use super::units::grouped;

/// A value on the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Its last index.
    pub index: i128,
    /// The shape or size that has it.
    pub label: String,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberLine {
    /// The largest index that fits.
    pub limit: i128,
    /// Its name.
    pub limit_name: String,
    /// The reported size.
    pub reported: Point,
    /// The largest size that fits.
    pub safe: Option<Point>,
    /// Whether an index past the limit is the cause, or only what would follow if 32 bits held it.
    pub wraps: bool,
}

/// The part of the axis that is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    from: i128,
    to: i128,
    columns: i128,
}

impl Window {
    fn of(line: &NumberLine, columns: usize) -> Self {
        let columns = i128::try_from(columns).unwrap_or(1).max(1);
        let values = [line.limit, line.reported.index];
        let safe = line.safe.iter().map(|point| point.index);
        let far =
            values.into_iter().chain(safe.clone()).map(|value| value.abs_diff(line.limit)).max().unwrap_or(0);
        let far = i128::try_from(far).unwrap_or(i128::MAX / 8).max(1);
        let highest = values.into_iter().chain(safe).max().unwrap_or(line.limit).max(1);
        if far.saturating_mul(5) < line.limit {
            Self { from: line.limit - far - far / 2, to: line.limit + far + far / 2, columns }
        } else {
            Self { from: 0, to: highest.saturating_add(highest / 8), columns }
        }
    }

    fn column(&self, value: i128) -> i128 {
        let span = (self.to - self.from).max(1);
        let from_start = value.saturating_sub(self.from).clamp(0, span);
        // Values below 2¹⁰⁰ and a few hundred columns can't overflow.
        from_start.saturating_mul(self.columns - 1) / span
    }
}

/// Draws it.
pub fn lines(picture: &NumberLine, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    if width < 24 {
        return Vec::new();
    }
    let mut lines = vec![axis(picture, width, theme)];
    lines.extend(legend(picture, width, theme));
    lines
}

fn axis(picture: &NumberLine, width: usize, theme: &Theme) -> Line<'static> {
    let glyphs = theme.glyphs;
    let lead = 4;
    let window = Window::of(picture, width - lead);
    let limit = window.column(picture.limit).clamp(1, window.columns - 2);
    let reported = match window.column(picture.reported.index) {
        at if picture.reported.index > picture.limit => at.max(limit + 1),
        at => at.min(limit - 1),
    };
    let safe = picture.safe.as_ref().map(|point| {
        let at = window.column(point.index);
        if point.index <= picture.limit { at.min(limit - 1) } else { at }
    });
    let start = if window.from > 0 { format!("0{}", glyphs.gap) } else { "0".to_owned() };
    let mut spans = vec![Span::styled(pad(&start, lead, glyphs.line), theme.style(Role::Muted))];
    for at in 0..window.columns {
        let span = if at == limit {
            Span::styled(glyphs.limit, theme.style(Role::Title))
        } else if at == reported {
            let role = match (picture.reported.index > picture.limit, picture.wraps) {
                (true, true) => Role::Danger,
                (true, false) => Role::Warn,
                (false, _) => Role::Good,
            };
            Span::styled(glyphs.reported, theme.style(role))
        } else if Some(at) == safe {
            Span::styled(glyphs.safe, theme.style(Role::Good))
        } else if at > limit {
            let role = if picture.wraps { Role::Danger } else { Role::Muted };
            Span::styled(glyphs.heavy, theme.style(role))
        } else {
            Span::styled(glyphs.line, theme.style(Role::Muted))
        };
        spans.push(span);
    }
    Line::from(spans)
}

fn legend(picture: &NumberLine, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let glyphs = theme.glyphs;
    let reported = &picture.reported;
    let beyond = reported.index - picture.limit;
    let (verdict, role) = if beyond > 0 {
        let share = percent(beyond, picture.limit);
        match picture.wraps {
            true => (format!("{} indices wrap ({share})", grouped(beyond)), Role::Danger),
            false => (format!("{} past it ({share}); nothing shows a wrap", grouped(beyond)), Role::Warn),
        }
    } else {
        (format!("fits, {} to spare", grouped(-beyond)), Role::Good)
    };
    let mut rows = Vec::new();
    if let Some(safe) = &picture.safe {
        rows.push((glyphs.safe, "safe", safe.label.clone(), grouped(safe.index), String::new(), Role::Good));
    }
    let limit = grouped(picture.limit);
    rows.push((glyphs.limit, "limit", picture.limit_name.clone(), limit, String::new(), Role::Title));
    rows.push((glyphs.reported, "reported", reported.label.clone(), grouped(reported.index), verdict, role));
    let label = rows.iter().map(|row| row.2.chars().count()).max().unwrap_or(0);
    let number = rows.iter().map(|row| row.3.len()).max().unwrap_or(0);
    rows.into_iter()
        .flat_map(|(glyph, name, text, value, verdict, role)| {
            let style = theme.style(role);
            let mut spans = vec![
                Span::styled(format!("{glyph} "), style),
                Span::raw(format!("{name:<9}{text:<label$}  ")),
                Span::raw(format!("{value:>number$}")),
            ];
            let used: usize = spans.iter().map(Span::width).sum();
            let mut lines = Vec::new();
            if verdict.is_empty() || used + 2 + verdict.len() <= width {
                spans.push(Span::styled(format!("  {verdict}"), style));
                lines.push(Line::from(spans));
            } else {
                lines.push(Line::from(spans));
                lines.push(Line::from(Span::styled(format!("{:11}{verdict}", ""), style)));
            }
            lines
        })
        .collect()
}

/// `part` of `whole` in hundredths of a percent.
fn percent(part: i128, whole: i128) -> String {
    // To the nearest, as the report does.
    let hundredths = part.saturating_mul(20_000).checked_div(whole).unwrap_or(0).saturating_add(1) / 2;
    format!("{}.{:02} %", grouped(hundredths / 100), hundredths % 100)
}

fn pad(text: &str, width: usize, fill: &str) -> String {
    let used = text.chars().count();
    format!("{text}{}", fill.repeat(width.saturating_sub(used)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{ASCII, Palette, UNICODE};

    const THEME: Theme = Theme { palette: Palette::Dark, wide_colours: true, glyphs: &UNICODE };

    fn measured() -> NumberLine {
        NumberLine {
            limit: 2_147_483_647,
            limit_name: "2³¹−1".to_owned(),
            reported: Point { index: 2_162_294_783, label: "234624 × 9216".to_owned() },
            safe: Some(Point { index: 2_147_475_455, label: "233016 × 9216".to_owned() }),
            wraps: true,
        }
    }

    fn text(picture: &NumberLine, width: usize, theme: &Theme) -> String {
        let lines: Vec<String> = lines(picture, width, theme).iter().map(ToString::to_string).collect();
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn an_overflow_of_less_than_a_percent_is_seen() {
        insta::assert_snapshot!(text(&measured(), 60, &THEME), @r"
        0╱╱───────────────────────────●┃═════════════════▲══════════
        ● safe     233016 × 9216  2,147,475,455
        ┃ limit    2³¹−1          2,147,483,647
        ▲ reported 234624 × 9216  2,162,294,783
                   14,811,136 indices wrap (0.69 %)
        ");
    }

    #[test]
    fn a_size_that_fits_lies_left_of_the_limit() {
        let picture = NumberLine {
            reported: Point { index: 999_999_999, label: "1000 × 1000000".to_owned() },
            safe: None,
            limit_name: "2^31-1".to_owned(),
            ..measured()
        };
        let ascii = Theme { glyphs: &ASCII, ..THEME };
        insta::assert_snapshot!(text(&picture, 50, &ascii), @r"
        0---------------------^---------------------|=====
        | limit    2^31-1          2,147,483,647
        ^ reported 1000 × 1000000    999,999,999
                   fits, 1,147,483,648 to spare
        ");
    }

    #[test]
    fn a_size_past_the_limit_is_no_wrap_by_itself() {
        let drawn = text(&NumberLine { wraps: false, ..measured() }, 90, &THEME);
        assert!(drawn.ends_with("14,811,136 past it (0.69 %); nothing shows a wrap"), "{drawn}");
    }

    #[test]
    fn no_number_breaks_it() {
        for index in [0, 1, 2_147_483_647, 2_147_483_648, i128::from(u64::MAX), 1 << 100] {
            for width in [0, 23, 24, 80, 300] {
                let picture = NumberLine { reported: Point { index, label: String::new() }, ..measured() };
                let drawn = lines(&picture, width, &THEME);
                assert!(drawn.first().is_none_or(|axis| axis.width() == width), "{index} {width}");
            }
        }
    }
}
