//! NVRTC: CUDA C++ to PTX without a toolkit's compiler.
//!
//! In: source text and an architecture. Out: PTX and the compiler's log. It reads no file but the library.
#![expect(unsafe_code, reason = "NVRTC is a C library; every call is wrapped once, here")]

use std::ffi::{CString, c_char, c_void};
use std::path::PathBuf;
use std::ptr;

use libloading::Library;

/// Names that toolkits and wheels install it under.
const NAMES: [&str; 4] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"];

/// Folders that a loader often doesn't know.
const FOLDERS: [&str; 2] = ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"];

/// Longest PTX or log that is taken, in bytes.
const LIMIT_BYTES: usize = 64 << 20;

type Program = *mut c_void;

/// Why there is no PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileFailed {
    /// No library, or one that lacks a function.
    Missing(String),
    /// The compiler said no: its status and its log.
    Refused(i32, String),
}

struct Nvrtc {
    library: Library,
}

fn candidates() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::env::var_os("WARPFAULT_NVRTC").map(PathBuf::from).into_iter().collect();
    found.extend(NAMES.map(PathBuf::from));
    let home = std::env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("lib64"));
    for folder in home.into_iter().chain(FOLDERS.map(PathBuf::from)) {
        found.extend(NAMES.map(|name| folder.join(name)));
    }
    found
}

impl Nvrtc {
    fn open() -> Result<Self, CompileFailed> {
        for path in candidates() {
            // SAFETY: opening NVRTC runs its initialisers; this process does nothing else.
            if let Ok(library) = unsafe { Library::new(&path) } {
                return Ok(Self { library });
            }
        }
        Err(CompileFailed::Missing("libnvrtc.so isn't there".to_owned()))
    }

    fn function<T: Copy>(&self, name: &str) -> Result<T, CompileFailed> {
        let symbol = format!("{name}\0");
        // SAFETY: each caller names the type that `nvrtc.h` declares, and uses it only while the library is open.
        let found = unsafe { self.library.get::<T>(symbol.as_bytes()) };
        found.map(|found| *found).map_err(|_| CompileFailed::Missing(format!("libnvrtc has no {name}")))
    }

    fn text(&self, program: Program, size: &str, get: &str) -> Result<Vec<u8>, CompileFailed> {
        let size = self.function::<unsafe extern "C" fn(Program, *mut usize) -> i32>(size)?;
        let get = self.function::<unsafe extern "C" fn(Program, *mut c_char) -> i32>(get)?;
        let mut bytes = 0_usize;
        // SAFETY: the program is alive, the out pointer is a live local.
        let code = unsafe { size(program, &raw mut bytes) };
        if code != 0 || bytes > LIMIT_BYTES {
            return Err(CompileFailed::Refused(code, format!("{bytes} bytes of output")));
        }
        let mut text = vec![0_u8; bytes.max(1)];
        // SAFETY: NVRTC writes the size that it just told.
        let code = unsafe { get(program, text.as_mut_ptr().cast()) };
        if code != 0 {
            return Err(CompileFailed::Refused(code, String::new()));
        }
        while text.last() == Some(&0) {
            text.pop();
        }
        Ok(text)
    }
}

/// Compiles a source to PTX: the PTX and the compiler's remarks.
///
/// # Errors
/// [`CompileFailed`].
pub fn compile(source: &str, name: &str, architecture: u32) -> Result<(Vec<u8>, String), CompileFailed> {
    type Create = unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        i32,
        *const *const c_char,
        *const *const c_char,
    ) -> i32;
    let nvrtc = Nvrtc::open()?;
    let create = nvrtc.function::<Create>("nvrtcCreateProgram")?;
    let run = nvrtc
        .function::<unsafe extern "C" fn(Program, i32, *const *const c_char) -> i32>("nvrtcCompileProgram")?;
    let text = |text: &str| {
        CString::new(text).map_err(|_| CompileFailed::Refused(0, "a zero byte in the source".to_owned()))
    };
    let (source, name) = (text(source)?, text(name)?);
    let mut program: Program = ptr::null_mut();
    // SAFETY: both texts end with NUL and outlive the program; there are no headers.
    let code =
        unsafe { create(&raw mut program, source.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null()) };
    if code != 0 {
        return Err(CompileFailed::Refused(code, "nvrtcCreateProgram".to_owned()));
    }
    let options = [
        text(&format!("--gpu-architecture=compute_{architecture}"))?,
        text("--generate-line-info")?,
        text("-default-device")?,
    ];
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    // SAFETY: the program is alive; the options outlive the call.
    let code = unsafe { run(program, i32::try_from(pointers.len()).unwrap_or(0), pointers.as_ptr()) };
    let log = nvrtc.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog").unwrap_or_default();
    let log = String::from_utf8_lossy(&log).into_owned();
    if code != 0 {
        return Err(CompileFailed::Refused(code, log));
    }
    let ptx = nvrtc.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX")?;
    Ok((ptx, log))
}
