//! The two recorded dumps, whole, cut and damaged.

use std::io::Read;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::read::cuda_gdb;
use crate::read::event::FaultingLaunch;

fn inflate(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

static GATHER: LazyLock<Vec<u8>> =
    LazyLock::new(|| inflate(include_bytes!("../../../samples/coredump-gather/core.nvcudmp.gz")));
static SCATTER: LazyLock<Vec<u8>> =
    LazyLock::new(|| inflate(include_bytes!("../../../samples/triton-coredump/core.nvcudmp.gz")));

fn whole(bytes: &[u8]) -> DumpSummary {
    assert!(looks_like_core_dump(bytes));
    let (summary, diagnostics) = read(bytes);
    assert_eq!(diagnostics, Vec::<String>::new());
    summary
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn gather_stops_at_line_20_of_block_3() {
    let summary = whole(&GATHER);
    let fault = summary.fault().unwrap();
    assert_eq!((fault.exception, fault.exception_name), (14, Some("Warp Illegal Address")));
    assert_eq!((fault.pc, fault.source), (Some(0x7fd1_077a_00f0), PcSource::Sm));
    assert_eq!((fault.sm, fault.warp, fault.offset), (126, Some(0), Some(240)));
    assert_eq!((fault.block, fault.thread), (Some([3, 0, 0]), Some([0, 0, 0])));
    let place = fault.place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("/home/user/lora/py/crash.cu", Some(20)));
    assert_eq!(fault.function.as_ref().unwrap().name, "gather");
    assert_eq!((summary.fault_count, fault.lanes.len()), (1, 32));

    let grid = summary.faulting_grid().unwrap();
    assert_eq!((grid.id, grid.grid, grid.block), (1, [4, 1, 1], [256, 1, 1]));
    let kernel = grid.kernel.as_ref().unwrap();
    assert_eq!(kernel.signature, "gather(float const*, int const*, float*, int)");
    assert_eq!(summary.counts, Counts { sms: 132, blocks: 1, warps: 8, lanes: 256 });
}

#[test]
fn gather_was_launched_with_three_pointers_and_1024() {
    let summary = whole(&GATHER);
    let grid = summary.faulting_grid().unwrap();
    assert_eq!(hex(&grid.argument_bytes), "0000e0ffd07f00000020e0ffd07f00000010e0ffd07f000000040000");
    let arguments: Vec<_> =
        grid.arguments.iter().map(|a| (a.kind, a.text(), a.declared.clone().unwrap())).collect();
    let expect = |kind, text: &str, declared: &str| (kind, text.to_owned(), declared.to_owned());
    assert_eq!(
        arguments,
        [
            expect(ArgumentKind::Pointer, "0x7fd0ffe00000", "float const*"),
            expect(ArgumentKind::Pointer, "0x7fd0ffe02000", "int const*"),
            expect(ArgumentKind::Pointer, "0x7fd0ffe01000", "float*"),
            expect(ArgumentKind::Signed, "1024", "int"),
        ]
    );
}

#[test]
fn lane_9_of_gather_holds_the_wild_index() {
    let summary = whole(&GATHER);
    let fault = summary.fault().unwrap();
    assert_eq!(fault.lanes[9].registers[3], 1 << 30);
    assert_eq!(fault.lanes[9].thread, [9, 0, 0]);
    let odd: Vec<_> = fault.odd_registers.iter().map(|odd| (odd.register, odd.lane, odd.value)).collect();
    assert_eq!(odd, [(3, 9, 1 << 30), (4, 9, 0xffe0_0000)]);
    // 2^30 floats past the table are 2^32 bytes, but no 32-bit index wrapped.
    assert!(!fault.displaced.iter().any(Displaced::is_telling));
}

#[test]
fn the_dump_says_who_wrote_it() {
    let summary = whole(&GATHER);
    let metadata = summary.metadata.unwrap();
    assert_eq!((metadata.driver, metadata.cuda), ((580, 159), (13, 0)));
    assert_eq!(
        metadata.skipped().collect::<Vec<_>>(),
        [
            "skip_nonrelocated_elf_images",
            "skip_global_memory",
            "skip_shared_memory",
            "skip_local_memory",
            "skip_constbank_memory"
        ]
    );
    let device = &summary.devices[0];
    assert_eq!((device.name.as_deref(), device.sms), (Some("NVIDIA H200"), 132));
    assert_eq!((device.pci, device.compute_capability), ((0, 6), (9, 0)));
    assert_eq!((summary.architecture, summary.image_count, summary.section_count), (Some(90), 10, 954));
    assert_eq!(summary.contexts[0].host_thread, 1382);
    let ptx = String::from_utf8(summary.ptx().unwrap().to_vec()).unwrap();
    assert!(ptx.contains("\n.visible .entry _Z6gatherPKfPKiPfi(\n"));
}

#[test]
fn scatter_rows_stops_at_line_30() {
    let summary = whole(&SCATTER);
    let fault = summary.fault().unwrap();
    assert_eq!((fault.exception, fault.pc, fault.source), (14, Some(0x7f07_db7a_2a60), PcSource::Sm));
    assert_eq!((fault.block, fault.thread), (Some([0, 0, 0]), Some([64, 0, 0])));
    let place = fault.place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("/home/user/lora/py/more_cases.py", Some(30)));
    let grid = summary.faulting_grid().unwrap();
    assert_eq!(grid.kernel.as_ref().unwrap().name, "scatter_rows");
    assert_eq!((grid.id, grid.grid, grid.block), (2, [1, 1, 1], [128, 1, 1]));
    let texts: Vec<_> = grid.arguments.iter().map(Argument::text).collect();
    assert_eq!(texts, ["0x7f07d3e00000", "0x7f0694000000", "300000", "4096", "8192", "262144", "0x0", "0x0"]);
    let memory: Vec<_> = summary.memory.iter().map(|range| (range.address, range.size_bytes)).collect();
    assert_eq!(memory, [(0x7f07_da00_0000, 65_536), (0x7f07_da01_0000, 2_304), (0x7f07_da29_0000, 768)]);
    assert!(String::from_utf8_lossy(summary.ptx().unwrap()).contains("mul.lo.s32 \t%r28, %r19, %r23;"));
}

#[test]
fn the_address_in_scatter_rows_registers_is_a_wrapped_index() {
    let summary = whole(&SCATTER);
    let fault = summary.fault().unwrap();
    let lane = &fault.lanes[0];
    assert_eq!(lane.thread, [64, 0, 0]);
    assert_eq!((lane.registers[2], lane.registers[3]), (0x9400_0400, 0x7f05));
    let pair = fault
        .displaced
        .iter()
        .find(|pair| pair.registers == "R2:R3" && pair.argument == 1 && pair.element_bytes == 2)
        .unwrap();
    assert_eq!((pair.address, pair.pointer, pair.index), (0x7f05_9400_0400, 0x7f06_9400_0000, 2_147_484_160));
    assert_eq!(pair.agreements[0].row_is, RowIs::ArgumentPlusBlock(5, 0));
    assert_eq!((pair.agreements[0].stride, pair.agreements[0].row), (8192, 262_144));
    // Of all fits, those that agree with the launch name one pointer and one element size.
    let agreeing = fault.displaced.iter().filter(|pair| !pair.agreements.is_empty());
    assert!(agreeing.clone().all(|pair| (pair.argument, pair.element_bytes) == (1, 2)));
    assert_eq!(agreeing.map(|pair| pair.index).collect::<Vec<_>>(), [2_147_484_160, 1 << 31]);
}

/// The debugger's words and the dump's bytes must tell the same.
fn agrees(launch: &FaultingLaunch, log: &str) {
    let lines: Vec<&str> = log.lines().skip(1).collect();
    let (said, consumed) = cuda_gdb::read_lines(&lines).unwrap();
    assert!(consumed > 5);
    assert_eq!(launch.kernel, said.kernel);
    assert_eq!(launch.exception, said.exception);
    assert_eq!(launch.exception_number, said.exception_number);
    assert_eq!((launch.grid, launch.block_dim), (said.grid, said.block_dim));
    assert_eq!((launch.block, launch.thread), (said.block, said.thread));
    assert_eq!(launch.pc, said.pc);
    let (place, said) = (launch.place.as_ref().unwrap(), said.place.as_ref().unwrap());
    assert_eq!((&place.file, place.line), (&said.file, said.line));
}

#[test]
fn cuda_gdb_says_the_same() {
    let gather = faulting_launch(&whole(&GATHER)).unwrap();
    agrees(&gather, include_str!("../../../samples/coredump-gather/cuda-gdb.log"));
    assert_eq!(gather.arguments[3], ("arg3".to_owned(), "1024".to_owned()));
    let scatter = faulting_launch(&whole(&SCATTER)).unwrap();
    agrees(&scatter, include_str!("../../../samples/triton-coredump/cuda-gdb.log"));
}

#[test]
fn arguments_take_names_from_elsewhere() {
    let mut summary = whole(&SCATTER);
    summary.grids[0].name_arguments(&["x_ptr", "y_ptr", "n_rows", "n_cols", "row_stride", "first_row"]);
    let launch = faulting_launch(&summary).unwrap();
    let expect = [
        ("x_ptr", "0x7f07d3e00000"),
        ("y_ptr", "0x7f0694000000"),
        ("n_rows", "300000"),
        ("n_cols", "4096"),
        ("row_stride", "8192"),
        ("first_row", "262144"),
        ("arg6", "0x0"),
        ("arg7", "0x0"),
    ];
    assert_eq!(launch.arguments, expect.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn the_machine_is_known() {
    let facts = environment_facts(&whole(&GATHER));
    let facts: Vec<_> = facts.iter().map(|fact| (fact.name.as_str(), fact.value.as_str())).collect();
    let gpu = [("gpu", "NVIDIA H200"), ("compute_capability", "9.0")];
    assert_eq!(facts, [[("driver", "580.159"), ("cuda", "13.0")], gpu].concat());
}

#[test]
fn the_last_section_header_is_missing() {
    let (summary, diagnostics) = read(&GATHER[..GATHER.len() - 1]);
    assert_eq!(diagnostics, ["core dump: cut at 407714 bytes; 953 of 954 section headers are there"]);
    assert_eq!(summary.fault().unwrap().place, whole(&GATHER).fault().unwrap().place);
}

#[test]
fn without_section_table_the_fault_is_found_by_content() {
    let (summary, diagnostics) = read(&GATHER[..330_000]);
    assert!(summary.recovered);
    assert_eq!(diagnostics.len(), 2, "{diagnostics:?}");
    let fault = summary.fault().unwrap();
    assert_eq!((fault.exception, fault.pc, fault.sm), (14, Some(0x7fd1_077a_00f0), 126));
    assert_eq!(fault.place.as_ref().unwrap().line, Some(20));
    let grid = summary.faulting_grid().unwrap();
    assert_eq!((grid.grid, grid.block), ([4, 1, 1], [256, 1, 1]));
    assert_eq!(grid.kernel.as_ref().unwrap().name, "gather");
    assert_eq!((summary.fault_count, summary.grids.len(), summary.image_count), (1, 1, 10));
}

#[test]
fn a_count_past_65279_stands_in_section_0() {
    let mut bytes = GATHER.clone();
    let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    let (count, names) = (u16::from_le_bytes([bytes[60], bytes[61]]), [bytes[62], bytes[63]]);
    bytes[60..62].fill(0);
    bytes[62..64].fill(0xff);
    bytes[table + 32..table + 40].copy_from_slice(&u64::from(count).to_le_bytes());
    bytes[table + 40..table + 42].copy_from_slice(&names);
    assert_eq!(whole(&bytes), whole(&GATHER));
}

#[test]
fn a_hundred_thousand_sections_change_nothing() {
    let mut bytes = GATHER.clone();
    let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    let mut headers = bytes[table..].to_vec();
    let names = u32::from(u16::from_le_bytes([bytes[62], bytes[63]]));
    let mut filler = [0_u8; 64];
    filler[4..8].copy_from_slice(&sections::kind::REGISTERS.to_le_bytes());
    for _ in 0..100_000 {
        headers.extend(filler);
    }
    headers[32..40].copy_from_slice(&100_954_u64.to_le_bytes());
    headers[40..44].copy_from_slice(&names.to_le_bytes());
    bytes.truncate(table);
    bytes.extend(headers);
    bytes[60..62].fill(0);
    bytes[62..64].fill(0xff);
    assert_eq!(whole(&bytes), DumpSummary { section_count: 100_954, ..whole(&GATHER) });
}

#[test]
fn rows_are_stepped_by_their_own_size() {
    // A newer driver's grid row: eight bytes longer.
    let mut bytes = GATHER.clone();
    let table = usize::try_from(u64::from_le_bytes(bytes[40..48].try_into().unwrap())).unwrap();
    let header = table + 14 * 64;
    let offset =
        usize::try_from(u64::from_le_bytes(bytes[header + 24..header + 32].try_into().unwrap())).unwrap();
    let mut row = bytes[offset..offset + 136].to_vec();
    row.extend([0xaa; 8]);
    let end = bytes.len() as u64;
    bytes[header + 24..header + 32].copy_from_slice(&end.to_le_bytes());
    bytes[header + 32..header + 40].copy_from_slice(&288_u64.to_le_bytes());
    bytes[header + 56..header + 64].copy_from_slice(&144_u64.to_le_bytes());
    bytes.extend(&row);
    row[0] = 9;
    bytes.extend(&row);
    let (summary, _) = read(&bytes);
    assert_eq!(
        summary.grids.iter().map(|grid| (grid.id, grid.grid)).collect::<Vec<_>>(),
        [(1, [4, 1, 1]), (9, [4, 1, 1])]
    );
}

#[test]
fn other_files_are_no_dumps() {
    assert!(!looks_like_core_dump(b""));
    assert!(!looks_like_core_dump(include_bytes!("../../../samples/ptx/crash.cubin")));
    let (summary, diagnostics) = read(include_bytes!("../../../samples/ptx/crash.cubin"));
    assert_eq!(summary, DumpSummary::default());
    assert_eq!(diagnostics, ["core dump: ELF type 2 for machine 190 is no CUDA core dump"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Wherever a dump is cut, what it tells stays true.
    #[test]
    fn a_cut_dump_never_invents(cut in 0..1_001_984_usize) {
        let (summary, diagnostics) = read(&SCATTER[..cut]);
        prop_assert!(!diagnostics.is_empty());
        for fault in &summary.faults {
            prop_assert_eq!(fault.pc, Some(0x7f07_db7a_2a60));
        }
        for grid in &summary.grids {
            prop_assert_eq!((grid.grid, grid.block), ([1, 1, 1], [128, 1, 1]));
        }
    }

    /// Bytes overwritten at random, in the tables that steer the reading above all.
    #[test]
    fn a_damaged_dump_is_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..200),
    ) {
        let mut bytes = GATHER.clone();
        let table = 346_659;
        for (at, value, region) in changes {
            let at = match region {
                0 => at.index(bytes.len()),
                1 => table + at.index(bytes.len() - table),
                2 => at.index(64),
                _ => 225_176 + at.index(42_208),
            };
            bytes[at] = value;
        }
        let (summary, _) = read(&bytes);
        prop_assert!(summary.faults.len() <= FAULTS_KEPT);
    }
}
