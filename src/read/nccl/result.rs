//! NCCL results that callers report: PyTorch, XLA, nccl-tests, CuPy and others.
//!
//! In: a line with `NCCL error`, an `ncclSystemError` or its fixed text, and the lines after it. Out:
//! [`Data::NcclResult`] with the `Last error:` sentence, which is the useful one. It leaves the exception around it to the
//! traceback reader.

use super::super::event::{Data, NcclResult, NcclTopic};
use super::super::lines::{Cx, Line, Taken};
use super::super::scan::{after, clip, digits, has_any_case, small};
use super::topic;

/// Lines after the head that may belong to the block.
const WINDOW: usize = 24;
/// Longest sentence that is kept.
const SENTENCE_LIMIT_BYTES: usize = 600;

/// Names and fixed texts of the results, with their numbers. Texts are in lower case.
const RESULTS: [(&str, &str, u32); 8] = [
    ("ncclUnhandledCudaError", "unhandled cuda error", 1),
    ("ncclSystemError", "unhandled system error", 2),
    ("ncclInternalError", "internal error", 3),
    ("ncclInvalidArgument", "invalid argument", 4),
    ("ncclInvalidUsage", "invalid usage", 5),
    ("ncclRemoteError", "remote process exited or there was a network error", 6),
    ("ncclInProgress", "nccl operation in progress", 7),
    ("ncclNumResults", "unknown result code", 8),
];

/// Reads a result line with the sentence under it.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    let Some((name, code)) = named(body) else { return Taken::No };
    let mut found = NcclResult {
        name,
        code,
        last_error: None,
        topic: NcclTopic::Other,
        version: version(body).map(str::to_owned),
    };
    let lines = sentence(line, cx, &mut found);
    if let Some(sentence) = &found.last_error {
        found.topic = topic(sentence, None);
    }
    cx.push_block(line, lines, Data::NcclResult(found));
    Taken::Part
}

/// The result that a line names. Words alone (`invalid argument`) count only beside NCCL's own name.
fn named(body: &str) -> Option<(String, Option<u32>)> {
    if let Some(&(name, _, code)) = RESULTS.iter().find(|(name, _, _)| body.contains(name)) {
        let reported = body.contains(':') || has_any_case(body, "error") || has_any_case(body, "failed");
        return reported.then(|| (name.to_owned(), Some(code)));
    }
    let speaks = has_any_case(body, "nccl error")
        || body.contains("NCCL failure")
        || body.contains("NCCL operation") && has_any_case(body, "fail")
        || body.contains("NCCL_ERROR")
        || body.contains("NcclError");
    let fixed = RESULTS.iter().find(|(_, text, _)| has_any_case(body, text));
    match (speaks, fixed) {
        (true, Some(&(_, text, code))) => Some((text.to_owned(), Some(code))),
        (true, None) => {
            let code = after(body, "NCCL Error ")
                .or_else(|| after(body, "NCCL error "))
                .and_then(small)
                .map(|(code, _)| code);
            let text = code
                .and_then(|code| RESULTS.iter().find(|(_, _, number)| *number == code))
                .map_or("NCCL error", |row| row.1);
            Some((text.to_owned(), code))
        }
        (false, Some(&(_, text, code))) if matches!(code, 1 | 2 | 6) => Some((text.to_owned(), Some(code))),
        _ => None,
    }
}

/// The version after `NCCL version`.
fn version(body: &str) -> Option<&str> {
    let rest = after(body, "NCCL version ").or_else(|| after(body, "NCCL version: "))?;
    let word = rest.split([' ', ',', ')', '\'']).next()?.trim_end_matches(['.', ',']);
    digits(word).map(|_| word)
}

/// Fills in what the lines after the head say; returns the lines of the block.
fn sentence(line: &Line<'_>, cx: &mut Cx<'_>, found: &mut NcclResult) -> u32 {
    let body = line.body();
    if let Some(quoted) = after(body, "Last NCCL warning") {
        let text = after(quoted, "'").map_or("", |rest| rest.split('\'').next().unwrap_or(""));
        // Its own words say that it may be unrelated, so its topic must not decide.
        if !quoted.contains("may be unrelated") && !text.is_empty() {
            found.last_error = Some(clip(text, SENTENCE_LIMIT_BYTES).to_owned());
        }
        return 1;
    }
    if let Some(text) = after(body, "Last error:").map(str::trim).filter(|text| !text.is_empty()) {
        found.last_error = Some(clip(text, SENTENCE_LIMIT_BYTES).to_owned());
        return 1;
    }
    let mut announced = body.trim_end().ends_with("Last error:");
    let mut lines = 1;
    let next: Vec<Line<'_>> = cx.after_in_stream(line, WINDOW).take(4).collect();
    for following in &next {
        let text = following.body().trim();
        if announced {
            if !text.is_empty() {
                found.last_error = Some(clip(text, SENTENCE_LIMIT_BYTES).to_owned());
                lines = span(line, following);
            }
            break;
        }
        if text.ends_with("Last error:") {
            announced = true;
        } else if let Some(text) = text.strip_prefix("Last error:") {
            found.last_error = Some(clip(text.trim(), SENTENCE_LIMIT_BYTES).to_owned());
        } else if let Some(&(name, _, code)) = RESULTS.iter().find(|(name, _, _)| text.starts_with(name)) {
            found.name = name.to_owned();
            found.code = Some(code);
        } else {
            break;
        }
        lines = span(line, following);
        cx.consume(following);
        if found.last_error.is_some() {
            break;
        }
    }
    lines
}

fn span(first: &Line<'_>, last: &Line<'_>) -> u32 {
    u32::try_from(last.number.saturating_sub(first.number) + 1).unwrap_or(1)
}
