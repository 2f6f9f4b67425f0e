//! A probe as programs read it: `warpfault probe --format json`. The text for people is `probe_text`'s.
//!
//! In: a [`Job`] and a [`Run`]. Out: serialisable views whose keys the contract fixes. Every string from outside is
//! escaped here, once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::model::FaultAt;
use crate::probe::outcome::Outcome;
use crate::probe::plan::{Boundary, Finding, Predicted, Role};
use crate::probe::protocol::{self, Placement};
use crate::probe::run::{Job, Run, TrialRecord};
use crate::probe::target::{SourceKind, Target};
use crate::text::escape;

/// What `warpfault probe --format json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProbeView {
    /// `warpfault/probe/1`.
    pub schema: &'static str,
    /// The GPU; null in a dry run.
    pub device: Option<DeviceView>,
    /// The kernel.
    pub kernel: KernelView,
    /// The swept argument; null for a kernel without a size.
    pub sweep: Option<String>,
    /// What its values are multiples of.
    pub lattice: i64,
    /// The boundary that the compiled kernel predicts.
    pub predicted: Option<Predicted>,
    /// The trials in order; in a dry run those that are certain, without an outcome.
    pub trials: Vec<TrialView>,
    /// The boundary that they show.
    pub boundary: Boundary,
    /// The fixed kernel's trials.
    pub control: Option<ControlView>,
    /// What they say together; null in a dry run.
    pub conclusion: Option<Finding>,
    /// The reason.
    pub why: String,
    /// The launch at the first size.
    pub launch: LaunchView,
    /// The arguments of that launch, with where each came from.
    pub bindings: Vec<BindingView>,
    /// Where the failing trial went wrong, as a tool saw it.
    pub faults: Vec<FaultView>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// A GPU.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeviceView {
    /// Marketing name.
    pub name: String,
    /// `9.0`.
    pub compute_capability: String,
    /// The driver's release, where NVML tells it.
    pub driver: Option<String>,
    /// The CUDA version that the driver speaks (`13.0`).
    pub cuda: String,
    /// Memory.
    pub memory_bytes: u64,
    /// Whether addresses can be mapped by hand.
    pub guarded_memory: bool,
}

/// A kernel.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KernelView {
    /// Its symbol.
    pub entry: String,
    /// Where it came from.
    pub source: SourceKind,
    /// The file or folder.
    pub path: String,
}

/// A trial.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TrialView {
    /// The swept argument's value.
    pub values: BTreeMap<String, i64>,
    /// How it ended; null in a dry run.
    pub outcome: Option<Outcome>,
    /// The driver's status.
    pub code: Option<i32>,
    /// The kernel's time.
    pub ms: Option<f64>,
    /// Device memory that the process took, its context included.
    pub device_bytes: Option<u64>,
    /// Bytes of the buffers as the kernel sees them.
    pub logical_bytes: Option<u64>,
    /// Physical memory under the buffers.
    pub physical_bytes: Option<u64>,
    /// From the process's start to the launch.
    pub setup_ms: Option<f64>,
    /// The process's time, start to end.
    pub process_ms: Option<f64>,
    /// Why this size.
    pub role: Role,
    /// Which end of the buffers was guarded closely.
    pub placement: PlacementView,
    /// What a person should know.
    pub detail: Option<String>,
    /// What the kernel or its process printed.
    pub printed: Option<String>,
}

/// Which end of buffers touches unmapped addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlacementView {
    /// The end.
    End,
    /// The start.
    Start,
}

/// The control.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ControlView {
    /// The fixed kernel.
    pub kernel: KernelView,
    /// Its trials.
    pub trials: Vec<TrialView>,
}

/// A launch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LaunchView {
    /// Blocks by axis.
    pub grid: [u32; 3],
    /// Where each came from.
    pub grid_from: [String; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory.
    pub shared_bytes: u32,
}

/// An argument.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BindingView {
    /// The parameter's name.
    pub name: String,
    /// Its value, or the size of its buffer.
    pub value: String,
    /// Where it came from.
    pub from: String,
}

/// A fault as a tool saw it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FaultView {
    /// `compute-sanitizer` or `core dump`.
    pub tool: String,
    /// The swept argument's value.
    pub values: BTreeMap<String, i64>,
    /// What it says in a sentence.
    pub summary: String,
    /// Where.
    pub fault_at: Option<FaultAt>,
}

fn text(text: &str) -> String {
    escape(text).to_string()
}

impl ProbeView {
    /// The schema's name and version.
    pub const SCHEMA: &'static str = "warpfault/probe/1";

    /// The JSON Schema of this view.
    #[must_use]
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Self)
    }

    /// The view of a probe; without a run it is a dry one.
    #[must_use]
    pub fn of(job: &Job, run: Option<&Run>, device: Option<&protocol::Device>) -> Self {
        let sweep = job.sweep.as_deref();
        let trials = match run {
            Some(run) => run.trials.iter().map(|record| TrialView::of(record, sweep)).collect(),
            None => job.plan.steps().iter().map(|step| TrialView::planned(*step, sweep)).collect(),
        };
        let control = job.control.as_ref().map(|target| ControlView {
            kernel: KernelView::of(target),
            trials: run.map_or_else(Vec::new, |run| {
                run.control.iter().map(|record| TrialView::of(record, sweep)).collect()
            }),
        });
        let mut notes: Vec<String> =
            job.notes.iter().chain(&job.bound.notes).map(|note| text(note)).collect();
        for note in run.iter().flat_map(|run| &run.trials).flat_map(|record| &record.verdict.notes) {
            let note = text(note);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Self {
            schema: Self::SCHEMA,
            device: device.map(DeviceView::of),
            kernel: KernelView::of(&job.target),
            sweep: sweep.map(text),
            lattice: job.plan.question().lattice,
            predicted: job.plan.question().predicted,
            trials,
            boundary: run.map(|run| run.boundary).unwrap_or_default(),
            control,
            conclusion: run.map(|run| run.conclusion.finding),
            why: run
                .map_or_else(|| "a dry run: nothing was started".to_owned(), |run| text(&run.conclusion.why)),
            launch: LaunchView {
                grid: job.bound.grid,
                grid_from: job.bound.grid_from.clone().map(|from| text(&from)),
                block: job.bound.block,
                shared_bytes: job.bound.shared_bytes,
            },
            bindings: job
                .bound
                .arguments
                .iter()
                .map(|bound| BindingView {
                    name: text(&bound.name),
                    value: text(&bound.shown),
                    from: text(&bound.from),
                })
                .collect(),
            faults: Vec::new(),
            notes,
        }
    }
}

impl DeviceView {
    /// The view of a device.
    #[must_use]
    pub fn of(device: &protocol::Device) -> Self {
        let (major, minor) = (device.compute_capability / 10, device.compute_capability % 10);
        let cuda = device.cuda_version;
        Self {
            name: text(&device.name),
            compute_capability: format!("{major}.{minor}"),
            driver: device.driver.as_deref().map(text),
            cuda: format!("{}.{}", cuda / 1_000, cuda % 1_000 / 10),
            memory_bytes: device.memory_bytes,
            guarded_memory: device.guarded_memory,
        }
    }
}

impl KernelView {
    fn of(target: &Target) -> Self {
        Self { entry: text(&target.name), source: target.source, path: text(&target.path.to_string_lossy()) }
    }
}

impl From<Placement> for PlacementView {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::End => Self::End,
            Placement::Start => Self::Start,
        }
    }
}

/// The swept argument's value, under its name.
#[must_use]
pub fn values(sweep: Option<&str>, value: i64) -> BTreeMap<String, i64> {
    sweep.map(|name| (text(name), value)).into_iter().collect()
}

impl TrialView {
    pub(super) fn planned(step: crate::probe::plan::Step, sweep: Option<&str>) -> Self {
        Self {
            values: values(sweep, step.value),
            outcome: None,
            code: None,
            ms: None,
            device_bytes: None,
            logical_bytes: None,
            physical_bytes: None,
            setup_ms: None,
            process_ms: None,
            role: step.role,
            placement: step.placement.into(),
            detail: None,
            printed: None,
        }
    }

    /// The view of a trial.
    #[must_use]
    pub fn of(record: &TrialRecord, sweep: Option<&str>) -> Self {
        let verdict = &record.verdict;
        Self {
            outcome: Some(verdict.outcome),
            code: verdict.code,
            ms: verdict.ms,
            device_bytes: verdict.device_bytes,
            logical_bytes: verdict.logical_bytes,
            physical_bytes: verdict.physical_bytes,
            setup_ms: verdict.setup_ms,
            process_ms: Some(verdict.process_ms),
            detail: verdict.detail.as_deref().map(text),
            printed: Some(text(verdict.printed.trim())).filter(|printed| !printed.is_empty()),
            ..Self::planned(record.step, sweep)
        }
    }
}
