//! Which framework the failing program runs on: settings of one say nothing to another.
//!
//! In: the case, the program's words. Out: [`Framework`], and whether the program is Python or runs on Windows. What no evidence
//! tells stays unknown.

use crate::case::Case;
use crate::read::event::{Data, ExitReporter, SignalReporter};

use super::super::collect::is_windows_status;
use super::program::YOUR_COMMAND;

/// A framework, as far as the evidence tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framework {
    /// PyTorch.
    PyTorch,
    /// JAX.
    Jax,
    /// TensorFlow.
    TensorFlow,
    /// Horovod, over whatever framework.
    Horovod,
    /// Nothing tells.
    Unknown,
}

/// The framework that most of the evidence near the failure names: its own errors and the files of its stacks.
pub(super) fn framework(case: &Case) -> Framework {
    // JAX and TensorFlow share XLA, so that its name comes last of theirs.
    let rows: [(&str, Framework); 9] = [
        ("horovod", Framework::Horovod),
        ("jax", Framework::Jax),
        ("tensorflow", Framework::TensorFlow),
        ("keras", Framework::TensorFlow),
        ("xla", Framework::Jax),
        ("torch", Framework::PyTorch),
        ("c10", Framework::PyTorch),
        ("vllm", Framework::PyTorch),
        ("sglang", Framework::PyTorch),
    ];
    let mut marks: Vec<String> = case
        .pick(|data| marks(data).map(|marks| marks.join(" ").to_ascii_lowercase()))
        .map(|(_, _, marks)| marks)
        .take(64)
        .collect();
    let is_group =
        |data: &Data| matches!(data, Data::CollectiveTimeout(_) | Data::WorkStatus(_) | Data::FlightDump(_));
    if case.pick(|data| is_group(data).then_some(())).next().is_some() {
        marks.push("torch".to_owned());
    }
    rows.iter()
        .find(|(word, _)| marks.iter().any(|mark| mark.contains(word)))
        .map_or(Framework::Unknown, |(_, found)| *found)
}

/// Names in which a framework shows.
fn marks(data: &Data) -> Option<Vec<&str>> {
    Some(match data {
        Data::Status(status) => {
            let from = status.reported_from.as_ref().map_or("", |place| place.file.as_str());
            vec![status.producer, from]
        }
        Data::GpuOutOfMemory(refused) => vec![refused.producer],
        Data::Traceback(traceback) => {
            let kind = traceback.exception.as_ref().map_or("", |exception| exception.kind.as_str());
            traceback.frames.iter().map(|frame| package(&frame.file)).chain([kind]).collect()
        }
        Data::Exception(exception) => vec![exception.kind.as_str()],
        Data::Signal(signal) => signal.python.iter().map(|frame| package(&frame.file)).collect(),
        Data::CollectiveMismatch(mismatch) if mismatch.detail.contains("CollectiveFingerPrint") => {
            vec!["torch"]
        }
        Data::NcclResult(result) => vec![result.name.as_str()],
        _ => return None,
    })
}

/// The installed package of a file; nothing of a file of the user's own.
fn package(file: &str) -> &str {
    ["site-packages/", "dist-packages/"]
        .iter()
        .find_map(|mark| file.split_once(mark))
        .map_or("", |(_, rest)| rest.split('/').next().unwrap_or(rest))
}

/// Whether Python's own switches can help: the program is Python, or nothing tells what it is.
pub(super) fn may_be_python(case: &Case, program: &[String]) -> bool {
    let named = |word: &String| word.ends_with(".py") || word.contains("python") || word.contains("torchrun");
    let shows = |data: &Data| match data {
        Data::Traceback(_) => true,
        Data::Signal(signal) => {
            !signal.python.is_empty()
                || matches!(signal.reporter, Some(SignalReporter::Faulthandler | SignalReporter::DataLoader))
        }
        _ => false,
    };
    let plain = |data: &Data| match data {
        Data::Signal(signal) => signal.reporter == Some(SignalReporter::Ucx),
        Data::Exit(exit) => exit.reporter == ExitReporter::Mpi,
        Data::Status(status) => {
            matches!(status.producer, "llama.cpp" | "ollama" | "darknet" | "kaldi" | "kokkos")
        }
        Data::KernelSegfault(segfault) => !["python", "pt_", "ray", "vllm", "torch"]
            .iter()
            .any(|word| segfault.comm.to_ascii_lowercase().contains(word)),
        _ => false,
    };
    if program.iter().any(named) || case.pick(|data| shows(data).then_some(())).next().is_some() {
        return true;
    }
    program.first().is_some_and(|word| word == YOUR_COMMAND)
        && case.pick(|data| plain(data).then_some(())).next().is_none()
}

/// Whether the process ended with a status that only Windows has.
pub(super) fn is_windows(case: &Case) -> bool {
    case.pick(|data| match data {
        Data::Exit(exit) => exit.code.filter(|code| is_windows_status(*code)),
        _ => None,
    })
    .next()
    .is_some()
}
