//! Ranks that disagree: desync reports, fingerprints, barriers that ranks missed, stalled tensors, symmetric memory.
//!
//! In: a line, and for Horovod's report the lines after it. Out: [`Data::CollectiveMismatch`]. It leaves matching ranks
//! from their own lines to `case`.

use super::super::event::{CollectiveMismatch, CollectiveName, Data};
use super::super::lines::{Cx, Line};
use super::super::scan::{after, before, between, clip, digits, has_any_case, number_after, small};
use super::watchdog::{numbered_collective, rank_at_head};

/// Longest text that an event keeps.
const DETAIL_LIMIT_BYTES: usize = 600;
/// Most ranks that one report may name.
const RANK_LIMIT: usize = 4_096;
/// Lines of a stall report that are looked at.
const REPORT_LINES: usize = 64;

/// Reads a disagreement.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let found = desync(body)
        .or_else(|| fingerprint(body))
        .or_else(|| barrier(body))
        .or_else(|| symmetric(body))
        .or_else(|| stalled(line, cx));
    let Some(mut mismatch) = found else { return false };
    if mismatch.detail.is_empty() {
        mismatch.detail = clip(body.trim(), DETAIL_LIMIT_BYTES).to_owned();
    }
    cx.push(line, Data::CollectiveMismatch(mismatch));
    true
}

fn missing(ranks: Vec<u32>, seq: Option<u64>) -> CollectiveMismatch {
    let views = match (seq, ranks.first()) {
        (Some(seq), Some(&rank)) => {
            vec![(rank, CollectiveName { seq: Some(seq), ..CollectiveName::default() })]
        }
        _ => Vec::new(),
    };
    CollectiveMismatch { differs: "missing".to_owned(), views, missing: ranks, detail: String::new() }
}

/// `[3] finished collective #7, but didn't join collective #8`; also `[0, 1] joined but didn't finish collective #8`.
fn desync(body: &str) -> Option<CollectiveMismatch> {
    if let Some(at) = body.find("didn't join collective") {
        let seq = body.get(at..).and_then(numbered_collective);
        return Some(missing(ranks_in(before(body, "finished collective")), seq));
    }
    let joined = body.contains("joined but didn't finish collective");
    if !joined {
        return None;
    }
    let seq = numbered_collective(after(body, "finish ")?);
    let views = ranks_in(before(body, "joined but"))
        .into_iter()
        .map(|rank| (rank, CollectiveName { seq, ..CollectiveName::default() }))
        .collect();
    Some(CollectiveMismatch {
        differs: "missing".to_owned(),
        views,
        missing: Vec::new(),
        detail: String::new(),
    })
}

/// Every number in the last bracket of `text` (`[0, 1, 5]`), or the rank at its head.
fn ranks_in(text: &str) -> Vec<u32> {
    let inner = text.rfind('[').and_then(|at| text.get(at + 1..)).map(|rest| before(rest, "]"));
    let ranks: Vec<u32> = numbers(inner.unwrap_or(""));
    if ranks.is_empty() { rank_at_head(text).into_iter().collect() } else { ranks }
}

fn numbers(text: &str) -> Vec<u32> {
    text.split([',', ' '])
        .filter(|word| !word.is_empty())
        .map_while(|word| small(word).map(|(rank, _)| rank))
        .take(RANK_LIMIT)
        .collect()
}

/// `Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(…), but Rank 0 …`.
fn fingerprint(body: &str) -> Option<CollectiveMismatch> {
    if !body.contains("CollectiveFingerPrint(") && !has_any_case(body, "mismatch between collectives") {
        return None;
    }
    let mut views = Vec::new();
    for (at, key) in body.match_indices("CollectiveFingerPrint(").take(2) {
        let (head, part) = (body.get(..at).unwrap_or(""), body.get(at + key.len()..).unwrap_or(""));
        let rank = head.rfind("Rank ").and_then(|at| small(head.get(at + 5..)?)).map(|(rank, _)| rank);
        views.extend(rank.map(|rank| (rank, fingerprint_name(part))));
    }
    let aspects = after(body, "following aspects:").unwrap_or("");
    let differs = if has_any_case(aspects, "op type") || has_any_case(aspects, "optype") {
        "op"
    } else if has_any_case(aspects, "shape") {
        "size"
    } else if has_any_case(aspects, "dtype") {
        "dtype"
    } else if has_any_case(aspects, "sequence") {
        "sequence"
    } else {
        compare(&views)
    };
    Some(CollectiveMismatch {
        differs: differs.to_owned(),
        views,
        missing: Vec::new(),
        detail: String::new(),
    })
}

fn fingerprint_name(part: &str) -> CollectiveName {
    let op = after(part, "OpType=").map_or("", |rest| rest.split([',', ')', ' ']).next().unwrap_or(""));
    let numel = between(part, "TensorShape=[", "]").map(|shape| {
        shape
            .split([',', ' '])
            .filter_map(|word| digits(word).map(|(value, _)| value))
            .try_fold(1_u64, u64::checked_mul)
    });
    CollectiveName {
        op: op.to_owned(),
        seq: number_after(part, "SequenceNumber="),
        group: None,
        numel_in: numel.flatten(),
        numel_out: None,
    }
}

fn compare(views: &[(u32, CollectiveName)]) -> &'static str {
    match views {
        [(_, a), (_, b), ..] if a.op != b.op => "op",
        [(_, a), (_, b), ..] if a.numel_in != b.numel_in => "size",
        [(_, a), (_, b), ..] if a.seq != b.seq => "sequence",
        _ => "op",
    }
}

/// `[Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 5000 ms`.
fn barrier(body: &str) -> Option<CollectiveMismatch> {
    let at = body.find("failed to pass monitoredBarrier")?;
    let head = body.get(..at)?;
    let list = head.rfind("ank").and_then(|at| head.get(at + 3..))?;
    let ranks = numbers(list.trim_start_matches(['s', ' ']));
    (!ranks.is_empty()).then(|| missing(ranks, None))
}

/// Set-up checks of symmetric memory: requests that differ between ranks, tensors outside it.
fn symmetric(body: &str) -> Option<CollectiveMismatch> {
    let event =
        |differs: &str| CollectiveMismatch { differs: differs.to_owned(), ..CollectiveMismatch::default() };
    if let Some(rest) = after(body, "reqs[r].") {
        return Some(event(rest.split([' ', '=', ')', '!']).next().filter(|name| !name.is_empty())?));
    }
    let outside = body.contains("empty_strided_p2p")
        || body.contains("not within any SymmetricMemory")
        || has_any_case(body, "symmetric memory") && says_wrong(body)
        || (body.contains("SymmetricMemory") || body.contains("symm_mem")) && says_wrong(body);
    outside.then(|| event("window"))
}

fn says_wrong(body: &str) -> bool {
    !body.trim_start().starts_with("File \"")
        && ["rror", "must be", "xpected", "ailed", "not allocated", "not found", "invalid", "not supported"]
            .iter()
            .any(|word| body.contains(word))
        && !body.contains("object at 0x")
}

/// Horovod's stall report: `Missing ranks:` or `[missing ranks: 1, 2]`, on this line or under it.
fn stalled(line: &Line<'_>, cx: &Cx<'_>) -> Option<CollectiveMismatch> {
    let body = line.body();
    if let Some(list) = after(body, "issing ranks:").filter(|rest| digits(rest.trim_start()).is_some()) {
        return Some(missing(numbers(before(list, "]").trim()), None));
    }
    if !body.contains("by subset of ranks") && !body.contains("issing ranks:") {
        return None;
    }
    let mut ranks = Vec::new();
    let mut listed = body.contains("issing ranks:");
    for next in cx.after(line).take(REPORT_LINES) {
        let text = next.body().trim();
        if let Some(list) = after(text, "issing ranks:") {
            listed = true;
            ranks.extend(numbers(before(list, "]").trim()));
            continue;
        }
        listed |= text.contains("talled ranks:");
        match small(text).filter(|(_, rest)| listed && rest.starts_with(':')) {
            Some((rank, _)) => ranks.push(rank),
            None if next.origin.rank.is_some() && listed && text.starts_with('[') => {
                ranks.extend(next.origin.rank)
            }
            None if listed && !ranks.is_empty() => break,
            None => {}
        }
    }
    ranks.truncate(RANK_LIMIT);
    Some(missing(ranks, None))
}
