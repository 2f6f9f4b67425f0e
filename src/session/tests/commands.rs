//! The commands that a walk proposes.
//!
//! In: inputs. Out: the words of a step's command, and that none runs without a yes. It runs nothing.

use super::*;

#[test]
fn nothing_runs_without_a_yes() {
    let mut session = opened(sample("triton-int32-wrap", &["run.log"]));
    let effects = walk(&mut session, WalkInput::Propose { step: at("launch-blocking"), edited: None });
    let [Effect::Show, Effect::Confirm(proposal)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(proposal.text, "env CUDA_LAUNCH_BLOCKING=1 python3 triton_cases.py int32 234624");
    assert_eq!(proposal.command, ["python3", "triton_cases.py", "int32", "234624"]);
    assert_eq!(proposal.environment, [("CUDA_LAUNCH_BLOCKING".to_owned(), "1".to_owned())]);
    assert!(proposal.from_input && proposal.cost.contains("slower"));

    assert_eq!(walk(&mut session, WalkInput::Confirm(false)), [Effect::Show]);
    let effects = walk(&mut session, WalkInput::Confirm(true));
    assert_eq!(effects, [Effect::Show, Effect::Refuse("no command waits for a yes".to_owned())]);

    walk(&mut session, WalkInput::Propose { step: at("launch-blocking"), edited: None });
    let effects = walk(&mut session, WalkInput::Confirm(true));
    assert!(matches!(effects.as_slice(), [Effect::Show, Effect::Save, Effect::Run(_)]), "{effects:?}");
    assert_eq!(session.walk().step(&at("launch-blocking")).unwrap().state, StepState::Running);
    let effects = walk(&mut session, WalkInput::Skip(at("launch-blocking")));
    assert!(matches!(effects.as_slice(), [Effect::Show, Effect::Refuse(_)]));
    assert_eq!(walk(&mut session, WalkInput::Stop), [Effect::Show, Effect::EndRun]);
    walk(
        &mut session,
        WalkInput::Ended {
            step: at("launch-blocking"),
            ran: Ran {
                command: vec!["python3".to_owned()],
                environment: Vec::new(),
                ended: Ended::Stopped,
                duration_ms: 12_000,
                output_bytes: 0,
                log: None,
                input: None,
            },
            output: source::Loaded::default(),
        },
    );
    let step = session.walk().step(&at("launch-blocking")).unwrap();
    assert_eq!((step.state, step.outcome.as_deref()), (StepState::Done, Some("cut-short")));
}

#[test]
fn an_edited_command_is_shown_as_edited() {
    let mut session =
        opened(text("paste", "RuntimeError: CUDA error: an illegal memory access was encountered\n"));
    let step = StepRef::new("illegal-address", "launch-blocking");
    let effects = walk(&mut session, WalkInput::Propose { step: step.clone(), edited: None });
    let [_, Effect::Refuse(why)] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(why.contains("It lacks the command that failed"), "{why}");
    let edited = Edited {
        command: vec!["./my prog".to_owned(), "a'b".to_owned()],
        environment: vec![("CUDA_LAUNCH_BLOCKING".to_owned(), "1".to_owned())],
        deadline_s: 60,
    };
    let effects = walk(&mut session, WalkInput::Propose { step: step.clone(), edited: Some(edited.clone()) });
    let [_, Effect::Confirm(proposal)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(proposal.text, "env CUDA_LAUNCH_BLOCKING=1 './my prog' \"a'b\"");
    assert!(!proposal.from_input);
    let nul = Edited { command: vec!["a\0b".to_owned()], ..edited };
    let effects = walk(&mut session, WalkInput::Propose { step, edited: Some(nul) });
    assert!(matches!(effects.as_slice(), [_, Effect::Refuse(_)]));
}

fn command(session: &Session, playbook: &str, step: &str) -> String {
    match &session.walk().step(&StepRef::new(playbook, step)).unwrap().act {
        Act::Run(prepared) => prepared.text.clone(),
        other => panic!("{other:?}"),
    }
}

/// A debugger that opened the dump is not the program to rerun, and a kernel that the dump names needs no launch blocking.
#[test]
fn a_dump_names_the_kernel_and_the_program_is_not_its_debugger() {
    let session = opened(sample("coredump-gather", &["run.log", "cuda-gdb.log", "core.nvcudmp.gz"]));
    let blocking = session.walk().step(&StepRef::new("illegal-address", "launch-blocking")).unwrap();
    assert_eq!(blocking.state, StepState::Answered);
    assert!(
        blocking.reading.as_deref().unwrap().starts_with("Not needed: the evidence names the kernel, gather")
    );
    let memcheck = command(&session, "illegal-address", "memcheck");
    assert!(memcheck.ends_with("--kernel-name 'kernel_substring=gather' ./crash gather"), "{memcheck}");
}

#[test]
fn under_a_debugger_the_program_is_what_stands_behind_args() {
    let session = opened(text(
        "run.log",
        "$ gdb -batch -ex run -ex bt --args python3 train.py\nFatal Python error: Segmentation fault\n",
    ));
    assert!(command(&session, "segfault", "native-stack").ends_with("--args python3 train.py"));
    assert!(!command(&session, "segfault", "native-stack").contains("--args gdb"));
}

#[test]
fn gdb_stands_in_the_rank_that_crashed() {
    let session = opened(sample("pair-rank1-segv", &["run.log"]));
    let stack = command(&session, "segfault", "native-stack");
    assert!(stack.starts_with("torchrun --nproc-per-node 2 --no-python bash -c "), "{stack}");
    assert!(
        stack.contains("= 1 ]; then exec gdb -batch -ex run -ex ")
            && stack.ends_with(" nccl_cases.py rank1_segv")
    );
}
