//! What a rerun at the boundary showed: the report of `warpfault probe`.
//!
//! In: nothing; plain types with the keys of `warpfault/probe/1`, so that they can be read from a report and written into
//! one. Out: the types that the reader fills. Each says what was tried and how it ended; what that means for an incident is
//! the verdict's question. Keys that are missing have no value; keys that are not known are passed over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A report of the probe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeReport {
    /// The GPU; none in a dry run.
    pub device: Option<ProbeDevice>,
    /// The kernel that was rerun.
    pub kernel: ProbeKernel,
    /// The argument whose size was varied.
    pub sweep: Option<String>,
    /// What its values are multiples of.
    pub lattice: i64,
    /// The boundary that the compiled kernel predicts.
    pub predicted: Option<ProbeBoundary>,
    /// The trials, in the order in which they were made.
    pub trials: Vec<ProbeTrial>,
    /// The boundary that they show.
    pub boundary: ProbeBoundary,
    /// The fixed kernel at the sizes where this one failed.
    pub control: Option<ProbeControl>,
    /// What the probe concluded; none in a dry run.
    pub conclusion: Option<ProbeFinding>,
    /// Its reason.
    pub why: String,
    /// The launch at the first size.
    pub launch: ProbeLaunch,
    /// The arguments of the launch, in the kernel's order.
    pub bindings: Vec<ProbeBinding>,
    /// Where the failing trial went wrong, as a tool saw it.
    pub faults: Vec<ProbeFault>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// The GPU of a probe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeDevice {
    /// Marketing name.
    pub name: String,
    /// `9.0`.
    pub compute_capability: String,
    /// The driver's release.
    pub driver: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// The kernel of a probe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeKernel {
    /// Its name.
    pub entry: String,
    /// `triton_cache`, `cubin`, `ptx`, `cuda`, or `reference` for the built-in kernel.
    pub source: String,
    /// The file or folder.
    pub path: String,
}

/// Both sides of a boundary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeBoundary {
    /// The largest size that passes.
    pub last_pass: Option<i64>,
    /// The smallest size that fails.
    pub first_fail: Option<i64>,
}

/// A launch in a process of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeTrial {
    /// The swept argument's value, under its name.
    pub values: BTreeMap<String, i64>,
    /// `pass`, the failure class that it ended with, or what kept it from running; none in a dry run.
    pub outcome: Option<String>,
    /// The driver's status.
    pub code: Option<i64>,
    /// The kernel's time in milliseconds.
    pub ms: Option<f64>,
    /// The process's time in milliseconds.
    pub process_ms: Option<f64>,
    /// Device memory in use, the context included.
    pub device_bytes: Option<u64>,
    /// Bytes of the buffers as the kernel sees them.
    pub logical_bytes: Option<u64>,
    /// Why this size: `last_pass`, `first_fail`, `reported`, `well_past`, `asked`, `small`, `under_run`, `halving`, `only`.
    pub role: Option<String>,
    /// Which end of the buffers was guarded closely: `end` or `start`.
    pub placement: Option<String>,
    /// What a person should know.
    pub detail: Option<String>,
}

/// The fixed kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeControl {
    /// Which.
    pub kernel: ProbeKernel,
    /// Its trials.
    pub trials: Vec<ProbeTrial>,
}

/// What a probe concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeFinding {
    /// The predicted boundary is there.
    Confirmed,
    /// It is not.
    Refuted,
    /// The trials don't settle it.
    Inconclusive,
}

/// An argument of the launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeBinding {
    /// The parameter's name.
    pub name: String,
    /// Its value, or the size of its buffer.
    pub value: String,
    /// Where it came from.
    pub from: String,
}

/// A launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeLaunch {
    /// Blocks by axis.
    pub grid: [u32; 3],
    /// Where each came from; `--grid` where it was given.
    pub grid_from: [String; 3],
}

/// A fault as a tool saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeFault {
    /// `compute-sanitizer` or `core dump`.
    pub tool: String,
    /// The swept argument's value.
    pub values: BTreeMap<String, i64>,
    /// What it says in a sentence.
    pub summary: String,
    /// Where.
    pub fault_at: Option<ProbePlace>,
}

/// Where a rerun failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbePlace {
    /// Kernel.
    pub kernel: Option<String>,
    /// File.
    pub file: Option<String>,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Block.
    pub block: Option<[u64; 3]>,
    /// Thread.
    pub thread: Option<[u64; 3]>,
    /// Address, hex.
    pub address: Option<String>,
    /// Access and its size in bytes (`write 16`).
    pub access: Option<String>,
}

impl ProbeFinding {
    /// The spelling in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl ProbeTrial {
    /// The swept argument's value.
    #[must_use]
    pub fn value(&self) -> Option<i64> {
        self.values.values().next().copied()
    }

    /// Whether it ended so.
    #[must_use]
    pub fn ended(&self, outcome: &str) -> bool {
        self.outcome.as_deref() == Some(outcome)
    }

    /// Whether the start of the buffers was guarded closely: such a trial says nothing about the boundary.
    #[must_use]
    pub fn guards_start(&self) -> bool {
        self.placement.as_deref() == Some("start")
    }
}

impl ProbeReport {
    /// Whether the built-in kernel was run in place of the user's: it proves the arithmetic and no more.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        self.kernel.source == "reference"
    }

    /// Integer arguments other than the swept one, by name, with where each came from.
    pub fn integers(&self) -> impl Iterator<Item = (&str, i64, &str)> {
        self.bindings
            .iter()
            .filter(|bound| self.sweep.as_deref() != Some(bound.name.as_str()))
            .filter_map(|bound| Some((bound.name.as_str(), bound.value.parse().ok()?, bound.from.as_str())))
    }

    /// The texts that may hold something from outside, to be cut or escaped in place.
    pub fn texts(&mut self) -> Vec<&mut String> {
        let Self {
            device,
            kernel,
            sweep,
            lattice: _,
            predicted: _,
            trials,
            boundary: _,
            control,
            conclusion: _,
            why,
            launch,
            bindings,
            faults,
            notes,
        } = self;
        let mut all = vec![why];
        if let Some(ProbeDevice { name, compute_capability, driver, memory_bytes: _ }) = device {
            all.extend([name, compute_capability]);
            all.extend(driver);
        }
        all.extend(kernel.texts());
        all.extend(&mut launch.grid_from);
        all.extend(sweep);
        trials.iter_mut().for_each(|trial| all.extend(trial.texts()));
        if let Some(ProbeControl { kernel, trials }) = control {
            all.extend(kernel.texts());
            trials.iter_mut().for_each(|trial| all.extend(trial.texts()));
        }
        for ProbeBinding { name, value, from } in bindings {
            all.extend([name, value, from]);
        }
        for ProbeFault { tool, values: _, summary, fault_at } in faults {
            all.extend([tool, summary]);
            if let Some(ProbePlace { kernel, file, line: _, block: _, thread: _, address, access }) = fault_at
            {
                all.extend([kernel, file, address, access].into_iter().flatten());
            }
        }
        all.extend(notes);
        all
    }
}

impl ProbeKernel {
    fn texts(&mut self) -> [&mut String; 3] {
        [&mut self.entry, &mut self.source, &mut self.path]
    }
}

impl ProbeTrial {
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        [&mut self.outcome, &mut self.role, &mut self.placement, &mut self.detail].into_iter().flatten()
    }
}
