//! Compilers that failed, and launches refused for resources: Triton, ptxas, nvcc, NVRTC, inductor, ninja, linkers.
//!
//! ```text
//! triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 2097152, Hardware limit: 232448.
//! ```
//!
//! In: a line, and the message lines below it. Out: [`Data::Compile`] with compiler, message and place, or
//! [`Data::Launch`] with the resource. It leaves a wrapper around another failure (`BackendCompilerFailed` over a CUDA
//! error) to the reader of that failure.

use super::event::{CompileFailure, Data, LaunchRefused, Place};
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;
use super::place;
use crate::tables::cuda_status;

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &[
    "out of resource: ",
    "uses too much",
    "ptxas ",
    "nvcc fatal",
    "nvcc error",
    "CompilationError: ",
    "CompileTimeAssertionFailure",
    "CompileException",
    "CompileError: ",
    "PassManager::run failed",
    "ninja: build stopped",
    "Error building extension",
    "InductorError",
    "BackendCompilerFailed",
    "): error: ",
    ": fatal error: ",
    "ld returned 1 exit",
    "/ld: cannot find",
    "nvrtc: error",
    "NVRTC compilation",
    "NVRTC_ERROR_COMPILATION",
    "in the compilation of",
    "Ptx assembly aborted",
    "Unsupported gpu architecture",
    "LLVM ERROR: ",
];

static OUT_OF_RESOURCE: Pattern = Pattern::new(
    r"out of resource: ([\w ]+?)[,.:] *Required: (\d+), *Hardware limit: (\d+)|out of resource: ([\w ]+)",
);
static TOO_MUCH: Pattern = Pattern::new(
    r"uses too much (shared data|global constant data|parameter space|local data|shared memory)\s*\((0x[0-9a-fA-F]+|\d+) bytes(?: \+ \S+ bytes system)?, (0x[0-9a-fA-F]+|\d+)(?: bytes)? max",
);
static PTXAS: Pattern = Pattern::new(r"ptxas (?:\S+, line \d+; )?(fatal|error)\b\s*:? *(.*)$");
static LLVM: Pattern = Pattern::new(
    r"LLVM ERROR: (Cannot select.*|.*[Uu]nsupported .*|.*not supported.*|unable to translate.*)$",
);
static NVCC: Pattern = Pattern::new(r"nvcc (?:fatal|error)\s*: *(.*)$");
static EDG: Pattern = Pattern::new(r"^(?:.*\s)?(\S+?)\((\d+)\): error:? (.*)$");
static GCC: Pattern = Pattern::new(r"^(\S+?):(\d+):(?:\d+:)? fatal error: (.*)$");
static TRITON: Pattern = Pattern::new(
    r"(?:^|[\s.])(CompilationError|CompileTimeAssertionFailure|UnsupportedLanguageConstruct): ?(?:at (\d+):(\d+):?)?(.*)$",
);
static WRAPPER: Pattern = Pattern::new(r"(BackendCompilerFailed|InductorError|CppCompileError)\b:? ?(.*)$");
static SPEAKS_OF: Pattern =
    Pattern::new(r"(?i)ptxas (?:info|warning|advisory)|\bexcept\b|\bimport\b|\bretry|^\s*(?:raise|#|//)");

/// Lines of a message that are looked at below its head.
const MESSAGE_LINES: usize = 24;

/// Reads a failed compilation or a refused launch.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    if SPEAKS_OF.is_match(body) {
        return Taken::No;
    }
    // The assembler refuses a kernel before anything is launched.
    let data = if let Some(refused) = refused(body).filter(|_| !PTXAS.is_match(body)) {
        Data::Launch(refused)
    } else if let Some(failure) = triton(line, cx).or_else(|| wrapper(line, cx)).or_else(|| compiler(body)) {
        Data::Compile(failure)
    } else {
        return Taken::No;
    };
    cx.push(line, data);
    Taken::Part
}

/// A launch that asks for more than the GPU has.
fn refused(body: &str) -> Option<LaunchRefused> {
    if let Some(found) = OUT_OF_RESOURCE.captures(body) {
        let part = |index| found.get(index).map(|part| part.as_str());
        return Some(LaunchRefused {
            resource: part(1).or_else(|| part(4))?.trim().to_owned(),
            required: part(2).and_then(|digits| digits.parse().ok()),
            limit: part(3).and_then(|digits| digits.parse().ok()),
        });
    }
    let found = TOO_MUCH.captures(body)?;
    let part = |index| found.get(index).map_or("", |part| part.as_str());
    let resource = if part(1).starts_with("shared") { "shared memory" } else { part(1) };
    Some(LaunchRefused { resource: resource.to_owned(), required: number(part(2)), limit: number(part(3)) })
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Triton's error: position in the kernel, the kernel's source, carets, then the message as the last line of the block.
fn triton(line: &Line<'_>, cx: &Cx<'_>) -> Option<CompileFailure> {
    let body = line.body();
    if body.contains("PassManager::run failed") {
        let message = "PassManager::run failed".to_owned();
        return Some(CompileFailure { compiler: "triton", message, place: place::find(body) });
    }
    let found = TRITON.captures(body)?;
    let part = |index| found.get(index).map_or("", |part| part.as_str());
    let mut message = part(4).trim().to_owned();
    if message.is_empty() {
        let mut marked = false;
        for next in cx.after_in_stream(line, MESSAGE_LINES) {
            let text = next.body().trim();
            if marked && !text.is_empty() {
                message = text.to_owned();
                break;
            }
            marked |= !text.is_empty() && text.chars().all(|character| character == '^');
        }
    }
    let line = part(2).parse().ok();
    let place = line.map(|line| Place { line: Some(line), ..Place::default() });
    Some(CompileFailure { compiler: "triton", message, place })
}

/// PyTorch's wrapper; its message says what failed inside. A GPU failure inside is no compile failure.
fn wrapper(line: &Line<'_>, cx: &Cx<'_>) -> Option<CompileFailure> {
    let body = line.body();
    let found = WRAPPER.captures(body)?;
    let mut message = found.get(2).map_or("", |part| part.as_str()).trim().to_owned();
    if message.is_empty() || message.ends_with("raised:") {
        let below = cx
            .after_in_stream(line, 3)
            .map(|next| next.body().trim().to_owned())
            .find(|text| !text.is_empty());
        message = below.unwrap_or(message);
    }
    let is_other =
        ["CUDA error", "CUDA out of memory", "OutOfMemory", "Triton Error", "out of resource", "NCCL"]
            .iter()
            .any(|mark| message.contains(mark))
            || cuda_status::text_in(&message)
                .is_some_and(|found| found.status.wording == cuda_status::Wording::CudaOnly);
    (!is_other).then_some(CompileFailure { compiler: "inductor", message, place: None })
}

/// A compiler, assembler, linker or build tool.
fn compiler(body: &str) -> Option<CompileFailure> {
    let failure = |compiler, message: &str, place| {
        Some(CompileFailure { compiler, message: message.trim().to_owned(), place })
    };
    if let Some(found) = PTXAS.captures(body) {
        return failure("ptxas", found.get(2).map_or("", |part| part.as_str()), place::find(body));
    }
    if let Some(message) = LLVM.group(body, 1) {
        return failure("llvm", message, None);
    }
    if let Some(message) = NVCC.group(body, 1) {
        return failure("nvcc", message, None);
    }
    if body.contains("nvrtc: error") || body.contains("NVRTC") || body.contains("CompileException") {
        return failure("nvrtc", body, place::find(body));
    }
    if let Some(found) = EDG.captures(body) {
        let part = |index| found.get(index).map_or("", |part| part.as_str());
        let compiler =
            if part(1).contains("default_program") || part(1).contains("nvrtc") { "nvrtc" } else { "nvcc" };
        let place = Place { file: part(1).to_owned(), line: part(2).parse().ok(), function: None };
        return failure(compiler, part(3), Some(place));
    }
    if let Some(found) = GCC.captures(body) {
        let part = |index| found.get(index).map_or("", |part| part.as_str());
        let place = Place { file: part(1).to_owned(), line: part(2).parse().ok(), function: None };
        return failure("gcc", part(3), Some(place));
    }
    if body.contains("in the compilation of") && body.contains("error") {
        return failure("nvcc", body, None);
    }
    if body.contains("ninja: build stopped") || body.contains("Error building extension") {
        return failure("ninja", body, None);
    }
    if body.contains("ld returned 1 exit") || body.contains("/ld: cannot find") {
        return failure("linker", body, None);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::event::InputId;
    use crate::read::lines::segments;

    fn first(log: &str) -> Option<Data> {
        let bytes = log.as_bytes();
        let mut cx = Cx::new(InputId(0), bytes);
        let end = log.find('\n').unwrap_or(log.len());
        read(&segments(bytes, 1, 0, end)[0].parse(InputId(0)), &mut cx);
        cx.into_events().into_iter().map(|event| event.data).next()
    }

    fn compile(log: &str) -> (&'static str, String, Option<u32>) {
        match first(log) {
            Some(Data::Compile(failure)) => {
                (failure.compiler, failure.message, failure.place.and_then(|place| place.line))
            }
            other => panic!("{log}: {other:?}"),
        }
    }

    #[test]
    fn refused_launches_name_the_resource() {
        let expected = |required, limit| {
            Some(Data::Launch(LaunchRefused {
                resource: "shared memory".to_owned(),
                required: Some(required),
                limit: Some(limit),
            }))
        };
        assert_eq!(
            first(
                "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 2097152, Hardware limit: 232448. Reducing block sizes or `num_stages` may help."
            ),
            expected(2_097_152, 232_448)
        );
        assert_eq!(
            first("Entry function 'k' uses too much shared data (0x12000 bytes, 0xc000 max)"),
            expected(0x12000, 0xc000)
        );
    }

    #[test]
    fn every_compiler_is_known_by_its_words() {
        let table = [
            (
                "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'",
                "ptxas",
                "Value 'sm_120' is not defined for option 'gpu-name'",
                None,
            ),
            (
                "nvcc fatal   : Unsupported gpu architecture 'compute_120'",
                "nvcc",
                "Unsupported gpu architecture 'compute_120'",
                None,
            ),
            (
                "/src/ops.cu(12): error: identifier \"x\" is undefined",
                "nvcc",
                "identifier \"x\" is undefined",
                Some(12),
            ),
            (
                "/src/ops.cpp:3:10: fatal error: cuda.h: No such file or directory",
                "gcc",
                "cuda.h: No such file or directory",
                Some(3),
            ),
            ("default_program(7): error: expected a \";\"", "nvrtc", "expected a \";\"", Some(7)),
            (
                "ninja: build stopped: subcommand failed.",
                "ninja",
                "ninja: build stopped: subcommand failed.",
                None,
            ),
            (
                "collect2: error: ld returned 1 exit status",
                "linker",
                "collect2: error: ld returned 1 exit status",
                None,
            ),
            (
                "ptxas error   : Entry function 'k' uses too much shared data (0xc400 bytes, 0xc000 max)",
                "ptxas",
                "Entry function 'k' uses too much shared data (0xc400 bytes, 0xc000 max)",
                None,
            ),
            (
                "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.tcgen05.wait.st",
                "llvm",
                "Cannot select: intrinsic %llvm.nvvm.tcgen05.wait.st",
                None,
            ),
            ("RuntimeError: PassManager::run failed", "triton", "PassManager::run failed", None),
        ];
        for (text, compiler, message, line) in table {
            assert_eq!(compile(text), (compiler, message.to_owned(), line), "{text}");
        }
    }

    #[test]
    fn tritons_message_stands_under_the_carets() {
        let log = "triton.compiler.errors.CompilationError: at 12:10:\n    x = tl.load(p)\n    y = x @ 3\n        ^\nAssertionError('no')";
        assert_eq!(compile(log), ("triton", "AssertionError('no')".to_owned(), Some(12)));
    }

    #[test]
    fn wrappers_around_gpu_failures_are_left_to_them() {
        assert_eq!(
            first(
                "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nRuntimeError: CUDA error: an illegal memory access was encountered"
            ),
            None
        );
        let (compiler, message, _) = compile(
            "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nAssertionError: bad layout",
        );
        assert_eq!((compiler, message.as_str()), ("inductor", "AssertionError: bad layout"));
    }

    #[test]
    fn notes_of_compilers_are_no_failures() {
        for text in [
            "ptxas info    : 0 bytes gmem",
            "from triton import CompilationError",
            "    raise CompilationError(x)",
        ] {
            assert_eq!(first(text), None, "{text}");
        }
    }
}
