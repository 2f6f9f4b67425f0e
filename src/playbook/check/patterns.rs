//! Signatures: whether the pattern can be compiled, and does what its sample lines say.

use super::super::schema::Playbook;
use super::super::signature;
use super::Doubts;

pub(super) fn check(playbook: &Playbook, doubts: &mut Doubts<'_>) {
    for rule in &playbook.signatures {
        let pattern = match signature::compile(&rule.pattern.text) {
            Ok(pattern) => pattern,
            Err(why) => {
                doubts.at(&rule.pattern, "signature.pattern", why);
                continue;
            }
        };
        if pattern.is_match(b"") {
            doubts.at(&rule.pattern, "signature.pattern", "matches every line");
        }
        for line in rule.matching.iter().filter(|line| !pattern.is_match(line.text.as_bytes())) {
            doubts.at(line, "signature.match", format!("the pattern doesn't match `{}`", line.text));
        }
        for line in rule.not_matching.iter().filter(|line| pattern.is_match(line.text.as_bytes())) {
            doubts.at(line, "signature.no_match", format!("the pattern matches `{}`", line.text));
        }
    }
}
