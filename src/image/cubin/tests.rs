//! Recorded cubins: one of nvcc with fourteen kernels, one of Triton.

use super::*;

const CRASH: &[u8] = include_bytes!("../../../samples/ptx/crash.cubin");
const SCATTER: &[u8] = include_bytes!("../../../samples/triton-coredump/scatter_rows.cubin");

fn whole(bytes: &[u8]) -> Cubin {
    assert!(looks_like_cubin(bytes));
    let (cubin, diagnostics) = parse(bytes);
    assert_eq!(diagnostics, Vec::<String>::new());
    assert!(!cubin.loaded && cubin.has_lines());
    cubin
}

fn place(line: Option<SourceLine>) -> (String, u32) {
    let line = line.unwrap();
    (line.file, line.line)
}

#[test]
fn kernels_of_nvcc() {
    let cubin = whole(CRASH);
    assert_eq!(cubin.architecture, Some(90));
    let names: Vec<_> = cubin.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "jump",
            "deep",
            "deref",
            "hog",
            "divergent_sync",
            "uninit",
            "racy",
            "shared_oob",
            "trapping",
            "asserting",
            "misaligned",
            "gather",
            "add_unguarded",
            "fill_rows"
        ]
    );
    let gather = cubin.kernel("_Z6gatherPKfPKiPfi").unwrap();
    let at = |ordinal, offset, size| Param { ordinal, offset, size };
    assert_eq!(gather.params, [at(0, 0, 8), at(1, 8, 8), at(2, 16, 8), at(3, 24, 4)]);
    assert_eq!((gather.param_bytes, gather.bank_offset, gather.registers), (Some(28), Some(0x210), Some(12)));
    assert_eq!((gather.required_block, gather.shared_bytes), (None, 1024));
    let fill = cubin.kernel("_Z9fill_rowsPfiii").unwrap();
    assert_eq!(fill.params, [at(0, 0, 8), at(1, 8, 4), at(2, 12, 4), at(3, 16, 4)]);
}

#[test]
fn lines_of_nvcc() {
    let cubin = whole(CRASH);
    let file = "/home/user/lora/py/crash.cu".to_owned();
    assert_eq!(place(cubin.line_in("_Z6gatherPKfPKiPfi", 240)), (file.clone(), 20));
    assert_eq!(place(cubin.line_in("_Z6gatherPKfPKiPfi", 0)), (file.clone(), 18));
    assert_eq!(place(cubin.line_in("_Z9fill_rowsPfiii", 0)), (file.clone(), 10));
    assert_eq!(place(cubin.line_in("_Z4deepPii", 0xa0)), (file, 38));
    assert_eq!(cubin.line_in("_Z6gatherPKfPKiPfi", 512), None);
    assert_eq!(cubin.line_in("gather", 0), None);
}

#[test]
fn an_inlined_call_names_both_lines() {
    let cubin = whole(CRASH);
    let inside = cubin.line_in("_Z3hogPi", 0x20).unwrap();
    assert!(inside.file.ends_with("/device_atomic_functions.hpp"));
    assert_eq!(inside.line, 107);
    assert!(symbol::name(inside.inlined.as_deref().unwrap()).ends_with("::atomicAdd"));
    let hog = cubin.functions.iter().find(|function| function.symbol == "_Z3hogPi").unwrap();
    let chain = cubin.lines.inline_chain(section_base(hog.section) + 0x20);
    let lines: Vec<_> = chain.iter().map(|line| (line.line, line.inlined.is_some())).collect();
    assert_eq!(lines, [(107, true), (36, false)]);
    assert_eq!(cubin.line_in("_Z3hogPi", 0x90).unwrap().inlined, None);
}

#[test]
fn a_kernel_of_triton() {
    let cubin = whole(SCATTER);
    assert_eq!((cubin.architecture, cubin.kernels.len()), (Some(90), 1));
    let kernel = &cubin.kernels[0];
    assert_eq!((kernel.name.as_str(), kernel.param_bytes), ("scatter_rows", Some(48)));
    assert_eq!(kernel.required_block, Some([128, 1, 1]));
    let sizes: Vec<_> = kernel.params.iter().map(|param| (param.offset, param.size)).collect();
    assert_eq!(sizes, [(0, 8), (8, 8), (16, 4), (20, 4), (24, 4), (28, 4), (32, 8), (40, 8)]);
    assert_eq!(
        place(cubin.line_in("scatter_rows", 608)),
        ("/home/user/lora/py/more_cases.py".to_owned(), 30)
    );
    let ptx = String::from_utf8(cubin.ptx.unwrap()).unwrap();
    assert!(ptx.contains(".version 8.7\n.target sm_90a\n"));
}

#[test]
fn flags_hold_the_architecture_in_two_places() {
    assert_eq!(architecture(0x33, 0x005a_0d5a), Some(90));
    assert_eq!(architecture(0x41, 0x0600_5a04), Some(90));
    assert_eq!(architecture(0x41, 0x0a00_6404), Some(100));
    assert_eq!(architecture(0x33, 0), None);
}

#[test]
fn cut_anywhere_it_is_survived() {
    for cut in 0..SCATTER.len() {
        let (cubin, _) = parse(&SCATTER[..cut]);
        assert!(cubin.kernels.iter().all(|kernel| kernel.name == "scatter_rows" || kernel.name.is_empty()));
    }
}
