//! The distance test on measured reports, on every reading, and on wraps made by a slow independent path.

use super::*;
use crate::arith::limits::wrap_to_int32;
use proptest::prelude::*;

fn access(address: u64, bytes: u64) -> Access {
    Access { address, bytes, reported_misaligned: false }
}

fn allocation(base: u64, bytes: u64) -> Allocation {
    Allocation { base, bytes }
}

fn wrapped(reading: Reading) -> Wrapped {
    match reading {
        Reading::Wrapped(wrapped) => wrapped,
        other => panic!("not a wrap: {other:?}"),
    }
}

/// Write of 4 bytes by thread 32 of block 65892; 32,768 columns of float.
fn cuda_report() -> (Access, Allocation) {
    (access(0x7fa2_46c8_0080, 4), allocation(0x7fa4_4400_0000, 9_175_040_000))
}

/// Write of 16 bytes by thread 64 of block 1827; 234,624 × 9,216 of bfloat16 in tiles of 128 rows.
fn triton_report() -> (Access, Allocation) {
    (access(0x7f74_f8ed_2000, 16), allocation(0x7f75_f800_0000, 4_326_424_576))
}

#[test]
fn cuda_row_65892_column_32() {
    let (access, near) = cuda_report();
    assert_eq!(near.distance(access.address), Distance::Before(8_543_272_832));
    let context = Context {
        block: Some([65_892, 0, 0]),
        thread: Some([32, 0, 0]),
        columns: vec![32_768],
        ..Context::default()
    };
    let found = wrapped(read_access(access, Some(near), &context));
    assert_eq!((found.element_bytes, found.k, found.recovered_index), (4, 1, 2_159_149_088));
    assert_eq!(found.row_col, Some((65_892, 32)));
    let row = Agreement::RowInBlock { block: 65_892, block_rows: 1, guessed: false };
    let column = Agreement::ColumnOfThread { thread: 32, elements_per_thread: 1 };
    assert_eq!(found.agreements, [row, column]);
    assert_eq!(found.strength, Strength::Supported);
}

#[test]
fn cuda_columns_are_inferred_from_block_and_thread_alone() {
    let (access, near) = cuda_report();
    let context = Context { block: Some([65_892, 0, 0]), thread: Some([32, 0, 0]), ..Context::default() };
    let found = wrapped(read_access(access, Some(near), &context));
    assert_eq!((found.columns, found.row_col), (Some(32_768), Some((65_892, 32))));
    assert_eq!(found.agreements, [Agreement::WholeStride { block: 65_892, thread: 32, stride: 32_768 }]);
    assert_eq!(found.strength, Strength::Supported);
}

#[test]
fn triton_row_233860_column_0_inside_block_1827() {
    let (access, near) = triton_report();
    let tensor = KnownTensor { numel: 2_162_294_784, columns: 9_216, element_bytes: Some(2) };
    let mut context = Context {
        block: Some([1_827, 0, 0]),
        thread: Some([64, 0, 0]),
        tensors: vec![tensor],
        ..Context::default()
    };
    for block_rows in [Some(128), None] {
        context.block_rows = block_rows;
        let found = wrapped(read_access(access, Some(near), &context));
        assert_eq!((found.element_bytes, found.recovered_index), (2, 2_155_253_760));
        assert_eq!(found.row_col, Some((233_860, 0)));
        let guessed = block_rows.is_none();
        assert!(found.agreements.contains(&Agreement::RowInBlock { block: 1_827, block_rows: 128, guessed }));
        assert!(found.agreements.contains(&Agreement::AllocationSize { tensor_bytes: 4_324_589_568 }));
        assert!(found.agreements.contains(&Agreement::ElementSize));
        assert_eq!(found.strength, Strength::Supported);
    }
}

#[test]
fn the_distance_alone_is_suspected() {
    let (access, near) = triton_report();
    let found = wrapped(read_access(access, Some(near), &Context::default()));
    assert_eq!((found.strength, found.row_col, found.chance_per_10_000), (Strength::Suspected, None, 73));
    let (access, near) = cuda_report();
    let found = wrapped(read_access(access, Some(near), &Context::default()));
    assert_eq!((found.strength, found.other_element_bytes.len()), (Strength::Suspected, 0));
}

#[test]
fn a_wrong_element_size_keeps_it_suspected() {
    let (access, near) = triton_report();
    let context = Context { element_bytes: vec![4], ..Context::default() };
    let found = wrapped(read_access(access, Some(near), &context));
    assert_eq!(
        (found.strength, found.conflicts.as_slice()),
        (Strength::Suspected, &[Conflict::ElementSize][..])
    );
}

#[test]
fn the_register_of_a_core_dump_reads_the_same() {
    // y = 0x7f0694000000 in bfloat16; the register holds y − 2^32 + 0x400.
    let near = allocation(0x7f06_9400_0000, 4_600_000_000);
    let found = wrapped(read_access(access(0x7f05_9400_0400, 16), Some(near), &Context::default()));
    assert_eq!((found.element_bytes, found.recovered_index), (2, 2_147_484_160));
}

#[test]
fn one_byte_after_4000_is_a_tail_and_no_overflow() {
    let near = allocation(0x7fce_7e80_1000, 4_000);
    let context = Context { block: Some([3, 0, 0]), thread: Some([232, 0, 0]), ..Context::default() };
    let reading = read_access(access(0x7fce_7e80_1fa0, 4), Some(near), &context);
    assert_eq!(reading, Reading::TailUnguarded { past_end_bytes: 4 });
}

#[test]
fn an_access_across_the_end_is_a_tail() {
    let near = allocation(0x1000_0000, 4_002);
    let reading = read_access(access(0x1000_0fa0, 4), Some(near), &Context::default());
    assert_eq!(reading, Reading::TailUnguarded { past_end_bytes: 2 });
}

#[test]
fn gigabytes_after_512_bytes_is_wild_and_no_overflow() {
    let near = allocation(0x7f98_eac0_0000, 512);
    assert_eq!(near.distance(0x7f99_e280_0000), Distance::After(4_156_554_752));
    let reading = read_access(access(0x7f99_e280_0000, 4), Some(near), &Context::default());
    let reason = WildReason::TooSmallToWrap { needed_bytes: 1 << 31 };
    assert_eq!(reading, Reading::WildOrStale { distance: Some(Distance::After(4_156_554_752)), reason });
}

#[test]
fn a_few_bytes_before_is_a_wrong_base() {
    let near = allocation(0x7f00_0000_0000, 1 << 20);
    let reading = read_access(access(0x7eff_ffff_fff0, 4), Some(near), &Context::default());
    assert_eq!(reading, Reading::JustBefore { before_bytes: 16 });
    // Beside 80 GB a wrapped index near 2^32 would fit as well; the plain reading wins.
    let near = allocation(0x7f00_0000_0000, 80 << 30);
    let reading = read_access(access(0x7eff_ffff_fff0, 4), Some(near), &Context::default());
    assert_eq!(reading, Reading::JustBefore { before_bytes: 16 });
}

#[test]
fn alignment_and_pools() {
    let near = allocation(0x7fb1_1e80_0000, 4_096);
    let reading = read_access(access(0x7fb1_1e80_0001, 16), Some(near), &Context::default());
    assert_eq!(reading, Reading::Misaligned { off_by_bytes: 1, inside: true });
    let told = Access { address: 0x7fb1_1e80_0010, bytes: 0, reported_misaligned: true };
    assert_eq!(
        read_access(told, None, &Context::default()),
        Reading::Misaligned { off_by_bytes: 0, inside: false }
    );
    let reading = read_access(access(0x7fb1_1e80_0010, 16), Some(near), &Context::default());
    assert_eq!(reading, Reading::InsidePoolArtefact { offset_bytes: 16 });
    assert_eq!(read_access(access(8, 4), None, &Context::default()), Reading::NearNull { offset_bytes: 8 });
    let reason = WildReason::NoAllocation;
    let reading = read_access(access(0x7fb1_1e80_0010, 4), None, &Context::default());
    assert_eq!(reading, Reading::WildOrStale { distance: None, reason });
}

#[test]
fn beside_80_gb_nothing_but_a_matching_row_is_a_finding() {
    let near = allocation(0x7f00_0000_0000, 80_000_000_000);
    let stray = access(0x7f00_0000_0000 - 3_333_333_332, 4);
    let tensor = KnownTensor { numel: 40_000_000_000, columns: 0, element_bytes: Some(2) };
    for context in [Context::default(), Context { tensors: vec![tensor], ..Context::default() }] {
        let reading = read_access(stray, Some(near), &context);
        assert!(matches!(reading, Reading::TooLargeToTell { .. }), "{reading:?}");
    }
    // Row 300,000 of 8,192 columns in float: wraps, and its block agrees.
    let index = 300_000_u64 * 8_192 + 7;
    let address = 0x7f00_0000_0000 - ((1 << 32) - index) * 4;
    let context = Context { block: Some([300_000, 0, 0]), columns: vec![8_192], ..Context::default() };
    let found = wrapped(read_access(access(address, 4), Some(near), &context));
    assert_eq!((found.row_col, found.strength), (Some((300_000, 7)), Strength::Supported));
}

#[test]
fn an_element_size_carries_no_reading_that_chance_explains() {
    // 1.9 · 2^32 bytes of float16: nine in ten stray addresses fit.
    let near = allocation(0x7f00_0000_0000, 8_000_000_000);
    let context = Context { element_bytes: vec![2], ..Context::default() };
    let found = wrapped(read_access(access(0x7f00_0000_0000 - 4_000_000_000, 2), Some(near), &context));
    assert_eq!(found.agreements, [Agreement::ElementSize]);
    assert_eq!(found.strength, Strength::Suspected);
}

#[test]
fn a_page_reads_as_its_exact_address_would() {
    let (exact, near) = triton_report();
    let tensor = KnownTensor { numel: 2_162_294_784, columns: 9_216, element_bytes: Some(2) };
    let context = Context { tensors: vec![tensor], ..Context::default() };
    let other = allocation(0x7f70_0000_0000, 1 << 20);
    let (reading, allocation) = read_page(exact.address & !0xfff, 4_096, &[other, near], &context);
    let found = wrapped(reading);
    assert_eq!((allocation, found.index_span, found.strength), (Some(near), 2_048, Strength::Supported));
    assert_eq!(found.recovered_index, 2_155_253_760);
}

#[test]
fn a_page_that_several_allocations_explain_is_no_finding() {
    let low = allocation(0x7f75_f800_0000, 8_000_000_000);
    let high = allocation(0x7f75_f800_0000 + 9_000_000_000, 30_000_000_000);
    let page = 0x7f75_f800_0000 - 4_000_002_048;
    let (reading, _) = read_page(page, 4_096, &[low, high], &Context::default());
    assert!(!matches!(reading, Reading::Wrapped(_)), "{reading:?}");
    let (inside, holder) = read_page(0x7f75_f800_1000, 4_096, &[low, high], &Context::default());
    let reason = WildReason::InsideKnownAllocation;
    assert_eq!(inside, Reading::WildOrStale { distance: Some(Distance::Inside(4_096)), reason });
    assert_eq!(holder, Some(low));
    let (none, _) = read_page(page, 4_096, &[], &Context::default());
    assert_eq!(none, Reading::WildOrStale { distance: None, reason: WildReason::NoAllocation });
}

#[test]
fn an_index_past_6_gi_elements_is_a_finding_only_where_the_row_agrees() {
    // Row 400,000 of 16,384 columns: 6,553,600,005 loses 2 · 2^32 on its way through 32 bits.
    let index = 400_000_u64 * 16_384 + 5;
    let near = allocation(0x7f00_0000_0000, 14_000_000_000);
    let wrapped_index = i64::from(wrap_to_int32(i128::from(index)));
    let address = 0x7f00_0000_0000_u64.checked_add_signed(wrapped_index * 2).unwrap();
    let columns = Context { block: Some([400_000, 0, 0]), columns: vec![16_384], ..Context::default() };
    let found = wrapped(read_access(access(address, 2), Some(near), &columns));
    assert_eq!((found.k, found.element_bytes, found.row_col), (2, 2, Some((400_000, 5))));
    let bare = read_access(access(address, 2), Some(near), &Context::default());
    assert!(matches!(bare, Reading::TooLargeToTell { .. }), "{bare:?}");
}

proptest! {
    /// A wrap made the hardware's way is found, unless its allocation is one that explains everything.
    #[test]
    fn a_made_wrap_is_recovered(
        which in 0_usize..4,
        past in 0_u64..1 << 31,
        spare in 1_u64..1 << 20,
        base in (1_u64 << 40..1 << 46).prop_map(|base| base & !0x1ff),
    ) {
        let element = [1_u64, 2, 4, 8][which];
        let index = (1_u64 << 31) + past;
        let near = allocation(base, (index + spare) * element);
        let wrapped_index = i64::from(wrap_to_int32(i128::from(index)));
        let address = base.checked_add_signed(wrapped_index * element as i64).unwrap();
        let context = Context { element_bytes: vec![element], ..Context::default() };
        match read_access(access(address, element), Some(near), &context) {
            Reading::Wrapped(found) => {
                prop_assert_eq!((found.element_bytes, found.recovered_index), (element, index));
            }
            Reading::TooLargeToTell { .. } => prop_assert!(near.bytes >= 1 << 32),
            Reading::JustBefore { before_bytes } => prop_assert!(before_bytes <= NEAR_BYTES),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    /// Beside 80 GB no address is a wrap without a place that agrees.
    #[test]
    fn no_stray_address_beside_80_gb_is_a_wrap(back in 1_u64..1 << 40, size in 0_usize..5, elements in 0_u64..9) {
        let near = allocation(0x7f00_0000_0000, 80_000_000_000);
        let bytes = [1, 2, 4, 8, 16][size];
        let context = Context { element_bytes: vec![elements], ..Context::default() };
        let reading = read_access(access(near.base - back, bytes), Some(near), &context);
        prop_assert!(!matches!(reading, Reading::Wrapped(_)), "{:?}", reading);
    }

    /// No allocation of up to 2 GiB can hold a wrapped index, and no numbers break the arithmetic.
    #[test]
    fn small_allocations_never_wrap(
        address in any::<u64>(), base in any::<u64>(), bytes in 0_u64..=1 << 31, size in any::<u64>(),
        block in any::<[u64; 3]>(), thread in any::<[u64; 3]>(), columns in any::<u64>(),
    ) {
        let context = Context {
            block: Some(block), thread: Some(thread), columns: vec![columns], block_rows: Some(block[1]),
            ..Context::default()
        };
        let reading = read_access(access(address, size), Some(allocation(base, bytes)), &context);
        prop_assert!(!matches!(reading, Reading::Wrapped(_) | Reading::TooLargeToTell { .. }), "{:?}", reading);
    }

    /// Any numbers at all give a reading, and a wrap always names an index inside its allocation.
    #[test]
    fn any_numbers_give_a_reading(
        address in any::<u64>(), base in any::<u64>(), bytes in any::<u64>(), size in 0_u64..40,
        block in any::<[u64; 3]>(), columns in any::<u64>(), page in 0_u64..1 << 22,
    ) {
        let context = Context { block: Some(block), thread: Some(block), columns: vec![columns], ..Context::default() };
        let near = allocation(base, bytes);
        if let Reading::Wrapped(found) = read_access(access(address, size), Some(near), &context) {
            prop_assert!(found.recovered_index >= 1 << 31);
            prop_assert!(u128::from(found.recovered_index) * u128::from(found.element_bytes) < u128::from(bytes));
        }
        let _ = read_page(address, page, &[near], &context);
    }
}
