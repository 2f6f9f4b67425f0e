//! How a trial ended: a dead child is a normal result.
//!
//! In: an [`Ending`] of a child. Out: a [`Verdict`]: an [`Outcome`] with its code, times and a sentence. It draws no
//! conclusion about a boundary.

use serde::{Deserialize, Serialize};

use super::host::{Ending, Exit};
use super::protocol::{Failure, Placed, Reply, Stage, TrialReply};
use crate::tables::class::FailureClass;
use crate::tables::cuda_status;

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The kernel ended without an error.
    Pass,
    /// It touched an address that it must not (700, 717).
    IllegalAddress,
    /// It touched an address that its access can't have (716).
    MisalignedAddress,
    /// It met an instruction that can't be (715, 718).
    IllegalInstruction,
    /// An assertion of its own failed (710).
    DeviceAssert,
    /// It failed in another way (719, 702).
    LaunchFailure,
    /// The driver refused to launch it.
    LaunchConfig,
    /// There is no code for this GPU.
    NoKernelImage,
    /// The device's memory, or the part that the probe may take, is too small.
    GpuOom,
    /// The hardware reported an error.
    Hardware,
    /// The driver failed.
    Driver,
    /// Another status.
    ApiError,
    /// It did not end before its deadline.
    Timeout,
    /// The process died of a signal.
    Crash,
    /// The process ended with no reply that can be read.
    Garbage,
    /// The process could not be started.
    NotStarted,
    /// Somebody asked to stop.
    Cancelled,
}

/// Every outcome.
const ALL: [Outcome; 17] = [
    Outcome::Pass,
    Outcome::IllegalAddress,
    Outcome::MisalignedAddress,
    Outcome::IllegalInstruction,
    Outcome::DeviceAssert,
    Outcome::LaunchFailure,
    Outcome::LaunchConfig,
    Outcome::NoKernelImage,
    Outcome::GpuOom,
    Outcome::Hardware,
    Outcome::Driver,
    Outcome::ApiError,
    Outcome::Timeout,
    Outcome::Crash,
    Outcome::Garbage,
    Outcome::NotStarted,
    Outcome::Cancelled,
];

impl Outcome {
    /// The spelling in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::IllegalAddress => "illegal_address",
            Self::MisalignedAddress => "misaligned_address",
            Self::IllegalInstruction => "illegal_instruction",
            Self::DeviceAssert => "device_assert",
            Self::LaunchFailure => "launch_failure",
            Self::LaunchConfig => "launch_config",
            Self::NoKernelImage => "no_kernel_image",
            Self::GpuOom => "gpu_oom",
            Self::Hardware => "hardware",
            Self::Driver => "driver",
            Self::ApiError => "api_error",
            Self::Timeout => "timeout",
            Self::Crash => "crash",
            Self::Garbage => "garbage",
            Self::NotStarted => "not_started",
            Self::Cancelled => "cancelled",
        }
    }

    /// The outcome with this spelling.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Whether the kernel itself failed.
    #[must_use]
    pub fn is_fault(self) -> bool {
        matches!(
            self,
            Self::IllegalAddress
                | Self::MisalignedAddress
                | Self::IllegalInstruction
                | Self::DeviceAssert
                | Self::LaunchFailure
        )
    }

    /// Whether the trial says nothing about the kernel.
    #[must_use]
    pub fn is_void(self) -> bool {
        !self.is_fault() && self != Self::Pass
    }

    fn of_class(class: FailureClass) -> Self {
        match class {
            FailureClass::IllegalAddress => Self::IllegalAddress,
            FailureClass::MisalignedAddress => Self::MisalignedAddress,
            FailureClass::IllegalInstruction => Self::IllegalInstruction,
            FailureClass::DeviceAssert => Self::DeviceAssert,
            FailureClass::LaunchFailure => Self::LaunchFailure,
            FailureClass::LaunchConfig => Self::LaunchConfig,
            FailureClass::NoKernelImage => Self::NoKernelImage,
            FailureClass::GpuOom => Self::GpuOom,
            FailureClass::Hardware => Self::Hardware,
            FailureClass::Driver => Self::Driver,
            _ => Self::ApiError,
        }
    }

    /// The outcome of a driver's status, at the stage where it came out.
    #[must_use]
    pub fn of_code(code: i32, stage: Stage) -> Self {
        // 1 is "invalid value": of a launch it means the launch's configuration; 701 is "too many resources".
        if code == 1 && matches!(stage, Stage::Launch | Stage::Run) {
            return Self::LaunchConfig;
        }
        let class = u32::try_from(code).ok().and_then(cuda_status::by_code).map(|status| status.class);
        let found = class.map_or(Self::ApiError, Self::of_class);
        // Before the kernel was handed over, a fault can't be its doing.
        if found.is_fault() && stage < Stage::Launch { Self::ApiError } else { found }
    }
}

/// How a trial ended, with what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// How.
    pub outcome: Outcome,
    /// The driver's status: 0 for a pass, `None` where none was returned.
    pub code: Option<i32>,
    /// The kernel's time.
    pub ms: Option<f64>,
    /// From the process's start to the launch.
    pub setup_ms: Option<f64>,
    /// The process's time, start to end.
    pub process_ms: f64,
    /// Device memory of the process, its context included.
    pub device_bytes: Option<u64>,
    /// Physical memory under the buffers.
    pub physical_bytes: Option<u64>,
    /// Bytes of the buffers as the kernel sees them.
    pub logical_bytes: Option<u64>,
    /// Where the buffers lay.
    pub buffers: Vec<Placed>,
    /// What a person should know.
    pub detail: Option<String>,
    /// Remarks of the child.
    pub notes: Vec<String>,
    /// What the kernel printed.
    pub printed: String,
}

/// Judges an ending of a trial.
#[must_use]
pub fn judge(ending: &Ending) -> Verdict {
    let mut verdict = Verdict {
        outcome: Outcome::Garbage,
        code: None,
        ms: None,
        setup_ms: None,
        process_ms: (ending.elapsed.as_secs_f64() * 1e6).round() / 1e3,
        device_bytes: None,
        physical_bytes: None,
        logical_bytes: None,
        buffers: Vec::new(),
        detail: None,
        notes: Vec::new(),
        printed: ending.printed.clone(),
    };
    match &ending.reply {
        Some(Reply::Trial(reply)) => ran(reply, &mut verdict),
        Some(Reply::Failed(failure)) => failed(failure, &mut verdict),
        _ => ended(ending, &mut verdict),
    }
    verdict
}

fn ran(reply: &TrialReply, verdict: &mut Verdict) {
    verdict.outcome = if reply.code == 0 { Outcome::Pass } else { Outcome::of_code(reply.code, Stage::Run) };
    verdict.code = Some(reply.code);
    verdict.ms = Some(reply.ms);
    verdict.setup_ms = Some(reply.setup_ms);
    verdict.device_bytes = reply.device_bytes;
    verdict.physical_bytes = Some(reply.physical_bytes);
    verdict.logical_bytes = Some(reply.logical_bytes);
    verdict.buffers.clone_from(&reply.buffers);
    verdict.notes.clone_from(&reply.notes);
}

fn failed(failure: &Failure, verdict: &mut Verdict) {
    verdict.code = failure.code;
    verdict.outcome = match failure.code {
        Some(code) => Outcome::of_code(code, failure.stage),
        None if failure.stage == Stage::Library => Outcome::Driver,
        None => Outcome::ApiError,
    };
    verdict.detail = Some(failure.message.clone());
}

fn ended(ending: &Ending, verdict: &mut Verdict) {
    let while_doing = ending.stage.map_or_else(String::new, |stage| format!(" while {}", stage.doing()));
    let (outcome, detail) = match &ending.exit {
        Exit::TimedOut => {
            (Outcome::Timeout, format!("it did not end within its deadline{while_doing}; it was ended"))
        }
        Exit::Unkillable => (
            Outcome::Timeout,
            format!("it did not end within its deadline{while_doing}, nor when it was killed"),
        ),
        Exit::Cancelled => (Outcome::Cancelled, "stopped".to_owned()),
        // An answer that is none of a trial: the question was another one.
        Exit::Answered => (Outcome::Garbage, "it answered another question".to_owned()),
        Exit::NotStarted(why) => (Outcome::NotStarted, format!("the process can't be started: {why}")),
        Exit::Signal(number) => (Outcome::Crash, format!("the process died of signal {number}{while_doing}")),
        Exit::Code(code) => (
            Outcome::Garbage,
            format!("the process ended with status {code} and no reply that can be read{while_doing}"),
        ),
    };
    verdict.outcome = outcome;
    verdict.detail = Some(detail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_outcomes_of_the_contract() {
        let run = |code| Outcome::of_code(code, Stage::Run);
        assert_eq!(run(700), Outcome::IllegalAddress);
        assert_eq!(run(717), Outcome::IllegalAddress);
        assert_eq!(run(716), Outcome::MisalignedAddress);
        assert_eq!(run(715), Outcome::IllegalInstruction);
        assert_eq!(run(710), Outcome::DeviceAssert);
        assert_eq!(run(719), Outcome::LaunchFailure);
        assert_eq!(Outcome::of_code(1, Stage::Launch), Outcome::LaunchConfig);
        assert_eq!(Outcome::of_code(1, Stage::Memory), Outcome::ApiError);
        assert_eq!(Outcome::of_code(209, Stage::Module), Outcome::NoKernelImage);
        assert_eq!(Outcome::of_code(2, Stage::Memory), Outcome::GpuOom);
        assert_eq!(Outcome::of_code(920, Stage::Run), Outcome::ApiError);
    }

    #[test]
    fn a_fault_before_the_launch_is_not_the_kernels() {
        assert_eq!(Outcome::of_code(700, Stage::Memory), Outcome::ApiError);
    }
}
