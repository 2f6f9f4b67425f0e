//! CUDA C++ to code that can be loaded.
//!
//! In: a source and a compute capability. Out: a file of code in a temporary folder, and which compiler made it: `nvcc`
//! where it is there, else NVRTC inside a child. The source is compiled as it stands; nothing of it runs here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::host::{self, Exit, Program};
use super::protocol::{Compile, Reply, Request};
use crate::error::{Error, ErrorKind, Result};

/// A compiler may take that long.
const DEADLINE: Duration = Duration::from_secs(300);

/// Folders that hold tools and stand on no `PATH`.
const FOLDERS: [&str; 2] = ["/usr/local/cuda/bin", "/opt/cuda/bin"];

/// Code that was compiled.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The file of code.
    pub code: PathBuf,
    /// Its folder, which goes with the last user.
    pub keep: Arc<tempfile::TempDir>,
    /// Which compiler made it.
    pub compiler: &'static str,
}

/// A tool by name: on `PATH`, below `CUDA_HOME`, or where toolkits put it.
#[must_use]
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(std::env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin")));
    folders.extend(FOLDERS.map(PathBuf::from));
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Compiles a source for a compute capability; `nvrtc` leaves `nvcc` aside.
///
/// # Errors
/// `Missing` where there is no compiler, `Input` with the compiler's words where it refuses the source.
pub fn compile(source: &Path, architecture: u32, nvrtc: bool, child: &Program) -> Result<Compiled> {
    let folder = tempfile::tempdir()
        .map_err(|error| Error::new(ErrorKind::Output, "no temporary folder can be made").because(error))?;
    match tool("nvcc").filter(|_| !nvrtc) {
        Some(nvcc) => with_nvcc(&nvcc, source, architecture, folder),
        None => with_nvrtc(source, architecture, child, folder),
    }
}

fn with_nvcc(nvcc: &Path, source: &Path, architecture: u32, folder: tempfile::TempDir) -> Result<Compiled> {
    let code = folder.path().join("probe.cubin");
    // Line information brings the PTX along, which the static check reads.
    let mut arguments: Vec<OsString> =
        ["-x", "cu", "-cubin", "-lineinfo"].into_iter().map(OsString::from).collect();
    arguments.push(format!("-arch=sm_{architecture}").into());
    arguments.push("-o".into());
    arguments.push(code.clone().into_os_string());
    arguments.push(source.as_os_str().to_owned());
    let ending = host::run(&Program::new(nvcc, arguments), Vec::new(), DEADLINE, &AtomicBool::new(false));
    if ending.exit != Exit::Code(0) || !code.is_file() {
        return Err(Error::new(ErrorKind::Input, "nvcc did not compile it")
            .at(source, None)
            .hint(first_lines(&ending.printed)));
    }
    Ok(Compiled { code, keep: Arc::new(folder), compiler: "nvcc" })
}

fn with_nvrtc(
    source: &Path,
    architecture: u32,
    child: &Program,
    folder: tempfile::TempDir,
) -> Result<Compiled> {
    let code = folder.path().join("probe.ptx");
    let request = Request::Compile(Compile {
        source: source.to_string_lossy().into_owned(),
        output: code.to_string_lossy().into_owned(),
        architecture,
    });
    let ending = host::ask(child, &request, DEADLINE, &AtomicBool::new(false));
    match ending.reply {
        Some(Reply::Compiled { .. }) => Ok(Compiled { code, keep: Arc::new(folder), compiler: "NVRTC" }),
        Some(Reply::Failed(failure)) => {
            let kind = if failure.code.is_some() { ErrorKind::Input } else { ErrorKind::Missing };
            Err(Error::new(kind, failure.message)
                .at(source, None)
                .hint("install nvcc or NVRTC, or compile it yourself: nvcc -cubin -lineinfo -arch=sm_90"))
        }
        _ => Err(Error::new(ErrorKind::Missing, "the compiler's process gave no answer").at(source, None)),
    }
}

fn first_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(8).collect();
    lines.join("\n  ")
}
