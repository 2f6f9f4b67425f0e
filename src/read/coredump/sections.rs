//! Which section of a core dump is which.
//!
//! In: the dump's section table, which can have 800,000 entries. Out: the sections of the tables that are read, by kind
//! and by parent. Registers, predicates and backtraces, one section a lane, are only counted here; those of the
//! lanes at fault are looked up later.

use std::collections::HashMap;

use crate::image::elf::{Elf, Section};

/// Section types from 0x80000000 on, as the driver numbers them.
pub(super) mod kind {
    pub const MANAGED: u32 = 0x8000_0001;
    pub const GLOBAL: u32 = 0x8000_0002;
    pub const REGISTERS: u32 = 0x8000_0005;
    pub const IMAGE: u32 = 0x8000_0006;
    pub const RELOCATED_IMAGE: u32 = 0x8000_0007;
    pub const DEVICES: u32 = 0x8000_0009;
    pub const CONTEXTS: u32 = 0x8000_000a;
    pub const SMS: u32 = 0x8000_000b;
    pub const GRIDS: u32 = 0x8000_000c;
    pub const CTAS: u32 = 0x8000_000d;
    pub const WARPS: u32 = 0x8000_000e;
    pub const LANES: u32 = 0x8000_000f;
    pub const PARAMS: u32 = 0x8000_0012;
    pub const UNIFORM_REGISTERS: u32 = 0x8000_0013;
    pub const BANKS: u32 = 0x8000_0015;
    pub const METADATA: u32 = 0x8000_0016;
    /// ELF's own type of a string table.
    pub const STRINGS: u32 = 3;
}

/// Sections of one kind that are kept: eight GPUs with all warps resident have 67,584 lane tables.
const KEPT: usize = 1 << 17;

/// The sections of a dump that are read, by kind.
#[derive(Default)]
pub(super) struct Tables {
    by_kind: HashMap<u32, Vec<Section>>,
    /// Children by kind and parent (section index, row).
    by_parent: HashMap<(u32, u32, u32), Vec<Section>>,
}

impl Tables {
    pub(super) fn of(elf: &Elf<'_>, diagnostics: &mut Vec<String>) -> Self {
        let mut tables = Self::default();
        let mut dropped = 0_u64;
        for index in 0..elf.section_count() {
            // Nine of ten sections in a large dump are registers and the like: their headers are not read whole.
            let wanted = elf.kind_and_link(index).is_some_and(|(kind, _)| is_kept(kind));
            let Some(section) = wanted.then(|| elf.section(index)).flatten() else { continue };
            let list = tables.by_kind.entry(section.kind).or_default();
            if list.len() >= KEPT {
                dropped += 1;
                continue;
            }
            list.push(section);
            if has_parent(section.kind) && section.size != 0 {
                let parent = (section.kind, section.link, section.info);
                tables.by_parent.entry(parent).or_default().push(section);
            }
        }
        if dropped != 0 {
            diagnostics.push(format!(
                "core dump: {dropped} sections past the first {KEPT} of their kind were not read"
            ));
        }
        tables
    }

    /// Sections of a kind, in file order.
    pub(super) fn all(&self, kind: u32) -> &[Section] {
        self.by_kind.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Sections of a kind that hang on row `row` of the table in section `table`.
    pub(super) fn under(&self, kind: u32, table: u32, row: u32) -> &[Section] {
        self.by_parent.get(&(kind, table, row)).map_or(&[], Vec::as_slice)
    }
}

fn is_kept(kind: u32) -> bool {
    use kind::{BANKS, CONTEXTS, CTAS, DEVICES, GLOBAL, GRIDS, IMAGE, LANES, MANAGED, METADATA, PARAMS};
    use kind::{RELOCATED_IMAGE, SMS, STRINGS, UNIFORM_REGISTERS, WARPS};
    matches!(kind, STRINGS | MANAGED | GLOBAL | IMAGE | RELOCATED_IMAGE | DEVICES | CONTEXTS | SMS | GRIDS)
        || matches!(kind, CTAS | WARPS | LANES | PARAMS | UNIFORM_REGISTERS | BANKS | METADATA)
}

fn has_parent(kind: u32) -> bool {
    matches!(
        kind,
        kind::CTAS | kind::WARPS | kind::LANES | kind::PARAMS | kind::BANKS | kind::UNIFORM_REGISTERS
    )
}

/// Register sections of the lanes in the given lane tables, by (section index of the table, row).
pub(super) fn registers_of(elf: &Elf<'_>, lane_tables: &[u32]) -> HashMap<(u32, u32), Section> {
    let mut found = HashMap::new();
    for index in 0..elf.section_count() {
        let wanted = elf
            .kind_and_link(index)
            .is_some_and(|(kind, link)| kind == kind::REGISTERS && lane_tables.contains(&link));
        if let Some(section) = wanted.then(|| elf.section(index)).flatten()
            && found.len() < KEPT
        {
            found.entry((section.link, section.info)).or_insert(section);
        }
    }
    found
}
