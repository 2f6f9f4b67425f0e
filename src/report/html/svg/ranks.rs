//! Ranks: a lane of collectives each, or a board of states where there are many or no numbers.
//!
//! In: the figure. Out: SVG. A state is told by a letter and by its colour; what completed is filled, what was enqueued and
//! never completed is hatched, what was never enqueued is an empty dashed cell.

use super::super::super::figure::{Lane, RankLanes};
use super::super::super::model::RankState;
use super::super::super::wording;
use super::super::page::Page;
use super::super::sections::state_look;
use super::{Anchor, WIDTH, close, label, line, open, rect, share};

/// Ranks that get a lane; a board shows the rest.
const LANES: usize = 16;

/// Ranks that a board shows one by one.
const BOARD: usize = 1_024;

const ROW: f64 = 24.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 280.0;

/// Draws it.
pub fn draw(page: &mut Page, figure: &RankLanes, description: &str) {
    let shown = figure.range.map_or(0, |_| figure.lanes.len().min(LANES));
    let board = figure.range.is_none() || figure.lanes.len() > LANES;
    let lanes_tall = if shown > 0 { lanes_height(shown) } else { 0.0 };
    let board_tall = if board { board_height(figure) } else { 0.0 };
    open(page, lanes_tall + board_tall, "What each rank did", description);
    if let (Some(range), true) = (figure.range, shown > 0) {
        lanes(page, figure, range, shown);
    }
    if board {
        board_of(page, figure, lanes_tall);
    }
    close(page);
}

fn lanes_height(shown: usize) -> f64 {
    46.0 + rows(shown) * ROW
}

fn lanes(page: &mut Page, figure: &RankLanes, (low, high): (i64, i64), shown: usize) {
    let numbers = Numbers { low, high, one_by_one: figure.one_by_one() };
    let bottom = 22.0 + rows(shown) * ROW;
    label(page, "soft", (0.0, 14.0), Anchor::Start, "number", LEFT);
    label(page, "soft", (numbers.middle(low), 14.0), Anchor::Middle, &low.to_string(), 80.0);
    if high > low {
        label(page, "soft", (numbers.middle(high), 14.0), Anchor::Middle, &high.to_string(), 80.0);
    }
    for (at, lane) in figure.lanes.iter().take(shown).enumerate() {
        lane_of(page, lane, &numbers, 22.0 + rows(at) * ROW);
    }
    if let Some((seq, op)) = &figure.disputed
        && (low..=high).contains(seq)
    {
        let (from, to) = numbers.cell(*seq);
        rect(page, "column", (from - 2.5, 20.0), (to - from + 5.0, rows(shown) * ROW + 1.0));
        label(
            page,
            "t-warn",
            (numbers.middle(*seq).clamp(100.0, 340.0), bottom + 17.0),
            Anchor::Middle,
            &format!("{op}, number {seq}"),
            280.0,
        );
    }
}

fn lane_of(page: &mut Page, lane: &Lane, numbers: &Numbers, top: f64) {
    let class = if lane.first { "strong t-bad" } else { "strong" };
    label(page, class, (0.0, top + 16.0), Anchor::Start, &format!("rank {}", lane.rank), LEFT);
    let enqueued = lane.enqueued.or(lane.completed);
    let completed = lane.completed.unwrap_or(i64::MIN);
    let tall = ROW - 6.0;
    if numbers.one_by_one {
        for seq in numbers.low..=numbers.high {
            let (from, to) = numbers.cell(seq);
            let class = match enqueued {
                _ if seq <= completed => "good",
                Some(last) if seq <= last => "warn",
                _ => "none",
            };
            rect(page, class, (from, top + 3.0), (to - from, tall));
            if class == "warn" {
                line(page, "arrow", (from, top + 3.0 + tall), (to, top + 3.0));
            }
        }
    } else {
        rect(page, "none", (LEFT, top + 3.0), (RIGHT - LEFT, tall));
        if let Some(last) = enqueued {
            rect(page, "warn", (LEFT, top + 3.0), (numbers.end(last) - LEFT, tall));
        }
        rect(page, "good", (LEFT, top + 3.0), (numbers.end(completed) - LEFT, tall));
    }
    let number = |value: Option<i64>| value.map_or_else(|| "–".to_owned(), |value| value.to_string());
    let text =
        format!("{}  {}/{}", wording::rank_state(lane.state), number(lane.completed), number(lane.enqueued));
    label(
        page,
        text_look(lane.state),
        (RIGHT + 12.0, top + 16.0),
        Anchor::Start,
        &text,
        WIDTH - RIGHT - 12.0,
    );
}

/// Sequence numbers along the lanes.
struct Numbers {
    low: i64,
    high: i64,
    one_by_one: bool,
}

impl Numbers {
    fn cell(&self, seq: i64) -> (f64, f64) {
        if self.one_by_one {
            let count = i128::from(self.high) - i128::from(self.low) + 1;
            let low = i128::from(self.low);
            let from = LEFT + share(i128::from(seq), low, low + count) * (RIGHT - LEFT);
            let to = LEFT + share(i128::from(seq) + 1, low, low + count) * (RIGHT - LEFT);
            (from + 1.5, to - 1.5)
        } else {
            let at = self.end(seq);
            (at - 1.0, at + 1.0)
        }
    }

    fn middle(&self, seq: i64) -> f64 {
        let (from, to) = self.cell(seq);
        (from + to) / 2.0
    }

    fn end(&self, seq: i64) -> f64 {
        LEFT + share(i128::from(seq), i128::from(self.low), i128::from(self.high)) * (RIGHT - LEFT)
    }
}

/// Boxes a row and their height: few ranks have room for their state in words.
fn boxes(count: usize) -> (usize, f64) {
    match count {
        0..=8 => (4, 26.0),
        9..=64 => (8, 24.0),
        65..=256 => (16, 20.0),
        _ => (32, 11.0),
    }
}

fn board_height(figure: &RankLanes) -> f64 {
    let count = figure.lanes.len().min(BOARD);
    let (columns, tall) = boxes(count);
    rows(count.div_ceil(columns)) * tall + 28.0
}

/// One box a rank, in the order of their numbers.
fn board_of(page: &mut Page, figure: &RankLanes, top: f64) {
    let mut lanes: Vec<&Lane> = figure.lanes.iter().collect();
    lanes.sort_by_key(|lane| lane.rank);
    let (columns, tall) = boxes(lanes.len());
    let wide = WIDTH / rows(columns);
    for (at, lane) in lanes.iter().take(BOARD).enumerate() {
        let (x, y) = (rows(at % columns) * wide, top + rows(at / columns) * tall);
        rect(page, state_look(lane.state), (x + 1.0, y + 1.0), (wide - 2.0, tall - 2.0));
        let text = match columns {
            4 => format!("{} {}", lane.rank, wording::rank_state(lane.state)),
            8 => format!("{} {}", lane.rank, letter(lane.state)),
            16 => lane.rank.to_string(),
            _ => continue,
        };
        let class = if lane.first { "bare strong t-bad" } else { text_look(lane.state) };
        label(page, class, (x + wide / 2.0, y + tall / 2.0 + 4.5), Anchor::Middle, &text, wide + 8.0);
    }
    let bottom = top + board_height(figure) - 8.0;
    let counts: Vec<String> = figure
        .counts()
        .into_iter()
        .map(|(state, count)| format!("{} {}: {count}", letter(state), wording::rank_state(state)))
        .collect();
    label(page, "soft", (0.0, bottom), Anchor::Start, &counts.join("   "), WIDTH);
}

fn letter(state: RankState) -> &'static str {
    match state {
        RankState::Failed => "F",
        RankState::Silent => "S",
        RankState::Waiting => "W",
        RankState::Terminated => "T",
        RankState::Finished => "D",
        RankState::Unknown => "?",
    }
}

fn text_look(state: RankState) -> &'static str {
    match state_look(state) {
        "bad" => "bare t-bad",
        "warn" => "bare t-warn",
        "good" => "bare t-good",
        _ => "bare soft",
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of rows in a picture")]
fn rows(count: usize) -> f64 {
    count as f64
}
