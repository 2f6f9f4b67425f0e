//! Files mapped into memory: the one place of this room that needs `unsafe`.
//!
//! In: an open file. Out: its bytes as long as the mapping lives; the file itself may be closed. It leaves choosing
//! between mapping and reading to `open`.

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// A mapped file.
pub(super) struct Mapping(Mmap);

impl Mapping {
    /// Maps a whole file.
    ///
    /// # Errors
    /// The operating system's: a file that can't be mapped (a pipe, some FUSE mounts), or too many mappings.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        #[expect(
            unsafe_code,
            reason = "a mapped file may change under the slice; callers map only files that nobody writes to: unnamed \
                      temporary files and files that have been still for a while. What remains is a file truncated or \
                      rewritten in the middle of an analysis: changed bytes read as other text, which every reader \
                      bears, and pages past the new end raise SIGBUS, which ends the process. A handler can't mend \
                      that portably, and reading a log of gigabytes into memory would break more runs than it saves"
        )]
        let mapping = unsafe { Mmap::map(file)? };
        Ok(Self(mapping))
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
