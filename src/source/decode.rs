//! Bytes to text: UTF-16, byte order marks, fences; and whether bytes are text at all.
//!
//! In: unpacked bytes. Out: UTF-8 as far as the writer knew it. It leaves carriage returns, NUL bytes, escape sequences and
//! wrong UTF-8 to the line readers, which see them in their place.

use std::io;

use super::bytes::{Bytes, Spool};

/// Bytes looked at to tell what text is.
const SAMPLE_BYTES: usize = 8 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Utf16 {
    Little,
    Big,
}

/// Text without byte order mark, UTF-16 turned into UTF-8. Other bytes stay as they are.
///
/// # Errors
/// The temporary file that a large UTF-16 text needs can't be written.
pub(super) fn decode(bytes: Bytes, memory_limit: usize) -> io::Result<Bytes> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Ok(bytes.slice(3..usize::MAX));
    }
    match utf16(&bytes) {
        Some((order, skip)) => from_utf16(bytes.get(skip..).unwrap_or_default(), order, memory_limit),
        None => Ok(bytes),
    }
}

/// The byte order of UTF-16 text and the length of its mark. Text without a mark shows by its NUL bytes: nearly every
/// other byte of Latin text is one, and always on the same side.
fn utf16(bytes: &[u8]) -> Option<(Utf16, usize)> {
    match bytes {
        [0xff, 0xfe, ..] => return Some((Utf16::Little, 2)),
        [0xfe, 0xff, ..] => return Some((Utf16::Big, 2)),
        _ => {}
    }
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    let pairs = sample.chunks_exact(2);
    let count = pairs.len();
    let (first, second) = pairs.fold((0, 0), |(first, second), pair| {
        (first + usize::from(pair.first() == Some(&0)), second + usize::from(pair.last() == Some(&0)))
    });
    let many = |nuls: usize| nuls * 10 >= count * 7;
    let few = |nuls: usize| nuls * 50 <= count;
    match count {
        0..4 => None,
        _ if many(second) && few(first) => Some((Utf16::Little, 0)),
        _ if many(first) && few(second) => Some((Utf16::Big, 0)),
        _ => None,
    }
}

fn from_utf16(bytes: &[u8], order: Utf16, memory_limit: usize) -> io::Result<Bytes> {
    let units = bytes.chunks_exact(2).map(|pair| {
        let pair = [pair.first().copied().unwrap_or(0), pair.last().copied().unwrap_or(0)];
        match order {
            Utf16::Little => u16::from_le_bytes(pair),
            Utf16::Big => u16::from_be_bytes(pair),
        }
    });
    let mut spool = Spool::new(memory_limit);
    let mut text = String::new();
    for c in char::decode_utf16(units) {
        text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
        if text.len() >= 64 << 10 {
            spool.push(text.as_bytes())?;
            text.clear();
        }
    }
    spool.push(text.as_bytes())?;
    spool.finish()
}

/// The inside of a text that is one fenced block (three backticks or tildes before and after) and nothing else.
pub(super) fn fenced(bytes: &Bytes) -> Option<Bytes> {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let end = bytes.iter().rposition(|byte| !byte.is_ascii_whitespace())? + 1;
    let body = bytes.get(start..end)?;
    let fence = [&b"```"[..], b"~~~"].into_iter().find(|fence| body.starts_with(fence))?;
    let inside = start + memchr::memchr(b'\n', body)? + 1;
    let close = end.checked_sub(fence.len())?;
    let closed = body.ends_with(fence) && close >= inside;
    let alone = closed && bytes.get(..close)?.last() == Some(&b'\n');
    alone.then(|| bytes.slice(inside..close))
}

/// Whether these bytes are no text: something that terminals and editors can't show anywhere in them. A log with a hole of NUL
/// bytes or a stretch of garbage is a log.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    let len = bytes.len();
    let sample = |at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        rest.get(..SAMPLE_BYTES).unwrap_or(rest)
    };
    let tail = len.saturating_sub(SAMPLE_BYTES);
    let samples = [sample(0), sample(len / 2), sample(len / 4), sample(tail)];
    has_binary_magic(bytes) || !samples.into_iter().any(is_text_sample)
}

/// Formats that hold long texts and are none.
fn has_binary_magic(bytes: &[u8]) -> bool {
    const MAGICS: &[&[u8]] =
        &[b"\x7fELF", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"%PDF-", b"SQLite format 3\0", b"MZ\x90\0"];
    MAGICS.iter().any(|magic| bytes.starts_with(magic))
}

/// Whether a sample holds text. Bytes past ASCII count as text, because logs come in every encoding; of NUL bytes
/// each run counts once, because a hole in a file reads as one long run.
fn is_text_sample(sample: &[u8]) -> bool {
    let mut last = b' ';
    let (mut odd, mut plain) = (0, 0);
    for &byte in sample {
        match byte {
            0 if last == 0 => {}
            b'\t'..=b'\r' | 0x08 | 0x1b | b' '..=b'~' | 0x80.. => plain += 1,
            _ => odd += 1,
        }
        last = byte;
    }
    plain > 0 && (odd <= 1 || odd * 20 <= plain + odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<u8> {
        decode(Bytes::from(bytes.to_vec()), 1 << 20).unwrap().to_vec()
    }

    fn utf16_bytes(text: &str, order: Utf16) -> Vec<u8> {
        text.encode_utf16()
            .flat_map(|unit| match order {
                Utf16::Little => unit.to_le_bytes(),
                Utf16::Big => unit.to_be_bytes(),
            })
            .collect()
    }

    #[test]
    fn utf16_reads_as_utf8_with_and_without_its_mark() {
        let text = "RuntimeError: CUDA error: an illegal memory access\r\n„Ende“ 🚀\n";
        for order in [Utf16::Little, Utf16::Big] {
            let bare = utf16_bytes(text, order);
            let marked = utf16_bytes(&format!("\u{feff}{text}"), order);
            assert_eq!(decoded(&bare), text.as_bytes());
            assert_eq!(decoded(&marked), text.as_bytes());
        }
    }

    #[test]
    fn half_a_surrogate_and_an_odd_byte_do_no_harm() {
        assert_eq!(decoded(b"\xff\xfea\0\x00\xd8b\0c"), "a\u{fffd}b".as_bytes());
    }

    #[test]
    fn utf8_loses_its_mark_only() {
        assert_eq!(decoded(b"\xef\xbb\xbfline\r\n"), b"line\r\n");
        assert_eq!(decoded(b"a\0b\0\n"), b"a\0b\0\n");
        assert_eq!(decoded(b"latin \xe9\n"), b"latin \xe9\n");
    }

    #[test]
    fn a_whole_fence_opens_and_a_part_does_not() {
        let inside = |text: &str| fenced(&Bytes::from(text.as_bytes().to_vec())).map(|bytes| bytes.to_vec());
        assert_eq!(inside("\n```json\n{\"a\": 1}\n```\n"), Some(b"{\"a\": 1}\n".to_vec()));
        assert_eq!(inside("~~~\nx\n~~~"), Some(b"x\n".to_vec()));
        assert_eq!(inside("text\n```\nx\n```"), None);
        assert_eq!(inside("```\nx"), None);
        assert_eq!(inside("```"), None);
        assert_eq!(inside(""), None);
    }

    #[test]
    fn logs_with_holes_and_garbage_are_text() {
        assert!(!is_binary(b"plain \x1b[31mred\x1b[0m\r\n"));
        assert!(!is_binary("日本語のログ\n".as_bytes()));
        let hole = [vec![0; 100_000], b"NCCL WARN text\n".to_vec()].concat();
        assert!(!is_binary(&hole));
        let garbage: Vec<u8> = (0..50_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert!(is_binary(&garbage));
        assert!(!is_binary(&[garbage, b"INFO step 1 loss 2.5\n".repeat(2000)].concat()));
    }

    #[test]
    fn programs_and_pictures_are_not() {
        assert!(is_binary(b"\x7fELF\x02\x01\x01\0and much readable text after it, which changes nothing"));
        assert!(is_binary(&[0; 5000]));
    }
}
