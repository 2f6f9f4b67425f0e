//! Bytes of an input, in memory or mapped.
//!
//! In: a vector, a mapping, or a stream of chunks ([`Spool`]). Out: [`Bytes`], cheap to clone and to slice. It leaves
//! opening files to `open`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::map::Mapping;

/// Read-only bytes; a clone shares them.
#[derive(Clone)]
pub struct Bytes {
    store: Arc<Store>,
    start: usize,
    end: usize,
}

enum Store {
    Owned(Vec<u8>),
    Mapped(Mapping),
}

impl Bytes {
    pub(super) fn mapped(mapping: Mapping) -> Self {
        let end = mapping.len();
        Self { store: Arc::new(Store::Mapped(mapping)), start: 0, end }
    }

    /// A part of these bytes; a range past the end is cut to what is there.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let len = self.len();
        let start = self.start + range.start.min(len);
        let end = self.start + range.end.clamp(range.start.min(len), len);
        Self { store: Arc::clone(&self.store), start, end }
    }

    /// Whether the bytes are a mapped file and not memory of this process.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        matches!(*self.store, Store::Mapped(_))
    }
}

impl Bytes {
    /// Whether they are a mapped file that was cut meanwhile, so that zeros were read in place of what stood there.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        matches!(&*self.store, Store::Mapped(mapping) if mapping.was_cut())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        Self { store: Arc::new(Store::Owned(bytes)), start: 0, end }
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all: &[u8] = match &*self.store {
            Store::Owned(bytes) => bytes,
            Store::Mapped(mapping) => mapping,
        };
        all.get(self.start..self.end).unwrap_or_default()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_mapped() { "mapped" } else { "owned" };
        write!(f, "Bytes({} {place})", self.len())
    }
}

/// Collects a stream: in memory up to a bound, then in an unnamed temporary file.
pub(super) struct Spool {
    memory: Vec<u8>,
    memory_limit: usize,
    file: Option<File>,
    len: u64,
}

impl Spool {
    pub(super) fn new(memory_limit: usize) -> Self {
        Self { memory: Vec::new(), memory_limit, file: None, len: 0 }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        if self.file.is_none() && self.memory.len() + chunk.len() > self.memory_limit {
            let mut file = tempfile::tempfile()?;
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(chunk)?,
            None => self.memory.extend_from_slice(chunk),
        }
        self.len += chunk.len() as u64;
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<Bytes> {
        match self.file {
            Some(file) => Ok(Bytes::mapped(Mapping::of_own(&file)?)),
            None => Ok(Bytes::from(self.memory)),
        }
    }
}

/// What [`drain`] took from a stream.
pub(super) struct Drained {
    pub(super) bytes: Bytes,
    /// Why the stream was left before its end; none where it ended.
    pub(super) cut: Option<Cut>,
}

/// Why a stream was left before its end.
pub(super) enum Cut {
    /// This many bytes were reached.
    Bound(u64),
    /// The stream or the temporary file failed.
    Failed(io::Error),
}

/// Takes a stream to its end, to `limit` bytes, or to its first error. What came before is kept.
///
/// # Errors
/// Only where what was taken can't be given back: the temporary file can't be mapped.
pub(super) fn drain(mut stream: impl Read, limit: u64, memory_limit: usize) -> io::Result<Drained> {
    let mut spool = Spool::new(memory_limit);
    let mut chunk = vec![0_u8; 256 << 10];
    let cut = loop {
        let room = limit.saturating_sub(spool.len());
        if room == 0 {
            // At the bound exactly, the stream may be at its end, too.
            match stream.read(chunk.get_mut(..1).unwrap_or_default()) {
                Ok(0) => break None,
                _ => break Some(Cut::Bound(limit)),
            }
        }
        let take = usize::try_from(room).unwrap_or(usize::MAX).min(chunk.len());
        match stream.read(chunk.get_mut(..take).unwrap_or_default()) {
            Ok(0) => break None,
            Ok(len) => {
                if let Err(error) = spool.push(chunk.get(..len).unwrap_or_default()) {
                    break Some(Cut::Failed(error));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(Cut::Failed(error)),
        }
    };
    Ok(Drained { bytes: spool.finish()?, cut })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_past_the_end_is_cut() {
        let bytes = Bytes::from(b"0123456789".to_vec());
        assert_eq!(&*bytes.slice(2..5), b"234");
        assert_eq!(&*bytes.slice(2..5).slice(1..99), b"34");
        assert_eq!(&*bytes.slice(20..30), b"");
    }

    #[test]
    fn a_stream_past_the_memory_bound_is_the_same_bytes() {
        let text: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let small = drain(&text[..], u64::MAX, usize::MAX).unwrap();
        let large = drain(&text[..], u64::MAX, 1000).unwrap();
        assert!(!small.bytes.is_mapped() && large.bytes.is_mapped());
        assert_eq!(&*small.bytes, &text[..]);
        assert_eq!(&*large.bytes, &text[..]);
    }

    #[test]
    fn a_bound_cuts_and_says_so() {
        let cut = drain(&b"0123456789"[..], 4, 1000).unwrap();
        assert_eq!(&*cut.bytes, b"0123");
        assert!(matches!(cut.cut, Some(Cut::Bound(4))));
        assert!(drain(&b"0123"[..], 4, 1000).unwrap().cut.is_none());
    }
}
