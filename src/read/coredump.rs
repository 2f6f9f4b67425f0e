//! A CUDA core dump (`core.nvcudmp`), read without cuda-gdb.
//!
//! In: the file's bytes, whole or cut. Out: a [`DumpSummary`]: what ran, which warps raised an exception and at which
//! source line, the launch's arguments, the registers of the lanes at fault, the PTX that the kernel carries; and a
//! diagnostic for each thing that could not be read. It leaves alone causes, and stack, shared and local memory.
//!
//! The layout is described in `rows` (tables) and `sections` (kinds). Everything is read in place; what is kept is
//! bounded however large the dump is.

use crate::image::elf::{Elf, MACHINE_CUDA, Section};
use crate::image::symbol;

use super::event::{Dim3, Place};

pub mod arguments;
mod carve;
pub mod displacement;
pub mod exceptions;
mod faults;
mod images;
mod lanes;
mod launch;
mod rows;
mod sections;

pub use arguments::{Argument, ArgumentKind};
pub use displacement::{Agreement, Displaced, RowIs, displaced};
pub use faults::{Counts, PcSource};
pub use lanes::{Lane, OddRegister};
pub use launch::faulting_launch;
pub use rows::Metadata;

#[cfg(test)]
mod tests;

use faults::RawFault;
use images::Images;
use sections::{Tables, kind};

/// Faults that are described; a wrapped index in a large grid raises one in every warp on the GPU.
const FAULTS_KEPT: usize = 256;

/// Faults whose lanes and registers are kept.
const FAULTS_WITH_LANES: usize = 64;

/// Grids, devices, contexts and memory ranges that are kept of each.
const ROWS_KEPT: usize = 1 << 14;

/// Argument bytes that are kept of a launch; CUDA allows 32,764.
const ARGUMENT_BYTES: usize = 32 << 10;

/// `e_type` of a core file.
const CORE_FILE: u16 = 4;

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
    fn of(symbol: &str) -> Self {
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

/// True for bytes that start like a CUDA core dump.
#[must_use]
pub fn looks_like_core_dump(bytes: &[u8]) -> bool {
    Elf::parse(bytes).is_ok_and(|elf| elf.machine == MACHINE_CUDA && elf.file_type == CORE_FILE)
}

/// Reads a core dump. Never fails: what can't be read is said in the diagnostics.
#[must_use]
pub fn read(bytes: &[u8]) -> (DumpSummary, Vec<String>) {
    let mut diagnostics = Vec::new();
    let elf = match Elf::parse(bytes) {
        Ok(elf) => elf,
        Err(reason) => return (DumpSummary::default(), vec![format!("core dump: {reason}")]),
    };
    if elf.machine != MACHINE_CUDA || elf.file_type != CORE_FILE {
        let (file_type, machine) = (elf.file_type, elf.machine);
        diagnostics
            .push(format!("core dump: ELF type {file_type} for machine {machine} is no CUDA core dump"));
        return (DumpSummary::default(), diagnostics);
    }
    let (there, claimed) = (elf.section_count(), elf.claimed_sections());
    if u64::from(there) < claimed.max(1) {
        let (length, whole) = (bytes.len(), elf.table_end());
        diagnostics.push(format!(
            "core dump: cut at {length} of {} bytes; {there} of {claimed} section headers are there",
            whole.map_or_else(|| "unknown".to_owned(), |whole| whole.to_string())
        ));
    }
    if there <= 1 {
        return (carve::recover(bytes, &mut diagnostics), diagnostics);
    }
    let summary = Reader::new(&elf, &mut diagnostics).summary();
    (summary, diagnostics)
}

/// One pass over a dump with its section table.
struct Reader<'a, 'd> {
    elf: &'a Elf<'d>,
    tables: Tables,
    images: Images<'d>,
    diagnostics: &'a mut Vec<String>,
}

impl<'a, 'd> Reader<'a, 'd> {
    fn new(elf: &'a Elf<'d>, diagnostics: &'a mut Vec<String>) -> Self {
        let tables = Tables::of(elf, diagnostics);
        let relocated = tables.all(kind::RELOCATED_IMAGE).iter().chain(tables.all(kind::IMAGE));
        let images = Images::of(relocated.map(|section| elf.data(section)), diagnostics);
        Self { elf, tables, images, diagnostics }
    }

    fn summary(mut self) -> DumpSummary {
        let mut summary = DumpSummary {
            metadata: self.tables.all(kind::METADATA).first().and_then(|s| rows::metadata(self.elf.data(s))),
            devices: self.devices(),
            contexts: self.contexts(),
            memory: self.memory(),
            image_count: self.images.len() as u64,
            architecture: self.images.architecture(),
            section_count: self.elf.claimed_sections(),
            ..DumpSummary::default()
        };
        self.note_cut_sections();
        summary.grids = self.grids(&summary.memory);
        let (mut raw, counts) = faults::find(self.elf, &self.tables, self.diagnostics);
        summary.fault_count = raw.len() as u64;
        summary.counts = counts;
        raw.truncate(FAULTS_KEPT);
        summary.faults = raw.iter().map(|raw| self.fault(raw, &summary.grids)).collect();
        raw.truncate(FAULTS_WITH_LANES);
        self.add_lanes(&raw, &mut summary);
        summary.images = images_read(self.images);
        summary
    }

    fn note_cut_sections(&mut self) {
        let cut = self.elf.sections().filter(|section| self.elf.is_cut(section)).count();
        if cut != 0 {
            self.diagnostics.push(format!("core dump: {cut} sections reach past the end of the file"));
        }
    }

    fn strings(&self) -> Option<Section> {
        let tables = self.tables.all(kind::STRINGS);
        tables.iter().find(|table| self.elf.name(table) == ".strtab").or(tables.first()).copied()
    }

    fn devices(&self) -> Vec<Device> {
        let strings = self.strings();
        let text = |offset: u64| {
            let offset = u32::try_from(offset).ok()?;
            let text = self.elf.string(&strings?, offset);
            (!text.is_empty()).then(|| text.to_owned())
        };
        let device = |data| {
            let row = rows::device(data)?;
            Some(Device {
                name: text(row.name),
                chip: text(row.kind),
                sm_name: text(row.sm_kind),
                pci: (row.pci_bus, row.pci_device),
                sms: row.sms,
                warps_per_sm: row.warps_per_sm,
                lanes_per_warp: row.lanes_per_warp,
                registers_per_lane: row.registers_per_lane,
                compute_capability: (row.sm_major, row.sm_minor),
            })
        };
        self.rows_of(kind::DEVICES).filter_map(|(_, _, data)| device(data)).take(ROWS_KEPT).collect()
    }

    fn contexts(&self) -> Vec<Context> {
        let context = |data| {
            let row = rows::context(data)?;
            Some(Context {
                id: row.id,
                shared_window: row.shared_window,
                local_window: row.local_window,
                device: row.device,
                host_thread: row.host_thread,
            })
        };
        self.rows_of(kind::CONTEXTS).filter_map(|(_, _, data)| context(data)).take(ROWS_KEPT).collect()
    }

    fn memory(&self) -> Vec<Memory> {
        let ranges = |wanted, managed| {
            self.tables.all(wanted).iter().map(move |section| Memory {
                address: section.address,
                size_bytes: section.size,
                managed,
            })
        };
        ranges(kind::GLOBAL, false).chain(ranges(kind::MANAGED, true)).take(ROWS_KEPT).collect()
    }

    /// Rows of all tables of a kind: the table, the row's number, its bytes.
    fn rows_of(&self, kind: u32) -> impl Iterator<Item = (&Section, u32, &'d [u8])> {
        let elf = self.elf;
        self.tables.all(kind).iter().flat_map(move |table| {
            rows::rows(table, elf.data(table)).map(move |(row, data)| (table, row, data))
        })
    }

    fn grids(&mut self, memory: &[Memory]) -> Vec<Grid> {
        let rows: Vec<_> = self
            .rows_of(kind::GRIDS)
            .filter_map(|(table, row, data)| Some((*table, row, rows::grid(data)?)))
            .take(ROWS_KEPT)
            .collect();
        let mut grids = Vec::new();
        for (table, number, row) in rows {
            let mut grid = Grid {
                device: table.info,
                id: row.id,
                context: row.context,
                entry: row.entry,
                grid: row.grid,
                block: row.block,
                cluster: row.cluster,
                registers: row.registers,
                launch_blocking: row.launch_blocking,
                host_thread: row.host_thread,
                ..Grid::default()
            };
            let params = self.tables.under(kind::PARAMS, table.index, number).first();
            let raw = params.map_or(&[][..], |section| self.elf.data(section));
            let raw = if raw.is_empty() { self.bank_params(&table, number, row.params_offset) } else { raw };
            name_kernel(&mut grid, &mut self.images, raw, self.diagnostics);
            place_pointers(&mut grid.arguments, memory);
            grids.push(grid);
        }
        grids
    }

    /// The arguments in constant bank 0, for a dump without a parameter section. Reaches to the end of the bank.
    fn bank_params(&self, grids: &Section, row: u32, params_offset: u64) -> &'d [u8] {
        let banks = self.tables.under(kind::BANKS, grids.index, row).iter();
        let rows = banks.flat_map(|table| rows::rows(table, self.elf.data(table)));
        let bank = rows.filter_map(|(_, data)| rows::bank(data)).find(|bank| bank.bank == 0);
        let Some(start) = bank.and_then(|bank| bank.address.checked_add(params_offset)) else { return &[] };
        let held = self.tables.all(kind::GLOBAL).iter().find_map(|section| {
            let at = usize::try_from(start.checked_sub(section.address)?).ok()?;
            self.elf.data(section).get(at..)
        });
        held.map_or(&[], |held| held.get(..ARGUMENT_BYTES).unwrap_or(held))
    }

    fn fault(&mut self, raw: &RawFault, grids: &[Grid]) -> Fault {
        let grid = raw.cta.and_then(|cta| {
            grids.iter().position(|grid| grid.id == cta.grid_id && grid.device == raw.device)
        });
        let mut fault = Fault {
            exception: raw.exception.unwrap_or(0),
            exception_name: raw.exception.and_then(exceptions::name),
            pc: raw.pc,
            source: raw.source,
            device: raw.device,
            sm: raw.sm,
            warp: raw.warp,
            grid,
            block: raw.cta.map(|cta| cta.block),
            ..Fault::nowhere()
        };
        locate(&mut fault, &mut self.images, self.diagnostics);
        fault
    }

    /// Adds lanes, registers and what they tell to the first faults.
    fn add_lanes(&mut self, raw: &[RawFault], summary: &mut DumpSummary) {
        let tables: Vec<u32> = raw.iter().filter_map(|raw| raw.lane_table.map(|table| table.index)).collect();
        let registers = sections::registers_of(self.elf, &tables);
        for (raw, fault) in raw.iter().zip(&mut summary.faults) {
            let table = raw.lane_table.map_or(0, |table| table.index);
            for (row, lane) in raw.lanes(self.elf) {
                let words = registers.get(&(table, row)).map_or_else(Vec::new, |s| self.words(s));
                fault.lanes.push(Lane {
                    lane: lane.lane,
                    thread: lane.thread,
                    pc: lane.pc,
                    exception: lane.exception,
                    registers: words,
                });
            }
            fault.thread = fault.lanes.first().map(|lane| lane.thread);
            let uniform = raw
                .warp_row
                .and_then(|(table, row)| self.tables.under(kind::UNIFORM_REGISTERS, table, row).first());
            fault.uniform_registers = uniform.map_or_else(Vec::new, |section| self.words(section));
            fault.odd_registers = lanes::odd_registers(&fault.lanes);
            let grid = fault.grid.and_then(|grid| summary.grids.get(grid));
            fault.displaced = grid.map_or_else(Vec::new, |grid| displaced_in(fault, grid));
        }
    }

    /// A section's 32-bit values, at most as many as a lane can have registers.
    fn words(&self, section: &Section) -> Vec<u32> {
        let step = usize::try_from(section.entry_size).unwrap_or(4).max(4);
        let rows = self.elf.data(section).chunks_exact(step).take(256);
        rows.filter_map(|row| crate::image::elf::u32_at(row, 0)).collect()
    }
}

impl Fault {
    fn nowhere() -> Self {
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

/// Names the kernel at the grid's entry and cuts its arguments.
fn name_kernel(grid: &mut Grid, images: &mut Images<'_>, raw: &[u8], diagnostics: &mut Vec<String>) {
    let mut raw = raw.get(..ARGUMENT_BYTES).unwrap_or(raw);
    grid.image = images.find(grid.entry, diagnostics);
    if let Some(cubin) = grid.image.and_then(|number| images.get(number))
        && let Some(function) = cubin.function_at(grid.entry)
    {
        grid.kernel = Some(KernelName::of(&function.symbol));
        if let Some(kernel) = cubin.kernel(&function.symbol) {
            raw = kernel.param_bytes.and_then(|bytes| raw.get(..usize::from(bytes))).unwrap_or(raw);
            grid.arguments = arguments::decode(raw, kernel, cubin.ptx.as_deref());
        }
    }
    grid.argument_bytes = raw.to_vec();
}

fn place_pointers(arguments: &mut [Argument], memory: &[Memory]) {
    for argument in arguments {
        let holds = |pointer: u64| {
            memory
                .iter()
                .position(|range| pointer.checked_sub(range.address).is_some_and(|at| at < range.size_bytes))
        };
        argument.memory = argument.pointer().and_then(holds);
    }
}

/// Finds function and source line of a fault's program counter.
fn locate(fault: &mut Fault, images: &mut Images<'_>, diagnostics: &mut Vec<String>) {
    let Some(pc) = fault.pc else { return };
    let Some(cubin) = images.find(pc, diagnostics).and_then(|number| images.get(number)) else { return };
    let Some(function) = cubin.function_at(pc) else { return };
    fault.function = Some(KernelName::of(&function.symbol));
    fault.offset = pc.checked_sub(function.address);
    let mut chain = cubin.inline_chain(pc).into_iter().map(|line| Place {
        file: line.file,
        line: Some(line.line),
        function: line.inlined.as_deref().map(symbol::name),
    });
    fault.place = chain.next();
    fault.inlined_at = chain.collect();
}

/// The fault-address test on the registers of the first lane and of the odd ones.
fn displaced_in(fault: &Fault, grid: &Grid) -> Vec<Displaced> {
    let odd = |lane: &&Lane| fault.odd_registers.iter().any(|odd| odd.lane == lane.lane);
    let lanes = fault.lanes.iter().take(1).chain(fault.lanes.iter().skip(1).filter(odd));
    let mut addresses: Vec<_> = lanes.flat_map(|lane| lanes::addresses(&lane.registers, "R")).collect();
    addresses.extend(lanes::addresses(&fault.uniform_registers, "UR"));
    addresses.dedup();
    let pointers: Vec<_> =
        grid.arguments.iter().filter_map(|argument| Some((argument.ordinal, argument.pointer()?))).collect();
    let scalar = |argument: &Argument| {
        let value = argument.integer().filter(|_| argument.kind != ArgumentKind::Pointer)?;
        Some((argument.ordinal, u64::try_from(value).ok()?))
    };
    let scalars: Vec<_> = grid.arguments.iter().filter_map(scalar).collect();
    displaced(&pointers, &addresses, &scalars, fault.block)
}

fn images_read(images: Images<'_>) -> Vec<Image> {
    let image = |(number, cubin): (usize, crate::image::cubin::Cubin)| Image {
        number,
        architecture: cubin.architecture,
        kernels: cubin.kernels.into_iter().map(|kernel| kernel.symbol).collect(),
        ptx: cubin.ptx,
    };
    images.into_read().map(image).collect()
}
