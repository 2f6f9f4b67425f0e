//! What a fault address says, in sentences.
//!
//! In: a [`Reading`] of the distance test. Out: plain sentences that name the numbers, and that say "not an integer
//! overflow" as plainly as they say the opposite. The test itself stands in `arith::distance`.

use crate::arith::distance::{Agreement, Conflict, Distance, Reading, Strength, WildReason, Wrapped};
use crate::text::number::{binary_size, grouped, percent};

/// The reading as one to four sentences.
#[must_use]
pub fn sentence(reading: &Reading) -> String {
    match reading {
        Reading::Wrapped(found) => wrapped(found),
        Reading::TailUnguarded { past_end_bytes } => past_the_end(*past_end_bytes),
        Reading::JustBefore { before_bytes } => format!(
            "The access starts {} before the allocation: a wrong base, a negative index or a wrong stride. Not an \
             integer overflow.",
            bytes(*before_bytes)
        ),
        Reading::Misaligned { off_by_bytes, inside } => misaligned(*off_by_bytes, *inside),
        Reading::InsidePoolArtefact { offset_bytes } => format!(
            "The access is aligned and lies inside the allocation, {} from its start, although it is called out of \
             bounds: memory pools that grow in place (expandable segments) make the checker say this. Rerun without \
             them before believing it.",
            bytes(*offset_bytes)
        ),
        Reading::NearNull { offset_bytes } => format!(
            "The address is {} from 0: a null pointer with an offset. Not an integer overflow.",
            bytes(*offset_bytes)
        ),
        Reading::WildOrStale { distance, reason } => wild(*distance, *reason),
        Reading::TooLargeToTell { element_bytes, explains_all_from_bytes } => format!(
            "The distance fits an index that wrapped at 2^31 (elements of {}), but an allocation of {} or more \
             explains almost any address before it. This settles nothing; the faulting row and block, or the compiled \
             kernel, would.",
            bytes(*element_bytes),
            binary_size(u128::from(*explains_all_from_bytes))
        ),
    }
}

/// An access past the end by a little; who may do that, block and thread tell.
#[must_use]
pub fn past_the_end(past_end_bytes: u64) -> String {
    format!(
        "The access ends {} past the end of the allocation. Not an integer overflow: a wrapped index would land gigabytes \
         below.",
        bytes(past_end_bytes)
    )
}

fn wrapped(found: &Wrapped) -> String {
    let lost = found.element_bytes.saturating_mul(found.k) << 32;
    let mut text = format!(
        "Moved back up by {} × 2^32 × {} = {}, the access lands inside the allocation at element {}",
        found.k,
        bytes(found.element_bytes),
        bytes(lost),
        grouped(u128::from(found.recovered_index)),
    );
    if let Some(((row, column), columns)) = found.row_col.zip(found.columns) {
        let (row, column, columns) = (u128::from(row), u128::from(column), u128::from(columns));
        text +=
            &format!(" = row {}, column {} of {} columns", grouped(row), grouped(column), grouped(columns));
    }
    text += ", past 2^31-1: an index that wrapped in 32 bits.";
    for agreement in &found.agreements {
        text += &format!(" {}", agreement_sentence(*agreement));
    }
    for conflict in &found.conflicts {
        text += match conflict {
            Conflict::ElementSize => " Against it: every known element size is another one.",
            Conflict::PastTensor => " Against it: the index lies past the end of the tensor of that size.",
        };
    }
    if found.strength == Strength::Suspected {
        let chance = chance_percent(found);
        text += &format!(" Nothing independent settles it; {chance} of stray addresses would fit as well.");
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "at most 10,000")]
fn chance_percent(found: &Wrapped) -> String {
    percent(found.chance_per_10_000 as f64 / 100.0)
}

/// An agreement as a sentence.
#[must_use]
pub fn agreement_sentence(agreement: Agreement) -> String {
    match agreement {
        Agreement::RowInBlock { block, block_rows: 1, .. } => {
            format!("The row is the reported block, {}.", grouped(u128::from(block)))
        }
        Agreement::RowInBlock { block, block_rows, guessed } => {
            let how = if guessed { " (a power of two that was tried)" } else { "" };
            format!(
                "The row lies in the reported block {} of {block_rows} rows{how}.",
                grouped(u128::from(block))
            )
        }
        Agreement::ColumnOfThread { thread, elements_per_thread: 1 } => {
            format!("The column is the reported thread, {thread}.")
        }
        Agreement::ColumnOfThread { thread, elements_per_thread } => {
            format!(
                "The column is that of the reported thread {thread}, {elements_per_thread} elements a thread."
            )
        }
        Agreement::WholeStride { block, thread, stride } => format!(
            "The index is exactly block {} × {} + thread {thread}: whole columns, which chance gives once in {}.",
            grouped(u128::from(block)),
            grouped(u128::from(stride)),
            grouped(u128::from(block)),
        ),
        Agreement::ElementSize => "The element size is the tensor's.".to_owned(),
        Agreement::AllocationSize { tensor_bytes } => format!(
            "The allocation is as large as a tensor in the evidence ({} bytes, rounded up).",
            grouped(u128::from(tensor_bytes))
        ),
    }
}

fn misaligned(off_by_bytes: u64, inside: bool) -> String {
    let off = if off_by_bytes > 0 { format!(" by {}", bytes(off_by_bytes)) } else { String::new() };
    let place = if inside { ", inside its allocation" } else { "" };
    format!(
        "The address is misaligned{off} for the size of the access{place}: a view or an offset that breaks the \
         alignment that a vector load needs. Not an integer overflow."
    )
}

fn wild(distance: Option<Distance>, reason: WildReason) -> String {
    let place = match distance {
        None => "No allocation is known near the address".to_owned(),
        Some(Distance::Before(gap)) => {
            format!("The address lies {} before the nearest allocation", bytes(gap))
        }
        Some(Distance::After(gap)) => {
            format!("The address lies {} past the end of the nearest allocation", bytes(gap))
        }
        Some(Distance::Inside(offset)) => {
            format!("The page lies {} inside a known allocation", bytes(offset))
        }
    };
    let why = match reason {
        WildReason::NoAllocation => {
            "the distance test can't run: memcheck's text report names the nearest one, its XML form names none"
        }
        WildReason::TooSmallToWrap { .. } => {
            "which is too small to hold an index past 2^31. Not a wrapped index into it: a wild index (an embedding or \
             gather past its table) or a stale pointer"
        }
        WildReason::NoIndexFits => {
            "and no wrapped 32-bit index into it explains that distance. A wild index or a stale pointer"
        }
        WildReason::SeveralFit => "and several allocations explain it equally well, so none of them does",
        WildReason::InsideKnownAllocation => {
            "that was mapped at another time: freed memory, or a list of allocations from another moment"
        }
    };
    let joint = if reason == WildReason::NoAllocation { ';' } else { ',' };
    format!("{place}{joint} {why}.")
}

fn bytes(count: u64) -> String {
    let unit = if count == 1 { "byte" } else { "bytes" };
    format!("{} {unit}", grouped(u128::from(count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::distance::{Access, Allocation, Context, read_access};

    fn read(address: u64, bytes: u64, base: u64, size: u64, context: &Context) -> String {
        let access = Access { address, bytes, reported_misaligned: false };
        sentence(&read_access(access, Some(Allocation { base, bytes: size }), context))
    }

    #[test]
    fn a_supported_wrap_shows_its_arithmetic() {
        let context = Context {
            block: Some([65_892, 0, 0]),
            thread: Some([32, 0, 0]),
            columns: vec![32_768],
            ..Context::default()
        };
        let text = read(0x7fa2_46c8_0080, 4, 0x7fa4_4400_0000, 9_175_040_000, &context);
        let want = "Moved back up by 1 × 2^32 × 4 bytes = 17,179,869,184 bytes, the access lands inside the allocation \
                    at element 2,159,149,088 = row 65,892, column 32 of 32,768 columns, past 2^31-1: an index that \
                    wrapped in 32 bits. The row is the reported block, 65,892. The column is the reported thread, 32.";
        assert_eq!(text, want);
    }

    #[test]
    fn a_suspected_wrap_says_what_chance_would_do() {
        let text = read(0x7f74_f8ed_2000, 16, 0x7f75_f800_0000, 4_326_424_576, &Context::default());
        assert!(text.contains("0.73 % of stray addresses would fit as well"), "{text}");
    }

    #[test]
    fn what_is_no_overflow_says_so() {
        let context = Context::default();
        let tail = read(0x7fce_7e80_1fa0, 4, 0x7fce_7e80_1000, 4_000, &context);
        assert!(
            tail.starts_with("The access ends 4 bytes past the end")
                && tail.contains("Not an integer overflow")
        );
        let gather = read(0x7f99_e280_0000, 4, 0x7f98_eac0_0000, 512, &context);
        assert!(gather.contains("4,156,554,752 bytes past the end"), "{gather}");
        assert!(gather.contains("Not a wrapped index"), "{gather}");
        let large = read(0x7f00_0000_0000 - 3_333_333_332, 4, 0x7f00_0000_0000, 80_000_000_000, &context);
        assert!(large.contains("This settles nothing"), "{large}");
    }
}
