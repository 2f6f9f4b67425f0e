//! What keys do.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use crate::tui::keymap::{Action, Chord, ROWS, Scope};
use crate::tui::model::{Origin, Pane, Phase};
use crate::tui::msg::{Cmd, Msg};

use super::harness::Ui;

/// A state in which every key of a scope has something to do.
fn busy(scope: Scope) -> Ui {
    let mut ui = Ui::read(160, 50);
    match scope {
        Scope::Everywhere | Scope::List => ui.press("/ 'rank' enter 1 j j j"),
        Scope::Playbook => ui.press("4"),
        Scope::Log => ui.press("5 / 'rank' enter f 'a' enter j j j l l"),
    };
    ui
}

#[test]
fn every_key_in_the_help_does_something() {
    for row in ROWS {
        for key in row.keys {
            let mut ui = busy(row.scope);
            if row.action != Action::Pane2 && row.scope == Scope::Everywhere {
                ui.press("2 k k");
            }
            let before = format!("{:?}", ui.model);
            let asked = ui.asked.len();
            ui.press(key);
            let changed = format!("{:?}", ui.model).replace(&format!("{:?}", ui.model.now), "");
            let before = before.replace(&format!("{:?}", ui.model.now), "");
            let same_but_for_time = strip_now(&changed) == strip_now(&before);
            assert!(!same_but_for_time || ui.asked.len() > asked, "{} ({key}) does nothing", row.name);
        }
    }
}

/// The model without its clock.
fn strip_now(model: &str) -> String {
    let Some(at) = model.find(", now: ") else { return model.to_owned() };
    let end = model[at + 2..].find(", ").map_or(model.len(), |end| at + 2 + end);
    format!("{}{}", &model[..at], &model[end..])
}

#[test]
fn a_claim_leads_to_its_line_and_back() {
    let mut ui = Ui::read(80, 24);
    ui.press("j enter");
    let incident = ui.model.incident.as_ref().unwrap();
    assert_eq!(incident.pane, Pane::Log);
    assert_eq!(
        incident.lines().text(incident.log.cursor),
        b"[rank1]:   File \"/home/user/train.py\", line 60, in forward"
    );
    ui.press("esc");
    let incident = ui.model.incident.as_ref().unwrap();
    assert_eq!((incident.pane, incident.row_of(Pane::Verdict)), (Pane::Verdict, 1));
    ui.press("enter backspace");
    assert_eq!(ui.model.incident.as_ref().unwrap().pane, Pane::Verdict);
}

#[test]
fn the_next_step_leads_to_the_playbook_and_back() {
    let mut ui = Ui::read(80, 24);
    let report = ui.model.incident.as_ref().unwrap().report().unwrap().clone();
    let claims = crate::tui::claims::claims(&report);
    let row = claims.iter().position(|claim| claim.subject == crate::tui::claims::Subject::Next).unwrap();
    ui.press(&"j ".repeat(row));
    assert!(ui.text().contains("Enter to the steps"), "{}", ui.text());
    ui.press("enter");
    assert_eq!(ui.model.incident.as_ref().unwrap().pane, Pane::Playbook);
    ui.press("esc");
    let incident = ui.model.incident.as_ref().unwrap();
    assert_eq!((incident.pane, incident.row_of(Pane::Verdict)), (Pane::Verdict, row));
}

#[test]
fn a_line_leads_to_its_evidence() {
    let mut ui = Ui::read(80, 24);
    ui.press("m enter");
    let incident = ui.model.incident.as_ref().unwrap();
    assert_eq!((incident.pane, incident.row_of(Pane::Evidence)), (Pane::Evidence, 3));
}

#[test]
fn failures_are_walked_over_all_inputs_and_round() {
    let mut ui = Ui::read(80, 24);
    ui.press("5 g");
    let mut lines = Vec::new();
    for _ in 0..7 {
        ui.press("m");
        let incident = ui.model.incident.as_ref().unwrap();
        lines
            .push((incident.log.source, incident.log.number(incident.bytes(), incident.log.cursor).unwrap()));
    }
    assert_eq!(lines, [(0, 2), (0, 4), (0, 8), (0, 11), (0, 15), (1, 1), (0, 2)]);
    ui.press("M");
    assert_eq!(ui.model.incident.as_ref().unwrap().log.source, 1);
}

#[test]
fn a_search_jumps_counts_and_goes_round() {
    let mut ui = Ui::read(80, 24);
    ui.press("5 g / 'cuda' space 'error' enter");
    let number = |ui: &Ui| {
        let incident = ui.model.incident.as_ref().unwrap();
        incident.log.number(incident.bytes(), incident.log.cursor).unwrap()
    };
    assert_eq!(number(&ui), 8);
    ui.press("n");
    assert_eq!(number(&ui), 11);
    ui.press("n");
    assert_eq!(number(&ui), 8);
    ui.press("N");
    assert_eq!(number(&ui), 11);
    assert!(ui.text().contains("/cuda error/ 2 of 2"), "{}", ui.text());
    ui.press("/ 'nothing_like_it' enter");
    assert!(ui.text().contains("Not found"));
}

#[test]
fn filters_narrow_and_keep_the_place() {
    let mut ui = Ui::read(80, 24);
    ui.press("5 : 'goto' space '8' enter r r");
    let incident = ui.model.incident.as_ref().unwrap();
    assert_eq!(incident.log.filter.rank, Some(1));
    assert_eq!(incident.log.number(incident.bytes(), incident.log.cursor), Some(8));
    ui.press("F");
    let incident = ui.model.incident.as_ref().unwrap();
    assert!(incident.log.filter.is_off());
    assert_eq!(incident.log.number(incident.bytes(), incident.log.cursor), Some(8));
    ui.press("f '!rank' enter");
    let incident = ui.model.incident.as_ref().unwrap();
    assert!(incident.log.offsets().unwrap().len() < 8);
}

#[test]
fn what_is_in_focus_is_copied() {
    let mut ui = Ui::read(80, 24);
    ui.press("y 4 y 5 y Y");
    let copied: Vec<(&str, &str)> = ui
        .asked
        .iter()
        .filter_map(|command| match command {
            Cmd::Copy { text, what } => Some((text.as_str(), *what)),
            _ => None,
        })
        .collect();
    assert!(copied[0].0.starts_with("Rank 1 failed first"));
    assert_eq!(
        copied[1],
        ("env CUDA_LAUNCH_BLOCKING=1 torchrun --nproc-per-node 2 train.py --rows 234624", "the command")
    );
    assert_eq!(copied[2].1, "the line");
    assert_eq!(copied[3].1, "the report");
}

#[test]
fn the_editor_opens_the_source_line_or_the_log() {
    let mut ui = Ui::read(80, 24);
    ui.press("j v");
    let Some(Cmd::Edit { choices }) = ui.asked.last() else { panic!("{:?}", ui.asked.last()) };
    assert_eq!(choices[0], ("/home/user/train.py".into(), Some(60)));
    assert_eq!(choices[1].0, std::path::PathBuf::from("/nowhere/logs/run.log"));
}

#[test]
fn a_paste_is_an_incident() {
    let mut ui = Ui::new(80, 24);
    ui.send(Msg::Paste("one\rtwo CUDA error\r".to_owned()));
    let incident = ui.model.incident.as_ref().unwrap();
    assert!(matches!(&incident.origin, Origin::Pasted(text) if text.as_str() == "one\ntwo CUDA error\n"));
    assert!(matches!(ui.asked.last(), Some(Cmd::Open { .. })));
}

#[test]
fn a_pasted_line_may_be_a_path() {
    let mut ui = Ui::new(80, 24);
    ui.send(Msg::Paste("/tmp/run.log".to_owned()));
    assert!(matches!(ui.asked.last(), Some(Cmd::OpenIfPath { .. })));
    ui.send(Msg::PathChecked { text: "/tmp/run.log".to_owned(), exists: true });
    assert_eq!(ui.model.incident.as_ref().unwrap().origin, Origin::Named);
}

#[test]
fn a_paste_without_brackets_is_taken_when_it_falls_silent() {
    let mut ui = Ui::new(80, 24);
    ui.send(Msg::Typed("Traceback (most recent call last):\n  File \"a.py\", li".to_owned()));
    ui.press("'ne' space '1'");
    ui.send(Msg::Tick);
    assert!(ui.model.incident.is_none(), "more may come");
    (0..50).for_each(|_| ui.send(Msg::Tick));
    let incident = ui.model.incident.as_ref().unwrap();
    assert!(matches!(&incident.origin, Origin::Pasted(text) if text.ends_with("line 1")));
}

#[test]
fn stopping_drops_the_answer() {
    let mut ui = Ui::loading(80, 24);
    let old = ui.model.generation;
    ui.press("ctrl-c");
    ui.send(Msg::Failed { generation: old, why: "late".to_owned() });
    assert_eq!(ui.model.incident.as_ref().unwrap().phase, Phase::Stopped);
}

#[test]
fn the_mouse_selects_opens_and_scrolls() {
    let mut ui = Ui::read(80, 24);
    let click = |column, row, kind| {
        Msg::Mouse(MouseEvent { kind, column, row, modifiers: crossterm::event::KeyModifiers::NONE })
    };
    let down = MouseEventKind::Down(MouseButton::Left);
    let text = ui.text();
    let row = text.lines().position(|line| line.contains("noticed   ")).unwrap();
    let row = u16::try_from(row).unwrap();
    ui.send(click(20, row, down));
    assert_eq!(ui.model.incident.as_ref().unwrap().row_of(Pane::Verdict), 1);
    ui.send(click(20, row, down));
    assert_eq!(ui.model.incident.as_ref().unwrap().pane, Pane::Log);
    let before = ui.model.incident.as_ref().unwrap().log.cursor;
    ui.send(click(20, 10, MouseEventKind::ScrollDown));
    assert!(ui.model.incident.as_ref().unwrap().log.cursor > before);
    ui.send(click(3, 1, down));
    assert_eq!(ui.model.incident.as_ref().unwrap().pane, Pane::Verdict);
}

#[test]
fn a_followed_log_stays_at_its_end() {
    let mut ui = Ui::read(80, 24);
    ui.press(": 'follow' enter 5 G");
    let generation = ui.model.generation;
    let mut source = super::fixture::source();
    let mut bytes = source.bytes.to_vec();
    bytes.extend_from_slice(b"[rank0] the very last line\n");
    source.bytes = crate::source::Bytes::from(bytes);
    ui.send(Msg::Loaded { generation, sources: vec![source], progress: Default::default() });
    assert!(ui.text().contains("the very last line"), "{}", ui.text());
    assert!(ui.text().contains("76 [rank0] the very last line"), "{}", ui.text());
}

#[test]
fn completion_goes_through_commands_and_values() {
    let mut ui = Ui::read(80, 24);
    ui.press(": 'the' tab 'm' tab enter");
    assert_eq!(ui.model.theme.palette, crate::tui::theme::Palette::Mono);
    ui.press(": 'rank' space tab");
    assert!(ui.text().contains(":rank 0"), "{}", ui.text());
}

#[test]
fn rows_of_the_table_have_chords() {
    assert!(ROWS.iter().flat_map(|row| row.keys).all(|key| Chord::parse(key).is_some()));
    assert!(ROWS.iter().any(|row| row.action == Action::Quit));
}
