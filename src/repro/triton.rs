//! A Triton kernel at sizes around its boundary.
//!
//! In: the traced launch or the cache entry, the numbers of the log, what the engineer gives; the user's own file, where it
//! was given. Out: a plan: the compiled kernel launched through the driver, or the user's kernel compiled anew, with every launch worked out
//! by the probe's own binding. The static check says on which side each size lies.

mod arguments;
mod backward;
mod bind;
mod numbers;
mod source;
mod trace;

use std::collections::BTreeMap;
use std::path::Path;

use super::facts::{Facts, missing};
use super::recipe::{
    ArgumentValue, Asset, Launch, Origin, Plan, Program, Recipe, Replayed, Row, Side, Sides, TritonReplay,
    Value,
};
use crate::arith::boundary::Role as ShapeRole;
use crate::error::Result;
use crate::probe::plan::{Predicted, Role, Step};
use crate::probe::protocol::{ImageKind, Placement, Request};
use crate::probe::run::Job;
use crate::text::number::grouped_signed;
use crate::verdict::cause::traced::culprit;
use backward::Forward;
use bind::Prepared;

/// Folder of the cache entry's files in the repro.
const FOLDER: &str = "kernel";

/// Files of an entry that are worth carrying.
const ENDINGS: [&str; 4] = ["json", "cubin", "ptx", "ttir"];

/// Whether a trace among the inputs tells the launch.
pub(super) fn is_traced(facts: &Facts<'_>) -> bool {
    facts.verdict.view(facts.case).is_some_and(|view| culprit(&view).is_some())
}

/// Plans it.
pub(super) fn plan(facts: &Facts<'_>) -> Result<Plan> {
    let prepared = bind::prepare(facts)?;
    let job = &prepared.job;
    let boundary = boundary(job).ok_or_else(|| {
        missing(
            format!("the static check finds no size at which {} wraps", job.target.name),
            "it is no overflow of this kernel; name another one with --entry, or another argument's value with --set NAME=VALUE",
        )
    })?;
    let sizes = table(facts, &prepared, boundary)?;
    let mut assets = entry_files(job, FOLDER)?;
    let mut launches = BTreeMap::new();
    for &size in sizes.iter().chain([&boundary.last_pass, &boundary.first_fail]) {
        launches.insert(size.to_string(), launch(&prepared, size)?);
    }
    let shows = format!(
        "{} forms a row's offset in 32 bits: past {} = {} it wraps and the kernel leaves its buffer",
        job.target.name,
        prepared.sweep,
        grouped_signed(i128::from(boundary.last_pass))
    );
    let forward = Forward { prepared: &prepared, launches: &launches, sizes: &sizes };
    let mut backward = backward::find(facts, &forward);
    let (rows, values) = backward.shown();
    let mut notes = notes(&prepared);
    notes.extend(match backward.notes.is_empty() {
        true => vec![
            "Only the launch that the inputs name is here: the forward pass. No backward kernel is known."
                .to_owned(),
        ],
        false => std::mem::take(&mut backward.notes),
    });
    let (program, of_program) = match facts.source {
        Some(user) => {
            let (program, values, file) =
                source::program(facts, user, &prepared, launches, backward.compiled())?;
            assets.push(file);
            (program, values)
        }
        None => {
            let (backward, files) = backward.replayed();
            let program = replay(&prepared, launches, images(FOLDER, &assets), backward);
            assets.extend(files);
            (program, Vec::new())
        }
    };
    let mut recipe = recipe(facts, &prepared, boundary, &sizes, shows, program);
    for value in of_program.into_iter().chain(values) {
        if !recipe.values.contains(&value) {
            recipe.values.push(value);
        }
    }
    recipe.rows.extend(rows);
    recipe.notes = notes;
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
        expect: Some(if *size <= boundary.last_pass { Side::Pass } else { Side::Fail }),
    };
    recipe.rows = sizes.iter().map(row).collect();
    let rows = &recipe.rows;
    let of = |side: Side| rows.iter().filter(move |row| row.expect == Some(side)).map(|row| row.key.clone());
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
    recipe.numbers = numbers::sentence(facts, prepared, boundary, sizes);
    recipe
}

fn notes(prepared: &Prepared) -> Vec<String> {
    let mut notes = vec![
        "Buffers hold zeros and are ordinary allocations: a wrapped index is seen because it leaves every allocation of this \
         small program. warpfault probe probe.toml guards both ends of each buffer instead, and needs 2 MiB."
            .to_owned(),
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

fn replay(
    prepared: &Prepared,
    launches: BTreeMap<String, Launch>,
    images: Vec<String>,
    backward: Vec<Replayed>,
) -> Program {
    Program::TritonReplay(TritonReplay {
        entry: prepared.job.target.entry.clone(),
        sweep: prepared.sweep.clone(),
        images,
        launches,
        backward,
    })
}

/// The files with code among those of a folder, the best first.
fn images(folder: &str, assets: &[Asset]) -> Vec<String> {
    let images = ["cubin", "ptx"].iter().map(|ending| format!("{folder}/kernel.{ending}"));
    images.filter(|image| assets.iter().any(|asset| asset.path == *image)).collect()
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

/// The launch at a size; the tensors of a traced launch as they were, those that have the swept size grow and shrink.
fn launch(prepared: &Prepared, size: i64) -> Result<Launch> {
    let mut launch = launch_of(&prepared.job, size)?;
    let Some(traced) = prepared.traced.as_ref().filter(|_| prepared.is_exact) else { return Ok(launch) };
    let from = bind::traced_size(traced, &prepared.job).and_then(|from| u64::try_from(from).ok());
    let (Some(from), Ok(to)) = (from, u64::try_from(size)) else { return Ok(launch) };
    for argument in &mut launch.arguments {
        // What a buffer holds, and how large it then is, was given.
        let is_given = prepared.job.spec.set.contains_key(&argument.name);
        if let (ArgumentValue::Buffer { bytes, dtype, .. }, Some(tensor), false) =
            (&mut argument.value, traced.tensor(&argument.name), is_given)
        {
            *bytes = trace::bytes(tensor, from, to).unwrap_or(*bytes);
            *dtype = tensor.dtype.clone().or(dtype.take());
        }
    }
    Ok(launch)
}

fn launch_of(job: &Job, size: i64) -> Result<Launch> {
    let step = Step { value: size, role: Role::Asked, placement: Placement::End };
    let Request::Trial(trial) = job.request(step, false)? else {
        return Err(missing("the probe plans no launch", "use warpfault probe"));
    };
    let types = source::pointer_types(&job.target);
    let arguments = trial
        .arguments
        .iter()
        .zip(&job.target.parameters)
        .map(|(argument, parameter)| arguments::of(argument, parameter, types.get(&parameter.name)))
        .collect::<Result<_>>()?;
    Ok(Launch { grid: trial.grid, block: trial.block, shared_bytes: trial.shared_bytes, arguments })
}

/// The cache entry's files under names of ours.
fn entry_files(job: &Job, folder: &str) -> Result<Vec<Asset>> {
    let mut found = Vec::new();
    for image in &job.target.images {
        let image_path = Path::new(&image.path);
        if found.is_empty() {
            for ending in ENDINGS {
                let path = image_path.with_extension(ending);
                if let Ok(bytes) = std::fs::read(&path) {
                    found.push(Asset { path: format!("{folder}/kernel.{ending}"), bytes });
                }
            }
        }
    }
    let code = |kind| if kind == ImageKind::Cubin { "cubin" } else { "ptx" };
    let whole =
        job.target.images.iter().any(|image| {
            found.iter().any(|asset| asset.path == format!("{folder}/kernel.{}", code(image.kind)))
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
