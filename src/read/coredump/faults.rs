//! Where the exceptions stand: from SM down to lane.
//!
//! In: the tables of SMs, CTAs, warps and lanes. Out: one raw fault a faulting warp, in order of trust. A driver's SM
//! table names the faulting instruction itself; a warp's row does so less surely; a lane's program counter can stand
//! well past the faulting load. Kernel names and source lines are added by the caller.

use crate::image::elf::{Elf, Section};

use super::rows::{self, CtaRow, LaneRow, SmRow};
use super::sections::{Tables, kind};

/// Faulting warps that are kept before they are sorted: all that eight GPUs can hold.
const FAULT_LIMIT: usize = 1 << 17;

/// Rows of SMs, CTAs, warps and lanes that are read: some three times what eight GPUs have.
const ROW_BUDGET: u64 = 1 << 23;

/// Where a program counter comes from, most trusted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PcSource {
    /// The SM's `errorPC`.
    Sm,
    /// The warp's `errorPC`.
    Warp,
    /// The lane's program counter: the fault lies at it or before it.
    Lane,
    /// Nothing.
    None,
}

/// A faulting warp, or an SM with an exception and no warp to show for it.
pub(super) struct RawFault {
    pub source: PcSource,
    pub pc: Option<u64>,
    pub exception: Option<u32>,
    pub device: u32,
    pub sm: u32,
    pub cta: Option<CtaRow>,
    pub warp: Option<u32>,
    /// The warp's lane table.
    pub lane_table: Option<Section>,
    /// Section index of the warp table and row in it.
    pub warp_row: Option<(u32, u32)>,
    valid_lanes: u32,
    active_lanes: u32,
}

impl RawFault {
    /// Lanes of the warp with their rows' numbers: those that raised an exception, else those that were active.
    pub(super) fn lanes(&self, elf: &Elf<'_>) -> Vec<(u32, LaneRow)> {
        let Some(table) = self.lane_table else { return Vec::new() };
        let all = lanes(elf, &table, self.valid_lanes);
        let mut kept: Vec<_> = all.iter().filter(|(_, lane)| lane.exception != 0).copied().collect();
        if kept.is_empty() {
            kept = all.into_iter().filter(|(_, lane)| in_mask(self.active_lanes, lane.lane)).collect();
        }
        kept
    }
}

/// How many of each the tables list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// SMs.
    pub sms: u64,
    /// Thread blocks that were resident.
    pub blocks: u64,
    /// Warps that were resident.
    pub warps: u64,
    /// Lanes that held a thread.
    pub lanes: u64,
}

/// Every fault, most trusted first, and the counts of what was resident.
pub(super) fn find(elf: &Elf<'_>, tables: &Tables, diagnostics: &mut Vec<String>) -> (Vec<RawFault>, Counts) {
    let mut walk = Walk { elf, tables, faults: Vec::new(), counts: Counts::default(), budget: ROW_BUDGET };
    'tables: for table in tables.all(kind::SMS) {
        for (row, data) in rows::rows(table, elf.data(table)) {
            if !walk.spend(1) {
                break 'tables;
            }
            if let Some(sm) = rows::sm(data) {
                walk.counts.sms += 1;
                walk.sm(table, row, sm);
            }
        }
    }
    let Walk { mut faults, counts, budget, .. } = walk;
    if budget == 0 {
        diagnostics.push(format!(
            "core dump: only the first {ROW_BUDGET} rows of SMs, CTAs, warps and lanes were read"
        ));
    }
    if faults.len() >= FAULT_LIMIT {
        diagnostics.push(format!("core dump: only the first {FAULT_LIMIT} faulting warps were read"));
    }
    faults.sort_by_key(|fault| fault.source);
    (faults, counts)
}

struct Walk<'a, 'd> {
    elf: &'a Elf<'d>,
    tables: &'a Tables,
    faults: Vec<RawFault>,
    counts: Counts,
    budget: u64,
}

impl Walk<'_, '_> {
    /// Takes rows off the budget; false once it is spent.
    fn spend(&mut self, rows: u64) -> bool {
        self.budget = self.budget.saturating_sub(rows);
        self.budget != 0
    }

    fn sm(&mut self, table: &Section, row: u32, sm: SmRow) {
        let first = self.faults.len();
        for cta_table in self.tables.under(kind::CTAS, table.index, row) {
            for (cta_row, data) in rows::rows(cta_table, self.elf.data(cta_table)) {
                if !self.spend(1) {
                    return;
                }
                let cta = rows::cta(data);
                self.counts.blocks += u64::from(cta.is_some());
                for warp_table in self.tables.under(kind::WARPS, cta_table.index, cta_row) {
                    self.warps(table.info, sm, cta, warp_table);
                }
            }
        }
        let own = self.faults.get_mut(first..).unwrap_or_default();
        settle(own, sm);
        if own.is_empty() && (sm.exception.is_some() || sm.error_pc.is_some()) {
            let source = if sm.error_pc.is_some() { PcSource::Sm } else { PcSource::None };
            self.faults.push(RawFault {
                source,
                pc: sm.error_pc,
                exception: sm.exception,
                device: table.info,
                sm: sm.id,
                cta: None,
                warp: None,
                lane_table: None,
                warp_row: None,
                valid_lanes: 0,
                active_lanes: 0,
            });
        }
    }

    fn warps(&mut self, device: u32, sm: SmRow, cta: Option<CtaRow>, table: &Section) {
        for (row, data) in rows::rows(table, self.elf.data(table)) {
            let Some(warp) = rows::warp(data) else { continue };
            if !self.spend(33) {
                return;
            }
            self.counts.warps += 1;
            let lane_table = self.tables.under(kind::LANES, table.index, row).first();
            let lanes = lane_table.map_or_else(Vec::new, |table| lanes(self.elf, table, warp.valid_lanes));
            self.counts.lanes += lanes.len() as u64;
            let exception = lanes.iter().map(|(_, lane)| lane.exception).find(|number| *number != 0);
            if (warp.error_pc.is_none() && exception.is_none()) || self.faults.len() >= FAULT_LIMIT {
                continue;
            }
            let lane_pc = lanes.iter().find(|(_, lane)| lane.exception != 0).map(|(_, lane)| lane.pc);
            let source = match (warp.error_pc, lane_pc) {
                (Some(_), _) => PcSource::Warp,
                (None, Some(_)) => PcSource::Lane,
                (None, None) => PcSource::None,
            };
            self.faults.push(RawFault {
                source,
                pc: warp.error_pc.or(lane_pc),
                exception,
                device,
                sm: sm.id,
                cta,
                warp: Some(warp.id),
                lane_table: lane_table.copied(),
                warp_row: Some((table.index, row)),
                valid_lanes: warp.valid_lanes,
                active_lanes: warp.active_lanes,
            });
        }
    }
}

fn lanes(elf: &Elf<'_>, table: &Section, valid: u32) -> Vec<(u32, LaneRow)> {
    let rows = rows::rows(table, elf.data(table)).take(32);
    rows.filter_map(|(row, data)| Some((row, rows::lane(data)?)))
        .filter(|(_, lane)| in_mask(valid, lane.lane))
        .collect()
}

fn in_mask(mask: u32, lane: u32) -> bool {
    mask.checked_shr(lane).is_some_and(|bits| bits & 1 != 0)
}

/// Gives the SM's own word to the warps that it can be about: those at the same instruction, or all where no warp
/// names one.
fn settle(faults: &mut [RawFault], sm: SmRow) {
    let none_by_warp = faults.iter().all(|fault| fault.source != PcSource::Warp);
    for fault in faults {
        fault.exception = fault.exception.or(sm.exception);
        if sm.error_pc.is_some() && (none_by_warp || fault.pc == sm.error_pc) {
            (fault.source, fault.pc) = (PcSource::Sm, sm.error_pc);
        }
    }
}
