//! The CUDA driver, called by name.
//!
//! In: calls. Out: their results, every status a plain number. It decides nothing about layouts or launches.
//!
//! Functions are looked up by hand and return `i32`: a driver newer than this program returns statuses that no list of
//! ours holds, and a Rust enumeration that is filled with one of those is undefined behaviour. Where a function is
//! missing, its name is told. Types and values are those of `cuda.h`.
#![expect(unsafe_code, reason = "the driver is a C library; every call is wrapped once, here")]

use std::ffi::{CStr, CString};
use std::ptr;

use libloading::Library;

use super::memory::{Answer, CallFailed, DeviceMemory};
use crate::probe::protocol::ImageKind;
use table::{
    AccessRights, AllocationProperties, Core, Location, Mapping, ON_DEVICE, PINNED, Parameters, Pointer,
    READ_WRITE,
};

mod table;

/// Where the driver's library is looked for.
const LIBRARIES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Bytes of a JIT log that are kept.
const LOG_BYTES: usize = 8_192;

/// `CU_JIT_ERROR_LOG_BUFFER`, `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`.
const JIT_OPTIONS: [i32; 2] = [5, 6];

/// Attributes of a device (`CUdevice_attribute`).
pub mod attribute {
    /// Compute capability, major part.
    pub const MAJOR: i32 = 75;
    /// Compute capability, minor part.
    pub const MINOR: i32 = 76;
    /// Most dynamic shared memory of a block, when asked for.
    pub const SHARED_LIMIT: i32 = 97;
    /// Whether addresses can be mapped by hand.
    pub const MAPPING: i32 = 102;
}

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const MAX_DYNAMIC_SHARED: i32 = 8;

/// A kernel that was loaded.
#[derive(Clone, Copy)]
pub struct Function(Pointer);

/// The driver, opened.
pub struct Cuda {
    core: Core,
    mapping: Result<Mapping, &'static str>,
    parameters: Option<Parameters>,
    device: i32,
    // Dropped last: the tables above point into it.
    _library: Library,
}

/// Why the driver can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenFailed {
    /// No library.
    Library(String),
    /// A function that every driver of the last years has is missing.
    Function(&'static str),
}

fn checked(call: &'static str, code: i32) -> Answer<()> {
    if code == 0 { Ok(()) } else { Err(CallFailed { call, code }) }
}

fn text_of(buffer: &[u8]) -> String {
    CStr::from_bytes_until_nul(buffer)
        .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
}

/// What the loader says, down to its cause.
fn words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

impl Cuda {
    /// Opens the driver's library and looks its functions up. Calls nothing.
    ///
    /// # Errors
    /// [`OpenFailed`] with the loader's words or the missing function.
    pub fn open() -> Result<Self, OpenFailed> {
        let mut said = String::new();
        for name in LIBRARIES {
            // SAFETY: opening the driver runs its initialisers, as every CUDA program does; this process does nothing else.
            match unsafe { Library::new(name) } {
                Ok(library) => {
                    let core = Core::load(&library).map_err(OpenFailed::Function)?;
                    let mapping = Mapping::load(&library);
                    let parameters = Parameters::load(&library).ok();
                    return Ok(Self { core, mapping, parameters, device: 0, _library: library });
                }
                Err(error) if said.is_empty() => said = words(&error),
                Err(_) => {}
            }
        }
        Err(OpenFailed::Library(said))
    }

    /// Starts the driver and chooses a device.
    ///
    /// # Errors
    /// The call that failed.
    pub fn start(&mut self, device: u32) -> Answer<()> {
        // SAFETY: `cuInit` takes flags only.
        checked("cuInit", unsafe { (self.core.init)(0) })?;
        let number = i32::try_from(device).unwrap_or(i32::MAX);
        // SAFETY: the out pointer is a live local.
        checked("cuDeviceGet", unsafe { (self.core.device)(&raw mut self.device, number) })
    }

    /// The CUDA version that the driver speaks: 13000 is 13.0.
    pub fn version(&self) -> Answer<i32> {
        let mut version = 0;
        // SAFETY: the out pointer is a live local.
        checked("cuDriverGetVersion", unsafe { (self.core.version)(&raw mut version) })?;
        Ok(version)
    }

    /// How many devices there are.
    pub fn count(&self) -> Answer<u32> {
        let mut count = 0;
        // SAFETY: the out pointer is a live local.
        checked("cuDeviceGetCount", unsafe { (self.core.count)(&raw mut count) })?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// The device's name.
    pub fn name(&self) -> Answer<String> {
        let mut name = [0_u8; 256];
        // SAFETY: the driver writes at most the 256 bytes that it is told of.
        let code = unsafe { (self.core.name)(name.as_mut_ptr().cast(), 256, self.device) };
        checked("cuDeviceGetName", code)?;
        Ok(text_of(&name))
    }

    /// Where the device sits.
    pub fn pci(&self) -> Answer<String> {
        let mut bus = [0_u8; 64];
        // SAFETY: the driver writes at most the 64 bytes that it is told of.
        let code = unsafe { (self.core.pci)(bus.as_mut_ptr().cast(), 64, self.device) };
        checked("cuDeviceGetPCIBusId", code)?;
        Ok(text_of(&bus))
    }

    /// An attribute of the device.
    pub fn attribute(&self, which: i32) -> Answer<i32> {
        let mut value = 0;
        // SAFETY: the out pointer is a live local; an unknown attribute is a status.
        checked("cuDeviceGetAttribute", unsafe {
            (self.core.attribute)(&raw mut value, which, self.device)
        })?;
        Ok(value)
    }

    /// The device's memory in bytes.
    pub fn total(&self) -> Answer<u64> {
        let mut total = 0_usize;
        // SAFETY: the out pointer is a live local.
        checked("cuDeviceTotalMem", unsafe { (self.core.total)(&raw mut total, self.device) })?;
        Ok(total as u64)
    }

    /// Creates the device's context and makes it this thread's.
    ///
    /// # Errors
    /// The call that failed.
    pub fn enter(&self) -> Answer<()> {
        let mut context: Pointer = ptr::null_mut();
        // SAFETY: the out pointer is a live local. The context lives as long as the process.
        checked("cuDevicePrimaryCtxRetain", unsafe { (self.core.retain)(&raw mut context, self.device) })?;
        // SAFETY: the context was just created.
        checked("cuCtxSetCurrent", unsafe { (self.core.current)(context) })
    }

    /// Free and all memory of the device, in bytes.
    pub fn memory(&self) -> Answer<(u64, u64)> {
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: the out pointers are live locals.
        checked("cuMemGetInfo", unsafe { (self.core.memory)(&raw mut free, &raw mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// Whether addresses can be mapped by hand; the missing function otherwise.
    pub fn can_map(&self) -> Result<(), &'static str> {
        self.mapping.as_ref().map(|_| ()).map_err(|name| *name)
    }

    /// Loads code and finds a kernel in it.
    ///
    /// # Errors
    /// The call that failed, and the compiler's log for PTX.
    pub fn load(&self, kind: ImageKind, code: &[u8], entry: &str) -> Result<Function, (CallFailed, String)> {
        // PTX is text that ends at its first zero byte; a cubin isn't harmed by one more.
        let mut data = code.to_vec();
        data.push(0);
        let mut log = vec![0_u8; LOG_BYTES];
        // An option's value is passed in the place of a pointer.
        let size = LOG_BYTES - 1;
        let values: [Pointer; 2] = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(size)];
        let options = if kind == ImageKind::Ptx { 2 } else { 0 };
        let mut module: Pointer = ptr::null_mut();
        // SAFETY: `data` and `log` outlive the call; at most `options` entries of the two arrays are read; the driver
        // writes at most `size` bytes of log.
        let status = unsafe {
            (self.core.load)(
                &raw mut module,
                data.as_ptr().cast(),
                options,
                JIT_OPTIONS.as_ptr(),
                values.as_ptr(),
            )
        };
        checked("cuModuleLoadDataEx", status).map_err(|failed| (failed, text_of(&log)))?;
        let symbol = CString::new(entry).unwrap_or_default();
        let mut function: Pointer = ptr::null_mut();
        // SAFETY: the module was just loaded and is never unloaded; the name ends with NUL.
        let status = unsafe { (self.core.function)(&raw mut function, module, symbol.as_ptr()) };
        checked("cuModuleGetFunction", status).map_err(|failed| (failed, String::new()))?;
        Ok(Function(function))
    }

    /// Offset and size in bytes of a parameter; `None` past the last one and where the driver doesn't tell.
    pub fn parameter(&self, function: Function, index: usize) -> Option<(usize, usize)> {
        let table = self.parameters.as_ref()?;
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is loaded; the out pointers are live locals; an index past the end is a status.
        let code = unsafe { (table.parameter)(function.0, index, &raw mut offset, &raw mut size) };
        (code == 0).then_some((offset, size))
    }

    /// Allows a kernel that much dynamic shared memory.
    ///
    /// # Errors
    /// The call that failed.
    pub fn allow_shared(&self, function: Function, bytes: u32) -> Answer<()> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SAFETY: the function is loaded.
        checked("cuFuncSetAttribute", unsafe {
            (self.core.set_attribute)(function.0, MAX_DYNAMIC_SHARED, bytes)
        })
    }

    /// Launches a kernel on the default stream. Every argument holds at least its parameter's size: the driver reads as
    /// many bytes as the code declares.
    ///
    /// # Errors
    /// The call that failed.
    pub fn launch(
        &self,
        function: Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        arguments: &[Vec<u8>],
    ) -> Answer<()> {
        let pointers: Vec<Pointer> = arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        // SAFETY: the caller made one argument for each parameter, none shorter than it (`super::launch` checks both
        // against the driver, or pads where it can't tell), and they live through the call, which copies them.
        let code = unsafe {
            (self.core.launch)(
                function.0,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shared_bytes,
                ptr::null_mut(),
                pointers.as_ptr(),
                ptr::null(),
            )
        };
        checked("cuLaunchKernel", code)
    }

    /// Waits for everything that was launched.
    ///
    /// # Errors
    /// The status of a kernel that failed.
    pub fn wait(&self) -> Answer<()> {
        // SAFETY: takes no arguments.
        checked("cuCtxSynchronize", unsafe { (self.core.synchronize)() })
    }

    fn location(&self) -> Location {
        Location { kind: ON_DEVICE, id: self.device }
    }

    fn properties(&self) -> AllocationProperties {
        AllocationProperties {
            kind: PINNED,
            handle_types: 0,
            location: self.location(),
            windows_data: ptr::null_mut(),
            flags: [0; 8],
        }
    }

    fn mapping(&self) -> Answer<&Mapping> {
        // 801 is the driver's own "not supported".
        self.mapping.as_ref().map_err(|name| CallFailed { call: name, code: 801 })
    }
}

impl DeviceMemory for Cuda {
    fn granularity(&mut self) -> Answer<u64> {
        if self.attribute(attribute::MAPPING)? == 0 {
            return Err(CallFailed { call: "cuDeviceGetAttribute", code: 801 });
        }
        let mut bytes = 0_usize;
        let properties = self.properties();
        // SAFETY: both pointers are live locals; 0 asks for the minimum.
        let code = unsafe { (self.mapping()?.granularity)(&raw mut bytes, &raw const properties, 0) };
        checked("cuMemGetAllocationGranularity", code)?;
        Ok(bytes as u64)
    }

    fn reserve(&mut self, bytes: u64) -> Answer<u64> {
        let mut address = 0;
        // SAFETY: the out pointer is a live local; nothing is mapped yet.
        let code = unsafe { (self.mapping()?.reserve)(&raw mut address, bytes as usize, 0, 0, 0) };
        checked("cuMemAddressReserve", code)?;
        Ok(address)
    }

    fn create(&mut self, bytes: u64) -> Answer<u64> {
        let mut handle = 0;
        let properties = self.properties();
        // SAFETY: both pointers are live locals.
        let code =
            unsafe { (self.mapping()?.create)(&raw mut handle, bytes as usize, &raw const properties, 0) };
        checked("cuMemCreate", code)?;
        Ok(handle)
    }

    fn map(&mut self, address: u64, bytes: u64, handle: u64) -> Answer<()> {
        // SAFETY: device addresses only; the driver checks that they are reserved and free.
        checked("cuMemMap", unsafe { (self.mapping()?.map)(address, bytes as usize, 0, handle, 0) })
    }

    fn allow(&mut self, address: u64, bytes: u64) -> Answer<()> {
        let rights = AccessRights { location: self.location(), flags: READ_WRITE };
        // SAFETY: device addresses only; the one descriptor is a live local.
        checked("cuMemSetAccess", unsafe {
            (self.mapping()?.allow)(address, bytes as usize, &raw const rights, 1)
        })
    }

    fn allocate(&mut self, bytes: u64) -> Answer<u64> {
        let mut address = 0;
        // SAFETY: the out pointer is a live local.
        checked("cuMemAlloc", unsafe { (self.core.allocate)(&raw mut address, bytes as usize) })?;
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Answer<()> {
        // SAFETY: device addresses only; the driver checks them.
        checked("cuMemFree", unsafe { (self.core.free)(address) })
    }

    fn set(&mut self, address: u64, byte: u8, bytes: u64) -> Answer<()> {
        // SAFETY: device addresses only; the driver checks them.
        checked("cuMemsetD8", unsafe { (self.core.set)(address, byte, bytes as usize) })
    }

    fn copy(&mut self, address: u64, bytes: &[u8]) -> Answer<()> {
        // SAFETY: `bytes` is read for its own length; the driver checks the device's side.
        checked("cuMemcpyHtoD", unsafe { (self.core.copy)(address, bytes.as_ptr().cast(), bytes.len()) })
    }
}
