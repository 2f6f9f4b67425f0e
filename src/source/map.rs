//! Files mapped into memory.
//!
//! In: an open file. Out: its bytes as long as the mapping lives; the file itself may be closed. It leaves choosing
//! between mapping and reading to `open`, and what becomes of a file that is cut meanwhile to `cut`.

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

use super::cut::Guard;

/// A mapped file.
pub(super) struct Mapping {
    // Before the pages: what is no longer guarded may go.
    guard: Option<Guard>,
    pages: Mmap,
}

impl Mapping {
    /// Maps a whole file that others may cut.
    ///
    /// # Errors
    /// The operating system's: a file that can't be mapped (a pipe, some FUSE mounts), or too many mappings.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let Self { pages, .. } = Self::of_own(file)?;
        let guard = Guard::of(&pages);
        if guard.is_none() && Guard::NEEDED {
            return Err(io::Error::other("no further mapping can be guarded"));
        }
        Ok(Self { guard, pages })
    }

    /// Maps a whole file that nobody else can name.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn of_own(file: &File) -> io::Result<Self> {
        #[expect(
            unsafe_code,
            reason = "a mapped file may change under the slice: unnamed temporary files don't, and of others only those are \
                      mapped that have been still for a while. What remains is a file that is rewritten or cut in the \
                      middle of an analysis: changed bytes read as other text, which every reader bears, and missing \
                      pages read as zeros (`cut`)"
        )]
        let pages = unsafe { Mmap::map(file)? };
        Ok(Self { guard: None, pages })
    }

    /// Whether the file was cut, and pages of it were missing when they were read.
    pub(super) fn was_cut(&self) -> bool {
        self.guard.as_ref().is_some_and(Guard::was_cut)
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.pages
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;

    /// Without the guard, the sum would end the process.
    #[test]
    fn a_file_that_is_cut_while_it_is_mapped_reads_as_zeros() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        let mapping = Mapping::of(&file).unwrap();
        let other = Mapping::of(&file).unwrap();
        assert!(mapping.iter().all(|byte| *byte == 1) && !mapping.was_cut());
        file.set_len(100).unwrap();
        let sum: usize = mapping.iter().map(|byte| usize::from(*byte)).sum();
        assert_eq!((sum, mapping.len(), mapping.was_cut()), (100, 1 << 20, true));
        assert!(!other.was_cut());
        // The handler serves again, from several threads at once.
        let sums: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| other.iter().map(|byte| usize::from(*byte)).sum())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!((sums, other.was_cut()), (vec![100; 4], true));
    }
}
