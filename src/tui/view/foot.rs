//! The bottom line: a message, or the keys that help most where the eyes are.
//!
//! In: the model. Out: cells. The keys come from the key table, so they are the ones that work.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use crate::text;
use crate::tui::keymap::Action;
use crate::tui::model::{Incident, Model, Pane, Phase};
use crate::tui::theme::Role;

/// Draws it.
pub fn draw(model: &Model, incident: &Incident, area: Rect, buffer: &mut Buffer) {
    if let Some((message, _)) = &model.status {
        let message = text::fit(message, usize::from(area.width).saturating_sub(2));
        Line::from(Span::styled(format!(" {message}"), model.theme.style(Role::Warn))).render(area, buffer);
        return;
    }
    keys(model, hints(incident), area, buffer);
}

fn hints(incident: &Incident) -> &'static [(Action, &'static str)] {
    match incident.pane {
        Pane::Log if incident.log.from.is_some() => &[
            (Action::Back, "back"),
            (Action::NextFailure, "next failure"),
            (Action::Search, "search"),
            (Action::FilterRank, "rank"),
            (Action::Wrap, "wrap"),
            (Action::Copy, "copy"),
            (Action::Help, "help"),
        ],
        Pane::Log => &[
            (Action::NextFailure, "next failure"),
            (Action::Search, "search"),
            (Action::FilterRank, "rank"),
            (Action::FilterKind, "kind"),
            (Action::Wrap, "wrap"),
            (Action::NextPane, "pane"),
            (Action::Help, "help"),
            (Action::Quit, "quit"),
        ],
        Pane::Playbook if incident.run.is_some() => {
            &[(Action::EndRun, "end the command"), (Action::NextPane, "pane"), (Action::Help, "help")]
        }
        Pane::Playbook => &[
            (Action::Open, "do it"),
            (Action::Skip, "skip"),
            (Action::Copy, "copy"),
            (Action::Outcome, "outcome"),
            (Action::Reopen, "undo"),
            (Action::NextPane, "pane"),
            (Action::Help, "help"),
            (Action::Quit, "quit"),
        ],
        _ if matches!(incident.phase, Phase::Failed(_)) => &[
            (Action::Command, "another path with open PATH"),
            (Action::Back, "leave"),
            (Action::Help, "help"),
            (Action::Quit, "quit"),
        ],
        _ if incident.leads_to_steps() => &[
            (Action::Open, "to the steps"),
            (Action::NextPane, "pane"),
            (Action::Copy, "copy"),
            (Action::Search, "search"),
            (Action::Help, "help"),
            (Action::Quit, "quit"),
        ],
        _ => &[
            (Action::Open, "evidence line"),
            (Action::NextPane, "pane"),
            (Action::Copy, "copy"),
            (Action::Search, "search"),
            (Action::Help, "help"),
            (Action::Quit, "quit"),
        ],
    }
}

/// Draws `key words` pairs, as many as fit.
pub fn keys(model: &Model, hints: &[(Action, &str)], area: Rect, buffer: &mut Buffer) {
    let mut spans = vec![Span::raw(" ")];
    let mut used = 1;
    for (action, words) in hints {
        let key = model.keymap.key(*action);
        let width = key.len() + words.len() + 3;
        if used + width > usize::from(area.width) {
            break;
        }
        used += width;
        spans.push(Span::styled(key, model.theme.style(Role::Key)));
        spans.push(Span::styled(format!(" {words}  "), model.theme.style(Role::Muted)));
    }
    Line::from(spans).render(area, buffer);
}
