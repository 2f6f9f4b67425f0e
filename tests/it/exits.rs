//! What `analyze` promises to callers: exit statuses, where text goes, and that one bad input loses no good one.

use std::process::{Command, Output};

fn analyze(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpfault")).arg("analyze").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_exit_status_says_what_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let undecided = file("undecided.log", "FATAL: worker 3 gave up\n");
    let clean = file("clean.log", "step 1 loss 2.0\nstep 2 loss 1.9\n");
    let empty = file("empty.log", "");
    for (path, status) in [
        ("samples/cuda-oom", 0),
        (clean.as_str(), 1),
        (empty.as_str(), 1),
        (undecided.as_str(), 3),
        ("samples/no-such-sample", 2),
    ] {
        assert_eq!(analyze(&[path]).status.code(), Some(status), "{path}");
    }
}

#[test]
fn nothing_read_is_no_report_of_no_failure() {
    let output = analyze(&["samples/no-such-sample", "--json"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""));
    assert!(text(&output.stderr).contains("does not exist"), "{}", text(&output.stderr));
}

#[test]
fn a_missing_input_loses_no_good_one() {
    let output = analyze(&["samples/no-such-sample", "samples/cuda-oom/run.log", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"]["class"], "gpu_oom");
    let said = report["diagnostics"].as_array().unwrap();
    assert!(said.iter().any(|one| one["message"].as_str().unwrap().contains("no-such-sample")), "{said:?}");
}

/// The new report is larger than the limit on files: the old one stays, and nothing half-written lies beside it.
#[test]
fn a_report_that_does_not_fit_leaves_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.html");
    std::fs::write(&report, "the old one").unwrap();
    let command = format!(
        "ulimit -f 4; exec {} analyze samples/triton-int32-wrap --format html -o {}",
        env!("CARGO_BIN_EXE_warpfault"),
        report.display()
    );
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("could not be written"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "the old one");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_report_replaces_a_file_and_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.md");
    std::fs::write(&report, "the old one").unwrap();
    std::fs::set_permissions(&report, std::fs::Permissions::from_mode(0o640)).unwrap();
    let path = report.to_str().unwrap();
    let output = analyze(&["samples/cuda-oom/run.log", "--format", "markdown", "-o", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(std::fs::read_to_string(&report).unwrap().contains("out of memory"));
    assert_eq!(std::fs::metadata(&report).unwrap().permissions().mode() & 0o777, 0o640);
    // A pipe or a device can't be replaced.
    let output = analyze(&["samples/cuda-oom/run.log", "--json", "-o", "/dev/stdout"]);
    assert!(text(&output.stdout).contains("gpu_oom"));
}
