//! Python's faulthandler and handlers that print like it: the head, threads, frames innermost first.
//!
//! In: `Fatal Python error: Segmentation fault` and the block under it; two processes may have zipped their words
//! (`Fatal Python error: Fatal Python error: Segmentation faultSegmentation fault`). Out: [`Data::Signal`] with the frames
//! of the current thread; other threads are only consumed.

use super::super::event::{Abort, AbortReason, Data, FatalSignal, PyFrame, SignalReporter};
use super::super::lines::{Cx, Line};
use super::super::scan::{after, clip, digits};
use super::frames;
use crate::tables::signals;

/// Lines that a block may cover: a server can have a thousand threads.
const WINDOW: usize = 6_000;
/// Frames that are kept.
const FRAME_LIMIT: usize = 128;
/// Lines of other output in a row that end a block.
const FOREIGN_LIMIT: usize = 4;

/// Reads a block.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let Some((signal, reporter)) = head(body) else { return false };
    let (python, lines) = stack(line, cx);
    let Some(signal) = signal else {
        let what = body.rsplit("error:").next().unwrap_or("").trim();
        let reason = if what.contains("stack overflow") { AbortReason::Stack } else { AbortReason::Bare };
        let abort = Abort { reason, exception: None, what: Some(clip(what, 300).to_owned()), place: None };
        cx.push_block(line, lines, Data::Abort(abort));
        return true;
    };
    let found = FatalSignal { signal, reporter: Some(reporter), python, ..FatalSignal::default() };
    cx.push_block(line, lines, Data::Signal(found));
    true
}

/// The signal of a head line; none where Python itself gave up.
fn head(body: &str) -> Option<(Option<u32>, SignalReporter)> {
    if let Some(text) = after(body, "atal Python error:") {
        let number = signals::text_in(text).map(|signal| signal.number);
        return Some((number, SignalReporter::Faulthandler));
    }
    if let Some(text) = after(body, "Windows fatal exception:") {
        let number = match text.trim() {
            text if text.starts_with("access violation") => 11,
            text if text.starts_with("stack overflow") => 11,
            text if text.starts_with("int divide") => 8,
            text if text.starts_with("illegal instruction") => 4,
            _ => 6,
        };
        return Some((Some(number), SignalReporter::Faulthandler));
    }
    body.contains("Segfault encountered").then_some((Some(11), SignalReporter::Other))
}

/// Frames of the current thread and the lines of the block; its lines are consumed.
fn stack(line: &Line<'_>, cx: &mut Cx<'_>) -> (Vec<PyFrame>, u32) {
    let mut frames: Vec<PyFrame> = Vec::new();
    let (mut current, mut threads, mut foreign) = (true, false, 0);
    let mut last = line.number;
    for next in cx.after(line).take(WINDOW).take_while(|next| !ends(next.body())) {
        let text = next.body();
        let lead = text.trim();
        if lead.is_empty() {
            continue;
        }
        if next.stream() != line.stream() {
            continue;
        }
        if lead.contains("Current thread 0x") || lead.starts_with("Thread 0x") {
            let is_current = lead.contains("Current thread");
            if is_current || !threads {
                frames.clear();
            }
            current = is_current || !threads && frames.is_empty();
            threads = true;
        } else if let Some(frame) = frame(lead, next.number) {
            if current && frames.len() < FRAME_LIMIT {
                frames.push(frame);
            }
        } else if lead.starts_with("Extension modules:") {
            cx.consume(&next);
            last = next.number;
            break;
        } else if !(lead.contains("no Python frame")
            || lead.starts_with("...")
            || frames::frame(lead).is_some())
        {
            foreign += 1;
            if foreign >= FOREIGN_LIMIT {
                break;
            }
            continue;
        }
        foreign = 0;
        cx.consume(&next);
        last = next.number;
    }
    (frames, u32::try_from(last.saturating_sub(line.number) + 1).unwrap_or(1))
}

/// A line that begins something else for sure.
fn ends(text: &str) -> bool {
    text.contains("Traceback (most recent call last)")
        || text.contains("atal Python error:")
        || text.starts_with("$ ")
}

/// `File "f", line N in fn`, also with the comma of a traceback.
fn frame(text: &str, log_line: u64) -> Option<PyFrame> {
    let rest = text.strip_prefix("File \"")?;
    let (file, rest) = rest.split_once('"')?;
    let (number, rest) = after(rest, "line ").and_then(digits)?;
    let function = after(rest, "in ").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    Some(PyFrame {
        file: file.to_owned(),
        line: u32::try_from(number).ok(),
        function,
        source: None,
        marked: None,
        log_line,
    })
}
