//! A host segmentation fault under faulthandler.
//!
//! In: the signal with its Python frames; the user's script, where it was given. Out: a plan: the script itself, or the
//! call of the innermost frame, where that is a function which can be called alone.

use super::facts::{Facts, base, missing};
use super::recipe::{Asset, Origin, Plan, Program, Recipe, Value};
use crate::error::Result;
use crate::read::event::{Data, FatalSignal};
use crate::verdict::own_command;

/// Functions of ctypes that read an address: all that they need is one argument.
const READERS: [&str; 2] = ["string_at", "wstring_at"];

/// The script's name in the folder.
const SCRIPT: &str = "user_script.py";

/// Plans it.
pub(super) fn plan(facts: &Facts<'_>) -> Result<Plan> {
    match facts.source {
        Some(source) => script(facts, &source.name, &source.text),
        None => call(facts),
    }
}

fn recipe(facts: &Facts<'_>, shows: String, program: Program, labels: [String; 2]) -> Recipe {
    let mut recipe = Recipe::two_sided(shows, facts.expect(), program, labels);
    recipe.environment.insert("PYTHONFAULTHANDLER".to_owned(), "1".to_owned());
    recipe.deadline_s = 60;
    recipe
}

/// The signal whose frames say most.
fn signal<'a>(facts: &Facts<'a>) -> Option<(String, &'a FatalSignal)> {
    facts.first(|data| match data {
        Data::Signal(signal) if !signal.python.is_empty() => Some(signal),
        _ => None,
    })
}

fn call(facts: &Facts<'_>) -> Result<Plan> {
    const HINT: &str = "add the script to the inputs: warpfault repro LOG script.py -o DIR";
    let (place, signal) = signal(facts).ok_or_else(|| {
        missing(
            "no Python frames of the crash are in the input",
            format!("run it with python3 -X faulthandler, or {HINT}"),
        )
    })?;
    let frame = signal.python.first();
    let function = frame.and_then(|frame| frame.function.as_deref()).unwrap_or("");
    let in_ctypes = frame.is_some_and(|frame| frame.file.ends_with("ctypes/__init__.py"));
    if !in_ctypes || !READERS.contains(&function) {
        let said = format!(
            "the innermost frame, {function}, can't be called alone: its arguments are not in the log"
        );
        return Err(missing(said, HINT));
    }
    let mut values = vec![Value::new(
        "call",
        format!("ctypes.{function}"),
        Origin::Read,
        format!("{place}, the innermost frame"),
    )];
    let printed = signal.address.map(|address| (address, place)).or_else(|| {
        facts
            .first(|data| match data {
                Data::KernelSegfault(segfault) => segfault.address,
                _ => None,
            })
            .map(|(place, address)| (address, place))
    });
    let given = facts.given.get("address").map(|text| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u64::from_str_radix(digits, 16).map_err(|_| {
            missing(format!("--set address={text}: no hexadecimal number"), "as in --set address=0x0")
        })
    });
    let address = match (given.transpose()?, printed) {
        (Some(address), _) => {
            values.push(Value::new("address", format!("{address:#x}"), Origin::Given, "--set address"));
            address
        }
        (None, Some((address, place))) => {
            values.push(Value::new("address", format!("{address:#x}"), Origin::Read, place));
            address
        }
        (None, None) => {
            let why = "the log prints no address; null is the commonest (--set address=0x…)";
            values.push(Value::new("address", "0x0", Origin::Assumed, why));
            0
        }
    };
    let shows = format!("ctypes.{function} reads an address that is not mapped: the process dies of SIGSEGV");
    let labels = ["a mapped address".to_owned(), format!("address {address:#x}")];
    let program = Program::SegfaultCall { function: function.to_owned(), address };
    let mut recipe = recipe(facts, shows, program, labels);
    recipe.values = values;
    recipe.notes.push(
        "The failing side calls the innermost function of the log's stack with the address above; who passed that address \
         is in the frames below it, not in this program."
            .to_owned(),
    );
    Ok(Plan { recipe, assets: Vec::new() })
}

fn script(facts: &Facts<'_>, name: &str, text: &str) -> Result<Plan> {
    let command = own_command(facts.case).unwrap_or_default();
    let at = command.iter().position(|word| base(word) == name);
    let read: Option<Vec<String>> = at.and_then(|at| command.get(at + 1..)).map(<[String]>::to_vec);
    let words = |option: &str| {
        facts.given.get(option).map(|text| {
            shlex::split(text).ok_or_else(|| {
                missing(format!("--set {option}={text}: its quotes don't match"), "quote it as a shell would")
            })
        })
    };
    let (fail_arguments, origin) = match (words("fail_arguments").transpose()?, read) {
        (Some(words), _) => (words, (Origin::Given, "--set fail_arguments".to_owned())),
        (None, Some(words)) => (words, (Origin::Read, "the log's command line".to_owned())),
        (None, None) => {
            return Err(missing(
                format!("the log holds no command line with {name}"),
                "give the arguments that fail: --set fail_arguments='…' (empty: --set fail_arguments=' ')",
            ));
        }
    };
    let pass_arguments = words("pass_arguments").transpose()?.ok_or_else(|| {
        missing("nothing tells with which arguments the script passes", "give them: --set pass_arguments='…'")
    })?;
    let shown = |words: &[String]| shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
    let values = vec![
        Value::new("script", name, Origin::Given, "an input"),
        Value::new("fail_arguments", shown(&fail_arguments), origin.0, origin.1),
        Value::new("pass_arguments", shown(&pass_arguments), Origin::Given, "--set pass_arguments"),
    ];
    let labels = [shown(&pass_arguments), shown(&fail_arguments)].map(|words| format!("arguments: {words}"));
    let program = Program::SegfaultScript { script: SCRIPT.to_owned(), fail_arguments, pass_arguments };
    let shows =
        "the user's own script dies of a fatal signal; faulthandler prints the Python stack".to_owned();
    let mut recipe = recipe(facts, shows, program, labels);
    recipe.values = values;
    Ok(Plan { recipe, assets: vec![Asset { path: SCRIPT.to_owned(), bytes: text.as_bytes().to_vec() }] })
}
