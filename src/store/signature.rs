//! A crash's signature: the same crash has the same one, whatever rank, address, process or day it came on.
//!
//! In: a verdict. Out: [`CrashSignature`]. It holds the class, the status, and where the failure was noticed, by file name
//! and function; line numbers move with every edit and stay out. It doesn't hold the cause: that is what a walk finds.

use crate::verdict::Verdict;

use super::digest::Fnv;
use crate::tables::class::FailureClass;

/// What makes a crash the same crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashSignature {
    /// Readable parts, joined by `|`.
    pub text: String,
    /// Its hash, 16 hexadecimal digits.
    pub hash: String,
}

/// The signature of a verdict; none where nothing failed.
#[must_use]
pub fn of(verdict: &Verdict) -> Option<CrashSignature> {
    if verdict.class == FailureClass::None {
        return None;
    }
    let mut parts = vec![verdict.class.name().to_owned()];
    if let Some(code) = &verdict.code {
        parts.push(format!("{}:{}", code.domain, code.number.map(|n| n.to_string()).unwrap_or_default()));
    }
    if let Some(notice) = &verdict.places.notice {
        let name = |file: &String| file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned();
        parts.push(notice.file.as_ref().map(name).unwrap_or_default());
        parts.push(notice.function.clone().unwrap_or_default());
        parts.push(notice.call.clone().unwrap_or_default());
    } else if let Some(fault) = &verdict.places.fault {
        parts.push(fault.kernel.clone().unwrap_or_default());
        parts.push(fault.library.clone().unwrap_or_default());
    }
    if let Some(collective) = &verdict.collective {
        parts.push(collective.op.clone());
    }
    let text: Vec<String> = parts.iter().map(|part| plain(part)).collect();
    let text = text.join("|");
    let mut hash = Fnv::default();
    hash.add(text.as_bytes());
    Some(CrashSignature { text, hash: hash.text() })
}

/// Without addresses: `0x7f…` differs from run to run.
fn plain(part: &str) -> String {
    let mut out = String::new();
    let mut rest = part;
    while let Some(at) = rest.find("0x") {
        out.push_str(rest.get(..at).unwrap_or(""));
        out.push_str("0x");
        rest = rest.get(at + 2..).unwrap_or("").trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    out.push_str(rest);
    out.replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn addresses_stay_out() {
        assert_eq!(plain("k<0x7f74f8ed2000>::f at 0x10"), "k<0x>::f at 0x");
        assert_eq!(plain("a|b"), "a/b");
    }
}
