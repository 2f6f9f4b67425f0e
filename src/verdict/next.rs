//! What would settle the open questions, cheapest first, and what to do meanwhile.
//!
//! In: the verdict so far. Out: steps with their whole command and cost, and mitigations. Nothing here is ever run by
//! itself (law 8); a command is words, never a shell line.

use crate::case::Case;
use crate::read::event::{Data, SignalReporter};
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;
use crate::tables::dump_flags;
use crate::text::number::grouped;

use super::Verdict;
use super::failure::Certainty;

mod collective;
mod found;
mod framework;
mod graph;
mod hardware;
mod native;
mod program;
mod shared_memory;

pub use native::in_rank;
pub use program::{YOUR_COMMAND, own_command};

use framework::Framework;
use program::program;

/// A next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// Id.
    pub id: &'static str,
    /// Title.
    pub title: &'static str,
    /// Command, word by word.
    pub command: Option<Vec<String>>,
    /// Cost.
    pub cost: &'static str,
    /// Why.
    pub why: &'static str,
}

/// A stop-gap, a fix, or how to verify it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mitigation {
    /// What to do.
    pub summary: String,
    /// `stop-gap`, `fix` or `verification`.
    pub scope: &'static str,
}

/// Steps for the verdict.
#[must_use]
pub fn steps(case: &Case, verdict: &Verdict) -> Vec<Next> {
    let program = program(case);
    let with = |environment: &[&str]| -> Option<Vec<String>> {
        let mut words = vec!["env".to_owned()];
        words.extend(environment.iter().map(|word| (*word).to_owned()));
        words.extend(program.clone());
        Some(words)
    };
    let cause = verdict.cause().and_then(|hypothesis| hypothesis.cause);
    match verdict.class {
        _ if cause == Some(CauseKind::ShmExhausted) => shared_memory::steps(),
        FailureClass::IllegalAddress | FailureClass::MisalignedAddress | FailureClass::LaunchFailure
            if is_proven(verdict) =>
        {
            vec![verify(&program)]
        }
        FailureClass::IllegalAddress | FailureClass::MisalignedAddress | FailureClass::LaunchFailure => {
            let mut steps: Vec<Next> =
                (verdict.class == FailureClass::MisalignedAddress && framework::framework(case) == Framework::PyTorch)
                    .then(alignment)
                    .into_iter()
                    .collect();
            if verdict.places.fault.as_ref().is_some_and(|fault| fault.kernel.is_some()) {
                // The kernel is known already: what would only name it is left out.
                steps.extend(compiled_kernel(case, verdict));
                steps.extend(of_known_kernel(case, verdict, &program));
            } else {
                // Inside a captured graph launch blocking says little, and the sanitizer not much more.
                let in_graph = cause == Some(CauseKind::GraphReplay);
                if in_graph {
                    steps.push(graph::eager(case, &program));
                } else if verdict.asynchronous != Some(false) {
                    steps.push(launch_blocking(with(&["CUDA_LAUNCH_BLOCKING=1"])));
                }
                if framework::framework(case) == Framework::Jax {
                    let flags = "XLA_FLAGS=--xla_gpu_enable_command_buffer= --xla_dump_to=xla-dump";
                    steps.push(xla_dump(with(&[flags, "CUDA_LAUNCH_BLOCKING=1"])));
                }
                steps.push(sanitizer(&program, "memcheck"));
                steps.push(core_dump(with(&[
                    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1",
                    "CUDA_COREDUMP_SHOW_PROGRESS=1",
                    &format!("CUDA_COREDUMP_GENERATION_FLAGS={}", dump_flags::SMALL),
                ])));
                if in_graph {
                    let last = steps.len();
                    steps.swap(last - 2, last - 1);
                }
            }
            steps
        }
        FailureClass::IllegalInstruction | FailureClass::NoKernelImage => vec![
            Next {
                id: "architectures",
                title: "Compare the binary's architectures with the GPU",
                command: Some(vec![
                    "nvidia-smi".into(),
                    "--query-gpu=name,compute_cap,driver_version".into(),
                    "--format=csv".into(),
                ]),
                cost: "none",
                why: "code that was built for another GPU fails like this; cuobjdump --list-elf LIBRARY names what is in it",
            },
        ]
        .into_iter()
        .chain((verdict.class == FailureClass::IllegalInstruction).then(|| sanitizer(&program, "memcheck")))
        .collect(),
        FailureClass::DeviceAssert if wraps(verdict) => {
            compiled_kernel(case, verdict).into_iter().chain(of_known_kernel(case, verdict, &program)).collect()
        }
        FailureClass::DeviceAssert => {
            let index = (cause == Some(CauseKind::BadIndex)).then(index_range);
            let was_on =
                verdict.failures.first().is_some_and(|root| super::places::blocking_is_on(case, root));
            let blocking = (!was_on).then(|| launch_blocking(with(&["CUDA_LAUNCH_BLOCKING=1"])));
            // The assertion names its kernel: what is left to find is the index, then the line that launched it.
            index.into_iter().chain([on_the_cpu()]).chain(blocking).collect()
        }
        FailureClass::Nccl => collective::steps(case, verdict, &program),
        FailureClass::Segfault | FailureClass::Abort => {
            if has_native_stack(case) {
                return native::known(case, verdict, &program);
            }
            let faulthandler = (framework::may_be_python(case, &program) && !has_faulthandler(case))
                .then(|| faulthandler(with(&["PYTHONFAULTHANDLER=1"])));
            faulthandler.into_iter().chain(native::steps(case, verdict, &program)).collect()
        }
        FailureClass::Hardware | FailureClass::Driver => hardware::steps(case, verdict),
        FailureClass::Undecided => vec![Next {
            id: "whole-log",
            title: "Add the log from its first error on, and dmesg of the same time",
            command: None,
            cost: "none",
            why: "what came first is often hundreds of lines above the end",
        }],
        class => found::steps(case, class, &program),
    }
}

/// Whether nothing is left to find out.
fn is_proven(verdict: &Verdict) -> bool {
    verdict.cause().is_some_and(|hypothesis| hypothesis.certainty == Certainty::Proven)
}

/// With a proven cause only its fix is left to be shown.
fn verify(program: &[String]) -> Next {
    Next {
        id: "verify-fix",
        title: "Run the same input again after the fix",
        command: Some(program.to_vec()),
        cost: "one run",
        why: "the cause is proven; sizes below, at and past the boundary must all pass, as listed under verification",
    }
}

/// What a vector load needs of a pointer: shown by printing, or by a copy that is aligned by itself.
fn alignment() -> Next {
    Next {
        id: "alignment",
        title: "Print data_ptr() % 16, storage_offset() and stride() of every tensor that goes into that kernel",
        command: None,
        cost: "one line; no rerun of the whole job where the shapes repeat",
        why: "a view at an odd offset, or rows of an odd stride, break vector loads of 16 bytes; if .contiguous() or .clone() before the call cures it, that tensor was it",
    }
}

fn index_range() -> Next {
    Next {
        id: "index-range",
        title: "Check the indices against the table before that operation",
        command: None,
        cost: "one line; min() and max() wait for the GPU",
        why: "the assertion says that one lies outside: print index.min(), index.max() and the table's size, and what made them",
    }
}

fn on_the_cpu() -> Next {
    Next {
        id: "on-the-cpu",
        title: "Run the same batch on the CPU",
        command: None,
        cost: "slow; one batch is enough",
        why: "the CPU raises at the very operation and prints the index and the size of the table",
    }
}

/// Whether the evidence shows that a 32-bit index wrapped.
fn wraps(verdict: &Verdict) -> bool {
    verdict.cause().is_some_and(|cause| {
        cause.cause == Some(CauseKind::Int32Overflow) && cause.certainty >= Certainty::Supported
    })
}

/// The kernel's compiled form says what wraps and up to which size it is safe. Only Triton keeps it beside the source.
fn compiled_kernel(case: &Case, verdict: &Verdict) -> Option<Next> {
    let file = verdict.places.fault.as_ref()?.file.as_deref()?;
    let is_triton = file.ends_with(".py") && case.kernels().next().is_none();
    is_triton.then_some(Next {
        id: "compiled-kernel",
        title: "Add the kernel's folder of the Triton cache (~/.triton/cache) to the inputs",
        command: None,
        cost: "none: no GPU is needed",
        why: "the compiled kernel tells which products it really forms in 32 bits, and up to which size each is safe",
    })
}

/// What is left to find out once the kernel is known; none where its cause is proven or needs no more than its fix.
fn of_known_kernel(case: &Case, verdict: &Verdict, program: &[String]) -> Option<Next> {
    let certainty = verdict.cause().map_or(Certainty::Undecided, |cause| cause.certainty);
    match verdict.cause().and_then(|cause| cause.cause) {
        Some(CauseKind::Int32Overflow) if certainty == Certainty::Proven => None,
        Some(CauseKind::Int32Overflow) => Some(Next {
            id: "boundary",
            title: "Rerun that kernel alone at the boundary on a GPU: the playbook's step, or warpfault probe",
            command: None,
            cost: "seconds on a GPU; neither the job nor its data is needed",
            why: "a pass just below the boundary and a failure just past it prove the wrap",
        }),
        Some(CauseKind::MissingMask) => None,
        // Its report holds no allocation: the sanitizer's text does.
        Some(CauseKind::OutOfBounds) if !names_an_allocation(case) => Some(sanitizer(program, "memcheck")),
        Some(CauseKind::SanitizerFalsePositive) => Some(without_segments(program)),
        _ => Some(Next {
            id: "faulting-index",
            title: "Check the arguments of that launch, and the index that the faulting thread forms from them",
            command: None,
            cost: "reading the kernel; one run with prints",
            why: "kernel, line and thread are known: an argument out of its range, a pointer that is no longer valid, or a missing guard is what is left",
        }),
    }
}

/// Whether a sanitizer's record names the nearest allocation already.
fn names_an_allocation(case: &Case) -> bool {
    case.pick(|data| match data {
        Data::Sanitizer(record) => record.nearest,
        _ => None,
    })
    .next()
    .is_some()
}

/// The sanitizer without the pool that grows in place.
fn without_segments(program: &[String]) -> Next {
    let head = ["env", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False"];
    let again = sanitizer(program, "memcheck");
    let command =
        again.command.map(|words| head.iter().map(|word| (*word).to_owned()).chain(words).collect());
    Next {
        id: "without-segments",
        title: "Rerun under compute-sanitizer without expandable segments",
        command,
        why: "each allocation is then one mapping: a report that is gone was an artefact of the pool, and one that stays is real",
        ..again
    }
}

/// Python's own handler of fatal signals.
fn faulthandler(command: Option<Vec<String>>) -> Next {
    Next {
        id: "faulthandler",
        title: "Rerun with Python's faulthandler",
        command,
        cost: "none",
        why: "it prints the Python line of every thread at the crash",
    }
}

/// XLA compiles whole programs, and runs them as captured graphs: what it ran has to be written down.
fn xla_dump(command: Option<Vec<String>>) -> Next {
    Next {
        id: "xla-dump",
        title: "Rerun with XLA's graphs (command buffers) off and its modules dumped",
        command,
        cost: "slower; some megabytes in xla-dump",
        why: "without command buffers each kernel is a launch of its own, which launch blocking can tell; the dump holds the kernel that it then names",
    }
}

/// Whether Python's own crash handler spoke already.
fn has_faulthandler(case: &Case) -> bool {
    case.pick(|data| match data {
        Data::Signal(signal) if signal.reporter == Some(SignalReporter::Faulthandler) => Some(()),
        _ => None,
    })
    .next()
    .is_some()
}

/// Whether a native stack with names is among the inputs already.
fn has_native_stack(case: &Case) -> bool {
    let named = case.pick(|data| match data {
        Data::Signal(signal) => signal.native.iter().filter(|frame| frame.function.is_some()).nth(1),
        _ => None,
    });
    named.into_iter().next().is_some()
}

fn launch_blocking(command: Option<Vec<String>>) -> Next {
    Next {
        id: "launch-blocking",
        title: "Rerun with launch blocking",
        command,
        cost: "slower; hides races; says little inside a captured graph",
        why: "each launch then waits, so the error comes out at the launch that failed",
    }
}

fn sanitizer(program: &[String], tool: &str) -> Next {
    let head = ["compute-sanitizer", "--tool", tool, "--print-limit", "3"];
    Next {
        id: "compute-sanitizer",
        title: "Rerun under compute-sanitizer",
        command: Some(head.iter().map(|word| (*word).to_owned()).chain(program.iter().cloned()).collect()),
        cost: "10 to 100 times slower; turn expandable segments off first",
        why: "it names kernel, line, block, thread, address and the nearest allocation",
    }
}

fn core_dump(command: Option<Vec<String>>) -> Next {
    Next {
        id: "core-dump",
        title: "Let the driver write a GPU core dump",
        command,
        cost: "none until the fault; the file is small with these flags, and keeps the launch arguments",
        why: "it works where the sanitizer is too slow or hides the fault",
    }
}

/// Stop-gaps, fixes and verification for the likeliest cause.
#[must_use]
pub fn mitigations(verdict: &Verdict) -> Vec<Mitigation> {
    let m = |scope, summary: &str| Mitigation { summary: summary.to_owned(), scope };
    if verdict.cause().and_then(|hypothesis| hypothesis.cause) == Some(CauseKind::Int32Overflow) {
        return overflow(verdict);
    }
    match verdict.cause().and_then(|hypothesis| hypothesis.cause) {
        Some(CauseKind::MissingMask) => vec![
            m("stop-gap", "pad the size to a multiple of the block"),
            m("fix", "guard the access: `if (i < n)` in CUDA C++, `mask=offs < n` in Triton"),
            m(
                "verification",
                "run sizes of one block less one, one block, and one block more under memcheck",
            ),
        ],
        Some(CauseKind::BadIndex) => vec![
            m("stop-gap", "clamp or drop the offending entries and log how many there were"),
            m(
                "fix",
                "check `0 <= index < size` where the index is made: tokenizer against vocabulary, labels against classes",
            ),
        ],
        Some(CauseKind::GraphReplay) => vec![
            m("stop-gap", "run eagerly, without the captured graph"),
            m("fix", "keep every captured tensor alive and in place; refill fixed inputs with copy_"),
        ],
        Some(CauseKind::ShmExhausted) => shared_memory::mitigations(),
        Some(CauseKind::LaunchLimit) => vec![m("fix", "lower block sizes or num_stages, or split the grid")],
        Some(CauseKind::SymmWindow) => vec![
            m("stop-gap", "use the plain dist.all_reduce for this tensor"),
            m(
                "fix",
                "allocate the same shape and dtype in symmetric memory on every rank before the rendezvous",
            ),
        ],
        Some(CauseKind::MissingCollective | CauseKind::CollectiveMismatch) => vec![m(
            "fix",
            "make every rank run the same collectives with the same sizes: look for branches on rank, on data, or on an empty batch",
        )],
        _ => Vec::new(),
    }
}

/// Stop-gap, fix and verification of a wrapped index, with the numbers of the likeliest shape.
fn overflow(verdict: &Verdict) -> Vec<Mitigation> {
    let m = |scope, summary: String| Mitigation { summary, scope };
    let mut all = Vec::new();
    let shape = verdict.shapes.iter().find(|shape| shape.overflows());
    if let Some((shape, safe)) = shape.and_then(|shape| Some((shape, shape.boundary.safe?))) {
        let multiple = match shape.boundary.safe_multiple {
            Some(multiple) if shape.boundary.granularity > 1 && multiple != safe => {
                format!(" ({} in multiples of {})", grouped(multiple), shape.boundary.granularity)
            }
            _ => String::new(),
        };
        let others: Vec<String> = shape
            .mention
            .dims
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != shape.sweep)
            .map(|(_, dim)| grouped(u128::from(*dim)))
            .collect();
        let name = shape.mention.names.get(shape.sweep).map_or("rows", String::as_str);
        all.push(m(
            "stop-gap",
            format!(
                "cap {name} per rank at {}{multiple} for a width of {}; another width has another cap",
                grouped(safe),
                others.join(" × ")
            ),
        ));
    }
    all.push(m(
        "fix",
        "widen the row index to 64 bits before multiplying (row.to(tl.int64) * stride), for inputs and outputs, forward and backward"
            .to_owned(),
    ));
    if let Some(shape) = shape {
        let values: Vec<String> =
            shape.boundary.shapes.iter().map(|shape| grouped(u128::from(shape.value))).collect();
        if !values.is_empty() {
            all.push(m(
                "verification",
                format!("run {}: every one must pass after the fix", values.join(" / ")),
            ));
        }
    }
    all
}
