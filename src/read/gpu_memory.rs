//! Messages that GPU memory ran out: allocators of frameworks, engines and libraries.
//!
//! ```text
//! torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4096.00 GiB. GPU 0 has a total capacity of 139.80 GiB
//! ```
//!
//! In: a line. Out: [`Data::GpuOutOfMemory`], sizes in bytes. It leaves a bare status 2 to the CUDA status reader, the
//! host's memory to the kernel log reader, and NCCL's own allocations to NCCL's.

use super::event::{Data, GpuOutOfMemory};
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;
use super::scan::has_any_case;

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &[
    "ut of memory",
    "out_of_memory",
    "OutOfMemory",
    "OutOfGPUMemory",
    "Out of GPU memory",
    "RESOURCE_EXHAUSTED",
    "OOM when allocating",
    "Failed to allocate memory for requested",
    "Failed to allocate request",
    "amount of GPU memory",
    "Allocation on device",
    "No available memory for the cache",
    "Free memory on device",
    "to allocate CUDA",
    "ResourceExhausted",
    "Resource exhausted: ",
    "Dst tensor is not initialized",
    "OutOfDeviceMemory",
];

/// A phrase and the producer that prints it.
const PRODUCERS: &[(&str, &str)] = &[
    ("No available memory for the cache", "vllm"),
    ("desired GPU memory utilization", "vllm"),
    ("cupy", "cupy"),
    ("Out of memory allocating", "cupy"),
    ("RESOURCE_EXHAUSTED", "xla"),
    ("OOM when allocating", "tensorflow"),
    ("_bfc", "tensorflow"),
    ("ggml", "llama.cpp"),
    ("to allocate CUDA", "llama.cpp"),
    ("cudaMalloc failed", "llama.cpp"),
    ("Failed to allocate memory for requested", "onnxruntime"),
    ("on GPU ", "paddle"),
    ("Requested amount of GPU memory", "tensorrt"),
    ("Error Code", "tensorrt"),
    ("Requested size was", "tensorrt"),
    ("Out of GPU memory", "cuda.jl"),
    ("OutOfGPUMemory", "cuda.jl"),
    ("rmm", "rapids"),
    ("out_of_memory", "rapids"),
    ("HIP out of memory", "pytorch"),
    ("CUDA out of memory", "pytorch"),
    ("torch", "pytorch"),
    ("Allocation on device", "pytorch"),
    ("Triton", "triton"),
];

static IS_GPU: Pattern = Pattern::new(
    r"(?x)
      (?:CUDA|HIP|GPU|XPU|device|MPS\ backend)\ out\ of\ memory(?:[^\x22'`]|$)
    | Dst\ tensor\ is\ not\ initialized
    | kIOGPUCommandBufferCallbackErrorOutOfMemory | ErrorOutOfDeviceMemory | VK_ERROR_OUT_OF_DEVICE_MEMORY
    | Out\ of\ memory\ (?:allocating|error\ on\ GPU|while\ trying\ to\ allocate|trying\ to\ allocate)
    | OOM\ when\ allocating
    | RESOURCE_EXHAUSTED:\ (?:.*(?:[Oo]ut\ of\ memory|OOM|[Ff]ailed\ to\ allocate|allocat))
    | ResourceExhausted(?:Error)?:.*(?:allocat|memory)
    | Failed\ to\ allocate\ (?:memory\ for\ requested\ buffer|request\ for)
    | [Rr]equested\ amount\ of\ GPU\ memory
    | OutOfMemory\ \((?:Requested|no\ further)
    | Allocation\ on\ device
    | Out\ of\ GPU\ memory
    | OutOfGPUMemoryError
    | No\ available\ memory\ for\ the\ cache
    | Free\ memory\ on\ device.*is\ less\ than\ desired
    | cudaMalloc\ failed:\ out\ of\ memory
    | failed\ to\ allocate\ CUDA\d*\ buffer
    | unable\ to\ allocate\ CUDA\d*\ buffer
    | \b(?:cuda|torch|cupy|driver|memory)[\w.]*\.OutOfMemoryError
    | \bOutOfMemoryError:\ (?:CUDA|HIP|Allocation|Out\ of\ memory)
    | bad_alloc:\ out_of_memory
    | CUDA\ memory\ exhausted
    ",
);
static HARMLESS: Pattern = Pattern::new(
    r"(?i)not a failure|\bretry|will retry|Killed process|cgroup out of memory|except |catch|if you|to avoid|may\b|could\b",
);
static REQUESTED: Pattern = Pattern::new(
    r"(?ix)(?:tried\ to\ allocate|trying\ to\ allocate|allocating|cannot\ allocate|requested\ buffer\ of\ size|buffer\ of\ size|requested\ size\ was|request\ for|amount\ of\ GPU\ memory|failed\ to\ allocate)\W*([\d.,]+)\ ?((?:[KMGT]i?B)|bytes|B)?\b",
);
static FREE: Pattern = Pattern::new(
    r"(?i)of which ([\d.,]+) ?([KMGT]i?B|bytes) is free|([\d.,]+) ?([KMGT]i?B|bytes) free[;)]|available memory is only ([\d.,]+) ?([KMGT]i?B|bytes)|Free memory on device\D*([\d.,]+)/[\d.,]+ ?([KMGT]i?B)",
);
static TOTAL: Pattern = Pattern::new(
    r"(?i)total capacity of ([\d.,]+) ?([KMGT]i?B|bytes)|([\d.,]+) ?([KMGT]i?B|bytes) total capacity|Free memory on device\D*[\d.,]+/([\d.,]+) ?([KMGT]i?B)",
);
static UNALLOCATED: Pattern =
    Pattern::new(r"(?i)([\d.,]+) ?([KMGT]i?B|bytes) is reserved by PyTorch but unallocated");
static RESERVED: Pattern = Pattern::new(r"(?i)([\d.,]+) ?([KMGT]i?B|bytes) reserved\b");
static ALLOCATED: Pattern = Pattern::new(r"(?i)([\d.,]+) ?([KMGT]i?B|bytes) already allocated");
static OTHER: Pattern = Pattern::new(r"^(\d{1,10}) has ([\d.,]+) ?([KMGT]i?B|bytes) memory in use");
/// Other processes that are listed.
const OTHER_LIMIT: usize = 16;
static DEVICE: Pattern = Pattern::new(r"(?i)(?:\bGPU[ :_]?|\bdevice:? ?(?:GPU:)?|\bCUDA)(\d{1,3})\b");

/// Reads a message that GPU memory ran out.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let Some(found) = parse(line.body()).or_else(|| wrapped(line, cx)) else { return Taken::No };
    cx.push(line, Data::GpuOutOfMemory(found));
    Taken::Part
}

/// A message that was wrapped inside its phrase: `Resource exhausted: Out` and `of memory while trying to allocate …` below.
fn wrapped(line: &Line<'_>, cx: &Cx<'_>) -> Option<GpuOutOfMemory> {
    let body = line.body().trim_end();
    let open = ["Resource exhausted: ", "RESOURCE_EXHAUSTED: "].iter().any(|head| body.contains(head));
    let next = cx.after_in_stream(line, 1).next().filter(|_| open)?;
    parse(&format!("{body} {}", next.body().trim_start()))
}

/// What the message says; none where it is no such message.
#[must_use]
pub fn parse(body: &str) -> Option<GpuOutOfMemory> {
    let found = IS_GPU.find(body)?;
    let before = body.get(..found.end()).unwrap_or(body);
    if HARMLESS.is_match(before) || body.contains("not a failure") || body.contains("NCCL WARN") {
        return None;
    }
    Some(GpuOutOfMemory {
        requested_bytes: bytes_of(&REQUESTED, body),
        free_bytes: bytes_of(&FREE, body),
        total_bytes: bytes_of(&TOTAL, body),
        reserved_unallocated_bytes: bytes_of(&UNALLOCATED, body)
            .or_else(|| bytes_of(&RESERVED, body)?.checked_sub(bytes_of(&ALLOCATED, body)?)),
        // Where the message doesn't tell this process from the others (in a container it can't), the one that it names may be
        // this one.
        others: match has_any_case(body, "this process has") {
            true => body.split("Process ").skip(1).take(OTHER_LIMIT).filter_map(other).collect(),
            false => Vec::new(),
        },
        device: DEVICE.number(body),
        producer: PRODUCERS
            .iter()
            .find(|(mark, _)| body.contains(mark))
            .map_or("cuda", |(_, producer)| *producer),
    })
}

/// `91234 has 22.10 GiB memory in use`: another process with what it holds.
fn other(text: &str) -> Option<(u32, u128)> {
    let found = OTHER.captures(text)?;
    let part = |index: usize| found.get(index).map(|part| part.as_str());
    Some((part(1)?.parse().ok()?, size_in_bytes(part(2)?, part(3)?)?))
}

/// The size that a pattern finds: pairs of groups (number, unit), the first pair that took part.
fn bytes_of(pattern: &Pattern, text: &str) -> Option<u128> {
    let found = pattern.captures(text)?;
    let part = |index: usize| found.get(index).map(|part| part.as_str());
    let (number, unit) = (1..found.len()).step_by(2).find_map(|at| Some((part(at)?, part(at + 1))))?;
    size_in_bytes(number, unit.unwrap_or("B"))
}

/// `139.80`, `GiB` as bytes. Decimal units are read as binary ones: PyTorch and its kin print `GB` for GiB.
fn size_in_bytes(number: &str, unit: &str) -> Option<u128> {
    let shift = match unit.as_bytes().first().map(u8::to_ascii_uppercase) {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(b'T') => 40,
        _ => 0,
    };
    let digits: String = number.chars().filter(|&character| character != ',').collect();
    let digits = digits.trim_end_matches('.');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole: u128 = whole.parse().ok()?;
    let fraction = fraction.get(..fraction.len().min(9))?;
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    whole.checked_mul(1 << shift)?.checked_add(part.checked_mul(1 << shift)? / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pytorchs_sizes_are_read_in_both_wordings() {
        let new = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4096.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 139.29 GiB is free. Including non-PyTorch memory, this process has 518.00 MiB memory in use.";
        let expected = GpuOutOfMemory {
            requested_bytes: Some(4096 << 30),
            free_bytes: Some(149_561_498_664),
            total_bytes: Some(150_109_106_995),
            reserved_unallocated_bytes: None,
            others: Vec::new(),
            device: Some(0),
            producer: "pytorch",
        };
        assert_eq!(parse(new), Some(expected));
        let old = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 3; 10.75 GiB total capacity; 9.62 GiB already allocated; 9.50 MiB free; 9.73 GiB reserved)";
        let expected = GpuOutOfMemory {
            requested_bytes: Some(20 << 20),
            free_bytes: Some(9_961_472),
            total_bytes: Some(11_542_724_608),
            reserved_unallocated_bytes: Some(10_447_507_947 - 10_329_396_346),
            others: Vec::new(),
            device: Some(3),
            producer: "pytorch",
        };
        assert_eq!(parse(old), Some(expected));
    }

    #[test]
    fn other_producers_are_known() {
        let table = [
            (
                "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1234 bytes.",
                "xla",
                Some(1234),
            ),
            (
                "ResourceExhaustedError: OOM when allocating tensor with shape[8,9] and type float on device:GPU:0 by allocator GPU_0_bfc",
                "tensorflow",
                None,
            ),
            (
                "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1024.00 MiB on device 0: cudaMalloc failed: out of memory",
                "llama.cpp",
                Some(1 << 30),
            ),
            (
                "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,048,576 bytes (allocated so far: 0 bytes).",
                "cupy",
                Some(1 << 20),
            ),
            (
                "Out of memory error on GPU 0. Cannot allocate 1.000000GB memory on GPU 0, 9GB has been allocated and available memory is only 500.0MB.",
                "paddle",
                Some(1 << 30),
            ),
            (
                "bfc_arena.cc:331 Failed to allocate memory for requested buffer of size 4096",
                "onnxruntime",
                Some(4096),
            ),
            (
                "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
                "vllm",
                None,
            ),
            (
                "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)",
                "pytorch",
                None,
            ),
        ];
        for (text, producer, requested) in table {
            let found = parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.producer, found.requested_bytes), (producer, requested), "{text}");
        }
    }

    #[test]
    fn the_hosts_memory_and_retries_are_left_alone() {
        for text in [
            "Also once I got \"CUDA out of memory\" last week",
            "Out of memory: Killed process 12 (python3) total-vm:1kB",
            "Memory cgroup out of memory: Killed process 12",
            "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.3GiB. The caller indicates that this is not a failure",
            "h:1:2 [0] NCCL WARN Failed to CUDA calloc 16 bytes: CUDA out of memory",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
