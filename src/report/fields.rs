//! The typed fields of an event as JSON values.
//!
//! In: an event. Out: its kind and a flat map; addresses and offsets as hex strings, everything escaped. It leaves the
//! meaning of fields to the event's own documentation.

use serde_json::{Map, Value, json};

use crate::read::event::{
    Data, Dim3, Event, GraphMention, ModelFacts, Place, ProbeReport, SanitizerRecord, Xid,
};

use super::build::show;
use super::model::EvidenceKind;

/// Kind of an event.
pub fn kind(data: &Data) -> EvidenceKind {
    match data {
        Data::Status(_) => EvidenceKind::CudaError,
        Data::Library(_) => EvidenceKind::LibraryStatus,
        Data::GpuOutOfMemory(_) => EvidenceKind::GpuOutOfMemory,
        Data::DeviceAssert(_) => EvidenceKind::DeviceAssert,
        Data::Traceback(_) => EvidenceKind::Traceback,
        Data::Exception(_) => EvidenceKind::Exception,
        Data::NativeFrames(_) => EvidenceKind::NativeFrames,
        Data::Signal(_) => EvidenceKind::Signal,
        Data::Abort(_) => EvidenceKind::Abort,
        Data::Sanitizer(_) => EvidenceKind::Sanitizer,
        Data::SanitizerSummary(_) => EvidenceKind::SanitizerSummary,
        Data::Xid(_) => EvidenceKind::Xid,
        Data::DriverFault(_) => EvidenceKind::DriverFault,
        Data::KernelSegfault(_) => EvidenceKind::KernelSegfault,
        Data::OomKill(_) => EvidenceKind::OomKill,
        Data::Nccl(_) => EvidenceKind::Nccl,
        Data::NcclResult(_) => EvidenceKind::NcclResult,
        Data::CollectiveTimeout(_) => EvidenceKind::CollectiveTimeout,
        Data::WorkStatus(_) => EvidenceKind::WorkStatus,
        Data::CollectiveMismatch(_) => EvidenceKind::CollectiveMismatch,
        Data::PeerLost(_) => EvidenceKind::PeerLost,
        Data::Exit(_) => EvidenceKind::Exit,
        Data::StackDump(_) => EvidenceKind::StackDump,
        Data::Cleanup(_) => EvidenceKind::Cleanup,
        Data::Advice(_) => EvidenceKind::Advice,
        Data::Command(_) => EvidenceKind::Command,
        Data::Environment(_) => EvidenceKind::Environment,
        Data::Shape(_) => EvidenceKind::Shape,
        Data::Value(_) => EvidenceKind::Value,
        Data::Model(_) => EvidenceKind::Model,
        Data::FaultingLaunch(_) => EvidenceKind::FaultingLaunch,
        Data::LaunchMention(_) => EvidenceKind::LaunchMention,
        Data::Graph(_) => EvidenceKind::Graph,
        Data::Compile(_) => EvidenceKind::Compile,
        Data::Launch(_) => EvidenceKind::LaunchRefused,
        Data::Unknown(_) => EvidenceKind::Unknown,
        Data::Signature(_) => EvidenceKind::Signature,
        Data::FlightDump(_) => EvidenceKind::FlightDump,
        Data::Ras(_) => EvidenceKind::Ras,
        Data::CompiledKernel(_) => EvidenceKind::CompiledKernel,
        Data::Probe(_) => EvidenceKind::Probe,
    }
}

/// Fields without a value are left out: a map of what was read.
pub fn fields(event: &Event) -> Map<String, Value> {
    let value = match &event.data {
        Data::Status(s) => json!({
            "number": s.code, "printed_number": s.printed_number, "name": s.printed_name.as_deref().map(show), "producer": s.producer,
            "messenger": s.messenger, "api": s.api.as_deref().map(show), "reported_from": place(s.reported_from.as_ref()),
            "device": s.device,
        }),
        Data::Library(s) => json!({
            "library": s.library, "name": show(&s.name), "number": s.number, "api": s.api.as_deref().map(show),
        }),
        Data::GpuOutOfMemory(m) => json!({
            "requested_bytes": wide(m.requested_bytes), "free_bytes": wide(m.free_bytes), "total_bytes": wide(m.total_bytes),
            "reserved_unallocated_bytes": wide(m.reserved_unallocated_bytes),
            "others": m.others.iter().map(|(pid, bytes)| json!({ "pid": pid, "bytes": wide(Some(*bytes)) })).collect::<Vec<_>>(),
            "device": m.device, "producer": m.producer,
        }),
        Data::DeviceAssert(a) => json!({
            "place": place(Some(&a.place)), "block": dims(a.block), "thread": dims(a.thread), "expression": show(&a.expression),
            "count": a.count, "int32_overflow": a.int32_overflow,
        }),
        Data::Traceback(t) => json!({
            "frames": t.frames.len(),
            "innermost": t.frames.last().map(|f| format!("{}:{}", show(&f.file), f.line.unwrap_or(0))),
            "exception": t.exception.as_ref().map(|e| show(&e.kind)),
            "message": t.exception.as_ref().map(|e| show(&e.message)),
        }),
        Data::Exception(e) => json!({ "exception": show(&e.kind), "message": show(&e.message) }),
        Data::NativeFrames(n) => json!({
            "frames": n.frames.len(), "raised_from": place(n.raised_from.as_ref()),
            "innermost": n.frames.iter().find_map(|f| f.function.as_deref()).map(show),
        }),
        Data::Signal(s) => {
            json!({ "signal": s.signal, "reporter": s.reporter, "address": hex(s.address), "pid": s.pid })
        }
        Data::Abort(a) => json!({
            "reason": a.reason, "exception": a.exception.as_deref().map(show), "what": a.what.as_deref().map(show),
            "place": place(a.place.as_ref()),
        }),
        Data::Sanitizer(r) => sanitizer(r),
        Data::SanitizerSummary(s) => json!({ "tool": s.tool, "errors": s.errors, "warnings": s.warnings }),
        Data::Xid(x) => xid(x),
        Data::DriverFault(f) => json!({ "fault": f.kind, "pci": f.pci.as_deref().map(show) }),
        Data::KernelSegfault(k) => json!({
            "comm": show(&k.comm), "pid": k.pid, "address": hex(k.address), "ip": hex(k.ip), "error": k.error,
            "library": k.library.as_deref().map(show), "offset": hex(k.offset), "cpu": k.cpu,
        }),
        Data::OomKill(o) => json!({
            "pid": o.pid, "process": o.process.as_deref().map(show), "anon_rss_bytes": o.anon_rss_bytes, "cgroup": o.cgroup,
        }),
        Data::Nccl(n) => json!({
            "level": show(&n.level), "topic": n.topic, "message": show(&n.message), "place": place(n.place.as_ref()),
            "result": n.result, "cuda_code": n.cuda_code, "peer": n.peer.as_deref().map(show),
        }),
        Data::NcclResult(n) => json!({
            "name": show(&n.name), "code": n.code, "last_error": n.last_error.as_deref().map(show), "topic": n.topic,
            "version": n.version.as_deref().map(show),
        }),
        Data::CollectiveTimeout(t) => json!({
            "op": show(&t.collective.op), "seq": t.collective.seq, "group": t.collective.group.as_deref().map(show),
            "numel_in": t.collective.numel_in, "numel_out": t.collective.numel_out, "limit_ms": t.limit_ms, "elapsed_ms": t.elapsed_ms,
        }),
        Data::WorkStatus(w) => json!({
            "failed_at": w.failed_at, "last_enqueued": w.last_enqueued, "last_started": w.last_started,
            "last_completed": w.last_completed, "signalled_by": w.signalled_by,
        }),
        Data::CollectiveMismatch(m) => json!({
            "differs": show(&m.differs), "missing": m.missing,
            "views": m.views.iter().map(|(rank, view)| json!({ "rank": rank, "op": show(&view.op), "seq": view.seq, "numel_in": view.numel_in })).collect::<Vec<_>>(),
        }),
        Data::PeerLost(p) => json!({ "lost": p.kind, "peer": p.peer.as_deref().map(show) }),
        Data::Exit(e) => json!({
            "reporter": e.reporter, "rank": e.rank, "local_rank": e.local_rank, "pid": e.pid, "code": e.code, "signal": e.signal,
        }),
        Data::Cleanup(c) => {
            json!({ "pid": c.pid, "signal": c.signal, "told_to_stop": c.told_to_stop, "stop": c.stop })
        }
        Data::Advice(a) => json!({ "advice": a }),
        Data::StackDump(d) => json!({
            "pid": d.pid, "active": d.active,
            "frames": d.frames.iter().map(|f| json!({ "file": show(&f.file), "line": f.line, "function": f.function.as_deref().map(show) })).collect::<Vec<_>>(),
        }),
        Data::Command(c) => json!({
            "words": c.words.iter().map(|w| show(w)).collect::<Vec<_>>(),
            "environment": c.environment.iter().map(|(n, v)| format!("{}={}", show(n), show(v))).collect::<Vec<_>>(),
        }),
        Data::Environment(e) => json!({ "name": show(&e.name), "value": show(&e.value) }),
        Data::Value(v) => json!({ "name": show(&v.name), "value": show(&v.value) }),
        Data::Model(m) => model(m),
        Data::Shape(s) => json!({
            "dims": s.dims, "names": s.names.iter().map(|n| show(n)).collect::<Vec<_>>(), "dtype": s.dtype.as_deref().map(show),
            "label": s.label.as_deref().map(show), "form": s.form, "strides": s.strides, "address": hex(s.address),
            "passed": s.passed,
        }),
        Data::FaultingLaunch(l) => json!({
            "kernel": l.kernel.as_deref().map(show), "exception": l.exception.as_deref().map(show), "exception_number": l.exception_number,
            "grid": dims(l.grid), "block_dim": dims(l.block_dim), "block": dims(l.block), "thread": dims(l.thread), "pc": hex(l.pc),
            "place": place(l.place.as_ref()),
            "arguments": l.arguments.iter().map(|(n, v)| format!("{}={}", show(n), show(v))).collect::<Vec<_>>(),
        }),
        Data::LaunchMention(l) => json!({
            "kernel": show(&l.kernel), "grid": dims(l.grid), "block_dim": dims(l.block_dim), "place": place(l.place.as_ref()),
            "launched_from": place(l.launched_from.as_ref()),
            "arguments": l.arguments.iter().map(|(n, v)| format!("{}={}", show(n), show(v))).collect::<Vec<_>>(),
        }),
        Data::Graph(g) => {
            json!({ "graph": match g { GraphMention::Capture => "capture", GraphMention::Replay => "replay" } })
        }
        Data::Compile(c) => {
            json!({ "compiler": c.compiler, "message": show(&c.message), "place": place(c.place.as_ref()) })
        }
        Data::Launch(l) => json!({ "resource": show(&l.resource), "required": l.required, "limit": l.limit }),
        Data::Unknown(u) => json!({ "message": show(&u.message) }),
        Data::Signature(s) => json!({
            "id": show(&s.id), "class": show(&s.class),
            "captures": s.fields.iter().map(|(n, v)| format!("{}={}", show(n), show(v))).collect::<Vec<_>>(),
        }),
        Data::FlightDump(d) => json!({
            "rank": d.rank, "entries": d.entries, "groups": d.groups, "version": d.version.as_deref().map(show),
        }),
        Data::CompiledKernel(k) => json!({
            "entry": show(&k.entry), "form": k.form, "files": k.files.iter().map(|f| show(f)).collect::<Vec<_>>(),
        }),
        Data::Probe(p) => probe(p),
        Data::Ras(r) => json!({
            "nccl_version": r.nccl_version.as_deref().map(show), "communicators": r.communicators,
            "verdicts": r.verdicts.iter().map(|v| show(v)).collect::<Vec<_>>(),
        }),
    };
    match value {
        Value::Object(map) => map.into_iter().filter(|(_, value)| !is_empty(value)).collect(),
        _ => Map::new(),
    }
}

/// With the keys of `warpfault/probe/1`.
fn probe(report: &ProbeReport) -> Value {
    let mut shown = report.clone();
    for text in shown.texts() {
        *text = show(text);
    }
    for trial in
        shown.trials.iter_mut().chain(shown.control.iter_mut().flat_map(|control| &mut control.trials))
    {
        trial.values =
            std::mem::take(&mut trial.values).into_iter().map(|(name, value)| (show(&name), value)).collect();
    }
    serde_json::to_value(&shown).unwrap_or_default()
}

fn model(m: &ModelFacts) -> Value {
    let c = &m.config;
    json!({
        "model_type": m.model_type.as_deref().map(show), "dtype": m.dtype.as_deref().map(show), "hidden": c.hidden,
        "intermediate": c.intermediate, "expert_intermediate": c.expert_intermediate, "vocab": c.vocab, "heads": c.heads,
        "kv_heads": c.kv_heads, "head_dim": c.head_dim(), "latent_kv": c.latent_kv, "layers": c.layers, "experts": c.experts,
        "experts_per_token": c.experts_per_token, "max_position": c.max_position,
    })
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn sanitizer(r: &SanitizerRecord) -> Value {
    json!({
        "finding": r.finding, "space": r.space.as_deref().map(show), "access": r.access.as_deref().map(show), "size_bytes": r.size_bytes,
        "kernel": r.kernel.as_deref().map(show), "offset": hex(r.offset), "place": place(r.place.as_ref()), "thread": dims(r.thread),
        "block": dims(r.block), "address": hex(r.address), "api": r.api.as_deref().map(show), "code": r.code,
        "detail": r.detail.as_deref().map(show), "other_place": place(r.other_place.as_ref()), "leaked_bytes": r.leaked_bytes,
        "nearest": r.nearest.map(|n| json!({
            "distance_bytes": n.distance_bytes, "side": n.side, "base": hex(Some(n.base)), "size_bytes": n.size_bytes,
        })),
        "last_block": r.last.map(|(block, _)| block), "last_thread": r.last.map(|(_, thread)| thread), "count": r.count,
    })
}

fn xid(x: &Xid) -> Value {
    json!({
        "xid": x.xid, "pci": x.pci.as_deref().map(show), "pid": x.pid, "process": x.process.as_deref().map(show),
        "detail": show(&x.detail), "address": hex(x.address), "fault_type": x.fault_type.as_deref().map(show),
        "access": x.access.as_deref().map(show), "engine": x.engine.as_deref().map(show), "sm_reason": x.sm_reason.as_deref().map(show),
        "esr": x.esr.map(|esr| format!("{esr:#04x}")), "unit": x.unit.as_deref().map(show), "caused_by": x.caused_by, "count": x.count,
    })
}

fn hex(value: Option<u64>) -> Option<String> {
    value.map(|value| format!("{value:#x}"))
}

fn dims(value: Option<Dim3>) -> Option<Dim3> {
    value
}

/// Sizes of memory fit 64 bits on any machine; a larger claim is kept as text.
fn wide(value: Option<u128>) -> Option<Value> {
    value.map(|value| u64::try_from(value).map_or_else(|_| Value::String(value.to_string()), Value::from))
}

fn place(place: Option<&Place>) -> Option<String> {
    let place = place?;
    if place.file.is_empty() {
        return place.function.as_deref().map(show);
    }
    Some(match place.line {
        Some(line) => format!("{}:{line}", show(&place.file)),
        None => show(&place.file),
    })
}
