//! Real dumps, dumps written by hand, and dumps cut at every byte.

use super::*;

const SKIPPED_0: &[u8] = include_bytes!("../../../samples/pair-skipped-collective/nccl_trace_rank_0");
const SIZE_1: &[u8] = include_bytes!("../../../samples/pair-size-mismatch/nccl_trace_rank_1");

#[test]
fn reads_a_real_dump() {
    let dump = read(SKIPPED_0).unwrap();
    assert_eq!((dump.version.as_deref(), dump.comm_lib_version.as_deref()), (Some("2.10"), Some("2.28.9")));
    assert!(dump.complete && dump.diagnostics.is_empty());
    let expected = DumpGroup {
        name: "0".into(),
        desc: Some("default_pg".into()),
        ranks: [0, 1].into(),
        last_enqueued: Some(7),
        last_started: Some(-1),
        last_completed: Some(6),
    };
    assert_eq!(dump.groups, [expected]);
    let seqs: Vec<Option<u64>> = dump.entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (1..=7).map(Some).collect::<Vec<_>>());
    let last = dump.entries.last().unwrap();
    assert_eq!(
        (last.state, last.timeout_ms, last.created_ns),
        (EntryState::Scheduled, Some(15_000), 1_795_981_596_387_127_130)
    );
    assert_eq!(dump.signatures.len(), 1, "seven entries, one signature");
    assert_eq!(
        (dump.signatures[0].op.op.as_str(), dump.signatures[0].numel_in()),
        ("ALLREDUCE", Some(1_048_576))
    );
    assert_eq!(dump.stacks.len(), 2);
    let frame = dump.user_frame(last.stack.unwrap()).unwrap();
    assert_eq!((frame.file.as_str(), frame.line), ("/home/user/lora/py/nccl_cases.py", Some(59)));
}

#[test]
fn sizes_stand_in_the_signature() {
    let dump = read(SIZE_1).unwrap();
    let numels: Vec<Option<u64>> =
        dump.entries.iter().map(|entry| dump.signatures[entry.signature as usize].numel_in()).collect();
    assert_eq!(numels, [Some(1_048_576), Some(2048)]);
}

#[test]
fn reads_the_json_form_with_numbers_as_text() {
    let json = br#"{"comm_lib_version":"2.21.5","entries":[{"collective_seq_id":4,"input_dtypes":["Float"],"input_sizes":[[3,4]],
        "is_p2p":false,"output_dtypes":["Float"],"output_sizes":[[3,4]],"pg_id":2,"process_group":["51","mesh_tp"],
        "profiling_name":"nccl:_all_gather_base","record_id":9,"state":"started","time_created_ns":17,"timeout_ms":600000}],
        "nccl_comm_state":{"0xab":{"rank":"5","nRanks":"8"}},
        "pg_config":{"51":{"desc":"mesh_tp","name":"51","ranks":"[0, 1, 2, 3, 4, 5, 6, 7]"}},
        "pg_status":{"2":{"last_completed_collective":"3","last_enqueued_collective":"4","last_started_collective":"4"}},
        "version":"2.5"}"#;
    assert!(looks_like_flight_dump(json));
    let dump = read(json).unwrap();
    assert_eq!(dump.rank, Some(5));
    assert_eq!(dump.overwritten, 9);
    let group = &dump.groups[0];
    assert_eq!((group.name.as_str(), group.last_enqueued, group.last_completed), ("51", Some(4), Some(3)));
    assert_eq!(dump.entries[0].state, EntryState::Started);
    assert_eq!(
        (dump.signatures[0].op.op.as_str(), dump.signatures[0].numel_out()),
        ("_ALLGATHER_BASE", Some(12))
    );
}

#[test]
fn reads_dumps_of_versions_that_lack_keys() {
    let dump =
        read(br#"{"version":"1.0","entries":[{"pg_id":1,"seq_id":3,"profiling_name":"nccl:broadcast"}]}"#)
            .unwrap();
    assert_eq!((dump.groups[0].name.as_str(), dump.entries[0].seq), ("1", Some(3)));
    assert_eq!(dump.entries[0].state, EntryState::Scheduled);
    assert_eq!(dump.signatures[0].numel_in(), None);
}

#[test]
fn point_to_point_entries_name_their_peers_and_the_rank() {
    let dump = read(
        br#"{"entries":[{"process_group":["3","pp"],"p2p_seq_id":2,"collective_seq_id":9,"is_p2p":true,
        "profiling_name":"nccl:recv 1<-0","state":"scheduled"}],"pg_config":{"3":{"name":"3","ranks":"[4, 8]"}}}"#,
    )
    .unwrap();
    assert_eq!((dump.entries[0].seq, dump.entries[0].p2p), (Some(2), true));
    assert_eq!(dump.signatures[0].op, OpName { op: "RECV".into(), peers: Some((0, 1)) });
    assert_eq!(dump.rank, Some(8), "member 1 of the group receives");
}

#[test]
fn a_cut_dump_gives_its_whole_entries_and_says_so() {
    let mut most = 0;
    for end in 0..SKIPPED_0.len() {
        if let Ok(dump) = read(&SKIPPED_0[..end]) {
            assert!(!dump.complete);
            assert!(dump.entries.len() >= most, "cut at {end}");
            most = dump.entries.len();
            for (seq, entry) in (1..).zip(&dump.entries) {
                assert_eq!(entry.seq, Some(seq));
            }
        }
    }
    assert_eq!(most, 7);
    let dump = read(&SKIPPED_0[..1800]).unwrap();
    assert_eq!(
        dump.diagnostics,
        ["the dump is cut (the bytes end at byte 1800 of 1800); 5 whole entries were read"]
    );
    assert_eq!(dump.groups[0].last_enqueued, Some(7), "the status stands before the entries");
}

#[test]
fn refuses_code_and_bytes_that_are_no_dump() {
    let error =
        read(b"\x80\x02}X\x07\x00\x00\x00entriescos\nsystem\nX\x02\x00\x00\x00id\x85Rs.").unwrap_err();
    assert!(error.to_string().contains("os.system"), "{error}");
    let other = read(b"\x80\x02}X\x01\x00\x00\x00aK\x01s.").unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Format);
    assert!(!looks_like_flight_dump(b"{\"segments\": [], \"traces\": []}"));
    assert!(!looks_like_flight_dump(b"[rank0]: Watchdog caught collective operation timeout"));
}

#[test]
fn the_user_frame_is_outside_the_framework() {
    let place = |file: &str| Place { file: file.into(), line: Some(1), function: None };
    let frames = vec![
        place("/opt/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py"),
        place("torch/distributed/distributed_c10d.py"),
        place("<frozen importlib._bootstrap>"),
        place("/opt/venv/lib/python3.12/site-packages/my_models/loss.py"),
        place("/home/me/train.py"),
    ];
    let dump = FlightDump {
        frames,
        stacks: vec![[0, 1, 2, 3, 4].into(), [0, 1, 2].into()],
        ..FlightDump::default()
    };
    assert_eq!(dump.user_frame(0), Some(&dump.frames[3]));
    assert_eq!(dump.user_frame(1), None);
}

#[test]
fn a_dump_gives_the_status_of_its_rank_as_events() {
    let events = read(SKIPPED_0).unwrap().status_events(InputId(3), 0);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].text, "rank 0, group 0(default_pg): last enqueued 7, last completed 6");
    let Data::WorkStatus(status) = &events[0].data else { panic!("{events:?}") };
    assert_eq!((status.last_enqueued, status.last_completed, status.failed_at), (Some(7), Some(6), None));
}

#[test]
fn long_shared_texts_and_lists_are_not_copied_for_each_mention() {
    // One text of 100 kB, mentioned as operation, file and members by 20,000 entries and 20,000 groups.
    let long = vec![b'7'; 100_000];
    let mut bytes = b"\x80\x02}(X\x07\x00\x00\x00entries](".to_vec();
    let text = |bytes: &mut Vec<u8>, text: &[u8]| {
        bytes.push(b'X');
        bytes.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        bytes.extend(text);
    };
    let names: [&[u8]; 5] = [b"profiling_name", b"frames", b"filename", b"line", b"ranks"];
    for (id, name) in (0..).zip(names) {
        text(&mut bytes, name);
        bytes.extend([b'q', id, b'0']);
    }
    text(&mut bytes, &long);
    bytes.extend(b"q\x050");
    for line in 0..20_000u16 {
        bytes.extend(b"}(h\x00h\x05h\x01](}(h\x02h\x05h\x03M");
        bytes.extend(line.to_le_bytes());
        bytes.extend(b"ueu");
    }
    bytes.push(b'e');
    text(&mut bytes, b"pg_config");
    bytes.extend(b"}(");
    for group in 0..20_000u16 {
        bytes.push(b'M');
        bytes.extend(group.to_le_bytes());
        bytes.extend(b"}(h\x04h\x05u");
    }
    bytes.extend(b"uu.");
    let dump = read(&bytes).unwrap();
    assert_eq!((dump.signatures.len(), dump.signatures[0].op.op.len()), (1, 1024));
    let kept: usize = dump.frames.iter().map(|frame| frame.file.len()).sum();
    assert!(kept <= 20_000 * 1024 && dump.groups.len() >= 20_000, "{} {}", kept, dump.groups.len());
}
