//! The transcript reader as a producer of the line framework.
//!
//! In: a line that begins a report of cuda-gdb or of the driver's core-dump progress. Out: [`Data::FaultingLaunch`]; the
//! lines that it took are consumed. It leaves parsing to the transcript reader.

use super::super::event::Data;
use super::super::lines::{Cx, Line, Taken};
use super::read_lines;

/// Lines of one stream that a report may cover.
const WINDOW: usize = 400;

/// Reads a report that begins on `line`.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let following: Vec<Line<'_>> = cx.after_in_stream(line, WINDOW).collect();
    let bodies: Vec<&str> = std::iter::once(line.body()).chain(following.iter().map(Line::body)).collect();
    let Some((launch, count)) = read_lines(&bodies) else { return Taken::No };
    for used in following.iter().take(count.saturating_sub(1)) {
        cx.consume(used);
    }
    cx.push_block(line, u32::try_from(count).unwrap_or(u32::MAX), Data::FaultingLaunch(launch));
    Taken::Whole
}
