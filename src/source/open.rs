//! One path to bytes.
//!
//! In: a path. Out: its raw bytes (mapped where it is a file at rest, read otherwise), or a clause that says why not. Pipes and
//! devices are bounded in `endless`. It leaves decompression and decoding to `compress` and `decode`.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::Limits;
use super::bytes::{Bytes, Cut, drain};
use super::endless;
use super::map::Mapping;

/// Files up to this size are read: a mapping costs a page and an entry in the kernel's table however small it is.
const READ_BYTES: u64 = 16 << 10;

/// Files up to this size are read while the bytes read so are fewer than [`KEPT_BYTES`]: what is in memory stays, whatever
/// becomes of the file. Most logs are such files; a job's thousands of them are mapped.
const KEEP_BYTES: u64 = 4 << 20;

/// Most bytes that are kept so by a process.
const KEPT_BYTES: u64 = 64 << 20;

static KEPT: AtomicU64 = AtomicU64::new(0);

/// A file changed this recently may still be written to, or cut by a rotation, so it is copied and not mapped.
const STILL_FOR: Duration = Duration::from_secs(2);

/// Raw bytes of a path.
pub(super) struct Raw {
    pub(super) bytes: Bytes,
    pub(super) size_bytes: u64,
    pub(super) modified: Option<SystemTime>,
    /// Why these are not all of its bytes.
    pub(super) cut: Option<String>,
}

/// Reads or maps a path that is no folder.
pub(super) fn open(path: &Path, limits: &Limits) -> Result<Raw, String> {
    // Opening a pipe that nobody writes would wait, and so would reading /proc/kmsg to its end. Files on a disk don't care.
    let no_wait = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(no_wait).open(path).map_err(|error| why(&error))?;
    let metadata = file.metadata().map_err(|error| why(&error))?;
    let modified = metadata.modified().ok();
    if !metadata.is_file() {
        return endless::read(file, &metadata, limits);
    }
    let size_bytes = metadata.len();
    if size_bytes <= READ_BYTES || is_kept(size_bytes) {
        return read_small(file, modified);
    }
    if is_still(&metadata)
        && let Ok(mapping) = Mapping::of(&file)
    {
        return Ok(Raw { bytes: Bytes::mapped(mapping), size_bytes, modified, cut: None });
    }
    // Only as far as the file reached when it was opened: one that grows faster than it is read has no end.
    let copied = stream(file.take(size_bytes), limits)?;
    Ok(Raw { modified, ..copied })
}

/// Takes a stream, bounded.
pub(super) fn stream(stream: impl Read, limits: &Limits) -> Result<Raw, String> {
    let drained = drain(stream, limits.expanded_bytes, limits.memory_bytes)
        .map_err(|error| format!("can't be kept in a temporary file: {error}"))?;
    let cut = drained.cut.map(|cut| match cut {
        Cut::Bound(limit) => format!("only its first {} were read", size(limit)),
        Cut::Failed(error) => {
            format!("reading stopped after {}: {}", size(drained.bytes.len() as u64), why(&error))
        }
    });
    let size_bytes = drained.bytes.len() as u64;
    Ok(Raw { bytes: drained.bytes, size_bytes, modified: None, cut })
}

fn read_small(mut file: File, modified: Option<SystemTime>) -> Result<Raw, String> {
    let mut bytes = Vec::new();
    // Files under /proc and /sys say they are empty and are not.
    let cap = 64 << 20;
    match file.by_ref().take(cap).read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if bytes.is_empty() => return Err(why(&error)),
        Err(_) => {}
    }
    let size_bytes = bytes.len() as u64;
    let cut = (size_bytes == cap).then(|| format!("only its first {} were read", size(cap)));
    Ok(Raw { bytes: Bytes::from(bytes), size_bytes, modified, cut })
}

/// Whether a file of this size is read into memory, which counts it.
fn is_kept(size_bytes: u64) -> bool {
    size_bytes <= KEEP_BYTES
        && KEPT.fetch_add(size_bytes, Ordering::Relaxed).saturating_add(size_bytes) <= KEPT_BYTES
}

fn is_still(metadata: &Metadata) -> bool {
    metadata
        .modified()
        .is_ok_and(|modified| SystemTime::now().duration_since(modified).is_ok_and(|age| age >= STILL_FOR))
}

/// An error of the operating system as a clause with the next step.
pub(super) fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist; check the spelling and the working folder".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "may not be read by this user; copy it, or run as a user who may read it".to_owned()
        }
        io::ErrorKind::NotADirectory => "does not exist: a part of its path is a file".to_owned(),
        io::ErrorKind::StaleNetworkFileHandle => {
            "was replaced on its file server while it was read; try again".to_owned()
        }
        io::ErrorKind::StorageFull => {
            "needs more room than the temporary folder has; set TMPDIR to a larger one".to_owned()
        }
        _ => format!("can't be read: {error}"),
    }
}

/// A number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_of(len: usize, age: Duration) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![b'x'; len]).unwrap();
        file.as_file().set_modified(SystemTime::now() - age).unwrap();
        file
    }

    #[test]
    fn files_at_rest_are_mapped_and_fresh_ones_copied() {
        let old = open(file_of(5_000_000, Duration::from_secs(60)).path(), &Limits::default()).unwrap();
        let fresh = open(file_of(5_000_000, Duration::ZERO).path(), &Limits::default()).unwrap();
        assert!(old.bytes.is_mapped() && !fresh.bytes.is_mapped());
        assert_eq!((old.bytes.len(), fresh.bytes.len()), (5_000_000, 5_000_000));
    }

    #[test]
    fn a_missing_file_says_so() {
        let error = open(Path::new("/nowhere/run.log"), &Limits::default()).err().unwrap();
        assert_eq!(error, "does not exist; check the spelling and the working folder");
    }

    #[test]
    fn files_of_the_kernel_that_claim_no_size_are_read() {
        if Path::new("/proc/self/status").exists() {
            assert!(!open(Path::new("/proc/self/status"), &Limits::default()).unwrap().bytes.is_empty());
        }
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(999), "999 bytes");
        assert_eq!(size(8_589_934_592), "8.5 GB");
    }
}
