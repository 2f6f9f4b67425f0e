//! Where a failure happened, from those who can know: a sanitizer record, a dump or debugger, an assertion line, the
//! crashing frame of a host process.
//!
//! In: the case and the root. Out: a place, or none: a Python frame above a GPU fault is no such place.

use crate::case::{Case, EvidenceId};
use crate::read::event::{Data, Event, FaultingLaunch, NativeFrame, SanitizerFinding, SanitizerRecord};
use crate::tables::class::FailureClass;

use super::super::collect::Apart;
use super::super::failure::Failure;
use super::Fault;

/// The place of the fault.
pub fn find(case: &Case, root: &Failure, apart: &Apart) -> Option<Fault> {
    if matches!(root.class, FailureClass::Segfault | FailureClass::Abort) {
        return host(case, root);
    }
    if !speaks_of_device_code(root.class) {
        return None;
    }
    if let Some(fault) = launch(case) {
        return Some(fault);
    }
    sanitizer(case).or_else(|| assertion(case, root)).or_else(|| fault_address(case, apart))
}

/// The launch that a dump or a debugger shows, in whatever order they were given: what says most comes first, and what it leaves out
/// another one of the same kernel may tell.
fn launch(case: &Case) -> Option<Fault> {
    let mut launches: Vec<(EvidenceId, &Event, &FaultingLaunch)> = case
        .pick(|data| match data {
            Data::FaultingLaunch(launch) => Some(launch),
            _ => None,
        })
        .filter(|(_, _, launch)| launch.kernel.is_some() || launch.block.is_some())
        .collect();
    launches.sort_by_key(|(id, _, launch)| {
        let of_dump = case.dumps().any(|(dump, _)| dump == *id);
        std::cmp::Reverse((launch.place.is_some(), launch.grid.is_some(), launch.block.is_some(), of_dump))
    });
    let (id, event, first) = *launches.first()?;
    let same = || {
        let kernel = |launch: &FaultingLaunch| launch.kernel.as_deref().map(bare_name);
        launches
            .iter()
            .filter(move |(_, other, launch)| {
                kernel(launch) == kernel(first)
                    && (launch.pc.is_none() || first.pc.is_none() || launch.pc == first.pc)
                    && (other.origin.rank.is_none() || other.origin.rank == event.origin.rank)
            })
            .map(|(_, _, launch)| *launch)
    };
    let place = same().find_map(|launch| launch.place.as_ref());
    Some(Fault {
        rank: event.origin.rank,
        kernel: first.kernel.as_deref().map(bare_name),
        file: place.map(|place| place.file.clone()),
        line: place.and_then(|place| place.line),
        grid: same().find_map(|launch| launch.grid),
        block: same().find_map(|launch| launch.block),
        thread: same().find_map(|launch| launch.thread).filter(|_| is_one_lane(case)),
        pc: same().find_map(|launch| launch.pc),
        evidence: vec![id],
        ..Fault::default()
    })
}

/// Whether a thread may be named. A dump's exception is the warp's: of several lanes at the faulting instruction the first, which a
/// debugger shows, is no likelier than the others. One that breaks their pattern stands with the cause, as sure as that is.
fn is_one_lane(case: &Case) -> bool {
    case.dumps().filter_map(|(_, dump)| dump.fault()).all(|fault| fault.lanes.len() < 2)
}

/// Faults of device code, and what only a sanitizer finds in it.
fn speaks_of_device_code(class: FailureClass) -> bool {
    class.is_device_fault()
        || matches!(class, FailureClass::Race | FailureClass::UninitializedRead | FailureClass::BarrierError)
}

fn sanitizer(case: &Case) -> Option<Fault> {
    let (id, event, record) = case
        .pick(|data| match data {
            Data::Sanitizer(record) if is_kernel_record(record) => Some(&**record),
            _ => None,
        })
        .next()?;
    Some(Fault {
        rank: event.origin.rank,
        kernel: record.kernel.as_deref().map(bare_name),
        file: record.place.as_ref().map(|place| place.file.clone()),
        line: record.place.as_ref().and_then(|place| place.line),
        block: record.block,
        thread: record.thread,
        address: record.address,
        access: record.access.as_ref().map(|access| match record.size_bytes {
            Some(size) => format!("{access} {size}"),
            None => access.clone(),
        }),
        offset: record.offset,
        evidence: vec![id],
        ..Fault::default()
    })
}

fn is_kernel_record(record: &SanitizerRecord) -> bool {
    record.kernel.is_some()
        && !matches!(
            record.finding,
            SanitizerFinding::ApiError | SanitizerFinding::Leak | SanitizerFinding::UnusedMemory
        )
}

fn assertion(case: &Case, root: &Failure) -> Option<Fault> {
    if root.class != FailureClass::DeviceAssert {
        return None;
    }
    let (id, event, assert) = case
        .pick(|data| match data {
            Data::DeviceAssert(assert) => Some(assert),
            _ => None,
        })
        .next()?;
    Some(Fault {
        rank: event.origin.rank,
        kernel: assert.place.function.as_deref().map(bare_name),
        // Generated code has no place: `unknown:0`.
        file: Some(assert.place.file.clone()).filter(|file| !matches!(file.as_str(), "" | "unknown")),
        line: assert.place.line.filter(|line| *line > 0),
        block: assert.block,
        thread: assert.thread,
        evidence: vec![id],
        ..Fault::default()
    })
}

/// Xid 31 gives an address and the kind of access, nothing else.
fn fault_address(case: &Case, apart: &Apart) -> Option<Fault> {
    let (id, _, xid) = case
        .pick(|data| match data {
            Data::Xid(xid) if xid.xid == 31 && xid.address.is_some() => Some(xid),
            _ => None,
        })
        .find(|(id, _, _)| !apart.holds(*id))?;
    Some(Fault { address: xid.address, access: xid.access.clone(), evidence: vec![id], ..Fault::default() })
}

fn host(case: &Case, root: &Failure) -> Option<Fault> {
    let in_root = |id: EvidenceId| root.evidence.contains(&id);
    let python = case.pick(|data| match data {
        Data::Signal(signal) => signal.python.first().map(|frame| (signal, frame)),
        _ => None,
    });
    let mut fault = python
        .filter(|(id, _, (signal, _))| in_root(*id) || signal.signal == 11)
        .map(|(id, event, (signal, frame))| Fault {
            rank: event.origin.rank,
            file: Some(frame.file.clone()),
            line: frame.line,
            address: signal.address,
            evidence: vec![id],
            ..Fault::default()
        })
        .next();
    let kernel = case
        .pick(|data| match data {
            Data::KernelSegfault(segfault) => Some(segfault),
            _ => None,
        })
        .next();
    if let Some((id, _, segfault)) = kernel {
        let fault = fault.get_or_insert_with(Fault::default);
        fault.library.clone_from(&segfault.library);
        fault.offset = segfault.offset;
        fault.address = fault.address.or(segfault.address);
        fault.pc = segfault.ip;
        fault.evidence.push(id);
    }
    fault.or_else(|| native(case, root))
}

/// Frames that a signal handler may stand on, innermost first.
const HANDLER_FRAMES: usize = 16;

/// The innermost frame with a name that is the program's: below it stand the handler that prints and the trampoline into it. A
/// thread that only waits is another one than the thread that crashed.
fn crashed(native: &[NativeFrame]) -> Option<&NativeFrame> {
    let name = |frame: &NativeFrame| frame.function.as_deref().unwrap_or("").to_ascii_lowercase();
    let handles = |frame: &NativeFrame| {
        let name = name(frame);
        [
            "signalhandler",
            "signal_handler",
            "<signal handler called>",
            "__restore_rt",
            "faulthandler",
            "handle_error_signal",
        ]
        .iter()
        .any(|word| name.contains(word))
    };
    let handler = native
        .iter()
        .take(HANDLER_FRAMES)
        .enumerate()
        .filter(|(_, frame)| handles(frame))
        .map(|(at, _)| at)
        .max();
    let mut rest = native.get(handler.map_or(0, |at| at + 1)..).unwrap_or_default();
    // The trampoline has no name of its own in most C libraries.
    if handler.is_some()
        && let Some((first, after)) = rest.split_first()
        && first.function.is_none()
        && first
            .library
            .as_deref()
            .is_some_and(|library| library.contains("libc") || library.contains("libpthread"))
    {
        rest = after;
    }
    let found = rest.iter().find(|frame| frame.function.is_some() || frame.library.is_some())?;
    let waits =
        ["poll", "__poll", "epoll_wait", "pthread_cond_wait", "futex_wait", "select", "nanosleep", "accept"];
    let waits = handler.is_some()
        && waits.iter().any(|word| name(found).trim_start_matches("__gi_").starts_with(word));
    (!waits).then_some(found)
}

/// The innermost native frame with a name.
fn native(case: &Case, root: &Failure) -> Option<Fault> {
    let (id, event, frame) = case
        .pick(|data| match data {
            Data::Signal(signal) => crashed(&signal.native),
            _ => None,
        })
        .find(|(id, _, _)| root.evidence.contains(id))?;
    Some(Fault {
        rank: event.origin.rank,
        file: frame.place.as_ref().map(|place| place.file.clone()),
        line: frame.place.as_ref().and_then(|place| place.line),
        function: frame.function.as_deref().map(bare_name),
        library: frame.library.clone(),
        evidence: vec![id],
        ..Fault::default()
    })
}

/// A kernel's name without parameter list, return type and template arguments' spaces.
fn bare_name(printed: &str) -> String {
    let mut depth = 0_i32;
    let mut end = printed.len();
    let call = printed.find("operator()").map(|at| at + "operator".len());
    for (at, c) in printed.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            '(' if depth <= 0
                && at > 0
                && Some(at) != call
                && !printed.get(at..).is_some_and(|rest| rest.starts_with("(anonymous")) =>
            {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let head = printed.get(..end).unwrap_or(printed).trim();
    let head = head.strip_prefix("void ").unwrap_or(head);
    head.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handler_and_trampoline_are_no_place_of_a_crash() {
        let frame = |function: Option<&str>, library: &str| NativeFrame {
            function: function.map(str::to_owned),
            library: Some(library.to_owned()),
            ..NativeFrame::default()
        };
        let handler = frame(Some("c10::FatalSignalHandler::stacktraceSignalHandler(bool)"), "libc10.so");
        let stack = [handler.clone(), frame(None, "/lib/libc.so.6"), frame(Some("run_job"), "a.so")];
        assert_eq!(crashed(&stack).and_then(|frame| frame.function.as_deref()), Some("run_job"));
        // A thread that waits did not crash.
        assert_eq!(
            crashed(&[handler, frame(None, "/lib/libc.so.6"), frame(Some("__poll"), "/lib/libc.so.6")]),
            None
        );
        assert_eq!(crashed(&stack[2..]), Some(&stack[2]));
    }

    #[test]
    fn kernel_names_lose_parameters() {
        assert_eq!(bare_name("fill_rows(float *, int, int, int)"), "fill_rows");
        assert_eq!(bare_name("void asserting(const int *, int)"), "asserting");
        assert_eq!(bare_name("fused_lora_xw_kernel"), "fused_lora_xw_kernel");
        assert_eq!(bare_name("operator()"), "operator()");
        assert_eq!(bare_name("f::operator()(int) const"), "f::operator()");
        assert_eq!(
            bare_name("void at::native::(anonymous namespace)::f<float, (int)4>(int)"),
            "at::native::(anonymous namespace)::f<float, (int)4>"
        );
    }
}
