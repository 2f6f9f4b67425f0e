//! The checks that were made, with their three outcomes.
//!
//! In: checks. Out: lines. Unknown is shown as unknown, with what would settle it.

use ratatui::text::{Line, Span};

use crate::report::model::{Check, CheckStatus};
use crate::tui::model::Model;
use crate::tui::theme::Role;

use super::wrap::wrap;

/// The lines of a check.
pub fn lines(model: &Model, check: &Check, here: bool, width: usize) -> Vec<Line<'static>> {
    let theme = &model.theme;
    let (glyph, word, role) = match check.status {
        CheckStatus::Holds => (theme.glyphs.good, "holds", Role::Good),
        CheckStatus::Fails => (theme.glyphs.bad, "fails", Role::Danger),
        CheckStatus::Unknown => (theme.glyphs.unknown, "unknown", Role::Warn),
        CheckStatus::Skipped => (theme.glyphs.skipped, "skipped", Role::Muted),
    };
    let title_role = if here { Role::Focus } else { Role::Title };
    let mut lines = vec![Line::from(vec![
        Span::styled(format!("{glyph} {word:<8}"), theme.style(role)),
        Span::styled(crate::text::fit(&check.title, width.saturating_sub(10)), theme.style(title_role)),
    ])];
    lines.extend(
        wrap(&check.reading, width.saturating_sub(10)).into_iter().filter(|line| !line.is_empty()).map(
            |line| Line::from(vec![Span::raw(" ".repeat(10)), Span::styled(line, theme.style(Role::Text))]),
        ),
    );
    lines
}
