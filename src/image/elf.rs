//! A lean walk over the sections of a 64-bit little-endian ELF file.
//!
//! In: bytes that may be cut or lie about sizes. Out: sections one at a time, their bytes clipped to what is there.
//! It leaves alone program headers (core dumps have none) and what any section means.
//!
//! The `object` crate is not used here: it refuses a file whose section table is cut or stands at an odd offset, and
//! a cut dump must still give what it holds. A dump of 800,000 sections is walked in place, nothing is allocated.

/// Bytes of an ELF64 header.
pub const HEADER_BYTES: usize = 64;

/// Bytes of an ELF64 section header: the least step that a section table can have.
pub const SECTION_HEADER_BYTES: u64 = 64;

/// `e_machine` of NVIDIA images.
pub const MACHINE_CUDA: u16 = 190;

/// `sh_type` of a symbol table.
pub const SYMBOL_TABLE: u32 = 2;

/// `sh_type` of relocations with addends.
pub const RELOCATIONS: u32 = 4;

/// `sh_type` of a section without bytes in the file.
const NO_BITS: u32 = 8;

/// Longest name that is read: mangled names of templates reach kilobytes, a missing NUL must not cost megabytes.
const NAME_LIMIT_BYTES: usize = 16 << 10;

/// `e_shstrndx` that says that section 0's `sh_link` holds the index.
const INDEX_ELSEWHERE: u16 = 0xffff;

/// A little-endian u16 at `at`, if the bytes are there.
#[must_use]
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let raw = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(raw.try_into().ok()?))
}

/// A little-endian u32 at `at`, if the bytes are there.
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let raw = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(raw.try_into().ok()?))
}

/// A little-endian u64 at `at`, if the bytes are there.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let raw = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(raw.try_into().ok()?))
}

/// An ELF64 file's head, with its section table found.
#[derive(Debug, Clone, Copy)]
pub struct Elf<'a> {
    bytes: &'a [u8],
    /// `EI_OSABI`.
    pub os_abi: u8,
    /// `e_type`: 2 executable, 4 core.
    pub file_type: u16,
    /// `e_machine`.
    pub machine: u16,
    /// `e_flags`.
    pub flags: u32,
    table_offset: u64,
    table_step: u64,
    count: u64,
    names: u64,
}

/// One section header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Index in the section table.
    pub index: u32,
    /// Offset of the name in the table of section names.
    pub name: u32,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// `sh_addr`.
    pub address: u64,
    /// Offset of the bytes in the file.
    pub offset: u64,
    /// Claimed size in bytes.
    pub size: u64,
    /// `sh_link`.
    pub link: u32,
    /// `sh_info`.
    pub info: u32,
    /// `sh_entsize`.
    pub entry_size: u64,
}

/// A symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Name; empty where it can't be read.
    pub name: &'a str,
    /// Type: the low four bits of `st_info` (2 is a function).
    pub kind: u8,
    /// `st_other`; NVIDIA marks kernels with bit 4.
    pub other: u8,
    /// Section that it stands in.
    pub section: u16,
    /// Address, or offset in its section.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
}

/// A relocation with addend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Offset in the section that it changes.
    pub offset: u64,
    /// Index of the symbol.
    pub symbol: u32,
    /// Added to the symbol's value.
    pub addend: i64,
}

impl<'a> Elf<'a> {
    /// Reads the header, or says in words why these bytes are no 64-bit little-endian ELF file.
    ///
    /// # Errors
    /// A fixed sentence: too short, wrong magic, wrong class or byte order, no section table.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let header = bytes.get(..HEADER_BYTES).ok_or("shorter than an ELF header")?;
        if !header.starts_with(b"\x7fELF") {
            return Err("no ELF magic");
        }
        if header.get(4) != Some(&2) || header.get(5) != Some(&1) {
            return Err("not a 64-bit little-endian ELF file");
        }
        let half = |at| u16_at(header, at).unwrap_or(0);
        let table_offset = u64_at(header, 40).unwrap_or(0);
        let mut elf = Self {
            bytes,
            os_abi: header.get(7).copied().unwrap_or(0),
            file_type: half(16),
            machine: half(18),
            flags: u32_at(header, 48).unwrap_or(0),
            table_offset,
            table_step: u64::from(half(58)).max(SECTION_HEADER_BYTES),
            count: 1,
            names: u64::from(half(62)),
        };
        if table_offset == 0 {
            elf.count = 0;
            return Ok(elf);
        }
        let first = elf.section(0);
        // With 65,280 sections or more the true counts stand in section 0, which is otherwise all zero.
        elf.count = match half(60) {
            0 => first.map_or(0, |section| section.size),
            count => u64::from(count),
        };
        if half(62) == INDEX_ELSEWHERE {
            elf.names = first.map_or(0, |section| u64::from(section.link));
        }
        Ok(elf)
    }

    /// Sections that the header claims.
    #[must_use]
    pub fn claimed_sections(&self) -> u64 {
        self.count
    }

    /// Sections whose headers are really there.
    #[must_use]
    pub fn section_count(&self) -> u32 {
        let room = (self.bytes.len() as u64).saturating_sub(self.table_offset);
        let whole =
            if room < SECTION_HEADER_BYTES { 0 } else { (room - SECTION_HEADER_BYTES) / self.table_step + 1 };
        u32::try_from(self.count.min(whole)).unwrap_or(u32::MAX)
    }

    /// End of the section table as claimed: bytes that a whole file has at least. `None` where it overflows.
    #[must_use]
    pub fn table_end(&self) -> Option<u64> {
        self.table_offset.checked_add(self.count.checked_mul(self.table_step)?)
    }

    fn header_bytes(&self, index: u32) -> Option<&'a [u8]> {
        let at = self.table_offset.checked_add(u64::from(index).checked_mul(self.table_step)?)?;
        let at = usize::try_from(at).ok()?;
        self.bytes.get(at..at.checked_add(SECTION_HEADER_BYTES as usize)?)
    }

    /// Type and link of a section, without the rest: what a walk over 800,000 sections needs first.
    #[must_use]
    pub fn kind_and_link(&self, index: u32) -> Option<(u32, u32)> {
        let raw = self.header_bytes(index)?;
        Some((u32_at(raw, 4)?, u32_at(raw, 40)?))
    }

    /// A section header, `None` past the end of the table or of the file.
    #[must_use]
    pub fn section(&self, index: u32) -> Option<Section> {
        if u64::from(index) >= self.count {
            return None;
        }
        let raw = self.header_bytes(index)?;
        Some(Section {
            index,
            name: u32_at(raw, 0)?,
            kind: u32_at(raw, 4)?,
            flags: u64_at(raw, 8)?,
            address: u64_at(raw, 16)?,
            offset: u64_at(raw, 24)?,
            size: u64_at(raw, 32)?,
            link: u32_at(raw, 40)?,
            info: u32_at(raw, 44)?,
            entry_size: u64_at(raw, 56)?,
        })
    }

    /// All sections whose headers are there.
    pub fn sections(&self) -> impl Iterator<Item = Section> + use<'a> {
        let elf = *self;
        (0..elf.section_count()).map_while(move |index| elf.section(index))
    }

    /// The bytes of a section, clipped to the file.
    #[must_use]
    pub fn data(&self, section: &Section) -> &'a [u8] {
        if section.kind == NO_BITS {
            return &[];
        }
        let length = self.bytes.len() as u64;
        let start = section.offset.min(length);
        let end = section.offset.saturating_add(section.size).min(length);
        self.bytes.get(start as usize..end as usize).unwrap_or(&[])
    }

    /// True where the file ends before the section does.
    #[must_use]
    pub fn is_cut(&self, section: &Section) -> bool {
        section.kind != NO_BITS && (self.data(section).len() as u64) < section.size
    }

    /// A section's name; empty where it can't be read.
    #[must_use]
    pub fn name(&self, section: &Section) -> &'a str {
        let table = u32::try_from(self.names).ok().and_then(|index| self.section(index));
        table.map_or("", |table| self.string(&table, section.name))
    }

    /// The string at `offset` of a string table; empty where it isn't there or is no UTF-8.
    #[must_use]
    pub fn string(&self, table: &Section, offset: u32) -> &'a str {
        string_at(self.data(table), offset)
    }

    /// The first section with this name.
    #[must_use]
    pub fn section_named(&self, name: &str) -> Option<Section> {
        self.sections().find(|section| self.name(section) == name)
    }

    /// Symbols of the first symbol table, at most `limit`.
    pub fn symbols(&self, limit: usize) -> impl Iterator<Item = Symbol<'a>> + use<'a> {
        let table = self.sections().find(|section| section.kind == SYMBOL_TABLE);
        let names =
            table.and_then(|table| self.section(table.link)).map_or(&[][..], |names| self.data(&names));
        let data = table.map_or(&[][..], |table| self.data(&table));
        let step = table.map_or(24, |table| row_step(table.entry_size, 24));
        data.chunks_exact(step).take(limit).filter_map(move |row| {
            Some(Symbol {
                name: string_at(names, u32_at(row, 0)?),
                kind: row.get(4)? & 0xf,
                other: *row.get(5)?,
                section: u16_at(row, 6)?,
                value: u64_at(row, 8)?,
                size: u64_at(row, 16)?,
            })
        })
    }

    /// Relocations that `section` (of type [`RELOCATIONS`]) holds, at most `limit`.
    pub fn relocations(&self, section: &Section, limit: usize) -> impl Iterator<Item = Relocation> + use<'a> {
        let step = row_step(section.entry_size, 24);
        self.data(section).chunks_exact(step).take(limit).filter_map(|row| {
            let info = u64_at(row, 8)?;
            let addend = u64_at(row, 16)?.cast_signed();
            Some(Relocation { offset: u64_at(row, 0)?, symbol: (info >> 32) as u32, addend })
        })
    }
}

/// The step through a table of rows: its own entry size, unless that is missing or too small to hold `least` bytes.
fn row_step(entry_size: u64, least: usize) -> usize {
    usize::try_from(entry_size).unwrap_or(least).max(least)
}

fn string_at(table: &[u8], offset: u32) -> &str {
    let tail = table.get(offset as usize..).unwrap_or(&[]);
    let tail = tail.get(..NAME_LIMIT_BYTES).unwrap_or(tail);
    let end = memchr::memchr(0, tail).unwrap_or(tail.len());
    tail.get(..end).and_then(|raw| std::str::from_utf8(raw).ok()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUBIN: &[u8] = include_bytes!("../../samples/triton-coredump/scatter_rows.cubin");

    #[test]
    fn sections_symbols_and_relocations() {
        let elf = Elf::parse(CUBIN).unwrap();
        assert_eq!((elf.os_abi, elf.file_type, elf.machine, elf.flags), (0x33, 2, MACHINE_CUDA, 0x005a_0d5a));
        assert_eq!((elf.section_count(), elf.claimed_sections()), (17, 17));
        let code = elf.section_named(".text.scatter_rows").unwrap();
        assert_eq!((code.index, code.size, elf.data(&code).len()), (14, 896, 896));
        let function = elf.symbols(100).find(|symbol| symbol.kind == 2).unwrap();
        assert_eq!((function.name, function.section, function.size), ("scatter_rows", 14, 896));
        let relocations = elf.section_named(".rela.debug_line").unwrap();
        let expect = Relocation { offset: 0x46, symbol: 9, addend: 0 };
        assert_eq!(elf.relocations(&relocations, 100).collect::<Vec<_>>(), [expect]);
    }

    #[test]
    fn what_is_no_elf_file_is_refused() {
        assert_eq!(Elf::parse(&CUBIN[..63]).unwrap_err(), "shorter than an ELF header");
        assert_eq!(Elf::parse(&[0; 64]).unwrap_err(), "no ELF magic");
        let mut narrow = CUBIN.to_vec();
        narrow[4] = 1;
        assert_eq!(Elf::parse(&narrow).unwrap_err(), "not a 64-bit little-endian ELF file");
    }

    #[test]
    fn counts_and_offsets_that_lie_end_at_the_file() {
        let mut bytes = CUBIN.to_vec();
        bytes[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        let elf = Elf::parse(&bytes).unwrap();
        assert_eq!((elf.section_count(), elf.sections().count(), elf.symbols(9).count()), (0, 0, 0));

        let mut bytes = CUBIN.to_vec();
        bytes[60..62].copy_from_slice(&u16::MAX.to_le_bytes());
        let elf = Elf::parse(&bytes).unwrap();
        assert_eq!(u64::from(elf.section_count()), (CUBIN.len() as u64 - 5824) / 64);

        let huge = Section { offset: u64::MAX, size: u64::MAX, ..elf.section(1).unwrap() };
        assert_eq!((elf.data(&huge).len(), elf.is_cut(&huge)), (0, true));
    }
}
