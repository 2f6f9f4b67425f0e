//! Binding against the compiled kernels of the samples.

use std::path::Path;

use super::*;
use crate::probe::load::load;
use crate::probe::protocol::Backing;

fn cached(entry: &str) -> Target {
    load(Path::new("samples/triton-cache"), Some(entry)).unwrap()
}

fn crash(entry: &str) -> Target {
    load(Path::new("samples/ptx/crash.ptx"), Some(entry)).unwrap()
}

fn spec(sets: &[&str]) -> Spec {
    let pairs = sets.iter().map(|set| set.split_once('=').unwrap());
    Spec { set: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), ..Spec::default() }
}

fn bytes_of(bound: &Bound, name: &str) -> u64 {
    match &bound.arguments.iter().find(|argument| argument.name == name).unwrap().argument {
        Argument::Buffer(buffer) => buffer.bytes,
        other => panic!("{other:?}"),
    }
}

fn wanted(binding: Binding) -> Vec<String> {
    match binding {
        Binding::Wanted(wanted) => wanted.into_iter().map(|want| want.option).collect(),
        Binding::Ready(bound) => panic!("{bound:?}"),
    }
}

#[test]
fn two_sizes_bind_the_whole_sample_kernel() {
    let target = cached("fused_lora_xw_kernel");
    let bound = bind(&target, &spec(&["N=9216", "K=32"]), Some(("M", 233_024)), Placement::End).unwrap();
    let bound = bound.ready().unwrap();
    assert_eq!((bound.grid, bound.block, bound.shared_bytes), ([1_821, 72, 1], [128, 1, 1], 49_152));
    assert_eq!(bytes_of(&bound, "y_ptr"), 233_024 * 9_216 * 2);
    assert_eq!(bytes_of(&bound, "x_ptr"), 233_024 * 32 * 2);
    assert_eq!(bytes_of(&bound, "w_ptr"), 32 * 9_216 * 2);
    let shown: Vec<(&str, &str)> =
        bound.arguments.iter().map(|a| (a.name.as_str(), a.shown.as_str())).collect();
    assert_eq!(
        shown[3..8],
        [("M", "233024"), ("N", "9216"), ("K", "32"), ("stride_xm", "32"), ("stride_ym", "9216")]
    );
    assert_eq!(bound.arguments[7].from, "rows of y_ptr lie end to end");
    assert_eq!(bound.arguments[8].argument, Argument::Address { address: 0 });
    assert_eq!(bound.arguments.len(), 10);
    let Argument::Buffer(y) = &bound.arguments[2].argument else { panic!() };
    assert_eq!((y.align, y.backing), (16, Backing::Aliased));
}

#[test]
fn what_cannot_be_told_is_listed() {
    let target = cached("fused_lora_xw_kernel");
    let binding = bind(&target, &spec(&["N=9216"]), Some(("M", 233_024)), Placement::End).unwrap();
    assert_eq!(wanted(binding.clone()), ["--set K=NUMBER", "--set stride_xm=NUMBER"]);
    let error = binding.ready().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.hint_text().unwrap().contains("--set K=NUMBER"));
}

#[test]
fn an_access_without_a_mask_asks_for_the_size() {
    let target = cached("no_mask_kernel");
    let mut settings = spec(&["n=1000"]);
    assert_eq!(
        wanted(bind(&target, &settings, None, Placement::End).unwrap()),
        ["--grid EXPRESSIONS (as in cdiv(M,128),72)"]
    );
    settings.grid = Some("cdiv(n,1024)".into());
    assert_eq!(
        wanted(bind(&target, &settings, None, Placement::End).unwrap()),
        ["--set x_ptr=ELEMENTS (as in M*N)", "--set y_ptr=ELEMENTS (as in M*N)"]
    );
    settings.set.insert("x_ptr".into(), "n".into());
    settings.set.insert("y_ptr".into(), "n".into());
    let bound = bind(&target, &settings, None, Placement::End).unwrap().ready().unwrap();
    assert_eq!((bytes_of(&bound, "x_ptr"), bound.grid), (4_000, [1, 1, 1]));
}

#[test]
fn off_the_lattice_is_refused_with_the_reason() {
    let target = cached("fused_lora_xw_kernel");
    for sets in [&["N=9216", "K=33"], &["N=1000", "K=32"]] {
        let error = bind(&target, &spec(sets), Some(("M", 233_024)), Placement::End).unwrap_err();
        assert!(error.to_string().contains("no multiple of 16"), "{error}");
    }
}

#[test]
fn an_index_tensor_asks_for_its_contents() {
    let target = crash("gather");
    let mut settings = spec(&["arg3=1024", "arg0=1024", "arg1=1024", "arg2=1024"]);
    settings.block = Some("256".into());
    settings.grid = Some("4".into());
    let asked = wanted(bind(&target, &settings, None, Placement::End).unwrap());
    assert_eq!(asked.len(), 1);
    assert!(asked[0].starts_with("--set arg1=COUNT:iota"));
    settings.set.insert("arg1".into(), "1024:iota".into());
    let bound = bind(&target, &settings, None, Placement::End).unwrap().ready().unwrap();
    let Argument::Buffer(index) = &bound.arguments[1].argument else { panic!() };
    assert_eq!((index.backing, index.bytes, index.align), (Backing::Whole, 4_096, 4));
}

#[test]
fn values_may_be_written_in_terms_of_each_other_but_not_in_a_circle() {
    let target = crash("fill_rows");
    let mut settings = spec(&["arg2=32768", "arg3=arg2", "arg0=arg1*arg3"]);
    settings.block = Some("256".into());
    settings.grid = Some("arg1".into());
    let bound = bind(&target, &settings, Some(("arg1", 65_537)), Placement::Start).unwrap().ready().unwrap();
    assert_eq!((bytes_of(&bound, "arg0"), bound.grid), (65_537 * 32_768 * 4, [65_537, 1, 1]));
    settings.set.insert("arg2".into(), "arg3".into());
    assert!(!wanted(bind(&target, &settings, Some(("arg1", 65_537)), Placement::Start).unwrap()).is_empty());
}

#[test]
fn pointers_that_point_nowhere_good() {
    let target = crash("deref");
    let settings = |value: &str| {
        let mut settings = spec(&[&format!("arg0={value}")]);
        (settings.block, settings.grid) = (Some("32".into()), Some("1".into()));
        settings
    };
    let argument = |value| {
        bind(&target, &settings(value), None, Placement::End).unwrap().ready().unwrap().arguments[0]
            .argument
            .clone()
    };
    assert_eq!(argument("null"), Argument::Address { address: 0 });
    assert_eq!(argument("host"), Argument::Host { bytes: 4_096 });
    assert_eq!(argument("freed(67108864)"), Argument::Freed { bytes: 64 << 20, reused: false });
}
