//! GPU faults that the runtimes of other vendors print in words of their own: ROCm, HSA, MetaX.
//!
//! ```text
//! Memory access fault by GPU node-2 (Agent handle: 0x55d0) on address 0x7f00. Reason: Page not present or supervisor privilege.
//! ```
//!
//! In: a line. Out: [`Data::Status`] with the CUDA number that means the same, so that the class is the same. It leaves
//! HIP's own error names and texts to the CUDA status reader.

use super::event::{Data, Status};
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &["Memory access fault by GPU", "HSA_STATUS_ERROR", "trapType: "];

static NODE: Pattern = Pattern::new(r"by GPU node-(\d+)");
static HSA: Pattern = Pattern::new(r"HSA_STATUS_ERROR_\w+");
static TRAP: Pattern = Pattern::new(r"trapType: ([\w ]+)");
static KERNEL: Pattern = Pattern::new(r"[kK]ernel ?[nN]ame: ?(\S+)");

/// Words of the other vendors and the CUDA number of the same fault.
const SAME_AS: &[(&str, u32)] = &[
    ("HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION", 700),
    ("HSA_STATUS_ERROR_MEMORY_FAULT", 700),
    ("HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION", 715),
    ("HSA_STATUS_ERROR_EXCEPTION", 719),
    ("HSA_STATUS_ERROR_OUT_OF_RESOURCES", 2),
    ("HSA_STATUS_ERROR_INVALID_CODE_OBJECT", 200),
    ("HSA_STATUS_ERROR_INVALID_ISA", 209),
    ("Memory Violation", 700),
    ("Illegal Instruction", 715),
    ("Misaligned", 716),
    ("Assert", 710),
];

/// Reads a fault.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    let Some(status) = parse(body) else { return Taken::No };
    cx.push(line, Data::Status(status));
    Taken::Part
}

fn parse(body: &str) -> Option<Status> {
    let same_as =
        |words: &str| SAME_AS.iter().find(|(known, _)| words.contains(known)).map(|(_, code)| *code);
    if body.contains("Memory access fault by GPU") {
        return Some(Status {
            code: Some(700),
            producer: "rocm",
            device: NODE.number(body),
            ..Status::default()
        });
    }
    if let Some(name) = HSA.find(body) {
        let name = name.as_str();
        let code = same_as(name);
        return Some(Status {
            code,
            printed_name: Some(name.to_owned()),
            producer: "rocm",
            ..Status::default()
        });
    }
    let trap = TRAP.group(body, 1)?;
    Some(Status {
        code: same_as(trap),
        printed_name: Some(trap.trim().to_owned()),
        producer: "metax",
        api: KERNEL.group(body, 1).map(str::to_owned),
        ..Status::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vendors_words_have_a_number() {
        let table = [
            (
                "Memory access fault by GPU node-2 (Agent handle: 0x55d0) on address 0x7f00. Reason: Page not present or supervisor privilege.",
                Some(700),
                "rocm",
                Some(2),
            ),
            ("HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: The agent attempted", Some(700), "rocm", None),
            (
                "[MCR][E]mx_device.cpp :10106: trapping: kernelName: mm_kernel trapType: Memory Violation(0x4)",
                Some(700),
                "metax",
                None,
            ),
        ];
        for (text, code, producer, device) in table {
            let found = parse(text).unwrap();
            assert_eq!((found.code, found.producer, found.device), (code, producer, device), "{text}");
        }
        assert_eq!(parse("trapType"), None);
    }
}
