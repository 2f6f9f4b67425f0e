//! The JSON that is promised to other programs.
//!
//! In: every sample. Out: its report validates against the published schema, and names its keys as the contract does.

use serde_json::Value;
use warpfault::report::Report;

use crate::samples::{incidents, report};

#[test]
fn every_sample_validates_against_the_published_schema() {
    let schema = serde_json::to_value(schemars::schema_for!(Report)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for name in incidents() {
        let value = serde_json::to_value(report(&[&format!("samples/{name}")])).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

#[test]
fn the_keys_are_those_of_the_contract() {
    let value = serde_json::to_value(report(&["samples/triton-int32-wrap-memcheck"])).unwrap();
    let keys = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let has = |value: &Value, wanted: &[&str]| {
        let keys = keys(value);
        for key in wanted {
            assert!(keys.iter().any(|known| known == key), "no {key} in {keys:?}");
        }
    };
    has(
        &value,
        &[
            "schema",
            "tool",
            "inputs",
            "verdict",
            "failures",
            "hypotheses",
            "evidence",
            "shapes",
            "ranks",
            "checks",
            "next",
            "mitigations",
            "diagnostics",
        ],
    );
    has(
        &value["verdict"],
        &[
            "class",
            "family",
            "certainty",
            "summary",
            "cause",
            "code",
            "masked_by",
            "reported_asynchronously",
            "observed_at",
            "fault_at",
            "root_rank",
            "collective",
            "restart",
        ],
    );
    has(
        &value["verdict"]["observed_at"],
        &["rank", "file", "line", "function", "call", "is_sync_point", "evidence"],
    );
    has(
        &value["verdict"]["fault_at"],
        &[
            "rank", "kernel", "file", "line", "grid", "block", "thread", "pc", "address", "access",
            "library", "offset", "evidence",
        ],
    );
    has(&value["hypotheses"][0], &["class", "cause", "certainty", "for", "against", "would_settle"]);
    has(&value["evidence"][0], &["id", "kind", "rank", "time", "from", "text", "fields"]);
    assert_eq!(value["verdict"]["fault_at"]["block"], serde_json::json!([1827, 0, 0]));
    assert_eq!(value["verdict"]["fault_at"]["offset"], "0x21f0");
    assert_eq!(value["verdict"]["fault_at"]["address"], "0x7f74f8ed2000");
    assert_eq!(value["schema"], "warpfault/report/1");
}
