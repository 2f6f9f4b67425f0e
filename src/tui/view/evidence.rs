//! The evidence: one line each, and the one under the cursor in full.
//!
//! In: the report. Out: cells. It draws the visible lines only, so that four hundred or forty thousand are the same.

use std::collections::BTreeSet;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use serde_json::Value;

use crate::report::Report;
use crate::report::model::Evidence;
use crate::text::{columns, fit, pad};
use crate::tui::claims;
use crate::tui::model::{Incident, Model, Pane};
use crate::tui::theme::Role;

use super::list::scrollbar;
use super::wrap::wrap;

/// Draws the pane.
pub fn draw(model: &Model, incident: &Incident, area: Rect, buffer: &mut Buffer) {
    let Some(report) = incident.report() else { return };
    let [list, detail] = split(area);
    let cursor = incident.row_of(Pane::Evidence);
    let focused = incident.pane == Pane::Evidence;
    let top = top(cursor, report.evidence.len(), list.height);
    let visible = report.evidence.get(top..).unwrap_or_default();
    let visible = visible.get(..usize::from(list.height)).unwrap_or(visible);
    let shared = Shared::of(report, visible);
    for ((row, evidence), y) in (top..).zip(visible).zip(list.y..list.bottom()) {
        let line = row_line(
            model,
            report,
            evidence,
            row == cursor,
            &shared,
            usize::from(list.width).saturating_sub(1),
        );
        let place = Rect { y, height: 1, ..list };
        line.render(place, buffer);
        if row == cursor && focused {
            buffer.set_style(place, model.theme.style(Role::Selected));
        }
    }
    scrollbar(model, list, top, report.evidence.len(), buffer);
    if let Some(evidence) = report.evidence.get(cursor) {
        draw_detail(model, report, evidence, detail, buffer);
    } else {
        let text = Line::styled(
            "  No evidence: nothing in the input reads like a failure.",
            model.theme.style(Role::Muted),
        );
        text.render(area, buffer);
    }
}

/// The list, and the detail under it where there is room.
fn split(area: Rect) -> [Rect; 2] {
    let detail = if area.height >= 12 { (area.height * 2 / 5).min(12) } else { 0 };
    let list = Rect { height: area.height - detail, ..area };
    [list, Rect { y: list.bottom(), height: detail, ..area }]
}

fn top(cursor: usize, count: usize, height: u16) -> usize {
    let height = usize::from(height);
    cursor.saturating_sub(height / 2).min(count.saturating_sub(height))
}

/// The row under line `y` of the pane.
pub fn hit(incident: &Incident, area: Rect, y: u16) -> Option<usize> {
    let count = incident.report()?.evidence.len();
    let [list, _] = split(area);
    let row = top(incident.row_of(Pane::Evidence), count, list.height) + usize::from(y);
    (y < list.height && row < count).then_some(row)
}

/// What the rows share: columns of the fields, as wide as what is visible needs, and what decides.
struct Shared {
    id: usize,
    position: usize,
    rank: usize,
    kind: usize,
    deciding: BTreeSet<String>,
}

impl Shared {
    fn of(report: &Report, visible: &[Evidence]) -> Self {
        let most = |width: &dyn Fn(&Evidence) -> usize| visible.iter().map(width).max().unwrap_or(0);
        Self {
            id: most(&|evidence| evidence.id.len()) + 1,
            position: most(&|evidence| columns(&claims::position(report, evidence))).min(24) + 1,
            rank: most(&|evidence| evidence.rank.map_or(0, |rank| rank.to_string().len() + 2)),
            kind: most(&|evidence| claims::kind_name(evidence.kind).len()) + 1,
            deciding: claims::deciding(report),
        }
    }
}

fn row_line(
    model: &Model,
    report: &Report,
    evidence: &Evidence,
    here: bool,
    shared: &Shared,
    width: usize,
) -> Line<'static> {
    let theme = &model.theme;
    let glyphs = theme.glyphs;
    let deciding = shared.deciding.contains(&evidence.id);
    let rank = evidence.rank.map(|rank| format!("r{rank}")).unwrap_or_default();
    let head = vec![
        Span::styled(pad(if here { glyphs.cursor } else { "" }, 2), theme.style(Role::Focus)),
        Span::styled(
            pad(if deciding { glyphs.deciding } else { "" }, 2),
            theme.style(if deciding { Role::Danger } else { Role::Muted }),
        ),
        Span::styled(pad(&evidence.id, shared.id), theme.style(Role::Title)),
        Span::styled(pad(&claims::position(report, evidence), shared.position), theme.style(Role::Link)),
        Span::styled(pad(&rank, shared.rank), theme.style(Role::Muted)),
        Span::styled(pad(&claims::kind_name(evidence.kind), shared.kind), theme.style(Role::Muted)),
    ];
    let used: usize = head.iter().map(Span::width).sum();
    let mut spans = head;
    spans.push(Span::raw(fit(evidence.text.trim_start(), width.saturating_sub(used))));
    Line::from(spans)
}

fn draw_detail(model: &Model, report: &Report, evidence: &Evidence, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let theme = &model.theme;
    let width = usize::from(area.width).saturating_sub(2);
    let uses = uses(report, &evidence.id);
    let title = if uses.is_empty() {
        evidence.id.clone()
    } else {
        format!("{} {} {uses}", evidence.id, theme.glyphs.dot)
    };
    let rule = theme.glyphs.line.repeat(usize::from(area.width));
    let mut lines = vec![
        Line::styled(rule, theme.style(Role::Muted)),
        Line::styled(fit(&title, width), theme.style(Role::Title)),
    ];
    lines.extend(wrap(&evidence.text, width).into_iter().take(4).map(Line::from));
    let fields: Vec<String> =
        evidence.fields.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect();
    let fields = fields.join(&format!("  {} ", theme.glyphs.dot));
    lines.extend(wrap(&fields, width).into_iter().map(|line| Line::styled(line, theme.style(Role::Muted))));
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        line.render(Rect { x: area.x + 1, y, width: area.width.saturating_sub(1), height: 1 }, buffer);
    }
}

/// Which claims rest on it.
fn uses(report: &Report, id: &str) -> String {
    let labels: Vec<&str> = claims::claims(report)
        .iter()
        .filter(|claim| claim.evidence.iter().any(|other| other == id))
        .map(|claim| if claim.label.is_empty() { "verdict" } else { claim.label })
        .collect();
    labels.join(", ")
}

/// A field's value without the quotes of JSON. Strings in reports are escaped already.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
