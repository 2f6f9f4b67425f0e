//! Signs that a printed kernel forms its indices in 64 bits.
//!
//! ```text
//! triton_meta={'signature': {'in_ptr0': '*bf16', 'xnumel': 'i64'}}
//!     xoffset = tl.program_id(0).to(tl.int64) * XBLOCK
//! ```
//!
//! In: the text and the shapes found in it. Out: [`ShapeMention::wide`] on the shapes past 2³¹−1. Whether the printed kernel is the
//! one that failed is left alone.
//!
//! [`ShapeMention::wide`]: crate::read::event::ShapeMention::wide

use crate::read::event::{Data, Event};
use crate::read::pattern::Pattern;

/// PyTorch's compiler gives the element count of a kernel 64 bits where 32 don't hold it, and widens the program's number then.
static WIDE: Pattern = Pattern::new(
    r#"['"][a-z]\d?numel['"]\s*:\s*['"]i64['"]|\btl\.program_id\(\s*(?:axis\s*=\s*)?\d\s*\)\.(?:to\(\s*tl\.int64|cast\(\s*tl\.int64)"#,
);

/// Bytes that are searched: kernels are printed when they are compiled, which is early.
const SEARCHED_BYTES: usize = 64 << 20;

/// Fills in the line of the first such sign.
pub fn mark(bytes: &[u8], events: &mut [Event]) {
    let mut large: Vec<_> = events
        .iter_mut()
        .filter_map(|event| match &mut event.data {
            Data::Shape(shape) if shape.passes_int32() => Some(shape),
            _ => None,
        })
        .collect();
    if large.is_empty() {
        return;
    }
    let line = first(bytes.get(..SEARCHED_BYTES).unwrap_or(bytes));
    for shape in &mut large {
        shape.wide = line;
    }
}

fn first(bytes: &[u8]) -> Option<u64> {
    // Few logs print kernels, and the exact words are found fast.
    let hits =
        memchr::memmem::find_iter(bytes, b"numel").chain(memchr::memmem::find_iter(bytes, b"tl.int64"));
    let mut at: Option<usize> = None;
    for hit in hits.take(4_096) {
        let start = bytes.get(..hit).and_then(|head| memchr::memrchr(b'\n', head)).map_or(0, |end| end + 1);
        let end = bytes
            .get(hit..)
            .and_then(|rest| memchr::memchr(b'\n', rest))
            .map_or(bytes.len(), |len| hit + len);
        let from = start.max(hit.saturating_sub(400));
        let line = String::from_utf8_lossy(bytes.get(from..end.min(hit + 400)).unwrap_or_default());
        if at.is_none_or(|known| start < known) && WIDE.is_match(&line) {
            at = Some(start);
        }
    }
    at.map(|start| 1 + memchr::memchr_iter(b'\n', bytes.get(..start).unwrap_or_default()).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn the_line_of_a_kernel_with_64_bit_indices() {
        let signature = "x\ntriton_meta={'signature': {'in_ptr0': '*bf16', 'xnumel': 'i64'}}\n";
        assert_eq!(first(signature.as_bytes()), Some(2));
        let widened = "a\nb\n    xoffset = tl.program_id(0).to(tl.int64) * XBLOCK\n";
        assert_eq!(first(widened.as_bytes()), Some(3));
        for narrow in [
            "triton_meta={'signature': {'in_ptr0': '*i64', 'xnumel': 'i32'}}\n",
            "    tmp0 = tl.load(in_ptr0 + x0).to(tl.int64)\n",
            "indices dtype=torch.int64 numel=4\n",
        ] {
            assert_eq!(first(narrow.as_bytes()), None, "{narrow}");
        }
    }
}
