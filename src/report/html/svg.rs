//! Pictures as inline SVG.
//!
//! In: plain figures. Out: `<svg>` elements that take their colours from the page, so that they follow dark mode and paper.
//! Each has a title and a description; what it shows stands in a table as well.

pub mod memory_map;
pub mod number_line;
pub mod ranks;

use super::page::Page;
use crate::text::{columns, fit};

/// Width of every picture in its own units; the page scales it.
const WIDTH: f64 = 440.0;

/// Width of a letter of 13 units in a wide font.
const LETTER: f64 = 7.5;

/// Opens a picture.
fn open(page: &mut Page, height: f64, title: &str, description: &str) {
    let id = page.fresh_id();
    let (title_id, description_id) = (format!("t{id}"), format!("d{id}"));
    let labelled = format!("{title_id} {description_id}");
    let view = format!("0 0 {} {}", units(WIDTH), units(height));
    page.open("svg", &[("viewBox", &view), ("role", "img"), ("aria-labelledby", &labelled)]);
    page.element("title", &[("id", &title_id)], title)
        .element("desc", &[("id", &description_id)], description)
        .tag("\n");
}

fn close(page: &mut Page) {
    page.tag("</svg>\n");
}

fn rect(page: &mut Page, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
    page.open(
        "rect",
        &[
            ("class", class),
            ("x", &units(x)),
            ("y", &units(y)),
            ("width", &units(width.max(0.0))),
            ("height", &units(height.max(0.0))),
        ],
    )
    .close("rect");
}

fn line(page: &mut Page, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let (x1, y1, x2, y2) = (units(x1), units(y1), units(x2), units(y2));
    page.open("line", &[("class", class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)]).close("line");
}

fn circle(page: &mut Page, class: &str, (x, y): (f64, f64), radius: f64) {
    page.open("circle", &[("class", class), ("cx", &units(x)), ("cy", &units(y)), ("r", &units(radius))])
        .close("circle");
}

/// A filled shape through points.
fn polygon(page: &mut Page, class: &str, points: &[(f64, f64)]) {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", units(*x), units(*y))).collect();
    page.open("polygon", &[("class", class), ("points", &points.join(" "))]).close("polygon");
}

/// A cross of two strokes.
fn cross(page: &mut Page, (x, y): (f64, f64), arm: f64) {
    line(page, "cross", (x - arm, y - arm), (x + arm, y + arm));
    line(page, "cross", (x - arm, y + arm), (x + arm, y - arm));
}

/// Where a label stands against its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// A label, cut to `room` units.
fn label(page: &mut Page, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str, room: f64) {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let text = fit(text, letters(room));
    page.element(
        "text",
        &[("class", class), ("x", &units(x)), ("y", &units(y)), ("text-anchor", anchor)],
        &text,
    );
}

/// A label beside the mark at `x`, on a side that has room for it; else around it.
fn beside(page: &mut Page, class: &str, (x, y): (f64, f64), text: &str) {
    let (left, right) = (x - 4.0, WIDTH - x - 4.0);
    let needed = width_of(text);
    if right >= needed {
        label(page, class, (x + 4.0, y), Anchor::Start, text, right);
    } else if left >= needed {
        label(page, class, (x - 4.0, y), Anchor::End, text, left);
    } else {
        centred(page, class, (x, y), text);
    }
}

/// A label centred on `x` as far as the picture allows.
fn centred(page: &mut Page, class: &str, (x, y): (f64, f64), text: &str) {
    let half = (width_of(text) / 2.0).min(WIDTH / 2.0);
    label(page, class, (x.clamp(half, WIDTH - half), y), Anchor::Middle, text, WIDTH);
}

#[expect(clippy::cast_precision_loss, reason = "columns of a label")]
fn width_of(text: &str) -> f64 {
    columns(text) as f64 * LETTER
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a label's length")]
fn letters(room: f64) -> usize {
    (room / LETTER).clamp(0.0, 200.0) as usize
}

/// A length with one decimal.
fn units(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A value on a range, as a share from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn share(value: i128, from: i128, to: i128) -> f64 {
    let span = to.saturating_sub(from).max(1);
    (value.saturating_sub(from) as f64 / span as f64).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_inside_whatever_the_numbers() {
        for value in [i128::MIN, -1, 0, 7, i128::MAX] {
            let at = share(value, 0, 10);
            assert!((0.0..=1.0).contains(&at), "{value}");
        }
        assert!((share(5, 0, 10) - 0.5).abs() < 1e-9);
        assert_eq!((units(3.0), units(2.25)), ("3".to_owned(), "2.2".to_owned()));
    }

    #[test]
    fn a_long_label_is_cut_to_the_picture() {
        let mut page = Page::new();
        beside(&mut page, "x", (400.0, 10.0), &"m".repeat(500));
        let text = page.finish();
        assert!(text.contains("text-anchor=\"middle\"") && text.len() < 200, "{text}");
    }
}
