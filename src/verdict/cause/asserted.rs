//! What a device assertion says by itself: the bound that an index broke, and the generated kernel that the program had just launched.
//!
//! In: the assertion and the traceback of its rank. Out: a sentence, or none where the condition has no number. A launch at which
//! the error came out need not be the one that asserted: the sentence says no more than where the traceback ends.

use crate::read::event::{Data, PyFrame};
use crate::tables::class::FailureClass;
use crate::text::number::grouped;

use super::View;

/// Longest condition that a sentence quotes, in bytes.
const QUOTED_BYTES: usize = 120;

/// The bound in words.
pub fn sentence(view: &View<'_>) -> Option<String> {
    if view.root.class != FailureClass::DeviceAssert {
        return None;
    }
    let conditions = view.case.pick(|data| match data {
        Data::DeviceAssert(assert) => Some(assert.expression.as_str()),
        _ => None,
    });
    let (_, _, condition) = conditions.into_iter().next()?;
    let condition = condition.rsplit(": ").next().unwrap_or(condition).trim();
    let bound = bound(condition).filter(|_| condition.len() <= QUOTED_BYTES)?;
    let mut text = format!(
        "an index or label lies outside its table: `{condition}` does not hold, so the first index outside is {}",
        grouped(u128::from(bound))
    );
    if let Some(kernel) = generated(view) {
        text.push_str(&format!(
            "; the traceback ends at the launch of {kernel}, whose name lists the operations in it"
        ));
    }
    Some(text)
}

/// The first value past the last `<` or `<=` of a condition.
fn bound(condition: &str) -> Option<u64> {
    let (_, last) = condition.rsplit_once('<')?;
    let (last, past) = last.strip_prefix('=').map_or((last, 0), |last| (last, 1));
    last.trim().parse::<u64>().ok()?.checked_add(past).filter(|bound| *bound > 1)
}

/// The generated kernel in whose launch the traceback ends: `triton_red_fused_embedding_0.run(…)`.
fn generated(view: &View<'_>) -> Option<String> {
    let launched = |frame: &PyFrame| {
        let name = frame.source.as_deref()?.trim().split_once(".run(")?.0;
        let is_name =
            name.starts_with("triton_") && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| name.to_owned())
    };
    view.case
        .pick(|data| match data {
            Data::Traceback(traceback) => traceback.frames.iter().rev().find_map(launched),
            _ => None,
        })
        .find(|(_, event, _)| view.root.rank.is_none() || event.origin.rank == view.root.rank)
        .map(|(_, _, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_behind_the_last_less_than_is_a_bound() {
        assert_eq!(bound("0 <= tmp4 < 32000"), Some(32_000));
        assert_eq!(bound("tmp4 <= 511"), Some(512));
        for none in ["srcIndex < srcSelectDimSize", "index >= -sizes[i]", "x < 1", "t >= 0"] {
            assert_eq!(bound(none), None, "{none}");
        }
    }
}
