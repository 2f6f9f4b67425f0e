//! The command of a repro step: this program's own `repro`, with the incident's inputs.
//!
//! In: the case and the inputs. Out: a command, and what keeps it from being whole. It reads no file and starts nothing.

use crate::case::Case;
use crate::playbook::walk::{Fill, Need, Prepared, command_text};
use crate::source::{Input, InputKind};

use super::probing::PROGRAM;

/// Where the repro goes: below the folder that the engineer works in.
const FOLDER: &str = "repro";

/// What stands where a path is missing.
const HOLE: &str = "PATH";

/// Inputs that a command names one by one; of more, their folder is to be named.
const INPUT_LIMIT: usize = 64;

/// Most seconds: it reads the inputs again and asks the compiled kernel.
const DEADLINE_S: u64 = 300;

/// The command.
pub(super) fn command(case: &Case, inputs: &[Input]) -> Prepared {
    // A saved report is no evidence: it tells nothing to a repro.
    let is_own = |input: &&Input| !case.is_rerun(input.id) && input.kind != InputKind::Report;
    let own: Vec<&Input> = inputs.iter().filter(is_own).collect();
    let mut needs = Vec::new();
    let mut words = vec![PROGRAM.to_owned(), "repro".to_owned()];
    if own.len() > INPUT_LIMIT {
        words.push(HOLE.to_owned());
        let name = format!("the folder that holds the {} inputs", own.len());
        needs.push(Need::new(name, "", Fill::Word(words.len() - 1)));
    }
    let named = if own.len() > INPUT_LIMIT { &[] } else { own.as_slice() };
    for input in named {
        // A paste is a file of the store once the incident was saved; its name still says what it is.
        let file = input.file.as_ref().and_then(|file| file.to_str());
        match file.filter(|file| *file == input.path.unescaped()) {
            // A name that starts with a dash would be read as an option.
            Some(path) if path.starts_with('-') => words.push(format!("./{path}")),
            Some(path) => words.push(path.to_owned()),
            None => {
                words.push(HOLE.to_owned());
                let why = "it lies on no disk under its name; save it, then give the path";
                needs.push(Need::new(
                    format!("a file that holds {}", input.path.unescaped()),
                    why,
                    Fill::Word(words.len() - 1),
                ));
            }
        }
    }
    if own.is_empty() {
        words.push(HOLE.to_owned());
        needs.push(Need::new("an input", "a log, a dump or a cache folder", Fill::Word(words.len() - 1)));
    }
    words.extend(["-o".to_owned(), FOLDER.to_owned()]);
    Prepared {
        text: command_text(&[], &words),
        command: words,
        environment: Vec::new(),
        deadline_s: DEADLINE_S,
        from_input: true,
        needs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::walk::need::{self, Typed};
    use crate::session::{Input as Word, Session};
    use crate::source::{InputSpec, Limits, load};

    fn command_of(inputs: &[InputSpec]) -> Prepared {
        let mut session = Session::new();
        session.apply(Word::Loaded(load(inputs, Limits::default())));
        command(session.case(), session.inputs())
    }

    #[test]
    fn the_inputs_are_its_words() {
        let log = "samples/torch-segv-faulthandler/run.log";
        let found = command_of(&[InputSpec::Path(log.into())]);
        assert_eq!(found.command, ["warpfault", "repro", log, "-o", "repro"]);
        assert!(found.needs.is_empty());
    }

    #[test]
    fn a_saved_report_is_no_input_of_it() {
        let path = |name: &str| InputSpec::Path(format!("samples/triton-int32-wrap/{name}").into());
        let found = command_of(&[path("expected.txt"), path("run.log")]);
        assert_eq!(found.command, ["warpfault", "repro", "samples/triton-int32-wrap/run.log", "-o", "repro"]);
    }

    #[test]
    fn what_lies_on_no_disk_has_to_be_saved_first() {
        let paste = InputSpec::Text { name: "paste".into(), bytes: b"Segmentation fault\n".to_vec() };
        let found = command_of(&[paste]);
        assert_eq!(found.command, ["warpfault", "repro", "PATH", "-o", "repro"]);
        assert_eq!(found.needs[0].name, "a file that holds paste");
        let typed = Typed { command: found.command, environment: Vec::new() };
        let whole = need::filled(&typed, &found.needs, &["run.log".to_owned()]).unwrap();
        assert_eq!(whole.command, ["warpfault", "repro", "run.log", "-o", "repro"]);
        assert_eq!(command_of(&[]).needs[0].name, "an input");
    }
}
