//! Aborts with their reason: glibc's heap and stack checks, pure virtual calls, uncaught C++ exceptions, host assertions.
//!
//! In: such a line; `terminate called` takes its `what():` from the lines under it without consuming them. Out:
//! [`Data::Abort`]. A failed check about a CUDA call is left to the status reader.

use super::super::event::{Abort, AbortReason, Data, Place, Severity};
use super::super::lines::{Cx, Line};
use super::super::prefix::{self, source_place};
use super::super::scan::{after, before, between, clip, small};

/// Lines under `terminate called` that may hold its `what():`.
const WHAT_LINES: usize = 6;
/// Longest text that an event keeps.
const TEXT_LIMIT_BYTES: usize = 600;

/// Reads an abort.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let found =
        terminate(line, cx).or_else(|| heap(body)).or_else(|| runtime(body)).or_else(|| assertion(line));
    let Some(abort) = found else { return false };
    let mut origin = line.origin.clone();
    if origin.rank.is_none()
        && let Some(what) = &abort.what
    {
        prefix::group_tag(what, &mut origin);
    }
    cx.push(line, Data::Abort(abort));
    if let Some(event) = cx.last_event() {
        event.origin = origin;
    }
    true
}

fn bare(reason: AbortReason, what: &str) -> Abort {
    let what = clip(what.trim(), TEXT_LIMIT_BYTES);
    Abort {
        reason,
        exception: None,
        what: Some(what.to_owned()).filter(|what| !what.is_empty()),
        place: None,
    }
}

/// `terminate called after throwing an instance of 'c10::Error'` and `  what():  …`. A progress bar may have taken the
/// first letter, and two processes may have zipped their words.
fn terminate(line: &Line<'_>, cx: &Cx<'_>) -> Option<Abort> {
    let body = line.body();
    if let Some(rest) = after(body, "libc++abi").filter(|rest| rest.contains("terminating")) {
        let exception = after(rest, "of type ").map(|rest| before(rest, ":").trim().to_owned());
        let what =
            after(rest, "of type ").and_then(|rest| rest.split_once(": ")).map_or("", |(_, what)| what);
        return Some(Abort { exception, ..bare(AbortReason::Terminate, what) });
    }
    let rest = after(body, "erminate called")?;
    let exception = rest
        .rfind("instance of '")
        .and_then(|at| rest.get(at + 13..))
        .map(|rest| before(rest, "'").to_owned());
    let same_line = after(rest, "what():").map(str::to_owned);
    let what = same_line.or_else(|| {
        cx.after(line).take(WHAT_LINES).find_map(|next| after(next.body(), "what():").map(str::to_owned))
    });
    let what = what.as_deref().unwrap_or("");
    Some(Abort { exception, ..bare(AbortReason::Terminate, what) })
}

/// glibc's heap check, also tcmalloc's and jemalloc's.
fn heap(body: &str) -> Option<Abort> {
    const TEXTS: [&str; 15] = [
        "double free or corruption",
        "double free detected",
        "free(): invalid",
        "free(): corrupted",
        "malloc(): ",
        "realloc(): invalid",
        "munmap_chunk(): invalid",
        "malloc_consolidate(): ",
        "corrupted size vs. prev_size",
        "corrupted double-linked list",
        "calloc(): ",
        "mismatching next->prev_size",
        "attempt to free invalid pointer",
        "heap corruption detected",
        "unaligned fastbin chunk",
    ];
    let at = TEXTS.iter().filter_map(|text| super::super::scan::find_any_case(body, text)).min()?;
    Some(bare(AbortReason::Heap, body.get(at..)?))
}

fn runtime(body: &str) -> Option<Abort> {
    if body.contains("pure virtual method called") || body.contains("pure virtual function call") {
        return Some(bare(AbortReason::PureVirtual, body));
    }
    if body.contains("stack smashing detected") || body.contains("*** buffer overflow detected ***") {
        return Some(bare(AbortReason::Stack, body));
    }
    body.contains("Abort trap: 6").then(|| bare(AbortReason::Bare, body))
}

/// Failed host checks: `GGML_ASSERT(…) failed`, glibc's `prog: file.c:12: fn: Assertion … failed.`, glog's F lines.
fn assertion(line: &Line<'_>) -> Option<Abort> {
    let body = line.body();
    let speaks_of_gpu =
        ["cuda", "CUDA", "Cuda", "cublas", "cudnn", "block: ["].iter().any(|word| body.contains(word));
    if speaks_of_gpu {
        return None;
    }
    if let Some(at) = body.find("GGML_ASSERT") {
        let place = body.get(..at).and_then(|head| source_place(head.trim().trim_end_matches([':', ' '])));
        let rest = body.get(at + "GGML_ASSERT".len()..)?;
        let place = place.or_else(|| place_in(rest));
        return Some(Abort { place, ..bare(AbortReason::HostAssert, rest.trim_start_matches([':', ' '])) });
    }
    if let Some((head, rest)) = body.split_once("Assertion ").filter(|(_, rest)| rest.contains("failed")) {
        let host = head.is_empty() || head.trim_end().ends_with(':');
        let expression = between(rest, "`", "'").or_else(|| between(rest, "'", "'")).unwrap_or(rest);
        let abort = Abort {
            place: place_in(head).or_else(|| mac_place(rest)),
            ..bare(AbortReason::HostAssert, expression)
        };
        return host.then_some(abort);
    }
    let fatal = line.origin.severity == Some(Severity::Fatal) && line.origin.logger.is_some();
    let check = after(body, "Check failed: ").or_else(|| after(body, "Check failure"));
    match (fatal, check) {
        (true, Some(text)) => {
            Some(Abort { place: line.origin.logger.clone(), ..bare(AbortReason::HostAssert, text) })
        }
        (true, None) if !body.contains("atchdog") && !body.contains("eartbeat") => {
            Some(Abort { place: line.origin.logger.clone(), ..bare(AbortReason::HostAssert, body) })
        }
        _ => None,
    }
}

/// `prog: /x/file.c:12: function:` in front of an assertion.
fn place_in(head: &str) -> Option<Place> {
    head.split([' ', '\t']).find_map(|word| {
        let (file, line) = word.trim_end_matches(':').rsplit_once(':')?;
        let (line, rest) = small(line)?;
        (rest.is_empty() && file.contains('.')).then(|| Place {
            file: file.to_owned(),
            line: Some(line),
            function: None,
        })
    })
}

/// `Assertion failed: (x), function f, file x.c, line 12.`
fn mac_place(rest: &str) -> Option<Place> {
    let file = before(after(rest, "file ")?, ",").to_owned();
    let (line, _) = small(after(rest, "line ")?)?;
    Some(Place { file, line: Some(line), function: None })
}
