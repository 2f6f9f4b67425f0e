//! From a claim to its line in the log, and back.
//!
//! In: the model. Out: the log pane at the line, and the place to come back to.

use crate::report::Report;
use crate::report::model::From;
use crate::tui::claims;
use crate::tui::layout;
use crate::tui::log::lines::Lines;
use crate::tui::model::{Incident, Model, Pane, Place};
use crate::tui::view;

use super::action::focus;
use super::scroll;

/// Lines of the longest traceback that is stepped through.
const FRAME_LINES: isize = 100_000;

/// Opens what is under the cursor: of a claim, the line behind it; of a line in the log, the evidence that it is.
pub fn open(model: &mut Model) {
    let Some(incident) = model.incident.as_ref() else { return };
    if incident.pane == Pane::Log {
        return open_evidence_of_line(model);
    }
    if incident.leads_to_steps() {
        let row = incident.analysis.as_ref().and_then(view::playbook::row_of_next);
        focus(model, Pane::Playbook);
        if let (Some(row), Some(incident)) = (row, model.incident.as_mut()) {
            incident.set_row(Pane::Playbook, row);
        }
        return;
    }
    let ids = ids_in_focus(incident, incident.pane);
    if ids.is_empty() {
        model.say("No line of the input stands behind this.");
        return;
    }
    let from = Place { pane: incident.pane, row: incident.row() };
    match place_in_focus(incident) {
        Some((source, at)) => {
            go(model, source, at);
            if let Some(incident) = model.incident.as_mut() {
                incident.pane = Pane::Log;
                incident.log.from = Some(from);
            }
        }
        None => model.say("This follows from other evidence; its lines are under Evidence."),
    }
}

/// Ids of the evidence behind the row under a pane's cursor.
pub fn ids_in_focus(incident: &Incident, pane: Pane) -> Vec<String> {
    let Some(report) = incident.report() else { return Vec::new() };
    let row = incident.row_of(pane);
    match pane {
        Pane::Verdict => {
            claims::claims(report).get(row).map(|claim| claim.evidence.clone()).unwrap_or_default()
        }
        Pane::Evidence => {
            report.evidence.get(row).map(|evidence| vec![evidence.id.clone()]).unwrap_or_default()
        }
        Pane::Ranks => report.ranks.get(row).map(|rank| rank.evidence.clone()).unwrap_or_default(),
        Pane::Playbook => match incident.analysis.as_ref().and_then(|all| view::playbook::row(all, row)) {
            Some(view::playbook::Row::Check(check)) => check.evidence.clone(),
            _ => Vec::new(),
        },
        Pane::Log => Vec::new(),
    }
}

/// Input and byte of what is behind the row under the cursor.
fn place_in_focus(incident: &Incident) -> Option<(usize, usize)> {
    let report = incident.report()?;
    let ids = ids_in_focus(incident, incident.pane);
    let (source, at) = ids.iter().find_map(|id| target(report, id))?;
    let log_line = (incident.pane == Pane::Verdict)
        .then(|| claims::claims(report).get(incident.row()).and_then(|claim| claim.log_line))
        .flatten();
    let first = ids.first().and_then(|id| first_line(report, id));
    // A frame of a long traceback: so many lines below its head.
    let below = log_line.zip(first).and_then(|(line, first)| isize::try_from(line.checked_sub(first)?).ok());
    let bytes = incident.sources.get(source).map(|source| &*source.bytes).unwrap_or_default();
    let lines = Lines::new(bytes, None);
    Some((source, lines.step(lines.at_or_before(at), below.unwrap_or(0).min(FRAME_LINES))))
}

fn first_line(report: &Report, id: &str) -> Option<u64> {
    match report.evidence.iter().find(|evidence| evidence.id == id)?.from {
        From::Span { line, .. } => Some(line),
        _ => None,
    }
}

/// Input and byte of a piece of evidence; a derived one leads to the first that it rests on.
pub fn target(report: &Report, id: &str) -> Option<(usize, usize)> {
    // Derivations don't go in circles, but a bound costs nothing.
    let mut id = id.to_owned();
    for _ in 0..8 {
        let evidence = report.evidence.iter().find(|evidence| evidence.id == id)?;
        match &evidence.from {
            From::Span { input, byte, .. } => {
                return Some((usize::try_from(*input).ok()?, usize::try_from(*byte).ok()?));
            }
            From::Derived { from } => id.clone_from(from.first()?),
            From::Probe | From::Answer => return None,
        }
    }
    None
}

/// Puts the log's cursor on the line at a byte of an input, a third down the pane.
pub fn go(model: &mut Model, source: usize, byte: usize) {
    if let Some(incident) = model.incident.as_mut() {
        if source != incident.log.source && source < incident.sources.len() {
            super::logs::show_source(incident, source);
        }
        let at = incident.lines().at_or_before(byte);
        let hidden =
            !incident.log.filter.is_off() && at != crate::tui::log::lines::line_start(incident.bytes(), byte);
        if hidden {
            super::logs::drop_filter(incident);
        }
        let at = incident.lines().at_or_before(byte);
        incident.log.cursor = at;
        incident.log.left = 0;
        if hidden {
            model.say("The filter hid that line: all lines are shown again.");
        }
    }
    scroll::centre(model);
}

/// On a wide screen the log beside shows the line of what is under the cursor.
pub fn preview(model: &mut Model) {
    let Some(incident) = model.incident.as_ref() else { return };
    if incident.pane == Pane::Log || !layout::is_wide(model.size, incident) || !incident.log.filter.is_off() {
        return;
    }
    if let Some((source, at)) = place_in_focus(incident) {
        go(model, source, at);
    }
}

/// Goes back where a jump came from; false where there was none.
pub fn back(model: &mut Model) -> bool {
    let Some(incident) = model.incident.as_mut() else { return false };
    if incident.pane != Pane::Log {
        return false;
    }
    let Some(place) = incident.log.from.take() else { return false };
    incident.pane = place.pane;
    incident.set_row(place.pane, place.row);
    true
}

fn open_evidence_of_line(model: &mut Model) {
    let Some(incident) = model.incident.as_ref() else { return };
    let at = incident.log.cursor;
    let here = incident.marks().iter().filter(|mark| mark.at == at || (mark.at < at && at < mark.end));
    let id = here.max_by_key(|mark| (mark.deciding, mark.at)).map(|mark| mark.id.clone());
    let row = id.and_then(|id| incident.report()?.evidence.iter().position(|evidence| evidence.id == id));
    match row {
        Some(row) => {
            focus(model, Pane::Evidence);
            if let Some(incident) = model.incident.as_mut() {
                incident.set_row(Pane::Evidence, row);
            }
        }
        None => model.say("This line is no evidence. e goes to the next deciding line."),
    }
}

/// To the next or previous line of a failure, over all inputs, round at the ends.
pub fn failure(model: &mut Model, down: bool) {
    let Some(incident) = model.incident.as_ref() else { return };
    let Some(analysis) = &incident.analysis else {
        return model.say("The input is still being read.");
    };
    let wanted = |deciding: bool| -> Vec<(usize, usize)> {
        let all = analysis.marks.iter().enumerate();
        let marks = all.flat_map(|(source, marks)| marks.iter().map(move |mark| (source, mark)));
        let mut places: Vec<_> = marks
            .filter(|(_, mark)| if deciding { mark.deciding || mark.failure } else { true })
            .map(|(source, mark)| (source, mark.at))
            .collect();
        places.dedup();
        places
    };
    let mut places = wanted(true);
    if places.is_empty() {
        places = wanted(false);
    }
    let here = (incident.log.source, incident.log.cursor);
    let outside = incident.pane != Pane::Log;
    let found = match (down, outside) {
        (true, true) => places.iter().find(|place| **place >= here).or_else(|| places.first()),
        (true, false) => places.iter().find(|place| **place > here).or_else(|| places.first()),
        (false, _) => places.iter().rev().find(|place| **place < here).or_else(|| places.last()),
    };
    let Some(&(source, at)) = found else {
        return model.say("No evidence in this log.");
    };
    let from = Place { pane: incident.pane, row: incident.row() };
    go(model, source, at);
    if let Some(incident) = model.incident.as_mut()
        && outside
    {
        incident.pane = Pane::Log;
        incident.log.from = Some(from);
    }
}
