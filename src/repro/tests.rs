//! Every kind from its recorded crash, and with hostile names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::recipe::{
    Argument, ArgumentValue, Collective, CollectiveFault, Compiled, Expect, Launch, Operator, Origin,
    Program, Replayed, Row, Side, Sides, Size, TritonReplay, TritonSource, Value, WindowFault,
};
use super::*;
use crate::probe::host;
use crate::probe::protocol::Fill;
use crate::session::{Input, Session};
use crate::source::{InputSpec, Limits, load};

/// Quotes, line ends, comment ends, escapes, expansions of every language that is written.
const HOSTILE: &str =
    "a\"b'c\\d\n*/ // \"\"\"e`touch pwned`{{ f }}{% g %}$(touch pwned)${h}%s\u{1b}[2J|;\\|&<i>\0é";

fn session(inputs: &[InputSpec]) -> Session {
    let mut session = Session::new();
    session.apply(Input::Loaded(load(inputs, Limits::default())));
    session
}

fn planned(
    session: &Session,
    given: &[(&str, &str)],
    source: Option<&UserFile>,
) -> crate::error::Result<Plan> {
    let given: BTreeMap<String, String> =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let facts = Facts {
        case: session.case(),
        verdict: session.verdict(),
        inputs: session.inputs(),
        given: &given,
        entry: None,
        source,
        program: &host::Program::new("unused", ["unused"]),
    };
    plan(&facts, None)
}

fn sample(paths: &[&str]) -> Session {
    session(
        &paths.iter().map(|path| InputSpec::Path(PathBuf::from("samples").join(path))).collect::<Vec<_>>(),
    )
}

/// The files as one text; what is copied as it is by its size alone.
fn shown(plan: &Plan) -> String {
    let mut out = String::new();
    for file in files(plan).unwrap() {
        let mark = if file.executable { " (executable)" } else { "" };
        if file.path.starts_with("kernel/") {
            out.push_str(&format!("==== {}: {} bytes\n", file.path, file.bytes.len()));
        } else {
            let text = String::from_utf8(file.bytes).unwrap();
            out.push_str(&format!("==== {}{mark}\n{text}\n", file.path));
        }
    }
    out
}

#[test]
fn every_recorded_crash_has_its_files() {
    let cases: [(&str, &[&str]); 9] = [
        ("symmetric-size", &["pair-symmetric-size-mismatch"]),
        ("triton", &["triton-int32-wrap/run.log", "triton-cache"]),
        ("segfault", &["torch-segv-faulthandler/run.log"]),
        ("operator", &["torch-embedding/run.log"]),
        ("cuda-rows", &["cuda-int32-wrap-memcheck/run.log"]),
        ("cuda-gather", &["coredump-gather"]),
        ("graph", &["torch-graph-replay-freed/run.log"]),
        ("collective-size", &["pair-size-mismatch"]),
        ("collective-missing", &["pair-skipped-collective"]),
    ];
    for (name, paths) in cases {
        let plan = planned(&sample(paths), &[], None).unwrap();
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("repro-{name}"), shown(&plan));
        });
        let case = files(&plan).unwrap().into_iter().find(|file| file.path == CASE_FILE).unwrap();
        assert_eq!(Recipe::read(&case.bytes).unwrap(), plan.recipe, "{name}");
    }
}

#[test]
fn symmetric_memory_stands_beside_the_plain_call() {
    let plan = planned(&sample(&["pair-symmetric-size-mismatch"]), &[], None).unwrap();
    let rows: Vec<(&str, Option<Side>)> =
        plan.recipe.rows.iter().map(|row| (row.key.as_str(), row.expect)).collect();
    assert_eq!(rows, [("plain", Some(Side::Pass)), ("pass", Some(Side::Pass)), ("fail", Some(Side::Fail))]);
    assert_eq!(plan.recipe.program, Program::Symmetric { fault: WindowFault::Size, odd_rank: 1 });
    // A run that passes has nothing to reproduce.
    assert!(planned(&sample(&["pair-symmetric-ok"]), &[], None).is_err());
    let log =
        "[rank0]: RuntimeError: one_shot_all_reduce: input must be allocated with empty_strided_p2p()\n";
    let plan = planned(
        &session(&[InputSpec::Text { name: "run.log".into(), bytes: log.as_bytes().to_vec() }]),
        &[],
        None,
    )
    .unwrap();
    assert_eq!(plan.recipe.program, Program::Symmetric { fault: WindowFault::Outside, odd_rank: 1 });
    assert!(!plan.recipe.sizes.contains_key("odd_elements"));
}

#[test]
fn the_table_is_the_one_of_the_field() {
    let plan = planned(&sample(&["triton-int32-wrap/run.log", "triton-cache"]), &[], None).unwrap();
    let rows: Vec<(&str, &str)> =
        plan.recipe.rows.iter().map(|row| (row.key.as_str(), row.expect.unwrap().name())).collect();
    assert_eq!(rows, [("232960", "pass"), ("234624", "fail"), ("333312", "fail")]);
    let closer = plan.recipe.closer.unwrap();
    assert_eq!((closer.pass.as_str(), closer.fail.as_str()), ("233008", "233024"));
    let Program::TritonReplay(replay) = &plan.recipe.program else { panic!("{:?}", plan.recipe.program) };
    let launch = &replay.launches["234624"];
    assert_eq!((launch.grid, launch.block), ([1833, 72, 1], [128, 1, 1]));
    let bytes: Vec<u64> = launch
        .arguments
        .iter()
        .filter_map(|argument| match argument.value {
            ArgumentValue::Buffer { bytes, .. } => Some(bytes),
            _ => None,
        })
        .collect();
    assert_eq!(bytes, [234_624 * 32 * 2, 32 * 9216 * 2, 234_624 * 9216 * 2]);
}

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

#[test]
fn the_sizes_that_are_called_safe_are_explained() {
    let plan = planned(&sample(&["triton-int32-wrap/run.log", "triton-cache"]), &[], None).unwrap();
    assert_eq!(
        plan.recipe.numbers.as_deref(),
        Some(
            "More than one size of M is called the last safe one, each for its reason: 233,016 by the shape alone, which takes \
             row × stride + column as one 32-bit number; 233,017 as the kernel is compiled, which forms offs_m * stride_ym in \
             32 bits (233,018 is the first to wrap); 233,008 because the compiled code takes multiples of 16 only \
             (tt.divisibility), of which 233,024 is the next and wraps; 232,960 in the table, like the reported size a multiple \
             of 128."
        )
    );
    for file in
        files(&plan).unwrap().iter().filter(|file| ["README.md", "run.sh"].contains(&file.path.as_str()))
    {
        assert!(
            String::from_utf8_lossy(&file.bytes).contains("233,018 is the first to wrap"),
            "{}",
            file.path
        );
    }
}

#[test]
fn what_is_given_wins_and_is_said_to_be_given() {
    let session = sample(&["triton-int32-wrap/run.log", "triton-cache"]);
    let plan = planned(&session, &[("N", "9216"), ("K", "64")], None).unwrap();
    let of = |name: &str| plan.recipe.values.iter().find(|value| value.name == name).unwrap();
    assert_eq!((of("K").value.as_str(), of("K").origin), ("64", Origin::Given));
    assert_eq!(of("M").origin, Origin::Read);
}

#[test]
fn the_users_own_kernel_is_taken_with_its_constants() {
    let session = sample(&["triton-int32-wrap/run.log", "triton-cache"]);
    let text = "import triton\n@triton.jit\ndef fused_lora_xw_kernel(x_ptr, w_ptr, y_ptr, M, N, K, stride_xm, stride_ym, \
                BLOCK_M: tl.constexpr):\n    pass\nk[g](x, BLOCK_M=128)\n";
    let user = UserFile { name: "it's.py".into(), text: text.into() };
    let plan = planned(&session, &[], Some(&user)).unwrap();
    let Program::TritonSource(source) = &plan.recipe.program else { panic!("{:?}", plan.recipe.program) };
    assert_eq!(source.constants, BTreeMap::from([("BLOCK_M".to_owned(), 128)]));
    let launch = &source.launches["234624"];
    assert_eq!(launch.arguments.len(), 8, "hidden arguments are Triton's own");
    assert!(
        matches!(&launch.arguments[0].value, ArgumentValue::Buffer { dtype: Some(dtype), .. } if dtype == "bfloat16")
    );
    let two = UserFile { text: format!("{text}k[g](x, BLOCK_M=256)\n"), ..user };
    let said = planned(&session, &[], Some(&two)).unwrap_err();
    assert_eq!(said.hint_text(), Some("say which: --set BLOCK_M=128"));
}

#[test]
fn what_is_missing_is_named_with_the_option_that_gives_it() {
    let cases: [(&[&str], &str); 5] = [
        (&["torch-cublas-after-ima"], "add the Triton cache folder"),
        (&["pair-size-mismatch/run.log"], "flight-recorder dumps"),
        (&["torch-segv-dmesg"], "faulthandler"),
        (&["triton-int32-fixed/run.log"], "give the log of the failing run"),
        (&["torch-oom/run.log"], "--kind"),
    ];
    for (paths, hint) in cases {
        let said = planned(&sample(paths), &[], None).map(|plan| plan.recipe.shows).unwrap_err();
        assert!(said.hint_text().unwrap_or("").contains(hint), "{paths:?}: {said}: {:?}", said.hint_text());
    }
    let session = sample(&["triton-int32-wrap/run.log", "triton-cache"]);
    let below = planned(&session, &[("M", "160000")], None).unwrap_err();
    assert!(below.to_string().contains("no 32-bit index of fused_lora_xw_kernel wraps with K = "), "{below}");
}

/// Every program with hostile text wherever a text can be.
fn hostile() -> Vec<Plan> {
    let text = || HOSTILE.to_owned();
    let arguments = vec![
        Argument {
            name: text(),
            value: ArgumentValue::Buffer { bytes: 4, dtype: Some(text()), fill: Fill::Zero },
        },
        Argument { name: text(), value: ArgumentValue::Number { hex: "00".into(), shown: text() } },
    ];
    let launch = Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0, arguments };
    let launches = BTreeMap::from([(text(), launch)]);
    let collective = |fault| {
        Program::Collective(Collective { operation: text(), dtype: text(), fault, odd_rank: 1, timeout_s: 1 })
    };
    let operator = |operator| Program::Operator { operator, bad_index: -1, position: 0 };
    let programs = vec![
        Program::TritonReplay(TritonReplay {
            entry: text(),
            sweep: text(),
            images: vec![text()],
            launches: launches.clone(),
            backward: vec![Replayed { entry: text(), images: vec![text()], launches: launches.clone() }],
        }),
        Program::TritonSource(TritonSource {
            entry: text(),
            sweep: text(),
            source: text(),
            constants: BTreeMap::from([(text(), 1)]),
            warps: 4,
            launches: launches.clone(),
            backward: vec![Compiled {
                entry: text(),
                constants: BTreeMap::from([(text(), 1)]),
                warps: 4,
                launches,
            }],
        }),
        Program::SegfaultCall { function: text(), address: 0 },
        Program::SegfaultScript {
            script: text(),
            fail_arguments: vec![text()],
            pass_arguments: vec![text()],
        },
        operator(Operator::Embedding),
        operator(Operator::Index),
        operator(Operator::Gather),
        operator(Operator::CrossEntropy),
        Program::CudaRows { kernel: text(), columns: 8, element_bytes: 4 },
        Program::CudaGather { kernel: text(), threads: 32, position: 3, bad_index: 1 << 30 },
        Program::Graph,
        collective(CollectiveFault::Size),
        collective(CollectiveFault::Missing),
        Program::Symmetric { fault: WindowFault::Size, odd_rank: 1 },
        Program::Symmetric { fault: WindowFault::Outside, odd_rank: 1 },
    ];
    programs.into_iter().map(|program| Plan { recipe: dressed(program), assets: Vec::new() }).collect()
}

fn dressed(program: Program) -> Recipe {
    let text = || HOSTILE.to_owned();
    let expect = Expect {
        class: "illegal_address".into(),
        code: Some(text()),
        kernel: Some(text()),
        collective: Some(text()),
        text: vec![text()],
    };
    let mut recipe = Recipe::two_sided(text(), expect, program, [text(), text()]);
    for row in &mut recipe.rows {
        row.key = format!("{}{HOSTILE}", row.key);
    }
    recipe.rows.push(Row { key: text(), label: text(), expect: None });
    recipe.numbers = Some(text());
    recipe.sides = Sides { pass: recipe.rows[0].key.clone(), fail: recipe.rows[1].key.clone() };
    recipe.environment.insert(text(), text());
    recipe.versions.insert(text(), text());
    recipe.values.push(Value::new(text(), text(), Origin::Assumed, text()));
    recipe.notes.push(text());
    recipe.tried.push(text());
    recipe.sizes.insert("blocks".into(), Size { value: 2, least: 1 });
    recipe.sizes.insert(text(), Size { value: 2, least: 1 });
    recipe
}

fn written(plan: &Plan) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files(plan).unwrap() {
        std::fs::write(folder.path().join(&file.path), &file.bytes).unwrap();
    }
    folder
}

/// Whether a program is there; where not, the test says what it leaves out.
fn there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    if !found {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("no {program}: not checked\n").as_bytes(),
        );
    }
    found
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> (bool, String) {
    let out = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

/// A C++ text without its comments and literals; an error where one of them, or a bracket, has no end.
fn code_of_cpp(source: &str) -> Result<String, String> {
    let mut code = String::new();
    let mut open = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let (skipped, kept) = match c {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            '/' if rest.starts_with("/*") => (rest.find("*/").ok_or("a comment without an end")? + 2, false),
            '"' | '\'' => {
                (literal_end(rest, c).ok_or_else(|| format!("a literal without an end: {rest:.40}"))?, false)
            }
            _ => (c.len_utf8(), true),
        };
        if kept {
            code.push(c);
            match c {
                '(' | '[' | '{' => open.push(c),
                ')' | ']' | '}' => {
                    let pair = [('(', ')'), ('[', ']'), ('{', '}')];
                    let from = open.pop().ok_or("a bracket that nothing opened")?;
                    if !pair.contains(&(from, c)) {
                        return Err(format!("{from} ends with {c}"));
                    }
                }
                _ => {}
            }
        }
        rest = &rest[skipped..];
    }
    if open.is_empty() { Ok(code) } else { Err(format!("{open:?} stay open")) }
}

fn literal_end(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[test]
fn a_broken_cpp_text_is_told_from_a_whole_one() {
    assert_eq!(code_of_cpp("f(\"*/ }\"); // {\n/* ' */ '\\''").as_deref(), Ok("f(); \n "));
    for broken in ["f(\"a\n\")", "/* a", "f(}", "{", "'a"] {
        assert!(code_of_cpp(broken).is_err(), "{broken}");
    }
    let literal = literal::cpp(HOSTILE);
    assert_eq!(code_of_cpp(&format!("f({literal});")).as_deref(), Ok("f();"));
}

/// Cells of a Markdown table's row: bars that no backslash escapes.
fn bars(row: &str) -> usize {
    let mut escaped = false;
    row.chars()
        .filter(|&c| {
            let counts = c == '|' && !escaped;
            escaped = c == '\\' && !escaped;
            counts
        })
        .count()
}

#[test]
fn hostile_names_stay_data() {
    let (python, bash) = (there("python3"), there("bash"));
    let compile = ["-m", "py_compile", "repro.py"];
    let parse = ["-c", "import json; json.load(open('case.json'))"];
    for plan in hostile() {
        let kind = plan.recipe.kind().name();
        let folder = written(&plan);
        let at = folder.path();
        if python && at.join("repro.py").exists() {
            for arguments in [&compile[..], &parse[..]] {
                let (done, said) = run("python3", arguments, at);
                assert!(done, "{kind}: {said}");
            }
        }
        if bash {
            let (parsed, said) = run("bash", &["-n", "run.sh"], at);
            assert!(parsed, "{kind}: {said}");
            // Up to the usage line everything is assigned and nothing may run.
            let (_, said) = run("bash", &["run.sh", "nothing"], at);
            assert!(said.contains("usage") || said.contains("nvcc"), "{kind}: {said}");
        }
        assert!(!at.join("pwned").exists(), "{kind}");
        if let Ok(source) = std::fs::read_to_string(at.join("repro.cu")) {
            assert!(!source.contains("pwned"), "{source}");
            code_of_cpp(&source).unwrap();
        }
        let readme = std::fs::read_to_string(at.join("README.md")).unwrap();
        assert!(!readme.contains(['\u{1b}', '\0']), "{readme}");
        for row in readme.lines().filter(|line| line.starts_with('|')) {
            assert!([3, 4].contains(&bars(row)), "{row}");
        }
        let case = std::fs::read(at.join(CASE_FILE)).unwrap();
        assert_eq!(Recipe::read(&case).unwrap(), plan.recipe);
    }
}

#[test]
fn a_hostile_log_ends_in_the_same_place() {
    let log = std::fs::read_to_string("samples/cuda-int32-wrap-memcheck/run.log").unwrap();
    let log = log.replace("fill_rows(float *, int, int, int)", "f*/\"`touch pwned`'{{x}}(float *)");
    let plan = planned(
        &session(&[InputSpec::Text { name: "$(touch pwned)`x`|.log".into(), bytes: log.into_bytes() }]),
        &[("rows", "70000"), ("columns", "32768")],
        None,
    )
    .unwrap();
    let folder = written(&plan);
    let source = std::fs::read_to_string(folder.path().join("repro.cu")).unwrap();
    assert!(source.contains("__global__ void fill(") && !source.contains("pwned"), "{source}");
    if there("bash") {
        let (parsed, said) = run("bash", &["-n", "run.sh"], folder.path());
        assert!(parsed, "{said}");
    }
}

#[test]
fn a_recipe_that_does_not_hang_together_is_refused() {
    let plan = planned(&sample(&["torch-graph-replay-freed/run.log"]), &[], None).unwrap();
    let good = serde_json::to_value(&plan.recipe).unwrap();
    let with = |path: &str, value: &str| {
        let mut changed = good.clone();
        *changed.pointer_mut(path).unwrap() = value.into();
        Recipe::read(changed.to_string().as_bytes()).is_ok()
    };
    assert!(Recipe::read(good.to_string().as_bytes()).is_ok());
    assert!(!with("/schema", "warpfault/repro/2"));
    assert!(!with("/sides/fail", "absent"));
    assert!(!with("/expect/class", "no such class"));
    assert!(Recipe::read(b"{}").is_err() && Recipe::read(&vec![b' '; recipe::LIMIT_BYTES + 1]).is_err());
}
