//! The report as Markdown, ready for an issue tracker.
//!
//! In: a report (already escaped). Out: Markdown in which nothing from a log can become markup: log text stands in code
//! spans and fenced blocks that are longer than any run of backticks inside. It leaves colours and pictures to HTML.

use crate::text::command_line;

use super::model::{From, Report};

/// The report as Markdown.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    let verdict = &report.verdict;
    out.push_str(&format!("## {}\n\n", inline(&verdict.summary)));
    out.push_str("| | |\n|---|---|\n");
    row(&mut out, "class", &format!("`{}`, {}", verdict.class.name(), name(&verdict.certainty)));
    if let Some(cause) = &verdict.cause {
        row(
            &mut out,
            "cause",
            &format!("`{}`, {}: {}", name(&cause.kind), name(&cause.certainty), inline(&cause.summary)),
        );
    }
    if let Some(code) = &verdict.code {
        let number = code.number.map(|n| n.to_string()).unwrap_or_default();
        row(
            &mut out,
            "status",
            &code_span(format!("{} {number} {}", code.domain, code.name.as_deref().unwrap_or("")).trim()),
        );
    }
    if let Some(notice) = &verdict.observed_at {
        let place = format!(
            "{}:{}",
            notice.file.as_deref().unwrap_or("?"),
            notice.line.map(|l| l.to_string()).unwrap_or_default()
        );
        let sync = match notice.is_sync_point {
            Some(true) => ", a sync point",
            _ => "",
        };
        row(&mut out, "noticed at", &format!("{}{sync}", code_span(&place)));
    }
    if let Some(fault) = &verdict.fault_at {
        let place = [
            fault.kernel.clone(),
            fault
                .file
                .clone()
                .map(|file| format!("{file}:{}", fault.line.map(|l| l.to_string()).unwrap_or_default())),
        ];
        let place: Vec<String> = place.into_iter().flatten().collect();
        if !place.is_empty() {
            row(&mut out, "happened at", &code_span(&place.join(" at ")));
        }
    }
    if let Some(rank) = verdict.root_rank {
        row(&mut out, "first rank", &rank.to_string());
    }
    row(
        &mut out,
        "restart",
        &format!("{}: {}", name(&verdict.restart.advice).replace('_', " "), inline(&verdict.restart.summary)),
    );
    evidence(&mut out, report);
    checks(&mut out, report);
    next(&mut out, report);
    if !report.mitigations.is_empty() {
        out.push_str("\n### Meanwhile and for good\n\n");
        for mitigation in &report.mitigations {
            out.push_str(&format!("- **{}**: {}\n", mitigation.scope, inline(&mitigation.summary)));
        }
    }
    out.push_str("\n### Inputs\n\n");
    for input in &report.inputs {
        out.push_str(&format!(
            "- {} ({}, {} bytes, {} lines)\n",
            code_span(&input.path),
            name(&input.kind),
            input.bytes,
            input.lines
        ));
    }
    for diagnostic in &report.diagnostics {
        out.push_str(&format!("- {}: {}\n", diagnostic.severity, inline(&diagnostic.message)));
    }
    out.push_str(&format!("\nreport by {} {} ({})\n", report.tool.name, report.tool.version, report.schema));
    out
}

fn evidence(out: &mut String, report: &Report) {
    let wanted: Vec<&String> = report
        .failures
        .iter()
        .flat_map(|failure| failure.evidence.iter().take(2))
        .chain(report.hypotheses.iter().flat_map(|hypothesis| hypothesis.supports.iter()))
        .take(12)
        .collect();
    let mut lines = String::new();
    let mut seen = Vec::new();
    for id in wanted {
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let Some(evidence) = report.evidence.iter().find(|evidence| &evidence.id == id) else { continue };
        let at = match &evidence.from {
            From::Span { input, line, .. } => {
                let path = report.inputs.get(*input as usize).map_or("?", |input| input.path.as_str());
                format!("{path}:{line}")
            }
            From::Derived { from } => format!("from {}", from.join(" ")),
            From::Probe => "probe".to_owned(),
            From::Answer => "answer".to_owned(),
        };
        lines.push_str(&format!("{} {at}: {}\n", evidence.id, evidence.text.trim()));
    }
    if !lines.is_empty() {
        out.push_str("\n### Evidence\n\n");
        out.push_str(&fenced(&lines));
    }
}

fn checks(out: &mut String, report: &Report) {
    if report.checks.is_empty() {
        return;
    }
    out.push_str("\n### Checks\n\n| check | outcome | reading |\n|---|---|---|\n");
    for check in &report.checks {
        out.push_str(&format!(
            "| {} | {} | {} |\n",
            inline(&check.title),
            name(&check.status),
            inline(&check.reading)
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

/// The spelling of an enum in JSON.
fn name<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
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

/// A code span that no backtick inside can end; a bar would end a table cell.
fn code_span(text: &str) -> String {
    let fence = "`".repeat(longest_backticks(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", text.replace('|', "\\|"))
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

    #[test]
    fn log_text_cannot_become_markup() {
        assert_eq!(inline("<img src=x> [a](b) **c**"), r"\<img src=x\> \[a\](b) \*\*c\*\*");
        assert_eq!(code_span("a`b"), "``a`b``");
        assert!(fenced("```\nx\n```\n").starts_with("````text\n"));
    }
}
