//! CUDA's status codes: number, names, texts, the number before CUDA 10.1, and the failure class.
//!
//! In: a number, a name or a text. Out: the row of [`STATUSES`]. Sources: CUDA's `driver_types.h` and `cuda.h` for
//! numbers and names, `cudaGetErrorString` for texts. It leaves alone whether a line that holds them reports a failure.

mod rows;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::class::FailureClass;
pub use rows::STATUSES;

/// Whether a text alone says that CUDA printed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// Only CUDA says so (`an illegal memory access was encountered`).
    CudaOnly,
    /// Anyone says so (`out of memory`, `invalid argument`): the line needs another sign of CUDA.
    Everyday,
}

/// One status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaStatus {
    /// Number since CUDA 10.1, the same in runtime and driver.
    pub code: u32,
    /// Runtime name (`cudaErrorIllegalAddress`).
    pub runtime: &'static str,
    /// Driver name (`CUDA_ERROR_ILLEGAL_ADDRESS`); empty where the driver has none.
    pub driver: &'static str,
    /// `cudaGetErrorString`'s text first, then other wordings of it.
    pub texts: &'static [&'static str],
    /// The runtime's number before CUDA 10.1 (77 for 700).
    pub old: Option<u32>,
    /// The class that the status means where nothing else is known.
    pub class: FailureClass,
    /// Whether the texts are CUDA's alone.
    pub wording: Wording,
}

impl CudaStatus {
    /// `cudaGetErrorString`'s text.
    #[must_use]
    pub fn text(&self) -> &'static str {
        self.texts.first().copied().unwrap_or("")
    }

    /// Whether the status is an asynchronous, sticky fault of device code: reported by a later call, and by every call
    /// after it until the process ends.
    #[must_use]
    pub fn is_sticky_device_fault(&self) -> bool {
        matches!(self.code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721)
    }
}

/// The status of that number in today's numbering.
#[must_use]
pub fn by_code(code: u32) -> Option<&'static CudaStatus> {
    STATUSES.binary_search_by_key(&code, |status| status.code).ok().and_then(|at| STATUSES.get(at))
}

/// The status of that number in the runtime's numbering before CUDA 10.1.
#[must_use]
pub fn by_old_code(code: u32) -> Option<&'static CudaStatus> {
    STATUSES.iter().find(|status| status.old == Some(code))
}

/// The status that a printed number means. An old number counts where the printer is known to be old, where the text
/// beside it agrees, or where today's table has no such number.
#[must_use]
pub fn by_printed_number(
    number: u32,
    text: Option<&CudaStatus>,
    old_producer: bool,
) -> Option<&'static CudaStatus> {
    let (new, old) = (by_code(number), by_old_code(number));
    let agrees = |status: &&CudaStatus| text.is_some_and(|text| text.code == status.code);
    if let Some(status) = new.filter(agrees).or(old.filter(agrees)) {
        return Some(status);
    }
    if old_producer && old.is_some() { old } else { new.or(old) }
}

static NAMES: LazyLock<HashMap<&'static str, &'static CudaStatus>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for status in STATUSES {
        names.insert(status.runtime, status);
        if !status.driver.is_empty() {
            names.insert(status.driver, status);
        }
    }
    for (name, code) in rows::OTHER_NAMES {
        if let Some(status) = by_code(*code) {
            names.insert(name, status);
        }
    }
    names
});

/// The class of a status that `api` returned: an invalid argument of a launch is a refused launch.
#[must_use]
pub fn class_of(status: &CudaStatus, api: Option<&str>) -> FailureClass {
    let is_launch = api.is_some_and(|api| api.contains("Launch") || api.contains("launch"));
    if status.code == 1 && is_launch { FailureClass::LaunchConfig } else { status.class }
}

/// The status of that runtime or driver name, HIP's names (`hipErrorIllegalAddress`) and a missing `CUDA_` included
/// (`ERROR_ILLEGAL_ADDRESS`).
#[must_use]
pub fn by_name(name: &str) -> Option<&'static CudaStatus> {
    if let Some(status) = NAMES.get(name) {
        return Some(status);
    }
    if let Some(rest) = name.strip_prefix("hipError") {
        return NAMES.get(format!("cudaError{rest}").as_str()).copied();
    }
    if name.starts_with("ERROR_") {
        return NAMES.get(format!("CUDA_{name}").as_str()).copied();
    }
    // Blender cuts the whole prefix off; the short everyday words (`TIMEOUT`, `NOT_FOUND`) are left out.
    let is_telling =
        ["ILLEGAL_", "MISALIGNED_", "LAUNCH_", "ECC_", "NO_BINARY_", "INVALID_PC", "INVALID_PTX"]
            .iter()
            .any(|start| name.starts_with(start));
    is_telling.then(|| NAMES.get(format!("CUDA_ERROR_{name}").as_str()).copied()).flatten()
}

static TEXTS: LazyLock<(Option<AhoCorasick>, Vec<&'static CudaStatus>)> = LazyLock::new(|| {
    let (patterns, owners): (Vec<&str>, Vec<&'static CudaStatus>) =
        STATUSES.iter().flat_map(|status| status.texts.iter().map(move |text| (*text, status))).unzip();
    let search = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(&patterns)
        .ok();
    (search, owners)
});

/// A status text found in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMatch {
    /// The status.
    pub status: &'static CudaStatus,
    /// Where its text stands, in bytes.
    pub range: Range<usize>,
}

/// Every status text in `line`, in any letter case, left to right. Texts that anyone prints come too: see
/// [`CudaStatus::wording`].
pub fn texts_in(line: &str) -> impl Iterator<Item = TextMatch> + '_ {
    let (search, owners) = &*TEXTS;
    search.iter().flat_map(move |search| search.find_iter(line)).filter_map(|hit| {
        let status = owners.get(hit.pattern().as_usize())?;
        Some(TextMatch { status, range: hit.range() })
    })
}

/// Fewest bytes of a status text that tell which one was cut.
const CUT_BYTES: usize = 12;

/// The only status with a text of CUDA's own whose beginning `line` ends with; none where several begin so.
#[must_use]
pub fn cut_text(line: &str) -> Option<&'static CudaStatus> {
    let line = line.to_ascii_lowercase();
    let mut found: Option<&'static CudaStatus> = None;
    for status in STATUSES.iter().filter(|status| status.wording == Wording::CudaOnly) {
        for text in status.texts {
            let begins = |len: usize| {
                text.get(..len).is_some_and(|head| ends_with_words(&line, &head.to_ascii_lowercase()))
            };
            if (CUT_BYTES..text.len()).any(begins) {
                match found {
                    Some(other) if other.code != status.code => return None,
                    _ => found = Some(status),
                }
            }
        }
    }
    found
}

/// Whether `line` ends with `head`, which begins at a word.
fn ends_with_words(line: &str, head: &str) -> bool {
    let before = line.strip_suffix(head).map(|before| before.chars().next_back());
    before.is_some_and(|last| !last.is_some_and(char::is_alphanumeric))
}

/// The first status text in `line`; CUDA's own wordings win over everyday ones.
#[must_use]
pub fn text_in(line: &str) -> Option<TextMatch> {
    let mut everyday = None;
    for found in texts_in(line) {
        if found.status.wording == Wording::CudaOnly {
            return Some(found);
        }
        everyday.get_or_insert(found);
    }
    everyday
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_counts_where_one_status_begins_so() {
        let code = |line: &str| cut_text(line).map(|status| status.code);
        assert_eq!(code("RuntimeError: CUDA error: an illegal mem"), Some(700));
        assert_eq!(code("CUDA error: device-side assert tri"), Some(710));
        assert_eq!(code("CUDA error: an illegal "), None);
        assert_eq!(code("CUDA error: an ill"), None);
        assert_eq!(code("CUDA error: an illegal memory access was encountered"), None);
        assert_eq!(code("CUDA error: xunspecified launch fai"), None);
    }

    #[test]
    fn rows_are_sorted_and_unique() {
        assert!(STATUSES.windows(2).all(|pair| pair[0].code < pair[1].code));
        let mut old: Vec<u32> = STATUSES.iter().filter_map(|status| status.old).collect();
        old.sort_unstable();
        let count = old.len();
        old.dedup();
        assert_eq!(old.len(), count);
    }

    #[test]
    fn old_numbers_map_to_todays() {
        let table = [
            (4, 719),
            (6, 702),
            (8, 98),
            (48, 209),
            (59, 710),
            (73, 715),
            (74, 716),
            (75, 717),
            (76, 718),
            (77, 700),
        ];
        for (old, new) in table {
            assert_eq!(by_old_code(old).unwrap().code, new);
        }
    }

    #[test]
    fn a_printed_number_is_old_only_where_something_says_so() {
        let text = by_code(719);
        assert_eq!(by_printed_number(4, text, false).unwrap().code, 719);
        assert_eq!(by_printed_number(4, None, true).unwrap().code, 719);
        assert_eq!(by_printed_number(4, None, false).unwrap().code, 4);
        assert_eq!(by_printed_number(77, None, false).unwrap().code, 700);
        assert_eq!(by_printed_number(700, None, true).unwrap().code, 700);
        assert_eq!(by_printed_number(65_000, None, true), None);
    }

    #[test]
    fn names_of_runtime_driver_and_hip_agree() {
        for name in [
            "cudaErrorIllegalAddress",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "ERROR_ILLEGAL_ADDRESS",
            "hipErrorIllegalAddress",
        ] {
            assert_eq!(by_name(name).unwrap().code, 700, "{name}");
        }
        assert_eq!(by_name("cudaErrorLaunchFailure").unwrap().code, 719);
        assert_eq!(by_name("CUDA_ERROR_LAUNCH_FAILED").unwrap().code, 719);
        assert_eq!(by_name("ILLEGAL_ADDRESS").unwrap().code, 700);
        assert_eq!(by_name("cudaSuccess"), None);
        assert_eq!(by_name("TIMEOUT"), None);
    }

    #[test]
    fn texts_are_found_anywhere_and_longest_first() {
        let code = |line: &str| text_in(line).map(|found| found.status.code);
        assert_eq!(code("<Op> failed with error code An Illegal Memory Access was encountered"), Some(700));
        assert_eq!(code("some tool: illegal memory access in kernel 3"), Some(700));
        assert_eq!(code("operation not supported on global/shared address space"), Some(717));
        assert_eq!(code("operation not permitted when stream is capturing"), Some(900));
        assert_eq!(code("out of memory: an illegal memory access was encountered"), Some(700));
        assert_eq!(code("all is well"), None);
    }

    #[test]
    fn classes_follow_the_contract() {
        let class = |code| by_code(code).unwrap().class;
        let invalid_value = by_code(1).unwrap();
        assert_eq!(class_of(invalid_value, Some("cuLaunchKernel")), FailureClass::LaunchConfig);
        assert_eq!(class_of(invalid_value, Some("cudaFree(p)")), FailureClass::ApiError);
        assert_eq!(class(717), FailureClass::IllegalAddress);
        assert_eq!(class(718), FailureClass::IllegalInstruction);
        assert_eq!(class(702), FailureClass::LaunchFailure);
        assert_eq!(class(222), FailureClass::NoKernelImage);
        assert_eq!(class(720), FailureClass::LaunchConfig);
        assert_eq!(class(804), FailureClass::Driver);
        for code in [214, 226, 721] {
            assert_eq!(class(code), FailureClass::Hardware);
        }
        for code in 900..=909 {
            assert_eq!(class(code), FailureClass::GraphCapture);
        }
    }
}
