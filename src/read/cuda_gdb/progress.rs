//! The driver's progress lines (`CUDA_COREDUMP_SHOW_PROGRESS=1`): `[19:36:57.711837] coredump: …`.
//!
//! In: lines from the first progress line. Out: exception, program counter, function and path of the dump; the first
//! exception where there are several. A line of another writer ends the report: what follows it is read anew.

use crate::image::symbol;
use crate::read::coredump::exceptions;
use crate::read::event::FaultingLaunch;

const MARK: &str = "coredump: ";

/// The text of a progress line.
pub(super) fn text(line: &str) -> Option<&str> {
    let (before, text) = line.split_once(MARK)?;
    let before = before.trim_end();
    (before.is_empty() || before.ends_with(']')).then_some(text)
}

pub(super) fn read(lines: &[&str]) -> Option<(FaultingLaunch, usize)> {
    let mut launch = FaultingLaunch::default();
    let (mut consumed, mut exceptions_seen) = (0_usize, 0_usize);
    for text in lines.iter().map_while(|line| text(line)) {
        consumed += 1;
        let text = text.trim();
        if let Some(kind) = text.strip_prefix("Detected an exception of type ") {
            exceptions_seen += 1;
            if exceptions_seen == 1 {
                exception(&mut launch, kind);
            }
        } else if let Some(path) = written_to(text) {
            launch.dump = Some(path.to_owned());
        } else if exceptions_seen == 1 {
            detail(&mut launch, text);
        }
        if text.starts_with("All done") {
            break;
        }
    }
    (launch.exception.is_some() || launch.dump.is_some()).then_some((launch, consumed))
}

/// `CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)`.
fn exception(launch: &mut FaultingLaunch, kind: &str) {
    let (constant, rest) = kind.split_once(' ').unwrap_or((kind, ""));
    let printed = rest.trim_matches(['(', ')', ' ']).parse().ok();
    launch.exception_number = printed.or_else(|| exceptions::number(constant));
    let known = launch.exception_number.and_then(exceptions::name);
    launch.exception = Some(known.unwrap_or(constant).to_owned());
}

/// `- PC 0x7fd1077a00f0`, and frames: number, address and symbol. The outermost frame is the kernel.
fn detail(launch: &mut FaultingLaunch, text: &str) {
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let mut words = text.split_whitespace();
    match words.next() {
        Some("-") if words.next() == Some("PC") => launch.pc = words.next().and_then(hex),
        Some(frame) if frame.starts_with('#') => {
            if let Some(function) = words.nth(1) {
                launch.kernel = Some(symbol::name(function));
            }
        }
        _ => {}
    }
}

/// `Writing ELF file to ./core.nvcudmp`.
fn written_to(text: &str) -> Option<&str> {
    let path = text.strip_prefix("Writing ")?.split_once(" file to ")?.1.trim();
    (!path.is_empty()).then_some(path)
}
