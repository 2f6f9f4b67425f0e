//! Does the kernel's own code speak against a wrapped 32-bit index?
//!
//! In: what a rule sees, and a shape past 2³¹−1 of which nothing but its size is known. Out: [`Wide`] where the code that the
//! evidence leads to forms its indices in 64 bits: the compiled kernel fits with the numbers of the log, its source holds no
//! product that 32 bits don't hold, or the log itself prints a kernel with 64-bit indices. None of these excludes another kernel, so
//! that the question stays open; it is no suspicion any more.

use crate::case::EvidenceId;
use crate::kernel::lint::Linted;
use crate::kernel::{Answer, FindingKind};

use super::super::shapes::ShapeRow;
use super::super::summary::base_name;
use super::View;
use super::kernel_answer::answer;
use super::source::sources;

/// Why a wrapped index is not what a shape suggests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wide {
    /// Ends a sentence that begins with the shape's arithmetic.
    pub why: String,
    /// Evidence.
    pub evidence: Vec<EvidenceId>,
}

/// What the code says; none where no code is known, or where it may wrap.
#[must_use]
pub fn wide_index(view: &View<'_>, shape: &ShapeRow) -> Option<Wide> {
    compiled(view).or_else(|| source(view, shape)).or_else(|| printed(shape))
}

fn compiled(view: &View<'_>) -> Option<Wide> {
    view.case.kernels().next()?;
    let answer = answer(view).filter(|compiled| compiled.answer == Answer::Fits)?;
    let evidence = view.case.kernels().filter(|(_, kernel)| kernel.model.entry == answer.entry);
    Some(Wide {
        why: format!("the compiled kernel {} holds every index with these numbers", answer.entry),
        evidence: evidence.map(|(id, _)| id).take(2).collect(),
    })
}

fn source(view: &View<'_>, shape: &ShapeRow) -> Option<Wide> {
    let led_to = sources(view);
    let (path, kernel) = led_to.first()?;
    let may_wrap =
        |kernel: &Linted| kernel.findings.iter().any(|finding| finding.kind == FindingKind::Int32Overflow);
    if led_to.iter().any(|(_, kernel)| may_wrap(kernel)) {
        return None;
    }
    Some(Wide {
        why: format!(
            "the source of {} in {} shows no product that is formed in 32 bits",
            kernel.entry,
            base_name(path)
        ),
        evidence: vec![shape.evidence],
    })
}

fn printed(shape: &ShapeRow) -> Option<Wide> {
    let line = shape.mention.wide?;
    Some(Wide {
        why: format!("line {line} shows a kernel that forms its indices in 64 bits"),
        evidence: vec![shape.evidence],
    })
}
