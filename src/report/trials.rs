//! The trials of probes among the evidence, as every format and the terminal UI show them.
//!
//! In: a report (already escaped), whose evidence of kind `probe` has the keys of `warpfault/probe/1`. Out: [`Trials`]:
//! headings, rows of words, and what the probe concluded. It leaves alone what that proves: the check `probe` says so.

use serde_json::Value;

use super::Report;
use super::model::EvidenceKind;
use crate::read::event::{ProbeFinding, ProbeReport, ProbeTrial};
use crate::text::number::{binary_size, grouped, grouped_signed};

/// Trials of one kernel that are listed.
const ROW_LIMIT: usize = 64;

/// One probe.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    /// The evidence that stands for it (`e16`).
    pub evidence: String,
    /// `fused_lora_xw_kernel (Triton cache entry) on NVIDIA H200, driver 580.159.04`
    pub heading: String,
    /// Name of the swept argument; empty for a kernel without a size.
    pub sweep: String,
    /// `M = 233,008 passes, 233,024 fails`, where something predicted a boundary.
    pub predicted: Option<String>,
    /// The kernel's trials, in the order in which they were made.
    pub rows: Vec<TrialRow>,
    /// Name of the fixed kernel.
    pub control: Option<String>,
    /// Its trials.
    pub control_rows: Vec<TrialRow>,
    /// What a tool saw at the failing size, a sentence each.
    pub faults: Vec<String>,
    /// What was concluded; none in a dry run.
    pub conclusion: Option<ProbeFinding>,
    /// The reason.
    pub why: String,
    /// The report itself, for those who draw it.
    pub report: ProbeReport,
}

/// One trial in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialRow {
    /// The size, grouped.
    pub value: String,
    /// How it ended.
    pub outcome: String,
    /// The driver's status.
    pub code: String,
    /// The kernel's milliseconds.
    pub ms: String,
    /// Bytes of the buffers as the kernel sees them.
    pub logical: String,
    /// Why this size.
    pub role: &'static str,
    /// Whether it passed; none where it was not run.
    pub passed: Option<bool>,
}

/// The probes of a report.
#[must_use]
pub fn of(report: &Report) -> Vec<Trials> {
    report
        .evidence
        .iter()
        .filter(|evidence| evidence.kind == EvidenceKind::Probe)
        .filter_map(|evidence| {
            let probe: ProbeReport = serde_json::from_value(Value::Object(evidence.fields.clone())).ok()?;
            Some(trials(&evidence.id, probe))
        })
        .collect()
}

fn trials(evidence: &str, report: ProbeReport) -> Trials {
    let sweep = report.sweep.clone().unwrap_or_default();
    let predicted = report.predicted.and_then(|predicted| {
        let (last, first) =
            (grouped_signed(predicted.last_pass?.into()), grouped_signed(predicted.first_fail?.into()));
        Some(format!("{sweep} = {last} passes, {first} fails"))
    });
    let rows = |trials: &[ProbeTrial]| trials.iter().take(ROW_LIMIT).map(row).collect();
    Trials {
        evidence: evidence.to_owned(),
        heading: heading(&report),
        predicted,
        rows: rows(&report.trials),
        control: report.control.as_ref().map(|control| control.kernel.entry.clone()),
        control_rows: report
            .control
            .as_ref()
            .map(|control| control_rows(&control.trials))
            .unwrap_or_default(),
        faults: report.faults.iter().map(|fault| format!("{}: {}", fault.tool, fault.summary)).collect(),
        conclusion: report.conclusion,
        why: report.why.clone(),
        sweep,
        report,
    }
}

fn heading(report: &ProbeReport) -> String {
    let source = match report.kernel.source.as_str() {
        "triton_cache" => " (Triton cache entry)",
        "cubin" => " (cubin)",
        "ptx" => " (PTX)",
        "cuda" => " (CUDA C++ source)",
        "reference" => " (built-in reference kernel: it shows the arithmetic, not your kernel)",
        _ => "",
    };
    let device = report.device.as_ref().map_or_else(
        || ", not run".to_owned(),
        |device| {
            let driver =
                device.driver.as_ref().map(|driver| format!(", driver {driver}")).unwrap_or_default();
            format!(" on {}{driver}", device.name)
        },
    );
    format!("{}{source}{device}", report.kernel.entry)
}

fn row(trial: &ProbeTrial) -> TrialRow {
    let none = || "-".to_owned();
    TrialRow {
        value: trial.value().map_or_else(String::new, |value| grouped(u128::from(value.unsigned_abs()))),
        outcome: trial.outcome.clone().unwrap_or_else(|| "not run".to_owned()),
        code: trial.code.map_or_else(none, |code| code.to_string()),
        ms: trial.ms.map_or_else(none, |ms| format!("{ms:.1}")),
        logical: trial.logical_bytes.map_or_else(none, |bytes| binary_size(u128::from(bytes))),
        role: role(trial),
        passed: trial.outcome.as_ref().map(|_| trial.ended("pass")),
    }
}

fn control_rows(trials: &[ProbeTrial]) -> Vec<TrialRow> {
    trials
        .iter()
        .take(ROW_LIMIT)
        .map(|trial| TrialRow { role: "fixed, where the other fails", ..row(trial) })
        .collect()
}

fn role(trial: &ProbeTrial) -> &'static str {
    match trial.role.as_deref().unwrap_or("") {
        "last_pass" => "predicted to pass, the last one",
        "first_fail" => "predicted to fail, the first one",
        "reported" => "the size that was reported",
        "well_past" => "well past it",
        "asked" => "asked for",
        "under_run" => "small, starts guarded",
        "small" => "small",
        "halving" => "halving",
        "only" => "the only run",
        _ => "",
    }
}

impl Trials {
    /// `confirmed: M = 233,008 passes, …`
    #[must_use]
    pub fn said(&self) -> String {
        self.conclusion.map_or_else(|| self.why.clone(), |found| format!("{}: {}", found.name(), self.why))
    }

    /// Names of the columns, as the rows have them.
    #[must_use]
    pub fn columns(&self) -> [&str; 6] {
        [&self.sweep, "outcome", "code", "kernel ms", "buffers", "why"]
    }
}

impl TrialRow {
    /// Its cells.
    #[must_use]
    pub fn cells(&self) -> [&str; 6] {
        [&self.value, &self.outcome, &self.code, &self.ms, &self.logical, self.role]
    }
}

/// A table in columns of one width, for text.
#[must_use]
pub fn line(cells: [&str; 6]) -> String {
    let [value, outcome, code, ms, logical, why] = cells;
    format!("{value:>13}  {outcome:<18} {code:>4} {ms:>9} {logical:>10}  {why}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_words() {
        let trial = ProbeTrial {
            values: [("M".to_owned(), 233_024)].into(),
            outcome: Some("illegal_address".to_owned()),
            code: Some(700),
            ms: Some(167.54),
            logical_bytes: Some(4_310_000_000),
            role: Some("first_fail".to_owned()),
            ..ProbeTrial::default()
        };
        let row = row(&trial);
        assert_eq!(
            row.cells(),
            ["233,024", "illegal_address", "700", "167.5", "4.01 GiB", "predicted to fail, the first one"]
        );
        assert_eq!(row.passed, Some(false));
        assert_eq!(
            line(row.cells()),
            "      233,024  illegal_address     700     167.5   4.01 GiB  predicted to fail, the first one"
        );
        assert_eq!(super::row(&ProbeTrial::default()).passed, None);
    }
}
