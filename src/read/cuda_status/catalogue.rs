//! Lists of CUDA's statuses: a document's table of names and texts reports no failure.
//!
//! ```text
//! cudaErrorStreamCaptureUnsupported
//! operation not permitted when stream is capturing
//! ```
//!
//! In: a line and its neighbours. Out: whether it is a row of such a list: a name or a text alone, near another status's name
//! that stands alone too. It leaves lines with a call, a file or a value to the parent.

use crate::read::lines::{Cx, Line};
use crate::tables::cuda_status::{self, CudaStatus};

/// Lines on each side in which the list goes on.
const LINES: usize = 8;

/// Whether a line is a row of a list.
pub fn holds(line: &Line<'_>, cx: &Cx<'_>) -> bool {
    let body = line.body().trim();
    let text = || {
        cuda_status::text_in(body).filter(|found| found.range == (0..body.len())).map(|found| found.status)
    };
    let Some(own) = alone(body).or_else(text) else { return false };
    let other = |next: &Line<'_>| alone(next.body().trim()).is_some_and(|status| status.code != own.code);
    let named =
        alone(body).is_some() || cx.before(line, 1).iter().any(|back| alone(back.body().trim()).is_some());
    named && (cx.after(line).take(LINES).any(|next| other(&next)) || cx.before(line, LINES).iter().any(other))
}

/// The status whose name is all of a line, but for marks of lists, tables and assignments of its number.
fn alone(body: &str) -> Option<&'static CudaStatus> {
    let name = body.trim_start_matches(['-', '*', '|', '`', ' ']).trim_end_matches(['|', '`', ' ', ',', ':']);
    let (name, number) = name.split_once([' ', '=']).unwrap_or((name, ""));
    let is_number = number.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | '='));
    is_number.then(|| cuda_status::by_name(name)).flatten()
}
