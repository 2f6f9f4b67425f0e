//! The DWARF line table of a cubin: address → file and line, with NVIDIA's inlined calls.
//!
//! In: `.debug_line`, `.debug_str` and the addresses that relocations put into them. Out: rows that answer which source
//! line an instruction came from. It leaves alone `.debug_info` (cubins built with line information alone have none)
//! and `.nv_debug_line_sass`, which maps to lines of the PTX, not of the source.
//!
//! gimli reads the headers and opcodes; the state machine is kept here, because gimli's own treats an address below
//! the one before it as dead code (cubins list functions in any order) and hides NVIDIA's opcode.

use std::collections::HashMap;

use gimli::{AttributeValue, DebugLineOffset, LineInstruction, LittleEndian, Reader};

/// Rows that are kept of one table: a table of a million rows covers 16 MB of machine code.
const ROW_LIMIT: usize = 1 << 20;

/// Bytes of `.debug_line` and of `.debug_str` that are read.
const SECTION_LIMIT_BYTES: usize = 16 << 20;

/// Bytes of file names that are kept: a hostile table can join one long directory to a million files.
const FILE_LIMIT_BYTES: usize = 16 << 20;

/// Longest name of an inlined function.
const NAME_LIMIT_BYTES: usize = 16 << 10;

/// Units that are read of one section.
const UNIT_LIMIT: usize = 1 << 16;

/// NVIDIA's extended opcode: the rows that follow were inlined. Operands: unsigned LEB128 number of the row (counted
/// from 1 in this sequence) where the call stands, 0 when back in the outer function; unsigned LEB128 offset of the
/// inlined function's name in `.debug_str`.
const INLINED_CALL: u8 = 0x90;

/// Deepest chain of inlined calls that is followed.
const INLINE_DEPTH: usize = 64;

type Slice<'a> = gimli::EndianSlice<'a, LittleEndian>;
type Relocated<'a> = gimli::RelocateReader<Slice<'a>, &'a Addresses>;

/// Values that relocations put at offsets of `.debug_line`.
#[derive(Debug, Clone, Default)]
pub struct Addresses(HashMap<usize, u64>);

impl Addresses {
    /// Puts `value` at `offset`.
    pub fn insert(&mut self, offset: usize, value: u64) {
        self.0.insert(offset, value);
    }
}

impl gimli::Relocate for &Addresses {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        Ok(self.0.get(&offset).copied().unwrap_or(value))
    }

    fn relocate_offset(&self, _offset: usize, value: usize) -> gimli::Result<usize> {
        Ok(value)
    }
}

/// A place in source code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// File with its directory (`/src/crash.cu`).
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Column, counted from 1; `None` where the table has none.
    pub column: Option<u32>,
    /// The inlined function that holds the line, as mangled; `None` in the function itself.
    pub inlined: Option<String>,
}

/// The table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineTable {
    files: Vec<String>,
    file_bytes: usize,
    /// `.debug_str`, where inlined functions are named.
    strings: Vec<u8>,
    rows: Vec<Row>,
    sequences: Vec<Sequence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    address: u64,
    file: u32,
    line: u32,
    column: u32,
    /// Row of the call, counted from 1 in the sequence; 0 for none.
    call: u32,
    /// Offset of the inlined function's name in `strings`.
    name: u32,
}

/// Rows `first..last` cover `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sequence {
    start: u64,
    end: u64,
    first: usize,
    last: usize,
}

impl LineTable {
    /// Reads every unit of `debug_line`. `addresses` overrides what the section holds where a relocation applies.
    /// What can't be read goes to `diagnostics`; units before it are kept.
    #[must_use]
    pub fn parse(
        debug_line: &[u8],
        debug_str: &[u8],
        addresses: &Addresses,
        diagnostics: &mut Vec<String>,
    ) -> Self {
        let debug_line = within(debug_line, "line table", diagnostics);
        let debug_str = within(debug_str, "names of inlined functions", diagnostics);
        let mut table = Self { strings: debug_str.to_vec(), ..Self::default() };
        let slice = Slice::new(debug_line, LittleEndian);
        let section = gimli::DebugLine::from(Relocated::new(slice, addresses));
        let mut offset = 0_usize;
        for _ in 0..UNIT_LIMIT {
            if offset.saturating_add(4) > debug_line.len() {
                break;
            }
            match table.unit(&section, offset) {
                Ok(next) if next > offset => offset = next,
                Ok(_) => break,
                Err(error) => {
                    diagnostics.push(format!("line table: {error} in the unit at offset {offset:#x}"));
                    break;
                }
            }
            if table.rows.len() >= ROW_LIMIT {
                diagnostics.push(format!("line table: only the first {ROW_LIMIT} rows were read"));
                break;
            }
        }
        table.sequences.sort_by_key(|sequence| (sequence.start, sequence.end));
        table
    }

    /// True where the table has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// The line of the instruction at `address`. For inlined code, the line inside the inlined function.
    #[must_use]
    pub fn line_at(&self, address: u64) -> Option<SourceLine> {
        let (_, row) = self.row_at(address)?;
        self.source(row)
    }

    /// The line of the instruction at `address` and the lines of the calls that it was inlined through, innermost
    /// first. The last one stands in the function itself.
    #[must_use]
    pub fn inline_chain(&self, address: u64) -> Vec<SourceLine> {
        let Some((sequence, row)) = self.row_at(address) else { return Vec::new() };
        let rows = self.rows.get(sequence.first..sequence.last).unwrap_or(&[]);
        let mut chain = Vec::new();
        let mut next = Some(row);
        while let Some(row) = next {
            chain.extend(self.source(row));
            let call = (row.call as usize).checked_sub(1).filter(|_| chain.len() < INLINE_DEPTH);
            next = call.and_then(|index| rows.get(index));
        }
        chain
    }

    fn row_at(&self, address: u64) -> Option<(&Sequence, &Row)> {
        let after = self.sequences.partition_point(|sequence| sequence.start <= address);
        let sequence = self.sequences.get(..after)?.iter().rev().find(|sequence| address < sequence.end)?;
        let rows = self.rows.get(sequence.first..sequence.last)?;
        let after = rows.partition_point(|row| row.address <= address);
        Some((sequence, rows.get(after.checked_sub(1)?)?))
    }

    fn source(&self, row: &Row) -> Option<SourceLine> {
        Some(SourceLine {
            file: self.files.get(row.file as usize)?.clone(),
            line: row.line,
            column: (row.column != 0).then_some(row.column),
            inlined: (row.call != 0).then(|| self.inlined_name(row.name)).flatten(),
        })
    }

    fn inlined_name(&self, offset: u32) -> Option<String> {
        let tail = self.strings.get(offset as usize..)?;
        let tail = tail.get(..NAME_LIMIT_BYTES).unwrap_or(tail);
        let name = tail.get(..memchr::memchr(0, tail)?)?;
        (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
    }

    fn add_file(&mut self, file: String) {
        self.file_bytes = self.file_bytes.saturating_add(file.len());
        self.files.push(if self.file_bytes > FILE_LIMIT_BYTES { String::new() } else { file });
    }

    /// Reads one unit and returns the offset of the next.
    fn unit(&mut self, section: &gimli::DebugLine<Relocated<'_>>, offset: usize) -> gimli::Result<usize> {
        // Line tables of version 2 to 4 don't state their address size; CUDA's is 8.
        let program = section.program(DebugLineOffset(offset), 8, None, None)?;
        let header = program.header();
        let first_file = self.files.len();
        // File 0 is no file before DWARF 5: one entry is spent on it so that indices stay as written.
        if header.version() < 5 {
            self.add_file(String::new());
        }
        for entry in header.file_names() {
            let directory = entry.directory(header).map_or_else(String::new, text);
            self.add_file(joined(&directory, &text(entry.path_name())));
        }
        let mut machine = Machine::new(header, first_file);
        let mut instructions = header.instructions();
        while let Some(instruction) = instructions.next_instruction(header)? {
            machine.step(instruction, self);
            if self.rows.len() >= ROW_LIMIT {
                break;
            }
        }
        let prefix = if header.format() == gimli::Format::Dwarf64 { 12 } else { 4 };
        Ok(offset.saturating_add(header.unit_length()).saturating_add(prefix))
    }
}

/// The line program's registers (DWARF 4, 6.2.2), for one operation an instruction.
struct Machine {
    line_base: i64,
    line_range: u64,
    opcode_base: u64,
    step_bytes: u64,
    first_file: usize,
    first_row: usize,
    address: u64,
    file: u64,
    line: u64,
    column: u64,
    call: u64,
    name: u32,
}

impl Machine {
    fn new(header: &gimli::LineProgramHeader<Relocated<'_>>, first_file: usize) -> Self {
        Self {
            line_base: i64::from(header.line_base()),
            line_range: u64::from(header.line_range()).max(1),
            opcode_base: u64::from(header.opcode_base()),
            step_bytes: u64::from(header.minimum_instruction_length()),
            first_file,
            first_row: 0,
            address: 0,
            file: 1,
            line: 1,
            column: 0,
            call: 0,
            name: 0,
        }
    }

    fn step(&mut self, instruction: LineInstruction<Relocated<'_>>, table: &mut LineTable) {
        match instruction {
            LineInstruction::Special(opcode) => {
                let adjusted = u64::from(opcode).saturating_sub(self.opcode_base);
                self.advance(adjusted / self.line_range);
                let lines = self.line_base.saturating_add((adjusted % self.line_range).cast_signed());
                self.line = self.line.wrapping_add_signed(lines);
                self.emit(table);
            }
            LineInstruction::Copy => self.emit(table),
            LineInstruction::AdvancePc(operations) => self.advance(operations),
            LineInstruction::AdvanceLine(lines) => self.line = self.line.wrapping_add_signed(lines),
            LineInstruction::SetFile(file) => self.file = file,
            LineInstruction::SetColumn(column) => self.column = column,
            LineInstruction::ConstAddPc => {
                self.advance(255_u64.saturating_sub(self.opcode_base) / self.line_range);
            }
            LineInstruction::FixedAddPc(bytes) => self.address = self.address.wrapping_add(u64::from(bytes)),
            LineInstruction::SetAddress(address) => self.address = address,
            LineInstruction::EndSequence => self.end(table),
            LineInstruction::UnknownExtended(code, operands) if code.0 == INLINED_CALL => {
                self.inlined(operands);
            }
            _ => {}
        }
    }

    fn advance(&mut self, operations: u64) {
        self.address = self.address.wrapping_add(operations.wrapping_mul(self.step_bytes));
    }

    fn emit(&self, table: &mut LineTable) {
        let file = usize::try_from(self.file).ok().and_then(|file| self.first_file.checked_add(file));
        table.rows.push(Row {
            address: self.address,
            file: file.and_then(|file| u32::try_from(file).ok()).unwrap_or(u32::MAX),
            line: u32::try_from(self.line).unwrap_or(0),
            column: u32::try_from(self.column).unwrap_or(0),
            call: u32::try_from(self.call).unwrap_or(0),
            name: self.name,
        });
    }

    fn end(&mut self, table: &mut LineTable) {
        let rows = table.rows.get_mut(self.first_row..).unwrap_or_default();
        // Rows of one sequence rise by the standard; a search needs that to hold. Sorting keeps equal ones in order.
        if !rows.is_sorted_by_key(|row| row.address) {
            rows.sort_by_key(|row| row.address);
        }
        if let Some(start) =
            rows.first().map(|row| row.address).filter(|start| *start != 0 && *start < self.address)
        {
            let last = table.rows.len();
            table.sequences.push(Sequence { start, end: self.address, first: self.first_row, last });
        } else {
            // Address 0: a function that was not loaded.
            table.rows.truncate(self.first_row);
        }
        self.first_row = table.rows.len();
        (self.address, self.file, self.line, self.column) = (0, 1, 1, 0);
        (self.call, self.name) = (0, 0);
    }

    fn inlined(&mut self, mut operands: Relocated<'_>) {
        if let (Ok(call), Ok(name)) = (operands.read_uleb128(), operands.read_uleb128()) {
            self.call = call;
            self.name = u32::try_from(name).unwrap_or(u32::MAX);
        }
    }
}

/// The part of a section that is read.
fn within<'a>(section: &'a [u8], what: &str, diagnostics: &mut Vec<String>) -> &'a [u8] {
    let Some(kept) = section.get(..SECTION_LIMIT_BYTES) else { return section };
    if section.len() > SECTION_LIMIT_BYTES {
        diagnostics.push(format!("{what}: only the first {SECTION_LIMIT_BYTES} bytes were read"));
    }
    kept
}

/// A string of the header; empty for the forms of DWARF 5 that point into other sections, which nvcc doesn't write.
fn text(value: AttributeValue<Relocated<'_>>) -> String {
    match value {
        AttributeValue::String(reader) => reader.to_string_lossy().map_or_else(|_| String::new(), Into::into),
        _ => String::new(),
    }
}

fn joined(directory: &str, file: &str) -> String {
    if directory.is_empty() || file.starts_with('/') {
        file.to_owned()
    } else {
        format!("{}/{file}", directory.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A version 2 unit with one file `/src/a.cu` and the given line program.
    fn unit(program: &[u8]) -> Vec<u8> {
        let mut header = vec![1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
        header.extend(b"/src\0\0a.cu\0\x01\0\0\0");
        let mut bytes = Vec::new();
        bytes.extend((6 + header.len() as u32 + program.len() as u32).to_le_bytes());
        bytes.extend(2_u16.to_le_bytes());
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        bytes.extend(program);
        bytes
    }

    fn set_address(address: u64) -> Vec<u8> {
        [&[0, 9, 2][..], &address.to_le_bytes()].concat()
    }

    /// Line 1 at the address, line 6 sixteen bytes on, end 32 bytes on.
    fn sequence(address: u64) -> Vec<u8> {
        [&set_address(address)[..], &[1, 3, 5, 2, 16, 1, 2, 16, 0, 1, 1]].concat()
    }

    fn table(bytes: &[u8]) -> (LineTable, Vec<String>) {
        let mut diagnostics = Vec::new();
        let table = LineTable::parse(bytes, b"", &Addresses::default(), &mut diagnostics);
        (table, diagnostics)
    }

    fn line(table: &LineTable, address: u64) -> Option<(String, u32)> {
        table.line_at(address).map(|line| (line.file, line.line))
    }

    #[test]
    fn sequences_in_any_order() {
        let (table, diagnostics) = table(&unit(&[sequence(0x7f00), sequence(0x1000), sequence(0)].concat()));
        assert_eq!(diagnostics, Vec::<String>::new());
        let file = || "/src/a.cu".to_owned();
        assert_eq!(line(&table, 0x7f00), Some((file(), 1)));
        assert_eq!(line(&table, 0x7f0f), Some((file(), 1)));
        assert_eq!(line(&table, 0x1010), Some((file(), 6)));
        assert_eq!(line(&table, 0x101f), Some((file(), 6)));
        assert_eq!(line(&table, 0x1020), None);
        // A function at address 0 was not loaded.
        assert_eq!(line(&table, 0), None);
        assert_eq!(line(&table, 0x10), None);
    }

    #[test]
    fn relocations_give_the_address() {
        let bytes = unit(&sequence(0));
        let at = bytes.len() - sequence(0).len() + 3;
        let mut addresses = Addresses::default();
        addresses.insert(at, 0x5000);
        let table = LineTable::parse(&bytes, b"", &addresses, &mut Vec::new());
        assert_eq!(line(&table, 0x5010), Some(("/src/a.cu".to_owned(), 6)));
    }

    #[test]
    fn a_broken_unit_leaves_those_before_it() {
        let bytes = [unit(&sequence(0x1000)), vec![9, 0, 0, 0, 99, 0, 1]].concat();
        let (table, diagnostics) = table(&bytes);
        assert_eq!(line(&table, 0x1000).unwrap().1, 1);
        assert_eq!(diagnostics.len(), 1);
        assert!(diagnostics[0].contains("in the unit at offset"), "{diagnostics:?}");
    }

    #[test]
    fn extreme_operands_wrap_and_do_not_panic() {
        let least = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f];
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let program = [
            &set_address(u64::MAX - 1)[..],
            &[3],
            &least,
            &[1, 2],
            &most,
            &[4],
            &most,
            &[0, 21, 0x90],
            &most,
            &most,
            &[255, 8, 0, 1, 1],
        ];
        let (table, _) = table(&unit(&program.concat()));
        assert_eq!(line(&table, u64::MAX - 1), None);
    }
}
