//! Stacks of running processes, as py-spy prints them: where a process stands, and no failure.
//!
//! ```text
//! Process 9100: /usr/bin/python3 -u train.py
//! Thread 9100 (active): "MainThread"
//!     all_gather_into_tensor (torch/distributed/distributed_c10d.py:3795)
//! ```
//!
//! In: the head of a main thread and the frames under it. Out: [`Data::StackDump`], one a process. It leaves other threads alone
//! and does not say which process the others wait for.

use super::event::{Data, PyFrame, StackDump};
use super::lines::{Cx, Line, Taken};
use super::pattern::Pattern;

/// Strings of which one stands in every head.
pub const LITERALS: &[&str] = &["): \"MainThread\""];

static HEAD: Pattern =
    Pattern::new(r#"^\s*Thread (?:0x[0-9A-Fa-f]+|(\d{1,10})) \((active|idle)[^)]*\): "MainThread"\s*$"#);
static PROCESS: Pattern = Pattern::new(r"^\s*Process (\d{1,10}): ");
static FRAME: Pattern = Pattern::new(r"^\s+(\S.{0,200}?) \(([^()]{1,400}?)(?::(\d{1,9}))?\)\s*$");

/// Lines above a main thread in which its process is named.
const LINES_ABOVE: usize = 40;
/// Frames that are kept.
const FRAME_LIMIT: usize = 128;

/// Reads the stack of a main thread.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let Some(head) = HEAD.captures(line.body()) else { return Taken::No };
    let thread = head.get(1).and_then(|digits| digits.as_str().parse().ok());
    let above = cx.before(line, LINES_ABOVE);
    let pid = above.iter().find_map(|back| PROCESS.number(back.body())).or(thread);
    let mut dump = StackDump {
        pid,
        active: head.get(2).is_some_and(|word| word.as_str() == "active"),
        frames: Vec::new(),
    };
    let mut used = Vec::new();
    for next in cx.after_in_stream(line, FRAME_LIMIT) {
        let Some(frame) = frame(next.body(), next.number) else { break };
        dump.frames.push(frame);
        used.push(next);
    }
    used.iter().for_each(|next| cx.consume(next));
    let lines = u32::try_from(used.len() + 1).unwrap_or(u32::MAX);
    cx.push_block(line, lines, Data::StackDump(dump));
    Taken::Whole
}

fn frame(body: &str, log_line: u64) -> Option<PyFrame> {
    let found = FRAME.captures(body)?;
    let part = |index| found.get(index).map(|part| part.as_str());
    Some(PyFrame {
        file: part(2)?.to_owned(),
        line: part(3).and_then(|digits| digits.parse().ok()),
        function: part(1).map(str::to_owned),
        log_line,
        ..PyFrame::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::event::InputId;

    #[test]
    fn a_main_thread_has_its_process_and_frames() {
        let text = "Process 9102: /usr/bin/python3 -u train.py\nPython v3.11.9 (/usr/bin/python3.11)\n\nThread 9102 (idle): \"MainThread\"\n    read (ssl.py:1167)\n    abort_upload (train.py:255)\n    <module> (train.py:340)\nThread 9180 (idle): \"Thread-1 (_pin_memory_loop)\"\n    wait (threading.py:331)\n";
        let events = crate::read::read_text(InputId(0), text.as_bytes()).events;
        let dumps: Vec<&StackDump> = events
            .iter()
            .filter_map(|event| match &event.data {
                Data::StackDump(dump) => Some(dump),
                _ => None,
            })
            .collect();
        assert_eq!(dumps.len(), 1);
        assert_eq!((dumps[0].pid, dumps[0].active), (Some(9102), false));
        let frames: Vec<(&str, &str, Option<u32>)> = dumps[0]
            .frames
            .iter()
            .map(|frame| (frame.function.as_deref().unwrap_or(""), frame.file.as_str(), frame.line))
            .collect();
        assert_eq!(
            frames,
            [
                ("read", "ssl.py", Some(1167)),
                ("abort_upload", "train.py", Some(255)),
                ("<module>", "train.py", Some(340))
            ]
        );
    }
}
