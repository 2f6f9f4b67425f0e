//! Every kind from its recorded crash, and with hostile names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::recipe::{
    Argument, ArgumentValue, Collective, CollectiveFault, Expect, Launch, Operator, Origin, Program, Sides,
    Size, TritonReplay, TritonSource, Value,
};
use super::*;
use crate::probe::host;
use crate::probe::protocol::Fill;
use crate::session::{Input, Session};
use crate::source::{InputSpec, Limits, load};

/// Quotes, line ends, comment ends, escapes, expansions of every language that is written.
const HOSTILE: &str =
    "a\"b'c\\d\n*/ // \"\"\"e`touch pwned`{{ f }}{% g %}$(touch pwned)${h}%s\u{1b}[2J|;&<i>\0é";

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
    let cases: [(&str, &[&str]); 8] = [
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
fn the_table_is_the_one_of_the_field() {
    let plan = planned(&sample(&["triton-int32-wrap/run.log", "triton-cache"]), &[], None).unwrap();
    let rows: Vec<(&str, &str)> =
        plan.recipe.rows.iter().map(|row| (row.key.as_str(), row.expect.name())).collect();
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
        }),
        Program::TritonSource(TritonSource {
            entry: text(),
            sweep: text(),
            source: text(),
            constants: BTreeMap::from([(text(), 1)]),
            warps: 4,
            launches,
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

#[test]
fn hostile_names_stay_data() {
    let (python, bash) = (there("python3"), there("bash"));
    let parse = "import ast, json; ast.parse(open('repro.py').read()); json.load(open('case.json'))";
    for plan in hostile() {
        let kind = plan.recipe.kind().name();
        let folder = written(&plan);
        let at = folder.path();
        if python && at.join("repro.py").exists() {
            let (parsed, said) = run("python3", &["-c", parse], at);
            assert!(parsed, "{kind}: {said}");
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
        }
        let readme = std::fs::read_to_string(at.join("README.md")).unwrap();
        assert!(!readme.contains(['\u{1b}', '\0']), "{readme}");
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
