//! Device-side assertions: CUDA's own line, PyTorch's old and new forms, Triton's, and the report of `TORCH_USE_CUDA_DSA`.
//!
//! ```text
//! crash.cu:23: void asserting(const int *, int): block: [0,0,0], thread: [0,0,0] Assertion `index[i] < n` failed.
//! ```
//!
//! In: a line (the DSA report: its lines). Out: [`Data::DeviceAssert`], one for all lines of the same assertion, with a
//! count. It leaves the status 710 that follows to the CUDA status reader, and assertions of host code to others.

use super::event::{Data, DeviceAssert, Dim3, Place};
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &[
    "], thread: [",
    "overflow detected for operation",
    "device assertion failed",
    "GPU assertion failure message",
    "Device-side assertion `",
    "thrown during kernel execution",
];

static FORM: Pattern = Pattern::new(
    r"^(.*?):(\d+): ?(.*?):? ?block: \[(\d+), ?(\d+), ?(\d+)\], thread: \[(\d+), ?(\d+), ?(\d+)\] ?(.*)$",
);
static EXPRESSION: Pattern =
    Pattern::new(r"[Aa]ssertion [`'\x22](.*)[`'\x22] ?failed|[Aa]ssertion (.*?) ?failed|^(.+)$");
static TRITON: Pattern =
    Pattern::new(r#"device assertion failed:? ?['"]?(.*?)['"]?(?:,? in (\S+))?(?: at (\S+?):(\d+))?$"#);
static HIP: Pattern = Pattern::new(r"^(.*?):(\d+): (.*?): Device-side assertion `(.*)' failed");
static JULIA: Pattern = Pattern::new(
    r"a (\w+) was thrown during kernel execution(?: on thread (\(\d+, \d+, \d+\)) in block (\(\d+, \d+, \d+\)))?",
);
static DIMS: Pattern = Pattern::new(r"[\[(](\d+), ?(\d+), ?(\d+)[\])]");
static OVERFLOW: Pattern = Pattern::new(r"\b[us]?int\d+ overflow detected for operation \w+");

/// Events looked back at for the same assertion: several assertions of several ranks may alternate.
const RECENT: usize = 32;
/// Lines of a DSA report about one assertion.
const REPORT_LINES: usize = 24;

/// Reads an assertion line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    if body.contains("GPU assertion failure message") {
        return report(line, cx);
    }
    let Some(mut found) = parse(body) else { return Taken::No };
    // A lost newline leaves several on one line; they differ in the thread only.
    found.count = (body.matches("], thread: [").count() as u64).max(1);
    fold(found, line, cx);
    Taken::Whole
}

/// Adds the assertion, or counts it where the same one was added a moment ago.
fn fold(found: DeviceAssert, line: &Line<'_>, cx: &mut Cx<'_>) {
    let same = cx.recent_events_mut(RECENT).iter_mut().rev().find_map(|event| match &mut event.data {
        Data::DeviceAssert(known)
            if known.place == found.place
                && known.expression == found.expression
                && (event.origin.rank, event.origin.local_rank, event.origin.pid)
                    == (line.origin.rank, line.origin.local_rank, line.origin.pid) =>
        {
            Some((known, &mut event.span))
        }
        _ => None,
    });
    match same {
        Some((known, span)) => {
            known.count = known.count.saturating_add(found.count);
            span.lines =
                u32::try_from(line.number.saturating_sub(span.line)).unwrap_or(u32::MAX).saturating_add(1);
        }
        None => cx.push(line, Data::DeviceAssert(found)),
    }
}

/// The assertion that a line prints.
fn parse(body: &str) -> Option<DeviceAssert> {
    if let Some(found) = FORM.captures(body) {
        let part = |index| found.get(index).map_or("", |part| part.as_str());
        let rest = part(10);
        let expression = EXPRESSION
            .captures(rest)
            .and_then(|found| found.get(1).or_else(|| found.get(2)).or_else(|| found.get(3)))
            .map_or("", |part| part.as_str());
        return Some(DeviceAssert {
            place: place(part(1), part(2), part(3)),
            block: Some([number(part(4)), number(part(5)), number(part(6))]),
            thread: Some([number(part(7)), number(part(8)), number(part(9))]),
            expression: expression.to_owned(),
            count: 1,
            int32_overflow: is_overflow(expression),
        });
    }
    if let Some(found) = HIP.captures(body) {
        let part = |index| found.get(index).map_or("", |part| part.as_str());
        return Some(DeviceAssert {
            place: place(part(1), part(2), part(3)),
            expression: part(4).to_owned(),
            count: 1,
            ..DeviceAssert::default()
        });
    }
    if let Some(found) = JULIA.captures(body) {
        let part = |index| found.get(index).map_or("", |part| part.as_str());
        return Some(DeviceAssert {
            thread: dims(part(2)),
            block: dims(part(3)),
            expression: part(1).to_owned(),
            count: 1,
            ..DeviceAssert::default()
        });
    }
    let found = TRITON.captures(body);
    let overflow = OVERFLOW.find(body).map(|found| found.as_str());
    let part = |index| found.as_ref().and_then(|found| found.get(index)).map_or("", |part| part.as_str());
    if found.is_none() && overflow.is_none() {
        return None;
    }
    let place = if part(3).is_empty() {
        super::place::find(body).unwrap_or_default()
    } else {
        place(part(3), part(4), part(2))
    };
    let expression = overflow.unwrap_or(part(1)).to_owned();
    Some(DeviceAssert {
        place,
        int32_overflow: is_overflow(&expression),
        expression,
        count: 1,
        ..DeviceAssert::default()
    })
}

fn is_overflow(expression: &str) -> bool {
    expression.contains("int32 overflow detected")
}

fn place(file: &str, line: &str, function: &str) -> Place {
    let function = function.trim().trim_end_matches(':').trim();
    Place {
        file: file.trim().to_owned(),
        line: line.parse().ok(),
        function: (!function.is_empty() && function != "unknown").then(|| function.to_owned()),
    }
}

fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or(0)
}

/// One assertion of a `TORCH_USE_CUDA_DSA` report: `name = value` lines.
fn report(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let mut found = DeviceAssert { count: 1, ..DeviceAssert::default() };
    let mut lines = 1;
    field(line.body(), &mut found);
    for next in cx.after_in_stream(line, REPORT_LINES) {
        let body = next.body();
        if !body.contains(" = ") || body.contains("GPU assertion failure message") {
            break;
        }
        field(body, &mut found);
        lines += 1;
    }
    found.int32_overflow = is_overflow(&found.expression);
    cx.push_block(line, lines, Data::DeviceAssert(found));
    Taken::Whole
}

fn field(body: &str, found: &mut DeviceAssert) {
    let Some((name, value)) = body.split_once(" = ") else { return };
    let value = value.trim();
    match name.trim() {
        "GPU assertion failure message" => value.clone_into(&mut found.expression),
        "File containing assertion" => {
            let (file, line) = value.rsplit_once(':').unwrap_or((value, ""));
            found.place.file = file.to_owned();
            found.place.line = line.parse().ok().or(found.place.line);
        }
        "Line number of assertion" | "Line containing assertion" => found.place.line = value.parse().ok(),
        "Device function containing assertion" => found.place.function = Some(value.to_owned()),
        "Thread ID that failed assertion" => found.thread = dims(value),
        "Block ID that failed assertion" => found.block = dims(value),
        _ => {}
    }
}

fn dims(value: &str) -> Option<Dim3> {
    let found = DIMS.captures(value)?;
    let part = |index| found.get(index).map_or(0, |part| number(part.as_str()));
    Some([part(1), part(2), part(3)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::event::{Event, InputId};
    use crate::read::lines::segments;

    fn events(log: &str) -> Vec<Event> {
        let bytes = log.as_bytes();
        let mut cx = Cx::new(InputId(0), bytes);
        let mut start = 0;
        for (index, text) in log.split('\n').enumerate() {
            for segment in segments(bytes, index as u64 + 1, start, start + text.len()) {
                if LITERALS.iter().any(|literal| text.contains(literal)) {
                    read(&segment.parse(InputId(0)), &mut cx);
                }
            }
            start += text.len() + 1;
        }
        cx.into_events()
    }

    fn asserts(log: &str) -> Vec<DeviceAssert> {
        events(log)
            .into_iter()
            .map(|event| match event.data {
                Data::DeviceAssert(found) => found,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_run_of_one_assertion_is_one_event() {
        let log = "crash.cu:23: void asserting(const int *, int): block: [0,0,0], thread: [0,0,0] Assertion `index[i] < n` failed.\n\
                   crash.cu:23: void asserting(const int *, int): block: [0,0,0], thread: [1,0,0] Assertion `index[i] < n` failed.\n\
                   crash.cu:23: void asserting(const int *, int): block: [0,0,0], thread: [2,0,0] Assertion `index[i] < n` failed.";
        let expected = DeviceAssert {
            place: Place {
                file: "crash.cu".to_owned(),
                line: Some(23),
                function: Some("void asserting(const int *, int)".to_owned()),
            },
            block: Some([0, 0, 0]),
            thread: Some([0, 0, 0]),
            expression: "index[i] < n".to_owned(),
            count: 3,
            int32_overflow: false,
        };
        let found = events(log);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].data, Data::DeviceAssert(expected));
        assert_eq!((found[0].span.line, found[0].span.lines), (1, 3));
    }

    #[test]
    fn pytorchs_forms_of_all_ages_are_read() {
        let table = [
            (
                "/pytorch/aten/src/ATen/native/cuda/IndexKernelUtils.cu:16: vectorized_gather_kernel: block: [273,0,0], thread: [31,0,0] Assertion `ind >=0 && ind < ind_dim_size && \"vectorized gather kernel index out of bounds\"` failed.",
                "/pytorch/aten/src/ATen/native/cuda/IndexKernelUtils.cu",
                16,
                Some("vectorized_gather_kernel"),
                "ind >=0 && ind < ind_dim_size && \"vectorized gather kernel index out of bounds\"",
            ),
            (
                "C:\\b\\aten\\src\\ATen\\native\\cuda\\Indexing.cu:1284: block: [3,0,0], thread: [31,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
                "C:\\b\\aten\\src\\ATen\\native\\cuda\\Indexing.cu",
                1284,
                None,
                "srcIndex < srcSelectDimSize",
            ),
            (
                "/p/IndexKernel.cu:53: lambda [](int)->auto::operator()(int)->auto: block: [3,0,0], thread: [31,0,0] Assertion `index >= -sizes[i]` failed.",
                "/p/IndexKernel.cu",
                53,
                Some("lambda [](int)->auto::operator()(int)->auto"),
                "index >= -sizes[i]",
            ),
            (
                "/p/THCTensorIndex.cu:361: void indexSelectLargeIndex(TensorInfo<T, IndexType>, int) [with T = float, int DstDim = 2]: block: [3,0,0], thread: [31,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
                "/p/THCTensorIndex.cu",
                361,
                Some(
                    "void indexSelectLargeIndex(TensorInfo<T, IndexType>, int) [with T = float, int DstDim = 2]",
                ),
                "srcIndex < srcSelectDimSize",
            ),
        ];
        for (text, file, line, function, expression) in table {
            let found = asserts(text).remove(0);
            assert_eq!(found.place.file, file);
            assert_eq!(found.place.line, Some(line));
            assert_eq!(found.place.function.as_deref(), function, "{text}");
            assert_eq!(found.expression, expression);
            assert_eq!(found.thread, Some([31, 0, 0]));
        }
    }

    #[test]
    fn tritons_overflow_names_its_place() {
        let log = "/home/user/lora/py/triton_cases.py:18: unknown: block: [1820,0,0], thread: [64,0,0] Assertion `int32 overflow detected for operation mul` failed.";
        let expected = DeviceAssert {
            place: Place {
                file: "/home/user/lora/py/triton_cases.py".to_owned(),
                line: Some(18),
                function: None,
            },
            block: Some([1820, 0, 0]),
            thread: Some([64, 0, 0]),
            expression: "int32 overflow detected for operation mul".to_owned(),
            count: 1,
            int32_overflow: true,
        };
        assert_eq!(asserts(log), [expected]);
        let julia = asserts(
            "ERROR: a BoundsError was thrown during kernel execution on thread (33, 1, 1) in block (1, 2, 1)",
        )
        .remove(0);
        assert_eq!(
            (julia.expression.as_str(), julia.thread, julia.block),
            ("BoundsError", Some([33, 1, 1]), Some([1, 2, 1]))
        );
        let old = asserts("device assertion failed: 'x < n', in kernel at k.py:12").remove(0);
        assert_eq!(
            (old.place.file.as_str(), old.place.line, old.expression.as_str()),
            ("k.py", Some(12), "x < n")
        );
    }

    #[test]
    fn ranks_are_not_folded_together() {
        let log = "[rank0]: a.cu:1: k: block: [0,0,0], thread: [0,0,0] Assertion `x` failed.\n\
                   [rank0]: a.cu:2: k: block: [0,0,0], thread: [0,0,0] Assertion `y` failed.\n\
                   [rank0]: a.cu:1: k: block: [0,0,0], thread: [1,0,0] Assertion `x` failed.";
        let counts: Vec<u64> = asserts(log).iter().map(|found| found.count).collect();
        assert_eq!(counts, [2, 1]);
    }

    #[test]
    fn the_dsa_report_is_read_as_one_block() {
        let log = "CUDA device-side assertion failures were found on GPU #0!\n\
                   Assertion failure 0\n\
                   \x20 GPU assertion failure message = CUDA_KERNEL_ASSERT2(i < n)\n\
                   \x20 File containing assertion = /p/a.cu:12\n\
                   \x20 Device function containing assertion = k\n\
                   \x20 Thread ID that failed assertion = [1,2,3]\n\
                   \x20 Block ID that failed assertion = [4,5,6]\n\
                   \x20 Device that launched kernel = 0\n\nnext";
        let expected = DeviceAssert {
            place: Place { file: "/p/a.cu".to_owned(), line: Some(12), function: Some("k".to_owned()) },
            block: Some([4, 5, 6]),
            thread: Some([1, 2, 3]),
            expression: "CUDA_KERNEL_ASSERT2(i < n)".to_owned(),
            count: 1,
            int32_overflow: false,
        };
        assert_eq!(asserts(log), [expected]);
    }
}
