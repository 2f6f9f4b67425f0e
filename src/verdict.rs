//! Evidence to failures with roles, to ranked hypotheses, to a verdict.
//!
//! In: a case. Out: [`Verdict`]. It sees typed evidence, never log text, and prefers a true "undecided" to a guess.

pub mod cause;
mod checks;
mod collect;
pub mod failure;
pub mod launches;
mod next;
pub mod places;
pub mod ranks;
mod restart;
mod roles;
pub mod shapes;
mod summary;
pub mod told;

pub use cause::Hypothesis;
pub use checks::{Check, CheckStatus};
pub use failure::{Certainty, Code, Failure, Role};
pub use next::{Mitigation, Next, YOUR_COMMAND, in_rank, own_command};
pub use ranks::{RankRow, RankState};
pub use restart::{Restart, RestartAdvice};
pub use roles::messenger_name;

use crate::case::Case;
use crate::read::event::{CollectiveName, Messenger};
use crate::tables::class::FailureClass;

use failure::Weight;
use places::Places;

/// The answer to the four questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Class of the first failure; `none` where nothing failed.
    pub class: FailureClass,
    /// How sure the class is.
    pub certainty: Certainty,
    /// One sentence.
    pub summary: String,
    /// Status of the root.
    pub code: Option<Code>,
    /// Which component's message hides the failure.
    pub masked_by: Option<Messenger>,
    /// Whether it was reported later than it happened.
    pub asynchronous: Option<bool>,
    /// Both places.
    pub places: Places,
    /// Rank that failed first.
    pub root_rank: Option<u32>,
    /// Collective that never finished.
    pub collective: Option<CollectiveName>,
    /// Whether a restart is worth trying.
    pub restart: Restart,
    /// Failures, the root first.
    pub failures: Vec<Failure>,
    /// Hypotheses, the likeliest first.
    pub hypotheses: Vec<Hypothesis>,
    /// Shapes with their arithmetic, the likeliest first.
    pub shapes: Vec<shapes::ShapeRow>,
    /// Ranks, the odd one out first.
    pub ranks: Vec<RankRow>,
    /// Checks.
    pub checks: Vec<Check>,
    /// Next steps, cheapest first.
    pub next: Vec<Next>,
    /// Stop-gaps and fixes.
    pub mitigations: Vec<Mitigation>,
}

impl Verdict {
    /// What the rules see of it.
    pub(crate) fn view<'a>(&'a self, case: &'a Case) -> Option<cause::View<'a>> {
        let root = self.failures.first()?;
        Some(cause::View { case, failures: &self.failures, root, places: &self.places, shapes: &self.shapes })
    }

    /// The likeliest hypothesis that names a cause and stands.
    #[must_use]
    pub fn cause(&self) -> Option<&Hypothesis> {
        self.hypotheses
            .iter()
            .find(|hypothesis| hypothesis.cause.is_some() && hypothesis.certainty > Certainty::Undecided)
    }
}

/// Judges a case.
#[must_use]
pub fn judge(case: &Case) -> Verdict {
    let mut failures = collect::collect(case);
    set_reruns_aside(case, &mut failures);
    let failed = roles::assign(&mut failures);
    if failed {
        refine(&mut failures);
    }
    if let Some(root) = failures.first_mut().filter(|root| root.class == FailureClass::PythonError)
        && let Some(said) = summary::exception(case, root)
    {
        root.why = said;
    }
    let places = places::find(case, &failures);
    let root = failures.first();
    let class = root.map_or(FailureClass::None, |root| root.class);
    let asynchronous = root.and_then(|root| places::asynchronous(case, root, places.notice.as_ref()));
    let shapes = shapes::rows(case, root);
    let hypotheses = root
        .map(|root| {
            cause::hypotheses(&cause::View {
                case,
                failures: &failures,
                root,
                places: &places,
                shapes: &shapes,
            })
        })
        .unwrap_or_default();
    let ranks = ranks::board(case, &failures);
    let mut verdict = Verdict {
        class,
        certainty: certainty(case, root),
        summary: String::new(),
        code: root.and_then(|root| root.code.clone()),
        masked_by: masked_by(&failures),
        asynchronous,
        root_rank: ranks::root_rank(case, &failures),
        collective: ranks::collective(case, class),
        restart: Restart::default(),
        places,
        failures,
        hypotheses,
        shapes,
        ranks,
        checks: Vec::new(),
        next: Vec::new(),
        mitigations: Vec::new(),
    };
    verdict.restart = cause::memory::restart(case, &verdict).unwrap_or_else(|| restart::advise(&verdict));
    verdict.checks = checks::run(case, &verdict);
    verdict.next = next::steps(case, &verdict);
    verdict.mitigations = next::mitigations(&verdict);
    verdict.summary = summary::sentence(&verdict);
    verdict
}

/// A rerun fails again: that is no further failure of the incident. Its failures count only where the first run's own
/// input names none.
fn set_reruns_aside(case: &Case, failures: &mut Vec<Failure>) {
    let named =
        |failure: &Failure| failure.weight == Weight::Direct && failure.class != FailureClass::Undecided;
    if failures.iter().any(|failure| !case.is_rerun(failure.at.input) && named(failure)) {
        failures.retain(|failure| !case.is_rerun(failure.at.input));
    }
}

/// An unspecified launch failure is what the runtime says; the kernel driver or the GPU's own record may say which fault.
fn refine(failures: &mut [Failure]) {
    let Some((root, rest)) = failures.split_first_mut() else { return };
    if root.class != FailureClass::LaunchFailure {
        return;
    }
    let better = rest.iter().find(|other| {
        other.is_xid()
            && matches!(
                other.class,
                FailureClass::IllegalAddress
                    | FailureClass::MisalignedAddress
                    | FailureClass::IllegalInstruction
            )
            && (other.pid.is_none() || root.pid.is_none() || other.pid == root.pid)
    });
    if let Some(better) = better {
        root.class = better.class;
        root.evidence.extend(better.evidence.iter().copied().take(2));
        root.why =
            "the runtime says only that the launch failed; the kernel driver names the fault".to_owned();
    }
}

/// The class is stated by the failing component, by somebody else, or by nobody.
fn certainty(case: &Case, root: Option<&Failure>) -> Certainty {
    match root {
        // What could not be read may hold one.
        None if case.notes().iter().any(|note| note.severity == "warning") => Certainty::Undecided,
        None => Certainty::Supported,
        Some(root) if root.class == FailureClass::Undecided => Certainty::Undecided,
        Some(root) if root.weight == Weight::State => Certainty::Suspected,
        Some(root) if root.weight >= Weight::Program => Certainty::Supported,
        Some(root) if root.is_xid() || root.evidence.len() > 1 => Certainty::Supported,
        Some(_) => Certainty::Suspected,
    }
}

/// Who hides the root: its own messenger, or a library whose status is all that the program printed.
fn masked_by(failures: &[Failure]) -> Option<Messenger> {
    let root = failures.first()?;
    if root.relayed_by.is_some_and(|by| !matches!(by, Messenger::SanitizerEcho)) {
        return root.relayed_by;
    }
    let only_log_word = root.is_xid() || root.class == FailureClass::Undecided;
    let library = failures.iter().find(|failure| failure.is_library_status());
    only_log_word.then(|| library.and_then(|failure| failure.relayed_by)).flatten()
}
