//! The command end to end, without a process.

use clap::Parser;
use serde_json::Value;

use super::*;

const WRAP: &str =
    "samples/triton-cache/HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA/fused_lora_xw_kernel.ttir";
const AT: [&str; 10] = [
    "--set",
    "M=234624",
    "--set",
    "N=9216",
    "--set",
    "stride_ym=9216",
    "--set",
    "K=32",
    "--set",
    "stride_xm=32",
];

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: KernelArgs,
}

fn call(arguments: &[&str]) -> Result<(u8, String)> {
    let command = Command::try_parse_from([&["kernel"], arguments].concat());
    let mut out = Vec::new();
    let args = command.map_err(|error| Error::new(ErrorKind::Usage, error.to_string()))?.args;
    let status = run(&args, &mut out)?;
    Ok((status, String::from_utf8(out).unwrap()))
}

fn json(arguments: &[&str]) -> (u8, Value) {
    let (status, text) = call(&[arguments, &["--format", "json"]].concat()).unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

#[test]
fn the_case_as_json() {
    let (status, found) = json(&[&[WRAP, "--sweep", "M"], &AT[..]].concat());
    assert_eq!((status, found["schema"].as_str()), (1, Some("warpfault/kernel/1")));
    let kernel = &found["kernels"][0];
    assert_eq!((kernel["answer"].as_str(), kernel["source"].as_str()), (Some("wraps"), Some("ttir")));
    assert_eq!(kernel["assumptions"]["M"], 234_624);
    assert_eq!(kernel["params"][3]["divisibility"], 16);
    let finding = &kernel["findings"][0];
    assert_eq!(finding["kind"], "int32_overflow");
    assert_eq!(finding["location"]["line"], 18);
    assert_eq!(finding["sweep"]["safe"], 233_017);
    assert_eq!(finding["sweep"]["safe_on_lattice"], 233_008);
    let schema =
        jsonschema::validator_for(&serde_json::to_value(KernelsView::json_schema()).unwrap()).unwrap();
    assert!(schema.is_valid(&found));
}

#[test]
fn the_case_as_text() {
    let (status, text) = call(&[&[WRAP, "--sweep", "M"], &AT[..]].concat()).unwrap();
    assert_eq!(status, 1);
    for part in [
        "32-bit index wraps  triton_cases.py:18",
        "offs_m * stride_ym  →  store to y_ptr",
        "2,162,285,568 is 14,801,921 past 2,147,483,647",
        "safe up to M = 233,017 (233,008 as a multiple of 16); M = 233,018 wraps",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}

#[test]
fn exit_statuses() {
    let wide = WRAP
        .replace(
            "HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA",
            "Z3X5GRPAH7WDUJHAIBIK4YX5DQDQ2FPOPFI2ZF2GKDJNRBYNGZ5Q",
        )
        .replace("xw_kernel.ttir", "xw_kernel_i64.ttir");
    assert_eq!(json(&[&[wide.as_str()], &AT[..]].concat()).0, 0);
    assert_eq!(json(&[WRAP]).0, 3);
    assert_eq!(json(&["samples/triton-cache"]).0, 1);
    let (status, found) = json(&["samples/ptx/crash.ptx", "--entry", "gather", "--set", "arg3=1024"]);
    assert_eq!((status, found["kernels"][0]["answer"].as_str()), (3, Some("unknown")));
}

#[test]
fn names_by_hand_and_a_grid_of_names() {
    let (status, found) = json(&[
        "samples/ptx/crash.ptx",
        "--entry",
        "fill_rows",
        "--names",
        "out,rows,cols,stride",
        "--grid",
        "rows",
        "--set",
        "rows=70000",
        "--set",
        "cols=32768",
        "--set",
        "stride=32768",
        "--sweep",
        "rows",
    ]);
    let finding = &found["kernels"][0]["findings"][0];
    assert_eq!(
        (status, finding["sweep"]["safe"].as_i64(), finding["location"]["line"].as_i64()),
        (1, Some(65_536), Some(12))
    );
    assert_eq!(finding["reaches"], "store to out");
}

#[test]
fn an_old_kernel_gets_its_names_from_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let ttir = folder.path().join("k.ttir");
    let source = folder.path().join("k.py");
    std::fs::write(&source, "def k(p, stride, B: tl.constexpr):\n    pass\n").unwrap();
    std::fs::write(
        &ttir,
        "module {\n  tt.func public @k(%arg0: !tt.ptr<f32>, %arg1: i32) {\n    %0 = tt.get_program_id x : i32\n    %1 = arith.muli %0, %arg1 : i32\n    %2 = tt.addptr %arg0, %1 : !tt.ptr<f32>, i32\n    %3 = tt.load %2 : !tt.ptr<f32>\n    tt.return\n  }\n}\n",
    )
    .unwrap();
    let (ttir, source) = (ttir.to_str().unwrap(), source.to_str().unwrap());
    let (status, found) = json(&[ttir, "--source", source, "--grid", "70000", "--set", "stride=32768"]);
    assert_eq!((status, found["kernels"][0]["params"][1]["name"].as_str()), (1, Some("stride")));
    assert_eq!(found["kernels"][0]["findings"][0]["expression"], "program_id(x) * stride");
    assert_eq!(json(&[ttir, "--grid", "70000", "--set", "arg1=30000"]).0, 0);
}

#[test]
fn what_the_device_lacks() {
    let entry = "samples/triton-cache/HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA";
    let (_, found) = json(&[entry, "--device", "sm_80"]);
    let kinds: Vec<&str> = found["kernels"][0]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|f| f["kind"].as_str())
        .collect();
    assert!(kinds.contains(&"arch_mismatch"), "{kinds:?}");
}

#[test]
fn what_cannot_be_done_is_an_error() {
    assert_eq!(call(&["/nonexistent"]).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(call(&["Cargo.toml"]).unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(call(&[WRAP, "--set", "M"]).unwrap_err().kind(), ErrorKind::Usage);
    let error = call(&[WRAP, "--entry", "other"]).unwrap_err();
    assert!(error.hint_text().unwrap().contains("fused_lora_xw_kernel"));
    let error = call(&[WRAP, "--sweep", "NOPE"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.hint_text().unwrap().contains("M, N"), "{:?}", error.hint_text());
}
