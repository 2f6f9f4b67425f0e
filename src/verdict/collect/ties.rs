//! Which kernel lines nothing ties to the job's failure: lines of another time, of another process, of another GPU.
//!
//! In: a case. Out: [`Apart`], the lines that are only the machine's state, each with its reason. A process id never decides:
//! a container has ids of its own. Where nothing speaks against it, a line stays tied, above all one that tells of broken
//! hardware.

use std::collections::{BTreeMap, BTreeSet};

use crate::case::{Case, EvidenceId};
use crate::read::event::{Data, DriverFaultKind, Event, Exception, InputId, Xid};
use crate::read::times::Times;
use crate::source::InputKind;
use crate::tables::class::FailureClass;
use crate::tables::xid::{XidOrigin, by_number};

use super::super::failure::Weight;
use super::dates;
use super::{gpu, host, pci};

/// Longest time between a log's end and a kernel line of its failure, in seconds.
const NEAR: i64 = 600;
/// The same where the log goes on without dates after its last one: a program may hang for a while before it fails.
const NEAR_OPEN: i64 = 3_600;
/// Clocks of two zones differ by whole or half hours.
const ZONE_STEP: i64 = 1_800;
/// Zones differ by no more.
const ZONE_MOST: i64 = 14 * 3_600;
/// How well two such clocks agree.
const ZONE_SLACK: i64 = 180;

/// Kernel lines that are only the machine's state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Apart(BTreeMap<EvidenceId, String>);

impl Apart {
    /// Why a line is left aside.
    #[must_use]
    pub fn why(&self, id: EvidenceId) -> Option<&str> {
        self.0.get(&id).map(String::as_str)
    }

    /// Whether a line is left aside.
    #[must_use]
    pub fn holds(&self, id: EvidenceId) -> bool {
        self.0.contains_key(&id)
    }
}

/// The kernel lines of `case` that nothing ties to its failure.
#[must_use]
pub fn apart(case: &Case) -> Apart {
    let job = Job::of(case);
    let mut found = Apart::default();
    if job.inputs.is_empty() {
        return found;
    }
    for (id, event) in job.kernel_lines(case) {
        if let Some(why) = job.other_time(event).or_else(|| job.other_process(event)) {
            found.0.insert(id, why);
        }
    }
    other_gpu(case, &job, &mut found);
    found
}

/// What the job's own logs tell.
struct Job<'a> {
    inputs: BTreeSet<InputId>,
    times: Vec<&'a Times>,
    /// The programs that a command line names.
    programs: Vec<&'a str>,
    /// A Python exception without a word of the GPU is all that failed.
    plain_python: bool,
    /// A program found no usable GPU.
    no_device: bool,
    /// Classes of the device faults that the logs report.
    faults: BTreeSet<FailureClass>,
}

impl<'a> Job<'a> {
    fn of(case: &'a Case) -> Self {
        let spoke: BTreeSet<InputId> = case
            .events()
            .filter(|(_, event)| !is_kernel_line(&event.data))
            .map(|(_, event)| event.span.input)
            .collect();
        let silent: BTreeSet<InputId> = case
            .events()
            .filter(|(_, event)| !spoke.contains(&event.span.input))
            .map(|(_, event)| event.span.input)
            .collect();
        let mut job = Self {
            inputs: BTreeSet::new(),
            times: Vec::new(),
            programs: Vec::new(),
            plain_python: false,
            no_device: false,
            faults: BTreeSet::new(),
        };
        for (at, input) in case.inputs().iter().enumerate() {
            let id = InputId(u32::try_from(at).unwrap_or(u32::MAX));
            let is_log = matches!(input.kind, InputKind::Log | InputKind::SanitizerText | InputKind::CudaGdb);
            if is_log && !silent.contains(&id) {
                job.inputs.insert(id);
                job.times.extend(&input.times);
            }
        }
        let (mut exception, mut gpu_word) = (false, false);
        for (_, event) in case.events().filter(|(_, event)| job.inputs.contains(&event.span.input)) {
            match &event.data {
                Data::Traceback(traceback) => {
                    let (plain, word) = traceback.exception.as_ref().map(of_exception).unwrap_or_default();
                    exception |= plain;
                    gpu_word |= word;
                }
                Data::Exception(said) => {
                    let (plain, word) = of_exception(said);
                    exception |= plain;
                    gpu_word |= word;
                }
                Data::Command(command) => {
                    job.programs.extend(command.words.iter().map(|word| base_name(word)));
                }
                Data::Status(status) => {
                    gpu_word = true;
                    job.no_device |= matches!(status.code, Some(46 | 100 | 101 | 999));
                    let class = gpu::status(status).map(|claim| claim.class);
                    job.faults.extend(class.filter(|class| class.is_device_fault()));
                }
                Data::DriverFault(fault) => {
                    gpu_word = true;
                    job.no_device |=
                        matches!(fault.kind, DriverFaultKind::NoDevice | DriverFaultKind::GpuLost);
                }
                data => gpu_word |= is_gpu_word(data),
            }
        }
        job.plain_python = exception && !gpu_word;
        job
    }

    fn kernel_lines<'c>(&self, case: &'c Case) -> impl Iterator<Item = (EvidenceId, &'c Event)> {
        case.events()
            .filter(|(_, event)| is_kernel_line(&event.data) && !self.inputs.contains(&event.span.input))
    }

    /// A line long before the job began, or after it ended.
    fn other_time(&self, event: &Event) -> Option<String> {
        let line = event.origin.time.as_ref()?;
        let mut nearest: Option<i64> = None;
        for log in &self.times {
            let Some(outside) = dates::outside(line, log) else { continue };
            let after = if log.open { NEAR_OPEN } else { NEAR };
            let zoned = dates::has_zone(line) && dates::has_zone(&log.last);
            if (-NEAR..=after).contains(&outside) || !zoned && may_be_a_zone(line, log) {
                return None;
            }
            if nearest.is_none_or(|known| outside.abs() < known.abs()) {
                nearest = Some(outside);
            }
        }
        let outside = nearest?;
        // A GPU that was lost before the job began is one that it can't find.
        if outside < 0 && self.no_device && is_hardware(event) {
            return None;
        }
        let side = if outside < 0 { "before the job's log begins" } else { "after the job's log ends" };
        Some(format!(
            "printed {} {side}: the state of the machine; nothing ties it to the failure",
            duration(outside.abs())
        ))
    }

    /// A program's fault, of a process that the log doesn't speak of, beside a failure that is none of the GPU's.
    fn other_process(&self, event: &Event) -> Option<String> {
        let Data::Xid(xid) = &event.data else { return None };
        if !self.plain_python || !is_of_a_program(xid) {
            return None;
        }
        let name = xid.process.as_deref()?;
        if is_python(name) || self.programs.iter().any(|program| is_same_program(name, program)) {
            return None;
        }
        Some(format!(
            "the driver names another process, {name}, and the log's own failure is none of the GPU's: nothing ties the two"
        ))
    }
}

/// Broken hardware beside a fault that has a kernel line of its own, on another GPU.
fn other_gpu(case: &Case, job: &Job<'_>, apart: &mut Apart) {
    let matching: Vec<(&Event, String)> = job
        .kernel_lines(case)
        .filter(|(id, _)| !apart.holds(*id))
        .filter_map(|(_, event)| {
            let Data::Xid(xid) = &event.data else { return None };
            let class = gpu::xid(xid)?.class;
            let fits = job.faults.contains(&class)
                || class.is_device_fault() && job.faults.contains(&FailureClass::LaunchFailure);
            fits.then(|| Some((event, bus(xid.pci.as_deref()?))))?
        })
        .collect();
    let Some((_, own)) = matching.first() else { return };
    let mut left: BTreeSet<InputId> = BTreeSet::new();
    let mut nameless = Vec::new();
    for (id, event) in job.kernel_lines(case).filter(|(_, event)| is_hardware(event)) {
        if apart.holds(id) {
            continue;
        }
        let Some(pci) = pci(&event.data).map(bus) else {
            nameless.push((id, event.span.input));
            continue;
        };
        let concerns = matching.iter().any(|(fault, own)| *own == pci || led_to(event, fault));
        if !concerns {
            left.insert(event.span.input);
            let device = match &event.data {
                Data::DriverFault(fault) if fault.kind == DriverFaultKind::Pcie => "device",
                _ => "GPU",
            };
            let why = format!(
                "it is of another {device}, {pci}; the log's fault has a kernel line of its own, on {own}"
            );
            apart.0.insert(id, why);
        }
    }
    // A line without an address belongs to the line beside it.
    for (id, input) in nameless {
        if left.contains(&input) {
            apart.0.insert(
                id,
                format!("it is of another GPU; the log's fault has a kernel line of its own, on {own}"),
            );
        }
    }
}

/// Whether broken hardware can have led to the fault: it was printed shortly before.
fn led_to(hardware: &Event, fault: &Event) -> bool {
    let stamps = hardware.origin.time.as_ref().zip(fault.origin.time.as_ref());
    if hardware.span.input != fault.span.input {
        let seconds = stamps.and_then(|(hardware, fault)| dates::seconds(hardware, fault));
        return seconds.is_some_and(|seconds| (0..=NEAR).contains(&seconds));
    }
    match stamps {
        Some((hardware, fault)) if hardware.clock == fault.clock => {
            (0..=i128::from(NEAR) * 1_000_000_000).contains(&(fault.ns - hardware.ns))
        }
        _ => hardware.span.line < fault.span.line,
    }
}

/// Whether the log's end is as far from the line as two zones differ: one clock may be UTC, the other local.
fn may_be_a_zone(line: &crate::read::event::Stamp, log: &Times) -> bool {
    let Some(apart) = dates::seconds(&log.last, line) else { return false };
    let after = if log.open { NEAR } else { ZONE_SLACK };
    // By how much the line is behind the log's end, once the zone is taken away.
    let rest = (apart + ZONE_STEP / 2).rem_euclid(ZONE_STEP) - ZONE_STEP / 2;
    apart.abs() <= ZONE_MOST + NEAR && (-ZONE_SLACK..=after).contains(&rest)
}

fn is_kernel_line(data: &Data) -> bool {
    match data {
        Data::Xid(_) | Data::KernelSegfault(_) | Data::OomKill(_) => true,
        Data::DriverFault(fault) => {
            !fault.state
                && !matches!(fault.kind, DriverFaultKind::NoDevice | DriverFaultKind::VersionMismatch)
        }
        _ => false,
    }
}

fn is_hardware(event: &Event) -> bool {
    let claim = match &event.data {
        Data::Xid(xid) => gpu::xid(xid),
        Data::DriverFault(fault) if !fault.state => Some(gpu::driver_fault(fault)),
        _ => None,
    };
    claim.is_some_and(|claim| claim.class == FailureClass::Hardware)
}

fn is_of_a_program(xid: &Xid) -> bool {
    let row = by_number(xid.xid);
    row.is_some_and(|row| matches!(row.origin, XidOrigin::Program | XidOrigin::Consequence))
        && gpu::xid(xid).is_none_or(|claim| claim.class != FailureClass::Hardware)
}

fn is_gpu_word(data: &Data) -> bool {
    match data {
        Data::Nccl(line) => line.level != "INFO",
        Data::Library(_)
        | Data::GpuOutOfMemory(_)
        | Data::DeviceAssert(_)
        | Data::Sanitizer(_)
        | Data::FaultingLaunch(_)
        | Data::Launch(_)
        | Data::Compile(_)
        | Data::NcclResult(_)
        | Data::CollectiveTimeout(_)
        | Data::CollectiveMismatch(_)
        | Data::PeerLost(_)
        | Data::Signal(_)
        | Data::Abort(_)
        | Data::Signature(_) => true,
        _ => false,
    }
}

/// Whether an exception is a program's own, and whether it speaks of the GPU.
fn of_exception(exception: &Exception) -> (bool, bool) {
    let said = host::exception(exception);
    let own =
        said.is_some_and(|claim| claim.class == FailureClass::PythonError && claim.weight == Weight::Program);
    let lower = exception.message.to_ascii_lowercase();
    (own, own && ["cuda", "gpu", "nccl", "cublas", "cudnn", "device"].iter().any(|word| lower.contains(word)))
}

/// Whether a thread's name can be a Python program's: interpreters, and what frameworks rename their processes to.
fn is_python(name: &str) -> bool {
    const NAMES: [&str; 22] = [
        "python",
        "pt_",
        "torch",
        "ray",
        "vllm",
        "sglang",
        "train",
        "worker",
        "deepspeed",
        "accelerate",
        "jupyter",
        "ipykernel",
        "uvicorn",
        "gunicorn",
        "pytest",
        "celery",
        "triton",
        "server",
        "engine",
        "rank",
        "main",
        ".py",
    ];
    let lower = name.to_ascii_lowercase();
    NAMES.iter().any(|known| lower.contains(known))
}

/// Whether the kernel's name of a process, cut to 15 bytes, is that of a program.
fn is_same_program(name: &str, program: &str) -> bool {
    !program.is_empty() && (name == program || name.len() >= 15 && program.starts_with(name))
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// `0000:41:00` of `00000000:41:00.0`.
fn bus(pci: &str) -> String {
    let lower = pci.to_ascii_lowercase();
    let without = lower.split('.').next().unwrap_or("");
    let domain = without.len().saturating_sub(10);
    without.get(domain..).unwrap_or(without).to_owned()
}

/// `34 days`, `3 hours`, `12 minutes`.
fn duration(seconds: i64) -> String {
    let (count, unit) = match seconds {
        172_800.. => (seconds / 86_400, "days"),
        7_200.. => (seconds / 3_600, "hours"),
        _ => (seconds / 60, "minutes"),
    };
    format!("{count} {unit}")
}
