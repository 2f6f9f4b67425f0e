//! Kernels of the usual kinds as four releases of Triton compile them: nothing that fits is called a wrap, what wraps is
//! found at its boundary, and few accesses stay undecided.

use super::super::analyze::Kernel;
use super::super::bind::Bindings;
use super::super::finding::{Analysis, Answer};
use super::super::{ask, cache, names};

fn kernel(release: &str, name: &str) -> Kernel {
    let folder = "tests/fixtures/ttir";
    let text = std::fs::read_to_string(format!("{folder}/{release}/{name}.ttir")).unwrap();
    let mut kernel = cache::from_ttir(&text).remove(0);
    if kernel.model.params[0].name == "arg0" {
        let source = std::fs::read_to_string(format!("{folder}/kernels.py")).unwrap();
        assert!(cache::rename(&mut kernel, &names::python_parameters(&source, name).unwrap()));
    }
    kernel
}

fn at(kernel: &Kernel, grid: Option<&str>, set: &str) -> Analysis {
    let mut bindings = Bindings::default();
    for part in set.split_whitespace() {
        bindings.set(part).unwrap();
    }
    if let Some(grid) = grid {
        bindings.set_grid(grid).unwrap();
    }
    ask(kernel, &bindings, None)
}

const SQUARE: &str = "stride_ak=1 stride_bn=1 stride_cn=1";

/// release, kernel, grid, arguments, answer
const CASES: &[(&str, &str, Option<&str>, &str, Answer)] = &[
    (
        "3.0",
        "softmax_rows",
        None,
        "in_row_stride=32768 out_row_stride=32768 n_rows=65536 n_cols=1000",
        Answer::Fits,
    ),
    (
        "3.0",
        "softmax_rows",
        None,
        "in_row_stride=32768 out_row_stride=32768 n_rows=65537 n_cols=1000",
        Answer::Wraps,
    ),
    (
        "3.9",
        "softmax_rows",
        None,
        "in_row_stride=32768 out_row_stride=32768 n_rows=65536 n_cols=1000",
        Answer::Fits,
    ),
    (
        "3.9",
        "softmax_rows",
        None,
        "in_row_stride=32768 out_row_stride=32768 n_rows=65537 n_cols=1000",
        Answer::Wraps,
    ),
    (
        "3.0",
        "matmul_grouped",
        None,
        "M=4096 N=4096 K=4096 stride_am=4096 stride_bk=4096 stride_cm=4096",
        Answer::Fits,
    ),
    (
        "3.0",
        "matmul_grouped",
        None,
        "M=1000 N=777 K=333 stride_am=333 stride_bk=777 stride_cm=777",
        Answer::Fits,
    ),
    (
        "3.0",
        "matmul_grouped",
        None,
        "M=234624 N=9216 K=32 stride_am=32 stride_bk=9216 stride_cm=9216",
        Answer::Wraps,
    ),
    (
        "3.9",
        "matmul_grouped",
        None,
        "M=233016 N=9216 K=32 stride_am=32 stride_bk=9216 stride_cm=9216",
        Answer::Fits,
    ),
    (
        "3.9",
        "matmul_grouped",
        None,
        "M=234624 N=9216 K=32 stride_am=32 stride_bk=9216 stride_cm=9216",
        Answer::Wraps,
    ),
    ("3.3", "layer_norm_fwd", Some("262144"), "stride=8192 n_cols=5000", Answer::Fits),
    ("3.3", "layer_norm_fwd", Some("262145"), "stride=8192 n_cols=8192", Answer::Wraps),
    (
        "3.0",
        "attention_fwd",
        Some("32,64"),
        "stride_z=4194304 stride_h=262144 stride_m=64 H=16 N_CTX=4096",
        Answer::Fits,
    ),
    (
        "3.6",
        "attention_fwd",
        Some("1024,64"),
        "stride_z=268435456 stride_h=8388608 stride_m=64 H=32 N_CTX=131072",
        Answer::Fits,
    ),
    ("3.3", "attention_block_ptr", Some("32,64"), "stride_h=262144 stride_m=64 N_CTX=4096", Answer::Fits),
    ("3.0", "rotary", None, "seq_len=524288 n_heads=32 stride_tok=4096 stride_head=128", Answer::Fits),
    ("3.9", "rotary", None, "seq_len=524288 n_heads=32 stride_tok=4096 stride_head=128", Answer::Fits),
    ("3.9", "rotary", None, "seq_len=524289 n_heads=32 stride_tok=4096 stride_head=128", Answer::Wraps),
    ("3.9", "add_vec", None, "n=2147483647", Answer::Fits),
    ("3.3", "select_clamp", Some("1000"), "n_rows=1000 n_cols=200 stride=256", Answer::Fits),
    ("3.3", "select_clamp", Some("1000000"), "n_rows=1000000 n_cols=200 stride=4096", Answer::Wraps),
    ("3.9", "copy_descriptor", Some("2344,144"), "M=300000 N=9216", Answer::Fits),
    (
        "3.6",
        "paged_gather",
        Some("64,64"),
        "seq_len=4096 stride_page=1024 stride_slot=64 max_pages=256",
        Answer::Unknown,
    ),
    ("3.6", "histogram_atomic", None, "n=100000", Answer::Unknown),
    ("3.9", "grouped_gemm", Some("132"), "group_size=8", Answer::Unknown),
];

#[test]
fn every_release_gives_the_right_answer() {
    let (mut accesses, mut undecided) = (0, 0);
    for &(release, name, grid, set, answer) in CASES {
        let set = if name == "matmul_grouped" { format!("{set} {SQUARE}") } else { set.to_owned() };
        let found = at(&kernel(release, name), grid, &set);
        assert_eq!(found.answer, answer, "{release} {name} {set}: {:?} {:?}", found.unknown, found.findings);
        assert!(found.complaints.is_empty(), "{release} {name}: {:?}", found.complaints);
        accesses += found.accesses;
        undecided += found.undecided;
    }
    assert!(undecided * 5 < accesses, "{undecided} of {accesses} accesses are undecided");
}

#[test]
fn an_inlined_library_function_is_placed_at_its_call() {
    let kernel = kernel("3.0", "matmul_grouped");
    let places: Vec<_> = kernel.model.origins.iter().flatten().collect();
    assert!(places.iter().all(|place| place.file == "/home/user/kernels.py"), "{places:?}");
}

#[test]
fn a_loaded_index_names_where_it_was_loaded() {
    let found = at(&kernel("3.6", "histogram_atomic"), None, "n=100000");
    assert_eq!(found.unknown.len(), 1);
    assert!(found.unknown[0].what.contains("index of the atomic update of out_ptr is loaded from memory"));
}
