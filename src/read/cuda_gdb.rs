//! cuda-gdb's words about a fault, and the driver's progress lines while it writes a core dump.
//!
//! In: lines of one stream, prefixes stripped, from the first that belongs to a report. Out: one [`FaultingLaunch`] and
//! how many lines it took. It leaves alone registers, disassembly and source text that a debugger prints between.
//!
//! Every field is optional and no line is required: versions differ, transcripts are pasted in parts.
//!
//! ```text
//! [Current focus set to CUDA kernel 0, grid 1, block (3,0,0), thread (0,0,0), device 0, sm 126, warp 0, lane 0]
//! CUDA Exception: Warp Illegal Address
//! The exception was triggered at PC 0x7fd1077a00f0  gather(float const*, int const*, float*, int)  (crash.cu:20)
//! #0  0x00007fd1077a0110 in gather<<<(4,1,1),(256,1,1)>>> () at /src/crash.cu:20
//! [19:36:57.711837] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)
//! [19:36:57.716849] coredump: Writing ELF file to ./core.nvcudmp
//! ```

use super::event::FaultingLaunch;

mod debugger;
mod lines;
mod progress;

/// A line that holds one of these may start a report.
pub const LITERALS: &[&str] = &[
    "coredump: ",
    "Opening GPU coredump:",
    "CUDA Exception:",
    "CUDA_EXCEPTION_",
    "The exception was triggered at PC",
    "focus set to CUDA kernel",
    "Switching focus to CUDA kernel",
    ">>> (",
    "GridDim  BlockDim",
];

pub use lines::read;

/// Lines that are read for one report at most.
const LINE_LIMIT: usize = 4_096;

/// Reads the report that starts at the first line, and says how many lines it took. `None` where these lines tell of no
/// fault: progress without an exception, a debugger that only loads symbols.
#[must_use]
pub fn read_lines(lines: &[&str]) -> Option<(FaultingLaunch, usize)> {
    let lines = lines.get(..LINE_LIMIT).unwrap_or(lines);
    let first = lines.first()?;
    if progress::text(first).is_some() { progress::read(lines) } else { debugger::read(lines) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::event::Place;

    const GATHER: &str = include_str!("../../samples/coredump-gather/cuda-gdb.log");
    const GATHER_RUN: &str = include_str!("../../samples/coredump-gather/run.log");
    const SCATTER: &str = include_str!("../../samples/triton-coredump/cuda-gdb.log");
    const SCATTER_RUN: &str = include_str!("../../samples/triton-coredump/run.log");

    fn from<'a>(log: &'a str, start: &str) -> Vec<&'a str> {
        log.lines().skip_while(|line| !line.contains(start)).collect()
    }

    #[test]
    fn a_transcript_of_a_dump() {
        let lines = from(GATHER, "Opening");
        let (launch, consumed) = read_lines(&lines).unwrap();
        let place = Place { file: "/home/user/lora/py/crash.cu".to_owned(), line: Some(20), function: None };
        assert_eq!(
            launch,
            FaultingLaunch {
                kernel: Some("gather".to_owned()),
                exception: Some("Warp Illegal Address".to_owned()),
                exception_number: Some(14),
                grid: Some([4, 1, 1]),
                block_dim: Some([256, 1, 1]),
                block: Some([3, 0, 0]),
                thread: Some([0, 0, 0]),
                pc: Some(0x7fd1_077a_00f0),
                place: Some(place),
                arguments: Vec::new(),
                dump: Some("./core_light_gather.nvcudmp".to_owned()),
            }
        );
        assert_eq!(lines.get(consumed), Some(&"exit status 0"));
    }

    #[test]
    fn a_transcript_of_a_triton_dump() {
        let (launch, _) = read_lines(&from(SCATTER, "Opening")).unwrap();
        assert_eq!(launch.kernel.as_deref(), Some("scatter_rows"));
        assert_eq!((launch.block, launch.thread), (Some([0, 0, 0]), Some([64, 0, 0])));
        assert_eq!((launch.grid, launch.block_dim), (Some([1, 1, 1]), Some([128, 1, 1])));
        let place = launch.place.unwrap();
        assert_eq!((place.file.as_str(), place.line), ("/home/user/lora/py/more_cases.py", Some(30)));
    }

    #[test]
    fn a_live_session() {
        let session = [
            "Thread 1 \"crash\" received signal CUDA_EXCEPTION_14, Warp Illegal Address.",
            "[Switching focus to CUDA kernel 0, grid 1, block (3,0,0), thread (9,0,0), device 0, sm 2, warp 0, lane 9]",
            "0x00007fd1077a0110 in gather<<<(4,1,1),(256,1,1)>>> (table=0x7fd0ffe00000, out=0x7fd0ffe01000, n=1024) at crash.cu:20",
            "20\t  if (i < n) out[i] = table[index[i]];",
            "Traceback (most recent call last):",
        ];
        let (launch, consumed) = read_lines(&session).unwrap();
        assert_eq!(consumed, 4);
        assert_eq!(
            (launch.exception.as_deref(), launch.exception_number),
            (Some("Warp Illegal Address"), Some(14))
        );
        assert_eq!(launch.thread, Some([9, 0, 0]));
        assert_eq!(launch.kernel.as_deref(), Some("gather"));
        let arguments = [("table", "0x7fd0ffe00000"), ("out", "0x7fd0ffe01000"), ("n", "1024")];
        assert_eq!(launch.arguments, arguments.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(launch.place.unwrap().line, Some(20));
    }

    #[test]
    fn parts_of_a_transcript() {
        let table = [
            "  Kernel Parent Dev Grid Status   SMs Mask GridDim  BlockDim Invocation ",
            "*      0      -   0    1 Active 0x00400000 (4,1,1) (256,1,1) gather(n=1024)",
        ];
        let (launch, consumed) = read_lines(&table).unwrap();
        assert_eq!((launch.kernel.as_deref(), launch.grid, consumed), (Some("gather"), Some([4, 1, 1]), 2));
        assert_eq!(launch.arguments, [("n".to_owned(), "1024".to_owned())]);

        let (launch, _) = read_lines(&["CUDA Exception: Warp Misaligned Address"]).unwrap();
        assert_eq!(launch.exception_number, Some(6));
        let (launch, _) =
            read_lines(&["The exception was triggered at PC 0x7f00 <ns::run<int>(int*, int)+240> (a.cu:7)"])
                .unwrap();
        assert_eq!((launch.kernel.as_deref(), launch.pc), (Some("ns::run<int>"), Some(0x7f00)));
        assert_eq!(launch.place.unwrap().file, "a.cu");
        let frame = "#0  fill_rows<<<(70000,1,1),(256,1,1)>>> () at /src/crash.cu:5";
        let (launch, _) = read_lines(&[frame]).unwrap();
        assert_eq!((launch.kernel.as_deref(), launch.grid), (Some("fill_rows"), Some([70_000, 1, 1])));
        let broken = [
            "[Switching focus to CUDA kernel 0, grid 2, block (0,8,0), thread (96,0,0), device 0, sm 0, warp 10, lane 0]",
            "0x00007ff9 in void bwd_dot<true, Traits<128, 64> >(Bwd_params)",
            "   <<<(1,12288,16),(256,1,1)>>> ()",
        ];
        let (launch, consumed) = read_lines(&broken).unwrap();
        assert_eq!((launch.kernel.as_deref(), consumed), (Some("bwd_dot<true, Traits<128, 64> >"), 3));
        assert_eq!(launch.grid, Some([1, 12_288, 16]));
        let (launch, _) = read_lines(&["#1  0x00007f10 in ns::run<int><<<(1,1,1),(32,1,1)>>> ()"]).unwrap();
        assert_eq!((launch.kernel.as_deref(), launch.block_dim), (Some("ns::run<int>"), Some([32, 1, 1])));
    }

    #[test]
    fn progress_lines_of_the_driver() {
        let lines = from(GATHER_RUN, "coredump: Starting");
        let (launch, consumed) = read_lines(&lines).unwrap();
        assert_eq!(launch.kernel.as_deref(), Some("gather"));
        assert_eq!(
            (launch.exception.as_deref(), launch.exception_number),
            (Some("Warp Illegal Address"), Some(14))
        );
        assert_eq!(launch.pc, Some(0x7fd1_077a_00f0));
        assert_eq!(launch.dump.as_deref(), Some("./core_light_gather.nvcudmp"));
        assert_eq!(lines.get(consumed).map(|line| line.trim()), Some("Aborted"));

        let (launch, _) = read_lines(&from(SCATTER_RUN, "coredump: Detected")).unwrap();
        assert_eq!((launch.kernel.as_deref(), launch.pc), (Some("scatter_rows"), Some(0x7f07_db7a_2a60)));
        assert_eq!(launch.dump.as_deref(), Some("./core_triton.nvcudmp"));
    }

    #[test]
    fn of_many_exceptions_the_first_is_told() {
        let lines = [
            "coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)",
            "coredump:   - PC 0x10",
            "coredump:   #0\t0x20\t_Z5innerv",
            "coredump:   #1\t0x30\t_Z5outerv",
            "coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ASSERT (12)",
            "coredump:   - PC 0x99",
        ];
        let (launch, consumed) = read_lines(&lines).unwrap();
        assert_eq!((launch.exception_number, launch.pc, consumed), (Some(14), Some(0x10), 6));
        assert_eq!(launch.kernel.as_deref(), Some("outer"));
    }

    #[test]
    fn lines_without_a_fault() {
        assert_eq!(read_lines(&[]), None);
        assert_eq!(read_lines(&[">>> (1, 2)"]), None);
        assert_eq!(
            read_lines(&["[19:36:57.711559] coredump: SM 1/132 has finished state collection", "ok"]),
            None
        );
        assert_eq!(read_lines(&["writing a coredump: disabled"]), None);
        assert_eq!(read_lines(&["Opening GPU coredump: ./x", "done"]), None);
    }

    #[test]
    fn every_report_starts_with_a_literal() {
        // A table's row follows its head, which holds one.
        let starts = GATHER.lines().chain(SCATTER_RUN.lines()).filter(|line| !line.starts_with('*'));
        for line in starts.filter(|line| read_lines(&[line]).is_some()) {
            assert!(LITERALS.iter().any(|literal| line.contains(literal)), "{line}");
        }
    }
}
