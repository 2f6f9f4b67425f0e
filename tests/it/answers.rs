//! What the engineer says on the command line, and what the report makes of it.
//!
//! In: samples and answers. Out: evidence with the provenance *answer*, shapes that count as operands, a model's tensors that
//! cross; and the program's own words about a flag that it can't read.

use std::process::{Command, Output};

use serde_json::Value;

const CONFIG: &str = r#"{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "vocab_size": 151936,
    "num_attention_heads": 28, "num_key_value_heads": 4, "num_hidden_layers": 28}"#;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpfault")).arg("analyze").args(arguments).output().unwrap()
}

fn analyze(arguments: &[&str]) -> (Value, Option<i32>) {
    let output = run(&[&["--json"], arguments].concat());
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (json, output.status.code())
}

fn log(folder: &tempfile::TempDir, text: &str) -> String {
    let path = folder.path().join("run.log");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

const CRASH: &str = "Traceback (most recent call last):\n  File \"serve.py\", line 9, in step\n    x = y.to(\"cpu\")\n\
    torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n";

#[test]
fn a_shape_given_by_the_engineer_is_the_operand() {
    let folder = tempfile::tempdir().unwrap();
    let path = log(&folder, CRASH);
    let (before, _) = analyze(&[&path]);
    assert_eq!((&before["verdict"]["cause"], before["shapes"].as_array().unwrap().len()), (&Value::Null, 0));
    let (report, status) = analyze(&[&path, "--shape", "M=234624,N=9216", "--dtype", "bf16"]);
    assert_eq!(status, Some(0));
    let shape = &report["shapes"][0];
    assert_eq!((&shape["likelihood"], &shape["dtype"]), (&"operand".into(), &"bfloat16".into()));
    let id = &shape["evidence"][0];
    let evidence = report["evidence"].as_array().unwrap().iter().find(|one| one["id"] == *id).unwrap();
    assert_eq!((&evidence["from"]["kind"], &evidence["kind"]), (&"answer".into(), &"shape".into()));
    assert_eq!(evidence["text"], "M 234,624 × N 9,216 of bfloat16");
    let cause = &report["verdict"]["cause"];
    assert_eq!((&cause["kind"], &cause["certainty"]), (&"int32_overflow".into(), &"suspected".into()));
}

#[test]
fn an_operand_that_fits_speaks_against_a_shape_of_the_log() {
    let (report, _) = analyze(&["samples/triton-int32-wrap", "--shape", "128x128"]);
    let overflow =
        report["hypotheses"].as_array().unwrap().iter().find(|one| one["cause"] == "int32_overflow").unwrap();
    assert_eq!(overflow["against"].as_array().unwrap().len(), 1, "{overflow}");
}

#[test]
fn named_sizes_make_a_shape_derived_from_the_answers() {
    let folder = tempfile::tempdir().unwrap();
    let (report, _) = analyze(&[&log(&folder, CRASH), "--set", "rows=70000", "--set", "cols=32768"]);
    let shape = &report["shapes"][0];
    assert_eq!((&shape["numel"], &shape["safe"]), (&2_293_760_000_u64.into(), &65_536.into()));
    let id = &shape["evidence"][0];
    let evidence = report["evidence"].as_array().unwrap().iter().find(|one| one["id"] == *id).unwrap();
    assert_eq!(evidence["from"]["kind"], "derived");
    let from: Vec<&Value> = evidence["from"]["from"].as_array().unwrap().iter().collect();
    assert_eq!(from.len(), 2);
    let value = report["evidence"].as_array().unwrap().iter().find(|one| one["id"] == *from[0]).unwrap();
    assert_eq!((&value["from"]["kind"], &value["fields"]["name"]), (&"answer".into(), &"rows".into()));
}

#[test]
fn a_model_beside_a_token_count_names_what_crosses() {
    let folder = tempfile::tempdir().unwrap();
    let path = log(&folder, CRASH);
    let config = folder.path().join("model.json");
    std::fs::write(&config, CONFIG).unwrap();
    let config = config.to_str().unwrap();
    let check = |report: &Value| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == "model-extents").unwrap().clone()
    };

    let (alone, _) = analyze(&[&path, "--model", config]);
    assert_eq!(
        (check(&alone)["status"].as_str(), alone["shapes"].as_array().unwrap().len()),
        (Some("unknown"), 0)
    );

    let (few, _) = analyze(&[&path, "--model", config, "--set", "tokens=512"]);
    assert_eq!((check(&few)["status"].as_str(), few["shapes"].as_array().unwrap().len()), (Some("fails"), 0));

    let (report, _) = analyze(&[&path, "--model", config, "--set", "tokens=20000"]);
    assert_eq!(check(&report)["status"], "holds");
    let logits =
        report["shapes"].as_array().unwrap().iter().find(|shape| shape["label"] == "logits").unwrap();
    assert_eq!(
        (&logits["dims"], &logits["sweep"], &logits["safe"], &logits["likelihood"]),
        (&serde_json::json!([20_000, 151_936]), &"tokens".into(), &14_134.into(), &"near".into())
    );
}

#[test]
fn a_model_among_the_inputs_takes_the_tokens_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    log(&folder, &format!("prefill num_tokens=20000\n{CRASH}"));
    std::fs::write(folder.path().join("config.json"), CONFIG).unwrap();
    let (report, _) = analyze(&[folder.path().to_str().unwrap()]);
    let logits =
        report["shapes"].as_array().unwrap().iter().find(|shape| shape["label"] == "logits").unwrap();
    assert_eq!(logits["likelihood"], "mentioned");
    // A count of the log may belong to another step: it makes a row and no cause.
    assert_eq!(report["verdict"]["cause"], Value::Null);
    let id = &logits["evidence"][0];
    let evidence = report["evidence"].as_array().unwrap();
    let from = &evidence.iter().find(|one| one["id"] == *id).unwrap()["from"]["from"];
    let kinds: Vec<&str> = from
        .as_array()
        .unwrap()
        .iter()
        .map(|id| evidence.iter().find(|one| one["id"] == *id).unwrap()["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["model", "value"]);
}

#[test]
fn settings_are_facts_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let (report, _) = analyze(&[&log(&folder, CRASH), "--set", "torch=2.8.0"]);
    let fact =
        report["evidence"].as_array().unwrap().iter().find(|one| one["kind"] == "environment").unwrap();
    assert_eq!((&fact["from"]["kind"], &fact["fields"]["value"]), (&"answer".into(), &"2.8.0".into()));
}

#[test]
fn a_flag_that_cannot_be_read_ends_with_two() {
    for [flag, value] in
        [["--shape", "x"], ["--set", "tokens"], ["--dtype", "bf17"], ["--model", "/nonexistent"]]
    {
        let output = run(&["samples/triton-int32-wrap/run.log", flag, value]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{flag} {value}");
    }
}

#[test]
fn redacted_reports_say_the_same_in_every_format() {
    for format in ["text", "json", "markdown", "html"] {
        let output = run(&["samples/pair-size-mismatch", "--redact", "--format", format]);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(!shown.contains("/home/user"), "{format}");
        assert!(shown.contains("PATH-") && shown.contains("nccl_cases.py"), "{format}");
    }
}
