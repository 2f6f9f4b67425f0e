//! Where in the source a compiled operation came from, and what a reader could not make sense of.
//!
//! In: `loc(…)` of TTIR and `.loc` of PTX. Out: one shape for both. It opens no file.

/// A place in a source file. Lines and columns count from 1; 0 means that the compiler gave none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The file as the compiler recorded it.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column, as the compiler counts.
    pub column: u32,
}

impl Location {
    /// The file's name without its folders.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file)
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file_name(), self.line)
    }
}

/// Something in the input that was not understood. The rest was read nevertheless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The line of the input, counted from 1; 0 where it concerns the whole.
    pub line: u32,
    /// What was wrong.
    pub message: String,
}

impl Complaint {
    /// A complaint about one line.
    pub fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}
