//! Any bytes at all: whatever an input holds, loading and reading end with a result and never with a panic.

use proptest::prelude::*;

use warpfault::read::event::InputId;
use warpfault::read::{literals, read_text};
use warpfault::session::{Input, Session};
use warpfault::source::{InputKind, InputSpec, Limits, Loaded, load};

fn pasted(bytes: &[u8]) -> Loaded {
    load(&[InputSpec::Text { name: "paste".to_owned(), bytes: bytes.to_vec() }], Limits::default())
}

fn analysed(bytes: &[u8]) -> Session {
    let mut session = Session::new();
    session.apply(Input::Loaded(pasted(bytes)));
    session
}

/// Log text as it reaches people: every dialect of line end, escape and prefix, around the literals that wake a reader.
fn log_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(literals()).prop_map(|text| text.as_bytes().to_vec()),
        3 => prop::sample::select(&["\n", "\r", "\r\n", "[rank3]: ", "> ", "\x1b[31m", "\0", ": ", " (", ")", "0x"][..])
            .prop_map(|text| text.as_bytes().to_vec()),
        2 => any::<u64>().prop_map(|number| number.to_string().into_bytes()),
        2 => prop::collection::vec(any::<u8>(), 0..20),
        1 => "\\PC{0,12}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

/// Beginnings that lead into each reader of a format.
const BEGINNINGS: &[&[u8]] = &[
    b"\x7fELF\x02\x01\x013\x07\0\0\0\0\0\0\0\x04\0\xbe\0\x01\0\0\0",
    b"\x7fELF\x02\x01\x01A\x08\0\0\0\0\0\0\0\x02\0\xbe\0\x01\0\0\0",
    b"\x80\x02}(X\x07\0\0\0versionq\0X\x04\0\0\x002.10q\x01",
    b"<?xml version=\"1.0\"?>\n<ComputeSanitizerOutput>\n<record>",
    b"SERVER PROTOCOL 2\nOK\n{\n \"nccl_version\": \"2.28.9\",\n \"communicators_count\": 1,",
    b"module {\n  tt.func public @k(%x: !tt.ptr<f32>) {\n",
    b".version 8.7\n.target sm_90a\n.address_size 64\n",
    b"{\"hidden_size\": 9216, \"vocab_size\": 1, \"model_type\": \"x\"",
    b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
    b"\x28\xb5\x2f\xfd\x24",
    b"\xff\xfe",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn log_like_text_is_read_and_its_spans_lie_inside(bytes in log_like()) {
        let reading = read_text(InputId(0), &bytes);
        for event in &reading.events {
            prop_assert!(event.span.byte <= bytes.len() as u64, "{event:?}");
            prop_assert!(event.span.line >= 1 && event.span.line <= reading.lines, "{event:?}");
        }
    }

    #[test]
    fn random_bytes_are_loaded_and_judged(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        let session = analysed(&bytes);
        prop_assert!(session.inputs().len() <= 1);
    }

    #[test]
    fn a_known_beginning_with_a_broken_rest_is_judged(
        start in prop::sample::select(BEGINNINGS),
        rest in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        analysed(&[start, &rest].concat());
    }
}

#[test]
fn weather_of_all_kinds_keeps_the_line_and_its_number() {
    let line = "RuntimeError: CUDA error: an illegal memory access was encountered";
    let utf16: Vec<u8> = format!("first\r\n{line}\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let plain = format!("first\n{line}\n").into_bytes();
    let nul: Vec<u8> = format!("fi\0rst\n{}\n", line.replace("CUDA", "CUDA\u{0}")).into_bytes();
    let cases: [(&str, Vec<u8>); 7] = [
        ("plain", plain.clone()),
        ("crlf", format!("first\r\n{line}\r\n").into_bytes()),
        ("utf-16", utf16),
        ("mark", [b"\xef\xbb\xbf", &plain[..]].concat()),
        ("progress bar", format!("first\n 10%|#   |\r 20%|##  |\r{line}\n").into_bytes()),
        ("quoted", format!("> first\n> {line}\n").into_bytes()),
        ("coloured", format!("first\n\x1b[31m{line}\x1b[0m\n").into_bytes()),
    ];
    for (name, bytes) in cases {
        let loaded = pasted(&bytes);
        let reading = read_text(InputId(0), &loaded.inputs[0].bytes);
        assert!(reading.events.iter().any(|event| event.span.line == 2), "{name}: {:?}", reading.events);
        assert!(reading.events.iter().all(|event| event.span.line == 2), "{name}: {:?}", reading.events);
    }
    assert_eq!(pasted(&nul).inputs[0].kind, InputKind::Log);
}

#[test]
fn a_line_of_a_hundred_megabytes_is_searched_and_not_copied() {
    let mut bytes = vec![b'x'; 100 << 20];
    let message = b" RuntimeError: CUDA error: an illegal memory access was encountered ";
    let at = 60 << 20;
    bytes[at..at + message.len()].copy_from_slice(message);
    bytes.extend(b"\nlast\n");
    let reading = read_text(InputId(0), &bytes);
    assert_eq!((reading.lines, reading.candidate_lines), (2, 1));
    assert!(reading.events.iter().all(|event| event.span.line == 1 && event.text.len() <= 2_000));
    assert!(!reading.events.is_empty());
}
