//! Search, filters and inputs of the log pane.
//!
//! In: the model, and what the workers found. Out: the log's state, and jobs for the workers.

use crate::report::model::EvidenceKind;
use crate::tui::log::filter::{Filter, FilterRun, Filtered};
use crate::tui::log::index::LineIndex;
use crate::tui::log::lines::line_start;
use crate::tui::log::search::{Direction, Pattern, Search};
use crate::tui::model::{Incident, Model, Pane};
use crate::tui::msg::Cmd;

use super::action::focus;
use super::{jump, scroll};

/// Counts the lines of the input that is shown, once.
pub fn want_index(model: &mut Model) -> Option<Cmd> {
    let generation = model.generation;
    let incident = model.incident.as_mut()?;
    let source = incident.log.source;
    let bytes = incident.sources.get(source)?.bytes.clone();
    if incident.log.indexes.len() <= source {
        incident.log.indexes.resize_with(source + 1, LineIndex::default);
    }
    if incident.log.indexing == Some((generation, source, bytes.len())) {
        return None;
    }
    let index = incident.log.indexes.get_mut(source)?;
    index.grow(bytes.len());
    if index.is_done() {
        return None;
    }
    incident.log.indexing = Some((generation, source, bytes.len()));
    Some(Cmd::Index { generation, source, bytes, index: index.clone() })
}

/// Takes a count in.
pub fn indexed(model: &mut Model, generation: u64, source: usize, index: LineIndex) {
    if generation != model.generation {
        return;
    }
    if let Some(slot) = model.incident.as_mut().and_then(|incident| incident.log.indexes.get_mut(source)) {
        *slot = index;
    }
}

/// Starts a search; an empty pattern ends it.
pub fn search(model: &mut Model, text: &str) -> Vec<Cmd> {
    if text.is_empty() {
        if let Some(incident) = model.incident.as_mut() {
            incident.log.search = None;
        }
        return Vec::new();
    }
    let pattern = match Pattern::new(text) {
        Ok(pattern) => pattern,
        Err(why) => {
            model.say(format!("That is no regular expression: {}", crate::text::escape(&why)));
            return Vec::new();
        }
    };
    if model.incident.as_ref().is_some_and(|incident| incident.pane != Pane::Log) {
        focus(model, Pane::Log);
    }
    let id = model.next_job();
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    let Some(source) = incident.source() else { return Vec::new() };
    let bytes = source.bytes.clone();
    let mut search = Search::new(id, incident.log.source, pattern.clone());
    // The line under the cursor counts as the first match.
    search.wanted = Some((incident.log.cursor, Direction::Down));
    search.from_here = true;
    incident.log.search = Some(search);
    vec![Cmd::Search { id, bytes, from: 0, pattern }]
}

/// Goes on with the search over bytes that have grown, or starts it afresh over others.
pub fn search_on(incident: &mut Incident) -> Option<Cmd> {
    let bytes = incident.source()?.bytes.clone();
    let search = incident.log.search.as_mut()?;
    let from = line_start(&bytes, search.searched);
    search.lines.retain(|line| usize::try_from(*line).is_ok_and(|line| line < from));
    search.count = search.lines.len() as u64;
    search.searched = from;
    search.done = false;
    Some(Cmd::Search { id: search.id, bytes, from, pattern: search.pattern.clone() })
}

/// Takes in what a search found, and makes the jump that waits for it.
pub fn found(model: &mut Model, id: u64, lines: &[u64], searched: usize, done: bool) {
    let Some(incident) = model.incident.as_mut() else { return };
    let Some(search) = incident.log.search.as_mut().filter(|search| search.id == id) else { return };
    search.take(lines, searched, done);
    match try_wanted(incident) {
        Some(at) => jump::go(model, incident_source(model), at),
        None if done => {
            let empty =
                model.incident.as_ref().and_then(|i| i.log.search.as_ref()).is_some_and(|s| s.count == 0);
            if empty {
                let name = model.incident.as_ref().and_then(|incident| incident.source());
                let others = model.incident.as_ref().is_some_and(|incident| incident.sources.len() > 1);
                model.say(match name.filter(|_| others) {
                    Some(source) => {
                        format!("Not found in {}; ] goes to the next input.", source.short_name())
                    }
                    None => "Not found.".to_owned(),
                });
            }
        }
        None => {}
    }
}

fn incident_source(model: &Model) -> usize {
    model.incident.as_ref().map_or(0, |incident| incident.log.source)
}

/// The jump that waits, if its match is known by now.
fn try_wanted(incident: &mut Incident) -> Option<usize> {
    let search = incident.log.search.as_mut()?;
    let (at, direction) = search.wanted?;
    let here = search.from_here && search.lines.binary_search(&(at as u64)).is_ok();
    // Upwards only the whole answer is right: a nearer match may still come.
    let known = search.done || direction == Direction::Down || search.searched > at;
    let found = match (here, known) {
        (true, _) => Some(at),
        (false, true) => search.neighbour(at, direction),
        (false, false) => None,
    };
    if found.is_some() || search.done {
        search.wanted = None;
        search.from_here = false;
    }
    found
}

/// To the next or previous match.
pub fn step_match(model: &mut Model, down: bool) {
    let Some(incident) = model.incident.as_mut() else { return };
    if incident.log.search.is_none() {
        return model.say("Nothing is searched: / asks for a pattern.");
    }
    let cursor = incident.log.cursor;
    if let Some(search) = incident.log.search.as_mut() {
        search.wanted = Some((cursor, if down { Direction::Down } else { Direction::Up }));
    }
    let found = try_wanted(incident);
    incident.pane = Pane::Log;
    match found {
        Some(at) => jump::go(model, incident_source(model), at),
        None => model.say("No match so far."),
    }
}

/// Wraps lines, or cuts them.
pub fn toggle_wrap(model: &mut Model) {
    let Some(incident) = model.incident.as_mut() else { return };
    incident.log.wrap = !incident.log.wrap;
    incident.log.left = 0;
    scroll::centre(model);
}

/// Sets the filter to work.
pub fn set_filter(model: &mut Model, filter: Filter) -> Vec<Cmd> {
    if filter.is_off() {
        return clear_filter(model);
    }
    let id = model.next_job();
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    incident.pane = Pane::Log;
    incident.log.filter = filter;
    incident.log.filtered = Some(Filtered { id, ..Filtered::default() });
    incident.log.before_filter.get_or_insert(incident.log.cursor);
    run_filter(incident, id)
}

/// The job that filters the input that is shown.
pub fn run_filter(incident: &Incident, id: u64) -> Vec<Cmd> {
    let Some(source) = incident.source() else { return Vec::new() };
    let kind = incident.log.filter.kind;
    let spans = incident
        .marks()
        .iter()
        .filter(|mark| Some(mark.kind) == kind)
        .map(|mark| (mark.at as u64, mark.end as u64))
        .collect();
    let run = Box::new(FilterRun::new(incident.log.filter.clone(), source.rank, spans));
    vec![Cmd::Filter { id, bytes: source.bytes.clone(), run }]
}

/// Takes in what a filter lets through.
pub fn filtered(model: &mut Model, id: u64, lines: &[u64], done: bool) {
    let Some(incident) = model.incident.as_mut() else { return };
    let Some(filtered) = incident.log.filtered.as_mut().filter(|filtered| filtered.id == id) else { return };
    let first = filtered.lines.is_empty();
    filtered.take(lines, done);
    if first && !lines.is_empty() || done {
        let wanted = incident.log.before_filter.unwrap_or(incident.log.cursor);
        let nearest = incident.lines().at_or_before(wanted);
        incident.log.cursor = nearest;
        incident.log.top = nearest;
        scroll::centre(model);
    }
}

/// Shows all lines.
pub fn clear_filter(model: &mut Model) -> Vec<Cmd> {
    if let Some(incident) = model.incident.as_mut() {
        drop_filter(incident);
    }
    scroll::centre(model);
    Vec::new()
}

/// Takes the filter away; the cursor stays where it is.
pub fn drop_filter(incident: &mut Incident) {
    incident.log.filter = Filter::default();
    incident.log.filtered = None;
    incident.log.before_filter = None;
}

/// Only the next rank, and after the last one all.
pub fn cycle_rank(model: &mut Model) -> Vec<Cmd> {
    let Some(incident) = model.incident.as_ref() else { return Vec::new() };
    let ranks = ranks(incident);
    if ranks.is_empty() {
        model.say("No rank is named in this incident.");
        return Vec::new();
    }
    let next = match incident.log.filter.rank {
        None => ranks.first().copied(),
        Some(rank) => ranks.iter().copied().find(|other| *other > rank),
    };
    let filter = Filter { rank: next, ..incident.log.filter.clone() };
    set_filter(model, filter)
}

/// Ranks of the incident, in order.
pub fn ranks(incident: &Incident) -> Vec<u32> {
    let mut ranks: Vec<u32> = incident
        .report()
        .map(|report| {
            let named = report.ranks.iter().map(|rank| rank.rank);
            named.chain(report.evidence.iter().filter_map(|evidence| evidence.rank)).collect()
        })
        .unwrap_or_default();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// Only the next kind of evidence, and after the last one all.
pub fn cycle_kind(model: &mut Model) -> Vec<Cmd> {
    let Some(incident) = model.incident.as_ref() else { return Vec::new() };
    let kinds = kinds(incident);
    if kinds.is_empty() {
        model.say("There is no evidence in this input.");
        return Vec::new();
    }
    let next = match incident.log.filter.kind {
        None => kinds.first().copied(),
        Some(kind) => kinds.iter().position(|other| *other == kind).and_then(|at| kinds.get(at + 1)).copied(),
    };
    let filter = Filter { kind: next, ..incident.log.filter.clone() };
    set_filter(model, filter)
}

/// Kinds of evidence in the input that is shown, in the order in which they stand.
pub fn kinds(incident: &Incident) -> Vec<EvidenceKind> {
    let mut kinds = Vec::new();
    for mark in incident.marks() {
        if !kinds.contains(&mark.kind) {
            kinds.push(mark.kind);
        }
    }
    kinds
}

/// Shows another input.
pub fn step_source(model: &mut Model, by: isize) {
    let Some(incident) = model.incident.as_mut() else { return };
    let count = incident.sources.len();
    if count < 2 {
        return model.say("There is one input.");
    }
    let next = (incident.log.source + count).saturating_add_signed(by) % count;
    show_source(incident, next);
}

/// Shows an input from its top; search and filter belong to the one before.
pub fn show_source(incident: &mut Incident, source: usize) {
    drop_filter(incident);
    incident.log.search = None;
    incident.log.source = source;
    incident.log.cursor = 0;
    incident.log.top = 0;
    incident.log.left = 0;
}
