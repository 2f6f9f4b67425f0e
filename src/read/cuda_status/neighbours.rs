//! What the lines beside a status add: llama.cpp's device and call, PyTorch's throwing function, the head of a two-line
//! message, the destructor around a CuPy error, a launch that XLA names.
//!
//! In: a status and its line. Out: the status with more fields. It leaves the code alone.

use super::{printer, relay};
use crate::read::event::{Dim3, LaunchMention, Messenger, Place, Status};
use crate::read::lines::{Cx, Line};
use crate::read::pattern::Pattern;
use crate::read::place;

static RAISED_FROM: Pattern = Pattern::new(r"Exception raised from (.+?) at (\S+?):(\d+)\b");
static PLACE_ONLY: Pattern = Pattern::new(r"^(?:void |int )?[\w:<>]+\(.*\) at L:\d+ in ");
static LINE_ONLY: Pattern = Pattern::new(r"^\s*Line (\d+): ");
static IN_FILE: Pattern = Pattern::new(r"in (\S+\.(?:cuh?|cpp|cc|h))\s*$");
static CALL: Pattern = Pattern::new(r"^\s*((?:cuda|cu|hip|cublas|ggml_)\w*\s*\(.*)$");
static DEVICE: Pattern = Pattern::new(r"current device: (\d{1,3})");
static LAUNCH: Pattern = Pattern::new(
    r"launch CUDA kernel:? (\S+) with block dimensions: (\d+)x(\d+)x(\d+)(?: and grid dimensions: (\d+)x(\d+)x(\d+))?",
);

/// Lines after a status that may belong to its message.
const LINES_AFTER: usize = 8;
/// Lines before it.
const LINES_BEFORE: usize = 6;

/// Adds what the lines around `line` say.
pub fn complete(status: &mut Status, line: &Line<'_>, cx: &Cx<'_>) {
    look_after(status, line, cx);
    look_before(status, line, cx);
}

fn look_after(status: &mut Status, line: &Line<'_>, cx: &Cx<'_>) {
    let mut device_seen = false;
    for next in cx.after_in_stream(line, LINES_AFTER) {
        let body = next.body();
        if let Some(device) = DEVICE.number(body) {
            status.device = Some(device);
            status.reported_from = place::find(body).or_else(|| status.reported_from.take());
            status.producer = "llama.cpp";
            device_seen = true;
        } else if device_seen {
            if let Some(call) = CALL.group(body, 1) {
                status.api = Some(call.trim().to_owned());
            }
            return;
        } else if let Some(found) = RAISED_FROM.captures(body) {
            let part = |index| found.get(index).map(|part| part.as_str().to_owned());
            status.reported_from = Some(Place {
                file: part(2).unwrap_or_default(),
                line: part(3).and_then(|digits| digits.parse().ok()),
                function: part(1),
            });
            take_printer(status, "pytorch");
            return;
        } else if is_advice(body) {
            take_printer(status, "pytorch");
        } else if PLACE_ONLY.is_match(body) {
            status.reported_from = place::find(body);
            return;
        } else if body.trim().is_empty() || body.contains("GGML") {
            continue;
        } else {
            return;
        }
    }
}

fn look_before(status: &mut Status, line: &Line<'_>, cx: &Cx<'_>) {
    let before = cx.before(line, LINES_BEFORE);
    if let Some(previous) = before.first() {
        let body = previous.body();
        if let Some(number) = LINE_ONLY.number(line.body())
            && let Some(file) = IN_FILE.group(body.trim_end(), 1)
        {
            status.reported_from = Some(Place { file: file.to_owned(), line: Some(number), function: None });
            take_printer(status, printer::printer_of(body).unwrap_or("cuda"));
        } else if body.trim_end().ends_with(": CUDA error") || body.trim_end().ends_with(':') {
            if status.reported_from.is_none() {
                status.reported_from = place::find(body);
            }
            if let Some(printer) = printer::printer_of(body) {
                take_printer(status, printer);
            }
        }
    }
    if status.messenger.is_none() && in_destructor(&before) {
        status.messenger = Some(Messenger::Destructor);
    }
}

/// Whether the block that ends before the line began with `Exception ignored in`: no other exception may stand between.
fn in_destructor(before: &[Line<'_>]) -> bool {
    for line in before {
        let body = line.body();
        if relay::opens_destructor(body) {
            return true;
        }
        if !(body.starts_with(' ') || body.starts_with("Traceback")) {
            return false;
        }
    }
    false
}

fn take_printer(status: &mut Status, printer: &'static str) {
    if status.producer.is_empty() {
        status.producer = printer;
    }
}

fn is_advice(body: &str) -> bool {
    [
        "Search for `",
        "kernel errors might be asynchronously",
        "For debugging consider",
        "Compile with `TORCH_USE",
    ]
    .iter()
    .any(|mark| body.contains(mark))
}

/// The launch that a message names: `Failed to launch CUDA kernel: add with block dimensions: 1024x1x1 and grid …`.
pub fn launch_in(body: &str) -> Option<LaunchMention> {
    let found = LAUNCH.captures(body)?;
    let number = |index| found.get(index).and_then(|part| part.as_str().parse::<u64>().ok());
    let dims = |at: usize| -> Option<Dim3> { Some([number(at)?, number(at + 1)?, number(at + 2)?]) };
    Some(LaunchMention {
        kernel: found.get(1)?.as_str().to_owned(),
        grid: dims(5),
        block_dim: dims(2),
        ..LaunchMention::default()
    })
}
