//! Loading whole folders, patterns and broken things.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn load_path(path: &Path) -> Loaded {
    load(&[InputSpec::Path(path.to_path_buf())], Limits::default())
}

fn names(loaded: &Loaded, root: &Path) -> Vec<String> {
    let prefix = format!("{}/", root.display());
    loaded.inputs.iter().map(|input| input.path.unescaped().replace(&prefix, "")).collect()
}

fn reasons(loaded: &Loaded) -> Vec<&str> {
    loaded.left_out.iter().map(|left| left.why.as_str()).collect()
}

fn write(root: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_torchrun_folder_gives_one_input_a_stream_with_its_rank() {
    let folder = tempfile::tempdir().unwrap();
    for rank in [0, 1, 2, 10] {
        write(folder.path(), &format!("none_abc/attempt_0/{rank}/stdout.log"), "step 1\n");
        write(folder.path(), &format!("none_abc/attempt_0/{rank}/stderr.log"), "");
    }
    let loaded = load_path(folder.path());
    assert_eq!(
        names(&loaded, folder.path())[..3],
        [
            "none_abc/attempt_0/0/stderr.log",
            "none_abc/attempt_0/0/stdout.log",
            "none_abc/attempt_0/1/stderr.log"
        ]
    );
    let ranks: Vec<Option<u32>> = loaded.inputs.iter().map(|input| input.hint.local_rank).collect();
    assert_eq!(ranks, [0, 0, 1, 1, 2, 2, 10, 10].map(Some));
    let kinds: Vec<InputKind> = loaded.inputs.iter().take(2).map(|input| input.kind).collect();
    assert_eq!(kinds, [InputKind::Empty, InputKind::Log]);
    let ids: Vec<u32> = loaded.inputs.iter().map(|input| input.id.0).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(reasons(&loaded), Vec::<&str>::new());
}

#[test]
fn the_good_ones_load_and_each_bad_one_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "good.log", "RuntimeError: CUDA error\n");
    write(root, "a.bin", [1, 2, 3, 4, 5, 6, 7, 14, 15, 16, 17, 18].repeat(100));
    write(root, "b.xz", b"\xfd7zXZ\0\0\x04");
    let specs = ["missing.log", "good.log", "a.bin", "b.xz", "good.log/x"]
        .map(|name| InputSpec::Path(root.join(name)));
    let loaded = load(&specs, Limits::default());
    assert_eq!(names(&loaded, root), ["good.log"]);
    assert_eq!(&*loaded.inputs[0].bytes, b"RuntimeError: CUDA error\n");
    let xz = format!("is an xz file; run: xz -dc {} | warpfault analyze -", root.join("b.xz").display());
    assert_eq!(
        reasons(&loaded),
        [
            "does not exist; check the spelling and the working folder",
            "is binary and no format that is read here",
            &xz,
            "does not exist: a part of its path is a file",
        ]
    );
}

#[test]
fn what_may_not_be_read_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "closed/run.log", "x\n");
    write(root, "secret.log", "x\n");
    write(root, "open.log", "x\n");
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(root.join("secret.log"), fs::Permissions::from_mode(0o000)).unwrap();
    let may_read_all = fs::read(root.join("secret.log")).is_ok();
    let loaded = load_path(root);
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    if may_read_all {
        // The superuser reads everything, whatever the mode says.
        assert_eq!(loaded.inputs.len(), 3);
        return;
    }
    assert_eq!(names(&loaded, root), ["open.log"]);
    let refused = "may not be read by this user; copy it, or run as a user who may read it";
    assert_eq!(reasons(&loaded), [refused, refused]);
}

#[test]
fn junk_in_a_folder_is_one_sentence_a_kind() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "run.log", "x\n");
    write(root, ".git/config", "x\n");
    for n in 0..3 {
        write(root, &format!("{n}.png"), b"\x89PNG\r\n\x1a\n\0\0");
    }
    let loaded = load_path(root);
    assert_eq!(loaded.inputs.len(), 1);
    let first = root.join("0.png").display().to_string();
    assert_eq!(
        reasons(&loaded),
        [
            format!("holds 3 binary files that nothing here reads, {first} the first").as_str(),
            "holds 1 hidden file or folder, not read; name it to read it"
        ]
    );
}

#[test]
fn a_file_named_twice_is_loaded_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "run.log", "x\n");
    symlink(root.join("run.log"), root.join("latest.log")).unwrap();
    let specs = [InputSpec::Path(root.join("run.log")), InputSpec::Path(root.to_path_buf())];
    assert_eq!(names(&load(&specs, Limits::default()), root), ["run.log"]);
}

#[test]
fn patterns_match_in_order_and_say_when_they_don_t() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for rank in [0, 2, 10] {
        write(root, &format!("run/rank_{rank}.log"), "x\n");
    }
    let glob = |pattern: &str| InputSpec::Glob(root.join(pattern).display().to_string());
    let loaded = load(&[glob("run/rank_*.log"), glob("**/none*"), glob("[")], Limits::default());
    let ranks: Vec<Option<u32>> = loaded.inputs.iter().map(|input| input.hint.rank).collect();
    assert_eq!(ranks, [0, 2, 10].map(Some));
    assert_eq!(reasons(&loaded)[0], "matches no file");
    assert!(reasons(&loaded)[1].starts_with("is no pattern: "));
}

#[test]
fn arguments_read_as_people_mean_them() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a[1].log");
    fs::write(&odd, "x").unwrap();
    assert_eq!(InputSpec::from_argument("-".as_ref()), InputSpec::Stdin);
    assert_eq!(InputSpec::from_argument(odd.as_os_str()), InputSpec::Path(odd.clone()));
    assert_eq!(InputSpec::from_argument("no*.log".as_ref()), InputSpec::Glob("no*.log".to_owned()));
    assert_eq!(InputSpec::from_argument("run.log".as_ref()), InputSpec::Path("run.log".into()));
}

#[test]
fn compressed_utf16_with_a_cut_end_is_read_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let text: String =
        (0..40_000_u32).map(|n| format!("step {} {}\n", n, n.wrapping_mul(2_654_435_761))).collect();
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&utf16).unwrap();
    let whole = gz.finish().unwrap();
    write(folder.path(), "cut.gz", &whole[..whole.len() / 2]);
    let limits = Limits { memory_bytes: 1000, ..Limits::default() };
    let loaded = load(&[InputSpec::Path(folder.path().join("cut.gz"))], limits);
    let input = &loaded.inputs[0];
    assert!(input.truncated && input.bytes.is_mapped() && text.as_bytes().starts_with(&input.bytes));
    assert_eq!(input.size_bytes, whole.len() as u64 / 2);
    assert!(loaded.notes[0].contains("cut.gz: unpacking stopped after "));
}

#[test]
fn pastes_lose_the_fence_around_documents_only() {
    let paste = |text: &str| InputSpec::Text { name: "paste".to_owned(), bytes: text.as_bytes().to_vec() };
    let ras = "```json\n{\n \"nccl_version\": \"2.28.9\",\n \"communicators_count\": 1}\n```";
    let loaded = load(&[paste(ras), paste("```\nNCCL WARN x\n```\n")], Limits::default());
    assert_eq!(loaded.inputs[0].kind, InputKind::NcclRas);
    assert!(loaded.inputs[0].bytes.starts_with(b"{\n") && loaded.inputs[0].bytes.ends_with(b"}\n"));
    assert_eq!(loaded.inputs[1].kind, InputKind::Log);
    assert_eq!(&*loaded.inputs[1].bytes, b"```\nNCCL WARN x\n```\n");
}

#[test]
fn a_triton_cache_is_one_input_with_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let key = "HYIBIXINPSKPLZTE5DGPHVN57E624WX5CVI2LJYGLYFU7ETUYUOA";
    let ttir = "module {\n  tt.func public @k(%x: !tt.ptr<f32>) {\n";
    write(root, &format!("cache/{key}/__grp__k.json"), "{\"child_paths\": {}}");
    write(root, &format!("cache/{key}/k.json"), "{\"hash\": \"1\", \"target\": {}, \"num_warps\": 4}");
    write(root, &format!("cache/{key}/k.ttir"), ttir);
    write(root, &format!("cache/{key}/k.source"), ttir);
    write(root, "run.log", "x\n");
    let loaded = load_path(root);
    assert_eq!(names(&loaded, root), ["cache", "run.log"]);
    let cache = &loaded.inputs[0];
    assert_eq!(cache.kind, InputKind::TritonCache);
    let parts: Vec<(String, InputKind)> =
        cache.parts.iter().map(|part| (part.path.to_string(), part.kind)).collect();
    assert_eq!(
        parts,
        [
            (format!("{key}/__grp__k.json"), InputKind::TritonMetadata),
            (format!("{key}/k.json"), InputKind::TritonMetadata),
            (format!("{key}/k.ttir"), InputKind::Ttir),
        ]
    );
}

#[test]
fn four_thousand_rank_logs_load_with_few_open_files() {
    let folder = tempfile::tempdir().unwrap();
    let log = "step 1 loss 2.5\n".repeat(1100);
    for rank in 0..4096 {
        let path = folder.path().join(format!("rank_{rank}.log"));
        fs::write(&path, &log).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    let loaded = load_path(folder.path());
    assert_eq!(loaded.inputs.len(), 4096);
    assert_eq!(loaded.inputs[4095].hint.rank, Some(4095));
    assert!(loaded.inputs.iter().all(|input| *input.bytes == *log.as_bytes()));
    let open_files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    assert!(open_files < 512, "{open_files} open files");
}

#[test]
fn hostile_names_are_shown_escaped() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "\x1b[2Jrun.log", "x\n");
    let loaded = load_path(folder.path());
    assert!(loaded.inputs[0].path.to_string().ends_with("/\\x1b[2Jrun.log"));
}
