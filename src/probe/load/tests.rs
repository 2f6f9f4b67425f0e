//! Loading against the compiled kernels of the samples.

use super::super::target::ParameterKind;
use super::*;

const CACHE: &str = "samples/triton-cache";

#[test]
fn an_entry_of_a_cache_is_found_by_name_and_the_debug_build_left_aside() {
    let target = load(Path::new(CACHE), Some("fused_lora_xw_kernel")).unwrap();
    assert!(target.path.ends_with("HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA"));
    assert_eq!(
        (target.source, target.block, target.shared_bytes),
        (SourceKind::TritonCache, Some([128, 1, 1]), 49_152)
    );
    assert_eq!(target.architecture, Some(90));
    let kinds: Vec<_> = target.images.iter().map(|image| image.kind).collect();
    assert_eq!(kinds, [ImageKind::Cubin, ImageKind::Ptx]);
    let names: Vec<&str> = target.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(names, ["x_ptr", "w_ptr", "y_ptr", "M", "N", "K", "stride_xm", "stride_ym", "arg8", "arg9"]);
    let sizes: Vec<u32> = target.parameters.iter().map(|parameter| parameter.size_bytes).collect();
    assert_eq!(sizes, [8, 8, 8, 4, 4, 4, 4, 4, 8, 8]);
    let hidden: Vec<bool> = target.parameters.iter().map(|parameter| parameter.hidden).collect();
    assert_eq!(hidden.iter().filter(|hidden| **hidden).count(), 2);
    assert_eq!(target.parameters[2].kind, ParameterKind::Pointer(Some(2)));
    assert_eq!((target.parameters[3].kind, target.parameters[3].divisibility), (ParameterKind::Integer, 16));
    assert!(target.notes.iter().any(|note| note.starts_with("2 of this name")), "{:?}", target.notes);
}

#[test]
fn a_key_names_the_other_build() {
    let target = load(Path::new(CACHE), Some("JQTYYMV7")).unwrap();
    assert!(target.path.to_string_lossy().contains("JQTYYMV7"));
}

#[test]
fn several_kernels_ask_for_a_name() {
    let error = load(Path::new(CACHE), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert_eq!(
        error.hint_text(),
        Some("name one with --entry: fused_lora_xw_kernel, fused_lora_xw_kernel_i64, no_mask_kernel")
    );
    let error = load(Path::new(CACHE), Some("absent")).unwrap_err();
    assert!(error.to_string().contains("holds no kernel absent"));
}

#[test]
fn a_cubin_and_a_ptx_are_found_by_readable_name() {
    let cubin = load(Path::new("samples/ptx/crash.cubin"), Some("fill_rows")).unwrap();
    assert_eq!((cubin.entry.as_str(), cubin.source), ("_Z9fill_rowsPfiii", SourceKind::Cubin));
    let ptx = load(Path::new("samples/ptx/crash.ptx"), Some("fill_rows")).unwrap();
    assert_eq!((ptx.entry.as_str(), ptx.source), ("_Z9fill_rowsPfiii", SourceKind::Ptx));
    for target in [cubin, ptx] {
        let sizes: Vec<u32> = target.parameters.iter().map(|parameter| parameter.size_bytes).collect();
        assert_eq!(sizes, [8, 4, 4, 4]);
        assert_eq!(target.parameters[0].kind, ParameterKind::Pointer(Some(4)));
        assert_eq!(target.parameters[3].name, "arg3");
    }
}

#[test]
fn what_is_no_kernel_says_so() {
    assert_eq!(load(Path::new("Cargo.toml"), None).unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(load(Path::new("absent"), None).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(load(Path::new("samples/ptx"), None).unwrap_err().kind(), ErrorKind::Input);
}
