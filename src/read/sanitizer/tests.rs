//! Tests of the sanitizer reader: recorded reports of CUDA 13's compute-sanitizer, and the older generations' forms.

use super::*;
use crate::read::event::{InputId, NearestAllocation, Place, Side};
use crate::read::read_text;

fn events(log: &str) -> Vec<Event> {
    read_text(InputId(0), log.as_bytes()).events
}

fn records(log: &str) -> Vec<SanitizerRecord> {
    events(log)
        .into_iter()
        .filter_map(|event| match event.data {
            Data::Sanitizer(record) => Some(*record),
            _ => None,
        })
        .collect()
}

const WRAP: &str = "\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at fill_rows(float *, int, int, int)+0xf0 in crash.cu:12
=========     by thread (32,0,0) in block (65892,0,0)
=========     Access to 0x7fa246c80080 is out of bounds
=========     and is 8,543,272,832 bytes before the nearest allocation at 0x7fa444000000 of size 9,175,040,000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8ee5] in crash
========= 
========= Invalid __global__ write of size 4 bytes
=========     at fill_rows(float *, int, int, int)+0xf0 in crash.cu:12
=========     by thread (33,0,0) in block (65892,0,0)
=========     Access to 0x7fa246c80084 is out of bounds
=========     and is 8,543,272,828 bytes before the nearest allocation at 0x7fa444000000 of size 9,175,040,000 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x8ee5] in crash
========= 
========= Program hit cudaErrorLaunchFailure (error 719) due to \"unspecified launch failure\" on CUDA API call to cudaDeviceSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: main [0x8eea] in crash
========= 
CUDA error at crash.cu:50 code=719(cudaErrorLaunchFailure) \"cudaDeviceSynchronize()\" : unspecified launch failure
========= Target application returned an error
========= ERROR SUMMARY: 42145 errors
========= ERROR SUMMARY: 42045 errors were not printed. Use --print-limit option to adjust the number of printed errors
";

#[test]
fn neighbouring_threads_fold_into_one_record() {
    let found = records(WRAP);
    assert_eq!(found.len(), 2);
    let expected = SanitizerRecord {
        finding: SanitizerFinding::OutOfBounds,
        space: Some("global".to_owned()),
        access: Some("write".to_owned()),
        size_bytes: Some(4),
        kernel: Some("fill_rows(float *, int, int, int)".to_owned()),
        offset: Some(0xf0),
        place: Some(Place { file: "crash.cu".to_owned(), line: Some(12), function: None }),
        thread: Some([32, 0, 0]),
        block: Some([65892, 0, 0]),
        last: Some(([65892, 0, 0], [33, 0, 0])),
        address: Some(0x7fa2_46c8_0080),
        nearest: Some(NearestAllocation {
            distance_bytes: 8_543_272_832,
            side: Side::Before,
            base: 0x7fa4_4400_0000,
            size_bytes: 9_175_040_000,
        }),
        count: 2,
        host: found[0].host.clone(),
        ..head::empty("Invalid __global__ write of size 4 bytes")
    };
    assert_eq!(found[0], expected);
    assert_eq!(found[0].host[0].function.as_deref(), Some("main"));
    let echo = &found[1];
    assert_eq!(
        (echo.finding, echo.code, echo.api.as_deref()),
        (SanitizerFinding::ApiError, Some(719), Some("cudaDeviceSynchronize"))
    );
}

#[test]
fn the_programs_own_line_and_the_summary_stay_apart() {
    let found = events(WRAP);
    let statuses = found.iter().filter(|event| matches!(event.data, Data::Status(_))).count();
    assert_eq!(statuses, 1);
    let summaries: Vec<&SanitizerSummary> = found
        .iter()
        .filter_map(|event| match &event.data {
            Data::SanitizerSummary(summary) => Some(summary),
            _ => None,
        })
        .collect();
    assert_eq!(summaries, [&SanitizerSummary { tool: None, errors: Some(42145), warnings: None }]);
    assert_eq!((found[0].span.line, found[0].span.lines), (2, 7));
}

#[test]
fn prefixes_of_every_kind_are_tolerated() {
    let plain = records(WRAP);
    for marker in ["@@@", "[rank1] =========", "##", "> ========="] {
        let log = WRAP.replace("=========", marker);
        let found = records(&log);
        assert_eq!(found.len(), 2, "{marker}");
        assert_eq!((found[0].count, found[0].last), (plain[0].count, plain[0].last), "{marker}");
    }
    let crlf = WRAP.replace('\n', "\r\n");
    assert_eq!(records(&crlf), plain);
}

#[test]
fn every_tool_has_its_finding() {
    let race = "\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at racy(int *)+0xa0 in crash.cu:31
=========     and Read access at racy(int *)+0xb0 in crash.cu:32 [256 hazards]
========= 
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
";
    let found = records(race).remove(0);
    assert_eq!(found.finding, SanitizerFinding::Race);
    assert_eq!(found.kernel.as_deref(), Some("racy(int *)"));
    assert_eq!(found.place.and_then(|place| place.line), Some(31));
    assert_eq!(found.other_place.and_then(|place| place.line), Some(32));
    assert_eq!(found.detail.as_deref(), Some("Read access at racy(int *)+0xb0 in crash.cu:32 [256 hazards]"));
    let summary = SanitizerSummary { tool: Some("racecheck".to_owned()), errors: Some(1), warnings: Some(0) };
    assert_eq!(events(race)[1].data, Data::SanitizerSummary(summary));

    let sync = "\
========= Barrier error detected. Divergent thread(s) in warp.
=========     at divergent_sync(int *)+0x70 in crash.cu:35
=========     by thread (0,0,0) in block (0,0,0)
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0xa6f6] in crash
========= 
";
    let found = records(sync).remove(0);
    assert_eq!(
        (found.finding, found.detail.as_deref()),
        (SanitizerFinding::Barrier, Some("Divergent thread(s) in warp"))
    );

    let init = "\
========= Uninitialized __global__ memory read of size 4 bytes
=========     at uninit(const int *, int *)+0x60 in crash.cu:34
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7fc642800000
========= 
";
    let found = records(init).remove(0);
    assert_eq!((found.finding, found.address), (SanitizerFinding::UninitializedRead, Some(0x7fc6_4280_0000)));

    let leak = "\
========= Leaked 4,096 bytes at 0x7f8eec800000
=========     Saved host backtrace up to driver entry point at allocation time
=========         Host Frame: cudaMalloc [0x511e6] in crash
=========         Host Frame: cudaError cudaMalloc<int>(int**, unsigned long) [0xd69e] in crash
=========         Host Frame: main [0xae02] in crash
========= 
========= LEAK SUMMARY: 4096 bytes leaked in 1 allocations
";
    let found = records(leak).remove(0);
    assert_eq!(
        (found.finding, found.leaked_bytes, found.host.len()),
        (SanitizerFinding::Leak, Some(4096), 3)
    );
    assert_eq!(events(leak).len(), 2);
}

#[test]
fn misaligned_records_keep_their_kind() {
    let log = "\
========= Invalid __global__ write of size 16 bytes
=========     at misaligned(char *)+0x60 in crash.cu:22
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x7fb11e800001 is misaligned
=========     and is inside the nearest allocation at 0x7fb11e800000 of size 4,096 bytes
========= 
";
    let found = records(log).remove(0);
    assert_eq!(found.finding, SanitizerFinding::Misaligned);
    assert_eq!(found.nearest.map(|nearest| nearest.side), Some(Side::Inside));
}

#[test]
fn older_generations_are_read() {
    let first = "\
========= CUDA-MEMCHECK
========= Invalid __global__ read of size 4
=========     at 0x000000d0 in /src/crash.cu:20:gather(float const *, int)
=========     by thread (9,0,0) in block (3,0,0)
=========     Address 0x7f99e2800000 is out of bounds
=========     Device Frame:/src/crash.cu:20:gather(float const *, int) (gather(float const *, int) : 0xd0)
=========     Saved host backtrace up to driver entry point at kernel launch time
=========     Host Frame:/usr/lib/libcuda.so.1 (cuLaunchKernel + 0x2cd) [0x24cc4d]
=========
========= ERROR SUMMARY: 1 error
";
    let found = records(first).remove(0);
    assert_eq!(found.finding, SanitizerFinding::OutOfBounds);
    assert_eq!(found.kernel.as_deref(), Some("gather(float const *, int)"));
    assert_eq!(found.place, Some(Place { file: "/src/crash.cu".to_owned(), line: Some(20), function: None }));
    assert_eq!((found.offset, found.size_bytes, found.device_frames.len()), (Some(0xd0), Some(4), 1));
    let second = "\
========= COMPUTE-SANITIZER
========= Invalid __shared__ atomic of size 4 bytes
=========     at 0x90 in add(float *)
=========     by thread (1,0,0) in block (0,0,0)
=========     Address 0x84 is misaligned
=========     Saved host backtrace up to driver entry point at kernel launch time
=========     Host Frame: [0x24cc4d]
=========                in /usr/lib/libcuda.so.1
=========
";
    let found = records(second).remove(0);
    assert_eq!((found.finding, found.access.as_deref()), (SanitizerFinding::Misaligned, Some("atomic")));
    assert_eq!(found.host[0].library.as_deref(), Some("/usr/lib/libcuda.so.1"));
}

#[test]
fn a_report_cut_anywhere_stays_readable() {
    for end in 0..WRAP.len() {
        let found = records(&WRAP[..end]);
        assert!(found.len() <= 2);
    }
    assert_eq!(records(&WRAP[..WRAP.find("Access to").unwrap()])[0].thread, Some([32, 0, 0]));
}

#[test]
fn sentences_and_other_checkers_are_left_alone() {
    for log in [
        "compute-sanitizer says Invalid __global__ read of size 16 bytes, see below",
        "==123== ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)",
        "- Leaked 3 connections",
        "Uninitialized variable warning",
    ] {
        assert_eq!(events(log), [], "{log}");
    }
}

#[test]
fn a_hundred_thousand_records_become_one_event() {
    let record = &WRAP[WRAP.find("========= Invalid").unwrap()..WRAP.find("========= \n").unwrap() + 11];
    let mut log = String::new();
    for _ in 0..100_000 {
        log.push_str(record);
    }
    let found = records(&log);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].count, 100_000);
}

#[test]
fn a_record_may_begin_behind_output_that_was_not_ended() {
    let report = "========= COMPUTE-SANITIZER\ntest_arg (tests.test_array.TestArray) ... ========= Invalid __global__ read of size 8 bytes\n=========     at 0xb0 in mutate(Array<long long, 1>, long long)\n=========     by thread (32,0,0) in block (0,0,0)\n=========     Address 0x7f94cd200100 is out of bounds\n";
    let found = records(report);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].finding, found[0].thread, found[0].address),
        (SanitizerFinding::OutOfBounds, Some([32, 0, 0]), Some(0x7f94_cd20_0100))
    );
    let prefixed = report.replace("\n=", "\n[1,0]<stdout>:=").replace("... ", "[1,0]<stdout>:");
    assert!(records(&prefixed).len() <= 1);
}

#[test]
fn racecheck_warnings_of_the_first_generation_are_hazards() {
    let found = records(
        "========= WARN:(Warp Level Programming) Potential RAW hazard detected at __shared__ 0xf4 in block (0, 0, 0) :\n=========     Write Thread (24, 0, 0) at 0x00001ab0 in /src/scan.cuh:146:kernel(int*)\n=========     Read Thread (8, 0, 0) at 0x00001ad0 in /src/scan.cuh:147:kernel(int*)\n",
    );
    assert_eq!(
        (found.len(), found[0].finding, found[0].thread),
        (1, SanitizerFinding::Race, Some([24, 0, 0]))
    );
}
