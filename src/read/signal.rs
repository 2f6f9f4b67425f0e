//! Fatal signals, aborts and native stacks, whoever prints them.
//!
//! In: a line of a signal handler, debugger, shell or runtime, and the stack under it. Out: [`Data::Signal`],
//! [`Data::Abort`], [`Data::NativeFrames`]. Stack lines are consumed, so that their text makes no other event; the
//! `what():` text is not, since it may hold a CUDA status. SIGILL of a host process is no CUDA illegal instruction.

mod abort;
mod faulthandler;
pub mod frames;
mod handler;
pub(super) mod shell;

use super::event::Data;
use super::lines::{Cx, Line, Taken};

/// Strings of which one stands in every line that this reader wants.
pub const LITERALS: &[&str] = &[
    "rror",
    "fatal exception",
    "egmentation fault",
    "egfault",
    "SIG",
    "ignal",
    "borted",
    "bort trap",
    "Killed",
    "killed",
    "llegal instruction",
    "Floating point exception",
    "erminat",
    "core dumped",
    "libc++abi",
    "orrupt",
    "ree(): ",
    "alloc(): ",
    "unmap_chunk",
    "pure virtual",
    "smashing",
    "ailed",
    "frame #0",
    "(most recent call first)",
    "#0 ",
    "[bt] (",
    "acktrace",
    "tack trace",
    "EXC_BAD_ACCESS",
];

/// Reads a line of a signal, an abort or a stack.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    if faulthandler::read(line, cx) {
        return Taken::Whole;
    }
    if is_report_of_another(body) {
        return Taken::No;
    }
    if handler::read(line, cx) || shell::read(line, cx) {
        return Taken::Whole;
    }
    if abort::read(line, cx) {
        return Taken::Part;
    }
    match frames::block(line, cx) {
        Some((found, lines)) => {
            cx.push_block(line, lines, Data::NativeFrames(found));
            Taken::Whole
        }
        None => Taken::No,
    }
}

/// Lines of launchers and lists of causes that name a signal which another line reports.
fn is_report_of_another(body: &str) -> bool {
    let text = body.trim_start();
    ["traceback :", "exitcode", "Sending process", "File \"", "error_file"]
        .iter()
        .any(|head| text.starts_with(head))
        || [
            "closing signal",
            "death signal",
            "got signal:",
            "ray stop --force",
            "common causes",
            "root causes",
            "signal.signal(",
            "signal handler",
            "SIGTERM handler",
            "died with <Signals",
            "exitcode:",
            "exited on signal",
            "KILLED BY SIGNAL",
        ]
        .iter()
        .any(|word| body.contains(word))
        || body.contains(" terminated with signal") && !body.contains("rogram terminated")
}

#[cfg(test)]
mod tests;
