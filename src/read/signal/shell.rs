//! Shells that tell how a command ended: bash, zsh, fish, Go's and cargo's words.
//!
//! In: `Segmentation fault (core dumped)`, `train.sh: line 3: 77 Killed   python …`, `zsh: abort`. Out: [`Data::Signal`]
//! for faults and aborts, [`Data::Exit`] for kills, whose sender the shell does not know.

use super::super::event::{Data, ExitReporter, FatalSignal, ProcessExit, SignalReporter};
use super::super::lines::{Cx, Line};
use super::super::scan::{after, small};
use crate::tables::signals;

/// Marks around a whole line of a Markdown text.
const MARKDOWN: [char; 3] = ['*', '`', '_'];

/// Reads a shell's line.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> bool {
    let Some((number, pid)) = ended(line.body()) else { return false };
    let data = if matches!(number, 9 | 15) {
        Data::Exit(ProcessExit {
            reporter: ExitReporter::Shell,
            rank: None,
            local_rank: None,
            pid,
            host: None,
            code: None,
            signal: Some(number),
            time: None,
        })
    } else {
        Data::Signal(FatalSignal {
            signal: number,
            reporter: Some(SignalReporter::Shell),
            pid,
            ..FatalSignal::default()
        })
    };
    cx.push(line, data);
    true
}

/// The signal and process of such a line.
fn ended(body: &str) -> Option<(u32, Option<u32>)> {
    // A paste may set the line in bold or as code.
    let text = body.trim().trim_matches(MARKDOWN).trim();
    if let Some(number) = bare(text).or_else(|| translated(text)) {
        return Some((number, None));
    }
    if let Some(found) = translated_command(text) {
        return Some(found);
    }
    if let Some((head, rest)) = text.split_once(": line ") {
        let (_, rest) = small(rest)?;
        let (pid, rest) = small(rest.strip_prefix(':')?.trim_start())?;
        return (!head.contains(' ')).then_some((starts(rest.trim_start())?, Some(pid)));
    }
    if let Some(rest) = text.strip_prefix("zsh: ") {
        return Some((if rest.starts_with("abort") { 6 } else { starts(rest)? }, None));
    }
    if let Some(rest) = text.strip_prefix("fish: ") {
        return signals::name_in(rest).map(|signal| (signal.number, None));
    }
    if let Some(rest) = text.strip_prefix('[') {
        return job(rest);
    }
    let rest = after(text, "signal: ").filter(|_| !text.contains("DataLoader"))?;
    let number = starts(rest).or_else(|| rest.starts_with("abort").then_some(6))?;
    Some((number, None))
}

/// `Segmentation fault (core dumped)` and its kin as the whole line; corpus shells pad it with blanks.
fn bare(text: &str) -> Option<u32> {
    let word = text.trim_end_matches("(core dumped)").trim().trim_end_matches(['.', '!']);
    if word == "Abort trap: 6" || word == "Abort trap" {
        return None;
    }
    let found = signals::SIGNALS.iter().find(|signal| signal.text == word)?;
    matches!(found.number, 4 | 6 | 7 | 8 | 9 | 11 | 15).then_some(found.number)
}

/// A signal's text in another language as the whole line; the note on a core dump behind it is translated too.
fn translated(text: &str) -> Option<u32> {
    let dumped = || text.split_once(['(', '（']).map(|(word, _)| word.trim());
    signals::of_translation(text).or_else(|| signals::of_translation(dumped()?))
}

/// `train.sh: 行 3: 77 已杀死   python …`: the shell's name, a word for the line with its number, the process.
fn translated_command(text: &str) -> Option<(u32, Option<u32>)> {
    let mut parts = text.splitn(3, [':', '：']);
    let (head, line, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let numbered = line.chars().any(|c| c.is_ascii_digit()) && line.chars().count() <= 16;
    let (pid, rest) = small(rest.trim_start())?;
    let rest = rest.trim_start();
    let number = signals::TRANSLATED.iter().find(|(word, _)| rest.starts_with(word))?.1;
    (numbered && !head.contains(' ')).then_some((number, Some(pid)))
}

/// A signal's text at the head of `text`, in any case.
fn starts(text: &str) -> Option<u32> {
    signals::SIGNALS
        .iter()
        .filter(|signal| matches!(signal.number, 4 | 6 | 7 | 8 | 9 | 11 | 15))
        .find(|signal| {
            text.get(..signal.text.len()).is_some_and(|head| head.eq_ignore_ascii_case(signal.text))
        })
        .map(|signal| signal.number)
}

/// `1]    83815 segmentation fault (core dumped)  cmd`, `1]+  Segmentation fault      (core dumped) cmd`.
fn job(rest: &str) -> Option<(u32, Option<u32>)> {
    let (_, rest) = small(rest)?;
    let rest = rest.strip_prefix(']')?.trim_start_matches(['+', '-', ' ', '\t']);
    match small(rest) {
        Some((pid, tail)) => {
            let tail = tail.trim_start();
            let number = if tail.starts_with("abort") { 6 } else { starts(tail)? };
            Some((number, Some(pid)))
        }
        None => Some((starts(rest)?, None)),
    }
}
