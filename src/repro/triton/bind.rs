//! A value for each of the kernel's arguments, each with where it came from.
//!
//! In: the cache, the log's numbers, what was given. Out: [`Prepared`]: a probe's job whose every launch is known. In this
//! order: what was given; numbers that the log prints under an argument's own name; the log's other numbers in the order of
//! the arguments, said to be assumed; what the probe derives (strides, grid, buffers).

use std::collections::btree_map::Entry;
use std::path::Path;

use super::super::facts::{Facts, missing};
use super::super::recipe::{Origin, Value};
use crate::error::Result;
use crate::kernel::Number;
use crate::probe::load;
use crate::probe::plan::Role;
use crate::probe::run::{self, Job};
use crate::probe::spec::Spec;
use crate::probe::target::{ParameterKind, Target};
use crate::text::number::grouped_signed;
use crate::verdict::cause::compiled;
use crate::verdict::shapes::Likelihood;

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

/// Finds kernel and values.
pub(super) fn prepare(facts: &Facts<'_>, cache: &Path) -> Result<Prepared> {
    let view = facts.verdict.view(facts.case);
    let suspects = view.as_ref().map(compiled::suspects).unwrap_or_default();
    let suspect = suspects.first().map(|suspect| suspect.kernel.model.entry.clone());
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
    let (job, assumed) = complete(facts, &target, &spec, &left)?;
    values.extend(assumed);
    let sweep = job.sweep.clone().ok_or_else(|| {
        let set: Vec<String> = job.spec.set.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        missing(
            format!("no 32-bit index of {} wraps with {}", target.name, set.join(", ")),
            "give the size that failed: --set M=234624; or name another kernel with --entry",
        )
    })?;
    let reported = job.spec.set.get(&sweep).and_then(|text| text.parse().ok());
    let parameter = target.parameters.iter().find(|parameter| parameter.name == sweep);
    let lattice = parameter.and_then(|p| i64::try_from(p.divisibility).ok()).unwrap_or(1).max(1);
    Ok(Prepared { sweep, reported, lattice, values, triton: triton_version(&job), job })
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
