//! A map of memory around a bad access: the allocation, the access, and where a wrapped index should have gone.
//!
//! In: plain addresses and a width. Out: lines, to scale.

use ratatui::text::{Line, Span};

use crate::tui::theme::{Role, Theme};

use super::units::{bytes, grouped};

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryMap {
    /// First address of the allocation.
    pub base: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Address of the access.
    pub address: u64,
    /// What the access was (`write of 16 bytes`).
    pub access: String,
    /// The index that wrapped, where one did.
    pub wrapped: Option<WrappedIndex>,
}

/// An index that wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrappedIndex {
    /// The index as it should have been, in elements.
    pub index: u64,
    /// Bytes of an element.
    pub element_bytes: u64,
}

impl MemoryMap {
    /// The address that the access should have had.
    fn intended(&self) -> Option<u64> {
        let wrapped = self.wrapped?;
        self.base.checked_add(wrapped.index.checked_mul(wrapped.element_bytes)?)
    }

    fn end(&self) -> u64 {
        self.base.saturating_add(self.bytes)
    }
}

/// Draws it.
pub fn lines(map: &MemoryMap, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    if width < 24 {
        return Vec::new();
    }
    let scale = Scale::of(map, width);
    let mut lines = vec![strip(map, &scale, theme)];
    lines.extend(distance(map, &scale, theme));
    lines.extend(legend(map, theme));
    lines
}

struct Scale {
    from: u64,
    span: u64,
    columns: usize,
}

impl Scale {
    fn of(map: &MemoryMap, columns: usize) -> Self {
        let points = [map.base, map.end(), map.address, map.intended().unwrap_or(map.base)];
        let low = points.into_iter().min().unwrap_or(0);
        let high = points.into_iter().max().unwrap_or(0);
        let margin = (high - low) / 16 + 1;
        let from = low.saturating_sub(margin);
        Self { from, span: high.saturating_add(margin) - from, columns }
    }

    fn column(&self, address: u64) -> usize {
        let offset = u128::from(address.saturating_sub(self.from).min(self.span));
        let columns = (self.columns - 1) as u128;
        usize::try_from(offset * columns / u128::from(self.span.max(1))).unwrap_or(0)
    }
}

fn strip(map: &MemoryMap, scale: &Scale, theme: &Theme) -> Line<'static> {
    let glyphs = theme.glyphs;
    let (start, end) = (scale.column(map.base), scale.column(map.end()).max(scale.column(map.base) + 2));
    let fault = match scale.column(map.address) {
        // A near miss must not hide inside the block that it misses.
        at if map.address < map.base => at.min(start.saturating_sub(1)),
        at if map.address >= map.end() => at.max(end + 1),
        at => at,
    };
    let intended = map.intended().map(|address| scale.column(address).clamp(start, end));
    let spans = (0..scale.columns).map(|at| {
        if at == fault {
            Span::styled(glyphs.bad, theme.style(Role::Danger))
        } else if Some(at) == intended {
            Span::styled(glyphs.safe, theme.style(Role::Warn))
        } else if at == start {
            Span::styled(glyphs.memory[0], theme.style(Role::Good))
        } else if at == end {
            Span::styled(glyphs.memory[1], theme.style(Role::Good))
        } else if at > start && at < end {
            Span::styled(glyphs.memory[2], theme.style(Role::Good))
        } else {
            Span::styled(glyphs.line, theme.style(Role::Muted))
        }
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// The arrow from the access to where it should have gone, or to the allocation.
fn distance(map: &MemoryMap, scale: &Scale, theme: &Theme) -> Option<Line<'static>> {
    let target = map.intended().unwrap_or(if map.address < map.base { map.base } else { map.end() });
    let (a, b) = (scale.column(map.address), scale.column(target));
    let (left, right) = (a.min(b), a.max(b));
    let text = match map.wrapped {
        Some(wrapped) => format!(" 2^32 x {} bytes ", wrapped.element_bytes),
        None => format!(" {} bytes ", grouped(i128::from(map.address.abs_diff(target)))),
    };
    let room = (right + 1).checked_sub(left + 2)?;
    if room < text.len() {
        return None;
    }
    let fill = room - text.len();
    let line = theme.glyphs.line;
    let [to_left, to_right] = theme.glyphs.arrows;
    let (head, tail) = if b > a { (line, to_right) } else { (to_left, line) };
    let arrow = format!("{head}{}{text}{}{tail}", line.repeat(fill / 2), line.repeat(fill - fill / 2));
    Some(Line::from(vec![Span::raw(" ".repeat(left)), Span::styled(arrow, theme.style(Role::Muted))]))
}

fn legend(map: &MemoryMap, theme: &Theme) -> Vec<Line<'static>> {
    let glyphs = theme.glyphs;
    let side = if map.address < map.base {
        format!("{} bytes before", grouped(i128::from(map.base - map.address)))
    } else if map.address == map.end() {
        "right behind its end".to_owned()
    } else if map.address > map.end() {
        format!("{} bytes past its end", grouped(i128::from(map.address - map.end())))
    } else {
        "inside the allocation".to_owned()
    };
    let row = |glyph: &str, role, name: &str, address: u64, text: String| {
        Line::from(vec![
            Span::styled(format!("{glyph} "), theme.style(role)),
            Span::raw(format!("{name:<11}{address:#x}  {text}")),
        ])
    };
    let mut rows = vec![
        row(glyphs.bad, Role::Danger, "access", map.address, format!("{}, {side}", map.access)),
        row(glyphs.memory[2], Role::Good, "allocation", map.base, bytes(map.bytes)),
    ];
    if let (Some(intended), Some(wrapped)) = (map.intended(), map.wrapped) {
        let text = format!("element {}, as meant", grouped(i128::from(wrapped.index)));
        rows.push(row(glyphs.safe, Role::Warn, "intended", intended, text));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{Palette, UNICODE};

    const THEME: Theme = Theme { palette: Palette::Dark, wide_colours: true, glyphs: &UNICODE };

    fn text(map: &MemoryMap, width: usize) -> String {
        let lines: Vec<String> = lines(map, width, &THEME).iter().map(ToString::to_string).collect();
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_wrapped_index_is_drawn_to_scale() {
        let map = MemoryMap {
            base: 0x7fa4_4400_0000,
            bytes: 9_175_040_000,
            address: 0x7fa2_46c8_0080,
            access: "write of 4 bytes".to_owned(),
            wrapped: Some(WrappedIndex { index: 2_159_149_088, element_bytes: 4 }),
        };
        insta::assert_snapshot!(text(&map, 70), @"
        ───✗─────────────────────────────[█████████████████████████████●█]────
           ────────────────────── 2^32 x 4 bytes ──────────────────────▶
        ✗ access     0x7fa246c80080  write of 4 bytes, 8,543,272,832 bytes before
        █ allocation 0x7fa444000000  8.5 GiB
        ● intended   0x7fa646c80080  element 2,159,149,088, as meant
        ");
    }

    #[test]
    fn one_byte_past_the_end_is_seen() {
        let map = MemoryMap {
            base: 0x7000_0000,
            bytes: 4096,
            address: 0x7000_1000,
            access: "read of 4 bytes".to_owned(),
            wrapped: None,
        };
        insta::assert_snapshot!(text(&map, 40), @"
        ──[█████████████████████████████████]✗──
        ✗ access     0x70001000  read of 4 bytes, right behind its end
        █ allocation 0x70000000  4.0 KiB
        ");
    }

    #[test]
    fn no_address_breaks_it() {
        for (base, bytes, address) in [(0, 0, 0), (u64::MAX, u64::MAX, 0), (5, u64::MAX, 1), (0, 1, u64::MAX)]
        {
            for width in [0, 24, 100] {
                let wrapped = Some(WrappedIndex { index: u64::MAX, element_bytes: 8 });
                let map = MemoryMap { base, bytes, address, access: String::new(), wrapped };
                let drawn = lines(&map, width, &THEME);
                assert!(drawn.first().is_none_or(|strip| strip.width() == width));
            }
        }
    }
}
