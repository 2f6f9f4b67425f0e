//! The on-call question: is a restart worth trying, and without which node?
//!
//! In: the verdict so far. Out: advice with its reason. Drain and reset are advice for people with that right; nothing is
//! run.

use schemars::JsonSchema;
use serde::Serialize;

use crate::read::event::Stop;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::tables::xid::by_number;

use super::Verdict;
use super::failure::{Certainty, Failure, Weight};

/// Advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RestartAdvice {
    /// A deterministic program fault.
    Pointless,
    /// A transient or outside cause.
    WorthTrying,
    /// Hardware: drain first.
    AfterDrain,
    /// The evidence doesn't tell.
    #[default]
    Unknown,
}

/// Advice with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restart {
    /// The advice.
    pub advice: RestartAdvice,
    /// Why.
    pub summary: String,
}

/// Advises on a restart.
#[must_use]
pub fn advise(verdict: &Verdict) -> Restart {
    if let Some(root) = verdict.failures.first() {
        let number = root.code.as_ref().filter(|_| root.is_xid()).and_then(|code| code.number);
        let row = number.and_then(|number| by_number(u32::try_from(number).ok()?));
        if let Some(row) = row.filter(|_| root.weight <= Weight::State) {
            let summary = format!("for Xid {}: {}", row.number, row.action);
            return Restart { advice: RestartAdvice::Unknown, summary };
        }
        if root.class == FailureClass::PythonError && is_full_pool(&root.why) {
            let summary =
                "the pool of the KV cache was full: a restart empties it, and the same load fills it again";
            return Restart { advice: RestartAdvice::WorthTrying, summary: summary.to_owned() };
        }
        if let Some(summary) = undecided(root) {
            return Restart { advice: RestartAdvice::Unknown, summary: summary.to_owned() };
        }
        if root.stop == Some(Stop::TimeLimit) {
            let summary = "go on from the last checkpoint with a longer limit; nothing here says that the program failed";
            return Restart { advice: RestartAdvice::WorthTrying, summary: summary.to_owned() };
        }
    }
    let class = by_class(verdict.class);
    let cause = verdict.cause();
    let Some(by_cause) = by_cause(cause.and_then(|hypothesis| hypothesis.cause)) else { return class.into() };
    match cause.map(|hypothesis| hypothesis.certainty) {
        // A suspicion is no ground to forbid a try, unless the class alone forbids it.
        Some(Certainty::Suspected) if by_cause.0 == RestartAdvice::Pointless => match class.0 {
            RestartAdvice::Pointless => class.into(),
            _ => Restart {
                advice: RestartAdvice::Unknown,
                summary: format!("pointless if the suspected cause holds: {}", by_cause.1),
            },
        },
        _ => by_cause.into(),
    }
}

/// Whether a server's own message says that the pool of its KV cache was full.
#[must_use]
pub(in crate::verdict) fn is_full_pool(message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    let of_pool = ["prefill", "decode", "kv cache", "kv pool", "token pool", "cache block", "token slots"];
    let full = ["out of memory", "no free", "not enough", "exhausted", "cannot allocate", "no available"];
    !lower.contains("cuda")
        && of_pool.iter().any(|word| lower.contains(word))
        && full.iter().any(|word| lower.contains(word))
}

/// Failures of which the class says too much: the time of the other side, or of the program's end, is no property of the input.
fn undecided(root: &Failure) -> Option<&'static str> {
    let code = root.code.as_ref().filter(|code| code.domain == "cuda").and_then(|code| code.number);
    let said = root.why.to_ascii_lowercase();
    if root.class == FailureClass::ApiError && code == Some(4) {
        return Some(
            "CUDA was already shutting down: the error came at the program's end, and its work may be whole",
        );
    }
    let waited = ["timeout", "timed out", "time-out"].iter().any(|word| said.contains(word));
    (root.class == FailureClass::PythonError && waited)
        .then_some("it waited too long for another side, and the evidence does not say whether that one was slow, stuck or gone")
}

impl From<(RestartAdvice, &str)> for Restart {
    fn from((advice, summary): (RestartAdvice, &str)) -> Self {
        Self { advice, summary: summary.to_owned() }
    }
}

fn by_cause(cause: Option<CauseKind>) -> Option<(RestartAdvice, &'static str)> {
    use RestartAdvice::{AfterDrain, Pointless, WorthTrying};
    Some(match cause? {
        CauseKind::Int32Overflow => {
            (Pointless, "the same input fails every time; lower the rows per rank first")
        }
        CauseKind::MissingMask
        | CauseKind::BadIndex
        | CauseKind::StrideMismatch
        | CauseKind::MisalignedView
        | CauseKind::NullPointer
        | CauseKind::HostPointer
        | CauseKind::SharedMemory
        | CauseKind::QuantBoundary
        | CauseKind::LaunchLimit => (Pointless, "a program fault: the same input fails again"),
        CauseKind::NanInput => (
            Pointless,
            "the same batch produces the same values; skip it or go back to an earlier checkpoint",
        ),
        CauseKind::CollectiveMismatch | CauseKind::MissingCollective | CauseKind::SymmWindow => (
            Pointless,
            "the ranks run different code paths and will do so again; a longer time-out cannot help",
        ),
        CauseKind::WrongArch
        | CauseKind::VersionMismatch
        | CauseKind::AbiMismatch
        | CauseKind::DuplicateGpu
        | CauseKind::ShmExhausted => (Pointless, "the set-up must change first"),
        CauseKind::GpuMemory => {
            (Pointless, "the same request asks for the same memory, unless another process held it")
        }
        CauseKind::Network | CauseKind::PeerDied => {
            (WorthTrying, "the cause lies outside this process and may be gone")
        }
        CauseKind::Ecc | CauseKind::GpuLost | CauseKind::Nvlink => {
            (AfterDrain, "take the named GPU's node out first")
        }
        CauseKind::GspFirmware => {
            (AfterDrain, "the GPU needs a reset, by someone with that right, before it runs again")
        }
        _ => return None,
    })
}

fn by_class(class: FailureClass) -> (RestartAdvice, &'static str) {
    use RestartAdvice::{AfterDrain, Pointless, Unknown, WorthTrying};
    match class {
        FailureClass::Hardware => (AfterDrain, "take the node with this GPU out first"),
        FailureClass::Killed => {
            (WorthTrying, "something outside ended the process; find out what before the next long run")
        }
        FailureClass::HostOom => {
            (Pointless, "the same job needs the same memory; lower workers or raise the limit first")
        }
        FailureClass::GpuOom => (Pointless, "the same request asks for the same memory"),
        FailureClass::DeviceAssert => (Pointless, "the program's own check fails again with the same input"),
        FailureClass::LaunchConfig => (Pointless, "the same launch is refused again"),
        FailureClass::NoKernelImage => (Pointless, "the binary holds the same code"),
        FailureClass::CompileError => (Pointless, "the same source fails to compile again"),
        FailureClass::GraphCapture => (Pointless, "the same call breaks the capture again"),
        FailureClass::PythonError => (Pointless, "the same input raises the same exception"),
        FailureClass::ApiError => (Pointless, "the same call with the same arguments is refused again"),
        FailureClass::Driver => (Pointless, "driver and set-up must be put right first"),
        FailureClass::None => (Unknown, "no failure in the input"),
        FailureClass::Nccl => {
            (Unknown, "the evidence does not say whether a program or the network stopped the ranks")
        }
        _ => (
            Unknown,
            "the evidence does not say whether the same input fails again; try it once to learn that",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_is_told_from_a_full_gpu() {
        for full in [
            "RuntimeError: Prefill out of memory. Try to lower your batch size.",
            "RuntimeError: Decode out of memory",
            "ValueError: No available memory for the cache blocks.",
        ] {
            assert!(is_full_pool(full), "{full}");
        }
        for other in
            ["CUDA out of memory. Tried to allocate 2 GiB for the KV cache", "ValueError: bad prefill", ""]
        {
            assert!(!is_full_pool(other), "{other}");
        }
    }
}
