//! Heads of glog, its PyTorch dialect and Python's loggers: severity, time, place.
//!
//! In: text at a head. Out: fields of [`Origin`] and the head's length. It leaves rank tags and hosts to its siblings.

use super::super::event::{GroupRank, Origin, Place, Severity};
use super::super::scan::{between, small, small_after};
use super::stamp;

/// Longest source place that a head may hold.
const PLACE_LIMIT_BYTES: usize = 160;

/// Severity of glog's letter.
pub fn letter(byte: u8) -> Option<Severity> {
    Some(match byte {
        b'D' | b'V' => Severity::Debug,
        b'I' => Severity::Info,
        b'W' => Severity::Warning,
        b'E' => Severity::Error,
        b'F' | b'C' => Severity::Fatal,
        _ => return None,
    })
}

/// Severity of a logger's word in any case.
pub fn word(text: &str) -> Option<Severity> {
    const WORDS: [(&str, Severity); 16] = [
        ("trace", Severity::Debug),
        ("debug", Severity::Debug),
        ("info", Severity::Info),
        ("information", Severity::Info),
        ("notice", Severity::Info),
        ("success", Severity::Info),
        ("warn", Severity::Warning),
        ("warning", Severity::Warning),
        ("err", Severity::Error),
        ("error", Severity::Error),
        ("severe", Severity::Error),
        ("critical", Severity::Fatal),
        ("crit", Severity::Fatal),
        ("fatal", Severity::Fatal),
        ("emerg", Severity::Fatal),
        ("alert", Severity::Fatal),
    ];
    WORDS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|&(_, severity)| severity)
}

/// The inside of `[E1129 19:41:59.757 ProcessGroupNCCL.cpp:2119]` or of the old `[E ProcessGroupNCCL.cpp:566]`.
pub fn bracketed(inner: &str, origin: &mut Origin) -> Option<()> {
    let severity = letter(*inner.as_bytes().first()?)?;
    let rest = inner.get(1..)?;
    let (time, rest) = match stamp::glog(rest) {
        Some((time, len)) => (Some(time), rest.get(len..)?),
        None => (None, rest),
    };
    let place = source_place(rest.strip_prefix(' ')?.trim())?;
    origin.severity = Some(severity);
    origin.logger = Some(place);
    if time.is_some() {
        origin.time = time;
    }
    Some(())
}

/// `E0116 12:34:56.789012 12345 file.cc:123] ` without its opening bracket; the thread or process id may be missing.
pub fn bare(text: &str, origin: &mut Origin) -> Option<usize> {
    let severity = letter(*text.as_bytes().first()?)?;
    let (time, len) = stamp::glog(text.get(1..)?)?;
    let rest = text.get(1 + len..)?;
    let close = rest.bytes().take(PLACE_LIMIT_BYTES).position(|byte| byte == b']')?;
    let inner = rest.get(..close)?.trim();
    let (pid, place) = match small(inner) {
        Some((pid, tail)) if tail.starts_with(' ') => (Some(pid), tail.trim()),
        _ => (None, inner),
    };
    let place = source_place(place)?;
    let end = 1 + len + close + 1;
    origin.severity = Some(severity);
    origin.time = Some(time);
    origin.logger = Some(place);
    origin.pid = pid.or(origin.pid);
    Some(end + usize::from(text.as_bytes().get(end) == Some(&b' ')))
}

/// `file.py:12`, `file.cc:12:function`, `torch/x/api.py:986`.
pub fn source_place(text: &str) -> Option<Place> {
    let (file, rest) = text.split_once(':')?;
    if file.is_empty() || file.contains([' ', '[', '(', '\'', '"']) || !file.contains('.') {
        return None;
    }
    let (line, rest) = small(rest)?;
    let function = match rest.strip_prefix(':') {
        Some(name) if !name.is_empty() && !name.contains(' ') => Some(name.to_owned()),
        None if rest.is_empty() => None,
        _ => return None,
    };
    Some(Place { file: file.to_owned(), line: Some(line), function })
}

/// The inside of `[PG ID 0 PG GUID 0(default_pg) Rank 1]` and of its older forms `[PG 3 Rank 0]`, `[PG 0 (default_pg)
/// Rank 1]`, `[PG ID 2 ... Rank 3]`. The rank is the group's own; it is the global one in the default group.
pub fn group(inner: &str, origin: &mut Origin) -> Option<()> {
    if !inner.starts_with("PG ") {
        return None;
    }
    let rank = small_after(inner, "Rank ")?;
    let head = super::super::scan::before(inner, "Rank ").trim();
    let named = between(head, "(", ")").filter(|name| !name.is_empty());
    let guid = head.split_once("GUID ").map(|(_, rest)| rest);
    let id = head.strip_prefix("PG ID ").or_else(|| head.strip_prefix("PG "));
    let number = |text: &str| text.split([' ', '(']).next().unwrap_or("").to_owned();
    let group = match (named, guid, id) {
        (Some(name), _, _) => name.to_owned(),
        (None, Some(guid), _) => number(guid),
        (None, None, Some(id)) => number(id),
        (None, None, None) => String::new(),
    };
    let default = group == "default_pg" || group == "0" || id.is_some_and(|id| number(id) == "0");
    if default && origin.rank.is_none() {
        origin.rank = Some(rank);
    }
    origin.group = Some(GroupRank { group, rank: Some(rank) });
    Some(())
}

/// What loggers print between a time stamp and the message: `- name - ERROR - `, `| ERROR    | module:function:12 - `,
/// `ERROR worker.py:12 -- `, `: E file.cc:12] `, `torch.x.api: [ERROR] `, `[ERROR] `.
pub fn after_stamp(text: &str, origin: &mut Origin) -> Option<usize> {
    let mut at = text.len() - text.trim_start_matches([' ', '\t', ':', ',', '-', '|']).len();
    if let Some(end) = tensorflow(text, at, origin) {
        return Some(end);
    }
    let lead = text.get(at..)?;
    let first = lead.split([' ', '\t']).next()?;
    let bare_first = first.trim_matches(['[', ']', ':', '|', '<', '>']);
    if let Some(severity) = word(bare_first).filter(|_| bare_first.len() > 2) {
        origin.severity = Some(severity);
        at += first.len();
        return Some(at + place_and_dash(text.get(at..)?, origin));
    }
    named_logger(text, at, origin)
}

/// TensorFlow and XLA: `: E external/xla/file.cc:123] `.
fn tensorflow(text: &str, at: usize, origin: &mut Origin) -> Option<usize> {
    let lead = text.get(at..)?;
    let severity = letter(*lead.as_bytes().first()?)?;
    let rest = lead.get(1..)?.strip_prefix(' ')?;
    let close = rest.bytes().take(PLACE_LIMIT_BYTES).position(|byte| byte == b']')?;
    origin.logger = Some(source_place(rest.get(..close)?)?);
    origin.severity = Some(severity);
    let end = at + 2 + close + 1;
    Some(end + usize::from(text.as_bytes().get(end) == Some(&b' ')))
}

/// A logger's name, then its severity: `name - ERROR - `, `torch.x.api: [ERROR] `.
fn named_logger(text: &str, at: usize, origin: &mut Origin) -> Option<usize> {
    let lead = text.get(at..)?;
    let name = lead.split([' ', '\t']).next()?;
    if name.len() > 120 || name.is_empty() {
        return None;
    }
    let rest = lead.get(name.len()..)?;
    let skipped = rest.len() - rest.trim_start_matches([' ', '-', '|', ':']).len();
    let second = rest.get(skipped..)?.split([' ', '\t']).next()?;
    let severity = word(second.trim_matches(['[', ']', ':', '|'])).filter(|_| second.len() > 2)?;
    let end = at + name.len() + skipped + second.len();
    origin.severity = Some(severity);
    Some(end + place_and_dash(text.get(end..)?, origin))
}

/// `worker.py:12 -- `, ` - name - `, ` | module:function:12 - `, or one blank; the length.
fn place_and_dash(text: &str, origin: &mut Origin) -> usize {
    let blanks = text.len() - text.trim_start_matches([' ', '\t']).len();
    let Some(rest) = text.get(blanks..) else { return 0 };
    let marked = rest.trim_start_matches(['|', '-', ':']);
    let marks = rest.len() - marked.len();
    if marks == 0 {
        let first = rest.split(' ').next().unwrap_or("");
        if let Some(place) = source_place(first.trim_matches(['[', ']']))
            && rest.get(first.len()..).is_some_and(|tail| tail.starts_with(" -"))
        {
            origin.logger = Some(place);
            let tail = rest.get(first.len()..).unwrap_or("");
            return blanks + first.len() + (tail.len() - tail.trim_start_matches([' ', '-']).len());
        }
        return blanks.min(1);
    }
    let after_mark = marked.trim_start_matches(' ');
    let mut len = text.len() - after_mark.len();
    let name = after_mark.split(' ').next().unwrap_or("");
    if let Some(tail) = after_mark.get(name.len()..)
        && !name.is_empty()
        && name.len() <= 120
        && (tail.starts_with(" - ") || tail.starts_with(" | "))
    {
        origin.logger = source_place(name).or(origin.logger.take());
        len += name.len() + 3;
    }
    len
}
