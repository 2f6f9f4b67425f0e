//! Lines that say that something failed, and that no reader knows better.
//!
//! ```text
//! FATAL: worker 3 gave up
//! E PhysX: GPU compressContactStage1 fail to launch kernel stage 1!!
//! ```
//!
//! In: a line that no other producer took, with a word of failure at a telling place. Out: [`Data::Unknown`], at most a
//! few hundred an input. It keeps an honest "undecided" apart from "no failure"; it says nothing about what failed.

use super::event::{Data, Severity, UnknownFailure};
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;

/// Words of failure. Ordinary progress lines have none of them.
pub const LITERALS: &[&str] = &[
    "rror:",
    "ERROR",
    "FATAL",
    "Fatal",
    "fatal",
    "failed",
    "FAILED",
    "Failed",
    "failure",
    "Aborted",
    "panicked",
    "fail to ",
    "core dumped",
];

/// Lines of this kind that one input keeps.
const LIMIT: usize = 200;

/// Reads such a line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let text = line.body().trim();
    // Its own logger says that it is no error.
    if line.origin.severity.is_some_and(|severity| severity <= Severity::Warning) {
        return Taken::No;
    }
    let known = cx.events().iter().rev().take(8).any(|event| event.span.byte == line.byte);
    if known || !tells_of_failure(text) || !cx.spend("unknown", LIMIT) {
        return Taken::No;
    }
    cx.push(line, Data::Unknown(UnknownFailure { message: text.chars().take(400).collect() }));
    Taken::Part
}

/// A metric with its value: `mean_squared_error: 9.0033e-08`.
static METRIC: Pattern = Pattern::new(r"(?i)\b\w+_error['\x22]?: *-?\d+\.\d+(?:e[-+]?\d+)?\b");

/// Whether the words say that something failed, rather than count, configure or describe failures.
fn tells_of_failure(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let harmless = [
        "0 failed",
        "no error",
        "error: 0",
        "errors: 0",
        "failed: 0",
        "error_file",
        "error rate",
        "errors=0",
        "without error",
        "on_error",
        "failfast",
        "fail_fast",
        "failover",
        "if this fails",
        "error handling",
        "error_count",
        "retry",
        "retrying",
        "non-fatal",
        "not a failure",
        "failed, continuing",
        "nonfatal",
        "warning:",
        "deprecat",
        "error bar",
        "mean error",
        "error summary",
        "grad error",
        "0 errors",
        "failed to import optional",
    ];
    if harmless.iter().any(|word| lower.contains(word)) {
        return false;
    }
    if METRIC.is_match(text) && !["fail", "fatal", "abort", "panic"].iter().any(|word| lower.contains(word)) {
        return false;
    }
    // A traceback's own source line or a flag in a command is no statement.
    !(text.starts_with("raise ")
        || text.starts_with("assert ")
        || text.starts_with("File \"")
        || text.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::tells_of_failure;
    use crate::read::event::InputId;
    use crate::read::read_text;

    #[test]
    fn a_logger_that_calls_it_no_error_is_believed() {
        let events = |text: &str| read_text(InputId(0), text.as_bytes()).events.len();
        assert_eq!(
            events("I1128 17:35:08.652188 1737 nvc.c:395] dxcore initialization failed, going on\n"),
            0
        );
        assert_eq!(
            events("W1128 17:35:08.654012 1738 nvc.c:273] failed to set inheritable capabilities\n"),
            0
        );
        assert_eq!(
            events("E1128 17:35:08.654012 1738 nvc.c:273] failed to set inheritable capabilities\n"),
            1
        );
    }

    #[test]
    fn statements_of_failure_and_what_is_none() {
        assert!(tells_of_failure("FATAL: worker 3 gave up"));
        assert!(tells_of_failure("GPU compressContactStage1 fail to launch kernel stage 1!!"));
        assert!(!tells_of_failure("The caller indicates that this is not a failure, but may mean a loss"));
        assert!(!tells_of_failure("12/100 - loss: 1.8e-05 - mean_squared_error: 9.0033e-08"));
        assert!(!tells_of_failure("12 passed, 0 failed"));
        assert!(!tells_of_failure("validation: mean error: 0.02"));
        assert!(!tells_of_failure("raise RuntimeError(\"failed\")"));
    }
}
