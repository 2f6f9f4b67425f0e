//! Carries a probe out: target, prediction, trials one after another, the control, the conclusion.
//!
//! In: a [`Spec`], a device, the program that serves as child. Out: a [`Job`], then a [`Run`]; each trial is told as it
//! ends. It prints nothing and asks nobody: whether it may run is the caller's question.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::binding::{self, Bound};
use super::host::{self, Program};
use super::outcome::{Outcome, Verdict, judge};
use super::plan::{Boundary, Conclusion, ControlTrial, Finding, Plan, Predicted, Question, Role, Step};
use super::protocol::{Device, Placement, Reply, Request, Trial};
use super::spec::{Guard, Spec};
use super::target::{SourceKind, Target};
use super::{compile, load, reference};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Answer, FindingKind, ask};

/// How long the driver may take to tell what is there.
const DESCRIBE_DEADLINE: Duration = Duration::from_secs(60);

/// What a source is compiled for where no device says: a dry run.
const DRY_ARCHITECTURE: u32 = 80;

/// What to do without a GPU.
const NO_GPU: &str =
    "run it where the GPU is, or look at the plan with --dry-run; kernel and shapes need no GPU";

/// A probe that is ready to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// The kernel.
    pub target: Target,
    /// The fixed kernel.
    pub control: Option<Target>,
    /// The settings, completed.
    pub spec: Spec,
    /// The swept argument.
    pub sweep: Option<String>,
    /// The search.
    pub plan: Plan,
    /// What the static check says, a sentence each.
    pub notes: Vec<String>,
    /// The launch at the first size, with where each argument came from.
    pub bound: Bound,
    /// Device memory in use before, where the driver told; set it from [`describe`].
    pub used_before_bytes: Option<u64>,
}

/// One trial that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialRecord {
    /// The size and why.
    pub step: Step,
    /// How it ended.
    pub verdict: Verdict,
    /// Whether the control kernel ran.
    pub control: bool,
}

/// A probe that was carried out.
#[derive(Debug, Clone)]
pub struct Run {
    /// The trials of the kernel, in order.
    pub trials: Vec<TrialRecord>,
    /// The trials of the control.
    pub control: Vec<TrialRecord>,
    /// The boundary that they show.
    pub boundary: Boundary,
    /// What they say together.
    pub conclusion: Conclusion,
}

/// Asks the driver what is there, in a child.
///
/// # Errors
/// `Missing`, with a sentence that says what is.
pub fn describe(program: &Program, device: u32) -> Result<Device> {
    let ending =
        host::ask(program, &Request::Describe { device }, DESCRIBE_DEADLINE, &AtomicBool::new(false));
    match ending.reply {
        Some(Reply::Device(device)) => Ok(device),
        Some(Reply::Failed(failure)) => Err(Error::new(ErrorKind::Missing, failure.message).hint(NO_GPU)),
        _ => {
            let detail = judge(&ending).detail.unwrap_or_default();
            Err(Error::new(ErrorKind::Missing, format!("the driver gave no answer: {detail}")))
        }
    }
}

/// Finds the kernel that `spec.path` names; the settings may be completed on the way.
fn find(path: &str, entry: Option<&str>, spec: &Spec, arch: u32, child: &Program) -> Result<(Target, Spec)> {
    let file = Path::new(path);
    if !file.exists() {
        return reference::target(path, spec).map_err(|error| match crate::arith::parse::parse_shape(path) {
            Ok(_) => error,
            Err(_) => Error::new(ErrorKind::Input, format!("{path} is neither a file, a folder nor a shape"))
                .hint("give a Triton cache folder, a .cubin, .ptx or .cu, or a shape such as 234624x9216"),
        });
    }
    if !load::is_source(file) {
        return Ok((load::load(file, entry)?, spec.clone()));
    }
    let compiled = compile::compile(file, arch, spec.nvrtc, child)?;
    let mut target = load::load_compiled(file, &compiled.code, entry, compiled.keep)?;
    target.notes.push(format!("compiled with {} for sm_{arch}", compiled.compiler));
    Ok((target, spec.clone()))
}

/// Makes everything ready. Without a device it can be shown but not run.
///
/// # Errors
/// `Usage` for what has to be set, and for a size off the lattice; those of loading.
pub fn prepare(spec: &Spec, device: Option<&Device>, program: &Program) -> Result<Job> {
    let arch = device.map_or(DRY_ARCHITECTURE, |device| device.compute_capability);
    let (target, spec) = find(&spec.path, spec.entry.as_deref(), spec, arch, program)?;
    let control = match &spec.control {
        Some(path) => {
            let entry = spec.control_entry.as_deref();
            Some(find(path, entry, &spec, arch, program)?.0)
        }
        None => None,
    };
    let mut notes = target.notes.clone();
    let sweep = sweep_of(&target, &spec)?;
    let plan = match &sweep {
        Some(name) => Plan::new(question(&target, &spec, name, &mut notes)?),
        None => Plan::once(),
    };
    let first = plan.steps().first().copied();
    let first = first.ok_or_else(|| Error::new(ErrorKind::Usage, "there is no size to try"))?;
    let bound = bind(&target, &spec, sweep.as_deref(), first)?;
    let used_before_bytes = device.and_then(|device| device.used_bytes);
    Ok(Job { target, control, spec, sweep, plan, notes, bound, used_before_bytes })
}

/// The argument to sweep: the one that is named, else the one that the static check finds unsafe.
fn sweep_of(target: &Target, spec: &Spec) -> Result<Option<String>> {
    let canonical = |name: &str| {
        let index = target.parameter(name);
        index
            .and_then(|index| target.parameters.get(index))
            .map_or_else(|| name.to_owned(), |p| p.name.clone())
    };
    if let Some(name) = &spec.sweep {
        return Ok(Some(canonical(name)));
    }
    let Some(kernel) = target.kernel.as_deref() else { return Ok(None) };
    let values = binding::values(target, spec, None)?;
    let analysis = ask(kernel, &values.bindings, None);
    Ok(analysis.findings.iter().find_map(|finding| finding.sweep.as_ref()).map(|sweep| sweep.name.clone()))
}

fn question(target: &Target, spec: &Spec, name: &str, notes: &mut Vec<String>) -> Result<Question> {
    let parameter = target.parameters.iter().find(|parameter| parameter.name == name);
    let set =
        spec.lattice.iter().find(|(key, _)| target.parameter(key) == target.parameter(name) && *key == name);
    let lattice = set.map_or(1, |(_, multiple)| *multiple).max(parameter.map_or(1, |p| p.divisibility));
    let lattice = i64::try_from(lattice).unwrap_or(1).max(1);
    let most = match parameter.map(|parameter| parameter.size_bytes) {
        Some(1) => i64::from(i8::MAX),
        Some(2) => i64::from(i16::MAX),
        Some(8) => 1 << 40,
        _ => i64::from(i32::MAX),
    };
    let reported = reported(target, spec, name)?;
    let predicted = predict(target, spec, name, lattice, notes)?;
    let question = Question { lattice, predicted, reported, asked: spec.also.clone(), most };
    for value in reported.iter().chain(&spec.also) {
        if let Some(why) = question.objection(*value) {
            return Err(Error::new(ErrorKind::Usage, format!("{name}: {why}")));
        }
    }
    Ok(question)
}

/// The size that was set for the swept argument.
fn reported(target: &Target, spec: &Spec, name: &str) -> Result<Option<i64>> {
    let is =
        |key: &str| key == name || target.parameter(key).is_some_and(|at| target.parameter(name) == Some(at));
    if !spec.set.keys().any(|key| is(key)) {
        return Ok(None);
    }
    let values = binding::values(target, spec, None)?;
    Ok(values.bindings.values.get(name).and_then(|value| i64::try_from(*value).ok()))
}

/// The boundary as the compiled kernel gives it, on the lattice.
fn predict(
    target: &Target,
    spec: &Spec,
    name: &str,
    lattice: i64,
    notes: &mut Vec<String>,
) -> Result<Option<Predicted>> {
    let Some(kernel) = target.kernel.as_deref() else {
        notes.push("without PTX or TTIR nothing predicts a boundary".to_owned());
        return Ok(None);
    };
    // Strides follow from the row's length, whatever the number of rows: a small size finds them soonest.
    let mut values = binding::values(target, spec, Some((name, lattice)))?;
    values.bindings.values.remove(name);
    let analysis = ask(kernel, &values.bindings, Some(name));
    let wraps = analysis.findings.iter().filter(|finding| finding.kind == FindingKind::Int32Overflow);
    let mut found: Option<(Predicted, String)> = None;
    for finding in wraps {
        let Some(sweep) = finding.sweep.as_ref().filter(|sweep| sweep.name == name) else { continue };
        let (Ok(safe), Some(Ok(first))) = (i64::try_from(sweep.safe), sweep.first_unsafe.map(i64::try_from))
        else {
            continue;
        };
        let last_pass = safe - safe.rem_euclid(lattice);
        let first_fail = first + (lattice - first.rem_euclid(lattice)) % lattice;
        if last_pass > 0 && found.as_ref().is_none_or(|(known, _)| last_pass < known.last_pass) {
            let place = finding.location.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
            let text = format!("`{}`{place}, which reaches the {}", finding.expression, finding.reaches);
            found = Some((Predicted { last_pass, first_fail }, text));
        }
    }
    notes.push(match (&found, analysis.answer) {
        (Some((predicted, text)), _) => {
            format!(
                "static check: {text}, wraps from {name} = {} on (a multiple of {lattice})",
                predicted.first_fail
            )
        }
        (None, Answer::Fits) => {
            format!("static check: no 32-bit index wraps at any {name} that fits the machine")
        }
        (None, _) => format!("static check: no boundary in {name} can be told"),
    });
    Ok(found.map(|(predicted, _)| predicted))
}

fn bind(target: &Target, spec: &Spec, sweep: Option<&str>, step: Step) -> Result<Bound> {
    let placement = match (spec.guard, step.placement) {
        (Guard::Start, _) => Placement::Start,
        (Guard::End, placement) => placement,
    };
    binding::bind(target, spec, sweep.map(|name| (name, step.value)), placement)?.ready()
}

impl Job {
    /// The request of a step, for the kernel or its control.
    ///
    /// # Errors
    /// Those of binding.
    pub fn request(&self, step: Step, control: bool) -> Result<Request> {
        let target = match (&self.control, control) {
            (Some(target), true) => target,
            _ => &self.target,
        };
        let bound = bind(target, &self.spec, self.sweep.as_deref(), step)?;
        Ok(Request::Trial(Box::new(Trial {
            device: self.spec.device,
            images: target.images.clone(),
            entry: target.entry.clone(),
            grid: bound.grid,
            block: bound.block,
            shared_bytes: bound.shared_bytes,
            arguments: bound.arguments.into_iter().map(|argument| argument.argument).collect(),
            memory_limit_bytes: self.spec.memory_limit_mib.saturating_mul(1 << 20),
            used_before_bytes: self.used_before_bytes,
        })))
    }

    /// The deadline of one run.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_secs(self.spec.timeout_s.clamp(1, 86_400))
    }

    /// Runs one step in a process of its own.
    ///
    /// # Errors
    /// Those of binding; what the process does is a verdict.
    pub fn trial(
        &self,
        step: Step,
        control: bool,
        program: &Program,
        cancel: &AtomicBool,
    ) -> Result<TrialRecord> {
        let request = self.request(step, control)?;
        let ending = host::ask(program, &request, self.deadline(), cancel);
        Ok(TrialRecord { step, verdict: judge(&ending), control })
    }

    /// Carries the plan out. `tell` hears of each trial as it ends.
    ///
    /// # Errors
    /// Those of binding a size that the plan chose.
    pub fn run(
        &self,
        program: &Program,
        cancel: &AtomicBool,
        tell: &mut dyn FnMut(&TrialRecord),
    ) -> Result<Run> {
        let mut plan = self.plan.clone();
        let mut trials = Vec::new();
        while let Some(step) = plan.next_step() {
            let record = self.trial(step, false, program, cancel)?;
            plan.record(step, record.verdict.outcome);
            tell(&record);
            trials.push(record);
        }
        let mut control = Vec::new();
        for step in self.control_steps(&trials) {
            let record = self.trial(step, true, program, cancel)?;
            let stop = record.verdict.outcome.is_void();
            tell(&record);
            control.push(record);
            if stop {
                break;
            }
        }
        let said: Vec<ControlTrial> =
            control.iter().map(|record| (record.step.value, record.verdict.outcome)).collect();
        let name = self.sweep.as_deref().unwrap_or("the size");
        let mut conclusion = plan.conclude(name, self.control.is_some().then_some(said.as_slice()));
        if self.target.source == SourceKind::Reference && conclusion.finding == Finding::Confirmed {
            conclusion.why.push_str(
                "; this was the built-in reference kernel: it proves the arithmetic, not your kernel",
            );
        }
        Ok(Run { trials, control, boundary: plan.boundary(), conclusion })
    }

    /// The sizes at which the kernel failed, smallest first: there the control has to pass.
    fn control_steps(&self, trials: &[TrialRecord]) -> Vec<Step> {
        if self.control.is_none() {
            return Vec::new();
        }
        let mut steps: Vec<Step> = trials
            .iter()
            .filter(|record| record.verdict.outcome.is_fault() && record.step.placement == Placement::End)
            .filter(|record| record.step.role != Role::Halving)
            .map(|record| record.step)
            .collect();
        steps.sort_by_key(|step| step.value);
        steps
    }
}

impl Run {
    /// The trial to look into: the failing one nearest to the boundary.
    #[must_use]
    pub fn failing(&self) -> Option<Step> {
        let failed = self.trials.iter().filter(|record| record.verdict.outcome.is_fault());
        failed.min_by_key(|record| record.step.value).map(|record| record.step)
    }

    /// The exit status that the contract gives the conclusion.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self.conclusion.finding {
            Finding::Confirmed => 0,
            Finding::Refuted => 1,
            Finding::Inconclusive => 3,
        }
    }

    /// Whether some trial was stopped by somebody.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.trials.iter().chain(&self.control).any(|record| record.verdict.outcome == Outcome::Cancelled)
    }
}
