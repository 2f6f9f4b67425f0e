//! The two places: where a failure was noticed, and where it happened; and whether these are one.
//!
//! In: the case and the root failure. Out: [`Places`]. The place of notice is the innermost frame of the user's own code,
//! not a library frame. It leaves alone why the fault happened.

mod blocking;
mod fault;
mod notice;

use crate::case::{Case, EvidenceId};
use crate::read::event::Dim3;

use super::collect::Apart;
use super::failure::Failure;

pub(in crate::verdict) use notice::blocking_is_on;
pub use notice::{asynchronous, is_own_file};

/// Where a failure was noticed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notice {
    /// Global rank.
    pub rank: Option<u32>,
    /// File as printed.
    pub file: Option<String>,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Function.
    pub function: Option<String>,
    /// Call that noticed it.
    pub call: Option<String>,
    /// The call with its arguments, as the source line has it.
    pub call_text: Option<String>,
    /// Line of the log on which the frame stands, counted from 1.
    pub log_line: Option<u64>,
    /// Whether that call waits for the GPU; none where unknown.
    pub is_sync_point: Option<bool>,
    /// Why the call notices earlier errors; continues "the call …".
    pub sync_why: Option<&'static str>,
    /// The call inside it that waits, with its place, where the call itself is none: `bool(torch.all(x)) in masks.py:277`.
    pub waits_inside: Option<String>,
    /// Evidence.
    pub evidence: Vec<EvidenceId>,
}

/// Where a failure happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fault {
    /// Global rank.
    pub rank: Option<u32>,
    /// Kernel, without its parameter list.
    pub kernel: Option<String>,
    /// File as printed.
    pub file: Option<String>,
    /// Line, counted from 1.
    pub line: Option<u32>,
    /// Grid.
    pub grid: Option<Dim3>,
    /// Block.
    pub block: Option<Dim3>,
    /// Thread.
    pub thread: Option<Dim3>,
    /// Program counter.
    pub pc: Option<u64>,
    /// Address.
    pub address: Option<u64>,
    /// Access and size in bytes (`write 16`).
    pub access: Option<String>,
    /// Function of the host that crashed, without its parameter list.
    pub function: Option<String>,
    /// Library.
    pub library: Option<String>,
    /// Offset in kernel or library.
    pub offset: Option<u64>,
    /// Evidence.
    pub evidence: Vec<EvidenceId>,
}

/// Both places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Where it was noticed.
    pub notice: Option<Notice>,
    /// Where it happened.
    pub fault: Option<Fault>,
}

/// The places of the root failure.
#[must_use]
pub fn find(case: &Case, failures: &[Failure], apart: &Apart) -> Places {
    let Some(root) = failures.first() else { return Places::default() };
    let mut fault = fault::find(case, root, apart);
    if fault.as_ref().is_none_or(|fault| fault.file.is_none())
        && let Some(launch) = blocking::find(case, root)
    {
        let fault = fault.get_or_insert_with(Fault::default);
        fault.rank = fault.rank.or(launch.rank);
        fault.file = launch.file;
        fault.line = launch.line;
        fault.evidence.extend(launch.evidence);
    }
    Places { notice: notice::find(case, root, failures), fault }
}
