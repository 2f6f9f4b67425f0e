//! NVML: who else is on the GPU, and which driver release it is.
//!
//! In: a PCI address. Out: what NVML tells; nothing where it isn't there. It reads only: NVML could change settings, and
//! none of those functions is looked up here.
#![expect(unsafe_code, reason = "NVML is a C library; every call is wrapped once, here")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use libloading::Library;

use crate::probe::protocol::GpuProcess;

/// What NVML tells about a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// The driver's release.
    pub driver: Option<String>,
    /// Memory in use, by anybody.
    pub used_bytes: Option<u64>,
    /// Processes that compute.
    pub processes: Vec<GpuProcess>,
}

/// Most processes that are listed.
const PROCESSES: usize = 256;

/// `nvmlProcessInfo_t` of version 2 and 3.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ProcessInfo {
    pid: u32,
    used_bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

/// `nvmlMemory_v2_t`. The first version counts what the driver keeps for itself as used.
#[repr(C)]
struct Memory {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2`: the structure's size, and 2 in the top byte.
const MEMORY_VERSION: u32 = 40 | (2 << 24);

type Handle = *mut c_void;

struct Nvml {
    library: Library,
}

impl Nvml {
    fn open() -> Option<Self> {
        // SAFETY: opening NVML runs its initialisers, as `nvidia-smi` does.
        let library = unsafe { Library::new("libnvidia-ml.so.1") }.ok()?;
        let nvml = Self { library };
        let init = nvml.function::<unsafe extern "C" fn() -> i32>(b"nvmlInit_v2\0")?;
        // SAFETY: takes no arguments.
        (unsafe { init() } == 0).then_some(nvml)
    }

    fn function<T: Copy>(&self, name: &[u8]) -> Option<T> {
        // SAFETY: each caller names the type that `nvml.h` declares, and uses it only while the library is open.
        unsafe { self.library.get::<T>(name) }.ok().map(|found| *found)
    }

    fn driver(&self) -> Option<String> {
        let ask =
            self.function::<unsafe extern "C" fn(*mut c_char, u32) -> i32>(b"nvmlSystemGetDriverVersion\0")?;
        let mut text = [0_u8; 96];
        // SAFETY: NVML writes at most the 96 bytes that it is told of.
        let code = unsafe { ask(text.as_mut_ptr().cast(), 96) };
        let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().into_owned();
        (code == 0 && !text.is_empty()).then_some(text)
    }

    fn device(&self, pci: &str) -> Option<Handle> {
        let ask = self.function::<unsafe extern "C" fn(*const c_char, *mut Handle) -> i32>(
            b"nvmlDeviceGetHandleByPciBusId_v2\0",
        )?;
        let bus = CString::new(pci).ok()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the text ends with NUL, the out pointer is a live local.
        (unsafe { ask(bus.as_ptr(), &raw mut handle) } == 0).then_some(handle)
    }

    fn used_bytes(&self, device: Handle) -> Option<u64> {
        let ask = self
            .function::<unsafe extern "C" fn(Handle, *mut Memory) -> i32>(b"nvmlDeviceGetMemoryInfo_v2\0")?;
        let mut memory = Memory { version: MEMORY_VERSION, total: 0, reserved: 0, free: 0, used: 0 };
        // SAFETY: the handle came from NVML, the out pointer is a live local.
        (unsafe { ask(device, &raw mut memory) } == 0).then_some(memory.used)
    }

    fn processes(&self, device: Handle) -> Option<Vec<GpuProcess>> {
        type Ask = unsafe extern "C" fn(Handle, *mut u32, *mut ProcessInfo) -> i32;
        let ask = self
            .function::<Ask>(b"nvmlDeviceGetComputeRunningProcesses_v3\0")
            .or_else(|| self.function::<Ask>(b"nvmlDeviceGetComputeRunningProcesses_v2\0"))?;
        let mut list = vec![ProcessInfo::default(); PROCESSES];
        let mut count = u32::try_from(PROCESSES).ok()?;
        // SAFETY: NVML writes at most `count` entries, and the list has as many.
        if unsafe { ask(device, &raw mut count, list.as_mut_ptr()) } != 0 {
            return None;
        }
        let found = list.iter().take(usize::try_from(count).unwrap_or(PROCESSES));
        // All ones is NVML's "not available".
        let used = |info: &ProcessInfo| Some(info.used_bytes).filter(|bytes| *bytes != u64::MAX);
        Some(found.map(|info| GpuProcess { pid: info.pid, used_bytes: used(info) }).collect())
    }
}

/// What NVML tells about the device at a PCI address; empty without NVML.
#[must_use]
pub fn telemetry(pci: Option<&str>) -> Telemetry {
    let Some(nvml) = Nvml::open() else { return Telemetry::default() };
    let device = pci.and_then(|pci| nvml.device(pci));
    Telemetry {
        driver: nvml.driver(),
        used_bytes: device.and_then(|device| nvml.used_bytes(device)),
        processes: device.and_then(|device| nvml.processes(device)).unwrap_or_default(),
    }
}
