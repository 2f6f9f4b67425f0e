//! Opening incidents, pastes, and what the engine sends back.
//!
//! In: the model, inputs and answers. Out: the incident's state, and jobs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::read::Progress;
use crate::source::{InputKind, InputSpec};
use crate::tui::model::{Incident, Model, Origin, Overlay, Pane, Phase};
use crate::tui::msg::{Cmd, Opening};
use crate::tui::source::{Analysis, Source};

use super::{jump, logs, prompt, scroll};

/// Opens inputs as a new incident.
pub fn open(model: &mut Model, specs: Vec<InputSpec>, follow: bool) -> Vec<Cmd> {
    begin(model, Origin::Named, Opening::Named(specs), follow)
}

/// Takes up a saved incident.
pub fn resume(model: &mut Model, id: String) -> Vec<Cmd> {
    begin(model, Origin::Named, Opening::Saved(id), false)
}

fn begin(model: &mut Model, origin: Origin, opening: Opening, follow: bool) -> Vec<Cmd> {
    model.generation += 1;
    model.overlay = None;
    model.start.pasting = None;
    model.incident = Some(Incident::new(origin, opening.clone(), follow, model.now));
    vec![Cmd::Stop, Cmd::Open { generation: model.generation, opening, follow }]
}

/// Takes a paste: into the line being typed, else as an incident.
pub fn pasted(model: &mut Model, text: String) -> Vec<Cmd> {
    let typed = match &mut model.overlay {
        Some(Overlay::Prompt(typed)) => Some(typed),
        Some(Overlay::Form(form)) => form.lines.get_mut(form.at),
        _ => None,
    };
    if let Some(typed) = typed {
        typed.paste(&text);
        return Vec::new();
    }
    if text.trim().is_empty() {
        model.say("The paste is empty.");
        return Vec::new();
    }
    match &model.incident {
        // Terminals give a dropped file as a paste of its path.
        None if !text.trim().contains(['\n', '\r']) && text.len() < 4096 => vec![Cmd::OpenIfPath { text }],
        None => open_text(model, text),
        Some(_) => add_text(model, text),
    }
}

/// A pasted line is a path, or a log of one line.
pub fn path_checked(model: &mut Model, text: String, exists: bool) -> Vec<Cmd> {
    match (exists, model.incident.is_none()) {
        (true, true) => open_typed(model, &text),
        (false, true) => open_text(model, text),
        (_, false) => Vec::new(),
    }
}

/// Opens a pasted text as an incident.
pub fn open_text(model: &mut Model, text: String) -> Vec<Cmd> {
    let text = Arc::new(with_line_feeds(text));
    let spec = text_spec("paste", &text);
    begin(model, Origin::Pasted(text), Opening::Named(vec![spec]), false)
}

fn text_spec(name: &str, text: &str) -> InputSpec {
    InputSpec::Text { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
}

/// A terminal sends pasted line ends as carriage returns.
fn with_line_feeds(text: String) -> String {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n") } else { text }
}

/// A further paste belongs to the same incident.
fn add_text(model: &mut Model, text: String) -> Vec<Cmd> {
    let text = with_line_feeds(text);
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    let count = incident.sources.len() + 1;
    let all = match &incident.origin {
        Origin::Pasted(before) => format!("{before}\n{text}"),
        Origin::Named => text.clone(),
    };
    incident.origin = Origin::Pasted(Arc::new(all));
    incident.saved = false;
    incident.kept = None;
    let spec = text_spec(&format!("paste {count}"), &text);
    add(model, spec)
}

/// Adds an input to the incident.
pub fn add(model: &mut Model, spec: InputSpec) -> Vec<Cmd> {
    let now = model.now;
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    if let Opening::Named(specs) = &mut incident.opening {
        specs.push(spec.clone());
    }
    if !matches!(incident.phase, Phase::Done { .. }) {
        return reopen(model);
    }
    incident.phase = Phase::Reading { since: now };
    vec![Cmd::Add(vec![spec])]
}

/// Reads the inputs once more.
pub fn again(model: &mut Model) -> Vec<Cmd> {
    let now = model.now;
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    if !matches!(incident.phase, Phase::Done { .. }) {
        return reopen(model);
    }
    incident.phase = Phase::Loading { since: now };
    vec![Cmd::Again]
}

/// Opens the incident again from what it was opened from.
pub fn reopen(model: &mut Model) -> Vec<Cmd> {
    model.generation += 1;
    let (generation, now) = (model.generation, model.now);
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    incident.phase = Phase::Loading { since: now };
    incident.run = None;
    vec![Cmd::Stop, Cmd::Open { generation, opening: incident.opening.clone(), follow: incident.follow }]
}

/// The incident is on disk: leaving loses nothing.
pub fn kept(model: &mut Model, generation: u64, id: String) {
    if generation == model.generation
        && let Some(incident) = model.incident.as_mut()
    {
        incident.kept = Some(id);
    }
}

/// The same crash was seen before.
pub fn seen(model: &mut Model, generation: u64, said: String) {
    if generation == model.generation
        && let Some(incident) = model.incident.as_mut()
    {
        incident.seen = Some(said);
    }
}

/// Inputs are open: the log can be read.
pub fn loaded(model: &mut Model, generation: u64, sources: Vec<Source>, progress: &Progress) -> Vec<Cmd> {
    if generation != model.generation {
        return Vec::new();
    }
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    if let Phase::Loading { since } = incident.phase {
        incident.phase = Phase::Reading { since };
        incident.progress = progress.clone();
    }
    take_sources(model, sources)
}

/// The engine has a report.
pub fn analysed(model: &mut Model, generation: u64, sources: Vec<Source>, analysis: Analysis) -> Vec<Cmd> {
    if generation != model.generation {
        return Vec::new();
    }
    let now = model.now;
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    let first = incident.analysis.is_none();
    if let Phase::Loading { since } | Phase::Reading { since } = incident.phase {
        incident.phase = Phase::Done { took: now.saturating_sub(since) };
    }
    incident.analysis = Some(analysis);
    for pane in Pane::ALL {
        let last = crate::tui::view::rows(incident, pane).saturating_sub(1);
        incident.set_row(pane, incident.row_of(pane).min(last));
    }
    super::playbook::analysed(incident, first);
    let commands = take_sources(model, sources);
    if first {
        to_first_failure(model);
    }
    commands
}

/// The log and the evidence open where the verdict looks.
fn to_first_failure(model: &mut Model) {
    let Some(incident) = model.incident.as_mut() else { return };
    let Some(report) = incident.report() else { return };
    let mut ids = report.failures.iter().flat_map(|failure| &failure.evidence);
    let Some(id) = ids.next().cloned() else { return };
    // A dump's bytes are nothing to look at: the first failure that stands in a text is.
    let is_text = |(source, _): &(usize, usize)| incident.sources.get(*source).is_some_and(Source::is_text);
    let place = std::iter::once(&id).chain(ids).find_map(|id| jump::target(report, id).filter(is_text));
    let row = report.evidence.iter().position(|evidence| evidence.id == id);
    incident.set_row(Pane::Evidence, row.unwrap_or(0));
    let untouched = incident.log.cursor == 0 && incident.pane != Pane::Log && !incident.log.tail;
    if let (Some((source, at)), true) = (place, untouched) {
        jump::go(model, source, at);
    }
}

/// The input that is shown first: what a program printed, else any other text, and a saved report last.
fn readable(sources: &[Source]) -> usize {
    let rank = |source: &Source| match source.kind {
        _ if source.bytes.is_empty() || !source.is_text() => 4,
        InputKind::Report => 3,
        InputKind::Log => 0,
        kind if kind.is_line_text() => 1,
        _ => 2,
    };
    (0..sources.len()).min_by_key(|at| sources.get(*at).map_or(5, rank)).unwrap_or(0)
}

/// Puts new bytes under the log pane; what is searched and filtered goes on over them.
fn take_sources(model: &mut Model, sources: Vec<Source>) -> Vec<Cmd> {
    let id = model.next_job();
    let Some(incident) = model.incident.as_mut() else { return Vec::new() };
    let before = incident.bytes().len();
    incident.sources = sources;
    // Shown until the verdict or a key leads elsewhere.
    let first = before == 0 && incident.log.source == 0;
    if incident.log.source >= incident.sources.len() || first {
        logs::show_source(incident, readable(&incident.sources));
    }
    let after = incident.bytes().len();
    if incident.log.cursor >= after {
        incident.log.cursor = incident.lines().last();
        incident.log.top = incident.log.cursor;
    }
    let mut commands = Vec::new();
    if before != after && before > 0 {
        commands.extend(logs::search_on(incident));
        if !incident.log.filter.is_off() {
            incident.log.filtered = Some(crate::tui::log::filter::Filtered { id, ..Default::default() });
            incident.log.before_filter = Some(incident.log.cursor);
            commands.extend(logs::run_filter(incident, id));
        }
    }
    if incident.log.tail {
        incident.log.cursor = incident.lines().last();
        scroll::settle(model);
    }
    commands
}

/// The engine could not go on.
pub fn failed(model: &mut Model, generation: u64, why: String) -> Vec<Cmd> {
    if generation == model.generation
        && let Some(incident) = model.incident.as_mut()
    {
        incident.phase = Phase::Failed(why);
    }
    Vec::new()
}

/// A paste is on disk now.
pub fn saved(model: &mut Model, path: &Path) -> Vec<Cmd> {
    if let Some(incident) = model.incident.as_mut() {
        incident.saved = true;
    }
    model.say(format!("Saved: {}", crate::text::escape(&path.to_string_lossy())));
    if std::mem::take(&mut model.leave_when_saved) { vec![Cmd::Quit] } else { Vec::new() }
}

/// Saves the paste, then leaves.
pub fn save_and_leave(model: &mut Model) -> Vec<Cmd> {
    model.leave_when_saved = true;
    save(model, None)
}

/// Saves the paste; without a path, in the state folder.
pub fn save(model: &mut Model, path: Option<PathBuf>) -> Vec<Cmd> {
    match model.incident.as_ref().map(|incident| &incident.origin) {
        Some(Origin::Pasted(text)) => vec![Cmd::Save { path, text: Arc::clone(text) }],
        _ => {
            model.say(
                "Nothing here was pasted: the inputs are on disk already. :export FILE writes the report.",
            );
            Vec::new()
        }
    }
}

/// A typed path was chosen.
pub fn open_typed(model: &mut Model, typed: &str) -> Vec<Cmd> {
    let typed = typed.trim();
    if typed.is_empty() {
        return Vec::new();
    }
    let path = prompt::typed_path(model, typed);
    open(model, vec![InputSpec::from_argument(path.as_os_str())], false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Bytes;

    fn source(kind: InputKind, text: &str) -> Source {
        let bytes = Bytes::from(text.as_bytes().to_vec());
        Source { name: String::new(), file: None, kind, bytes, rank: None }
    }

    #[test]
    fn the_log_pane_opens_on_what_a_program_printed() {
        let dump = source(InputKind::CoreDump, "\u{7f}ELF");
        let report = source(InputKind::Report, "NONE");
        let kernel_log = source(InputKind::KernelLog, "[1.0] NVRM");
        let log = source(InputKind::Log, "step 1");
        assert_eq!(readable(&[report.clone(), dump.clone(), kernel_log.clone(), log]), 3);
        assert_eq!(readable(&[report.clone(), dump.clone(), kernel_log]), 2);
        assert_eq!(readable(&[dump.clone(), report]), 1);
        assert_eq!(readable(&[source(InputKind::Log, ""), dump]), 0);
        assert_eq!(readable(&[]), 0);
    }
}
