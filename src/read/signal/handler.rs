//! Signal handlers and debuggers: absl, glog, UCX, Open MPI, gdb, lldb, DataLoader, Julia, Java, Go, Rust, R.
//!
//! In: a head line and the stack under it. Out: [`Data::Signal`]. `CUDA_EXCEPTION_14` of cuda-gdb is no host signal.

use super::super::event::{Data, FatalSignal, SignalReporter};
use super::super::lines::{Cx, Line};
use super::super::scan::{after, before, between, has_any_case, hex, hex_after, small, small_after};
use super::frames;
use crate::tables::signals;

/// Lines after a head that may hold its details.
const DETAIL_LINES: usize = 8;

/// Reads a signal with its stack.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let Some(mut found) = head(body) else { return false };
    if found.signal == 0 {
        details(line, cx, &mut found);
        if found.signal == 0 {
            return false;
        }
    }
    let (native, lines) = stack(line, cx);
    found.native = native;
    cx.push_block(line, lines, Data::Signal(found));
    true
}

fn signal(number: u32, reporter: SignalReporter) -> FatalSignal {
    FatalSignal { signal: number, reporter: Some(reporter), ..FatalSignal::default() }
}

/// What a head line says; signal 0 where the next lines name it.
fn head(body: &str) -> Option<FatalSignal> {
    data_loader(body)
        .or_else(|| ucx(body))
        .or_else(|| debugger(body))
        .or_else(|| banner(body))
        .or_else(|| starred(body))
        .or_else(|| runtime(body))
}

/// `DataLoader worker (pid 12) is killed by signal: Segmentation fault.`, `Unexpected bus error encountered in worker.`
fn data_loader(body: &str) -> Option<FatalSignal> {
    if let Some(rest) = after(body, "killed by signal:").filter(|_| body.contains("DataLoader")) {
        let number = signals::text_in(rest).or_else(|| signals::name_in(rest)).map(|signal| signal.number);
        let number = number.or_else(|| small(rest.trim_start()).map(|(number, _)| number))?;
        return Some(FatalSignal {
            pid: small_after(body, "pid"),
            ..signal(number, SignalReporter::DataLoader)
        });
    }
    let rest = after(body, "Unexpected ").filter(|rest| rest.contains("encountered in worker"))?;
    let number = signals::text_in(before(rest, "encountered"))?.number;
    Some(signal(number, SignalReporter::DataLoader))
}

/// `[host:12:0:34] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x10)`.
fn ucx(body: &str) -> Option<FatalSignal> {
    let rest = after(body, "Caught signal ")?;
    let number = small(rest)
        .map(|(number, _)| number)
        .or_else(|| signals::name_in(rest).map(|signal| signal.number))?;
    let head = body.strip_prefix('[').map(|head| before(head, "]"));
    let pid =
        head.and_then(|head| head.split(':').nth(1)).and_then(|pid| small(pid.trim())).map(|(pid, _)| pid);
    let address = hex_after(rest, "at address ").or_else(|| rest.contains("at address (nil)").then_some(0));
    Some(FatalSignal { address, pid, ..signal(number, SignalReporter::Ucx) })
}

/// `Thread 1 "python" received signal SIGSEGV`, `Program terminated with signal SIGABRT`, lldb's stop reason.
fn debugger(body: &str) -> Option<FatalSignal> {
    if let Some(rest) = after(body, "EXC_BAD_ACCESS") {
        return Some(FatalSignal {
            address: hex_after(rest, "address="),
            ..signal(11, SignalReporter::Debugger)
        });
    }
    let rest = after(body, "received signal ")
        .or_else(|| after(body, "rogram terminated with signal "))
        .or_else(|| after(body, "stop reason = signal "))?;
    let named = rest.trim_start();
    if named.starts_with("CUDA") {
        return None;
    }
    let number = signals::name_in(before(named, " ").trim_end_matches([',', '.']))
        .map(|signal| signal.number)
        .or_else(|| small(named).map(|(number, _)| number))?;
    matches!(number, 4 | 6 | 7 | 8 | 11).then(|| signal(number, SignalReporter::Debugger))
}

/// `*** SIGSEGV received at time=… on cpu 3 ***`, `*** SIGSEGV (@0x0) received by PID 12 (TID 0x7f) from PID 0 ***`,
/// `*** Process received signal ***` with `Signal: Segmentation fault (11)` under it.
fn starred(body: &str) -> Option<FatalSignal> {
    if body.contains("Process received signal") {
        return Some(signal(0, SignalReporter::Other));
    }
    let named = signals::name_in(body)?;
    let stars = body.contains("*** SIG") || body.contains("***SIG") || body.contains("*** ***");
    if !stars {
        return None;
    }
    let absl = body.contains("at time=") || body.contains("stack trace") || body.contains("received by");
    let reporter = if absl { SignalReporter::Absl } else { SignalReporter::Other };
    let address = after(body, "(@0x").and_then(hex).map(|(value, _)| value);
    Some(FatalSignal {
        address,
        pid: small_after(body, "received by PID "),
        ..signal(named.number, reporter)
    })
}

/// Banners with a number: Julia's `signal (11): Segmentation fault`, MPI's `Signal: 11 (SEGV)`, R's `caught segfault`.
fn banner(body: &str) -> Option<FatalSignal> {
    if body.contains("*** caught segfault ***") || body.contains("caught segfault") {
        return Some(signal(11, SignalReporter::Other));
    }
    for key in ["signal (", "signal: ", "Signal: ", "signal "] {
        let Some(rest) = after(body, key) else { continue };
        let Some((number, tail)) = small(rest) else { continue };
        let worded = signals::text_in(tail).is_some_and(|signal| signal.number == number)
            || signals::by_number(number)
                .is_some_and(|signal| tail.contains(signal.name.trim_start_matches("SIG")));
        if worded && matches!(number, 4 | 6 | 7 | 8 | 11) {
            return Some(signal(number, SignalReporter::Other));
        }
    }
    None
}

/// Runtimes that name the signal in words: Java, Go, Rust, Paddle and whoever says `caught SIGSEGV`.
fn runtime(body: &str) -> Option<FatalSignal> {
    let named = signals::name_in(body).filter(|signal| matches!(signal.number, 4 | 6 | 7 | 8 | 11))?;
    let text = body.trim_start();
    let speaks = text.starts_with("#  SIG")
        || text.starts_with(named.name)
        || text.starts_with("[signal SIG")
        || ["received", "caught", "crashed", "raised", "terminated", "killed by", "died", "signal:"]
            .iter()
            .any(|word| has_any_case(body, word));
    if !speaks || text.starts_with("export ") {
        return None;
    }
    let address = hex_after(body, "addr=").or_else(|| hex_after(body, "address "));
    Some(FatalSignal {
        address,
        pid: small_after(body, "pid="),
        ..signal(named.number, SignalReporter::Other)
    })
}

/// `Signal: Segmentation fault (11)` and `Failing at address: 0x10` under Open MPI's head.
fn details(line: &Line<'_>, cx: &mut Cx<'_>, found: &mut FatalSignal) {
    let following: Vec<Line<'_>> = cx.after_in_stream(line, DETAIL_LINES * 8).take(DETAIL_LINES).collect();
    for next in &following {
        let text = next.body();
        if let Some(rest) = after(text, "Signal:") {
            let number = between(rest, "(", ")").and_then(small).map(|(number, _)| number);
            found.signal = number.or_else(|| signals::text_in(rest).map(|signal| signal.number)).unwrap_or(0);
        } else if let Some(rest) = after(text, "Failing at address:") {
            found.address = hex(rest.trim_start().trim_start_matches("(nil)")).map(|(value, _)| value);
        } else if !text.contains("Signal code:") {
            break;
        }
        cx.consume(next);
    }
    found.pid = line.origin.pid;
}

/// The stack under a head, over the lines that stand between.
fn stack(line: &Line<'_>, cx: &mut Cx<'_>) -> (Vec<super::super::event::NativeFrame>, u32) {
    let heads: Vec<Line<'_>> = cx.after_in_stream(line, DETAIL_LINES * 4).take(DETAIL_LINES).collect();
    let start = heads.iter().position(|next| frames::frame(next.body().trim()).is_some());
    match start {
        None => (Vec::new(), 1),
        Some(0) => frames::under(line, cx),
        Some(at) => {
            let before_frames = heads.get(at - 1).unwrap_or(line);
            let (found, lines) = frames::under(before_frames, cx);
            let gap = before_frames.number.saturating_sub(line.number);
            (found, lines.saturating_add(u32::try_from(gap).unwrap_or(0)))
        }
    }
}
