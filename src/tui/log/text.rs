//! A line of a log as styled text.
//!
//! In: the bytes of a line and what is searched for. Out: spans, escaped, with colours of terminals taken out; and the rows
//! into which they wrap. It decodes no more of a line than [`LINE_BYTES`].

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::text::escape;
use crate::tui::theme::{Role, Theme};

use super::search::Pattern;

/// Most bytes of a line that are decoded; what follows is told by its size.
pub const LINE_BYTES: usize = 64 * 1024;

/// A line as spans.
pub fn spans(line: &[u8], pattern: Option<&Pattern>, theme: &Theme) -> Vec<Span<'static>> {
    let shown = line.get(..LINE_BYTES).unwrap_or(line);
    let clean = without_colours(shown);
    let base = theme.style(tint(&clean));
    let mut spans = Vec::new();
    let mut at = 0;
    for place in pattern.map(|pattern| pattern.places(&clean)).unwrap_or_default() {
        push(&mut spans, clean.get(at..place.start), base);
        push(&mut spans, clean.get(place.clone()), theme.style(Role::Match));
        at = place.end;
    }
    push(&mut spans, clean.get(at..), base);
    let rest = line.len() - shown.len();
    if rest > 0 {
        let text = format!("{} {} more", theme.glyphs.cut, crate::tui::view::units::bytes(rest as u64));
        spans.push(Span::styled(text, theme.style(Role::Muted)));
    }
    spans
}

fn push(spans: &mut Vec<Span<'static>>, bytes: Option<&[u8]>, style: Style) {
    let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return };
    let text = String::from_utf8_lossy(bytes);
    spans.push(Span::styled(escape(&text).to_string(), style));
}

/// Colour sequences (`ESC [ … m`) out; every other escape sequence stays and is shown.
fn without_colours(line: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if memchr::memchr(0x1b, line).is_none() {
        return line.into();
    }
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memchr(0x1b, rest) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        match colour_len(rest) {
            Some(len) => rest = rest.get(len..).unwrap_or_default(),
            None => {
                out.push(0x1b);
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    out.extend_from_slice(rest);
    out.into()
}

fn colour_len(bytes: &[u8]) -> Option<usize> {
    let body = bytes.strip_prefix(b"\x1b[")?;
    let digits = body.iter().take(32).take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).count();
    (body.get(digits) == Some(&b'm')).then_some(digits + 3)
}

/// Frames and their marks stand back, the lines that say what went wrong stand out.
fn tint(line: &[u8]) -> Role {
    let head = line.get(..400).unwrap_or(line);
    let has = |needle: &[u8]| memchr::memmem::find(head, needle).is_some();
    if has(b"File \"") || has(b"frame #") || has(b"Traceback (most recent") || has(b"Fatal Python error") {
        return Role::Code;
    }
    let body = head.iter().position(|byte| !matches!(byte, b' ' | b'\t')).and_then(|at| head.get(at..));
    let carets = body.is_some_and(|body| body.iter().all(|byte| matches!(byte, b'^' | b'~' | b' ' | b'\r')));
    if carets && has(b"^") { Role::Warn } else { Role::Text }
}

/// The part of a line from column `left` on; cells cut in half become blanks.
pub fn from_column(spans: &[Span<'static>], left: usize) -> Vec<Span<'static>> {
    if left == 0 {
        return spans.to_vec();
    }
    let mut skip = left;
    let mut out = Vec::new();
    for span in spans {
        if skip == 0 {
            out.push(span.clone());
            continue;
        }
        let mut kept = String::new();
        for grapheme in span.styled_graphemes(Style::new()) {
            let width = grapheme.symbol.width();
            if skip == 0 {
                kept.push_str(grapheme.symbol);
            } else if width <= skip {
                skip -= width;
            } else {
                kept.push_str(&" ".repeat(width - skip));
                skip = 0;
            }
        }
        if !kept.is_empty() {
            out.push(Span::styled(kept, span.style));
        }
    }
    out
}

/// The rows of a line in a pane of `width` columns, at most `limit`.
pub fn wrapped(spans: &[Span<'static>], width: usize, limit: usize) -> Vec<Line<'static>> {
    let width = width.max(2);
    let mut rows: Vec<Vec<Span<'static>>> = vec![Vec::new()];
    let mut column = 0;
    for span in spans {
        let mut piece = String::new();
        for grapheme in span.styled_graphemes(Style::new()) {
            let cells = grapheme.symbol.width();
            if column + cells > width {
                if let Some(row) = rows.last_mut() {
                    row.push(Span::styled(std::mem::take(&mut piece), span.style));
                }
                if rows.len() == limit {
                    return rows.into_iter().map(Line::from).collect();
                }
                rows.push(Vec::new());
                column = 0;
            }
            piece.push_str(grapheme.symbol);
            column += cells;
        }
        if let Some(row) = rows.last_mut()
            && !piece.is_empty()
        {
            row.push(Span::styled(piece, span.style));
        }
    }
    rows.into_iter().map(Line::from).collect()
}

/// Columns of a line.
pub fn width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(Span::width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{Palette, UNICODE};

    const THEME: Theme = Theme { palette: Palette::Dark, wide_colours: true, glyphs: &UNICODE };

    fn plain(spans: &[Span<'_>]) -> String {
        spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn colours_go_and_other_sequences_are_shown() {
        let line = spans(b"\x1b[1;31merror\x1b[0m \x1b]0;title\x07 \x1b[2J", None, &THEME);
        assert_eq!(plain(&line), "error \\x1b]0;title\\x07 \\x1b[2J");
    }

    #[test]
    fn matches_are_marked() {
        let pattern = Pattern::new("nccl").unwrap();
        let line = spans(b"the NCCL watchdog", Some(&pattern), &THEME);
        let texts: Vec<&str> = line.iter().map(|span| span.content.as_ref()).collect();
        assert_eq!(texts, ["the ", "NCCL", " watchdog"]);
        assert_eq!(line[1].style, THEME.style(Role::Match));
    }

    #[test]
    fn wide_characters_are_never_cut_in_half() {
        let line = spans("日本語abc".as_bytes(), None, &THEME);
        assert_eq!(plain(&from_column(&line, 3)), " 語abc");
        let rows: Vec<String> = wrapped(&line, 5, 9).iter().map(|row| plain(&row.spans)).collect();
        assert_eq!(rows, ["日本", "語abc"]);
    }

    #[test]
    fn a_huge_line_is_told_by_its_size() {
        let line = spans(&vec![b'x'; 100 << 20], None, &THEME);
        assert!(plain(&line).ends_with("xx… 99.9 MiB more"), "{}", plain(&line).len());
        assert_eq!(wrapped(&line, 10, 4).len(), 4);
    }
}
