//! What stands before the message: rank tags, launchers, glog, journald, Ray, kubectl, quotes.
//!
//! In: one line. Out: the fields of its prefixes and where its message begins, with the message's own indentation kept,
//! since tracebacks need it. It leaves the message alone: `RuntimeError:` and `File "x"` are no prefix.

mod bracket;
mod glog;
mod names;
mod stamp;

use super::event::{Origin, Place};
use super::scan::{digits, small};

/// Most prefixes that one line may stack.
const STACK_LIMIT: usize = 12;

/// Reads the prefixes of `text`; returns their fields and the offset of the message.
#[must_use]
pub fn strip(text: &str) -> (Origin, usize) {
    let mut origin = Origin::default();
    let mut at = progress_bar(text).unwrap_or(0);
    for _ in 0..STACK_LIMIT {
        let rest = text.get(at..).unwrap_or("");
        match one(rest, &mut origin, at > 0) {
            Some(len) if len > 0 => at += len,
            _ => break,
        }
    }
    (origin, at.min(text.len()))
}

/// Reads a tag such as `[PG ID 0 PG GUID 0(default_pg) Rank 1]` or `[Rank 0]` that stands inside a message: the same
/// fields that [`strip`] reads before one.
pub fn group_tag(text: &str, origin: &mut Origin) {
    let Some(at) = text.find("[PG ") else { return };
    let rest = text.get(at + 1..).unwrap_or("");
    if let Some(inner) = rest.find(']').and_then(|end| rest.get(..end)) {
        let _ = glog::group(inner, origin);
    }
}

/// A source place such as `file.py:12` or `file.cc:12:function`.
#[must_use]
pub fn source_place(text: &str) -> Option<Place> {
    glog::source_place(text)
}

/// One prefix at the head of `text` and its length.
fn one(text: &str, origin: &mut Origin, nested: bool) -> Option<usize> {
    let lead = text.trim_start_matches([' ', '\t']);
    let indent = text.len() - lead.len();
    let first = *lead.as_bytes().first()?;
    if indent > 0 {
        return indented(lead, indent, first, origin, nested);
    }
    match first {
        b'[' => bracket::strip(text, origin, nested),
        b'(' => names::parenthesis(text, origin),
        b'>' => quote(text),
        b'<' => syslog_level(text),
        b'0'..=b'9' => numeric(text, origin),
        b'|' => group_margin(text),
        b'a'..=b'z' | b'A'..=b'Z' => lettered(text, origin, nested),
        byte if byte >= 0x80 => boxed(text).or_else(|| names::journal(text, origin)),
        _ => None,
    }
}

/// After blanks only heads that no message begins with count: a traceback's lines are indented too.
fn indented(lead: &str, indent: usize, first: u8, origin: &mut Origin, nested: bool) -> Option<usize> {
    let len = match first {
        b'[' if lead.starts_with("[rank") || lead.starts_with("[PG ") => bracket::strip(lead, origin, nested),
        b'(' if lead.get(1..2).is_some_and(|next| next.starts_with(|c: char| c.is_ascii_uppercase())) => {
            names::parenthesis(lead, origin)
        }
        b'|' => group_margin(lead),
        b'0'..=b'9' if indent <= 2 && !nested => task(lead, origin).filter(|len| indent + len <= 5),
        byte if byte >= 0x80 => boxed(lead),
        _ => None,
    }?;
    Some(indent + len)
}

/// `> ` of a quoted mail; `>>> ` is Python's prompt.
fn quote(text: &str) -> Option<usize> {
    if text.starts_with(">>>") || !text.starts_with("> ") && !text.starts_with(">[") {
        return None;
    }
    Some(if text.starts_with("> ") { 2 } else { 1 })
}

/// `<4>` of a raw kernel log, also `<134>1 ` of RFC 5424.
fn syslog_level(text: &str) -> Option<usize> {
    let (level, rest) = small(text.get(1..)?)?;
    let rest = rest.strip_prefix('>').filter(|_| level < 192)?;
    let rest = rest.strip_prefix("1 ").unwrap_or(rest);
    Some(text.len() - rest.len())
}

/// `│ ` of a drawn box and `❱`-free margins.
fn boxed(text: &str) -> Option<usize> {
    let rest = ["│", "┃", "║"].iter().find_map(|bar| text.strip_prefix(bar))?;
    Some(text.len() - rest.strip_prefix(' ').unwrap_or(rest).len())
}

/// `| ` in front of a traceback inside an exception group.
fn group_margin(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("| ")?;
    let lead = rest.trim_start();
    let python = lead.starts_with("Traceback (") || lead.starts_with("File \"") || rest.starts_with("    ");
    (python && !rest.trim_end().ends_with('|')).then_some(2)
}

/// Heads that begin with a digit: stamps, `3: ` of `srun -l`, `4,9921,152789234,-;` of /dev/kmsg, a host's address.
fn numeric(text: &str, origin: &mut Origin) -> Option<usize> {
    if let Some((time, len)) = stamp::leading(text) {
        let rest = text.get(len..)?;
        if !rest.is_empty() && !rest.starts_with([' ', '\t', ':', ',', '|', '[']) {
            return None;
        }
        origin.time = Some(time);
        return Some(len + after_time(rest, origin));
    }
    task(text, origin)
        .or_else(|| kmsg(text, origin))
        .or_else(|| talos(text, origin))
        .or_else(|| names::journal(text, origin))
        .or_else(|| names::nccl(text, origin))
        .or_else(|| names::host(text, origin))
}

/// What follows a stamp at the head of a line; its length.
fn after_time(rest: &str, origin: &mut Origin) -> usize {
    for stream in [" stdout F ", " stderr F ", " stdout P ", " stderr P "] {
        if rest.starts_with(stream) {
            return stream.len();
        }
    }
    let lead = rest.trim_start_matches(' ');
    if lead.starts_with(['[', '(']) {
        return rest.len() - lead.len();
    }
    if let Some(len) = glog::after_stamp(rest, origin) {
        return len;
    }
    let one = usize::from(rest.starts_with([' ', '\t']));
    one + rest.get(one..).and_then(|text| names::sender(text, origin)).unwrap_or(0)
}

/// `3: ` of `srun -l`: the task, which is the rank in a job with one task a rank. TensorRT's `1: [file.cpp::name::24]`
/// counts kinds of errors.
fn task(text: &str, origin: &mut Origin) -> Option<usize> {
    let (value, rest) = small(text)?;
    let rest = rest.strip_prefix(": ")?;
    let tensorrt = rest.starts_with('[') && super::scan::before(rest, "]").contains("::");
    let frame =
        rest.starts_with("0x") || rest.starts_with("/lib") || rest.contains("::") && !rest.contains(' ');
    if value >= 100_000 || tensorrt || frame {
        return None;
    }
    origin.rank = Some(value);
    Some(text.len() - rest.len())
}

/// `4,9921,152789234,-;text`: level, sequence number, microseconds since boot.
fn kmsg(text: &str, origin: &mut Origin) -> Option<usize> {
    let (_, rest) = digits(text)?;
    let (_, rest) = digits(rest.strip_prefix(',')?)?;
    let (micros, rest) = digits(rest.strip_prefix(',')?)?;
    let message = rest.strip_prefix(',')?.find(';').and_then(|at| rest.get(at + 2..))?;
    origin.time = Some(super::event::Stamp {
        text: micros.to_string(),
        ns: i128::from(micros) * 1_000,
        clock: super::event::Clock::Boot,
    });
    Some(text.len() - message.len())
}

/// Talos: `10.0.0.1: kern: warning: [2024-01-01T12:00:00Z]: `.
fn talos(text: &str, origin: &mut Origin) -> Option<usize> {
    let (address, rest) = text.split_once(": kern: ")?;
    if address.contains(' ') {
        return None;
    }
    let (_, rest) = rest.split_once(": ")?;
    origin.host = Some(address.to_owned());
    if let Some(inner) = rest.strip_prefix('[')
        && let Some((time, _)) = stamp::leading(inner)
    {
        origin.time = Some(time);
        let tail = rest.split_once(']').map_or(rest, |(_, tail)| tail);
        return Some(text.len() - tail.trim_start_matches([':', ' ']).len());
    }
    Some(text.len() - rest.len())
}

fn lettered(text: &str, origin: &mut Origin, nested: bool) -> Option<usize> {
    let second = *text.as_bytes().get(1)?;
    if second.is_ascii_digit()
        && let Some(len) = glog::bare(text, origin)
    {
        return Some(len);
    }
    severity_head(text, origin, nested)
        .or_else(|| rank_word(text, origin))
        .or_else(|| names::nccl(text, origin))
        .or_else(|| names::journal(text, origin))
        .or_else(|| names::host(text, origin))
}

/// `ERROR 09-27 06:46:46 [engine.py:157] `, `ERROR 09-27 06:46:46 engine.py:157] `, `ERROR:torch.x.api:`.
fn severity_head(text: &str, origin: &mut Origin, nested: bool) -> Option<usize> {
    let end = text.bytes().take(12).position(|byte| matches!(byte, b' ' | b':'))?;
    let level = text.get(..end)?;
    if !level.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let severity = glog::word(level)?;
    let rest = text.get(end..)?;
    if let Some(logger) = rest.strip_prefix(':').filter(|rest| !rest.starts_with(' ')) {
        let name = super::scan::before(logger, ":");
        let dotted = !name.is_empty()
            && name.len() < logger.len()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
        if !dotted {
            return None;
        }
        origin.severity = Some(severity);
        return Some(end + 1 + name.len() + 1);
    }
    let lead = rest.trim_start_matches(' ');
    let Some((time, len)) = stamp::leading(lead) else {
        let counts = nested && rest.starts_with(' ');
        if counts {
            origin.severity = Some(severity);
        }
        return counts.then_some(end + 1);
    };
    origin.severity = Some(severity);
    origin.time = Some(time);
    let tail = lead.get(len..)?;
    let place_lead = tail.trim_start_matches(' ');
    let at = text.len() - place_lead.len();
    let place = place_lead.strip_prefix('[').unwrap_or(place_lead);
    let close = place.bytes().take(160).position(|byte| byte == b']');
    if let Some(close) = close
        && let Some(logger) = place.get(..close).and_then(glog::source_place)
    {
        origin.logger = Some(logger);
        let end = at + usize::from(place_lead.starts_with('[')) + close + 1;
        return Some(end + usize::from(text.as_bytes().get(end) == Some(&b' ')));
    }
    Some(at)
}

/// `rank0: `, `Rank 3: `.
fn rank_word(text: &str, origin: &mut Origin) -> Option<usize> {
    let rest = text.strip_prefix("rank").or_else(|| text.strip_prefix("Rank"))?;
    let (rank, rest) = small(rest.trim_start_matches(' '))?;
    let rest = rest.strip_prefix(": ")?;
    origin.rank = Some(rank);
    Some(text.len() - rest.len())
}

/// Where the message begins on a line that a progress bar wrote on first.
fn progress_bar(text: &str) -> Option<usize> {
    const HEADS: [&str; 7] =
        ["[rank", "[Rank ", "[E ", "[E0", "[E1", "Traceback (most recent call last)", "terminate called"];
    let bar = memchr::memmem::find(text.as_bytes(), b"%|")
        .or_else(|| memchr::memmem::find(text.as_bytes(), b"it/s"))
        .or_else(|| memchr::memmem::find(text.as_bytes(), b"s/it"))?;
    let rest = text.get(bar..)?;
    let mut found = HEADS.iter().filter_map(|head| rest.find(head)).min();
    if found.is_none() {
        found = rest.find("[E").filter(|&at| rest.as_bytes().get(at + 2).is_some_and(u8::is_ascii_digit));
    }
    found.map(|at| bar + at)
}

#[cfg(test)]
mod tests;
