//! The verdict by name.

use crate::case::Case;
use crate::read::event::Messenger;
use crate::tables::class::{FailureClass, Family};
use crate::verdict::{Certainty, RestartAdvice, Verdict, places};

use super::super::chain;
use super::super::known::Known;

pub(super) fn put(known: &mut Known, case: &Case, verdict: &Verdict) {
    known.put("verdict.class", verdict.class.name());
    known.put("verdict.family", family(verdict.class));
    known.put("verdict.certainty", certainty(verdict.certainty));
    known.put("verdict.summary", verdict.summary.as_str());
    known.put("verdict.failed", verdict.class != FailureClass::None);
    if let Some(hypothesis) = verdict.cause() {
        known.put_some("verdict.cause", hypothesis.cause.map(crate::tables::cause::CauseKind::name));
        known.put("verdict.cause_certainty", certainty(hypothesis.certainty));
        known.put("verdict.cause_summary", hypothesis.summary.as_str());
    }
    if let Some(code) = &verdict.code {
        known.put("verdict.domain", code.domain);
        known.put_some("verdict.code", code.number);
        known.put_some("verdict.code_name", code.name.clone());
    }
    known.put_some("verdict.masked_by", verdict.masked_by.map(messenger));
    known.put_some("verdict.asynchronous", verdict.asynchronous);
    known.put_some("verdict.root_rank", verdict.root_rank);
    known.put("verdict.restart", restart(verdict.restart.advice));
    known.put("verdict.restart_why", verdict.restart.summary.as_str());
    notice(known, verdict.places.notice.as_ref());
    fault(known, verdict.places.fault.as_ref());
    if let Some(collective) = &verdict.collective {
        known.put("verdict.collective.op", collective.op.as_str());
        known.put_some("verdict.collective.seq", collective.seq);
        known.put_some("verdict.collective.group", collective.group.clone());
    }
    chains(known, case);
}

fn notice(known: &mut Known, notice: Option<&places::Notice>) {
    let Some(notice) = notice else { return };
    known.put_some("verdict.noticed.file", notice.file.clone());
    known.put_some("verdict.noticed.line", notice.line);
    known.put_some("verdict.noticed.function", notice.function.clone());
    known.put_some("verdict.noticed.call", notice.call.clone());
    known.put_some("verdict.noticed.is_sync_point", notice.is_sync_point);
    known.put_some("verdict.noticed.why", notice.sync_why);
    known.put_some("verdict.noticed.place", chain::place(notice.file.as_deref(), notice.line));
}

fn fault(known: &mut Known, fault: Option<&places::Fault>) {
    let Some(fault) = fault else { return };
    let triple = |dim: [u64; 3]| format!("({},{},{})", dim[0], dim[1], dim[2]);
    known.put_some("verdict.fault.kernel", fault.kernel.clone());
    known.put_some("verdict.fault.file", fault.file.clone());
    known.put_some("verdict.fault.line", fault.line);
    known.put_some("verdict.fault.block", fault.block.map(triple));
    known.put_some("verdict.fault.thread", fault.thread.map(triple));
    known.put_some("verdict.fault.address", fault.address);
    known.put_some("verdict.fault.access", fault.access.clone());
    known.put_some("verdict.fault.library", fault.library.clone());
    known.put_some("verdict.fault.offset", fault.offset);
    known.put_some("verdict.fault.place", chain::place(fault.file.as_deref(), fault.line));
}

/// The chain of a run with launch blocking beside the first one.
fn chains(known: &mut Known, case: &Case) {
    let chains = chain::chains(case);
    let Some(blocking) = chains.iter().find(|chain| chain.blocking) else { return };
    let place = blocking.place();
    known.put_some("facts.blocking.place", place.clone());
    known.put("facts.blocking.chain", blocking.words());
    if let Some(first) = chains.iter().find(|chain| !chain.blocking) {
        known.put("facts.blocking.other_chain", first.words());
        if let (Some(one), Some(other)) = (first.place(), place) {
            known.put("facts.blocking.same_place", one == other);
        }
    }
}

pub(super) fn family(class: FailureClass) -> &'static str {
    match class.family() {
        Family::IllegalAddress => "illegal_address",
        Family::IllegalInstruction => "illegal_instruction",
        Family::Nccl => "nccl",
        Family::Segfault => "segfault",
        Family::Other => "other",
    }
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Proven => "proven",
        Certainty::Supported => "supported",
        Certainty::Suspected => "suspected",
        Certainty::Undecided => "undecided",
    }
}

fn messenger(messenger: Messenger) -> &'static str {
    match messenger {
        Messenger::NcclWatchdog | Messenger::Nccl => "nccl_watchdog",
        Messenger::Cublas => "cublas",
        Messenger::Cudnn => "cudnn",
        Messenger::Destructor => "destructor",
        Messenger::Allocator => "allocator",
        Messenger::Launcher => "launcher",
        Messenger::SanitizerEcho => "sanitizer",
    }
}

fn restart(advice: RestartAdvice) -> &'static str {
    match advice {
        RestartAdvice::Pointless => "pointless",
        RestartAdvice::WorthTrying => "worth_trying",
        RestartAdvice::AfterDrain => "after_drain",
        RestartAdvice::Unknown => "unknown",
    }
}
