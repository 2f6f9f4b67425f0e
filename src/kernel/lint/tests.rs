//! One source that does each thing wrong, its mended twin, and how to silence.

use super::super::analyze::FindingKind;
use super::*;

const WRONG: &str = r#"
import torch, triton
import triton.language as tl

@triton.jit
def no_mask(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) * 2)

@triton.jit
def missing_stride(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols)
    tl.store(y_ptr + row + offs, tl.max(x - 1.0), mask=offs < 1)

@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr = 100):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0)))

@triton.jit
def heavy(a_ptr, b_ptr, M, stride, BLOCK: tl.constexpr):
    a = tl.load(a_ptr + tl.arange(0, BLOCK)[:, None] * stride + tl.arange(0, BLOCK)[None, :])
    tl.store(b_ptr + tl.program_id(0) * 16, tl.dot(a, a))

heavy[(4,)](x, y, 5, 5, BLOCK=96, num_warps=8)
"#;

fn found(text: &str) -> Vec<(String, FindingKind, u32)> {
    let list = lint("k.py", text).into_iter();
    list.flat_map(|l| {
        l.findings.into_iter().map(move |f| (l.entry.clone(), f.kind, f.location.unwrap().line))
    })
    .collect()
}

#[test]
fn each_thing_is_found_where_it_stands() {
    use FindingKind::*;
    let expected = [
        ("no_mask", UnmaskedAccess, 8),
        ("no_mask", UnmaskedAccess, 8),
        ("missing_stride", MissingOther, 14),
        ("missing_stride", Int32Overflow, 14),
        ("missing_stride", MissingStride, 15),
        ("total", BlockNotPowerOfTwo, 19),
        ("total", NonAtomicStore, 20),
        ("heavy", BlockNotPowerOfTwo, 27),
        ("heavy", FixedNumWarps, 27),
    ];
    let expected: Vec<_> = expected.into_iter().map(|(n, k, l)| (n.to_owned(), k, l)).collect();
    assert_eq!(found(WRONG), expected);
}

#[test]
fn before_and_after_are_given() {
    let all = lint("k.py", WRONG);
    let stride = all[1].findings.iter().find(|f| f.kind == FindingKind::MissingStride).unwrap();
    assert_eq!(
        stride.remedy.as_deref(),
        Some("before: y_ptr + row + offs\nafter:  y_ptr + row * stride + offs")
    );
    let product = all[1].findings.iter().find(|f| f.kind == FindingKind::Int32Overflow).unwrap();
    assert_eq!(product.remedy.as_deref(), Some("before: row * n_cols\nafter:  row.to(tl.int64) * n_cols"));
    assert_eq!(product.reaches, "load from x_ptr");
    let other = all[1].findings.iter().find(|f| f.kind == FindingKind::MissingOther).unwrap();
    assert!(other.remedy.as_deref().unwrap().ends_with("mask=offs < n_cols, other=-float(\"inf\"))"));
}

#[test]
fn the_mended_kernel_is_clean() {
    let mended = r"
@triton.jit
def good(x_ptr, y_ptr, n_rows, n_cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=0.0)
    tl.store(y_ptr + row, tl.sum(x))
    if row == 0:
        tl.store(y_ptr, 1.0)

good[(4,)](x, y, 5, 5, 5, BLOCK=128, num_warps=8)
";
    assert_eq!(found(mended), []);
}

#[test]
fn a_comment_silences() {
    let quiet =
        WRONG.replace("x_ptr + offs) * 2)", "x_ptr + offs) * 2)  # warpfault: ignore[unmasked_access]");
    assert!(found(&quiet).iter().all(|(name, ..)| name != "no_mask"));
    let other = WRONG.replace("x_ptr + offs) * 2)", "x_ptr + offs) * 2)  # warpfault: ignore[missing_other]");
    assert_eq!(found(&other).len(), found(WRONG).len());
    let above = WRONG.replace("    tl.store(out_ptr,", "    # warpfault: ignore\n    tl.store(out_ptr,");
    assert!(found(&above).iter().all(|(_, kind, _)| *kind != FindingKind::NonAtomicStore));
}

#[test]
fn a_broken_source_is_read_as_far_as_it_goes() {
    assert!(found(&WRONG[..WRONG.len() / 2]).len() >= 2);
    assert_eq!(found("def f(:\n  ((((("), []);
    let deep = format!(
        "@triton.jit\ndef k(x_ptr):\n    tl.store(x_ptr + {}1{}, 0)\n",
        "(".repeat(3000),
        ")".repeat(3000)
    );
    let _ = found(&deep);
}
