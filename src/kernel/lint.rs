//! Lints of Triton sources: what goes wrong in kernels again and again.
//!
//! In: the text of a Python file. Out: for each `@triton.jit` function its findings, with a location, what it looks like
//! now and what it should. `# warpfault: ignore` (or `ignore[unmasked_access]`) on the line, or alone on the line above,
//! silences. A lint sees one function and never proves anything: every finding is `suspected`.

mod rules;
mod source;

use super::analyze::{Certainty, Finding, FindingKind};
use super::location::Location;
use super::model::Param;
use source::Source;

/// Largest source that is read, in bytes.
const MAX_SOURCE: usize = 8 << 20;

/// The findings of one kernel of a source file.
#[derive(Debug, Clone)]
pub struct Linted {
    /// The function's name.
    pub entry: String,
    /// Its parameters; the type is the annotation.
    pub params: Vec<Param>,
    /// Findings, in the order of their lines.
    pub findings: Vec<Finding>,
}

/// Lints every `@triton.jit` function of a source; `path` is named in the locations.
#[must_use]
pub fn lint(path: &str, text: &str) -> Vec<Linted> {
    let mut end = text.len().min(MAX_SOURCE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let Some(source) = Source::parse(text.get(..end).unwrap_or("")) else { return Vec::new() };
    let mut out = Vec::new();
    for kernel in source.kernels() {
        let mut findings: Vec<Finding> = Vec::new();
        for issue in rules::all(&source, &kernel) {
            let silenced = source.silences(issue.line, key(issue.kind));
            let known = findings.iter().any(|f| {
                f.kind == issue.kind
                    && f.location.as_ref().map(|l| (l.line, l.column)) == Some((issue.line, issue.column))
            });
            if !silenced && !known {
                findings.push(issue.finding(path));
            }
        }
        findings.sort_by_key(|f| f.location.as_ref().map(|l| (l.line, l.column)));
        let params = kernel.params.iter().map(|param| Param {
            name: param.name.clone(),
            ty: param.annotation.clone(),
            int_width: None,
            pointee_bytes: None,
            divisibility: 1,
            used: true,
        });
        out.push(Linted { entry: kernel.name.clone(), params: params.collect(), findings });
    }
    out
}

/// What a rule found.
#[derive(Debug, Clone)]
struct Issue {
    kind: FindingKind,
    line: u32,
    column: u32,
    expression: String,
    reaches: String,
    detail: String,
    before: String,
    after: String,
}

impl Issue {
    fn finding(self, path: &str) -> Finding {
        let location = Location { file: path.to_owned(), line: self.line, column: self.column };
        Finding {
            kind: self.kind,
            certainty: Certainty::Suspected,
            expression: self.expression,
            reaches: self.reaches,
            access_location: Some(location.clone()),
            location: Some(location),
            max_value: None,
            limit: None,
            witness: None,
            sweep: None,
            detail: self.detail,
            remedy: Some(format!("before: {}\nafter:  {}", self.before, self.after)),
            accesses: Vec::new(),
        }
    }
}

/// A finding's name in a comment that silences it.
fn key(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Int32Overflow => "int32_overflow",
        FindingKind::UnmaskedAccess => "unmasked_access",
        FindingKind::MissingStride => "missing_stride",
        FindingKind::MissingOther => "missing_other",
        FindingKind::NonAtomicStore => "non_atomic_store",
        FindingKind::BlockNotPowerOfTwo => "block_not_power_of_two",
        FindingKind::FixedNumWarps => "fixed_num_warps",
        FindingKind::ArchMismatch => "arch_mismatch",
        FindingKind::SharedMemory => "shared_memory",
    }
}

#[cfg(test)]
mod tests;
