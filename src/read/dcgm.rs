//! `dcgmi diag -j`: what NVIDIA's node diagnostic found.
//!
//! ```json
//! {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory", "results":
//!   [{"entity_group": "GPU", "entity_id": 3, "status": "Fail", "warnings": [{"warning": "…", "error_id": 40}]}]}]}]}}
//! ```
//!
//! In: the bytes; other text may stand before the JSON. Out: [`Data::DriverFault`] for each test that failed on an entity, a
//! *state* of the machine, and versions as facts. Persistence mode and other settings fail the diagnostic on healthy
//! machines: they become facts.

use super::Reading;
use super::event::{Data, DriverFault, DriverFaultKind, EnvironmentFact, Event, InputId, Origin, Span};
use super::loose_json::{self, Json};
use super::plain::{Plain, Value};
use super::scan::clip;

/// Largest file that is read.
const SIZE_LIMIT_BYTES: usize = 64 << 20;
/// Braces at which JSON may begin that are tried.
const STARTS: usize = 64;
/// Failed tests that are kept.
const FAULT_LIMIT: usize = 64;
/// Longest text that is kept.
const TEXT_LIMIT_BYTES: usize = 400;
/// DCGM's severity of a setting that is no fault of the hardware (`DCGM_ERROR_CONFIG`).
const SEVERITY_CONFIGURATION: i64 = 5;

/// Reads a diagnostic.
#[must_use]
pub fn read(input: InputId, bytes: &[u8]) -> Reading {
    let mut reading =
        Reading { lines: memchr::memchr_iter(b'\n', bytes).count() as u64, ..Reading::default() };
    let Some((json, top)) = find(bytes) else {
        reading.diagnostics.push("no JSON of dcgmi diag in it".to_owned());
        return reading;
    };
    if let Some(stopped) = &json.stopped {
        reading.diagnostics.push(format!("the JSON is cut: {stopped}"));
    }
    let plain = &json.plain;
    for (name, value) in versions(plain, json.root, top) {
        let text = format!("{name}: {value}");
        reading.events.push(event(
            input,
            Data::Environment(EnvironmentFact { name: name.to_owned(), value }),
            text,
        ));
    }
    if let Some(error) = plain.get(top, "runtime_error").and_then(|error| plain.text(error)) {
        reading.diagnostics.push(format!("the diagnostic itself failed: {}", clip(error, TEXT_LIMIT_BYTES)));
    }
    let mut settings = 0_u64;
    for (category, test) in tests(plain, top) {
        for result in results(plain, test) {
            match judge(plain, &category, test, result) {
                Found::Fault(fault) if reading.events.len() < FAULT_LIMIT => {
                    let text = format!("DCGM: {}", fault.detail);
                    reading.events.push(event(input, Data::DriverFault(fault), text));
                }
                Found::Setting => settings += 1,
                Found::Fault(_) | Found::Nothing => {}
            }
        }
    }
    if settings > 0 {
        let value = format!("{settings} (persistence mode and the like): no fault of the hardware");
        let text = format!("DCGM: failed for settings: {value}");
        let fact = EnvironmentFact { name: "dcgm_settings".to_owned(), value };
        reading.events.push(event(input, Data::Environment(fact), text));
    }
    reading
}

fn event(input: InputId, data: Data, text: String) -> Event {
    let span = Span { input, line: 1, byte: 0, lines: 1 };
    Event { span, origin: Origin::default(), data, text }
}

/// The first JSON value that is a diagnostic, and its body.
fn find(bytes: &[u8]) -> Option<(Json<'_>, Value)> {
    let bytes = bytes.get(..SIZE_LIMIT_BYTES).unwrap_or(bytes);
    let key = ["\"DCGM Diagnostic\"", "\"DCGM GPU Diagnostic\""]
        .iter()
        .filter_map(|key| memchr::memmem::find(bytes, key.as_bytes()))
        .min()?;
    let head = bytes.get(..key)?;
    // The brace of the value that holds the key: the nearest before it that opens such a value.
    memchr::memchr_iter(b'{', head).rev().take(STARTS).find_map(|at| {
        let json = loose_json::decode(bytes, at).ok()?;
        let top = json
            .plain
            .get(json.root, "DCGM Diagnostic")
            .or_else(|| json.plain.get(json.root, "DCGM GPU Diagnostic"))?;
        Some((json, top))
    })
}

/// Versions stand in `metadata`, beside the diagnostic, or inside it.
fn versions(plain: &Plain<'_>, root: Value, top: Value) -> Vec<(&'static str, String)> {
    let objects: Vec<Value> = plain.get(root, "metadata").into_iter().chain([top, root]).collect();
    let first = |keys: &[&str]| {
        objects.iter().find_map(|object| {
            keys.iter()
                .find_map(|key| plain.text(plain.get(*object, key)?).map(|text| clip(text, 100).to_owned()))
        })
    };
    let dcgm = first(&["version", "DCGM Version"]).map(|version| ("dcgm", version));
    let driver = first(&["Driver Version Detected", "driver"]).map(|version| ("driver", version));
    dcgm.into_iter().chain(driver).collect()
}

fn tests(plain: &Plain<'_>, top: Value) -> Vec<(String, Value)> {
    let categories = plain.get(top, "test_categories").map(|list| plain.items(list)).unwrap_or(&[]);
    let nested = categories.iter().flat_map(|category| {
        let name =
            plain.get(*category, "category").and_then(|name| plain.text(name)).unwrap_or("").to_owned();
        let tests = plain.get(*category, "tests").map(|list| plain.items(list)).unwrap_or(&[]);
        tests.iter().map(move |test| (name.clone(), *test))
    });
    let flat = plain.get(top, "tests").map(|list| plain.items(list)).unwrap_or(&[]);
    nested.chain(flat.iter().map(|test| (String::new(), *test))).collect()
}

fn results(plain: &Plain<'_>, test: Value) -> Vec<Value> {
    plain.get(test, "results").map(|list| plain.items(list)).unwrap_or(&[]).to_vec()
}

enum Found {
    Fault(DriverFault),
    Setting,
    Nothing,
}

struct Warning {
    text: String,
    id: Option<i64>,
    severity: Option<i64>,
}

fn judge(plain: &Plain<'_>, category: &str, test: Value, result: Value) -> Found {
    let status = plain.get(result, "status").and_then(|status| plain.text(status)).unwrap_or("");
    if !status.eq_ignore_ascii_case("fail") {
        return Found::Nothing;
    }
    let warnings = warnings(plain, result);
    let is_setting = |warning: &Warning| {
        warning.severity == Some(SEVERITY_CONFIGURATION)
            || warning.text.to_ascii_lowercase().contains("persistence mode")
    };
    if !warnings.is_empty() && warnings.iter().all(is_setting) {
        return Found::Setting;
    }
    let name = plain.get(test, "name").and_then(|name| plain.text(name)).unwrap_or("a test");
    let told: Vec<&Warning> = warnings.iter().filter(|warning| !is_setting(warning)).collect();
    let entity = entity(plain, result);
    let mut detail = format!("test {name} failed");
    if let Some(entity) = &entity {
        detail.push_str(&format!(" on {entity}"));
    }
    for warning in told.iter().take(3) {
        let id = warning.id.map(|id| format!(" (error {id})")).unwrap_or_default();
        detail.push_str(&format!(": {}{id}", clip(warning.text.trim(), TEXT_LIMIT_BYTES / 2)));
    }
    let words =
        format!("{category} {name} {}", told.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" "));
    Found::Fault(DriverFault {
        kind: kind(&words),
        pci: None,
        detail: clip(&detail, TEXT_LIMIT_BYTES).to_owned(),
        state: true,
    })
}

/// DCGM 4 gives warnings with numbers, DCGM 3 texts or one text.
fn warnings(plain: &Plain<'_>, result: Value) -> Vec<Warning> {
    let Some(found) = plain.get(result, "warnings") else { return Vec::new() };
    let one = |value: &Value| {
        let of = |key: &str| plain.get(*value, key);
        let text = plain.text(*value).or_else(|| plain.text(of("warning")?))?;
        let number = |key: &str| of(key).and_then(|number| plain.integer(number));
        Some(Warning { text: text.to_owned(), id: number("error_id"), severity: number("error_severity") })
    };
    match found {
        Value::List(_) => plain.items(found).iter().take(16).filter_map(one).collect(),
        other => one(&other).into_iter().collect(),
    }
}

/// `GPU 3`
fn entity(plain: &Plain<'_>, result: Value) -> Option<String> {
    if let Some(id) = plain.get(result, "entity_id").and_then(|id| plain.shown(id)) {
        let group = plain.get(result, "entity_group").and_then(|group| plain.text(group)).unwrap_or("entity");
        return Some(clip(&format!("{group} {id}"), 60).to_owned());
    }
    let ids = plain.get(result, "gpu_ids").or_else(|| plain.get(result, "gpu_id"))?;
    plain.shown(ids).map(|ids| clip(&format!("GPU {ids}"), 60).to_owned())
}

fn kind(words: &str) -> DriverFaultKind {
    let lower = words.to_ascii_lowercase();
    let any = |list: &[&str]| list.iter().any(|word| lower.contains(word));
    if any(&["nvlink", "nvswitch"]) {
        DriverFaultKind::Nvlink
    } else if any(&["memory", "memtest", "ecc", "row remap", "retire", "dbe"]) {
        DriverFaultKind::Ecc
    } else if any(&["pcie", "pci express"]) {
        DriverFaultKind::Pcie
    } else {
        DriverFaultKind::Diagnostic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<(DriverFaultKind, String)> {
        read(InputId(0), text.as_bytes())
            .events
            .into_iter()
            .filter_map(|event| match event.data {
                Data::DriverFault(fault) => {
                    assert!(fault.state);
                    Some((fault.kind, fault.detail))
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_failed_test_of_release_4() {
        let text = r#"Running... {note}
{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory", "results": [
 {"entity_group": "GPU", "entity_id": 0, "status": "Pass"},
 {"entity_group": "GPU", "entity_id": 3, "status": "Fail", "warnings": [{"warning": "GPU 3 has uncorrectable memory errors and row remappings are pending", "error_id": 97, "error_category": 7, "error_severity": 6}]}],
 "test_summary": {"status": "Fail"}}]}]}, "metadata": {"version": "4.2.3", "Driver Version Detected": "580.82.09"}}
rc=226"#;
        let want = "test memory failed on GPU 3: GPU 3 has uncorrectable memory errors and row remappings are pending (error 97)";
        assert_eq!(faults(text), [(DriverFaultKind::Ecc, want.to_owned())]);
        let facts: Vec<String> = read(InputId(0), text.as_bytes())
            .events
            .into_iter()
            .filter_map(|event| matches!(event.data, Data::Environment(_)).then_some(event.text))
            .collect();
        assert_eq!(facts, ["dcgm: 4.2.3", "driver: 580.82.09"]);
    }

    #[test]
    fn a_failed_test_of_release_3() {
        let text = r#"{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Integration", "tests": [{"name": "PCIe", "results": [
 {"gpu_ids": "1", "status": "Fail", "warnings": ["Detected 12 replays"]}]}]}], "version": "3.1.7"}}"#;
        assert_eq!(
            faults(text),
            [(DriverFaultKind::Pcie, "test PCIe failed on GPU 1: Detected 12 replays".to_owned())]
        );
    }

    #[test]
    fn persistence_mode_is_a_setting() {
        let text = r#"{"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [{"name": "software", "results": [
 {"entity_group": "GPU", "entity_id": 0, "status": "Fail", "warnings": [{"warning": "Persistence Mode: Persistence mode for GPU 0 is currently disabled.", "error_id": 29, "error_category": 8, "error_severity": 5}]}]}]}]}}"#;
        assert_eq!(faults(text), []);
    }

    #[test]
    fn a_cut_file_gives_what_it_holds() {
        let text = r#"{"DCGM Diagnostic": {"test_categories": [{"category": "Stress", "tests": [{"name": "diagnostic", "results": [{"entity_group": "GPU", "entity_id": 2, "status": "Fail"}, {"entity_group": "GP"#;
        assert_eq!(
            faults(text),
            [(DriverFaultKind::Diagnostic, "test diagnostic failed on GPU 2".to_owned())]
        );
        assert_eq!(read(InputId(0), text.as_bytes()).diagnostics.len(), 1);
        assert_eq!(faults("{}"), []);
    }
}
