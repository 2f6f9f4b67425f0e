//! The verdict: the sentence, how sure it is, the two places, the cause with its proof, and what to do.
//!
//! In: the report. Out: items, one a claim, each with the evidence that a key leads to. Pictures stand under the claim that
//! they show.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::report::Report;
use crate::report::model::Certainty;
use crate::source::InputKind;
use crate::tui::claims::{self, Claim, Subject};
use crate::tui::model::{Incident, Model, Phase};
use crate::tui::theme::Role;

use super::list::Item;
use super::wrap::wrap;
use super::{pictures, trials, units};

/// Columns of the labels.
const LABEL: usize = 10;

/// Lines of a long cause that is not under the cursor, on a pane of few rows: what to do next belongs on the first screen.
const BRIEF: usize = 4;

/// Inputs that are listed where nothing failed.
const INPUTS: usize = 8;

/// Notes that are shown there.
const NOTES: usize = 4;

/// Rows from which the map of memory stands beside the cause; on less, it would push the next step away.
const MAP_ROWS: usize = 27;

/// The items of the pane.
pub fn items(model: &Model, incident: &Incident, area: Rect) -> Vec<Item> {
    let width = usize::from(area.width).saturating_sub(3);
    let Some(report) = incident.report() else { return waiting(model, incident, width) };
    let mut items = vec![headline(model, report, width)];
    let cursor = incident.row_of(crate::tui::model::Pane::Verdict);
    let roomy = usize::from(area.height) >= MAP_ROWS;
    for (row, claim) in claims::claims(report).iter().enumerate() {
        let here = row == cursor && incident.pane == crate::tui::model::Pane::Verdict;
        let most = if here || roomy || claim.subject != Subject::Cause { usize::MAX } else { BRIEF };
        items.push(item(model, report, claim, Place { row, here, width, most }));
        if claim.subject == Subject::Summary {
            if let Some(seen) = &incident.seen {
                // One row: on a pane of few rows, more would push the next step away.
                let line = crate::text::fit(seen, width);
                items.push(Item::plain(vec![Line::styled(line, model.theme.style(Role::Warn))]));
            }
            items.push(Item::gap());
        }
        if claim.subject == Subject::Cause {
            let rerun = trials::lines(model, report, width);
            if !rerun.is_empty() {
                items.extend([Item::gap(), Item::plain(rerun)]);
            }
            items.extend(pictures::number_line(model, report, width).map(Item::plain));
            if roomy {
                items.extend(pictures::memory_map(model, report, width).map(Item::plain));
            }
        }
    }
    if !roomy {
        items.extend(pictures::memory_map(model, report, width).map(Item::plain));
    }
    if report.failures.is_empty() {
        items.extend(nothing_failed(model, report, width));
    }
    items
}

/// What was read, where nothing in it failed, and what would tell more.
fn nothing_failed(model: &Model, report: &Report, width: usize) -> Vec<Item> {
    let theme = &model.theme;
    let line = pictures::number_line(model, report, width);
    let mut lines = if line.is_some() { vec![Line::default()] } else { Vec::new() };
    // The gap under the sentence is there already.
    let mut items: Vec<Item> =
        line.map(|lines| Item::plain(lines.into_iter().skip(1).collect())).into_iter().collect();
    for (index, input) in report.inputs.iter().take(INPUTS).enumerate() {
        let label = if index == 0 { "read" } else { "" };
        let size = match input.lines {
            0 => units::bytes(input.bytes),
            lines => format!("{}, {} lines", units::bytes(input.bytes), units::grouped(i128::from(lines))),
        };
        let text = format!("{}: {}, {size}", input.path, claims::kind_name(input.kind));
        lines.extend(wrap(&text, width.saturating_sub(LABEL)).into_iter().enumerate().map(|(row, text)| {
            let label = if row == 0 { label } else { "" };
            Line::from(vec![
                Span::styled(format!("{label:<LABEL$}"), theme.style(Role::Muted)),
                Span::styled(text, theme.style(Role::Text)),
            ])
        }));
    }
    if let Some(more) = report.inputs.len().checked_sub(INPUTS).filter(|more| *more > 0) {
        lines.push(Line::from(format!("{:LABEL$}and {more} more", "")));
    }
    // Which error was handled, and which input is no evidence.
    for note in report.diagnostics.iter().filter(|note| note.severity == "info").take(NOTES) {
        lines.extend(wrap(&note.message, width.saturating_sub(LABEL)).into_iter().enumerate().map(
            |(row, text)| {
                let label = if row == 0 { "note" } else { "" };
                Line::styled(format!("{label:<LABEL$}{text}"), theme.style(Role::Muted))
            },
        ));
    }
    lines.push(Line::default());
    if report.inputs.iter().any(|input| is_compiled(input.kind)) {
        let kernels = "Which sizes the compiled kernels wrap at, and from where on: warpfault kernel, with these inputs.";
        lines
            .extend(wrap(kernels, width).into_iter().map(|line| Line::styled(line, theme.style(Role::Text))));
        lines.push(Line::default());
    }
    let advice = "If a job died, its reason stands elsewhere. Paste its output here, or add the other ranks' logs, the kernel log \
                  or a dump with :add PATH.";
    lines.extend(wrap(advice, width).into_iter().map(|line| Line::styled(line, theme.style(Role::Muted))));
    items.push(Item::plain(lines));
    items
}

/// Whether the room for compiled kernels reads such an input.
fn is_compiled(kind: InputKind) -> bool {
    matches!(kind, InputKind::TritonCache | InputKind::Ttir | InputKind::Ptx)
}

fn waiting(model: &Model, incident: &Incident, width: usize) -> Vec<Item> {
    let bytes: u64 = incident.sources.iter().map(|source| source.bytes.len() as u64).sum();
    let text = match &incident.phase {
        Phase::Failed(why) => format!("This could not be read: {why}"),
        Phase::Stopped => "Stopped. :again reads the inputs once more.".to_owned(),
        Phase::Loading { .. } => "Opening the inputs.".to_owned(),
        _ => format!("Reading {}. The log is open already: press 5.", units::bytes(bytes)),
    };
    let role = if matches!(incident.phase, Phase::Failed(_)) { Role::Danger } else { Role::Muted };
    let lines =
        wrap(&text, width).into_iter().map(|line| Line::styled(line, model.theme.style(role))).collect();
    vec![Item::gap(), Item::plain(lines)]
}

fn headline(model: &Model, report: &Report, width: usize) -> Item {
    let theme = &model.theme;
    let verdict = &report.verdict;
    let failed = !report.failures.is_empty();
    let class = if failed {
        claims::words(verdict.class.name()).to_uppercase()
    } else {
        "NO FAILURE FOUND".to_owned()
    };
    let mut spans = vec![Span::styled(class, theme.style(if failed { Role::Danger } else { Role::Good }))];
    spans.push(Span::styled(
        format!("  [{}]", claims::certainty(verdict.certainty)),
        theme.style(certainty_role(verdict.certainty)),
    ));
    let code = verdict.code.as_ref().map(|code| {
        let number = code.number.map(|number| number.to_string()).unwrap_or_default();
        let name = code.name.as_deref().unwrap_or("");
        [code.domain.as_str(), &number, name].join(" ").trim_end().to_owned()
    });
    let mut lines = Vec::new();
    if let Some(code) = code {
        let used: usize = spans.iter().map(Span::width).sum();
        let code_span = |text: String| Span::styled(text, theme.style(Role::Muted));
        if used + 2 + code.len() <= width {
            spans.push(code_span(format!("  {code}")));
            lines.push(Line::from(spans));
        } else {
            lines.push(Line::from(spans));
            lines.push(Line::from(code_span(crate::text::fit(&code, width))));
        }
    } else {
        lines.push(Line::from(spans));
    }
    Item::plain(lines)
}

/// The colour of a certainty; the word always stands beside it.
pub fn certainty_role(certainty: Certainty) -> Role {
    match certainty {
        Certainty::Proven | Certainty::Supported => Role::Good,
        Certainty::Suspected | Certainty::Undecided => Role::Warn,
    }
}

/// Where a claim stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    row: usize,
    here: bool,
    width: usize,
    /// Lines of its text; the cursor brings the rest.
    most: usize,
}

fn item(model: &Model, report: &Report, claim: &Claim, place: Place) -> Item {
    let Place { row, here, width, most } = place;
    let theme = &model.theme;
    let indent = if claim.label.is_empty() { 0 } else { LABEL };
    let body_role = match claim.subject {
        Subject::Summary => Role::Title,
        Subject::Diagnostic => Role::Muted,
        _ => Role::Text,
    };
    let mut body: Vec<Vec<Span<'static>>> = wrap(&claim.text, width.saturating_sub(indent))
        .into_iter()
        .map(|line| vec![Span::styled(line, theme.style(body_role))])
        .collect();
    if body.len() > most {
        body.truncate(most);
        if let Some(last) = body.last_mut() {
            last.push(Span::styled(format!(" {}", theme.glyphs.cut), theme.style(Role::Muted)));
        }
    }
    if let Some(certainty) = claim.certainty.filter(|_| claim.subject == Subject::Cause) {
        let word = Span::styled(
            format!("[{}]", claims::certainty(certainty)),
            theme.style(certainty_role(certainty)),
        );
        attach(&mut body, word, width.saturating_sub(indent));
    }
    if let Some(references) = references(report, &claim.evidence, claim.log_line) {
        attach(&mut body, Span::styled(references, theme.style(Role::Link)), width.saturating_sub(indent));
    }
    if let Some(command) = &claim.command {
        body.extend(wrap(command, width.saturating_sub(indent + 2)).into_iter().enumerate().map(
            |(i, line)| {
                let prompt = if i == 0 { "$ " } else { "  " };
                vec![Span::styled(format!("{prompt}{line}"), theme.style(Role::Link))]
            },
        ));
    }
    let label_role = match (here, claim.subject) {
        (true, _) => Role::Focus,
        (false, Subject::Cause | Subject::Noticed | Subject::Happened | Subject::Next) => Role::Title,
        _ => Role::Muted,
    };
    let lines = body
        .into_iter()
        .enumerate()
        .map(|(index, mut spans)| {
            if indent > 0 {
                let label = if index == 0 { claim.label } else { "" };
                spans.insert(0, Span::styled(format!("{label:<indent$}"), theme.style(label_role)));
            }
            Line::from(spans)
        })
        .collect();
    Item::at(row, lines)
}

/// Puts a span behind the last line, or under it where there is no room.
fn attach(body: &mut Vec<Vec<Span<'static>>>, span: Span<'static>, width: usize) {
    let used: usize = body.last().map_or(0, |line| line.iter().map(Span::width).sum());
    match body.last_mut() {
        Some(line) if used + 1 + span.width() <= width => {
            line.push(Span::raw(" "));
            line.push(span);
        }
        _ => body.push(vec![span]),
    }
}

/// `[e4 run.log:16, …]`: the first two, and how many more.
fn references(report: &Report, ids: &[String], mut log_line: Option<u64>) -> Option<String> {
    let shown: Vec<String> =
        ids.iter().filter_map(|id| claims::reference(report, id, log_line.take())).take(2).collect();
    if shown.is_empty() {
        return None;
    }
    let more = ids.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" +{more}") } else { String::new() };
    Some(format!("[{}{more}]", shown.join(", ")))
}
