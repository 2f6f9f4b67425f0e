//! Steps where nothing crashed or a call was refused: races, leaks, uninitialised reads, barriers, refused calls, memory.
//!
//! In: the case, the class, the program's words. Out: steps, the cheapest first. Options of compute-sanitizer are those of
//! its manual (`--racecheck-report`, `--report-api-errors`, `--leak-check`).

use crate::case::Case;
use crate::read::event::Data;
use crate::tables::class::FailureClass;

use super::super::cause::memory::{Reason, Shortage, shortage};
use super::super::restart::is_full_pool;
use super::Next;
use super::framework::{Framework, framework};

/// The steps; none for a class of another kind.
pub(super) fn steps(case: &Case, class: FailureClass, program: &[String]) -> Vec<Next> {
    match class {
        FailureClass::Race => vec![hazards(program), barriers(program)],
        FailureClass::Leak => vec![owner(program), growth()],
        FailureClass::UninitializedRead => vec![writer(), again(program, "initcheck")],
        FailureClass::BarrierError => vec![branch(), again(program, "synccheck")],
        FailureClass::ApiError => vec![refused_calls(program), first_refusal()],
        FailureClass::LaunchConfig => vec![limits(), refused_calls(program)],
        FailureClass::GpuOom => {
            let mut steps = gpu_memory(program, pytorch(case), shortage(case).as_ref());
            steps.extend(preallocation(program, framework(case)));
            steps
        }
        FailureClass::HostOom => vec![host_memory(), who_grew()],
        FailureClass::PythonError if pool_is_full(case) => vec![smaller_load(), raising_frame()],
        FailureClass::PythonError => vec![raising_frame()],
        FailureClass::GraphCapture => vec![capture_call(), without_capture()],
        FailureClass::CompileError => vec![compiler_output(program, compiler(case))],
        FailureClass::Killed if has_kernel_log(case) => vec![sender()],
        FailureClass::Killed => vec![kernel_log(), sender()],
        _ => Vec::new(),
    }
}

fn words(head: &[&str], program: &[String]) -> Option<Vec<String>> {
    Some(head.iter().map(|word| (*word).to_owned()).chain(program.iter().cloned()).collect())
}

fn pool_is_full(case: &Case) -> bool {
    let full = case.pick(|data| match data {
        Data::Traceback(traceback) => {
            traceback.exception.as_ref().filter(|exception| is_full_pool(&exception.message))
        }
        Data::Exception(exception) => Some(exception).filter(|exception| is_full_pool(&exception.message)),
        _ => None,
    });
    full.into_iter().next().is_some()
}

fn smaller_load() -> Next {
    Next {
        id: "smaller-load",
        title: "Admit fewer requests at once, or give the pool more room",
        command: None,
        cost: "less throughput, or less memory for the rest",
        why: "the pool was full under that load: --max-running-requests and --mem-fraction-static in SGLang, --max-num-seqs and --gpu-memory-utilization in vLLM; if a light load fails too, blocks are lost",
    }
}

fn raising_frame() -> Next {
    Next {
        id: "raising-frame",
        title: "Read the innermost frame of your own code, and print what it was given",
        command: None,
        cost: "none",
        why: "the exception is the failure itself: its message names what was wrong, the frames above it who passed it",
    }
}

fn capture_call() -> Next {
    Next {
        id: "capture-call",
        title: "Find the first call that is not allowed while a stream is captured",
        command: None,
        cost: "reading the first error, with its stack",
        why: "the later ones only say that the capture is broken; waiting, allocating, loading a module or using another stream there breaks it: do it once before the capture (a warm-up run)",
    }
}

fn without_capture() -> Next {
    Next {
        id: "without-graph",
        title: "Run the same steps without capturing a graph",
        command: None,
        cost: "slower; nothing else changes",
        why: "a failure that stays has nothing to do with the graph, and comes out where it happens",
    }
}

/// Who failed to compile, where a line names it.
fn compiler(case: &Case) -> &'static str {
    let failed = case.pick(|data| match data {
        Data::Compile(failed) => Some(failed.compiler),
        _ => None,
    });
    failed.map(|(_, _, compiler)| compiler).next().unwrap_or("")
}

fn compiler_output(program: &[String], compiler: &str) -> Next {
    let (settings, why): (&[&str], &str) = match compiler {
        "triton" | "inductor" => (
            &["TRITON_ALWAYS_COMPILE=1", "MLIR_ENABLE_DIAGNOSTICS=warnings,remarks"],
            "Triton then prints what its passes say before the one that failed; the kernel's source line stands there",
        ),
        "nvcc" | "ninja" | "gcc" => (
            &["MAX_JOBS=1"],
            "with one job at a time the first error stands right above the end; the lines below it follow from it",
        ),
        _ => (&[], "the first error counts; later ones follow from it"),
    };
    let head: Vec<&str> = if settings.is_empty() {
        Vec::new()
    } else {
        std::iter::once("env").chain(settings.iter().copied()).collect()
    };
    Next {
        id: "compiler-output",
        title: "Read the compiler's first error, with the whole output of that one compilation",
        command: (!head.is_empty()).then(|| words(&head, program)).flatten(),
        cost: "one compilation",
        why,
    }
}

fn hazards(program: &[String]) -> Next {
    Next {
        id: "racecheck-hazards",
        title: "List every hazard with both of its accesses",
        command: words(&["compute-sanitizer", "--tool", "racecheck", "--racecheck-report", "all"], program),
        cost: "10 to 100 times slower",
        why: "a barrier belongs between the two lines that it names; only shared memory is watched, global memory is not",
    }
}

fn barriers(program: &[String]) -> Next {
    Next {
        id: "synccheck",
        title: "Check the barriers that are there, and those that you add",
        command: words(&["compute-sanitizer", "--tool", "synccheck", "--print-limit", "3"], program),
        cost: "10 to 100 times slower",
        why: "a barrier that not every thread reaches orders nothing",
    }
}

fn owner(program: &[String]) -> Next {
    Next {
        id: "leak-owner",
        title: "Let each leak name the call that allocated it",
        command: words(
            &["compute-sanitizer", "--tool", "memcheck", "--leak-check", "full", "--show-backtrace", "yes"],
            program,
        ),
        cost: "10 to 100 times slower; symbols of the host program help (-rdynamic)",
        why: "the host stack under each leak is where its free is missing",
    }
}

fn growth() -> Next {
    Next {
        id: "leak-growth",
        title: "See whether memory grows while it runs",
        command: words(
            &["nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv", "-l", "10"],
            &[],
        ),
        cost: "none; end it with Ctrl-C",
        why: "what is only left over at exit harms nobody; what grows with each step ends out of memory",
    }
}

fn writer() -> Next {
    Next {
        id: "who-writes",
        title: "Find who should have written that buffer, and when",
        command: None,
        cost: "reading the code",
        why: "torch.empty and cudaMalloc give what was left there; a zeroed buffer that cures it proves the missing write and is no fix",
    }
}

fn branch() -> Next {
    Next {
        id: "barrier-in-branch",
        title: "Look for a barrier inside a branch, a loop or behind an early return",
        command: None,
        cost: "reading the code",
        why: "every thread of the block (or of the mask) has to reach the same barrier",
    }
}

fn again(program: &[String], tool: &'static str) -> Next {
    Next {
        id: "sanitizer-again",
        title: "Run the tool again after each change",
        command: words(&["compute-sanitizer", "--tool", tool, "--print-limit", "3"], program),
        cost: "10 to 100 times slower",
        why: "the first finding counts; later ones may follow from it",
    }
}

fn refused_calls(program: &[String]) -> Next {
    Next {
        id: "refused-calls",
        title: "List every call that CUDA refuses, with its host stack",
        command: words(&["compute-sanitizer", "--tool", "memcheck", "--report-api-errors", "all"], program),
        cost: "10 to 100 times slower; some libraries probe with calls that fail by design",
        why: "the call that reports an error need not be the one that caused it",
    }
}

fn first_refusal() -> Next {
    Next {
        id: "check-each-call",
        title: "Check the status of each call before the reported one, and each launch with cudaGetLastError",
        command: None,
        cost: "reading the code",
        why: "an unchecked error stays until the next call asks; a pointer freed twice, a host pointer or a dead stream are the usual arguments",
    }
}

fn limits() -> Next {
    Next {
        id: "launch-limits",
        title: "Hold grid, block, registers and shared memory against this GPU's limits",
        command: None,
        cost: "none",
        why: "a launch past a limit never starts: grid y and z end at 65,535, a block at 1,024 threads, and shared memory at what the card has",
    }
}

fn wrong_size() -> Next {
    Next {
        id: "wrong-size",
        title: "Print the sizes that go into that allocation",
        command: None,
        cost: "one run",
        why: "no tuning makes room for it: a factor too many, bytes for elements, a shape taken from another tensor, or an index as a length",
    }
}

/// Whether PyTorch's allocator may be the one that ran out; none where nothing tells.
fn pytorch(case: &Case) -> Option<bool> {
    match framework(case) {
        Framework::PyTorch => Some(true),
        Framework::Unknown | Framework::Horovod => case
            .pick(|data| matches!(data, Data::Traceback(_)).then_some(true))
            .map(|(_, _, found)| found)
            .next(),
        Framework::Jax | Framework::TensorFlow => Some(false),
    }
}

/// What the message's own numbers point to comes first.
fn gpu_memory(program: &[String], pytorch: Option<bool>, shortage: Option<&Shortage>) -> Vec<Next> {
    let reason = shortage.map(|shortage| shortage.reason);
    if reason == Some(Reason::LargerThanGpu) {
        return vec![wrong_size()];
    }
    let others = shortage.map(|shortage| shortage.refused.others.as_slice()).unwrap_or_default();
    let mut steps = vec![tenants(others)];
    let is_python = pytorch.unwrap_or_else(|| {
        shortage.is_some_and(|shortage| shortage.refused.producer == "pytorch")
            || program.iter().any(|word| word.ends_with(".py") || word.contains("python"))
    });
    if is_python {
        let at = if reason == Some(Reason::Pieces) { 0 } else { steps.len() };
        steps.insert(at, expandable_segments(program));
    }
    steps.push(Next {
        id: "smaller-batch",
        title: "Rerun with half of the batch or of the sequence",
        command: None,
        cost: "one run",
        why: "a need that halves with it is activations; one that stays is weights, optimiser state or a leak",
    });
    steps
}

/// Who else is there; where the message names them, what they are.
fn tenants(others: &[(u32, u128)]) -> Next {
    if others.is_empty() {
        return Next {
            id: "gpu-tenants",
            title: "See who else holds memory on that GPU",
            command: words(
                &["nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv"],
                &[],
            ),
            cost: "none",
            why: "a process left from an earlier run holds its memory until it ends",
        };
    }
    let pids: Vec<String> = others.iter().map(|(pid, _)| pid.to_string()).collect();
    Next {
        id: "gpu-tenants",
        title: "See what the other process on that GPU is",
        command: words(&["ps", "-o", "pid,user,lstart,args", "-p", &pids.join(",")], &[]),
        cost: "none; in a container, ask the host",
        why: "the message names it with what it holds: a job left from an earlier run, or a neighbour that belongs elsewhere",
    }
}

fn expandable_segments(program: &[String]) -> Next {
    Next {
        id: "expandable-segments",
        title: "Rerun with expandable segments",
        command: words(&["env", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"], program),
        cost: "none; turn it off under compute-sanitizer",
        why: "if it passes, memory was in pieces; if it fails at the same size, the request is too large",
    }
}

/// JAX and TensorFlow take most of a GPU at their start, so that another process finds none (their documentation of GPU memory).
fn preallocation(program: &[String], framework: Framework) -> Option<Next> {
    let setting = match framework {
        Framework::Jax => "XLA_PYTHON_CLIENT_PREALLOCATE=false",
        Framework::TensorFlow => "TF_FORCE_GPU_ALLOW_GROWTH=true",
        Framework::PyTorch | Framework::Horovod | Framework::Unknown => return None,
    };
    Some(Next {
        id: "preallocation",
        title: "Rerun with memory taken as it is needed",
        command: words(&["env", setting], program),
        cost: "slower allocations, more fragments",
        why: "nvidia-smi then shows what the program really uses; a pass means that the share taken at the start did not fit beside another process",
    })
}

fn host_memory() -> Next {
    Next {
        id: "memory-limit",
        title: "Read the limit of the container and what it used at most",
        command: words(&["cat", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.peak"], &[]),
        cost: "none; inside the container, with cgroup 2",
        why: "a container is killed at its own limit while the node still has memory",
    }
}

fn who_grew() -> Next {
    Next {
        id: "who-grew",
        title: "Rerun with fewer DataLoader workers and watch each process",
        command: None,
        cost: "slower loading",
        why: "the killed process is the largest, not always the one that grew; each worker holds a copy of what it touches",
    }
}

fn kernel_log() -> Next {
    Next {
        id: "kernel-log",
        title: "Add the kernel log of that node and time",
        command: words(&["dmesg", "-T"], &[]),
        cost: "none; may need root",
        why: "if the kernel's OOM killer sent the signal, it says so there and nowhere else",
    }
}

fn sender() -> Next {
    Next {
        id: "signal-sender",
        title: "Ask scheduler and launcher why they ended the job",
        command: None,
        cost: "none",
        why: "a time limit, preemption, an eviction or the failure of another rank ends a healthy process",
    }
}

fn has_kernel_log(case: &Case) -> bool {
    case.pick(|data| matches!(data, Data::Xid(_) | Data::OomKill(_)).then_some(())).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_class_of_these_is_left_without_a_step() {
        let program = ["./crash".to_owned(), "leak".to_owned()];
        for class in [
            FailureClass::Race,
            FailureClass::Leak,
            FailureClass::UninitializedRead,
            FailureClass::BarrierError,
            FailureClass::ApiError,
            FailureClass::LaunchConfig,
            FailureClass::GpuOom,
            FailureClass::HostOom,
            FailureClass::Killed,
            FailureClass::GraphCapture,
            FailureClass::CompileError,
        ] {
            let found = steps(&Case::default(), class, &program);
            assert!(!found.is_empty(), "{class:?}");
            assert!(found.iter().all(|step| !step.cost.is_empty() && !step.why.is_empty()));
        }
        assert!(steps(&Case::default(), FailureClass::Nccl, &program).is_empty());
    }

    #[test]
    fn expandable_segments_are_for_pytorch_alone() {
        let has = |program: &[&str]| {
            let program: Vec<String> = program.iter().map(|word| (*word).to_owned()).collect();
            gpu_memory(&program, None, None).iter().any(|step| step.id == "expandable-segments")
        };
        assert!(has(&["torchrun", "train.py"]) && !has(&["./crash", "oom"]) && !has(&["your-command"]));
        let unnamed = gpu_memory(&["your-command".to_owned()], Some(true), None);
        assert!(unnamed.iter().any(|step| step.id == "expandable-segments"));
    }
}
