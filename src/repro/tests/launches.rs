//! Launches that are more than the forward kernel at sizes of the log: backward kernels, traces, core dumps.

use super::*;

/// The wrapping kernel's entry under a backward name, arguments and all, beside the forward one.
fn cache_with_backward(rename: impl Fn(&str) -> String) -> tempfile::TempDir {
    const KEY: &str = "HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA";
    let from = Path::new("samples/triton-cache").join(KEY);
    let cache = tempfile::tempdir().unwrap();
    let (own, other) = (cache.path().join(KEY), cache.path().join(KEY.replace("HYI", "BWD")));
    std::fs::create_dir(&own).unwrap();
    std::fs::create_dir(&other).unwrap();
    for ending in ["json", "ptx", "ttir"] {
        let name = format!("fused_lora_xw_kernel.{ending}");
        let text = std::fs::read_to_string(from.join(&name)).unwrap();
        std::fs::write(own.join(&name), &text).unwrap();
        std::fs::write(other.join(format!("bwd.{ending}")), rename(&text)).unwrap();
    }
    cache
}

fn with_cache(cache: &Path) -> Session {
    session(&[
        InputSpec::Path("samples/triton-int32-wrap/run.log".into()),
        InputSpec::Path(cache.to_path_buf()),
    ])
}

#[test]
fn a_backward_kernel_of_the_cache_runs_at_the_same_sizes() {
    let rename = |text: &str| text.replace("fused_lora_xw_kernel", "fused_lora_xw_bwd_kernel");
    let cache = cache_with_backward(rename);
    let plan = planned(&with_cache(cache.path()), &[], None).unwrap();
    let rows: Vec<(&str, Option<Side>)> =
        plan.recipe.rows.iter().map(|row| (row.key.as_str(), row.expect)).collect();
    let (pass, fail) = (Some(Side::Pass), Some(Side::Fail));
    assert_eq!(
        rows,
        [
            ("232960", pass),
            ("234624", fail),
            ("333312", fail),
            ("backward-1-232960", pass),
            ("backward-1-234624", fail),
            ("backward-1-333312", fail),
        ]
    );
    assert_eq!(
        plan.recipe.rows[3].label,
        "backward, fused_lora_xw_bwd_kernel: M = 232,960, N = 9,216, K = 32: within int32"
    );
    let Program::TritonReplay(replay) = &plan.recipe.program else { panic!("{:?}", plan.recipe.program) };
    assert_eq!(replay.backward[0].entry, "fused_lora_xw_bwd_kernel");
    assert_eq!(replay.backward[0].images, ["backward-1/kernel.ptx"]);
    assert_eq!(replay.backward[0].launches["backward-1-234624"], replay.launches["234624"]);
    assert!(files(&plan).unwrap().iter().any(|file| file.path == "backward-1/kernel.ptx"));
    // The sides, which --verify runs, stay the forward kernel's.
    assert_eq!(plan.recipe.sides, Sides { pass: "232960".into(), fail: "234624".into() });
    assert!(!plan.recipe.notes.iter().any(|note| note.contains("No backward kernel")));
}

#[test]
fn a_backward_kernel_that_cannot_be_called_is_named_with_the_reason() {
    // It takes no M.
    let rename = |text: &str| {
        text.replace("fused_lora_xw_kernel", "fused_lora_xw_kernel_bwd")
            .replace("\"M\"", "\"ROWS\"")
            .replace("%M", "%ROWS")
    };
    let cache = cache_with_backward(rename);
    let plan = planned(&with_cache(cache.path()), &[], None).unwrap();
    assert_eq!(plan.recipe.rows.len(), 3);
    let note = "A backward kernel fused_lora_xw_kernel_bwd was seen and is not run: it takes no M";
    assert!(plan.recipe.notes.iter().any(|said| said.starts_with(note)), "{:?}", plan.recipe.notes);
}

const FORWARD: &str = "import triton\n@triton.jit\ndef fused_lora_xw_kernel(x_ptr, w_ptr, y_ptr, M, N, K, stride_xm, \
                       stride_ym, BLOCK_M: tl.constexpr):\n    pass\nk[g](x, BLOCK_M=128)\n";

#[test]
fn a_backward_kernel_of_the_users_file_is_called_by_its_parameters() {
    let session = sample(&["triton-int32-wrap/run.log", "triton-cache"]);
    let with = |backward: &str| {
        let text = format!("{FORWARD}@triton.jit\n{backward}:\n    pass\n");
        planned(&session, &[], Some(&UserFile { name: "lora.py".into(), text })).unwrap()
    };
    let plan = with(
        "def fused_lora_xw_kernel_bwd(dx_ptr, w_ptr, grad_y_ptr, M, N, K, stride_xm, stride_ym, BLOCK_M: \
                     tl.constexpr)",
    );
    let Program::TritonSource(source) = &plan.recipe.program else { panic!("{:?}", plan.recipe.program) };
    let backward = &source.backward[0];
    assert_eq!(backward.constants, BTreeMap::from([("BLOCK_M".to_owned(), 128)]));
    let names: Vec<&str> = backward.launches["backward-1-234624"]
        .arguments
        .iter()
        .map(|argument| argument.name.as_str())
        .collect();
    assert_eq!(names, ["dx_ptr", "w_ptr", "grad_y_ptr", "M", "N", "K", "stride_xm", "stride_ym"]);
    let of = |key: &str| plan.recipe.rows.iter().find(|row| row.key == key).unwrap();
    assert_eq!(of("backward-1-234624").expect, None, "nothing checked its indices");
    let value = plan.recipe.values.iter().find(|value| value.name == "fused_lora_xw_kernel_bwd").unwrap();
    assert_eq!(value.origin, Origin::Assumed);
    // Another argument: nothing tells what it would be.
    let plan =
        with("def fused_lora_xw_kernel_bwd(dx_ptr, w_ptr, grad_y_ptr, M, N, K, scale, stride_xm, stride_ym)");
    assert_eq!(plan.recipe.rows.len(), 3);
    let note =
        "A backward kernel fused_lora_xw_kernel_bwd was seen and is not run: its parameters are not those of";
    assert!(plan.recipe.notes.iter().any(|said| said.starts_with(note)), "{:?}", plan.recipe.notes);
}

#[test]
fn a_traced_launch_is_taken_as_it_was() {
    let plan = planned(&sample(&["tritonparse-int32-wrap"]), &[], None).unwrap();
    let rows: Vec<(&str, Option<Side>)> =
        plan.recipe.rows.iter().map(|row| (row.key.as_str(), row.expect)).collect();
    let (pass, fail) = (Some(Side::Pass), Some(Side::Fail));
    assert_eq!(rows, [("232960", pass), ("234624", fail), ("333312", fail)]);
    let Program::TritonReplay(replay) = &plan.recipe.program else { panic!("{:?}", plan.recipe.program) };
    assert_eq!(
        (replay.entry.as_str(), &replay.images[..]),
        ("fused_lora_xw_kernel", &["kernel/kernel.ptx".to_owned()][..])
    );
    let launch = &replay.launches["234624"];
    assert_eq!((launch.grid, launch.block), ([1833, 72, 1], [128, 1, 1]));
    let buffer = |launch: &Launch, name: &str| {
        launch.arguments.iter().find(|argument| argument.name == name).map(|argument| match &argument.value {
            ArgumentValue::Buffer { bytes, dtype, .. } => (*bytes, dtype.clone()),
            other => panic!("{other:?}"),
        })
    };
    let bf16 = || Some("bfloat16".to_owned());
    assert_eq!(buffer(launch, "y_ptr"), Some((234_624 * 9_216 * 2, bf16())));
    assert_eq!(buffer(launch, "w_ptr"), Some((589_824, bf16())));
    assert_eq!(buffer(&replay.launches["233008"], "y_ptr"), Some((233_008 * 9_216 * 2, bf16())));
    let of = |name: &str| plan.recipe.values.iter().find(|value| value.name == name).unwrap();
    assert_eq!((of("M").origin, of("stride_ym").origin), (Origin::Read, Origin::Read));
    assert!(of("K").from.ends_with(".ndjson.gz:2, the traced launch"), "{}", of("K").from);
    assert!(plan.recipe.values.iter().all(|value| value.origin != Origin::Assumed));
    // What is given wins, and the launch is no longer the traced one.
    let wider =
        planned(&sample(&["tritonparse-int32-wrap"]), &[("N", "18432"), ("stride_ym", "18432")], None);
    let Program::TritonReplay(replay) = &wider.as_ref().unwrap().recipe.program else { panic!() };
    assert_eq!(buffer(&replay.launches["234624"], "y_ptr"), Some((234_624 * 18_432 * 2, bf16())));
}

#[test]
fn a_traced_argument_that_is_no_size_is_swept_too() {
    let plan = planned(&sample(&["tritonparse-scatter"]), &[], None).unwrap();
    let Program::TritonReplay(replay) = &plan.recipe.program else { panic!("{:?}", plan.recipe.program) };
    assert_eq!((replay.entry.as_str(), replay.sweep.as_str()), ("scatter_rows", "first_row"));
    let (fail, pass) = (&replay.launches[&plan.recipe.sides.fail], &replay.launches[&plan.recipe.sides.pass]);
    assert_eq!(plan.recipe.sides.fail, "262144");
    let bytes = |launch: &Launch| {
        let sizes = launch.arguments.iter().filter_map(|argument| match argument.value {
            ArgumentValue::Buffer { bytes, .. } => Some(bytes),
            _ => None,
        });
        sizes.collect::<Vec<_>>()
    };
    assert_eq!(bytes(fail), bytes(pass), "no tensor has this size");
    assert!(bytes(fail).contains(&(300_000 * 8_192 * 2)) || bytes(fail).contains(&(300_000 * 8_192 * 4)));
}

#[test]
fn a_launch_out_of_a_core_dump_is_taken_with_its_grid() {
    let plan = planned(&sample(&["triton-coredump"]), &[], None).unwrap();
    let Program::TritonReplay(replay) = &plan.recipe.program else { panic!("{:?}", plan.recipe.program) };
    assert_eq!(replay.entry, "scatter_rows");
    let of = |name: &str| plan.recipe.values.iter().find(|value| value.name == name).unwrap();
    assert_eq!((of("grid").value.as_str(), of("grid").origin), ("1,1,1", Origin::Read));
    assert!(plan.recipe.values.iter().all(|value| value.origin != Origin::Assumed));
    let fail: i64 = plan.recipe.sides.fail.parse().unwrap();
    let pass: i64 = plan.recipe.sides.pass.parse().unwrap();
    assert!(pass < fail, "{pass} {fail}");
}
