//! A kernel that can be rerun.
//!
//! In: what [`super::load`] found. Out: a [`Target`]: code, parameters with their sizes, launch facts, and the static
//! model where there is one. It binds no arguments.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::protocol::{Image, ImageKind};
use crate::image::{cubin, ptx_text, symbol};
use crate::kernel::Kernel;

/// Where a kernel came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// An entry of a Triton cache.
    TritonCache,
    /// A file of machine code.
    Cubin,
    /// A PTX file.
    Ptx,
    /// A CUDA C++ source that was compiled here.
    Cuda,
    /// The built-in kernel with the same address pattern: it proves the arithmetic, never the user's kernel.
    Reference,
}

impl SourceKind {
    /// For people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::TritonCache => "Triton cache entry",
            Self::Cubin => "cubin",
            Self::Ptx => "PTX",
            Self::Cuda => "CUDA C++ source",
            Self::Reference => "built-in reference kernel",
        }
    }
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// An address; with the size of the elements behind it, where known.
    Pointer(Option<u32>),
    /// An integer.
    Integer,
    /// A floating-point number.
    Float,
    /// Something else, a structure say.
    Opaque,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; `arg3` where none is known.
    pub name: String,
    /// Its size.
    pub size_bytes: u32,
    /// What it takes.
    pub kind: ParameterKind,
    /// What its value is promised to be a multiple of.
    pub divisibility: u64,
    /// Whether the compiler added it.
    pub hidden: bool,
}

/// A kernel that can be rerun.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its symbol.
    pub entry: String,
    /// Its name for people.
    pub name: String,
    /// Where it came from.
    pub source: SourceKind,
    /// The file or folder.
    pub path: PathBuf,
    /// Its code, the best first.
    pub images: Vec<Image>,
    /// Its parameters, hidden ones included, in order.
    pub parameters: Vec<Parameter>,
    /// The static model.
    pub kernel: Option<Arc<Kernel>>,
    /// Elements that its widest access takes at once, where the model is made of PTX, which counts it as one.
    pub vector: u32,
    /// Threads of a block, where the code or the cache fixes them.
    pub block: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes.
    pub shared_bytes: u32,
    /// Bytes of global scratch memory that every program takes, through the first hidden parameter.
    pub scratch_bytes: u64,
    /// Compute capability that the machine code is for.
    pub architecture: Option<u32>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Keeps files that were made for it.
    pub keep: Option<Arc<tempfile::TempDir>>,
}

impl Target {
    /// The index of a parameter by name; `arg3` works for every kernel.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<usize> {
        let by_name = self.parameters.iter().position(|parameter| parameter.name == name);
        by_name.or_else(|| {
            let index = name.strip_prefix("arg")?.parse().ok()?;
            (index < self.parameters.len()).then_some(index)
        })
    }

    /// The best image's kind.
    #[must_use]
    pub fn image_kind(&self) -> Option<ImageKind> {
        self.images.first().map(|image| image.kind)
    }
}

/// A parameter's size and type out of the code alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Size in bytes.
    pub size_bytes: u32,
    /// Whether the code declares a floating-point number.
    pub float: bool,
}

/// Parameters as a cubin's table gives them.
#[must_use]
pub fn slots_of_cubin(kernel: &cubin::Kernel) -> Vec<Slot> {
    kernel.params.iter().map(|param| Slot { size_bytes: u32::from(param.size), float: false }).collect()
}

/// The widest vector that a PTX text loads or stores outside a block's own memory: 1, 2, 4 or 8.
#[must_use]
pub fn vector_of_ptx(text: &[u8]) -> u32 {
    let mut widest = 1;
    for line in text.split(|byte| *byte == b'\n') {
        let holds = |marker: &[u8]| memchr::memmem::find(line, marker).is_some();
        let own = [&b".param"[..], b".shared", b".local"].into_iter().any(holds);
        if own || !(holds(b"ld.") || holds(b"st.")) {
            continue;
        }
        for (width, marker) in [(8, &b".v8."[..]), (4, b".v4."), (2, b".v2.")] {
            if holds(marker) {
                widest = widest.max(width);
            }
        }
    }
    widest
}

/// The widest vector of one entry: from its head to the next one's.
#[must_use]
pub fn vector_of_entry(text: &[u8], entry: &str) -> u32 {
    const HEAD: &[u8] = b".entry ";
    let heads: Vec<usize> = memchr::memmem::find_iter(text, HEAD).map(|at| at + HEAD.len()).collect();
    let own = heads.iter().position(|&at| {
        let rest = text.get(at..).unwrap_or_default();
        let ends =
            rest.get(entry.len()).is_some_and(|byte| matches!(byte, b'(' | b' ' | b'\n' | b'\r' | b'\t'));
        rest.starts_with(entry.as_bytes()) && ends
    });
    let Some(own) = own else { return vector_of_ptx(text) };
    let start = heads.get(own).copied().unwrap_or(0);
    let end = heads.get(own + 1).copied().unwrap_or(text.len());
    vector_of_ptx(text.get(start..end).unwrap_or_default())
}

/// Parameters as a PTX text declares them.
#[must_use]
pub fn slots_of_ptx(text: &[u8], entry: &str) -> Vec<Slot> {
    ptx_text::entry_params(text, entry)
        .iter()
        .map(|param| {
            let bits: u32 = param.kind.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(8);
            Slot { size_bytes: (bits / 8).saturating_mul(param.count), float: param.kind.starts_with('f') }
        })
        .collect()
}

/// Names and kinds of parameters: from the model where there is one, else from the C++ signature, else from sizes.
#[must_use]
pub fn parameters(slots: &[Slot], entry: &str, names: &[String], kernel: Option<&Kernel>) -> Vec<Parameter> {
    let types = symbol::param_types(entry);
    let shown = kernel.map_or(slots.len(), |kernel| kernel.model.params.len());
    let describe = |(index, slot): (usize, &Slot)| {
        let model = kernel.and_then(|kernel| kernel.model.params.get(index));
        let ty = types.get(index).filter(|_| types.len() == slots.len());
        let kind = match (ty, model) {
            (Some(ty), _) => kind_of_type(ty, slot),
            (None, Some(param)) if param.pointee_bytes.is_some() => {
                ParameterKind::Pointer(param.pointee_bytes.filter(|bytes| *bytes > 0))
            }
            (None, Some(param)) if param.int_width.is_some() && !slot.float => ParameterKind::Integer,
            _ if slot.float => ParameterKind::Float,
            (None, Some(_)) if slot.size_bytes <= 8 => ParameterKind::Float,
            _ if matches!(slot.size_bytes, 1 | 2 | 4 | 8) => ParameterKind::Integer,
            _ => ParameterKind::Opaque,
        };
        let generic = |name: &str| name.starts_with("param_");
        let name = names
            .get(index)
            .cloned()
            .or_else(|| model.map(|param| param.name.clone()).filter(|name| !generic(name)))
            .unwrap_or_else(|| format!("arg{index}"));
        Parameter {
            name,
            size_bytes: slot.size_bytes,
            kind,
            divisibility: model.map_or(1, |param| param.divisibility),
            hidden: index >= shown,
        }
    };
    slots.iter().enumerate().map(describe).collect()
}

fn kind_of_type(ty: &str, slot: &Slot) -> ParameterKind {
    let bare = ty.trim().trim_end_matches("const").trim_end_matches("__restrict__").trim();
    if let Some(pointee) = bare.strip_suffix('*') {
        return ParameterKind::Pointer(size_of_type(pointee));
    }
    match bare {
        "float" | "double" | "__half" | "__nv_bfloat16" => ParameterKind::Float,
        _ if matches!(slot.size_bytes, 1 | 2 | 4 | 8) => ParameterKind::Integer,
        _ => ParameterKind::Opaque,
    }
}

/// Bytes of a C++ type by its name.
fn size_of_type(ty: &str) -> Option<u32> {
    let bare = ty.trim().trim_start_matches("const ").trim_end_matches("const").trim();
    Some(match bare {
        "char" | "signed char" | "unsigned char" | "bool" => 1,
        "short" | "unsigned short" | "__half" | "__nv_bfloat16" => 2,
        "int" | "unsigned int" | "float" => 4,
        "long" | "unsigned long" | "long long" | "unsigned long long" | "double" | "float2" | "int2" => 8,
        "float4" | "int4" | "uint4" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_gives_kinds_and_a_source_gives_names() {
        let slot = |size_bytes| Slot { size_bytes, float: false };
        let names = ["table", "index", "out", "n"].map(str::to_owned);
        let slots = [slot(8), slot(8), slot(8), slot(4)];
        let found = parameters(&slots, "_Z6gatherPKfPKiPfi", &names, None);
        let kinds: Vec<_> = found.iter().map(|p| (p.name.as_str(), p.kind)).collect();
        let four = ParameterKind::Pointer(Some(4));
        assert_eq!(kinds, [("table", four), ("index", four), ("out", four), ("n", ParameterKind::Integer)]);
        let bare = parameters(&slots, "gather", &[], None);
        assert_eq!(
            bare.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
            ["arg0", "arg1", "arg2", "arg3"]
        );
    }

    #[test]
    fn vectors_count_in_their_own_kernel_only() {
        let text = b".visible .entry a(\n.param .u64 a_param_0)\n{ st.global.u32 [%rd1], %r1;\n\
            ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%r5];\n}\n.visible .entry ab(\n.param .u64 ab_param_0)\n{\n\
            ld.global.nc.v2.f32 {%f1,%f2}, [%rd1];\n}\n";
        assert_eq!((vector_of_entry(text, "a"), vector_of_entry(text, "ab")), (1, 2));
    }

    #[test]
    fn sizes_out_of_ptx() {
        let text = b".visible .entry k(\n.param .u64 k_param_0,\n.param .f32 k_param_1,\n.param .align 8 .b8 k_param_2[24]\n)";
        let sizes: Vec<_> =
            slots_of_ptx(text, "k").iter().map(|slot| (slot.size_bytes, slot.float)).collect();
        assert_eq!(sizes, [(8, false), (4, true), (24, false)]);
    }
}
