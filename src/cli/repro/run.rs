//! One side of a repro, run and read.
//!
//! In: a recipe and a side. Out: what our own readers make of the output. It asks once; each run is a process of its own
//! with a deadline, and ends with everything that it started.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::folder;
use crate::effect;
use crate::error::{Error, ErrorKind, Result};
use crate::playbook::StepRef;
use crate::playbook::record::Ended;
use crate::playbook::walk::command_text;
use crate::repro::recipe::Side;
use crate::repro::verify::{Reading, SHRINK_RUNS};
use crate::repro::{Plan, Recipe, files};
use crate::session::{Approved, Input, Proposal, Session};
use crate::source::Loaded;
use crate::store::signature;
use crate::tables::class::FailureClass;
use crate::text::escape;

use super::super::output;

/// What a run may take besides its row: a compiler, a launcher.
const AROUND_S: u64 = 60;

/// What a program prints that can't run here.
const CANNOT: &[u8] = b"cannot run: ";

/// Runs sides of a repro.
pub struct Runner {
    folder: PathBuf,
    plan: Plan,
    scratch: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    runs: usize,
}

impl Runner {
    /// Asks for a yes.
    ///
    /// # Errors
    /// `Refused` without one.
    pub fn begin(folder: &Path, plan: &Plan, yes: bool) -> Result<Self> {
        let folder = std::path::absolute(folder).map_err(|error| {
            Error::new(ErrorKind::Input, "the folder's path can't be told").because(error)
        })?;
        permission(&folder, &plan.recipe, yes)?;
        let scratch = tempfile::tempdir().map_err(|error| {
            Error::new(ErrorKind::Output, "a temporary folder can't be made").because(error)
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
        }
        Ok(Self { folder, plan: plan.clone(), scratch, stop, runs: 0 })
    }

    /// Runs one side of a recipe: in the folder itself, or in a copy where the recipe is another one.
    ///
    /// # Errors
    /// `Refused` where somebody asked to stop, `Output` where a copy can't be made.
    pub fn run(&mut self, recipe: &Recipe, side: Side) -> Result<Reading> {
        self.runs += 1;
        let folder = if *recipe == self.plan.recipe {
            self.folder.clone()
        } else {
            let copy = self.scratch.path().join(format!("copy-{}", self.runs));
            let plan = Plan { recipe: recipe.clone(), assets: self.plan.assets.clone() };
            folder::write(&copy, &files(&plan)?)?;
            copy
        };
        let proposal = proposal(&folder, recipe, side);
        output::tell(&format!("runs: {}", proposal.text));
        let log = self.scratch.path().join(format!("run-{}.log", self.runs));
        let (ran, loaded) = effect::run(&Approved::on_the_command_line(proposal), &log, &self.stop, None);
        if self.stop.load(Ordering::Relaxed) {
            return Err(
                Error::new(ErrorKind::Refused, "stopped; the folder is as it was").hint("run it again")
            );
        }
        Ok(read(&ran.ended, loaded))
    }
}

fn proposal(folder: &Path, recipe: &Recipe, side: Side) -> Proposal {
    let script = folder.join("run.sh").to_string_lossy().into_owned();
    let command = vec!["bash".to_owned(), script, side.name().to_owned()];
    Proposal {
        step: StepRef::new("repro", side.name()),
        title: format!("the side that must {}", side.name()),
        text: command_text(&[], &command),
        command,
        environment: Vec::new(),
        deadline_s: recipe.deadline_s.saturating_add(AROUND_S).min(86_400),
        cost: String::new(),
        from_input: false,
    }
}

fn permission(folder: &Path, recipe: &Recipe, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    let said = format!(
        "runs {} and the same with pass, each ended after {} s at the latest, and up to {SHRINK_RUNS} smaller ones",
        proposal(folder, recipe, Side::Fail).text,
        recipe.deadline_s.saturating_add(AROUND_S)
    );
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let _ = write!(anstream::stderr(), "warpfault: {said}\nRun it? [y/N] ");
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
    }
    Err(Error::new(ErrorKind::Refused, said).hint("say --yes; the folder is written"))
}

/// Reads a run's log as an incident of its own.
fn read(ended: &Ended, loaded: Loaded) -> Reading {
    let bytes: Vec<u8> = loaded.inputs.first().map(|input| input.bytes.to_vec()).unwrap_or_default();
    let exit = match ended {
        Ended::Exit(code) => Some(*code),
        _ => None,
    };
    let said = bytes.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(CANNOT));
    let cannot = match (said, ended) {
        (Some(why), _) => Some(String::from_utf8_lossy(why).into_owned()),
        (None, Ended::NotStarted(why)) => Some(why.clone()),
        // The shell found no program; run.sh says 2 where it has no compiler.
        (None, Ended::Exit(127)) => Some(last_words(&bytes)),
        (None, Ended::Exit(2)) => Some(last_words(&bytes)),
        _ => None,
    };
    let mut session = Session::new();
    session.apply(Input::Loaded(loaded));
    let verdict = session.verdict();
    Reading {
        class: Some(verdict.class).filter(|class| *class != FailureClass::None),
        code: verdict.code.as_ref().and_then(|code| Some(format!("{}:{}", code.domain, code.number?))),
        kernel: verdict.places.fault.as_ref().and_then(|fault| fault.kernel.clone()),
        collective: verdict.collective.as_ref().map(|collective| collective.op.clone()),
        signature: signature::of(verdict).map(|signature| signature.text),
        exit,
        cannot,
    }
}

/// The last line that says something, before the exit status.
fn last_words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let said =
        lines.iter().rev().find(|line| !line.starts_with("exit status ")).unwrap_or(&"it said nothing");
    escape(said).to_string()
}
