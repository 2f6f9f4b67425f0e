//! What buffers hold: contents from a rule.
//!
//! In: a rule and a size. Out: bytes, piece by piece. It touches no device.

use std::fs::File;
use std::io::Read;

use crate::probe::protocol::Fill;

/// Bytes of one piece that is copied at once.
pub const PIECE_BYTES: usize = 16 << 20;

/// Contents, read piece by piece.
pub struct Contents {
    rule: Fill,
    file: Option<File>,
    next: u64,
    random: u64,
}

impl Contents {
    /// Ready to produce the contents that a rule names.
    ///
    /// # Errors
    /// Of the file system, for a rule that names a file.
    pub fn open(rule: &Fill) -> std::io::Result<Self> {
        let file = match rule {
            Fill::File { path } => Some(File::open(path)?),
            _ => None,
        };
        Ok(Self { rule: rule.clone(), file, next: 0, random: 0x9e37_79b9_7f4a_7c15 })
    }

    /// Fills `piece` with what comes next. Pieces must be multiples of 8 bytes, the last one excepted.
    ///
    /// # Errors
    /// Of the file system, for a rule that names a file.
    pub fn fill(&mut self, piece: &mut [u8]) -> std::io::Result<()> {
        match self.rule.clone() {
            Fill::Zero => piece.fill(0),
            Fill::Value { element_bytes, value } => self.elements(piece, element_bytes, |_| value),
            Fill::Iota { element_bytes } => self.elements(piece, element_bytes, |own| {
                let value = own.next;
                own.next += 1;
                value.cast_signed()
            }),
            Fill::Random { element_bytes, low, high } => {
                let span = high.wrapping_sub(low).max(1).cast_unsigned();
                self.elements(piece, element_bytes, |own| {
                    low.wrapping_add((own.draw() % span).cast_signed())
                });
            }
            Fill::File { .. } => {
                let read = match &mut self.file {
                    Some(file) => read_fully(file, piece)?,
                    None => 0,
                };
                if let Some(rest) = piece.get_mut(read..) {
                    rest.fill(0);
                }
            }
        }
        Ok(())
    }

    fn elements(&mut self, piece: &mut [u8], element_bytes: u32, mut value: impl FnMut(&mut Self) -> i64) {
        let size = (element_bytes as usize).clamp(1, 8);
        for element in piece.chunks_mut(size) {
            let bytes = value(self).to_le_bytes();
            let length = element.len();
            element.copy_from_slice(bytes.get(..length).unwrap_or(&[]));
        }
    }

    /// Marsaglia's xorshift: the same numbers in every run.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

fn read_fully(file: &mut File, piece: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while let Some(rest) = piece.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            count => read += count,
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(rule: &Fill, size: usize) -> Vec<u8> {
        let mut contents = Contents::open(rule).unwrap();
        let mut out = vec![0xff; size];
        let (first, second) = out.split_at_mut(8);
        contents.fill(first).unwrap();
        contents.fill(second).unwrap();
        out
    }

    #[test]
    fn rules_go_on_over_pieces() {
        assert_eq!(bytes(&Fill::Iota { element_bytes: 4 }, 14), [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0]);
        assert_eq!(bytes(&Fill::Value { element_bytes: 2, value: -2 }, 10), [0xfe, 0xff].repeat(5));
        assert_eq!(bytes(&Fill::Zero, 9), [0; 9]);
        let random = bytes(&Fill::Random { element_bytes: 1, low: 3, high: 9 }, 64);
        assert!(
            random.iter().all(|byte| (3..9).contains(byte)) && random.iter().any(|byte| *byte != random[0])
        );
    }

    #[test]
    fn a_file_ends_in_zeros() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 10]).unwrap();
        let path = file.path().to_string_lossy().into_owned();
        assert_eq!(bytes(&Fill::File { path }, 12), [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0]);
    }
}
