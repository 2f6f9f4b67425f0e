//! A dump that was cut before its section table, which the driver writes last.
//!
//! In: the bytes. Out: what can be recognised without the table: the cubins, the row of a launch whose entry lies in one
//! of them, the row of an SM that stopped in one. It leaves alone what only the table could place: arguments, blocks,
//! lanes, registers.

use std::collections::HashMap;

use crate::image::elf::{Elf, MACHINE_CUDA, u32_at, u64_at};

use super::assemble::{images_read, locate, name_kernel};
use super::images::Images;
use super::{DumpSummary, Fault, Grid, PcSource, exceptions, rows};

/// Cubins that are looked for.
const IMAGE_LIMIT: usize = 1 << 12;

/// Launches and SMs that are kept.
const FOUND_LIMIT: usize = 256;

/// Bytes from a grid row's start to its entry address.
const ENTRY_IN_ROW: usize = 24;

/// Bytes from an SM row's start to its `errorPC`; before it stand the exception and the valid flag.
const PC_IN_ROW: usize = 16;

/// What the bytes give without a section table.
pub(super) fn recover(bytes: &[u8], diagnostics: &mut Vec<String>) -> DumpSummary {
    let (found, tail) = images(bytes);
    let mut images = Images::of(found.into_iter(), diagnostics);
    let mut summary = DumpSummary {
        image_count: images.len() as u64,
        architecture: images.architecture(),
        recovered: true,
        ..DumpSummary::default()
    };
    let code: Vec<(u64, u64)> = images.code().collect();
    let starts: HashMap<u64, u64> = code.iter().copied().collect();
    let Some((lowest, highest)) = bounds(&code) else { return summary };
    // The tables follow the images; before them stands memory, whose contents could mimic a row.
    for at in tail..bytes.len().saturating_sub(7) {
        let Some(value) = u64_at(bytes, at).filter(|value| (lowest..highest).contains(value)) else {
            continue;
        };
        if starts.contains_key(&value) && summary.grids.len() < FOUND_LIMIT {
            summary.grids.extend(grid(bytes, at, &mut images, diagnostics));
        }
        if within(&code, value) && summary.faults.len() < FOUND_LIMIT {
            summary.faults.extend(fault(bytes, at, value, &mut images, diagnostics));
        }
    }
    summary.fault_count = summary.faults.len() as u64;
    summary.images = images_read(images);
    diagnostics.push(format!(
        "core dump: no section table; {} images, {} launches and {} faults were found by their content",
        summary.image_count,
        summary.grids.len(),
        summary.fault_count
    ));
    summary
}

/// Cubins in the bytes, and the offset behind the last one.
fn images(bytes: &[u8]) -> (Vec<&[u8]>, usize) {
    let (mut found, mut from) = (Vec::new(), 64_usize);
    while let Some(at) = bytes.get(from..).and_then(|rest| memchr::memmem::find(rest, b"\x7fELF\x02\x01\x01"))
    {
        let start = from.saturating_add(at);
        let rest = bytes.get(start..).unwrap_or(&[]);
        let elf = Elf::parse(rest).ok().filter(|elf| elf.machine == MACHINE_CUDA && elf.file_type != 4);
        let Some(elf) = elf else {
            from = start + 4;
            continue;
        };
        // An image ends behind its section headers, program headers or last section, whichever is last.
        let size = extent(&elf, rest);
        found.push(rest.get(..size).unwrap_or(rest));
        from = start.saturating_add(size.max(64)).min(bytes.len());
        if found.len() >= IMAGE_LIMIT {
            break;
        }
    }
    (found, from)
}

fn extent(elf: &Elf<'_>, bytes: &[u8]) -> usize {
    const PROGRAM_HEADERS: usize = 32;
    let sections =
        elf.sections().filter(|s| !elf.data(s).is_empty()).map(|s| s.offset.saturating_add(s.size)).max();
    let programs = u64_at(bytes, PROGRAM_HEADERS)
        .zip(u32_at(bytes, 54))
        .map(|(offset, sizes)| offset.saturating_add(u64::from(sizes & 0xffff) * u64::from(sizes >> 16)));
    let end = sections.max(programs).max(elf.table_end()).unwrap_or(0);
    usize::try_from(end).unwrap_or(usize::MAX).min(bytes.len())
}

/// The lowest address of machine code and the one behind the highest: few words of a dump lie between them.
fn bounds(code: &[(u64, u64)]) -> Option<(u64, u64)> {
    let highest = code.iter().map(|(start, size)| start.saturating_add(*size)).max()?;
    Some((code.first()?.0, highest))
}

fn within(code: &[(u64, u64)], pc: u64) -> bool {
    let after = code.partition_point(|(start, _)| *start <= pc);
    let last = after.checked_sub(1).and_then(|index| code.get(index));
    last.is_some_and(|(start, size)| pc - start < *size)
}

/// A grid row around an entry address, if its dimensions are those of a launch.
fn grid(bytes: &[u8], at: usize, images: &mut Images<'_>, diagnostics: &mut Vec<String>) -> Option<Grid> {
    let row = rows::grid(bytes.get(at.checked_sub(ENTRY_IN_ROW)?..)?)?;
    let threads = row.block.iter().try_fold(1_u64, |all, dim| all.checked_mul(*dim))?;
    let blocks_fit = row.grid.iter().all(|dim| *dim > 0) && row.grid.iter().skip(1).all(|dim| *dim <= 65_535);
    if !(1..=1024).contains(&threads) || !blocks_fit || row.params_offset > 1 << 16 {
        return None;
    }
    let mut grid = Grid::of(&row, 0);
    name_kernel(&mut grid, images, &[], diagnostics);
    grid.arguments.clear();
    Some(grid)
}

/// An SM row around a program counter, if an exception and the valid flag stand before it.
fn fault(
    bytes: &[u8],
    at: usize,
    pc: u64,
    images: &mut Images<'_>,
    diagnostics: &mut Vec<String>,
) -> Option<Fault> {
    let row = rows::sm(bytes.get(at.checked_sub(PC_IN_ROW)?..)?)?;
    let exception = row.exception.filter(|number| exceptions::name(*number).is_some())?;
    if row.error_pc != Some(pc) || u32_at(bytes, at.checked_sub(4)?) != Some(1) {
        return None;
    }
    let mut fault = Fault {
        exception,
        exception_name: exceptions::name(exception),
        pc: Some(pc),
        source: PcSource::Sm,
        sm: row.id,
        ..Fault::nowhere()
    };
    locate(&mut fault, images, diagnostics);
    Some(fault)
}
