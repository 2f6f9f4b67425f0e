//! Playbooks through the real program: real commands, deadlines, kills, hostile names, exit statuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpfault"));
        command
            .args(arguments)
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("NO_COLOR", "1")
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        (
            status.code().unwrap_or(-1),
            String::from_utf8(stdout).unwrap(),
            String::from_utf8_lossy(&stderr).into_owned(),
        )
    }

    fn incidents(&self) -> Vec<serde_json::Value> {
        let mut found: Vec<PathBuf> = std::fs::read_dir(self.path("state/warpfault/incidents"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        found.sort();
        found.iter().map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
    }
}

fn step<'a>(page: &'a str, id: &str) -> &'a str {
    let at = page.find(&format!("({id})\n")).unwrap_or_else(|| panic!("no step {id} in {page}"));
    let from = page[..at].rfind("\n[").unwrap() + 1;
    let to = page[at..].find("\n\n").map_or(page.len(), |end| at + end);
    &page[from..to]
}

#[test]
fn list_show_and_names() {
    let home = Home::new();
    let (status, out, _) = home.run(&["playbook", "list"]);
    assert_eq!(status, 0);
    assert_eq!(out.lines().count(), 13);
    let (status, out, _) = home.run(&["playbook", "show", "index-overflow"]);
    assert!(status == 0 && out.contains("runs     CUDA_LAUNCH_BLOCKING=1 YOUR COMMAND"), "{out}");
    let (status, out, _) = home.run(&["playbook", "show", "--names"]);
    assert!(status == 0 && out.contains("shapes.first.safe "), "{out}");
    let (status, _, err) = home.run(&["playbook", "show", "nothing"]);
    assert!(status == 2 && err.contains("there is no playbook `nothing`"), "{err}");
}

#[test]
fn check_names_file_line_and_key_and_tells_by_its_status() {
    let home = Home::new();
    assert_eq!(home.run(&["playbook", "check"]).0, 0);
    let good = "schema = 1\n[playbook]\nid = \"a\"\ntitle = \"A\"\nclasses = [\"nccl\"]\n[[step]]\nid = \"b\"\nkind = \"look\"\ntitle = \"t\"\nwhy = \"w\"\ncost = \"c\"\nshows = \"s\"\n";
    let file = home.file("good.toml", good);
    assert_eq!(home.run(&["playbook", "check", file.to_str().unwrap()]).0, 0);
    let bad = home.file("bad.toml", &good.replace("shows", "shouts"));
    let (status, out, _) = home.run(&["playbook", "check", bad.to_str().unwrap()]);
    assert_eq!(status, 1);
    assert!(out.contains("bad.toml:12: step.shouts: unknown key"), "{out}");
    let missing = home.path("missing.toml");
    let (status, _, err) = home.run(&["playbook", "check", missing.to_str().unwrap()]);
    assert!(status == 2 && err.contains("missing.toml"), "{err}");
}

#[test]
fn a_teams_playbooks_lie_over_the_shipped_ones() {
    let home = Home::new();
    let own = "schema = 1\n[playbook]\nid = \"nccl\"\ntitle = \"Our NCCL\"\nclasses = [\"nccl\"]\n[[step]]\nid = \"b\"\nkind = \"look\"\ntitle = \"t\"\nwhy = \"w\"\ncost = \"c\"\nshows = \"s\"\n";
    std::fs::create_dir_all(home.path("config/warpfault/playbooks")).unwrap();
    home.file("config/warpfault/playbooks/nccl.toml", own);
    let (_, out, _) = home.run(&["playbook", "list"]);
    assert!(out.contains("Our NCCL") && out.lines().count() == 13, "{out}");
    std::fs::create_dir_all(home.path("more")).unwrap();
    home.file("more/x.toml", &own.replace("Our NCCL", "Their NCCL"));
    let (_, out, _) = home.run(&["playbook", "list", "--playbooks", home.path("more").to_str().unwrap()]);
    assert!(out.contains("Their NCCL"), "{out}");
    let (status, _, err) = home.run(&["playbook", "list", "--playbooks", "/nonexistent"]);
    assert!(status == 2 && err.contains("/nonexistent"), "{err}");
}

#[test]
fn the_example_of_the_guide_is_good() {
    let guide =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("playbooks/README.md")).unwrap();
    let blocks: Vec<&str> =
        guide.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let home = Home::new();
    let file = home.file("acme-cache.toml", &format!("{}\n{}", blocks[0], blocks[1]));
    let (status, out, _) = home.run(&["playbook", "check", file.to_str().unwrap()]);
    assert_eq!((status, out.as_str()), (0, ""));
    let log = home.file("crash.log", "RuntimeError: CUDA error: an illegal memory access was encountered\n");
    let folder = home.folder.path().to_str().unwrap().to_owned();
    let (_, out, _) = home.run(&[
        "playbook",
        "run",
        "acme-cache",
        log.to_str().unwrap(),
        "--answer",
        "blocks=70000",
        "--playbooks",
        &folder,
    ]);
    assert!(step(&out, "blocks").contains("70,000 blocks; the table holds 65,536."), "{out}");
}

/// Nothing runs without a yes, and what runs is told.
#[test]
fn a_command_needs_its_yes() {
    let home = Home::new();
    let mark = home.path("mark");
    let log = home.file(
        "job.log",
        &format!("$ sh -c 'echo $CUDA_LAUNCH_BLOCKING > {}'\nRuntimeError: CUDA error: an illegal memory access was encountered\n", mark.display()),
    );
    let run = ["playbook", "run", "illegal-address", log.to_str().unwrap()];
    let (status, out, err) = home.run(&run);
    assert!(status == 3 && !mark.exists(), "{out}{err}");
    assert!(step(&out, "launch-blocking").starts_with("[skipped]"), "{out}");
    assert!(err.contains("step launch-blocking was not run: it needs --yes-to run"), "{err}");
    let (_, out, err) =
        home.run(&[&run[..], &["--yes-to", "run", "--skip", "lifetime", "--skip", "core-dump"]].concat());
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), "1\n");
    assert!(err.contains("runs: env CUDA_LAUNCH_BLOCKING=1 sh -c"), "{err}");
    assert!(step(&out, "launch-blocking").contains("evidence of a race or a lifetime fault"), "{out}");
}

#[test]
fn a_program_that_dies_with_sigsegv_is_rerun_and_reclassified() {
    let home = Home::new();
    let log = home.file("job.log", "$ sh -c 'kill -SEGV $$'\nexit status 139\n");
    let (_, out, _) = home.run(&["playbook", "run", "auto", log.to_str().unwrap(), "--yes-to", "run"]);
    assert!(out.starts_with("The host process crashed"), "{out}");
    assert!(step(&out, "python-line").contains("It crashed and printed no Python line"), "{out}");

    let python = Command::new("python3").arg("-c").arg("import ctypes, faulthandler").status();
    if !python.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no python3 on this machine, so no faulthandler");
        return;
    }
    let program = home.file("crash.py", "import ctypes\n\ndef wild():\n    ctypes.string_at(0)\n\nwild()\n");
    let log = home.file("python.log", &format!("$ python3 {}\nexit status 139\n", program.display()));
    let (_, out, err) = home.run(&["playbook", "run", "auto", log.to_str().unwrap(), "--yes-to", "run"]);
    let line = step(&out, "python-line");
    assert!(line.starts_with("[done]") && line.contains("The crash is below __init__.py:"), "{out}{err}");
    let saved = home.incidents();
    // Both incidents may carry the same second, so the one of the Python program is told by what its rerun logged.
    let logs = saved
        .iter()
        .filter(|incident| incident["verdict"]["class"] == "segfault")
        .filter_map(|incident| std::fs::read_to_string(incident["inputs"][1]["file"].as_str()?).ok());
    let kept = logs.into_iter().find(|log| log.contains("python3")).unwrap();
    assert!(kept.starts_with("$ env PYTHONFAULTHANDLER=1 python3"), "{kept}");
    assert!(kept.contains("Fatal Python error: Segmentation fault"), "{kept}");
}

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[test]
fn a_program_that_hangs_is_ended_with_its_children() {
    let home = Home::new();
    let (one, two) = (home.path("1"), home.path("2"));
    let script = format!(
        "echo $$ > {}; setsid sleep 1234 & echo $! > {}; wait; sleep 1234",
        one.display(),
        two.display()
    );
    let log = home.file(
        "job.log",
        &format!("$ sh -c '{script}'\nRuntimeError: CUDA error: an illegal memory access was encountered\n"),
    );
    let (_, out, _) = home.run(&[
        "playbook",
        "run",
        "illegal-address",
        log.to_str().unwrap(),
        "--yes-to",
        "run",
        "--deadline",
        "1",
        "--skip",
        "lifetime",
        "--skip",
        "core-dump",
    ]);
    assert!(step(&out, "launch-blocking").contains("without a failure: nothing is shown"), "{out}");
    for path in [one, two] {
        assert!(!alive(&std::fs::read_to_string(path).unwrap()));
    }
}

/// Peak resident memory of a process, in KiB.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn two_gigabytes_of_output_do_not_fill_memory() {
    let home = Home::new();
    let log = home.file(
        "job.log",
        "$ sh -c 'yes an ordinary line of output | head -c 2000000000; echo; echo the end'\nRuntimeError: CUDA error: an illegal memory access was encountered\n",
    );
    let mut child = home
        .command(&[
            "playbook",
            "run",
            "illegal-address",
            log.to_str().unwrap(),
            "--yes-to",
            "run",
            "--skip",
            "lifetime",
            "--skip",
            "core-dump",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_kib(child.id()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    let saved = home.incidents();
    let ran = saved[0]["record"]["history"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|entry| entry["what"].get("ran"))
        .unwrap();
    assert_eq!(ran["output_bytes"], 2_000_000_009_u64);
    let kept = PathBuf::from(ran["log"].as_str().unwrap());
    let bytes = std::fs::read(&kept).unwrap();
    assert!(bytes.len() < 80 << 20, "{}", bytes.len());
    assert!(bytes.ends_with(b"\nthe end\nexit status 0\n"));
    // The kept log is mapped while it is read, and counts as resident then.
    assert!(peak > 0 && peak < 300_000, "{peak} KiB");
}

#[test]
fn a_hostile_kernel_name_reaches_no_shell() {
    let home = Home::new();
    let trap = home.path("x");
    let name = format!("$(touch {0}); rm -rf ~; `touch {0}`", trap.display());
    let playbook = "schema = 1\n[playbook]\nid = \"acme\"\ntitle = \"A\"\nclasses = [\"illegal_address\"]\n[[signature]]\nid = \"acme\"\npattern = 'ACME fault in kernel (?<kernel>.+)$'\nclass = \"illegal_address\"\nmatch = [\"ACME fault in kernel k\"]\n[[step]]\nid = \"echo\"\nkind = \"run\"\ntitle = \"t\"\nwhy = \"w\"\ncost = \"none\"\nenvironment = { KERNEL = \"{{ facts.signatures.acme.kernel }}\" }\ncommand = [\"sh\", \"-c\", 'printf \"%s\\n\" \"$KERNEL\" \"$1\"', \"sh\", \"{{ facts.signatures.acme.kernel }}\"]\n";
    std::fs::create_dir_all(home.path("own")).unwrap();
    home.file("own/acme.toml", playbook);
    let log = home.file("crash.log", &format!("ACME fault in kernel {name}\n"));
    let (_, out, err) = home.run(&[
        "playbook",
        "run",
        "acme",
        log.to_str().unwrap(),
        "--yes-to",
        "run",
        "--playbooks",
        home.path("own").to_str().unwrap(),
    ]);
    assert!(!trap.exists(), "{out}{err}");
    let saved = home.incidents();
    let kept = std::fs::read_to_string(saved[0]["inputs"][1]["file"].as_str().unwrap()).unwrap();
    assert_eq!(kept.matches(&format!("\n{name}")).count(), 2, "{kept}");

    // What a person copies is one quoted word, too.
    let line = kept.lines().next().unwrap().strip_prefix("$ ").unwrap();
    let words = shlex::split(line).unwrap();
    assert_eq!(words.last(), Some(&name));
    let shown = home.run(&["playbook", "run", "auto", log.to_str().unwrap()]).1;
    assert!(!trap.exists(), "{shown}");
}

#[test]
fn a_killed_program_loses_at_most_the_step_in_flight() {
    let home = Home::new();
    let pid = home.path("pid");
    let log = home.file(
        "job.log",
        &format!(
            "$ sh -c 'echo $$ > {}; sleep 1234'\nRuntimeError: CUDA error: an illegal memory access was encountered\n",
            pid.display()
        ),
    );
    let mut child = home
        .command(&[
            "playbook",
            "run",
            "illegal-address",
            log.to_str().unwrap(),
            "--skip",
            "launch-blocking",
            "--answer",
            "depends-on-size=at random",
            "--yes-to",
            "run",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(&pid).unwrap_or_default().trim().is_empty() {
        assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "the command never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let saved = home.incidents();
    let id = saved[0]["id"].as_str().unwrap();
    let (status, out, err) = home.run(&["resume", id]);
    assert_eq!(status, 0, "{out}{err}");
    assert!(step(&out, "launch-blocking").starts_with("[skipped]"), "{out}");
    let phase = step(&out, "depends-on-size");
    assert!(phase.starts_with("[done]") && phase.contains("Chance points to a lifetime"), "{out}");
    assert!(step(&out, "lifetime").starts_with("[open]"), "{out}");
    let (_, list, _) = home.run(&["resume"]);
    assert!(list.contains(id) && list.contains("illegal_address"), "{list}");

    // The terminal of the command went with the program, and so did the command.
    let gone = Instant::now() + Duration::from_secs(10);
    while alive(&std::fs::read_to_string(&pid).unwrap()) && Instant::now() < gone {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!alive(&std::fs::read_to_string(&pid).unwrap()));
}

/// Kills at many moments: what is on disk can always be read.
#[test]
fn no_kill_leaves_a_broken_incident() {
    let home = Home::new();
    let log = home.file(
        "job.log",
        "hidden=(234624, 9216)\nRuntimeError: CUDA error: an illegal memory access was encountered\n",
    );
    for delay in 0..24_u64 {
        let mut child = home
            .command(&[
                "playbook",
                "run",
                "index-overflow",
                log.to_str().unwrap(),
                "--answer",
                "phase=a shard",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay * 4));
        let _ = child.kill();
        child.wait().unwrap();
        for saved in home.incidents() {
            let (status, _, err) = home.run(&["resume", saved["id"].as_str().unwrap()]);
            assert_eq!(status, 0, "{err}");
        }
        assert_eq!(home.run(&["resume"]).0, 0);
    }
}

#[test]
fn a_crash_that_was_seen_before_says_so() {
    let home = Home::new();
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/triton-int32-wrap/run.log");
    let run = ["playbook", "run", "auto", log.to_str().unwrap()];
    assert!(!home.run(&run).2.contains("seen before"));
    let (_, _, err) = home.run(&run);
    assert!(err.contains("seen before, in incident") && err.contains("14,811,137 past"), "{err}");
    let (_, list, _) = home.run(&["resume"]);
    assert!(list.contains("(seen 2 times)"), "{list}");
}
