//! Launches that a program prints itself: `[launch] scatter_kernel grid=(16, 70000, 1) block=(128,1,1)`.
//!
//! In: a line. Out: [`Data::LaunchMention`]. Of the launches of one kernel the last one printed stays, so that a program that prints
//! each of them makes no more events than it has kernels. It claims nothing of which launch failed.

use super::event::{Data, Dim3, LaunchMention};
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;

/// What every such line holds.
pub const LITERALS: &[&str] = &["grid=("];

static LAUNCH: Pattern = Pattern::new(
    r"\b([A-Za-z_]\w*)[ :,]+grid=\((\d+)(?:, ?(\d+))?(?:, ?(\d+))?,?\)(?:[ ,;]+block=\((\d+)(?:, ?(\d+))?(?:, ?(\d+))?,?\))?",
);

/// Events looked back at for an earlier launch of the same kernel.
const RECENT: usize = 64;

/// Reads a printed launch; other readers see the line too.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let Some(launch) = parse(line.body()) else { return Taken::No };
    let known = cx.recent_events_mut(RECENT).iter_mut().rev().find_map(|event| match &mut event.data {
        Data::LaunchMention(known)
            if known.kernel == launch.kernel
                && known.compilation.is_none()
                && event.origin.rank == line.origin.rank =>
        {
            Some((known, &mut event.span))
        }
        _ => None,
    });
    match known {
        Some((known, span)) => {
            *known = launch;
            span.lines =
                u32::try_from(line.number.saturating_sub(span.line)).unwrap_or(u32::MAX).saturating_add(1);
        }
        None => cx.push(line, Data::LaunchMention(launch)),
    }
    Taken::No
}

fn parse(body: &str) -> Option<LaunchMention> {
    let found = LAUNCH.captures(body)?;
    let dims = |first: usize| -> Option<Dim3> {
        let size = |at: usize| found.get(at).map_or(Some(1), |part| part.as_str().parse().ok());
        found.get(first)?;
        Some([size(first)?, size(first + 1)?, size(first + 2)?])
    };
    Some(LaunchMention {
        kernel: found.get(1)?.as_str().to_owned(),
        grid: dims(2),
        block_dim: dims(5),
        ..LaunchMention::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_launch_names_kernel_and_sizes() {
        let launch = parse("[launch] scatter_kernel grid=(16, 70000, 1) block=(128,1,1) rows=70000").unwrap();
        assert_eq!(launch.kernel, "scatter_kernel");
        assert_eq!((launch.grid, launch.block_dim), (Some([16, 70_000, 1]), Some([128, 1, 1])));
        let launch = parse("k: grid=(4688,) M=3").unwrap();
        assert_eq!((launch.kernel.as_str(), launch.grid, launch.block_dim), ("k", Some([4_688, 1, 1]), None));
        assert_eq!(parse("kernel[grid=(n,)](x)"), None);
        assert_eq!(parse("grid=(1, 2)"), None);
    }
}
