//! The recorded answers, and excerpts of the other forms.

use proptest::prelude::*;

use super::*;

const TEXT: &[u8] = include_bytes!("../../../samples/pair-missing-rank-ras/ras.txt");
const JSON: &[u8] = include_bytes!("../../../samples/pair-missing-rank-ras/ras.json");

fn expected_counts() -> Vec<LaunchCount> {
    vec![
        LaunchCount { launched: 2, ranks: vec![0], total: 1 },
        LaunchCount { launched: 1, ranks: vec![1], total: 1 },
    ]
}

#[test]
fn reads_the_recorded_text() {
    let answer = read(TEXT);
    assert_eq!((answer.nccl_version.as_deref(), answer.complete, answer.timeouts), (Some("2.28.9"), true, 0));
    let [comm] = answer.communicators.as_slice() else { panic!("{answer:#?}") };
    assert_eq!(
        (comm.hash.as_str(), comm.verdicts.as_slice()),
        ("838cd01dee862fc2", &["MISMATCH".to_owned()][..])
    );
    assert_eq!(comm.launched, [Launched { op: "ALLREDUCE".into(), counts: expected_counts() }]);
    let process = comm.ranks[1].process.clone().unwrap();
    assert_eq!(
        (process.pid, process.host.as_deref(), process.gpus.as_slice()),
        (Some(607), Some("192.0.2.2"), &[1][..])
    );
}

#[test]
fn reads_the_recorded_json() {
    let answer = read(JSON);
    assert_eq!((answer.timestamp.as_deref(), answer.complete), (Some("2026-11-29 20:38:02"), true));
    let [comm] = answer.communicators.as_slice() else { panic!("{answer:#?}") };
    assert_eq!((comm.hash.as_str(), comm.size, comm.ranks.len()), ("838cd01dee862fc2", Some(2), 2));
    let all_reduce = comm.launched.iter().find(|kind| kind.op == "ALLREDUCE").unwrap();
    assert_eq!(all_reduce.counts, expected_counts());
    let broadcast = comm.launched.iter().find(|kind| kind.op == "BROADCAST").unwrap();
    assert_eq!(broadcast.counts, [LaunchCount { launched: 0, ranks: vec![0, 1], total: 2 }]);
}

#[test]
fn puts_in_the_comma_that_2_28_9_leaves_out_between_missing_ranks() {
    let json = br#"OK
{"nccl_version": "2.28.9", "communicators_count": 1, "communicators": [{"hash": "0x1f", "size": 4, "ranks_count": 2,
 "missing_ranks_count": 2, "ranks": [{"rank": 0, "collective_counts": {"AllReduce": 5}}, {"rank": 1, "collective_counts": {"AllReduce": 5}}],
 "missing_ranks": [
   {"rank": 2, "host": "n2", "pid": 7, "cuda_dev": 0, "status": {"unresponsive": true, "considered_dead": true}}
   {"rank": 3, "host": "n2", "pid": 8, "cuda_dev": 1, "status": {"unresponsive": true, "considered_dead": false}}
 ]}], "ras": {"collection_time_sec": 5.0, "timeouts_count": 1}}"#;
    let answer = read(json);
    assert_eq!((answer.complete, answer.timeouts), (true, 1));
    let missing: Vec<(u32, bool)> =
        answer.communicators[0].missing.iter().map(|rank| (rank.rank, rank.dead)).collect();
    assert_eq!(missing, [(2, true), (3, false)]);
    assert!(answer.diagnostics[0].starts_with("1 missing commas"), "{:?}", answer.diagnostics);
}

#[test]
fn reads_absent_processes_and_counted_ranks() {
    let text = "Errors\n======\n\nINCOMPLETE\n  Missing communicator data from 1 job process\n  Process 607 on node n7 managing GPU 1\n\n\
        DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process 610 on node n8 managing GPUs 0,1 (NVML 4,5)\n\n\
        #0-0 (ab12) INCOMPLETE\n  Missing communicator data from 1 rank\n  Rank 5 -- GPU 1 managed by process 607 on node n7\n\n\
        Warnings\n========\n\nTIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n\n\
        #0-0 (ab12) MISMATCH\n  Communicator ranks have different status\n  5 ranks have status RUNNING\n  Rank 2 has status INIT -- GPU 2 managed by process 602 on node n7\n\
        \x20 Communicator ranks have different AllGather operation counts\n  5 ranks have launched up to operation 12\n\
        \x20 2 ranks have not launched any operations\n  Rank 2 -- GPU 2 managed by process 602 on node n7\n  Rank 3 -- [process information not found]\n";
    let answer = read(text.as_bytes());
    assert_eq!(answer.timeouts, 2);
    let absent: Vec<_> =
        answer.absent.iter().map(|process| (process.pid, process.gpus.clone(), process.dead)).collect();
    assert_eq!(absent, [(Some(607), vec![1], false), (Some(610), vec![0, 1], true)]);
    let [comm] = answer.communicators.as_slice() else { panic!("{answer:#?}") };
    assert_eq!((comm.missing[0].rank, comm.missing.len()), (5, 1));
    let counts = [
        LaunchCount { launched: 12, ranks: vec![], total: 5 },
        LaunchCount { launched: 0, ranks: vec![2, 3], total: 2 },
    ];
    assert_eq!(comm.launched, [Launched { op: "ALLGATHER".into(), counts: counts.to_vec() }]);
}

#[test]
fn reads_monitor_events_in_both_forms() {
    let json = br#"{"timestamp": "2026-11-29 20:38:02", "group": "LIFECYCLE", "event": "PEER_DEAD",
        "peer": {"host": "n2", "pid": 7, "cuda_devs": [0,1], "nvml_devs": [4,5]}, "details": "no keep-alive"}
        {"timestamp": "2026-11-29 20:38:09", "group": "TRACE", "event": "PEER_RETRY", "details": ""}"#;
    let events = read(json).events;
    assert_eq!(events.len(), 2);
    assert_eq!(
        (events[0].event.as_str(), events[0].peer.pid, events[0].peer.gpus.as_slice()),
        ("PEER_DEAD", Some(7), &[0, 1][..])
    );
    let text = read(b"SERVER PROTOCOL 2\n[2026-11-29 20:38:02] PEER_DEAD: Process 7 on node n2 managing GPU 0 no keep-alive\n").events;
    assert_eq!(
        (text[0].event.as_str(), text[0].peer.pid, text[0].peer.host.as_deref()),
        ("PEER_DEAD", Some(7), Some("n2"))
    );
    assert!(text::monitor_event("[2026-11-29 20:38:02] INFO: hello").is_none());
}

#[test]
fn knows_its_own_from_other_text() {
    assert!(looks_like_ras(TEXT) && looks_like_ras(JSON));
    assert!(!looks_like_ras(include_bytes!("../../../samples/pair-skipped-collective/nccl_trace_rank_0")));
    assert!(!looks_like_ras(b"[2026-11-29 20:38:02] ERROR: CUDA error\n"));
    assert!(!looks_like_ras(b"vm:912:912 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"));
    assert!(!looks_like_ras(br#"{"version": "2.10", "pg_config": {}}"#));
}

#[test]
fn every_truncation_ends_well() {
    for end in 0..JSON.len() {
        let answer = read(&JSON[..end]);
        assert!(end < 40 || !answer.complete || end + 2 > JSON.len(), "cut at {end}");
    }
    for end in 0..TEXT.len() {
        let _ = read(&TEXT[..end]);
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "[#0-9a-f() RankMISCHN\\n\\[\\]:{}\",-]{0,200}") {
        let _ = read(text.as_bytes());
        let _ = looks_like_ras(text.as_bytes());
    }
}
