//! Settings that quote errors: what a job will do about an error, or looks for, is no report of one.
//!
//! ```text
//! INFO: retry policy: will restart job on "CUDA error: an illegal memory access was encountered" or "NCCL error"
//! ```
//!
//! In: a line. Out: whether it is such a setting: its words speak of a rule, and all that tells of an error stands in quotes. It
//! leaves warnings and errors alone, and quoted errors without such words.

use super::event::Severity;
use super::lines::Line;
use super::pattern::Pattern;

static QUOTED: Pattern = Pattern::new(r#""[^"]*"|'[^']*'|`[^`]*`"#);
static RULE: Pattern = Pattern::new(
    r"(?i)\b(?:reg(?:ular )?ex\w*|patterns?|polic(?:y|ies)|keywords?|signatures?|filters?|rules?|will (?:restart|retry|abort|stop|exit|alert|resubmit)|(?:watch|look|wait|scan|grep)(?:es|s|ing)? for)\b",
);
static ERROR: Pattern =
    Pattern::new(r"(?i)error|fail|fatal|abort|killed|exception|fault|traceback|illegal|out of memory|assert");

/// Whether a line only quotes errors in a setting.
pub(super) fn is_setting(line: &Line<'_>) -> bool {
    let body = line.body();
    if line.origin.severity > Some(Severity::Info) || !body.contains(['"', '\'', '`']) || !RULE.is_match(body)
    {
        return false;
    }
    let mut outside = String::new();
    let mut rest = body;
    while let Some(found) = QUOTED.find(rest) {
        outside.push_str(rest.get(..found.start()).unwrap_or(""));
        outside.push(' ');
        rest = rest.get(found.end()..).unwrap_or("");
    }
    outside.push_str(rest);
    outside.len() < body.len() && RULE.is_match(&outside) && !ERROR.is_match(&outside)
}

#[cfg(test)]
mod tests {
    use crate::read::event::InputId;
    use crate::read::read_text;

    fn events(text: &str) -> usize {
        read_text(InputId(0), text.as_bytes()).events.len()
    }

    #[test]
    fn settings_that_quote_errors_are_none() {
        for text in [
            "INFO: retry policy: will restart job on \"CUDA error: an illegal memory access was encountered\" or \"NCCL error\"\n",
            "INFO: regex list loaded: ['CUDA out of memory', 'device-side assert triggered', 'Segmentation fault']\n",
            "watching for 'CUDA error: device-side assert triggered'\n",
        ] {
            assert_eq!(events(text), 0, "{text}");
        }
    }

    #[test]
    fn reports_beside_such_words_stay() {
        for text in [
            "ERROR: policy hit: 'CUDA error: an illegal memory access was encountered'\n",
            "step failed, will restart on 'CUDA error: an illegal memory access was encountered'\n",
            "RuntimeError: CUDA error: an illegal memory access was encountered\n",
            "h:1:2 [0] enqueue.cc:74 NCCL WARN Cuda failure 'an illegal memory access was encountered'\n",
        ] {
            assert!(events(text) > 0, "{text}");
        }
    }
}
