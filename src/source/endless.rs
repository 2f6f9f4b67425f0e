//! Paths that may never end: pipes, terminals, devices.
//!
//! In: one that was opened without waiting. Out: its bytes, bounded, or a clause that says why there are none. A pipe is given
//! a while to find a writer and is then read to its end as standard input is; of a device only the beginning is read. It
//! leaves files to `open`.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::Limits;
use super::open::{Raw, size, stream, why};

/// Bytes of a device that are read: more than the kernel's own log holds, and `/dev/zero` is full of nothing.
const DEVICE_BYTES: u64 = 16 << 20;

/// How long a pipe may lie there before its writer opens it.
const WRITER_WITHIN: Duration = Duration::from_secs(5);

/// Reads what is no regular file.
pub(super) fn read(file: File, metadata: &Metadata, limits: &Limits) -> Result<Raw, String> {
    let kind = metadata.file_type();
    if (kind.is_char_device() || kind.is_block_device()) && !file.is_terminal() {
        return device(file, limits);
    }
    let first = match kind.is_fifo().then(|| first_byte(&file, WRITER_WITHIN)) {
        Some(Err(NobodyWrites)) => {
            let seconds = WRITER_WITHIN.as_secs();
            return Err(format!(
                "is a pipe that nobody writes to, for {seconds} seconds; start its writer first"
            ));
        }
        Some(Ok(first)) => first,
        None => None,
    };
    wait_for_bytes(&file).map_err(|error| why(&error))?;
    stream(io::Cursor::new(Vec::from_iter(first)).chain(file), limits)
}

/// The beginning of a device. One that has nothing to say at the moment is at its end.
fn device(file: File, limits: &Limits) -> Result<Raw, String> {
    let limit = DEVICE_BYTES.min(limits.expanded_bytes);
    let raw = stream(WithoutWaiting(file), &Limits { expanded_bytes: limit, ..*limits })?;
    let cut = raw.cut.map(|cut| {
        if raw.size_bytes < limit {
            cut
        } else {
            format!("it is a device, and only its first {} were read", size(limit))
        }
    });
    Ok(Raw { cut, ..raw })
}

/// No writer came.
struct NobodyWrites;

/// Waits until somebody has the other end open, or had it and left. A writer that has written nothing yet shows only by reading:
/// without one the pipe is at its end, with one it would wait. So a byte that came meanwhile is taken and given back.
fn first_byte(mut file: &File, within: Duration) -> Result<Option<u8>, NobodyWrites> {
    let end = Instant::now() + within;
    let step = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    loop {
        let mut byte = [0];
        let is_late = Instant::now() >= end;
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&step)) {
            Ok(0) => match file.read(&mut byte) {
                Ok(0) if is_late => return Err(NobodyWrites),
                Ok(0) => {}
                Ok(_) => return Ok(byte.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(None),
            },
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return Ok(None),
        }
    }
}

fn wait_for_bytes(file: &File) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    Ok(fcntl_setfl(file, flags - OFlags::NONBLOCK)?)
}

/// A reader to which "nothing now" is the end.
struct WithoutWaiting(File);

impl Read for WithoutWaiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            read => read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::open::open;
    use super::*;
    use std::path::{Path, PathBuf};

    fn pipe(folder: &Path) -> PathBuf {
        let path = folder.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        path
    }

    #[test]
    fn a_device_without_an_end_is_read_to_its_bound() {
        let limits = Limits { expanded_bytes: 5000, ..Limits::default() };
        let raw = open(Path::new("/dev/zero"), &limits).unwrap();
        assert_eq!(raw.bytes.len(), 5000);
        assert_eq!(raw.cut.as_deref(), Some("it is a device, and only its first 5 kB were read"));
        let raw = open(Path::new("/dev/null"), &Limits::default()).unwrap();
        assert_eq!((raw.bytes.len(), raw.cut), (0, None));
    }

    #[test]
    fn a_pipe_that_nobody_writes_is_given_up_and_a_late_writer_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(folder.path());
        let file = || {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            File::from(rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap())
        };
        assert!(first_byte(&file(), Duration::ZERO).is_err());
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut writer = File::options().write(true).open(path).unwrap();
                std::thread::sleep(Duration::from_millis(150));
                std::io::Write::write_all(&mut writer, b"CUDA error\n").unwrap();
            })
        };
        let raw = open(&path, &Limits::default()).unwrap();
        writer.join().unwrap();
        assert_eq!((&*raw.bytes, raw.cut), (&b"CUDA error\n"[..], None));
    }
}
