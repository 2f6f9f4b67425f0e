//! Compressed files: what is unpacked here, and the command for what is not.
//!
//! In: bytes. Out: unpacked bytes (gzip and zstd, every member and frame, nested), or a clause with the command that
//! unpacks. The magic number decides, never the name. It leaves archives of many files to their own programs.

use std::io::{self, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::Limits;
use super::bytes::{Bytes, Cut, drain};
use super::open::size;

/// Compressed files inside compressed files that are opened.
const LAYERS: usize = 3;

/// Bytes after all layers.
pub(super) struct Unpacked {
    pub(super) bytes: Bytes,
    /// Why these are not all of the bytes.
    pub(super) cut: Option<String>,
}

/// Takes every gzip and zstd layer off; other packings are refused with the command to use.
pub(super) fn unpack(bytes: Bytes, path: Option<&Path>, limits: &Limits) -> Result<Unpacked, String> {
    let mut unpacked = Unpacked { bytes, cut: None };
    for _ in 0..LAYERS {
        let Some(packing) = Packing::of(&unpacked.bytes) else { return Ok(unpacked) };
        let drained = match packing {
            Packing::Gzip => expand(MultiGzDecoder::new(&*unpacked.bytes), &unpacked.bytes, limits),
            Packing::Zstd => match zstd::stream::read::Decoder::with_buffer(&*unpacked.bytes) {
                Ok(decoder) => expand(decoder, &unpacked.bytes, limits),
                Err(error) => return Err(format!("can't be unpacked: {error}")),
            },
            Packing::Other(name, command) => return Err(refusal(name, command, path)),
        };
        let (bytes, cut) = drained.map_err(|error| format!("can't be unpacked: {error}"))?;
        if bytes.is_empty()
            && let Some(cut) = cut
        {
            return Err(format!("is broken: {cut}"));
        }
        unpacked = Unpacked { bytes, cut: unpacked.cut.or(cut) };
    }
    match Packing::of(&unpacked.bytes) {
        Some(_) => Err(format!("is compressed more than {LAYERS} times over; unpack it first")),
        None => Ok(unpacked),
    }
}

fn expand(decoder: impl Read, packed: &Bytes, limits: &Limits) -> Result<(Bytes, Option<String>), io::Error> {
    let by_ratio = (packed.len() as u64).saturating_mul(limits.expansion).max(Limits::FREE_BYTES);
    let drained = drain(decoder, limits.expanded_bytes.min(by_ratio), limits.memory_bytes)?;
    let len = drained.bytes.len() as u64;
    let cut = drained.cut.map(|cut| match cut {
        Cut::Bound(limit) => format!("only its first {} were unpacked", size(limit)),
        Cut::Failed(error) => format!("unpacking stopped after {}: {error}", size(len)),
    });
    Ok((drained.bytes, cut))
}

fn refusal(name: &str, command: &str, path: Option<&Path>) -> String {
    let file = path.map_or_else(|| "FILE".to_owned(), |path| path.to_string_lossy().into_owned());
    let quoted = shlex::try_quote(&file).map_or_else(|_| "FILE".to_owned(), |quoted| quoted.into_owned());
    format!("is {name}; run: {}", command.replace("{}", &quoted))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
    Other(&'static str, &'static str),
}

type Magic = (usize, &'static [u8], Packing);

/// Offset, bytes, what they mean.
const MAGICS: &[Magic] = &[
    (0, b"\x1f\x8b\x08", Packing::Gzip),
    (0, b"\x28\xb5\x2f\xfd", Packing::Zstd),
    (0, b"\xfd7zXZ\0", Packing::Other("an xz file", "xz -dc {} | warpfault analyze -")),
    (0, b"LZIP", Packing::Other("an lzip file", "lzip -dc {} | warpfault analyze -")),
    (0, b"\x04\x22\x4d\x18", Packing::Other("an lz4 file", "lz4 -dc {} | warpfault analyze -")),
    (0, b"\x1f\x9d", Packing::Other("a compress (.Z) file", "gzip -dc {} | warpfault analyze -")),
    (0, b"PK\x03\x04", Packing::Other("a zip archive", "unzip -d unpacked {} && warpfault analyze unpacked")),
    (
        0,
        b"7z\xbc\xaf\x27\x1c",
        Packing::Other("a 7z archive", "7z x -ounpacked {} && warpfault analyze unpacked"),
    ),
    (
        0,
        b"Rar!\x1a\x07",
        Packing::Other("a rar archive", "unrar x {} unpacked/ && warpfault analyze unpacked"),
    ),
    (
        257,
        b"ustar",
        Packing::Other(
            "a tar archive",
            "mkdir unpacked && tar -xf {} -C unpacked && warpfault analyze unpacked",
        ),
    ),
];

impl Packing {
    fn of(bytes: &[u8]) -> Option<Self> {
        let begins = |at: usize, magic: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(magic));
        if let Some(&(_, _, packing)) = MAGICS.iter().find(|(at, magic, _)| begins(*at, magic)) {
            return Some(packing);
        }
        // A number follows `BZh`, then a block's or the end's mark.
        if begins(0, b"BZh") && (begins(4, b"1AY&SY") || begins(4, b"\x17rE8P\x90")) {
            return Some(Self::Other("a bzip2 file", "bzip2 -dc {} | warpfault analyze -"));
        }
        // pzstd and others begin with a skippable frame.
        let skippable = matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        skippable.then_some(Self::Zstd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    fn unpacked(bytes: Vec<u8>) -> Result<(Vec<u8>, Option<String>), String> {
        let unpacked = unpack(Bytes::from(bytes), Some(Path::new("a b.log")), &Limits::default())?;
        Ok((unpacked.bytes.to_vec(), unpacked.cut))
    }

    #[test]
    fn every_member_and_frame_is_read() {
        let both = [gzip(b"one\n"), gzip(b"two\n")].concat();
        assert_eq!(unpacked(both).unwrap(), (b"one\ntwo\n".to_vec(), None));
        let both = [zstd(b"one\n"), zstd(b"two\n")].concat();
        assert_eq!(unpacked(both).unwrap(), (b"one\ntwo\n".to_vec(), None));
    }

    #[test]
    fn layers_are_told_by_their_magic_number() {
        assert_eq!(unpacked(gzip(&zstd(b"deep"))).unwrap(), (b"deep".to_vec(), None));
        assert!(unpacked(gzip(&gzip(&gzip(&gzip(b"too deep"))))).unwrap_err().contains("3 times over"));
    }

    #[test]
    fn a_cut_file_gives_what_it_holds() {
        let noise: Vec<u8> =
            (0..200_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        let mut cut = gzip(&noise);
        cut.truncate(cut.len() / 2);
        let (bytes, why) = unpacked(cut).unwrap();
        assert!(!bytes.is_empty() && noise.starts_with(&bytes));
        assert!(why.unwrap().starts_with("unpacking stopped after "));
    }

    #[test]
    fn a_bomb_stops_at_the_bound() {
        let limits = Limits { expanded_bytes: 100_000, ..Limits::default() };
        let bomb = Bytes::from(zstd(&vec![0; 10_000_000]));
        let unpacked = unpack(bomb, None, &limits).unwrap();
        assert_eq!(unpacked.bytes.len(), 100_000);
        assert_eq!(unpacked.cut.unwrap(), "only its first 100 kB were unpacked");
    }

    #[test]
    fn other_packings_name_their_command() {
        let xz = b"\xfd7zXZ\0\0\x04".to_vec();
        assert_eq!(unpacked(xz).unwrap_err(), "is an xz file; run: xz -dc 'a b.log' | warpfault analyze -");
        assert!(unpacked(b"BZh91AY&SY...".to_vec()).unwrap_err().contains("bzip2 -dc"));
        let mut tar = vec![b'x'; 600];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(unpacked(gzip(&tar)).unwrap_err().contains("tar -xf 'a b.log'"));
    }

    #[test]
    fn text_is_no_packing() {
        assert_eq!(unpacked(b"BZh is no bzip2".to_vec()).unwrap().0, b"BZh is no bzip2");
        assert_eq!(unpacked(Vec::new()).unwrap().0, b"");
    }
}
