//! The recorded two-rank cases, from dumps, from log events and from RAS, and larger jobs made up here.

use std::sync::Arc;

use super::*;
use crate::read::event::{
    CollectiveName, CollectiveTimeout, Data, GroupRank, InputId, Origin, Place, Span, WorkStatus,
};
use crate::read::flight_recorder::{self, DumpGroup, Entry, EntryState, FlightDump, Signature, operation};
use crate::read::nccl_ras;

fn recorded(case: &str) -> Matched {
    let mut matcher = Matcher::default();
    for rank in 0..2 {
        let path = format!("{}/samples/{case}/nccl_trace_rank_{rank}", env!("CARGO_MANIFEST_DIR"));
        matcher.add_dump(rank, &flight_recorder::read(&std::fs::read(path).unwrap()).unwrap());
    }
    matcher.finish()
}

fn missing(matched: &Matched) -> &Missing {
    match matched.findings.as_slice() {
        [Finding::Missing(missing), ..] => missing,
        other => panic!("{other:#?}"),
    }
}

fn mismatch(matched: &Matched) -> &Mismatch {
    match matched.findings.as_slice() {
        [Finding::Mismatch(mismatch), ..] => mismatch,
        other => panic!("{other:#?}"),
    }
}

#[test]
fn dumps_of_a_skipped_collective_name_the_rank_that_stayed_away() {
    let matched = recorded("pair-skipped-collective");
    assert_eq!(matched.root_rank(), Some(1));
    let found = missing(&matched);
    let expected = CollectiveName {
        op: "ALLREDUCE".into(),
        seq: Some(7),
        group: Some("default_pg".into()),
        numel_in: Some(1_048_576),
        numel_out: Some(1_048_576),
    };
    assert_eq!(found.collective, expected);
    assert_eq!(
        (found.missing.as_slice(), found.waiting.as_slice(), found.unseen.as_slice()),
        (&[1][..], &[0][..], &[][..])
    );
    assert_eq!(found.last[0].last_enqueued, Some(6));
    assert_eq!(
        matched.findings[0].summary(),
        "rank 1 never entered ALLREDUCE number 7 of 1,048,576 elements of default_pg; rank 0 waits in it \
         (/home/user/lora/py/nccl_cases.py:59); rank 1's last was number 6 (/home/user/lora/py/nccl_cases.py:59)"
    );
    let progress: Vec<_> =
        matched.progress.iter().map(|row| (row.rank, row.last_enqueued, row.last_completed)).collect();
    assert_eq!(progress, [(0, Some(7), Some(6)), (1, Some(6), Some(6))]);
}

#[test]
fn dumps_of_a_missing_rank_name_it() {
    let matched = recorded("pair-missing-rank");
    assert_eq!(matched.root_rank(), Some(1));
    let found = missing(&matched);
    assert_eq!((found.collective.op.as_str(), found.collective.seq), ("ALLREDUCE", Some(2)));
    assert_eq!(found.waiting_at.as_ref().and_then(|at| at.line), Some(13));
}

#[test]
fn dumps_of_a_size_mismatch_show_both_sizes_and_blame_neither() {
    let matched = recorded("pair-size-mismatch");
    let found = mismatch(&matched);
    assert_eq!(
        (found.seq, found.differs, found.suspected, found.completed),
        (Some(2), Differs::Size, false, false)
    );
    let views: Vec<_> =
        found.views.iter().map(|view| (view.ranks.clone(), view.collective.numel_in)).collect();
    assert_eq!(views, [(vec![0], Some(1024)), (vec![1], Some(2048))]);
    assert_eq!(
        found.views[0].at.as_ref().map(|at| (at.file.as_str(), at.line)),
        Some(("/home/user/lora/py/nccl_cases.py", Some(16)))
    );
    assert_eq!(
        (matched.root_rank(), found.odd.len()),
        (None, 0),
        "two ranks that differ: neither is the odd one"
    );
    assert_eq!(matched.findings.len(), 1, "what follows a mismatch in its group is no finding of its own");
}

#[test]
fn one_dump_of_two_names_the_rank_that_left_none() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/pair-skipped-collective/nccl_trace_rank_0");
    let mut matcher = Matcher::default();
    matcher.add_dump(0, &flight_recorder::read(&std::fs::read(path).unwrap()).unwrap());
    let matched = matcher.finish();
    assert_eq!((matched.root_rank(), matched.without_dump.as_slice()), (Some(1), &[1][..]));
    assert_eq!(missing(&matched).unseen, [1]);
    assert!(
        matched.findings[0]
            .summary()
            .starts_with("nothing is known of rank 1, which may not have entered ALLREDUCE number 7")
    );
}

fn event(rank: u32, group: Option<&str>, data: Data) -> Event {
    let group = group.map(|group| GroupRank { group: group.into(), rank: Some(rank) });
    Event {
        span: Span { input: InputId(0), line: 1, byte: 0, lines: 1 },
        origin: Origin { rank: Some(rank), group, ..Origin::default() },
        data,
        text: String::new(),
    }
}

fn timeout(rank: u32, seq: u64, numel: u64) -> Event {
    let collective = CollectiveName {
        op: "ALLREDUCE".into(),
        seq: Some(seq),
        group: None,
        numel_in: Some(numel),
        numel_out: Some(numel),
    };
    event(
        rank,
        None,
        Data::CollectiveTimeout(CollectiveTimeout {
            collective,
            limit_ms: Some(15_000),
            elapsed_ms: Some(15_045),
        }),
    )
}

fn status(rank: u32, failed_at: Option<u64>, enqueued: i64, completed: i64) -> Event {
    let status = WorkStatus {
        failed_at,
        last_enqueued: Some(enqueued),
        last_completed: Some(completed),
        ..WorkStatus::default()
    };
    event(rank, Some("default_pg"), Data::WorkStatus(status))
}

fn from_log(events: &[Event]) -> Matched {
    let mut matcher = Matcher::default();
    events.iter().for_each(|event| matcher.add_event(event));
    matcher.finish()
}

/// The lines of pair-skipped-collective/run.log: rank 0 times out in 7, rank 1 dumps on its signal.
#[test]
fn a_log_alone_names_the_rank_that_stayed_away() {
    let matched = from_log(&[
        timeout(0, 7, 1_048_576),
        status(0, Some(7), 7, 6),
        status(0, None, 7, 6),
        status(1, None, 6, 6),
    ]);
    assert_eq!(matched.root_rank(), Some(1));
    let found = missing(&matched);
    assert_eq!(
        (found.collective.seq, found.collective.numel_in, found.basis),
        (Some(7), Some(1_048_576), Basis::Log)
    );
}

/// pair-size-mismatch/run.log: rank 0 completed 2 and hangs in 3, rank 1 hangs in 2.
#[test]
fn a_log_alone_gives_a_suspected_mismatch_where_one_rank_came_through() {
    let matched = from_log(&[
        timeout(0, 3, 1_048_576),
        status(0, Some(3), 3, 2),
        timeout(1, 2, 2048),
        status(1, Some(2), 2, 1),
        status(1, None, 2, 1),
        status(0, None, 3, 2),
    ]);
    let found = mismatch(&matched);
    assert_eq!((found.seq, found.differs, found.suspected), (Some(2), Differs::State, true));
    assert_eq!(matched.root_rank(), None);
    let collective = matched.findings[0].collective().unwrap();
    assert_eq!(
        (collective.op.as_str(), collective.seq, collective.numel_in),
        ("ALLREDUCE", Some(2), Some(2048))
    );
    assert_eq!(
        matched.findings[0].summary(),
        "rank 1 waits in ALLREDUCE number 2 of 2,048 elements of default_pg; rank 0 completed that number and waits in \
         ALLREDUCE number 3 of 1,048,576 elements. Two readings fit: rank 1 called another operation or size there, or the \
         same call hangs for rank 1 in the network or on the GPU while the others came through; a log alone doesn't tell which"
    );
}

#[test]
fn a_rank_that_logs_nothing_is_named_where_the_job_size_is_known() {
    let mut matcher = Matcher::default();
    matcher.set_world_size(4);
    for rank in [0, 1, 3] {
        matcher.add_event(&timeout(rank, 9, 64));
    }
    let matched = matcher.finish();
    assert_eq!((matched.root_rank(), missing(&matched).unseen.as_slice()), (Some(2), &[2][..]));
    let alone = from_log(&[timeout(0, 9, 64), timeout(1, 9, 64)]);
    let Finding::Stuck(stuck) = &alone.findings[0] else { panic!("{alone:#?}") };
    assert!(!stuck.all_seen, "a log of two ranks doesn't say that there are no others");
    assert_eq!(alone.root_rank(), None);
}

#[test]
fn two_groups_of_one_name_in_a_log_blame_nobody() {
    let in_tp = |rank: u32, local: u32, enqueued: i64, completed: i64| {
        let mut event =
            status(rank, (enqueued > completed).then_some(enqueued.unsigned_abs()), enqueued, completed);
        event.origin.group = Some(GroupRank { group: "mesh_tp".into(), rank: Some(local) });
        event
    };
    let matched = from_log(&[in_tp(0, 0, 9, 8), in_tp(1, 1, 9, 8), in_tp(2, 0, 5, 5), in_tp(3, 1, 5, 5)]);
    assert_eq!(matched.root_rank(), None);
}

#[test]
fn ras_names_the_rank_with_fewer_operations() {
    for file in ["ras.txt", "ras.json"] {
        let path = format!("{}/samples/pair-missing-rank-ras/{file}", env!("CARGO_MANIFEST_DIR"));
        let mut matcher = Matcher::default();
        matcher.add_ras(&nccl_ras::read(&std::fs::read(path).unwrap()));
        let matched = matcher.finish();
        assert_eq!(matched.root_rank(), Some(1), "{file}");
        let found = missing(&matched);
        assert_eq!((found.collective.op.as_str(), found.collective.seq), ("ALLREDUCE", Some(2)), "{file}");
        assert_eq!(
            (found.missing.as_slice(), found.waiting.as_slice(), found.basis),
            (&[1][..], &[0][..], Basis::Ras)
        );
    }
}

// Larger jobs, made up.

struct Job {
    groups: Vec<(&'static str, Vec<u32>)>,
}

impl Job {
    fn one(size: u32) -> Self {
        Self { groups: vec![("0", (0..size).collect())] }
    }

    /// A dump with these calls: group, number, operation, elements, state.
    fn dump(&self, rank: u32, calls: &[(u32, u64, &str, i64, EntryState)]) -> FlightDump {
        let mut dump = FlightDump { complete: true, ..FlightDump::default() };
        dump.groups = self
            .groups
            .iter()
            .map(|(name, ranks)| DumpGroup {
                name: (*name).into(),
                ranks: ranks.clone().into(),
                ..DumpGroup::default()
            })
            .collect();
        let place = Place { file: format!("/work/rank{rank}.py"), line: Some(7), function: None };
        dump.frames.push(place);
        dump.stacks.push([0].into());
        for (record, &(group, seq, op, numel, state)) in calls.iter().enumerate() {
            let op = operation(op);
            let p2p = op.peers.is_some();
            dump.signatures.push(Arc::new(Signature {
                op,
                input_sizes: vec![vec![numel]],
                output_sizes: vec![vec![numel]],
                input_dtypes: vec!["Float".into()],
                output_dtypes: vec!["Float".into()],
            }));
            let signature = u32::try_from(record).unwrap();
            dump.entries.push(Entry {
                record: record as u64,
                seq: Some(seq),
                created_ns: 0,
                timeout_ms: None,
                group,
                signature,
                stack: Some(0),
                state,
                p2p,
            });
        }
        dump
    }
}

use EntryState::{Completed, Scheduled, Started};

fn matched(dumps: &[(u32, FlightDump)]) -> Matched {
    let mut matcher = Matcher::default();
    for (rank, dump) in dumps {
        matcher.add_dump(*rank, dump);
    }
    matcher.finish()
}

#[test]
fn agreement_finds_nothing() {
    let job = Job::one(3);
    let calls = [(0, 1, "all_reduce", 8, Completed), (0, 2, "all_gather", 8, Completed)];
    let found = matched(&(0..3).map(|rank| (rank, job.dump(rank, &calls))).collect::<Vec<_>>());
    assert_eq!((found.findings.as_slice(), found.root_rank()), (&[][..], None));
}

#[test]
fn the_minority_is_odd_where_there_is_a_majority() {
    let job = Job::one(4);
    let dump = |rank, op, numel| (rank, job.dump(rank, &[(0, 5, op, numel, Scheduled)]));
    let ops = matched(&[
        dump(0, "all_reduce", 8),
        dump(1, "all_reduce", 8),
        dump(2, "broadcast", 8),
        dump(3, "all_reduce", 8),
    ]);
    assert_eq!((mismatch(&ops).differs, ops.root_rank()), (Differs::Op, Some(2)));
    assert_eq!(mismatch(&ops).views[1].at.as_ref().map(|at| at.file.as_str()), Some("/work/rank2.py"));
    let halves = matched(&[
        dump(0, "all_reduce", 8),
        dump(1, "all_reduce", 8),
        dump(2, "all_reduce", 16),
        dump(3, "all_reduce", 16),
    ]);
    assert_eq!((mismatch(&halves).differs, halves.root_rank()), (Differs::Size, None));
}

#[test]
fn a_difference_that_completed_does_not_hide_what_hangs() {
    let job = Job::one(2);
    let found = matched(&[
        (0, job.dump(0, &[(0, 1, "all_reduce", 8, Completed), (0, 2, "all_reduce", 8, Scheduled)])),
        (1, job.dump(1, &[(0, 1, "all_reduce", 16, Completed)])),
    ]);
    assert_eq!((missing(&found).collective.seq, found.root_rank()), (Some(2), Some(1)));
    let [_, Finding::Mismatch(harmless)] = found.findings.as_slice() else { panic!("{found:#?}") };
    assert!(harmless.completed && harmless.seq == Some(1));
}

#[test]
fn all_in_the_same_collective_are_stuck_and_the_unstarted_one_stands_out() {
    let job = Job::one(3);
    let dump = |rank, state| (rank, job.dump(rank, &[(0, 4, "all_reduce", 8, state)]));
    let timed = matched(&[dump(0, Started), dump(1, Scheduled), dump(2, Started)]);
    let Finding::Stuck(stuck) = &timed.findings[0] else { panic!("{timed:#?}") };
    assert_eq!((stuck.not_started.as_slice(), stuck.all_seen, timed.root_rank()), (&[1][..], true, Some(1)));
    let untimed = matched(&[dump(0, Scheduled), dump(1, Scheduled), dump(2, Scheduled)]);
    assert_eq!(untimed.root_rank(), None, "scheduled may mean running where starts are not recorded");
}

#[test]
fn a_broadcast_root_that_is_through_is_no_mismatch() {
    let job = Job::one(3);
    let found = matched(&[
        (0, job.dump(0, &[(0, 1, "broadcast", 8, Completed)])),
        (1, job.dump(1, &[(0, 1, "broadcast", 8, Scheduled)])),
        (2, job.dump(2, &[])),
    ]);
    assert_eq!((missing(&found).missing.as_slice(), found.root_rank()), (&[2][..], Some(2)));
}

#[test]
fn an_overwritten_or_cut_record_is_not_taken_for_absence() {
    let job = Job::one(2);
    let waiting = || (0, job.dump(0, &[(0, 9, "all_reduce", 8, Scheduled)]));
    let mut cut = job.dump(1, &[(0, 8, "all_reduce", 8, Completed)]);
    cut.complete = false;
    let found = matched(&[waiting(), (1, cut.clone())]);
    assert_eq!((missing(&found).missing.as_slice(), missing(&found).unseen.as_slice()), (&[][..], &[1][..]));
    cut.groups[0].last_enqueued = Some(8);
    assert_eq!(missing(&matched(&[waiting(), (1, cut)])).missing, [1], "the status stands before the cut");
    let mut late = job.dump(1, &[(0, 30, "all_reduce", 8, Completed)]);
    late.overwritten = 20;
    late.groups[0].last_completed = Some(30);
    let found = matched(&[waiting(), (1, late)]);
    assert_eq!(mismatch(&found).differs, Differs::State);
}

#[test]
fn a_rank_that_waits_elsewhere_is_not_the_origin() {
    // Ranks 0 and 1 form group tp, 1 and 2 form group pp. Rank 2 stays away; 1 waits for 2, and 0 for 1.
    let job = Job { groups: vec![("tp", vec![0, 1]), ("pp", vec![1, 2])] };
    let mut found = matched(&[
        (0, job.dump(0, &[(0, 3, "all_reduce", 8, Scheduled)])),
        (1, job.dump(1, &[(1, 2, "all_reduce", 8, Scheduled)])),
        (2, job.dump(2, &[])),
    ]);
    assert_eq!((found.root_rank(), found.crossed), (Some(2), false));
    let Finding::Missing(tp) = found.findings.remove(1) else { panic!() };
    assert_eq!(
        (tp.missing.as_slice(), tp.blocked[0].group.name.as_str(), tp.blocked[0].seq),
        (&[1][..], "pp", Some(2))
    );
}

#[test]
fn groups_that_wait_for_each_other_are_crossed() {
    let job = Job { groups: vec![("a", vec![0, 1]), ("b", vec![0, 1])] };
    let found = matched(&[
        (0, job.dump(0, &[(0, 1, "all_reduce", 8, Scheduled)])),
        (1, job.dump(1, &[(1, 1, "all_reduce", 8, Scheduled)])),
    ]);
    assert!(found.crossed, "{found:#?}");
}

#[test]
fn a_send_without_its_receive_names_the_receiver() {
    let job = Job { groups: vec![("0", vec![0, 1, 2])] };
    let found = matched(&[
        (0, job.dump(0, &[(0, 1, "nccl:send 0->1", 8, Completed), (0, 2, "nccl:send 0->2", 8, Scheduled)])),
        (1, job.dump(1, &[(0, 1, "nccl:recv 1<-0", 8, Completed)])),
        (2, job.dump(2, &[])),
    ]);
    assert_eq!((missing(&found).collective.op.as_str(), found.root_rank()), ("SEND", Some(2)));
    let joined = matched(&[
        (0, job.dump(0, &[(0, 2, "nccl:send 0->2", 8, Scheduled)])),
        (2, job.dump(2, &[(0, 1, "nccl:recv 2<-0", 8, Scheduled)])),
    ]);
    assert!(joined.findings.is_empty(), "both sides came: {joined:#?}");
}

#[test]
fn parts_of_a_coalesced_call_share_its_state() {
    let job = Job::one(2);
    let batch = |state| {
        let mut dump =
            job.dump(0, &[(0, 4, "nccl:send 0->1", 8, Scheduled), (0, 4, "nccl:coalesced", 0, state)]);
        dump.entries[1].p2p = true;
        dump
    };
    assert!(matched(&[(0, batch(Completed)), (1, job.dump(1, &[]))]).findings.is_empty());
    assert_eq!(matched(&[(0, batch(Scheduled)), (1, job.dump(1, &[]))]).root_rank(), Some(1));
}

#[test]
fn ranges_are_short() {
    assert_eq!(ranges(&[0, 1, 2, 3, 7, 9, 10]), "0-3,7,9-10");
    let many: Vec<u32> = (0..30).map(|rank| rank * 2).collect();
    assert_eq!(ranges(&many), "0,2,4,6,8,10,12,14,16,18,20,22 and 18 more");
}
