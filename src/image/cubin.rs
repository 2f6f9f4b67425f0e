//! A cubin: architecture, kernels with their parameters, functions, source lines, embedded PTX.
//!
//! In: bytes of a cubin from a file, a Triton cache or a core dump (where functions stand at the addresses that they
//! were loaded to). Out: a [`Cubin`] and a diagnostic for each part that could not be read. It leaves alone machine
//! code and fat binaries.

use std::collections::{HashMap, HashSet};

use super::elf::{Elf, MACHINE_CUDA, RELOCATIONS, Section};
use super::line_table::{Addresses, LineTable, SourceLine};
use super::params::{self, KernelInfo, Param};
use super::{ptx_text, symbol};

#[cfg(test)]
mod tests;

/// Sections that are looked at: PyTorch's largest cubins have some thousands.
const SECTION_LIMIT: usize = 1 << 17;

/// Symbols that are looked at.
const SYMBOL_LIMIT: usize = 1 << 18;

/// Kernels that are kept; PyTorch's largest cubins have some thousands.
const KERNEL_LIMIT: usize = 1 << 13;

/// Bytes of function names that are kept: a hostile symbol table can name one long string a million times.
const NAME_LIMIT_BYTES: usize = 64 << 20;

/// Relocations of the line table: one a function.
const RELOCATION_LIMIT: usize = 1 << 18;

/// Symbol type of a function.
const FUNCTION: u8 = 2;

/// Bit of `st_other` that marks a kernel.
const KERNEL: u8 = 0x10;

/// `sh_flags` bit of machine code.
const EXECUTABLE: u64 = 4;

/// `EI_OSABI` of cubins up to CUDA 12; CUDA 13 writes 0x41.
const OLD_ABI: u8 = 0x33;

/// In a cubin that was not loaded every function starts at 0. A stretch of this size is set aside for each section,
/// so that one line table can serve them all.
const SECTION_STRIDE: u64 = 1 << 32;

/// What a cubin holds.
#[derive(Debug, Clone, Default)]
pub struct Cubin {
    /// Compute capability as one number (90 for sm_90); `None` where the flags hold none.
    pub architecture: Option<u32>,
    /// True for an image of a dump whose functions stand at their addresses in GPU memory.
    pub loaded: bool,
    /// Kernels, in the order of the symbol table.
    pub kernels: Vec<Kernel>,
    /// All functions, kernels included; of a loaded image only those that have an address.
    pub functions: Vec<Function>,
    /// The PTX that it was assembled from, where it was built with line information.
    pub ptx: Option<Vec<u8>>,
    lines: LineTable,
}

/// A kernel and what a launch must bring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Symbol (`_Z6gatherPKfPKiPfi`).
    pub symbol: String,
    /// Readable name without parameters (`gather`).
    pub name: String,
    /// Parameters by ordinal.
    pub params: Vec<Param>,
    /// Bytes of all parameters.
    pub param_bytes: Option<u16>,
    /// Where parameters start in constant bank 0, in bytes.
    pub bank_offset: Option<u16>,
    /// Block dimensions that it was compiled for.
    pub required_block: Option<[u32; 3]>,
    /// Largest block dimensions.
    pub max_block: Option<[u32; 3]>,
    /// Registers a thread, where the cubin says.
    pub registers: Option<u32>,
    /// Static shared memory in bytes.
    pub shared_bytes: u64,
}

/// A function's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Symbol as it stands in the image.
    pub symbol: String,
    /// Address in GPU memory in a loaded image, else offset in its section.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// True for a kernel.
    pub kernel: bool,
    section: u16,
}

/// Reads a cubin. What can't be read is said in the second value; the first holds all the rest.
#[must_use]
pub fn parse(bytes: &[u8]) -> (Cubin, Vec<String>) {
    let mut diagnostics = Vec::new();
    let cubin = match Elf::parse(bytes) {
        Ok(elf) if elf.machine == MACHINE_CUDA => read(&elf, &mut diagnostics),
        Ok(elf) => {
            diagnostics.push(format!("cubin: ELF machine {} is not NVIDIA's 190", elf.machine));
            Cubin::default()
        }
        Err(reason) => {
            diagnostics.push(format!("cubin: {reason}"));
            Cubin::default()
        }
    };
    (cubin, diagnostics)
}

/// True for bytes that start like a cubin: an ELF file for NVIDIA's machine that is no core dump.
#[must_use]
pub fn looks_like_cubin(bytes: &[u8]) -> bool {
    Elf::parse(bytes).is_ok_and(|elf| elf.machine == MACHINE_CUDA && elf.file_type != 4)
}

/// The compute capability in `e_flags`: the low byte under the old ABI, the second byte since.
#[must_use]
pub fn architecture(os_abi: u8, flags: u32) -> Option<u32> {
    let byte = if os_abi == OLD_ABI { flags & 0xff } else { (flags >> 8) & 0xff };
    (byte != 0).then_some(byte)
}

/// Address ranges (start, size in bytes) of the machine code in a loaded image, without reading anything else.
pub fn code_ranges(elf: &Elf<'_>) -> impl Iterator<Item = (u64, u64)> {
    elf.sections().take(SECTION_LIMIT).filter(is_code).map(|section| (section.address, section.size))
}

fn is_code(section: &Section) -> bool {
    section.flags & EXECUTABLE != 0
}

impl Cubin {
    /// The function that holds `pc` in a loaded image.
    #[must_use]
    pub fn function_at(&self, pc: u64) -> Option<&Function> {
        let holds =
            |function: &&Function| pc.checked_sub(function.address).is_some_and(|at| at < function.size);
        // A device function may lie inside the range of the kernel that was compiled with it: the smallest wins.
        self.functions.iter().filter(|_| self.loaded).filter(holds).min_by_key(|function| function.size)
    }

    /// The kernel with this symbol.
    #[must_use]
    pub fn kernel(&self, symbol: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.symbol == symbol)
    }

    /// The source line of `pc` in a loaded image.
    #[must_use]
    pub fn line_at(&self, pc: u64) -> Option<SourceLine> {
        self.lines.line_at(pc).filter(|_| self.loaded)
    }

    /// The source line of `pc` and of the calls that it was inlined through, innermost first.
    #[must_use]
    pub fn inline_chain(&self, pc: u64) -> Vec<SourceLine> {
        if self.loaded { self.lines.inline_chain(pc) } else { Vec::new() }
    }

    /// The source line of the instruction `offset` bytes into a function.
    #[must_use]
    pub fn line_in(&self, symbol: &str, offset: u64) -> Option<SourceLine> {
        let function = self.functions.iter().find(|function| function.symbol == symbol)?;
        let at = function.address.checked_add(offset).filter(|_| offset < function.size)?;
        self.lines.line_at(if self.loaded { at } else { at.checked_add(section_base(function.section))? })
    }

    /// True where the cubin was built with line information.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }
}

/// What a pass over the sections finds.
#[derive(Default)]
struct Parts<'a> {
    info: Option<Section>,
    infos: HashMap<&'a str, Section>,
    shared: HashMap<&'a str, u64>,
    line: Option<Section>,
    line_relocations: Option<Section>,
    strings: Option<Section>,
    ptx: Option<Section>,
    loaded: bool,
}

fn section_base(section: u16) -> u64 {
    (u64::from(section) + 1) * SECTION_STRIDE
}

fn read(elf: &Elf<'_>, diagnostics: &mut Vec<String>) -> Cubin {
    if u64::from(elf.section_count()) < elf.claimed_sections() {
        let (there, claimed) = (elf.section_count(), elf.claimed_sections());
        diagnostics.push(format!("cubin: {there} of {claimed} section headers are there"));
    }
    let parts = parts(elf);
    let mut cubin = Cubin {
        architecture: architecture(elf.os_abi, elf.flags),
        loaded: parts.loaded,
        lines: lines(elf, &parts, diagnostics),
        ptx: parts.ptx.map(|section| ptx_text::text(elf.data(&section))),
        ..Cubin::default()
    };
    let (mut seen, mut name_bytes) = (HashSet::new(), 0_usize);
    let registers = parts.info.map_or_else(HashMap::new, |info| params::register_counts(elf.data(&info)));
    for (index, symbol) in (0_u32..).zip(elf.symbols(SYMBOL_LIMIT)) {
        if symbol.kind != FUNCTION || symbol.section == 0 {
            continue;
        }
        name_bytes = name_bytes.saturating_add(symbol.name.len());
        if name_bytes > NAME_LIMIT_BYTES {
            diagnostics.push(format!("cubin: symbols past {NAME_LIMIT_BYTES} bytes of names were not read"));
            break;
        }
        let kernel = symbol.other & KERNEL != 0;
        if kernel && cubin.kernels.len() < KERNEL_LIMIT && seen.insert(symbol.name) {
            let registers = registers.get(&index).copied();
            cubin.kernels.push(Kernel { registers, ..kernel_of(elf, &parts, symbol.name, diagnostics) });
        }
        // Address 0 in a loaded image: the driver did not load this function.
        let section = elf.section(u32::from(symbol.section));
        if !parts.loaded || section.is_some_and(|section| section.address != 0) {
            cubin.functions.push(Function {
                symbol: symbol.name.to_owned(),
                address: symbol.value,
                size: symbol.size,
                kernel,
                section: symbol.section,
            });
        }
    }
    cubin
}

fn parts<'a>(elf: &Elf<'a>) -> Parts<'a> {
    let mut parts = Parts::default();
    for section in elf.sections().take(SECTION_LIMIT) {
        parts.loaded |= is_code(&section) && section.address != 0;
        let name = elf.name(&section);
        if let Some(kernel) = name.strip_prefix(".nv.info.") {
            parts.infos.insert(kernel, section);
        } else if let Some(kernel) = name.strip_prefix(".nv.shared.") {
            parts.shared.insert(kernel, section.size);
        } else {
            match name {
                ".nv.info" => parts.info = Some(section),
                ".debug_line" => parts.line = Some(section),
                ".rela.debug_line" if section.kind == RELOCATIONS => parts.line_relocations = Some(section),
                ".debug_str" => parts.strings = Some(section),
                ".nv_debug_ptx_txt" => parts.ptx = Some(section),
                _ => {}
            }
        }
    }
    parts
}

fn kernel_of(elf: &Elf<'_>, parts: &Parts<'_>, name: &str, diagnostics: &mut Vec<String>) -> Kernel {
    let KernelInfo { params, param_bytes, bank_offset, required_block, max_block } = parts
        .infos
        .get(name)
        .map_or_else(KernelInfo::default, |info| params::parse(elf.data(info), diagnostics));
    Kernel {
        symbol: name.to_owned(),
        name: symbol::name(name),
        params,
        param_bytes,
        bank_offset,
        required_block,
        max_block,
        registers: None,
        shared_bytes: parts.shared.get(name).copied().unwrap_or(0),
    }
}

fn lines(elf: &Elf<'_>, parts: &Parts<'_>, diagnostics: &mut Vec<String>) -> LineTable {
    let Some(line) = parts.line else { return LineTable::default() };
    let mut addresses = Addresses::default();
    if let Some(relocations) = parts.line_relocations {
        let symbols: Vec<_> =
            elf.symbols(SYMBOL_LIMIT).map(|symbol| (symbol.value, symbol.section)).collect();
        for relocation in elf.relocations(&relocations, RELOCATION_LIMIT) {
            let target = symbols.get(relocation.symbol as usize);
            if let (Ok(offset), Some((value, section))) = (usize::try_from(relocation.offset), target) {
                // A loaded image has its symbols at their addresses already, 0 where the function was not loaded.
                let base = if parts.loaded { 0 } else { section_base(*section) };
                let value = if parts.loaded && *value == 0 {
                    0
                } else {
                    value.wrapping_add_signed(relocation.addend)
                };
                addresses.insert(offset, value.wrapping_add(base));
            }
        }
    }
    let strings = parts.strings.map_or(&[][..], |section| elf.data(&section));
    LineTable::parse(elf.data(&line), strings, &addresses, diagnostics)
}
