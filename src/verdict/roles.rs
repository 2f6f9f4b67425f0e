//! Who failed first, who only reports it, and what was clean-up.
//!
//! In: failures in the order of the evidence. Out: the same with roles, the root first. The rules are those of
//! formats.md 2.7: the earliest failure that speaks for itself wins, messengers are demoted and say so. It leaves causes
//! alone.

use crate::read::event::Messenger;
use crate::tables::class::FailureClass;

use super::failure::{Failure, Role, Weight};

/// Gives each failure its role and moves the root to the front. Returns false where nothing failed.
///
/// `observed` is the rank that a launcher, which measures time, saw fail first: it decides between failures of ranks that no
/// stamp orders.
pub fn assign(failures: &mut Vec<Failure>, observed: Option<u32>) -> bool {
    let Some(mut root) = choose(failures) else { return false };
    let first = failures.get(root);
    let named = failures.iter().position(|failure| {
        failure.rank.is_some()
            && failure.rank == observed
            && first.is_some_and(|first| unordered(first, failure))
    });
    root = named.unwrap_or(root);
    let mut root = failures.remove(root);
    root.role = Role::Root;
    for failure in failures.iter_mut() {
        let (role, why) = role_beside(failure, &root);
        failure.role = role;
        if let Some(why) = why {
            failure.why = why;
        }
    }
    // A line that only says "failed" adds nothing once something better says what failed.
    if root.class != FailureClass::Undecided {
        failures.retain(|failure| {
            failure.weight != Weight::Hint
                || failure.class != FailureClass::Undecided
                || failure.relayed_by.is_some()
        });
    }
    failures.sort_by_key(|failure| failure.role);
    failures.insert(0, root);
    true
}

/// Whether two failures say the same of two ranks, and no stamp tells which came first: lines of ranks arrive in any order.
pub(super) fn unordered(one: &Failure, other: &Failure) -> bool {
    let stamped = match (&one.at.stamp, &other.at.stamp) {
        (Some(one), Some(other)) => one.clock == other.clock && one.ns != other.ns,
        _ => false,
    };
    one.rank.is_some()
        && other.rank.is_some()
        && one.rank != other.rank
        && one.class == other.class
        && one.weight == other.weight
        && one.relayed_by == other.relayed_by
        && !stamped
}

/// Position of the first failure.
fn choose(failures: &[Failure]) -> Option<usize> {
    // Hardware that broke explains whatever the programs on it print, whenever they print it.
    if let Some(at) = earliest(failures, |f| f.class == FailureClass::Hardware && f.weight == Weight::Direct)
    {
        return Some(at);
    }
    // A process that aborts after an error of the GPU's software aborts because of it, whatever the error was.
    let unnamed = failures.iter().any(is_unnamed_gpu_error);
    let steps: [&dyn Fn(&Failure) -> bool; 12] = [
        &|f| f.weight == Weight::Direct && f.relayed_by.is_none() && f.class != FailureClass::Undecided,
        &|f| f.weight == Weight::Direct && f.class != FailureClass::Undecided,
        &|f| f.weight == Weight::Exit && f.is_xid(),
        &|f| f.weight == Weight::Exit && f.class == FailureClass::Segfault,
        &|f| f.weight == Weight::Program,
        &|f| f.weight == Weight::Waiting,
        &|f| f.weight == Weight::Exit && !(unnamed && f.class == FailureClass::Abort),
        &|f| is_unnamed_gpu_error(f),
        &|f| f.weight == Weight::Exit,
        // A bare cancellation follows a failure more often than it is one.
        &|f| f.weight == Weight::Hint && (f.class != FailureClass::Killed || f.code.is_some()),
        &|f| f.weight == Weight::Hint,
        &|_| true,
    ];
    for step in steps {
        if let Some(at) = earliest(failures, step) {
            return Some(at);
        }
    }
    None
}

/// A status of CUDA or of a library above it that does not say what failed.
fn is_unnamed_gpu_error(failure: &Failure) -> bool {
    failure.class == FailureClass::Undecided
        && failure.weight == Weight::Hint
        && failure
            .code
            .as_ref()
            .is_some_and(|code| !matches!(code.domain, "exit" | "signal" | "xid" | "nccl"))
}

/// Position of the earliest failure for which `wanted` holds.
fn earliest(failures: &[Failure], wanted: impl Fn(&Failure) -> bool) -> Option<usize> {
    let mut best: Option<(usize, &Failure)> = None;
    for (at, failure) in failures.iter().enumerate().filter(|(_, failure)| wanted(failure)) {
        if best.is_none_or(|(_, known)| failure.at.before(&known.at)) {
            best = Some((at, failure));
        }
    }
    best.map(|(at, _)| at)
}

fn role_beside(failure: &Failure, root: &Failure) -> (Role, Option<String>) {
    if failure.weight == Weight::Apart {
        return (Role::Cascade, None);
    }
    if let Some(messenger) = failure.relayed_by
        && messenger != Messenger::Launcher
    {
        return (
            Role::Messenger,
            Some(match messenger {
                // A lost context is the process's own: its watchdog says that something in it failed.
                Messenger::NcclWatchdog if failure.class.is_device_fault() => {
                    "the NCCL watchdog reports a fault of other work in that process".to_owned()
                }
                _ => format!("{} reports what happened elsewhere", messenger_name(messenger)),
            }),
        );
    }
    if failure.relayed_by == Some(Messenger::Launcher) || failure.class == FailureClass::Killed {
        return (Role::Cleanup, Some("the launcher's word or clean-up after the first failure".to_owned()));
    }
    if failure.weight == Weight::Waiting && root.class != FailureClass::Nccl {
        let other = failure.rank.is_some() && root.rank.is_some() && failure.rank != root.rank;
        let why = if other {
            "waited for the rank that had failed"
        } else {
            "a collective call that failed with it"
        };
        return (Role::Messenger, Some(why.to_owned()));
    }
    if failure.is_xid() && failure.class == root.class {
        return (Role::Messenger, Some("the kernel driver saw the same fault".to_owned()));
    }
    if failure.class == root.class && failure.rank == root.rank {
        return (Role::Messenger, Some("says the same as the first failure".to_owned()));
    }
    if failure.weight <= Weight::Exit && failure.class == FailureClass::Abort {
        return (Role::Cascade, Some("the process aborted after the first failure".to_owned()));
    }
    (Role::Cascade, None)
}

/// Name of a messenger in a sentence.
#[must_use]
pub fn messenger_name(messenger: Messenger) -> &'static str {
    match messenger {
        Messenger::NcclWatchdog => "the NCCL watchdog",
        Messenger::Nccl => "NCCL",
        Messenger::Cublas => "cuBLAS",
        Messenger::Cudnn => "cuDNN",
        Messenger::Destructor => "a destructor",
        Messenger::Allocator => "the allocator",
        Messenger::Launcher => "the launcher",
        Messenger::SanitizerEcho => "the sanitizer's API echo",
    }
}
