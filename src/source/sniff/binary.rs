//! Binary formats by their magic numbers: ELF for CUDA, pickles.
//!
//! In: bytes and a path. Out: their kind, none where no magic number matches. It leaves bounds and content to the readers.

use std::path::Path;

use crate::source::kind::InputKind;

/// ELF machine number of NVIDIA GPUs (EM_CUDA).
const MACHINE_CUDA: u16 = 190;
/// ELF type of core files.
const TYPE_CORE: u16 = 4;
/// What `torch.save` wrote before it wrote zip archives: a pickled long of ten bytes that is PyTorch's own magic number.
const OLD_TORCH_FILE: &[u8] = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19";

pub(super) fn kind(bytes: &[u8], path: Option<&Path>) -> Option<InputKind> {
    elf(bytes).or_else(|| pickle(bytes, path))
}

fn elf(bytes: &[u8]) -> Option<InputKind> {
    let word = |at: usize| Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let is_cuda = bytes.starts_with(b"\x7fELF") && word(18)? == MACHINE_CUDA;
    match is_cuda {
        true if word(16)? == TYPE_CORE => Some(InputKind::CoreDump),
        true => Some(InputKind::Cubin),
        false => None,
    }
}

/// Any pickle but PyTorch's old files: a dump that was tampered with must reach the reader that refuses it by name.
fn pickle(bytes: &[u8], path: Option<&Path>) -> Option<InputKind> {
    let body = match bytes {
        [0x80, 2..=5, body @ ..] => body,
        _ => return text_pickle(bytes, path),
    };
    // Containers, a frame, a string, a global or a call may come first; letters that text begins with do not.
    let opens =
        matches!(body.first()?, b'}' | b']' | b')' | b'(' | 0x95 | b'c' | 0x8c | b'X' | b'N' | b'K' | b'.');
    match body.starts_with(OLD_TORCH_FILE) {
        true => Some(InputKind::UnknownBinary),
        false => opens.then_some(InputKind::FlightRecorder),
    }
}

/// Pickles of protocol 0 have no magic number; the recorder's file names do the telling.
fn text_pickle(bytes: &[u8], path: Option<&Path>) -> Option<InputKind> {
    let name = path?.file_name()?.to_str()?;
    let begins = matches!(bytes.first()?, b'(' | b'c' | b'}' | b']' | 0x80);
    (name.contains("nccl_trace") && begins).then_some(InputKind::FlightRecorder)
}
