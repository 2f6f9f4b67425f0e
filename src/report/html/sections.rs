//! The sections of the page, in the words of the text report.
//!
//! In: a report. Out: markup. Every reference to evidence is a link to its row.

use super::super::Report;
use super::super::asked::{self, Fact};
use super::super::model::{Certainty, CheckStatus, Evidence, EvidenceKind, ObservedAt, RankState};
use super::super::{history, wording};
use super::page::Page;
use crate::text::command_line;
use crate::text::number::grouped;

/// Failures, ranks and inputs that are listed one by one.
const ROW_LIMIT: usize = 64;

/// Further evidence that stands folded away.
const MORE_EVIDENCE: usize = 200;

/// Class, certainty, summary and the answers to the four questions.
pub fn answer(page: &mut Page, report: &Report) {
    let verdict = &report.verdict;
    page.tag("<header>\n<div class=\"top\"><h1>").text(&wording::class_heading(report)).tag("</h1>");
    word(
        page,
        certainty_look(verdict.certainty),
        wording::certainty(verdict.certainty),
        wording::certainty_meaning(verdict.certainty),
    );
    if let Some(code) = &verdict.code {
        page.tag("<code class=\"status\">").text(&wording::code(code)).tag("</code>");
    }
    page.tag("</div>\n<p class=\"summary\">").text(&verdict.summary).tag("</p>\n<dl class=\"answer\">\n");
    if let Some(notice) = &verdict.observed_at {
        page.tag("<dt>noticed</dt><dd>").text(&wording::notice_text(report.verdict.class, notice));
        notice_ref(page, report, notice);
        page.tag("</dd>\n");
    }
    if let Some(text) = wording::happened_text(report) {
        let ids = verdict.fault_at.as_ref().map(|fault| fault.evidence.as_slice()).unwrap_or_default();
        page.tag("<dt>happened</dt><dd>").text(&text);
        refs(page, report, ids);
        page.tag("</dd>\n");
    }
    match &verdict.cause {
        Some(cause) => {
            page.tag("<dt>cause</dt><dd><strong>")
                .text(&wording::spelled(&cause.kind).replace('_', " "))
                .tag("</strong> ");
            word(
                page,
                certainty_look(cause.certainty),
                wording::certainty(cause.certainty),
                wording::certainty_meaning(cause.certainty),
            );
            page.tag("<br>").text(&cause.summary);
            refs(page, report, wording::cause_evidence(report));
            page.tag("</dd>\n");
        }
        None if report.failures.is_empty() => {}
        None => {
            page.tag("<dt>cause</dt><dd>").text(&wording::no_cause(report)).tag("</dd>\n");
        }
    }
    if !report.failures.is_empty() {
        page.tag("<dt>restart</dt><dd>").text(&wording::restart_text(&verdict.restart)).tag("</dd>\n");
    }
    page.tag("</dl>\n</header>\n");
}

/// Every failure with its role.
pub fn failures(page: &mut Page, report: &Report) {
    if report.failures.len() < 2 {
        return;
    }
    page.tag("<section>\n<h2>Failures, the first one on top</h2>\n<table class=\"stack\"><thead><tr><th>role</th><th>class</th><th>rank</th><th>why</th></tr></thead>\n<tbody>\n");
    for failure in report.failures.iter().take(ROW_LIMIT) {
        page.tag("<tr><td class=\"tight\">")
            .text(wording::role(failure.role))
            .tag("</td><td class=\"tight\">");
        page.text(&failure.class.name().replace('_', " ")).tag("</td><td class=\"tight\">");
        if let Some(rank) = failure.rank {
            page.text(&format!("rank {rank}"));
        }
        page.tag("</td><td>").text(failure.why.as_deref().unwrap_or(""));
        refs(page, report, failure.evidence.get(..1).unwrap_or_default());
        page.tag("</td></tr>\n");
    }
    page.tag("</tbody></table>\n");
    more(page, report.failures.len());
    page.tag("</section>\n");
}

/// Every rank; the picture shows the same.
pub fn ranks(page: &mut Page, report: &Report) {
    if report.ranks.len() < 2 {
        return;
    }
    page.tag("<section>\n<h2>Ranks, the odd one out on top</h2>\n<table class=\"stack\"><thead><tr><th>rank</th><th>state</th><th class=\"number\">completed</th><th class=\"number\">enqueued</th><th>ended</th><th>where</th></tr></thead>\n<tbody>\n");
    for rank in report.ranks.iter().take(ROW_LIMIT) {
        let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
        page.tag("<tr><td class=\"tight\" data-label=\"rank\">")
            .text(&rank.rank.to_string())
            .tag("</td><td>");
        word(page, state_look(rank.state), wording::rank_state(rank.state), "");
        page.tag("</td><td class=\"number\" data-label=\"completed\">").text(&number(rank.last_completed));
        page.tag("</td><td class=\"number\" data-label=\"enqueued\">")
            .text(&number(rank.last_enqueued))
            .tag("</td><td>")
            .text(&wording::ending(rank));
        let place: Vec<String> = [
            rank.host.clone(),
            rank.pid.map(|pid| format!("pid {pid}")),
            rank.pci.as_ref().map(|pci| format!("GPU {pci}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        page.tag("</td><td>").text(&place.join(", "));
        refs(page, report, rank.evidence.get(..1).unwrap_or_default());
        page.tag("</td></tr>\n");
    }
    page.tag("</tbody></table>\n");
    more(page, report.ranks.len());
    page.tag("</section>\n");
}

/// Checks with their three outcomes.
pub fn checks(page: &mut Page, report: &Report) {
    if report.checks.is_empty() {
        return;
    }
    page.tag("<section>\n<h2>Checks</h2>\n<table class=\"stack\"><thead><tr><th>outcome</th><th>question</th><th>reading</th></tr></thead>\n<tbody>\n");
    for check in &report.checks {
        let look = match check.status {
            CheckStatus::Holds => "good",
            CheckStatus::Fails => "bad",
            CheckStatus::Unknown => "warn",
            CheckStatus::Skipped => "idle",
        };
        page.tag("<tr><td>");
        word(page, look, wording::check_status(check.status), "");
        page.tag("</td><td>").text(&check.title).tag("</td><td>").text(&check.reading);
        refs(page, report, &check.evidence);
        page.tag("</td></tr>\n");
    }
    page.tag("</tbody></table>\n</section>\n");
}

/// Steps with their commands.
pub fn next(page: &mut Page, report: &Report) {
    if report.next.is_empty() {
        return;
    }
    page.tag("<section>\n<h2>Next</h2>\n<ol>\n");
    for step in &report.next {
        page.tag("<li><strong>").text(&step.title).tag("</strong>: ").text(&step.why);
        page.tag(" <span class=\"why\">(cost: ").text(&step.cost).tag(")</span>");
        if let Some(words) = &step.command {
            page.tag("\n<pre><code>").text(&command_line(words)).tag("</code></pre>");
        }
        page.tag("</li>\n");
    }
    page.tag("</ol>\n</section>\n");
}

/// Stop-gaps, fixes and how to verify them.
pub fn mitigations(page: &mut Page, report: &Report) {
    if report.mitigations.is_empty() {
        return;
    }
    page.tag("<section>\n<h2>Meanwhile and for good</h2>\n<dl class=\"answer\">\n");
    for mitigation in &report.mitigations {
        page.tag("<dt>").text(&mitigation.scope).tag("</dt><dd>").text(&mitigation.summary);
        refs(page, report, wording::cause_evidence(report));
        page.tag("</dd>\n");
    }
    page.tag("</dl>\n</section>\n");
}

/// The history of the walk.
pub fn tried(page: &mut Page, report: &Report) {
    if report.history.is_empty() {
        return;
    }
    page.tag("<section>\n<h2>What was tried</h2>\n<table class=\"stack\"><thead><tr><th>when, who</th><th>step</th><th>what came of it</th></tr></thead>\n<tbody>\n");
    for entry in &report.history {
        page.tag("<tr><td>")
            .text(&history::stamp(entry))
            .tag("</td><td>")
            .text(&entry.title)
            .tag("</td><td>")
            .text(&entry.did);
        if let Some(words) = &entry.command {
            page.tag("<br><code>").text(&command_line(words)).tag("</code>");
        }
        page.tag("</td></tr>\n");
    }
    page.tag("</tbody></table>\n</section>\n");
}

/// What the rest refers to, with its lines; the remainder stands folded away.
pub fn evidence(page: &mut Page, report: &Report) {
    if report.evidence.is_empty() {
        return;
    }
    let wanted = referred(report);
    let (shown, rest): (Vec<&Evidence>, Vec<&Evidence>) =
        report.evidence.iter().partition(|evidence| wanted.contains(&evidence.id.as_str()));
    page.tag("<section>\n<h2>Evidence</h2>\n");
    table(page, report, &shown);
    if !rest.is_empty() {
        page.tag("<details><summary>")
            .text(&format!("{} further lines that were read", rest.len()))
            .tag("</summary>\n");
        table(page, report, rest.get(..MORE_EVIDENCE).unwrap_or(&rest));
        page.tag("</details>\n");
    }
    page.tag("</section>\n");
}

fn table(page: &mut Page, report: &Report, rows: &[&Evidence]) {
    page.tag("<table class=\"stack\"><thead><tr><th>id</th><th>where</th><th>kind</th><th>line</th></tr></thead>\n<tbody>\n");
    for evidence in rows {
        page.open("tr", &[("id", &evidence.id)]);
        page.tag("<td class=\"tight mono\">").text(&evidence.id).tag("</td><td class=\"mono where\">");
        page.text(&wording::position(report, evidence)).tag("</td><td class=\"words\">");
        page.text(&wording::spelled(&evidence.kind).replace('_', " "));
        if let Some(rank) = evidence.rank {
            page.text(&format!(", rank {rank}"));
        }
        page.tag("</td><td class=\"mono\">").text(evidence.text.trim()).tag("</td></tr>\n");
    }
    page.tag("</tbody></table>\n");
}

/// Ids that some part of the page links to.
fn referred(report: &Report) -> std::collections::HashSet<&str> {
    let verdict = &report.verdict;
    let shapes = report.shapes.iter().filter_map(|shape| shape.get("evidence")?.as_array()).flatten();
    let mut wanted: std::collections::HashSet<&str> = shapes.filter_map(serde_json::Value::as_str).collect();
    let lists = verdict
        .observed_at
        .iter()
        .map(|notice| &notice.evidence)
        .chain(verdict.fault_at.iter().map(|fault| &fault.evidence))
        .chain(report.failures.iter().take(ROW_LIMIT).map(|failure| &failure.evidence))
        .chain(report.hypotheses.iter().flat_map(|one| [&one.supports, &one.against]))
        .chain(report.checks.iter().map(|check| &check.evidence));
    wanted.extend(lists.flatten().map(String::as_str));
    wanted.extend(
        report.ranks.iter().take(ROW_LIMIT).filter_map(|rank| rank.evidence.first()).map(String::as_str),
    );
    let asked = report
        .evidence
        .iter()
        .filter(|one| matches!(one.kind, EvidenceKind::Environment | EvidenceKind::Command));
    wanted.extend(asked.map(|one| one.id.as_str()));
    wanted
}

/// Versions and settings.
pub fn environment(page: &mut Page, report: &Report) {
    let facts = asked::environment(report);
    if facts.is_empty() {
        return;
    }
    page.tag("<section>\n<h2>Environment</h2>\n<table><tbody>\n");
    for Fact { name, values } in &facts {
        page.tag("<tr><td class=\"mono\">").text(name).tag("</td><td>");
        for (at, (value, id)) in values.iter().enumerate() {
            if at > 0 {
                page.tag("<br>");
            }
            page.text(value);
            refs(page, report, std::slice::from_ref(id));
        }
        page.tag("</td></tr>\n");
    }
    page.tag("</tbody></table>\n</section>\n");
}

/// What maintainers ask for, present or missing.
pub fn asked(page: &mut Page, report: &Report) {
    let rows = asked::asked(report);
    if rows.is_empty() {
        return;
    }
    page.tag("<section>\n<h2>What maintainers ask for</h2>\n<table class=\"stack\"><tbody>\n");
    for row in &rows {
        page.tag("<tr><td>");
        match &row.answer {
            Some(answer) => {
                word(page, "good", "present", "");
                page.tag("</td><td>").text(row.what).tag("</td><td>").text(answer);
                refs(page, report, &row.evidence);
            }
            None => {
                word(page, "warn", "missing", "");
                page.tag("</td><td>").text(row.what).tag("</td><td class=\"why\">").text(row.how);
            }
        }
        page.tag("</td></tr>\n");
    }
    page.tag("</tbody></table>\n</section>\n");
}

/// Inputs and diagnostics.
pub fn read(page: &mut Page, report: &Report) {
    page.tag("<section>\n<h2>Read</h2>\n<table class=\"stack\"><tbody>\n");
    for input in report.inputs.iter().take(ROW_LIMIT) {
        page.tag("<tr><td class=\"mono\">")
            .text(&input.path)
            .tag("</td><td>")
            .text(&wording::spelled(&input.kind).replace('_', " "));
        page.tag("</td><td class=\"number\">").text(&format!("{} bytes", grouped(u128::from(input.bytes))));
        page.tag("</td><td class=\"number\">").text(&format!("{} lines", grouped(u128::from(input.lines))));
        page.tag("</td><td>").text(if input.truncated { "cut" } else { "" }).tag("</td></tr>\n");
    }
    page.tag("</tbody></table>\n");
    more(page, report.inputs.len());
    if !report.diagnostics.is_empty() {
        page.tag("<ul>\n");
        for diagnostic in &report.diagnostics {
            page.tag("<li>").text(&diagnostic.severity).text(": ").text(&diagnostic.message).tag("</li>\n");
        }
        page.tag("</ul>\n");
    }
    page.tag("</section>\n");
}

fn more(page: &mut Page, all: usize) {
    if all > ROW_LIMIT {
        page.tag("<p class=\"why\">").text(&format!("… and {} more", all - ROW_LIMIT)).tag("</p>\n");
    }
}

/// Links to at most three rows of the evidence table.
pub fn refs(page: &mut Page, report: &Report, ids: &[String]) {
    let found: Vec<&Evidence> = ids.iter().take(3).filter_map(|id| wording::find(report, id)).collect();
    if found.is_empty() {
        return;
    }
    page.tag(" <span class=\"refs\">[");
    for (at, evidence) in found.iter().enumerate() {
        page.text(if at > 0 { ", " } else { "" });
        page.element(
            "a",
            &[("href", &format!("#{}", evidence.id))],
            &format!("{} {}", evidence.id, wording::position(report, evidence)),
        );
    }
    page.tag("]</span>");
}

/// The link of a notice names the line of its frame, and leads to the traceback.
fn notice_ref(page: &mut Page, report: &Report, notice: &ObservedAt) {
    match notice
        .evidence
        .first()
        .filter(|id| notice.log_line.is_some() && wording::find(report, id).is_some())
    {
        Some(id) => {
            let shown = wording::notice_ref(report, notice);
            page.tag(" <span class=\"refs\">[").element(
                "a",
                &[("href", &format!("#{id}"))],
                shown.trim_matches(['[', ']']),
            );
            page.tag("]</span>");
        }
        None => refs(page, report, &notice.evidence),
    }
}

pub(super) fn word(page: &mut Page, look: &'static str, word: &str, meaning: &str) {
    let class = format!("word {look}");
    let mut attributes = vec![("class", class.as_str())];
    if !meaning.is_empty() {
        attributes.push(("title", meaning));
    }
    page.element("span", &attributes, word);
}

fn certainty_look(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Proven | Certainty::Supported => "good",
        Certainty::Suspected => "warn",
        Certainty::Undecided => "idle",
    }
}

/// How a state looks, in the page and in its pictures.
pub fn state_look(state: RankState) -> &'static str {
    match state {
        RankState::Failed => "bad",
        RankState::Silent | RankState::Waiting => "warn",
        RankState::Finished => "good",
        RankState::Terminated | RankState::Unknown => "idle",
    }
}
