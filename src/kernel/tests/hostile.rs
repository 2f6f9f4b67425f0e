//! Cut, corrupted and adversarial texts: they end, in bounds, and never in `fits` for a kernel whose end is missing.

use proptest::prelude::*;

use super::super::analyze::analyze;
use super::super::bind::Bindings;
use super::super::finding::Answer;
use super::super::{Kernel, cache};

const TTIR: &str =
    "samples/triton-cache/HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA/fused_lora_xw_kernel.ttir";
const PTX: &str = "samples/ptx/crash.ptx";

fn bindings() -> Bindings {
    let mut bindings = Bindings::default();
    for (name, value) in [("M", 1024), ("N", 9216), ("K", 32), ("stride_xm", 32), ("stride_ym", 9216)] {
        bindings.values.insert(name.into(), value);
    }
    bindings
}

fn read(path: &str, text: &str) -> Vec<Kernel> {
    if path.ends_with(".ptx") { cache::from_ptx(text) } else { cache::from_ttir(text) }
}

#[test]
fn a_cut_text_is_never_said_to_fit() {
    let text = std::fs::read_to_string(TTIR).unwrap();
    let end = text.find("  } loc(#loc)\n").unwrap();
    for cut in (0..end).step_by(37) {
        for kernel in read(TTIR, &text[..cut]) {
            assert_ne!(analyze(&kernel, &bindings()).answer, Answer::Fits, "cut at {cut}");
        }
    }
    let text = std::fs::read_to_string(PTX).unwrap();
    for cut in (0..text.len()).step_by(211) {
        for kernel in read(PTX, &text[..cut]) {
            let whole = text[..cut].contains(&format!("// .globl	{}", kernel.model.entry));
            let ended = kernel.model.lost.is_empty();
            let answer = analyze(&kernel, &bindings()).answer;
            assert!(ended && whole || answer != Answer::Fits, "cut at {cut}: {}", kernel.model.entry);
        }
    }
}

/// Texts that were corrupted by chance and once went wrong.
#[test]
fn a_broken_operand_is_no_shared_memory() {
    let text = std::fs::read_to_string(PTX).unwrap();
    let changed = text.replacen("mul.lo.s32 \t%r2, %r8, %r7;", "mul.lo.s32 \t%r2, !r8, %r7;", 1);
    assert_ne!(changed, text);
    let kernel = read(PTX, &changed).remove(0);
    assert_ne!(analyze(&kernel, &bindings()).answer, Answer::Fits);
    let text = std::fs::read_to_string(TTIR).unwrap();
    let changed = text.replacen("loc(\"w_ptr\"(#loc))", "loc^\"w_ptr\"(#loc))", 1);
    assert_ne!(changed, text);
    assert!(read(TTIR, &changed).len() <= 1);
}

#[test]
fn an_unknown_instruction_makes_it_unknown() {
    let text = std::fs::read_to_string(PTX).unwrap();
    let changed = text.replace("add.s32 	%r9, %r10, %r2;", "frobnicate.s32 	%r9, %r10, %r2;");
    assert_ne!(changed, text);
    let kernel = read(PTX, &changed).into_iter().find(|k| k.model.entry.contains("fill_rows")).unwrap();
    let mut bindings = Bindings::default();
    for (name, value) in [("param_2", 8), ("param_3", 8)] {
        bindings.values.insert(name.into(), value);
    }
    bindings.set_grid("8").unwrap();
    let found = analyze(&kernel, &bindings);
    assert_eq!(found.answer, Answer::Unknown);
    assert!(found.unknown.iter().any(|u| u.what.contains("frobnicate")), "{:?}", found.unknown);
}

#[test]
fn an_unknown_operation_makes_it_unknown() {
    let text = std::fs::read_to_string(TTIR).unwrap();
    let changed = text.replace("%1 = arith.muli %mask, %0", "%1 = arith.frobnicate %mask, %0");
    let kernel = read(TTIR, &changed).remove(0);
    let found = analyze(&kernel, &bindings());
    assert_eq!(found.answer, Answer::Unknown);
    assert!(found.unknown.iter().any(|u| u.what.contains("arith.frobnicate")), "{:?}", found.unknown);
}

#[test]
fn deep_and_long_texts_end() {
    let mut ttir = String::from(
        "module {\n  tt.func public @k(%p: !tt.ptr<f32>, %a: i32) {\n    %v0 = arith.addi %a, %a : i32\n",
    );
    for at in 1..20_000 {
        ttir.push_str(&format!("    %v{at} = arith.muli %v{}, %a : i32\n", at - 1));
    }
    ttir.push_str("    %q = tt.addptr %p, %v19999 : !tt.ptr<f32>, i32\n    %x = tt.load %q : !tt.ptr<f32>\n    tt.return\n  }\n}\n");
    let found = analyze(&read("k.ttir", &ttir)[0], &Bindings::default());
    assert_eq!(found.answer, Answer::Unknown);
    let nested =
        format!("module {{\n tt.func public @k(%p: !tt.ptr<f32>) {{\n{}", "scf.if %p {\n".repeat(50_000));
    let _ = read("k.ttir", &nested);
    let brackets = format!("#loc = loc({}", "callsite(".repeat(50_000));
    let _ = read("k.ttir", &brackets);
    let mut ptx = String::from(".visible .entry k(.param .u64 k_param_0)\n{\nmov.u32 %r0, %tid.x;\n");
    for at in 1..20_000 {
        ptx.push_str(&format!("mul.lo.s32 %r{at}, %r{}, %r0;\n", at - 1));
    }
    ptx.push_str("mul.wide.s32 %rd1, %r19999, 4;\nld.param.u64 %rd2, [k_param_0];\nadd.s64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r1;\nret;\n}\n");
    let found = analyze(&read("k.ptx", &ptx)[0], &Bindings::default());
    assert_eq!(found.answer, Answer::Unknown);
    let mut branches = String::from(".visible .entry k(.param .u64 k_param_0)\n{\n");
    for at in 0..3_000 {
        branches.push_str(&format!("$L{at}:\n@%p{at} bra $L{};\n", (at * 7919) % 3_000));
    }
    branches.push_str("st.global.u32 [%rd3], %r1;\nret;\n}\n");
    let _ = analyze(&read("k.ptx", &branches)[0], &Bindings::default());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn corrupted_texts_end(
        which in 0usize..2,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let path = [TTIR, PTX][which];
        let mut bytes = std::fs::read(path).unwrap();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        for kernel in read(path, &String::from_utf8_lossy(&bytes)) {
            let _ = analyze(&kernel, &bindings());
        }
    }
}
