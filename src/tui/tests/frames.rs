//! Every pane and state at 80×24, 100×30 and 160×50.

use crate::tui::model::Sample;
use crate::tui::msg::{Msg, Opening};
use crate::tui::theme::{ASCII, Palette};

use super::harness::Ui;

const SIZES: [(u16, u16); 3] = [(80, 24), (100, 30), (160, 50)];

/// Draws a state at every size.
fn frames(name: &str, state: impl Fn(u16, u16) -> Ui) {
    for (width, height) in SIZES {
        let ui = state(width, height);
        insta::assert_snapshot!(format!("{name}-{width}x{height}"), ui.frame());
    }
}

fn after(keys: &'static str) -> impl Fn(u16, u16) -> Ui {
    move |width, height| {
        let mut ui = Ui::read(width, height);
        ui.press(keys);
        ui
    }
}

#[test]
fn start() {
    frames("start", |width, height| {
        let mut ui = Ui::new(width, height);
        let sample = |name: &str| Sample { title: name.to_owned(), opening: Opening::Saved(name.to_owned()) };
        let samples =
            vec![sample("triton-int32-wrap: an index wraps"), sample("pair-missing-rank: a rank is late")];
        ui.send(Msg::Picks { recent: vec![sample("yesterday.log")], samples });
        ui.press("'/tmp/ru' down down");
        ui
    });
}

#[test]
fn loading_and_reading() {
    frames("loading", Ui::loading);
    frames("reading", |width, height| {
        let mut ui = Ui::loading(width, height);
        ui.load();
        ui
    });
}

#[test]
fn a_long_reading_says_how_far_it_is() {
    let mut ui = Ui::loading(100, 30);
    let mut source = super::fixture::source();
    source.bytes = crate::source::Bytes::from(vec![b'x'; 128 << 20]);
    let progress = crate::read::Progress::default();
    progress.add(32 << 20);
    let generation = ui.model.generation;
    ui.send(Msg::Loaded { generation, sources: vec![source], progress: progress.clone() });
    for _ in 0..48 {
        ui.send(Msg::Tick);
    }
    let text = ui.text();
    assert!(text.contains(", 25 % at 64.0 MiB/s, 2.0 s left"), "{text}");
}

#[test]
fn failed_and_stopped() {
    frames("failed", |width, height| {
        let mut ui = Ui::loading(width, height);
        let generation = ui.model.generation;
        ui.send(Msg::Failed { generation, why: "logs: no such file or folder".to_owned() });
        ui
    });
    frames("stopped", |width, height| {
        let mut ui = Ui::loading(width, height);
        ui.press("ctrl-c");
        ui
    });
}

#[test]
fn panes() {
    frames("verdict", after(""));
    frames("verdict-scrolled", after("G"));
    frames("evidence", after("2 j"));
    frames("ranks", after("3"));
    frames("next", after("4"));
    frames("log", after("5"));
}

#[test]
fn log_states() {
    frames("log-from-claim", after("j enter"));
    frames("log-search", after("/ 'cuda' enter n"));
    frames("log-only-rank-1", after("5 r r"));
    frames("log-only-kind", after("5 t t t"));
    frames("log-wrapped", after("5 g w"));
    frames("log-scrolled-right", after("5 l l"));
    frames("log-nothing-passes", after("5 f 'no_such_text' enter"));
    frames("log-second-input", after("5 ]"));
    frames("log-end", after("5 G"));
}

#[test]
fn overlays() {
    frames("help", after("?"));
    frames("command-completion", after(": tab tab"));
    frames("leave", after("esc"));
    frames("message", after("/ 'a(' enter"));
}

#[test]
fn zoomed_pane() {
    frames("zoom", after("3 z"));
}

#[test]
fn ascii_has_no_other_characters_than_those_of_the_log() {
    let mut ui = Ui::read(80, 24);
    ui.model.theme.glyphs = &ASCII;
    for keys in ["", "2", "3", "4", "?", "esc", "esc"] {
        ui.press(keys);
        let text = ui.text();
        let odd: Vec<char> = text.chars().filter(|c| !c.is_ascii() && !"…".contains(*c)).collect();
        assert!(odd.is_empty(), "{keys}: {odd:?}\n{text}");
    }
}

#[test]
fn without_colours_every_cell_is_uncoloured() {
    use ratatui::style::Color;
    let mut ui = Ui::read(160, 50);
    ui.model.theme.palette = Palette::Mono;
    for keys in ["", "2", "3", "4", "5 / 'cuda' enter", "?"] {
        ui.press(keys);
        let frame = ui.frame();
        let coloured =
            frame.buffer().content().iter().find(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset));
        assert_eq!(coloured, None, "{keys}");
    }
}

#[test]
fn no_control_character_reaches_the_screen() {
    let mut ui = Ui::read(80, 24);
    ui.press("5 g");
    let text = ui.text();
    assert!(text.contains("progress \\x1b]0;owned\\x07 step 41"), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
}
