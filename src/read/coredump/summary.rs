//! What a core dump says, as plain values.
//!
//! In: nothing; these are types. Out: the one shape that the case, the verdict and the report take a dump in. Names of
//! arguments aren't in a dump: [`Grid::name_arguments`] takes them from whoever has the source or the TTIR.

use crate::image::symbol;
use crate::read::event::{Dim3, Place};

use super::arguments::Argument;
use super::displacement::Displaced;
use super::faults::{Counts, PcSource};
use super::lanes::{Lane, OddRegister};
use super::rows::{GridRow, Metadata};

/// What a core dump says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DumpSummary {
    /// Versions, flags and time; `None` where the dump was cut before them.
    pub metadata: Option<Metadata>,
    /// GPUs.
    pub devices: Vec<Device>,
    /// CUDA contexts.
    pub contexts: Vec<Context>,
    /// Launches that were running.
    pub grids: Vec<Grid>,
    /// Faulting warps, most trusted first, at most 256.
    pub faults: Vec<Fault>,
    /// Faulting warps in all.
    pub fault_count: u64,
    /// Ranges of GPU memory whose bytes are in the dump.
    pub memory: Vec<Memory>,
    /// Cubins that hold a faulting or running function.
    pub images: Vec<Image>,
    /// Cubins in the dump.
    pub image_count: u64,
    /// Compute capability that the cubins were built for (90).
    pub architecture: Option<u32>,
    /// SMs, blocks and warps that the tables list.
    pub counts: Counts,
    /// Sections that the dump claims.
    pub section_count: u64,
    /// True where the section table is missing and the facts were found by searching the bytes.
    pub recovered: bool,
}

impl DumpSummary {
    /// The most trusted fault.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.faults.first()
    }

    /// The launch that the most trusted fault belongs to, or the only launch where no fault names one.
    #[must_use]
    pub fn faulting_grid(&self) -> Option<&Grid> {
        let named = self.fault().and_then(|fault| self.grids.get(fault.grid?));
        named.or_else(|| self.grids.first().filter(|_| self.grids.len() == 1))
    }

    /// The PTX of the kernel at fault.
    #[must_use]
    pub fn ptx(&self) -> Option<&[u8]> {
        let number = self.faulting_grid()?.image?;
        self.images.iter().find(|image| image.number == number)?.ptx.as_deref()
    }
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Name (`NVIDIA H200`).
    pub name: Option<String>,
    /// Chip (`GH100GL-A`).
    pub chip: Option<String>,
    /// Architecture name (`sm_90`).
    pub sm_name: Option<String>,
    /// PCI bus and device number.
    pub pci: (u32, u32),
    /// SMs.
    pub sms: u32,
    /// Warps an SM.
    pub warps_per_sm: u32,
    /// Lanes a warp.
    pub lanes_per_warp: u32,
    /// Registers that a lane can have.
    pub registers_per_lane: u32,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
}

/// A CUDA context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Id.
    pub id: u64,
    /// Base of the shared memory window.
    pub shared_window: u64,
    /// Base of the local memory window.
    pub local_window: u64,
    /// Device row.
    pub device: u32,
    /// Thread id of the host thread.
    pub host_thread: u32,
}

/// A launch that was running.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grid {
    /// Device row.
    pub device: u32,
    /// Id.
    pub id: u64,
    /// Context id.
    pub context: u64,
    /// Address of the kernel's first instruction.
    pub entry: u64,
    /// Grid dimensions in blocks.
    pub grid: Dim3,
    /// Block dimensions in threads.
    pub block: Dim3,
    /// Cluster dimensions, where clusters are used.
    pub cluster: Option<Dim3>,
    /// Registers a thread.
    pub registers: u32,
    /// True under `CUDA_LAUNCH_BLOCKING`.
    pub launch_blocking: bool,
    /// Thread id of the launching host thread.
    pub host_thread: u32,
    /// The kernel, where its image is in the dump.
    pub kernel: Option<KernelName>,
    /// Arguments; empty where the kernel's parameter table isn't known.
    pub arguments: Vec<Argument>,
    /// The arguments' bytes.
    pub argument_bytes: Vec<u8>,
    /// Number of the image that holds the kernel.
    pub image: Option<usize>,
}

impl Grid {
    /// A row of the grid table, before its kernel is looked up.
    pub(super) fn of(row: &GridRow, device: u32) -> Self {
        Self {
            device,
            id: row.id,
            context: row.context,
            entry: row.entry,
            grid: row.grid,
            block: row.block,
            cluster: row.cluster,
            registers: row.registers,
            launch_blocking: row.launch_blocking,
            host_thread: row.host_thread,
            ..Self::default()
        }
    }

    /// Gives the arguments their names, in order. Triton adds parameters of its own behind the author's, so fewer names
    /// than arguments are fine; with more, nothing is named.
    pub fn name_arguments(&mut self, names: &[&str]) {
        if names.len() <= self.arguments.len() {
            for (argument, name) in self.arguments.iter_mut().zip(names) {
                argument.name = Some((*name).to_owned());
            }
        }
    }
}

/// The names of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelName {
    /// Symbol (`_Z6gatherPKfPKiPfi`).
    pub symbol: String,
    /// Name (`gather`).
    pub name: String,
    /// Name with parameter types (`gather(float const*, int const*, float*, int)`).
    pub signature: String,
}

impl KernelName {
    /// The names behind a symbol.
    pub(super) fn of(symbol: &str) -> Self {
        Self { symbol: symbol.to_owned(), name: symbol::name(symbol), signature: symbol::signature(symbol) }
    }
}

/// A warp that raised an exception.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Exception number; 0 where none is recorded.
    pub exception: u32,
    /// Its name (`Warp Illegal Address`).
    pub exception_name: Option<&'static str>,
    /// The faulting instruction, as trustworthy as `source` says.
    pub pc: Option<u64>,
    /// Who names it.
    pub source: PcSource,
    /// The function that holds it: the kernel, or a device function that it calls.
    pub function: Option<KernelName>,
    /// Offset of the instruction in that function, in bytes.
    pub offset: Option<u64>,
    /// Source place, inside an inlined function where there is one.
    pub place: Option<Place>,
    /// Source places of the calls that it was inlined through, nearest first.
    pub inlined_at: Vec<Place>,
    /// Device row.
    pub device: u32,
    /// SM.
    pub sm: u32,
    /// Warp on the SM.
    pub warp: Option<u32>,
    /// Index of the launch in [`DumpSummary::grids`].
    pub grid: Option<usize>,
    /// Block.
    pub block: Option<Dim3>,
    /// First lane's thread. The exception is the warp's: all of `lanes` raised it.
    pub thread: Option<Dim3>,
    /// Lanes that raised it.
    pub lanes: Vec<Lane>,
    /// UR0, UR1, … of the warp.
    pub uniform_registers: Vec<u32>,
    /// Lanes that break the pattern of their warp: the likely culprits.
    pub odd_registers: Vec<OddRegister>,
    /// Addresses in registers that a wrapped 32-bit index explains.
    pub displaced: Vec<Displaced>,
}

/// A range of GPU memory in the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// First address.
    pub address: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// True for managed memory.
    pub managed: bool,
}

/// A cubin in the dump that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its number among the dump's images.
    pub number: usize,
    /// Compute capability that it was built for (90).
    pub architecture: Option<u32>,
    /// Symbols of its kernels.
    pub kernels: Vec<String>,
    /// The PTX that it carries.
    pub ptx: Option<Vec<u8>>,
}

impl Fault {
    /// A fault of which nothing is known yet.
    pub(super) fn nowhere() -> Self {
        Self {
            exception: 0,
            exception_name: None,
            pc: None,
            source: PcSource::None,
            function: None,
            offset: None,
            place: None,
            inlined_at: Vec::new(),
            device: 0,
            sm: 0,
            warp: None,
            grid: None,
            block: None,
            thread: None,
            lanes: Vec::new(),
            uniform_registers: Vec::new(),
            odd_registers: Vec::new(),
            displaced: Vec::new(),
        }
    }
}
