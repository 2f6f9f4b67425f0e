//! Lines that tell how far a program has come: `step 1812 loss 2.113`, `[iteration 12/500]`, a progress bar.
//!
//! In: a line without its prefix. Out: [`Step`]. It leaves alone what follows from a step: that a shape ran before, that an
//! error was handled.

/// A line that tells how far the program has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Number, where it prints one.
    pub number: Option<u64>,
    /// Whether it prints a result of the step, so that the step is over.
    pub is_over: bool,
}

/// Words before a step's number.
const STEP_WORDS: [&str; 6] = ["global_step", "iteration", "step", "iter", "batch", "it"];

/// Signs that a line prints what came out of a step.
const RESULTS: [&str; 8] = ["loss", "it/s", "s/it", "elapsed", "throughput", "tokens/s", "grad_norm", "took"];

/// The step that a line tells of.
#[must_use]
pub fn step(body: &str) -> Option<Step> {
    let lower = body.get(..body.len().min(400)).unwrap_or(body).to_ascii_lowercase();
    let is_over = RESULTS.iter().any(|word| lower.contains(word));
    let number = STEP_WORDS.iter().find_map(|word| number_after(&lower, word)).or_else(|| bar(&lower));
    // Without a number only a loss tells of a step: other results are printed of anything.
    (number.is_some() || lower.contains("'loss'") || lower.contains("\"loss\""))
        .then_some(Step { number, is_over })
}

/// `step 12`, `step=12`, `iteration: 12/500`, `"step": 12`; `max_step=12` and `step_size=12` are settings.
fn number_after(lower: &str, word: &str) -> Option<u64> {
    let mut from = 0;
    while let Some(at) = lower.get(from..).and_then(|rest| rest.find(word)).map(|at| at + from) {
        from = at + word.len();
        let before = lower.get(..at).and_then(|head| head.chars().next_back());
        if before.is_some_and(|before| before.is_alphanumeric() || matches!(before, '_' | '-' | '.')) {
            continue;
        }
        let rest = lower.get(from..)?.trim_start_matches(['"', '\'', ' ', ':', '=', '#', '[', '(']);
        let gap = lower.len() - from - rest.len();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let behind = rest.get(digits..)?;
        // "batch" is as often a size: only a count out of a total is a step.
        let is_count = !matches!(word, "batch" | "it") || behind.trim_start().starts_with('/');
        let is_fraction = behind.starts_with('.') && behind.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if gap > 0 && digits > 0 && is_count && !is_fraction {
            return rest.get(..digits)?.parse().ok();
        }
    }
    None
}

/// ` 12%|█▏  | 120/1000 [01:00<07:20,  2.00it/s]`
fn bar(lower: &str) -> Option<u64> {
    let (_, rest) = lower.split_once("%|")?;
    let (_, rest) = rest.rsplit_once('|')?;
    let (number, rest) = rest.trim_start().split_once('/')?;
    rest.contains('[').then(|| number.trim().parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_from_settings() {
        let number = |body: &str| step(body).map(|step| (step.number, step.is_over));
        assert_eq!(number("step 1812 loss 2.113"), Some((Some(1812), true)));
        assert_eq!(number("Step: 7/500 lr 0.1"), Some((Some(7), false)));
        assert_eq!(number("[iteration       12/  500] elapsed time"), Some((Some(12), true)));
        assert_eq!(number("{\"step\": 3, \"loss\": 1.5}"), Some((Some(3), true)));
        assert_eq!(number("{'loss': 1.5, 'epoch': 0.25}"), Some((None, true)));
        assert_eq!(number(" 12%|█▏  | 120/1000 [01:00<07:20,  2.00it/s]"), Some((Some(120), true)));
        for setting in
            ["max_step=500", "step_size=10", "steps=500", "batch=64 seq_len=4096", "step 0.25", "loss 2"]
        {
            assert_eq!(number(setting), None, "{setting}");
        }
    }
}
