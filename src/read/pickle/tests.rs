//! Pickles written by hand, byte by byte, and real dumps cut at every byte.

use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::read::plain::DEPTH_LIMIT;

fn shown(pickle: &Pickle<'_>, value: Value) -> String {
    let plain = &pickle.plain;
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Text(_) => format!("'{}'", plain.text(value).unwrap()),
        Value::List(_) => {
            let items: Vec<String> = plain.items(value).iter().map(|item| shown(pickle, *item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Dict(_) => {
            let pairs: Vec<String> = plain
                .pairs(value)
                .map(|(key, value)| format!("{}: {}", shown(pickle, key), shown(pickle, value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

fn read(bytes: &[u8]) -> String {
    let pickle = decode(bytes).unwrap();
    assert_eq!(pickle.stopped, None);
    shown(&pickle, pickle.root)
}

fn refusal(bytes: &[u8]) -> String {
    let error = decode(bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    error.to_string()
}

#[test]
fn reads_every_kind_of_value_of_protocol_2() {
    // pickle.dumps({'a': [1, -2, 300, 70000, 2**40, -2**40, 1.5], 'b': (None, True, False), 'c': 2**70}, 2)
    let bytes = b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00\
        \x8a\x06\x00\x00\x00\x00\x00\x01\x8a\x06\x00\x00\x00\x00\x00\xffG?\xf8\x00\x00\x00\x00\x00\x00eX\x01\x00\x00\x00bq\x03\
        N\x88\x89\x87q\x04X\x01\x00\x00\x00cq\x05\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@u.";
    assert_eq!(
        read(bytes),
        "{'a': [1, -2, 300, 70000, 1099511627776, -1099511627776, 1.5], 'b': [None, true, false], \
         'c': 4.722366482869645e21}"
    );
}

#[test]
fn reads_old_and_new_protocols() {
    // pickle.dumps({'k': [True, 7, 'x']}, 0), and the same at 4
    assert_eq!(read(b"(dp0\nVk\np1\n(lp2\nI01\naI7\naVx\np3\nas."), "{'k': [true, 7, 'x']}");
    let four =
        b"\x80\x04\x95\x12\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01k\x94]\x94(\x88K\x07\x8c\x01x\x94es.";
    assert_eq!(read(four), "{'k': [true, 7, 'x']}");
}

#[test]
fn shares_a_container_instead_of_copying_it() {
    // t = ("0", "d"); pickle.dumps([t, t], 2)
    let bytes = b"\x80\x02]q\x00(X\x01\x00\x00\x000q\x01X\x01\x00\x00\x00dq\x02\x86q\x03h\x03e.";
    assert_eq!(read(bytes), "[['0', 'd'], ['0', 'd']]");
    let pickle = decode(bytes).unwrap();
    let [first, second] = pickle.plain.items(pickle.root) else { panic!("two items") };
    assert_eq!(first, second);
}

#[test]
fn int_lists_of_torch_are_lists() {
    let bytes = b"\x80\x02ctorch.jit._pickle\nbuild_intlist\nq\x00](K\x01K\x02e\x85R.";
    assert_eq!(read(bytes), "[1, 2]");
}

#[test]
fn refuses_code_by_name() {
    assert!(refusal(b"cos\nsystem\n(S'rm -rf /'\ntR.").contains("`os.system` (GLOBAL"));
    assert!(
        refusal(b"\x80\x02}X\x01\x00\x00\x00acos\nsystem\nX\x02\x00\x00\x00id\x85Rs.")
            .contains("`os.system`")
    );
    assert!(
        refusal(b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.")
            .contains("`posix.system` (STACK_GLOBAL")
    );
    assert!(refusal(b"(S'id'\nios\nsystem\n.").contains("`os.system` (INST"));
    assert!(refusal(b"\x80\x02\x82\x01.").contains("EXT1"));
    assert!(refusal(b"\x80\x02}}b.").contains("BUILD"));
    assert!(refusal(b"\x80\x02})\x81.").contains("NEWOBJ"));
    assert!(refusal(b"\x80\x02Pfile\n.").contains("PERSID"));
    assert!(refusal(b"\x80\x02})R.").contains("REDUCE"));
    // The known name does not make a call to something else pass, nor its look-alikes.
    assert!(refusal(b"ctorch.jit._pickle\nbuild_intlist\nNb.").contains("BUILD"));
    assert!(refusal(b"ctorch.jit._pickle\nbuild_intlists\n.").contains("build_intlists"));
    assert!(refusal(b"c\x1b[2J\nx\n.").contains("\\u{1b}[2J.x"), "escapes never reach the terminal");
}

#[test]
fn refuses_cycles_depth_and_bombs_in_a_bounded_way() {
    let cycle = decode(b"\x80\x02]q\x00h\x00a.").unwrap_err();
    assert!(cycle.to_string().contains("cycle"), "{cycle}");
    let mut deep = b"\x80\x02".to_vec();
    deep.extend(vec![b']'; 100_000]);
    deep.extend(vec![b'a'; 99_999]);
    deep.push(b'.');
    let error = decode(&deep).unwrap_err();
    assert!(error.to_string().contains(&format!("{DEPTH_LIMIT} levels")), "{error}");
    // Each of 40 lists holds the one before ten times: 10^40 items once unfolded, 400 as stored.
    let mut bomb = b"\x80\x02]q\x00".to_vec();
    for level in 1..=40u8 {
        bomb.extend([b']', b'(']);
        for _ in 0..10 {
            bomb.extend([b'h', level - 1]);
        }
        bomb.extend([b'e', b'q', level]);
    }
    bomb.push(b'.');
    let error = decode(&bomb).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("memo bomb"), "{error}");
    let many = decode(&vec![b'N'; 20_000_000]).unwrap_err();
    assert_eq!(many.kind(), ErrorKind::Limit);
    // A size far beyond the bytes is not allocated.
    let huge = decode(b"\x80\x02X\xff\xff\xff\xffabc").unwrap_err();
    assert!(huge.to_string().contains("the bytes end"), "{huge}");
}

#[test]
fn a_cut_pickle_gives_what_was_complete() {
    let whole = b"\x80\x02}(X\x01\x00\x00\x00v](}(X\x01\x00\x00\x00aK\x01u}(X\x01\x00\x00\x00aK\x02ueu.";
    assert_eq!(read(whole), "{'v': [{'a': 1}, {'a': 2}]}");
    let pickle = decode(&whole[..whole.len() - 6]).unwrap();
    assert_eq!(shown(&pickle, pickle.root), "{'v': [{'a': 1}, {}]}");
    assert_eq!(pickle.stopped.as_deref(), Some("the bytes end at byte 31 of 31"));
    let list = pickle.plain.get(pickle.root, "v").unwrap();
    let open: Vec<bool> =
        pickle.plain.items(list).iter().map(|entry| pickle.plain.is_unfinished(*entry)).collect();
    assert_eq!(open, [false, true]);
}

#[test]
fn knows_a_pickle_by_its_head() {
    assert!(looks_like_pickle(b"\x80\x02}q\x00("));
    assert!(looks_like_pickle(b"cos\nsystem\n(S'id'\ntR."));
    assert!(looks_like_pickle(b"(dp0\nVk\n"));
    assert!(!looks_like_pickle(b"(deadlock) rank 3"));
    assert!(!looks_like_pickle(b"cuda error\nfoo bar\n"));
    assert!(!looks_like_pickle(b""));
    assert!(!looks_like_pickle(b"\x80\x07"));
    assert!(!looks_like_pickle(b"\x7fELF"));
}

#[test]
fn every_truncation_of_a_real_dump_ends_well() {
    let dump = include_bytes!("../../../samples/pair-skipped-collective/nccl_trace_rank_0");
    for end in 0..dump.len() {
        match decode(&dump[..end]) {
            Ok(pickle) => assert!(pickle.stopped.is_some(), "cut at {end}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Format, "cut at {end}: {error}"),
        }
    }
    assert_eq!(decode(dump).unwrap().stopped, None);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn no_opcodes_panic(bytes in proptest::collection::vec(
        proptest::sample::select(&b"().012}]NKhqaeustdl\x85\x86\x87\x88\x8f\x90\x91\x94\x01\x02R"[..]), 0..300)) {
        if let Ok(pickle) = decode(&bytes) {
            prop_assert!(shown(&pickle, pickle.root).len() < 10_000_000);
        }
    }

    #[test]
    fn a_flipped_byte_of_a_real_dump_ends_well(at in 0usize..2011, byte in any::<u8>()) {
        let mut dump = include_bytes!("../../../samples/pair-skipped-collective/nccl_trace_rank_0").to_vec();
        if let Some(slot) = dump.get_mut(at) {
            *slot = byte;
        }
        let _ = decode(&dump);
    }
}
