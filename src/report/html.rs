//! The report as one HTML file: for a browser, for paper, for a colleague who has nothing else.
//!
//! In: a report (already escaped for terminals). Out: a page that loads nothing and runs nothing: styles and pictures stand
//! inside it, there is no script and no reference outside. Text gets in only through `page::Page::text`, which escapes it
//! for HTML. The sections are those of the text report, with pictures, and each picture's numbers stand in a table as well.

mod page;
mod pictures;
mod probes;
mod sections;
mod svg;

use super::Report;
use super::wording;
use page::Page;

/// The report as HTML.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut page = Page::new();
    head(&mut page, report);
    sections::answer(&mut page, report);
    pictures::section(&mut page, report);
    sections::failures(&mut page, report);
    sections::ranks(&mut page, report);
    probes::section(&mut page, report);
    sections::checks(&mut page, report);
    sections::next(&mut page, report);
    sections::mitigations(&mut page, report);
    sections::tried(&mut page, report);
    sections::evidence(&mut page, report);
    sections::environment(&mut page, report);
    sections::asked(&mut page, report);
    sections::read(&mut page, report);
    // The end tags of `main`'s followers may be left out, so that the mark is the last line of the file, as in every format.
    page.tag("</main>\n<p class=\"mark\">\n").text(&wording::mark(report)).tag("\n");
    page.finish()
}

fn head(page: &mut Page, report: &Report) {
    page.tag("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.tag("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    let generator = format!("{} {} ({})", report.tool.name, report.tool.version, report.schema);
    page.open("meta", &[("name", "generator"), ("content", &generator)]).tag("\n");
    page.tag("<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    page.text(&wording::class_heading(report)).text(": ").text(&report.verdict.summary);
    page.tag("</title>\n<style>\n")
        .tag(include_str!("html/page.css"))
        .tag("</style>\n</head>\n<body>\n<main>\n");
}

#[cfg(test)]
mod tests;
