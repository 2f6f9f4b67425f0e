//! The walk through a playbook: its steps with their states, and all about the one under the cursor.
//!
//! In: a walk. Out: lines for each step. Texts of a walk are escaped already; live output is escaped where it is kept.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::playbook::chain::Chain;
use crate::playbook::template::NOT_KNOWN;
use crate::playbook::walk::{Act, WalkStep};
use crate::playbook::{StepKind, StepState};
use crate::text::escape;
use crate::tui::keymap::Action;
use crate::tui::model::{Incident, Model, Run};
use crate::tui::theme::Role;

use super::wrap::wrap;
use super::{trials, units};

/// Columns of the state in front of a title.
const STATE: usize = 11;
/// Lines of an advice that is not under the cursor.
const BRIEF: usize = 2;
/// Rows of a pane from which every outcome's meaning is shown; on less, the list of outcomes has them.
const ROOMY: u16 = 28;
/// So many outcomes are always shown.
const FEW: usize = 2;
/// Lines of live output.
const OUTPUT: usize = 8;

/// Lines of one step. What matters of it is always there; the rest comes with the cursor.
pub fn lines(
    model: &Model,
    incident: &Incident,
    step: &WalkStep,
    here: bool,
    area: Rect,
) -> Vec<Line<'static>> {
    let width = usize::from(area.width).saturating_sub(3);
    let mut lines = Lines { model, width, lines: Vec::new() };
    let (glyph, role) = state(model, step.state);
    let label = format!("{glyph} {}", step.state.name());
    let title_role = match (here, step.state) {
        (true, _) => Role::Focus,
        (false, StepState::Ahead | StepState::Skipped | StepState::Aside) => Role::Muted,
        (false, _) => Role::Title,
    };
    for (index, text) in wrap(&step.title, width.saturating_sub(STATE)).into_iter().enumerate() {
        let label = if index == 0 { label.as_str() } else { "" };
        lines.push(vec![
            Span::styled(format!("{label:<STATE$}"), model.theme.style(role)),
            Span::styled(text, model.theme.style(title_role)),
        ]);
    }
    let waits = matches!(step.state, StepState::Open | StepState::Running | StepState::Unknown);
    if let Some(shows) = &step.shows {
        lines.text(shows, Role::Text);
    }
    if let Some(reading) = &step.reading {
        lines.text(reading, Role::Text);
    }
    if let Act::Apply { text, .. } = &step.act {
        if here {
            lines.text(text, Role::Text);
        } else {
            lines.start_of(text);
        }
    }
    if let (Act::Run(prepared), true) = (&step.act, here || waits) {
        lines.text(&format!("$ {}", prepared.text), Role::Link);
    }
    if let Some(run) = incident.run.as_ref().filter(|run| run.step == step.at) {
        running(&mut lines, run, step.kind);
    }
    if step.kind == StepKind::Probe
        && let (StepState::Done | StepState::Answered, Some(report)) = (step.state, incident.report())
    {
        for line in trials::lines(model, report, width.saturating_sub(STATE)) {
            lines.lines.push(indented(line));
        }
    }
    if here {
        details(&mut lines, incident, step, area.height >= ROOMY);
    }
    lines.lines
}

fn details(lines: &mut Lines<'_>, incident: &Incident, step: &WalkStep, roomy: bool) {
    if let (Act::Ask(asked), StepState::Open | StepState::Ahead) = (&step.act, step.state) {
        lines.text(&asked.text, Role::Text);
    }
    lines.named("why", &step.why);
    if !step.cost.is_empty() && step.cost != "none" {
        lines.named("cost", &step.cost);
    }
    if let Some(misread) = &step.misread {
        lines.named("misread", misread);
    }
    if !step.needs.is_empty() {
        lines.named("missing", &step.needs.join(", "));
    }
    if let Act::Run(prepared) = &step.act
        && !prepared.needs.is_empty()
    {
        let required = prepared.needs.iter().any(|need| need.required);
        let name = if required { "missing" } else { "asked for" };
        let names: Vec<&str> = prepared.needs.iter().map(|need| need.name.as_str()).collect();
        lines.named(name, &escape(&names.join(", ")).to_string());
    }
    let decided = step.outcome.is_some();
    // An outcome that would name what nobody knows yet says nothing yet.
    let tells = |reading: &str| !reading.contains(NOT_KNOWN);
    let few = roomy || step.outcomes.len() <= FEW;
    for outcome in step.outcomes.iter().filter(|outcome| few && !decided && tells(&outcome.reading)) {
        let name = escape(&outcome.id).to_string();
        lines.named(&format!("if {name}"), &outcome.reading);
    }
    if let (Some(analysis), true) = (&incident.analysis, matches!(step.state, StepState::Done)) {
        chains(lines, &analysis.chains);
    }
    for reference in &step.references {
        lines.named("see", reference);
    }
    if let Some(keys) = keys(lines.model, step) {
        lines.text(&keys, Role::Muted);
    }
}

/// The stacks of an asynchronous and a blocking run, one under the other: they differ in where they end.
fn chains(lines: &mut Lines<'_>, chains: &[Chain]) {
    let differ = chains.iter().any(|chain| chain.blocking) && chains.iter().any(|chain| !chain.blocking);
    if !differ {
        return;
    }
    for chain in chains {
        let name = if chain.blocking { "blocking" } else { "async" };
        lines.named(name, &escape(&chain.words()).to_string());
    }
}

fn running(lines: &mut Lines<'_>, run: &Run, kind: StepKind) {
    let model = lines.model;
    let elapsed = model.now.saturating_sub(run.since);
    let doing = if run.ending { "ending" } else { "running" };
    let text = format!(
        "{doing} for {}, ended after {} at the latest; printed {}; {} ends it",
        units::duration(elapsed),
        units::duration(run.deadline),
        units::bytes(run.bytes),
        model.keymap.key(Action::EndRun),
    );
    lines.text(&text, Role::Warn);
    let room = lines.width.saturating_sub(STATE + 2);
    if kind == StepKind::Probe {
        let trials = trials::so_far(model, &run.last(usize::MAX), room);
        lines.lines.extend(trials.into_iter().map(indented));
    }
    let output = if kind == StepKind::Probe { OUTPUT / 4 } else { OUTPUT };
    for line in run.last(output) {
        lines.push(vec![
            Span::raw(" ".repeat(STATE)),
            Span::styled(model.theme.glyphs.continued, model.theme.style(Role::Muted)),
            Span::styled(format!(" {}", crate::text::fit(&line, room)), model.theme.style(Role::Text)),
        ]);
    }
}

fn indented(line: Line<'static>) -> Line<'static> {
    let mut spans = vec![Span::raw(" ".repeat(STATE))];
    spans.extend(line.spans.into_iter().map(|span| span.patch_style(line.style)));
    Line::from(spans)
}

/// What the keys do here, by the table that binds them.
fn keys(model: &Model, step: &WalkStep) -> Option<String> {
    let key = |action| model.keymap.key(action);
    let act = match (&step.act, step.state) {
        (_, StepState::Running) => return Some(format!("{} ends it", key(Action::EndRun))),
        (Act::Run(prepared), _) if !prepared.needs.is_empty() => "fills it in",
        (Act::Run(_), _) => "runs it",
        (Act::Ask(_), _) => "answers it",
        (Act::Apply { .. }, _) if step.outcomes.is_empty() => "marks it done",
        (Act::Apply { .. }, _) => "says how it went",
        (Act::Look, StepState::Answered) => return None,
        (Act::Look | Act::Room { .. }, _) => "says what it showed",
    };
    let mut words = vec![format!("Enter {act}")];
    if matches!(step.act, Act::Run(_)) {
        words.push(format!("{} changes the command", key(Action::Change)));
        words.push(format!("{} takes a log made elsewhere", key(Action::Feed)));
    }
    words.push(format!("{} skips", key(Action::Skip)));
    words.push(format!("{} copies", key(Action::Copy)));
    if matches!(step.state, StepState::Done | StepState::Skipped) {
        words.push(format!("{} opens it again", key(Action::Reopen)));
    }
    Some(words.join(", "))
}

fn state(model: &Model, state: StepState) -> (&'static str, Role) {
    let glyphs = model.theme.glyphs;
    match state {
        StepState::Answered | StepState::Done => (glyphs.good, Role::Good),
        StepState::Open => (glyphs.waiting, Role::Warn),
        StepState::Running => (glyphs.cursor, Role::Danger),
        StepState::Unknown => (glyphs.unknown, Role::Warn),
        StepState::Skipped | StepState::Ahead | StepState::Aside => (glyphs.skipped, Role::Muted),
    }
}

/// Lines being built.
struct Lines<'a> {
    model: &'a Model,
    width: usize,
    lines: Vec<Line<'static>>,
}

impl Lines<'_> {
    fn push(&mut self, spans: Vec<Span<'static>>) {
        self.lines.push(Line::from(spans));
    }

    /// A paragraph under the title.
    fn text(&mut self, text: &str, role: Role) {
        for line in wrap(&self.model.theme.words(text), self.width.saturating_sub(STATE)) {
            let style = self.model.theme.style(role);
            self.push(vec![Span::raw(" ".repeat(STATE)), Span::styled(line, style)]);
        }
    }

    /// The first lines of a paragraph; the cursor brings the rest.
    fn start_of(&mut self, text: &str) {
        let mut wrapped = wrap(&self.model.theme.words(text), self.width.saturating_sub(STATE + 2));
        if wrapped.len() > BRIEF {
            wrapped.truncate(BRIEF);
            if let Some(last) = wrapped.last_mut() {
                last.push_str(&format!(" {}", self.model.theme.glyphs.cut));
            }
        }
        for line in wrapped {
            self.push(vec![
                Span::raw(" ".repeat(STATE)),
                Span::styled(line, self.model.theme.style(Role::Text)),
            ]);
        }
    }

    /// A paragraph with its name in front.
    fn named(&mut self, name: &str, text: &str) {
        let theme = &self.model.theme;
        let whole = format!("{name}: {}", theme.words(text));
        for (index, line) in wrap(&whole, self.width.saturating_sub(STATE)).into_iter().enumerate() {
            let mut spans = vec![Span::raw(" ".repeat(STATE))];
            match line.strip_prefix(&format!("{name}:")).filter(|_| index == 0) {
                Some(rest) => {
                    spans.push(Span::styled(format!("{name}:"), theme.style(Role::Muted)));
                    spans.push(Span::styled(rest.to_owned(), theme.style(Role::Text)));
                }
                None => spans.push(Span::styled(line, theme.style(Role::Text))),
            }
            self.push(spans);
        }
    }
}
