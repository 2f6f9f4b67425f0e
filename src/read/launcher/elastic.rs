//! torchrun: `failed (exitcode: …)` lines and the report that ends a job, of every generation.
//!
//! In: a line with an exit code. Out: [`Data::Exit`]; an entry of the report takes rank, host and time from the lines
//! above it. "Root Cause (first observed failure)" is the first child that the agent saw die: a heuristic, kept as such.

use super::super::event::{Data, ExitReporter, ProcessExit};
use super::super::lines::{Cx, Line};
use super::super::scan::{after, signed_after, small_after};
use super::exit;
use crate::tables::signals;

/// Lines above an exit code that its entry may cover.
const ENTRY_LINES: usize = 12;

/// Headings of the report; they tell nothing that its entries do not.
pub fn is_heading(body: &str) -> bool {
    let text = body.trim();
    let ends_job = text.trim_end_matches(':').ends_with("multiprocessing.errors.ChildFailedError");
    let script =
        text.strip_suffix(" FAILED").is_some_and(|name| !name.contains(' ') && name.ends_with(".py"));
    ends_job
        || script
        || matches!(
            text,
            "Failures:" | "Other Failures:" | "Root Cause:" | "Root Cause (first observed failure):"
        )
}

/// Reads such a line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    if let Some(rest) = after(body, "(exitcode:").filter(|_| body.contains("failed (exitcode")) {
        let Some(code) = signed_after(rest, "") else { return false };
        cx.push(
            line,
            Data::Exit(ProcessExit {
                local_rank: small_after(rest, "local_rank"),
                pid: small_after(rest, "pid"),
                code: Some(code),
                signal: signals::of_status(code),
                ..exit(ExitReporter::Elastic)
            }),
        );
        return true;
    }
    let Some(at) = body
        .find("exitcode")
        .filter(|&at| at == 0 || body.trim_start().starts_with("exitcode") || body.contains("local_rank"))
    else {
        return false;
    };
    let (head, rest) = (body.get(..at).unwrap_or(""), body.get(at + "exitcode".len()..).unwrap_or(""));
    let Some(code) = rest.trim_start().strip_prefix(':').and_then(|rest| signed_after(rest, "")) else {
        return false;
    };
    let mut found = ProcessExit {
        pid: small_after(rest, "pid"),
        code: Some(code),
        signal: signals::of_status(code),
        ..exit(ExitReporter::ElasticReport)
    };
    if head.contains("rank") {
        field(head, &mut found);
        if head.contains("Root Cause") {
            found.reporter = ExitReporter::ElasticRootCause;
        }
    }
    entry(line, cx, &mut found);
    cx.push(line, Data::Exit(found));
    true
}

/// Fills in what the lines above say, and whether the nearest heading names the root cause.
fn entry(line: &Line<'_>, cx: &Cx<'_>, found: &mut ProcessExit) {
    let mut inside = true;
    for above in cx.before(line, ENTRY_LINES) {
        let text = above.body().trim();
        if text.contains("Root Cause") {
            found.reporter = ExitReporter::ElasticRootCause;
            break;
        }
        if text.contains("Failures:") || text.starts_with("exitcode") || text.starts_with("traceback") {
            break;
        }
        if inside {
            field(text, found);
            inside = !(text.starts_with('[') && text.ends_with("]:"));
        }
    }
}

/// `rank : 1 (local_rank: 1)`, `host : h`, `time : …`; all of them on one line where newlines were lost.
fn field(text: &str, found: &mut ProcessExit) {
    let word = |key: &str| {
        let rest = after(text, key)?.trim_start().strip_prefix(':')?.trim_start();
        Some(rest.split([' ', '\t']).next().unwrap_or("").to_owned()).filter(|word| !word.is_empty())
    };
    if let Some(time) = word("time") {
        found.time.get_or_insert(time);
    }
    if let Some(host) = word("host") {
        found.host.get_or_insert(host);
    }
    let local_at = text.find("(local_rank");
    let head = local_at.and_then(|at| text.get(..at)).unwrap_or(text);
    if let Some(rank) =
        head.rfind("rank").and_then(|at| head.get(at..)).and_then(|text| small_after(text, "rank"))
    {
        found.rank.get_or_insert(rank);
    }
    if local_at.is_some()
        && let Some(local) = small_after(text, "local_rank")
    {
        found.local_rank.get_or_insert(local);
    }
}
