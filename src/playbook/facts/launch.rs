//! The suspected launch and the engineer's own command, by name.

use crate::case::Case;
use crate::read::event::{Data, EnvironmentFact};
use crate::verdict::Verdict;

use super::super::known::Known;

/// Variables and versions that are named; a dump of a whole environment holds hundreds.
const ENVIRONMENT_LIMIT: usize = 500;

pub(super) fn put(known: &mut Known, case: &Case, verdict: &Verdict) {
    environment(known, case);
    let fault = verdict.places.fault.as_ref();
    let kernel = fault.and_then(|fault| fault.kernel.clone());
    let is_word = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    known.put_some("launch.kernel_word", kernel.clone().filter(is_word));
    known.put_some("launch.kernel", kernel);
    let mention = case.pick(|data| match data {
        Data::LaunchMention(mention) => Some(mention),
        _ => None,
    });
    if let Some((_, _, mention)) = mention.into_iter().next() {
        known.put("launch.mentioned", mention.kernel.as_str());
    }
    let launch = case.pick(|data| match data {
        Data::FaultingLaunch(launch) => Some(launch),
        _ => None,
    });
    for (_, _, launch) in launch.take(1) {
        known.put_some("launch.grid", launch.grid.map(|dim| dim.to_vec()));
        known.put_some("launch.block", launch.block_dim.map(|dim| dim.to_vec()));
        for (name, value) in launch.arguments.iter().filter(|(name, _)| !name.contains('.')) {
            known.put(&format!("launch.arguments.{name}"), value.as_str());
        }
    }
    let program = crate::verdict::own_command(case);
    known.put("launch.command_known", program.is_some());
    if let Some(words) = program {
        known.put("launch.python", words.first().is_some_and(|word| is_python(word)));
        known.put("launch.command", words);
    }
}

fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.starts_with("python") || matches!(name, "torchrun" | "deepspeed" | "accelerate")
}

fn environment(known: &mut Known, case: &Case) {
    // A switch that a rerun set is the rerun's; the first run's environment stays what it was.
    let given = |span: crate::read::event::Span| !case.is_rerun(span.input);
    let facts = case.pick(|data| match data {
        Data::Environment(fact) => Some(fact),
        _ => None,
    });
    for (_, _, EnvironmentFact { name, value }) in
        facts.filter(|(_, event, _)| given(event.span)).take(ENVIRONMENT_LIMIT)
    {
        if !name.contains('.') && !name.is_empty() {
            known.put(&format!("environment.{name}"), value.trim());
        }
    }
    let commands = case.pick(|data| match data {
        Data::Command(command) => Some(command),
        _ => None,
    });
    for (_, _, command) in commands.filter(|(_, event, _)| given(event.span)).take(1) {
        for (name, value) in command.environment.iter().take(ENVIRONMENT_LIMIT) {
            if !name.contains('.') && !name.is_empty() {
                known.put(&format!("environment.{name}"), value.as_str());
            }
        }
    }
}
