//! The JSON form of a RAS answer and of monitor events.
//!
//! In: the bytes and where the first brace stands. Out: fields of [`RasAnswer`]. It leaves unknown keys alone.

use std::collections::BTreeMap;

use super::{Communicator, LaunchCount, Launched, MonitorEvent, Process, RasAnswer, RasRank};
use crate::read::flight_recorder::operation;
use crate::read::loose_json::{self, Json};
use crate::read::plain::Value;

/// Most JSON values that one input may hold in a row: events of a monitor.
const DOCUMENT_LIMIT: usize = 100_000;

pub(super) fn read(bytes: &[u8], start: usize, answer: &mut RasAnswer) {
    let mut at = start;
    for _ in 0..DOCUMENT_LIMIT {
        let json = match loose_json::decode(bytes, at) {
            Ok(json) => json,
            Err(error) => {
                answer.complete = false;
                answer.diagnostics.push(format!("the RAS answer could not be read: {error}"));
                return;
            }
        };
        if json.missing_commas > 0 {
            let commas = json.missing_commas;
            answer.diagnostics.push(format!(
                "{commas} missing commas in the RAS answer were put in (NCCL 2.28.9 leaves them out)"
            ));
        }
        if let Some(why) = &json.stopped {
            answer.complete = false;
            answer.diagnostics.push(format!("the RAS answer is cut ({why})"));
        }
        document(&json, answer);
        let rest = bytes.get(json.end..).unwrap_or(&[]);
        let Some(next) = memchr::memchr(b'{', rest).filter(|_| json.stopped.is_none()) else { return };
        at = json.end + next;
    }
}

fn document(json: &Json<'_>, answer: &mut RasAnswer) {
    let plain = &json.plain;
    let text = |dict, key| plain.get(dict, key).and_then(|value| plain.shown(value));
    if let Some(event) = text(json.root, "event") {
        let peer = plain.get(json.root, "peer").map_or_else(Process::default, |peer| process(json, peer));
        answer.events.push(MonitorEvent {
            timestamp: text(json.root, "timestamp"),
            group: text(json.root, "group"),
            event,
            peer,
            details: text(json.root, "details").unwrap_or_default(),
        });
        return;
    }
    answer.nccl_version = text(json.root, "nccl_version").or(answer.nccl_version.take());
    answer.timestamp = text(json.root, "timestamp").or(answer.timestamp.take());
    let list = |key| plain.get(json.root, key).map_or(&[][..], |list| plain.items(list));
    answer.communicators.extend(list("communicators").iter().map(|comm| communicator(json, *comm)));
    let ras = plain.get(json.root, "ras");
    let timeouts =
        ras.and_then(|ras| plain.get(ras, "timeouts_count")).and_then(|count| plain.integer(count));
    answer.timeouts += timeouts.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
}

fn communicator(json: &Json<'_>, comm: Value) -> Communicator {
    let plain = &json.plain;
    let get = |key| plain.get(comm, key);
    let list = |key| get(key).map_or(&[][..], |list| plain.items(list));
    let hash = get("hash").and_then(|hash| plain.shown(hash)).unwrap_or_default();
    let mut launched: BTreeMap<String, BTreeMap<u64, Vec<u32>>> = BTreeMap::new();
    let mut ranks = Vec::new();
    for &item in list("ranks") {
        let Some(rank) = rank(json, item) else { continue };
        for (op, count) in
            plain.get(item, "collective_counts").into_iter().flat_map(|counts| plain.pairs(counts))
        {
            let count = plain.integer(count).and_then(|count| u64::try_from(count).ok());
            if let (Some(op), Some(count)) = (plain.text(op), count) {
                launched.entry(operation(op).op).or_default().entry(count).or_default().push(rank.rank);
            }
        }
        ranks.push(rank);
    }
    let missing: Vec<RasRank> = list("missing_ranks").iter().filter_map(|item| rank(json, *item)).collect();
    let counted =
        |(launched, ranks): (u64, Vec<u32>)| LaunchCount { launched, total: ranks.len() as u64, ranks };
    Communicator {
        hash: hash.trim_start_matches("0x").to_owned(),
        size: get("size").and_then(|size| u32::try_from(plain.integer(size)?).ok()),
        ranks,
        verdicts: if missing.is_empty() { Vec::new() } else { vec!["INCOMPLETE".to_owned()] },
        missing,
        launched: launched
            .into_iter()
            .map(|(op, counts)| Launched { op, counts: counts.into_iter().map(counted).collect() })
            .collect(),
    }
}

fn rank(json: &Json<'_>, item: Value) -> Option<RasRank> {
    let plain = &json.plain;
    let rank = plain.get(item, "rank").and_then(|rank| u32::try_from(plain.integer(rank)?).ok())?;
    let status = plain.get(item, "status");
    let flag = |key| status.and_then(|status| plain.get(status, key)).and_then(|flag| plain.integer(flag));
    Some(RasRank {
        rank,
        process: Some(process(json, item)),
        async_error: flag("async_error"),
        dead: flag("considered_dead") == Some(1),
    })
}

fn process(json: &Json<'_>, item: Value) -> Process {
    let plain = &json.plain;
    let number = |value: Value| plain.integer(value).and_then(|number| u32::try_from(number).ok());
    let devices = plain.get(item, "cuda_devs").map_or(&[][..], |devices| plain.items(devices));
    Process {
        host: plain.get(item, "host").or_else(|| plain.get(item, "addr")).and_then(|host| plain.shown(host)),
        pid: plain.get(item, "pid").and_then(number),
        gpus: devices.iter().copied().chain(plain.get(item, "cuda_dev")).filter_map(number).collect(),
        dead: false,
    }
}
