//! The command of a probe step: this program's own `probe`, with the kernel that the evidence names, its file among the
//! inputs, and the arguments that the incident's numbers give.
//!
//! In: the case, its verdict, the inputs. Out: a [`Plan`]: the command's words, where each argument is from, and what is
//! still wanted. It reads no file and starts nothing; paths come from the engineer's own inputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::case::{Case, EvidenceId};
use crate::kernel::{Answer, FindingKind, Kernel, ask};
use crate::playbook::walk::{Fill, Need, Prepared, command_text, need};
use crate::probe::binding::{self, Binding};
use crate::probe::protocol::Placement;
use crate::probe::spec::Spec;
use crate::probe::target::{self, Slot, SourceKind, Target};
use crate::read::event::{CompiledKernel, Dim3};
use crate::source::{Input, InputKind};
use crate::verdict::Verdict;
use crate::verdict::cause::{View, compiled};
use crate::verdict::launches::{compilation_of, traced as traced_launches};
use crate::verdict::told::told;

mod arguments;

use arguments::Arguments;

/// What this program is called in a command; `effect` starts this very program for it.
pub const PROGRAM: &str = "warpfault";

/// Most seconds for all trials and their tools.
const DEADLINE_S: u64 = 900;

/// Kernels of a cache that are asked whether they are the fixed one.
const CONTROL_LIMIT: usize = 32;

/// The command of a probe step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The command.
    pub prepared: Prepared,
    /// The kernel, its arguments with where each is from, what is wanted; in one sentence.
    pub words: String,
}

/// A kernel among the inputs that can be named to the probe.
struct Found<'a> {
    evidence: EvidenceId,
    kernel: Arc<Kernel>,
    entry: &'a CompiledKernel,
    path: String,
}

/// Works the command out.
pub(super) fn plan(case: &Case, verdict: &Verdict, inputs: &[Input]) -> Plan {
    let Some(view) = verdict.view(case) else { return nothing(inputs) };
    let suspects = compiled::suspects(&view);
    let of = |evidence| find(&view, inputs, evidence);
    if let Some((suspect, found)) = suspects.iter().find_map(|suspect| Some((suspect, of(suspect.evidence)?)))
    {
        let arguments = arguments::choose(&view, suspect);
        return bound(&view, inputs, &found, arguments);
    }
    let named = verdict.places.fault.as_ref().and_then(|fault| fault.kernel.as_deref());
    let led_to = case
        .kernels()
        .filter(|(_, kernel)| named.is_some() && compiled::leads_to(&view, kernel))
        .find_map(|(evidence, _)| of(evidence));
    match led_to.or_else(|| traced(&view, inputs)) {
        Some(found) => {
            let arguments = arguments::of_launch(&view, &found.kernel);
            bound(&view, inputs, &found, arguments)
        }
        None => nothing(inputs),
    }
}

/// The kernel of a traced launch that wraps, where nothing else names a kernel: the cache entry of the same compilation.
fn traced<'a>(view: &View<'a>, inputs: &[Input]) -> Option<Found<'a>> {
    let launches = traced_launches(view.case, view.root);
    let wraps = launches.iter().filter(|launch| launch.launch.last_of_trace && launch.wraps());
    let hashes: Vec<&str> = wraps.filter_map(|launch| launch.launch.compilation.as_deref()).collect();
    let same = |evidence| compilation_of(view.case, evidence).is_some_and(|hash| hashes.contains(&hash));
    let named = view.places.fault.as_ref().is_some_and(|fault| fault.kernel.is_some());
    let mut kernels = view.case.kernels().filter(|(evidence, _)| !named && same(*evidence));
    kernels.find_map(|(evidence, _)| find(view, inputs, evidence))
}

/// The kernel's place on disk: its entry's folder in the cache, or its file.
fn find<'a>(view: &View<'a>, inputs: &[Input], evidence: EvidenceId) -> Option<Found<'a>> {
    let entry = compiled::entry_of(view, evidence)?;
    let input = view.case.get(evidence).and_then(|evidence| match &evidence.fact {
        crate::case::Fact::Event(event) => inputs.get(event.span.input.0 as usize),
        crate::case::Fact::Derived(_) => None,
    })?;
    if input.kind == InputKind::Tritonparse {
        // A trace carries the compiler's texts and no file that a driver loads.
        return None;
    }
    let root = input.file.as_ref()?;
    let path = match input.kind {
        InputKind::TritonCache if !entry.folder.is_empty() => root.join(&entry.folder),
        _ => root.clone(),
    };
    let kernel = view.case.kernel(evidence)?;
    Some(Found { evidence, kernel, entry, path: path.to_str()?.to_owned() })
}

/// No kernel is named: the command as far as it can be told.
fn nothing(inputs: &[Input]) -> Plan {
    let cache = inputs.iter().find(|input| {
        matches!(input.kind, InputKind::TritonCache | InputKind::Ttir | InputKind::Ptx)
            && input.file.is_some()
    });
    let path = cache.and_then(|input| input.file.as_ref()?.to_str()).map(str::to_owned);
    let mut wanted = vec![
        Need::option("--entry KERNEL", "the kernel's name or cache key"),
        Need::option("--set NAME=VALUE", "one of its arguments"),
    ];
    if path.is_none() {
        wanted.insert(0, Need::new("a Triton cache or a PTX file on disk", "", Fill::Word(2)));
    }
    let spec = Spec { path: path.unwrap_or_else(|| "CACHE".to_owned()), ..Spec::default() };
    let words =
        format!("Nothing in the inputs names the kernel and its sizes. Wanted: {}.", need::list(&wanted));
    Plan { prepared: prepared(&spec, wanted), words }
}

fn bound(view: &View<'_>, inputs: &[Input], found: &Found<'_>, arguments: Arguments) -> Plan {
    let mut spec = Spec {
        path: found.path.clone(),
        entry: Some(found.kernel.model.entry.clone()),
        sweep: arguments.sweep.clone(),
        set: arguments.set.iter().map(|(name, (value, _))| (name.clone(), value.to_string())).collect(),
        ..Spec::default()
    };
    let mut wanted = wanted(found, &spec, &arguments);
    // Masks say more than the launch: a grid that they give grows with the size that is tried.
    if let Some(launch) = told(view.case, view.root, &found.kernel)
        && wanted.iter().any(|want| want.name.starts_with("--grid") || want.name.starts_with("--block"))
    {
        let axes = |flag: &str, dims: Option<Dim3>| {
            let asked = wanted.iter().any(|want| want.name.starts_with(flag));
            dims.filter(|_| asked).map(|dims| dims.map(|size| size.to_string()).join(","))
        };
        let told = Spec {
            grid: axes("--grid", launch.grid()),
            block: axes("--block", launch.block_dim()),
            ..spec.clone()
        };
        wanted = self::wanted(found, &told, &arguments);
        spec = told;
    }
    if let Some(control) = control(view, inputs, found, &arguments) {
        spec.control = Some(control.path);
        spec.control_entry = Some(control.kernel.model.entry.clone());
    }
    let words = words(found, &spec, &arguments, &wanted);
    Plan { prepared: prepared(&spec, wanted), words }
}

/// What a probe of it would ask for, as `warpfault probe` itself tells it.
fn wanted(found: &Found<'_>, spec: &Spec, arguments: &Arguments) -> Vec<Need> {
    let target = target(found);
    let swept = arguments.sweep.as_deref().and_then(|name| {
        let (value, _) = arguments.set.get(name)?;
        Some((name, i64::try_from(*value).ok()?))
    });
    let mut wanted = Vec::new();
    if swept.is_none() {
        wanted.push(Need::option("--sweep NAME", "the argument whose size crossed the boundary"));
    }
    match binding::bind(&target, spec, swept, Placement::End) {
        Ok(Binding::Ready(_)) => {}
        Ok(Binding::Wanted(list)) => {
            wanted.extend(list.into_iter().map(|want| Need::option(&want.option, &want.why)));
        }
        Err(error) => wanted.push(Need::new(error.to_string(), "", Fill::Line)),
    }
    wanted
}

/// The kernel as the probe will find it, without its code.
fn target(found: &Found<'_>) -> Target {
    let model = &found.kernel.model;
    let slots: Vec<Slot> = model
        .params
        .iter()
        .map(|param| Slot {
            size_bytes: param.int_width.map_or(8, |bits| u32::from(bits).div_ceil(8)),
            float: param.int_width.is_none() && param.pointee_bytes.is_none(),
        })
        .collect();
    let fixed = !model.block_is_maximum && model.block.first().is_some_and(|threads| *threads > 0);
    let of_entry = found.entry.threads.map(|threads| [threads, 1, 1]);
    Target {
        entry: model.entry.clone(),
        name: model.entry.clone(),
        source: if found.entry.form == "ptx" { SourceKind::Ptx } else { SourceKind::TritonCache },
        path: found.path.clone().into(),
        images: Vec::new(),
        parameters: target::parameters(&slots, &model.entry, &[], Some(&found.kernel)),
        kernel: Some(Arc::clone(&found.kernel)),
        vector: 1,
        block: of_entry.or_else(|| fixed.then(|| model.block.map(|threads| threads.max(1)))),
        shared_bytes: 0,
        scratch_bytes: 0,
        architecture: None,
        notes: Vec::new(),
        keep: None,
    }
}

/// The fixed kernel: one of the same parameters in the same sources whose every index fits at the same sizes.
fn control<'a>(
    view: &View<'a>,
    inputs: &[Input],
    found: &Found<'_>,
    arguments: &Arguments,
) -> Option<Found<'a>> {
    let shape = |kernel: &Kernel| -> Vec<(String, Option<u8>)> {
        kernel.model.params.iter().map(|param| (param.name.clone(), param.int_width)).collect()
    };
    let wanted = shape(&found.kernel);
    view.case
        .kernels()
        .filter(|(_, kernel)| kernel.model.entry != found.kernel.model.entry && shape(kernel) == wanted)
        .take(CONTROL_LIMIT)
        .filter_map(|(evidence, _)| find(view, inputs, evidence))
        .filter(|other| {
            other.evidence != found.evidence && other.entry.files == found.entry.files && !other.entry.debug
        })
        .find(|other| {
            let analysis = ask(&other.kernel, &arguments.bindings, None);
            let wraps = analysis.findings.iter().any(|finding| finding.kind == FindingKind::Int32Overflow);
            analysis.answer == Answer::Fits && !wraps
        })
}

fn words(found: &Found<'_>, spec: &Spec, arguments: &Arguments, wanted: &[Need]) -> String {
    let mut text = format!("Reruns {}", found.kernel.model.entry);
    let set: Vec<String> =
        arguments.set.iter().map(|(name, (value, from))| format!("{name} = {value} ({from})")).collect();
    if !set.is_empty() {
        text.push_str(&format!(" with {}", set.join(", ")));
    }
    if let Some(control) = &spec.control_entry {
        text.push_str(&format!(", and {control} beside it, which takes the same arguments and fits"));
    }
    text.push('.');
    if arguments.ways > 1 {
        text.push_str(&format!(
            " The numbers fit its arguments in {} ways under which it wraps; this is the likeliest, edit it for another.",
            arguments.ways
        ));
    }
    if !wanted.is_empty() {
        let wanted: Vec<String> = wanted.iter().map(Need::to_string).collect();
        text.push_str(&format!(" Wanted: {}.", wanted.join("; ")));
    }
    text
}

fn prepared(spec: &Spec, needs: Vec<Need>) -> Prepared {
    let command = command(spec);
    Prepared {
        text: command_text(&[], &command),
        command,
        environment: Vec::new(),
        deadline_s: DEADLINE_S,
        from_input: true,
        needs,
    }
}

/// The words. A name from a cache or a log is a word of its own and can't become an option.
fn command(spec: &Spec) -> Vec<String> {
    let mut words = vec![PROGRAM.to_owned(), "probe".to_owned()];
    words.push(if spec.path.starts_with('-') { format!("./{}", spec.path) } else { spec.path.clone() });
    let mut option = |flag: &str, value: &str| {
        if value.starts_with('-') {
            words.push(format!("{flag}={value}"));
        } else {
            words.extend([flag.to_owned(), value.to_owned()]);
        }
    };
    if let Some(entry) = &spec.entry {
        option("--entry", entry);
    }
    for (name, value) in &spec.set {
        option("--set", &format!("{name}={value}"));
    }
    if let Some(sweep) = &spec.sweep {
        option("--sweep", sweep);
    }
    if let Some(grid) = &spec.grid {
        option("--grid", grid);
    }
    if let Some(block) = &spec.block {
        option("--block", block);
    }
    if let (Some(control), Some(entry)) = (&spec.control, &spec.control_entry) {
        option("--control", control);
        option("--control-entry", entry);
    }
    words.extend(["--format".to_owned(), "json".to_owned()]);
    words
}

/// Why a probe could not run: what this program said last on its standard error, with its advice.
pub(super) fn said(output: &[u8]) -> Option<String> {
    const TAIL_BYTES: usize = 8 << 10;
    let tail = output.get(output.len().saturating_sub(TAIL_BYTES)..).unwrap_or(output);
    let text = String::from_utf8_lossy(tail);
    let start = format!("{PROGRAM}: ");
    let mut lines = text.lines().map(|line| line.trim_end_matches('\r'));
    let mut said = None;
    while let Some(line) = lines.next() {
        if let Some(message) = line.strip_prefix(&start) {
            let advice = lines.clone().next().and_then(|next| next.strip_prefix("  ")).map(str::trim);
            said = Some(advice.map_or_else(|| message.to_owned(), |advice| format!("{message} ({advice})")));
        }
    }
    said
}

/// By name: value, where it is from.
type Set = BTreeMap<String, (i128, String)>;

#[cfg(test)]
mod tests;
