//! The pictures of the page, each with its numbers in a table under it.
//!
//! In: a report. Out: figures, where there is something to show.

use super::super::Report;
use super::super::figure::{MemoryMap, NumberLine, RankLanes};
use super::super::wording;
use super::page::Page;
use super::sections::refs;
use super::svg;
use crate::text::number::{binary_size, grouped, grouped_signed, percent};

/// All of them; nothing where the report has no numbers for one.
pub fn section(page: &mut Page, report: &Report) {
    let line = NumberLine::of(report);
    let map = MemoryMap::of(report);
    let lanes = RankLanes::of(report);
    if line.is_none() && map.is_none() && lanes.is_none() {
        return;
    }
    page.tag("<section>\n<h2>Pictures</h2>\n<div class=\"figures\">\n");
    if let Some(line) = line {
        number_line(page, report, &line);
    }
    if let Some(map) = map {
        memory_map(page, report, &map);
    }
    if let Some(lanes) = lanes {
        rank_lanes(page, &lanes);
    }
    page.tag("</div>\n</section>\n");
}

fn number_line(page: &mut Page, report: &Report, line: &NumberLine) {
    let beyond = line.reported.index.saturating_sub(line.limit);
    let verdict = if line.wraps() {
        format!(
            "passes the largest 32-bit index by {} ({})",
            grouped_signed(beyond),
            share(beyond, line.limit)
        )
    } else {
        format!("fits a 32-bit index, with {} to spare", grouped(beyond.unsigned_abs()))
    };
    let caption = format!("The last index of {} {verdict}.", line.reported.label);
    page.tag("<figure>\n<figcaption>").text(&caption);
    refs(page, report, &line.evidence);
    page.tag("</figcaption>\n");
    svg::number_line::draw(page, line, &caption);
    page.tag(
        "<table class=\"stack\"><thead><tr><th></th><th>shape</th><th class=\"number\">last index</th></tr></thead><tbody>\n",
    );
    if let Some(safe) = &line.safe {
        row(page, "● largest that fits", &safe.label, &grouped_signed(safe.index));
    }
    row(page, "┃ limit", "2³¹−1", &grouped_signed(line.limit));
    row(page, "▲ reported", &line.reported.label, &grouped_signed(line.reported.index));
    page.tag("</tbody></table>\n</figure>\n");
}

fn memory_map(page: &mut Page, report: &Report, map: &MemoryMap) {
    let meant = match map.wrapped {
        Some(wrapped) => format!(
            " Moved up by {} × 2³² elements of {}, it lands inside, at element {}.",
            wrapped.multiples,
            bytes(wrapped.element_bytes),
            grouped(u128::from(wrapped.index))
        ),
        None => String::new(),
    };
    let caption = format!("The {} lies {}.{meant}", map.access, map.side());
    page.tag("<figure>\n<figcaption>").text(&caption);
    refs(page, report, std::slice::from_ref(&map.evidence));
    page.tag("</figcaption>\n");
    svg::memory_map::draw(page, map, &caption);
    page.tag(
        "<table class=\"stack\"><thead><tr><th></th><th>address</th><th>what</th></tr></thead><tbody>\n",
    );
    row3(page, "✗ access", &format!("{:#x}", map.address), &format!("{}, {}", map.access, map.side()));
    let size = format!("{} ({} bytes)", binary_size(u128::from(map.bytes)), grouped(u128::from(map.bytes)));
    row3(page, "■ allocation", &format!("{:#x}", map.base), &size);
    if let Some(wrapped) = map.wrapped {
        let what =
            format!("element {} of {}", grouped(u128::from(wrapped.index)), bytes(wrapped.element_bytes));
        row3(page, "● meant", &format!("{:#x}", wrapped.intended), &what);
    }
    page.tag("</tbody></table>\n</figure>\n");
}

fn rank_lanes(page: &mut Page, lanes: &RankLanes) {
    let counts: Vec<String> = lanes
        .counts()
        .into_iter()
        .map(|(state, count)| format!("{count} {}", wording::rank_state(state)))
        .collect();
    let mut caption = format!("{} ranks: {}.", lanes.lanes.len(), counts.join(", "));
    if let Some(first) = lanes.lanes.iter().find(|lane| lane.first) {
        caption.push_str(&format!(" Look at rank {} first.", first.rank));
    }
    if let (Some((seq, op)), Some(_)) = (&lanes.disputed, lanes.range) {
        caption.push_str(&format!(" In question: {op}, number {seq}."));
    }
    page.tag("<figure>\n<figcaption>").text(&caption).tag("</figcaption>\n");
    svg::ranks::draw(page, lanes, &caption);
    page.tag("<p class=\"refs\">The table of ranks below has the same numbers.</p>\n</figure>\n");
}

fn row(page: &mut Page, mark: &str, what: &str, value: &str) {
    page.tag("<tr><td class=\"tight\">").text(mark).tag("</td><td>").text(what);
    page.tag("</td><td class=\"number\" data-label=\"last index\">").text(value).tag("</td></tr>\n");
}

fn row3(page: &mut Page, mark: &str, address: &str, what: &str) {
    page.tag("<tr><td class=\"tight\">").text(mark).tag("</td><td class=\"mono tight\">").text(address);
    page.tag("</td><td>").text(what).tag("</td></tr>\n");
}

fn bytes(count: u64) -> String {
    format!("{} {}", grouped(u128::from(count)), if count == 1 { "byte" } else { "bytes" })
}

#[expect(clippy::cast_precision_loss, reason = "two decimals for people")]
fn share(part: i128, whole: i128) -> String {
    percent(part as f64 / whole.max(1) as f64 * 100.0)
}
