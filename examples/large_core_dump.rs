//! A core dump as large as a full GPU leaves behind, grown from the recorded one of a single block.
//!
//! In: a path to write, and how many blocks (1,000 by default: 806,148 sections and some 120 MB). Out: the dump, in which every
//! multiprocessor stopped with the recorded exception and holds its share of the blocks, each with its warps, lanes, registers
//! and names. For measuring, see docs/performance.md: `cargo run --release --example large_core_dump -- /tmp/large.nvcudmp`.

use std::io::{self, Read};

use warpfault::image::elf::{Elf, Section};

const DUMP: &[u8] = include_bytes!("../samples/coredump-gather/core.nvcudmp.gz");

/// Types of the sections that hang on a block, and of the tables that hold blocks and multiprocessors.
const BLOCKS: u32 = 0x8000_000d;
const WARPS: u32 = 0x8000_000e;
const MULTIPROCESSORS: u32 = 0x8000_000b;

struct Grown {
    data: Vec<u8>,
    headers: Vec<u8>,
    names: Vec<u8>,
    count: u32,
}

impl Grown {
    fn offset(&mut self, bytes: &[u8]) -> u64 {
        let at = self.data.len() as u64;
        self.data.extend_from_slice(bytes);
        at
    }

    fn name(&mut self, name: &str) -> u32 {
        let at = self.names.len() as u32;
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        at
    }

    /// Adds a section with its header as it was, but for where it stands; its index.
    fn add(&mut self, name: &str, of: &Section, at: u64, size: u64, link: u32, info: u32) -> u32 {
        let name = self.name(name);
        let (kind, index) = (of.kind, self.count);
        for word in [name, kind] {
            self.headers.extend(word.to_le_bytes());
        }
        for word in [of.flags, of.address, at, size] {
            self.headers.extend(word.to_le_bytes());
        }
        for word in [link, info] {
            self.headers.extend(word.to_le_bytes());
        }
        for word in [0, of.entry_size] {
            self.headers.extend(word.to_le_bytes());
        }
        self.count += 1;
        index
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or_else(|| io::Error::other("which file to write?"))?;
    let blocks = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1000_u32);
    std::fs::write(path, grown(blocks)?)
}

fn grown(blocks: u32) -> io::Result<Vec<u8>> {
    let mut recorded = Vec::new();
    flate2::read::GzDecoder::new(DUMP).read_to_end(&mut recorded)?;
    let elf = Elf::parse(&recorded).map_err(io::Error::other)?;
    let sections: Vec<Section> = elf.sections().collect();
    let missing = || io::Error::other("the recorded dump holds no block");
    let full = sections.iter().find(|s| s.kind == BLOCKS && s.size > 0).ok_or_else(missing)?;
    let first = sections.iter().find(|s| s.kind == WARPS).ok_or_else(missing)?.index as usize;
    let tail = sections.len().checked_sub(3).ok_or_else(missing)?;
    let (head, below) = (sections.get(..first).unwrap_or(&[]), sections.get(first..tail).unwrap_or(&[]));

    let mut grown = Grown { data: vec![0; 64], headers: Vec::new(), names: vec![0], count: 0 };
    let mut tables = Vec::new();
    for section in head {
        let mut bytes = elf.data(section).to_vec();
        let processors = head.iter().filter(|s| s.kind == BLOCKS).count() as u32;
        if section.kind == MULTIPROCESSORS {
            stop_all(&mut bytes, section.entry_size as usize, full.info as usize);
        }
        if section.kind == BLOCKS {
            let own = (0..blocks).filter(|block| block % processors == section.info);
            let row = elf.data(full);
            bytes = own.clone().flat_map(|block| numbered(row, block)).collect();
            tables.push((section.index, section.info, own.count() as u32));
        }
        let at = grown.offset(&bytes);
        grown.add(elf.name(section), section, at, bytes.len() as u64, section.link, section.info);
    }
    for (table, processor, count) in tables {
        for row in 0..count {
            let shift = grown.count.wrapping_sub(first as u32);
            for section in below {
                let at = grown.offset(elf.data(section));
                let name = elf
                    .name(section)
                    .replace(&format!("sm{}.cta0", full.info), &format!("sm{processor}.cta{row}"));
                let (link, info) = match section.kind {
                    WARPS => (table, row),
                    _ => (section.link.wrapping_add(shift), section.info),
                };
                grown.add(&name, section, at, section.size, link, info);
            }
        }
    }
    for section in sections.get(tail..).unwrap_or(&[]) {
        let name = elf.name(section).to_string();
        let is_names = name == ".shstrtab";
        let bytes = if is_names { Vec::new() } else { elf.data(section).to_vec() };
        let at = grown.offset(&bytes);
        grown.add(&name, section, at, bytes.len() as u64, section.link, section.info);
    }
    Ok(put_together(grown, &recorded))
}

/// Every multiprocessor stops with the exception of the recorded one.
fn stop_all(bytes: &mut [u8], row_bytes: usize, recorded: usize) {
    let row: Vec<u8> = bytes.chunks_exact(row_bytes).nth(recorded).unwrap_or_default().to_vec();
    for other in bytes.chunks_exact_mut(row_bytes) {
        // Its own number stays.
        if let (Some(other), Some(row)) = (other.get_mut(8..), row.get(8..)) {
            other.copy_from_slice(row);
        }
    }
}

/// A block's row with another x.
fn numbered(row: &[u8], x: u32) -> Vec<u8> {
    let mut row = row.to_vec();
    if let Some(place) = row.get_mut(8..12) {
        place.copy_from_slice(&x.to_le_bytes());
    }
    row
}

/// The header, the data, the names and the section table; the counts stand in section 0.
fn put_together(mut grown: Grown, recorded: &[u8]) -> Vec<u8> {
    let names_at = grown.data.len() as u64;
    grown.data.append(&mut grown.names);
    let names_bytes = grown.data.len() as u64 - names_at;
    let table_at = grown.data.len() as u64;
    let set = |bytes: &mut Vec<u8>, at: usize, value: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    };
    let last = (grown.count as usize - 1) * 64;
    set(&mut grown.headers, last + 24, &names_at.to_le_bytes());
    set(&mut grown.headers, last + 32, &names_bytes.to_le_bytes());
    set(&mut grown.headers, 32, &u64::from(grown.count).to_le_bytes());
    set(&mut grown.headers, 40, &(grown.count - 1).to_le_bytes());
    set(&mut grown.data, 0, recorded.get(..64).unwrap_or_default());
    set(&mut grown.data, 40, &table_at.to_le_bytes());
    set(&mut grown.data, 60, &0_u16.to_le_bytes());
    set(&mut grown.data, 62, &u16::MAX.to_le_bytes());
    grown.data.append(&mut grown.headers);
    grown.data
}
