//! A dump with its section table, put together into a [`DumpSummary`].
//!
//! In: the ELF file. Out: the summary, with a diagnostic for each part that could not be read. It leaves alone dumps that
//! were cut before their section table (`carve`).

use crate::image::cubin::Cubin;
use crate::image::elf::{Elf, Section, u32_at};
use crate::image::symbol;
use crate::read::event::Place;

use super::arguments::{self, Argument, ArgumentKind};
use super::displacement::{Displaced, displaced};
use super::faults::{self, RawFault};
use super::images::Images;
use super::lanes::{self, Lane};
use super::rows;
use super::sections::{self, Tables, kind};
use super::summary::{Context, Device, DumpSummary, Fault, Grid, Image, KernelName, Memory};
use super::{FAULTS_KEPT, exceptions};

/// Faults whose lanes and registers are kept.
const FAULTS_WITH_LANES: usize = 64;

/// Grids, devices and contexts that are kept of each; a GPU runs at most 128 grids at a time.
const ROWS_KEPT: usize = 1 << 10;

/// Memory ranges that are kept.
const RANGES_KEPT: usize = 1 << 14;

/// Argument bytes that are kept of a launch; CUDA allows 32,764.
const ARGUMENT_BYTES: usize = 32 << 10;

/// Registers that a lane can have at most.
const REGISTER_LIMIT: usize = 256;

/// One pass over a dump with its section table.
pub(super) struct Reader<'a, 'd> {
    elf: &'a Elf<'d>,
    tables: Tables,
    images: Images<'d>,
    diagnostics: &'a mut Vec<String>,
}

impl<'a, 'd> Reader<'a, 'd> {
    pub(super) fn new(elf: &'a Elf<'d>, diagnostics: &'a mut Vec<String>) -> Self {
        let tables = Tables::of(elf, diagnostics);
        let relocated = tables.all(kind::RELOCATED_IMAGE).iter().chain(tables.all(kind::IMAGE));
        let images = Images::of(relocated.map(|section| elf.data(section)), diagnostics);
        Self { elf, tables, images, diagnostics }
    }

    pub(super) fn summary(mut self) -> DumpSummary {
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
        self.rows_of(kind::DEVICES).take(ROWS_KEPT).filter_map(|(_, _, data)| device(data)).collect()
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
        self.rows_of(kind::CONTEXTS).take(ROWS_KEPT).filter_map(|(_, _, data)| context(data)).collect()
    }

    fn memory(&self) -> Vec<Memory> {
        let ranges = |wanted, managed| {
            self.tables.all(wanted).iter().map(move |section| Memory {
                address: section.address,
                size_bytes: section.size,
                managed,
            })
        };
        ranges(kind::GLOBAL, false).chain(ranges(kind::MANAGED, true)).take(RANGES_KEPT).collect()
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
            .take(ROWS_KEPT)
            .filter_map(|(table, row, data)| Some((*table, row, rows::grid(data)?)))
            .collect();
        let mut grids = Vec::new();
        for (table, number, row) in rows {
            let mut grid = Grid::of(&row, table.info);
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
        let rows = banks.flat_map(|table| rows::rows(table, self.elf.data(table))).take(ROWS_KEPT);
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
        let rows = self.elf.data(section).chunks_exact(step).take(REGISTER_LIMIT);
        rows.filter_map(|row| u32_at(row, 0)).collect()
    }
}

/// Names the kernel at the grid's entry and cuts its arguments.
pub(super) fn name_kernel(
    grid: &mut Grid,
    images: &mut Images<'_>,
    raw: &[u8],
    diagnostics: &mut Vec<String>,
) {
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
pub(super) fn locate(fault: &mut Fault, images: &mut Images<'_>, diagnostics: &mut Vec<String>) {
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

pub(super) fn images_read(images: Images<'_>) -> Vec<Image> {
    let image = |(number, cubin): (usize, Cubin)| Image {
        number,
        architecture: cubin.architecture,
        kernels: cubin.kernels.into_iter().map(|kernel| kernel.symbol).collect(),
        ptx: cubin.ptx,
    };
    images.into_read().map(image).collect()
}
