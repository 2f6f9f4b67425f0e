//! What the compiled kernels of the samples answer.

use super::cache::{File, load_entry};
use super::*;

mod hostile;
mod releases;
mod rounds;
mod soundness;

const WRAP: &str = "HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA";
const DEBUG: &str = "JQTYYMV7TXEJYMSNVSHG2MR62TTHA27Y5LC3V7XKNR6KV42ZZZQA";
const NO_MASK: &str = "PY3URV6FO6GO6GS5CWTVRZT52VGUOU7IIJPAZ6CKXVBZ346SVP7Q";
const WIDE: &str = "Z3X5GRPAH7WDUJHAIBIK4YX5DQDQ2FPOPFI2ZF2GKDJNRBYNGZ5Q";

fn entry(folder: &str) -> cache::Entry {
    let mut held: Vec<(String, Vec<u8>)> = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        held.push((path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()));
    }
    held.sort();
    let files: Vec<File<'_>> = held.iter().map(|(name, bytes)| File { name, bytes }).collect();
    load_entry(folder, &files)
}

fn cached(key: &str) -> cache::Entry {
    entry(&format!("samples/triton-cache/{key}"))
}

fn bindings(text: &str) -> Bindings {
    let mut bindings = Bindings::default();
    for part in text.split_whitespace() {
        bindings.set(part).unwrap();
    }
    bindings
}

fn line(finding: &Finding) -> String {
    finding.location.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[test]
fn the_store_of_the_sample_kernel_wraps_and_its_load_does_not() {
    let kernel = &cached(WRAP).kernels[0];
    let found = ask(kernel, &bindings("M=234624 N=9216 K=32 stride_xm=32 stride_ym=9216"), Some("M"));
    assert_eq!((found.answer, found.findings.len(), found.unknown.len()), (Answer::Wraps, 1, 0));
    let finding = &found.findings[0];
    assert_eq!(finding.expression, "offs_m * stride_ym");
    assert_eq!(finding.reaches, "store to y_ptr");
    assert_eq!(line(finding), "triton_cases.py:18");
    assert_eq!((finding.max_value, finding.limit), (Some(2_162_285_568), Some(2_147_483_647)));
    let sweep = finding.sweep.as_ref().unwrap();
    assert_eq!((sweep.safe, sweep.lattice, sweep.safe_on_lattice), (233_017, 16, 233_008));
    assert_eq!(sweep.first_unsafe, Some(233_018));
    let witness = finding.witness.as_ref().unwrap();
    assert_eq!((witness.index, witness.wrapped), (2_162_285_568, 2_162_285_568 - (1 << 32)));
}

#[test]
fn below_its_boundary_it_fits() {
    let kernel = &cached(WRAP).kernels[0];
    for (m, answer) in [(233_016, Answer::Fits), (233_017, Answer::Fits), (233_018, Answer::Wraps)] {
        let found = ask(kernel, &bindings(&format!("M={m} N=9216 K=32 stride_xm=32 stride_ym=9216")), None);
        assert_eq!(found.answer, answer, "{m}");
    }
}

#[test]
fn without_the_other_arguments_the_store_is_still_found() {
    let kernel = &cached(WRAP).kernels[0];
    let found = ask(kernel, &bindings("M=234624 N=9216 stride_ym=9216"), Some("M"));
    assert_eq!((found.answer, found.findings.len()), (Answer::Wraps, 1));
    assert_eq!(found.findings[0].sweep.as_ref().unwrap().safe, 233_017);
    assert!(found.unknown.iter().any(|u| u.what.contains("stride_xm")), "{:?}", found.unknown);
}

#[test]
fn a_sweep_without_a_value_goes_to_what_fits_the_machine() {
    let kernel = &cached(WRAP).kernels[0];
    let found = ask(kernel, &bindings("N=9216 K=32 stride_xm=32 stride_ym=9216"), Some("M"));
    assert_eq!(
        (found.answer, found.findings.len()),
        (Answer::Wraps, 1),
        "only the store: {:?}",
        found.findings
    );
    assert_eq!(found.findings[0].sweep.as_ref().unwrap().safe, 233_017);
}

#[test]
fn another_width_has_another_boundary() {
    let kernel = &cached(WRAP).kernels[0];
    let found = ask(kernel, &bindings("M=1743104 N=1232 K=32 stride_xm=32 stride_ym=1232"), Some("M"));
    let sweep = found.findings[0].sweep.as_ref().unwrap();
    assert_eq!((sweep.safe, sweep.safe_on_lattice), (1_743_088, 1_743_088));
}

#[test]
fn the_widened_kernel_fits_at_any_size() {
    let kernel = &cached(WIDE).kernels[0];
    let found = ask(kernel, &bindings("N=9216 K=32 stride_xm=32 stride_ym=9216"), Some("M"));
    assert_eq!((found.answer, found.findings.len()), (Answer::Fits, 0));
    let found = ask(kernel, &bindings("M=333312 N=9216 K=32 stride_xm=32 stride_ym=9216"), None);
    assert_eq!(found.answer, Answer::Fits);
}

#[test]
fn the_debug_build_is_said_to_check_itself() {
    let kernel = &cached(DEBUG).kernels[0];
    let found = ask(kernel, &bindings("M=234624 N=9216 K=32 stride_xm=32 stride_ym=9216"), None);
    assert_eq!(found.answer, Answer::Wraps);
    assert!(found.notes.iter().any(|note| note.contains("debug build")), "{:?}", found.notes);
}

#[test]
fn an_access_without_a_mask_passes_the_end() {
    let kernel = &cached(NO_MASK).kernels[0];
    let found = ask(kernel, &bindings("n=1000"), None);
    let kinds: Vec<_> = found.findings.iter().map(|f| (f.kind, f.reaches.as_str())).collect();
    assert_eq!(
        kinds,
        [(FindingKind::UnmaskedAccess, "load from x_ptr"), (FindingKind::UnmaskedAccess, "store to y_ptr")]
    );
    assert_eq!((found.findings[0].max_value, found.findings[0].limit), (Some(1023), Some(999)));
    assert!(ask(kernel, &bindings("n=1024"), None).findings.is_empty());
    assert_eq!(ask(kernel, &bindings(""), None).findings[0].certainty, finding::Certainty::Suspected);
}

#[test]
fn ptx_with_its_sibling_has_the_boundary_on_the_lattice() {
    let entry = cached(WRAP);
    let kernel = &entry.ptx[0];
    for (m, answer) in [(233_008, Answer::Fits), (233_024, Answer::Wraps)] {
        let found = ask(kernel, &bindings(&format!("M={m} N=9216 K=32 stride_xm=32 stride_ym=9216")), None);
        assert_eq!(found.answer, answer, "{m} {:?}", found.unknown);
        assert!(
            found.findings.iter().all(|f| line(f) == "triton_cases.py:18" && f.reaches == "store to y_ptr")
        );
    }
}

#[test]
fn ptx_alone_states_its_assumption() {
    let text =
        std::fs::read_to_string(format!("samples/triton-cache/{WRAP}/fused_lora_xw_kernel.ptx")).unwrap();
    let kernel = &cache::from_ptx(&text)[0];
    let set = "param_3=233024 param_4=9216 param_5=32 param_6=32 param_7=9216";
    let found = ask(kernel, &bindings(set), None);
    assert!(found.stated.iter().any(|s| s.contains("divisibility")), "{:?}", found.stated);
    let mut on_lattice = bindings(&set.replace("233024", "233008"));
    on_lattice.set_lattice("param_3=16").unwrap();
    assert_eq!(ask(kernel, &on_lattice, None).answer, Answer::Fits);
    // Off the lattice a row's predicate also guards the row eight below it, which no mask covers.
    assert_eq!(ask(kernel, &bindings(&set.replace("233024", "233010")), None).answer, Answer::Wraps);
}

#[test]
fn cuda_rows_wrap_one_past_the_arithmetic_bound() {
    let text = std::fs::read_to_string("samples/ptx/crash.ptx").unwrap();
    let kernels = cache::from_ptx(&text);
    let kernel = kernels.iter().find(|k| k.model.entry.contains("fill_rows")).unwrap();
    for (rows, answer) in [(65_536, Answer::Fits), (65_537, Answer::Wraps)] {
        let mut bindings = bindings("param_2=32768 param_3=32768");
        bindings.set_grid(&rows.to_string()).unwrap();
        let found = ask(kernel, &bindings, None);
        assert_eq!(found.answer, answer, "{rows} {:?}", found.unknown);
        assert!(found.findings.iter().all(|f| line(f) == "crash.cu:12"));
    }
    let mut swept = bindings("param_2=32768 param_3=32768 rows=70000");
    swept.set_grid("rows").unwrap();
    let found = ask(kernel, &swept, Some("rows"));
    assert_eq!(found.findings[0].sweep.as_ref().unwrap().safe, 65_536);
}

#[test]
fn a_loaded_index_is_unknown_and_says_so() {
    let text = std::fs::read_to_string("samples/ptx/crash.ptx").unwrap();
    let kernels = cache::from_ptx(&text);
    let kernel = kernels.iter().find(|k| k.model.entry.contains("gather")).unwrap();
    let found = ask(kernel, &bindings("param_3=1024"), None);
    assert_eq!((found.answer, found.findings.len()), (Answer::Unknown, 0));
    assert!(found.unknown.iter().any(|u| u.what.contains("loaded from memory")), "{:?}", found.unknown);
}

#[test]
fn the_row_of_the_core_dump_wraps() {
    let entry = entry("samples/triton-coredump");
    let found =
        ask(&entry.kernels[0], &bindings("n_rows=300000 n_cols=4096 row_stride=8192 first_row=262144"), None);
    assert_eq!((found.answer, line(&found.findings[0]).as_str()), (Answer::Wraps, "more_cases.py:30"));
    assert_eq!(found.findings[0].max_value, Some(1 << 31));
    assert_eq!(entry.metadata.architecture, Some(90));
}

fn number(value: i128, name: Option<&str>) -> Number {
    Number { value, name: name.map(str::to_owned), must_appear: true }
}

#[test]
fn every_assignment_of_the_logs_numbers_wraps() {
    let numbers = [number(234_624, Some("M")), number(9216, None), number(32, None)];
    let found = assign(&cached(WRAP).kernels[0], &Bindings::default(), &numbers);
    assert!(found.always_wraps(), "{found:?}");
    assert!(found.tried > 1);
    assert_eq!(
        found.layout,
        [("stride_xm".to_owned(), "K".to_owned()), ("stride_ym".to_owned(), "N".to_owned())]
    );
    let below = [number(232_960, Some("M")), number(9216, None), number(32, None)];
    assert!(!assign(&cached(WRAP).kernels[0], &Bindings::default(), &below).always_wraps());
    let wide = assign(&cached(WIDE).kernels[0], &Bindings::default(), &numbers);
    assert_eq!(wide.tried > 0, !wide.always_wraps());
}
