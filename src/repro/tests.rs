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

mod hostile;
mod launches;

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
