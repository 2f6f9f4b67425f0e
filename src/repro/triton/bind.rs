//! A value for each of the kernel's arguments, each with where it came from.
//!
//! In: the trace or the cache, the log's numbers, what was given. Out: [`Prepared`]: a probe's job whose every launch is
//! known. In this order: what was given; the traced launch; what a tool read off the GPU; numbers that the log prints under an argument's own name; the log's other numbers in the order of
//! the arguments, said to be assumed; what the probe derives (strides, grid, buffers).

use std::collections::btree_map::Entry;
use std::path::Path;

use super::super::facts::{Facts, missing};
use super::super::recipe::{Origin, Value};
use super::backward::is_backward_of;
use super::trace::{self, Traced};
use crate::error::{Error, Result};
use crate::kernel::Number;
use crate::probe::load;
use crate::probe::plan::Role;
use crate::probe::run::{self, Job};
use crate::probe::spec::Spec;
use crate::probe::target::{ParameterKind, Target};
use crate::read::event::Data;
use crate::text::number::grouped_signed;
use crate::verdict::cause::compiled;
use crate::verdict::shapes::Likelihood;
use crate::verdict::told;

/// Ways to give the log's numbers to arguments that are tried.
const WAYS: usize = 120;

/// Numbers of the log that are given to arguments.
const NUMBERS: usize = 5;

/// A job whose every launch is known.
pub(super) struct Prepared {
    /// The job.
    pub job: Job,
    /// The swept argument.
    pub sweep: String,
    /// The size that failed, where it is known.
    pub reported: Option<i64>,
    /// What sizes are multiples of.
    pub lattice: i64,
    /// Values with their provenance.
    pub values: Vec<Value>,
    /// The release that compiled the kernel.
    pub triton: Option<String>,
    /// The traced launch, where it is one; it also keeps the folder with its code.
    pub traced: Option<Traced>,
    /// Whether the integers are those of the traced launch, but for the swept one.
    pub is_exact: bool,
}

impl Prepared {
    /// The other sizes for a row's label, in the kernel's order: `, N = 9,216, K = 32`.
    pub fn others(&self) -> String {
        let names = self.job.target.parameters.iter().map(|parameter| &parameter.name);
        names
            .filter(|name| **name != self.sweep)
            .filter_map(|name| Some((name, self.job.spec.set.get(name)?.parse::<i128>().ok()?)))
            .map(|(name, value)| format!(", {name} = {}", grouped_signed(value)))
            .collect()
    }

    /// What the probe derived.
    pub fn computed(&self) -> Vec<Value> {
        let known = |name: &str| self.values.iter().any(|value| value.name == name);
        let arguments = self.job.bound.arguments.iter().filter(|argument| !known(&argument.name));
        let mut values: Vec<Value> = arguments
            .filter(|argument| argument.name != self.sweep)
            .map(|argument| Value::new(&argument.name, &argument.shown, Origin::Computed, &argument.from))
            .collect();
        let sizes = self.job.bound.grid.iter().zip(&self.job.bound.grid_from).zip(["x", "y", "z"]);
        let blocks = sizes.filter(|((blocks, _), _)| **blocks > 1);
        values.extend(blocks.map(|((blocks, from), axis)| {
            Value::new(format!("grid {axis}"), blocks, Origin::Computed, format!("at the first size: {from}"))
        }));
        values
    }
}

/// Finds kernel and values: by a traced launch where one leads here, else by the cache.
pub(super) fn prepare(facts: &Facts<'_>) -> Result<Prepared> {
    if let Some(traced) = trace::find(facts)? {
        return by_trace(facts, traced);
    }
    let cache = facts.cache().and_then(|input| input.file.as_deref()).ok_or_else(|| {
        missing(
            "neither a Triton cache nor a traced launch that wraps is among the inputs: they tell the kernel's arguments, sizes \
             and code",
            "add the cache folder: $TRITON_CACHE_DIR, else ~/.triton/cache; or a tritonparse trace with its launches",
        )
    })?;
    by_cache(facts, cache)
}

/// The launch as it was traced; `--set` wins.
fn by_trace(facts: &Facts<'_>, traced: Traced) -> Result<Prepared> {
    let path = traced.folder().to_string_lossy().into_owned();
    let target = load::load(traced.folder(), None)?;
    let mut spec = Spec { path, entry: Some(target.name.clone()), ..Spec::default() };
    let mut values = given(facts, &target, &mut spec)?;
    let is_own = |name: &str, kind| {
        let found = target.parameters.iter().find(|parameter| parameter.name == name);
        found.is_some_and(|parameter| parameter.kind == kind && !parameter.hidden)
    };
    let integers = traced.launch.integers().filter(|(name, _)| is_own(name, ParameterKind::Integer));
    for (name, value) in integers {
        if let Entry::Vacant(slot) = spec.set.entry(name.to_owned()) {
            values.push(Value::new(
                name,
                value,
                Origin::Read,
                format!("{}, the traced launch", traced.place),
            ));
            slot.insert(value.to_string());
        }
    }
    let floats = target.parameters.iter().filter(|parameter| parameter.kind == ParameterKind::Float);
    for name in floats.map(|parameter| &parameter.name) {
        if let (Some(text), false) = (traced.other(name), spec.set.contains_key(name)) {
            values.push(Value::new(name, text, Origin::Read, format!("{}, the traced launch", traced.place)));
            spec.set.insert(name.clone(), text.to_owned());
        }
    }
    let mut job = run::prepare(&spec, None, facts.program);
    let sweep = job.as_ref().ok().and_then(|job| job.sweep.clone()).or_else(|| spec.sweep.clone());
    let is_exact = traced.launch.integers().all(|(name, value)| {
        sweep.as_deref() == Some(name) || spec.set.get(name).is_none_or(|text| *text == value.to_string())
    });
    // Masks give a grid that grows with the size; where they give another one than the trace's, the trace's stays.
    if let (Some(grid), None, true) = (traced.grid(), &spec.grid, is_exact) {
        let agrees = job.as_ref().is_ok_and(|job| grid_at(job, traced_size(&traced, job)) == Some(grid));
        if !agrees {
            spec.grid = Some(grid.map(|size| size.to_string()).join(","));
            job = run::prepare(&spec, None, facts.program);
        }
    }
    let mut prepared = prepared(job.map_err(|error| in_our_words(&error))?, values)?;
    prepared.is_exact = is_exact;
    prepared.traced = Some(traced);
    Ok(prepared)
}

/// The swept argument's value in the traced launch.
pub(super) fn traced_size(traced: &Traced, job: &Job) -> Option<i64> {
    let sweep = job.sweep.as_deref()?;
    traced.launch.integers().find(|(name, _)| *name == sweep).map(|(_, value)| value)
}

fn grid_at(job: &Job, size: Option<i64>) -> Option<[u32; 3]> {
    super::launch_of(job, size?).ok().map(|launch| launch.grid)
}

fn by_cache(facts: &Facts<'_>, cache: &Path) -> Result<Prepared> {
    let view = facts.verdict.view(facts.case);
    let suspects = view.as_ref().map(compiled::suspects).unwrap_or_default();
    let names: Vec<&str> = suspects.iter().map(|suspect| suspect.kernel.model.entry.as_str()).collect();
    let suspect = first_to_run(facts, &names).map(str::to_owned);
    let named = facts.verdict.places.fault.as_ref().and_then(|fault| fault.kernel.clone());
    let entry = facts.entry.map(str::to_owned).or(suspect).or(named);
    let target = load::load(cache, entry.as_deref())?;
    let mut spec = Spec { path: cache.to_string_lossy().into_owned(), entry, ..Spec::default() };
    let mut values = given(facts, &target, &mut spec)?;
    let numbers = view.as_ref().map(compiled::numbers).unwrap_or_default();
    if let (Some(view), Some(kernel)) = (&view, target.kernel.as_deref()) {
        for (name, value) in compiled::launch_arguments(view, kernel).values {
            if let Entry::Vacant(slot) = spec.set.entry(name) {
                let from = "the launch that a tool read off the GPU";
                values.push(Value::new(slot.key(), value, Origin::Read, from));
                slot.insert(value.to_string());
            }
        }
    }
    // The numbers stand on the line that prints the likeliest shape.
    let shape = facts.verdict.shapes.iter().find(|shape| shape.likelihood >= Likelihood::Near);
    let place = shape.map(|shape| facts.place_of(shape.evidence)).unwrap_or_default();
    let mut left: Vec<(String, Number)> = Vec::new();
    for number in numbers.into_iter().take(NUMBERS) {
        let place = place.clone();
        let own = number.name.as_ref().and_then(|name| target.parameters.iter().find(|p| p.name == *name));
        match own {
            Some(parameter) if !spec.set.contains_key(&parameter.name) => {
                spec.set.insert(parameter.name.clone(), number.value.to_string());
                values.push(Value::new(&parameter.name, number.value, Origin::Read, place));
            }
            Some(_) => {}
            None if spec.set.values().any(|text| *text == number.value.to_string()) => {}
            None => left.push((place, number)),
        }
    }
    let mut completed = complete(facts, &target, &spec, &left);
    // Masks give a grid that grows with the size; where they give none, the failed launch's own stays.
    let read_off = told::device(facts.case, &target.entry).and_then(|launch| launch.grid);
    if let (Err(_), Some(grid), None) = (&completed, read_off, &spec.grid) {
        let grid = grid.map(|size| size.to_string()).join(",");
        values.push(Value::new("grid", &grid, Origin::Read, "the launch that a tool read off the GPU"));
        spec.grid = Some(grid);
        completed = complete(facts, &target, &spec, &left);
    }
    let (job, assumed) = completed.map_err(|error| in_our_words(&error))?;
    values.extend(assumed);
    prepared(job, values)
}

fn prepared(job: Job, values: Vec<Value>) -> Result<Prepared> {
    let sweep = job.sweep.clone().ok_or_else(|| {
        let set: Vec<String> = job.spec.set.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        missing(
            format!("no 32-bit index of {} wraps with {}", job.target.name, set.join(", ")),
            "give the size that failed: --set M=234624; or name another kernel with --entry",
        )
    })?;
    let reported = job.spec.set.get(&sweep).and_then(|text| text.parse().ok());
    let parameter = job.target.parameters.iter().find(|parameter| parameter.name == sweep);
    let lattice = parameter.and_then(|p| i64::try_from(p.divisibility).ok()).unwrap_or(1).max(1);
    Ok(Prepared {
        sweep,
        reported,
        lattice,
        values,
        triton: triton_version(&job),
        job,
        traced: None,
        is_exact: false,
    })
}

/// The probe names its own option for a grid; here it is `--set`.
fn in_our_words(error: &Error) -> Error {
    let hint = error
        .hint_text()
        .unwrap_or("")
        .replace("--grid EXPRESSIONS (as in ", "--set grid='EXPRESSIONS' (as in ");
    let same = Error::new(error.kind(), error.to_string());
    if hint.is_empty() { same } else { same.hint(hint) }
}

/// The likeliest of the suspects; a forward kernel before its own backward one, which runs later, unless the stack is in a
/// backward pass.
fn first_to_run<'a>(facts: &Facts<'_>, suspects: &[&'a str]) -> Option<&'a str> {
    let first = *suspects.first()?;
    let in_backward = facts
        .case
        .pick(|data| match data {
            Data::Traceback(traceback) => Some(traceback),
            _ => None,
        })
        .flat_map(|(_, _, traceback)| &traceback.frames)
        .any(|frame| frame.function.as_deref() == Some("backward"));
    let forward = suspects.iter().find(|name| is_backward_of(name, first)).filter(|_| !in_backward);
    Some(forward.copied().unwrap_or(first))
}

/// What the engineer gave and the kernel has: arguments, grid, the swept one.
fn given(facts: &Facts<'_>, target: &Target, spec: &mut Spec) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for (name, text) in facts.given {
        match name.as_str() {
            "grid" => spec.grid = Some(text.clone()),
            "sweep" => spec.sweep = Some(text.clone()),
            _ => {
                let Some(parameter) = target.parameter(name).and_then(|at| target.parameters.get(at)) else {
                    continue;
                };
                spec.set.insert(parameter.name.clone(), text.clone());
            }
        }
        values.push(Value::new(name, text, Origin::Given, format!("--set {name}={text}")));
    }
    Ok(values)
}

/// Completes the launch with the log's other numbers: the first way in the arguments' order under which the kernel wraps
/// at the reported size and not below.
fn complete(
    facts: &Facts<'_>,
    target: &Target,
    spec: &Spec,
    left: &[(String, Number)],
) -> Result<(Job, Vec<Value>)> {
    let open: Vec<&str> = target
        .parameters
        .iter()
        .filter(|p| p.kind == ParameterKind::Integer && !p.hidden && !spec.set.contains_key(&p.name))
        .map(|p| p.name.as_str())
        .collect();
    let mut first = None;
    for way in ways(open.len(), left.len()) {
        let mut tried = spec.clone();
        let mut assumed = Vec::new();
        for (at, number) in way {
            let (Some(name), Some((place, number))) = (open.get(at), left.get(number)) else { continue };
            tried.set.insert((*name).to_owned(), number.value.to_string());
            let label = number.name.as_ref().map(|name| format!(" as {name}")).unwrap_or_default();
            let why = format!("{place} prints it{label}; taken for {name} in the order of the arguments");
            assumed.push(Value::new(*name, number.value, Origin::Assumed, why));
        }
        match run::prepare(&tried, None, facts.program) {
            Ok(job) if is_past(&job) => return Ok((job, assumed)),
            Ok(job) => {
                first.get_or_insert(Ok((job, assumed)));
            }
            Err(error) => {
                first.get_or_insert(Err(error));
            }
        }
    }
    first.unwrap_or_else(|| run::prepare(spec, None, facts.program).map(|job| (job, Vec::new())))
}

/// Whether the boundary is known and the size that was set lies past it.
fn is_past(job: &Job) -> bool {
    let of = |role: Role| job.plan.steps().iter().find(|step| step.role == role).map(|step| step.value);
    let reported: Option<i64> = job.sweep.as_ref().and_then(|name| job.spec.set.get(name)?.parse().ok());
    match (of(Role::FirstFail), reported) {
        (Some(first), Some(reported)) => reported >= first,
        _ => false,
    }
}

/// Ways to give `numbers` to `open` places, each number once, those in order first: pairs of place and number.
fn ways(open: usize, numbers: usize) -> Vec<Vec<(usize, usize)>> {
    let take = numbers.min(open);
    let mut out = Vec::new();
    let mut stack: Vec<Vec<usize>> = vec![Vec::new()];
    // Depth first with the smallest place on top: orders come out sorted.
    while let Some(way) = stack.pop() {
        if way.len() == take {
            out.push(way.iter().copied().enumerate().map(|(number, place)| (place, number)).collect());
            if out.len() >= WAYS {
                return out;
            }
            continue;
        }
        for place in (0..open).rev().filter(|place| !way.contains(place)) {
            let mut longer = way.clone();
            longer.push(place);
            stack.push(longer);
        }
    }
    out
}

/// The release that the entry's JSON names.
fn triton_version(job: &Job) -> Option<String> {
    let image = job.target.images.first()?;
    let text = std::fs::read(Path::new(&image.path).with_extension("json")).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&text).ok()?;
    value.get("triton_version")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::ways;

    #[test]
    fn the_order_of_the_arguments_comes_first() {
        let found = ways(4, 2);
        assert_eq!(found.first().map(Vec::as_slice), Some([(0, 0), (1, 1)].as_slice()));
        assert_eq!(found.len(), 12);
        assert_eq!(ways(0, 2), [vec![]]);
        assert_eq!(ways(3, 0), [vec![]]);
        assert!(ways(40, 5).len() <= super::WAYS);
    }
}
