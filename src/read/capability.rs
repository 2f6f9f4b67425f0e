//! Warnings that the GPU is newer or older than the code, and that the driver is missing or too old. They stand far above
//! the error that they explain.
//!
//! ```text
//! The current PyTorch install supports CUDA capabilities sm_37 sm_50 sm_60.
//! ```
//!
//! In: a line. Out: [`Data::Environment`] facts (`gpu`, `compute_capability`, `built_for`, `unsupported_gpu`), or
//! [`Data::Status`] where the driver can't serve at all. It leaves the error itself to the CUDA status reader.

use super::event::{Data, EnvironmentFact, Status};
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &[
    "CUDA capabilities sm_",
    "with CUDA capability",
    "cuda capability",
    "NVIDIA driver on your system is too old",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "was not compiled with CUDA kernel binaries",
    "but was built for sm",
    "instruction used without targeting",
    "generated on an incompatible device",
    "'sm_",
];

/// `torch.cuda.get_arch_list()`, printed as a list of its own or after a name.
static ARCH_LIST: Pattern = Pattern::new(r"\[((?:'(?:sm|compute)_\w+'(?:, )?)+)\]");
static BUILT_FOR: Pattern = Pattern::new(r"supports CUDA capabilities ((?:(?:sm|compute)_\w+[\s,]*)+)");
static UNSUPPORTED: Pattern =
    Pattern::new(r"^(?:.*?: )?(.+?) with CUDA capability (sm_\w+) is not compatible");
static TOO_OLD: Pattern =
    Pattern::new(r"Found GPU\d* (.+?) which is of (?:cuda|compute) capability (\d+\.\d+)");
static BINARIES: Pattern =
    Pattern::new(r"was not compiled with CUDA kernel binaries compatible with compute capability (\d+\.\d+)");

/// Words of a refusal and who prints it.
const PRINTERS: &[(&str, &str)] = &[
    ("but was built for sm", "xformers"),
    ("instruction used without", "cutlass"),
    ("incompatible device", "tensorrt"),
];

/// Reads a warning.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(list) = BUILT_FOR.group(body, 1) {
        facts.push(("built_for", list.trim().trim_end_matches('.').to_owned()));
    }
    if let Some(list) = ARCH_LIST.group(body, 1) {
        facts.push(("built_for", list.replace(['\'', ','], "")));
    }
    if let Some(found) = UNSUPPORTED.captures(body).or_else(|| TOO_OLD.captures(body)) {
        let part = |index| found.get(index).map(|part| part.as_str().trim().to_owned()).unwrap_or_default();
        facts.push(("gpu", part(1)));
        facts.push(("compute_capability", part(2)));
        facts.push(("unsupported_gpu", part(2)));
    }
    if let Some(capability) = BINARIES.group(body, 1) {
        facts.push(("unsupported_gpu", capability.to_owned()));
    }
    let code = if body.contains("driver on your system is too old") {
        Some(35)
    } else if body.contains("Found no NVIDIA driver") || body.contains("No CUDA GPUs are available") {
        Some(100)
    } else if [
        "but was built for sm",
        "instruction used without targeting",
        "generated on an incompatible device",
    ]
    .iter()
    .any(|mark| body.contains(mark))
    {
        Some(209)
    } else {
        None
    };
    if let Some(code) = code {
        let producer =
            PRINTERS.iter().find(|(mark, _)| body.contains(mark)).map_or("pytorch", |(_, printer)| *printer);
        cx.push(line, Data::Status(Status { code: Some(code), producer, ..Status::default() }));
    } else if facts.is_empty() {
        return Taken::No;
    }
    for (name, value) in facts {
        cx.push(line, Data::Environment(EnvironmentFact { name: name.to_owned(), value }));
    }
    Taken::Part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::event::InputId;
    use crate::read::lines::segments;

    fn data(text: &str) -> Vec<Data> {
        let mut cx = Cx::new(InputId(0), text.as_bytes());
        read(&segments(text.as_bytes(), 1, 0, text.len())[0].parse(InputId(0)), &mut cx);
        cx.into_events().into_iter().map(|event| event.data).collect()
    }

    fn fact(name: &str, value: &str) -> Data {
        Data::Environment(EnvironmentFact { name: name.to_owned(), value: value.to_owned() })
    }

    #[test]
    fn architectures_become_facts() {
        assert_eq!(
            data("The current PyTorch install supports CUDA capabilities sm_37 sm_50 sm_60."),
            [fact("built_for", "sm_37 sm_50 sm_60")]
        );
        assert_eq!(
            data(
                "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation."
            ),
            [
                fact("gpu", "NVIDIA GeForce RTX 5090"),
                fact("compute_capability", "sm_120"),
                fact("unsupported_gpu", "sm_120"),
            ]
        );
    }

    #[test]
    fn a_printed_arch_list_is_a_fact() {
        assert_eq!(
            data("arch list: ['sm_75', 'sm_80', 'compute_120'] 13.0"),
            [fact("built_for", "sm_75 sm_80 compute_120")]
        );
    }

    #[test]
    fn a_missing_driver_is_a_status() {
        let found = data(
            "FATAL: kernel `fmha_cutlassF_f16_aligned_64x64_rf_sm80` is for sm80-sm100, but was built for sm37",
        );
        let expected = Status { code: Some(209), producer: "xformers", ..Status::default() };
        assert_eq!(found, [Data::Status(expected)]);
        let found = data("RuntimeError: No CUDA GPUs are available");
        let expected = Status { code: Some(100), producer: "pytorch", ..Status::default() };
        assert_eq!(found, [Data::Status(expected)]);
    }
}
