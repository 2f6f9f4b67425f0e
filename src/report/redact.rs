//! A report that may leave the house.
//!
//! In: a built report. Out: the same report in which hosts, users, folders, addresses, keys, serial numbers and GPU UUIDs are
//! placeholders, the same value always by the same one, with what was replaced listed as diagnostics. Every format prints
//! the same placeholders, because it prints this report. It leaves what the report is about: names of source files, kernels
//! and inputs, process and PCI ids, memory addresses, sizes.

mod texts;

use serde_json::Value;

use crate::text::{Redactor, Replaced, SecretKind};

use super::Report;
use super::model::{Diagnostic, EvidenceKind};

/// Replaces what tells who and where.
#[must_use]
pub fn redact(mut report: Report) -> Report {
    let mut redactor = Redactor::for_reports();
    learn(&mut redactor, &mut report);
    hide_named_values(&mut redactor, &mut report);
    for text in texts::of(&mut report) {
        *text = redactor.apply(text);
    }
    report.diagnostics.extend(listing(&redactor.replaced()));
    report
}

/// A name is given away in one text and stands bare in others, before it too.
fn learn(redactor: &mut Redactor, report: &mut Report) {
    for input in &report.inputs {
        redactor.input(&input.path);
    }
    for host in report.ranks.iter().filter_map(|rank| rank.host.as_deref()) {
        redactor.host(host);
    }
    for by in report.history.iter().filter_map(|entry| entry.by.as_deref()) {
        redactor.user(by);
    }
    for evidence in &report.evidence {
        if let Some(host) = evidence.fields.get("host").and_then(Value::as_str) {
            redactor.host(host);
        }
        if let [Some(name), Some(value)] =
            ["name", "value"].map(|key| evidence.fields.get(key).and_then(Value::as_str))
        {
            redactor.learn(&format!("{name}={value}"));
        }
    }
    for words in texts::commands(report) {
        let words: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
        redactor.learn(&words.join(" "));
    }
    for text in texts::of(report) {
        redactor.learn(text);
    }
}

/// Values whose neighbour says that they are secret: the word after `--token`, the value of a variable named so.
fn hide_named_values(redactor: &mut Redactor, report: &mut Report) {
    for words in texts::commands(report) {
        let mut flagged = false;
        for word in words {
            if flagged && !word.starts_with('-') && !is_number(word) {
                *word = redactor.key(word);
            }
            flagged = word.starts_with('-') && names_a_secret(word);
        }
    }
    for evidence in report.evidence.iter_mut().filter(|evidence| evidence.kind == EvidenceKind::Environment) {
        let secret = evidence.fields.get("name").and_then(Value::as_str).is_some_and(names_a_secret);
        if let Some(Value::String(value)) = evidence.fields.get_mut("value").filter(|_| secret)
            && !is_number(value)
        {
            let placeholder = redactor.key(value);
            // The variable stands in the line as well.
            evidence.text = evidence.text.replace(value.as_str(), &placeholder);
            *value = placeholder;
        }
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `--api-key`, `HF_TOKEN`, `DB_PASSWORD`: the last part of the name says so. `--max-tokens` counts something.
fn names_a_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase().replace('-', "_");
    ["token", "api_key", "apikey", "access_key", "secret", "secret_key", "password", "passwd"]
        .iter()
        .any(|end| lower.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_')))
}

fn listing(replaced: &[Replaced]) -> Vec<Diagnostic> {
    let info = |message: String| Diagnostic { severity: "info".to_owned(), message };
    let mut all: Vec<Diagnostic> = replaced.iter().map(|one| info(sentence(*one))).collect();
    if all.is_empty() {
        all.push(info("redacted: nothing to replace was found".to_owned()));
    }
    all.push(info(
        "redacted: file, kernel and program names, process and PCI ids, memory addresses and sizes stay; read the report \
         before it leaves the house"
            .to_owned(),
    ));
    all
}

/// `redacted: 2 hosts in 7 places (HOST-1 to HOST-2)`
fn sentence(replaced: Replaced) -> String {
    let (one, many) = match replaced.kind {
        SecretKind::Key => ("key", "keys"),
        SecretKind::Email => ("e-mail address", "e-mail addresses"),
        SecretKind::User => ("user", "users"),
        SecretKind::Host => ("host", "hosts"),
        SecretKind::Ip => ("IP address", "IP addresses"),
        SecretKind::Mac => ("hardware address", "hardware addresses"),
        SecretKind::GpuUuid => ("GPU UUID", "GPU UUIDs"),
        SecretKind::Serial => ("serial number", "serial numbers"),
        SecretKind::Path => ("path", "paths"),
    };
    let label = replaced.kind.label();
    let (values, places) = (replaced.values, replaced.places);
    let range = if values == 1 { format!("{label}-1") } else { format!("{label}-1 to {label}-{values}") };
    let noun = if values == 1 { one } else { many };
    let place_noun = if places == 1 { "place" } else { "places" };
    format!("redacted: {values} {noun} in {places} {place_noun} ({range})")
}

#[cfg(test)]
mod tests;
