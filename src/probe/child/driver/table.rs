//! The driver's functions and structures, as `cuda.h` declares them.
//!
//! In: an open library. Out: tables of typed function pointers, or the name of the first that is missing. It calls nothing.

use std::ffi::{c_char, c_void};

use libloading::Library;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Location {
    pub kind: i32,
    pub id: i32,
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
pub const ON_DEVICE: i32 = 1;

/// `CUmemAllocationProp`.
#[repr(C)]
pub struct AllocationProperties {
    pub kind: i32,
    pub handle_types: i32,
    pub location: Location,
    pub windows_data: *mut c_void,
    pub flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
pub struct AccessRights {
    pub location: Location,
    pub flags: i32,
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED`.
pub const PINNED: i32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
pub const READ_WRITE: i32 = 3;

/// Declares a table of functions: field, symbol, argument types.
macro_rules! functions {
    ($table:ident { $($field:ident = $symbol:literal ( $($kind:ty),* );)* }) => {
        pub struct $table {
            $(pub $field: unsafe extern "C" fn($($kind),*) -> i32,)*
        }
        impl $table {
            /// Looks every function up; the name of the first that is missing otherwise.
            pub fn load(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($field: {
                        // SAFETY: `cuda.h` declares the function with these argument types and an `int` status, and the
                        // pointer is used only while `Cuda` keeps the library open.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($kind),*) -> i32>(concat!($symbol, "\0").as_bytes())
                        };
                        *found.map_err(|_| $symbol)?
                    },)*
                })
            }
        }
    };
}

/// An opaque handle of the driver.
pub type Pointer = *mut c_void;

functions!(Core {
    init = "cuInit"(u32);
    version = "cuDriverGetVersion"(*mut i32);
    count = "cuDeviceGetCount"(*mut i32);
    device = "cuDeviceGet"(*mut i32, i32);
    name = "cuDeviceGetName"(*mut c_char, i32, i32);
    attribute = "cuDeviceGetAttribute"(*mut i32, i32, i32);
    total = "cuDeviceTotalMem_v2"(*mut usize, i32);
    pci = "cuDeviceGetPCIBusId"(*mut c_char, i32, i32);
    retain = "cuDevicePrimaryCtxRetain"(*mut Pointer, i32);
    current = "cuCtxSetCurrent"(Pointer);
    synchronize = "cuCtxSynchronize"();
    memory = "cuMemGetInfo_v2"(*mut usize, *mut usize);
    load = "cuModuleLoadDataEx"(*mut Pointer, *const c_void, u32, *const i32, *const Pointer);
    function = "cuModuleGetFunction"(*mut Pointer, Pointer, *const c_char);
    set_attribute = "cuFuncSetAttribute"(Pointer, i32, i32);
    launch = "cuLaunchKernel"(Pointer, u32, u32, u32, u32, u32, u32, u32, Pointer, *const Pointer, *const Pointer);
    allocate = "cuMemAlloc_v2"(*mut u64, usize);
    free = "cuMemFree_v2"(u64);
    copy = "cuMemcpyHtoD_v2"(u64, *const c_void, usize);
    set = "cuMemsetD8_v2"(u64, u8, usize);
});

functions!(Mapping {
    granularity = "cuMemGetAllocationGranularity"(*mut usize, *const AllocationProperties, i32);
    reserve = "cuMemAddressReserve"(*mut u64, usize, usize, u64, u64);
    create = "cuMemCreate"(*mut u64, usize, *const AllocationProperties, u64);
    map = "cuMemMap"(u64, usize, usize, u64, u64);
    allow = "cuMemSetAccess"(u64, usize, *const AccessRights, usize);
});

functions!(Parameters {
    parameter = "cuFuncGetParamInfo"(Pointer, usize, *mut usize, *mut usize);
});
