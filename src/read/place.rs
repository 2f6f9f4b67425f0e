//! Source places inside messages: `…/CUDAException.cpp:43`, `file=x.cc ; line=73`, `at line 57 in file /src/csrc/ops.cu`.
//!
//! In: a message. Out: the first place that it names. It leaves Python frames and sanitizer records to their readers.

use super::event::Place;
use super::pattern::Pattern;

/// Extensions of source files that messages name.
macro_rules! source_file {
    () => {
        r"((?:[A-Za-z]:)?[^\s:;,()\[\]'\x22`=<>]*?[\w~-]\.(?:cuh|cu|cpp|cxx|cc|C|c|hpp|hxx|hh|h|inl|inc|py|pyx|rs|jl|mm|hip))"
    };
}

static NAMED: Pattern = Pattern::new(r"file=\s*([^\s;,]+)[\s;,]+line=\s*(\d+)");
static LINE_IN_FILE: Pattern = Pattern::new(
    r"(?:(?:at |in )?line:? |at L:)(\d+) (?:in|of) (?:file:? '?([^\s']+)|'?([^\s']+\.(?:cuh?|cpp|cc|hpp|h|c|py)))",
);
static FILE_LINE: Pattern = Pattern::new(concat!(
    source_file!(),
    r#"['\x22]?(?:\s?:\s?|\(|, ?(?:line )?|\s(?:at |in |on )?line:? ?|\s)(\d{1,6})\b"#
));
static QUOTED_FILE: Pattern = Pattern::new(r#"[Ff]ile '([^']+)'(?: in|,| at)? line:? (\d+)"#);
static TENSORRT: Pattern = Pattern::new(concat!(r"\[", source_file!(), r"::?(~?[\w:<>~]+?)::?(\d{1,6})\]"));
static FUNCTION: Pattern = Pattern::new(r"in function:? [`']?([\w:~<>]+)");

/// The first source place in `text`.
#[must_use]
pub fn find(text: &str) -> Option<Place> {
    if let Some(found) = TENSORRT.captures(text) {
        return Some(Place {
            file: group(&found, 1),
            line: group(&found, 3).parse().ok(),
            function: Some(group(&found, 2)),
        });
    }
    let function = FUNCTION.group(text, 1).map(str::to_owned);
    if let Some(found) = LINE_IN_FILE.captures(text) {
        let file = found.get(2).or_else(|| found.get(3)).map_or("", |part| part.as_str());
        return Some(Place { file: file.to_owned(), line: group(&found, 1).parse().ok(), function });
    }
    let found =
        NAMED.captures(text).or_else(|| QUOTED_FILE.captures(text)).or_else(|| FILE_LINE.captures(text))?;
    Some(Place { file: group(&found, 1), line: group(&found, 2).parse().ok(), function })
}

fn group(found: &regex::Captures<'_>, index: usize) -> String {
    found.get(index).map(|part| part.as_str().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Option<(String, Option<u32>)> {
        find(text).map(|place| (place.file, place.line))
    }

    #[test]
    fn every_spelling_of_a_place_is_read() {
        let table = [
            (
                "Exception raised from query at /pytorch/c10/cuda/CUDAEvent.h:111 (most",
                "/pytorch/c10/cuda/CUDAEvent.h",
                111,
            ),
            (
                "THCudaCheck FAIL file=/pytorch/aten/src/THC/THCGeneral.cpp line=70 error=77",
                "/pytorch/aten/src/THC/THCGeneral.cpp",
                70,
            ),
            ("GPU=0 ; hostname=h ; file=/ort/cuda_call.cc ; line=73 ; expr=x", "/ort/cuda_call.cc", 73),
            ("was encountered at line 57 in file /src/csrc/ops.cu", "/src/csrc/ops.cu", 57),
            ("(at C:\\src\\gemm_w4a4_launch_impl.cuh:120)", "C:\\src\\gemm_w4a4_launch_impl.cuh", 120),
            ("CUDA error 716 [/x/util_device.cuh, 351]: misaligned", "/x/util_device.cuh", 351),
            ("GPUassert: an illegal memory access was encountered main.cu 42", "main.cu", 42),
            (
                "void wrapper(int, float*) at L:43 in _ext_src/src/group_points_gpu.cu",
                "_ext_src/src/group_points_gpu.cu",
                43,
            ),
            ("x.cu(123) : error", "x.cu", 123),
            ("…GpuSoftBodyView.cpp: 489", "…GpuSoftBodyView.cpp", 489),
            ("mx_device.cpp :10106: trapping", "mx_device.cpp", 10106),
            ("CUDA error in file 'src/a.cu' in line 345 : an", "src/a.cu", 345),
        ];
        for (text, file, line) in table {
            assert_eq!(place(text), Some((file.to_owned(), Some(line))), "{text}");
        }
        assert_eq!(place("no place at 12:30"), None);
    }

    #[test]
    fn functions_come_along() {
        let found = find("1: [cudaResources.cpp::~ScopedCudaEvent::24] Error Code 1").unwrap();
        let expected = Place {
            file: "cudaResources.cpp".to_owned(),
            line: Some(24),
            function: Some("~ScopedCudaEvent".to_owned()),
        };
        assert_eq!(found, expected);
        let found = find("([cask_fusion.cpp:exec:417] Platform (Cuda) error)").unwrap();
        assert_eq!((found.line, found.function.as_deref()), (Some(417), Some("exec")));
        let found =
            find("current device: 7, in function ggml_backend_cuda_synchronize at /g/ggml-cuda.cu:2461")
                .unwrap();
        assert_eq!(
            (found.line, found.function.as_deref()),
            (Some(2461), Some("ggml_backend_cuda_synchronize"))
        );
    }
}
