//! Whether a repro shows what it says, and how small it can be made.
//!
//! In: a recipe, and a way to run one side of it. Out: [`Verified`]. Accepted is only what fails with the same class and
//! signature on the failing side and passes on the other, each in a process of its own. Pure: it runs nothing itself.

use super::recipe::{Expect, Recipe, Side};
use crate::error::Result;
use crate::tables::class::FailureClass;
use crate::text::number::grouped;

/// Runs that making it smaller may take.
pub const SHRINK_RUNS: usize = 12;

/// What one run came to, as our own readers read its output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The class; `none` where nothing failed.
    pub class: Option<FailureClass>,
    /// The status as `domain:number`.
    pub code: Option<String>,
    /// The kernel at fault, where a line names it.
    pub kernel: Option<String>,
    /// The collective that did not finish.
    pub collective: Option<String>,
    /// The crash's signature.
    pub signature: Option<String>,
    /// Exit code; none where a signal or a deadline ended it.
    pub exit: Option<i32>,
    /// Why it could not run at all.
    pub cannot: Option<String>,
}

/// What verifying came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    /// It fails as it should and passes as it should.
    Accepted,
    /// It doesn't.
    NotAccepted(String),
    /// It could not be run.
    CouldNot(String),
}

/// A repro that was verified.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// The recipe, as small as it became.
    pub recipe: Recipe,
    /// What it came to.
    pub conclusion: Conclusion,
    /// What was tried, a line each.
    pub tried: Vec<String>,
}

/// Halvings of one size that are tried, plus one.
const HALVINGS: u32 = 3;

enum Judged {
    Agrees,
    Differs(String),
    Cannot(String),
}

/// Verifies a recipe. `run` runs one side of one recipe in a fresh process.
///
/// # Errors
/// Those of `run`: what keeps it from starting or reading a process.
pub fn verify(recipe: &Recipe, run: &mut dyn FnMut(&Recipe, Side) -> Result<Reading>) -> Result<Verified> {
    let mut tried = Vec::new();
    let mut signature = None;
    // The failing side first: where that one passes, nothing else matters.
    for side in [Side::Fail, Side::Pass] {
        let reading = run(recipe, side)?;
        tried.push(format!("{} ({}): {}", side.name(), label(recipe, side), words(&reading)));
        let conclusion = match judge(&recipe.expect, side, &reading) {
            Judged::Agrees => {
                if side == Side::Fail {
                    signature = reading.signature;
                }
                continue;
            }
            Judged::Differs(why) => Conclusion::NotAccepted(why),
            Judged::Cannot(why) => Conclusion::CouldNot(why),
        };
        return Ok(Verified { recipe: recipe.clone(), conclusion, tried });
    }
    let mut shrinking = Shrinking { recipe: recipe.clone(), signature, tried, left: SHRINK_RUNS };
    shrinking.closer(run)?;
    shrinking.smaller(run)?;
    let Shrinking { mut recipe, tried, .. } = shrinking;
    recipe.tried.clone_from(&tried);
    Ok(Verified { recipe, conclusion: Conclusion::Accepted, tried })
}

fn label(recipe: &Recipe, side: Side) -> String {
    let key = match side {
        Side::Pass => &recipe.sides.pass,
        Side::Fail => &recipe.sides.fail,
    };
    recipe.rows.iter().find(|row| row.key == *key).map_or_else(|| key.clone(), |row| row.label.clone())
}

fn words(reading: &Reading) -> String {
    if let Some(why) = &reading.cannot {
        return format!("could not run: {why}");
    }
    match (reading.class, reading.exit) {
        (None | Some(FailureClass::None), Some(0)) => "passed".to_owned(),
        (class, exit) => {
            let class = class.map_or("nothing", FailureClass::name);
            let code = reading.code.as_ref().map(|code| format!(", {code}")).unwrap_or_default();
            let exit =
                exit.map_or_else(|| "ended from outside".to_owned(), |exit| format!("exit status {exit}"));
            format!("{class}{code}, {exit}")
        }
    }
}

fn judge(expect: &Expect, side: Side, reading: &Reading) -> Judged {
    if let Some(why) = &reading.cannot {
        return Judged::Cannot(why.clone());
    }
    let class = reading.class.unwrap_or(FailureClass::None);
    let failed = class != FailureClass::None || reading.exit != Some(0);
    match side {
        Side::Pass if failed => {
            Judged::Differs(format!("the side that must pass did not: {}", words(reading)))
        }
        Side::Pass => Judged::Agrees,
        Side::Fail if !failed => Judged::Differs("the side that must fail passed".to_owned()),
        Side::Fail => match difference(expect, class, reading) {
            Some(why) => Judged::Differs(why),
            None => Judged::Agrees,
        },
    }
}

/// In what a failure differs from the one that is expected. What one of the two doesn't say, doesn't differ.
fn difference(expect: &Expect, class: FailureClass, reading: &Reading) -> Option<String> {
    if class.name() != expect.class {
        return Some(format!("it fails in another class: {}, not {}", class.name(), expect.class));
    }
    let pairs = [
        ("status", &expect.code, &reading.code),
        ("kernel", &expect.kernel, &reading.kernel),
        ("collective", &expect.collective, &reading.collective),
    ];
    pairs.into_iter().find_map(|(what, wanted, got)| {
        let (wanted, got) = (wanted.as_ref()?, got.as_ref()?);
        let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
        (last(wanted) != last(got)).then(|| format!("it fails with another {what}: {got}, not {wanted}"))
    })
}

struct Shrinking {
    recipe: Recipe,
    signature: Option<String>,
    tried: Vec<String>,
    left: usize,
}

type Run<'a> = dyn FnMut(&Recipe, Side) -> Result<Reading> + 'a;

impl Shrinking {
    /// The rows nearest to the boundary in place of the reported ones.
    fn closer(&mut self, run: &mut Run<'_>) -> Result<()> {
        let Some(closer) = self.recipe.closer.clone().filter(|closer| *closer != self.recipe.sides) else {
            return Ok(());
        };
        let what = format!("sides {} and {}", closer.pass, closer.fail);
        let mut candidate = self.recipe.clone();
        candidate.sides = closer;
        self.attempt(candidate, &what, run)?;
        Ok(())
    }

    /// Each size as small as it stays true: the least first, else halves.
    fn smaller(&mut self, run: &mut Run<'_>) -> Result<()> {
        let names: Vec<String> = self.recipe.sizes.keys().cloned().collect();
        for name in names {
            let Some(size) = self.recipe.sizes.get(&name).copied() else { continue };
            let halves =
                (1..HALVINGS).map(|times| size.value >> times).take_while(|value| *value > size.least);
            for value in std::iter::once(size.least).chain(halves).filter(|value| *value < size.value) {
                let mut candidate = self.recipe.clone();
                if let Some(slot) = candidate.sizes.get_mut(&name) {
                    slot.value = value;
                }
                let what =
                    format!("{name} {} in place of {}", grouped(value.into()), grouped(size.value.into()));
                let kept = self.attempt(candidate, &what, run)?;
                // The least one is as small as it gets; a half that fails has no better half.
                if kept == (value == size.least) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes a candidate where both sides come out as they should, with the signature of the first failure.
    fn attempt(&mut self, candidate: Recipe, what: &str, run: &mut Run<'_>) -> Result<bool> {
        if self.left < 2 {
            return Ok(false);
        }
        for side in [Side::Fail, Side::Pass] {
            self.left -= 1;
            let reading = run(&candidate, side)?;
            let mut kept = matches!(judge(&candidate.expect, side, &reading), Judged::Agrees);
            kept &= side == Side::Pass || reading.signature == self.signature;
            if !kept {
                self.tried.push(format!("{what}: dropped, {} side: {}", side.name(), words(&reading)));
                return Ok(false);
            }
        }
        self.tried.push(format!("{what}: kept"));
        self.recipe = candidate;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
