//! What gives a name, an address or a key away.
//!
//! In: nothing. Out: [`RULES`], one row a form. It leaves replacing to the redactor.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use super::SecretKind;

/// A form in which a value stands: the capture `v` is replaced where `accept` agrees.
pub(super) struct Rule {
    pub(super) kind: SecretKind,
    pub(super) regex: Regex,
    pub(super) accept: fn(&str) -> bool,
}

/// The forms, in the order in which they are tried: keys first, because a key may hold what looks like a name.
pub(super) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    ROWS.iter()
        .filter_map(|&(kind, pattern, accept)| {
            Regex::new(pattern).ok().map(|regex| Rule { kind, regex, accept })
        })
        .collect()
});

type Row = (SecretKind, &'static str, fn(&str) -> bool);

const ROWS: &[Row] = &[
    (
        SecretKind::Key,
        r"(?s)(?<v>-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z))",
        any,
    ),
    (SecretKind::Key, r"\b(?<v>hf_[A-Za-z0-9]{16,})", any),
    (SecretKind::Key, r"\b(?<v>(?:sk|pk|rk)-[A-Za-z0-9_-]{16,})", any),
    (SecretKind::Key, r"\b(?<v>(?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16})\b", any),
    (SecretKind::Key, r"\b(?<v>gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,})", any),
    (
        SecretKind::Key,
        r"\b(?<v>nvapi-[\w-]{16,}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{30,}|npm_[A-Za-z0-9]{30,})",
        any,
    ),
    (SecretKind::Key, r"\b(?<v>eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)", any),
    (SecretKind::Key, r"(?i)\b(?:bearer|basic)\s+(?<v>[\w.~+/-]{8,}=*)", not_a_word),
    (SecretKind::Key, r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:(?<v>[^\s/@]+)@", any),
    (
        SecretKind::Key,
        r#"(?i)\b(?:[a-z0-9]+[_-])*(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?(?:access)?[_-]?key)?|auth[_-]?token|access[_-]?token|hf[_-]?token|token|passw(?:or)?d)["']?\s*[=:]\s*["']?(?<v>[^\s"',;&)}\]]{6,})"#,
        looks_secret,
    ),
    (
        SecretKind::Key,
        r"(?i)--?[a-z0-9-]*(?:token|api-?key|passw(?:or)?d|secret)(?:-key)?\s+(?<v>[^\s-][^\s]{5,})",
        looks_secret,
    ),
    (SecretKind::GpuUuid, r"\b(?<v>(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})", any),
    (SecretKind::Serial, r"(?i)\bserial(?: number)?\s*[:=]\s*(?<v>[A-Z0-9-]{6,})", has_digit),
    (SecretKind::Email, r"(?<v>\b[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b)", is_mail),
    (SecretKind::Mac, r"(?:^|[^0-9A-Za-z:])(?<v>[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5,})\b", any),
    (SecretKind::Ip, r"(?:^|[^\w.:-])(?<v>\d{1,3}(?:\.\d{1,3}){3,})\b", is_ipv4),
    (SecretKind::Ip, r"(?:^|[^\w:.])(?<v>[0-9a-fA-F]{0,4}(?::{1,2}[0-9a-fA-F]{1,4}){3,8})\b", is_ipv6),
    (SecretKind::User, r"/(?:home|Users|users|u)/(?<v>[A-Za-z0-9_][\w.-]*)", name),
    (SecretKind::User, r"\b(?:USER|LOGNAME|USERNAME|SUDO_USER)=['\x22]?(?<v>[A-Za-z0-9_][\w.-]*)", name),
    (SecretKind::User, r"\btorchinductor_(?<v>[A-Za-z0-9_][\w.-]*)", name),
    (SecretKind::User, r"\bC:\\Users\\(?<v>[A-Za-z0-9_][\w.-]*)", name),
    (SecretKind::User, r"(?m)^(?:\([\w.-]+\) )?(?<v>[a-z_][\w.-]*)@[\w.-]+:[~/][^$#\n]*[$#]", name),
    (
        SecretKind::Host,
        r"(?m)^(?:\([\w.-]+\) )?[a-zA-Z_][\w.-]*@(?<v>[A-Za-z0-9][\w.-]*):[~/][^$#\n]*[$#]",
        name,
    ),
    (
        SecretKind::Host,
        r"(?<v>\b[A-Za-z0-9][\w.-]*):\d+:\d+ (?:\[\d+\]|\[\w+\]) (?:\S+ )*?(?:NCCL|misc/|transport/|ibvwrap)",
        name,
    ),
    (SecretKind::Host, r"(?m)^\s*host\s*:\s*(?<v>[A-Za-z0-9][\w.-]*)", name),
    (
        SecretKind::Host,
        r"(?m)^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?<v>[A-Za-z0-9][\w.-]*) [\w./-]+(?:\[\d+\])?: ",
        name,
    ),
    (
        SecretKind::Host,
        r"(?m)^\d{4}-\d\d-\d\dT[\d:.,+-]+Z? (?<v>[A-Za-z0-9][\w.-]*) (?:kernel|systemd|[\w-]+\[\d+\]):",
        name,
    ),
    (
        SecretKind::Host,
        r"(?i)\b(?:hostname|[a-z]*_?nodename|MASTER_ADDR|node name)\s*[=:]\s*['\x22]?(?<v>[A-Za-z][\w-]*(?:\.[\w-]+)*)",
        name,
    ),
    (
        SecretKind::Host,
        r"\b(?<v>[A-Za-z0-9][\w-]*(?:\.[\w-]+)*\.(?:internal|local|cluster|svc|lan|intra|corp))\b",
        name,
    ),
];

fn any(_: &str) -> bool {
    true
}

fn has_digit(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Prose after the word "basic" or "bearer" is no credential.
fn not_a_word(value: &str) -> bool {
    !value.bytes().all(|byte| byte.is_ascii_lowercase()) || value.len() >= 20
}

/// Numbers, Python values and empty words after a key's name are no secret (`pad_token = None`).
fn looks_secret(value: &str) -> bool {
    let plain_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let call = value.contains('(') || value.contains('<') || value.contains('[');
    !(plain_number || call || value.contains("***"))
}

fn is_mail(value: &str) -> bool {
    // `git@github.com` names no person.
    !value.starts_with("git@") && !value.split('@').any(super::is_placeholder)
}

fn is_ipv4(value: &str) -> bool {
    value.parse::<Ipv4Addr>().is_ok_and(|address| {
        let [first, ..] = address.octets();
        // Versions of four parts (cuDNN 9.1.0.70) look the same; nobody routes to networks 1 to 9 in a cluster but ten.
        first >= 10 && !address.is_loopback() && !address.is_broadcast() && first != 255
    })
}

fn is_ipv6(value: &str) -> bool {
    value.parse::<Ipv6Addr>().is_ok_and(|address| !address.is_loopback() && !address.is_unspecified())
}

fn name(value: &str) -> bool {
    !is_common(value)
}

/// Names that tell nothing about anyone, and would be replaced in the middle of ordinary text.
pub(super) fn is_common(name: &str) -> bool {
    const COMMON: &[&str] = &[
        "user",
        "users",
        "root",
        "home",
        "ubuntu",
        "runner",
        "admin",
        "docker",
        "jovyan",
        "app",
        "nobody",
        "shared",
        "localhost",
        "kernel",
        "python",
        "python3",
        "torch",
        "cuda",
        "train",
        "data",
        "None",
        "null",
        "host",
        "node",
        "linux",
        "conda",
        "miniconda3",
        "anaconda3",
        "linuxbrew",
        "nvidia",
        "systemd",
        "localhost.localdomain",
    ];
    COMMON.contains(&name) || name.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_compiles_and_names_its_value() {
        assert_eq!(RULES.len(), ROWS.len());
        for rule in RULES.iter() {
            assert!(rule.regex.capture_names().any(|name| name == Some("v")), "{}", rule.regex);
        }
    }
}
