//! The report as text for a terminal or a file: verdict first, then the two places, the proof, and what to do.
//!
//! In: a report (already escaped). Out: lines. Labels become styles only through [`Paint`], so that the same text serves
//! pipes and terminals. It fits 80 columns where words allow.

mod paint;
mod wrap;

pub use paint::{Label, Paint};

use crate::text::command_line;

use super::model::Report;
use super::{history as walked, trials, wording};
use wrap::wrapped;

/// Columns of the text.
const WIDTH: usize = 96;
/// Evidence lines shown under the verdict.
const EVIDENCE_SHOWN: usize = 8;

/// The report as text.
#[must_use]
pub fn render(report: &Report, paint: Paint) -> String {
    let mut out = String::new();
    head(&mut out, report, paint);
    places(&mut out, report, paint);
    cause(&mut out, report, paint);
    restart(&mut out, report, paint);
    failures(&mut out, report, paint);
    ranks(&mut out, report, paint);
    evidence(&mut out, report, paint);
    probes(&mut out, report, paint);
    checks(&mut out, report, paint);
    next(&mut out, report, paint);
    mitigations(&mut out, report, paint);
    history(&mut out, report, paint);
    inputs(&mut out, report, paint);
    out.push_str(&format!("\n{}\n", wording::mark(report)));
    out
}

fn head(out: &mut String, report: &Report, paint: Paint) {
    let verdict = &report.verdict;
    out.push_str(&paint.label(Label::Class, &wording::class_heading(report)));
    if let Some(code) = &verdict.code {
        out.push_str(&format!("  {}", wording::code(code)));
    }
    out.push_str(&format!("  [{}]\n", paint.label(Label::Certainty, wording::certainty(verdict.certainty))));
    out.push_str(&wrapped(&verdict.summary, WIDTH, ""));
    out.push('\n');
}

fn places(out: &mut String, report: &Report, paint: Paint) {
    let verdict = &report.verdict;
    if let Some(notice) = &verdict.observed_at {
        let text = wording::notice_text(report.verdict.class, notice);
        row(out, paint, "noticed", &format!("{text} {}", wording::notice_ref(report, notice)));
    }
    if let Some(text) = wording::happened_text(report) {
        let evidence = verdict.fault_at.as_ref().map(|fault| fault.evidence.as_slice()).unwrap_or_default();
        row(out, paint, "happened", &format!("{text} {}", wording::refs(report, evidence)));
    }
}

fn cause(out: &mut String, report: &Report, paint: Paint) {
    match &report.verdict.cause {
        Some(cause) => {
            let refs = wording::refs(report, wording::cause_evidence(report));
            row(out, paint, "cause", &format!("{} {refs}", wording::cause_text(cause)));
        }
        None if report.failures.is_empty() => {}
        None => row(out, paint, "cause", &wording::no_cause(report)),
    }
}

fn restart(out: &mut String, report: &Report, paint: Paint) {
    if !report.failures.is_empty() {
        row(out, paint, "restart", &wording::restart_text(&report.verdict.restart));
    }
}

fn failures(out: &mut String, report: &Report, paint: Paint) {
    if report.failures.len() < 2 {
        return;
    }
    title(out, paint, "failures, the first one on top");
    for failure in report.failures.iter().take(12) {
        let role = failure.shown.unwrap_or_else(|| wording::role(failure.role));
        let rank = failure.rank.map(|rank| format!(" rank {rank}")).unwrap_or_default();
        let why = failure.why.as_deref().unwrap_or("");
        let line = format!(
            "{role:<9} {}{rank}: {why} {}",
            failure.class.name(),
            wording::refs(report, failure.evidence.get(..1).unwrap_or_default())
        );
        out.push_str(&wrapped(&line, WIDTH, "  "));
    }
    let more = report.failures.len().saturating_sub(12);
    if more > 0 {
        out.push_str(&format!("  … and {more} more\n"));
    }
}

fn ranks(out: &mut String, report: &Report, paint: Paint) {
    if report.ranks.len() < 2 {
        return;
    }
    title(out, paint, "ranks, the odd one out on top");
    for rank in report.ranks.iter().take(8) {
        let state = wording::rank_state(rank.state);
        let mut line = format!("rank {:<4} {state:<10}", rank.rank);
        if let (Some(enqueued), Some(completed)) = (rank.last_enqueued, rank.last_completed) {
            line.push_str(&format!(" enqueued {enqueued}, completed {completed}"));
        }
        if let Some(signal) = rank.signal {
            line.push_str(&format!(" signal {signal}"));
        } else if let Some(code) = rank.exit_code {
            line.push_str(&format!(" exit {code}"));
        }
        out.push_str(&format!("  {}\n", line.trim_end()));
    }
    let more = report.ranks.len().saturating_sub(8);
    if more > 0 {
        out.push_str(&format!("  … and {more} more\n"));
    }
}

fn evidence(out: &mut String, report: &Report, paint: Paint) {
    let shown = wording::key_evidence(report, EVIDENCE_SHOWN);
    if shown.is_empty() {
        return;
    }
    title(out, paint, "evidence");
    for evidence in shown {
        out.push_str(&format!("  {:<4} {:<18} ", evidence.id, wording::position(report, evidence)));
        out.push_str(&crate::text::fit(evidence.text.trim(), WIDTH.saturating_sub(26)));
        out.push('\n');
    }
}

fn probes(out: &mut String, report: &Report, paint: Paint) {
    for probe in trials::of(report) {
        title(out, paint, "probe");
        out.push_str(&wrapped(&format!("{} [{}]", probe.heading, probe.evidence), WIDTH, "  "));
        if let Some(predicted) = &probe.predicted {
            out.push_str(&wrapped(&format!("predicted: {predicted}"), WIDTH, "  "));
        }
        out.push_str(&format!("  {}\n", trials::line(probe.columns())));
        for row in &probe.rows {
            out.push_str(&format!("  {}\n", trials::line(row.cells())));
        }
        if let Some(control) = &probe.control {
            out.push_str(&wrapped(&format!("the fixed kernel {control}"), WIDTH, "  "));
        }
        for row in &probe.control_rows {
            out.push_str(&format!("  {}\n", trials::line(row.cells())));
        }
        for fault in &probe.faults {
            out.push_str(&wrapped(fault, WIDTH, "  "));
        }
        out.push_str(&wrapped(&probe.said(), WIDTH, "  "));
    }
}

fn checks(out: &mut String, report: &Report, paint: Paint) {
    if report.checks.is_empty() {
        return;
    }
    title(out, paint, "checks");
    for check in &report.checks {
        let status = wording::check_status(check.status);
        out.push_str(&wrapped(&format!("{status:<8} {} {}", check.title, check.reading), WIDTH, "  "));
    }
}

fn next(out: &mut String, report: &Report, paint: Paint) {
    if report.next.is_empty() {
        return;
    }
    title(out, paint, "next");
    for (number, step) in report.next.iter().enumerate() {
        out.push_str(&wrapped(
            &format!("{}. {}: {} (cost: {})", number + 1, step.title, step.why, step.cost),
            WIDTH,
            "  ",
        ));
        if let Some(words) = &step.command {
            let line = command_line(words);
            out.push_str(&format!("     {}\n", paint.label(Label::Command, &line)));
        }
    }
}

fn mitigations(out: &mut String, report: &Report, paint: Paint) {
    if report.mitigations.is_empty() {
        return;
    }
    title(out, paint, "meanwhile and for good");
    for mitigation in &report.mitigations {
        out.push_str(&wrapped(&format!("{:<12} {}", mitigation.scope, mitigation.summary), WIDTH, "  "));
    }
}

fn history(out: &mut String, report: &Report, paint: Paint) {
    if report.history.is_empty() {
        return;
    }
    title(out, paint, "what was tried");
    for entry in &report.history {
        let stamp = walked::stamp(entry);
        let line =
            format!("{stamp}{}{}: {}", if stamp.is_empty() { "" } else { "  " }, entry.title, entry.did);
        out.push_str(&wrapped(&line, WIDTH, "  "));
        if let Some(words) = &entry.command {
            out.push_str(&format!("     {}\n", paint.label(Label::Command, &command_line(words))));
        }
    }
}

fn inputs(out: &mut String, report: &Report, paint: Paint) {
    title(out, paint, "read");
    for input in report.inputs.iter().take(12) {
        let kind = wording::spelled(&input.kind);
        let cut = if input.truncated { ", cut" } else { "" };
        out.push_str(&format!(
            "  {} ({kind}, {} bytes, {} lines{cut})\n",
            input.path, input.bytes, input.lines
        ));
    }
    let more = report.inputs.len().saturating_sub(12);
    if more > 0 {
        out.push_str(&format!("  … and {more} more\n"));
    }
    for diagnostic in &report.diagnostics {
        out.push_str(&wrapped(&format!("{}: {}", diagnostic.severity, diagnostic.message), WIDTH, "  "));
    }
}

fn title(out: &mut String, paint: Paint, title: &str) {
    out.push('\n');
    out.push_str(&paint.label(Label::Title, title));
    out.push('\n');
}

fn row(out: &mut String, paint: Paint, name: &str, text: &str) {
    let body = wrapped(text.trim_end(), WIDTH - 10, "          ");
    out.push_str(&paint.label(Label::Title, &format!("{name:<9}")));
    out.push(' ');
    out.push_str(body.trim_start());
}
