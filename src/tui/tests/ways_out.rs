//! From every state Esc and q lead out, and no keys break anything at any size.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;

use crate::source::InputSpec;
use crate::tui::keymap::{Chord, ROWS};
use crate::tui::model::Overlay;
use crate::tui::msg::Msg;

use super::harness::Ui;

/// Keys into every state that there is.
const STATES: &[&str] = &[
    "",
    "2",
    "3",
    "4",
    "5",
    "?",
    ":",
    "/",
    "f",
    "esc",
    "j enter",
    "5 r",
    "5 t",
    "5 / 'x' enter",
    "5 f 'x' enter",
    "z",
    "3 z",
    ": tab",
    ": tab tab",
    "5 w",
    "5 ]",
    "e",
    ": 'nonsense' enter",
    "/ 'a(' enter",
    "f2",
    "T",
    "4 s",
    "4 j c",
    "4 j o",
    "4 j i",
    "4 p",
    "4 r",
    "R",
];

fn states(width: u16, height: u16) -> Vec<(String, Ui)> {
    let mut all: Vec<(String, Ui)> = STATES
        .iter()
        .map(|keys| {
            let mut ui = Ui::read(width, height);
            ui.press(keys);
            ((*keys).to_owned(), ui)
        })
        .collect();
    all.push(("start".to_owned(), Ui::new(width, height)));
    let mut typing = Ui::new(width, height);
    typing.press("'/tmp/x' down");
    all.push(("typing".to_owned(), typing));
    let mut pasting = Ui::new(width, height);
    pasting.send(Msg::Typed("a burst of keys\n".to_owned()));
    all.push(("pasting".to_owned(), pasting));
    all.push(("loading".to_owned(), Ui::loading(width, height)));
    let log = b"RuntimeError: CUDA error: an illegal memory access was encountered\n".to_vec();
    let mut filling = Ui::engine(width, height, vec![InputSpec::Text { name: "log".to_owned(), bytes: log }]);
    filling.press("4 r 'x'");
    assert!(matches!(filling.model.overlay, Some(Overlay::Form(_))));
    all.push(("filling".to_owned(), filling));
    let mut pasted = Ui::new(width, height);
    pasted.send(Msg::Paste("a\nb".to_owned()));
    all.push(("pasted".to_owned(), pasted));
    all
}

#[test]
fn esc_then_q_leads_out_of_every_state() {
    for (width, height) in [(80, 24), (160, 50), (20, 3)] {
        for (name, mut ui) in states(width, height) {
            for _ in 0..6 {
                ui.press("esc");
                assert!(!ui.left(), "{name}: Esc alone never leaves");
            }
            ui.press("q");
            if !ui.left() {
                ui.press("q");
            }
            assert!(ui.left(), "{name}");
        }
    }
}

#[test]
fn q_leads_out_wherever_no_text_is_typed() {
    for (name, mut ui) in states(80, 24) {
        if matches!(
            name.as_str(),
            "4 j c" | "4 j i" | ":" | "/" | "f" | ": tab" | ": tab tab" | "typing" | "pasting" | "filling"
        ) {
            ui.press("esc");
        }
        for _ in 0..3 {
            if !ui.left() {
                ui.press("q");
            }
        }
        assert!(ui.left(), "{name}");
    }
}

#[test]
fn a_paste_is_never_lost_without_a_question() {
    for keys in ["q", "ctrl-c", ": 'q' enter"] {
        let mut ui = Ui::new(80, 24);
        ui.send(Msg::Paste("a\nb".to_owned()));
        // The work is stopped by the first Ctrl-C.
        ui.press("ctrl-c").press(keys);
        assert!(!ui.left() && ui.text().contains("This paste is not on disk."), "{keys}");
        ui.press("esc");
        assert!(!ui.left());
    }
}

#[test]
fn saving_comes_before_leaving() {
    let mut ui = Ui::new(80, 24);
    ui.send(Msg::Paste("a\nb".to_owned()));
    ui.press("ctrl-c q s");
    assert!(!ui.left());
    ui.send(Msg::Saved("/tmp/paste-1.log".into()));
    assert!(ui.left());
}

fn any_key() -> impl Strategy<Value = KeyEvent> {
    let table: Vec<KeyEvent> =
        ROWS.iter().flat_map(|row| row.keys).filter_map(|key| Chord::parse(key)).map(Chord::event).collect();
    prop_oneof![
        4 => proptest::sample::select(table),
        1 => any::<char>().prop_map(|c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)),
        1 => any::<char>().prop_map(|c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)),
        1 => Just(KeyEvent::new(KeyCode::Delete, KeyModifiers::NONE)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_keys_at_any_size(
        keys in proptest::collection::vec(any_key(), 0..60),
        sizes in proptest::collection::vec((0_u16..180, 0_u16..60), 1..5),
    ) {
        let mut ui = Ui::read(80, 24);
        for (index, key) in keys.into_iter().enumerate() {
            ui.key(key);
            if index % 9 == 0 {
                let (width, height) = sizes[index / 9 % sizes.len()];
                ui.send(Msg::Resize(width, height));
                ui.frame();
            }
        }
        ui.frame();
    }
}
