//! Evidence to failures: what each event alone says that went wrong.
//!
//! In: a case. Out: failures in the order of the evidence, repetitions of one statement folded. It leaves roles to
//! `roles`; here a watchdog that relays error 700 is a failure of class `illegal_address` that says who relays it.

mod dates;
mod gpu;
mod host;
mod ranks;
mod ties;

pub use host::is_windows_status;
pub use ties::{Apart, apart};

use std::collections::{HashMap, HashSet};

use crate::case::collectives::Finding;
use crate::case::{Case, EvidenceId};
use crate::read::event::{Data, Event, Messenger};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::failure::{Code, Failure, Moment, Role, Weight};

/// What an event alone says.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    class: FailureClass,
    weight: Weight,
    code: Option<Code>,
    relayed_by: Option<Messenger>,
    names_cause: Option<CauseKind>,
    why: &'static str,
}

impl Claim {
    fn new(class: FailureClass, weight: Weight, why: &'static str) -> Self {
        Self { class, weight, code: None, relayed_by: None, names_cause: None, why }
    }

    fn direct(class: FailureClass, why: &'static str) -> Self {
        Self::new(class, Weight::Direct, why)
    }

    fn code(mut self, domain: &'static str, number: Option<i64>, name: Option<String>) -> Self {
        self.code = Some(Code { domain, number, name });
        self
    }

    fn relayed(mut self, by: Option<Messenger>) -> Self {
        self.relayed_by = by;
        self
    }

    fn cause(mut self, cause: Option<CauseKind>) -> Self {
        self.names_cause = cause;
        self
    }
}

/// Every failure that the events of `case` tell of.
#[must_use]
pub fn collect(case: &Case, apart: &Apart) -> Vec<Failure> {
    let mut failures: Vec<Failure> = Vec::new();
    let mut seen: HashMap<Key, usize> = HashMap::new();
    let said = lines_that_speak(case);
    for (id, event) in case.events() {
        if only_wraps(event, &said) {
            continue;
        }
        let Some(mut claim) = claim(event, case) else { continue };
        // That something went wrong, without what, is no news in a document.
        if event.origin.quoted && claim.class == FailureClass::Undecided {
            continue;
        }
        let aside = apart.why(id);
        if aside.is_some() || event.origin.quoted {
            claim.weight = Weight::Apart;
            claim.names_cause = claim.names_cause.filter(|_| event.origin.quoted);
        }
        if event.origin.quoted {
            claim.why = "a document that speaks of the error, and no report of one";
        }
        let key = Key::of(event, &claim);
        match seen.get(&key).and_then(|&at| failures.get_mut(at)) {
            Some(known) => fold(known, id, event),
            None => {
                seen.insert(key, failures.len());
                let mut failure = failure(id, event, claim);
                if let Some(why) = aside {
                    why.clone_into(&mut failure.why);
                }
                failures.push(failure);
            }
        }
    }
    failures.extend(compared(case, &failures));
    if failures.is_empty()
        && let Some((id, event, _)) = super::stacks::dumps(case).next()
    {
        let why = "stacks of running processes: they show where each one stands, and no failure";
        let mut shown = failure(id, event, Claim::new(FailureClass::Undecided, Weight::Hint, why));
        (shown.rank, shown.pid) = (None, None);
        failures.push(shown);
    }
    drop_notices(&mut failures);
    let agreed = failures.iter().any(loses_a_gpu);
    for failure in &mut failures {
        if agreed && failure.weight == Weight::State && failure.names_cause == Some(CauseKind::GpuLost) {
            failure.weight = Weight::Direct;
            failure.why = "the driver can't reach the GPU, and the log's failure agrees".to_owned();
        }
    }
    failures
}

/// Aftermath of another Xid is news only where nothing else is.
fn drop_notices(failures: &mut Vec<Failure>) {
    let is_notice = |failure: &Failure| {
        let number = failure.code.as_ref().filter(|_| failure.is_xid()).and_then(|code| code.number);
        failure.weight <= Weight::State
            && match number {
                Some(13) => failure.class == FailureClass::LaunchFailure,
                number => matches!(number, Some(43 | 63 | 154)),
            }
    };
    if !failures.iter().all(is_notice) {
        failures.retain(|failure| !is_notice(failure));
    }
}

/// Whether a failure is one that a GPU leaves which is gone: no device, a device that is unavailable, a launch that failed
/// without a reason, an unknown error.
fn loses_a_gpu(failure: &Failure) -> bool {
    const CODES: [i64; 7] = [46, 100, 101, 214, 302, 719, 999];
    let code = failure.code.as_ref().filter(|code| code.domain == "cuda").and_then(|code| code.number);
    // An unknown error is undecided by itself, and no more than a hint.
    (failure.weight == Weight::Direct || failure.class == FailureClass::Undecided)
        && (failure.names_cause == Some(CauseKind::GpuLost) || code.is_some_and(|code| CODES.contains(&code)))
}

/// Ranks that wait for each other are a failure even where no line says so: a job that still hangs, dumps alone.
fn compared(case: &Case, failures: &[Failure]) -> Option<Failure> {
    let finding = case.matched().findings.first()?;
    if failures.iter().any(|failure| failure.class == FailureClass::Nccl) {
        return None;
    }
    if matches!(finding, Finding::Mismatch(mismatch) if mismatch.completed) {
        return None;
    }
    let (id, event) = case
        .events()
        .find(|(_, event)| matches!(event.data, Data::FlightDump(_) | Data::Ras(_) | Data::WorkStatus(_)))?;
    let claim = Claim::new(
        FailureClass::Nccl,
        Weight::Waiting,
        "ranks wait for a collective that others never entered",
    );
    Some(failure(id, event, claim))
}

fn claim(event: &Event, case: &Case) -> Option<Claim> {
    match &event.data {
        Data::Status(status) => gpu::status(status),
        Data::Library(status) => gpu::library(status),
        Data::GpuOutOfMemory(_) => Some(
            Claim::direct(FailureClass::GpuOom, "an allocator ran out of GPU memory")
                .cause(Some(CauseKind::GpuMemory)),
        ),
        Data::DeviceAssert(assert) => Some(gpu::device_assert(assert)),
        Data::Sanitizer(record) => gpu::sanitizer(record),
        Data::FaultingLaunch(launch) => gpu::faulting_launch(launch),
        Data::Launch(refused) => Some(gpu::refused(refused)),
        Data::Compile(_) => {
            Some(Claim::direct(FailureClass::CompileError, "a compiler stopped with an error"))
        }
        Data::Xid(xid) => gpu::xid(xid),
        Data::DriverFault(fault) => Some(gpu::driver_fault(fault)),
        Data::Traceback(traceback) => host::traceback(traceback),
        Data::Exception(exception) => host::exception(exception),
        Data::Signal(signal) => host::signal(signal),
        Data::Abort(abort) => host::abort(abort),
        Data::KernelSegfault(_) => {
            Some(Claim::direct(FailureClass::Segfault, "the kernel reports a segmentation fault").code(
                "signal",
                Some(11),
                Some("SIGSEGV".to_owned()),
            ))
        }
        Data::OomKill(_) => Some(
            Claim::direct(FailureClass::HostOom, "a process was killed because the host's memory ran out")
                .cause(Some(CauseKind::HostMemory)),
        ),
        Data::Exit(exit) => host::exit(exit),
        Data::Cleanup(cleanup) => host::stopped(cleanup),
        Data::Nccl(line) => ranks::nccl(line),
        Data::NcclResult(result) => ranks::nccl_result(result),
        Data::CollectiveTimeout(_) => Some(Claim::new(
            FailureClass::Nccl,
            Weight::Waiting,
            "a rank waited for a collective until its time limit",
        )),
        Data::CollectiveMismatch(mismatch) => Some(ranks::mismatch(mismatch)),
        Data::PeerLost(lost) => Some(ranks::peer_lost(lost)),
        Data::Unknown(_) => {
            Some(Claim::new(FailureClass::Undecided, Weight::Hint, "a line says that something failed"))
        }
        Data::Signature(signature) => FailureClass::from_name(&signature.class)
            .map(|class| Claim::direct(class, "a site's own signature matched")),
        Data::Advice(advice) => host::advice(*advice),
        Data::SanitizerSummary(_)
        | Data::WorkStatus(_)
        | Data::NativeFrames(_)
        | Data::StackDump(_)
        | Data::Command(_)
        | Data::Environment(_)
        | Data::Shape(_)
        | Data::Value(_)
        | Data::Model(_)
        | Data::LaunchMention(_)
        | Data::FlightDump(_)
        | Data::Ras(_)
        | Data::CompiledKernel(_)
        | Data::Probe(_)
        | Data::Graph(_) => None,
    }
    .filter(|_| !ignorable(event, case))
}

/// Lines that name an error without reporting one of this job.
fn ignorable(event: &Event, _case: &Case) -> bool {
    matches!(&event.data, Data::Traceback(traceback) if traceback.ignored && traceback.exception.is_none())
}

/// Lines on which a producer more telling than Python's exception machinery speaks.
fn lines_that_speak(case: &Case) -> HashSet<(u32, u64)> {
    case.events()
        .filter(|(_, event)| {
            matches!(
                event.data,
                Data::Status(_)
                    | Data::Library(_)
                    | Data::GpuOutOfMemory(_)
                    | Data::DeviceAssert(_)
                    | Data::Launch(_)
                    | Data::Compile(_)
                    | Data::NcclResult(_)
                    | Data::Nccl(_)
                    | Data::CollectiveTimeout(_)
                    | Data::CollectiveMismatch(_)
                    | Data::PeerLost(_)
                    | Data::Signal(_)
                    | Data::DriverFault(_)
                    | Data::OomKill(_)
                    | Data::Xid(_)
                    | Data::Exit(_)
            )
        })
        .map(|(_, event)| (event.span.input.0, event.span.line))
        .collect()
}

/// Whether an exception only wraps what another producer says on its own lines: it is no second failure.
fn only_wraps(event: &Event, said: &HashSet<(u32, u64)>) -> bool {
    let exception = match &event.data {
        Data::Traceback(traceback) => traceback.exception.as_ref(),
        Data::Exception(exception) => Some(exception),
        _ => None,
    };
    exception.is_some_and(|exception| {
        let lines = exception.message.lines().count().max(1) as u64;
        (exception.log_line..exception.log_line + lines)
            .any(|line| said.contains(&(event.span.input.0, line)))
    })
}

/// What makes two statements the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    class: FailureClass,
    rank: Option<u32>,
    weight: u8,
    relayed_by: Option<Messenger>,
    number: Option<i64>,
    kind: std::mem::Discriminant<Data>,
    input: u32,
}

impl Key {
    fn of(event: &Event, claim: &Claim) -> Self {
        Self {
            class: claim.class,
            rank: event.origin.rank,
            weight: claim.weight as u8,
            relayed_by: claim.relayed_by,
            number: claim.code.as_ref().and_then(|code| code.number),
            kind: std::mem::discriminant(&event.data),
            input: event.span.input.0,
        }
    }
}

/// Evidence that one failure lists: enough to show, the rest is counted by its events.
const EVIDENCE_LIMIT: usize = 16;

fn fold(known: &mut Failure, id: EvidenceId, event: &Event) {
    if known.evidence.len() < EVIDENCE_LIMIT {
        known.evidence.push(id);
    }
    known.pid = known.pid.or_else(|| pid_of(event));
}

fn failure(id: EvidenceId, event: &Event, claim: Claim) -> Failure {
    Failure {
        class: claim.class,
        role: Role::Cascade,
        weight: claim.weight,
        rank: rank_of(event),
        pid: pid_of(event),
        process: process_of(event),
        host: event.origin.host.clone(),
        at: moment(event),
        evidence: vec![id],
        code: claim.code,
        relayed_by: claim.relayed_by,
        names_cause: claim.names_cause,
        pci: pci(&event.data).map(str::to_owned),
        stop: match &event.data {
            Data::Cleanup(cleanup) => cleanup.stop,
            _ => None,
        },
        why: claim.why.to_owned(),
    }
}

/// The device that a driver line names.
fn pci(data: &Data) -> Option<&str> {
    match data {
        Data::Xid(xid) => xid.pci.as_deref(),
        Data::DriverFault(fault) => fault.pci.as_deref(),
        _ => None,
    }
}

/// When an event was printed.
pub(super) fn moment(event: &Event) -> Moment {
    Moment { input: event.span.input, line: event.span.line, stamp: event.origin.time.clone() }
}

fn rank_of(event: &Event) -> Option<u32> {
    match &event.data {
        Data::Exit(exit) => exit.rank.or(event.origin.rank).or(exit.local_rank),
        _ => event.origin.rank,
    }
}

fn pid_of(event: &Event) -> Option<u32> {
    match &event.data {
        Data::Xid(xid) => xid.pid,
        Data::KernelSegfault(fault) => fault.pid,
        Data::OomKill(kill) => kill.pid,
        Data::Exit(exit) => exit.pid,
        Data::Signal(signal) => signal.pid.or(event.origin.pid),
        _ => event.origin.pid,
    }
}

fn process_of(event: &Event) -> Option<String> {
    match &event.data {
        Data::Xid(xid) => xid.process.clone(),
        Data::KernelSegfault(fault) => Some(fault.comm.clone()),
        Data::OomKill(kill) => kill.process.clone(),
        _ => event.origin.process.clone(),
    }
}
