//! The walk by keys, with the engine behind it.

use crate::playbook::record::{Ended, Ran};
use crate::playbook::{StepRef, StepState};
use crate::session::{Input, WalkInput};
use crate::source::{self, InputSpec};
use crate::tui::model::{Overlay, Pane};
use crate::tui::msg::{Cmd, Msg};

use super::harness::Ui;

/// The overflow's log under a name of its own: frames must not hold the folder of a checkout.
fn wrap(width: u16, height: u16) -> Ui {
    let path = format!("{}/samples/triton-int32-wrap/run.log", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).unwrap();
    Ui::engine(width, height, vec![InputSpec::Text { name: "run.log".to_owned(), bytes }])
}

fn squeezed(text: &str) -> String {
    let plain: Vec<&str> = text
        .lines()
        .map(|line| line.trim_matches(['"', '╎', '┃', ' ']).trim_end_matches(['╎', '┃']))
        .collect();
    plain.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn state(ui: &Ui, step: &str) -> StepState {
    let walk = ui.model.incident.as_ref().unwrap().walk().unwrap();
    walk.steps.iter().find(|shown| shown.at.step == step).unwrap().state
}

#[test]
fn five_keys_lead_from_the_log_to_cap_widen_and_verify() {
    let mut ui = wrap(80, 24);
    ui.press("4 s s s s");
    let text = squeezed(&ui.text());
    assert!(
        text.contains("Cap rows at 233,016 for rows of 9,216 elements (2,147,483,647 / 9,216)"),
        "{text}"
    );
    assert!(text.contains("Widen the row index to 64 bits before multiplying"), "{text}");
    assert!(text.contains("Verify at 232,960 / 234,624 / 333,312 rows of 9,216 elements"), "{text}");
}

#[test]
fn the_product_is_worked_out_on_the_first_screen_of_the_walk() {
    let mut ui = wrap(80, 24);
    let text = squeezed(&ui.press("4").text());
    assert!(text.contains("234,624 × intermediate_size 9,216 = 2,162,294,784 elements"), "{text}");
    assert!(text.contains("14,811,137 past 2,147,483,647 (0.69 %)"), "{text}");
}

#[test]
fn the_log_of_a_blocking_run_moves_the_fault_and_shows_both_chains() {
    let mut ui = wrap(80, 50);
    let log = format!("{}/samples/triton-int32-wrap-blocking/run.log", env!("CARGO_MANIFEST_DIR"));
    ui.press("4 i");
    log.chars().for_each(|c| ui.press(&format!("'{c}'")).model.status = None);
    ui.press("enter");
    assert_eq!(state(&ui, "launch-blocking"), StepState::Done);
    let report = ui.model.incident.as_ref().unwrap().report().unwrap().clone();
    let fault = report.verdict.fault_at.unwrap();
    assert_eq!(
        (fault.file.as_deref().map(|file| file.ends_with("triton_cases.py")), fault.line),
        (Some(true), Some(49))
    );
    while ui.model.incident.as_ref().unwrap().row_of(Pane::Playbook) > 0 && !ui.text().contains("blocking:") {
        ui.press("k");
    }
    let text = squeezed(&ui.text());
    assert!(text.contains("async: ") && text.contains("triton_cases.py:60"), "{text}");
    assert!(text.contains("blocking: ") && text.contains("triton_cases.py:49"), "{text}");
}

#[test]
fn a_command_is_shown_whole_and_needs_a_yes() {
    let mut ui = wrap(80, 24);
    ui.press("4 enter");
    assert!(matches!(ui.model.overlay, Some(Overlay::Confirm(..))));
    insta::assert_snapshot!("walk-confirm-80x24", ui.frame());
    ui.press("enter space j");
    assert!(matches!(ui.model.overlay, Some(Overlay::Confirm(..))), "only y is a yes");
    ui.press("esc");
    assert_eq!(state(&ui, "launch-blocking"), StepState::Open);
    ui.press("r y");
    assert_eq!(state(&ui, "launch-blocking"), StepState::Running);
    let generation = ui.model.generation;
    ui.send(Msg::Printed { generation, chunk: b"loading 10 %\rloading 99 %\r\n\x1b[2Jstep 1\n".to_vec() });
    insta::assert_snapshot!("walk-running-80x24", ui.frame());
    // Leaving asks first, and x ends the run.
    ui.press("q");
    assert!(ui.text().contains("A command is running."), "{}", ui.text());
    ui.press("esc x");
    assert!(ui.model.incident.as_ref().unwrap().run.as_ref().unwrap().ending);
    let step = StepRef::new("index-overflow", "launch-blocking");
    let ran = Ran {
        command: vec!["python3".to_owned()],
        environment: vec![("CUDA_LAUNCH_BLOCKING".to_owned(), "1".to_owned())],
        ended: Ended::Stopped,
        duration_ms: 1000,
        output_bytes: 0,
        log: None,
        input: None,
    };
    ui.tell(Input::Walk(WalkInput::Ended { step, ran, output: source::Loaded::default() }));
    ui.send(Msg::Ended { generation, said: "It was ended by you, after 1 s.".to_owned() });
    assert_eq!(ui.model.incident.as_ref().unwrap().run, None);
    assert_eq!(state(&ui, "launch-blocking"), StepState::Done);
}

#[test]
fn a_command_can_be_changed_before_it_runs() {
    let mut ui = wrap(80, 24);
    ui.press("4 c ctrl-u 'env' space 'A=1' space '\"a' space 'b\"' space 'c;d' enter");
    let Some(Overlay::Confirm(proposal, _)) = &ui.model.overlay else { panic!("{}", ui.text()) };
    assert_eq!(proposal.command, ["a b", "c;d"]);
    assert_eq!(proposal.environment, [("A".to_owned(), "1".to_owned())]);
    ui.press("c");
    assert!(ui.text().contains("run: env A=1 'a b' 'c;d'"), "{}", ui.text());
}

#[test]
fn what_a_command_lacks_is_filled_in_and_the_whole_is_shown() {
    let log = b"RuntimeError: CUDA error: an illegal memory access was encountered\n".to_vec();
    let mut ui = Ui::engine(80, 24, vec![InputSpec::Text { name: "log".to_owned(), bytes: log }]);
    ui.press("4 r");
    let Some(Overlay::Form(form)) = &ui.model.overlay else { panic!("{}", ui.text()) };
    assert_eq!(form.lines.len(), 1);
    ui.press("enter");
    assert!(ui.text().contains("the command that failed is still empty."), "{}", ui.text());
    ui.press("'A=1' space 'python3' space '\"a' space 'b.py\"'");
    insta::assert_snapshot!("walk-form-80x24", ui.frame());
    ui.press("enter");
    let Some(Overlay::Confirm(proposal, _)) = &ui.model.overlay else { panic!("{}", ui.text()) };
    assert_eq!(proposal.command, ["python3", "a b.py"]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(proposal.environment, [pair("CUDA_LAUNCH_BLOCKING", "1"), pair("A", "1")]);
    // As a line, where no field serves.
    ui.press("esc r 'x.py' ctrl-l");
    assert!(ui.text().contains("run: env CUDA_LAUNCH_BLOCKING=1 x.py"), "{}", ui.text());
}

#[test]
fn a_form_and_a_run_without_failure_at_three_sizes() {
    let text = |bytes: &[u8]| vec![InputSpec::Text { name: "log".to_owned(), bytes: bytes.to_vec() }];
    for (width, height) in [(80, 24), (100, 30), (160, 50)] {
        let mut ui = Ui::engine(
            width,
            height,
            text(b"RuntimeError: CUDA error: an illegal memory access was encountered\n"),
        );
        ui.press("4 r");
        insta::assert_snapshot!(format!("form-{width}x{height}"), ui.frame());
        let fits = text(b"rows=232960 cols=9216\nforward max_err 0.0\nPASS\n");
        insta::assert_snapshot!(
            format!("no-failure-{width}x{height}"),
            Ui::engine(width, height, fits).frame()
        );
    }
}

#[test]
fn a_failure_without_a_playbook_is_not_called_none() {
    let log = b"ptxas fatal   : Unresolved extern function 'scale'\n".to_vec();
    let mut ui = Ui::engine(80, 24, vec![InputSpec::Text { name: "log".to_owned(), bytes: log }]);
    let text = squeezed(&ui.press("4").text());
    assert!(text.contains("COMPILE ERROR") || text.contains("compile error"), "{text}");
    assert!(
        text.contains("Read the compiler's first error") && !text.contains("no failure was found"),
        "{text}"
    );
}

#[test]
fn a_paste_goes_into_the_field_and_not_into_the_incident() {
    let log = b"RuntimeError: CUDA error: an illegal memory access was encountered\n".to_vec();
    let mut ui = Ui::engine(80, 24, vec![InputSpec::Text { name: "log".to_owned(), bytes: log }]);
    ui.press("4 r");
    ui.send(Msg::Paste("python3 train.py\nsecond line".to_owned()));
    let Some(Overlay::Form(form)) = &ui.model.overlay else { panic!("{}", ui.text()) };
    assert_eq!(form.values(), ["python3 train.py"]);
}

#[test]
fn the_trials_of_a_running_probe_stand_along_the_sweep() {
    let sample =
        |name: &str| InputSpec::Path(format!("{}/samples/{name}", env!("CARGO_MANIFEST_DIR")).into());
    let mut ui = Ui::engine(100, 50, vec![sample("triton-int32-wrap/run.log"), sample("triton-cache")]);
    let step = StepRef::new("index-overflow", "probe");
    let (generation, deadline) = (ui.model.generation, std::time::Duration::from_secs(900));
    ui.press("4");
    ui.tell(Input::Walk(WalkInput::Propose { step: step.clone(), edited: None }));
    ui.tell(Input::Walk(WalkInput::Confirm(true)));
    ui.model.overlay = None;
    ui.send(Msg::Started { generation, step, deadline });
    let printed = b"warpfault: 233,024  illegal_address  700\r\nwarpfault: 240  pass  0\r\nwarpfault: control 233,024  pass  0\r\n";
    ui.send(Msg::Printed { generation, chunk: printed.to_vec() });
    let text = ui.text();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("✓     240  pass") < at("✗ 233,024  illegal address"), "{text}");
    assert!(at("✗ 233,024  illegal address") < at("✓ 233,024  pass  the fixed kernel"), "{text}");
}

#[test]
fn questions_outcomes_and_playbooks_are_chosen_from_lists() {
    let mut ui = wrap(80, 24);
    ui.press("4 s enter");
    insta::assert_snapshot!("walk-pick-80x24", ui.frame());
    ui.press("j enter");
    assert_eq!(state(&ui, "phase"), StepState::Done);
    ui.press("k o");
    let outcomes = ui.text();
    ui.press("1");
    assert!(ui.model.overlay.is_none(), "{outcomes}");
    ui.press("p");
    assert!(matches!(ui.model.overlay, Some(Overlay::Pick(_))) || ui.model.status.is_some());
}

#[test]
fn skipping_can_be_undone() {
    let mut ui = wrap(80, 24);
    ui.press("4 s");
    assert_eq!(state(&ui, "launch-blocking"), StepState::Skipped);
    while !ui.press("k").text().contains("Rerun with launch blocking") {}
    ui.press("u");
    assert_eq!(state(&ui, "launch-blocking"), StepState::Open);
}

#[test]
fn a_hostile_kernel_name_is_escaped_and_stays_one_word() {
    let log = "Traceback (most recent call last):\n  File \"/w/a.py\", line 3, in <module>\n    x.cpu()\n\
               torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n\
               ========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 4 bytes\n\
               =========     at $(touch /tmp/x); rm -rf ~\x1b]0;t\x07+0x40\n=========     by thread (0,0,0) in block (0,0,0)\n";
    let spec = InputSpec::Text { name: "log".to_owned(), bytes: log.as_bytes().to_vec() };
    let mut ui = Ui::engine(160, 50, vec![spec]);
    for keys in ["4", "j", "j", "j", "enter"] {
        let text = ui.press(keys).text();
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    }
    let asked = ui.asked.iter().filter(|command| !matches!(command, Cmd::Stop | Cmd::Open { .. })).count();
    assert_eq!(asked, 0, "nothing but the engine was asked");
}

#[test]
fn a_past_crash_is_told_under_the_sentence() {
    let mut ui = wrap(80, 24);
    let generation = ui.model.generation;
    ui.send(Msg::Seen {
        generation,
        said: "seen before, in incident 20260101-1: a wrapped index".to_owned(),
    });
    assert!(ui.text().contains("seen before, in incident 20260101-1"), "{}", ui.text());
}

#[test]
fn the_pane_at_three_sizes() {
    for (width, height) in [(80, 24), (100, 30), (160, 50)] {
        let mut ui = wrap(width, height);
        ui.press("4");
        insta::assert_snapshot!(format!("walk-open-{width}x{height}"), ui.frame());
        ui.press("s s s s");
        insta::assert_snapshot!(format!("walk-verify-{width}x{height}"), ui.frame());
    }
}

#[test]
fn the_trials_of_a_probe_stand_under_the_cause_and_in_its_step() {
    let folder = format!("{}/samples/triton-int32-wrap-probe", env!("CARGO_MANIFEST_DIR"));
    let mut ui = Ui::engine(100, 50, vec![InputSpec::Path(folder.into())]);
    let text = ui.text();
    assert!(text.contains("[proven]"), "{text}");
    assert!(
        text.contains("✓ M = 233,008  pass") && text.contains("✗ M = 233,024  illegal address"),
        "{text}"
    );
    assert!(text.contains("control fused_lora_xw_kernel_i64"), "{text}");
    ui.press("4");
    let walk = ui.model.incident.as_ref().unwrap().walk().unwrap();
    assert!(walk.steps.iter().any(|step| step.at.step == "probe"));
}

#[test]
fn a_yes_counts_only_once_all_of_the_command_was_on_the_screen() {
    let mut ui = wrap(80, 24);
    ui.press("4 c ctrl-u");
    let line = format!("./run {}; touch /tmp/x", "--option ".repeat(300));
    for c in line.chars() {
        ui.key(crossterm::event::KeyEvent::new(
            crossterm::event::KeyCode::Char(c),
            crossterm::event::KeyModifiers::NONE,
        ));
    }
    ui.press("enter");
    assert!(!ui.text().contains("/tmp/x"), "the end is below");
    ui.press("y");
    assert!(matches!(ui.model.overlay, Some(Overlay::Confirm(..))));
    assert_eq!(state(&ui, "launch-blocking"), StepState::Open);
    ui.press("G");
    assert!(ui.text().contains("/tmp/x"), "{}", ui.text());
    ui.press("y");
    assert_eq!(state(&ui, "launch-blocking"), StepState::Running);
}
