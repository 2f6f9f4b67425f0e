//! What the checks of a kernel's source say, where the evidence leads to that kernel.
//!
//! In: what a rule sees, with the sources among the inputs. Out: `missing_mask`, *suspected*, where the kernel reads or writes without
//! a mask; and the kernels that the evidence leads to, for other rules. A source check sees patterns and proves nothing.

use crate::case::Fact;
use crate::kernel::FindingKind;
use crate::kernel::lint::Linted;
use crate::read::event::Data;
use crate::tables::cause::CauseKind;
use crate::tables::class::FailureClass;

use super::super::failure::Certainty;
use super::super::summary::base_name;
use super::{Hypothesis, View};

/// The rule.
pub fn rule(view: &View<'_>) -> Vec<Hypothesis> {
    if view.root.class != FailureClass::IllegalAddress {
        return Vec::new();
    }
    let found = sources(view).into_iter().find_map(|(path, kernel)| {
        let unmasked = |kind| kind == FindingKind::UnmaskedAccess;
        Some((path, kernel, kernel.findings.iter().find(|finding| unmasked(finding.kind))?))
    });
    let Some((path, kernel, finding)) = found else { return Vec::new() };
    let line = finding.location.as_ref().map(|at| format!(":{}", at.line)).unwrap_or_default();
    vec![Hypothesis {
        class: view.root.class,
        cause: Some(CauseKind::MissingMask),
        certainty: Certainty::Suspected,
        summary: format!("{}{line} in {}: {}", base_name(path), kernel.entry, finding.detail,),
        supports: view.root.evidence.first().copied().into_iter().collect(),
        against: Vec::new(),
        would_settle: vec!["memcheck: it names the block, the address and the nearest allocation".to_owned()],
    }]
}

/// The kernels of sources that the evidence leads to, each with the path of its source.
pub fn sources<'a>(view: &View<'a>) -> Vec<(&'a str, &'a Linted)> {
    let of = |source: &'a crate::case::LintedSource| {
        let path = view.case.inputs().get(source.input.0 as usize).map(|meta| meta.path.as_str());
        path.into_iter().flat_map(|path| source.kernels.iter().map(move |kernel| (path, kernel)))
    };
    view.case.sources().iter().flat_map(of).filter(|(path, kernel)| leads_to(view, path, kernel)).collect()
}

/// Whether the evidence leads to a kernel: by its name as the place of the fault, on a line that prints a shape or a launch, or by
/// its file in a traceback.
fn leads_to(view: &View<'_>, path: &str, kernel: &Linted) -> bool {
    if let Some(name) = view.places.fault.as_ref().and_then(|fault| fault.kernel.as_deref()) {
        return name == kernel.entry;
    }
    let by_name = || {
        view.shapes.iter().any(|shape| {
            view.case.get(shape.evidence).is_some_and(|evidence| match &evidence.fact {
                Fact::Event(event) => has_word(&event.text, &kernel.entry),
                Fact::Derived(_) => false,
            })
        })
    };
    let by_launch = |data: &Data| match data {
        Data::LaunchMention(launch) => Some(launch.kernel == kernel.entry),
        _ => None,
    };
    let by_file = |data: &Data| match data {
        Data::Traceback(traceback) => {
            Some(traceback.frames.iter().any(|frame| base_name(&frame.file) == base_name(path)))
        }
        _ => None,
    };
    by_name()
        || view.case.pick(by_launch).any(|(_, _, is_it)| is_it)
        || view.case.pick(by_file).any(|(_, _, is_it)| is_it)
}

/// Whether a name stands in a text, not as a part of a longer one.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text.get(..at).and_then(|head| head.chars().next_back());
            let after = text.get(at + name.len()..).and_then(|rest| rest.chars().next());
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}

#[cfg(test)]
mod tests {
    use super::has_word;

    #[test]
    fn a_name_is_a_whole_word() {
        assert!(has_word("[launch] swiglu_bwd_kernel grid=(4688, 18, 1)", "swiglu_bwd_kernel"));
        assert!(!has_word("swiglu_bwd_kernel_2 M=1", "swiglu_bwd_kernel"));
        assert!(!has_word("my_swiglu_bwd_kernel", "swiglu_bwd_kernel"));
        assert!(!has_word("x", ""));
    }
}
