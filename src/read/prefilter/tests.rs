//! The fast search finds what a slow one finds.

use proptest::prelude::*;

use super::search::Search;
use super::*;

/// Literals as the readers have them, more than one vector search takes.
const LITERALS: &[&str] = &[
    "CUDA error",
    "cudaError",
    "CUDA_ERROR_",
    "illegal memory access",
    "misaligned address",
    "Traceback (most recent",
    "NCCL WARN",
    "Watchdog caught",
    "Xid (PCI",
    "segfault at",
    "Segmentation fault",
    "terminate called",
    "Killed process",
    "ERROR SUMMARY",
    "========= ",
    "CUBLAS_STATUS_",
    "CUDNN_STATUS_",
    "out of memory",
    "failed (exitcode",
    "device-side assert",
    "Assertion",
    "no kernel image",
    "unspecified launch",
    "uncorrectable",
    "ncclSystemError",
    "ncclRemoteError",
    "Last error:",
    "double free",
    "free(): invalid",
    "core dumped",
    "SIGSEGV",
    "SIGABRT",
    "SIGKILL",
    "SIGTERM",
    "Fatal Python error",
    "Exception ignored in",
    "ChildFailedError",
    "Root Cause",
    "traps:",
    "general protection",
    "NVRM:",
    "fallen off the bus",
    "CUDA Exception",
    "coredump:",
    "Leaked ",
    "Invalid __",
    "Race reported",
    "Barrier error",
    "Uninitialized",
    "RuntimeError",
    "OutOfResources",
    "GPUassert",
    "too many resources",
    "torch.Size(",
    "work sequence id",
    "SeqNum=",
    "heartbeat",
    "ptxas",
    "nvcc fatal",
    "Connection reset",
    "Broken pipe",
    "XlaRuntimeError",
    "Signal 11",
    "oom-kill",
    "what():",
    "Error: ",
    "ECC",
];

/// A line a piece at a time, looked at by the standard library.
fn naive(literals: &[&str], bytes: &[u8]) -> (Vec<Candidate>, u64) {
    let mut found = Vec::new();
    let mut start = 0;
    let mut lines = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        lines += 1;
        let mut at = start;
        for piece in line.split(|&byte| byte == b'\r' || byte == b'\n') {
            let holds =
                |literal: &&str| piece.windows(literal.len()).any(|window| window == literal.as_bytes());
            if literals.iter().any(holds) {
                found.push(Candidate { line: lines, start: at, end: at + piece.len() });
            }
            at += piece.len() + 1;
        }
        start += line.len();
    }
    (found, lines)
}

fn scanned(search: &Search, bytes: &[u8], chunk_bytes: usize) -> (Vec<Candidate>, u64) {
    let mut scan = Scan { search, bytes, at: 0, lines: 0, chunk_bytes };
    let all = scan.by_ref().flatten().collect();
    (all, scan.lines())
}

/// Text of noise, parts of literals and whole ones, line ends and carriage returns.
fn hostile_text() -> impl Strategy<Value = Vec<u8>> {
    let literal = prop::sample::select(LITERALS);
    let part = prop_oneof![
        3 => literal.clone().prop_map(|text| text.as_bytes().to_vec()),
        3 => (literal, 1_usize..9).prop_map(|(text, cut)| text.as_bytes()[cut.min(text.len())..].to_vec()),
        4 => prop::sample::select(&["\n", "\r", "\r\n", "\n\n"][..]).prop_map(|text| text.as_bytes().to_vec()),
        3 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(part, 0..120).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn fast_exact_and_naive_agree_at_every_seam(bytes in hostile_text(), chunk_bytes in 1_usize..300) {
        let want = naive(LITERALS, &bytes);
        prop_assert_eq!(&scanned(&Search::always_fast(LITERALS), &bytes, chunk_bytes), &want);
        prop_assert_eq!(&scanned(&Search::new(LITERALS), &bytes, chunk_bytes), &want);
    }

    #[test]
    fn skipping_counts_the_same_lines(bytes in hostile_text()) {
        let search = Search::new(LITERALS);
        let mut scan = Scan { search: &search, bytes: &bytes, at: 0, lines: 0, chunk_bytes: 50 };
        scan.next();
        scan.skip_to_end();
        prop_assert_eq!(scan.lines(), naive(LITERALS, &bytes).1);
    }
}

#[test]
fn many_needles_without_a_literal_change_nothing() {
    // Every line holds the end of a literal and not its beginning, so that the fast search gives up.
    let line = "UDA error x xid (PCI atchdog caught ncclSystemErro llegal memory access\n";
    let mut text = line.repeat(20_000);
    text.push_str("NCCL WARN here\n");
    let (found, lines) = scanned(&Search::always_fast(LITERALS), text.as_bytes(), 8 << 20);
    let start = line.len() * 20_000;
    assert_eq!(found, [Candidate { line: 20_001, start, end: start + 14 }]);
    assert_eq!(lines, 20_001);
}

#[test]
fn a_line_of_megabytes_gives_the_surroundings_of_its_literals() {
    let mut text = vec![b'x'; 5 << 20];
    text[3 << 20..(3 << 20) + 9].copy_from_slice(b"NCCL WARN");
    text.extend(b"\nSIGSEGV\n");
    let (found, lines) = scanned(&Search::always_fast(LITERALS), &text, 1 << 20);
    let limit = crate::read::lines::PIECE_LIMIT_BYTES;
    let start = (3 << 20) - (8 << 10);
    assert_eq!(
        found,
        [
            Candidate { line: 1, start, end: start + limit },
            Candidate { line: 2, start: (5 << 20) + 1, end: (5 << 20) + 8 }
        ]
    );
    assert_eq!(lines, 2);
}
