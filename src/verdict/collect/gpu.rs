//! What GPU statements say: statuses, library statuses, assertions, sanitizer records, dumps, Xids.
//!
//! In: the typed event. Out: a claim. It leaves alone whether the claim is the first one.

use crate::read::event::{
    DeviceAssert, DriverFault, DriverFaultKind, FaultingLaunch, LaunchRefused, LibraryStatus, Messenger,
    SanitizerFinding, SanitizerRecord, Status, Xid,
};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::tables::cuda_status;
use crate::tables::library_status;

use super::super::failure::Weight;
use super::Claim;

/// A CUDA status.
pub fn status(status: &Status) -> Option<Claim> {
    let row = status.code.and_then(cuda_status::by_code);
    let class = row.map_or(FailureClass::Undecided, |row| cuda_status::class_of(row, status.api.as_deref()));
    if class == FailureClass::None {
        return None;
    }
    let name = status.printed_name.clone().or_else(|| row.map(|row| row.runtime.to_owned()));
    let number = status.code.or(status.printed_number).map(i64::from);
    // NCCL's own failing calls: a fault of device code is the fault's class, anything else (no memory, wrong state, no
    // peer access) broke NCCL's set-up and is NCCL's.
    let (class, relayed) = match status.messenger {
        Some(Messenger::Nccl) if !row.is_some_and(cuda_status::CudaStatus::is_sticky_device_fault) => {
            (FailureClass::Nccl, None)
        }
        other => (class, other),
    };
    let (weight, why) = match class {
        // The end of the message would tell; so would whatever came after it.
        _ if status.cut => (Weight::Exit, "the input is cut off inside this message"),
        FailureClass::Undecided => (Weight::Hint, "a CUDA call returned this status"),
        _ => (Weight::Direct, "a CUDA call returned this status"),
    };
    Some(
        Claim::new(class, weight, why)
            .code("cuda", number, name)
            .relayed(relayed)
            .cause(cause_of_code(status.code)),
    )
}

/// Causes that the status itself names.
fn cause_of_code(code: Option<u32>) -> Option<CauseKind> {
    match code? {
        2 => Some(CauseKind::GpuMemory),
        209 | 98 => Some(CauseKind::WrongArch),
        9 | 701 | 720 => Some(CauseKind::LaunchLimit),
        214 | 226 | 721 => Some(CauseKind::Ecc),
        222 | 35 | 803 | 804 => Some(CauseKind::VersionMismatch),
        _ => None,
    }
}

/// A status of a library above CUDA: what it hides is not in it.
pub fn library(status: &LibraryStatus) -> Option<Claim> {
    let (domain, relayed) = match status.library {
        "cublas" => ("cublas", Some(Messenger::Cublas)),
        "cudnn" => ("cudnn", Some(Messenger::Cudnn)),
        other => (other, None),
    };
    let class = library_status::class_of(status.library, &status.name);
    let (weight, why) = if class == FailureClass::Undecided {
        (Weight::Hint, "a library failed and names no reason of its own")
    } else {
        (Weight::Program, "a library refused the call")
    };
    Some(
        Claim::new(class, weight, why)
            .code(domain, status.number.map(i64::from), Some(status.name.clone()))
            .relayed(relayed),
    )
}

/// A device-side assertion.
pub fn device_assert(assert: &DeviceAssert) -> Claim {
    let cause = if assert.int32_overflow {
        Some(CauseKind::Int32Overflow)
    } else {
        assertion_cause(&assert.expression)
    };
    Claim::direct(FailureClass::DeviceAssert, "device code asserted")
        .code("cuda", Some(710), Some("cudaErrorAssert".to_owned()))
        .cause(cause)
}

/// What the failed condition is about. The condition is the kernel author's own statement.
fn assertion_cause(expression: &str) -> Option<CauseKind> {
    let lower = expression.to_ascii_lowercase();
    let about_index = [
        "index",
        "idx",
        "ind ",
        "ind>",
        "ind<",
        "t >= 0",
        "label",
        "target",
        "n_classes",
        "out of bounds",
        "srcindex",
        "dstindex",
    ]
    .iter()
    .any(|word| lower.contains(word));
    let about_nan =
        ["nan", "isfinite", "inf", "probability", "sum(prob", "val >= zero", "input_val >= zero", "cumdist"]
            .iter()
            .any(|word| lower.contains(word));
    match (about_index, about_nan) {
        (true, _) => Some(CauseKind::BadIndex),
        (false, true) => Some(CauseKind::NanInput),
        (false, false) => None,
    }
}

/// A sanitizer record.
pub fn sanitizer(record: &SanitizerRecord) -> Option<Claim> {
    let claim = match record.finding {
        SanitizerFinding::OutOfBounds | SanitizerFinding::FreedMemory | SanitizerFinding::InvalidAccess => {
            Claim::direct(FailureClass::IllegalAddress, "the sanitizer caught the access")
        }
        SanitizerFinding::Misaligned => {
            Claim::direct(FailureClass::MisalignedAddress, "the sanitizer caught the access")
        }
        SanitizerFinding::Race => Claim::direct(FailureClass::Race, "the sanitizer found a hazard"),
        SanitizerFinding::UninitializedRead => Claim::direct(
            FailureClass::UninitializedRead,
            "the sanitizer found a read of memory that nothing wrote",
        ),
        SanitizerFinding::Barrier => {
            Claim::direct(FailureClass::BarrierError, "the sanitizer found a barrier error")
        }
        SanitizerFinding::Leak => {
            Claim::new(FailureClass::Leak, Weight::Program, "the sanitizer found leaked memory")
        }
        SanitizerFinding::AllocatorError => {
            Claim::direct(FailureClass::ApiError, "an allocator call was wrong")
        }
        SanitizerFinding::ApiError => return api_echo(record),
        SanitizerFinding::UnusedMemory => return None,
        SanitizerFinding::Other => Claim::direct(other_finding(&record.head), "the sanitizer reports it"),
    };
    let freed = record.finding == SanitizerFinding::FreedMemory;
    Some(claim.cause(freed.then_some(CauseKind::FreedMemory)))
}

fn other_finding(head: &str) -> FailureClass {
    let lower = head.to_ascii_lowercase();
    if lower.contains("illegal instruction")
        || lower.contains("program counter")
        || lower.contains("invalid pc")
    {
        FailureClass::IllegalInstruction
    } else if lower.contains("stack overflow") || lower.contains("address") || lower.contains("access") {
        FailureClass::IllegalAddress
    } else {
        FailureClass::Undecided
    }
}

/// The sanitizer's echo of a failed API call: it locates nothing, and stands for itself only when nothing else does.
fn api_echo(record: &SanitizerRecord) -> Option<Claim> {
    let row = record.code.and_then(cuda_status::by_code);
    let sticky = row.is_some_and(cuda_status::CudaStatus::is_sticky_device_fault);
    let class = match row {
        Some(row) if sticky || matches!(row.class, FailureClass::GpuOom | FailureClass::Undecided) => {
            row.class
        }
        _ => FailureClass::ApiError,
    };
    let relayed = sticky.then_some(Messenger::SanitizerEcho);
    let weight = match class {
        FailureClass::Undecided => Weight::Hint,
        _ if sticky => Weight::Direct,
        _ => Weight::Program,
    };
    Some(
        Claim::new(class, weight, "the sanitizer echoes a failed API call")
            .code("cuda", record.code.map(i64::from), row.map(|row| row.runtime.to_owned()))
            .relayed(relayed),
    )
}

/// A launch that a debugger or a dump names as the faulting one.
pub fn faulting_launch(launch: &FaultingLaunch) -> Option<Claim> {
    let class = match launch.exception_number {
        Some(number) => exception_class(number),
        None => exception_text_class(launch.exception.as_deref()?),
    }?;
    Some(Claim::direct(class, "the GPU's own exception record"))
}

/// CUDBG exception numbers (cuda-gdb's `cudadebugger.h`).
fn exception_class(number: u32) -> Option<FailureClass> {
    Some(match number {
        1 | 5 | 7 | 10 | 14 => FailureClass::IllegalAddress,
        2 | 3 | 9 | 19 => FailureClass::LaunchFailure,
        6 | 11 => FailureClass::MisalignedAddress,
        4 | 8 => FailureClass::IllegalInstruction,
        12 => FailureClass::DeviceAssert,
        13 | 15..=18 | 20..=22 => FailureClass::LaunchFailure,
        _ => return None,
    })
}

fn exception_text_class(text: &str) -> Option<FailureClass> {
    let lower = text.to_ascii_lowercase();
    let class = if lower.contains("misaligned") {
        FailureClass::MisalignedAddress
    } else if lower.contains("illegal instruction")
        || lower.contains("invalid pc")
        || lower.contains("program counter")
    {
        FailureClass::IllegalInstruction
    } else if lower.contains("assert") {
        FailureClass::DeviceAssert
    } else if lower.contains("address") || lower.contains("illegal") || lower.contains("mmu") {
        FailureClass::IllegalAddress
    } else if lower.contains("stack") || lower.contains("syscall") || lower.contains("cluster") {
        FailureClass::LaunchFailure
    } else {
        return None;
    };
    Some(class)
}

/// A launch refused before it ran.
pub fn refused(_: &LaunchRefused) -> Claim {
    Claim::direct(FailureClass::LaunchConfig, "the launch was refused for its resources")
        .cause(Some(CauseKind::LaunchLimit))
}

/// An Xid.
pub fn xid(xid: &Xid) -> Option<Claim> {
    // Aftermath that names its own root counts as that one.
    let number = xid.caused_by.filter(|_| matches!(xid.xid, 43 | 45)).unwrap_or(xid.xid);
    let (class, weight, cause) = match number {
        13 if xid.xid == 13 => match xid13_class(xid) {
            Some(class) => (class, Weight::Exit, None),
            None => {
                return Some(notice(
                    13,
                    FailureClass::LaunchFailure,
                    "the driver logged an exception of the engine, and no reason",
                ));
            }
        },
        31 => (FailureClass::IllegalAddress, Weight::Exit, None),
        43 if xid.xid == 43 => {
            let why = "the driver stopped a channel of the program; what went wrong is not in this line";
            return Some(notice(43, FailureClass::LaunchFailure, why));
        }
        63 => {
            let why = "the GPU marked faulty memory for replacement; nothing shows that a job failed of it";
            return Some(notice(63, FailureClass::Hardware, why));
        }
        // `… changed from 0x2 (Node Reboot Required) to 0x0 (None)` is good news.
        154 if !xid.detail.contains("to 0x0") => {
            let why =
                "the driver asks for a reset, a drain or a reboot after a fault that is not in the input";
            return Some(notice(154, FailureClass::Hardware, why));
        }
        // Aftermath and information about another Xid, corrected errors: they say nothing about what failed.
        13 | 43 | 45 | 92 | 121 | 154 => return None,
        48 | 64 | 94 | 95 | 140 | 156 | 157 | 171 | 172 => {
            (FailureClass::Hardware, Weight::Direct, Some(CauseKind::Ecc))
        }
        74 | 136 | 137 | 144..=150 | 155 => (FailureClass::Hardware, Weight::Direct, Some(CauseKind::Nvlink)),
        79 | 167 => (FailureClass::Hardware, Weight::Direct, Some(CauseKind::GpuLost)),
        119 | 120 => (FailureClass::Driver, Weight::Direct, Some(CauseKind::GspFirmware)),
        62 | 143 | 158 | 110 => (FailureClass::Hardware, Weight::Direct, None),
        8 | 44 | 46 | 109 => (FailureClass::LaunchFailure, Weight::Exit, None),
        _ => (FailureClass::Undecided, Weight::Hint, None),
    };
    Some(
        Claim::new(class, weight, "the kernel driver reports it")
            .code("xid", Some(i64::from(number)), None)
            .cause(cause),
    )
}

/// An Xid that tells of another fault, or of one that the GPU mended: news where nothing else is, and no failure beside one.
fn notice(number: i64, class: FailureClass, why: &'static str) -> Claim {
    Claim::new(class, Weight::State, why).code("xid", Some(number), None)
}

/// Xid 13 carries the SM's reason, as text or as the low byte of its exception register.
fn xid13_class(xid: &Xid) -> Option<FailureClass> {
    let reason = xid.sm_reason.as_deref().unwrap_or("").to_ascii_lowercase();
    if reason.contains("misaligned address")
        || reason.contains("misaligned register")
        || reason.contains("misaligned pc")
    {
        return Some(FailureClass::MisalignedAddress);
    }
    if reason.contains("illegal instruction") || reason.contains("invalid pc") {
        return Some(FailureClass::IllegalInstruction);
    }
    if reason.contains("address") || reason.contains("mmu fault") {
        return Some(FailureClass::IllegalAddress);
    }
    match xid.esr? {
        0x09..=0x0b => Some(FailureClass::IllegalInstruction),
        0x0e | 0x10 | 0x17 => Some(FailureClass::IllegalAddress),
        0x05 | 0x07 | 0x08 | 0x0f => Some(FailureClass::MisalignedAddress),
        _ => None,
    }
}

/// A driver line without an Xid.
pub fn driver_fault(fault: &DriverFault) -> Claim {
    let (class, cause) = match fault.kind {
        DriverFaultKind::GpuLost => (FailureClass::Hardware, Some(CauseKind::GpuLost)),
        DriverFaultKind::Ecc => (FailureClass::Hardware, Some(CauseKind::Ecc)),
        DriverFaultKind::Nvlink => (FailureClass::Hardware, Some(CauseKind::Nvlink)),
        DriverFaultKind::Pcie | DriverFaultKind::NeedsReset | DriverFaultKind::Diagnostic => {
            (FailureClass::Hardware, None)
        }
        DriverFaultKind::Gsp => (FailureClass::Driver, Some(CauseKind::GspFirmware)),
        DriverFaultKind::VersionMismatch => (FailureClass::Driver, Some(CauseKind::VersionMismatch)),
        DriverFaultKind::Init | DriverFaultKind::NoDevice => (FailureClass::Driver, None),
    };
    if fault.state {
        return Claim::new(class, Weight::State, "the state of the machine; nothing ties it to the failure")
            .cause(cause);
    }
    // Corrected bus errors are common on healthy machines.
    let weight = if fault.kind == DriverFaultKind::Pcie { Weight::Hint } else { Weight::Direct };
    Claim::new(class, weight, "the driver reports it").cause(cause)
}
