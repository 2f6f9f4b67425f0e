//! Exception lines that no traceback holds: pasted alone, or logged without their stack.
//!
//! ```text
//! RuntimeError: CUDA error: device-side assert triggered
//! ```
//!
//! In: a line with the name of an exception at its start. Out: [`Data::Exception`]. It leaves a status inside the message
//! to the producer of that status.

use super::event::Data;
use super::lines::{Cx, Line, Taken};
use super::traceback::exception_line;

/// Strings of which one stands in every such line.
pub const LITERALS: &[&str] = &["Error:", "Exception:", "KeyboardInterrupt"];

/// Reads an exception line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    if cx.is_claimed(line) {
        return Taken::No;
    }
    let Some(mut exception) = exception_line(line.body().trim_start()) else { return Taken::No };
    exception.log_line = line.number;
    cx.push(line, Data::Exception(exception));
    Taken::Part
}
