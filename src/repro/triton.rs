//! A Triton kernel at sizes around its boundary.
//!
//! In: the cache entry, the numbers of the log, what the engineer gives; the user's own file, where it was given. Out: a
//! plan: the compiled kernel launched through the driver, or the user's kernel compiled anew, with every launch worked out
//! by the probe's own binding. The static check says on which side each size lies.

mod arguments;
mod bind;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use super::facts::{Facts, missing};
use super::recipe::{Asset, Launch, Origin, Plan, Program, Recipe, Row, Side, Sides, TritonReplay, Value};
use crate::arith::boundary::Role as ShapeRole;
use crate::error::Result;
use crate::probe::plan::{Predicted, Role, Step};
use crate::probe::protocol::{ImageKind, Placement, Request};
use crate::probe::run::Job;
use crate::text::number::grouped_signed;
use bind::Prepared;

/// Folder of the cache entry's files in the repro.
const FOLDER: &str = "kernel";

/// Files of an entry that are worth carrying.
const ENDINGS: [&str; 4] = ["json", "cubin", "ptx", "ttir"];

/// Plans it.
pub(super) fn plan(facts: &Facts<'_>) -> Result<Plan> {
    let cache = facts.cache().and_then(|input| input.file.as_deref()).ok_or_else(|| {
        missing(
            "no Triton cache is among the inputs: it tells the kernel's arguments, sizes and code",
            "add its folder: $TRITON_CACHE_DIR, else ~/.triton/cache",
        )
    })?;
    let prepared = bind::prepare(facts, cache)?;
    let job = &prepared.job;
    let boundary = boundary(job).ok_or_else(|| {
        missing(
            format!("the static check finds no size at which {} wraps", job.target.name),
            "it is no overflow of this kernel; name another one with --entry, or another argument's value with --set NAME=VALUE",
        )
    })?;
    let sizes = table(facts, &prepared, boundary)?;
    let mut assets = entry_files(job)?;
    let mut launches = BTreeMap::new();
    for &size in sizes.iter().chain([&boundary.last_pass, &boundary.first_fail]) {
        launches.insert(size.to_string(), launch(job, size)?);
    }
    let shows = format!(
        "{} forms a row's offset in 32 bits: past {} = {} it wraps and the kernel leaves its buffer",
        job.target.name,
        prepared.sweep,
        grouped_signed(i128::from(boundary.last_pass))
    );
    let program = match facts.source {
        Some(user) => {
            let (program, values, file) = source::program(facts, user, &prepared, launches)?;
            assets.push(file);
            (program, values)
        }
        None => (replay(&prepared, launches, &assets), Vec::new()),
    };
    let mut recipe = recipe(facts, &prepared, boundary, &sizes, shows, program.0);
    recipe.values.extend(program.1);
    assets.push(probe_file(job, &sizes)?);
    Ok(Plan { recipe, assets })
}

fn recipe(
    facts: &Facts<'_>,
    prepared: &Prepared,
    boundary: Predicted,
    sizes: &[i64],
    shows: String,
    program: Program,
) -> Recipe {
    let mut recipe = Recipe::two_sided(shows, facts.expect(), program, Default::default());
    let others = prepared.others();
    let row = |size: &i64| Row {
        key: size.to_string(),
        label: format!(
            "{} = {}{others}: {}",
            prepared.sweep,
            grouped_signed(i128::from(*size)),
            if *size <= boundary.last_pass { "within int32" } else { "past int32" }
        ),
        expect: if *size <= boundary.last_pass { Side::Pass } else { Side::Fail },
    };
    recipe.rows = sizes.iter().map(row).collect();
    let rows = &recipe.rows;
    let of = |side: Side| rows.iter().filter(move |row| row.expect == side).map(|row| row.key.clone());
    let sides = Sides {
        pass: of(Side::Pass).next_back().unwrap_or_else(|| boundary.last_pass.to_string()),
        fail: of(Side::Fail).next().unwrap_or_else(|| boundary.first_fail.to_string()),
    };
    recipe.sides = sides;
    recipe.closer =
        Some(Sides { pass: boundary.last_pass.to_string(), fail: boundary.first_fail.to_string() });
    recipe.values.clone_from(&prepared.values);
    recipe.values.extend(prepared.computed());
    recipe.values.push(Value::new(
        "boundary",
        format!(
            "{} = {} passes, {} fails",
            prepared.sweep,
            grouped_signed(i128::from(boundary.last_pass)),
            grouped_signed(i128::from(boundary.first_fail))
        ),
        Origin::Computed,
        "the static check of the compiled kernel",
    ));
    if let Some(version) = &prepared.triton {
        recipe.versions.insert("triton".to_owned(), version.clone());
    }
    if let Some(architecture) = prepared.job.target.architecture {
        recipe.versions.insert("compiled for".to_owned(), format!("sm_{architecture}"));
    }
    recipe.notes.extend(notes(prepared));
    recipe
}

fn notes(prepared: &Prepared) -> Vec<String> {
    let mut notes = vec![
        "Buffers hold zeros and are ordinary allocations: a wrapped index is seen because it leaves every allocation of this \
         small program. warpfault probe probe.toml guards both ends of each buffer instead, and needs 2 MiB."
            .to_owned(),
        "Only the launch that the log and the cache name is here: the forward pass. No backward kernel is known.".to_owned(),
    ];
    if prepared.lattice > 1 {
        notes.push(format!(
            "{} must stay a multiple of {}: the compiled code relies on it (tt.divisibility).",
            prepared.sweep, prepared.lattice
        ));
    }
    notes.extend(prepared.job.notes.iter().cloned());
    notes
}

fn replay(prepared: &Prepared, launches: BTreeMap<String, Launch>, assets: &[Asset]) -> Program {
    let images = ["cubin", "ptx"].iter().map(|ending| format!("{FOLDER}/kernel.{ending}"));
    Program::TritonReplay(TritonReplay {
        entry: prepared.job.target.entry.clone(),
        sweep: prepared.sweep.clone(),
        images: images.filter(|image| assets.iter().any(|asset| asset.path == *image)).collect(),
        launches,
    })
}

/// The boundary that the plan of the probe starts from.
fn boundary(job: &Job) -> Option<Predicted> {
    let of = |role: Role| job.plan.steps().iter().find(|step| step.role == role).map(|step| step.value);
    Some(Predicted { last_pass: of(Role::LastPass)?, first_fail: of(Role::FirstFail)? })
}

/// The sizes of the table: the last safe one in the reported size's granularity, the reported one, one well past it.
fn table(facts: &Facts<'_>, prepared: &Prepared, boundary: Predicted) -> Result<Vec<i64>> {
    let lattice = prepared.lattice.max(1);
    let reported = prepared.reported.filter(|size| *size > 0);
    if let Some(size) = reported.filter(|size| *size <= boundary.last_pass) {
        return Err(missing(
            format!(
                "{} = {} does not wrap: the first size that does is {}",
                prepared.sweep,
                grouped_signed(i128::from(size)),
                grouped_signed(i128::from(boundary.first_fail))
            ),
            format!("give a size past it: --set {}={}", prepared.sweep, boundary.first_fail),
        ));
    }
    let shape = facts.verdict.shapes.iter().find(|shape| {
        let value = shape.mention.dims.get(shape.sweep).and_then(|dim| i64::try_from(*dim).ok());
        value.is_some() && value == reported
    });
    let role = |wanted: ShapeRole| {
        let row = shape?.boundary.shapes.iter().find(|row| row.roles.contains(&wanted))?;
        i64::try_from(row.value).ok().filter(|size| size % lattice == 0)
    };
    let round_up = |size: i64| size + (lattice - size.rem_euclid(lattice)) % lattice;
    let last = role(ShapeRole::LastSafeMultiple).filter(|size| *size <= boundary.last_pass);
    let past = role(ShapeRole::WellPast).filter(|size| *size > boundary.last_pass);
    let well_past = round_up(boundary.first_fail.saturating_mul(143) / 100);
    let mut sizes = vec![
        last.unwrap_or(boundary.last_pass),
        reported.unwrap_or(boundary.first_fail),
        past.unwrap_or(well_past).max(reported.unwrap_or(0)),
    ];
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

fn launch(job: &Job, size: i64) -> Result<Launch> {
    let step = Step { value: size, role: Role::Asked, placement: Placement::End };
    let Request::Trial(trial) = job.request(step, false)? else {
        return Err(missing("the probe plans no launch", "use warpfault probe"));
    };
    let arguments = trial
        .arguments
        .iter()
        .zip(&job.target.parameters)
        .map(|(argument, parameter)| arguments::of(argument, parameter))
        .collect::<Result<_>>()?;
    Ok(Launch { grid: trial.grid, block: trial.block, shared_bytes: trial.shared_bytes, arguments })
}

/// The cache entry's files under names of ours.
fn entry_files(job: &Job) -> Result<Vec<Asset>> {
    let mut found = Vec::new();
    for image in &job.target.images {
        let image_path = Path::new(&image.path);
        if found.is_empty() {
            for ending in ENDINGS {
                let path = image_path.with_extension(ending);
                if let Ok(bytes) = std::fs::read(&path) {
                    found.push(Asset { path: format!("{FOLDER}/kernel.{ending}"), bytes });
                }
            }
        }
    }
    let code = |kind| if kind == ImageKind::Cubin { "cubin" } else { "ptx" };
    let whole =
        job.target.images.iter().any(|image| {
            found.iter().any(|asset| asset.path == format!("{FOLDER}/kernel.{}", code(image.kind)))
        });
    if whole {
        Ok(found)
    } else {
        Err(missing("the cache entry's code can't be read", "look at its access rights"))
    }
}

/// `probe.toml`: the same launch for `warpfault probe`.
fn probe_file(job: &Job, sizes: &[i64]) -> Result<Asset> {
    let mut spec = job.spec.clone();
    spec.path = FOLDER.to_owned();
    spec.entry = Some(job.target.entry.clone());
    spec.sweep.clone_from(&job.sweep);
    spec.also = sizes.to_vec();
    Ok(Asset { path: "probe.toml".to_owned(), bytes: spec.to_toml()?.into_bytes() })
}
