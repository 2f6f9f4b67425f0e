//! Heads in square brackets: rank tags, glog, kernel and SGLang stamps, mpirun tags, hosts, severities.
//!
//! In: text that begins with `[`. Out: fields of [`Origin`] and the head's length. A bracket that is none of these
//! belongs to the message.

use super::super::event::{Clock, GroupRank, Origin};
use super::super::scan::{digits, has_any_case, small};
use super::{glog, stamp};

/// Longest bracket that is read.
const BRACKET_LIMIT_BYTES: usize = 200;

/// Reads one bracket. `nested` tells that another prefix stands before it.
pub fn strip(text: &str, origin: &mut Origin, nested: bool) -> Option<usize> {
    let close = text.bytes().take(BRACKET_LIMIT_BYTES).position(|byte| byte == b']')?;
    let inner = text.get(1..close)?;
    let tail = text.get(close + 1..)?;
    let end = close + 1;
    if rank(inner, origin).is_some() {
        let colon = usize::from(tail.starts_with(':'));
        return Some(blank(text, end + colon));
    }
    if glog::group(inner, origin).is_some() || glog::bracketed(inner, origin).is_some() {
        return Some(blank(text, end));
    }
    match inner.trim_start().as_bytes().first()? {
        b'0'..=b'9' => numeric(text, inner, tail, end, origin),
        _ => named(text, inner, tail, end, origin, nested),
    }
}

/// Offset after one blank, where one stands.
fn blank(text: &str, at: usize) -> usize {
    at + usize::from(text.as_bytes().get(at) == Some(&b' '))
}

/// `rank3`, `Rank 0`, `RANK 1`, `rank: 0`, `rank=2`, `Rank 0/8`, `local_rank 1`.
fn rank(inner: &str, origin: &mut Origin) -> Option<()> {
    let (local, rest) = match inner.get(..4) {
        Some(head) if head.eq_ignore_ascii_case("rank") => (false, inner.get(4..)?),
        _ => {
            let head = inner.get(..10)?;
            if !head.eq_ignore_ascii_case("local_rank") && !head.eq_ignore_ascii_case("local rank") {
                return None;
            }
            (true, inner.get(10..)?)
        }
    };
    let (value, rest) = small(rest.trim_start_matches([' ', ':', '=', '_', '-', '#']))?;
    if !rest.is_empty() && !rest.starts_with(['/', ',', ' ', ']']) {
        return None;
    }
    if local {
        origin.local_rank = Some(value);
    } else if origin.logger.is_some() && inner.starts_with("Rank ") {
        origin.group.get_or_insert_with(|| GroupRank { group: String::new(), rank: Some(value) });
        origin.rank.get_or_insert(value);
    } else {
        origin.rank = Some(value);
    }
    Some(())
}

fn numeric(text: &str, inner: &str, tail: &str, end: usize, origin: &mut Origin) -> Option<usize> {
    let lead = inner.trim_start();
    if let Some(len) = mpirun(lead, tail, origin) {
        return Some(blank(text, end + len));
    }
    if let Some((time, len)) = stamp::leading(lead) {
        origin.time = Some(time);
        inside_stamp(lead.get(len..)?, origin);
        let after = tail.trim_start_matches(' ');
        if after.starts_with(['[', '(']) || after.starts_with("  ") {
            return Some(blank(text, end));
        }
        let logged = glog::after_stamp(tail, origin).unwrap_or(0);
        return Some(if logged > 0 { end + logged } else { blank(text, end) });
    }
    if let Some((time, len)) = stamp::seconds(lead)
        && len == lead.len()
    {
        origin.time = Some(time);
        return Some(blank(text, end));
    }
    let (number, rest) = small(inner)?;
    if !rest.is_empty() {
        return None;
    }
    if let Some(len) = llama(tail, number, origin) {
        return Some(end + len);
    }
    line_number(inner, tail).then_some(end + 1)
}

/// `[1,3]<stdout>:`: job and rank.
fn mpirun(lead: &str, tail: &str, origin: &mut Origin) -> Option<usize> {
    let (_, rest) = small(lead)?;
    let (rank, rest) = small(rest.strip_prefix(',')?)?;
    if !rest.is_empty() || !tail.starts_with("<std") {
        return None;
    }
    origin.rank = Some(rank);
    let close = tail.find('>')? + 1;
    Some(close + usize::from(tail.get(close..)?.starts_with(':')))
}

/// llama.cpp's `[56285] 0.54.236.075 E `: process id, elapsed time, level.
fn llama(tail: &str, pid: u32, origin: &mut Origin) -> Option<usize> {
    let rest = tail.strip_prefix(' ')?;
    let clock = rest.split(' ').next()?;
    if clock.split('.').count() != 4 || !clock.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let level = rest.get(clock.len()..)?.strip_prefix(' ')?;
    let severity = glog::letter(*level.as_bytes().first()?)?;
    if !level.get(1..)?.starts_with(' ') {
        return None;
    }
    origin.pid = Some(pid);
    origin.severity = Some(severity);
    Some(1 + clock.len() + 1 + 2)
}

/// `[80746] ` is a viewer's line number; `[3] finished collective #7` is a rank, `[1]    83815 segmentation fault` a job.
fn line_number(inner: &str, tail: &str) -> bool {
    inner.len() >= 3
        && tail.starts_with(' ')
        && !tail.starts_with("  ")
        && !["finished collective", "is setting up", "joined but", "Caught signal"]
            .iter()
            .any(|text| tail.get(1..).is_some_and(|tail| tail.starts_with(text)))
}

/// What stands behind the stamp in one bracket: `TP6 PP1`, `E 1234 5678`, ` ERROR name`.
fn inside_stamp(rest: &str, origin: &mut Origin) {
    let rest = rest.trim();
    if rest.is_empty() {
        return;
    }
    if parallel(rest, origin) {
        return;
    }
    let mut words = rest.split_whitespace();
    let Some(first) = words.next() else { return };
    let severity =
        if first.len() == 1 { first.bytes().next().and_then(glog::letter) } else { glog::word(first) };
    if severity.is_none() {
        return;
    }
    origin.severity = severity;
    let mut ids = words.map_while(|word| small(word).filter(|(_, rest)| rest.is_empty()));
    if let Some((pid, _)) = ids.next() {
        origin.pid = Some(pid);
        origin.tid = ids.next().map(|(tid, _)| tid).or(origin.tid);
    }
}

/// `TP6 PP1`, `DP0 TP3 EP3`: names of parallel ranks. A tensor-parallel rank is the global one only where no other
/// dimension is at work.
pub fn parallel(text: &str, origin: &mut Origin) -> bool {
    let (mut tensor, mut others_zero, mut any) = (None, true, false);
    for word in text.split([' ', '_', ',']).filter(|word| !word.is_empty()) {
        let Some((kind, number)) = word.get(..2).zip(word.get(2..)) else { return false };
        let Some((value, "")) = small(number) else { return false };
        match kind {
            "TP" => tensor = Some(value),
            "DP" | "PP" | "CP" => others_zero &= value == 0,
            "EP" | "SP" => {}
            _ => return false,
        }
        any = true;
    }
    if any {
        origin.process = Some(text.to_owned());
        if others_zero && tensor.is_some() && origin.rank.is_none() {
            origin.rank = tensor;
        }
    }
    any
}

fn named(
    text: &str,
    inner: &str,
    tail: &str,
    end: usize,
    origin: &mut Origin,
    nested: bool,
) -> Option<usize> {
    if let Some((time, len)) = stamp::month_name(inner)
        && len == inner.len()
    {
        origin.time = Some(time);
        return Some(blank(text, end));
    }
    if kernel_caller(inner, origin) {
        return Some(blank(text, end));
    }
    let word = inner.trim();
    let severity =
        if word.len() == 1 { word.bytes().next().and_then(glog::letter) } else { glog::word(word) };
    if severity.is_some() {
        origin.severity = severity;
        return Some(blank(text, end));
    }
    if matches!(word, "stdout" | "stderr") {
        return Some(blank(text, end));
    }
    let logged = nested && (origin.severity.is_some() || origin.time.is_some());
    if logged && let Some(place) = glog::source_place(word) {
        origin.logger = Some(place);
        return Some(blank(text, end));
    }
    if word.starts_with("pod/") && tail.starts_with(' ') {
        origin.host = word.split('/').nth(1).map(str::to_owned);
        return Some(blank(text, end));
    }
    if let Some(local) = role_tail(word)
        && tail.starts_with(':')
    {
        origin.local_rank = Some(local);
        return Some(blank(text, end + 1));
    }
    host_and_pid(word, tail, origin).then(|| blank(text, end))
}

/// `T1234` or `C3`, the thread or CPU that a kernel with caller information prints.
fn kernel_caller(inner: &str, origin: &mut Origin) -> bool {
    let lead = inner.trim_start();
    let booted = origin.time.as_ref().is_some_and(|time| time.clock == Clock::Boot);
    booted
        && lead.starts_with(['T', 'C'])
        && lead.get(1..).and_then(digits).is_some_and(|(_, rest)| rest.is_empty())
}

/// `default1`, `trainer0`: torchrun's role and the local rank.
fn role_tail(word: &str) -> Option<u32> {
    let digits_at = word.find(|byte: char| byte.is_ascii_digit())?;
    let role = word.get(..digits_at)?;
    if role.is_empty() || !role.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-'))
    {
        return None;
    }
    small(word.get(digits_at..)?).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// `node01:12345` (Open MPI), `host:12345:0:12399` (UCX), `pid:12`.
fn host_and_pid(word: &str, tail: &str, origin: &mut Origin) -> bool {
    const NO_HOSTS: [&str; 10] =
        ["gpu", "cuda", "step", "epoch", "device", "iter", "batch", "worker", "line", "thread"];
    let Some((name, rest)) = word.split_once(':') else { return false };
    let name = name.trim();
    let Some((pid, rest)) = small(rest.trim_start()) else { return false };
    if name.eq_ignore_ascii_case("pid") || name.eq_ignore_ascii_case("process") {
        origin.pid = Some(pid);
        return rest.is_empty();
    }
    let hostly = name.len() >= 2
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !super::names::is_source_file(name)
        && !NO_HOSTS.iter().any(|other| has_any_case(name, other));
    if !hostly || pid < 2 || !tail.starts_with(' ') {
        return false;
    }
    let mut ids = rest.split(':').skip(1).map(|part| small(part.trim()));
    let (_, tid) = (ids.next(), ids.next());
    if !rest.is_empty() && !rest.trim_start().starts_with(':') {
        return false;
    }
    origin.host = Some(name.to_owned());
    origin.pid = Some(pid);
    origin.tid = tid.flatten().map(|(tid, _)| tid).or(origin.tid);
    true
}
