//! Do driver, wheel and card fit together?
//!
//! In: facts about versions and architectures. Out: three checks: the driver's CUDA against the wheel's, the card against the
//! architectures that the binary holds, the kernel module against the user library. One that holds or is unknown is shown
//! where the failure is of that kind; one that fails is always shown.

use crate::case::{Case, EvidenceId};
use crate::kernel::device::{architecture, mismatch};
use crate::read::event::{Data, DriverFaultKind};
use crate::tables::class::FailureClass;

use super::super::Verdict;
use super::{Check, CheckStatus};

/// Driver branch and the newest CUDA that it serves (CUDA Toolkit release notes, table of driver versions).
const BRANCHES: &[(u32, (u32, u32))] = &[
    (450, (11, 0)),
    (455, (11, 1)),
    (460, (11, 2)),
    (465, (11, 3)),
    (470, (11, 4)),
    (495, (11, 5)),
    (510, (11, 6)),
    (515, (11, 7)),
    (520, (11, 8)),
    (525, (12, 0)),
    (530, (12, 1)),
    (535, (12, 2)),
    (545, (12, 3)),
    (550, (12, 4)),
    (555, (12, 5)),
    (560, (12, 6)),
    (565, (12, 7)),
    (570, (12, 8)),
    (575, (12, 9)),
    (580, (13, 0)),
];

/// Cards by words of their names, and their compute capability (developer.nvidia.com/cuda-gpus). Longer names first.
const CARDS: &[(&str, u32)] = &[
    ("GB300", 103),
    ("B300", 103),
    ("GB200", 100),
    ("B200", 100),
    ("B100", 100),
    ("GH200", 90),
    ("H200", 90),
    ("H100", 90),
    ("H800", 90),
    ("H20", 90),
    ("GB10", 121),
    ("RTX 50", 120),
    ("RTX PRO 6000 Blackwell", 120),
    ("L40", 89),
    ("L4", 89),
    ("RTX 40", 89),
    ("A100", 80),
    ("A800", 80),
    ("A30", 80),
    ("A40", 86),
    ("A10", 86),
    ("RTX 30", 86),
    ("T4", 75),
    ("RTX 20", 75),
    ("V100", 70),
    ("P100", 60),
];

/// The checks that apply.
pub(super) fn run(case: &Case, verdict: &Verdict) -> Vec<Check> {
    let facts = Facts { case };
    let of_kind = matches!(verdict.class, FailureClass::NoKernelImage | FailureClass::Driver);
    let shown = |check: &Check| of_kind || check.status == CheckStatus::Fails;
    [driver_cuda(&facts), gpu_arch(&facts), driver_library(&facts)].into_iter().filter(shown).collect()
}

struct Facts<'a> {
    case: &'a Case,
}

impl<'a> Facts<'a> {
    fn first(&self, names: &[&str]) -> Option<(EvidenceId, &'a str)> {
        self.all(names).into_iter().next()
    }

    fn all(&self, names: &[&str]) -> Vec<(EvidenceId, &'a str)> {
        self.case
            .events()
            .filter_map(|(id, event)| match &event.data {
                Data::Environment(fact) if names.contains(&fact.name.as_str()) => {
                    Some((id, fact.value.as_str()))
                }
                _ => None,
            })
            .collect()
    }
}

/// `13.0`, and `130` of `cu130`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next().and_then(|minor| minor.parse().ok()).unwrap_or(0);
    Some((major, minor))
}

fn driver_cuda(facts: &Facts<'_>) -> Check {
    let serves =
        facts.first(&["driver_cuda"]).and_then(|(id, text)| Some((id, version(text)?))).or_else(|| {
            let (id, text) = facts.first(&["driver"])?;
            let (branch, _) = version(text)?;
            BRANCHES.iter().rev().find(|(first, _)| *first <= branch).map(|(_, cuda)| (id, *cuda))
        });
    let needs =
        facts.first(&["torch_cuda"]).and_then(|(id, text)| Some((id, version(text)?))).or_else(|| {
            let (id, text) = facts.first(&["torch"])?;
            let digits = text.split("+cu").nth(1)?;
            let number: u32 = digits.get(..3)?.parse().ok()?;
            Some((id, (number / 10, number % 10)))
        });
    let (status, reading) = match (serves, needs) {
        (Some((_, (major, minor))), Some((_, (needed, needed_minor)))) if major < needed => (
            CheckStatus::Fails,
            format!(
                "the driver serves CUDA {major}.{minor} and the wheel was built with {needed}.{needed_minor}: update the driver, or take a wheel for CUDA {major}"
            ),
        ),
        (Some((_, (major, minor))), Some((_, (needed, needed_minor))))
            if (major, minor) < (needed, needed_minor) =>
        {
            (
                CheckStatus::Holds,
                format!(
                    "the driver serves CUDA {major}.{minor}, the wheel was built with {needed}.{needed_minor}: within one major release that works, except for code that is compiled as PTX"
                ),
            )
        }
        (Some((_, (major, minor))), Some((_, (needed, needed_minor)))) => (
            CheckStatus::Holds,
            format!(
                "the driver serves CUDA {major}.{minor}, the wheel was built with {needed}.{needed_minor}"
            ),
        ),
        (None, Some(_)) => {
            (CheckStatus::Unknown, "the input does not name the driver: nvidia-smi would".to_owned())
        }
        (Some(_), None) => (
            CheckStatus::Unknown,
            "the input does not name the wheel's CUDA: python -m torch.utils.collect_env would".to_owned(),
        ),
        (None, None) => (
            CheckStatus::Unknown,
            "the input names neither: nvidia-smi gives the driver, python -m torch.utils.collect_env both"
                .to_owned(),
        ),
    };
    let evidence = serves.map(|(id, _)| id).into_iter().chain(needs.map(|(id, _)| id)).collect();
    Check {
        id: "driver-cuda",
        title: "Is the driver new enough for the CUDA of the wheel?",
        status,
        reading,
        evidence,
    }
}

/// The compute capability that the evidence states, or that the card's name tells.
fn card(facts: &Facts<'_>) -> Option<(EvidenceId, u32)> {
    let stated = facts.first(&["unsupported_gpu", "compute_capability"]);
    if let Some(found) = stated.and_then(|(id, text)| Some((id, architecture(text)?.0))) {
        return Some(found);
    }
    let (id, name) = facts.first(&["gpu"])?;
    let (_, capability) = CARDS.iter().find(|(word, _)| names(name, word))?;
    Some((id, *capability))
}

/// Whether a card's name holds a word, not as the beginning of a longer one (`A10` in `A100`).
fn names(name: &str, word: &str) -> bool {
    name.match_indices(word).any(|(at, _)| {
        let before = name.get(..at).and_then(|head| head.chars().last());
        let after = name.get(at + word.len()..).and_then(|rest| rest.chars().next());
        let series = word.starts_with("RTX ") && after.is_some_and(|c| c.is_ascii_digit());
        before.is_none_or(|c| !c.is_ascii_alphanumeric())
            && (series || after.is_none_or(|c| !c.is_ascii_digit()))
    })
}

fn gpu_arch(facts: &Facts<'_>) -> Check {
    let card = card(facts);
    let built = facts.first(&["built_for"]);
    let title = "Does the binary hold code for this GPU?";
    let check = |status, reading, evidence| Check { id: "gpu-arch", title, status, reading, evidence };
    let Some((card_id, device)) = card else {
        let reading =
            "the input names no card: nvidia-smi, or the compute capability in the error, would".to_owned();
        return check(CheckStatus::Unknown, reading, built.map(|(id, _)| id).into_iter().collect());
    };
    let list: Vec<(EvidenceId, String)> = match built {
        Some((id, text)) => text
            .split([' ', ',', ';'])
            .filter(|word| !word.is_empty())
            .map(|word| (id, word.to_owned()))
            .collect(),
        None => facts
            .case
            .kernels()
            .filter_map(|(id, kernel)| Some((id, kernel.model.target.clone()?)))
            .take(8)
            .collect(),
    };
    let fits = |word: &str| {
        architecture(word).map(|built| mismatch(built, device, word.starts_with("compute_")).is_none())
    };
    let answers: Vec<(EvidenceId, bool)> =
        list.iter().filter_map(|(id, word)| Some((*id, fits(word)?))).collect();
    let words = list.iter().map(|(_, word)| word.as_str()).collect::<Vec<_>>().join(" ");
    let mut evidence = vec![card_id];
    evidence.extend(answers.first().map(|(id, _)| *id));
    // A wheel is good where one architecture of its list is; compiled kernels are each for themselves.
    let runs = if built.is_some() {
        answers.iter().any(|(_, fits)| *fits)
    } else {
        answers.iter().all(|(_, fits)| *fits)
    };
    if answers.is_empty() {
        let reading = format!(
            "the card is sm_{device}; what the binary was built for is not in the input: python -c 'import torch; print(torch.cuda.get_arch_list())', or cuobjdump --list-elf on the library, says it"
        );
        return check(CheckStatus::Unknown, reading, evidence);
    }
    if runs {
        return check(
            CheckStatus::Holds,
            format!("the card is sm_{device}, the binary holds {words}"),
            evidence,
        );
    }
    check(
        CheckStatus::Fails,
        format!(
            "the card is sm_{device} and the binary holds {words}: no code in it runs there; take a build that lists sm_{device}"
        ),
        evidence,
    )
}

fn driver_library(facts: &Facts<'_>) -> Check {
    let title = "Are kernel module and driver library of one version?";
    let check = |status, reading, evidence| Check { id: "driver-library", title, status, reading, evidence };
    let mismatch = facts
        .case
        .pick(|data| match data {
            Data::DriverFault(fault)
                if fault.kind == DriverFaultKind::VersionMismatch && !too_old(&fault.detail) =>
            {
                Some(())
            }
            _ => None,
        })
        .map(|(id, _, ())| id)
        .next();
    if let Some(id) = mismatch {
        let reading = "no: the driver says that they differ. The package was updated under the loaded module: reload the module or reboot the node; in a container, mount the host's libraries".to_owned();
        return check(CheckStatus::Fails, reading, vec![id]);
    }
    let drivers = facts.all(&["driver"]);
    match drivers.first() {
        Some((id, version)) => check(
            CheckStatus::Holds,
            format!("nothing says otherwise, and nvidia-smi or collect_env could ask the driver ({version})"),
            vec![*id],
        ),
        None => check(
            CheckStatus::Unknown,
            "the input names no driver: nvidia-smi, cat /proc/driver/nvidia/version, and dmesg for \"API mismatch\" would".to_owned(),
            Vec::new(),
        ),
    }
}

/// `The NVIDIA driver on your system is too old` is the other check's.
fn too_old(detail: &str) -> bool {
    detail.contains("too old")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Answer;

    fn case(facts: &[(&str, &str)]) -> Case {
        let mut case = Case::default();
        case.take_answers(facts.iter().map(|(name, value)| Answer::value(name, value)).collect());
        case
    }

    fn status(check: fn(&Facts<'_>) -> Check, facts: &[(&str, &str)]) -> CheckStatus {
        let case = case(facts);
        check(&Facts { case: &case }).status
    }

    #[test]
    fn the_driver_against_the_wheel() {
        assert_eq!(
            status(driver_cuda, &[("driver_cuda", "12.4"), ("torch_cuda", "13.0")]),
            CheckStatus::Fails
        );
        assert_eq!(
            status(driver_cuda, &[("driver", "535.129.03"), ("torch", "2.11.0+cu130")]),
            CheckStatus::Fails
        );
        assert_eq!(
            status(driver_cuda, &[("driver", "580.159.04"), ("torch", "2.11.0+cu130")]),
            CheckStatus::Holds
        );
        assert_eq!(
            status(driver_cuda, &[("driver_cuda", "12.4"), ("torch_cuda", "12.8")]),
            CheckStatus::Holds
        );
        assert_eq!(status(driver_cuda, &[("torch_cuda", "12.8")]), CheckStatus::Unknown);
        assert_eq!(status(driver_cuda, &[]), CheckStatus::Unknown);
    }

    #[test]
    fn the_card_against_the_binary() {
        let all = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120";
        let at = |card: &str, built: &str| {
            let mut case = Case::default();
            for (name, value) in [("gpu", card), ("built_for", built)] {
                let fact =
                    crate::read::event::EnvironmentFact { name: name.to_owned(), value: value.to_owned() };
                case.add_event(event(Data::Environment(fact)));
            }
            gpu_arch(&Facts { case: &case }).status
        };
        assert_eq!(at("NVIDIA H200", all), CheckStatus::Holds);
        assert_eq!(at("NVIDIA GeForce RTX 5090", "sm_50 sm_60 sm_90"), CheckStatus::Fails);
        assert_eq!(at("NVIDIA GeForce RTX 5090", "sm_90 compute_90"), CheckStatus::Holds);
        assert_eq!(at("NVIDIA A100-SXM4-80GB", "sm_86"), CheckStatus::Fails);
        assert_eq!(at("NVIDIA A10", "sm_80"), CheckStatus::Holds);
        assert_eq!(at("Unheard Card", all), CheckStatus::Unknown);
        assert_eq!(at("NVIDIA H200", ""), CheckStatus::Unknown);
    }

    #[test]
    fn module_and_library() {
        let fault = |detail: &str| {
            let mut case = Case::default();
            case.add_event(event(Data::DriverFault(crate::read::event::DriverFault {
                kind: DriverFaultKind::VersionMismatch,
                pci: None,
                detail: detail.to_owned(),
                state: false,
            })));
            driver_library(&Facts { case: &case }).status
        };
        assert_eq!(fault("Failed to initialize NVML: Driver/library version mismatch"), CheckStatus::Fails);
        assert_eq!(fault("The NVIDIA driver on your system is too old"), CheckStatus::Unknown);
    }

    fn event(data: Data) -> crate::read::event::Event {
        use crate::read::event::{Event, InputId, Origin, Span};
        Event {
            span: Span { input: InputId(0), line: 1, byte: 0, lines: 1 },
            origin: Origin::default(),
            data,
            text: String::new(),
        }
    }
}
