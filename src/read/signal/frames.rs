//! Native stacks: PyTorch's `frame #0:`, gdb's `#0 0x… in`, glog's `@ 0x…`, UCX's and Open MPI's backtraces, `[bt] (3)`.
//!
//! In: a line and the ones under it. Out: frames, innermost first. It leaves choosing the frame that matters to `verdict`.

use super::super::event::{NativeFrame, NativeFrames, Place};
use super::super::lines::{Cx, Line, Stream};
use super::super::scan::{after, clip, digits, hex, small};

/// Lines that a stack may cover.
const WINDOW: usize = 1_200;
/// Frames that are kept.
const FRAME_LIMIT: usize = 128;
/// Longest name that a frame keeps.
const NAME_LIMIT_BYTES: usize = 400;
/// Lines between a head and its first frame.
const GAP_LIMIT: usize = 3;

/// A stack that begins on `line` (a head or its first frame), and its lines; its lines are consumed.
pub fn block(line: &Line<'_>, cx: &mut Cx<'_>) -> Option<(NativeFrames, u32)> {
    let body = line.body();
    let raised_from = raised_from(body);
    let first = frame(body.trim()).filter(|_| starts_stack(body.trim()));
    let headed = raised_from.is_some()
        || body.contains("acktrace")
        || body.contains("tack trace") && !body.contains("not found")
        || body.contains("(most recent call first)");
    if first.is_none() && !headed {
        return None;
    }
    let (mut frames, lines) = under(line, cx);
    if let Some(first) = first {
        frames.insert(0, first);
    }
    if frames.is_empty() && raised_from.is_none() {
        return None;
    }
    Some((NativeFrames { frames, raised_from }, lines))
}

/// The frames under `line` and the lines that they and `line` cover.
pub fn under(line: &Line<'_>, cx: &mut Cx<'_>) -> (Vec<NativeFrame>, u32) {
    let mut frames = Vec::new();
    let (mut last, mut gap) = (line.number, 0);
    // A tag stands on the first line of a message only where the process, not its launcher, wrote it.
    let ours = |next: &Line<'_>| next.stream() == line.stream() || next.stream() == Stream::BARE;
    for next in cx.after(line).take(WINDOW).filter(ours) {
        let text = next.body().trim();
        if let Some(found) = frame(text) {
            if frames.len() < FRAME_LIMIT {
                frames.push(found);
            }
        } else if let Some(library) = continued(text).filter(|_| !frames.is_empty()) {
            if let Some(NativeFrame { library: known, .. }) = frames.last_mut() {
                *known = Some(library);
            }
        } else if frames.is_empty() && is_ruler(text) && gap < GAP_LIMIT {
            gap += 1;
            continue;
        } else {
            break;
        }
        cx.consume(&next);
        last = next.number;
    }
    (frames, u32::try_from(last.saturating_sub(line.number) + 1).unwrap_or(1))
}

/// Lines without words: rulers, blanks, `/path/file.cc: [ fn() ]` heads of UCX.
fn is_ruler(text: &str) -> bool {
    text.is_empty()
        || text.bytes().all(|byte| matches!(byte, b'=' | b'-' | b'*' | b' '))
        || text.ends_with("...")
}

/// `from /lib/libcuda.so` on a line of its own.
fn continued(text: &str) -> Option<String> {
    let library = text.strip_prefix("from ")?;
    (!library.contains(' ')).then(|| library.to_owned())
}

/// Only frame 0 begins a stack without a head.
fn starts_stack(text: &str) -> bool {
    text.starts_with("frame #0")
        || text.starts_with("#0 ")
        || text.starts_with("[bt] (0")
        || text.starts_with("[bt] (1)")
}

/// `Exception raised from query at /pytorch/c10/cuda/CUDAEvent.h:111 (most recent call first):`.
fn raised_from(body: &str) -> Option<Place> {
    let rest = after(body, "Exception raised from ")?;
    let (function, rest) = rest.split_once(" at ")?;
    let token = rest.split(" (").next()?.trim();
    let (file, line) = token.rsplit_once(':')?;
    let (line, _) = small(line)?;
    Some(Place { file: file.to_owned(), line: Some(line), function: Some(function.to_owned()) })
}

/// One frame in any dialect.
#[must_use]
pub fn frame(text: &str) -> Option<NativeFrame> {
    if let Some(rest) = text.strip_prefix("frame #") {
        return torch(digits(rest)?.1.trim_start_matches([':', ' ']));
    }
    if let Some(rest) = text.strip_prefix('#') {
        return gdb(digits(rest)?.1);
    }
    if let Some(rest) = text.strip_prefix("[bt] (") {
        return symbol(digits(rest)?.1.strip_prefix(')')?.trim());
    }
    if let Some(rest) = text.strip_prefix("PC: @").or_else(|| text.strip_prefix('@')) {
        return glog(rest.trim_start());
    }
    if let Some((_, rest)) = text.split_once(": ").filter(|(head, _)| head.starts_with("logging.cc:")) {
        return frame(rest.trim());
    }
    numbered(text)
}

fn name(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && !text.starts_with("<unknown") && text != "??" && text != "(unknown)")
        .then(|| clip(text, NAME_LIMIT_BYTES).to_owned())
}

/// `c10d::X::run() + 0x157 (0x7f3c91b093b7 in /usr/lib/libtorch_cuda.so)`.
fn torch(rest: &str) -> Option<NativeFrame> {
    let (function, tail) = rest.rsplit_once(" + 0x").unwrap_or((rest, ""));
    let address = after(tail, "(0x").map(|text| format!("0x{}", text.split([' ', ')']).next().unwrap_or("")));
    let library = after(tail, " in ").map(|text| text.trim_end_matches(')').to_owned());
    Some(NativeFrame { function: name(function), library, address, place: None })
}

/// `#3  0x00007f in fn (args) from lib.so`, `#0  fn (x=1) at file.c:12`, `#0 all_reduce from /x/distributed_c10d.py:3068`.
fn gdb(rest: &str) -> Option<NativeFrame> {
    let rest = rest.trim();
    if rest.is_empty() {
        return None;
    }
    let (address, rest) = match hex(rest).filter(|_| rest.starts_with("0x")) {
        Some((value, tail)) => {
            (Some(format!("{value:#x}")), tail.trim_start().trim_start_matches("in ").trim())
        }
        None => (None, rest),
    };
    let (head, library) = match rest.rsplit_once(" from ") {
        Some((head, library)) if !library.contains(' ') => (head, Some(library)),
        _ => (rest, None),
    };
    let (head, place) = match head.rsplit_once(" at ") {
        Some((head, place)) => (head, file_line(place)),
        None => (head, None),
    };
    let place = place.or_else(|| library.and_then(file_line));
    let function = head.split(" (").next().unwrap_or(head);
    let library = library.filter(|_| place.is_none()).map(str::to_owned);
    Some(NativeFrame { function: name(function), library, address, place })
}

fn file_line(text: &str) -> Option<Place> {
    let (file, line) = text.trim().rsplit_once(':')?;
    let (line, rest) = small(line)?;
    (rest.is_empty() && !file.is_empty()).then(|| Place {
        file: file.to_owned(),
        line: Some(line),
        function: None,
    })
}

/// glog and absl: `0x7f12  (unknown)  fn()`, `     0x7f12   1234  fn()`.
fn glog(rest: &str) -> Option<NativeFrame> {
    let (value, tail) = hex(rest)?;
    let tail = tail.trim_start();
    let tail = match tail.split_once(' ') {
        Some((size, tail)) if size == "(unknown)" || small(size).is_some_and(|(_, rest)| rest.is_empty()) => {
            tail.trim()
        }
        _ => tail,
    };
    Some(NativeFrame {
        function: name(tail),
        library: None,
        address: Some(format!("{value:#x}")),
        place: None,
    })
}

/// UCX `3  0x0000 fn()  file:1`, Open MPI `[ 3] /lib/x.so(fn+0x1)[0x7f]`, `/lib/x.so(fn+0x1) [0x7f]`.
fn numbered(text: &str) -> Option<NativeFrame> {
    if let Some(rest) = text.strip_prefix('[') {
        let (_, rest) = small(rest.trim_start())?;
        return symbol(rest.strip_prefix(']')?.trim());
    }
    let rest = small(text).map_or(text, |(_, rest)| rest);
    if rest.len() < text.len() {
        let lead = rest.trim_start_matches([' ', ':']);
        if rest.len() == lead.len() {
            return None;
        }
        if lead.starts_with("0x") {
            let (value, tail) = hex(lead)?;
            let function = tail.trim().split("  ").next().unwrap_or("");
            let place = tail.rsplit("  ").next().and_then(file_line);
            return Some(NativeFrame {
                function: name(function),
                library: None,
                address: Some(format!("{value:#x}")),
                place,
            });
        }
        return symbol(lead);
    }
    symbol(text)
}

/// `/lib/x.so(fn+0x1) [0x7f]` as `backtrace_symbols` prints it.
fn symbol(text: &str) -> Option<NativeFrame> {
    let (library, rest) = text.split_once('(')?;
    let (inner, rest) = rest.split_once(')')?;
    let address = rest.trim_start().strip_prefix('[').and_then(|rest| rest.split(']').next());
    let address = address.filter(|text| text.starts_with("0x"))?;
    if library.is_empty() || library.contains(' ') {
        return None;
    }
    let function = inner.split("+0x").next().unwrap_or("");
    Some(NativeFrame {
        function: name(function),
        library: Some(library.to_owned()),
        address: Some(address.to_owned()),
        place: None,
    })
}
