//! Folders hidden, file names kept.
//!
//! In: a text of a report. Out: the same text in which the folders of paths are placeholders (`PATH-1/train.py`), whole paths
//! where the last part is no source, log or library, and internal addresses of the web. Folders of public packages and of
//! the system stay: they tell a maintainer where a frame stands and tell nobody anything about its owner.

use std::sync::LazyLock;

use regex::Regex;

/// Paths of Windows first, because `C:\new` holds what looks like an escaped line end; then line ends, which end a path.
static PATHS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?<win>(?:\b[A-Za-z]:|\\\\[\w.-]+)\\+(?:[^\\/:*?"'<>|\r\n]+\\+)*[^\\/:*?"'<>|\s,;)]*)"#,
        r"|\\[nr]",
        r#"|(?<url>\b(?:https?|s3|gs|git|ssh|hdfs|abfss?|oss|wandb)://[^\s"'<>)\]}]+)"#,
        r"|(?<unix>[\w.@+%~-]*(?:/[\w.@+%~-]+)+/?)",
    ))
    .ok()
});

/// What is hidden and what stays of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split<'t> {
    /// The part that is hidden.
    pub(super) hidden: &'t str,
    /// What stays behind it, its separator included.
    pub(super) kept: &'t str,
}

/// The paths of `text` that have something to hide, with the offsets of the whole path.
pub(super) fn find(text: &str) -> Vec<(std::ops::Range<usize>, Split<'_>)> {
    let Some(regex) = &*PATHS else { return Vec::new() };
    let mut found = Vec::new();
    for hit in regex.captures_iter(text) {
        let split = if let Some(path) = hit.name("win") {
            windows(path.as_str()).map(|split| (path.range(), split))
        } else if let Some(url) = hit.name("url") {
            internal(url.as_str()).map(|split| (url.range(), split))
        } else {
            hit.name("unix").and_then(|path| {
                let trimmed = path.as_str().trim_end_matches(['.', '/']);
                let range = path.start()..path.start() + trimmed.len();
                unix(trimmed).map(|split| (range, split))
            })
        };
        found.extend(split);
    }
    found
}

/// A path that is known to be one (the name of an input): its folders are hidden whatever its last part is.
pub(super) fn known(path: &str) -> Option<Split<'_>> {
    let cut = path.rfind(['/', '\\'])?;
    (cut > 0).then(|| split_at(path, cut))
}

fn split_at(path: &str, cut: usize) -> Split<'_> {
    Split { hidden: path.get(..cut).unwrap_or(path), kept: path.get(cut..).unwrap_or("") }
}

fn whole(path: &str) -> Split<'_> {
    Split { hidden: path, kept: "" }
}

fn unix(path: &str) -> Option<Split<'_>> {
    let absolute = path.starts_with(['/', '~']);
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    if folders.is_empty() || !folders.contains(char::is_alphabetic) {
        return None;
    }
    if let Some(cut) = public_part(path) {
        return (cut > 0).then(|| split_at(path, cut));
    }
    if absolute {
        let is_system = |root: &&str| {
            path.strip_prefix(*root).is_some_and(|rest| rest.starts_with('/') || root.ends_with("cuda"))
        };
        if !in_packages(path) && PUBLIC_ROOTS.iter().any(is_system) {
            return None;
        }
        return Some(if names_a_file(path) { split_at(path, folders.len()) } else { whole(path) });
    }
    let telling = folders.split('/').any(|folder| !is_generic(folder));
    (names_a_file(path) && telling).then(|| split_at(path, folders.len()))
}

/// Packages of one's own lie beside the public ones, even below a folder of the system.
fn in_packages(path: &str) -> bool {
    path.contains("site-packages/") || path.contains("dist-packages/")
}

/// Where the public part of a path begins, its separator included: a package that everybody can install, Python's own
/// library, the sources of PyTorch.
fn public_part(path: &str) -> Option<usize> {
    for library in ["site-packages/", "dist-packages/"] {
        if let Some(at) = path.find(library) {
            let package = path.get(at + library.len()..).unwrap_or("");
            let name = package.split(['/', '.']).next().unwrap_or("");
            return is_public(name).then(|| at.saturating_sub(1));
        }
    }
    if let Some(at) = path.find("/python3.") {
        let rest = path.get(at + 1..).unwrap_or("").split_once('/').map_or("", |(_, rest)| rest);
        let is_file_or_package = rest.ends_with(".py") && rest.split('/').count() <= 3;
        return is_file_or_package.then_some(at);
    }
    if let Some(at) = PUBLIC_TREES.iter().find_map(|tree| path.find(tree)) {
        return Some(if at > 0 && path.as_bytes().get(at - 1) == Some(&b'/') { at - 1 } else { at });
    }
    let first = path.trim_start_matches(['.', '/']).split('/').next().unwrap_or("");
    (!path.starts_with(['/', '~']) && is_public(first)).then_some(0)
}

fn windows(path: &str) -> Option<Split<'_>> {
    let cut = path.rfind('\\')?;
    let start = path.get(..cut).unwrap_or("").trim_end_matches('\\').len();
    if !path.get(..start)?.contains('\\') {
        return None;
    }
    for library in ["site-packages\\", "dist-packages\\"] {
        if let Some(at) = path.find(library) {
            let name = path.get(at + library.len()..).unwrap_or("").trim_start_matches('\\');
            if is_public(name.split(['\\', '.']).next().unwrap_or("")) {
                return Some(split_at(path, path.get(..at)?.trim_end_matches('\\').len()));
            }
        }
    }
    Some(if names_a_file(path) { split_at(path, start) } else { whole(path) })
}

/// An address of the web that isn't public.
fn internal(url: &str) -> Option<Split<'_>> {
    let url = url.trim_end_matches(['.', ',', ';', ':']);
    let (_, rest) = url.split_once("://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit('@').next().unwrap_or(host);
    let public = PUBLIC_SITES
        .iter()
        .any(|site| host == *site || host.strip_suffix(site).is_some_and(|rest| rest.ends_with('.')));
    let owner = path.split('/').next().unwrap_or("");
    let public_code = host == "github.com" && PUBLIC_OWNERS.contains(&owner.to_ascii_lowercase().as_str());
    (!public && !public_code && !path.is_empty()).then(|| whole(url))
}

/// True where the last part of a path is a source, a log, a library or a file that this tool reads.
fn names_a_file(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let Some((stem, _)) = name.split_once('.') else { return false };
    !stem.is_empty()
        && name
            .split('.')
            .skip(1)
            .any(|extension| FILE_EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()))
}

fn is_public(name: &str) -> bool {
    PUBLIC_PACKAGES.contains(&name)
}

/// Folders that every project has tell nothing.
fn is_generic(folder: &str) -> bool {
    GENERIC_FOLDERS.contains(&folder) || folder.starts_with("PATH-")
}

const FILE_EXTENSIONS: &[&str] = &[
    "py", "pyx", "pyi", "ipynb", "cu", "cuh", "c", "cc", "cpp", "cxx", "h", "hpp", "rs", "jl", "go", "so",
    "a", "o", "dll", "exe", "log", "txt", "out", "err", "json", "jsonl", "ndjson", "xml", "html", "md",
    "toml", "sh", "ttir", "ttgir", "llir", "ptx", "cubin", "nvcudmp",
];

const PUBLIC_ROOTS: &[&str] = &[
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib32",
    "/usr/libexec",
    "/usr/include",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/cuda",
    "/usr/local/bin",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/dev",
    "/proc",
    "/sys",
];

/// Parts of PyTorch's and NCCL's source trees, as their messages print them.
const PUBLIC_TREES: &[&str] = &[
    "aten/src/",
    "torch/csrc/",
    "torch/include/",
    "torch/_",
    "torch/nn/",
    "torch/distributed/",
    "torch/utils/",
    "c10/core/",
    "c10/cuda/",
    "c10/util/",
];

const PUBLIC_PACKAGES: &[&str] = &[
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "vllm",
    "sglang",
    "sgl_kernel",
    "transformers",
    "numpy",
    "scipy",
    "pandas",
    "nvidia",
    "cupy",
    "numba",
    "jax",
    "jaxlib",
    "flax",
    "tensorflow",
    "xla",
    "ray",
    "deepspeed",
    "megatron",
    "accelerate",
    "flash_attn",
    "flashinfer",
    "bitsandbytes",
    "xformers",
    "peft",
    "trl",
    "lightning",
    "pytorch_lightning",
    "diffusers",
    "transformer_engine",
    "apex",
    "tvm",
    "tilelang",
    "uvicorn",
    "fastapi",
    "starlette",
    "click",
    "tqdm",
    "spconv",
    "mmcv",
    "ultralytics",
    "onnxruntime",
    "tensorrt",
    "_pytest",
    "pluggy",
    "aten",
    "c10",
    "ctypes",
    "asyncio",
    "concurrent",
    "multiprocessing",
    "importlib",
    "functional_tensorrt",
    "google",
    "grpc",
    "zmq",
    "unsloth",
    "liger_kernel",
    "axolotl",
];

const GENERIC_FOLDERS: &[&str] = &[
    "",
    ".",
    "..",
    "~",
    "src",
    "include",
    "lib",
    "csrc",
    "misc",
    "transport",
    "graph",
    "core",
    "ops",
    "kernels",
    "tests",
    "test",
    "scripts",
    "examples",
    "tools",
    "utils",
    "models",
    "common",
    "detail",
    "impl",
    "plugins",
    "net",
    "device",
];

const PUBLIC_SITES: &[&str] = &[
    "pytorch.org",
    "nvidia.com",
    "python.org",
    "ray.io",
    "vllm.ai",
    "readthedocs.io",
    "tensorflow.org",
    "openxla.org",
    "kernel.org",
    "gnu.org",
    "numpy.org",
    "deepspeed.ai",
    "sglang.ai",
    "stackoverflow.com",
    "wikipedia.org",
];

const PUBLIC_OWNERS: &[&str] = &[
    "pytorch",
    "nvidia",
    "triton-lang",
    "vllm-project",
    "sgl-project",
    "huggingface",
    "microsoft",
    "deepspeedai",
    "google",
    "jax-ml",
    "openxla",
    "tensorflow",
    "ray-project",
    "ggml-org",
    "ggerganov",
    "dao-ailab",
    "python",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(&str, &str)> {
        find(text).into_iter().map(|(_, split)| (split.hidden, split.kept)).collect()
    }

    #[test]
    fn the_pattern_compiles() {
        assert!(PATHS.is_some());
    }

    #[test]
    fn folders_go_and_file_names_stay() {
        assert_eq!(parts("File \"/home/ann/acme/train.py\", line 3"), [("/home/ann/acme", "/train.py")]);
        assert_eq!(parts("wrote /scratch/acme/run-7."), [("/scratch/acme/run-7", "")]);
        assert_eq!(parts("~/acme/x.cu:12: and src/acme/y.py"), [("~/acme", "/x.cu"), ("src/acme", "/y.py")]);
        assert_eq!(parts(r"C:\Users\nina\acme app\main.py:5"), [(r"C:\Users\nina\acme app", r"\main.py")]);
        assert_eq!(parts(r"first\n/home/ann/b.py"), [("/home/ann", "/b.py")]);
        assert_eq!(
            parts("s3://acme-bucket/ckpt and https://git.acme.corp/x/y"),
            [("s3://acme-bucket/ckpt", ""), ("https://git.acme.corp/x/y", "")]
        );
    }

    #[test]
    fn what_is_public_stays() {
        for text in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6 /dev/shm/nccl-x /usr/local/cuda-12.4/bin/nvcc",
            "torch/_ops.py aten/src/ATen/native/cuda/IndexKernel.cu:94 misc/socket.cc:12 src/enqueue.cc:5",
            "https://pytorch.org/docs/stable/x.html https://github.com/pytorch/pytorch/issues/1",
            "12.3 MB/s, 1/2, and/or, fwd/bwd/step, 2026/11/29, /train.py, N/A",
        ] {
            assert_eq!(parts(text), [], "{text}");
        }
        let frame = "/home/ann/venv/lib/python3.12/site-packages/torch/_ops.py";
        assert_eq!(parts(frame), [("/home/ann/venv/lib/python3.12", "/site-packages/torch/_ops.py")]);
        assert_eq!(
            parts("/opt/acme/lib/python3.11/threading.py"),
            [("/opt/acme/lib", "/python3.11/threading.py")]
        );
        assert_eq!(
            parts("/usr/lib/python3/dist-packages/acme/net.py"),
            [("/usr/lib/python3/dist-packages/acme", "/net.py")]
        );
        assert_eq!(
            parts("/build/acme/pytorch/aten/src/ATen/x.cu"),
            [("/build/acme/pytorch", "/aten/src/ATen/x.cu")]
        );
    }

    #[test]
    fn the_name_of_an_input_is_a_path_whatever_it_looks_like() {
        assert_eq!(known("acme/logs/rank_0"), Some(Split { hidden: "acme/logs", kept: "/rank_0" }));
        assert_eq!(known("run.log"), None);
        assert_eq!(known("/run.log"), None);
    }
}
