//! Evidence to failures with roles, to ranked hypotheses, to a verdict.
//!
//! In: a case. Out: [`Verdict`]. It sees typed evidence, never log text, and prefers a true "undecided" to a guess.

pub mod cause;
mod checks;
mod collect;
pub mod failure;
mod handled;
pub mod launches;
mod next;
pub mod places;
pub mod ranks;
mod restart;
mod roles;
pub mod shapes;
mod stacks;
mod summary;
pub mod told;

pub use cause::Hypothesis;
pub use checks::{Check, CheckStatus};
pub use collect::Apart;
pub use failure::{Certainty, Code, Failure, Role};
pub use next::{Mitigation, Next, YOUR_COMMAND, in_rank, own_command};
pub use ranks::{RankRow, RankState};
pub use restart::{Restart, RestartAdvice};
pub use roles::messenger_name;

use crate::case::{Case, Fact, Note};
use crate::read::event::{CollectiveName, Data, Messenger};
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
    /// Why the class is only suspected, where something speaks against it.
    pub doubt: Option<String>,
    /// What the input lacks, where that is why nothing is decided.
    pub gap: Option<Gap>,
    /// What was left out of the failures.
    pub notes: Vec<Note>,
    /// Kernel lines that nothing ties to the failure.
    pub apart: Apart,
}

impl Verdict {
    /// What the rules see of it.
    pub(crate) fn view<'a>(&'a self, case: &'a Case) -> Option<cause::View<'a>> {
        let root = self.failures.first()?;
        Some(cause::View {
            case,
            failures: &self.failures,
            root,
            places: &self.places,
            shapes: &self.shapes,
            apart: &self.apart,
        })
    }

    /// The likeliest hypothesis that names a cause and stands.
    #[must_use]
    pub fn cause(&self) -> Option<&Hypothesis> {
        self.hypotheses
            .iter()
            .find(|hypothesis| hypothesis.cause.is_some() && hypothesis.certainty > Certainty::Undecided)
    }
}

/// What an input lacks for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gap {
    /// A phrase behind the class's.
    Missing(String),
    /// Whole sentences in place of the verdict's: the input shows something else than a failure.
    NoFailure(String),
}

/// Judges a case.
#[must_use]
pub fn judge(case: &Case) -> Verdict {
    let apart = collect::apart(case);
    let mut failures = collect::collect(case, &apart);
    set_reruns_aside(case, &mut failures);
    let notes = handled::set_aside(case, &mut failures);
    let failed = roles::assign(&mut failures, ranks::observed_first(case));
    if failed {
        refine(&mut failures);
    }
    if let Some(root) = failures.first_mut().filter(|root| root.class == FailureClass::PythonError)
        && let Some(said) = summary::exception(case, root)
    {
        root.why = said;
    }
    let places = places::find(case, &failures, &apart);
    let root = failures.first();
    let class = root.map_or(FailureClass::None, |root| root.class);
    let asynchronous = root.and_then(|root| places::asynchronous(case, root, places.notice.as_ref()));
    let shapes = shapes::rows(case, root);
    let doubt = doubt(case, &failures);
    let gap = gap(case, &failures);
    let mut hypotheses = root
        .map(|root| {
            cause::hypotheses(&cause::View {
                case,
                failures: &failures,
                root,
                places: &places,
                shapes: &shapes,
                apart: &apart,
            })
        })
        .unwrap_or_default();
    let certainty = agree(certainty(case, &failures), doubt.is_some(), class, &mut hypotheses);
    let ranks = ranks::board(case, &failures);
    let mut verdict = Verdict {
        class,
        certainty,
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
        doubt,
        gap,
        notes,
        apart,
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
            && other.weight > Weight::State
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
fn certainty(case: &Case, failures: &[Failure]) -> Certainty {
    match failures.first() {
        // What could not be read may hold one.
        None if case.notes().iter().any(|note| note.severity == "warning") => Certainty::Undecided,
        None => Certainty::Supported,
        Some(root) if root.class == FailureClass::Undecided => Certainty::Undecided,
        Some(root) if root.weight >= Weight::Program => Certainty::Supported,
        // The one who ended the job says why.
        Some(root)
            if root.class == FailureClass::Killed && root.weight == Weight::Exit && root.code.is_none() =>
        {
            Certainty::Supported
        }
        Some(root) if root.is_xid() || root.evidence.len() > 1 => Certainty::Supported,
        Some(_) => Certainty::Suspected,
    }
}

/// Why the class can be no more than suspected.
fn doubt(case: &Case, failures: &[Failure]) -> Option<String> {
    let root = failures.first()?;
    if root.weight <= Weight::State {
        return Some(root.why.clone());
    }
    let cut = root.evidence.first().and_then(|id| case.get(*id)).is_some_and(|evidence| {
        matches!(&evidence.fact, Fact::Event(event) if matches!(&event.data, Data::Status(status) if status.cut))
    });
    if cut && root.class != FailureClass::Undecided {
        return Some(root.why.clone());
    }
    if root.is_xid() && is_beside_an_exception(root, failures) {
        return Some(
            "nothing ties the kernel's line to the job, which died of an exception of its own".to_owned(),
        );
    }
    handled::doubt(case, failures)
}

/// Why nothing is decided, where the input itself shows what it lacks.
fn gap(case: &Case, failures: &[Failure]) -> Option<Gap> {
    let root = failures.first().filter(|root| root.class == FailureClass::Undecided)?;
    match &case.get(*root.evidence.first()?)?.fact {
        Fact::Event(event) => match &event.data {
            Data::Traceback(_) | Data::Advice(_) | Data::PeerLost(_) => Some(Gap::Missing(root.why.clone())),
            Data::StackDump(_) => stacks::sentence(case).map(Gap::NoFailure),
            _ => None,
        },
        Fact::Derived(_) => None,
    }
}

/// Makes class and cause agree: a cause that implies the class is no surer than it. Returns the certainty of the class.
fn agree(certainty: Certainty, doubt: bool, class: FailureClass, causes: &mut [Hypothesis]) -> Certainty {
    if doubt {
        for cause in causes.iter_mut() {
            cause.certainty = cause.certainty.min(Certainty::Suspected);
        }
        return certainty.min(Certainty::Suspected);
    }
    let implied = causes
        .iter()
        .filter(|cause| cause.cause.is_some() && cause.class == class && class != FailureClass::Undecided)
        .map(|cause| cause.certainty)
        .max();
    implied.map_or(certainty, |implied| certainty.max(implied))
}

/// Whether all that ties a kernel line to the job is that both are there: the program died of an exception of its own.
fn is_beside_an_exception(root: &Failure, failures: &[Failure]) -> bool {
    let of_process = |failure: &Failure| root.pid.is_some() && failure.pid == root.pid;
    let exception = |failure: &Failure| {
        failure.class == FailureClass::PythonError
            && failure.weight == Weight::Program
            && !of_process(failure)
    };
    let agrees = |failure: &Failure| {
        !failure.is_xid()
            && (failure.class.is_device_fault() || failure.is_library_status() || of_process(failure))
    };
    failures.iter().any(exception) && !failures.iter().any(agrees)
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
