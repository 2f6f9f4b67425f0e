//! NCCL RAS: the answer of the status query and of the monitor, as text or JSON (formats.md 3.3).
//!
//! In: what `ncclras` or a raw connection printed, protocol lines included. Out: [`RasAnswer`]. It leaves alone what counts
//! that differ mean: `case::collectives` compares them. Ranks are those of the communicator; they are the job's only in a
//! communicator that spans it.

mod json;
mod text;

use serde::Serialize;

/// What RAS answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RasAnswer {
    /// NCCL version (`2.28.9`).
    pub nccl_version: Option<String>,
    /// Time of the answer as printed.
    pub timestamp: Option<String>,
    /// Communicators, in the answer's order.
    pub communicators: Vec<Communicator>,
    /// Processes that did not answer, named without their rank.
    pub absent: Vec<Process>,
    /// Events of the monitor.
    pub events: Vec<MonitorEvent>,
    /// Communication time-outs while the data was gathered.
    pub timeouts: u64,
    /// False where the answer ends early.
    pub complete: bool,
    /// Sentences about repairs and what was left out.
    pub diagnostics: Vec<String>,
}

/// One communicator.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Communicator {
    /// Hash without `0x` (`838cd01dee862fc2`).
    pub hash: String,
    /// Ranks that it was made for.
    pub size: Option<u32>,
    /// Ranks that answered and are named.
    pub ranks: Vec<RasRank>,
    /// Ranks that did not answer.
    pub missing: Vec<RasRank>,
    /// How many operations of each kind the ranks have launched; in the text form only kinds in which they differ.
    pub launched: Vec<Launched>,
    /// What the answer calls it (`MISMATCH`, `INCOMPLETE`, `ERROR`), in order.
    pub verdicts: Vec<String>,
}

/// A rank of a communicator and its process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RasRank {
    /// Rank in the communicator.
    pub rank: u32,
    /// Its process, where found.
    pub process: Option<Process>,
    /// Asynchronous error (`ncclResult_t`), 0 for none.
    pub async_error: Option<i64>,
    /// True where RAS gave it up for dead.
    pub dead: bool,
}

/// A process of the job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Host or address.
    pub host: Option<String>,
    /// Process id on its host.
    pub pid: Option<u32>,
    /// CUDA devices that it manages.
    pub gpus: Vec<u32>,
    /// True where RAS gave it up for dead.
    pub dead: bool,
}

/// Operations of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launched {
    /// Kind, upper case (`ALLREDUCE`).
    pub op: String,
    /// Ranks by count, the highest count first.
    pub counts: Vec<LaunchCount>,
}

/// Ranks that launched equally many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchCount {
    /// Operations launched.
    pub launched: u64,
    /// The ranks, as far as they are named.
    pub ranks: Vec<u32>,
    /// How many they are.
    pub total: u64,
}

/// An event of the monitor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MonitorEvent {
    /// Time as printed.
    pub timestamp: Option<String>,
    /// `LIFECYCLE` or `TRACE`; the text form doesn't print it.
    pub group: Option<String>,
    /// Kind of event (`PEER_DEAD`).
    pub event: String,
    /// The peer.
    pub peer: Process,
    /// Details as printed.
    pub details: String,
}

/// Reads an answer, text or JSON, whole or cut.
#[must_use]
pub fn read(bytes: &[u8]) -> RasAnswer {
    let mut answer = RasAnswer { complete: true, ..RasAnswer::default() };
    match json_start(bytes) {
        Some(start) => json::read(bytes, start, &mut answer),
        None => text::read(&String::from_utf8_lossy(bytes), &mut answer),
    }
    for communicator in &mut answer.communicators {
        for launched in &mut communicator.launched {
            launched.counts.sort_by_key(|count| std::cmp::Reverse(count.launched));
        }
    }
    answer
}

/// True where the bytes look like an answer of RAS or of its monitor.
#[must_use]
pub fn looks_like_ras(bytes: &[u8]) -> bool {
    let head = bytes.get(..bytes.len().min(1 << 14)).unwrap_or(bytes);
    let has = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
    if let Some(start) = json_start(head) {
        // Anything but protocol lines before the brace is a log that quotes JSON.
        return start < 200
            && (has("\"communicators_count\"") && has("\"nccl_version\"")
                || has("\"group\"") && has("\"event\"") && (has("\"LIFECYCLE\"") || has("\"TRACE\"")));
    }
    let lines = || head.split(|&byte| byte == b'\n').map(|line| String::from_utf8_lossy(line));
    has("Job summary\n") && has("NCCL version ")
        || has("Communicators...") && has("Status  Errors")
        || lines().take(20).any(|line| text::monitor_event(&line).is_some())
}

/// Offset of the brace that begins the answer: the first byte of a line, after protocol lines only.
fn json_start(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n').take(8) {
        let text = line.trim_ascii();
        if text.first() == Some(&b'{') {
            return Some(at + line.iter().position(|&byte| byte == b'{')?);
        }
        if !(text.is_empty() || is_protocol(text)) {
            return None;
        }
        at += line.len();
    }
    None
}

/// `SERVER PROTOCOL 2`, `OK`, and the client's own commands where the terminal echoed them.
fn is_protocol(line: &[u8]) -> bool {
    let upper = line.to_ascii_uppercase();
    let words: [&[u8]; 8] = [
        b"SERVER PROTOCOL",
        b"CLIENT PROTOCOL",
        b"OK",
        b"TIMEOUT",
        b"SET FORMAT",
        b"STATUS",
        b"VERBOSE STATUS",
        b"MONITOR",
    ];
    words.iter().any(|word| upper.starts_with(word))
}

#[cfg(test)]
mod tests;
