//! A file that is still being written.
//!
//! In: a path, and a call every 250 ms or so. Out: what was appended since the last call, or that the file was cut or
//! replaced. It asks the file's state instead of waiting for notices, because those don't cross network file
//! systems, the usual home of training logs. It leaves time and threads to its caller.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::walk::identity;

/// Most bytes that one call gives; a caller that gets this many calls again at once.
pub const STEP_BYTES: u64 = 4 << 20;

/// Where the following of a file stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    at: u64,
}

/// What happened to a followed file since the last call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// These bytes were appended; at most `STEP_BYTES`.
    Appended(Vec<u8>),
    /// The file was cut, or another one has its name now: what was read before is history, and these are the first bytes.
    Restarted(Vec<u8>),
    /// No file has this name at the moment (a rotation); it may come back.
    Gone,
}

impl Follower {
    /// Follows `path` from its beginning. The file need not exist yet.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), identity: None, at: 0 }
    }

    /// Follows `path` from `at` bytes on, after those were read by other means.
    #[must_use]
    pub fn from_offset(path: &Path, at: u64) -> Self {
        let identity = path.metadata().ok().map(|metadata| identity(&metadata));
        Self { path: path.to_path_buf(), identity, at }
    }

    /// Bytes read so far of the present file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Reads what is new.
    ///
    /// # Errors
    /// The operating system's, but for a missing file, which is [`Change::Gone`]. A later call may succeed.
    pub fn poll(&mut self) -> io::Result<Change> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Change::Gone),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        let now = identity(&metadata);
        let restarted = self.identity.is_some_and(|before| before != now) || metadata.len() < self.at;
        if restarted {
            self.at = 0;
        }
        self.identity = Some(now);
        let mut bytes = Vec::new();
        if metadata.len() > self.at {
            file.seek(SeekFrom::Start(self.at))?;
            file.take(STEP_BYTES).read_to_end(&mut bytes)?;
        }
        self.at += bytes.len() as u64;
        Ok(match bytes.is_empty() {
            _ if restarted => Change::Restarted(bytes),
            true => Change::None,
            false => Change::Appended(bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    fn append(path: &Path, text: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn appended_bytes_come_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.log");
        let mut follower = Follower::new(&path);
        assert_eq!(follower.poll().unwrap(), Change::Gone);
        append(&path, "one\nhal");
        assert_eq!(follower.poll().unwrap(), Change::Appended(b"one\nhal".to_vec()));
        assert_eq!(follower.poll().unwrap(), Change::None);
        append(&path, "f\n");
        assert_eq!(follower.poll().unwrap(), Change::Appended(b"f\n".to_vec()));
        assert_eq!(follower.offset(), 9);
    }

    #[test]
    fn a_cut_and_a_replaced_file_start_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.log");
        append(&path, "a long first run\n");
        let mut follower = Follower::from_offset(&path, 17);
        assert_eq!(follower.poll().unwrap(), Change::None);
        fs::write(&path, "short\n").unwrap();
        assert_eq!(follower.poll().unwrap(), Change::Restarted(b"short\n".to_vec()));
        let other = folder.path().join("new.log");
        fs::write(&other, "another file, longer than before\n").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(
            follower.poll().unwrap(),
            Change::Restarted(b"another file, longer than before\n".to_vec())
        );
        fs::remove_file(&path).unwrap();
        assert_eq!(follower.poll().unwrap(), Change::Gone);
    }

    #[test]
    fn a_large_file_comes_in_steps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.log");
        let len = usize::try_from(STEP_BYTES).unwrap() + 5;
        fs::write(&path, vec![b'x'; len]).unwrap();
        let mut follower = Follower::new(&path);
        let steps: Vec<usize> = std::iter::from_fn(|| match follower.poll().unwrap() {
            Change::Appended(bytes) => Some(bytes.len()),
            _ => None,
        })
        .collect();
        assert_eq!(steps, [len - 5, 5]);
    }
}
