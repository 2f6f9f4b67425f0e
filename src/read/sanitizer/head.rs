//! The head line of a sanitizer record.
//!
//! In: the text after the report's prefix. Out: what was found, and the fields that the head itself holds. It leaves the
//! indented lines below to [`super::detail`].

use super::detail::{access_place, count, hex};
use crate::read::event::{SanitizerFinding, SanitizerRecord};

/// Heads that are no records.
const NO_RECORDS: &[&str] = &[
    "COMPUTE-SANITIZER",
    "CUDA-MEMCHECK",
    "CUDA-RACECHECK",
    "Target application returned",
    "ERROR SUMMARY",
    "LEAK SUMMARY",
    "RACECHECK SUMMARY",
    "INITCHECK SUMMARY",
    "This tool is",
    "Internal ",
    "Error: process",
    "Error: Target",
    "Error: No attachable",
    "Error: Failed",
    "Warning: ",
    "Process ID",
    "Saved host",
    "No attachable",
    "Tracking kernel",
];

/// The record that a head line opens; none where the line opens none.
#[must_use]
pub fn record(text: &str) -> Option<SanitizerRecord> {
    let text = text.trim();
    let mut record = empty(text);
    if let Some(rest) = text.strip_prefix("Invalid __") {
        access(rest, &mut record);
        record.finding = SanitizerFinding::InvalidAccess;
    } else if let Some(rest) = text.strip_prefix("Uninitialized ") {
        access(rest.trim_start_matches('_'), &mut record);
        record.access.get_or_insert_with(|| "read".to_owned());
        record.finding = SanitizerFinding::UninitializedRead;
    } else if text.starts_with("Unused memory") {
        record.finding = SanitizerFinding::UnusedMemory;
        record.address = hex(text);
        record.size_bytes = after(text, "of size ").and_then(count);
    } else if let Some(rest) = text.strip_prefix("Barrier error detected") {
        record.finding = SanitizerFinding::Barrier;
        record.detail =
            Some(rest.trim_matches(['.', ' ', ':']).to_owned()).filter(|reason| !reason.is_empty());
    } else if let Some(at) = text.find("Race reported between ") {
        race(text.get(at + "Race reported between ".len()..)?, &mut record);
    } else if text.contains("hazard detected at") {
        hazard(text, &mut record);
    } else if let Some(rest) = text.strip_prefix("Leaked ") {
        record.finding = SanitizerFinding::Leak;
        record.leaked_bytes = count(rest);
        record.address = hex(rest);
    } else if let Some(rest) = text.strip_prefix("Program hit ") {
        api_error(rest, &mut record);
    } else if text.starts_with("Malloc/Free") {
        record.finding = SanitizerFinding::AllocatorError;
        record.detail = text.split_once(':').map(|(_, reason)| reason.trim().to_owned());
    } else if NO_RECORDS.iter().any(|head| text.starts_with(head)) || !is_title(text) {
        return None;
    } else {
        record.finding = SanitizerFinding::Other;
    }
    Some(record)
}

/// A record of which only the head is known.
#[must_use]
pub fn empty(head: &str) -> SanitizerRecord {
    SanitizerRecord {
        finding: SanitizerFinding::Other,
        head: head.to_owned(),
        space: None,
        access: None,
        size_bytes: None,
        kernel: None,
        offset: None,
        place: None,
        thread: None,
        block: None,
        last: None,
        address: None,
        nearest: None,
        api: None,
        code: None,
        detail: None,
        other_place: None,
        host: Vec::new(),
        device_frames: Vec::new(),
        leaked_bytes: None,
        count: 1,
    }
}

/// A head nobody listed is a sentence of its own: it begins with a capital letter.
fn is_title(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase()) && text.len() < 300
}

/// `global__ read of size 16 bytes`, `global__ memory read of size 4 bytes`.
fn access(text: &str, record: &mut SanitizerRecord) {
    if let Some((space, _)) = text.split_once("__") {
        record.space = Some(space.to_owned()).filter(|space| space.len() < 24);
    }
    record.access =
        ["read", "write", "atomic"].iter().find(|word| text.contains(**word)).map(|&word| word.to_owned());
    record.size_bytes = after(text, "of size ").and_then(count);
}

/// `Write access at racy(int *)+0xa0 in crash.cu:31`.
fn race(text: &str, record: &mut SanitizerRecord) {
    record.finding = SanitizerFinding::Race;
    record.space = Some("shared".to_owned());
    let Some((access, at)) = text.split_once(" access at ") else { return };
    record.access = Some(access.trim().to_ascii_lowercase());
    let found = access_place(at);
    (record.kernel, record.offset, record.place) = (found.kernel, found.offset, found.place);
}

/// `ERROR: Potential WAR hazard detected at __shared__ 0x0 in block (0, 0, 0) :`.
fn hazard(text: &str, record: &mut SanitizerRecord) {
    record.finding = SanitizerFinding::Race;
    record.space = text.split("__").nth(1).map(str::to_owned).filter(|space| space.len() < 24);
    record.address = hex(text);
    record.block = after(text, "in block").and_then(super::detail::dims);
    record.detail = after(text, "Potential ").and_then(|rest| rest.split(' ').next()).map(str::to_owned);
}

/// `cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to cudaMemcpy.`
fn api_error(text: &str, record: &mut SanitizerRecord) {
    record.finding = SanitizerFinding::ApiError;
    record.api = after(text, "API call to ").map(|call| call.trim().trim_end_matches('.').to_owned());
    record.detail = text.split('"').nth(1).map(str::to_owned);
    let printed = after(text, "error ").and_then(count).and_then(|number| u32::try_from(number).ok());
    let by_text =
        record.detail.as_deref().and_then(crate::tables::cuda_status::text_in).map(|found| found.status);
    let by_name = text.split(' ').next().and_then(crate::tables::cuda_status::by_name);
    let known = printed
        .and_then(|number| crate::tables::cuda_status::by_printed_number(number, by_name.or(by_text), false));
    record.code = known.or(by_name).map(|status| status.code).or(printed);
}

/// What stands behind `word`.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.split_once(word).map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_all_tools_are_told_apart() {
        let table = [
            ("Invalid __global__ read of size 16 bytes", SanitizerFinding::InvalidAccess),
            ("Invalid __shared__ atomic of size 4", SanitizerFinding::InvalidAccess),
            ("Uninitialized __global__ memory read of size 4 bytes", SanitizerFinding::UninitializedRead),
            ("Unused memory in allocation 0x7f00 of size 400 bytes", SanitizerFinding::UnusedMemory),
            ("Barrier error detected. Divergent thread(s) in warp.", SanitizerFinding::Barrier),
            ("Error: Race reported between Write access at k+0x10 in a.cu:3", SanitizerFinding::Race),
            (
                "ERROR: Potential WAR hazard detected at __shared__ 0x0 in block (0, 0, 0) :",
                SanitizerFinding::Race,
            ),
            ("Leaked 4,096 bytes at 0x7f8eec800000", SanitizerFinding::Leak),
            ("Malloc/Free error encountered : Double free", SanitizerFinding::AllocatorError),
            ("Stack overflow", SanitizerFinding::Other),
            ("Something new", SanitizerFinding::Other),
        ];
        for (text, finding) in table {
            assert_eq!(record(text).unwrap().finding, finding, "{text}");
        }
        for text in
            ["COMPUTE-SANITIZER", "ERROR SUMMARY: 1 error", "Target application returned an error", ""]
        {
            assert_eq!(record(text), None, "{text}");
        }
    }

    #[test]
    fn fields_of_the_head_are_kept() {
        let found = record("Invalid __global__ write of size 16 bytes").unwrap();
        assert_eq!(
            (found.space.as_deref(), found.access.as_deref(), found.size_bytes),
            (Some("global"), Some("write"), Some(16))
        );
        let found = record("Uninitialized __global__ memory read of size 4 bytes").unwrap();
        assert_eq!(
            (found.space.as_deref(), found.access.as_deref(), found.size_bytes),
            (Some("global"), Some("read"), Some(4))
        );
        let found = record("Leaked 4,096 bytes at 0x7f8eec800000").unwrap();
        assert_eq!((found.leaked_bytes, found.address), (Some(4096), Some(0x7f8e_ec80_0000)));
    }

    #[test]
    fn old_api_errors_get_todays_code() {
        let code = |text: &str| record(text).unwrap().code;
        assert_eq!(
            code(
                "Program hit cudaErrorLaunchFailure (error 719) due to \"unspecified launch failure\" on CUDA API call to cudaMemcpy."
            ),
            Some(719)
        );
        assert_eq!(
            code(
                "Program hit cudaErrorLaunchFailure (error 4) due to \"unspecified launch failure\" on CUDA API call to cudaThreadSynchronize."
            ),
            Some(719)
        );
        assert_eq!(
            code(
                "Program hit CUDA_ERROR_INVALID_VALUE (error 1) due to \"invalid argument\" on CUDA API call to cuMemcpy."
            ),
            Some(1)
        );
        let found = record("Program hit cudaErrorInvalidValue (error 1) due to \"invalid argument\" on CUDA API call to cudaFree.").unwrap();
        assert_eq!(
            (found.api.as_deref(), found.detail.as_deref()),
            (Some("cudaFree"), Some("invalid argument"))
        );
    }
}
