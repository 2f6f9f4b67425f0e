//! One source that does each thing wrong, its mended twin, and how to silence.

use super::super::finding::FindingKind;
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

/// What silences a kernel's lints, and what it should say where nothing does.
#[test]
fn every_lint_is_silenced_by_its_own_name() {
    use FindingKind::*;
    let kinds = [
        (UnmaskedAccess, "unmasked_access"),
        (MissingOther, "missing_other"),
        (Int32Overflow, "int32_overflow"),
        (MissingStride, "missing_stride"),
        (BlockNotPowerOfTwo, "block_not_power_of_two"),
        (NonAtomicStore, "non_atomic_store"),
        (FixedNumWarps, "fixed_num_warps"),
    ];
    for (kind, name) in kinds {
        assert!(found(WRONG).iter().any(|(_, k, _)| *k == kind), "{name}");
        let quiet: Vec<String> = WRONG
            .lines()
            .map(|line| match line.trim() {
                "" => line.to_owned(),
                _ => format!("{line}  # warpfault: ignore[{name}]"),
            })
            .collect();
        let quiet = found(&quiet.join("\n"));
        assert!(quiet.iter().all(|(_, k, _)| *k != kind), "{name}: {quiet:?}");
        let others = found(WRONG).iter().filter(|(_, k, _)| *k != kind).count();
        assert_eq!(quiet.len(), others, "{name}");
    }
    // In a string it is no comment.
    let text = WRONG.replace("tl.store(out_ptr,", "\"# warpfault: ignore\"; tl.store(out_ptr,");
    assert_eq!(found(&text).len(), found(WRONG).len());
}

fn kinds(body: &str) -> Vec<(FindingKind, u32)> {
    let head = "@triton.jit\ndef k(x_ptr, y_ptr, w_ptr, n, m, stride, H, D: tl.constexpr, EVEN: tl.constexpr, BLOCK: tl.constexpr):\n";
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    found(&format!("{head}{body}")).into_iter().map(|(_, kind, line)| (kind, line - 2)).collect()
}

const TILE: &str = "pid = tl.program_id(0)\noffs = pid * BLOCK + tl.arange(0, BLOCK)\n";

fn tile(body: &str) -> Vec<(FindingKind, u32)> {
    kinds(&format!("{TILE}{body}"))
}

#[test]
fn a_product_in_32_bits_is_told_once() {
    let twice =
        "x = tl.load(x_ptr + pid * stride + tl.arange(0, D))\ntl.store(y_ptr + pid * stride, tl.sum(x))";
    assert_eq!(tile(twice), [(FindingKind::Int32Overflow, 3)]);
    let all = lint(
        "k.py",
        "@triton.jit\ndef k(x_ptr, m):\n    pid = tl.program_id(0)\n    tl.store(x_ptr + pid * m, 1)\n    tl.store(x_ptr + 1 + pid * m, 1)\n",
    );
    assert!(all[0].findings[0].detail.ends_with("; so too on line 5"), "{}", all[0].findings[0].detail);
    // Through names, in a loop, in a tuple, and widened too late.
    let through = "off = pid * stride + tl.arange(0, D)\ntl.store(x_ptr + off, 1)";
    assert_eq!(tile(through), [(FindingKind::Int32Overflow, 3)]);
    let looped = "for row in range(pid, n, m):\n    tl.store(x_ptr + row * stride, 1)";
    assert_eq!(tile(looped), [(FindingKind::Int32Overflow, 4)]);
    let pair = "a, b = tl.program_id(1), 0\ntl.store(x_ptr + a * stride, 1)";
    assert_eq!(tile(pair), [(FindingKind::Int32Overflow, 4)]);
    let late = "tl.store(x_ptr + (pid * stride).to(tl.int64), 1)";
    assert_eq!(tile(late), [(FindingKind::Int32Overflow, 3)]);
}

#[test]
fn a_wide_or_small_product_is_none() {
    for body in [
        "tl.store(x_ptr + pid.to(tl.int64) * stride, 1)",
        "tl.store(x_ptr + tl.cast(pid, tl.int64) * stride, 1)",
        "row = pid.to(tl.int64)\ntl.store(x_ptr + row * stride, 1)",
        "off = (pid.to(tl.int64) * stride) + offs\ntl.store(x_ptr + off, 1, mask=offs < n)",
        // a constant width, a head
        "tl.store(x_ptr + pid * D, 1)",
        "tl.store(x_ptr + (pid % H) * stride, 1)",
        "head = tl.program_id(1)\ntl.store(x_ptr + head * stride, 1)",
    ] {
        assert_eq!(tile(body), [], "{body}");
    }
    let wide =
        "@triton.jit\ndef k(x_ptr, stride: tl.int64):\n    tl.store(x_ptr + tl.program_id(0) * stride, 1)\n";
    assert_eq!(found(wide), []);
}

#[test]
fn a_block_is_masked_or_said_to_fit() {
    assert_eq!(tile("tl.store(y_ptr + offs, 1)"), [(FindingKind::UnmaskedAccess, 3)]);
    assert_eq!(tile("p = x_ptr + offs[:, None] * D\nx = tl.load(p)"), [(FindingKind::UnmaskedAccess, 4)]);
    assert_eq!(
        kinds("start = tl.program_id(0) * BLOCK\ntl.store(y_ptr + start + tl.arange(0, BLOCK), 1)"),
        [(FindingKind::UnmaskedAccess, 2)]
    );
    for body in [
        "tl.store(y_ptr + offs, 1, mask=offs < n)",
        "tl.store(y_ptr + offs, 1, offs < n)",
        "tl.store(y_ptr + offs % n, 1)",
        "offs = offs % n\ntl.store(y_ptr + offs, 1)",
        // one row's own width
        "tl.store(y_ptr + pid * D + tl.arange(0, BLOCK), 1)",
        "if EVEN:\n    tl.store(y_ptr + offs, 1)\nelse:\n    tl.store(y_ptr + offs, 1, mask=offs < n)",
        "if EVEN:\n    x = tl.load(x_ptr + offs)",
        // whole blocks first, the last one under a mask
        "for i in range(0, n):\n    x = tl.load(x_ptr + offs)\nx = tl.load(x_ptr + offs, mask=offs < n)",
    ] {
        assert_eq!(tile(body), [], "{body}");
    }
    let asserted = "@triton.jit\ndef k(x_ptr, BLOCK: tl.constexpr):\n    tl.store(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1)\n\ndef f(x):\n    assert x.numel() % 64 == 0\n    k[(9,)](x, BLOCK=64)\n";
    assert_eq!(found(asserted), []);
}

#[test]
fn undefined_lanes_count_where_they_are_reduced() {
    let other = [(FindingKind::MissingOther, 3)];
    let masked = |rest: &str| tile(&format!("x = tl.load(x_ptr + offs, mask=offs < n)\n{rest}"));
    assert_eq!(masked("s = tl.sum(x)"), other);
    assert_eq!(masked("s = tl.max(tl.exp(x.to(tl.float32)), axis=0)"), other);
    assert_eq!(masked("z = x * 2.0\nz += 1\ns = tl.sum(z * z, 0)"), other);
    for body in [
        "tl.store(y_ptr + offs, x * 2, mask=offs < n)",
        "x = tl.where(offs < n, x, 0.0)\ns = tl.sum(x)",
        "s = tl.sum(tl.where(offs < n, x, 0.0))",
        "s = tl.cumsum(x, 0)",
        "w = tl.load(w_ptr + offs, mask=offs < n, other=0.0)\ns = tl.sum(w * x)",
        "x = tl.load(y_ptr + offs, mask=offs < n, other=0.0)\ns = tl.sum(x)",
    ] {
        assert_eq!(masked(body), [], "{body}");
    }
    let block = |mask: &str, rest: &str| {
        tile(&format!(
            "c = tl.arange(0, D)\nx = tl.load(x_ptr + offs[:, None] * D + c[None, :], mask={mask})\n{rest}"
        ))
    };
    let rows = "offs[:, None] < n";
    let other = [(FindingKind::MissingOther, 4)];
    assert_eq!(block(rows, "s = tl.sum(x, axis=1)"), []);
    assert_eq!(block(rows, "s = tl.sum(x, axis=0)"), other);
    assert_eq!(block(rows, "s = tl.sum(x)"), other);
    assert_eq!(block("c[None, :] < n", "s = tl.max(x, axis=1)"), other);
    assert_eq!(block(rows, "y = tl.dot(x, tl.load(w_ptr + c[:, None] * D + c[None, :]))"), []);
    assert_eq!(block("(offs[:, None] < n) & (c[None, :] < m)", "y = tl.dot(x, x)"), other);
    assert_eq!(
        block(rows, "w = tl.load(w_ptr + c[:, None] * D, other=0.0, mask=c[:, None] < m)\ny = tl.dot(w, x)"),
        []
    );
}

#[test]
fn one_address_for_all_programs() {
    let sum = "s = tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0))\n";
    let stored = |rest: &str| tile(&format!("{sum}{rest}"));
    assert_eq!(stored("tl.store(y_ptr, s)"), [(FindingKind::NonAtomicStore, 4)]);
    assert_eq!(stored("tl.store(y_ptr + 1, s)"), [(FindingKind::NonAtomicStore, 4)]);
    for body in [
        "tl.atomic_add(y_ptr, s)",
        "tl.store(y_ptr + pid, s)",
        "y_ptr += pid\ntl.store(y_ptr, s)",
        "if pid == 0:\n    tl.store(y_ptr, s)",
        "if pid > 0:\n    return\ntl.store(y_ptr, s)",
        "last = tl.atomic_add(w_ptr, 1) == n\nif last:\n    tl.store(y_ptr, s)",
        "tl.store(y_ptr, 1)",
        "slot = tl.load(w_ptr + pid)\ntl.store(y_ptr + slot, s)",
    ] {
        assert_eq!(stored(body), [], "{body}");
    }
    for grid in ["(1,)", "(1, 1, 1)"] {
        let text = format!(
            "@triton.jit\ndef k(x_ptr):\n    tl.store(x_ptr, tl.program_id(0))\n\ndef f(x):\n    grid = {grid}\n    k[grid](x)\n"
        );
        assert_eq!(found(&text), [], "{grid}");
        let many = text.replace(grid, "(n,)");
        assert_eq!(found(&many).len(), 1);
    }
}

#[test]
fn a_row_beside_its_columns_needs_a_stride() {
    let row = "c = tl.arange(0, D)\n";
    let at = |rest: &str| tile(&format!("{row}{rest}"));
    assert_eq!(at("x = tl.load(x_ptr + pid + c)"), [(FindingKind::MissingStride, 4)]);
    assert_eq!(at("p = x_ptr + pid\nx = tl.load(p + c)"), [(FindingKind::MissingStride, 5)]);
    for body in [
        "x = tl.load(x_ptr + pid * D + c)",
        "x = tl.load(x_ptr + pid)",
        // the program is the column
        "x = tl.load(x_ptr + c * m + pid)",
        "x = tl.load(x_ptr + pid + tl.arange(0, 1))",
    ] {
        assert_eq!(at(body), [], "{body}");
    }
}

#[test]
fn blocks_and_warps() {
    let text = |decorator: &str, size: &str, warps: &str| {
        format!(
            "{decorator}\n@triton.jit\ndef k(a_ptr, BLOCK: tl.constexpr):\n    x = tl.arange(0, BLOCK)\n    tl.store(a_ptr, tl.dot(x, x))\n\nk[(1,)](a, BLOCK={size}, num_warps={warps})\n"
        )
    };
    let kinds = |text: String| found(&text).into_iter().map(|(_, kind, _)| kind).collect::<Vec<_>>();
    assert_eq!(kinds(text("", "128", "w")), []);
    assert_eq!(kinds(text("", "96", "w")), [FindingKind::BlockNotPowerOfTwo]);
    assert_eq!(kinds(text("", "128", "8")), [FindingKind::FixedNumWarps]);
    assert_eq!(kinds(text("@triton.autotune(configs=[], key=['n'])", "128", "8")), []);
    // without a `dot` it is no heavy kernel
    assert_eq!(kinds(text("", "128", "8").replace("tl.dot(x, x)", "1")), []);
}

#[test]
fn hostile_sources_end() {
    let head = "@triton.jit\ndef k(x_ptr, n):\n    p = tl.program_id(0)\n";
    let sum = format!("{head}    tl.store(x_ptr{}, p)\n", " + p * n".repeat(20_000));
    let product = format!(
        "{head}    x = tl.load(x_ptr, p < n)\n    tl.store(x_ptr, tl.sum(x{}))\n",
        " * x".repeat(5_000)
    );
    let names: String =
        (0..3_000).map(|i| format!("    a = a + b{i} + tl.load(x_ptr + a * n)\n    b{i} = a\n")).collect();
    let nested: String =
        (0..300).map(|i| format!("{}@triton.jit\n{}def k{i}(x):\n", " ".repeat(i), " ".repeat(i))).collect();
    let returns = format!("{head}{}", "    if p: return\n    tl.store(x_ptr, p)\n".repeat(3_000));
    for text in [
        sum,
        product,
        format!("{head}{names}"),
        nested,
        returns,
        format!("{head}{}", "k[(1,)](a)\n".repeat(5_000)),
    ] {
        let _ = found(&text);
    }
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

#[test]
fn a_mend_changes_the_name_that_it_means() {
    let text = r"
@triton.jit
def k(x_ptr, rows_x, n, BLOCK: tl.constexpr):
    x = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + rows_x * x + offs, 1.0, mask=offs < n)
    tl.store(x_ptr + x + offs, 1.0, mask=offs < n)
";
    let remedies: Vec<String> =
        lint("k.py", text).remove(0).findings.into_iter().filter_map(|f| f.remedy).collect();
    assert_eq!(
        remedies,
        [
            "before: rows_x * x\nafter:  rows_x * x.to(tl.int64)",
            "before: x_ptr + x + offs\nafter:  x_ptr + x * stride + offs"
        ]
    );
}

#[test]
fn a_method_reduces_the_axis_that_it_names_and_a_builtin_reduces_nothing() {
    let kernel = |body: &str| {
        format!(
            "@triton.jit\ndef k(p, o, n, B: tl.constexpr):\n    c = tl.arange(0, B)\n    m = (c < n)[None, :]\n    x = tl.load(p + c[:, None] * 64 + c[None, :], mask=m)\n    tl.store(o + c, {body})\n"
        )
    };
    let others = |body: &str| {
        found(&kernel(body)).into_iter().filter(|(_, kind, _)| *kind == FindingKind::MissingOther).count()
    };
    assert_eq!(others("x.sum(0)"), 0);
    assert_eq!(others("x.sum(1)"), 1);
    assert_eq!(others("tl.sum(x, 0)"), 0);
    assert_eq!(others("x.sum()"), 1);
    assert_eq!(others("max(x, 0.0)"), 0);
    assert_eq!(others("tl.sum(max(x, 0.0), axis=1)"), 1);
}

#[test]
fn two_comments_on_one_line_both_count() {
    let both = WRONG.replace(
        "    tl.store(y_ptr + row + offs, tl.max(x - 1.0), mask=offs < 1)",
        "    # warpfault: ignore[missing_stride]\n    tl.store(y_ptr + row + offs, tl.max(x - 1.0), mask=offs < 1)  # warpfault: ignore[int32_overflow]",
    );
    assert!(found(&both).iter().all(|(_, kind, _)| *kind != FindingKind::MissingStride));
}

/// A message's `%` asserts nothing.
#[test]
fn an_assertion_speaks_by_its_condition() {
    let launch = |assertion: &str| {
        format!("{WRONG}\ndef run(x, y, n):\n    {assertion}\n    no_mask[(4,)](x, y, n, BLOCK=64)\n")
    };
    let unmasked = |text: &str| found(text).iter().filter(|(name, ..)| name == "no_mask").count();
    assert_eq!(unmasked(&launch("assert n % 64 == 0")), 0);
    assert_eq!(unmasked(&launch("assert n > 0, 'bad n: %d' % n")), 2);
}

/// Tiles whose start holds tiles, forty deep: asked level by level they would be asked 2⁴⁰ times.
#[test]
fn tiles_within_tiles_are_asked_once() {
    let deep = (0..40).fold("n".to_owned(), |e, _| format!("({e}) * B + tl.arange(0, B)"));
    let text = format!("@triton.jit\ndef k(p, n, B: tl.constexpr):\n    tl.store(p + {deep}, 1)\n");
    assert_eq!(lint("k.py", &text).len(), 1);
}

/// No power of two of 64 bits is as large.
#[test]
fn a_block_beyond_every_power_is_told_without_one() {
    let text = "@triton.jit\ndef k(p):\n    tl.store(p + tl.arange(0, 9999999999999999999), 1)\n";
    let findings = lint("k.py", text).remove(0).findings;
    let odd = findings.iter().find(|f| f.kind == FindingKind::BlockNotPowerOfTwo).unwrap();
    assert!(odd.remedy.as_deref().unwrap().ends_with("after:  triton.next_power_of_2(n)"));
}

/// Each name is made of the one before, eight times over: asked anew each time they would be asked 8⁶ times.
#[test]
fn masks_of_masks_are_asked_once() {
    let mut text = "@triton.jit\ndef k(p, o, n, B: tl.constexpr):\n    m0 = tl.arange(0, B) < n\n".to_owned();
    for at in 1..7 {
        let eight = vec![format!("m{}", at - 1); 8].join(" & ");
        text.push_str(&format!("    m{at} = {eight}\n"));
    }
    text.push_str("    x = tl.load(p + tl.arange(0, B), mask=m6)\n    tl.store(o, tl.sum(x))\n");
    assert!(found(&text).iter().any(|(_, kind, _)| *kind == FindingKind::MissingOther));
}
