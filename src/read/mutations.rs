//! Property test of all readers: lines of every producer, cut, glued and garbled, never panic and never leave the input.
//!
//! In: lines in the producers' forms. Out: nothing. It leaves exact values to the tests of each reader.

use proptest::prelude::*;

use super::event::{Event, InputId};
use super::{read_text, sanitizer_xml};

const LINES: &[&str] = &[
    "CUDA error at crash.cu:63 code=710(cudaErrorAssert) \"cudaDeviceSynchronize()\" : device-side assert triggered",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "CUDA.CuError(code=CUDA.cudaError_enum(0x000002bc), meta=nothing)",
    "  current device: 7, in function ggml_backend_cuda_synchronize at /g/ggml-cuda.cu:2461",
    "crash.cu:23: void asserting(const int *, int): block: [0,0,0], thread: [0,0,0] Assertion `index[i] < n` failed.",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4096.00 GiB. GPU 0 has a total capacity of 139.80 GiB",
    "RuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasCreate(handle)`",
    "!!!! kernel execution error. (m: 1280, n: 3075, k: 5120, error: 13)",
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 2097152, Hardware limit: 232448.",
    "========= Invalid __global__ write of size 4 bytes",
    "=========     at fill_rows(float *, int, int, int)+0xf0 in crash.cu:12",
    "=========     by thread (32,0,0) in block (65892,0,0)",
    "=========     and is 8,543,272,832 bytes before the nearest allocation at 0x7fa444000000 of size 9,175,040,000 bytes",
    "=========         Host Frame: main [0x8ee5] in crash",
    "========= Error: Race reported between Write access at racy(int *)+0xa0 in crash.cu:31",
    "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)",
    "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
    "Memory access fault by GPU node-2 (Agent handle: 0x55d0) on address 0x7f00.",
    "GPU assertion failure message = CUDA_KERNEL_ASSERT2(i < n)",
    "triton.compiler.errors.CompilationError: at 12:10:",
    "Failed to launch CUDA kernel: add with block dimensions: 1024x1x1 and grid dimensions: 65535x2x1: CUDA_ERROR_ILLEGAL_ADDRESS",
];

/// What is done to a line.
#[derive(Debug, Clone)]
enum Garble {
    Cut(usize),
    Drop(usize),
    Insert(usize, String),
    Repeat(usize),
}

fn garble() -> impl Strategy<Value = Garble> {
    prop_oneof![
        any::<usize>().prop_map(Garble::Cut),
        any::<usize>().prop_map(Garble::Drop),
        (any::<usize>(), "\\PC{0,4}|[\\r\\n\\x1b\\x00]|[0-9]{1,30}|[()\\[\\]:`']{1,3}")
            .prop_map(|(at, text)| Garble::Insert(at, text)),
        any::<usize>().prop_map(Garble::Repeat),
    ]
}

fn apply(line: &str, garble: &Garble) -> String {
    let mut characters: Vec<char> = line.chars().collect();
    let within = |at: usize| at % (characters.len() + 1);
    match garble {
        Garble::Cut(at) => characters.truncate(within(*at)),
        Garble::Drop(at) => drop(characters.drain(..within(*at))),
        Garble::Insert(at, text) => {
            let at = within(*at);
            characters.splice(at..at, text.chars());
        }
        Garble::Repeat(at) => {
            let tail: Vec<char> = characters.iter().skip(within(*at)).copied().collect();
            characters.extend(tail);
        }
    }
    characters.into_iter().collect()
}

fn assert_inside(events: &[Event], bytes: &[u8]) {
    let lines = bytes.split(|&byte| byte == b'\n').count() as u64;
    for event in events {
        assert!(event.span.byte <= bytes.len() as u64, "{event:?}");
        assert!(event.span.line >= 1 && event.span.line <= lines, "{event:?}");
        assert!(event.text.len() <= Event::TEXT_LIMIT_BYTES);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbled_lines_never_panic(
        picks in prop::collection::vec((0..LINES.len(), prop::collection::vec(garble(), 0..3)), 1..12),
    ) {
        let mut log = String::new();
        for (pick, garbles) in picks {
            let line = LINES.get(pick).copied().unwrap_or("");
            log.push_str(&garbles.iter().fold(line.to_owned(), |line, garble| apply(&line, garble)));
            log.push('\n');
        }
        assert_inside(&read_text(InputId(0), log.as_bytes()).events, log.as_bytes());
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), pick in 0..LINES.len()) {
        let mut log = bytes.clone();
        log.extend_from_slice(LINES.get(pick).copied().unwrap_or("").as_bytes());
        log.extend_from_slice(&bytes);
        assert_inside(&read_text(InputId(0), &log).events, &log);
        let mut xml = b"<ComputeSanitizerOutput><record>".to_vec();
        xml.extend_from_slice(&bytes);
        assert_inside(&sanitizer_xml::read(&xml, InputId(0)).0, &xml);
    }
}
