//! The lines that frameworks add under a CUDA error. They are advice, not failures, but what is there and what is missing
//! tells: PyTorch leaves out the "asynchronously reported" pair when launch blocking is on.
//!
//! In: a line. Out: [`Data::Advice`], one a kind. It leaves a command line that sets `CUDA_LAUNCH_BLOCKING=1` alone.

use super::event::{Advice, Data};
use super::lines::{Cx, Line, Taken};

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &[
    "asynchronously reported",
    "For debugging consider",
    "TORCH_USE_CUDA_DSA` to enable",
    "TORCH_USE_HIP_DSA",
    "TORCH_USE_CUDA_DSA",
    "Search for `",
];

/// A mark and the advice that it is.
const MARKS: &[(&str, Advice)] = &[
    ("Search for `cuda", Advice::Search),
    ("Search for `hip", Advice::Search),
    ("errors might be asynchronously reported", Advice::MayBeAsynchronous),
    ("consider passing CUDA_LAUNCH_BLOCKING", Advice::LaunchBlocking),
    ("consider passing AMD_SERIALIZE_KERNEL", Advice::LaunchBlocking),
    ("consider passing HIP_LAUNCH_BLOCKING", Advice::LaunchBlocking),
    ("ompile with `TORCH_USE_CUDA_DSA", Advice::DeviceAssertions),
    ("ompile with `TORCH_USE_HIP_DSA", Advice::DeviceAssertions),
    ("ompile with TORCH_USE_CUDA_DSA", Advice::DeviceAssertions),
];

/// Reads the advice on a line; several where a paste lost its newlines.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    let mut taken = Taken::No;
    for (mark, advice) in MARKS {
        if let Some(at) = body.find(mark) {
            cx.push(line, Data::Advice(*advice));
            let alone = at < 2 && !body.contains("\\n");
            taken = if alone { Taken::Whole } else { Taken::Part };
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::event::InputId;
    use crate::read::lines::segments;

    fn advice(text: &str) -> (Vec<Advice>, Taken) {
        let mut cx = Cx::new(InputId(0), text.as_bytes());
        let line = segments(text.as_bytes(), 1, 0, text.len())[0].parse(InputId(0));
        let taken = read(&line, &mut cx);
        let found = cx
            .into_events()
            .into_iter()
            .map(|event| match event.data {
                Data::Advice(advice) => advice,
                other => panic!("{other:?}"),
            })
            .collect();
        (found, taken)
    }

    #[test]
    fn each_line_is_one_advice() {
        let table = [
            (
                "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/x.html for more information.",
                Advice::Search,
            ),
            (
                "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
                Advice::MayBeAsynchronous,
            ),
            ("For debugging consider passing CUDA_LAUNCH_BLOCKING=1.", Advice::LaunchBlocking),
            ("For debugging consider passing AMD_SERIALIZE_KERNEL=3", Advice::LaunchBlocking),
            ("Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.", Advice::DeviceAssertions),
        ];
        for (text, expected) in table {
            assert_eq!(advice(text).0, [expected], "{text}");
        }
        assert_eq!(advice("CUDA kernel errors might be asynchronously reported").1, Taken::Part);
        assert_eq!(
            advice("Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.").1,
            Taken::Whole
        );
    }

    #[test]
    fn glued_lines_yield_all_and_leave_the_status_to_its_reader() {
        let text = "CUDA error: device-side assert triggered\\nCUDA kernel errors might be asynchronously reported at some other API call.\\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1";
        assert_eq!(advice(text), (vec![Advice::MayBeAsynchronous, Advice::LaunchBlocking], Taken::Part));
    }

    #[test]
    fn a_command_line_is_no_advice() {
        assert_eq!(
            advice("$ CUDA_LAUNCH_BLOCKING=1 TORCH_USE_CUDA_DSA=1 python3 train.py"),
            (Vec::new(), Taken::No)
        );
    }
}
