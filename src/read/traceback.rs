//! Python tracebacks: one event a block, with frames, carets and the exception that ends it.
//!
//! ```text
//! Traceback (most recent call last):
//!   File "/home/user/train.py", line 60, in forward
//!     return h, lens.to(device="cpu").tolist()
//!               ^^^^^^^^^^^^^^^^^^^^^
//! torch.AcceleratorError: CUDA error: an illegal memory access was encountered
//! ```
//!
//! In: a line that heads a block, or a frame whose head was cut off. Out: [`Data::Traceback`]. Frame and source lines are
//! consumed, so that the text of a program is never read as something that it printed; the exception line stays for the
//! producer whose status it carries. It leaves alone which frame matters.

use super::event::{Chain, Data, Exception, PyFrame, Traceback};
use super::lines::{Cx, Line, Taken};

/// Strings of which one stands in every head.
pub const LITERALS: &[&str] = &["Traceback (most recent call last)", "  File \"", "----> "];

/// Lines that a block may cover, other streams' lines included.
const WINDOW: usize = 4_000;
/// Lines of foreign output that may stand inside a block of an unprefixed log.
const FOREIGN_LIMIT: usize = 3;
/// Lines of a message that are kept after its first.
const MESSAGE_LINES: usize = 8;

/// Reads a traceback that begins on `line`.
pub fn read(line: &Line<'_>, cx: &mut Cx<'_>) -> Taken {
    let body = line.body();
    let headed = body.contains("Traceback (most recent call last)");
    let first = if headed { None } else { frame(body, line.number) };
    if !headed && first.is_none() {
        return Taken::No;
    }
    let mut block = Block { traceback: Traceback::default(), last_number: line.number, source_indent: None };
    block.traceback.frames.extend(first);
    block.traceback.chain = chain_before(line, cx);
    block.traceback.ignored = ignored_before(line, cx);
    let mut consumed = Vec::new();
    let mut foreign = 0;
    let mut end = None;
    let mut followed = false;
    let mut follow = cx.after_in_stream(line, WINDOW);
    for next in follow.by_ref() {
        match block.take(&next) {
            Step::Frame => {
                foreign = 0;
                consumed.push(next);
            }
            Step::End(exception) => {
                block.traceback.exception = Some(exception);
                end = Some(next);
                break;
            }
            Step::Head => {
                followed = true;
                break;
            }
            Step::Foreign => {
                foreign += 1;
                if foreign > FOREIGN_LIMIT {
                    break;
                }
            }
        }
    }
    if let (Some(exception), Some(end)) = (&mut block.traceback.exception, &end) {
        continue_message(exception, end, cx);
        cx.claim(end);
    }
    block.traceback.cut = headed && !followed && block.traceback.exception.is_none();
    if block.traceback.frames.is_empty() && block.traceback.exception.is_none() && !block.traceback.cut {
        return Taken::No;
    }
    for used in &consumed {
        cx.consume(used);
    }
    let lines = u32::try_from(block.last_number - line.number + 1).unwrap_or(u32::MAX);
    cx.push_block(line, lines, Data::Traceback(block.traceback));
    if headed { Taken::Part } else { Taken::Whole }
}

struct Block {
    traceback: Traceback,
    last_number: u64,
    source_indent: Option<usize>,
}

enum Step {
    Frame,
    End(Exception),
    Head,
    Foreign,
}

impl Block {
    fn take(&mut self, line: &Line<'_>) -> Step {
        let body = line.body();
        let trimmed = body.trim_start();
        if trimmed.is_empty() {
            return Step::Foreign;
        }
        if body.contains("Traceback (most recent call last)") {
            return Step::Head;
        }
        if let Some(frame) = frame(body, line.number).or_else(|| rich_frame(trimmed, line.number)) {
            self.traceback.frames.push(frame);
            self.last_number = line.number;
            self.source_indent = None;
            return Step::Frame;
        }
        if let Some(source) = trimmed.strip_prefix('❱') {
            if let Some(frame) = self.traceback.frames.last_mut() {
                frame.source = Some(rich_source(source));
            }
            self.last_number = line.number;
            return Step::Frame;
        }
        if is_rich_context(trimmed) {
            return Step::Frame;
        }
        if self.take_source(body, trimmed) {
            self.last_number = line.number;
            return Step::Frame;
        }
        if let Some(mut exception) = exception_line(trimmed) {
            exception.log_line = line.number;
            self.last_number = line.number;
            return Step::End(exception);
        }
        Step::Foreign
    }

    /// The source line under a frame, or its carets.
    fn take_source(&mut self, body: &str, trimmed: &str) -> bool {
        let indent = body.len() - trimmed.len();
        let Some(frame) = self.traceback.frames.last_mut() else { return false };
        let is_marks = trimmed.chars().all(|c| matches!(c, '^' | '~' | ' '));
        match (&frame.source, is_marks) {
            (None, false) if indent >= 2 => {
                frame.source = Some(body.trim_end().to_owned());
                self.source_indent = Some(indent);
                true
            }
            (Some(source), true) => {
                frame.marked = marked(source, body);
                true
            }
            // Further lines of a statement that spans several lines, and notes such as "[Previous line repeated …]".
            (Some(_), false) => indent >= 2 && self.source_indent.is_some_and(|least| indent + 2 >= least),
            _ => trimmed.starts_with("[Previous line repeated"),
        }
    }
}

/// The part of `source` that stands above the carets.
fn marked(source: &str, marks: &str) -> Option<String> {
    let chars: Vec<char> = marks.chars().collect();
    let first = chars.iter().position(|c| matches!(c, '^' | '~'))?;
    let last = chars.iter().rposition(|c| matches!(c, '^' | '~'))?;
    let part: String = source.chars().skip(first).take(last - first + 1).collect();
    let part = part.trim();
    (!part.is_empty()).then(|| part.to_owned())
}

/// `  File "f", line N, in fn`
#[must_use]
pub fn frame(body: &str, log_line: u64) -> Option<PyFrame> {
    let rest = body.trim_start().strip_prefix("File \"")?;
    let (file, rest) = rest.split_once('"')?;
    let rest = rest.strip_prefix(", line ")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let line = rest.get(..digits)?.parse().ok()?;
    let rest = rest.get(digits..)?;
    // faulthandler prints no comma: its frames belong to another block.
    let function = match rest.strip_prefix(", in ") {
        Some(function) => Some(function.trim_end().to_owned()),
        None if rest.trim().is_empty() => None,
        None => return None,
    };
    Some(PyFrame { file: file.to_owned(), line: Some(line), function, source: None, marked: None, log_line })
}

/// `/home/user/train.py:216 in train` inside the box that rich draws around a traceback.
fn rich_frame(text: &str, log_line: u64) -> Option<PyFrame> {
    let text = text.trim_end_matches(['│', ' ']);
    let (place, function) = text.split_once(" in ")?;
    let (file, line) = place.rsplit_once(':')?;
    let line: u32 = line.parse().ok()?;
    let is_file = file.ends_with(".py") || file.ends_with(".pyx") || file.starts_with('<');
    let function = function.trim();
    let one_word = !function.is_empty() && !function.contains(' ');
    (is_file && one_word).then(|| PyFrame {
        file: file.to_owned(),
        line: Some(line),
        function: Some(function.to_owned()),
        source: None,
        marked: None,
        log_line,
    })
}

/// The code of a rich source row: `216 │   │   │   loss.item()   │`.
fn rich_source(row: &str) -> String {
    let code = row.split_once('│').map_or(row, |(_, code)| code);
    code.trim_matches(['│', ' ']).to_owned()
}

/// A row of rich's box that is neither a place nor the marked source line: code around it, an empty row, the frame.
fn is_rich_context(text: &str) -> bool {
    let inner = text.trim_matches(['│', ' ']);
    inner.is_empty() && text.contains('│')
        || text.starts_with(['╭', '╰'])
        || text.split_once('│').is_some_and(|(number, _)| number.trim().parse::<u32>().is_ok())
}

/// `torch.AcceleratorError: CUDA error: …`, or a bare type name.
#[must_use]
pub fn exception_line(text: &str) -> Option<Exception> {
    let text = text.trim_start_matches("| ").trim_end();
    let kind_len =
        text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(text.len());
    let (kind, rest) = text.split_at_checked(kind_len)?;
    let name = kind.rsplit('.').next()?;
    if !name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') || kind.contains("..") {
        return None;
    }
    let known = ["Error", "Exception", "Interrupt", "Exit", "Warning", "StopIteration", "Timeout", "Failure"]
        .iter()
        .any(|end| name.ends_with(end));
    let message = match rest.strip_prefix(':') {
        Some(message) if known || kind.contains('.') || message.starts_with(' ') => message.trim(),
        None if rest.is_empty() && known => "",
        _ => return None,
    };
    // A word before a colon is an exception only when its name says so or when it is a dotted path to a class.
    let named =
        known || (kind.contains('.') && !kind.contains(".py") && name.chars().any(char::is_lowercase));
    let plausible = named || (name.len() > 5 && name.chars().skip(1).any(char::is_uppercase));
    plausible.then(|| Exception { kind: kind.to_owned(), message: message.to_owned(), log_line: 0 })
}

/// Adds the lines that continue a message: NCCL's "Last error:", CUDA's hints, a multi-line repr.
fn continue_message(exception: &mut Exception, end: &Line<'_>, cx: &Cx<'_>) {
    for next in cx.after_in_stream(end, MESSAGE_LINES * 4).take(MESSAGE_LINES) {
        let text = next.body().trim_end();
        let over = text.trim().is_empty()
            || text.contains("Traceback (most recent")
            || text.trim_start().starts_with("exit status ")
            || text.starts_with("  File \"")
            || is_chain(text).is_some()
            || exception_line(text.trim_start()).is_some();
        if over {
            break;
        }
        exception.message.push('\n');
        exception.message.push_str(text);
    }
}

fn is_chain(text: &str) -> Option<Chain> {
    if text.contains("The above exception was the direct cause") {
        Some(Chain::CausedByPrevious)
    } else if text.contains("During handling of the above exception") {
        Some(Chain::DuringPrevious)
    } else {
        None
    }
}

fn chain_before(line: &Line<'_>, cx: &Cx<'_>) -> Option<Chain> {
    cx.before(line, 6)
        .iter()
        .filter(|back| back.stream() == line.stream())
        .find_map(|back| is_chain(back.body()))
}

fn ignored_before(line: &Line<'_>, cx: &Cx<'_>) -> bool {
    cx.before(line, 2).iter().any(|back| back.body().contains("Exception ignored in"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::event::{Event, InputId};

    fn events(text: &str) -> Vec<Event> {
        crate::read::read_text(InputId(0), text.as_bytes()).events
    }

    fn only(text: &str) -> Traceback {
        let found: Vec<Traceback> = events(text)
            .into_iter()
            .filter_map(|event| match event.data {
                Data::Traceback(traceback) => Some(traceback),
                _ => None,
            })
            .collect();
        assert_eq!(found.len(), 1, "{found:#?}");
        found.into_iter().next().unwrap()
    }

    #[test]
    fn carets_say_which_call_it_was() {
        let traceback = only(concat!(
            "Traceback (most recent call last):\n",
            "  File \"/home/user/triton_cases.py\", line 60, in forward\n",
            "    def forward(self, x): return cu.to(device=\"cpu\").tolist()\n",
            "                                 ^^^^^^^^^^^^^^^^^^^\n",
            "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n",
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n",
        ));
        let frame = &traceback.frames[0];
        assert_eq!((frame.line, frame.function.as_deref()), (Some(60), Some("forward")));
        assert_eq!(frame.marked.as_deref(), Some("cu.to(device=\"cpu\")"));
        let exception = traceback.exception.unwrap();
        assert_eq!(exception.kind, "torch.AcceleratorError");
        assert_eq!(exception.log_line, 5);
        assert!(exception.message.ends_with("CUDA_LAUNCH_BLOCKING=1"));
    }

    #[test]
    fn two_frames_with_the_same_source_and_a_repeated_note() {
        let traceback = only(concat!(
            "Traceback (most recent call last):\n",
            "  File \"a.py\", line 1, in f\n    f()\n",
            "  File \"a.py\", line 1, in f\n    f()\n",
            "  [Previous line repeated 994 more times]\n",
            "RecursionError: maximum recursion depth exceeded\n",
        ));
        assert_eq!(traceback.frames.len(), 2);
        assert_eq!(traceback.exception.unwrap().kind, "RecursionError");
    }

    #[test]
    fn a_cut_head_still_yields_its_frames() {
        let traceback = only("  File \"b.py\", line 7, in g\n    x.item()\nRuntimeError: boom\n");
        assert_eq!(traceback.frames.len(), 1);
        assert_eq!(traceback.exception.unwrap().message, "boom");
    }

    #[test]
    fn a_block_without_an_exception_is_cut() {
        let head = "Traceback (most recent call last):\n";
        let frames = "  File \"b.py\", line 7, in g\n    x.item()\n  File \"c.py\", line 9, in h\n";
        for text in [
            head.to_owned(),
            format!("{head}{frames}"),
            format!("{head}{frames}    y()\nRuntimeEr"),
            format!("{head}{frames}\n\n"),
        ] {
            assert!(only(&text).cut, "{text}");
        }
        assert!(!only(&format!("{head}{frames}    y()\nKeyError: 'a'\n")).cut);
        assert!(!only(frames).cut);
    }

    #[test]
    fn the_shells_word_after_it_is_no_part_of_the_message() {
        let traceback = only("  File \"b.py\", line 7, in g\n    x()\nKeyError: 'data'\nexit status 1\n");
        assert_eq!(traceback.exception.unwrap().message, "'data'");
    }

    #[test]
    fn a_chain_is_marked() {
        let text = concat!(
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nValueError: one\n\n",
            "During handling of the above exception, another exception occurred:\n\n",
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    h()\nKeyError: 'two'\n",
        );
        let chains: Vec<Option<Chain>> = events(text)
            .iter()
            .filter_map(|event| match &event.data {
                Data::Traceback(traceback) => Some(traceback.chain),
                _ => None,
            })
            .collect();
        assert_eq!(chains, [None, Some(Chain::DuringPrevious)]);
    }

    #[test]
    fn a_rich_box_is_a_traceback() {
        let traceback = only(concat!(
            "╭──────── Traceback (most recent call last) ────────╮\n",
            "│ /home/q/train.py:1012 in <module>                 │\n",
            "│                                                   │\n",
            "│   1009 │   args = parse()                         │\n",
            "│ ❱ 1012 │   train(args)                            │\n",
            "│                                                   │\n",
            "│ /home/q/train.py:216 in train                     │\n",
            "│    215 │   for batch in loader:                   │\n",
            "│ ❱  216 │   │   loss = loss.item()                 │\n",
            "╰───────────────────────────────────────────────────╯\n",
            "RuntimeError: CUDA error: an illegal memory access was encountered\n",
        ));
        let places: Vec<Option<u32>> = traceback.frames.iter().map(|frame| frame.line).collect();
        assert_eq!(places, [Some(1012), Some(216)]);
        assert_eq!(traceback.frames[1].source.as_deref(), Some("loss = loss.item()"));
        assert_eq!(traceback.exception.unwrap().kind, "RuntimeError");
    }

    #[test]
    fn exception_lines_and_what_is_none() {
        for yes in [
            "KeyboardInterrupt",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
            "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: x",
            "triton.runtime.errors.OutOfResources: out of resource",
            "cupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_ILLEGAL_ADDRESS: x",
        ] {
            assert!(exception_line(yes).is_some(), "{yes}");
        }
        for no in ["epoch 3: loss 2.1", "INFO: started", "train.py: done", "Note: x", "=====", "E1129 19:41"]
        {
            assert!(exception_line(no).is_none(), "{no}");
        }
    }
}
