//! The number line of an index, to scale; cut around the limit where everything lies close to it.
//!
//! In: the figure. Out: SVG. The part past the limit is hatched, so that it reads without colours.

use super::super::super::figure::NumberLine;
use super::super::page::Page;
use super::{WIDTH, beside, centred, circle, close, line, open, polygon, rect, share};
use crate::text::number::grouped_signed;

const LEFT: f64 = 30.0;
const RIGHT: f64 = WIDTH - 14.0;
const AXIS: f64 = 50.0;
const HEIGHT: f64 = 128.0;

/// Draws it.
pub fn draw(page: &mut Page, figure: &NumberLine, description: &str) {
    let (from, to) = window(figure);
    let place = |index: i128| LEFT + share(index, from, to) * (RIGHT - LEFT);
    let limit = place(figure.limit);
    let reported = apart(place(figure.reported.index), limit, figure.wraps());
    let safe = figure
        .safe
        .as_ref()
        .map(|point| (apart(place(point.index), limit, point.index > figure.limit), point));

    open(page, HEIGHT, "Index range against the 32-bit limit", description);
    line(page, "axis", (6.0, AXIS), (RIGHT, AXIS));
    centred(page, "soft", (6.0, AXIS + 22.0), "0");
    if from > 0 {
        // Two strokes across the axis: a part is left out.
        for at in [16.0, 20.0] {
            line(page, "axis", (at - 3.0, AXIS + 7.0), (at + 3.0, AXIS - 7.0));
        }
    }
    rect(page, "good", (LEFT, AXIS - 6.0), (limit - LEFT, 12.0));
    rect(page, "bad", (limit, AXIS - 6.0), (RIGHT - limit, 12.0));
    hatch(page, limit, RIGHT);
    line(page, "limit", (limit, AXIS - 16.0), (limit, AXIS + 12.0));
    centred(page, "strong", (limit, AXIS - 24.0), &format!("2³¹−1 = {}", grouped_signed(figure.limit)));
    if let Some((at, point)) = safe {
        line(page, "lead", (at, AXIS + 6.0), (at, AXIS + 44.0));
        circle(page, "mark-good", (at, AXIS), 5.0);
        beside(page, "t-good", (at, AXIS + 46.0), &format!("fits: {}", point.label));
    }
    let (mark, text) = if figure.wraps() { ("mark-bad", "t-bad") } else { ("mark-good", "t-good") };
    line(page, "lead", (reported, AXIS + 18.0), (reported, AXIS + 68.0));
    polygon(
        page,
        mark,
        &[(reported, AXIS + 5.0), (reported - 7.0, AXIS + 18.0), (reported + 7.0, AXIS + 18.0)],
    );
    beside(page, text, (reported, AXIS + 70.0), &format!("reported: {}", figure.reported.label));
    close(page);
}

/// A mark never stands on the limit's own line, on the wrong side least of all.
fn apart(at: f64, limit: f64, past: bool) -> f64 {
    if past { at.max(limit + 9.0) } else { at.min(limit - 9.0) }
}

fn hatch(page: &mut Page, from: f64, to: f64) {
    let mut at = from + 8.0;
    while at < to {
        line(page, "hatch", (at - 8.0, AXIS + 6.0), (at, AXIS - 6.0));
        at += 8.0;
    }
}

/// From 0 where the marks span a good part of the way; else only the stretch around the limit.
fn window(figure: &NumberLine) -> (i128, i128) {
    let limit = figure.limit;
    let indices = [Some(figure.reported.index), figure.safe.as_ref().map(|point| point.index)];
    let far = indices.into_iter().flatten().map(|index| index.abs_diff(limit)).max().unwrap_or(0);
    let far = i128::try_from(far).unwrap_or(i128::MAX / 8).max(1);
    if far.saturating_mul(5) < limit {
        (limit - far - far / 2, limit + far + far / 2)
    } else {
        let highest = figure.reported.index.max(limit);
        (0, highest.saturating_add(highest / 8))
    }
}
