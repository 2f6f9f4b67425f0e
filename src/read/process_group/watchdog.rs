//! The ProcessGroupNCCL watchdog and its heartbeat monitor.
//!
//! In: a line. Out: time-outs, work status and stuck watchdogs. Any generation from 1.9 on: the words between the numbers
//! moved, the names of the numbers did not.

use super::super::event::{
    CollectiveName, CollectiveTimeout, Data, Origin, PeerLost, PeerLostKind, WorkStatus,
};
use super::super::lines::{Cx, Line};
use super::super::prefix;
use super::super::scan::{
    after, before, clip, digits, find_any_case, has_any_case, number_after, signed, small, small_after,
};
use super::push_of_rank;

/// Longest text that an event keeps.
const DETAIL_LIMIT_BYTES: usize = 400;
/// Time-outs that one line may hold: a paste that lost its line ends holds several.
const TIMEOUTS_A_LINE: usize = 64;

/// `WorkNCCL(SeqNum=7, OpType=ALLREDUCE, …) ran for 15045 milliseconds`, as often as the line holds it.
pub fn timeouts(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let joined;
    let mut body = line.body();
    if let Some(open) = after(body, "WorkNCCL(")
        && !open.contains(')')
    {
        joined = wrapped(line, cx);
        body = &joined;
    }
    let mut found = false;
    let mut start = 0;
    for _ in 0..TIMEOUTS_A_LINE {
        let Some(at) = body.get(start..).and_then(|rest| rest.find("WorkNCCL(")) else { break };
        let at = start + at;
        let Some(text) = body.get(at + "WorkNCCL(".len()..) else { break };
        start = body.len() - text.len();
        let next = text.find("WorkNCCL(").unwrap_or(text.len());
        let scope = text.get(..next).unwrap_or(text);
        let head = body.get(..at).unwrap_or("");
        if !tells_of_timeout(head, scope) {
            continue;
        }
        let timeout = CollectiveTimeout {
            collective: collective(scope, group(line, head)),
            limit_ms: number_after(scope, "Timeout(ms)"),
            elapsed_ms: number_after(scope, "ran for "),
        };
        push_of_rank(line, cx, rank_before(head), Data::CollectiveTimeout(timeout));
        found = true;
    }
    found
}

fn tells_of_timeout(head: &str, scope: &str) -> bool {
    scope.contains("ran for")
        || has_any_case(scope, "timed out")
        || has_any_case(scope, "timing out")
        || has_any_case(head, "timeout")
}

/// The line with the next ones, for pastes that were wrapped inside the parentheses.
fn wrapped(line: &Line<'_>, cx: &Cx<'_>) -> String {
    let mut text = line.body().to_owned();
    for next in cx.after(line).take(3) {
        text.push_str(next.body());
        if next.body().contains("milliseconds") {
            break;
        }
    }
    text
}

fn collective(scope: &str, group: Option<String>) -> CollectiveName {
    let op = after(scope, "OpType=").map_or("", |rest| rest.split([',', ')', ' ']).next().unwrap_or(""));
    CollectiveName {
        op: op.to_owned(),
        seq: number_after(scope, "SeqNum="),
        group,
        numel_in: number_after(scope, "NumelIn="),
        numel_out: number_after(scope, "NumelOut="),
    }
}

/// The group of the line's own tag, or of a tag inside the message.
fn group(line: &Line<'_>, head: &str) -> Option<String> {
    let mut origin = Origin::default();
    prefix::group_tag(head, &mut origin);
    origin
        .group
        .or_else(|| line.origin.group.clone())
        .map(|group| group.group)
        .filter(|name| !name.is_empty())
}

/// The rank tag nearest before a message that does not begin its line.
fn rank_before(head: &str) -> Option<u32> {
    let at = head.rfind("[rank").map(|at| at + 5).or_else(|| head.rfind("[Rank ").map(|at| at + 6))?;
    small(head.get(at..)?).filter(|(_, rest)| rest.starts_with(']')).map(|(rank, _)| rank)
}

/// `last enqueued work: 7, last completed work: 6` in all its spellings.
pub fn work_status(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let last_enqueued = last(body, "last enqueued");
    let last_completed = last(body, "last completed");
    if last_enqueued.is_none() && last_completed.is_none() {
        return false;
    }
    let failed_at = number_after(body, "work sequence id:")
        .or_else(|| number_after(body, "Timeout at NCCL work:"))
        .or_else(|| number_after(body, "watchdog at work:"));
    let signalled_by = after(body, "timeout from").and_then(|rest| {
        let rest = rest.trim_start();
        rest.strip_prefix("rank ").and_then(|rest| small(rest.trim_start())).map(|(rank, _)| rank)
    });
    let status = WorkStatus {
        failed_at,
        last_enqueued,
        last_started: last(body, "last started"),
        last_completed,
        signalled_by,
    };
    let at = find_any_case(body, "last enqueued").unwrap_or(0);
    push_of_rank(line, cx, body.get(..at).and_then(rank_before), Data::WorkStatus(status));
    true
}

fn last(body: &str, key: &str) -> Option<i64> {
    let rest = body.get(find_any_case(body, key)? + key.len()..)?;
    let value = rest.split_once(':')?;
    if value.0.len() > 24 {
        return None;
    }
    signed(value.1.trim_start()).map(|(number, _)| number)
}

/// A watchdog that hangs, a monitor that gave up.
pub fn heartbeat(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let body = line.body();
    let stuck = body.contains("watchdog got stuck")
        || body.contains("Heartbeat monitor timed out")
        || body.contains("detected no heartbeat")
        || has_any_case(body, "stuck in watchdog");
    if stuck {
        let detail = clip(body.trim(), DETAIL_LIMIT_BYTES).to_owned();
        push_of_rank(
            line,
            cx,
            None,
            Data::PeerLost(PeerLost { kind: PeerLostKind::Heartbeat, peer: None, detail }),
        );
    }
    stuck
}

/// The sequence number of `collective #8`.
pub fn numbered_collective(text: &str) -> Option<u64> {
    let rest = after(text, "collective #").or_else(|| after(text, "collective "))?;
    digits(before(rest, ",").trim_start_matches('#')).map(|(seq, _)| seq)
}

/// A rank in brackets or after `Rank ` at the head of `text`.
pub fn rank_at_head(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let inner = text.strip_prefix('[').unwrap_or(text);
    small(inner)
        .filter(|(_, rest)| rest.starts_with(']'))
        .map(|(rank, _)| rank)
        .or_else(|| small_after(clip(text, 24), "ank "))
}
