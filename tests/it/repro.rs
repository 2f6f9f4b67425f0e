//! `warpfault repro` through the program: a folder, a real crash that is verified here, stubs that must be rejected.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SEGFAULT: &str = "samples/torch-segv-faulthandler/run.log";

struct Folder {
    _keep: tempfile::TempDir,
    path: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        Self { path: keep.path().join("repro"), _keep: keep }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes the repro of the recorded segfault, its program replaced.
    fn with_program(source: &str) -> Self {
        let folder = Self::new();
        assert_eq!(status(&repro(&folder.path, &[SEGFAULT])), 0);
        std::fs::write(folder.file("repro.py"), source).unwrap();
        folder
    }
}

fn repro(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warpfault"))
        .arg("repro")
        .args(arguments)
        .arg("-o")
        .arg(folder)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn status(out: &Output) -> i32 {
    out.status.code().unwrap_or(-1)
}

fn said(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

fn python_is_there() -> bool {
    let there = Command::new("python3").arg("--version").output().is_ok_and(|out| out.status.success());
    if !there {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"no python3: not checked\n");
    }
    there
}

#[test]
fn the_recorded_segfault_is_reproduced_and_accepted() {
    if !python_is_there() {
        return;
    }
    let folder = Folder::new();
    let out = repro(&folder.path, &[SEGFAULT, "--verify", "--yes"]);
    assert_eq!(status(&out), 0, "{}", said(&out));
    assert!(said(&out).contains("segfault, signal:11, exit status 139"), "{}", said(&out));
    assert!(said(&out).ends_with("accepted\n") || said(&out).contains("\naccepted\n"), "{}", said(&out));
    let readme = std::fs::read_to_string(folder.file("README.md")).unwrap();
    assert!(readme.contains("What `--verify` tried"), "{readme}");
    let table = Command::new("bash").arg(folder.file("run.sh")).output().unwrap();
    assert_eq!(status(&table), 0, "{}", said(&table));
    assert!(said(&table).contains("fail      fail        address 0x0"), "{}", said(&table));
}

#[test]
fn a_folder_that_no_longer_fails_is_rejected() {
    if !python_is_there() {
        return;
    }
    let folder = Folder::with_program("print('passed')\n");
    let out = repro(&folder.path, &["--verify", "--yes"]);
    assert_eq!(status(&out), 1, "{}", said(&out));
    assert!(said(&out).contains("not accepted: the side that must fail passed"), "{}", said(&out));
}

#[test]
fn a_folder_that_fails_otherwise_is_rejected() {
    if !python_is_there() {
        return;
    }
    let other = "import sys\nprint('RuntimeError: CUDA error: an illegal memory access was encountered')\nsys.exit(1)\n";
    let out = repro(&Folder::with_program(other).path, &["--verify", "--yes"]);
    assert_eq!(status(&out), 1, "{}", said(&out));
    assert!(said(&out).contains("another class: illegal_address, not segfault"), "{}", said(&out));
    let both = "import ctypes, faulthandler\nfaulthandler.enable()\nctypes.string_at(0)\n";
    let out = repro(&Folder::with_program(both).path, &["--verify", "--yes"]);
    assert_eq!(status(&out), 1, "{}", said(&out));
    assert!(said(&out).contains("the side that must pass did not"), "{}", said(&out));
}

#[test]
fn what_cannot_run_says_why() {
    if !python_is_there() {
        return;
    }
    let folder = Folder::with_program("import sys\nprint('cannot run: PyTorch sees no GPU')\nsys.exit(3)\n");
    let out = repro(&folder.path, &["--verify", "--yes"]);
    assert_eq!(status(&out), 2, "{}", said(&out));
    assert!(said(&out).contains("it could not be run: PyTorch sees no GPU"), "{}", said(&out));
}

#[test]
fn nothing_runs_without_a_yes() {
    let folder = Folder::new();
    let out = repro(&folder.path, &[SEGFAULT, "--verify"]);
    assert_eq!(status(&out), 2, "{}", said(&out));
    assert!(said(&out).contains("say --yes"), "{}", said(&out));
    assert!(folder.file("run.sh").exists());
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let folder = Folder::new();
    std::fs::create_dir(&folder.path).unwrap();
    std::fs::write(folder.file("README.md"), "mine").unwrap();
    let out = repro(&folder.path, &[SEGFAULT]);
    assert_eq!(status(&out), 2, "{}", said(&out));
    assert_eq!(std::fs::read_to_string(folder.file("README.md")).unwrap(), "mine");
    // Our own folder, and an empty one, are written.
    std::fs::remove_file(folder.file("README.md")).unwrap();
    assert_eq!(status(&repro(&folder.path, &["samples/cuda-int32-wrap-memcheck/run.log"])), 0);
    assert!(folder.file("repro.cu").exists());
    std::fs::write(folder.file("notes.txt"), "mine").unwrap();
    std::fs::create_dir(folder.file("backward-1")).unwrap();
    std::fs::write(folder.file("backward-1/kernel.ptx"), "of an earlier repro").unwrap();
    assert_eq!(status(&repro(&folder.path, &[SEGFAULT])), 0);
    assert!(folder.file("repro.py").exists() && !folder.file("repro.cu").exists());
    assert!(folder.file("notes.txt").exists() && !folder.file("backward-1/kernel.ptx").exists());
}

#[test]
fn what_is_missing_is_named() {
    let folder = Folder::new();
    let out = repro(&folder.path, &["samples/torch-cublas-after-ima"]);
    assert_eq!(status(&out), 2);
    assert!(said(&out).contains("Triton cache folder"), "{}", said(&out));
    assert!(!folder.path.exists());
    assert_eq!(status(&repro(&folder.path, &[SEGFAULT, "--set", "address"])), 2);
}

#[test]
fn the_step_of_a_walk_writes_it_after_a_yes() {
    let folder = Folder::new();
    let home = folder.path.parent().unwrap();
    let log = std::fs::canonicalize(SEGFAULT).unwrap();
    let walk = |yes: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_warpfault"))
            .args(["playbook", "run", "segfault", "--no-save"])
            .args(yes)
            .arg(&log)
            .env("NO_COLOR", "1")
            .env("XDG_CONFIG_HOME", home.join("config"))
            .current_dir(home)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        said(&out)
    };
    let without = walk(&[]);
    assert!(!folder.path.exists(), "{without}");
    let with = walk(&["--yes-to", "repro"]);
    assert!(folder.file("run.sh").exists(), "{with}");
    assert!(with.contains("The folder repro holds the program"), "{with}");
}
