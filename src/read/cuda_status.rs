//! CUDA statuses, whoever prints them: by text, by name or by number (formats.md 1.1, 1.2).
//!
//! ```text
//! CUDA error at crash.cu:63 code=710(cudaErrorAssert) "cudaDeviceSynchronize()" : device-side assert triggered
//! ```
//!
//! In: a line, and the few beside it that belong to the message. Out: [`Data::Status`] with its printer, the place and
//! call that *reported* it, and whether the printer relays it; [`Data::LaunchMention`] where the message names a launch.
//! It leaves advice, device assertions, sanitizer records, Xid lines and allocator messages to their readers.

mod catalogue;
mod neighbours;
mod number;
mod printer;
mod relay;
mod sense;

use super::event::{Data, Messenger, Status};
use super::gpu_memory;
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;
use super::place;
use crate::tables::cuda_status::{self, CudaStatus, Wording};

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &[
    "CUDA error",
    "CUDA Error",
    "CUDA ERROR",
    "Cuda error",
    "cuda error",
    "cuda runtime error",
    "CUDA runtime error",
    "CUDA Runtime",
    "Cuda Runtime",
    "CUDA driver",
    "CUDA failure",
    "Cuda failure",
    "CUDA warning",
    "CUDA_ERROR_",
    "cudaError",
    "cudaSuccess",
    "CUDA_SUCCESS",
    "CuError(",
    "results in UNKNOWN_CUDA",
    "HIP error",
    "hipError",
    "llegal memory access",
    "llegal address in",
    "llegal instruction was",
    "isaligned address",
    "nspecified launch failure",
    "device-side assert triggered",
    "no kernel image",
    "nvalid device function",
    "kernel image is invalid",
    "PTX was compiled",
    "PTX JIT",
    "invalid program counter",
    "global/shared address",
    "launch timed out",
    "too many resources requested",
    "invalid configuration argument",
    "stream is capturing",
    "orrectable ECC error",
    "orrectable NVLink error",
    "CUDA-capable device",
    "CUDA unknown error",
    "invalid resource handle",
    "cudaGetDeviceCount",
    "cuMem",
    "returned error code",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuLaunchKernel",
    "cuda driver library",
    "ILLEGAL_ADDRESS",
    "ILLEGAL_INSTRUCTION",
    "IllegalAddress",
    "CUDA kernel fail",
    "CUDA graph capture",
    "unsupported display driver",
    "forward compatibility was attempted",
    "hardware stack error",
];

static NAME: Pattern = Pattern::new(
    r"\b(?:cudaError[A-Z]\w*|CUDA_ERROR_[A-Z][A-Z_0-9]*|hipError[A-Z]\w*|(?:[A-Z]+_){1,4}[A-Z]+)\b",
);
static UNKNOWN_TEXT: Pattern = Pattern::new(
    r"^(?:[\w.]*(?:Error|Exception): |what\(\):\s+|terminate.*: )?(?:CUDA error|HIP error|Triton Error \[\w+\]): [a-z]",
);
/// ggml's last line, after the lines that name the error: `ggml-cuda.cu:88: CUDA error`.
static UNNAMED: Pattern = Pattern::new(r"^\s*(?:GGML_ABORT: )?\S+\.cuh?:\d+: (?:CUDA|ROCm) error\s*$");
static LIBRARY_NAME: Pattern =
    Pattern::new(r"\b(?:CU[A-Z]+_STATUS_|NVRTC_ERROR|CUFFT_|HIPBLAS_STATUS|nccl[A-Z])");
static API: Pattern = Pattern::new(
    r"((?:::)?\b(?:cuda[A-Z]|cu[A-Z][a-z]|hip[A-Z])\w*)(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?",
);
static OPERATION: Pattern = Pattern::new(
    r"(?i)(?:could not|failed to|unable to|error) ((?:synchronize|launch|unload|load|free|query|poll|record|destroy|allocate|create|copy|memset|memcpy|enqueue)[\w -]{0,40}?)\s*(?:[:;(\x22]|$)",
);
static OPERATION_FAILED: Pattern = Pattern::new(r"\b(\w+(?: \w+)?): failed to synchronize|\b(\w+) failed:");
static DEVICE: Pattern =
    Pattern::new(r"(?i)(?:current device:|\bGPU=|\bGPU #|\bon (?:device|GPU)|\bdevice ?=) ?(\d{1,3})\b");

/// Blender and other renderers have their own, shorter texts; each needs CUDA's name in the line.
const SHORT_TEXTS: &[(&str, u32)] = &[
    ("Illegal address in ", 700),
    ("Illegal instruction in ", 715),
    ("Misaligned address in ", 716),
    ("Invalid address space in ", 717),
    ("Invalid program counter in ", 718),
    ("Launch failed in ", 719),
    ("Launch exceeded timeout in ", 702),
    ("Launch exceeded resources in ", 701),
    ("No binary for GPU in ", 209),
    ("IllegalAddress", 700),
    ("IllegalInstruction", 715),
    ("MisalignedAddress", 716),
    ("CUDA unknown error", 999),
    ("during CUDA graph capture", 900),
];

/// What a message says of a status.
#[derive(Debug, Default, PartialEq)]
struct Found {
    status: Option<&'static CudaStatus>,
    number: Option<u32>,
    name: Option<String>,
}

/// Reads the status of a line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = sense::before_advice(line.body());
    let Some(mut found) = find(body) else { return Taken::No };
    if catalogue::holds(line, cx) {
        return Taken::No;
    }
    if UNNAMED.is_match(body) && cx.after_in_stream(line, 1).any(|next| find(next.body()).is_some()) {
        return Taken::No; // The head of a message of two lines.
    }
    let cut = found.status.is_none() && found.name.is_none() && ends_here(line, cx);
    if cut {
        found.status = cuda_status::cut_text(body.trim_end());
    }
    let mut status = Status {
        code: found.status.map(|status| status.code),
        printed_number: found.number,
        printed_name: found.name,
        producer: printer::printer_of(body).unwrap_or(""),
        messenger: relay::messenger_of(body),
        api: api_in(body),
        reported_from: place::find(body),
        device: DEVICE.number(body),
        cut: cut && found.status.is_some(),
    };
    neighbours::complete(&mut status, line, cx);
    if status.producer.is_empty() {
        status.producer = printer::printer_of(&line.text).unwrap_or("cuda");
    }
    // An allocator relays only what a kernel broke; a refused `cudaFree(pointer)` is its own error.
    let is_relayed = found.status.is_none_or(CudaStatus::is_sticky_device_fault);
    if status.messenger == Some(Messenger::Allocator) && !is_relayed {
        status.messenger = None;
    }
    cx.push(line, Data::Status(status));
    if let Some(launch) = neighbours::launch_in(body) {
        cx.push(line, Data::LaunchMention(launch));
    }
    Taken::Part
}

/// Whether nothing but blanks follows a line.
fn ends_here(line: &Line<'_>, cx: &Cx<'_>) -> bool {
    let rest = usize::try_from(line.end).ok().and_then(|end| cx.bytes().get(end..));
    rest.is_some_and(|rest| rest.len() <= 64 && rest.trim_ascii().is_empty())
}

/// The status that a message reports; none where it only speaks of one.
fn find(body: &str) -> Option<Found> {
    if sense::is_foreign(body) || gpu_memory::parse(body).is_some() {
        return None;
    }
    let text = text_of(body);
    let name = name_of(body, text);
    let number = number_of(body, text.or(name.map(|(status, _)| status)));
    let status = match (text, number, name) {
        (Some(text), ..) => Some(text),
        (None, Some((_, by_number)), Some((by_name, _))) if by_name.code == 999 => Some(by_number),
        (None, _, Some((by_name, _))) => Some(by_name),
        (None, Some((_, by_number)), None) => Some(by_number),
        (None, None, None) => None,
    };
    if status.is_some_and(|status| status.code == 600) {
        return None; // An event that isn't done yet is no failure.
    }
    let is_unknown = status.is_none()
        && (UNKNOWN_TEXT.is_match(body) || UNNAMED.is_match(body))
        && !LIBRARY_NAME.is_match(body);
    (status.is_some() || is_unknown).then(|| Found {
        status,
        number: number.map(|(number, _)| number),
        name: name.map(|(_, name)| name.to_owned()),
    })
}

/// The status whose text stands in the message as a report.
fn text_of(body: &str) -> Option<&'static CudaStatus> {
    let cuda = sense::speaks_of_cuda(body);
    let mut everyday = None;
    for found in cuda_status::texts_in(body) {
        if sense::only_speaks_of(body, found.range.start) || sense::is_source(body) {
            continue;
        }
        if found.status.wording == Wording::CudaOnly {
            return Some(found.status);
        }
        // `out of memory` beside CUDA's name is a status only where the line is an error report of its own.
        if cuda
            && body
                .get(..found.range.start)
                .is_some_and(|before| before.trim_end().ends_with([':', '"', '\'', '(', ',', '-']))
        {
            everyday.get_or_insert(found.status);
        }
    }
    everyday.or_else(|| {
        let stands_alone = |text: &str| {
            body.find(text).is_some_and(|at| {
                let before = body.get(..at).and_then(|before| before.chars().next_back());
                !before.is_some_and(char::is_alphanumeric)
            })
        };
        let short = SHORT_TEXTS.iter().find(|(text, _)| stands_alone(text))?;
        (cuda && !sense::is_source(body)).then(|| cuda_status::by_code(short.1)).flatten()
    })
}

/// The status whose name stands in the message, and the name. Beside a text only a name that agrees counts: a check may
/// name the statuses that it allows (`e == cudaSuccess || e == cudaErrorCudartUnloading: CUDA: an illegal …`).
fn name_of<'b>(body: &'b str, text: Option<&'static CudaStatus>) -> Option<(&'static CudaStatus, &'b str)> {
    let mut from = 0;
    while let Some(found) = body.get(from..).and_then(|rest| NAME.find(rest)) {
        let (name, at) = (found.as_str(), from + found.start());
        from += found.end();
        let Some(status) = cuda_status::by_name(name) else { continue };
        let reports = match text {
            Some(text) => text.code == status.code,
            None => {
                !sense::is_source(body)
                    && !sense::only_speaks_of(body, at)
                    && sense::name_fails(body, name)
                    && !body.get(..at).is_some_and(|before| before.ends_with("== "))
            }
        };
        if reports {
            return Some((status, name));
        }
    }
    None
}

/// The number as printed and the status that it means; `other` is what the text or name says.
fn number_of(body: &str, other: Option<&'static CudaStatus>) -> Option<(u32, &'static CudaStatus)> {
    if let Some(number) = number::number_in(body).filter(|_| sense::speaks_of_cuda(body)) {
        let old = printer::prints_old_numbers(body);
        if let Some(status) = cuda_status::by_printed_number(number, other, old)
            && !(other.is_none() && (sense::is_source(body) || !says_that_cuda_failed(body)))
        {
            return Some((number, status));
        }
    }
    let number = number::bracketed(body)?;
    let status = cuda_status::by_printed_number(number, other, false)?;
    other.is_some_and(|other| other.code == status.code).then_some((number, status))
}

/// Whether a line that holds a number only, without text or name, says that a CUDA call failed.
fn says_that_cuda_failed(body: &str) -> bool {
    static CUDA_FAILED: Pattern = Pattern::new(
        r"(?i:\bcuda[\w ]*(?:error|fail))|cudaSuccess|CUDA_SUCCESS|CuError|results in|\b(?:cuda|cu|hip)[A-Z][a-z]\w+(?:\(.*\): \d|.*(?:fail|[Ee]rror|returned|status))|vs\.? 0|library init failure",
    );
    body.contains("CUDA_SUCCESS") || (CUDA_FAILED.is_match(body) && !LIBRARY_NAME.is_match(body))
}

/// The API call, or in words the operation, that reported the status.
fn api_in(body: &str) -> Option<String> {
    let mut from = 0;
    while let Some(found) = body.get(from..).and_then(|rest| API.captures(rest)) {
        let whole = found.get(0)?;
        let name = found.get(1)?.as_str();
        let bare = name.trim_start_matches(':');
        let is_type = [
            "cudaError",
            "hipError",
            "cudaSuccess",
            "cudaMemcpyHost",
            "cudaMemcpyDevice",
            "cuError",
            "cudaStream_t",
        ]
        .iter()
        .any(|prefix| bare.starts_with(prefix));
        if !is_type {
            return Some(whole.as_str().to_owned());
        }
        from += whole.end().max(1);
    }
    let operation = OPERATION.captures(body).or_else(|| OPERATION_FAILED.captures(body))?;
    let words = operation.get(1).or_else(|| operation.get(2))?.as_str().trim();
    (!words.is_empty()).then(|| words.to_owned())
}

#[cfg(test)]
mod tests;
