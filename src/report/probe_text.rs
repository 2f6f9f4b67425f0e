//! A probe for people: what runs where, with what, how each trial ended, what that says.
//!
//! In: a [`ProbeView`]. Out: text. It knows nothing of terminals.

use std::fmt::Write;

use super::probe::{PlacementView, ProbeView, TrialView};
use crate::probe::outcome::Outcome;
use crate::probe::plan::{Finding, Role};
use crate::text::number::{binary_size, grouped_signed};

/// Characters of what a kernel printed that are shown.
const PRINTED: usize = 200;

/// The whole page.
#[must_use]
pub fn text(view: &ProbeView) -> String {
    let mut out = String::new();
    head(view, &mut out);
    if let Some(predicted) = view.predicted {
        let name = view.sweep.as_deref().unwrap_or("");
        let (last, first) = (number(predicted.last_pass), number(predicted.first_fail));
        line(&mut out, format_args!("predicted  {name} = {last} passes, {first} fails"));
    }
    for note in &view.notes {
        line(&mut out, format_args!("note       {note}"));
    }
    out.push('\n');
    table(&view.trials, view.sweep.as_deref(), &mut out);
    if let Some(control) = &view.control {
        line(&mut out, format_args!("\ncontrol    {} ({})", control.kernel.entry, control.kernel.path));
        table(&control.trials, view.sweep.as_deref(), &mut out);
    }
    for fault in &view.faults {
        line(&mut out, format_args!("\n{}: {}", fault.tool, fault.summary));
    }
    if let Some(conclusion) = view.conclusion {
        line(&mut out, format_args!("\n{}: {}", word(conclusion), view.why));
    } else {
        line(&mut out, format_args!("\n{}", view.why));
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "{text}");
}

fn number(value: i64) -> String {
    grouped_signed(i128::from(value))
}

/// The word for a conclusion.
#[must_use]
pub fn word(conclusion: Finding) -> &'static str {
    match conclusion {
        Finding::Confirmed => "confirmed",
        Finding::Refuted => "refuted",
        Finding::Inconclusive => "inconclusive",
    }
}

fn head(view: &ProbeView, out: &mut String) {
    line(
        out,
        format_args!(
            "kernel     {} ({}, {})",
            view.kernel.entry,
            view.kernel.source.label(),
            view.kernel.path
        ),
    );
    match &view.device {
        Some(device) => line(
            out,
            format_args!(
                "device     {}, compute capability {}, driver {}, CUDA {}, {}",
                device.name,
                device.compute_capability,
                device.driver.as_deref().unwrap_or("unknown"),
                device.cuda,
                binary_size(u128::from(device.memory_bytes))
            ),
        ),
        None => line(out, format_args!("device     none: a dry run")),
    }
    let axes = |list: [u32; 3]| list.map(|size| size.to_string()).join(" x ");
    let launch = &view.launch;
    line(
        out,
        format_args!(
            "launch     grid {} ({}), block {}, {} bytes of shared memory",
            axes(launch.grid),
            sources(&launch.grid_from),
            axes(launch.block),
            launch.shared_bytes
        ),
    );
    let width = view.bindings.iter().map(|bound| bound.name.chars().count()).max().unwrap_or(0);
    for bound in &view.bindings {
        line(out, format_args!("           {:width$} = {}  [{}]", bound.name, bound.value, bound.from));
    }
}

fn sources(list: &[String; 3]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for from in list.iter().filter(|from| !from.is_empty() && !from.contains("doesn't use")) {
        if !seen.contains(&from.as_str()) {
            seen.push(from);
        }
    }
    seen.join("; ")
}

fn role(trial: &TrialView) -> &'static str {
    match (trial.role, trial.placement) {
        (Role::LastPass, _) => "predicted to pass, the last one",
        (Role::FirstFail, _) => "predicted to fail, the first one",
        (Role::Reported, _) => "the size that was reported",
        (Role::WellPast, _) => "well past it",
        (Role::Asked, _) => "asked for",
        (Role::UnderRun, _) => "small, starts guarded",
        (Role::Small, _) => "small",
        (Role::Halving, _) => "halving",
        (Role::Only, PlacementView::End) => "the only run",
        (Role::Only, PlacementView::Start) => "the only run, starts guarded",
    }
}

fn table(trials: &[TrialView], sweep: Option<&str>, out: &mut String) {
    line(
        out,
        format_args!(
            "{:>14}  {:<20} {:>5} {:>10} {:>10} {:>12} {:>12}  why",
            sweep.unwrap_or(""),
            "outcome",
            "code",
            "kernel ms",
            "process ms",
            "on device",
            "logical"
        ),
    );
    for trial in trials {
        line(out, format_args!("{}", row(trial)));
        if let Some(detail) = &trial.detail {
            line(out, format_args!("{:>14}  {detail}", ""));
        }
        if let Some(printed) = &trial.printed {
            let start: String = printed.chars().take(PRINTED).collect();
            line(out, format_args!("{:>14}  printed: {start}", ""));
        }
    }
}

/// One trial as a line.
#[must_use]
pub fn row(trial: &TrialView) -> String {
    let value = trial.values.values().next().map_or_else(String::new, |value| number(*value));
    let size =
        |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), |bytes| binary_size(u128::from(bytes)));
    let time = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
    format!(
        "{value:>14}  {:<20} {:>5} {:>10} {:>10} {:>12} {:>12}  {}",
        trial.outcome.map_or("planned", Outcome::name),
        trial.code.map_or_else(|| "-".to_owned(), |code| code.to_string()),
        time(trial.ms),
        time(trial.process_ms),
        size(trial.device_bytes),
        size(trial.logical_bytes),
        role(trial)
    )
}

/// A trial that ended, as a running probe tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToldTrial {
    /// Whether the control kernel ran.
    pub control: bool,
    /// The value of the swept argument.
    pub size: i64,
    /// How it ended.
    pub outcome: Outcome,
}

/// What begins the row of a control's trial.
const CONTROL: &str = "control ";

/// A trial as a running probe tells of it: its row, without the margin.
#[must_use]
pub fn told(trial: &TrialView, control: bool) -> String {
    format!("{}{}", if control { CONTROL } else { "" }, row(trial).trim_start())
}

/// Reads what [`told`] wrote, behind this program's name; nothing else is a trial.
#[must_use]
pub fn read_told(line: &str) -> Option<ToldTrial> {
    let rest = line.strip_prefix("warpfault: ")?;
    let (control, rest) = match rest.strip_prefix(CONTROL) {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let mut words = rest.split_whitespace();
    let size = words.next()?.replace(',', "").parse().ok()?;
    let outcome = Outcome::from_name(words.next()?)?;
    Some(ToldTrial { control, size, outcome })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::plan::Step;
    use crate::probe::protocol::Placement;

    #[test]
    fn what_is_told_of_a_trial_is_read_back_and_nothing_else_is() {
        let step = Step { value: 233_024, role: Role::FirstFail, placement: Placement::End };
        let mut trial = TrialView::planned(step, Some("M"));
        for (outcome, control) in [(Outcome::Pass, true), (Outcome::IllegalAddress, false)] {
            trial.outcome = Some(outcome);
            let line = format!("warpfault: {}", told(&trial, control));
            assert_eq!(read_told(&line), Some(ToldTrial { control, size: 233_024, outcome }), "{line}");
        }
        for other in ["warpfault: 12 apples", "240  pass", "warpfault: the driver shows no GPU", ""] {
            assert_eq!(read_told(other), None, "{other}");
        }
    }
}
