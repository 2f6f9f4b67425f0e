//! Memory around a bad access, to scale.
//!
//! In: the figure. Out: SVG. An access too close to the allocation's edge to be told apart is drawn beside it.

use super::super::super::figure::MemoryMap;
use super::super::page::Page;
use super::{WIDTH, beside, centred, circle, close, cross, line, open, polygon, rect, share};
use crate::text::number::{binary_size, grouped};

const LEFT: f64 = 14.0;
const RIGHT: f64 = WIDTH - 14.0;
const STRIP: f64 = 40.0;
const TALL: f64 = 26.0;

/// Draws it.
pub fn draw(page: &mut Page, map: &MemoryMap, description: &str) {
    let scale = Scale::of(map);
    let (start, end) = (scale.place(map.base), scale.place(map.end()).max(scale.place(map.base) + 4.0));
    let fault = match scale.place(map.address) {
        at if map.address < map.base => at.min(start - 9.0),
        at if map.address >= map.end() => at.max(end + 9.0),
        at => at.clamp(start, end),
    };
    let middle = STRIP + TALL / 2.0;
    let height = if map.wrapped.is_some() { 140.0 } else { 104.0 };

    open(page, height, "Memory around the bad access", description);
    line(page, "axis", (2.0, middle), (WIDTH - 2.0, middle));
    rect(page, "good", (start, STRIP), (end - start, TALL));
    let size = format!("allocation, {}", binary_size(u128::from(map.bytes)));
    line(page, "lead", (fault, STRIP - 12.0), (fault, middle));
    cross(page, (fault, middle), 6.0);
    beside(page, "t-bad", (fault, STRIP - 14.0), &format!("{} at {:#x}", map.access, map.address));
    centred(page, "soft", ((start + end) / 2.0, STRIP + TALL + 17.0), &size);
    match map.wrapped {
        Some(wrapped) => {
            let meant = scale.place(wrapped.intended).clamp(start, end);
            circle(page, "mark-warn", (meant, middle), 5.0);
            let arrow = STRIP + TALL + 38.0;
            line(page, "lead", (fault, middle), (fault, arrow));
            line(page, "lead", (meant, middle), (meant, arrow));
            line(page, "arrow", (fault, arrow), (meant, arrow));
            let back = if meant > fault { -7.0 } else { 7.0 };
            polygon(
                page,
                "mark-warn",
                &[(meant, arrow), (meant + back, arrow - 4.0), (meant + back, arrow + 4.0)],
            );
            let lost = u128::from(wrapped.multiples) * (1 << 32) * u128::from(wrapped.element_bytes);
            let text = format!(
                "{} × 2³² × {} bytes = {} bytes",
                wrapped.multiples,
                wrapped.element_bytes,
                grouped(lost)
            );
            centred(page, "t-warn", ((fault + meant) / 2.0, arrow + 17.0), &text);
            let text = format!("meant: element {}", grouped(u128::from(wrapped.index)));
            centred(page, "soft", (meant, arrow + 34.0), &text);
        }
        None => centred(page, "soft", (fault, STRIP + TALL + 34.0), &map.side()),
    }
    close(page);
}

struct Scale {
    from: i128,
    to: i128,
}

impl Scale {
    fn of(map: &MemoryMap) -> Self {
        let intended = map.wrapped.map_or(map.base, |wrapped| wrapped.intended);
        let points = [map.base, map.end(), map.address, intended].map(i128::from);
        let low = points.into_iter().min().unwrap_or(0);
        let high = points.into_iter().max().unwrap_or(0);
        let margin = (high - low) / 24 + 1;
        Self { from: low - margin, to: high + margin }
    }

    fn place(&self, address: u64) -> f64 {
        LEFT + share(i128::from(address), self.from, self.to) * (RIGHT - LEFT)
    }
}
