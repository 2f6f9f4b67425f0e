//! `warpfault repro`: a folder with a minimal repro, and whether it shows what it says.
//!
//! In: inputs, answers, a folder. Out: the folder; with `--verify` what its runs came to, and the contract's exit status.
//! It overwrites no folder that it didn't make, and runs nothing without a yes.

mod folder;
mod run;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::{Error, ErrorKind, Result};
use crate::probe::host::Program;
use crate::repro::recipe::Origin;
use crate::repro::verify::Conclusion;
use crate::repro::{Facts, Kind, Plan, UserFile, files, plan, verify};
use crate::session::Input;
use crate::text::escape;

use super::answers::AnswerArgs;
use super::output;

/// Arguments of `warpfault repro`.
#[derive(Debug, Args)]
pub struct ReproArgs {
    /// Logs, dumps, reports, a Triton cache folder; and the user's own .py, whose kernel or script is then used. Without
    /// one, --verify checks the folder as it is
    pub input: Vec<OsString>,
    /// The folder to write
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Kind of repro; the evidence decides when left out
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// The kernel's name or cache key
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Run it, and accept it only if it fails as the incident did and passes on the safe side
    #[arg(long)]
    pub verify: bool,
    /// Run without asking
    #[arg(long, requires = "verify")]
    pub yes: bool,
    /// What the engineer knows besides.
    #[command(flatten)]
    pub answers: AnswerArgs,
}

/// Runs it; returns the exit status of the contract.
///
/// # Errors
/// `Usage` for what is missing, naming the option that gives it; `Output` for a folder that isn't ours.
pub fn run(args: &ReproArgs) -> Result<u8> {
    if args.verify && args.input.is_empty() && folder::is_ours(&args.output) {
        return check(args, &folder::read(&args.output)?);
    }
    folder::may_write(&args.output)?;
    let plan = make(args)?;
    folder::replace(&args.output, &files(&plan)?)?;
    output::print(&page(args, &plan))?;
    if args.verify { check(args, &plan) } else { Ok(0) }
}

/// Plans a repro from the inputs.
fn make(args: &ReproArgs) -> Result<Plan> {
    let answers = args.answers.answers()?;
    let (sources, inputs): (Vec<_>, Vec<_>) = args
        .input
        .iter()
        .cloned()
        .partition(|input| Path::new(input).extension().is_some_and(|end| end == "py"));
    if sources.len() > 1 {
        return Err(Error::new(ErrorKind::Usage, "more than one .py is among the inputs")
            .hint("give the one that holds the kernel or the script"));
    }
    let source = sources.first().map(|path| user_file(Path::new(path))).transpose()?;
    let mut session = super::analyze::open(&inputs)?;
    if !answers.is_empty() {
        session.apply(Input::Answered(answers));
    }
    if session.inputs().is_empty() {
        for diagnostic in &session.report().diagnostics {
            output::tell(&diagnostic.message);
        }
        return Err(Error::new(ErrorKind::Input, "none of the inputs could be read"));
    }
    let program = Program::this().map_err(|error| {
        Error::new(ErrorKind::Missing, "this program can't find its own file").because(error)
    })?;
    let pairs = args.answers.values.iter().filter_map(|text| text.split_once('='));
    let given: BTreeMap<String, String> =
        pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
    let facts = Facts {
        case: session.case(),
        verdict: session.verdict(),
        inputs: session.inputs(),
        given: &given,
        entry: args.entry.as_deref(),
        source: source.as_ref(),
        program: &program,
    };
    plan(&facts, args.kind)
}

fn user_file(path: &Path) -> Result<UserFile> {
    let bytes = super::shapes::read_capped(path)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(UserFile { name, text: String::from_utf8_lossy(&bytes).into_owned() })
}

/// What was written, and what in it nobody said.
fn page(args: &ReproArgs, plan: &Plan) -> String {
    let recipe = &plan.recipe;
    let mut page = format!("{}\n\n", escape(&recipe.shows));
    for row in &recipe.rows {
        let must = row.expect.map_or("open".to_owned(), |side| format!("must {}", side.name()));
        page.push_str(&format!("  {must:9}  {}\n", escape(&row.label)));
    }
    if let Some(numbers) = &recipe.numbers {
        page.push_str(&format!("\n{}\n", escape(numbers)));
    }
    let assumed: Vec<_> = recipe.values.iter().filter(|value| value.origin == Origin::Assumed).collect();
    if !assumed.is_empty() {
        page.push_str("\nassumed, because nothing says it:\n");
        for value in assumed {
            page.push_str(&format!(
                "  {} = {}: {}\n",
                escape(&value.name),
                escape(&value.value),
                escape(&value.from)
            ));
        }
    }
    let folder = args.output.to_string_lossy();
    let words = ["bash".to_owned(), args.output.join("run.sh").to_string_lossy().into_owned()];
    page.push_str(&format!(
        "\nwrote {}; run it with: {}\n",
        escape(&folder),
        crate::text::command_line(&words)
    ));
    page
}

/// Runs it and says what came out.
fn check(args: &ReproArgs, plan: &Plan) -> Result<u8> {
    let mut runner = run::Runner::begin(&args.output, plan, args.yes)?;
    let verified = verify::verify(&plan.recipe, &mut |recipe, side| runner.run(recipe, side))?;
    for line in &verified.tried {
        output::print(&format!("{}\n", escape(line)))?;
    }
    match verified.conclusion {
        Conclusion::Accepted => {
            let plan = Plan { recipe: verified.recipe, assets: plan.assets.clone() };
            folder::write(&args.output, &files(&plan)?)?;
            output::print("accepted\n")?;
            Ok(0)
        }
        Conclusion::NotAccepted(why) => {
            output::print(&format!("not accepted: {}\n", escape(&why)))?;
            Ok(1)
        }
        Conclusion::CouldNot(why) => {
            Err(Error::new(ErrorKind::Missing, format!("it could not be run: {why}"))
                .hint("run it where the job ran; the folder is complete"))
        }
    }
}
