//! The ranks: who failed, who waited, who left nothing, and how far each came.
//!
//! In: the report. Out: items, the odd one out first, as the report orders them.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::report::Report;
use crate::report::model::{Rank, RankState};
use crate::tui::claims::{self, Subject};
use crate::tui::model::{Incident, Model, Pane};
use crate::tui::theme::{Glyphs, Role};

use super::list::Item;
use super::rank_board;
use super::wrap::wrap;

/// Ranks from which a board of all of them stands on top.
const BOARD_FROM: usize = 9;

/// Columns of a bar.
const BAR: usize = 12;

/// The items of the pane.
pub fn items(model: &Model, incident: &Incident, area: Rect) -> Vec<Item> {
    let Some(report) = incident.report() else { return Vec::new() };
    let muted = model.theme.style(Role::Muted);
    if report.ranks.is_empty() {
        return vec![
            Item::gap(),
            Item::plain(vec![Line::styled(
                "No line names a rank: one process, or logs without rank tags.",
                muted,
            )]),
        ];
    }
    let mut items = vec![Item::plain(vec![counts(model, report)])];
    if report.ranks.len() >= BOARD_FROM {
        items.push(Item::plain(board(model, report, usize::from(area.width).saturating_sub(3))));
    }
    items.push(Item::gap());
    let range = range(report);
    let first = report.verdict.root_rank;
    let cursor = incident.row_of(Pane::Ranks);
    items.extend(report.ranks.iter().enumerate().map(|(row, rank)| {
        let here = row == cursor && incident.pane == Pane::Ranks;
        Item::at(row, vec![row_line(model, rank, range, first == Some(rank.rank), here)])
    }));
    if let Some((low, high)) = range {
        items.push(Item::gap());
        let text = format!(
            "Bars: collectives completed {} and enqueued {}, numbers {low} to {high}.",
            model.theme.glyphs.bar[0], model.theme.glyphs.bar[1]
        );
        items.push(Item::plain(vec![Line::styled(text, muted)]));
    }
    let width = usize::from(area.width).saturating_sub(3);
    let waited = claims::claims(report).into_iter().find(|claim| claim.subject == Subject::Collective);
    items.extend(waited.map(|claim| {
        let lines = wrap(&claim.text, width).into_iter();
        Item::plain(lines.map(|line| Line::styled(line, model.theme.style(Role::Warn))).collect())
    }));
    items
}

fn range(report: &Report) -> Option<(i64, i64)> {
    rank_board::range(
        report.ranks.iter().flat_map(|rank| [rank.last_enqueued, rank.last_completed]).flatten(),
    )
}

fn counts(model: &Model, report: &Report) -> Line<'static> {
    let states = [
        RankState::Failed,
        RankState::Silent,
        RankState::Waiting,
        RankState::Terminated,
        RankState::Finished,
        RankState::Unknown,
    ];
    let total = report.ranks.len();
    let mut text = format!("{total} rank{}", if total == 1 { "" } else { "s" });
    for state in states {
        let count = report.ranks.iter().filter(|rank| rank.state == state).count();
        if count > 0 {
            text.push_str(&format!("  {count} {}", claims::kind_name(state)));
        }
    }
    if let Some(first) = report.verdict.root_rank {
        text.push_str(&format!("  {} rank {first} first", model.theme.glyphs.dot));
    }
    Line::styled(text, model.theme.style(Role::Title))
}

/// One cell a rank, in the order of their numbers.
fn board(model: &Model, report: &Report, width: usize) -> Vec<Line<'static>> {
    let mut ranks: Vec<&Rank> = report.ranks.iter().collect();
    ranks.sort_by_key(|rank| rank.rank);
    let columns = (width / 2).clamp(8, 64);
    ranks
        .chunks(columns)
        .map(|row| {
            let cells = row.iter().map(|rank| {
                let (glyph, role) = look(rank.state, model.theme.glyphs);
                Span::styled(format!("{glyph} "), model.theme.style(role))
            });
            Line::from(cells.collect::<Vec<_>>())
        })
        .collect()
}

fn look(state: RankState, glyphs: &Glyphs) -> (&'static str, Role) {
    match state {
        RankState::Failed => (glyphs.bad, Role::Danger),
        RankState::Silent => (glyphs.unknown, Role::Warn),
        RankState::Waiting => (glyphs.waiting, Role::Warn),
        RankState::Terminated => (glyphs.skipped, Role::Muted),
        RankState::Finished => (glyphs.good, Role::Good),
        RankState::Unknown => (glyphs.unknown, Role::Muted),
    }
}

fn row_line(model: &Model, rank: &Rank, range: Option<(i64, i64)>, first: bool, here: bool) -> Line<'static> {
    let theme = &model.theme;
    let (glyph, role) = look(rank.state, theme.glyphs);
    let name_role = if here { Role::Focus } else { Role::Title };
    let mut spans = vec![
        Span::styled(format!("{glyph} "), theme.style(role)),
        Span::styled(format!("rank {:<5}", rank.rank), theme.style(name_role)),
        Span::styled(format!("{:<11}", claims::kind_name(rank.state)), theme.style(role)),
    ];
    if let Some((low, high)) = range {
        let (done, begun) = match (rank.last_completed, rank.last_enqueued) {
            (None, None) => (String::new(), String::new()),
            (completed, enqueued) => {
                let completed = completed.unwrap_or(low);
                rank_board::bar(completed, enqueued.unwrap_or(completed), low, high, BAR, theme.glyphs)
            }
        };
        let rest = BAR.saturating_sub(done.chars().count() + begun.chars().count());
        let number = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
        let numbers = format!("{}/{}", number(rank.last_completed), number(rank.last_enqueued));
        spans.push(Span::styled(done, theme.style(Role::Good)));
        spans.push(Span::styled(begun, theme.style(Role::Warn)));
        spans.push(Span::raw(format!("{:rest$} {numbers:<10}", "")));
    }
    spans.push(Span::raw(ending(rank)));
    if first {
        spans.push(Span::styled(" failed first", theme.style(Role::Danger)));
    }
    let place: Vec<String> = [
        rank.host.clone(),
        rank.pid.map(|pid| format!("pid {pid}")),
        rank.pci.as_ref().map(|pci| format!("GPU {pci}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !place.is_empty() {
        spans.push(Span::styled(format!("  {}", place.join(" ")), theme.style(Role::Muted)));
    }
    Line::from(spans)
}

fn ending(rank: &Rank) -> String {
    let signal = |number: u32| match number {
        4 => "SIGILL".to_owned(),
        6 => "SIGABRT".to_owned(),
        7 => "SIGBUS".to_owned(),
        9 => "SIGKILL".to_owned(),
        11 => "SIGSEGV".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    };
    match (rank.signal, rank.exit_code) {
        (Some(number), _) => signal(number),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => String::new(),
    }
}
