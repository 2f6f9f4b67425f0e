//! Help texts: what `--help` prints of an option is no event, whatever failures it speaks of.
//!
//! ```text
//!   --ignore-getprocaddress-notfound      Ignore CUDA_ERROR_NOT_FOUND API errors for cuGetProcAddress.
//! ```
//!
//! In: a line and the bytes before it. Out: whether it describes an option, or goes on with a description. It leaves command
//! lines alone: their options are followed by values, not by words two columns away.

use super::lines::Line;
use super::pattern::Pattern;

/// Bytes before a line in which its option may stand.
const BACK_BYTES: usize = 4096;

/// Least blanks before a description that stands on lines of its own.
const DESCRIPTION_COLUMN: usize = 6;

/// Options with their metavariables (`-o, --output <FILE>`, `-v [ --version ]`, `--demangle arg (=full)`), alone or with a
/// description two blanks or a tab behind them.
static OPTION: Pattern = Pattern::new(
    r"^\s+-{1,2}\[?[A-Za-z][\w\]-]*(?:,? \[? ?-{1,2}\[?[A-Za-z][\w\]-]*(?: \])?|[ =]\[?(?:<[^<>]+>|\{[^{}]+\}|[A-Z][A-Z0-9_]*|arg)\]?(?:\.\.\.)?| \(=[^()]*\)|,)*(?:(?: {2,}|\t+)\S.*)?$",
);

/// Whether a line of an input describes an option of a program.
pub(super) fn describes_option(line: &Line<'_>, bytes: &[u8]) -> bool {
    let text = line.text.as_ref();
    let indent = blanks(text);
    if indent == 0 {
        return false;
    }
    if text.trim_start().starts_with('-') {
        return OPTION.is_match(text.trim_end());
    }
    indent >= DESCRIPTION_COLUMN && follows_option(usize::try_from(line.byte).unwrap_or(0), indent, bytes)
}

/// Whether a line is of PyTorch's handler of uncaught exceptions, which names the rank: `[rank1]: Traceback …`.
pub(super) fn is_last_word(text: &str) -> bool {
    let tag = text.strip_prefix("[rank").and_then(|rest| rest.split_once(']'));
    tag.is_some_and(|(rank, rest)| {
        !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with(": ")
    })
}

/// Whether the lines before `at` lead back to an option, each of them indented deeper than it.
fn follows_option(at: usize, indent: usize, bytes: &[u8]) -> bool {
    let from = at.saturating_sub(BACK_BYTES);
    let before = String::from_utf8_lossy(bytes.get(from..at).unwrap_or_default());
    for text in before.lines().rev() {
        let here = blanks(text);
        if text.trim_start().starts_with('-') {
            return here > 0 && here < indent && OPTION.is_match(text.trim_end());
        }
        if here < DESCRIPTION_COLUMN && !text.trim().is_empty() {
            return false;
        }
    }
    false
}

fn blanks(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .map(|byte| if byte == b'\t' { 8 } else { 1 })
        .sum()
}

#[cfg(test)]
mod tests {
    use crate::read::event::InputId;
    use crate::read::read_text;

    fn events(text: &str) -> usize {
        read_text(InputId(0), text.as_bytes()).events.len()
    }

    #[test]
    fn descriptions_of_options_are_no_events() {
        let helps = [
            "  --ignore-getprocaddress-notfound      Ignore CUDA_ERROR_NOT_FOUND API errors for cuGetProcAddress.\n",
            "  -e [ --exit ]                         Exit on CUDA error: an illegal memory access was encountered\n",
            "  --coredump-behavior arg (=full)       Abort with CUDA_ERROR_ILLEGAL_ADDRESS, error code 700\n",
            "  -c, --check <WHAT>  Fail with CUDA error: an illegal memory access was encountered\n",
            "  --check-every-launch WHAT\n                        which is slow, and fail with\n                        CUDA error: an illegal memory access was encountered\n",
            "       --sticky\n\n           Give up after CUDA_ERROR_ILLEGAL_ADDRESS errors.\n",
            "\t-s\tstop at CUDA error: an illegal memory access was encountered\n",
        ];
        for help in helps {
            assert_eq!(events(help), 0, "{help}");
        }
    }

    #[test]
    fn command_lines_and_reports_below_options_stay() {
        let reports = [
            "  --steps 100 --device cuda:0: CUDA error: an illegal memory access was encountered\n",
            "usage: train.py [-h] [--lr LR]\n  --lr LR     learning rate\nRuntimeError: CUDA error: an illegal memory access was encountered\n",
            "  --lr LR     learning rate\n\nloading\n        CUDA error: an illegal memory access was encountered\n",
            "  - CUDA error: an illegal memory access was encountered\n",
            "    -- CUDA error: an illegal memory access was encountered\n",
            "--flag   CUDA error: an illegal memory access was encountered\n",
        ];
        for report in reports {
            assert!(events(report) > 0, "{report}");
        }
    }
}
