//! Whether a line that holds a status reports it, or only speaks of it: advice, source code, hints, warnings about what
//! might happen, other tools' records.
//!
//! In: a message and where the status stands in it. Out: yes or no. It leaves the status itself to the parent.

use crate::read::pattern::Pattern;

static SPEAKS_OF: Pattern = Pattern::new(
    r"(?i)\b(?:may|might|could|can|cannot|avoid(?:s|ing)?|prevent(?:s|ing)?|potential|possible|possibly|would|fix(?:es|ed|ing)?|without|no|if|whether|debug|such as|e\.g\.|like|unlike|related to)\b[\w\s,'\x22`(/-]{0,60}$",
);
static SOURCE: Pattern = Pattern::new(
    r"^\s*(?://|#define|#include|case |if\s*\(|if err|else if|return |static |throw |raise |def |except |assert |import |from |const |using )",
);
static FAILS: Pattern = Pattern::new(
    r"(?i)\b(?:errors?|fail(?:ed|s|ure|ing)?|returned|exception|abort(?:ed|ing)?|terminat\w+|panic\w*|unhandled|results? in|reported|hit|code|status)\b|error:|error\(|!=",
);
static HOST_SANITIZER: Pattern = Pattern::new(r"runtime error: .*misaligned address");
static CUDA: Pattern =
    Pattern::new(r"(?i:cuda|nvrtc|cublas|cudnn|\bnccl)|\b(?:HIP|hip[A-Z])|\bcu[A-Z][a-z]\w+");

/// Marks of lines that belong to another reader or to nobody.
const FOREIGN: [&str; 9] = [
    "CUDA Exception:",
    "CUDA_EXCEPTION_",
    "CUDBG_EXCEPTION",
    "NVRM: Xid",
    "coredump: ",
    "[Hint:",
    "is_culib_present",
    "For debugging consider",
    "CUDA_COREDUMP",
];

/// The part of a message before the advice that PyTorch glues on where newlines were lost.
#[must_use]
pub fn before_advice(body: &str) -> &str {
    let cut = [
        "Search for `cuda",
        "Search for `hip",
        "CUDA kernel errors might be",
        "HIP kernel errors might be",
        "[Hint:",
    ]
    .iter()
    .filter_map(|mark| body.find(mark))
    .min()
    .unwrap_or(body.len());
    body.get(..cut).unwrap_or(body)
}

/// Whether the line belongs to another reader or to nobody.
#[must_use]
pub fn is_foreign(body: &str) -> bool {
    FOREIGN.iter().any(|mark| body.contains(mark)) || HOST_SANITIZER.is_match(body)
}

/// Whether the line looks like source code.
#[must_use]
pub fn is_source(body: &str) -> bool {
    SOURCE.is_match(body)
}

/// Whether the words before `at` speak of the status as a possibility (`may cause an illegal memory access`).
#[must_use]
pub fn only_speaks_of(body: &str, at: usize) -> bool {
    let mut from = at.saturating_sub(80);
    while !body.is_char_boundary(from) {
        from += 1;
    }
    // `Could not synchronize CUDA stream` tells of a call that failed.
    let failed = ["could not", "cannot", "can not"];
    body.get(from..at).and_then(|before| SPEAKS_OF.find(before)).is_some_and(|found| {
        let words = found.as_str().to_ascii_lowercase();
        !failed.iter().any(|start| words.starts_with(start))
    })
}

/// Whether a line that holds only a status name reports a failure: it is the name alone, or says that something failed.
#[must_use]
pub fn name_fails(body: &str, name: &str) -> bool {
    let rest = body.replacen(name, "", 1);
    let alone = rest.chars().filter(|character| character.is_alphanumeric()).count() == 0;
    alone || body.trim_start().starts_with(name) || (FAILS.is_match(&rest) && !rest.contains("http"))
}

/// Whether anything in the line speaks of CUDA, HIP or their libraries.
#[must_use]
pub fn speaks_of_cuda(body: &str) -> bool {
    CUDA.is_match(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possibilities_are_no_reports() {
        let speaks = |text: &str| only_speaks_of(text, text.find("an illegal").unwrap());
        assert!(speaks("this may cause an illegal memory access"));
        assert!(speaks("fixed the kernel that led to an illegal memory access"));
        assert!(!speaks("could not wait for the stream, an illegal memory access"));
        assert!(!speaks("CUDA error: an illegal memory access"));
        assert!(!speaks("Check failed, if you can: an illegal memory access"));
    }

    #[test]
    fn ordinary_words_do_not_speak_of_cuda() {
        assert!(speaks_of_cuda("cuMemAlloc failed"));
        assert!(speaks_of_cuda("Cuda failure"));
        assert!(!speaks_of_cuda("current customer ships"));
    }

    #[test]
    fn names_need_a_failing_word_or_stand_alone() {
        assert!(name_fails("CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS"));
        assert!(name_fails("call failed: cudaErrorAssert", "cudaErrorAssert"));
        assert!(!name_fails("see cudaErrorAssert in the manual", "cudaErrorAssert"));
    }
}
