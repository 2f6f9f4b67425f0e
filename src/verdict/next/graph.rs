//! The first step where a captured graph was replayed: the same work without it.
//!
//! In: the case, the program's words. Out: a step. vLLM has a switch for it; elsewhere it is a change of the program.

use crate::case::Case;
use crate::read::event::Data;

use super::Next;

/// An eager run.
pub(super) fn eager(case: &Case, program: &[String]) -> Next {
    let is_vllm = runs_vllm(case, program);
    let mut words = program.to_vec();
    words.push("--enforce-eager".to_owned());
    Next {
        id: "without-graph",
        title: if is_vllm {
            "Run without CUDA graphs (--enforce-eager)"
        } else {
            "Run the same steps without the captured graph"
        },
        command: is_vllm.then_some(words),
        cost: "slower; nothing else changes",
        why: "a pass points to an address that the graph recorded; a failure comes out at a launch of its own, which the usual tools see",
    }
}

fn runs_vllm(case: &Case, program: &[String]) -> bool {
    program.iter().any(|word| word == "vllm" || word.ends_with("/vllm") || word.starts_with("vllm."))
        || case
            .pick(|data| match data {
                Data::Traceback(traceback) => Some(traceback),
                _ => None,
            })
            .any(|(_, _, traceback)| traceback.frames.iter().any(|frame| frame.file.contains("/vllm/")))
}
