//! Where bytes come from: files, folders, patterns, standard input, pastes, compressed files, files still being written.
//!
//! In: what the user named ([`InputSpec`]) and bounds ([`Limits`]). Out: [`Loaded`]: decoded inputs with their kind,
//! sniffed from their content, and one sentence for each thing that was left out. It leaves reading the content to
//! `read` and the other readers; it is the only room that opens inputs.

mod bytes;
mod cache;
mod compress;
mod cut;
mod decode;
mod endless;
mod follow;
mod hint;
mod kind;
mod load;
mod map;
mod open;
mod sniff;
mod walk;

pub use bytes::Bytes;
pub use follow::{Change, Follower};
pub use hint::{OutputStream, PathHint};
pub use kind::InputKind;
pub use load::load;
pub use sniff::sniff;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::Serialize;

use crate::text::LogText;

/// Position of an input in the list of inputs, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct InputId(pub u32);

/// What the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSpec {
    /// A file, or a folder to walk.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// A pattern such as `logs/rank*.log` or `run/**/stderr.log`.
    Glob(String),
    /// Text that was pasted or made by an action, under a name to show.
    Text {
        /// Name to show.
        name: String,
        /// The text.
        bytes: Vec<u8>,
    },
}

impl InputSpec {
    /// Reads an argument: `-` is standard input, an existing path is that path, another with `*`, `?` or `[` is a pattern.
    #[must_use]
    pub fn from_argument(argument: &OsStr) -> Self {
        if argument == "-" {
            return Self::Stdin;
        }
        let path = PathBuf::from(argument);
        match argument.to_str() {
            Some(text) if text.contains(['*', '?', '[']) && path.symlink_metadata().is_err() => {
                Self::Glob(text.to_owned())
            }
            _ => Self::Path(path),
        }
    }
}

/// Bounds that protect memory, disk and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes that one compressed file, or one stream, may become.
    pub expanded_bytes: u64,
    /// Most bytes out for each byte in, once more than [`Limits::FREE_BYTES`] came out.
    pub expansion: u64,
    /// Most bytes of a stream or an expanded file that are held in memory; the rest goes to a temporary file.
    pub memory_bytes: usize,
    /// Most files that are taken from folders and patterns.
    pub files: usize,
}

impl Limits {
    /// Bytes that any compressed file may become, however small it is.
    pub const FREE_BYTES: u64 = 1 << 30;
}

impl Default for Limits {
    fn default() -> Self {
        // A log of repeated lines reaches 200 : 1; past that it is a bomb more often than a log.
        Self { expanded_bytes: 8 << 30, expansion: 250, memory_bytes: 16 << 20, files: 100_000 }
    }
}

/// One input, decoded: text is UTF-8 as far as its writer knew UTF-8, without a byte order mark.
#[derive(Debug, Clone)]
pub struct Input {
    /// Its position in the list.
    pub id: InputId,
    /// Its name, to show.
    pub path: LogText,
    /// The file it came from; none for standard input and pastes.
    pub file: Option<PathBuf>,
    /// What it is.
    pub kind: InputKind,
    /// The decoded content; empty for [`InputKind::TritonCache`], whose content is in `parts`.
    pub bytes: Bytes,
    /// Bytes as given, before decompression and decoding.
    pub size_bytes: u64,
    /// Lines, where a reader counted them; loading doesn't.
    pub lines: Option<u64>,
    /// True where a bound or a broken file cut the content.
    pub truncated: bool,
    /// What the path says about the writer.
    pub hint: PathHint,
    /// Time of the last change, of files.
    pub modified: Option<SystemTime>,
    /// The files of an input that is a folder.
    pub parts: Vec<Part>,
}

/// A file of an input that is a folder.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its path below the input's.
    pub path: LogText,
    /// The file.
    pub file: PathBuf,
    /// What it is.
    pub kind: InputKind,
    /// Its content.
    pub bytes: Bytes,
    /// Time of its last change.
    pub modified: Option<SystemTime>,
}

/// Something that was named or found and is not among the inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name, to show.
    pub path: LogText,
    /// Why, and what to do about it, as a clause (`is an xz archive; run …`).
    pub why: String,
}

/// What loading gave.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The inputs, in the order in which they were named; folders in the order of their names, numbers by value.
    pub inputs: Vec<Input>,
    /// What is not among them.
    pub left_out: Vec<LeftOut>,
    /// Sentences about inputs that are there, but not whole.
    pub notes: Vec<String>,
}
