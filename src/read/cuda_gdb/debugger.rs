//! cuda-gdb's own lines: exception, focus, frames, `info cuda kernels`.
//!
//! In: lines from the first of a report. Out: what they say together. A line that no debugger prints, or the start of
//! the next report, ends it.

use crate::image::symbol;
use crate::read::coredump::exceptions;
use crate::read::event::{Dim3, FaultingLaunch, Place};

pub(super) fn read(lines: &[&str]) -> Option<(FaultingLaunch, usize)> {
    let mut report = Report::default();
    let mut consumed = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim_end();
        if index > 0 && report.ends_before(line) {
            break;
        }
        if report.take(line) {
            consumed = index + 1;
        } else if is_between(line) {
            if !line.is_empty() {
                consumed = index + 1;
            }
        } else {
            break;
        }
    }
    let launch = report.launch();
    let tells = launch.exception.is_some() || launch.kernel.is_some() || launch.block.is_some();
    tells.then_some((launch, consumed.max(1)))
}

/// A name without return type and parameter list, where a debugger broke the line before the launch.
fn bare(name: &str) -> &str {
    let name = name.trim();
    let name = name.strip_prefix("void ").unwrap_or(name);
    without_params(name)
}

#[derive(Default)]
struct Report {
    launch: FaultingLaunch,
    /// Place of the faulting instruction itself.
    triggered_at: Option<Place>,
    /// Place of the innermost frame: where the lane stood, maybe past the fault.
    frame_at: Option<Place>,
    /// Function named with the faulting instruction.
    triggered_in: Option<String>,
    /// Name on a line of its own, whose launch the next line holds.
    wrapped: Option<String>,
}

impl Report {
    fn ends_before(&self, line: &str) -> bool {
        line.contains("Opening GPU coredump:")
            || self.launch.exception.is_some()
                && (line.starts_with("CUDA Exception:") || line.contains("received signal "))
    }

    /// Takes what a line says; false for a line that says nothing about a fault.
    fn take(&mut self, line: &str) -> bool {
        if let Some((_, path)) = line.split_once("Opening GPU coredump:") {
            self.launch.dump = Some(path.trim().to_owned());
        } else if let Some((_, focus)) =
            line.split_once("focus set to CUDA").or_else(|| line.split_once("ocus to CUDA"))
        {
            self.launch.block = dim3_after(focus, "block ").or(self.launch.block);
            self.launch.thread = dim3_after(focus, "thread ").or(self.launch.thread);
        } else if let Some((_, name)) = line.split_once("CUDA Exception:") {
            self.exception(exceptions::number(name), name);
        } else if let Some((_, signal)) = line.split_once("received signal CUDA_EXCEPTION_") {
            let (number, name) = signal.split_once(", ").unwrap_or((signal, ""));
            self.exception(number.parse().ok(), name);
        } else if let Some((_, rest)) = line.split_once("The exception was triggered at PC ") {
            self.triggered(rest);
        } else if let Some(pc) = line.strip_prefix("errorpc ") {
            self.launch.pc = pc.split_whitespace().next().and_then(hex).or(self.launch.pc);
        } else {
            return self.frame(line) || self.kernel_row(line);
        }
        true
    }

    fn exception(&mut self, number: Option<u32>, name: &str) {
        let name = name.trim().trim_end_matches('.');
        let known = number.and_then(exceptions::name).filter(|_| name.is_empty());
        self.launch.exception = Some(known.unwrap_or(name).to_owned()).filter(|name| !name.is_empty());
        self.launch.exception_number = number;
    }

    /// `0x7fd1077a00f0  gather(float const*, int)  (crash.cu:20)`; function and place may be missing.
    fn triggered(&mut self, rest: &str) {
        let (pc, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        self.launch.pc = hex(pc).or(self.launch.pc);
        let mut function = rest.trim();
        if let Some((before, place)) = function.strip_suffix(')').and_then(|text| text.rsplit_once('('))
            && let Some(place) = place_of(place)
        {
            self.triggered_at = Some(place);
            function = before.trim();
        }
        let function = function.trim_start_matches('<').trim_end_matches('>');
        let function = match function.rsplit_once('+') {
            Some((name, offset)) if offset.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => function,
        };
        self.triggered_in = Some(without_params(function).to_owned()).filter(|name| !name.is_empty());
    }

    /// `#0  0x… in gather<<<(4,1,1),(256,1,1)>>> (n=1024) at /src/crash.cu:20`, with or without number and address.
    fn frame(&mut self, line: &str) -> bool {
        let numbered = line.strip_prefix('#').and_then(|rest| rest.split_once(char::is_whitespace));
        let numbered = numbered.filter(|(number, _)| number.parse::<u32>().is_ok());
        let launch = line.split_once("<<<(").and_then(|(name, rest)| Some((name, rest.split_once(">>>")?)));
        if launch.is_none() && line.starts_with("0x") && line.contains(" in ") {
            self.wrapped = Some(line.to_owned());
            return true;
        }
        if numbered.is_none() && launch.is_none() {
            return false;
        }
        if self.frame_at.is_none() {
            self.frame_at = line.rsplit_once(" at ").and_then(|(_, place)| place_of(place));
        }
        if let Some((head, (dims, tail))) = launch {
            let wrapped = self.wrapped.take().filter(|_| head.trim().is_empty());
            let head = wrapped.as_deref().unwrap_or(head);
            let name = head
                .rsplit_once(" in ")
                .map_or_else(|| numbered.map_or(head, |_| after_number(head)), |p| p.1);
            let name = if wrapped.is_some() { bare(name) } else { name.trim() };
            self.launch.kernel = Some(name.to_owned()).filter(|name| !name.is_empty());
            // Cut at `<<<(`, so the first parenthesis is missing.
            let (grid, block) = dims.split_once("),(").unwrap_or((dims, ""));
            self.launch.grid = dim3(grid).or(self.launch.grid);
            self.launch.block_dim = dim3(block.trim_end_matches(')')).or(self.launch.block_dim);
            self.arguments(tail.trim_start());
        }
        true
    }

    /// `*      0      -   0    1 Active 0x0040 (4,1,1) (256,1,1) gather(n=1024)`. The star marks the focus.
    fn kernel_row(&mut self, line: &str) -> bool {
        let row = line.trim_start();
        let focused = row.starts_with('*');
        let row = row.trim_start_matches('*').trim_start();
        if !row.starts_with(|first: char| first.is_ascii_digit()) {
            return false;
        }
        let Some((grid, rest)) = row.split_once('(').and_then(|(_, rest)| rest.split_once(')')) else {
            return false;
        };
        let block = rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let (Some(grid), Some((block, call))) = (dim3(grid), block) else { return false };
        let (Some(block), Some(name)) = (dim3(block), call.trim().split_once('(').map(|(name, _)| name))
        else {
            return false;
        };
        let known = self.launch.grid.is_some() && self.launch.kernel.is_some();
        if focused || !known {
            self.launch.grid = Some(grid);
            self.launch.block_dim = Some(block);
            self.launch.kernel.get_or_insert_with(|| name.trim().to_owned());
            self.arguments(call.trim().strip_prefix(name).unwrap_or(""));
        }
        true
    }

    /// `(table=0x7fd0ffe00000, n=1024) at …`
    fn arguments(&mut self, text: &str) {
        let list = text.strip_prefix('(').and_then(closed);
        if let Some(list) = list.filter(|list| !list.is_empty()) {
            let pair = |argument: String| {
                let (name, value) = argument.split_once('=')?;
                Some((name.trim().to_owned(), value.trim().to_owned()))
            };
            self.launch.arguments = symbol::split_list(list).into_iter().filter_map(pair).collect();
        }
    }

    fn launch(self) -> FaultingLaunch {
        let Self { mut launch, triggered_at, frame_at, triggered_in, wrapped: _ } = self;
        launch.kernel = launch.kernel.or(triggered_in);
        launch.place = match (triggered_at, frame_at) {
            // The frame has the whole path, the exception the right line.
            (Some(triggered), Some(frame)) if ends_with_path(&frame.file, &triggered.file) => {
                Some(Place { line: triggered.line, ..frame })
            }
            (triggered, frame) => triggered.or(frame),
        };
        launch
    }
}

/// Lines that a debugger prints between those that tell of a fault: blank, source text, registers, disassembly, values,
/// table heads.
fn is_between(line: &str) -> bool {
    let text = line.trim_start();
    let word = text.split_whitespace().next().unwrap_or("");
    let digits = word.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    let register = word.starts_with(['R', 'U', 'P', 'C'])
        && (digits.is_empty() || digits.parse::<u16>().is_ok())
        && text.split_whitespace().nth(1).is_some_and(|value| hex(value).is_some());
    let source = line.split_once('\t').is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    text.is_empty()
        || source
        || register
        || text.starts_with("=> 0x")
        || text.starts_with("0x")
        || text.starts_with('$')
        || text.starts_with('*')
        || text.starts_with("pc ")
        || text.starts_with("(cuda-gdb)")
        || text.starts_with("Kernel Parent Dev")
        || text.starts_with("Dev PCI Bus")
}

fn after_number(head: &str) -> &str {
    head.split_once(char::is_whitespace).map_or(head, |(_, rest)| rest)
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn dim3_after(text: &str, mark: &str) -> Option<Dim3> {
    let (_, rest) = text.split_once(mark)?;
    dim3(rest.strip_prefix('(')?.split_once(')')?.0)
}

/// `4,1,1`
fn dim3(text: &str) -> Option<Dim3> {
    let mut parts = text.split(',').map(|part| part.trim().parse::<u64>().ok());
    let dims = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(dims)
}

/// `/src/crash.cu:20`
fn place_of(text: &str) -> Option<Place> {
    let (file, line) = text.trim().rsplit_once(':')?;
    let line = line.parse().ok()?;
    (!file.is_empty()).then(|| Place { file: file.to_owned(), line: Some(line), function: None })
}

/// Text up to the parenthesis that closes the one before it.
fn closed(text: &str) -> Option<&str> {
    let mut depth = 1_i32;
    let end = text.char_indices().find(|(_, letter)| {
        depth += i32::from(*letter == '(') - i32::from(*letter == ')');
        depth == 0
    });
    text.get(..end?.0)
}

/// `gather(float const*, int)` → `gather`; a name without parameters stays.
fn without_params(function: &str) -> &str {
    let Some(body) = function.strip_suffix(')') else { return function };
    let mut depth = 1_i32;
    let open = body.char_indices().rev().find(|(_, letter)| {
        depth += i32::from(*letter == ')') - i32::from(*letter == '(');
        depth == 0
    });
    open.and_then(|(at, _)| body.get(..at)).unwrap_or(function)
}

fn ends_with_path(long: &str, short: &str) -> bool {
    long.strip_suffix(short).is_some_and(|head| head.is_empty() || head.ends_with('/'))
}
