//! What a command prints, kept within bounds: the head in a file, the tail in memory until the end.
//!
//! In: chunks. Out: a log file that begins with the command and ends with how it ended, as a shell's transcript would.
//! Two gigabytes of output cost the two bounds and no more.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Bounds of a kept output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Bytes of the head, written as they come.
    pub head_bytes: u64,
    /// Bytes of the tail, held in memory.
    pub tail_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        // A crash stands at the end of a log, its first error near the head.
        Self { head_bytes: 64 << 20, tail_bytes: 8 << 20 }
    }
}

/// The output of a running command.
pub(super) struct Output {
    file: BufWriter<File>,
    bounds: Bounds,
    head: u64,
    /// At most twice the bound: cut in one move when it is full, and once at the end.
    tail: Vec<u8>,
    total: u64,
    last: u8,
}

impl Output {
    /// Begins a log with the command that makes it.
    pub fn new(file: File, command: &str, bounds: Bounds) -> io::Result<Self> {
        let mut file = BufWriter::new(file);
        writeln!(file, "$ {command}")?;
        Ok(Self { file, bounds, head: 0, tail: Vec::new(), total: 0, last: b'\n' })
    }

    /// Bytes that came so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Takes a chunk.
    pub fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.total += chunk.len() as u64;
        self.last = chunk.last().copied().unwrap_or(self.last);
        let room = usize::try_from(self.bounds.head_bytes - self.head).unwrap_or(usize::MAX);
        let (head, rest) = chunk.split_at(room.min(chunk.len()));
        self.file.write_all(head)?;
        self.head += head.len() as u64;
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * self.bounds.tail_bytes {
            self.cut_tail();
        }
        Ok(())
    }

    fn cut_tail(&mut self) {
        let over = self.tail.len().saturating_sub(self.bounds.tail_bytes);
        self.tail.drain(..over);
    }

    /// What came so far is in the file when this returns.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Writes the tail and how it ended.
    pub fn finish(mut self, ending: &str) -> io::Result<()> {
        self.cut_tail();
        let left_out = self.total - self.head - self.tail.len() as u64;
        if left_out > 0 {
            writeln!(self.file, "\n[{left_out} bytes left out]")?;
        }
        self.file.write_all(&self.tail)?;
        if self.last != b'\n' {
            writeln!(self.file)?;
        }
        writeln!(self.file, "{ending}")?;
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bounds: Bounds, chunks: &[&[u8]]) -> (u64, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut output = Output::new(File::create(&path).unwrap(), "prog", bounds).unwrap();
        for chunk in chunks {
            output.push(chunk).unwrap();
        }
        let total = output.total();
        output.finish("exit status 0").unwrap();
        (total, std::fs::read_to_string(path).unwrap())
    }

    #[test]
    fn short_output_is_kept_whole() {
        let bounds = Bounds { head_bytes: 4, tail_bytes: 4 };
        assert_eq!(kept(bounds, &[b"abc"]), (3, "$ prog\nabc\nexit status 0\n".to_owned()));
        assert_eq!(kept(bounds, &[b"abcdef\n"]), (7, "$ prog\nabcdef\nexit status 0\n".to_owned()));
    }

    #[test]
    fn long_output_keeps_head_and_tail_and_says_what_is_missing() {
        let bounds = Bounds { head_bytes: 4, tail_bytes: 4 };
        let want = "$ prog\nabcd\n[4 bytes left out]\nijkl\nexit status 0\n".to_owned();
        assert_eq!(kept(bounds, &[b"abcdefghijkl"]), (12, want.clone()));
        let single: Vec<&[u8]> = b"abcdefghijkl".chunks(1).collect();
        assert_eq!(kept(bounds, &single), (12, want));
    }
}
