//! Launch arguments: the bytes that a kernel was started with, cut into parameters.
//!
//! In: the bytes of `.cudbg.param…`, the kernel's parameter table, its mangled name and its PTX. Out: one value a
//! parameter with the best type that these know. Names aren't in a dump; whoever has the source or TTIR adds them.

use crate::image::cubin::Kernel;
use crate::image::elf::{u16_at, u32_at, u64_at};
use crate::image::ptx_text::{self, PtxParam};
use crate::image::symbol;

/// What a parameter is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A pointer.
    Pointer,
    /// A signed integer, or one whose sign nothing tells.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// A floating-point number.
    Float,
    /// A struct or array.
    Bytes,
}

/// One argument of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Position in the parameter list, from 0.
    pub ordinal: u16,
    /// Offset in the parameter block, in bytes.
    pub offset: u16,
    /// Its name, once somebody has told it.
    pub name: Option<String>,
    /// What it is taken for.
    pub kind: ArgumentKind,
    /// Its type as the mangled name or the PTX declares it (`float const*`, `u32`).
    pub declared: Option<String>,
    /// Its bytes, as many as the dump holds.
    pub raw: Vec<u8>,
    /// Dumped memory that a pointer points into: index in `DumpSummary::memory`.
    pub memory: Option<usize>,
}

impl Argument {
    /// The value of a pointer or integer, sign-extended where signed.
    #[must_use]
    pub fn integer(&self) -> Option<i128> {
        let signed = self.kind == ArgumentKind::Signed;
        match (self.kind, self.raw.len()) {
            (ArgumentKind::Bytes | ArgumentKind::Float, _) => None,
            (_, 1) => {
                self.raw.first().map(|byte| if signed { byte.cast_signed().into() } else { (*byte).into() })
            }
            (_, 2) => u16_at(&self.raw, 0).map(|v| if signed { v.cast_signed().into() } else { v.into() }),
            (_, 4) => u32_at(&self.raw, 0).map(|v| if signed { v.cast_signed().into() } else { v.into() }),
            (_, 8) => u64_at(&self.raw, 0).map(|v| if signed { v.cast_signed().into() } else { v.into() }),
            _ => None,
        }
    }

    /// The value of a pointer.
    #[must_use]
    pub fn pointer(&self) -> Option<u64> {
        u64_at(&self.raw, 0).filter(|_| self.kind == ArgumentKind::Pointer)
    }

    /// The value as text: hex for pointers and bytes, decimal for numbers.
    #[must_use]
    pub fn text(&self) -> String {
        match (self.kind, self.raw.len()) {
            (ArgumentKind::Pointer, 8) => format!("{:#x}", u64_at(&self.raw, 0).unwrap_or(0)),
            (ArgumentKind::Float, 4) => f32::from_bits(u32_at(&self.raw, 0).unwrap_or(0)).to_string(),
            (ArgumentKind::Float, 8) => f64::from_bits(u64_at(&self.raw, 0).unwrap_or(0)).to_string(),
            _ => self.integer().map_or_else(|| hex(&self.raw), |value| value.to_string()),
        }
    }
}

/// The bytes as hex, the first 64 of them.
fn hex(raw: &[u8]) -> String {
    const SHOWN: usize = 64;
    let mut text: String = raw.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
    if raw.len() > SHOWN {
        text.push('…');
    }
    text
}

/// Cuts `raw` into the parameters of `kernel`.
#[must_use]
pub fn decode(raw: &[u8], kernel: &Kernel, ptx: Option<&[u8]>) -> Vec<Argument> {
    let types = symbol::param_types(&kernel.symbol);
    let declared = ptx.map_or_else(Vec::new, |text| ptx_text::entry_params(text, &kernel.symbol));
    let mut arguments = Vec::new();
    for param in &kernel.params {
        let index = usize::from(param.ordinal);
        // A template whose parameter pack is listed as one type would shift the rest: lists must agree in length.
        let written = types.get(index).filter(|_| types.len() == kernel.params.len());
        let in_ptx = declared.get(index).filter(|_| declared.len() == kernel.params.len());
        let start = usize::from(param.offset).min(raw.len());
        let end = start.saturating_add(param.size.into()).min(raw.len());
        arguments.push(Argument {
            ordinal: param.ordinal,
            offset: param.offset,
            name: None,
            kind: kind(param.size, written.map(String::as_str), in_ptx, raw.get(start..end).unwrap_or(&[])),
            declared: written.cloned().or_else(|| in_ptx.map(|param| param.kind.clone())),
            raw: raw.get(start..end).unwrap_or(&[]).to_vec(),
            memory: None,
        });
    }
    arguments
}

fn kind(size: u16, written: Option<&str>, in_ptx: Option<&PtxParam>, raw: &[u8]) -> ArgumentKind {
    if !matches!(size, 1 | 2 | 4 | 8) {
        return ArgumentKind::Bytes;
    }
    if size == 8 && in_ptx.is_some_and(|param| param.pointer) {
        return ArgumentKind::Pointer;
    }
    if let Some(kind) = written.and_then(|written| written_kind(size, written)) {
        return kind;
    }
    if let Some(param) = in_ptx {
        match param.kind.as_bytes().first() {
            _ if param.count > 1 => return ArgumentKind::Bytes,
            Some(b'f') => return ArgumentKind::Float,
            _ => {}
        }
    }
    // An eight-byte value that can be a device pointer is taken for one: counts that large don't occur.
    match u64_at(raw, 0) {
        Some(value) if size == 8 && (1 << 32..1 << 49).contains(&value) => ArgumentKind::Pointer,
        _ => ArgumentKind::Signed,
    }
}

fn written_kind(size: u16, written: &str) -> Option<ArgumentKind> {
    let plain = written.trim_end_matches(" const").trim_end_matches(" volatile");
    match plain {
        _ if size == 8 && (plain.ends_with('*') || plain.ends_with('&')) => Some(ArgumentKind::Pointer),
        "int" | "long" | "long long" | "short" | "signed char" | "char" => Some(ArgumentKind::Signed),
        "float" | "double" => Some(ArgumentKind::Float),
        "bool" => Some(ArgumentKind::Unsigned),
        _ if plain.starts_with("unsigned") => Some(ArgumentKind::Unsigned),
        _ => None,
    }
}
