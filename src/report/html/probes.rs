//! The trials of probes as tables.
//!
//! In: a report. Out: markup: a section a probe, a row a trial, the fixed kernel's below. It leaves alone what they prove:
//! the checks say so.

use super::super::Report;
use super::super::trials::{self, TrialRow, Trials};
use super::page::Page;
use super::sections::{refs, word};

/// Every probe.
pub fn section(page: &mut Page, report: &Report) {
    for probe in trials::of(report) {
        page.tag("<section>\n<h2>Probe</h2>\n<p>").text(&probe.heading).text(" ");
        refs(page, report, std::slice::from_ref(&probe.evidence));
        page.tag("</p>\n");
        if let Some(predicted) = &probe.predicted {
            page.tag("<p>predicted: ").text(predicted).tag("</p>\n");
        }
        table(page, &probe);
        for fault in &probe.faults {
            page.element("p", &[], fault).tag("\n");
        }
        page.element("p", &[], &probe.said()).tag("\n</section>\n");
    }
}

fn table(page: &mut Page, probe: &Trials) {
    let [sweep, outcome, code, ms, logical, why] = probe.columns();
    page.tag("<table class=\"stack\"><thead><tr><th>kernel</th>");
    for (name, look) in
        [(sweep, "number"), (outcome, ""), (code, "number"), (ms, "number"), (logical, "number"), (why, "")]
    {
        page.element("th", &[("class", look)], name);
    }
    page.tag("</tr></thead>\n<tbody>\n");
    for trial in &probe.rows {
        row(page, probe, &probe.report.kernel.entry, trial);
    }
    for trial in &probe.control_rows {
        row(page, probe, probe.control.as_deref().unwrap_or(""), trial);
    }
    page.tag("</tbody></table>\n");
}

fn row(page: &mut Page, probe: &Trials, kernel: &str, row: &TrialRow) {
    let [sweep, _, code, ms, logical, _] = probe.columns();
    let look = match row.passed {
        Some(true) => "good",
        Some(false) => "bad",
        None => "idle",
    };
    page.tag("<tr><td>").text(kernel).tag("</td>");
    page.element("td", &[("class", "number"), ("data-label", sweep)], &row.value).tag("<td>");
    word(page, look, &row.outcome, "");
    page.tag("</td>");
    for (label, number) in [(code, &row.code), (ms, &row.ms), (logical, &row.logical)] {
        page.element("td", &[("class", "number"), ("data-label", label)], number);
    }
    page.tag("<td>").text(row.role).tag("</td></tr>\n");
}
