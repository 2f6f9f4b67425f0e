//! What host processes say: Python exceptions, signals, aborts, exit codes.
//!
//! In: the typed event. Out: a claim. It leaves alone whether a launcher's word is clean-up: that needs the other events.

use crate::read::event::{
    Abort, AbortReason, Advice, Cleanup, Exception, ExitReporter, FatalSignal, Messenger, ProcessExit,
    SignalReporter, Stop, Traceback,
};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Weight;
use super::Claim;

/// A traceback that ends in an exception.
pub fn traceback(traceback: &Traceback) -> Option<Claim> {
    if traceback.cut && !traceback.ignored {
        let why = "a traceback is cut off before its exception";
        return Some(Claim::new(FailureClass::Undecided, Weight::Hint, why));
    }
    exception(traceback.exception.as_ref()?)
}

/// Advice that a framework prints under a GPU error alone: where its error's line is missing, there was one.
pub fn advice(advice: Advice) -> Option<Claim> {
    let why = "advice that is printed under a GPU error alone, whose own line is not in the input";
    (advice != Advice::Search).then(|| Claim::new(FailureClass::Undecided, Weight::Hint, why))
}

/// What kind of statement a Python exception is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// A program error of its own.
    Program,
    /// A launcher, a pool or an interrupted process.
    Launcher,
    /// A launcher that was told to end.
    Ended,
    /// A peer or child is gone.
    PeerGone,
    /// Collectives.
    Collective,
    /// Nothing wrong (`SystemExit: 0`, a warning).
    Nothing,
}

/// An exception line.
pub fn exception(exception: &Exception) -> Option<Claim> {
    match says(exception) {
        Says::Nothing => None,
        Says::Program => Some(
            Claim::new(FailureClass::PythonError, Weight::Program, "a Python exception ended the program")
                .cause(cause_of(&exception.message)),
        ),
        Says::Launcher => Some(
            Claim::new(
                FailureClass::PythonError,
                Weight::Hint,
                "a launcher reports that a process of its failed",
            )
            .relayed(Some(Messenger::Launcher)),
        ),
        Says::Ended => Some(
            Claim::new(
                FailureClass::Killed,
                Weight::Hint,
                "the launcher got a signal from outside and ended its processes",
            )
            .relayed(Some(Messenger::Launcher)),
        ),
        Says::PeerGone => {
            Some(Claim::new(FailureClass::PythonError, Weight::Hint, "a connection to another process broke"))
        }
        Says::Collective => Some(Claim::new(FailureClass::Nccl, Weight::Waiting, "a collective call failed")),
    }
}

/// The cause that an exception's own words name.
fn cause_of(message: &str) -> Option<CauseKind> {
    if message.contains("Expected all tensors to be on the same device") {
        return Some(CauseKind::WrongDevice);
    }
    let (_, symbol) = message.split_once("undefined symbol: ")?;
    is_of_pytorch(symbol).then_some(CauseKind::AbiMismatch)
}

/// Whether a mangled name is one of PyTorch's own C++ interface: an extension that lacks it was built for another release, or
/// with the other string type.
fn is_of_pytorch(symbol: &str) -> bool {
    const SPACES: [&str; 6] = ["3c10", "2at", "5torch", "6caffe2", "4c10d", "8pybind11"];
    // `_ZN`, `_ZNK`, `_ZTI`, `_ZTV`, a parameter list after a plain function: the first nested name is the function's own.
    let name = symbol.split([',', ' ', '\n']).next().unwrap_or("");
    let Some(rest) = name.strip_prefix("_Z") else { return false };
    let rest = ["TIN", "TVN", "TSN", "NK", "N", "TV", "TI"]
        .iter()
        .find_map(|lead| rest.strip_prefix(lead))
        .unwrap_or(rest);
    SPACES.iter().any(|space| rest.starts_with(space))
        || name.contains("N2at6TensorE")
        || name.contains("RKN2at")
}

fn says(exception: &Exception) -> Says {
    let name = exception.kind.rsplit('.').next().unwrap_or("");
    let message = exception.message.as_str();
    if name.ends_with("Warning") || name == "SystemExit" && matches!(message.trim(), "0" | "") {
        return Says::Nothing;
    }
    // torchrun: `SignalException: Process 560 got signal: 15`
    if name == "SignalException" && message.contains("got signal: ") {
        return Says::Ended;
    }
    let launcher = [
        "ChildFailedError",
        "ProcessRaisedException",
        "ProcessExitedException",
        "SignalException",
        "CalledProcessError",
        "KeyboardInterrupt",
        "SystemExit",
        "RayTaskError",
        "RayActorError",
        "ActorDiedError",
        "WorkerCrashedError",
        "EngineDeadError",
        "AsyncEngineDeadError",
        "BrokenProcessPool",
        "TerminatedWorkerError",
        "WorkerDiedError",
        "MQEngineDeadError",
        "RayChannelError",
        "TaskCancelledError",
        "CancelledError",
        "HTTPException",
    ];
    if launcher.contains(&name) {
        return Says::Launcher;
    }
    let launcher_text = [
        "Engine core initialization failed",
        "Engine process failed",
        "Engine loop has died",
        "worker died",
        "Worker failed with error",
        "DataLoader worker",
        "one or more of the workers",
        "EngineCore encountered an issue",
        "background loop has errored",
        "Task finished unexpectedly",
        "Cancelled by",
        "exited unexpectedly",
        "processes failed",
        "Process group watchdog",
    ];
    if launcher_text.iter().any(|text| message.contains(text)) {
        return Says::Launcher;
    }
    if name.starts_with("Dist")
        || message.contains("NCCL")
        || message.contains("ProcessGroup")
        || message.contains("process group")
    {
        return Says::Collective;
    }
    let gone = [
        "ConnectionResetError",
        "BrokenPipeError",
        "EOFError",
        "ConnectionRefusedError",
        "ConnectionAbortedError",
        "Empty",
        "IncompleteReadError",
    ];
    let gone_text =
        ["Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket Timeout"];
    if gone.contains(&name) || gone_text.iter().any(|text| message.contains(text)) {
        return Says::PeerGone;
    }
    Says::Program
}

/// A fatal signal.
pub fn signal(signal: &FatalSignal) -> Option<Claim> {
    let direct = !matches!(signal.reporter, Some(SignalReporter::Shell) | None);
    let weight = if direct { Weight::Direct } else { Weight::Exit };
    let (class, cause) = signal_class(signal.signal)?;
    let weight = if matches!(signal.signal, 6 | 9 | 15) { Weight::Exit } else { weight };
    Some(
        Claim::new(class, weight, "a process got a fatal signal")
            .code("signal", Some(i64::from(signal.signal)), signal_name(signal.signal).map(str::to_owned))
            .cause(cause),
    )
}

/// Class of a host signal.
pub fn signal_class(signal: u32) -> Option<(FailureClass, Option<CauseKind>)> {
    Some(match signal {
        11 => (FailureClass::Segfault, None),
        7 => (FailureClass::Segfault, None),
        4 | 8 => (FailureClass::Abort, None),
        6 => (FailureClass::Abort, None),
        9 | 15 => (FailureClass::Killed, None),
        _ => return None,
    })
}

/// Name of a signal.
#[must_use]
pub fn signal_name(signal: u32) -> Option<&'static str> {
    Some(match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        2 => "SIGINT",
        _ => return None,
    })
}

/// An abort with its reason.
pub fn abort(abort: &Abort) -> Option<Claim> {
    let (weight, cause) = match abort.reason {
        AbortReason::Heap => (Weight::Direct, Some(CauseKind::HeapCorruption)),
        AbortReason::Stack => (Weight::Direct, Some(CauseKind::StackOverflow)),
        AbortReason::PureVirtual => (Weight::Program, None),
        // `terminate called` and a failed host check end a process for a reason that stands elsewhere more often than not.
        AbortReason::Terminate | AbortReason::HostAssert | AbortReason::Bare => (Weight::Exit, None),
    };
    Some(
        Claim::new(FailureClass::Abort, weight, "a process aborted")
            .code("signal", Some(6), Some("SIGABRT".to_owned()))
            .cause(cause),
    )
}

/// A scheduler that ended the job. A bare cancellation also follows a failure of the job's own.
pub fn stopped(cleanup: &Cleanup) -> Option<Claim> {
    let (weight, why) = match cleanup.stop? {
        Stop::TimeLimit => (Weight::Exit, "the job reached the scheduler's time limit"),
        Stop::Preemption => (Weight::Exit, "the scheduler gave its place to another job"),
        Stop::NodeFailure => (Weight::Exit, "the scheduler lost a node of the job"),
        Stop::Cancelled => (Weight::Hint, "the scheduler cancelled the job, and does not say why"),
        Stop::Signal => (Weight::Hint, "the launcher got a signal from outside and ended its processes"),
    };
    let claim = Claim::new(FailureClass::Killed, weight, why);
    let number = cleanup.signal.filter(|_| cleanup.stop == Some(Stop::Signal));
    Some(match number {
        Some(signal) => claim.code("signal", Some(i64::from(signal)), signal_name(signal).map(str::to_owned)),
        None => claim,
    })
}

/// Windows has no signals: the name of a status, and its class (`ntstatus.h`). The second one also ends a process that aborts by
/// itself (fail-fast), whatever its name says.
fn windows_status(code: i64) -> Option<(&'static str, FailureClass)> {
    let unsigned = u32::try_from(code).ok().or_else(|| i32::try_from(code).ok().map(i32::cast_unsigned))?;
    Some(match unsigned {
        0xC000_0005 => ("STATUS_ACCESS_VIOLATION", FailureClass::Segfault),
        0xC000_0409 => ("STATUS_STACK_BUFFER_OVERRUN (fail-fast)", FailureClass::Abort),
        0xC000_001D => ("STATUS_ILLEGAL_INSTRUCTION", FailureClass::Abort),
        _ => return None,
    })
}

/// Whether a status is one that only Windows has.
#[must_use]
pub fn is_windows_status(code: i64) -> bool {
    windows_status(code).is_some()
}

/// The end of a process, as somebody else reports it.
pub fn exit(exit: &ProcessExit) -> Option<Claim> {
    if let Some((name, class)) = exit.code.and_then(windows_status) {
        return Some(Claim::new(class, Weight::Exit, "the process ended with this status of Windows").code(
            "exit",
            exit.code,
            Some(name.to_owned()),
        ));
    }
    let signal = exit.signal.or_else(|| {
        let code = exit.code?;
        u32::try_from(if code < 0 { -code } else { code - 128 }).ok()
    });
    if let Some((class, cause)) = signal.and_then(signal_class) {
        let weight = if matches!(class, FailureClass::Killed) { Weight::Hint } else { Weight::Exit };
        return Some(
            Claim::new(class, weight, "a launcher reports the signal")
                .code("signal", signal.map(i64::from), signal.and_then(signal_name).map(str::to_owned))
                .relayed(
                    matches!(exit.reporter, ExitReporter::Elastic | ExitReporter::ElasticReport)
                        .then_some(Messenger::Launcher),
                )
                .cause(cause),
        );
    }
    match exit.code {
        None | Some(0) => None,
        Some(code) => Some(
            Claim::new(FailureClass::Undecided, Weight::Hint, "a process ended with a non-zero status")
                .code("exit", Some(code), None)
                .relayed(Some(Messenger::Launcher)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_symbol_of_pytorch_is_another_binary_interface() {
        let cause = |symbol: &str| cause_of(&format!("/x/ext.so: undefined symbol: {symbol}"));
        for symbol in [
            "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
            "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEE",
            "_ZN5torch7LibraryC1ENS0_4KindE",
            "_ZNK3c1010TensorImpl4sizeEl",
            "_ZTIN3c105ErrorE",
        ] {
            assert_eq!(cause(symbol), Some(CauseKind::AbiMismatch), "{symbol}");
        }
        for symbol in ["cudaGetDriverEntryPointByVersion", "_ZNSt6vectorIiE", "__nvJitLinkComplete_12_4"] {
            assert_eq!(cause(symbol), None, "{symbol}");
        }
        assert_eq!(cause_of("undefined symbol"), None);
    }

    #[test]
    fn tensors_on_two_devices_are_named() {
        let message =
            "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!";
        assert_eq!(cause_of(message), Some(CauseKind::WrongDevice));
    }
}
