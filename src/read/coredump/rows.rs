//! Rows of a core dump's tables.
//!
//! In: the bytes of one row, as long as the table's own entry size says. Out: its fields. Tables grow with the driver,
//! so fields that a shorter row lacks are `None` and bytes past the known fields are passed over.

use crate::image::elf::{Section, u32_at, u64_at};
use crate::read::event::Dim3;

/// Rows of one table that are read.
const ROW_LIMIT: usize = 1 << 16;

/// Reads a row's fields in order.
pub(super) struct Fields<'a> {
    row: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn of(row: &'a [u8]) -> Self {
        Self { row, at: 0 }
    }

    fn u32(&mut self) -> Option<u32> {
        let value = u32_at(self.row, self.at)?;
        self.at += 4;
        Some(value)
    }

    fn u64(&mut self) -> Option<u64> {
        let value = u64_at(self.row, self.at)?;
        self.at += 8;
        Some(value)
    }

    fn dim3(&mut self) -> Option<Dim3> {
        Some([self.u32()?.into(), self.u32()?.into(), self.u32()?.into()])
    }
}

/// Rows of a table with their numbers, stepped by the entry size that the section states. None where that can't hold
/// even an SM's id and padding, the shortest row there is.
pub(super) fn rows<'a>(section: &Section, data: &'a [u8]) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
    const LEAST: usize = 8;
    let step = usize::try_from(section.entry_size).unwrap_or(0);
    let rows = if step < LEAST { [].chunks_exact(LEAST) } else { data.chunks_exact(step) };
    (0_u32..).zip(rows.take(ROW_LIMIT))
}

/// Row of `.cudbg.devtbl`.
pub(super) struct DeviceRow {
    pub name: u64,
    pub kind: u64,
    pub sm_kind: u64,
    pub pci_bus: u32,
    pub pci_device: u32,
    pub sms: u32,
    pub warps_per_sm: u32,
    pub lanes_per_warp: u32,
    pub registers_per_lane: u32,
    pub sm_major: u32,
    pub sm_minor: u32,
}

pub(super) fn device(row: &[u8]) -> Option<DeviceRow> {
    let mut fields = Fields::of(row);
    let (name, kind, sm_kind) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let _id = fields.u32()?;
    let (pci_bus, pci_device, sms) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (warps_per_sm, lanes_per_warp, registers_per_lane) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let _predicates = fields.u32()?;
    let (sm_major, sm_minor) = (fields.u32()?, fields.u32()?);
    Some(DeviceRow {
        name,
        kind,
        sm_kind,
        pci_bus,
        pci_device,
        sms,
        warps_per_sm,
        lanes_per_warp,
        registers_per_lane,
        sm_major,
        sm_minor,
    })
}

/// Row of `.cudbg.ctxtbl`.
pub(super) struct ContextRow {
    pub id: u64,
    pub shared_window: u64,
    pub local_window: u64,
    pub device: u32,
    pub host_thread: u32,
}

pub(super) fn context(row: &[u8]) -> Option<ContextRow> {
    let mut fields = Fields::of(row);
    let (id, shared_window, local_window, _global_window) =
        (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
    Some(ContextRow { id, shared_window, local_window, device: fields.u32()?, host_thread: fields.u32()? })
}

/// Row of `.cudbg.gridtbl`.
pub(super) struct GridRow {
    pub id: u64,
    pub context: u64,
    pub entry: u64,
    pub params_offset: u64,
    pub registers: u32,
    pub grid: Dim3,
    pub block: Dim3,
    pub launch_blocking: bool,
    pub host_thread: u32,
    pub cluster: Option<Dim3>,
}

pub(super) fn grid(row: &[u8]) -> Option<GridRow> {
    let mut fields = Fields::of(row);
    let (id, context) = (fields.u64()?, fields.u64()?);
    let (_function, entry, _module, _parent) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
    let params_offset = fields.u64()?;
    let (_kernel_kind, _origin, _status) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let registers = fields.u32()?;
    let (grid, block) = (fields.dim3()?, fields.dim3()?);
    let (launch_blocking, host_thread) = (fields.u32()? != 0, fields.u32()?);
    let cluster = fields.dim3().filter(|cluster| *cluster != [0, 0, 0]);
    Some(GridRow {
        id,
        context,
        entry,
        params_offset,
        registers,
        grid,
        block,
        launch_blocking,
        host_thread,
        cluster,
    })
}

/// Row of `.cudbg.smtbl`. Drivers before 555 write no exception here.
#[derive(Clone, Copy, Default)]
pub(super) struct SmRow {
    pub id: u32,
    pub exception: Option<u32>,
    pub error_pc: Option<u64>,
}

pub(super) fn sm(row: &[u8]) -> Option<SmRow> {
    let mut fields = Fields::of(row);
    let id = fields.u32()?;
    let _pad = fields.u32();
    let exception = fields.u32();
    let valid = fields.u32().is_some_and(|valid| valid != 0);
    let error_pc = fields.u64().filter(|_| valid);
    Some(SmRow { id, exception: exception.filter(|number| *number != 0), error_pc })
}

/// Row of `.cudbg.ctatbl`.
#[derive(Clone, Copy)]
pub(super) struct CtaRow {
    pub grid_id: u64,
    pub block: Dim3,
}

pub(super) fn cta(row: &[u8]) -> Option<CtaRow> {
    let mut fields = Fields::of(row);
    Some(CtaRow { grid_id: fields.u64()?, block: fields.dim3()? })
}

/// Row of `.cudbg.wptbl`.
#[derive(Clone, Copy)]
pub(super) struct WarpRow {
    pub id: u32,
    pub valid_lanes: u32,
    pub active_lanes: u32,
    pub error_pc: Option<u64>,
}

pub(super) fn warp(row: &[u8]) -> Option<WarpRow> {
    let mut fields = Fields::of(row);
    let error_pc = fields.u64()?;
    let (id, valid_lanes, active_lanes) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let _broken = fields.u32()?;
    let valid = fields.u32()? != 0;
    Some(WarpRow { id, valid_lanes, active_lanes, error_pc: valid.then_some(error_pc) })
}

/// Row of `.cudbg.lntbl`.
#[derive(Clone, Copy)]
pub(super) struct LaneRow {
    pub pc: u64,
    pub lane: u32,
    pub thread: Dim3,
    pub exception: u32,
}

pub(super) fn lane(row: &[u8]) -> Option<LaneRow> {
    let mut fields = Fields::of(row);
    let (pc, _offset) = (fields.u64()?, fields.u64()?);
    Some(LaneRow { pc, lane: fields.u32()?, thread: fields.dim3()?, exception: fields.u32()? })
}

/// Row of `.cudbg.cbankstbl`: where a constant bank stands in GPU memory.
pub(super) struct BankRow {
    pub address: u64,
    pub bank: u32,
}

pub(super) fn bank(row: &[u8]) -> Option<BankRow> {
    let mut fields = Fields::of(row);
    let address = fields.u64()?;
    let _size = fields.u32()?;
    Some(BankRow { address, bank: fields.u32()? })
}

/// What `.cudbg.meta` says about the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// Driver version, major and minor (580, 159).
    pub driver: (u32, u32),
    /// CUDA version that the driver supports, major and minor (13, 0).
    pub cuda: (u32, u32),
    /// `CUDA_COREDUMP_GENERATION_FLAGS` as bits; see [`Metadata::skipped`].
    pub flags: u32,
    /// Seconds since 1970 at which the dump was written.
    pub timestamp: u32,
}

/// Names of the generation flags by bit.
const FLAGS: [&str; 6] = [
    "skip_nonrelocated_elf_images",
    "skip_global_memory",
    "skip_shared_memory",
    "skip_local_memory",
    "skip_abort",
    "skip_constbank_memory",
];

impl Metadata {
    /// Names of the generation flags that were set (`skip_global_memory`).
    pub fn skipped(&self) -> impl Iterator<Item = &'static str> {
        let flags = self.flags;
        (0_u32..).zip(FLAGS).filter(move |(bit, _)| flags >> bit & 1 != 0).map(|(_, name)| name)
    }
}

pub(super) fn metadata(section: &[u8]) -> Option<Metadata> {
    let mut fields = Fields::of(section);
    let _generator = fields.u64()?;
    let driver = (fields.u32()?, fields.u32()?);
    let cuda = (fields.u32()?, fields.u32()?);
    Some(Metadata { driver, cuda, flags: fields.u32()?, timestamp: fields.u32()? })
}
