//! What a refused request for GPU memory says by its own numbers: too large for the card, enough but in pieces, or held by
//! another process.
//!
//! In: messages of allocators. Out: [`Shortage`] with its sentence and its advice on a restart. It leaves alone who wrote the
//! allocation: the traceback tells that.

use crate::case::Case;
use crate::read::event::{Data, GpuOutOfMemory};
use crate::tables::cause::CauseKind;
use crate::text::number::binary_size;

use super::super::{Restart, RestartAdvice, Verdict};

/// Why the request was refused, as far as the numbers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The request alone is larger than the GPU.
    LargerThanGpu,
    /// What is free and what the allocator holds unused would do together: it is in pieces.
    Pieces,
    /// What other processes hold would do, with what is free.
    Neighbour,
    /// None of these.
    Full,
}

/// A refused request with the reason that its numbers give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The message.
    pub refused: GpuOutOfMemory,
    /// The reason.
    pub reason: Reason,
}

/// The refused request that says most; none where no message gives a size.
#[must_use]
pub fn shortage(case: &Case) -> Option<Shortage> {
    let all = case.pick(|data| match data {
        Data::GpuOutOfMemory(refused) => Some(refused),
        _ => None,
    });
    let mut all: Vec<&GpuOutOfMemory> = all.map(|(_, _, refused)| refused).collect();
    // The first that names what was asked for, before one that repeats less.
    all.sort_by_key(|refused| refused.requested_bytes.is_none());
    let refused = all.first()?;
    Some(Shortage { reason: reason(refused)?, refused: (*refused).clone() })
}

fn reason(refused: &GpuOutOfMemory) -> Option<Reason> {
    let requested = refused.requested_bytes?;
    if refused.total_bytes.is_some_and(|total| requested > total) {
        return Some(Reason::LargerThanGpu);
    }
    let free = refused.free_bytes.unwrap_or(0);
    let unused = refused.reserved_unallocated_bytes.unwrap_or(0);
    let others = refused.others.iter().fold(0_u128, |sum, (_, bytes)| sum.saturating_add(*bytes));
    Some(if unused > 0 && free.saturating_add(unused) >= requested {
        Reason::Pieces
    } else if others > 0 && free.saturating_add(unused).saturating_add(others) >= requested {
        Reason::Neighbour
    } else {
        Reason::Full
    })
}

impl Shortage {
    /// The numbers and what follows from them, in one sentence; none where the message prints too few.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let refused = &self.refused;
        let requested = binary_size(refused.requested_bytes?);
        let others: Vec<String> = refused
            .others
            .iter()
            .take(4)
            .map(|(pid, bytes)| format!("process {pid} holds {}", binary_size(*bytes)))
            .collect();
        if self.reason == Reason::LargerThanGpu {
            let total = binary_size(refused.total_bytes?);
            return Some(format!(
                "the request alone, {requested}, is larger than the whole GPU, {total}: a size is wrong"
            ));
        }
        let mut text =
            format!("{requested} were asked for and {} are free", binary_size(refused.free_bytes?));
        if let Some(unused) = refused.reserved_unallocated_bytes.filter(|unused| *unused > 0) {
            text.push_str(&format!(", with {} more that the allocator holds unused", binary_size(unused)));
        }
        if self.reason == Reason::Pieces {
            text.push_str(": enough in sum, so the memory is in pieces");
        }
        if !others.is_empty() {
            text.push_str(&format!("; {}", others.join(", ")));
        }
        Some(text)
    }
}

/// Advice where the numbers say more than the class does.
#[must_use]
pub fn restart(case: &Case, verdict: &Verdict) -> Option<Restart> {
    if verdict.cause().and_then(|hypothesis| hypothesis.cause) != Some(CauseKind::GpuMemory) {
        return None;
    }
    let shortage = shortage(case)?;
    let (advice, summary) = match shortage.reason {
        Reason::LargerThanGpu => {
            (RestartAdvice::Pointless, "the request is larger than the GPU, however empty it is".to_owned())
        }
        Reason::Pieces => (
            RestartAdvice::WorthTrying,
            "with expandable segments on: the memory was there, in pieces".to_owned(),
        ),
        Reason::Neighbour => {
            let (pid, _) = shortage.refused.others.iter().max_by_key(|(_, bytes)| *bytes)?;
            (
                RestartAdvice::WorthTrying,
                format!("once process {pid} has left the GPU: its memory is what is missing"),
            )
        }
        Reason::Full => return None,
    };
    Some(Restart { advice, summary })
}
