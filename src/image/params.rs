//! `.nv.info.<kernel>`: a kernel's parameter table and launch bounds.
//!
//! In: the section's bytes. Out: ordinal, offset and size of each parameter, and what the kernel demands of a launch.
//! It leaves alone attributes that concern the machine code.
//!
//! A record is a format byte, an attribute byte and two bytes: a value, or (format 4) the length of the bytes that
//! follow. `04 17 0c00 00000000 0300 1800 00f01100` says: parameter 3 at offset 24, 4 bytes.

use std::collections::HashMap;

use super::elf::{u16_at, u32_at};

/// The format whose two bytes are a length.
const SIZED: u8 = 4;

/// Parameters of one kernel that are kept.
const PARAM_LIMIT: usize = 1_024;

/// Bytes of one kernel's section that are read.
const SECTION_LIMIT_BYTES: usize = 1 << 17;

/// Attribute numbers, as they occur in the sections of CUDA 11 to 13.
mod attribute {
    pub const MAX_THREADS: u8 = 0x05;
    pub const PARAM_BANK: u8 = 0x0a;
    pub const REQUIRED_THREADS: u8 = 0x10;
    pub const PARAM: u8 = 0x17;
    pub const PARAM_BYTES: u8 = 0x19;
    pub const REGISTERS: u8 = 0x2f;
}

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Param {
    /// Position in the parameter list, from 0.
    pub ordinal: u16,
    /// Offset in bytes from the first parameter.
    pub offset: u16,
    /// Size in bytes.
    pub size: u16,
}

/// What a kernel's section says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// Parameters by ordinal.
    pub params: Vec<Param>,
    /// Bytes of all parameters, padding included.
    pub param_bytes: Option<u16>,
    /// Where they start in constant bank 0, in bytes.
    pub bank_offset: Option<u16>,
    /// Block dimensions that the kernel was compiled for (`.reqntid`).
    pub required_block: Option<[u32; 3]>,
    /// Largest block dimensions (`.maxntid`).
    pub max_block: Option<[u32; 3]>,
}

/// Reads the records of a kernel's section; a cut record ends it with a diagnostic.
#[must_use]
pub fn parse(section: &[u8], diagnostics: &mut Vec<String>) -> KernelInfo {
    let mut info = KernelInfo::default();
    for record in records(section.get(..SECTION_LIMIT_BYTES).unwrap_or(section)) {
        match record {
            Record::Value { code: attribute::PARAM_BYTES, value } => info.param_bytes = Some(value),
            Record::Value { .. } => {}
            Record::Sized { code, body } => take(code, body, &mut info),
            Record::Cut { code } => diagnostics.push(format!("parameter table: record {code:#04x} is cut")),
        }
    }
    info.params.sort_unstable();
    info.params.dedup();
    info
}

/// Registers a thread, by symbol index: what `.nv.info` (without a kernel's name) says.
#[must_use]
pub fn register_counts(section: &[u8]) -> HashMap<u32, u32> {
    let count = |record| match record {
        Record::Sized { code: attribute::REGISTERS, body } => Some((u32_at(body, 0)?, u32_at(body, 4)?)),
        _ => None,
    };
    records(section).filter_map(count).collect()
}

enum Record<'a> {
    Value { code: u8, value: u16 },
    Sized { code: u8, body: &'a [u8] },
    Cut { code: u8 },
}

fn records(section: &[u8]) -> impl Iterator<Item = Record<'_>> {
    let mut rest = section;
    std::iter::from_fn(move || {
        let ([format, code, low, high], tail) = rest.split_first_chunk::<4>()?;
        let (code, value) = (*code, u16::from_le_bytes([*low, *high]));
        if *format != SIZED {
            rest = tail;
            return Some(Record::Value { code, value });
        }
        let Some((body, tail)) = tail.split_at_checked(usize::from(value)) else {
            rest = &[];
            return Some(Record::Cut { code });
        };
        rest = tail;
        Some(Record::Sized { code, body })
    })
}

fn take(code: u8, body: &[u8], info: &mut KernelInfo) {
    match code {
        attribute::PARAM if info.params.len() < PARAM_LIMIT => info.params.extend(param(body)),
        attribute::PARAM_BANK => info.bank_offset = u16_at(body, 4),
        attribute::REQUIRED_THREADS => info.required_block = dims(body),
        attribute::MAX_THREADS => info.max_block = dims(body),
        _ => {}
    }
}

/// Index (u32), ordinal (u16), offset (u16), then a word whose upper 14 bits are the size.
fn param(body: &[u8]) -> Option<Param> {
    let size = (u32_at(body, 8)? >> 18) as u16;
    Some(Param { ordinal: u16_at(body, 4)?, offset: u16_at(body, 6)?, size })
}

fn dims(body: &[u8]) -> Option<[u32; 3]> {
    Some([u32_at(body, 0)?, u32_at(body, 4)?, u32_at(body, 8)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.nv.info._Z6gatherPKfPKiPfi` of a dump, whole.
    const GATHER: &str = "0437040082000000\
        04170c000000000003001800 00f01100 04170c000000000002001000 00f02100\
        04170c000000000001000800 00f02100 04170c000000000000000000 00f02100\
        03500000 031bff00 035f0101 041c080070000000 20010000 03191c00 040a08003b00000010021c00 0436040008000000";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn three_pointers_and_an_int() {
        let mut diagnostics = Vec::new();
        let info = parse(&bytes(GATHER), &mut diagnostics);
        let at = |ordinal, offset, size| Param { ordinal, offset, size };
        assert_eq!(info.params, [at(0, 0, 8), at(1, 8, 8), at(2, 16, 8), at(3, 24, 4)]);
        assert_eq!((info.param_bytes, info.bank_offset), (Some(28), Some(0x210)));
        assert_eq!(info.required_block, None);
        assert!(diagnostics.is_empty());
    }

    #[test]
    fn a_required_block_is_read() {
        let info = parse(&bytes("04100c00 80000000 01000000 01000000 03193000"), &mut Vec::new());
        assert_eq!((info.required_block, info.param_bytes), (Some([128, 1, 1]), Some(48)));
    }

    #[test]
    fn a_cut_table_keeps_what_came_before() {
        let whole = bytes(GATHER);
        for cut in 0..whole.len() {
            let mut diagnostics = Vec::new();
            let info = parse(&whole[..cut], &mut diagnostics);
            assert_eq!(
                info.params.len(),
                [24, 40, 56, 72].iter().filter(|end| cut >= **end).count(),
                "cut at {cut}"
            );
        }
    }
}
