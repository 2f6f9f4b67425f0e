//! What producers printed, by name: inputs that are there, records of tools, statuses, signals, messages.

use crate::arith::{Reading, Strength};
use crate::case::Case;
use crate::read::event::{
    Data, DriverFaultKind, Event, GraphMention, NcclTopic, PeerLostKind, SanitizerFinding,
};
use crate::source::InputKind;
use crate::tables::xid;
use crate::verdict::{Verdict, cause};

use super::super::known::Known;

/// Entries that a list holds.
const LIST_LIMIT: usize = 32;

pub(super) fn put(known: &mut Known, case: &Case, verdict: &Verdict) {
    inputs(known, case, verdict);
    sanitizer(known, case, verdict);
    host(known, case);
    gpu(known, case, verdict);
    collectives(known, case);
    messages(known, case);
}

/// Which kinds of input are there: this is always known.
fn inputs(known: &mut Known, case: &Case, verdict: &Verdict) {
    let has = |kinds: &[InputKind]| case.inputs().iter().any(|input| kinds.contains(&input.kind));
    known.put("facts.inputs", case.inputs().len());
    known.put("facts.triton_cache", has(&[InputKind::TritonCache, InputKind::Ttir, InputKind::Ptx]));
    known.put("facts.core_dump", has(&[InputKind::CoreDump]));
    known.put("facts.flight_recorder", has(&[InputKind::FlightRecorder]));
    known.put("facts.ras", has(&[InputKind::NcclRas]));
    let record =
        first(case, |data| matches!(data, Data::Sanitizer(_) | Data::SanitizerSummary(_)).then_some(()));
    known.put(
        "facts.sanitizer_report",
        record.is_some() || has(&[InputKind::SanitizerText, InputKind::SanitizerXml]),
    );
    known.put("facts.triton", shows_triton(case, verdict));
    let driver = first(case, |data| matches!(data, Data::Xid(_) | Data::KernelSegfault(_)).then_some(()));
    known.put("facts.kernel_log", driver.is_some() || has(&[InputKind::KernelLog]));
}

/// Whether anything shows that a Triton kernel ran. A script that merely has the word in its name shows nothing.
fn shows_triton(case: &Case, verdict: &Verdict) -> bool {
    let is_triton_input =
        |kind| matches!(kind, InputKind::TritonCache | InputKind::Ttir | InputKind::Tritonparse);
    // Only Triton gives device code the lines of a Python file.
    let in_python = |file: &str| file.ends_with(".py");
    let in_package = |file: &str| {
        file.split(['/', '\\']).rev().skip(1).any(|folder| matches!(folder, "triton" | "triton_kernels"))
    };
    let of_module = |kind: &str| kind.starts_with("triton.") || kind.contains(".triton.");
    case.inputs().iter().any(|input| is_triton_input(input.kind))
        || verdict
            .places
            .fault
            .as_ref()
            .is_some_and(|fault| fault.kernel.is_some() && fault.file.as_deref().is_some_and(in_python))
        || case.events().any(|(_, event)| match &event.data {
            Data::Traceback(traceback) => {
                traceback.frames.iter().any(|frame| in_package(&frame.file))
                    || traceback.exception.as_ref().is_some_and(|exception| {
                        of_module(&exception.kind) || exception.message.contains("Triton Error")
                    })
            }
            Data::Exception(exception) => {
                of_module(&exception.kind) || exception.message.contains("Triton Error")
            }
            Data::DeviceAssert(assert) => in_python(&assert.place.file),
            Data::Status(_) => event.text.contains("Triton Error"),
            _ => false,
        })
}

fn first<'a, T: 'a>(case: &'a Case, pick: impl Fn(&'a Data) -> Option<T> + 'a) -> Option<(&'a Event, T)> {
    case.pick(pick).next().map(|(_, event, found)| (event, found))
}

fn sanitizer(known: &mut Known, case: &Case, verdict: &Verdict) {
    let record = first(case, |data| match data {
        Data::Sanitizer(record)
            if !matches!(record.finding, SanitizerFinding::ApiError | SanitizerFinding::UnusedMemory) =>
        {
            Some(&**record)
        }
        _ => None,
    });
    if let Some((_, record)) = record {
        known.put("facts.sanitizer.finding", finding(record.finding));
        known.put("facts.sanitizer.head", record.head.as_str());
        known.put_some("facts.sanitizer.space", record.space.clone());
        known.put_some("facts.sanitizer.kernel", record.kernel.clone());
    }
    let readings = verdict.view(case).map(|view| cause::distance::readings(&view)).unwrap_or_default();
    let wrapped = readings.iter().find_map(|reading| match &reading.reading {
        Reading::Wrapped(wrapped) => Some(wrapped),
        _ => None,
    });
    if let Some(wrapped) = wrapped {
        known.put("facts.distance.kind", "wrapped");
        known.put("facts.distance.recovered_index", wrapped.recovered_index);
        known.put("facts.distance.element_bytes", wrapped.element_bytes);
        known.put("facts.distance.agrees", wrapped.strength == Strength::Supported);
        if let Some((row, column)) = wrapped.row_col {
            known.put("facts.distance.row", row);
            known.put("facts.distance.column", column);
        }
    } else if let Some(reading) = readings.first() {
        known.put("facts.distance.kind", distance(&reading.reading));
    }
}

fn distance(reading: &Reading) -> &'static str {
    match reading {
        Reading::Wrapped(_) => "wrapped",
        Reading::TooLargeToTell { .. } => "too_large_to_tell",
        _ => "other",
    }
}

fn finding(finding: SanitizerFinding) -> &'static str {
    match finding {
        SanitizerFinding::OutOfBounds => "out_of_bounds",
        SanitizerFinding::Misaligned => "misaligned",
        SanitizerFinding::FreedMemory => "freed_memory",
        SanitizerFinding::InvalidAccess => "invalid_access",
        SanitizerFinding::AllocatorError => "allocator_error",
        SanitizerFinding::Leak => "leak",
        SanitizerFinding::Race => "race",
        SanitizerFinding::UninitializedRead => "uninitialized_read",
        SanitizerFinding::Barrier => "barrier",
        SanitizerFinding::ApiError | SanitizerFinding::UnusedMemory | SanitizerFinding::Other => "other",
    }
}

fn host(known: &mut Known, case: &Case) {
    if let Some((_, segfault)) = first(case, |data| match data {
        Data::KernelSegfault(segfault) => Some(segfault),
        _ => None,
    }) {
        known.put_some("facts.segfault.library", segfault.library.clone());
        known.put_some("facts.segfault.offset", segfault.offset);
        known.put_some("facts.segfault.address", segfault.address);
        known.put("facts.segfault.process", segfault.comm.as_str());
    }
    if let Some((_, signal)) = first(case, |data| match data {
        Data::Signal(signal) => Some(signal),
        _ => None,
    }) {
        known.put("facts.signal", signal.signal);
        if let Some(frame) = signal.python.first() {
            known.put_some("facts.python_frame", super::super::chain::place(Some(&frame.file), frame.line));
        }
        known.put_some(
            "facts.native_frame",
            signal.native.iter().find_map(|frame| frame.function.clone().or_else(|| frame.library.clone())),
        );
    }
    if let Some((_, exit)) = first(case, |data| match data {
        Data::Exit(exit) => Some(exit),
        _ => None,
    }) {
        known.put_some("facts.exit.code", exit.code);
        known.put_some("facts.exit.signal", exit.signal);
    }
    if let Some((_, kill)) = first(case, |data| match data {
        Data::OomKill(kill) => Some(kill),
        _ => None,
    }) {
        known.put("facts.oom_kill.cgroup", kill.cgroup);
        known.put_some("facts.oom_kill.process", kill.process.clone());
        known.put_some("facts.oom_kill.rss_bytes", kill.anon_rss_bytes);
    }
}

fn gpu(known: &mut Known, case: &Case, verdict: &Verdict) {
    let all = case.pick(|data| match data {
        Data::Xid(xid) => Some(xid.xid),
        _ => None,
    });
    // What nothing ties to the failure tells nothing of it, and is no silence either.
    let (apart, tied): (Vec<_>, Vec<_>) = all.partition(|(id, _, _)| verdict.apart.holds(*id));
    let xids: Vec<u32> = tied.into_iter().map(|(_, _, xid)| xid).take(LIST_LIMIT).collect();
    if !apart.is_empty() {
        known.put("facts.xids_apart", apart.len());
    }
    if let Some(row) = xids.first().and_then(|xid| xid::by_number(*xid)) {
        known.put("facts.xid.number", row.number);
        known.put("facts.xid.meaning", row.meaning.as_str());
        known.put("facts.xid.origin", origin(row.origin));
        known.put("facts.xid.action", row.action.as_str());
    } else {
        known.put_some("facts.xid.number", xids.first().copied());
    }
    // A kernel log without an Xid says that there was none; without a kernel log nothing says so.
    let is_silent = apart.is_empty() && known.get("facts.kernel_log") == Some(&Known::Bool(true));
    if !xids.is_empty() || is_silent {
        known.put("facts.xids", xids);
    }
    if let Some((_, assert)) = first(case, |data| match data {
        Data::DeviceAssert(assert) => Some(assert),
        _ => None,
    }) {
        known.put("facts.assertion.expression", assert.expression.as_str());
        known.put_some(
            "facts.assertion.place",
            super::super::chain::place(
                Some(&assert.place.file).filter(|file| !file.is_empty()).map(String::as_str),
                assert.place.line,
            ),
        );
        known.put_some("facts.assertion.kernel", assert.place.function.clone());
        known.put("facts.assertion.int32_overflow", assert.int32_overflow);
    }
    if let Some((_, oom)) = first(case, |data| match data {
        Data::GpuOutOfMemory(oom) => Some(oom),
        _ => None,
    }) {
        known.put_some("facts.gpu_memory.requested_bytes", oom.requested_bytes);
        known.put_some("facts.gpu_memory.free_bytes", oom.free_bytes);
        known.put_some("facts.gpu_memory.total_bytes", oom.total_bytes);
        if let (Some(requested), Some(total)) = (oom.requested_bytes, oom.total_bytes) {
            known.put("facts.gpu_memory.never_fits", requested > total);
        }
    }
    if let Some((_, refused)) = first(case, |data| match data {
        Data::Launch(refused) => Some(refused),
        _ => None,
    }) {
        known.put("facts.refused.resource", refused.resource.as_str());
        known.put_some("facts.refused.required", refused.required);
        known.put_some("facts.refused.limit", refused.limit);
    }
    let faults = case.pick(|data| match data {
        Data::DriverFault(fault) => Some(fault.kind),
        _ => None,
    });
    if let Some((_, _, kind)) = faults.into_iter().find(|(id, _, _)| !verdict.apart.holds(*id)) {
        known.put("facts.driver_fault", driver(kind));
    }
    if let Some((_, graph)) = first(case, |data| match data {
        Data::Graph(graph) => Some(*graph),
        _ => None,
    }) {
        known.put("facts.graph", if graph == GraphMention::Replay { "replay" } else { "capture" });
    }
}

fn origin(origin: xid::XidOrigin) -> String {
    serde_json::to_value(origin).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn driver(kind: DriverFaultKind) -> &'static str {
    match kind {
        DriverFaultKind::GpuLost => "gpu_lost",
        DriverFaultKind::Gsp => "gsp",
        DriverFaultKind::Init => "init",
        DriverFaultKind::VersionMismatch => "version_mismatch",
        DriverFaultKind::Ecc => "ecc",
        DriverFaultKind::Pcie => "pcie",
        DriverFaultKind::Nvlink => "nvlink",
        DriverFaultKind::NeedsReset => "needs_reset",
        DriverFaultKind::Diagnostic => "diagnostic",
        DriverFaultKind::NoDevice => "no_device",
    }
}

fn collectives(known: &mut Known, case: &Case) {
    let mut topics: Vec<&'static str> = Vec::new();
    for (_, _, topic) in case.pick(|data| match data {
        Data::Nccl(line) => Some(line.topic),
        Data::NcclResult(result) => Some(result.topic),
        _ => None,
    }) {
        let name = topic_name(topic);
        if !topics.contains(&name) {
            topics.push(name);
        }
    }
    if !topics.is_empty() {
        known.put("facts.nccl.topics", topics);
    }
    if let Some((_, name)) = first(case, |data| match data {
        Data::NcclResult(result) => Some(&result.name),
        _ => None,
    }) {
        known.put("facts.nccl.result", name.as_str());
    }
    if let Some((_, timeout)) = first(case, |data| match data {
        Data::CollectiveTimeout(timeout) => Some(timeout),
        _ => None,
    }) {
        known.put("facts.nccl.timed_out", true);
        known.put_some("facts.nccl.limit_ms", timeout.limit_ms);
    }
    if let Some((_, mismatch)) = first(case, |data| match data {
        Data::CollectiveMismatch(mismatch) => Some(mismatch),
        _ => None,
    }) {
        known.put("facts.nccl.mismatch", mismatch.differs.as_str());
        known.put("facts.nccl.mismatch_text", mismatch.detail.as_str());
        known.put("facts.nccl.missing", mismatch.missing.clone());
    }
    if let Some((_, kind)) = first(case, |data| match data {
        Data::PeerLost(lost) => Some(lost.kind),
        _ => None,
    }) {
        known.put("facts.nccl.peer_lost", peer(kind));
    }
}

fn peer(kind: PeerLostKind) -> &'static str {
    match kind {
        PeerLostKind::Heartbeat => "heartbeat",
        PeerLostKind::Store => "store",
        PeerLostKind::Peer => "peer",
        PeerLostKind::Rendezvous => "rendezvous",
        PeerLostKind::Worker => "worker",
    }
}

fn topic_name(topic: NcclTopic) -> &'static str {
    match topic {
        NcclTopic::Other => "other",
        NcclTopic::Cuda => "cuda",
        NcclTopic::Ib => "ib",
        NcclTopic::IbFlushed => "ib_flushed",
        NcclTopic::Socket => "socket",
        NcclTopic::PeerClosed => "peer_closed",
        NcclTopic::Ofi => "ofi",
        NcclTopic::Shm => "shm",
        NcclTopic::Nvls => "nvls",
        NcclTopic::Mismatch => "mismatch",
        NcclTopic::DuplicateGpu => "duplicate_gpu",
        NcclTopic::Registration => "registration",
        NcclTopic::OutOfMemory => "out_of_memory",
        NcclTopic::Version => "version",
        NcclTopic::Echo => "echo",
        NcclTopic::Chain => "chain",
    }
}

/// Texts that programs printed, for playbooks that know a sentence of their own field.
fn messages(known: &mut Known, case: &Case) {
    let mut messages: Vec<String> = Vec::new();
    let mut files: Vec<String> = Vec::new();
    for (_, event) in case.events() {
        match &event.data {
            Data::Traceback(traceback) => {
                if let Some(exception) = &traceback.exception {
                    messages.push(format!("{}: {}", exception.kind, exception.message));
                }
                files.extend(traceback.frames.iter().rev().map(|frame| frame.file.clone()));
            }
            Data::Exception(exception) => messages.push(format!("{}: {}", exception.kind, exception.message)),
            Data::Unknown(unknown) => messages.push(unknown.message.clone()),
            Data::Abort(_) | Data::Status(_) | Data::Library(_) => messages.push(event.text.clone()),
            Data::Signature(signature) => {
                for (name, value) in signature.fields.iter().filter(|(name, _)| !name.contains('.')) {
                    known.put(
                        &format!("facts.signatures.{}.{name}", super::super::schema::name_of(&signature.id)),
                        value.as_str(),
                    );
                }
            }
            _ => {}
        }
        if messages.len() > LIST_LIMIT {
            break;
        }
    }
    files.truncate(200);
    if !messages.is_empty() {
        messages.truncate(LIST_LIMIT);
        known.put("facts.messages", messages.join("\n"));
    }
    if !files.is_empty() {
        known.put("facts.stack", files.join("\n"));
    }
}
