//! Causes that the failing component states itself: an allocator without memory, an assertion about an index, a refused
//! launch, an ECC counter, a mismatch that ranks report.
//!
//! In: the root failure and its like. Out: a hypothesis that is *supported*: the statement is the component's own.

use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::{Certainty, Failure, Weight};
use super::{Hypothesis, View, asserted, memory, port};
use crate::case::Fact;
use crate::read::event::Data;

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    let Some((failure, cause)) = stated(view) else { return Vec::new() };
    let certainty = certainty(view, cause, failure);
    vec![Hypothesis {
        class: view.root.class,
        cause: Some(cause),
        certainty,
        summary: unsaid(cause, failure)
            .or_else(|| shortage(view, cause))
            .or_else(|| (cause == CauseKind::BadIndex).then(|| asserted::sentence(view))?)
            .or_else(|| (cause == CauseKind::Network).then(|| broken_port(view))?)
            .or_else(|| on_gpu(failure, cause))
            .unwrap_or_else(|| summary(cause).to_owned()),
        supports: failure.evidence.iter().take(4).copied().collect(),
        against: Vec::new(),
        would_settle: Vec::new(),
    }]
}

/// What the numbers of a refused request say.
fn shortage(view: &View<'_>, cause: CauseKind) -> Option<String> {
    (cause == CauseKind::GpuMemory).then(|| memory::shortage(view.case))?.and_then(|found| found.sentence())
}

/// Which port of the network broke, where a line names it.
fn broken_port(view: &View<'_>) -> Option<String> {
    port::broken(view.case)
        .map(|port| format!("{}: {} reported an error", summary(CauseKind::Network), port.words()))
}

/// Which GPU is broken, where the driver names it.
fn on_gpu(failure: &Failure, cause: CauseKind) -> Option<String> {
    let is_hardware =
        matches!(cause, CauseKind::Ecc | CauseKind::GpuLost | CauseKind::Nvlink | CauseKind::GspFirmware);
    let pci = failure.pci.as_deref().filter(|_| is_hardware)?;
    Some(format!("{}: PCI {pci}", summary(cause)))
}

/// The root's own statement, else that of a failure of its class on its rank.
fn stated<'a>(view: &View<'a>) -> Option<(&'a Failure, CauseKind)> {
    let of = |failure: &'a Failure| failure.names_cause.map(|cause| (failure, cause));
    of(view.root).or_else(|| {
        view.failures
            .iter()
            .filter(|failure| failure.class == view.root.class)
            .filter(|failure| {
                view.root.rank.is_none() || failure.rank.is_none() || failure.rank == view.root.rank
            })
            .find_map(of)
    })
}

/// Whether the status is `invalid configuration argument`, which says neither what was too large nor that it was.
fn is_invalid_configuration(failure: &Failure) -> bool {
    failure.code.as_ref().is_some_and(|code| code.domain == "cuda" && code.number == Some(9))
}

/// What an invalid configuration can be.
fn unsaid(cause: CauseKind, failure: &Failure) -> Option<String> {
    (cause == CauseKind::LaunchLimit && is_invalid_configuration(failure)).then(|| {
        "the launch's configuration is invalid: a block of more than 1,024 threads, a grid past 65,535 in y or z, or a \
         dimension of zero, as an empty tensor gives"
            .to_owned()
    })
}

/// Whether a line says that a GPU is gone; `Unknown Error` of a device handle may be less.
fn says_lost(view: &View<'_>, failure: &Failure) -> bool {
    let mut lines = failure.evidence.iter().filter_map(|id| match &view.case.get(*id)?.fact {
        Fact::Event(event) => match &event.data {
            Data::DriverFault(fault) => Some(fault.detail.to_ascii_lowercase()),
            _ => None,
        },
        Fact::Derived(_) => None,
    });
    lines.all(|detail| !detail.contains("unknown error") || detail.contains("lost"))
}

/// Most statements support their cause; a few only point to it.
fn certainty(view: &View<'_>, cause: CauseKind, failure: &Failure) -> Certainty {
    if failure.weight == Weight::State {
        return Certainty::Suspected;
    }
    match cause {
        CauseKind::PeerDied | CauseKind::HostMemory if failure.class == FailureClass::Nccl => {
            Certainty::Suspected
        }
        CauseKind::LaunchLimit if is_invalid_configuration(failure) => Certainty::Suspected,
        CauseKind::GpuLost if !says_lost(view, failure) => Certainty::Suspected,
        CauseKind::GspFirmware | CauseKind::GpuLost | CauseKind::WrongArch | CauseKind::HeapCorruption => {
            Certainty::Supported
        }
        _ => Certainty::Supported,
    }
}

/// What a cause means, in one sentence.
#[must_use]
pub fn summary(cause: CauseKind) -> &'static str {
    match cause {
        CauseKind::Int32Overflow => {
            "a 32-bit index wrapped: the product of sizes that fit passed 2,147,483,647"
        }
        CauseKind::OutOfBounds => "an access left its buffer",
        CauseKind::MissingMask => {
            "the last block runs past the end of the buffer: its load or store has no mask or guard"
        }
        CauseKind::BadIndex => "an index or label lies outside its table",
        CauseKind::StrideMismatch => "the kernel was given strides that are not the tensor's",
        CauseKind::MisalignedView => "a view starts at an address that is not aligned for the access",
        CauseKind::FreedMemory => "memory was used after it was freed, or before it was ready",
        CauseKind::GraphReplay => "a captured graph replayed an address that is no longer valid",
        CauseKind::HostPointer => "a kernel was given a host pointer",
        CauseKind::NullPointer => "a kernel was given a null pointer",
        CauseKind::WrongDevice => "an operand lies on another device than the launch",
        CauseKind::SharedMemory => "an index passed the end of the block's shared memory",
        CauseKind::QuantBoundary => "a quantised kernel met a size that its group or padding does not cover",
        CauseKind::SymmWindow => "the symmetric-memory windows of the ranks do not agree",
        CauseKind::NanInput => "NaN or Inf reached an operation that cannot take it",
        CauseKind::WrongArch => "the binary holds no code for this GPU's architecture",
        CauseKind::LaunchLimit => "the launch asks for more than the GPU allows",
        CauseKind::CollectiveMismatch => {
            "ranks called different collectives, sizes or types at the same sequence number"
        }
        CauseKind::MissingCollective => "a rank never joined the collective that the others wait for",
        CauseKind::PeerDied => "another rank was gone before this one noticed",
        CauseKind::Network => "the network between ranks failed",
        CauseKind::Nvlink => "an NVLink or NVSwitch link failed",
        CauseKind::ShmExhausted => "the shared-memory file system (/dev/shm) has no room",
        CauseKind::DuplicateGpu => "two ranks use one GPU",
        CauseKind::VersionMismatch => "versions of driver, runtime or library do not fit together",
        CauseKind::AbiMismatch => "an extension was built against another binary interface",
        CauseKind::StackOverflow => "a stack ran out of room",
        CauseKind::HeapCorruption => "the host heap was damaged before the check noticed it",
        CauseKind::HostMemory => "the host ran out of memory",
        CauseKind::GpuMemory => "the GPU has no memory left for the request",
        CauseKind::Ecc => "GPU memory has an uncorrectable error",
        CauseKind::GpuLost => "the GPU is no longer on the bus",
        CauseKind::GspFirmware => "the GPU's firmware processor stopped answering",
        CauseKind::SanitizerFalsePositive => "the sanitizer's report is an artefact of the memory pool",
    }
}
