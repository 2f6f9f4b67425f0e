//! Backward kernels that belong to the forward one, and whether it can be told how to call them.
//!
//! In: kernels of the cache, the trace and the user's file; the forward kernel's launches. Out: [`Found`]: kernels that run
//! at the same sizes, and a sentence for each that was seen and isn't run.
//!
//! A kernel is a backward one where its name is the forward one's with `bwd` (`backward`, `grad`) in it. Two rules say how
//! it is called. Compiled: it takes the swept argument, its integers carry the forward's names and hold the same in every
//! launch, and its own masks give grid and buffers. In the user's file alone: its parameters are the forward's, one by one,
//! pointers with or without the mark of a gradient; then buffers and grid are taken to be the forward's, which is assumed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::facts::{Facts, UserFile, missing};
use super::super::recipe::{
    Argument, ArgumentValue, Asset, Compiled, Launch, Origin, Replayed, Row, Side, Value,
};
use super::bind::Prepared;
use super::{entry_files, images, launch_of, source, trace};
use crate::case::{EvidenceId, Fact};
use crate::error::{Error, Result};
use crate::kernel::{Answer, FindingKind, ask, names};
use crate::probe::run::{self, Job};
use crate::probe::spec::Spec;
use crate::probe::target::ParameterKind;
use crate::probe::{binding, extent, load};
use crate::source::InputKind;
use crate::text::number::grouped_signed;

/// Backward kernels that are run: dx, dw, db and one more.
const LIMIT: usize = 4;

/// Words of a backward kernel's name.
const BACKWARD: [&str; 3] = ["bwd", "backward", "grad"];

/// Words of a forward kernel's name, which a backward one's may lack.
const FORWARD: [&str; 2] = ["fwd", "forward"];

/// Backward kernels.
#[derive(Default)]
pub(super) struct Found {
    /// Those that are run.
    pub kernels: Vec<Backward>,
    /// A sentence for each that was seen.
    pub notes: Vec<String>,
}

/// A backward kernel that is run.
pub(super) struct Backward {
    name: String,
    entry: String,
    images: Vec<String>,
    constants: BTreeMap<String, i64>,
    warps: u32,
    launches: BTreeMap<String, Launch>,
    rows: Vec<Row>,
    files: Vec<Asset>,
    values: Vec<Value>,
}

/// What every backward kernel is held against.
pub(super) struct Forward<'a> {
    pub prepared: &'a Prepared,
    pub launches: &'a BTreeMap<String, Launch>,
    pub sizes: &'a [i64],
}

/// Looks for them.
pub(super) fn find(facts: &Facts<'_>, forward: &Forward<'_>) -> Found {
    let mut found = Found::default();
    for (name, code) in seen(facts, &forward.prepared.job.target.name) {
        let number = found.kernels.len() + 1;
        if number > LIMIT {
            found
                .notes
                .push(format!("A backward kernel {name} was seen and is not run: {LIMIT} others are."));
            continue;
        }
        let made = match (facts.source, code) {
            (None, Some(code)) => compiled(facts, forward, &name, code, number),
            (Some(user), code) => of_file(facts, user, forward, &name, code, number),
            (None, None) => continue,
        };
        match made {
            Ok(kernel) => {
                found.notes.push(format!(
                    "{name} is the backward kernel by its name; it runs at the same sizes. A wrong gradient is not looked for: \
                     the rows say whether its addresses hold."
                ));
                found.kernels.push(kernel);
            }
            Err(error) => {
                let hint = error.hint_text().map(|hint| format!(" ({hint})")).unwrap_or_default();
                found.notes.push(format!("A backward kernel {name} was seen and is not run: {error}{hint}."));
            }
        }
    }
    found
}

impl Found {
    /// Takes out what the recipe shows: rows and values.
    pub fn shown(&mut self) -> (Vec<Row>, Vec<Value>) {
        let rows = self.kernels.iter_mut().flat_map(|kernel| std::mem::take(&mut kernel.rows)).collect();
        let values = self.kernels.iter_mut().flat_map(|kernel| std::mem::take(&mut kernel.values)).collect();
        (rows, values)
    }

    /// As compiled kernels, with their files.
    pub fn replayed(self) -> (Vec<Replayed>, Vec<Asset>) {
        let mut files = Vec::new();
        let kernels = self.kernels.into_iter().map(|kernel| {
            files.extend(kernel.files);
            Replayed { entry: kernel.entry, images: kernel.images, launches: kernel.launches }
        });
        (kernels.collect(), files)
    }

    /// As kernels of the user's file.
    pub fn compiled(self) -> Vec<Compiled> {
        let kernels = self.kernels.into_iter().map(|kernel| Compiled {
            entry: kernel.name,
            constants: kernel.constants,
            warps: kernel.warps,
            launches: kernel.launches,
        });
        kernels.collect()
    }
}

/// Backward kernels by name, each once, with the compiled code where an input holds it.
fn seen(facts: &Facts<'_>, forward: &str) -> Vec<(String, Option<EvidenceId>)> {
    let mut found: Vec<(String, Option<EvidenceId>)> = Vec::new();
    let compiled = facts.case.kernels().map(|(id, kernel)| (kernel.model.entry.clone(), Some(id)));
    let defined = facts.source.map(|user| source::kernels(&user.text)).unwrap_or_default();
    for (name, code) in compiled.chain(defined.into_iter().map(|name| (name, None))) {
        if is_backward_of(forward, &name) && !found.iter().any(|(known, _)| *known == name) {
            found.push((name, code));
        }
    }
    found
}

/// Whether a name is the forward kernel's with a word for backward in it.
pub(super) fn is_backward_of(forward: &str, candidate: &str) -> bool {
    let own: Vec<&str> = words(forward).filter(|word| !FORWARD.contains(word)).collect();
    if own.iter().any(|word| BACKWARD.contains(word)) {
        return false;
    }
    let mut left = Vec::new();
    let mut is_backward = false;
    for word in words(candidate) {
        // What the gradient is taken of may follow: `bwd_dx`, `bwd_dkv`.
        let of_what = is_backward && word.len() <= 3 && word.starts_with('d');
        match BACKWARD.contains(&word) {
            true if is_backward => return false,
            true => is_backward = true,
            false if of_what => {}
            false => left.push(word),
        }
    }
    is_backward && left == own
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').filter(|word| !word.is_empty())
}

fn key(number: usize, size: i64) -> String {
    format!("backward-{number}-{size}")
}

/// One whose compiled code is at hand.
fn compiled(
    facts: &Facts<'_>,
    forward: &Forward<'_>,
    name: &str,
    code: EvidenceId,
    number: usize,
) -> Result<Backward> {
    let place = folder_of(facts, code)?;
    let job = job(facts, forward, name, &place.path)?;
    let sweep = &forward.prepared.sweep;
    let mut launches = BTreeMap::new();
    let mut rows = Vec::new();
    for &size in forward.sizes {
        let launch = launch_of(&job, size)?;
        let expect = expected(&job, sweep, size, launch.grid);
        launches.insert(key(number, size), launch);
        rows.push(row(forward, name, number, size, expect));
    }
    let folder = format!("backward-{number}");
    let files = entry_files(&job, &folder)?;
    Ok(Backward {
        name: name.to_owned(),
        entry: job.target.entry.clone(),
        images: images(&folder, &files),
        constants: BTreeMap::new(),
        warps: job.target.block.map_or(4, |block| (block[0] / 32).max(1)),
        launches,
        rows,
        files,
        values: vec![Value::new(
            name,
            "at the same sizes",
            Origin::Computed,
            "its integers carry the forward kernel's names; grid and buffers are as its own masks ask for",
        )],
    })
}

/// A folder with an entry; one that was unpacked is kept while it is read.
struct Place {
    path: PathBuf,
    _keep: Option<tempfile::TempDir>,
}

fn folder_of(facts: &Facts<'_>, code: EvidenceId) -> Result<Place> {
    let input = match facts.case.get(code).map(|evidence| &evidence.fact) {
        Some(Fact::Event(event)) => facts.inputs.get(event.span.input.0 as usize),
        _ => None,
    };
    match input {
        Some(input) if input.kind == InputKind::Tritonparse => {
            let folder = trace::unpacked(facts, code)?;
            Ok(Place { path: folder.path().to_owned(), _keep: Some(folder) })
        }
        Some(input) if input.kind == InputKind::TritonCache => match &input.file {
            Some(path) => Ok(Place { path: path.clone(), _keep: None }),
            None => Err(missing("its code is not on disk", "give the cache folder by its path")),
        },
        _ => Err(missing("its code is in no Triton cache", "give the cache folder that holds it")),
    }
}

/// A job whose launches are worked out by the forward's integers and the kernel's own masks.
fn job(facts: &Facts<'_>, forward: &Forward<'_>, name: &str, path: &std::path::Path) -> Result<Job> {
    let sweep = &forward.prepared.sweep;
    let target = load::load(path, Some(name))?;
    if !target.parameters.iter().any(|parameter| parameter.name == *sweep) {
        return Err(missing(format!("it takes no {sweep}"), "warpfault probe runs it by itself"));
    }
    let mut spec = Spec {
        path: path.to_string_lossy().into_owned(),
        entry: Some(name.to_owned()),
        sweep: Some(sweep.clone()),
        ..Spec::default()
    };
    for parameter in &target.parameters {
        let same =
            (parameter.kind == ParameterKind::Integer && !parameter.hidden && parameter.name != *sweep)
                .then(|| steady(forward.launches, &parameter.name))
                .flatten();
        if let Some(value) = same {
            spec.set.insert(parameter.name.clone(), value);
        }
    }
    let size = forward.sizes.first().copied().unwrap_or(1);
    spec.set.insert(sweep.clone(), size.to_string());
    run::prepare(&spec, None, facts.program)
}

/// What every launch of the forward kernel passes under a name, where it is one number.
fn steady(launches: &BTreeMap<String, Launch>, name: &str) -> Option<String> {
    let mut values = launches.values().map(|launch| {
        launch.arguments.iter().find(|argument| argument.name == name).and_then(|argument| {
            match &argument.value {
                ArgumentValue::Number { shown, .. } => Some(shown),
                _ => None,
            }
        })
    });
    let first = values.next()??;
    values.all(|value| value == Some(first)).then(|| first.clone())
}

/// On which side a size lies, as the static check of the compiled kernel says.
fn expected(job: &Job, sweep: &str, size: i64, grid: [u32; 3]) -> Option<Side> {
    let kernel = job.target.kernel.as_deref()?;
    let values = binding::values(&job.target, &job.spec, Some((sweep, size))).ok()?;
    let analysis = ask(kernel, &extent::with_grid(&values.bindings, grid), None);
    let has = |kind: FindingKind| analysis.findings.iter().any(|finding| finding.kind == kind);
    match analysis.answer {
        Answer::Wraps if has(FindingKind::Int32Overflow) => Some(Side::Fail),
        Answer::Fits if !has(FindingKind::UnmaskedAccess) => Some(Side::Pass),
        _ => None,
    }
}

fn row(forward: &Forward<'_>, name: &str, number: usize, size: i64, expect: Option<Side>) -> Row {
    let said = match expect {
        Some(Side::Pass) => ": within int32",
        Some(Side::Fail) => ": past int32",
        None => "",
    };
    Row {
        key: key(number, size),
        label: format!(
            "backward, {name}: {} = {}{}{said}",
            forward.prepared.sweep,
            grouped_signed(i128::from(size)),
            forward.prepared.others(),
        ),
        expect,
    }
}

/// One of the user's file: by its compiled code where that is at hand, else by the forward kernel's parameters.
fn of_file(
    facts: &Facts<'_>,
    user: &UserFile,
    forward: &Forward<'_>,
    name: &str,
    code: Option<EvidenceId>,
    number: usize,
) -> Result<Backward> {
    let own = names::python_parameters(&user.text, name).ok_or_else(|| {
        missing(format!("{} doesn't define it", user.name), "give the file that does, or leave the file out")
    })?;
    let (constants, mut values) = source::constants(facts, user, name, &own)?;
    let mut kernel = match code {
        Some(code) => {
            let mut kernel = compiled(facts, forward, name, code, number)?;
            for launch in kernel.launches.values_mut() {
                launch.arguments.retain(|argument| own.contains(&argument.name));
            }
            kernel
        }
        None => by_parameters(user, forward, name, &own, number)?,
    };
    kernel.constants = constants;
    kernel.values.append(&mut values);
    kernel.files.clear();
    Ok(kernel)
}

fn by_parameters(
    user: &UserFile,
    forward: &Forward<'_>,
    name: &str,
    own: &[String],
    number: usize,
) -> Result<Backward> {
    let target = &forward.prepared.job.target;
    let theirs = names::python_parameters(&user.text, &target.name).unwrap_or_default();
    let pointers: Vec<&str> = target
        .parameters
        .iter()
        .filter(|parameter| matches!(parameter.kind, ParameterKind::Pointer(_)))
        .map(|parameter| parameter.name.as_str())
        .collect();
    let alike = |(own, theirs): (&String, &String)| {
        own == theirs || (pointers.contains(&theirs.as_str()) && is_gradient_of(own, theirs))
    };
    if own.len() != theirs.len() || !own.iter().zip(&theirs).all(alike) {
        return Err(unlike(&target.name));
    }
    let mut launches = BTreeMap::new();
    let mut rows = Vec::new();
    for &size in forward.sizes {
        let Some(launch) = forward.launches.get(&size.to_string()) else { continue };
        let arguments = launch.arguments.iter().filter_map(|argument| {
            let at = theirs.iter().position(|name| *name == argument.name)?;
            Some(Argument { name: own.get(at)?.clone(), value: argument.value.clone() })
        });
        let arguments: Vec<Argument> = arguments.collect();
        launches.insert(key(number, size), Launch { arguments, ..launch.clone() });
        rows.push(row(forward, name, number, size, None));
    }
    Ok(Backward {
        name: name.to_owned(),
        entry: name.to_owned(),
        images: Vec::new(),
        constants: BTreeMap::new(),
        warps: target.block.map_or(4, |block| (block[0] / 32).max(1)),
        launches,
        rows,
        files: Vec::new(),
        values: vec![Value::new(
            name,
            format!("called as {} is", target.name),
            Origin::Assumed,
            "its parameters are the same, one by one; so its buffers and its grid are taken to be the same",
        )],
    })
}

fn unlike(forward: &str) -> Error {
    missing(
        format!(
            "its parameters are not those of {forward}, and no compiled code of it tells grid and buffers"
        ),
        "add the Triton cache of a run that got to the backward pass",
    )
}

/// `dx_ptr`, `d_x_ptr`, `grad_x_ptr`, `x_grad_ptr` of `x_ptr`.
fn is_gradient_of(own: &str, theirs: &str) -> bool {
    let without: Vec<&str> = words(own).filter(|word| !matches!(*word, "grad" | "d")).collect();
    own.strip_prefix('d') == Some(theirs)
        || own.strip_prefix('d') == Some(theirs.trim_start_matches('_'))
        || (without.len() < words(own).count() && without.iter().copied().eq(words(theirs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backward_kernel_is_known_by_its_name() {
        let pairs = [
            ("scatter_rows", "scatter_rows_bwd"),
            ("fused_lora_xw_kernel", "fused_lora_xw_bwd_kernel"),
            ("_attn_fwd", "_attn_bwd"),
            ("_attn_fwd", "_attn_bwd_dkv"),
            ("norm_forward", "norm_backward"),
            ("norm", "norm_grad"),
        ];
        for (forward, backward) in pairs {
            assert!(is_backward_of(forward, backward), "{forward} {backward}");
        }
        let others = [
            ("scatter_rows", "scatter_rows"),
            ("scatter_rows", "gather_rows_bwd"),
            ("scatter_rows", "scatter_bwd"),
            ("scatter_rows_bwd", "scatter_rows_bwd"),
            ("scatter_rows_bwd", "scatter_rows_bwd_bwd"),
            ("_attn_fwd", "_attn_bwd_preprocess"),
            ("norm", ""),
        ];
        for (forward, other) in others {
            assert!(!is_backward_of(forward, other), "{forward} {other}");
        }
    }

    #[test]
    fn a_gradients_pointer_is_known_by_its_name() {
        for own in ["dx_ptr", "d_x_ptr", "grad_x_ptr", "x_grad_ptr"] {
            assert!(is_gradient_of(own, "x_ptr"), "{own}");
        }
        assert!(is_gradient_of("DY".to_lowercase().as_str(), "y"));
        for own in ["x_ptr", "dw_ptr", "x", "data_ptr", ""] {
            assert!(!is_gradient_of(own, "x_ptr"), "{own}");
        }
    }
}
