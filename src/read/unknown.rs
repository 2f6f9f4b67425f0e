//! Lines that say that something failed, and that no reader knows better.
//!
//! ```text
//! FATAL: worker 3 gave up
//! E PhysX: GPU compressContactStage1 fail to launch kernel stage 1!!
//! ```
//!
//! In: a line that no other producer took, with a word of failure at a telling place. Out: [`Data::Unknown`], at most a
//! few hundred an input. It keeps an honest "undecided" apart from "no failure"; it says nothing about what failed.

use super::event::{Data, UnknownFailure};
use super::lines::{Cx, Line, Taken};

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
    let known = cx.events().iter().rev().take(8).any(|event| event.span.byte == line.byte);
    if known || !tells_of_failure(text) || !cx.spend("unknown", LIMIT) {
        return Taken::No;
    }
    cx.push(line, Data::Unknown(UnknownFailure { message: text.chars().take(400).collect() }));
    Taken::Part
}

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
    // A traceback's own source line or a flag in a command is no statement.
    !(text.starts_with("raise ")
        || text.starts_with("assert ")
        || text.starts_with("File \"")
        || text.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::tells_of_failure;

    #[test]
    fn statements_of_failure_and_what_is_none() {
        assert!(tells_of_failure("FATAL: worker 3 gave up"));
        assert!(tells_of_failure("GPU compressContactStage1 fail to launch kernel stage 1!!"));
        assert!(!tells_of_failure("12 passed, 0 failed"));
        assert!(!tells_of_failure("validation: mean error: 0.02"));
        assert!(!tells_of_failure("raise RuntimeError(\"failed\")"));
    }
}
