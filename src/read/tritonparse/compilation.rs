//! One `compilation` record: which kernel was compiled, for what, and the compiler's text.
//!
//! In: a decoded line. Out: [`Compilation`]. It leaves reading the text to `kernel`.

use crate::read::event::Place;
use crate::read::loose_json::Json;

use super::At;
use super::launch::text;

/// Longest compiler text that is kept.
const TEXT_LIMIT_BYTES: usize = 16 << 20;

/// A compilation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compilation {
    /// Line of the record, counted from 1.
    pub line: u64,
    /// Offset of the record.
    pub byte: usize,
    /// Kernel.
    pub kernel: String,
    /// Hash, as launches name it.
    pub hash: Option<String>,
    /// `sm_90`, where the record says.
    pub target: Option<String>,
    /// The release that compiled it.
    pub triton_version: Option<String>,
    /// Warps of a block.
    pub num_warps: Option<u32>,
    /// Whether it is a debug build, which checks its own arithmetic.
    pub debug: Option<bool>,
    /// Triton IR.
    pub ttir: Option<String>,
    /// Where the kernel's source stands.
    pub place: Option<Place>,
}

impl Compilation {
    /// Whether both are the same compilation: a warm cache reports it again.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.kernel == other.kernel && self.hash == other.hash && self.hash.is_some()
    }
}

/// Reads a record; none where it names no kernel.
pub(super) fn read(json: &Json<'_>, at: At) -> Option<Compilation> {
    let plain = &json.plain;
    let payload = plain.get(json.root, "payload")?;
    let metadata = plain.get(payload, "metadata")?;
    let of = |key: &str| plain.get(metadata, key);
    let target = of("target").and_then(|target| plain.get(target, "arch"));
    let target = target.and_then(|arch| match plain.integer(arch) {
        Some(number) => Some(format!("sm_{number}")),
        None => text(plain, arch),
    });
    let content = plain.get(payload, "file_content");
    let ttir = content.and_then(|content| {
        plain
            .pairs(content)
            .find(|(name, _)| plain.text(*name).is_some_and(|name| name.ends_with(".ttir")))
            .and_then(|(_, value)| plain.text(value))
            .filter(|text| text.len() <= TEXT_LIMIT_BYTES)
            .map(str::to_owned)
    });
    let source = plain.get(payload, "python_source");
    let of_source = |key: &str| source.and_then(|source| plain.get(source, key));
    let kernel = text(plain, of("name")?)?;
    let place = of_source("file_path").and_then(|file| text(plain, file)).map(|file| Place {
        file,
        line: of_source("start_line").and_then(|line| u32::try_from(plain.integer(line)?).ok()),
        function: Some(kernel.clone()),
    });
    Some(Compilation {
        line: at.line,
        byte: at.byte,
        kernel,
        hash: of("hash").and_then(|hash| text(plain, hash)),
        target,
        triton_version: of("triton_version").and_then(|version| text(plain, version)),
        num_warps: of("num_warps").and_then(|warps| u32::try_from(plain.integer(warps)?).ok()),
        debug: of("debug").and_then(|debug| plain.integer(debug)).map(|debug| debug != 0),
        ttir,
        place,
    })
}
