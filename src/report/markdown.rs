//! The report as Markdown, ready for an issue tracker.
//!
//! In: a report (already escaped). Out: Markdown in which nothing from a log can become markup: log text stands in code
//! spans and fenced blocks that are longer than any run of backticks inside. It leaves colours and pictures to HTML.

use crate::repro::literal::with_bars;
use crate::text::command_line;

use super::figure::NumberLine;
use super::model::Report;
use super::{asked, history, trials, wording};
use crate::text::number::grouped_signed;

/// Pieces of evidence that are quoted.
const EVIDENCE_SHOWN: usize = 16;

/// Ranks, failures and inputs that are listed one by one.
const ROW_LIMIT: usize = 24;

/// The report as Markdown.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    out.push_str(&format!("## {}\n\n", inline(&report.verdict.summary)));
    answer(&mut out, report);
    arithmetic(&mut out, report);
    failures(&mut out, report);
    ranks(&mut out, report);
    evidence(&mut out, report);
    environment(&mut out, report);
    probes(&mut out, report);
    checks(&mut out, report);
    next(&mut out, report);
    mitigations(&mut out, report);
    tried(&mut out, report);
    asked_for(&mut out, report);
    inputs(&mut out, report);
    out.push_str(&format!("\n{}\n", wording::mark(report)));
    out
}

fn answer(out: &mut String, report: &Report) {
    let verdict = &report.verdict;
    out.push_str("| | |\n|---|---|\n");
    row(out, "class", &format!("`{}`, {}", verdict.class.name(), wording::certainty(verdict.certainty)));
    if let Some(code) = &verdict.code {
        row(out, "status", &cell(&wording::code(code)));
    }
    if let Some(notice) = &verdict.observed_at {
        row(
            out,
            "noticed",
            &format!(
                "{} {}",
                cell(&wording::notice_text(report.verdict.class, notice)),
                inline(&wording::notice_ref(report, notice))
            ),
        );
    }
    if let Some(text) = wording::happened_text(report) {
        let shown = match &verdict.fault_at {
            Some(fault) => format!("{} {}", cell(&text), inline(&wording::refs(report, &fault.evidence))),
            None => inline(&text),
        };
        row(out, "happened", &shown);
    }
    match &verdict.cause {
        Some(cause) => {
            let kind = wording::spelled(&cause.kind);
            let refs = inline(&wording::refs(report, wording::cause_evidence(report)));
            let certainty = wording::certainty(cause.certainty);
            row(out, "cause", &format!("`{kind}`, {certainty}: {} {refs}", inline(&cause.summary)));
        }
        None if report.failures.is_empty() => {}
        None => row(out, "cause", &inline(&wording::no_cause(report))),
    }
    if let Some(rank) = verdict.root_rank {
        row(out, "first rank", &rank.to_string());
    }
    if !report.failures.is_empty() {
        row(out, "restart", &inline(&wording::restart_text(&verdict.restart)));
    }
}

/// The boundary of the shape in question, in numbers.
fn arithmetic(out: &mut String, report: &Report) {
    let Some(line) = NumberLine::of(report) else { return };
    out.push_str("\n### Index arithmetic\n\n| | shape | last index |\n|---|---|---|\n");
    if let Some(safe) = &line.safe {
        out.push_str(&format!(
            "| largest that fits | {} | {} |\n",
            cell(&safe.label),
            grouped_signed(safe.index)
        ));
    }
    out.push_str(&format!("| limit | `2^31-1` | {} |\n", grouped_signed(line.limit)));
    let (label, index) = (cell(&line.reported.label), grouped_signed(line.reported.index));
    out.push_str(&format!("| reported | {label} | {index} |\n"));
}

fn failures(out: &mut String, report: &Report) {
    if report.failures.len() < 2 {
        return;
    }
    out.push_str(
        "\n### Failures, the first one on top\n\n| role | class | rank | why |\n|---|---|---|---|\n",
    );
    for failure in report.failures.iter().take(ROW_LIMIT) {
        let rank = failure.rank.map(|rank| rank.to_string()).unwrap_or_default();
        let refs = wording::refs(report, failure.evidence.get(..1).unwrap_or_default());
        out.push_str(&format!(
            "| {} | `{}` | {rank} | {} {} |\n",
            failure.shown.unwrap_or_else(|| wording::role(failure.role)),
            failure.class.name(),
            inline(failure.why.as_deref().unwrap_or("")),
            inline(&refs)
        ));
    }
    more(out, report.failures.len());
}

fn ranks(out: &mut String, report: &Report) {
    if report.ranks.len() < 2 {
        return;
    }
    out.push_str("\n### Ranks, the odd one out on top\n\n| rank | state | completed | enqueued | ended |\n|---|---|---|---|---|\n");
    for rank in report.ranks.iter().take(ROW_LIMIT) {
        let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            rank.rank,
            wording::rank_state(rank.state),
            number(rank.last_completed),
            number(rank.last_enqueued),
            wording::ending(rank)
        ));
    }
    more(out, report.ranks.len());
}

fn evidence(out: &mut String, report: &Report) {
    let lines: String = wording::key_evidence(report, EVIDENCE_SHOWN)
        .into_iter()
        .map(|evidence| {
            format!("{} {}: {}\n", evidence.id, wording::position(report, evidence), evidence.text.trim())
        })
        .collect();
    if !lines.is_empty() {
        out.push_str("\n### Evidence\n\n");
        out.push_str(&fenced(&lines));
    }
}

fn environment(out: &mut String, report: &Report) {
    let facts = asked::environment(report);
    if facts.is_empty() {
        return;
    }
    out.push_str("\n### Environment\n\n| | | |\n|---|---|---|\n");
    for fact in &facts {
        let values: Vec<String> = fact.values.iter().map(|(value, _)| cell(value)).collect();
        let ids: Vec<String> = fact.values.iter().map(|(_, id)| id.clone()).collect();
        let refs = inline(&wording::refs(report, &ids));
        out.push_str(&format!("| {} | {} | {refs} |\n", cell(&fact.name), values.join(", ")));
    }
}

/// What maintainers ask for before they look: a tick where the report has it, how to get it where it hasn't.
fn asked_for(out: &mut String, report: &Report) {
    let rows = asked::asked(report);
    if rows.is_empty() {
        return;
    }
    out.push_str("\n### What maintainers ask for\n\n");
    for row in &rows {
        match &row.answer {
            Some(answer) => {
                let refs = inline(&wording::refs(report, &row.evidence));
                out.push_str(&format!("- [x] {}: {} {refs}\n", row.what, code_span(answer)));
            }
            None => out.push_str(&format!("- [ ] {}: missing; {}\n", row.what, inline(row.how))),
        }
    }
}

fn mitigations(out: &mut String, report: &Report) {
    if report.mitigations.is_empty() {
        return;
    }
    out.push_str("\n### Meanwhile and for good\n\n");
    for mitigation in &report.mitigations {
        out.push_str(&format!("- **{}**: {}\n", mitigation.scope, inline(&mitigation.summary)));
    }
}

fn tried(out: &mut String, report: &Report) {
    if report.history.is_empty() {
        return;
    }
    out.push_str("\n### What was tried\n\n| when, who | step | what came of it |\n|---|---|---|\n");
    for entry in &report.history {
        let command = entry.command.as_ref().map(|words| code_span(&command_line(words)));
        out.push_str(&format!(
            "| {} | {} | {} {} |\n",
            inline(&history::stamp(entry)),
            inline(&entry.title),
            inline(&entry.did),
            command.unwrap_or_default().replace('|', "\\|")
        ));
    }
}

fn inputs(out: &mut String, report: &Report) {
    out.push_str("\n### Inputs\n\n");
    for input in report.inputs.iter().take(ROW_LIMIT) {
        let cut = if input.truncated { ", cut" } else { "" };
        out.push_str(&format!(
            "- {} ({}, {} bytes, {} lines{cut})\n",
            code_span(&input.path),
            wording::spelled(&input.kind),
            input.bytes,
            input.lines
        ));
    }
    more(out, report.inputs.len());
    for diagnostic in &report.diagnostics {
        out.push_str(&format!("- {}: {}\n", diagnostic.severity, inline(&diagnostic.message)));
    }
}

/// The trials of probes, one row each.
fn probes(out: &mut String, report: &Report) {
    for probe in trials::of(report) {
        out.push_str(&format!(
            "\n### Probe of {} {}\n\n",
            inline(&probe.heading),
            inline(&format!("[{}]", probe.evidence))
        ));
        if let Some(predicted) = &probe.predicted {
            out.push_str(&format!("Predicted: {}\n\n", inline(predicted)));
        }
        let columns: Vec<String> = probe.columns().iter().map(|name| inline(name)).collect();
        out.push_str(&format!("| kernel | {} |\n|---|---:|---|---:|---:|---:|---|\n", columns.join(" | ")));
        let control = probe.control_rows.iter().map(|row| (probe.control.as_deref().unwrap_or(""), row));
        for (kernel, row) in
            probe.rows.iter().map(|row| (probe.report.kernel.entry.as_str(), row)).chain(control)
        {
            let cells: Vec<String> = row.cells().iter().map(|cell| inline(cell)).collect();
            out.push_str(&format!("| {} | {} |\n", cell(kernel), cells.join(" | ")));
        }
        out.push('\n');
        for fault in &probe.faults {
            out.push_str(&format!("- {}\n", inline(fault)));
        }
        out.push_str(&format!("- {}\n", inline(&probe.said())));
    }
}

fn more(out: &mut String, all: usize) {
    if all > ROW_LIMIT {
        out.push_str(&format!("\n… and {} more\n", all - ROW_LIMIT));
    }
}

fn checks(out: &mut String, report: &Report) {
    if report.checks.is_empty() {
        return;
    }
    out.push_str("\n### Checks\n\n| check | outcome | reading |\n|---|---|---|\n");
    for check in &report.checks {
        out.push_str(&format!(
            "| {} | {} | {} {} |\n",
            inline(&check.title),
            wording::check_status(check.status),
            inline(&check.reading),
            inline(&wording::refs(report, &check.evidence))
        ));
    }
}

fn next(out: &mut String, report: &Report) {
    if report.next.is_empty() {
        return;
    }
    out.push_str("\n### Next\n\n");
    for step in &report.next {
        out.push_str(&format!(
            "1. {}: {} (cost: {})\n",
            inline(&step.title),
            inline(&step.why),
            inline(&step.cost)
        ));
        if let Some(words) = &step.command {
            let line = command_line(words);
            for text in fenced(&format!("{line}\n")).lines() {
                out.push_str(&format!("   {text}\n"));
            }
        }
    }
}

fn row(out: &mut String, name: &str, value: &str) {
    out.push_str(&format!("| {name} | {value} |\n"));
}

/// Text in which no character is markup.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '@' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// A code span that no backtick inside can end.
fn code_span(text: &str) -> String {
    let fence = "`".repeat(longest_backticks(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code span inside a table, where a bar would end the cell.
fn cell(text: &str) -> String {
    code_span(&with_bars(text))
}

/// A fenced block that no fence inside can end.
fn fenced(text: &str) -> String {
    let fence = "`".repeat((longest_backticks(text) + 1).max(3));
    format!("{fence}text\n{text}{fence}\n")
}

fn longest_backticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use crate::session::{Input, Session};
    use crate::source::{self, InputSpec, Limits};

    fn shown(path: &str) -> String {
        let mut session = Session::new();
        session
            .apply(Input::Loaded(source::load(&[InputSpec::Path(PathBuf::from(path))], Limits::default())));
        render(session.report())
    }

    #[test]
    fn log_text_cannot_become_markup() {
        assert_eq!(inline("<img src=x> [a](b) **c**"), r"\<img src=x\> \[a\](b) \*\*c\*\*");
        assert_eq!(code_span("a`b"), "``a`b``");
        assert_eq!(cell("a|b"), r"`a\|b`");
        assert_eq!(cell(r"a\|b"), r"`a\\\|b`");
        assert!(fenced("```\nx\n```\n").starts_with("````text\n"));
    }

    /// Bars of a row that no backslash escapes.
    fn bars(row: &str) -> usize {
        let mut escaped = false;
        let mut count = 0;
        for c in row.chars() {
            count += usize::from(c == '|' && !escaped);
            escaped = c == '\\' && !escaped;
        }
        count
    }

    #[test]
    fn hostile_names_break_no_table_and_no_line() {
        let name = "k`*/\\|<script>{{x}}\"'\u{1b}[2J\u{202e}";
        let log = format!(
            "========= COMPUTE-SANITIZER\n\
             ========= Invalid __global__ write of size 4 bytes\n\
             =========     at {name}(float *)+0xf0 in {name}.cu:12\n\
             =========     by thread (32,0,0) in block (65892,0,0)\n\
             =========     Address 0x7fa246c80080 is out of bounds\n\
             {name} rows=70000 cols=32768\n\
             ========= ERROR SUMMARY: 1 error\n"
        );
        let mut session = Session::new();
        let spec = InputSpec::Text { name: format!("run{name}.log"), bytes: log.into_bytes() };
        session.apply(Input::Loaded(source::load(&[spec], Limits::default())));
        let text = render(session.report());
        assert!(text.contains("k`*/"), "the name reaches the page: {text}");
        for (at, line) in text.lines().enumerate() {
            assert!(!line.contains(['\u{1b}', '\u{202e}', '\0']), "{line}");
            let before = text.lines().nth(at.wrapping_sub(1)).unwrap_or("");
            if line.starts_with("| ") && before.starts_with('|') {
                assert_eq!(bars(line), bars(before), "{before}\n{line}");
            }
        }
        assert_eq!(text.lines().filter(|line| line.starts_with("```")).count() % 2, 0);
        let plain = crate::report::text::render(session.report(), crate::report::text::Paint::Plain);
        assert!(!plain.contains(['\u{1b}', '\u{202e}', '\0']), "{plain}");
    }

    #[test]
    fn an_issue_has_evidence_with_lines_and_says_what_is_missing() {
        let text = shown("samples/triton-int32-wrap-memcheck");
        for line in [
            "| class | `illegal_address`, supported |",
            "| largest that fits | `M 233,016 × intermediate_size 9,216` | 2,147,475,455 |",
            "e3 run.log:4: ========= Invalid __global__ write of size 16 bytes",
            "- [x] shapes, dtypes and strides of the operands: `M 234,624 × intermediate_size 9,216 of bfloat16` \\[e13 run.log:3\\]",
            "- [ ] a repro without the serving stack: missing; ",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(text.ends_with("(warpfault/report/1)\n"));
    }

    #[test]
    fn every_row_of_a_table_has_the_cells_of_its_head() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a|b`.log");
        let log = "NCCL_DEBUG=IN|FO`x\n[rank0]: Traceback (most recent call last):\n[rank0]:   File \"x|y`.py\", line 3, in f|g\n\
                   [rank0]: RuntimeError: CUDA error: an illegal memory access was encountered\n\
                   [rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n";
        std::fs::write(&path, log).unwrap();
        let text = shown(path.to_str().unwrap());
        let mut cells = 0;
        for line in text.lines() {
            if !line.starts_with('|') {
                cells = 0;
                continue;
            }
            let bars = line.replace("\\|", "").matches('|').count();
            assert!(cells == 0 || bars == cells, "{line}");
            cells = bars;
        }
    }
}
